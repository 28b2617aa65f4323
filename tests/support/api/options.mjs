// Bodies of tests/api.test.mjs: options in every call.
import { equal } from "../expect.mjs";
import { allFail } from "./fail.mjs";

export const bodies = {
  "unknown and wrong options are ArgumentErrors in every call": async (context) => {
    const { wgrad, engine } = context;
    const x = engine.ones([2, 4], { requiresGrad: true });
    const target = engine.tensor(Int32Array.of(0, 1));
    const calls = {
      tensor: (o) => engine.tensor([1], o),
      zeros: (o) => engine.zeros([1], o),
      ones: (o) => engine.ones([1], o),
      full: (o) => engine.full([1], 2, o),
      rand: (o) => engine.rand([1], o),
      randn: (o) => engine.randn([1], o),
      data: (o) => x.data(o),
      backward: (o) => x.sum().backward(null, o),
      geluMul: (o) => x.geluMul(1, o),
      geglu: (o) => x.geglu(o),
      layerNorm: (o) => x.layerNorm(null, null, o),
      sum: (o) => x.sum(o),
      mean: (o) => x.mean(o),
      crossEntropy: (o) => x.crossEntropy(target, o),
      slice: (o) => x.slice(o),
      adamw: (o) => engine.optim.adamw([x], o),
      geluMulBackward: (o) => engine.kernels.geluMulBackward(x, x, x, o),
      layerNormForward: (o) => engine.kernels.layerNormForward(x, null, null, o),
      init: (o) => wgrad.init(o),
    };
    for (const [op, call] of Object.entries(calls)) {
      const rows = [
        [() => call({ misspelt: 1 }), "ArgumentError", [op, '"misspelt"', "it takes"]],
        ...[5, "dim", true, [], [1], () => 1].map((o) => [() => call(o), "ArgumentError", [op, "options"]]),
      ];
      await allFail(context, rows);
    }
    const adamw = (options) => () => engine.optim.adamw([x], options);
    await allFail(context, [
      [() => engine.zeros([1], { requiresGrad: 1 }), "ArgumentError", ["requiresGrad", "true or false"]],
      [() => engine.zeros([1], { requiresGrad: null }), "ArgumentError", ["requiresGrad", "null"]],
      [() => engine.full([1], "2"), "ArgumentError", ["full", '"2"']],
      [() => engine.full([1], 2n), "ArgumentError", ["full", "2n"]],
      [() => engine.rand([1], { low: "0" }), "ArgumentError", ["low", "number"]],
      [() => engine.rand([1], { low: 1, high: 1 }), "ArgumentError", ["rand", "below"]],
      [() => engine.rand([1], { low: 2, high: 1 }), "ArgumentError", ["rand", "below"]],
      [() => engine.rand([1], { high: NaN }), "ArgumentError", ["high", "NaN"]],
      [() => engine.rand([1], { high: Infinity }), "ArgumentError", ["rand", "Infinity"]],
      [() => engine.rand([1], { low: -Infinity }), "ArgumentError", ["rand", "Infinity"]],
      [() => engine.rand([1], { high: 1e39 }), "ArgumentError", ["rand"]],
      [() => x.data({ raw: 1 }), "ArgumentError", ["raw", "true or false"]],
      [() => x.sum().backward(null, { retainGraph: "yes" }), "ArgumentError", ["retainGraph", '"yes"']],
      [() => x.geluMul(1, { approximate: "fast" }), "ArgumentError", ['"fast"', '"none"', '"tanh"']],
      [() => x.geluMul(1, { approximate: true }), "ArgumentError", ["approximate", "true"]],
      [() => x.geglu({ approximate: null }), "ArgumentError", ["approximate", "null"]],
      [() => x.layerNorm(null, null, { eps: -1 }), "ArgumentError", ["eps", "-1"]],
      [() => x.layerNorm(null, null, { eps: NaN }), "ArgumentError", ["eps", "NaN"]],
      [() => x.layerNorm(null, null, { eps: Infinity }), "ArgumentError", ["eps"]],
      [() => x.layerNorm(null, null, { eps: "1e-5" }), "ArgumentError", ["eps", '"1e-5"']],
      [() => x.sum({ keepdim: 1 }), "ArgumentError", ["keepdim", "true or false"]],
      [() => x.crossEntropy(target, { reduction: "avg" }), "ArgumentError", ['"avg"', '"mean"', '"none"']],
      [() => x.crossEntropy(target, { labelSmoothing: 1.5 }), "ArgumentError", ["1.5", "0 to 1"]],
      [() => x.crossEntropy(target, { labelSmoothing: -0.1 }), "ArgumentError", ["labelSmoothing"]],
      [() => x.crossEntropy(target, { labelSmoothing: NaN }), "ArgumentError", ["labelSmoothing", "NaN"]],
      [() => x.crossEntropy(target, { ignoreIndex: 0.5 }), "IndexError", ["ignoreIndex", "0.5"]],
      [adamw({ betas: [0.9] }), "ArgumentError", ["betas", "two"]],
      [adamw({ betas: [0.9, 0.99, 0.999] }), "ArgumentError", ["betas", "two"]],
      [adamw({ betas: 0.9 }), "ArgumentError", ["betas", "0.9"]],
      [adamw({ betas: "ab" }), "ArgumentError", ["betas", '"ab"']],
      [adamw({ betas: [1, 0.9] }), "ArgumentError", ["betas", "1"]],
      [adamw({ betas: [0.9, 1] }), "ArgumentError", ["betas", "1"]],
      [adamw({ betas: [-0.1, 0.9] }), "ArgumentError", ["betas", "-0.1"]],
      [adamw({ betas: [NaN, 0.9] }), "ArgumentError", ["betas", "NaN"]],
      [adamw({ betas: ["0.9", 0.9] }), "ArgumentError", ["betas", '"0.9"']],
      [adamw({ betas: [undefined, 0.9] }), "ArgumentError", ["betas"]],
      [adamw({ eps: -1e-8 }), "ArgumentError", ["eps"]],
      [adamw({ eps: NaN }), "ArgumentError", ["eps", "NaN"]],
      [adamw({ eps: Infinity }), "ArgumentError", ["eps", "finite"]],
      [adamw({ lr: -1 }), "ArgumentError", ["lr", "-1"]],
      [adamw({ lr: Infinity }), "ArgumentError", ["lr", "finite"]],
      [adamw({ lr: "0.1" }), "ArgumentError", ["lr", '"0.1"']],
      [adamw({ weightDecay: -1 }), "ArgumentError", ["weightDecay", "-1"]],
      [() => wgrad.init({ device: "gpu" }), "ArgumentError", ['"gpu"', '"webgpu"', '"cpu"']],
      [() => wgrad.init({ device: null }), "ArgumentError", ["device", "null"]],
      [() => wgrad.init({ powerPreference: "most" }), "ArgumentError", ['"most"', '"low-power"']],
      [() => wgrad.init({ timeoutMs: 0 }), "ArgumentError", ["timeoutMs", "0"]],
      [() => wgrad.init({ timeoutMs: -5 }), "ArgumentError", ["timeoutMs", "-5"]],
      [() => wgrad.init({ timeoutMs: NaN }), "ArgumentError", ["timeoutMs", "NaN"]],
      [() => wgrad.init({ timeoutMs: "10" }), "ArgumentError", ["timeoutMs", '"10"']],
      [() => wgrad.init({ gpuDevice: {} }), "ArgumentError", ["gpuDevice", "GPUDevice"]],
      [() => wgrad.init({ gpuDevice: null }), "ArgumentError", ["gpuDevice", "null"]],
      [() => wgrad.init({ gpuDevice: 5 }), "ArgumentError", ["gpuDevice", "5"]],
      [() => wgrad.init({ device: "cpu", gpuDevice: { queue: 1 } }), "ArgumentError", ["gpuDevice", "cpu"]],
      [() => wgrad.init({ device: "cpu", wasm: 5 }), "ArgumentError", ["wasm", "5"]],
      [() => engine.manualSeed(-1), "ArgumentError", ["manualSeed", "-1"]],
      [() => engine.manualSeed(1.5), "ArgumentError", ["1.5"]],
      [() => engine.manualSeed(2 ** 53), "ArgumentError", ["2^53"]],
      [() => engine.manualSeed("1"), "ArgumentError", ['"1"']],
    ]);
    x.dispose();
    target.dispose();
  },

  "a learning rate that is none changes nothing": async (context) => {
    const { engine } = context;
    const x = engine.ones([2], { requiresGrad: true });
    const optimizer = engine.optim.adamw([x], { lr: 0.5 });
    const rows = [NaN, -1, Infinity, "1", null, undefined].map((lr) => [
      () => (optimizer.lr = lr),
      "ArgumentError",
      ["lr", String(lr).slice(0, 3)],
    ]);
    await allFail(context, rows);
    equal(optimizer.lr, 0.5, "lr after what it did not take");
    optimizer.lr = 0.25;
    equal(optimizer.lr, 0.25, "lr");
    optimizer.dispose();
    x.dispose();
  },
};

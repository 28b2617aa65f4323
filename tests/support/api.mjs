// Bodies of tests/api.test.mjs: the calls as users make them, wrong ones too.
import { equal, fails, near, ok, show, works } from "./expect.mjs";

/**
 * Each row is `[call, code, words]`, and `call` must fail with that error and those words in its message. After each,
 * the engine still computes. All rows are tried; what was wrong is told at the end.
 */
async function allFail({ wgrad, engine }, rows) {
  const wrong = [];
  for (const [call, code, words] of rows) {
    try {
      await fails(wgrad, call, code, words);
      await works(engine, `after ${call}`);
    } catch (error) {
      wrong.push(error.message);
    }
  }
  ok(wrong.length === 0, wrong.join("\n"));
}

const bits = (values) => Array.from(new Uint32Array(values.buffer, values.byteOffset, values.length));

/** Calls with every kind of size that is none. */
function sizeRows(call) {
  const rows = [-1, 1.5, NaN, Infinity, "2", null, undefined, true, {}, [1], 2n].map((size) => [
    () => call([2, size]),
    "ShapeError",
    [typeof size === "object" ? "size" : show(size), "whole numbers"],
  ]);
  const shapes = [2, "2", {}, null, () => 2];
  return [...rows, ...shapes.map((shape) => [() => call(shape), "ShapeError", ["array of sizes"]])];
}

const notTensors = [null, {}, "x", [1], true, 3n, () => 1, new Float32Array(2)];

export const bodies = {
  "sizes that are none are ShapeErrors": async (context) => {
    const { engine } = context;
    for (const op of ["zeros", "ones", "rand", "randn"]) {
      await allFail(
        context,
        sizeRows((shape) => engine[op](shape)),
      );
    }
    await allFail(
      context,
      sizeRows((shape) => engine.full(shape, 1)),
    );
    await allFail(
      context,
      sizeRows((shape) => engine.tensor([1, 2], { shape: shape ?? null })),
    );
    const x = engine.ones([2, 3]);
    await allFail(context, [
      [() => x.reshape([2, 2]), "ShapeError", ["reshape", "[2, 3]", "[2, 2]"]],
      [() => x.reshape([-1, -1]), "ShapeError", ["reshape", "-1"]],
      [() => x.reshape([-1, 4]), "ShapeError", ["reshape", "[2, 3]"]],
      [() => x.reshape([-2, 3]), "ShapeError", ["reshape", "-2"]],
      [() => x.reshape(6), "ShapeError", ["reshape", "array of sizes"]],
      [() => x.reshape([2, 1.5, 2]), "ShapeError", ["1.5"]],
      [() => x.reshape([NaN]), "ShapeError", ["NaN"]],
      [() => x.reshape(["6"]), "ShapeError", ['"6"']],
      [() => x.expand([2, 4]), "ShapeError", ["expand", "[2, 3]", "[2, 4]"]],
      [() => x.expand([3]), "ShapeError", ["expand", "[2, 3]"]],
      [() => x.expand([-1, 2, 3]), "ShapeError", ["expand", "-1"]],
      [() => x.layerNorm(null, null, { normalizedShape: [2] }), "ShapeError", ["layerNorm", "[2, 3]"]],
      [() => x.layerNorm(null, null, { normalizedShape: [] }), "ShapeError", ["layerNorm"]],
      [() => x.layerNorm(null, null, { normalizedShape: 3 }), "ShapeError", ["layerNorm"]],
    ]);
    x.dispose();
  },

  "a shape within itself, of thousands of sizes or of bytes is an error": async (context) => {
    const { wgrad, engine } = context;
    const cyclic = [2];
    cyclic.push(cyclic);
    const view = new DataView(new ArrayBuffer(8));
    await allFail(context, [
      [() => engine.zeros(cyclic), "ShapeError", ["zeros"]],
      [() => engine.zeros(view), "ShapeError", ["zeros"]],
      [() => engine.zeros(new Array(9).fill(1)), "LimitError", ["9", "8"]],
    ]);
    const many = new Array(100_000).fill(0.5);
    const error = await fails(wgrad, () => engine.zeros(many), "ShapeError", ["0.5"], "100,000 sizes");
    ok(error.message.length < 2000, `a message of ${error.message.length} characters says nothing`);
  },

  "nested arrays within themselves are an error, not an endless loop": {
    alone: true,
    async run({ wgrad, engine }) {
      const cyclic = [];
      cyclic.push(cyclic);
      await fails(wgrad, () => engine.tensor(cyclic), ["LimitError"], ["tensor"], "an array within itself");
    },
  },

  "sizes past the limits are LimitErrors": async (context) => {
    const { engine } = context;
    const x = engine.ones([1]);
    await allFail(context, [
      [() => engine.zeros([2 ** 31]), "LimitError", ["zeros", "2147483648"]],
      [() => engine.zeros([2 ** 32]), "LimitError", ["zeros", "4294967296"]],
      [() => engine.zeros([2 ** 53]), "LimitError", ["zeros", "9007199254740992"]],
      [() => engine.zeros([2 ** 31 - 1]), "LimitError", ["zeros"]],
      [() => engine.zeros([65536, 65536]), "LimitError", ["zeros", "[65536, 65536]"]],
      [() => engine.zeros([2 ** 31 - 1, 2 ** 31 - 1, 4]), "LimitError", ["zeros"]],
      [() => engine.zeros([65537, 65537, 65537, 0]), "LimitError", ["zeros"]],
      [() => engine.ones([2 ** 30]), "LimitError", ["ones"]],
      [() => engine.full([2 ** 30], 3), "LimitError", ["full"]],
      [() => engine.tensor([1], { shape: [2 ** 31] }), "LimitError", ["tensor", "2147483648"]],
      [() => x.expand([2 ** 31]), "LimitError", ["expand", "2147483648"]],
      [() => x.expand([65536, 65536]), "LimitError", ["expand"]],
      [() => x.reshape([2 ** 31]), ["LimitError", "ShapeError"], ["reshape", "2147483648"]],
      [() => x.expand([2 ** 31 - 1]).add(1), "LimitError", ["add"]],
      [() => x.expand([2 ** 31 - 1]).contiguous(), "LimitError", ["contiguous"]],
      [() => x.expand([2 ** 31 - 1]).data(), "LimitError", ["data"]],
      [() => engine.zeros([1, 1, 1, 1, 1, 1, 1, 1]).unsqueeze(0), "LimitError", ["8"]],
    ]);
    x.dispose();
  },

  "integers past the memory are a LimitError, not a trap": {
    alone: true,
    async run({ wgrad, engine }) {
      for (const dtype of ["i32", "u32", "bool"]) {
        await fails(wgrad, () => engine.zeros([2 ** 30], { dtype }), "LimitError", [], `zeros of ${dtype}`);
        await works(engine, `after zeros of ${dtype}`);
      }
    },
  },

  "random numbers past the memory are a LimitError, not a trap": {
    alone: true,
    async run({ wgrad, engine }) {
      for (const op of ["rand", "randn"]) {
        await fails(wgrad, () => engine[op]([2 ** 30]), "LimitError", [op], op);
        await works(engine, `after ${op}`);
        equal((await engine[op]([3]).data()).length, 3, `${op} afterwards`);
      }
    },
  },

  "shapes that do not fit are ShapeErrors": async (context) => {
    const { engine } = context;
    const [a, b, w] = [engine.ones([2, 3]), engine.ones([2, 4]), engine.ones([5, 3])];
    const wrongTarget = engine.tensor(Int32Array.of(0, 1, 2));
    const rows = ["add", "sub", "mul", "div", "siluMul", "geluMul", "reluMul", "sigmoidMul"].map((op) => [
      () => a[op](b),
      "ShapeError",
      [op, "[2, 3]", "[2, 4]", "broadcast"],
    ]);
    await allFail(context, [
      ...rows,
      [() => a.matmul(b), "ShapeError", ["matmul", "[2, 3]", "[2, 4]"]],
      [() => a.matmul(engine.ones([])), "ShapeError", ["matmul", "scalar"]],
      [() => b.linear(w), "ShapeError", ["linear", "[2, 4]", "[5, 3]"]],
      [() => a.linear(w, engine.ones([3])), "ShapeError", ["linear", "[3]", "[5]"]],
      [() => a.linear(engine.ones([3])), "ShapeError", ["linear", "[3]"]],
      [() => a.swiglu(), "ShapeError", ["swiglu", "[2, 3]", "even"]],
      [() => a.geglu(), "ShapeError", ["geglu", "even"]],
      [() => a.reglu(), "ShapeError", ["reglu", "even"]],
      [() => a.glu(), "ShapeError", ["glu", "even"]],
      [() => engine.ones([]).swiglu(), "ShapeError", ["swiglu"]],
      [() => a.layerNorm(engine.ones([4])), "ShapeError", ["layerNorm", "weight", "[4]", "[3]"]],
      [() => a.layerNorm(null, engine.ones([2, 3])), "ShapeError", ["layerNorm", "bias", "[2, 3]", "[3]"]],
      [() => engine.ones([]).layerNorm(), "ShapeError", ["layerNorm"]],
      [() => a.crossEntropy(wrongTarget), "ShapeError", ["crossEntropy", "[2, 3]", "[3]"]],
      [() => a.sum({ dim: [0, 0] }), "ShapeError", ["sum", "twice"]],
      [() => a.sum({ dim: [1, -1] }), "ShapeError", ["sum", "twice"]],
      [() => a.permute([0]), "ShapeError", ["permute", "[2, 3]"]],
      [() => a.permute([0, 0]), "ShapeError", ["permute", "once"]],
      [
        () => engine.tensor([1, 2, 3], { shape: [2, 2] }),
        "ShapeError",
        ["tensor", "3 values", "[2, 2]", "4"],
      ],
      [() => engine.tensor(new Float32Array(5), { shape: [2, 3] }), "ShapeError", ["5 values", "6 elements"]],
      [() => engine.tensor(new Float32Array(5), { shape: [] }), "ShapeError", ["5 values"]],
      [() => engine.tensor(1, { shape: [2] }), "ShapeError", ["1 values"]],
      [() => engine.tensor([[1, 2], [3]]), "ShapeError", ["ragged", "2"]], // prettier-ignore
      [() => engine.tensor([[1, 2], 3]), "ShapeError", ["ragged"]],
      [() => engine.tensor([1, [2, 3]]), "ShapeError", ["depth"]],
      [() => engine.tensor([[[1]], [[2, 3]]]), "ShapeError", ["ragged"]],
      [() => engine.tensor([[], [1]]), "ShapeError", ["ragged"]],
      [() => engine.tensor([1, "2"]), "ShapeError", ['"2"']],
      [() => engine.tensor([1, null]), "ShapeError", ["null"]],
      [() => engine.tensor([1, , 3]), "ShapeError", ["undefined"]], // eslint-disable-line no-sparse-arrays
      [() => engine.tensor([new Float32Array(2)]), "ShapeError", ["Float32Array"]],
    ]);
    for (const tensor of [a, b, w, wrongTarget]) tensor.dispose();
  },

  "element types that do not fit are DTypeErrors": async (context) => {
    const { engine } = context;
    const [f32, f16] = [engine.ones([2, 2]), engine.ones([2, 2], { dtype: "f16" })];
    const i32 = engine.ones([2, 2], { dtype: "i32" });
    const target = engine.tensor(Int32Array.of(0, 1));
    const rows = ["add", "mul", "siluMul", "geluMul", "matmul"].flatMap((op) => [
      [() => f32[op](f16), "DTypeError", [op, "f32", "f16"]],
      [() => i32[op](i32), "DTypeError", [op, "i32"]],
    ]);
    await allFail(context, [
      ...rows,
      [() => i32.swiglu(), "DTypeError", ["swiglu", "i32"]],
      [() => i32.layerNorm(), "DTypeError", ["layerNorm", "i32"]],
      [() => i32.sum(), "DTypeError", ["sum", "i32"]],
      [() => i32.mean(), "DTypeError", ["mean", "i32"]],
      [() => f32.layerNorm(engine.ones([2], { dtype: "f16" })), "DTypeError", ["layerNorm", "f16"]],
      [() => f32.linear(f32, engine.ones([2], { dtype: "f16" })), "DTypeError", ["f32", "f16"]],
      [() => f32.crossEntropy(engine.tensor([0, 1])), "DTypeError", ["crossEntropy", "i32", "f32"]],
      [() => f32.crossEntropy(engine.tensor(Uint32Array.of(0, 1))), "DTypeError", ["crossEntropy", "u32"]],
      [() => i32.crossEntropy(target), "DTypeError", ["crossEntropy", "i32"]],
      [() => engine.zeros([2], { dtype: "f64" }), "DTypeError", ["zeros", '"f64"', '"f32"']],
      [() => engine.zeros([2], { dtype: "float32" }), "DTypeError", ['"float32"']],
      [() => engine.zeros([2], { dtype: 0 }), "DTypeError", ["0"]],
      [() => engine.zeros([2], { dtype: null }), "DTypeError", ["null"]],
      [() => engine.tensor([1], { dtype: "F32" }), "DTypeError", ['"F32"']],
      [() => engine.rand([2], { dtype: "i32" }), "DTypeError", ["rand", '"i32"', "f16"]],
      [() => engine.randn([2], { dtype: "bool" }), "DTypeError", ["randn", '"bool"']],
      [() => engine.zeros([2], { dtype: "i32", requiresGrad: true }), "DTypeError", ["i32", "f32"]],
      [() => (i32.requiresGrad = true), "DTypeError", ["i32"]],
    ]);
    for (const tensor of [f32, f16, i32, target]) tensor.dispose();
  },

  "dimensions and indices out of range are IndexErrors": async (context) => {
    const { engine } = context;
    const x = engine.ones([2, 3]);
    const wrong = [1.5, NaN, Infinity, "0", true, {}, 1n];
    const rows = wrong.flatMap((dim) => [
      [() => x.sum({ dim }), "IndexError", ["sum", "whole number"]],
      [() => x.transpose(dim, 0), "IndexError", ["transpose", "whole number"]],
      [() => x.unsqueeze(dim), "IndexError", ["unsqueeze", "whole number"]],
      [() => x.narrow(0, dim, 1), "IndexError", ["narrow", "whole number"]],
    ]);
    await allFail(context, [
      ...rows,
      [() => x.sum({ dim: 2 }), "IndexError", ["sum", "2", "-2 to 1"]],
      [() => x.sum({ dim: -3 }), "IndexError", ["sum", "-3", "-2 to 1"]],
      [() => x.sum({ dim: 2 ** 40 }), "IndexError", ["sum", "out of range"]],
      [() => x.mean({ dim: [0, 5] }), "IndexError", ["mean", "5"]],
      [() => x.transpose(0, 2), "IndexError", ["transpose", "2"]],
      [() => x.transpose(0), "IndexError", ["transpose", "undefined"]],
      [() => x.permute([0, 2]), "IndexError", ["permute", "2"]],
      [() => x.unsqueeze(4), "IndexError", ["unsqueeze", "4"]],
      [() => x.squeeze(2), "IndexError", ["squeeze", "2"]],
      [() => x.flatten(0, 2), "IndexError", ["flatten", "2"]],
      [() => x.flatten(1, 0), "ShapeError", ["flatten"]],
      [() => x.narrow(0, 1, 2), "IndexError", ["narrow", "size 2"]],
      [() => x.narrow(0, -3, 1), "IndexError", ["narrow", "size 2"]],
      [() => x.narrow(1, 0, 2 ** 40), "IndexError", ["narrow"]],
      [() => x.narrow(0, 0, -1), "ArgumentError", ["narrow", "-1"]],
      [() => x.slice({ step: 0 }), "ArgumentError", ["slice", "step"]],
      [() => x.slice({ step: -1 }), "ArgumentError", ["slice", "step"]],
      [() => x.slice({ dim: 2 }), "IndexError", ["slice", "2"]],
      [() => x.slice({ start: 0.5 }), "IndexError", ["slice", "0.5"]],
      [() => engine.ones([]).slice({ start: 0 }), "IndexError", ["slice", "scalar"]],
      [() => engine.ones([]).narrow(0, 0, 1), "IndexError", ["narrow", "scalar"]],
    ]);
    x.dispose();
  },

  "arguments that are not there are errors of the package": async (context) => {
    const { engine } = context;
    const x = engine.ones([2, 3]);
    const any = ["ArgumentError", "ShapeError", "IndexError"];
    await allFail(context, [
      [() => x.permute(), any, ["permute"]],
      [() => x.permute(null), any, ["permute"]],
      [() => x.permute(1), any, ["permute"]],
      [() => x.slice(), any, ["slice"]],
      [() => x.slice(null), any, ["slice"]],
      [() => x.narrow(), any, ["narrow"]],
      [() => x.transpose(), any, ["transpose"]],
      [() => x.reshape(), any, ["reshape"]],
      [() => x.expand(), any, ["expand"]],
      [() => x.add(), "ArgumentError", ["add", "undefined"]],
      [() => x.matmul(), "ArgumentError", ["matmul", "undefined"]],
      [() => x.linear(), "ArgumentError", ["linear", "weight"]],
      [() => x.crossEntropy(), "ArgumentError", ["crossEntropy", "target"]],
      [() => engine.tensor(), "ArgumentError", ["tensor", "undefined"]],
      [() => engine.zeros(), "ShapeError", ["zeros"]],
      [() => engine.full([2]), "ArgumentError", ["full", "undefined"]],
      [() => engine.manualSeed(), "ArgumentError", ["manualSeed", "undefined"]],
      [() => engine.tidy(), "ArgumentError", ["tidy"]],
      [() => engine.tidy(5), "ArgumentError", ["tidy"]],
      [() => engine.noGrad(), "ArgumentError", ["noGrad"]],
      [() => engine.noGrad({}), "ArgumentError", ["noGrad"]],
      [() => engine.optim.adamw(), "ArgumentError", ["adamw"]],
    ]);
    x.dispose();
  },

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

  "what is no tensor is an ArgumentError": async (context) => {
    const { engine } = context;
    const x = engine.ones([2, 2], { requiresGrad: true });
    const target = engine.tensor(Int32Array.of(0, 1));
    const required = {
      add: (t) => x.add(t),
      siluMul: (t) => x.siluMul(t),
      geluMul: (t) => x.geluMul(t),
      matmul: (t) => x.matmul(t),
      linear: (t) => x.linear(t),
      crossEntropy: (t) => x.crossEntropy(t),
      adamw: (t) => engine.optim.adamw([x, t]),
      siluMulBackward: (t) => engine.kernels.siluMulBackward(t, x, x),
      reluMulBackward: (t) => engine.kernels.reluMulBackward(x, x, t),
      layerNormForward: (t) => engine.kernels.layerNormForward(t),
      layerNormBackward: (t) => engine.kernels.layerNormBackward(x, x, x, t),
    };
    const optional = {
      linear: (t) => x.linear(x, t),
      layerNorm: (t) => x.layerNorm(t),
      backward: (t) => x.sum().backward(t),
      grad: (t) => (x.grad = t),
      layerNormForward: (t) => engine.kernels.layerNormForward(x, null, t),
    };
    for (const value of notTensors) {
      const rows = Object.entries(required).map(([op, call]) => [
        () => call(value),
        "ArgumentError",
        [op, "tensor"],
      ]);
      const more = value === null ? [] : Object.entries(optional).map(([op, call]) => [
        () => call(value),
        "ArgumentError",
        [op, "tensor"],
      ]); // prettier-ignore
      await allFail(context, [...rows, ...more]);
    }
    // Numbers stand for scalars only where a scalar makes sense.
    await allFail(context, [
      [() => x.matmul(2), "ArgumentError", ["matmul", "2"]],
      [() => x.linear(2), "ArgumentError", ["linear", "2"]],
      [() => x.layerNorm(1), "ArgumentError", ["layerNorm", "1"]],
      [() => x.crossEntropy(1), "ArgumentError", ["crossEntropy", "1"]],
      [() => x.sum().backward(1), "ArgumentError", ["backward", "1"]],
      [() => engine.optim.adamw(x), "ArgumentError", ["adamw", "array of tensors"]],
      [() => engine.optim.adamw(null), "ArgumentError", ["adamw", "null"]],
      [() => engine.tensor("1"), "ArgumentError", ["tensor", '"1"']],
      [() => engine.tensor(null), "ArgumentError", ["tensor", "null"]],
      [() => engine.tensor({}), "ArgumentError", ["tensor", "Object"]],
      [() => engine.tensor(x), "ArgumentError", ["tensor", "Tensor"]],
      [() => engine.tensor(5n), "ArgumentError", ["tensor", "5n"]],
      [() => engine.tensor(() => 1), "ArgumentError", ["tensor", "function"]],
      [() => engine.tensor(Symbol("s")), "ArgumentError", ["tensor", "symbol"]],
      [() => engine.tensor(new ArrayBuffer(8)), "ArgumentError", ["tensor", "ArrayBuffer"]],
      [() => engine.tensor(new DataView(new ArrayBuffer(8))), "ArgumentError", ["tensor", "DataView"]],
      [() => engine.tensor(new Set([1])), "ArgumentError", ["tensor", "Set"]],
      [() => engine.tensor(Object.create(null)), "ArgumentError", ["tensor", "object"]],
    ]);
    x.dispose();
    target.dispose();
  },

  "tensors of another engine are an ArgumentError": async (context) => {
    const { wgrad, engine } = context;
    const other = await wgrad.init({ device: "cpu" });
    const [x, y] = [engine.ones([2, 2], { requiresGrad: true }), other.ones([2, 2], { requiresGrad: true })];
    const labels = other.tensor(Int32Array.of(0, 1));
    const words = ["different engines"];
    await allFail(context, [
      [() => x.add(y), "ArgumentError", words],
      [() => x.mul(y), "ArgumentError", words],
      [() => y.siluMul(x), "ArgumentError", words],
      [() => x.matmul(y), "ArgumentError", words],
      [() => x.linear(y), "ArgumentError", words],
      [() => x.linear(x, other.ones([2])), "ArgumentError", words],
      [() => x.layerNorm(other.ones([2])), "ArgumentError", words],
      [() => x.layerNorm(null, other.ones([2])), "ArgumentError", words],
      [() => x.crossEntropy(labels), "ArgumentError", words],
      [() => x.mul(1).backward(y), "ArgumentError", words],
      [() => engine.optim.adamw([x, y]), "ArgumentError", words],
      [() => engine.kernels.siluMulBackward(x, x, y), "ArgumentError", words],
      [() => engine.kernels.layerNormForward(x, other.ones([2])), "ArgumentError", words],
      // All from one engine, but not from this one.
      [() => engine.kernels.siluMulBackward(y, y, y), "ArgumentError", ["siluMulBackward", "engine"]],
      [() => engine.kernels.layerNormForward(y), "ArgumentError", ["layerNormForward", "engine"]],
      [() => engine.optim.adamw([y]), "ArgumentError", ["adamw", "engine"]],
    ]);
    other.dispose();
    x.dispose();
  },

  "a gradient that is assigned must fit": {
    alone: true,
    async run(context) {
      const { wgrad, engine } = context;
      const other = await wgrad.init({ device: "cpu" });
      const x = engine.tensor([1, 2, 3], { requiresGrad: true });
      await allFail(context, [
        [() => (x.grad = engine.tensor([1])), "ShapeError", ["grad", "[1]", "[3]"]],
        [() => (x.grad = engine.ones([1, 3])), "ShapeError", ["grad", "[1, 3]", "[3]"]],
        [() => (x.grad = engine.ones([3], { dtype: "i32" })), "DTypeError", ["grad", "i32", "f32"]],
        [() => (x.grad = other.ones([3])), "ArgumentError", ["grad", "engine"]],
        [() => (engine.ones([3]).grad = engine.ones([3])), "GradError", ["grad"]],
      ]);
      x.grad = engine.tensor([1, 2, 4]);
      equal(await x.grad.data(), [1, 2, 4], "a gradient that fits");
      const optimizer = engine.optim.adamw([x], { lr: 1, weightDecay: 0 });
      optimizer.step();
      near(await x.data(), [0, 1, 2], { absolute: 1e-5 }, "a step with it");
      x.grad = null;
      equal(x.grad, null, "no gradient");
      optimizer.step();
      near(await x.data(), [0, 1, 2], { absolute: 1e-5 }, "a step without one");
    },
  },

  "dispose: twice is once, and nothing works after it": async (context) => {
    // An engine of its own, since tensors are counted: garbage of other tests may be collected meanwhile.
    const engine = await context.wgrad.init({ device: context.device });
    const before = engine.memory().tensors;
    const x = engine.ones([2, 2], { requiresGrad: true });
    const y = engine.ones([2, 2]);
    x.dispose();
    const z = engine.full([2], 7);
    x.dispose();
    x[Symbol.dispose]?.();
    equal(await z.data(), [7, 7], "a tensor made in between");
    equal(engine.memory().tensors, before + 2, "tensors");
    const disposed = ["disposed"];
    await allFail({ ...context, engine }, [
      [() => x.data(), "DisposedError", disposed],
      [() => x.array(), "DisposedError", disposed],
      [() => x.item(), "DisposedError", disposed],
      [() => x.shape, "DisposedError", disposed],
      [() => x.dtype, "DisposedError", disposed],
      [() => x.requiresGrad, "DisposedError", disposed],
      [() => x.grad, "DisposedError", disposed],
      [() => (x.grad = null), "DisposedError", disposed],
      [() => x.add(1), "DisposedError", ["add"]],
      [() => x.add(y), "DisposedError", ["add"]],
      [() => y.add(x), "DisposedError", ["add"]],
      [() => y.siluMul(x), "DisposedError", ["siluMul"]],
      [() => y.matmul(x), "DisposedError", ["matmul"]],
      [() => y.linear(y, x), "DisposedError", ["linear"]],
      [() => y.layerNorm(x), "DisposedError", ["layerNorm"]],
      [() => x.backward(), "DisposedError", ["backward"]],
      [() => x.detach(), "DisposedError", ["detach"]],
      [() => x.reshape([4]), "DisposedError", ["reshape"]],
      [() => engine.optim.adamw([x]), "DisposedError", ["adamw"]],
      [() => engine.kernels.siluMulBackward(y, y, x), "DisposedError", ["siluMulBackward"]],
    ]);
    equal(String(x), "Tensor(disposed)", "toString");
    y.dispose();
    z.dispose();
    equal(engine.memory().tensors, before, "tensors at the end");
  },

  "an engine that was disposed gives DisposedErrors; another one works on": async (context) => {
    const { wgrad, device } = context;
    const engine = await wgrad.init({ device });
    const x = engine.ones([2, 2], { requiresGrad: true });
    const y = x.mul(2);
    const optimizer = engine.optim.adamw([x]);
    y.sum().backward(null, { retainGraph: true });
    engine.dispose();
    engine.dispose();
    engine[Symbol.dispose]?.();
    const disposed = ["disposed"];
    await allFail(context, [
      [() => engine.zeros([2]), "DisposedError", disposed],
      [() => engine.tensor([2]), "DisposedError", disposed],
      [() => engine.rand([2]), "DisposedError", disposed],
      [() => engine.memory(), "DisposedError", disposed],
      [() => engine.sync(), "DisposedError", disposed],
      [() => engine.manualSeed(1), "DisposedError", disposed],
      [() => engine.noGrad(() => 1), "DisposedError", disposed],
      [() => engine.gpuDevice, "DisposedError", disposed],
      [() => x.data(), "DisposedError", disposed],
      [() => x.add(1), "DisposedError", disposed],
      [() => x.add(x), "DisposedError", disposed],
      [() => y.sum().backward(), "DisposedError", disposed],
      [() => optimizer.step(), "DisposedError", disposed],
    ]);
    for (const thing of [x, y, optimizer]) thing.dispose();
  },

  "an optimizer that was disposed gives DisposedErrors, its parameters stay": async ({ wgrad, engine }) => {
    const x = engine.ones([2], { requiresGrad: true });
    const optimizer = engine.optim.adamw([x]);
    optimizer.dispose();
    optimizer.dispose();
    for (const call of ["step", "zeroGrad"]) {
      await fails(wgrad, () => optimizer[call](), "DisposedError", ["optimizer"], call);
    }
    await fails(wgrad, () => (optimizer.lr = 1), "DisposedError", ["optimizer"], "lr");
    equal(await x.data(), [1, 1], "the parameter");
    x.dispose();
  },

  "a read of a tensor that is disposed right after gives its elements": async ({ engine }) => {
    const a = engine.tensor([1, 2, 3]);
    const reading = a.data();
    a.dispose();
    // This one takes its place.
    const b = engine.tensor([7, 8, 9]);
    equal(await reading, [1, 2, 3], "with another tensor in its place");
    b.dispose();
  },

  "a read of a tensor that is disposed right after gives its elements, nested too": async ({ engine }) => {
    const a = engine.tensor([4, 5]);
    const readings = [a.data(), a.array()];
    a.dispose();
    equal(await readings[0], [4, 5], "data");
    equal(await readings[1], [4, 5], "array");
    const b = engine.tensor(6);
    const reading = b.item();
    b.dispose();
    equal(await reading, 6, "item");
  },

  "a read inside a tidy gives the elements after it": async ({ engine }) => {
    let reading;
    engine.tidy(() => {
      reading = engine.tensor([1, 2]).mul(3).data();
    });
    equal(await reading, [3, 6], "elements");
  },

  "a read gives what was there when it was asked for, whatever is changed in place after": async ({
    engine,
  }) => {
    const x = engine.tensor([1, 2, 3], { requiresGrad: true });
    const optimizer = engine.optim.adamw([x], { lr: 1, weightDecay: 0 });
    x.sum().backward();
    const before = x.data();
    optimizer.step();
    equal(await before, [1, 2, 3], "a parameter that is stepped right after");
    near(await x.data(), [0, 1, 2], { absolute: 1e-5 }, "and later");
    x.dispose();
    optimizer.dispose();
  },

  "a read that waits when the engine is disposed ends": async ({ wgrad, device }) => {
    const engine = await wgrad.init({ device });
    const x = engine.ones([1000]).add(1);
    const reading = x.data();
    const syncing = engine.sync();
    engine.dispose();
    const outcome = async (promise) => promise.then(() => "fine", (error) => error); // prettier-ignore
    for (const result of [await outcome(reading), await outcome(syncing)]) {
      ok(result === "fine" || result instanceof wgrad.DisposedError, `it ended with ${result}`);
    }
    x.dispose();
  },

  "tidy frees what it should and keeps what it should": async ({ wgrad, device }) => {
    const engine = await wgrad.init({ device });
    const before = engine.memory().tensors;
    const x = engine.tensor([1, 2], { requiresGrad: true });
    let lost;
    const kept = engine.tidy(() => {
      lost = x.mul(2);
      const [a, b, c, d] = [1, 2, 3, 4].map((k) => lost.add(k));
      return { list: [a, [b]], deep: { more: { c } }, number: 5, text: "t", nothing: null, d };
    });
    await fails(wgrad, () => lost.data(), "DisposedError", ["tidy"], "a tensor made in a tidy");
    equal(await kept.list[0].data(), [3, 5], "in an array");
    equal(await kept.list[1][0].data(), [4, 6], "in an array in an array");
    equal(await kept.deep.more.c.data(), [5, 7], "in objects");
    equal(await kept.d.data(), [6, 8], "in the object");
    equal(kept.number, 5, "what is no tensor");
    equal(engine.memory().tensors, before + 5, "tensors afterwards");
    equal(engine.tidy(() => 7), 7, "a number"); // prettier-ignore
    equal(engine.tidy(() => undefined), undefined, "nothing"); // prettier-ignore
    ok(engine.tidy(() => x) === x, "a tensor from outside comes back as itself");
    equal(await x.data(), [1, 2], "and is not freed");

    // One that refers to itself.
    const loop = { y: null, self: null };
    engine.tidy(() => {
      loop.y = x.add(1);
      loop.self = loop;
      return loop;
    });
    equal(await loop.y.data(), [2, 3], "a result that refers to itself");

    // Nested: what the inner one gives back belongs to the outer one.
    let inner;
    const outer = engine.tidy(() => {
      inner = engine.tidy(() => [x.add(10), x.add(20)]);
      return inner[1].add(1);
    });
    equal(await outer.data(), [22, 23], "the outer result");
    await fails(wgrad, () => inner[0].data(), "DisposedError", [], "the inner results");

    // A function that throws, at depth.
    const thrown = new Error("on purpose");
    let seen;
    let made;
    try {
      engine.tidy(() =>
        engine.tidy(() => {
          made = x.add(1);
          throw thrown;
        }),
      );
    } catch (error) {
      seen = error;
    }
    ok(seen === thrown, "the function's own error comes through");
    await fails(wgrad, () => made.data(), "DisposedError", [], "made before the throw");
    const after = x.add(1);
    equal(await after.data(), [2, 3], "outside of any tidy again");

    // Disposing inside, by hand.
    engine.tidy(() => {
      const y = x.add(1);
      y.dispose();
    });
    for (const t of [x, kept.list[0], kept.list[1][0], kept.deep.more.c, kept.d, loop.y, outer, after]) {
      t.dispose();
    }
    equal(engine.memory().tensors, before, "tensors at the end");
  },

  "gradients of tensors that outlive a tidy survive it": async ({ wgrad, device }) => {
    const engine = await wgrad.init({ device });
    const before = engine.memory().tensors;
    const x = engine.tensor([1, -2, 3], { requiresGrad: true });
    for (let k = 0; k < 2; k++) {
      engine.tidy(() => {
        const y = x.mul(x);
        y.sum().backward();
        equal(y.shape, [3], "inside");
        // A handle of the gradient that the tidy frees.
        equal(x.grad.shape, [3], "a gradient looked at inside");
      });
    }
    const gradient = x.grad;
    equal(await gradient.data(), [4, -8, 12], "two backwards added up");
    gradient.dispose();
    // A graph that outlives its tidy.
    const y = engine.tidy(() => x.mul(3).mul(x));
    x.grad = null;
    y.sum().backward();
    equal(await x.grad.data(), [6, -12, 18], "a graph kept by its result");
    x.dispose();
    y.dispose();
    ok(engine.memory().tensors <= before + 2, "tensors");
  },

  "tidy and noGrad refuse async functions and stay in order": async ({ wgrad, device }) => {
    const engine = await wgrad.init({ device });
    const x = engine.tensor([1, 2], { requiresGrad: true });
    const before = engine.memory().tensors;
    let release;
    const gate = new Promise((resolve) => {
      release = resolve;
    });
    let late;
    for (const op of ["tidy", "noGrad"]) {
      const words = [op, "async"];
      await fails(wgrad, () => engine[op](async () => x.add(1).dispose()), "ArgumentError", words, op);
      await fails(
        wgrad,
        () =>
          engine[op](async () => {
            await gate;
            late = x.mul(2);
          }),
        "ArgumentError",
        words,
        `${op}, with an await`,
      );
      // The rejection of such a function has nobody else to go to.
      await fails(wgrad, () => engine[op](async () => { throw new Error("inside"); }), "ArgumentError", words); // prettier-ignore
      await fails(
        wgrad,
        () => engine[op](() => ({ then() {} })),
        "ArgumentError",
        words,
        `${op}, a thenable`,
      );
    }
    release();
    await gate;
    await new Promise((resolve) => setTimeout(resolve));
    ok(late.requiresGrad, "what runs after noGrad is recorded");
    equal(await late.data(), [2, 4], "what runs after tidy lives");
    late.dispose();

    const quiet = engine.noGrad(() => x.mul(2));
    equal(quiet.requiresGrad, false, "noGrad");
    quiet.dispose();
    const nested = engine.noGrad(() => {
      const one = engine.noGrad(() => x.mul(2));
      const two = x.mul(2);
      return [one, two].map((t) => [t, t.requiresGrad]);
    });
    equal(nested.map(([, requires]) => requires), [false, false], "nested noGrad"); // prettier-ignore
    for (const [t] of nested) t.dispose();
    const thrown = new Error("on purpose");
    try {
      engine.noGrad(() => engine.noGrad(() => { throw thrown; })); // prettier-ignore
    } catch (error) {
      ok(error === thrown, "the function's own error comes through");
    }
    const recorded = x.mul(2);
    equal(recorded.requiresGrad, true, "recording is on again");
    recorded.dispose();
    const inside = engine.noGrad(() => engine.ones([1], { requiresGrad: true }));
    equal(inside.requiresGrad, true, "a leaf made inside");
    inside.dispose();
    ok(engine.memory().tensors <= before + 1, "tensors");
    x.dispose();
  },

  "backward: what cannot be is a GradError, and what was there stays": async (context) => {
    const { wgrad, engine } = context;
    const x = engine.tensor([1, 2, 3], { requiresGrad: true });
    const plain = engine.tensor([1, 2, 3]);
    const y = x.mul(x);
    const other = await wgrad.init({ device: "cpu" });
    await allFail(context, [
      [() => plain.backward(), "GradError", ["backward", "requiresGrad"]],
      [() => plain.sum().backward(), "GradError", ["backward", "requiresGrad"]],
      [() => x.detach().sum().backward(), "GradError", ["backward"]],
      [() => engine.noGrad(() => x.sum()).backward(), "GradError", ["noGrad"]],
      [() => y.backward(), "GradError", ["[3]", "upstream"]],
      [() => y.backward(engine.ones([1])), "ShapeError", ["[1]", "[3]"]],
      [() => y.backward(engine.ones([3, 1])), "ShapeError", ["[3, 1]", "[3]"]],
      [() => y.backward(engine.ones([])), "ShapeError", ["[3]"]],
      [() => y.backward(engine.ones([3], { dtype: "f16" })), "DTypeError", ["f16", "f32"]],
      [() => y.backward(engine.ones([3], { dtype: "i32" })), "DTypeError", ["i32", "f32"]],
      [() => y.backward(other.ones([3])), "ArgumentError", ["engines"]],
      [() => (y.requiresGrad = false), "GradError", ["requiresGrad"]],
    ]);
    equal(x.grad, null, "no gradient after so many failures");
    const up = engine.tensor([1, 10, 100]);
    y.backward(up, { retainGraph: true });
    equal(await x.grad.data(), [2, 40, 600], "the first backward");
    y.backward(up);
    equal(await x.grad.data(), [4, 80, 1200], "the second adds to it");
    await fails(wgrad, () => y.backward(up), "GradError", ["retainGraph", "mul"], "the third");
    equal(await x.grad.data(), [4, 80, 1200], "and changes nothing");

    // Handles freed between forward and backward: the tape has what it needs.
    const w = engine.tensor([2, 2, 2], { requiresGrad: true });
    const middle = w.siluMul(x);
    const end = middle.sum();
    middle.dispose();
    plain.dispose();
    x.grad = null;
    end.backward();
    near(await x.grad.data(), [1.7615942, 1.7615942, 1.7615942], { relative: 1e-6 }, "after a dispose");
    // A leaf may send a gradient to itself.
    const leaf = engine.tensor([5], { requiresGrad: true });
    leaf.backward();
    equal(await leaf.grad.data(), [1], "a leaf");
    other.dispose();
    for (const t of [x, y, up, w, end, leaf]) t.dispose();
  },

  "a step between forward and backward is a GradError, not a wrong gradient": async ({ wgrad, engine }) => {
    const x = engine.tensor([[1, 2], [3, 4]]); // prettier-ignore
    const w = engine.tensor([[1, 0], [0.5, 1]], { requiresGrad: true }); // prettier-ignore
    const optimizer = engine.optim.adamw([w], { lr: 0.1 });
    x.requiresGrad = true;
    x.matmul(w).sum().backward();
    for (const [name, use] of [
      ["matmul", () => x.matmul(w)],
      ["linear", () => x.linear(w)],
      ["mul", () => x.mul(w)],
      ["siluMul", () => w.siluMul(x)],
      ["a view", () => x.matmul(w.transpose(0, 1))],
    ]) {
      const loss = use().sum();
      const before = await w.grad.data();
      optimizer.step();
      await fails(wgrad, () => loss.backward(), "GradError", ["in place"], name);
      equal(await w.grad.data(), before, `the gradient after a failed backward of ${name}`);
    }
    // Adding does not need the old values.
    const sum = x.add(w).sum();
    optimizer.step();
    sum.backward();
    // The usual order goes on.
    optimizer.zeroGrad();
    equal(w.grad, null, "zeroGrad");
    x.matmul(w).sum().backward();
    near(await w.grad.data(), [4, 4, 6, 6], {}, "a step later");
    for (const thing of [x, w, optimizer]) thing.dispose();
  },

  "a parameter that is its own gradient can be stepped": async ({ engine }) => {
    const p = engine.tensor([1, 2, 3], { requiresGrad: true });
    p.backward(p);
    const optimizer = engine.optim.adamw([p], { lr: 1, weightDecay: 0 });
    optimizer.step();
    near(await p.data(), [0, 1, 2], { absolute: 1e-5 }, "the parameter");
    equal(await p.grad.data(), [1, 2, 3], "its gradient stays what it was");
    for (const thing of [p, optimizer]) thing.dispose();
  },

  "adamw takes leaves that require gradients, each once": async (context) => {
    const { wgrad, engine } = context;
    const x = engine.ones([2, 2], { requiresGrad: true });
    await allFail(context, [
      [() => engine.optim.adamw([engine.ones([2])]), "GradError", ["adamw", "parameter 0", "gradient"]],
      [() => engine.optim.adamw([x, engine.ones([2])]), "GradError", ["parameter 1"]],
      [() => engine.optim.adamw([x.mul(2)]), ["GradError", "ArgumentError"], ["adamw", "parameter 0"]],
      [() => engine.optim.adamw([x.transpose(0, 1)]), ["GradError", "ArgumentError"], ["adamw"]],
      [() => engine.optim.adamw([x, x]), "ArgumentError", ["adamw", "parameter 1"]],
      [() => engine.optim.adamw([]), "ArgumentError", ["adamw"]],
    ]);
    // A parameter whose handle is freed: the optimizer keeps what it needs.
    const optimizer = engine.optim.adamw([x]);
    x.dispose();
    optimizer.step();
    optimizer.zeroGrad();
    optimizer.dispose();
    ok(wgrad.Optimizer !== undefined, "the class is exported");
  },

  "a class out of range is an IndexError: at once on the CPU, with the next read on WebGPU": async ({
    wgrad,
    engine,
    device,
  }) => {
    const logits = engine.tensor([[1, 2, 3], [3, 2, 1]], { requiresGrad: true }); // prettier-ignore
    for (const wrong of [3, -1, -2, 1000, 2 ** 31 - 1, -(2 ** 31)]) {
      const target = engine.tensor(Int32Array.of(0, wrong));
      const words = ["crossEntropy", String(wrong), "row 1", "no class"];
      if (device === "cpu") {
        await fails(wgrad, () => logits.crossEntropy(target), "IndexError", words, `class ${wrong}`);
      } else {
        const loss = logits.crossEntropy(target);
        loss.backward();
        await fails(wgrad, () => loss.item(), "IndexError", words, `class ${wrong}`);
        await loss.item();
        logits.grad = null;
      }
      await works(engine, `after class ${wrong}`);
    }
    if (device === "webgpu") {
      // The next read may be of something else, or a sync.
      const unrelated = engine.ones([2]);
      const loss = logits.crossEntropy(engine.tensor(Int32Array.of(0, 7)));
      await fails(wgrad, () => unrelated.data(), "IndexError", ["7"], "another tensor");
      equal(await unrelated.data(), [1, 1], "the same one again");
      loss.dispose();
      logits.crossEntropy(engine.tensor(Int32Array.of(0, 8)));
      await fails(wgrad, () => engine.sync(), "IndexError", ["8"], "sync");
      await engine.sync();
    }
    const ignored = engine.tensor(Int32Array.of(-100, 2));
    near([await logits.crossEntropy(ignored).item()], [2.4076059644], { relative: 1e-6 }, "-100 is ignored");
    const other = logits.crossEntropy(engine.tensor(Int32Array.of(7, 2)), { ignoreIndex: 7 });
    near([await other.item()], [2.4076059644], { relative: 1e-6 }, "ignoreIndex 7");
    const none = engine.tensor(Int32Array.of(-100, -100));
    equal(await logits.crossEntropy(none).item(), NaN, "the mean of no row");
    equal(await logits.crossEntropy(none, { reduction: "sum" }).item(), 0, "the sum of no row");
  },

  "numbers stand for scalars, NaN and infinities too": async ({ engine }) => {
    const x = engine.tensor([0, 1, -2], { requiresGrad: true });
    const rows = [
      [x.add(NaN), [NaN, NaN, NaN]],
      [x.add(Infinity), [Infinity, Infinity, Infinity]],
      [x.mul(-Infinity), [NaN, -Infinity, Infinity]],
      [x.mul(-0), [-0, -0, 0]],
      [x.sub(1.5), [-1.5, -0.5, -3.5]],
      [x.div(0), [NaN, Infinity, -Infinity]],
      [x.div(-0), [NaN, -Infinity, Infinity]],
      [x.mul(1e300), [NaN, Infinity, -Infinity]],
      [x.mul(1e-300), [0, 0, -0]],
      [x.reluMul(NaN), [NaN, NaN, NaN]],
      [x.siluMul(Infinity), [NaN, Infinity, -Infinity]],
      [x.reluMul(-1), [-0, -1, -0]],
    ];
    for (const [k, [tensor, want]] of rows.entries()) equal(await tensor.data(), want, `row ${k}`);
    const half = engine.tensor([1, 3], { dtype: "f16" });
    const third = half.mul(0.1);
    equal(third.dtype, "f16", "the type of the tensor stays");
    equal(
      await third.data({ raw: true }),
      [0x2e66, 0x34cc],
      "0.1 is rounded to f16, and so is the product, a tie",
    );
    near(await x.geluMul(2, { approximate: "tanh" }).data(), [0, 1.6823839, -0.0908046], { absolute: 1e-6 });
    x.mul(3).sum().backward();
    equal(await x.grad.data(), [3, 3, 3], "the gradient");
  },

  "typed arrays of every kind": async ({ wgrad, engine }) => {
    const rows = [
      [Float32Array, "f32", Float32Array, [1.5, -2, 0]],
      [Float64Array, "f32", Float32Array, [1.5, -2, 1e30]],
      [Int8Array, "i32", Int32Array, [-128, 127, 0]],
      [Int16Array, "i32", Int32Array, [-32768, 32767, 0]],
      [Int32Array, "i32", Int32Array, [-(2 ** 31), 2 ** 31 - 1, 0]],
      [Uint8Array, "i32", Int32Array, [0, 255, 7]],
      [Uint8ClampedArray, "i32", Int32Array, [0, 255, 7]],
      [Uint16Array, "i32", Int32Array, [0, 65535, 7]],
      [Uint32Array, "u32", Uint32Array, [0, 2 ** 32 - 1, 2 ** 31]],
    ];
    for (const [Kind, dtype, Out, values] of rows) {
      const tensor = engine.tensor(Kind.from(values));
      equal(tensor.dtype, dtype, Kind.name);
      equal(tensor.shape, [3], Kind.name);
      const got = await tensor.data();
      ok(got instanceof Out, `${Kind.name} comes back as ${got.constructor.name}`);
      equal(got, Out.from(values), Kind.name);
      equal(await tensor.array(), Array.from(Out.from(values)), `${Kind.name}, array`);
      tensor.dispose();
    }
    for (const Kind of [BigInt64Array, BigUint64Array]) {
      const tensor = engine.tensor(Kind.of(5n, 2147483647n));
      equal(tensor.dtype, "i32", Kind.name);
      equal(await tensor.data(), [5, 2 ** 31 - 1], Kind.name);
      tensor.dispose();
      const large = Kind.of(2147483648n);
      await fails(
        wgrad,
        () => engine.tensor(large),
        "ArgumentError",
        ["2147483648", "2147483647"],
        Kind.name,
      );
    }
    equal(await engine.tensor(BigInt64Array.of(-2147483648n)).data(), [-(2 ** 31)], "the least i32");
    await fails(wgrad, () => engine.tensor(BigInt64Array.of(-2147483649n)), "ArgumentError", ["-2147483649"]);
    equal(await engine.tensor(BigUint64Array.of(4294967295n), { dtype: "u32" }).data(), [2 ** 32 - 1], "u32");
    near(await engine.tensor(BigInt64Array.of(1n << 53n), { dtype: "f32" }).data(), [2 ** 53], {}, "f32");
    if (typeof Float16Array !== "undefined") {
      const tensor = engine.tensor(Float16Array.of(0.1, 2, -3));
      equal(tensor.dtype, "f16", "Float16Array");
      equal(await tensor.data(), [Math.fround(0.0999755859375), 2, -3], "Float16Array");
    }
    equal(
      await engine.tensor(Float64Array.of(1e300, 0.1)).data(),
      [Infinity, Math.fround(0.1)],
      "f64 to f32",
    );
    equal(
      bits(await engine.tensor(Float32Array.of(-0, 1e-45)).data()),
      [0x80000000, 1],
      "-0 and a subnormal",
    );

    const truth = engine.tensor([true, false, true]);
    equal(truth.dtype, "bool", "booleans");
    const raw = await truth.data();
    ok(raw instanceof Uint8Array, "booleans come back as bytes");
    equal(raw, [1, 0, 1], "booleans");
    equal(await truth.array(), [true, false, true], "booleans as an array");
    equal(await engine.tensor(true).item(), 1, "a boolean's item");
    equal(await engine.tensor([3, 0, -1], { dtype: "bool" }).data(), [1, 0, 1], "numbers as booleans");
    equal(await engine.tensor([true, false], { dtype: "f32" }).data(), [1, 0], "booleans as f32");
    equal(engine.tensor([true, 2]).dtype, "f32", "a mix of truth and numbers");
    equal(engine.tensor([]).dtype, "f32", "nothing");

    equal(await engine.tensor(Float32Array.of(3, -4), { dtype: "i32" }).data(), [3, -4], "f32 as i32");
    equal(await engine.tensor([7], { dtype: "u32" }).data(), [7], "a number as u32");
    equal(await engine.tensor(Int32Array.of(7), { dtype: "f32" }).data(), [7], "i32 as f32");
    equal(await engine.full([2], 3, { dtype: "bool" }).data(), [1, 1], "a full bool");
  },

  "numbers that an integer type does not hold are ArgumentErrors": async (context) => {
    const { engine } = context;
    const rows = [
      [1.5, "i32"],
      [NaN, "i32"],
      [Infinity, "i32"],
      [2 ** 31, "i32"],
      [-1, "u32"],
      [2 ** 32, "u32"],
      [0.5, "u32"],
    ].flatMap(([value, dtype]) => {
      const words = [String(value), dtype, "whole number"];
      return [
        [() => engine.tensor([value], { dtype }), "ArgumentError", ["tensor", ...words]],
        [() => engine.full([2], value, { dtype }), "ArgumentError", ["full", ...words]],
      ];
    });
    await allFail(context, rows);
  },

  "integers are exact to the last one": async ({ engine }) => {
    equal(await engine.full([1], 16_777_217, { dtype: "i32" }).item(), 16_777_217, "a full of 2^24 + 1");
    equal(
      await engine.full([1], 2 ** 31 - 1, { dtype: "i32" }).item(),
      2 ** 31 - 1,
      "a full of the largest i32",
    );
    equal(
      await engine.full([1], 4_294_967_295, { dtype: "u32" }).item(),
      4_294_967_295,
      "of the largest u32",
    );
  },

  "views with an offset, shared memory, other lengths": async ({ engine }) => {
    const buffer = new ArrayBuffer(64);
    new Float32Array(buffer).set([0, 1, 2, 3, 4, 5, 6, 7]);
    equal(await engine.tensor(new Float32Array(buffer, 8, 3)).data(), [2, 3, 4], "an offset");
    equal(await engine.tensor(new Uint8Array(buffer, 7, 1)).data(), [63], "an odd offset");
    const shared = new SharedArrayBuffer(32);
    new Float32Array(shared).set([1, 2, 3, 4, 5, 6, 7, 8]);
    equal(await engine.tensor(new Float32Array(shared)).data(), [1, 2, 3, 4, 5, 6, 7, 8], "shared memory");
    equal(await engine.tensor(new Float32Array(shared, 4, 2)).data(), [2, 3], "a part of shared memory");
    equal((await engine.tensor(new Int32Array(shared)).data())[0], 0x3f800000, "shared i32");
    equal((await engine.tensor(new Uint32Array(shared)).data())[0], 0x3f800000, "shared u32");
    equal((await engine.tensor(new Float32Array(shared), { dtype: "f16" }).data())[7], 8, "shared to f16");
    // Longer than needed is as wrong as shorter: ShapeErrors are tested above. A shape of its own is right.
    const tensor = engine.tensor(new Float32Array(buffer, 0, 8), { shape: Int32Array.of(2, 4) });
    equal(tensor.shape, [2, 4], "a shape in a typed array");
  },

  "f16: odd lengths, odd offsets, raw bits": async ({ engine }) => {
    for (const length of [1, 2, 3, 5, 7, 8, 31, 33, 1023]) {
      const values = Array.from({ length }, (_, k) => (k % 37) / 4 - 3);
      const tensor = engine.tensor(values, { dtype: "f16" });
      equal(tensor.dtype, "f16", "dtype");
      equal(await tensor.data(), values, `${length} elements`);
      equal(await tensor.add(1).data(), values.map((v) => v + 1), `${length} elements and 1`); // prettier-ignore
      const raw = await tensor.data({ raw: true });
      ok(raw instanceof Uint16Array && raw.length === length, `${length} raw elements`);
      if (length > 3) {
        equal(
          await tensor.narrow(0, 1, length - 2).data(),
          values.slice(1, -1),
          `${length}, from the second`,
        );
        equal(await tensor.slice({ start: 3 }).data(), values.slice(3), `${length}, from the fourth`);
      }
    }
    const rows = [
      [1, 0x3c00],
      [-2, 0xc000],
      [-0, 0x8000],
      [65504, 0x7bff],
      [65519, 0x7bff],
      [65520, 0x7c00],
      [-1e9, 0xfc00],
      [Infinity, 0x7c00],
      [2 ** -14, 0x0400],
      [2 ** -24, 0x0001],
      [2 ** -25, 0x0000],
      [1.5 * 2 ** -24, 0x0002],
      [1023 * 2 ** -24, 0x03ff],
      [0.1, 0x2e66],
      [1 + 2 ** -11, 0x3c00],
      [1 + 3 * 2 ** -11, 0x3c02],
    ];
    const tensor = engine.tensor(rows.map(([v]) => v), { dtype: "f16" }); // prettier-ignore
    equal(await tensor.data({ raw: true }), rows.map(([, b]) => b), "bits, ties to even"); // prettier-ignore
    const [nan] = await engine.tensor([NaN], { dtype: "f16" }).data({ raw: true });
    ok((nan & 0x7fff) > 0x7c00, `NaN is ${nan.toString(16)}`);
    const plain = await engine.tensor([1.5]).data({ raw: true });
    ok(plain instanceof Float32Array, "raw f32 is f32");
    const uniform = await engine.rand([100_000], { dtype: "f16" }).data();
    ok(uniform.every((v) => v >= 0 && v < 1), "uniform f16 numbers stay below their upper end"); // prettier-ignore
  },

  "array() and item()": async (context) => {
    const { engine } = context;
    const x = engine.tensor([1, 2, 3, 4, 5, 6], { shape: [1, 2, 3] });
    equal(await x.array(), [[[1, 2, 3], [4, 5, 6]]], "three dimensions"); // prettier-ignore
    equal(await x.transpose(1, 2).array(), [[[1, 4], [2, 5], [3, 6]]], "a transpose"); // prettier-ignore
    equal(await engine.tensor(5).array(), 5, "a scalar");
    equal(await engine.zeros([2, 0]).array(), [[], []], "an empty dimension");
    equal(await engine.zeros([0, 2]).array(), [], "an empty first dimension");
    equal(await engine.tensor(5).item(), 5, "item of a scalar");
    equal(await engine.full([1, 1], 7).item(), 7, "item of one element");
    await allFail(context, [
      [() => x.item(), "ArgumentError", ["item", "[1, 2, 3]"]],
      [() => engine.zeros([0]).item(), "ArgumentError", ["item", "[0]"]],
    ]);
    equal(await engine.tensor([[true], [false]]).array(), [[true], [false]], "truth values");
  },

  "kernels without the tape give what the tape gives": async (context) => {
    const { engine } = context;
    const leaf = (shape) => engine.randn(shape, { requiresGrad: true });
    const forms = [
      ["siluMul", undefined],
      ["geluMul", undefined],
      ["geluMul", { approximate: "tanh" }],
      ["reluMul", undefined],
      ["sigmoidMul", undefined],
    ];
    for (const [left, right] of [
      [
        [3, 5],
        [3, 5],
      ],
      [[3, 5], [5]],
      [
        [3, 1],
        [1, 5],
      ],
      [[0], [0]],
    ]) {
      for (const [op, options] of forms) {
        const [a, b] = [leaf(left), leaf(right)];
        const extra = options ? [options] : [];
        const y = a[op](b, ...extra);
        const dy = engine.randn(y.shape);
        y.backward(dy);
        const [da, db] = engine.kernels[`${op}Backward`](dy, a, b, ...extra);
        equal(da.shape, left, op);
        equal(db.shape, right, op);
        equal([da.requiresGrad, db.requiresGrad], [false, false], `${op} is not recorded`);
        equal(await da.data(), await a.grad.data(), `${op}, da`);
        equal(await db.data(), await b.grad.data(), `${op}, db`);
      }
    }
    const [x, w, b] = [leaf([2, 3, 7]), leaf([7]), leaf([7])];
    const y = x.layerNorm(w, b, { eps: 0.5 });
    const [z, mean, rstd] = engine.kernels.layerNormForward(x, w, b, { eps: 0.5 });
    equal(await z.data(), await y.data(), "layerNorm");
    equal(z.requiresGrad, false, "layerNorm is not recorded");
    const dy = engine.randn([2, 3, 7]);
    y.backward(dy);
    const [dx, dw, db] = engine.kernels.layerNormBackward(dy, x, mean, rstd, w);
    equal(await dx.data(), await x.grad.data(), "dx");
    equal(await dw.data(), await w.grad.data(), "dw");
    equal(await db.data(), await b.grad.data(), "db");
    const plain = x.layerNorm();
    x.grad = null;
    plain.backward(dy);
    const [, mean2, rstd2] = engine.kernels.layerNormForward(x);
    const [dx2] = engine.kernels.layerNormBackward(dy, x, mean2, rstd2);
    equal(await dx2.data(), await x.grad.data(), "dx without weight");
    await allFail(context, [
      [() => engine.kernels.siluMulBackward(w, x, w), "ShapeError", ["siluMulBackward", "[7]", "[2, 3, 7]"]],
      [() => engine.kernels.geluMulBackward(x, x, leaf([2])), "ShapeError", ["geluMulBackward", "broadcast"]],
      [() => engine.kernels.layerNormBackward(w, x, mean, rstd, w), "ShapeError", ["dy", "[7]"]],
      [() => engine.kernels.layerNormBackward(dy, x, w, rstd, w), "ShapeError", ["mean", "6 rows"]],
      [() => engine.kernels.layerNormBackward(dy, x, mean, dy, w), "ShapeError", ["rstd", "6 rows"]],
      [() => engine.kernels.layerNormForward(x, null, null, { eps: -1 }), "ArgumentError", ["eps"]],
      [() => engine.kernels.layerNormForward(engine.ones([])), "ShapeError", ["scalar"]],
    ]);
  },

  "equal seeds give equal bits on every device": async ({ wgrad, engine }) => {
    const other = await wgrad.init({ device: "cpu" });
    const draw = async (from) => {
      from.manualSeed(1234567890123);
      const tensors = [
        from.rand([1001]),
        from.rand([3, 5], { low: -2, high: 7 }),
        from.randn([1001]),
        from.randn([3]),
        from.rand([7], { dtype: "f16" }),
      ];
      const values = await Promise.all(tensors.map((t) => t.data()));
      for (const t of tensors) t.dispose();
      return values.map(bits);
    };
    const [one, two, again] = [await draw(engine), await draw(other), await draw(engine)];
    one.forEach((values, k) => equal(values, two[k], `part ${k}, here and on the CPU`));
    one.forEach((values, k) => equal(values, again[k], `part ${k}, twice`));
    engine.manualSeed(5);
    const small = await engine.rand([4]).data();
    engine.manualSeed(5 + 2 ** 32);
    const large = await engine.rand([4]).data();
    ok(String(small) !== String(large), "all bits of a seed count");
    // Seed 0, counter 0 of Philox4x32-10, from the paper's known answers: the upper 24 bits of each word.
    engine.manualSeed(0);
    const words = [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8];
    equal(await engine.rand([4]).data(), words.map((w) => (w >>> 8) / 2 ** 24), "the paper's numbers"); // prettier-ignore
    const numbers = await engine.rand([100_000], { low: -3, high: 1 }).data();
    ok(numbers.every((v) => v >= -3 && v < 1), "numbers stay in their range"); // prettier-ignore
    other.dispose();
  },

  "toString says what it is": async ({ engine, device }) => {
    equal(String(engine.zeros([2, 3])), `Tensor(f32, [2, 3], ${device})`, "f32");
    equal(String(engine.tensor(true)), `Tensor(bool, [], ${device})`, "a scalar");
    equal(`${engine.zeros([0], { dtype: "f16" })}`, `Tensor(f16, [0], ${device})`, "f16");
  },

  "errors are errors of every kind they claim to be": async ({ wgrad, engine }) => {
    const x = engine.ones([2]);
    const error = await fails(wgrad, () => x.add(engine.ones([3])), "ShapeError");
    ok(error instanceof Error, "an Error");
    equal(Object.prototype.toString.call(error), "[object Error]", "its class");
    ok(error.stack.includes("ShapeError"), "the stack begins with the name");
    ok(!(error instanceof wgrad.DTypeError), "no other class");
    equal(String(error).startsWith("ShapeError: add: "), true, "in words");
  },
};

// Bodies of tests/api.test.mjs: element types, dimensions and operands that are none or are of another engine.
import { allFail } from "./fail.mjs";

const notTensors = [null, {}, "x", [1], true, 3n, () => 1, new Float32Array(2)];

export const bodies = {
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
};

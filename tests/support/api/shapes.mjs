// Bodies of tests/api.test.mjs: sizes and shapes that are none, do not fit, or are past a limit.
import { equal, fails, ok, show, works } from "../expect.mjs";
import { allFail } from "./fail.mjs";

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
};

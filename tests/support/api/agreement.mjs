// Bodies of tests/api.test.mjs: what agrees with what: kernels with the tape, seeds, names, errors.
import { bits, equal, fails, ok } from "../expect.mjs";
import { allFail } from "./fail.mjs";

export const bodies = {
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

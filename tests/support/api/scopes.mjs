// Bodies of tests/api.test.mjs: tidy and noGrad.
import { equal, fails, ok } from "../expect.mjs";

export const bodies = {
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
};

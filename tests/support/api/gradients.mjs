// Bodies of tests/api.test.mjs: what cannot go backward, gradients that are assigned, and the parameters of optimizers.
import { equal, fails, near, ok, works } from "../expect.mjs";
import { allFail } from "./fail.mjs";

export const bodies = {
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
};

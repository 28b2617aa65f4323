// Bodies of tests/api.test.mjs: what dispose() does to tensors, engines, optimizers and reads under way.
import { equal, fails, near, ok } from "../expect.mjs";
import { allFail } from "./fail.mjs";

export const bodies = {
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
      [() => engine.profile(() => 1), "DisposedError", disposed],
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
};

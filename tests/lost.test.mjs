// A device that is lost: what was asked of it fails in time, and all else goes on.
import { describe, test } from "node:test";
import { pagesOfTheirOwn } from "./support/pages.mjs";

const timeout = 60_000;
const { inPage } = pagesOfTheirOwn();

/* global wgrad, expect -- in a page */

describe("a device is lost", () => {
  /** Defines `afterLoss(engine, x)` in a page: all that must hold once the device is lost. */
  function prepare() {
    globalThis.afterLoss = async (engine, x) => {
      const words = ["lost", "destroyed", "init()"];
      const lost = await expect.within(engine.lost, 5000, "engine.lost");
      expect.equal(lost.reason, "destroyed", "the reason");
      expect.equal(typeof lost.message, "string", "the message");
      for (const call of [
        () => x.add(1),
        () => x.siluMul(x),
        () => engine.zeros([2]),
        () => engine.tensor([1]),
        () => engine.rand([2]),
        () => x.data(),
        () => x.array(),
        () => engine.sync(),
      ]) {
        const failing = expect.fails(wgrad, call, "DeviceLostError", words);
        await expect.within(failing, 5000, String(call));
      }
      // Tidying up still works.
      engine.memory();
      x.dispose();
      engine.dispose();
      const next = await wgrad.init({ device: "webgpu" });
      await expect.works(next, "a new engine");
      next.dispose();
    };
  }

  /* global afterLoss -- in a page */

  const lossTest = (name, body) =>
    test(name, { timeout }, () => inPage(body, undefined, { prepare: `(${prepare})()` }));

  lossTest("during reads", async () => {
    const engine = await wgrad.init({ device: "webgpu" });
    const x = engine.ones([1]);
    const big = engine.ones([1 << 20]);
    const reads = [x.data(), big.add(1).data(), big.sum().item(), x.array(), engine.sync()];
    await Promise.resolve();
    engine.gpuDevice.destroy();
    for (const [k, read] of reads.entries()) {
      const failing = expect.fails(wgrad, () => read, "DeviceLostError", ["lost"], `read ${k}`);
      await expect.within(failing, 5000, `read ${k}`);
    }
    await afterLoss(engine, x);
  });

  lossTest("right before a read", async () => {
    const engine = await wgrad.init({ device: "webgpu" });
    const x = engine.ones([1]);
    await x.data();
    engine.gpuDevice.destroy();
    const read = x.data();
    await expect.within(
      expect.fails(wgrad, () => read, "DeviceLostError", ["lost"]),
      5000,
      "the read",
    );
    await afterLoss(engine, x);
  });

  lossTest("between ops", async () => {
    const engine = await wgrad.init({ device: "webgpu" });
    const x = engine.ones([1], { requiresGrad: true });
    const y = x.add(1);
    engine.gpuDevice.destroy();
    // The loss is told by a promise: until then ops may queue. What they give may never be read.
    const outcome = async () => y.mul(3).data();
    await expect.within(expect.fails(wgrad, outcome, "DeviceLostError", ["lost"]), 5000, "ops and a read");
    await expect.fails(wgrad, () => y.sum().backward(), "DeviceLostError", ["lost"], "backward");
    await afterLoss(engine, x);
  });

  lossTest("in a training step", async () => {
    const engine = await wgrad.init({ device: "webgpu" });
    const w = engine.randn([64, 64], { requiresGrad: true });
    const x = engine.randn([32, 64]);
    const optimizer = engine.optim.adamw([w]);
    let steps = 0;
    const train = async () => {
      for (; steps < 10_000; steps++) {
        const loss = engine.tidy(() => {
          const loss = x.linear(w).layerNorm().sum();
          optimizer.zeroGrad();
          loss.backward();
          if (steps === 5) engine.gpuDevice.destroy();
          optimizer.step();
          return loss;
        });
        await loss.item();
        loss.dispose();
      }
    };
    await expect.within(expect.fails(wgrad, train, "DeviceLostError", ["lost"]), 5000, "the training");
    expect.ok(steps >= 5 && steps < 10, `${steps} steps`);
    await expect.fails(wgrad, () => optimizer.step(), "DeviceLostError", ["lost"], "a step later");
    optimizer.zeroGrad();
    optimizer.dispose();
    await afterLoss(engine, w);
  });

  lossTest("while other engines go on", async () => {
    const [lost, other, cpu] = await Promise.all(
      ["webgpu", "webgpu", "cpu"].map((device) => wgrad.init({ device })),
    );
    const x = lost.ones([1]);
    lost.gpuDevice.destroy();
    await expect.works(other, "the other GPU engine");
    await expect.works(cpu, "the CPU engine");
    await afterLoss(lost, x);
    await expect.works(other, "the other GPU engine");
  });
});

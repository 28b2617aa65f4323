// Work that the GPU rejects: a shader that does not compile, calls that are invalid, memory that is not there. Whatever depends
// on it fails with the kernel's name; all else goes on.
import { describe, test } from "node:test";
import { pagesOfTheirOwn } from "./support/pages.mjs";

const timeout = 60_000;
const { inPage } = pagesOfTheirOwn();

/* global wgrad, expect, breakShader, breakGroup, starve, mend -- in a page */

/** Defines ways to break a page's WebGPU, and `mend()`, which undoes them. */
function prepare() {
  const originals = [];
  const replace = (prototype, name, make) => {
    const original = prototype[name];
    originals.push(() => (prototype[name] = original));
    prototype[name] = make(original);
  };
  globalThis.mend = () => originals.splice(0).forEach((undo) => undo());
  /** Gives the entry point of one kernel's shader a parameter that nothing fills. */
  globalThis.breakShader = (kernel) =>
    replace(
      GPUDevice.prototype,
      "createShaderModule",
      (create) =>
        function (descriptor) {
          if (descriptor.label !== kernel) return create.call(this, descriptor);
          const code = descriptor.code.replace("fn main(", "fn main(wrong: u32, ");
          return create.call(this, { ...descriptor, code });
        },
    );
  /** Puts a buffer behind a kernel's first binding that is invalid there, or that is destroyed. */
  globalThis.breakGroup = (kernel, how) =>
    replace(
      GPUDevice.prototype,
      "createBindGroup",
      (create) =>
        function (descriptor) {
          if (descriptor.label !== kernel) return create.call(this, descriptor);
          const usage = how === "destroyed" ? GPUBufferUsage.STORAGE : GPUBufferUsage.COPY_DST;
          const buffer = this.createBuffer({ size: 1 << 20, usage });
          if (how === "destroyed") buffer.destroy();
          const [first, ...others] = descriptor.entries;
          return create.call(this, {
            ...descriptor,
            entries: [{ ...first, resource: { buffer } }, ...others],
          });
        },
    );
  /** Lets so many buffers of at least `size` bytes have no memory. How many were asked for is in `starve.asked`. */
  globalThis.starve = (size, times) => {
    let short = false;
    starve.asked = 0;
    replace(
      GPUDevice.prototype,
      "createBuffer",
      (create) =>
        function (descriptor) {
          const buffer = create.call(this, descriptor);
          if (descriptor.size >= size) {
            starve.asked++;
            if (times-- > 0) {
              buffer.destroy();
              short = true;
            }
          }
          return buffer;
        },
    );
    replace(
      GPUDevice.prototype,
      "popErrorScope",
      (pop) =>
        function () {
          const popped = pop.call(this);
          if (!short) return popped;
          short = false;
          return popped.then(() => ({ message: "no memory, on purpose" }));
        },
    );
  };
}

const rejection = (name, body, argument) =>
  test(name, { timeout }, () => inPage(body, argument, { prepare: `(${prepare})()` }));

describe("a shader that does not compile", () => {
  rejection("fails what depends on it, with the kernel and the line, and nothing else", async () => {
    breakShader("gated");
    const engine = await wgrad.init({ device: "webgpu" });
    const [a, b] = [engine.tensor([1, 2, 3]), engine.tensor([4, 5, 6])];
    const y = a.siluMul(b);
    const [after, beside] = [y.add(1), a.add(b)];
    const words = ["gated", "does not compile", "in line ", "fn main("];
    await Promise.all([
      expect.fails(wgrad, () => y.data(), "KernelError", words, "the result"),
      expect.fails(wgrad, () => after.sum().item(), "KernelError", words, "what was computed from it"),
      beside.data().then((got) => expect.equal(got, [5, 7, 9], "what was not")),
    ]);
    await expect.fails(wgrad, () => y.data(), "KernelError", words, "a second read");
    // By now it is known, and told at once.
    await expect.fails(wgrad, () => void a.siluMul(b), "KernelError", words, "another call");
    expect.equal(await a.mul(b).data(), [4, 10, 18], "another kernel");
    await engine.sync();
    mend();
    await expect.works(await wgrad.init({ device: "webgpu" }), "a new engine");
  });

  rejection("fails a warm-up and a sync", async () => {
    breakShader("layer_norm");
    const engine = await wgrad.init({ device: "webgpu" });
    const x = engine.ones([4, 8]);
    const words = ["layer_norm", "fn main("];
    await expect.fails(wgrad, () => engine.warmup(() => x.layerNorm().sum()), "KernelError", words);
    await engine.sync();
    expect.equal(await x.sum().item(), 32, "another kernel");
    await expect.works(engine);
  });

  rejection(
    "spoils parameters that a step would have changed, and memory only until it is written",
    async () => {
      breakShader("gated_backward");
      const engine = await wgrad.init({ device: "webgpu" });
      const w = engine.ones([8], { requiresGrad: true });
      const optimizer = engine.optim.adamw([w]);
      w.siluMul(w).sum().backward();
      optimizer.step();
      await expect.fails(wgrad, () => w.data(), "KernelError", ["gated_backward"], "the parameter");
      await expect.fails(wgrad, () => w.grad.data(), "KernelError", ["gated_backward"], "its gradient");
      for (const thing of [w, optimizer]) thing.dispose();
      const fresh = Array.from({ length: 20 }, (_, k) => engine.full([8], k));
      const values = await Promise.all(fresh.map((x) => x.add(0).data()));
      values.forEach((got, k) => expect.equal(got, new Float32Array(8).fill(k), `fresh tensor ${k}`));
    },
  );
});

describe("calls that are invalid", () => {
  for (const how of ["invalid", "destroyed"]) {
    rejection(
      `fail what depends on them, with the kernel, and nothing else (${how} buffer)`,
      async (how) => {
        breakGroup("gated", how);
        const engine = await wgrad.init({ device: "webgpu" });
        const [a, b] = [engine.tensor([1, 2, 3]), engine.tensor([4, 5, 6])];
        const y = a.siluMul(b);
        const [after, beside] = [y.add(1), a.add(b)];
        const words = ["gated", "the GPU rejected it"];
        await Promise.all([
          expect.fails(wgrad, () => after.data(), "KernelError", words, "what was computed from it"),
          beside.data().then((got) => expect.equal(got, [5, 7, 9], "what was not")),
        ]);
        await expect.fails(wgrad, () => y.data(), "KernelError", words, "the result");
        expect.equal(await a.mul(b).data(), [4, 10, 18], "another kernel");
        mend();
        // Its bind group is made anew.
        await expect.works(engine);
      },
      how,
    );
  }

  rejection("fail what later work made of them", async () => {
    breakGroup("gated", "destroyed");
    const engine = await wgrad.init({ device: "webgpu" });
    const x = engine.ones([4]);
    let y = x.siluMul(x);
    const reads = [];
    // Each read hands the list over before the answer to the first is there.
    for (let k = 0; k < 5; k++) {
      y = y.add(1);
      reads.push(expect.fails(wgrad, () => y.data(), "KernelError", ["gated"], `read ${k}`));
    }
    await Promise.all(reads);
    expect.equal(await x.add(1).data(), [2, 2, 2, 2], "what does not depend on it");
    mend();
    await expect.works(engine);
  });

  rejection("leave what the host wrote beside them as it is", async () => {
    breakGroup("gated", "destroyed");
    const engine = await wgrad.init({ device: "webgpu" });
    const x = engine.ones([4]);
    await x.add(1).data();
    for (const write of [() => undefined, () => engine.tensor([1]), () => void x.add(1).data()]) {
      const y = x.siluMul(x);
      const beside = engine.tensor([7, 8, 9]);
      const read = beside.data().catch((error) => error);
      // Before the answer is there the host writes, or hands over more: then the calls cannot go out again.
      write();
      await expect.fails(wgrad, () => y.data(), "KernelError", ["gated"], String(write));
      const got = await read;
      if (got instanceof Error) expect.equal(got.code, "KernelError", String(write));
      else expect.equal(got, [7, 8, 9], String(write));
      expect.equal(await beside.data(), [7, 8, 9], `${write}: a later read`);
    }
    mend();
    await expect.works(engine);
  });

  rejection("never let a read give anything but the right values or their error", async () => {
    let state = 1;
    const random = () => (state = (state * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
    const pick = (list) => list[Math.floor(random() * list.length)];
    const create = GPUDevice.prototype.createBindGroup;
    let rate = 0;
    GPUDevice.prototype.createBindGroup = function (descriptor) {
      if (random() >= rate) return create.call(this, descriptor);
      const buffer = this.createBuffer({ size: 1 << 16, usage: GPUBufferUsage.STORAGE });
      buffer.destroy();
      const [first, ...others] = descriptor.entries;
      return create.call(this, { ...descriptor, entries: [{ ...first, resource: { buffer } }, ...others] });
    };
    const engine = await wgrad.init({ device: "webgpu" });
    const told = { right: 0, rejected: 0 };
    for (let round = 0; round < 12; round++) {
      // Each tensor with the integer that all its elements are.
      const live = [];
      const reads = [];
      const make = () => live.push([engine.tensor(new Float32Array(24).fill(round + 1)), round + 1]);
      make();
      rate = round % 2 === 0 ? 0.03 : 0;
      for (let k = 0; k < 150; k++) {
        const [[a, m], [b, n], chance] = [pick(live), pick(live), random()];
        if (chance < 0.1) make();
        else if (chance < 0.6) live.push(Math.abs(m) < 1e5 ? [a.add(b), m + n] : [a.sub(a), 0]);
        else if (chance < 0.8) {
          reads.push(
            a.data().then(
              (got) => {
                told.right++;
                expect.equal(got, new Float32Array(24).fill(m), `round ${round}, call ${k}`);
              },
              (error) => {
                told.rejected++;
                expect.equal([error.code, rate > 0], ["KernelError", true], String(error));
              },
            ),
          );
        } else if (live.length > 3) live.splice(Math.floor(random() * live.length), 1)[0][0].dispose();
        if (random() < 0.02) await Promise.all(reads.splice(0));
      }
      await Promise.all(reads);
      for (const [tensor] of live) tensor.dispose();
    }
    rate = 0;
    expect.ok(told.right > 100 && told.rejected > 5, `${told.right} right, ${told.rejected} rejected`);
    await engine.sync().catch(() => undefined);
    await expect.works(engine);
  });

  rejection("fail a sync, once", async () => {
    breakGroup("gated", "invalid");
    const engine = await wgrad.init({ device: "webgpu" });
    const x = engine.ones([4]);
    const y = x.siluMul(x);
    await expect.fails(wgrad, () => engine.sync(), "KernelError", ["gated"]);
    await engine.sync();
    await expect.fails(wgrad, () => y.data(), "KernelError", ["gated"]);
    mend();
    await expect.works(engine);
  });

  rejection("on a device of the caller's are not the caller's to hear of", async () => {
    breakGroup("gated", "invalid");
    const device = await (await navigator.gpu.requestAdapter()).requestDevice();
    const heard = [];
    device.addEventListener("uncapturederror", ({ error }) => heard.push(error.message));
    const engine = await wgrad.init({ gpuDevice: device });
    const x = engine.ones([4]);
    await expect.fails(wgrad, () => x.siluMul(x).data(), "KernelError", ["gated"]);
    mend();
    await expect.works(engine);
    expect.equal(heard, [], "what the caller heard");
  });
});

describe("memory that is not there", () => {
  const SIZE = 8 << 20;

  rejection(
    "is asked for once more after the pool was emptied, and then the result is right",
    async (size) => {
      const engine = await wgrad.init({ device: "webgpu" });
      const count = size / 4;
      engine.ones([count / 2]).dispose();
      await engine.sync();
      expect.ok(engine.memory().bytesAllocated > engine.memory().bytesUsed, "something lies free");
      starve(size, 1);
      const y = engine.full([count], 3).mul(2);
      expect.equal((await y.narrow(0, count - 3, 3).data()).join(), "6,6,6", "a computed tensor");
      expect.equal(starve.asked, 3, "buffers asked for");
      mend();
      starve(size, 1);
      // Uploads wait for their memory too.
      const x = engine.tensor(Float32Array.from({ length: count }, (_, k) => k));
      expect.equal((await x.narrow(0, 5, 3).data()).join(), "5,6,7", "an uploaded tensor");
      mend();
      await expect.works(engine);
    },
    SIZE,
  );

  rejection(
    "is a LimitError with the sizes where it is needed, and nothing is lost",
    async (size) => {
      const engine = await wgrad.init({ device: "webgpu" });
      const count = size / 4;
      const kept = engine.full([count], 7);
      await engine.sync();
      const before = engine.memory();
      starve(size, 2);
      const y = kept.mul(2);
      const sum = y.sum();
      const words = ["mul", "8.4 MB", "on purpose", "Dispose"];
      await Promise.all([
        expect.fails(wgrad, () => y.data(), "LimitError", words, "the tensor"),
        expect.fails(wgrad, () => sum.item(), "LimitError", words, "what was computed from it"),
      ]);
      mend();
      y.dispose();
      sum.dispose();
      await engine.sync();
      expect.equal(engine.memory().bytesUsed, before.bytesUsed, "bytes in use");
      expect.ok(engine.memory().bytesAllocated <= before.bytesAllocated + (1 << 16), "bytes held");
      const again = kept.mul(2);
      expect.equal((await again.narrow(0, 9, 1).data())[0], 14, "with memory again");
      starve(size, 2);
      const x = engine.tensor(new Float32Array(count).fill(1));
      const upload = ["tensor", "8.4 MB", "on purpose"];
      await expect.fails(wgrad, () => x.narrow(0, 9, 1).data(), "LimitError", upload, "an upload");
      await expect.fails(wgrad, () => x.add(1).narrow(0, 9, 1).data(), "LimitError", upload, "its use");
      mend();
      await expect.works(engine);
    },
    SIZE,
  );

  rejection(
    "is not asked for again once the page has gone on without the answer",
    async (size) => {
      const engine = await wgrad.init({ device: "webgpu" });
      starve(size, 1);
      const big = engine.tensor(new Float32Array(size / 4).fill(3));
      let x = big.narrow(0, 9, 4);
      for (let k = 0; k < 3000; k++) x = x.add(1);
      await Promise.all([
        expect.fails(wgrad, () => x.data(), ["LimitError", "KernelError"], [], "what was computed from it"),
        expect.fails(
          wgrad,
          () => big.narrow(0, 5, 2).data(),
          ["LimitError", "KernelError"],
          [],
          "the upload",
        ),
      ]);
      await expect.fails(wgrad, () => big.narrow(0, 5, 2).data(), "LimitError", ["8.4 MB"], "a later read");
      mend();
      await expect.works(engine);
    },
    SIZE,
  );
});

describe("a list that waits for its pipelines", () => {
  rejection("reads what a tensor held when it was asked", async () => {
    const engine = await wgrad.init({ device: "webgpu" });
    const w = engine.tensor([1, 2, 3], { requiresGrad: true });
    const optimizer = engine.optim.adamw([w], { lr: 1 });
    w.mul(w).sum().backward();
    const before = w.data();
    optimizer.step();
    const after = w.data();
    expect.equal(await before, [1, 2, 3], "before the step");
    expect.ok((await after)[0] < 0.5, "after it");
    await expect.works(engine);
  });

  rejection("is right however long it becomes", async () => {
    const engine = await wgrad.init({ device: "webgpu" });
    let x = engine.zeros([5]);
    for (let k = 0; k < 5000; k++) {
      const next = x.add(1);
      x.dispose();
      x = next;
    }
    expect.equal(await x.data(), [5000, 5000, 5000, 5000, 5000], "the sum");
  });

  rejection("has uploads that wait for their memory in place, however long it becomes", async () => {
    const engine = await wgrad.init({ device: "webgpu" });
    // Large enough to be waited for.
    const big = engine.tensor(Float32Array.from({ length: 2 << 20 }, (_, k) => k % 1000));
    let x = big.narrow(0, 5000, 4);
    for (let k = 0; k < 3000; k++) x = x.add(1);
    expect.equal(await x.data(), [3000, 3001, 3002, 3003], "the sum");
    expect.equal(await big.narrow(0, 1234, 2).data(), [234, 235], "the upload");
  });

  rejection("never makes the page wait, and repeated work makes nothing", async () => {
    const made = { now: 0, later: 0 };
    for (const [name, kind] of [
      ["createComputePipeline", "now"],
      ["createComputePipelineAsync", "later"],
    ]) {
      // prettier-ignore
      const create = GPUDevice.prototype[name];
      GPUDevice.prototype[name] = function (descriptor) {
        made[kind]++;
        return create.call(this, descriptor);
      };
    }
    const engine = await wgrad.init({ device: "webgpu" });
    const w = engine.randn([64, 32], { requiresGrad: true });
    const x = engine.randn([16, 32]);
    const target = engine.tensor(Int32Array.from({ length: 16 }, (_, k) => k));
    const optimizer = engine.optim.adamw([w]);
    const step = () =>
      engine.tidy(() => {
        const loss = x.layerNorm().linear(w).swiglu().crossEntropy(target);
        optimizer.zeroGrad();
        loss.backward();
        optimizer.step();
        return loss;
      });
    await engine.warmup(step);
    expect.equal(made.now, 0, "pipelines that the page waited for");
    expect.ok(made.later >= 8, `${made.later} pipelines`);
    const { later } = made;
    for (let k = 0; k < 5; k++) step().dispose();
    await engine.sync();
    const before = engine.memory();
    for (let k = 0; k < 200; k++) {
      const loss = step();
      if (k % 7 === 0) await engine.sync();
      loss.dispose();
    }
    await engine.sync();
    for (const [name, value] of Object.entries(before)) expect.equal(engine.memory()[name], value, name);
    expect.equal([made.now, made.later], [0, later], "pipelines made at once and later");
  });

  rejection("ends when the engine is disposed or its device lost", async () => {
    for (const end of [(engine) => engine.dispose(), (engine) => engine.gpuDevice.destroy()]) {
      const engine = await wgrad.init({ device: "webgpu" });
      const x = engine.ones([4]);
      const reads = [x.siluMul(x).data(), x.layerNorm().data(), engine.sync()];
      end(engine);
      for (const [k, read] of reads.entries()) {
        const failing = expect.fails(wgrad, () => read, ["DisposedError", "DeviceLostError"]);
        await expect.within(failing, 5000, `read ${k}`);
      }
    }
    await expect.works(await wgrad.init({ device: "webgpu" }), "a new engine");
  });
});

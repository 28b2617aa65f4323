// Bodies of tests/memory.test.mjs: many reads at once, and nothing that grows.
import { equal, fails, near, ok, works } from "./expect.mjs";

const pause = (ms = 0) => new Promise((resolve) => setTimeout(resolve, ms));

/** Collects garbage until `done()` holds, for some three seconds at most. */
async function collected(done) {
  for (let k = 0; k < 80; k++) {
    globalThis.gc();
    // Finalizers run in a task of their own.
    await pause(k < 20 ? 0 : 50);
    if (done()) return true;
  }
  return false;
}

/** Reads a tensor and frees it. */
async function take(tensor) {
  const values = await tensor.data();
  tensor.dispose();
  return values;
}

/**
 * What is held: `memory()` of the engine and the module's own memory. The objects that were made are another test's: garbage of
 * earlier bodies may free a buffer at any time, which then meets others in a new bind group.
 */
function held(engine, heap) {
  const memory = { ...engine.memory(), heap: heap.bytes() };
  delete memory.objectsCreated;
  return memory;
}

function flat(before, after, what) {
  for (const [name, bytes] of Object.entries(before)) {
    ok(after[name] <= bytes, `${what}: ${name} went from ${bytes} to ${after[name]}`);
  }
}

export const bodies = {
  "two reads of one tensor at once": async ({ engine }) => {
    const x = engine.tensor([1, 2, 3]);
    const y = x.mul(2);
    const results = await Promise.all([y.data(), y.data(), x.data(), y.sum().item(), y.array()]);
    equal(results[0], [2, 4, 6], "the first");
    equal(results[1], [2, 4, 6], "the second");
    ok(results[0].buffer !== results[1].buffer, "each has its own copy");
    equal(results[2], [1, 2, 3], "another tensor");
    equal(results[3], 12, "a sum");
    equal(results[4], [2, 4, 6], "an array");
    x.dispose();
    y.dispose();
  },

  "reads of fifty tensors at once, with ops between": async ({ engine }) => {
    const reads = [];
    const tensors = [];
    let x = engine.tensor(new Float32Array(1000).fill(1));
    for (let k = 1; k <= 50; k++) {
      x = x.add(1);
      tensors.push(x);
      reads.push(x.data());
      // More ops after the read was asked for.
      tensors.push(x.mul(x));
    }
    const results = await Promise.all(reads);
    results.forEach((got, k) => {
      equal(got.length, 1000, `read ${k}`);
      equal([got[0], got[500], got[999]], [k + 2, k + 2, k + 2], `read ${k}`);
    });
    const squares = await Promise.all(tensors.filter((_, k) => k % 2).map((t) => t.narrow(0, 7, 1).data()));
    squares.forEach((got, k) => equal(got, [(k + 2) ** 2], `square ${k}`));
    for (const tensor of tensors) tensor.dispose();
  },

  "a thousand reads that nobody awaits one by one": async ({ engine }) => {
    const results = await Promise.all(
      Array.from({ length: 1000 }, (_, k) => engine.tidy(() => engine.full([3], k)) && k).map(async (k) => {
        const x = engine.full([3], k);
        const got = await x.data();
        x.dispose();
        return got;
      }),
    );
    results.forEach((got, k) => equal(got, [k, k, k], `read ${k}`));
  },

  "memory that is used again at once holds nothing of before": async ({ engine }) => {
    // Uploads of one size between ops on tensors that are freed before any of it has run.
    const results = [];
    for (let k = 0; k < 300; k++) {
      const [a, b] = [engine.tensor([k, k, k]), engine.tensor([1, 2, 3])];
      const product = a.mul(b);
      a.dispose();
      b.dispose();
      const c = engine.tensor([1000, 1000, 1000]);
      const sum = product.add(c);
      product.dispose();
      results.push(sum);
      c.dispose();
      if (k % 3 === 0) engine.tidy(() => engine.full([3], -1).mul(-1));
    }
    const values = await Promise.all(results.map((t) => t.data()));
    values.forEach((got, k) => equal(got, [1000 + k, 1000 + 2 * k, 1000 + 3 * k], `result ${k}`));
    for (const tensor of results) tensor.dispose();

    // A read that was asked for before its tensor was freed and its memory written.
    const reads = [];
    for (let k = 0; k < 50; k++) {
      const x = engine.tensor([k, k]).add(1);
      reads.push(x.data());
      x.dispose();
      engine.full([2], -1).dispose();
      engine.tensor([-2, -2]).dispose();
    }
    (await Promise.all(reads)).forEach((got, k) => equal(got, [k + 1, k + 1], `read ${k}`));
  },

  "10,000 gated products, forwards and backwards, take no more memory than the first thousand": async ({
    engine,
    heap,
  }) => {
    const a = engine.randn([8, 64], { requiresGrad: true });
    const b = engine.randn([64], { requiresGrad: true });
    const up = engine.ones([8, 64]);
    const run = async (from, to) => {
      for (let k = from; k < to; k++) {
        engine.tidy(() => {
          a.grad = null;
          b.grad = null;
          [() => a.siluMul(b), () => a.geluMul(b), () => a.reluMul(b)][k % 3]().backward(up);
        });
        if (k % 500 === 499) await engine.sync();
      }
    };
    await run(0, 1000);
    const wanted = await take(a.grad);
    const before = held(engine, heap);
    await run(1000, 10_000);
    flat(before, held(engine, heap), "after 10,000");
    // 1000 and 10,000 end with the same function.
    equal(await take(a.grad), wanted, "the last gradient");
    for (const tensor of [a, b, up]) tensor.dispose();
  },

  "training steps take no more memory than the first fifty": async ({ engine, heap }) => {
    const w = engine.randn([64, 32], { requiresGrad: true });
    const scale = engine.ones([32], { requiresGrad: true });
    const optimizer = engine.optim.adamw([w, scale]);
    const x = engine.randn([16, 32]);
    const target = engine.tensor(Int32Array.from({ length: 16 }, (_, k) => k));
    const run = async (times) => {
      for (let k = 0; k < times; k++) {
        const loss = engine.tidy(() => {
          const loss = x.layerNorm(scale).linear(w).swiglu().crossEntropy(target);
          optimizer.zeroGrad();
          loss.backward();
          optimizer.step();
          return loss;
        });
        if (k % 10 === 0) ok(Number.isFinite(await loss.item()), "a loss");
        loss.dispose();
      }
      await engine.sync();
    };
    await run(50);
    const before = held(engine, heap);
    await run(500);
    flat(before, held(engine, heap), "after 550 steps");
    for (const thing of [w, scale, optimizer, x, target]) thing.dispose();
  },

  "100,000 calls take no more memory than the first 10,000, and no finalizer": async ({ engine, heap }) => {
    const [a, b] = [engine.randn([4, 32]), engine.randn([32])];
    const calls = [
      () => a.siluMul(b),
      () => a.layerNorm(b),
      () => a.mul(b),
      () => a.transpose(0, 1).contiguous(),
      () => a.sum({ dim: 1 }),
      () => a.linear(a),
    ];
    const run = async (from, to) => {
      for (let k = from; k < to; k++) {
        engine.tidy(calls[k % calls.length]).dispose();
        if (k % 5000 === 4999) await engine.sync();
      }
    };
    await run(0, 10_000);
    const before = held(engine, heap);
    await run(10_000, 100_000);
    flat(before, held(engine, heap), "after 100,000");
    for (const tensor of [a, b]) tensor.dispose();
  },

  "tensors up to what the device binds are right or a LimitError, larger ones a LimitError": {
    devices: ["webgpu"],
    alone: true,
    async run({ wgrad, engine }) {
      const { maxStorageBufferBindingSize, maxBufferSize } = engine.gpuDevice.limits;
      const limit = Math.floor(Math.min(maxStorageBufferBindingSize, maxBufferSize) / 16) * 16;
      for (const bytes of [limit / 4, limit]) {
        const ones = engine.ones([bytes / 4]);
        const sum = engine.tidy(() => ones.sum());
        try {
          equal(await sum.item(), bytes / 4, `the sum of ${bytes / 4} ones`);
        } catch (error) {
          // The driver may have less memory than it lets a buffer have.
          const size = String(Math.round(limit / 1e5) / 10);
          ok(error.code === "LimitError" && error.message.includes(size), String(error));
          ok(bytes === limit, `${bytes} bytes are a quarter of what the device binds: ${error}`);
        }
        for (const tensor of [ones, sum]) tensor.dispose();
        await works(engine);
      }
      const words = ["ones", String(limit + 16), `at most ${limit}`, "Split"];
      await fails(wgrad, () => engine.ones([limit / 4 + 1]), "LimitError", words);
    },
  },

  "a long chain is freed without recursion, backwards and by dispose": async ({ engine, device, heap }) => {
    const chain = (length) =>
      engine.tidy(() => {
        const x = engine.tensor([1], { requiresGrad: true });
        let y = x;
        for (let k = 0; k < length; k++) {
          const next = y.mul(1);
          if (y !== x) y.dispose();
          y = next;
        }
        return { x, y };
      });
    // On a GPU that is a CPU, a backward pass of 100,000 takes long and shows no more.
    const { bytesUsed: used } = engine.memory();
    const one = chain(device === "cpu" ? 100_000 : 10_000);
    one.y.backward();
    equal(await take(one.x.grad), [1], "the gradient");
    const before = heap.bytes();
    const { x, y } = chain(100_000);
    y.dispose();
    x.dispose();
    await engine.sync();
    const bytes = (heap.bytes() - before) / 100_000;
    ok(bytes < 1024, `the module grew by ${bytes} bytes for each call of a graph`);
    one.x.dispose();
    one.y.dispose();
    ok(engine.memory().bytesUsed <= used, `${engine.memory().bytesUsed} bytes in use, ${used} before`);
  },

  "an error leaves nothing behind": async ({ engine, heap }) => {
    const x = engine.ones([64, 64], { requiresGrad: true });
    const wrong = engine.ones([63, 63]);
    const run = (times) => {
      for (let k = 0; k < times; k++) {
        for (const call of [
          () => x.add(wrong),
          () => x.matmul(wrong),
          () => x.layerNorm(wrong),
          () => x.sum().backward(wrong),
          () => engine.zeros([2, 2], { dtype: "i32", requiresGrad: true }),
          () => engine.tensor(new Float32Array(4096), { shape: [64, 64], requiresGrad: 1 }),
          () => engine.tidy(() => { x.mul(2); throw new Error("on purpose"); }), // prettier-ignore
        ]) {
          try {
            engine.tidy(call);
          } catch {
            continue;
          }
          throw new Error(`${call} should fail`);
        }
      }
    };
    // As many as fill a list of queued work, which holds on to what it uses.
    run(200);
    await engine.sync();
    const before = held(engine, heap);
    run(400);
    await engine.sync();
    flat(before, held(engine, heap), "after 600");
    x.dispose();
    wrong.dispose();
  },

  "tensors that nobody disposed are freed when they are garbage": async ({ engine, device, heap }) => {
    // A megabyte each, or little on a GPU that is a CPU.
    const size = device === "cpu" ? 1 << 18 : 1 << 12;
    await collected(() => true);
    const before = held(engine, heap);
    const make = () => {
      for (let k = 0; k < 100; k++) {
        const x = engine.full([size], k, { requiresGrad: true });
        // A graph that keeps more than its handle.
        x.siluMul(2).sum().backward();
      }
    };
    make();
    const gone = await collected(() => engine.memory().tensors <= before.tensors);
    ok(gone, `${engine.memory().tensors - before.tensors} tensors are still there`);
    await engine.sync();
    const after = engine.memory();
    ok(after.bytesUsed <= before.bytesUsed, `${after.bytesUsed - before.bytesUsed} bytes are still in use`);
    // What was freed is used again.
    const top = held(engine, heap);
    for (let k = 0; k < 3; k++) {
      make();
      await collected(() => engine.memory().tensors <= before.tensors);
      await engine.sync();
    }
    const again = held(engine, heap);
    ok(again.heap <= top.heap + (8 << 20), `the module grew from ${top.heap} to ${again.heap}`);
  },

  "of thousands of tensors of one task each is freed once, by hand or as garbage": async ({ engine }) => {
    await collected(() => true);
    const before = engine.memory().tensors;
    // More than wait for the net to catch them; some are freed before it does, some after, most not at all.
    const make = () => {
      const held = [];
      for (let k = 0; k < 3000; k++) {
        const x = engine.zeros([1]);
        if (k % 5 === 0) x.dispose();
        if (k % 5 === 1) held.push(x);
      }
      return () => held.splice(0).forEach((x) => x.dispose());
    };
    const free = make();
    await pause();
    free();
    // Places of what was freed, which nothing may free again.
    const after = Array.from({ length: 1000 }, (_, k) => engine.full([1], k));
    const gone = await collected(() => engine.memory().tensors <= before + after.length);
    for (let k = 0; k < 5; k++) await collected(() => true);
    ok(gone, `${engine.memory().tensors - before} tensors are there, not ${after.length}`);
    equal(engine.memory().tensors, before + after.length, "tensors");
    const values = await Promise.all(after.map((x) => x.item()));
    values.forEach((got, k) => equal(got, k, `tensor ${k}`));
    for (const x of after) x.dispose();
  },

  "numbers beside tensors are what they are, however many, and take no memory that is counted": async ({
    engine,
  }) => {
    const x = engine.ones([3]);
    const half = engine.ones([3], { dtype: "f16" });
    const { bytesUsed } = engine.memory();
    // More numbers than are kept, and again.
    for (let round = 0; round < 2; round++) {
      for (let k = 0; k < 100; k++) {
        const number = k + 1 / 3;
        const results = [half.mul(number), x.mul(number)];
        near(await take(results[0]), Array(3).fill(number), { relative: 2 ** -11 }, `${number} in f16`);
        equal(await take(results[1]), Array(3).fill(Math.fround(number)), `${number}`);
      }
    }
    equal(await take(x.div(0)), Array(3).fill(Infinity), "divided by 0");
    equal(await take(x.div(-0)), Array(3).fill(-Infinity), "divided by -0");
    equal(await take(x.mul(NaN)), [NaN, NaN, NaN], "times NaN");
    await engine.sync();
    equal(engine.memory().bytesUsed, bytesUsed, "bytes in use");
    x.dispose();
    half.dispose();
  },

  "a tensor that is in use is not freed": async ({ engine }) => {
    const kept = engine.tensor([1, 2, 3]);
    const graph = (() => {
      const leaf = engine.tensor([2], { requiresGrad: true });
      return { leaf, y: leaf.mul(leaf).mul(leaf) };
    })();
    const reading = (() => engine.tensor([4, 5]).mul(2).data())();
    for (let k = 0; k < 5; k++) {
      globalThis.gc();
      await pause();
    }
    equal(await kept.data(), [1, 2, 3], "a tensor");
    graph.y.backward();
    near(await graph.leaf.grad.data(), [12], { relative: 1e-6 }, "a gradient through garbage");
    equal(await reading, [8, 10], "a read of garbage");
    for (const tensor of [kept, graph.leaf, graph.y]) tensor.dispose();
  },

  "an engine that nobody disposed is freed with its tensors when it is garbage": {
    // The module's memory is small in a page of its own, so that what stays shows.
    alone: true,
    async run({ wgrad, device, heap }) {
      const sizes = [];
      const use = async () => {
        const engine = await wgrad.init({ device });
        // Of the host's memory on both devices.
        const x = engine.tensor(new Float32Array(1 << 22).fill(2));
        equal((await x.narrow(0, 9, 1).data())[0], 2, "an element");
      };
      for (let k = 0; k < 12; k++) {
        await use();
        await collected(() => true);
        await collected(() => true);
        sizes.push(heap.bytes());
      }
      const growth = sizes.at(-1) - sizes[5];
      ok(growth <= 8 << 20, `the module grew by ${growth} bytes: ${sizes.join(", ")}`);
    },
  },

  "an engine that was disposed leaves nothing of tensors that were not": {
    // The module's memory is small in a page of its own, so that what stays shows.
    alone: true,
    async run({ wgrad, device, heap }) {
      const sizes = [];
      const use = async () => {
        const engine = await wgrad.init({ device });
        const x = engine.tensor(new Float32Array(1 << 22).fill(2));
        equal((await x.narrow(0, 9, 1).data())[0], 2, "an element");
        engine.dispose();
      };
      for (let k = 0; k < 12; k++) {
        await use();
        await collected(() => true);
        await collected(() => true);
        sizes.push(heap.bytes());
      }
      const growth = sizes.at(-1) - sizes[5];
      ok(growth <= 8 << 20, `the module grew by ${growth} bytes: ${sizes.join(", ")}`);
    },
  },

  "an optimizer that nobody disposed is freed when it is garbage": async ({ engine }) => {
    await collected(() => true);
    await engine.sync();
    const before = engine.memory().bytesUsed;
    const use = () =>
      engine.tidy(() => {
        const w = engine.zeros([1 << 16], { requiresGrad: true });
        const optimizer = engine.optim.adamw([w]);
        w.sum().backward();
        optimizer.step();
      });
    for (let k = 0; k < 10; k++) use();
    await engine.sync();
    const gone = await collected(() => engine.memory().bytesUsed <= before);
    ok(gone, `${engine.memory().bytesUsed - before} bytes of parameters and moments are still in use`);
  },
};

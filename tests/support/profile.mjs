// Bodies of tests/profile.test.mjs: what a profile tells of the calls inside it.
import { equal, fails, near, ok } from "./expect.mjs";

/** Profiles `f` with tensors of these shapes, which are freed afterwards. */
async function profiled(engine, shapes, f) {
  const tensors = shapes.map((shape) => engine.rand(shape));
  const profile = await engine.profile(() => engine.tidy(() => void f(...tensors)));
  for (const tensor of tensors) tensor.dispose();
  return profile;
}

const bytesOf = (profile) => profile.calls.map(({ bytes }) => bytes);
const namesOf = (profile) => profile.calls.map(({ kernel }) => kernel);

export const bodies = {
  "calls are counted and named in order": async ({ engine }) => {
    const profile = await profiled(engine, [[64, 64]], (a) => {
      for (let k = 0; k < 3; k++) a.siluMul(a);
      a.matmul(a);
    });
    equal(namesOf(profile), ["gated", "gated", "gated", "matmul"], "calls");
    const counts = Object.fromEntries(profile.kernels.map(({ kernel, calls }) => [kernel, calls]));
    equal([counts.gated, counts.matmul, profile.kernels.length], [3, 1, 2], "counts");
  },

  "bytes are those of distinct tensors, twice where they are changed": async ({ engine }) => {
    const size = 64 * 768 * 4;
    const gated = await profiled(
      engine,
      [
        [64, 768],
        [64, 768],
      ],
      (a, b) => {
        a.siluMul(b);
        a.siluMul(a);
      },
    );
    equal(bytesOf(gated), [3 * size, 2 * size], "a gate of two tensors, and of one with itself");
    equal(gated.kernels[0].bytes, 5 * size, "their sum");
    const copied = await profiled(engine, [[64, 768]], (a) => a.transpose(0, 1).reshape([768 * 64]));
    equal([namesOf(copied), bytesOf(copied)], [["copy"], [2 * size]], "a copy");

    const parameter = engine.zeros([1000], { requiresGrad: true });
    const optimizer = engine.optim.adamw([parameter]);
    const sum = parameter.sum();
    sum.backward();
    optimizer.step();
    const step = await engine.profile(() => optimizer.step());
    // The gradient, an expanded one, is made whole and read; the parameter and its two moments are read and written.
    equal(
      [namesOf(step), bytesOf(step)],
      [
        ["copy", "adamw"],
        [4 + 4000, 7 * 4000],
      ],
      "a step of AdamW",
    );
    for (const tensor of [parameter, parameter.grad, sum, optimizer]) tensor.dispose();
  },

  "operations of a matrix product": async ({ engine }) => {
    const shapes = [
      [5, 7],
      [7, 3],
      [4, 5, 7],
    ];
    const profile = await profiled(engine, shapes, (a, b, batches) => {
      a.matmul(b);
      b.transpose(0, 1).matmul(a.transpose(0, 1));
      batches.matmul(b);
      a.add(1);
    });
    const products = profile.calls.filter(({ kernel }) => kernel === "matmul");
    equal(products.map(({ flops }) => flops), [210, 210, 840], "2 m n k of each batch"); // prettier-ignore
    const others = profile.kernels.filter(({ kernel }) => kernel !== "matmul");
    ok(others.length > 0, "other kernels ran");
    for (const { kernel, flops, throughput } of others) {
      equal([flops, throughput], [0, null], `operations of ${kernel}`);
    }
  },

  "times are the device's, add up, and lie within the profile": async ({ engine }) => {
    const before = performance.now();
    const profile = await profiled(engine, [[256, 256]], (a) => {
      for (let k = 0; k < 20; k++) a.matmul(a).siluMul(a);
    });
    const took = performance.now() - before;
    let last = 0;
    for (const { kernel, start, time } of profile.calls) {
      ok(typeof start === "number" && typeof time === "number", `${kernel} has times`);
      ok(start >= last && time >= 0, `${kernel} at ${start} for ${time} ms, after ${last}`);
      ok(start + time <= took + 1e-6, `${kernel} until ${start + time} of ${took} ms`);
      last = start;
    }
    const sum = (list) => list.reduce((total, { time }) => total + time, 0);
    near(
      [profile.time, sum(profile.kernels)],
      [sum(profile.calls), profile.time],
      { relative: 1e-9 },
      "sums",
    );
    ok(profile.time > 0, `${profile.time} ms for 20 products of 256 × 256`);
    const [first, second] = profile.kernels;
    ok(first.time >= second.time, `${first.kernel} comes first`);
    const product = profile.kernels.find(({ kernel }) => kernel === "matmul");
    near(
      [product.bandwidth, product.throughput],
      [product.bytes / product.time / 1e6, product.flops / product.time / 1e6],
      { relative: 1e-9 },
      "GB/s and GFLOP/s",
    );
  },

  "a trace that viewers open": async ({ engine }) => {
    const before = performance.now();
    const profile = await profiled(engine, [[64, 64]], (a) => a.matmul(a).siluMul(a));
    const took = 1000 * (performance.now() - before);
    const { traceEvents, displayTimeUnit } = JSON.parse(JSON.stringify(profile.trace()));
    equal(displayTimeUnit, "ms", "unit");
    equal(traceEvents.map(({ name }) => name), ["matmul", "gated"], "names"); // prettier-ignore
    for (const { ph, ts, dur, pid, tid, args } of traceEvents) {
      equal([ph, typeof pid, typeof tid], ["X", "number", "number"], "a complete event");
      ok(ts >= 0 && dur >= 0 && ts + dur <= took + 1e-3, `${ts} + ${dur} of ${took} µs`);
      ok(args.bytes > 0, "bytes");
    }
    near([traceEvents[1].ts], [1000 * profile.calls[1].start], { relative: 1e-9 }, "microseconds");
  },

  "a table for consoles": async ({ engine }) => {
    const profile = await profiled(engine, [[64, 64]], (a) => a.matmul(a).siluMul(a));
    const lines = profile.toString().split("\n");
    equal(lines[0].trim().split(/\s+/), ["kernel", "calls", "ms", "%", "GB/s", "GFLOP/s"], "heads");
    equal(lines.length, 4, "a line for each kernel, and the sum");
    // Whatever the numbers, columns end in one place.
    equal(lines.slice(0, 3).map(({ length }) => length), Array(3).fill(lines[0].length), "widths"); // prettier-ignore
    for (const name of ["matmul", "gated"]) {
      ok(new RegExp(`^${name} +1 +[\\d.]+ `, "m").test(`${profile}`), `${name} in\n${profile}`);
    }
    ok(/^all +2 +[\d.]+$/m.test(`${profile}`), `the sum in\n${profile}`);
  },

  "an asynchronous function is waited for, with its reads": async ({ engine }) => {
    const x = engine.tensor([1, 2, 3]);
    let read;
    const profile = await engine.profile(async () => {
      const y = x.siluMul(x);
      read = await y.data();
      const z = x.siluMul(y);
      await new Promise((resolve) => setTimeout(resolve, 20));
      for (const tensor of [y, z, x.siluMul(x)]) tensor.dispose();
    });
    equal([read.length, namesOf(profile)], [3, Array(3).fill("gated")], "before and after waiting");
    ok(profile.calls[2].start - profile.calls[1].start >= 15, "a wait shows");
    x.dispose();
  },

  "work before and after is not in it": async ({ engine }) => {
    const x = engine.tensor([1, 2, 3]);
    const before = x.siluMul(x);
    const empty = await engine.profile(() => undefined);
    const after = x.siluMul(x);
    const next = await engine.profile(() => x.mul(x).dispose());
    equal([empty.calls.length, empty.kernels.length, empty.time], [0, 0, 0], "nothing");
    equal(empty.trace().traceEvents.length, 0, "a trace of nothing");
    equal(namesOf(next), ["binary"], "the next one");
    for (const tensor of [x, before, after]) tensor.dispose();
  },

  "profiles neither nest nor overlap": async ({ wgrad, engine }) => {
    const nested = async () => {
      await engine.profile(() => engine.profile(() => undefined));
    };
    await fails(wgrad, nested, "ArgumentError", ["profile", "nest"]);
    let finish;
    const first = engine.profile(() => new Promise((resolve) => (finish = resolve)));
    await fails(wgrad, () => engine.profile(() => undefined), "ArgumentError", ["under way"]);
    const x = engine.ones([3]);
    x.siluMul(x).dispose();
    finish();
    const { calls } = await first;
    ok(calls.some(({ kernel }) => kernel === "gated"), "the first one goes on"); // prettier-ignore
    x.dispose();
    await engine.profile(() => undefined);
  },

  "what the function throws is passed on, and the profile ends": async ({ wgrad, engine }) => {
    const own = new Error("own");
    for (const f of [
      () => {
        throw own;
      },
      () => Promise.reject(own),
    ]) {
      // prettier-ignore
      const caught = await engine.profile(f).catch((error) => error);
      ok(caught === own, `got ${caught}`);
      equal((await engine.profile(() => undefined)).calls.length, 0, "the next one");
    }
    const wrong = () => engine.profile(() => engine.ones([2]).add(engine.ones([3])));
    await fails(wgrad, wrong, "ShapeError", ["add"]);
  },

  "an engine that is disposed meanwhile": async ({ wgrad, device }) => {
    const engine = await wgrad.init({ device });
    await fails(wgrad, () => engine.profile(() => engine.dispose()), "DisposedError", []);
    await fails(wgrad, () => engine.profile(() => undefined), "DisposedError", []);
  },

  "what is no function is refused": async ({ wgrad, engine }) => {
    for (const wrong of [undefined, null, 1, {}, Promise.resolve()]) {
      await fails(wgrad, () => engine.profile(wrong), "ArgumentError", ["profile", "function"]);
    }
  },

  "more calls than a list has each have their time": async ({ engine }) => {
    const x = engine.ones([8]);
    const profile = await engine.profile(() => {
      for (let k = 0; k < 700; k++) x.mul(x).dispose();
    });
    equal(profile.calls.length, 700, "calls");
    ok(profile.calls.every(({ time }) => time !== null), "each has a time"); // prettier-ignore
    x.dispose();
  },

  "work beside it is in it with its time, or not at all": async ({ engine }) => {
    const x = engine.ones([8]);
    let going = true;
    const beside = (async () => {
      while (going) {
        const y = x.add(x);
        await y.data();
        y.dispose();
      }
    })();
    for (let k = 0; k < 5; k++) {
      const profile = await engine.profile(async () => {
        const y = x.mul(x);
        await y.data();
        y.dispose();
      });
      const untimed = profile.calls.filter(({ time }) => time === null);
      equal(untimed.length, 0, `calls without a time, of ${profile.calls.length}`);
    }
    going = false;
    await beside;
    x.dispose();
  },

  "a warm-up leaves nothing behind, and a second run makes nothing": async ({ wgrad, engine, device }) => {
    const x = engine.randn([48, 40]);
    const before = engine.memory().tensors;
    let kept;
    const infer = () => engine.tidy(() => engine.noGrad(() => x.layerNorm().siluMul(x).sum()));
    await engine.warmup(infer);
    equal(engine.memory().tensors, before, "tensors");
    const { objectsCreated } = engine.memory();
    infer().dispose();
    await engine.sync();
    equal(engine.memory().objectsCreated, objectsCreated, `objects made on ${device}`);
    await engine.warmup(async () => {
      const y = x.mul(3);
      await new Promise((resolve) => setTimeout(resolve, 1));
      kept = y.add(1);
      y.dispose();
    });
    equal((await kept.data()).length, 48 * 40, "what an asynchronous function made is its own");
    for (const wrong of [undefined, null, 1, {}]) {
      await fails(wgrad, () => engine.warmup(wrong), "ArgumentError", ["warmup", "function"]);
    }
    const own = new Error("on purpose");
    const caught = await engine.warmup(() => Promise.reject(own)).catch((error) => error);
    ok(caught === own, `it passes on what the function throws, not ${caught}`);
    for (const tensor of [x, kept]) tensor.dispose();
  },
};

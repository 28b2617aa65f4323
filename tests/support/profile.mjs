// Bodies of tests/profile.test.mjs: what kernels cost.
import { equal, fails, ok, works } from "./expect.mjs";

const of = (profile, kernel) => profile.kernels.find((k) => k.kernel === kernel);

export const bodies = {
  "calls, bytes and operations are counted, and times are told": async ({ wgrad, engine, device }) => {
    const [a, b] = [engine.ones([64, 768]), engine.ones([64, 768])];
    const w = engine.ones([32, 768]);
    // What was queued before is not in it.
    a.layerNorm().dispose();
    const profile = await engine.profile(() => {
      for (let k = 0; k < 3; k++) a.siluMul(b).dispose();
      a.siluMul(a).dispose();
      a.linear(w).dispose();
    });
    ok(profile instanceof wgrad.Profile, "a Profile");
    equal(profile.kernels.map((k) => k.kernel).sort(), ["gated", "matmul"], "kernels");
    const [gated, matmul] = [of(profile, "gated"), of(profile, "matmul")];
    equal([gated.calls, matmul.calls, profile.calls.length], [4, 1, 5], "calls");
    const n = 4 * 64 * 768;
    // Three tensors a call; one of them stands for two in the last.
    equal(gated.bytes, 3 * (3 * n) + 2 * n, "bytes of gated");
    equal(gated.flops, 0, "operations of gated");
    equal(matmul.bytes, n + 4 * 32 * 768 + 4 * 64 * 32, "bytes of matmul");
    equal(matmul.flops, 2 * 64 * 32 * 768, "operations of matmul");
    equal(
      profile.calls.map((call) => call.kernel),
      ["gated", "gated", "gated", "gated", "matmul"],
      "calls in order",
    );
    // SwiftShader has timestamps too.
    let last = 0;
    for (const { start, time } of profile.calls) {
      ok(time >= 0 && time < 10_000, `${time} ms`);
      ok(start >= last, `a start of ${start} ms after ${last} ms`);
      last = start;
    }
    equal(profile.calls[0].start, 0, "the first start");
    const total = profile.calls.reduce((sum, call) => sum + call.time, 0);
    ok(total > 0, `${device} takes time`);
    ok(Math.abs(profile.time - total) <= 1e-9 * total, "the sum");
    const rate = matmul.flops / matmul.time / 1e6;
    ok(Math.abs(matmul.throughput - rate) <= 1e-9 * rate || matmul.time === 0, "GFLOP/s");
    equal(gated.throughput, null, "GFLOP/s of gated");
    for (const tensor of [a, b, w]) tensor.dispose();
  },

  "a profile is a table and a trace": async ({ engine }) => {
    const x = engine.ones([64, 64]);
    const profile = await engine.profile(() => {
      for (let k = 0; k < 3; k++) x.matmul(x).dispose();
      x.add(1).dispose();
    });
    const lines = String(profile).split("\n");
    ok(/^kernel +calls +ms +share +GB\/s +GFLOP\/s$/.test(lines[0]), lines[0]);
    equal(lines.length, profile.kernels.length + 2, "lines");
    ok(
      lines.some((line) => /^matmul +3 +\d/.test(line)),
      String(profile),
    );
    ok(new RegExp(`^all +${profile.calls.length} `).test(lines.at(-1)), lines.at(-1));
    const { traceEvents } = JSON.parse(JSON.stringify(profile.trace()));
    equal(traceEvents.length, profile.calls.length, "events");
    traceEvents.forEach(({ name, ph, ts, dur, pid, tid }, k) => {
      const call = profile.calls[k];
      equal([name, ph, ts, dur], [call.kernel, "X", 1000 * call.start, 1000 * call.time], `event ${k}`);
      ok(Number.isInteger(pid) && Number.isInteger(tid), "a process and a thread");
    });
    x.dispose();
  },

  "more calls than a list has, of an asynchronous function that reads": async ({ engine }) => {
    const x = engine.ones([8]);
    const values = [];
    const profile = await engine.profile(async () => {
      for (let k = 0; k < 700; k++) {
        const y = x.mul(x);
        if (k % 100 === 0) values.push((await y.data())[7]);
        y.dispose();
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
      x.add(x).dispose();
    });
    equal(profile.calls.length, 701, "calls");
    ok(profile.calls.every(({ time }) => time >= 0), "each has a time"); // prettier-ignore
    equal(values, new Array(7).fill(1), "the values read meanwhile");
    x.dispose();
  },

  "nothing is noted but while a profile is taken": async ({ engine }) => {
    const x = engine.ones([8]);
    x.add(1).dispose();
    const none = await engine.profile(() => undefined);
    equal([none.calls.length, none.kernels.length, none.time], [0, 0, null], "an empty profile");
    equal(none.trace().traceEvents, [], "its trace");
    ok(String(none).includes("all"), "its table");
    x.add(1).dispose();
    const one = await engine.profile(() => x.add(x).dispose());
    equal(one.calls.length, 1, "calls of the second");
    x.dispose();
  },

  "wrong use is a typed error, and the engine goes on": async ({ wgrad, engine }) => {
    for (const wrong of [undefined, null, 3, "f", {}]) {
      await fails(wgrad, () => engine.profile(wrong), "ArgumentError", ["profile"]);
      await fails(wgrad, () => engine.warmup(wrong), "ArgumentError", ["warmup"]);
    }
    const own = new Error("on purpose");
    for (const f of [
      () => {
        throw own;
      },
      async () => {
        throw own;
      },
    ]) {
      // prettier-ignore
      for (const method of ["profile", "warmup"]) {
        const caught = await engine[method](f).catch((error) => error);
        ok(caught === own, `${method} passes on what f throws, not ${caught}`);
      }
    }
    const inner = await engine.profile(() =>
      fails(wgrad, () => engine.profile(() => 1), "ArgumentError", ["profile"]),
    );
    equal(inner.calls.length, 0, "calls");
    await works(engine);
    ok((await engine.profile(() => works(engine))).calls.length >= 2, "a profile afterwards");
  },

  "a warm-up leaves nothing behind, and a second run makes nothing": async ({ engine, device }) => {
    const x = engine.randn([48, 40], { requiresGrad: true });
    const before = engine.memory().tensors;
    let kept;
    await engine.warmup(() => {
      x.grad = null;
      x.layerNorm().siluMul(x).sum().backward();
      return x.add(1);
    });
    equal(engine.memory().tensors, before, "tensors");
    await engine.warmup(async () => {
      const y = x.mul(3);
      await new Promise((resolve) => setTimeout(resolve, 1));
      kept = y.add(1);
      y.dispose();
    });
    equal((await kept.data()).length, 48 * 40, "what an asynchronous function made is its own");
    const infer = () => engine.tidy(() => engine.noGrad(() => void x.layerNorm().siluMul(x).sum()));
    await engine.warmup(infer);
    const { objectsCreated } = engine.memory();
    infer();
    await engine.sync();
    equal(engine.memory().objectsCreated, objectsCreated, `objects made on ${device}`);
    for (const tensor of [x, kept]) tensor.dispose();
  },
};

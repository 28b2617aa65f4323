// What kernels cost, on every engine. tests/support/profile.mjs has the bodies.
import assert from "node:assert/strict";
import { test } from "node:test";
import { everywhere, packageUrl } from "./support/everywhere.mjs";

test("a device without timestamps: calls and bytes, no times", async () => {
  const { Profile } = await import(packageUrl);
  const call = (kernel, flops) => ({ kernel, start: null, time: null, bytes: 8, flops });
  const profile = new Profile([call("copy", 0), call("matmul", 54), call("matmul", 54)]);
  const unknown = { time: null, bandwidth: null, throughput: null };
  assert.deepEqual(profile.kernels, [
    { kernel: "matmul", calls: 2, bytes: 16, flops: 108, ...unknown },
    { kernel: "copy", calls: 1, bytes: 8, flops: 0, ...unknown },
  ]);
  assert.equal(profile.time, null);
  assert.match(profile.toString(), /^matmul +2 +– +– +– +–$/m);
  assert.deepEqual(profile.trace().traceEvents, []);
});

await everywhere("profile.mjs");

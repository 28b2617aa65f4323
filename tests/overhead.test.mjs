// What a recorded call may cost the page, in the unit of a loop over WebGPU written by hand (bench/overhead.mjs).
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { folders, openTestPage } from "./support/everywhere.mjs";

/** More than 6 would be too much; about 3 it is, and was 4 before tensors of one task were kept out of the net. */
const LIMIT = 5;

/** Of so many batches one is undisturbed, on a machine with other work too. */
const BATCHES = 24;

// Runs in the page.
async function inPage(batches) {
  const [{ init }, { overhead }] = await Promise.all([
    import("/dist/index.js"),
    import("/bench/overhead.mjs"),
  ]);
  const engine = await init({ device: "webgpu" });
  return overhead(engine, batches);
}

test(`a recorded call costs the page at most ${LIMIT} times one written by hand`, async (t) => {
  const bench = fileURLToPath(new URL("../bench", import.meta.url));
  const { page, problems, close } = await openTestPage({ folders: { ...folders, "/bench/": bench } });
  try {
    const { hand, own, ratio } = await page.evaluate(inPage, BATCHES);
    assert.deepEqual(problems, []);
    const microseconds = (ms) => `${(ms * 1e3).toFixed(2)} µs`;
    const text = `${microseconds(own)} against ${microseconds(hand)}: ${ratio.toFixed(2)} times`;
    assert.ok(ratio <= LIMIT, text);
    t.diagnostic(text);
  } finally {
    await close();
  }
});

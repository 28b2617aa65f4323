// The README's examples are the code that runs: the first one here, the second one in the demo.
import assert from "node:assert/strict";
import { readFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { transform } from "esbuild";
import { root } from "../scripts/lib/process.mjs";

const readme = readFileSync(join(root, "README.md"), "utf8");
const blocks = [...readme.matchAll(/```(?:js|ts)\n([\s\S]*?)```/g)].map((m) => m[1]);
const entry = pathToFileURL(join(root, "dist", "index.js")).href;

/** Runs a module of this source; "wgrad" is the built package. */
async function run(source) {
  const folder = mkdtempSync(join(tmpdir(), "wgrad-readme-"));
  try {
    const { code } = await transform(source, { loader: "ts", format: "esm" });
    const file = join(folder, "example.mjs");
    writeFileSync(file, code.replaceAll('"wgrad"', JSON.stringify(entry)));
    return await import(pathToFileURL(file).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("the first example runs and prints what it should", async (t) => {
  const lines = t.mock.method(console, "log", () => undefined);
  await run(blocks[0]);
  const [values, gradient, device, reason] = lines.mock.calls[0].arguments;
  const near = (got, want) =>
    want.forEach((w, k) => assert.ok(Math.abs(got[k] - w) < 1e-5, `${got} is not ${want}`));
  near(values, [2.193175736, -0.0596014599, -0.3112296656]);
  near(gradient, [2.783011536, -0.04539212439, 2.959844749]);
  assert.equal(device, "cpu");
  assert.match(reason, /WebGPU/);
});

test("the second example is the demo's model, and its training step lowers the loss", async () => {
  assert.equal(blocks[1], readFileSync(join(root, "www", "src", "model.ts"), "utf8"));
  const source = `import { init } from "wgrad";
    const engine = await init();
    ${blocks[1]}
    ${blocks[2]}
    const images = Float32Array.from({ length: 4 * 64 }, (_, k) => (k * 37 % 17) / 16);
    const labels = Int32Array.of(3, 1, 4, 1);
    export const losses = [];
    for (let k = 0; k < 20; k++) losses.push(await step(images, labels).item());`;
  const { losses } = await run(source);
  assert.ok(losses[0] > 1 && losses[19] < losses[0] / 4, `losses ${losses}`);
});

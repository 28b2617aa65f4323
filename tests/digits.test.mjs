// The demo's network learns the digits: alike on both devices, and well.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { folders, openTestPage, packageUrl } from "./support/everywhere.mjs";
import { train } from "./support/training.mjs";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const bytes = new Uint8Array(readFileSync(at("../www/public/digits.bin")));

/** The losses that are compared. */
const steps = 30;

let demo;
let opened;
before(async () => {
  // The demo's own model and data, which is TypeScript.
  const contents = `export * from "./model.ts"; export * from "./data.ts";`;
  const stdin = { contents, resolveDir: at("../www/src"), loader: "ts" };
  const { outputFiles } = await build({
    stdin,
    bundle: true,
    write: false,
    format: "esm",
    external: ["wgrad"],
  });
  demo = `data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`;
  opened = await openTestPage({ folders: { ...folders, "/public/": at("../www/public") } });
});
after(() => opened?.close());

/** Trains in the page, on `device`, in an engine with further options. */
function trainInPage(device, options, more = {}) {
  return opened.page.evaluate(
    async ({ device, options, demo, more }) => {
      const [{ init }, { train }, modules, response] = await Promise.all([
        import("/dist/index.js"),
        import("/tests/support/training.mjs"),
        import(demo),
        fetch("/public/digits.bin"),
      ]);
      const engine = await init({ device, ...more });
      const bytes = new Uint8Array(await response.arrayBuffer());
      const result = await train(engine, modules, bytes, options);
      await engine.sync();
      const memory = engine.memory();
      engine.dispose();
      return { ...result, ...memory };
    },
    { device, options, demo, more },
  );
}

async function trainInNode(options) {
  const { init } = await import(packageUrl);
  const engine = await init({ device: "cpu" });
  const result = await train(engine, await import(demo), bytes, options);
  const { tensors } = engine.memory();
  engine.dispose();
  return { ...result, tensors };
}

test("the losses of the first steps are the same on CPU and WebGPU", async () => {
  const cpu = await trainInPage("cpu", { steps });
  const webgpu = await trainInPage("webgpu", { steps });
  const node = await trainInNode({ steps });
  assert.deepEqual(node.losses, cpu.losses, "the CPU is the same everywhere");
  assert.equal(webgpu.losses.length, steps);
  const differences = cpu.losses.map((loss, step) => Math.abs(loss - webgpu.losses[step]));
  const worst = Math.max(...differences);
  console.log(`losses of ${steps} steps on CPU and WebGPU: at most ${worst.toExponential(2)} apart`);
  assert.ok(worst <= 1e-3, `step ${differences.indexOf(worst)} is ${worst} apart`);
  // It learns, so these are no constants.
  assert.ok(cpu.losses[0] > 2 && cpu.losses[steps - 1] < 0.5 * cpu.losses[0], String(cpu.losses));
  for (const { tensors } of [cpu, webgpu, node]) assert.equal(tensors, 0, "tensors left over");
  assert.deepEqual(opened.problems, []);
});

test("the same seed gives the same losses bit by bit, another seed others", async () => {
  const [first, second] = [
    await trainInPage("webgpu", { steps: 5 }),
    await trainInPage("webgpu", { steps: 5 }),
  ];
  assert.deepEqual(second.losses, first.losses);
  const other = await trainInPage("webgpu", { steps: 5, seed: 1 });
  assert.notDeepEqual(other.losses, first.losses);
});

test("no step is lost or another where freed memory is never kept", async () => {
  for (const device of ["cpu", "webgpu"]) {
    const usual = await trainInPage(device, { steps });
    const squeezed = await trainInPage(device, { steps }, { cacheBytes: 0 });
    assert.deepEqual(squeezed.losses, usual.losses, device);
    assert.equal(squeezed.tensors, 0, `${device}: tensors left over`);
    assert.ok(usual.bytesAllocated > usual.bytesUsed, `${device}: nothing is kept as a rule`);
    assert.equal(squeezed.bytesAllocated, squeezed.bytesUsed, `${device}: bytes kept`);
  }
});

test("15 epochs on the CPU read 97 % of 360 held-out digits", async () => {
  const started = performance.now();
  const { accuracies, losses, held } = await trainInNode({ epochs: 15 });
  const seconds = (performance.now() - started) / 1000;
  console.log(`15 epochs in Node: ${accuracies.map((a) => a.toFixed(3)).join(" ")}; ${seconds.toFixed(1)} s`);
  assert.equal(held, 360);
  assert.equal(accuracies.length, 15);
  assert.ok(Math.max(...accuracies) >= 0.97, `${Math.max(...accuracies)} at best`);
  assert.ok(accuracies.at(-1) >= 0.96, `${accuracies.at(-1)} in the end`);
  assert.ok(losses.every(Number.isFinite));
});

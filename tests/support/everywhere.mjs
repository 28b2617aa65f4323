// Runs test bodies on every engine: on the CPU in Node, on the CPU in Chromium and on WebGPU in Chromium.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { openPage } from "./browser.mjs";
import { watchHeap, works } from "./expect.mjs";

const folder = (path) => fileURLToPath(new URL(path, import.meta.url));

/** The folders that pages of these tests read: the built package and the tests themselves. */
export const folders = { "/dist/": folder("../../dist"), "/tests/": folder("..") };

/** The built package, as Node imports it. */
export const packageUrl = new URL("../../dist/index.js", import.meta.url).href;

/** The longest that one test may take. */
const timeout = 120_000;

/** Opens a page that can import the package and the tests. */
export const openTestPage = (options = {}) => openPage({ folders, ...options });

/**
 * Runs one body of a module of bodies in a page, in an engine that the bodies of the page share, and looks whether
 * that still computes afterwards.
 */
export function runInPage(page, file, name, device) {
  return page.evaluate(inPage, { file: `/tests/support/${file}`, name, device });
}

// Runs in the page.
async function inPage({ file, name, device }) {
  const [wgrad, { bodies }, { watchHeap, works }] = await Promise.all([
    import("/dist/index.js"),
    import(file),
    import("/tests/support/expect.mjs"),
  ]);
  globalThis.engines ??= {};
  globalThis.heap ??= watchHeap();
  const engine = (globalThis.engines[device] ??= await wgrad.init({ device }));
  const body = bodies[name];
  await (body.run ?? body)({ wgrad, engine, device, heap: globalThis.heap });
  await works(engine);
}

/**
 * One test for each body of tests/support/`file` and each engine. A body is a function of
 * `{ wgrad, engine, device, heap }`, or `{ run, alone, devices }`: `alone` gives it a page of its own, since it may take the module down with it;
 * `devices` names those it is for. `args` are for the browser.
 */
export async function everywhere(file, { args } = {}) {
  const { bodies } = await import(new URL(file, import.meta.url).href);
  describe("CPU in Node", () => inNode(bodies));
  for (const device of ["cpu", "webgpu"]) {
    const title = { cpu: "CPU in Chromium", webgpu: "WebGPU in Chromium" }[device];
    describe(title, () => inChromium(bodies, file, device, args));
  }
}

const isFor = (body, device) => body.devices === undefined || body.devices.includes(device);

function inNode(bodies) {
  let wgrad;
  let engine;
  let heap;
  before(async () => {
    heap = watchHeap();
    wgrad = await import(packageUrl);
    engine = await wgrad.init({ device: "cpu" });
  });
  for (const [name, body] of Object.entries(bodies)) {
    if (!isFor(body, "node") || !isFor(body, "cpu")) continue;
    // What may break the module would break it for all of this process.
    if (body.alone) continue;
    test(name, { timeout }, async () => {
      await (body.run ?? body)({ wgrad, engine, device: "cpu", heap });
      await works(engine);
    });
  }
}

function inChromium(bodies, file, device, args) {
  let opened;
  before(async () => {
    opened = await openTestPage({ args });
  });
  after(() => opened?.close());
  for (const [name, body] of Object.entries(bodies)) {
    if (!isFor(body, device)) continue;
    test(name, { timeout }, async () => {
      const page = body.alone ? await opened.context.newPage() : opened.page;
      if (body.alone) await page.goto(`${opened.url}blank.html`);
      try {
        await runInPage(page, file, name, device);
      } finally {
        if (body.alone) await page.close();
        // A trap in the module, or a complaint of the GPU, shows here.
        assert.deepEqual(opened.problems.splice(0), []);
      }
    });
  }
}

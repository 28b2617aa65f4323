// Importing the package does nothing, with or without a page, and a process that used it ends.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, test } from "node:test";
import { packageUrl } from "./support/everywhere.mjs";
import { pagesOfTheirOwn } from "./support/pages.mjs";

const timeout = 60_000;
const { opened } = pagesOfTheirOwn();

describe("importing", () => {
  test(
    "a page hears nothing of it: no request, no look at navigator, no WebAssembly",
    { timeout },
    async () => {
      const page = await opened().context.newPage();
      const requests = [];
      page.on("request", (request) => requests.push(new URL(request.url()).pathname));
      try {
        await page.goto(`${opened().url}blank.html`);
        requests.length = 0;
        const touched = await page.evaluate(async () => {
          const touched = [];
          const trap = (object, name) => {
            let owner = object;
            while (!Object.hasOwn(owner, name)) owner = Object.getPrototypeOf(owner);
            const before = Object.getOwnPropertyDescriptor(owner, name);
            Object.defineProperty(object, name, {
              configurable: true,
              get() {
                touched.push(name);
                return before.get ? before.get.call(object) : before.value;
              },
            });
          };
          const names = ["navigator", "fetch", "WebAssembly", "atob", "setTimeout", "Worker", "indexedDB"];
          for (const name of [...names, "localStorage", "queueMicrotask", "requestAnimationFrame"]) {
            trap(globalThis, name);
          }
          const globals = Object.getOwnPropertyNames(globalThis).length;
          await import("/dist/index.js");
          await Promise.resolve();
          const more = Object.getOwnPropertyNames(globalThis).length - globals;
          if (more > 0) touched.push(`${more} globals`);
          return touched;
        });
        assert.deepEqual(touched, []);
        assert.deepEqual(requests, ["/dist/index.js"]);
      } finally {
        await page.close();
      }
    },
  );

  test("Node without navigator: no side effects, and the CPU engine works", () => {
    const program = `
      delete globalThis.navigator;
      for (const name of ["fetch", "WebAssembly", "setTimeout"]) {
        const value = globalThis[name];
        Object.defineProperty(globalThis, name, { configurable: true, get() {
          if (!globalThis.quiet) throw new Error("importing touched " + name);
          return value;
        } });
      }
      const before = Object.getOwnPropertyNames(globalThis).join();
      const { init } = await import(${JSON.stringify(packageUrl)});
      if (Object.getOwnPropertyNames(globalThis).join() !== before) throw new Error("new globals");
      globalThis.quiet = true;
      const engine = await init();
      if (typeof navigator !== "undefined") throw new Error("there is a navigator now");
      const y = await engine.tensor([1, 2]).mul(3).data();
      await init({ device: "webgpu" }).then(
        () => { throw new Error("no webgpu here"); },
        (error) => { if (error.code !== "UnsupportedError") throw error; },
      );
      console.log(JSON.stringify([engine.device, engine.fallbackReason, ...y]));`;
    const { stdout, stderr, status } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
      encoding: "utf8",
    });
    assert.equal(stderr, "");
    assert.equal(status, 0);
    const [device, reason, ...values] = JSON.parse(stdout);
    assert.equal(device, "cpu");
    assert.match(reason, /navigator\.gpu/);
    assert.deepEqual(values, [3, 6]);
  });

  test("a process that made engines ends by itself", () => {
    const program = `
      const { init } = await import(${JSON.stringify(packageUrl)});
      const engine = await init({ timeoutMs: 60000 });
      await engine.ones([3]).data();`;
    const started = performance.now();
    const { status } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
      timeout: 20_000,
    });
    assert.equal(status, 0);
    assert.ok(performance.now() - started < 10_000, "it waited for something");
  });
});

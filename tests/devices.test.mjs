// Devices that are missing, late or someone else's; many engines; workers.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pagesOfTheirOwn } from "./support/pages.mjs";

const timeout = 60_000;

const { inPage } = pagesOfTheirOwn();

/* global wgrad, expect -- in a page */

describe("without an adapter or a device", () => {
  /** Ways not to have one, as functions that run in the page, and what the engine should say of each. */
  const ways = {
    "no gpu property": { words: /navigator\.gpu/, mock: () => define({ value: undefined }) },
    "gpu is null": { words: /navigator\.gpu/, mock: () => define({ value: null }) },
    "reading gpu throws": {
      words: /no gpu for you/,
      mock: () => define({ get: () => fail("no gpu for you") }),
    },
    "requestAdapter gives null": { words: /no adapter/, mock: () => adapter(async () => null) },
    "requestAdapter gives undefined": { words: /no adapter/, mock: () => adapter(async () => undefined) },
    "requestAdapter rejects": {
      words: /adapter.*rejected on purpose/,
      mock: () => adapter(async () => fail("rejected on purpose")),
    },
    "requestAdapter rejects with a word": {
      words: /adapter.*just a word/,
      mock: () => adapter(() => Promise.reject("just a word")),
    },
    "requestAdapter throws": {
      words: /adapter.*thrown on purpose/,
      mock: () => adapter(() => fail("thrown on purpose")),
    },
    "requestAdapter is no function": { words: /adapter/, mock: () => define({ value: {} }) },
    "requestAdapter never settles": {
      words: /requestAdapter.*200 ms/,
      mock: () => adapter(() => new Promise(() => undefined)),
    },
    "requestDevice rejects": {
      words: /device.*rejected on purpose/,
      mock: () => device(async () => fail("rejected on purpose")),
    },
    "requestDevice throws": {
      words: /device.*thrown on purpose/,
      mock: () => device(() => fail("thrown on purpose")),
    },
    "requestDevice gives null": { words: /device/, mock: () => device(async () => null) },
    "requestDevice never settles": {
      words: /requestDevice.*200 ms/,
      mock: () => device(() => new Promise(() => undefined)),
    },
  };

  /** What the mocks use. */
  function helpers() {
    globalThis.fail = (message) => {
      throw new Error(message);
    };
    globalThis.define = (descriptor) =>
      Object.defineProperty(navigator, "gpu", { configurable: true, ...descriptor });
    globalThis.adapter = (requestAdapter) => define({ value: { requestAdapter } });
    globalThis.device = (requestDevice) =>
      adapter(async () => ({
        info: { vendor: "mock", architecture: "none", description: "a mock", isFallbackAdapter: false },
        features: new Set(),
        limits: {},
        requestDevice,
      }));
  }

  /* global define, adapter, device, fail -- in a page */

  for (const [name, { words, mock }] of Object.entries(ways)) {
    test(name, { timeout }, async () => {
      const got = await inPage(tryAll, { mock: String(mock), helpers: String(helpers) });
      assert.equal(got.auto.device, "cpu");
      assert.match(got.auto.fallbackReason, words);
      assert.ok(got.auto.ms < 3000, `${got.auto.ms} ms`);
      assert.equal(got.webgpu.code, "UnsupportedError");
      assert.match(got.webgpu.message, /^init: /);
      assert.match(got.webgpu.message, words);
      assert.equal(got.cpu, null, "the CPU that was asked for has no reason");
      assert.equal(got.same, true, "navigator.gpu is as it was");
    });
  }

  async function tryAll({ mock, helpers }) {
    (0, eval)(`(${helpers})()`);
    (0, eval)(`(${mock})()`);
    const before = Object.getOwnPropertyDescriptors(navigator);
    const options = { timeoutMs: 200 };
    const started = performance.now();
    const auto = await wgrad.init(options);
    const ms = performance.now() - started;
    await expect.works(auto, "the engine of auto");
    let failure;
    try {
      await wgrad.init({ ...options, device: "webgpu" });
    } catch (error) {
      failure = error;
    }
    expect.ok(failure instanceof wgrad.UnsupportedError, `webgpu: ${failure}`);
    const cpu = await wgrad.init({ ...options, device: "cpu" });
    await expect.works(cpu, "the engine of cpu");
    const after = Object.getOwnPropertyDescriptors(navigator);
    return {
      auto: { device: auto.device, fallbackReason: auto.fallbackReason, ms },
      webgpu: { code: failure.code, message: failure.message },
      cpu: cpu.fallbackReason,
      same:
        Object.keys(before).join() === Object.keys(after).join() &&
        ["value", "get", "set", "writable", "enumerable", "configurable"].every(
          (key) => before.gpu[key] === after.gpu[key],
        ),
    };
  }

  test("a device that comes too late is given back", { timeout }, () =>
    inPage(async () => {
      const { gpu } = navigator;
      let made;
      const requestAdapter = async (options) => {
        const adapter = await gpu.requestAdapter(options);
        const requestDevice = async (descriptor) => {
          await new Promise((resolve) => setTimeout(resolve, 400));
          return (made = await adapter.requestDevice(descriptor));
        };
        const { info, features, limits } = adapter;
        return { info, features, limits, requestDevice };
      };
      Object.defineProperty(navigator, "gpu", { configurable: true, value: { requestAdapter } });
      const options = { device: "webgpu", timeoutMs: 200 };
      await expect.fails(wgrad, () => wgrad.init(options), "UnsupportedError", ["requestDevice", "200 ms"]);
      for (let k = 0; k < 100 && !made; k++) await new Promise((resolve) => setTimeout(resolve, 20));
      const info = await expect.within(made.lost, 5000, "the late device");
      expect.equal(info.reason, "destroyed", "what became of it");
    }),
  );

  test("a time-out without end, or past what timers can, is no time-out at once", { timeout }, () =>
    inPage(async () => {
      for (const timeoutMs of [2 ** 31, 2 ** 40, Infinity]) {
        const engine = await wgrad.init({ device: "webgpu", timeoutMs });
        expect.equal(engine.device, "webgpu", `timeoutMs ${timeoutMs}`);
        engine.dispose();
      }
    }),
  );

  test("an adapter without info is none that is known to be software", { timeout }, () =>
    inPage(async () => {
      const { gpu } = navigator;
      const requestAdapter = async () => {
        const adapter = await gpu.requestAdapter();
        const requestDevice = (descriptor) => adapter.requestDevice(descriptor);
        return { features: adapter.features, limits: adapter.limits, requestDevice };
      };
      Object.defineProperty(navigator, "gpu", { configurable: true, value: { requestAdapter } });
      const engine = await wgrad.init();
      expect.equal(engine.device, "webgpu", "device");
      expect.equal(engine.adapter.vendor, "", "vendor");
      await expect.works(engine);
    }),
  );
});

test("auto leaves a software adapter aside and says so; webgpu takes it", { timeout }, () =>
  inPage(async () => {
    const auto = await wgrad.init();
    expect.equal(auto.device, "cpu", "device");
    expect.equal(auto.adapter, null, "adapter");
    expect.ok(/software.*swiftshader/i.test(auto.fallbackReason), auto.fallbackReason);
    expect.equal(auto.gpuDevice, null, "gpuDevice");
    expect.ok(auto.features.has("simd"), "simd");
    const gpu = await wgrad.init({ device: "webgpu" });
    expect.equal(gpu.device, "webgpu", "device");
    expect.equal(gpu.fallbackReason, null, "fallbackReason");
    expect.equal(gpu.adapter.isFallback, true, "isFallback");
    expect.ok(/swiftshader/i.test(JSON.stringify(gpu.adapter)), JSON.stringify(gpu.adapter));
    expect.ok(gpu.gpuDevice instanceof GPUDevice, "gpuDevice");
    expect.ok(gpu.features instanceof Set && gpu.features.size > 0, "features");
    for (const engine of [auto, gpu]) await expect.works(engine);
  }),
);

test("navigator.gpu and all around it are exactly as before", { timeout }, () =>
  inPage(async () => {
    const snapshot = () =>
      [globalThis, navigator, Navigator.prototype, navigator.gpu, GPU.prototype].map((object) =>
        Object.getOwnPropertyNames(object)
          .filter((name) => !["wgrad", "expect"].includes(name))
          .map((name) => {
            const { value, get, set, ...flags } = Object.getOwnPropertyDescriptor(object, name);
            // Values of window come and go (event, and such); what matters there are the names.
            return object === globalThis ? [name] : [name, value, get, set, JSON.stringify(flags)];
          }),
      );
    const before = snapshot();
    const { gpu } = navigator;
    const one = await wgrad.init({ device: "webgpu" });
    await Promise.all([wgrad.init({ device: "webgpu" }), wgrad.init(), wgrad.init({ device: "webgpu" })]);
    await wgrad.init({ gpuDevice: one.gpuDevice });
    expect.ok(navigator.gpu === gpu, "the same gpu");
    const after = snapshot();
    before.forEach((object, k) => {
      expect.equal(after[k].length, object.length, `properties of object ${k}`);
      object.forEach((property, j) => expect.equal(after[k][j], property, `property ${property[0]}`));
    });
  }),
);

test("many inits at once, of both devices, make engines that do not mix", { timeout }, () =>
  inPage(async () => {
    const heap = expect.watchHeap();
    const kinds = ["cpu", "webgpu", "auto", "webgpu", "cpu", "webgpu", "cpu", "auto"];
    const engines = await Promise.all(kinds.map((device) => wgrad.init({ device })));
    expect.equal(heap.instances(), 1, "instances of the module");
    expect.equal(
      engines.map((engine) => engine.device),
      kinds.map((device) => (device === "auto" ? "cpu" : device)),
      "devices",
    );
    await Promise.all(engines.map((engine) => expect.works(engine)));
    expect.equal(new Set(engines.map((engine) => engine.gpuDevice).filter(Boolean)).size, 3, "GPU devices");
    const tensors = engines.map((engine, k) => engine.full([3], k));
    engines[1].dispose();
    const results = await Promise.allSettled(tensors.map(async (t) => t.add(1).data()));
    expect.equal(results[1].reason?.code, "DisposedError", "the disposed one");
    results.forEach(({ value }, k) => k === 1 || expect.equal(value, [k + 1, k + 1, k + 1], `engine ${k}`));
  }),
);

test("a module that does not load is an error, and the next init may try again", { timeout }, () =>
  inPage(async () => {
    for (const wasm of ["/nowhere.wasm", new Uint8Array([1, 2, 3]), Promise.reject(new Error("no"))]) {
      await expect.fails(wgrad, () => wgrad.init({ device: "cpu", wasm }), "UnsupportedError", ["init"]);
    }
    const [wrong, shared] = await Promise.allSettled([
      wgrad.init({ device: "cpu", wasm: new Uint8Array(8) }),
      wgrad.init({ device: "cpu", wasm: new Uint8Array(8) }),
    ]);
    expect.equal(
      [wrong.reason?.code, shared.reason?.code],
      ["UnsupportedError", "UnsupportedError"],
      "codes",
    );
    const engine = await wgrad.init({ device: "cpu" });
    await expect.works(engine);
  }).catch((error) => {
    // The page tells of the file that is not there.
    assert.match(String(error), /404/);
  }),
);

describe("twenty engines, made and disposed", () => {
  for (const device of ["cpu", "webgpu"]) {
    for (const tidy of [true, false]) {
      const how = tidy ? "tensors disposed too" : "tensors left to the engine";
      test(`${device}, ${how}: memory is flat`, { timeout }, () =>
        inPage(
          async ({ device, tidy }) => {
            const heap = expect.watchHeap();
            const sizes = [];
            for (let k = 0; k < 20; k++) {
              const engine = await wgrad.init({ device });
              // 16 or 4 MB a tensor: what stays shows.
              const values = new Float32Array(device === "cpu" ? 1 << 22 : 1 << 20).fill(1);
              const x = engine.tensor(values, { requiresGrad: true });
              const y = x.siluMul(2);
              const part = y.narrow(0, 5, 1);
              const [value] = await part.data();
              expect.ok(Math.abs(value - 1.4621171) < 1e-5, `engine ${k}: ${value}`);
              if (tidy) for (const tensor of [x, y, part]) tensor.dispose();
              engine.dispose();
              sizes.push(heap.bytes());
            }
            const growth = sizes[19] - sizes[9];
            expect.ok(growth <= 4 << 20, `the module grew by ${growth} bytes: ${sizes.join(", ")}`);
          },
          { device, tidy },
        ),
      );
    }
  }
});

describe("a device of the caller's", () => {
  test("it computes, stays alive after dispose, and is usable by the caller all along", { timeout }, () =>
    inPage(async () => {
      const adapter = await navigator.gpu.requestAdapter();
      const device = await adapter.requestDevice();
      const own = async () => {
        const usage = GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ;
        const buffer = device.createBuffer({ size: 16, usage });
        device.queue.writeBuffer(buffer, 0, Float32Array.of(1, 2, 3, 4));
        await buffer.mapAsync(GPUMapMode.READ);
        expect.equal(new Float32Array(buffer.getMappedRange()), [1, 2, 3, 4], "the caller's buffer");
        buffer.destroy();
      };
      for (const choice of [undefined, "auto", "webgpu"]) {
        const engine = await wgrad.init({ gpuDevice: device, device: choice });
        expect.equal(engine.device, "webgpu", "device");
        expect.ok(engine.gpuDevice === device, "it is the caller's");
        await expect.works(engine);
        await own();
        await expect.works(engine);
        engine.dispose();
        await own();
      }
      const state = await Promise.race([
        device.lost,
        new Promise((resolve) => setTimeout(resolve, 300, "alive")),
      ]);
      expect.equal(state, "alive", "the device");
      // Two engines on one device.
      const [one, two] = await Promise.all([1, 2].map(() => wgrad.init({ gpuDevice: device })));
      await expect.works(one);
      await expect.works(two);
      one.dispose();
      await expect.works(two, "the second");
      // A device with the least of limits and features computes the same.
      const x = two.randn([300, 64]);
      expect.equal((await x.layerNorm().swiglu().data()).length, 300 * 32, "elements");
    }),
  );

  test("dispose gives back the memory of tensors that were left", { timeout }, () =>
    inPage(async () => {
      const adapter = await navigator.gpu.requestAdapter();
      const device = await adapter.requestDevice();
      const alive = new Set();
      const create = device.createBuffer.bind(device);
      device.createBuffer = (descriptor) => {
        const buffer = create(descriptor);
        alive.add(buffer);
        const destroy = buffer.destroy.bind(buffer);
        buffer.destroy = () => {
          alive.delete(buffer);
          destroy();
        };
        return buffer;
      };
      const engine = await wgrad.init({ gpuDevice: device });
      const x = engine.ones([1 << 20]);
      const y = x.add(1);
      expect.equal((await y.narrow(0, 0, 1).data())[0], 2, "a result");
      engine.dispose();
      await new Promise((resolve) => setTimeout(resolve, 50));
      const bytes = [...alive].reduce((sum, buffer) => sum + buffer.size, 0);
      expect.ok(bytes < 1 << 20, `${bytes} bytes in ${alive.size} buffers are still there`);
    }),
  );

  test("the caller's own faults are not told as faults of wgrad", { timeout }, () =>
    inPage(async () => {
      const adapter = await navigator.gpu.requestAdapter();
      const device = await adapter.requestDevice();
      const engine = await wgrad.init({ gpuDevice: device });
      const x = engine.ones([3]);
      const told = new Promise((resolve) =>
        device.addEventListener("uncapturederror", (event) => {
          event.preventDefault();
          resolve(event.error.message);
        }),
      );
      device.createBuffer({ size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.MAP_WRITE });
      await expect.within(told, 5000, "the caller hears of it");
      expect.equal(await x.data(), [1, 1, 1], "a tensor of the engine");
    }),
  );

  test("a device that is lost already is a typed error, here or at the first use", { timeout }, () =>
    inPage(async () => {
      const adapter = await navigator.gpu.requestAdapter();
      const device = await adapter.requestDevice();
      device.destroy();
      await device.lost;
      const use = async () => {
        const engine = await wgrad.init({ gpuDevice: device });
        return engine.ones([3]).add(1).data();
      };
      await expect.within(
        expect.fails(wgrad, use, ["DeviceLostError", "UnsupportedError"], ["lost"]),
        5000,
        "a lost device",
      );
    }),
  );

  test("what looks like a device and is none is a typed error", { timeout }, () =>
    inPage(async () => {
      const mock = { queue: {}, features: new Set(), limits: {}, lost: new Promise(() => undefined) };
      const codes = ["UnsupportedError", "ArgumentError"];
      await expect.fails(wgrad, () => wgrad.init({ gpuDevice: mock, timeoutMs: 500 }), codes, ["init"]);
      await expect.works(await wgrad.init({ device: "cpu" }), "an engine afterwards");
    }),
  );
});

describe("workers", () => {
  test("two engines in two module workers compute at the same time", { timeout }, () =>
    inPage(async () => {
      const source = `
        import { init } from "${location.origin}/dist/index.js";
        import { works } from "${location.origin}/tests/support/expect.mjs";
        onmessage = async ({ data: device }) => {
          try {
            const engine = await init({ device });
            for (let k = 0; k < 10; k++) await works(engine);
            const sum = await engine.ones([1000]).mul(3).sum().item();
            const outside = [typeof window, typeof document];
            const own = Object.getOwnPropertyNames(self.navigator);
            engine.dispose();
            postMessage({ device: engine.device, sum, outside, own });
          } catch (error) {
            postMessage({ error: String(error.stack ?? error) });
          }
        };`;
      const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      const run = (device) =>
        new Promise((resolve, reject) => {
          const worker = new Worker(url, { type: "module" });
          worker.onmessage = ({ data }) => resolve(data);
          worker.onerror = ({ message }) => reject(new Error(message));
          worker.postMessage(device);
        });
      const results = await Promise.all(["webgpu", "webgpu", "cpu", "cpu"].map(run));
      results.forEach((result, k) => {
        expect.equal(result.error, undefined, `worker ${k}`);
        expect.equal(result.device, k < 2 ? "webgpu" : "cpu", `worker ${k}`);
        expect.equal(result.sum, 3000, `worker ${k}`);
        expect.equal(result.outside, ["undefined", "undefined"], `worker ${k}`);
        expect.equal(result.own, [], `own properties of worker ${k}'s navigator`);
      });
    }),
  );
});

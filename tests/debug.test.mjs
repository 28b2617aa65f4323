// init({ debug: true }): every call on WebGPU is held against the CPU, in pages with whole and with broken kernels.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { openTestPage, packageUrl } from "./support/everywhere.mjs";

const timeout = 120_000;

let opened;
before(async () => {
  opened = await openTestPage();
});
after(() => opened?.close());

/**
 * Runs `body(argument)` in a page of its own, which has as globals `wgrad`, `expect`, and `breaking(kernel, from, to)`:
 * from then on the text `from` in that kernel's WGSL becomes `to`, until the function that it returns is called. No
 * error may show in the page, nor a promise that nobody looks at be rejected.
 */
async function inPage(body, argument) {
  const page = await opened.context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error.stack ?? error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  try {
    await page.goto(`${opened.url}blank.html`);
    await page.evaluate(async () => {
      globalThis.wgrad = await import("/dist/index.js");
      globalThis.expect = await import("/tests/support/expect.mjs");
      globalThis.breaking = (kernel, from, to) => {
        const { createShaderModule } = GPUDevice.prototype;
        GPUDevice.prototype.createShaderModule = function ({ label, code }) {
          if (label === kernel) {
            expect.ok(code.includes(from), `${kernel} has no ${from}: ${code}`);
            code = code.replaceAll(from, to);
          }
          return createShaderModule.call(this, { label, code });
        };
        return () => (GPUDevice.prototype.createShaderModule = createShaderModule);
      };
    });
    await page.evaluate(body, argument);
    // What was left over may still fail.
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)));
    assert.deepEqual(problems, []);
  } finally {
    await page.close();
  }
}

/* global wgrad, expect, breaking -- in a page */

for (const dtype of ["f32", "f16"]) {
  test(`training in ${dtype} is what it is without debug, bit for bit`, { timeout }, () =>
    inPage(async (dtype) => {
      const losses = async (options) => {
        const engine = await wgrad.init({ device: "webgpu", ...options });
        expect.equal(engine.device, "webgpu", "device");
        engine.manualSeed(3);
        const random = (shape) => engine.randn(shape, { dtype, requiresGrad: true });
        const [w1, b1, w2, w3] = [random([48, 12]), random([48]), random([24]), random([7, 24])];
        const shift = engine.zeros([24], { dtype, requiresGrad: true });
        const x = engine.randn([33, 12], { dtype });
        const target = engine.tensor(Int32Array.from({ length: 33 }, (_, k) => k % 7));
        const optimizer = engine.optim.adamw([w1, b1, w2, shift, w3], { lr: 0.01 });
        const losses = [];
        for (let k = 0; k < 5; k++) {
          const loss = engine.tidy(() => {
            optimizer.zeroGrad();
            const h = x.linear(w1, b1).swiglu().layerNorm(w2, shift);
            const loss = h.mul(h).geluMul(h).linear(w3).crossEntropy(target, { labelSmoothing: 0.1 });
            loss.backward();
            optimizer.step();
            return loss;
          });
          losses.push(await loss.item());
        }
        losses.push(...(await w1.data()), ...(await w2.grad.data()));
        await engine.sync();
        engine.dispose();
        return losses;
      };
      const plain = await losses({});
      expect.ok(plain[4] < plain[0], `it learns: ${plain.slice(0, 5)}`);
      expect.equal(await losses({ debug: false }), plain, "without debug");
      expect.equal(await losses({ debug: true }), plain, "with debug");
      expect.equal(await losses({ debug: true, device: "auto" }), plain, "with debug and auto");
    }, dtype),
  );
}

test("every family of operations, with values at the edges, is found right", { timeout }, () =>
  inPage(async () => {
    const engine = await wgrad.init({ debug: true });
    const edges = [
      NaN,
      Infinity,
      -Infinity,
      0,
      -0,
      1e-40,
      -1e-38,
      3e38,
      -3e38,
      1e30,
      88,
      -88,
      1,
      -1,
      0.5,
      1e-6,
    ];
    for (const dtype of ["f32", "f16"]) {
      const x = engine.tensor(edges, { shape: [4, 4], dtype, requiresGrad: true });
      const y = engine.randn([4, 4], { dtype, requiresGrad: true });
      // Squares of larger ones are past f32, where the CPU sums in f64.
      const within = edges.map((value) => (Math.abs(value) > 1e18 ? 1e4 : value));
      const tame = engine.tensor(within, { shape: [4, 4], dtype, requiresGrad: true });
      for (const act of ["siluMul", "geluMul", "reluMul", "sigmoidMul"]) x[act](y).sum().backward();
      x.geluMul(x, { approximate: "tanh" });
      for (const op of ["add", "sub", "mul", "div"]) {
        const once = x[op](y);
        const twice = once[op](x.transpose(0, 1));
        twice.sum({ dim: 0 }).backward(engine.ones([4], { dtype }));
      }
      x.matmul(y).mean().backward();
      tame
        .layerNorm()
        .sum({ dim: 1 })
        .backward(engine.ones([4], { dtype }));
      x.slice({ dim: 1, start: 1 }).add(1);
      engine.zeros([0, 3], { dtype }).add(1);
      await engine.sync();
    }
    const integers = [Int32Array.of(1, -5, 2 ** 31 - 1, -(2 ** 31)), Uint32Array.of(1, 2, 2 ** 32 - 1, 0)];
    for (const values of integers)
      engine
        .tensor(values, { shape: [2, 2] })
        .transpose(0, 1)
        .reshape([4]);
    engine.full([3], -7, { dtype: "i32" });
    engine.full([5], 1, { dtype: "bool" }).expand([2, 5]).reshape([10]);
    await engine.sync();
    engine.dispose();
  }),
);

test("a sum in which all cancels is no disagreement", { timeout }, () =>
  inPage(async () => {
    const engine = await wgrad.init({ debug: true });
    engine.manualSeed(1);
    for (const shape of [[100_003], [300, 701]]) {
      const x = engine.randn(shape);
      const centered = x.sub(x.mean());
      await centered.sum().item();
      await centered.mul(1e6).sum({ dim: 0 }).sum().item();
      const y = x.reshape([-1]);
      await y.mul(y).sub(1).sum().item();
      await engine.full(shape, 12_345.678).layerNorm().data();
      await engine.full(shape, 1e4).add(x.mul(1e-3)).layerNorm().sum().item();
    }
    // A classifier that is sure: losses of a rounding of 1, and gradients that are as small.
    const logits = engine.tensor(
      [
        [30, 0, 1],
        [-20, 17, 1],
        [16.5, 0, 0.5],
      ],
      { requiresGrad: true },
    );
    const loss = logits.crossEntropy(engine.tensor(Int32Array.of(0, 1, 0)));
    loss.backward();
    await loss.item();
    await logits.grad.data();
    // Rows that are nearly orthogonal.
    const a = engine.randn([64, 512]);
    await a
      .matmul(a.transpose(0, 1))
      .sub(a.matmul(a.transpose(0, 1)))
      .data();
    await engine.sync();
  }),
);

describe("a kernel that computes something else", () => {
  test("stops the engine with the kernel, its sizes, the place and both values", { timeout }, () =>
    inPage(async () => {
      const before = await wgrad.init({ device: "webgpu" });
      const mend = breaking(
        "gated",
        "out[i] = ",
        "out[i] = select(vec4<scalar>(scalar(1)), vec4<scalar>(scalar(7)), i == 2u) * ",
      );
      const engine = await wgrad.init({ debug: true });
      const a = engine.full([4, 3], 2);
      const earlier = a.add(1);
      const early = earlier.data();
      const y = a.siluMul(engine.full([4, 3], 3));
      const later = y.add(1).mul(earlier);
      const words = [
        "gated (silu, vec4): 4 elements of out",
        "a: f32[12]",
        "b: f32[12]",
        "out: f32[12]",
        "out[8]",
        "36.99",
        "5.28",
        "WebGPU",
        "CPU",
      ];
      const stopped = async (call, what) => {
        const error = await expect.fails(wgrad, call, "KernelError", words, what);
        return error.message;
      };
      const message = await stopped(() => y.data(), "its result");
      // What was read before it was computed before it.
      expect.equal(await early, new Float32Array(12).fill(3), "an earlier read");
      for (const [what, call] of Object.entries({
        "another read of it": () => y.array(),
        "a later result": () => later.data(),
        "an earlier result": () => earlier.data(),
        sync: () => engine.sync(),
        add: () => a.add(1),
        "a gated one": () => a.siluMul(a),
        zeros: () => engine.zeros([2]),
        backward: () => engine.tidy(() => a.sum().backward()),
      })) {
        expect.equal(await stopped(call, what), message, what);
      }
      engine.memory();
      engine.dispose();
      mend();
      const after = await wgrad.init({ debug: true });
      for (const other of [before, after]) await expect.works(other, "another engine");
    }),
  );

  test("sync finds it too, and names the first of several calls", { timeout }, () =>
    inPage(async () => {
      breaking("binary", "out[i] = ", "out[i] = vec4<scalar>(scalar(1.001)) * ");
      const engine = await wgrad.init({ debug: true });
      const x = engine.ones([5]);
      const y = x.add(engine.ones([5]));
      y.mul(engine.zeros([5])).add(x);
      await expect.fails(wgrad, () => engine.sync(), "KernelError", [
        "binary (add",
        "5 elements of out",
        "2.002",
        " 2 on the CPU",
      ]);
    }),
  );

  test("a NaN of its own is caught", { timeout }, () =>
    inPage(async () => {
      breaking(
        "sum_rows",
        "sum = row_sum(sum, lane)",
        "sum = bitcast<f32>(params.cols + 0x7fc00000u - params.cols) + 0.0 * row_sum(sum, lane)",
      );
      const engine = await wgrad.init({ debug: true });
      const sum = engine
        .tensor([
          [1, 2],
          [3, 4],
        ])
        .sum({ dim: 1 });
      await expect.fails(wgrad, () => sum.data(), "KernelError", [
        "sum_rows",
        "out: f32[2]",
        "NaN on WebGPU",
        "3 on the CPU",
      ]);
    }),
  );

  test("what is updated in place is compared with what it was", { timeout }, () =>
    inPage(async () => {
      breaking("adamw", "second[i] = ", "second[i] = 1.01 * ");
      const engine = await wgrad.init({ debug: true });
      const x = engine.ones([6], { requiresGrad: true });
      const optimizer = engine.optim.adamw([x]);
      x.mul(engine.full([6], 1e-3))
        .sum()
        .backward();
      optimizer.step();
      await expect.fails(wgrad, () => x.data(), "KernelError", [
        "adamw",
        "6 elements of second",
        "second: f32[6]",
      ]);
    }),
  );

  test("f16 is held to f16's roundings", { timeout }, () =>
    inPage(async () => {
      breaking("gated", "out[i] = ", "out[i] = vec4<scalar>(scalar(1.01)) * ");
      const engine = await wgrad.init({ debug: true });
      const x = engine.full([9], 2, { dtype: "f16" });
      await expect.fails(wgrad, () => x.reluMul(x).data(), "KernelError", [
        "gated (relu",
        "out: f16[9]",
        "9 elements",
      ]);
    }),
  );

  test("integers are equal or not", { timeout }, () =>
    inPage(async () => {
      breaking("copy", "out[", "out[0u * params.count + ");
      breaking("copy", "] = source[", "] = scalar(1) + source[");
      const engine = await wgrad.init({ debug: true });
      const x = engine.tensor(Int32Array.of(5, 6, 7, 8), { shape: [2, 2] });
      const words = ["copy", "4 elements of out", "i32[4]", "6 on WebGPU and 5 on the CPU"];
      await expect.fails(wgrad, () => x.transpose(0, 1).reshape([4]).data(), "KernelError", words);
    }),
  );

  test("text that does not compile is told as it is without debug", { timeout }, () =>
    inPage(async () => {
      breaking("gated", "out[i] = ", "no such text ");
      const engine = await wgrad.init({ debug: true });
      const x = engine.ones([3]);
      await expect.fails(wgrad, () => x.siluMul(x).data(), "KernelError");
    }),
  );
});

test("a label out of range is an IndexError, and the engine goes on", { timeout }, () =>
  inPage(async () => {
    const engine = await wgrad.init({ debug: true });
    const x = engine.randn([3, 4], { requiresGrad: true });
    const [good, bad] = [
      [0, 1, 3],
      [0, 9, 3],
    ].map((labels) => engine.tensor(Int32Array.from(labels)));
    for (let k = 0; k < 3; k++) {
      const loss = x.crossEntropy(bad);
      loss.backward();
      await expect.fails(wgrad, () => loss.item(), "IndexError", ["crossEntropy", "9", "row 1"]);
      await x.crossEntropy(good).item();
      await expect.works(engine);
    }
    // The next read tells of it, not one before, and not one after.
    const before = x.add(1).data();
    x.crossEntropy(bad);
    const [next, after] = [engine.sync(), engine.sync()];
    await before;
    await expect.fails(wgrad, () => next, "IndexError", ["9"]);
    await after;
    engine.dispose();
  }),
);

test("reads at once, and tensors that are disposed before they were compared", { timeout }, () =>
  inPage(async () => {
    const engine = await wgrad.init({ debug: true });
    const reads = [];
    for (let k = 0; k < 20; k++) {
      const x = engine.full([50], k);
      const y = x.mul(x).add(1);
      reads.push(y.data(), y.sum().item());
      x.dispose();
      y.dispose();
    }
    const values = await expect.within(Promise.all(reads), 20_000, "the reads");
    for (let k = 0; k < 20; k++) {
      expect.equal(values[2 * k], new Float32Array(50).fill(k * k + 1), `read ${k}`);
      expect.near([values[2 * k + 1]], [50 * (k * k + 1)], { relative: 1e-6 }, `sum ${k}`);
    }
    engine.dispose();
  }),
);

test("an engine that is disposed or lost while calls are compared", { timeout }, () =>
  inPage(async () => {
    for (const [end, code] of [
      [(engine) => engine.dispose(), ["DisposedError", "DeviceLostError"]],
      [(engine) => engine.gpuDevice.destroy(), ["DeviceLostError"]],
    ]) {
      for (const wait of [0, 1, 20]) {
        const engine = await wgrad.init({ debug: true });
        const x = engine.ones([1000], { requiresGrad: true });
        for (let k = 0; k < 10; k++) x.siluMul(x).layerNorm().sum().backward();
        const reads = [x.grad.data(), engine.sync(), x.sum().item()];
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
        end(engine);
        const outcomes = await expect.within(Promise.allSettled(reads), 20_000, "the reads");
        for (const { status, reason } of outcomes) {
          expect.ok(status === "fulfilled" || code.includes(reason.code), `after ${wait} ms: ${reason}`);
        }
        if (wait === 0) expect.equal(outcomes[0].status, "rejected", "a read that was cut off");
        engine.dispose();
      }
      // Nobody reads at all.
      const engine = await wgrad.init({ debug: true });
      engine.ones([10]).add(1).sum();
      end(engine);
    }
    await expect.works(await wgrad.init({ debug: true }));
  }),
);

test("on a device of the page's own", { timeout }, () =>
  inPage(async () => {
    const adapter = await navigator.gpu.requestAdapter();
    const gpuDevice = await adapter.requestDevice();
    const whole = await wgrad.init({ gpuDevice, debug: true });
    await expect.works(whole);
    whole.dispose();
    breaking("gated", "out[i] = ", "out[i] = vec4<scalar>(scalar(2)) * ");
    const engine = await wgrad.init({ gpuDevice, debug: true });
    const x = engine.ones([3]);
    await expect.fails(wgrad, () => x.siluMul(x).data(), "KernelError", ["gated"]);
  }),
);

describe("the option", () => {
  test("is true or false, and for WebGPU", { timeout }, () =>
    inPage(async () => {
      for (const debug of [1, "true", null, {}]) {
        await expect.fails(wgrad, () => wgrad.init({ debug }), "ArgumentError", [
          "init",
          "debug",
          "true or false",
        ]);
      }
      await expect.fails(wgrad, () => wgrad.init({ device: "cpu", debug: true }), "ArgumentError", [
        "debug",
        "cpu",
      ]);
      for (const debug of [undefined, false]) await wgrad.init({ device: "cpu", debug });
      expect.equal((await wgrad.init({ debug: false })).device, "cpu", "auto without debug");
      Object.defineProperty(navigator, "gpu", { configurable: true, value: undefined });
      for (const device of ["auto", "webgpu"]) {
        await expect.fails(wgrad, () => wgrad.init({ device, debug: true }), "UnsupportedError", [
          "init",
          "navigator.gpu",
        ]);
      }
    }),
  );

  test("rejects where there is no WebGPU at all", async () => {
    const { init } = await import(packageUrl);
    await assert.rejects(init({ debug: true }), {
      code: "UnsupportedError",
      message: /^init: .*navigator\.gpu/,
    });
  });
});

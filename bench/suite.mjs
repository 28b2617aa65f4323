// The benchmark itself, for a page and for Node alike: the rows, each timed beside a limit of the same device.
import { cpuLimits, gpuLimits } from "./limits.mjs";
import { overhead } from "./overhead.mjs";
import { compare } from "./timing.mjs";

/** An operation as users call it: `call` gives new tensors, which are freed at once. */
function operation(engine, inputs, call) {
  const results = () => [call()].flat();
  return {
    async run(k) {
      for (let i = 0; i < k; i++) for (const tensor of results()) tensor.dispose();
      await engine.sync();
    },
    /** Fails unless the results are numbers, and not all zero: a kernel that did nothing is fast. */
    async check() {
      for (const tensor of results()) {
        const values = await tensor.data();
        const sound = values.some((value) => value !== 0) && values.every(Number.isFinite);
        if (!sound) throw new Error("the benchmark's operation gives zeros or no numbers");
        tensor.dispose();
      }
    },
    dispose: () => inputs.forEach((tensor) => tensor.dispose()),
  };
}

const normal = (engine, ...shapes) => shapes.map((shape) => engine.randn(shape));

function gated(n) {
  const forward = (engine) => {
    const [a, b] = normal(engine, [n], [n]);
    return operation(engine, [a, b], () => a.siluMul(b));
  };
  const backward = (engine) => {
    const [dy, a, b] = normal(engine, [n], [n], [n]);
    return operation(engine, [dy, a, b], () => engine.kernels.siluMulBackward(dy, a, b));
  };
  const size = n.toLocaleString("en");
  return [
    { name: "gated forward (siluMul)", size, bytes: 12 * n, make: forward },
    { name: "gated backward (siluMul)", size, bytes: 20 * n, make: backward },
  ];
}

function layerNormForward(rows, columns) {
  const make = (engine) => {
    const [x, w, b] = normal(engine, [rows, columns], [columns], [columns]);
    return operation(engine, [x, w, b], () => x.layerNorm(w, b));
  };
  return { name: "LayerNorm forward", size: `${rows} × ${columns}`, bytes: 8 * rows * columns, make };
}

function layerNormBackward(rows, columns) {
  const make = (engine) => {
    const [dy, x, w] = normal(engine, [rows, columns], [rows, columns], [columns]);
    const [y, mean, rstd] = engine.kernels.layerNormForward(x, w);
    y.dispose();
    const call = () => engine.kernels.layerNormBackward(dy, x, mean, rstd, w);
    return operation(engine, [dy, x, w, mean, rstd], call);
  };
  return {
    name: "LayerNorm backward (dx, dw, db)",
    size: `${rows} × ${columns}`,
    bytes: 12 * rows * columns,
    make,
  };
}

function matmul(n) {
  const make = (engine) => {
    const [a, b] = normal(engine, [n, n], [n, n]);
    return operation(engine, [a, b], () => a.matmul(b));
  };
  return { name: "matmul", size: `${n} × ${n} × ${n}`, operations: 2 * n ** 3, make };
}

/** A tensor that is made, written and freed again and again: what its memory costs, by the byte, at any size. */
function made(mebibytes) {
  const n = 2 ** 18 * mebibytes;
  const make = (engine) => operation(engine, [], () => engine.full([n], 1));
  return { name: "memory: a tensor made and freed", size: `${mebibytes} MiB`, bytes: 4 * n, make };
}

/** Operations too small to fill a device, many in a queue: what counts is the cost of a call. */
function small(limits) {
  const rows = 64;
  const n = rows * 768;
  const [forward] = gated(n);
  const queued = [
    { ...forward, size: `${rows} × 768` },
    layerNormForward(1, 768),
    layerNormForward(rows, 768),
  ];
  // What a page pays that queues the limit's kernel by itself.
  const make = () => {
    const kernel = limits.copy(12 * n);
    return { ...kernel, run: (k) => kernel.runApart(k), check: () => undefined };
  };
  const apart = { name: "plain copy kernels, a submit each", size: `${rows} × 768`, bytes: 12 * n, make };
  return (limits.apart ? [...queued, apart] : queued).map((row) => ({ ...row, name: `queue: ${row.name}` }));
}

/** The calls themselves, beside calls written by hand: only the page is timed. */
const recordedCall = {
  name: "queue: recorded op, the page's time",
  size: "64 × 768",
  async figures(engine, { batches }) {
    const { hand, own, ratio } = await overhead(engine, batches);
    return {
      unit: "ops/s",
      milliseconds: own,
      rate: 1e3 / own,
      limitRate: 1e3 / hand,
      ofLimit: 1 / ratio,
      ratio,
    };
  },
};

/** Every row; the large ones need a device that makes sense for them. */
function rows(limits, large) {
  const list = [
    gated(2 ** 20),
    layerNormForward(2048, 768),
    layerNormBackward(2048, 768),
    matmul(512),
    matmul(1024),
    made(1),
    small(limits),
  ];
  if (limits.apart) list.push(recordedCall);
  if (large) {
    list.push(
      gated(2 ** 24),
      layerNormForward(16384, 4096),
      layerNormBackward(16384, 4096),
      matmul(4096),
      made(256),
    );
  }
  return list.flat();
}

/** One row's figures: times in milliseconds, rates in bytes or operations a second, the fraction of the limit. */
async function measure(row, engine, limits, pace) {
  const { name, size, bytes, operations, make } = row;
  if (row.figures) return { name, size, ...(await row.figures(engine, pace)) };
  const limit = bytes ? limits.copy(bytes) : limits.multiplyAdd();
  const subject = make(engine);
  try {
    await subject.check();
    const [best, own] = await compare([limit, subject], pace);
    const amount = bytes ?? operations;
    // A limit is the most the device was seen to do, hence its fastest batch; users get the median.
    const limitRate = (limit.amount / best.fastest) * 1e3;
    const rate = (amount / own.median) * 1e3;
    const unit = bytes ? "B/s" : "FLOP/s";
    return { name, size, unit, milliseconds: own.median, rate, limitRate, ofLimit: rate / limitRate };
  } finally {
    subject.dispose();
    limit.dispose();
  }
}

/**
 * Runs the rows whose name and size match `only` on an engine.
 * @param {{ only?: string, multiplyAddModule?: ArrayLike<number>, quick?: boolean }} [options] `multiplyAddModule`: for
 *   a CPU engine, from cpu-limit.mjs; `quick`: few and short batches, to see whether it runs at all
 * @returns the device, in words, whether its figures mean anything for a GPU, and the rows' figures
 */
export async function runSuite(engine, { only = "", multiplyAddModule, quick = false } = {}) {
  const { device, adapter } = engine;
  const software = adapter?.isFallback ?? false;
  const limits =
    device === "webgpu"
      ? { ...gpuLimits(engine.gpuDevice, software), apart: true }
      : await cpuLimits(Uint8Array.from(multiplyAddModule));
  const pace = quick ? { batches: 3, milliseconds: 1 } : { batches: 15, milliseconds: 40 };
  const chosen = rows(limits, device === "webgpu" && !software).filter(({ name, size }) =>
    new RegExp(only, "i").test(`${name} ${size}`),
  );
  const figures = [];
  engine.manualSeed(1);
  for (const row of chosen) figures.push(await measure(row, engine, limits, pace));
  const { vendor = "", architecture = "", description = "" } = adapter ?? {};
  return {
    device,
    adapter: [vendor, architecture, description].filter(Boolean).join(" | ") || "one thread of the CPU",
    software,
    rows: figures,
  };
}

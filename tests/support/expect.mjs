// Assertions that work in Node and in a page alike, for test bodies that run on every engine.

/** How a value reads in a failure. */
export function show(value) {
  if (Object.is(value, -0)) return "-0";
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value) || ArrayBuffer.isView(value)) {
    const items = Array.from(value);
    const shown = items.slice(0, 12).map(show).join(", ");
    return items.length > 12 ? `[${shown}, … ${items.length} in all]` : `[${shown}]`;
  }
  return String(value);
}

/** Fails with `message` unless `condition` holds. */
export function ok(condition, message) {
  if (!condition) throw new Error(message);
}

const isList = (value) => Array.isArray(value) || ArrayBuffer.isView(value);

function same(got, want) {
  if (!isList(got) || !isList(want)) return Object.is(got, want);
  return got.length === want.length && Array.from(want).every((w, k) => same(got[k], w));
}

/** Equal bit for bit: NaN is NaN, and 0 is not -0. Lists are compared element by element, whatever their kind. */
export function equal(got, want, what = "value") {
  ok(same(got, want), `${what}: got ${show(got)}, expected ${show(want)}`);
}

/**
 * Every element within `absolute + relative · |want|`. NaN and infinities must be where they are expected, and below
 * the smallest normal f32 any value as small will do.
 */
export function near(got, want, { relative = 0, absolute = 0 } = {}, what = "values") {
  ok(got?.length === want.length, `${what}: ${got?.length} elements, expected ${want.length}`);
  for (let k = 0; k < want.length; k++) {
    if (close(Number(got[k]), Number(want[k]), relative, absolute)) continue;
    throw new Error(`${what}: [${k}] is ${show(got[k])}, expected ${want[k]}; all: ${show(got)}`);
  }
}

const smallestNormal = 2 ** -126;

function close(got, want, relative, absolute) {
  if (!Number.isFinite(want) || !Number.isFinite(got)) return Object.is(got, Math.fround(want));
  if (Math.abs(want) < smallestNormal && Math.abs(got) <= smallestNormal) return true;
  return Math.abs(got - want) <= absolute + relative * Math.abs(want);
}

/**
 * The error that `call` throws or rejects with: of this class of the package (or of one of these), with its code and
 * name, and a message that contains every one of `words`. Anything else fails.
 */
export async function fails(wgrad, call, codes, words = [], what = String(call)) {
  const wanted = [codes].flat();
  let result;
  try {
    result = await call();
  } catch (error) {
    checkError(wgrad, error, wanted, words, what);
    return error;
  }
  throw new Error(`${what}: expected ${wanted.join(" or ")}, but it gave ${show(result)}`);
}

function checkError(wgrad, error, wanted, words, what) {
  const told = `${what}: ${error?.name}: ${error?.message?.slice(0, 300)}`;
  const right = wanted.join(" or ");
  ok(error instanceof wgrad.WgradError, `${told} is no error of the package; expected ${right}`);
  const { code, name, message } = error;
  ok(wanted.includes(code) && error instanceof wgrad[code] && name === code, `${told}; expected ${right}`);
  for (const word of words) ok(message.includes(word), `${told}; the message should say ${show(word)}`);
}

/** Fails unless the engine still computes, forwards and backwards. */
export async function works(engine, what = "the engine") {
  const a = engine.tensor([1, -2, 0.5], { requiresGrad: true });
  const b = engine.tensor([3, 0.25, -1], { requiresGrad: true });
  const dy = engine.tensor([1, 2, -4]);
  const y = a.siluMul(b);
  y.backward(dy);
  const gradients = [a.grad, b.grad];
  const wanted = [
    [2.1931757359, -0.0596014611, -0.3112296656],
    [2.783011536, -0.04539212439, 2.959844749],
    [0.7310585786, -0.4768116881, -1.244918662],
  ];
  const names = ["siluMul", "its gradient for a", "its gradient for b"];
  const results = await Promise.all([y, ...gradients].map((t) => t.data()));
  results.forEach((got, k) => near(got, wanted[k], { relative: 2e-6 }, `${what} afterwards: ${names[k]}`));
  for (const tensor of [a, b, dy, y, ...gradients]) tensor.dispose();
}

/** The bits of f32 values, as numbers. */
export const bits = (values) => Array.from(new Uint32Array(values.buffer, values.byteOffset, values.length));

/** Settles as `promise` does, or rejects after `ms`. */
export async function within(promise, ms, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing after ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Bytes of the package's WebAssembly memory; call it before the first `init`, read `bytes()` after. */
export function watchHeap() {
  const memories = [];
  const { instantiate } = WebAssembly;
  WebAssembly.instantiate = async function (...arguments_) {
    const result = await instantiate.apply(this, arguments_);
    memories.push((result.instance ?? result).exports.memory);
    return result;
  };
  return {
    bytes: () => memories.reduce((sum, memory) => sum + memory.buffer.byteLength, 0),
    instances: () => memories.length,
  };
}

// What the WebGPU backend asks of the browser. WebGPU is a JavaScript API of dictionaries: built here, each is a line; built
// from WebAssembly, each is a dozen imports and calls. A flush crosses over once, with its whole list.

// GPUBufferUsage, GPUMapMode and GPUShaderStage by number: Node has no such globals.
const MAP_READ = 1;
const COPY_SRC = 4;
const COPY_DST = 8;
const QUERY_RESOLVE = 512;
const READ = 1;
const COMPUTE = 4;

// Bytes of the record of values out of range.
const RECORD = 16;

/** The adapter that `navigator.gpu` gives. */
export async function requestAdapter() {
  const gpu = globalThis.navigator?.gpu;
  if (!gpu) throw new Error("there is no navigator.gpu: WebGPU is not available here");
  const adapter = await gpu.requestAdapter();
  if (!adapter) throw new Error("WebGPU gave no adapter");
  return adapter;
}

/** A device with every feature of its adapter and every limit at its highest. */
export async function requestDevice(adapter) {
  const requiredLimits = {};
  // Limits are getters of a prototype.
  for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(adapter.limits))) {
    const limit = adapter.limits[name];
    if (typeof limit === "number") requiredLimits[name] = limit;
  }
  const device = await adapter.requestDevice({
    label: "wgrad",
    requiredFeatures: [...adapter.features],
    requiredLimits,
  });
  if (typeof device?.queue !== "object") throw new Error(`requestDevice gave ${device}, which is no device`);
  return device;
}

/** Whether the browser says that the device's adapter is a CPU in disguise. */
export function isFallback(device) {
  return device.adapterInfo?.isFallbackAdapter === true;
}

/** f16, subgroups, the fewest invocations of a subgroup, the largest binding, the alignment of uniform offsets. */
export function capabilities({ features, limits, adapterInfo }) {
  return Float64Array.of(
    features.has("shader-f16"),
    features.has("subgroups"),
    adapterInfo?.subgroupMinSize ?? 0,
    Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize),
    limits.minUniformBufferOffsetAlignment,
  );
}

/** A promise of why the device was lost. */
export async function loss(device) {
  const { reason, message } = await device.lost;
  return `${reason ?? "unknown"}: ${message}`;
}

/** The same, if it is told within some milliseconds. */
export function lossWithin(device, milliseconds) {
  const timer = new Promise((resolve) => setTimeout(resolve, milliseconds));
  return Promise.race([loss(device), timer]);
}

/** Starts to collect errors of a kind, "validation" or "out-of-memory". */
export function pushErrorScope(device, kind) {
  device.pushErrorScope(kind);
}

/** A promise of the first message since then, or undefined. */
export async function popErrorScope(device) {
  return (await device.popErrorScope())?.message;
}

export function createBuffer(device, label, size, usage) {
  return device.createBuffer({ label, size, usage });
}

export function write(device, buffer, bytes) {
  device.queue.writeBuffer(buffer, 0, bytes);
}

/**
 * A compute pipeline of `main` in `code` that is yet to be compiled, with the layout of its bindings. Each of `storage` is a
 * binding's number times two, plus one if it is only read; the parameters are a uniform behind a dynamic offset.
 */
export function createPipeline(device, label, code, storage, parameters) {
  const bind = (binding, buffer) => ({ binding, visibility: COMPUTE, buffer });
  const entries = Array.from(storage, (b) => bind(b >> 1, { type: b & 1 ? "read-only-storage" : "storage" }));
  entries.push(bind(parameters, { type: "uniform", hasDynamicOffset: true }));
  device.pushErrorScope("validation");
  const layout = device.createBindGroupLayout({ label, entries });
  const module = device.createShaderModule({ label, code });
  const descriptor = {
    label,
    layout: device.createPipelineLayout({ label, bindGroupLayouts: [layout] }),
    compute: { module, entryPoint: "main" },
  };
  return { code, layout, descriptor, compute: null, rejected: device.popErrorScope() };
}

/** Compiles a pipeline, while the page goes on: a promise of nothing, or of what is wrong with it. */
export async function compile(device, pipeline) {
  try {
    const compiling = device.createComputePipelineAsync(pipeline.descriptor);
    const [compute, rejected] = await Promise.all([compiling, pipeline.rejected]);
    if (rejected) throw rejected;
    // What was compiled at once meanwhile stays: groups and lists name a pipeline by its place.
    pipeline.compute ??= compute;
    return undefined;
  } catch (error) {
    return complaint(pipeline, error);
  }
}

/** The compiler's first error with the line it is about, or else what `error` says. */
async function complaint({ code, descriptor }, error) {
  const { messages = [] } = (await descriptor.compute.module.getCompilationInfo?.()) ?? {};
  const found = messages.find(({ type }) => type === "error");
  if (!found) return `the GPU cannot compile it: ${error.message}`;
  const line = code.split("\n")[found.lineNum - 1]?.trim() ?? "";
  return `the shader does not compile: ${found.message}, in line ${found.lineNum}: ${line}`;
}

/** Compiles a pipeline while the page waits. */
export function compileNow(device, pipeline) {
  pipeline.compute ??= device.createComputePipeline(pipeline.descriptor);
}

/** A bind group: `buffers` stand behind the bindings of these numbers, the last of them the parameters, `size` bytes each. */
export function createGroup(device, pipeline, numbers, buffers, size) {
  const last = numbers.length - 1;
  const entries = buffers.map((buffer, k) => ({
    binding: numbers[k],
    resource: k === last ? { buffer, size } : { buffer },
  }));
  const { layout, descriptor } = pipeline;
  return device.createBindGroup({ label: descriptor.label, layout, entries });
}

/** Starts to collect what is wrong with a submission. */
export function beginSubmission(device) {
  device.pushErrorScope("out-of-memory");
  device.pushErrorScope("validation");
}

/** What times up to `count` passes, on a device that can. */
export function createTimer(device, count) {
  if (!device.features.has("timestamp-query")) return null;
  return {
    queries: device.createQuerySet({ type: "timestamp", count: 2 * count }),
    resolved: device.createBuffer({ size: 16 * count, usage: QUERY_RESOLVE | COPY_SRC }),
  };
}

/**
 * Encodes and submits dispatches, five numbers each: pipeline, group, offset of the parameters, workgroups; and then copies
 * to the host, five values each: source, start, bytes, staging buffer, and a record of `RECORD` bytes that follows them and
 * becomes 0, or null. A promise of the device's answer: what was invalid, and what memory it lacked, or undefined; and with a
 * timer the beginning and the end of every dispatch in nanoseconds.
 */
export function submit(device, uniforms, parameters, pipelines, groups, list, copies, timer) {
  if (parameters.length > 0) device.queue.writeBuffer(uniforms, 0, parameters);
  const encoder = device.createCommandEncoder();
  if (list.length > 0 && !timer) {
    const pass = encoder.beginComputePass();
    for (let k = 0; k < list.length; k += 5) dispatch(pass, pipelines, groups, list, k);
    pass.end();
  }
  const times = list.length > 0 && timer ? timed(device, encoder, pipelines, groups, list, timer) : null;
  for (let k = 0; k < copies.length; k += 5) {
    const [source, start, bytes, staging, record] = copies.slice(k, k + 5);
    if (bytes > 0) encoder.copyBufferToBuffer(source, start, staging, 0, bytes);
    if (record) {
      encoder.copyBufferToBuffer(record, 0, staging, bytes, RECORD);
      encoder.clearBuffer(record);
    }
  }
  device.queue.submit([encoder.finish()]);
  return Promise.all([popErrorScope(device), popErrorScope(device), times && taken(times)]);
}

function dispatch(pass, pipelines, groups, list, k) {
  if (k === 0 || list[k] !== list[k - 5]) pass.setPipeline(pipelines[list[k]].compute);
  pass.setBindGroup(0, groups[list[k + 1]], list, k + 2, 1);
  pass.dispatchWorkgroups(list[k + 3], list[k + 4]);
}

/** Encodes every dispatch as a pass of its own, between two timestamps; the buffer that these are copied to. */
function timed(device, encoder, pipelines, groups, list, { queries, resolved }) {
  const count = list.length / 5;
  for (let k = 0; k < count; k++) {
    const [beginningOfPassWriteIndex, endOfPassWriteIndex] = [2 * k, 2 * k + 1];
    const timestampWrites = { querySet: queries, beginningOfPassWriteIndex, endOfPassWriteIndex };
    const pass = encoder.beginComputePass({ timestampWrites });
    dispatch(pass, pipelines, groups, list.subarray(5 * k, 5 * k + 5), 0);
    pass.end();
  }
  const times = device.createBuffer({ size: 16 * count, usage: MAP_READ | COPY_DST });
  encoder.resolveQuerySet(queries, 0, 2 * count, resolved, 0);
  encoder.copyBufferToBuffer(resolved, 0, times, 0, 16 * count);
  return times;
}

/** The numbers of a buffer of timestamps. */
async function taken(times) {
  await times.mapAsync(READ);
  const numbers = Float64Array.from(new BigUint64Array(times.getMappedRange()), Number);
  times.destroy();
  return numbers;
}

/** A promise that the first `bytes` of `staging` can be read. */
export function map(staging, bytes) {
  return staging.mapAsync(READ, 0, bytes);
}

/** Takes the words of a mapped buffer, which can then be copied into again. */
export function take(staging, words) {
  words.set(new Uint32Array(staging.getMappedRange(0, 4 * words.length)));
  staging.unmap();
}

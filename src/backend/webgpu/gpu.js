// What the WebGPU backend asks of the browser. WebGPU is a JavaScript API of dictionaries: built here, each is a line; built
// from WebAssembly, each is a dozen imports and calls. A flush crosses over once, with its whole list.

// GPUBufferUsage, GPUMapMode and GPUShaderStage by number: Node has no such globals.
const MAP_READ = 1;
const COPY_DST = 8;
const READ = 1;
const COMPUTE = 4;

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

/** Calls `listener` with the message of every error that nothing else catches. */
export function onError(device, listener) {
  // A device without events can still compute; it then reports nothing by itself.
  device.addEventListener?.("uncapturederror", (event) => listener(event.error.message));
}

/** Starts to collect validation errors. */
export function pushErrorScope(device) {
  device.pushErrorScope("validation");
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
 * A compute pipeline of `main` in `code`, with the layout of its bindings. Each of `storage` is a binding's number times two,
 * plus one if it is only read; the parameters are a uniform behind a dynamic offset.
 */
export function createPipeline(device, label, code, storage, parameters) {
  const bind = (binding, buffer) => ({ binding, visibility: COMPUTE, buffer });
  const entries = Array.from(storage, (b) => bind(b >> 1, { type: b & 1 ? "read-only-storage" : "storage" }));
  entries.push(bind(parameters, { type: "uniform", hasDynamicOffset: true }));
  const layout = device.createBindGroupLayout({ label, entries });
  const compute = device.createComputePipeline({
    label,
    layout: device.createPipelineLayout({ label, bindGroupLayouts: [layout] }),
    compute: { module: device.createShaderModule({ label, code }), entryPoint: "main" },
  });
  return { compute, layout };
}

/** A bind group: `buffers` stand behind the bindings of these numbers, the last of them the parameters, `size` bytes each. */
export function createGroup(device, pipeline, numbers, buffers, size) {
  const last = numbers.length - 1;
  const entries = buffers.map((buffer, k) => ({
    binding: numbers[k],
    resource: k === last ? { buffer, size } : { buffer },
  }));
  return device.createBindGroup({ layout: pipeline.layout, entries });
}

/** Encodes and submits a list of dispatches, five numbers each: pipeline, group, offset of the parameters, workgroups. */
export function submit(device, pipelines, groups, list) {
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  for (let k = 0; k < list.length; k += 5) {
    if (k === 0 || list[k] !== list[k - 5]) pass.setPipeline(pipelines[list[k]].compute);
    pass.setBindGroup(0, groups[list[k + 1]], list, k + 2, 1);
    pass.dispatchWorkgroups(list[k + 3], list[k + 4]);
  }
  pass.end();
  device.queue.submit([encoder.finish()]);
}

/** Copies `bytes` of a buffer into a fresh one that can be mapped, and behind them the first `extra` of another, which become 0. */
export function copyOut(device, source, start, bytes, other, extra) {
  const size = Math.max(4, bytes + extra);
  const staging = device.createBuffer({ label: "read", size, usage: MAP_READ | COPY_DST });
  const encoder = device.createCommandEncoder();
  if (bytes > 0) encoder.copyBufferToBuffer(source, start, staging, 0, bytes);
  if (extra > 0) {
    encoder.copyBufferToBuffer(other, 0, staging, bytes, extra);
    encoder.clearBuffer(other);
  }
  device.queue.submit([encoder.finish()]);
  return staging;
}

/** A promise that `staging` can be read. */
export function map(staging) {
  return staging.mapAsync(READ);
}

/** Takes the words of a mapped buffer and frees it. */
export function take(staging, words) {
  words.set(new Uint32Array(staging.getMappedRange(), 0, words.length));
  staging.unmap();
  staging.destroy();
}

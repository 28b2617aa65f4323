// What a recorded call costs the page, beside a loop over WebGPU as somebody would write it who knows every call beforehand:
// one pipeline, bind groups made once, all parameters in one write, one pass and one submit. Only the calls are timed, not the
// device, which works on both for as long.

/** Calls in a batch: as many as the engine notes before it hands them over by itself. */
const CALLS = 256;

const ROWS = globalThis.ROWS ?? 64;
const COLUMNS = globalThis.ROWS ? 4 : 768;
const COUNT = ROWS * COLUMNS;

/** The parameters of a call, at the distance that dynamic offsets need. */
const PARAMS_SIZE = 256;

const shader = `
struct Params { count: u32 }
@group(0) @binding(0) var<storage, read> a: array<vec4f>;
@group(0) @binding(1) var<storage, read> b: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> out: array<vec4f>;
@group(0) @binding(3) var<uniform> params: Params;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (4u * id.x < params.count) { out[id.x] = a[id.x] / (1.0 + exp(-a[id.x])) * b[id.x]; }
}`;

/** The loop written by hand. */
function byHand(device) {
  const { COMPUTE } = GPUShaderStage;
  const { STORAGE, UNIFORM, COPY_DST } = GPUBufferUsage;
  const types = ["read-only-storage", "read-only-storage", "storage"];
  const entries = types.map((type, binding) => ({ binding, visibility: COMPUTE, buffer: { type } }));
  entries.push({ binding: 3, visibility: COMPUTE, buffer: { type: "uniform", hasDynamicOffset: true } });
  const layout = device.createBindGroupLayout({ entries });
  const pipeline = device.createComputePipeline({
    layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
    compute: { module: device.createShaderModule({ code: shader }) },
  });
  const [a, b, ...results] = Array.from({ length: 4 }, () =>
    device.createBuffer({ size: 4 * COUNT, usage: STORAGE | COPY_DST }),
  );
  for (const buffer of [a, b]) device.queue.writeBuffer(buffer, 0, new Float32Array(COUNT).fill(1));
  const uniforms = device.createBuffer({ size: CALLS * PARAMS_SIZE, usage: UNIFORM | COPY_DST });
  const groups = results.map((result) =>
    device.createBindGroup({
      layout,
      entries: [a, b, result, uniforms].map((buffer, binding) => ({
        binding,
        resource: { buffer, size: binding === 3 ? 16 : buffer.size },
      })),
    }),
  );
  const params = new Uint32Array((CALLS * PARAMS_SIZE) / 4);
  const offsets = Uint32Array.from({ length: CALLS }, (_, k) => k * PARAMS_SIZE);
  return {
    batch() {
      for (let k = 0; k < CALLS; k++) params[(k * PARAMS_SIZE) / 4] = COUNT;
      device.queue.writeBuffer(uniforms, 0, params);
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      for (let k = 0; k < CALLS; k++) {
        pass.setBindGroup(0, groups[k % groups.length], offsets, k, 1);
        pass.dispatchWorkgroups(COUNT / 4 / 256);
      }
      pass.end();
      device.queue.submit([encoder.finish()]);
    },
    settle: () => device.queue.onSubmittedWorkDone(),
    dispose: () => [a, b, ...results, uniforms].forEach((buffer) => buffer.destroy()),
  };
}

/** The same through the engine: a call, and its result freed. */
function recorded(engine) {
  const [a, b] = [engine.ones([ROWS, COLUMNS]), engine.ones([ROWS, COLUMNS])];
  return {
    batch() {
      for (let k = 0; k < CALLS; k++) a.siluMul(b).dispose();
    },
    settle: () => engine.sync(),
    dispose: () => [a, b].forEach((tensor) => tensor.dispose()),
  };
}

/** Microseconds of a call, one figure a batch; the device is waited for between batches, so that no queue is full. */
async function times(contestants, batches) {
  const all = contestants.map(() => []);
  for (let i = 0; i < batches; i++) {
    for (const [k, { batch, settle }] of contestants.entries()) {
      const start = performance.now();
      batch();
      all[k].push(((performance.now() - start) * 1e3) / CALLS);
      await settle();
    }
  }
  return all;
}
export async function overhead(engine, batches) {
  const contestants = [byHand(engine.gpuDevice), recorded(engine)];
  await times(contestants, Math.ceil(batches / 4));
  const all = await times(contestants, batches);
  for (const { dispose } of contestants) dispose();
  return all;
}

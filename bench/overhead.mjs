// What a recorded call costs the page, beside a loop over WebGPU as somebody would write it who knows every call beforehand:
// one pipeline, bind groups made once, all parameters in one write, one pass and one submit. Only the calls are timed: a device
// that is no part of the page works while they go on.
/** Calls in a batch: as many as the engine notes before it hands them over by itself. */
const CALLS = 256;

const ROWS = 64;
const COLUMNS = 768;

/** Batches of one row each after which the browser's compilers have done their best with the code. */
const WARM_UP = 100;

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
function byHand(device, rows) {
  const count = rows * COLUMNS;
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
    device.createBuffer({ size: 4 * count, usage: STORAGE | COPY_DST }),
  );
  for (const buffer of [a, b]) device.queue.writeBuffer(buffer, 0, new Float32Array(count).fill(1));
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
      for (let k = 0; k < CALLS; k++) params[(k * PARAMS_SIZE) / 4] = count;
      device.queue.writeBuffer(uniforms, 0, params);
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      for (let k = 0; k < CALLS; k++) {
        pass.setBindGroup(0, groups[k % groups.length], offsets, k, 1);
        pass.dispatchWorkgroups(Math.ceil(count / 4 / 256));
      }
      pass.end();
      device.queue.submit([encoder.finish()]);
    },
    settle: () => device.queue.onSubmittedWorkDone(),
    dispose: () => [a, b, ...results, uniforms].forEach((buffer) => buffer.destroy()),
  };
}

/** The same through the engine: a call, and its result freed. */
function recorded(engine, rows) {
  const [a, b] = [engine.ones([rows, COLUMNS]), engine.ones([rows, COLUMNS])];
  return {
    batch() {
      for (let k = 0; k < CALLS; k++) a.siluMul(b).dispose();
    },
    settle: () => engine.sync(),
    dispose: () => [a, b].forEach((tensor) => tensor.dispose()),
  };
}

/**
 * Milliseconds of a call by hand and of a recorded one, one figure a batch; the two take turns. The device is waited for between
 * batches, so that no queue is ever full.
 */
async function times(engine, rows, batches) {
  const contestants = [byHand(engine.gpuDevice, rows), recorded(engine, rows)];
  const all = contestants.map(() => []);
  for (let i = 0; i < batches; i++) {
    for (const [k, { batch, settle }] of contestants.entries()) {
      const start = performance.now();
      batch();
      all[k].push((performance.now() - start) / CALLS);
      await settle();
    }
  }
  for (const { dispose } of contestants) dispose();
  return all;
}

/**
 * Milliseconds of a call by hand and of a recorded one, and how many times the first the second is, each by its fastest batch: that
 * is the same in every run, whatever else the machine does. With more work than cores, medians of the same code differed tenfold.
 */
export async function overhead(engine, batches) {
  await times(engine, 1, WARM_UP);
  const [hand, own] = (await times(engine, ROWS, batches)).map((figures) => Math.min(...figures));
  return { hand, own, ratio: own / hand };
}

// What a device can do at most, measured by code of a few lines that knows nothing of wgrad: a copy over a number of
// bytes, and multiply-adds on values that stay in registers. Each is `{ amount, run(k), dispose() }`: `amount` is the
// bytes or operations of one repetition, `run` resolves when the device has done `k` of them.

const copyShader = `
@group(0) @binding(0) var<storage, read> input: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> output: array<vec4f>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) local: u32) {
  let k = (group.y * groups.x + group.x) * 256u + local;
  if (k < arrayLength(&input)) { output[k] = input[k]; }
}`;

/** Sixteen chains of four lanes are more than any GPU needs to hide the latency of one multiply-add. */
const chains = 16;
const rounds = 256;

const multiplyAddShader = `
@group(0) @binding(0) var<storage, read> input: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> output: array<vec4f>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32) {
  let factor = input[0];
  let term = input[1];
  ${list((k) => `var sum${k} = input[${k % 2}] + f32(local + ${k}u);`)}
  for (var round = 0u; round < ${rounds}u; round++) {
    ${list((k) => `sum${k} = fma(sum${k}, factor, term);`)}
  }
  output[group.x * 256u + local] = ${Array.from({ length: chains }, (_, k) => `sum${k}`).join(" + ")};
}`;

function list(line) {
  return Array.from({ length: chains }, (_, k) => line(k)).join("\n  ");
}

/** A grid of at least `groups` workgroups, within 65,535 a side. */
function grid(groups) {
  const x = Math.min(groups, 65_535);
  return [x, Math.ceil(groups / x)];
}

/** One shader of two buffers, queued on this device. */
function gpuKernel(device, code, inputBytes, outputBytes, groups) {
  const module = device.createShaderModule({ code });
  const pipeline = device.createComputePipeline({ layout: "auto", compute: { module } });
  const { STORAGE, COPY_DST } = GPUBufferUsage;
  const input = device.createBuffer({ size: inputBytes, usage: STORAGE | COPY_DST });
  const output = device.createBuffer({ size: outputBytes, usage: STORAGE });
  // Ones: zeros and subnormals may be faster or slower than numbers.
  device.queue.writeBuffer(input, 0, new Float32Array(Math.min(inputBytes, 1 << 20) / 4).fill(1));
  const bind = () =>
    device.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: [input, output].map((buffer, binding) => ({ binding, resource: { buffer } })),
    });
  const bound = bind();
  const [x, y] = grid(groups);

  function submit(bindGroup, times) {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bindGroup);
    for (let i = 0; i < times; i++) pass.dispatchWorkgroups(x, y);
    pass.end();
    device.queue.submit([encoder.finish()]);
  }

  return {
    /** All in one pass and one submit. */
    async run(k) {
      submit(bound, k);
      await device.queue.onSubmittedWorkDone();
    },
    /** A bind group, a pass and a submit for each, as a page without a recorder would. */
    async runApart(k) {
      for (let i = 0; i < k; i++) submit(bind(), 1);
      await device.queue.onSubmittedWorkDone();
    },
    dispose() {
      input.destroy();
      output.destroy();
    },
  };
}

/** The limits of a GPU device; a software one gets less work, since it would take minutes for what fills a GPU. */
export function gpuLimits(device, software) {
  return {
    /** Reads and writes half of `bytes` each. */
    copy(bytes) {
      const half = Math.ceil(bytes / 32) * 16;
      return { amount: 2 * half, ...gpuKernel(device, copyShader, half, half, Math.ceil(half / 4096)) };
    },
    multiplyAdd() {
      const groups = software ? 64 : 16_384;
      const kernel = gpuKernel(device, multiplyAddShader, 4096, groups * 256 * 16, groups);
      return { amount: groups * 256 * rounds * chains * 4 * 2, ...kernel };
    },
  };
}

/**
 * The limits of one CPU thread.
 * @param {Uint8Array} multiplyAddModule what cpu-limit.mjs assembles
 */
export async function cpuLimits(multiplyAddModule) {
  const { instance } = await WebAssembly.instantiate(multiplyAddModule);
  const { multiplyAdd, operations } = instance.exports;
  let kept = 0;
  return {
    /** Reads and writes half of `bytes` each. */
    copy(bytes) {
      const from = new Float32Array(Math.ceil(bytes / 8)).fill(1);
      const to = new Float32Array(from.length);
      return {
        amount: 8 * from.length,
        run(k) {
          for (let i = 0; i < k; i++) {
            from[0] = i;
            to.set(from);
            kept += to[0];
          }
        },
        dispose: () => undefined,
      };
    },
    multiplyAdd() {
      const rounds = 100_000;
      return {
        amount: rounds * operations.value,
        run(k) {
          for (let i = 0; i < k; i++) kept += multiplyAdd(rounds);
        },
        dispose: () => undefined,
      };
    },
    /** A sum over what was computed, so that no compiler can leave it out. */
    kept: () => kept,
  };
}

import {
  type AdamWOptions,
  type AdapterInfo,
  type DType,
  type Engine,
  type ErrorCode,
  type HostArray,
  type Init,
  type InitOptions,
  type KernelProfile,
  type MemoryInfo,
  type Nested,
  type Profile,
  type Tensor,
  type WasmSource,
  DeviceLostError,
  DisposedError,
  Optimizer,
  ShapeError,
  UnsupportedError,
  WgradError,
  init,
} from "wgrad";
import { init as slim } from "wgrad/slim";

const source: WasmSource = new URL("https://example.org/wgrad_bg.wasm");
const options: InitOptions = { device: "auto", wasm: source, powerPreference: "low-power", timeoutMs: 5000 };
const inits: Init[] = [init, slim];

export async function open(gpuDevice?: GPUDevice): Promise<Engine> {
  if (gpuDevice) return slim({ gpuDevice });
  try {
    return await init(options);
  } catch (error) {
    if (error instanceof UnsupportedError) return init({ device: "cpu" });
    throw error;
  }
}

export async function train(engine: Engine): Promise<number> {
  const x: Tensor = engine.randn([8, 4]);
  const w = engine.rand([6, 4], { low: -1, high: 1, requiresGrad: true });
  const target = engine.tensor(Int32Array.of(0, 1, 2, 0, 1, 2, 0, 1));
  const settings: AdamWOptions = { lr: 1e-3, betas: [0.9, 0.999] };
  const optimizer: Optimizer = engine.optim.adamw([w], settings);
  const loss = engine.tidy(() => {
    const hidden = x.layerNorm(null, null, { eps: 1e-5 }).linear(w).swiglu();
    const l = hidden.crossEntropy(target, { labelSmoothing: 0.1 });
    l.backward();
    return l;
  });
  optimizer.step();
  optimizer.zeroGrad();
  const grad: Tensor | null = w.grad;
  grad?.dispose();
  const gradients: [Tensor, Tensor] = engine.kernels.siluMulBackward(x, x, x);
  const values: HostArray = await gradients[0].geluMul(2, { approximate: "tanh" }).data();
  const nested: Nested = await x.reshape([-1]).slice({ start: 1, end: -1, step: 2 }).array();
  const dtype: DType = x.dtype;
  const memory: MemoryInfo = engine.memory();
  const adapter: AdapterInfo | null = engine.adapter;
  console.log(
    values.length,
    nested,
    dtype,
    memory.bytesUsed,
    adapter?.isFallback,
    engine.features.has("simd"),
  );
  engine.lost.then(({ reason, message }) => {
    console.log(reason, message);
  });
  const profile: Profile = await engine.profile(() => x.array());
  const [kernel]: readonly KernelProfile[] = profile.kernels;
  console.log(`${profile.toString()}\n${kernel?.throughput ?? 0}`, profile.trace().traceEvents.length);
  x[Symbol.dispose]();
  return loss.item();
}

export function told(error: unknown): ErrorCode | null {
  if (error instanceof ShapeError || error instanceof DisposedError) return error.code;
  if (error instanceof DeviceLostError) return "DeviceLostError";
  return error instanceof WgradError ? error.code : null;
}

// What is wrong stays wrong: nothing here is `any`.
export function wrong(engine: Engine): void {
  // @ts-expect-error: no such device
  void init({ device: "gpu" });
  // @ts-expect-error: an unknown option
  void init({ gpu: true });
  // @ts-expect-error: a string is no data
  engine.tensor("1, 2");
  // @ts-expect-error: no such type
  engine.zeros([1], { dtype: "f64" });
  // @ts-expect-error: an operand is missing
  engine.ones([1]).siluMul();
  // @ts-expect-error: reading waits
  const values: Float32Array = engine.ones([1]).data();
  console.log(values, inits);
}

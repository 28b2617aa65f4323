import type { AdapterInfo, LostInfo } from "./engine.js";
import { UnsupportedError } from "./errors.js";
import * as raw from "./generated/wgrad.js";

/** What an engine is made of. */
export interface Opened {
  readonly handle: number;
  readonly device: "webgpu" | "cpu";
  readonly fallbackReason: string | null;
  readonly adapter: AdapterInfo | null;
  readonly features: ReadonlySet<string>;
  readonly lost: Promise<LostInfo>;
}

/** How to choose. */
export interface Choice {
  readonly device: "auto" | "webgpu" | "cpu";
  readonly gpuDevice: GPUDevice | undefined;
  readonly powerPreference: "high-performance" | "low-power" | undefined;
  readonly timeoutMs: number;
  readonly cacheBytes: number | undefined;
  readonly debug: boolean;
}

/** Opens what was chosen; `"auto"` takes a hardware GPU or else the CPU, and says why. Only WebGPU can be debugged. */
export async function openDevice(choice: Choice): Promise<Opened> {
  if (choice.gpuDevice !== undefined) return adopted(choice.gpuDevice, choice);
  if (choice.device === "cpu") return cpu(null, choice);
  try {
    return await webgpu(choice);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (choice.device === "webgpu" || choice.debug) throw new UnsupportedError(`init: ${reason}`);
    return cpu(reason, choice);
  }
}

function cpu(fallbackReason: string | null, { cacheBytes }: Choice): Opened {
  return {
    handle: raw.cpuEngine(cacheBytes),
    device: "cpu",
    fallbackReason,
    adapter: null,
    features: new Set(["simd"]),
    // A CPU is not lost.
    lost: new Promise(() => undefined),
  };
}

/** Waits for at most `timeoutMs`; what comes too late goes to `late`. */
async function within<T>(
  promise: PromiseLike<T>,
  timeoutMs: number,
  what: string,
  late?: (value: T) => void,
): Promise<T> {
  // Timers count in 31 bits; longer ones fire at once.
  if (timeoutMs >= 2 ** 31) return promise;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let gaveUp = false;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      gaveUp = true;
      reject(new Error(`${what} did not answer within ${timeoutMs} ms`));
    }, timeoutMs);
  });
  Promise.resolve(promise).then(
    (value) => {
      if (gaveUp) late?.(value);
    },
    () => undefined,
  );
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function gpuOf(): GPU {
  // `navigator` is missing in Node 20; reading it there throws.
  const gpu = typeof navigator === "undefined" ? undefined : (navigator as { gpu?: GPU }).gpu;
  if (!gpu) throw new Error("WebGPU is not available here (there is no navigator.gpu)");
  return gpu;
}

async function webgpu(choice: Choice): Promise<Opened> {
  const { device, powerPreference, timeoutMs, debug, cacheBytes } = choice;
  const gpu = gpuOf();
  let adapter: GPUAdapter | null;
  try {
    const options = powerPreference === undefined ? {} : { powerPreference };
    adapter = await within(gpu.requestAdapter(options), timeoutMs, "WebGPU's requestAdapter");
  } catch (error) {
    throw new Error(`WebGPU gave no adapter: ${textOf(error)}`, { cause: error });
  }
  if (!adapter) throw new Error("WebGPU is here, but gave no adapter");
  const info = adapterInfo(adapter.info);
  if (device === "auto" && !debug && info.isFallback) {
    const name = [info.vendor, info.architecture, info.description].filter(Boolean).join(" ");
    throw new Error(`the only WebGPU adapter is a software one (${name}); the CPU engine is faster`);
  }
  const forget = (late: GPUDevice): void => {
    late.destroy();
  };
  try {
    const asked = raw.requestDevice(adapter) as Promise<GPUDevice>;
    const made = await within(asked, timeoutMs, "WebGPU's requestDevice", forget);
    return opened(raw.deviceEngine(made, true, info.isFallback, debug, cacheBytes), info);
  } catch (error) {
    throw new Error(`WebGPU gave no device: ${textOf(error)}`, { cause: error });
  }
}

function adopted(gpuDevice: GPUDevice, { debug, cacheBytes }: Choice): Opened {
  try {
    const info = adapterInfo((gpuDevice as { adapterInfo?: GPUAdapterInfo }).adapterInfo);
    return opened(raw.deviceEngine(gpuDevice, false, info.isFallback, debug, cacheBytes), info);
  } catch (error) {
    throw new UnsupportedError(`init: the given gpuDevice cannot be used: ${textOf(error)}`);
  }
}

function opened(handle: number, adapter: AdapterInfo): Opened {
  const device = raw.gpuDevice(handle) as GPUDevice;
  const lost = device.lost.then((info) => ({ reason: info.reason, message: info.message }));
  return {
    handle,
    device: "webgpu",
    fallbackReason: null,
    adapter,
    features: new Set(device.features),
    lost,
  };
}

/** Names of CPUs that pretend to be a GPU, where the browser does not say so itself. */
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|basic render|warp/i;

function adapterInfo(info: GPUAdapterInfo | undefined): AdapterInfo {
  const { vendor = "", architecture = "", device = "", description = "", isFallbackAdapter } = info ?? {};
  const named = [vendor, architecture, device, description].some((name) => SOFTWARE.test(name));
  return { vendor, architecture, description, isFallback: isFallbackAdapter === true || named };
}

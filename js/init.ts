import { booleanOption, checkOptions, choiceOption, numberOption, show } from "./check.js";
import { openDevice } from "./device.js";
import { type Engine, makeEngine } from "./engine.js";
import { ArgumentError, UnsupportedError, makeError } from "./errors.js";
import load, * as raw from "./generated/wgrad.js";

/** What the WebAssembly module can be loaded from. */
export type WasmSource = string | URL | Request | Response | BufferSource | WebAssembly.Module;

/** Options of `init`. */
export interface InitOptions {
  /**
   * Where to run. `"auto"` (the default) takes a hardware GPU, or else the CPU and says why in `fallbackReason`;
   * `"webgpu"` takes any adapter, a software one too, or throws; `"cpu"` takes the CPU.
   */
  device?: "auto" | "webgpu" | "cpu";
  /**
   * Where the WebAssembly module comes from, in place of the package's own: a URL, a response, bytes or a compiled module.
   * Only the first `init` of a page loads it.
   */
  wasm?: WasmSource;
  /** A device of yours to run on; it stays yours and outlives the engine. */
  gpuDevice?: GPUDevice;
  /** Which GPU to prefer, where there are several. */
  powerPreference?: "high-performance" | "low-power";
  /** How long WebGPU may take for each answer, in milliseconds. Default 10,000. */
  timeoutMs?: number;
  /**
   * Bytes of freed memory that the engine keeps for its next tensors. Default: as much as was in use lately, and at least 256
   * MiB on a GPU, 16 MiB on the CPU. With 0 all goes back at once, which is slower.
   */
  cacheBytes?: number;
  /**
   * Whether every call of a kernel on WebGPU is held against the same call on the CPU, to find a fault of a driver or of
   * wgrad. The first call whose results disagree stops the engine: the next read or `sync()` rejects with a
   * {@link KernelError} that says which kernel it was, how large its buffers were, and where the results lie furthest
   * apart; so does all that follows. What a read gives has been checked. `device: "auto"` takes a software adapter too, and
   * never the CPU.
   *
   * It is slow, since all that a kernel reads and writes is copied to the page, where it lies until it was compared:
   * read often. Default false
   */
  debug?: boolean;
}

/**
 * Makes an engine. It can be called many times and at the same time; all engines share one module.
 *
 * It rejects with {@link UnsupportedError} when WebAssembly cannot be loaded, or `device: "webgpu"` or `gpuDevice` or
 * `debug` cannot be had, and with {@link ArgumentError} for an option that is none.
 */
export type Init = (options?: InitOptions) => Promise<Engine>;

let loading: Promise<unknown> | null = null;

async function loadOnce(source: () => WasmSource | Promise<WasmSource>): Promise<void> {
  loading ??= (async () => {
    await load({ module_or_path: await source() });
    raw.setUp(makeError);
  })();
  try {
    await loading;
  } catch (error) {
    // The next call may try again, with another source.
    loading = null;
    throw new UnsupportedError(loadFailure(error));
  }
}

function loadFailure(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const policy = /unsafe-eval|Content Security Policy/i.test(text)
    ? " The page's content security policy must allow WebAssembly: add 'wasm-unsafe-eval' to script-src."
    : "";
  const page = /magic word.*found 3c/i.test(text)
    ? " That address gives a web page: the development server does not serve the file. Import the main entry, which has the module inside, or say where it is with init({ wasm })."
    : "";
  const fetched = /fetch/i.test(text)
    ? " Is wgrad_bg.wasm served beside the script, and does a content security policy allow connect-src 'self'?"
    : "";
  return `init: the WebAssembly module could not be loaded: ${text}${policy}${page}${fetched}`;
}

/** Whether this can do what is asked of a `GPUDevice`. */
function isDevice(value: unknown): boolean {
  const can = (thing: unknown, methods: readonly string[]): boolean =>
    typeof thing === "object" &&
    thing !== null &&
    methods.every((name) => typeof (thing as Record<string, unknown>)[name] === "function");
  const made = [
    "createBuffer",
    "createShaderModule",
    "createComputePipeline",
    "createBindGroup",
    "createCommandEncoder",
  ];
  return can(value, made) && can((value as { queue?: unknown }).queue, ["submit", "writeBuffer"]);
}

const DEVICES = ["auto", "webgpu", "cpu"] as const;
const POWER = ["high-performance", "low-power"] as const;

/**
 * Makes `init` for an entry of the package, which says where its module comes from.
 * @internal
 */
export function makeInit(own: () => WasmSource | Promise<WasmSource>): Init {
  return async (options) => {
    checkOptions("init", options, [
      "device",
      "wasm",
      "gpuDevice",
      "powerPreference",
      "timeoutMs",
      "cacheBytes",
      "debug",
    ]);
    const device = DEVICES[choiceOption("init", "device", options?.device, DEVICES)] ?? "auto";
    const preference = options?.powerPreference;
    if (preference !== undefined) choiceOption("init", "powerPreference", preference, POWER);
    const timeoutMs = numberOption("init", "timeoutMs", options?.timeoutMs, 10_000);
    if (timeoutMs <= 0) throw new ArgumentError(`init: timeoutMs is ${timeoutMs}; it must be above 0`);
    const cacheBytes = options?.cacheBytes;
    if (cacheBytes !== undefined && !(numberOption("init", "cacheBytes", cacheBytes, 0) >= 0)) {
      throw new ArgumentError(`init: cacheBytes is ${cacheBytes}; it must be 0 or more`);
    }
    const debug = booleanOption("init", "debug", options?.debug, false);
    if (debug && device === "cpu") {
      throw new ArgumentError(
        'init: debug holds WebGPU against the CPU; it and device: "cpu" exclude each other',
      );
    }
    const gpuDevice = options?.gpuDevice;
    // Callers without types give anything.
    const given: unknown = gpuDevice;
    if (given !== undefined && device === "cpu") {
      throw new ArgumentError('init: gpuDevice and device: "cpu" exclude each other');
    }
    if (given !== undefined && !isDevice(given)) {
      throw new ArgumentError(`init: gpuDevice is ${show(given)}; it must be a GPUDevice`);
    }
    const { wasm } = options ?? {};
    if (
      wasm !== undefined &&
      typeof wasm !== "string" &&
      (typeof wasm !== "object" || (wasm as unknown) === null)
    ) {
      throw new ArgumentError(`init: wasm is ${show(wasm)}; it must be a URL, a Response, bytes or a module`);
    }
    await loadOnce(wasm === undefined ? own : () => wasm);
    const choice = { device, gpuDevice, powerPreference: preference, timeoutMs, cacheBytes, debug };
    return makeEngine(await openDevice(choice));
  };
}

import { booleanOption, checkOptions, checkShape, numberOption, show } from "./check.js";
import type { Opened } from "./device.js";
import { ArgumentError, DTypeError, DisposedError, ShapeError, named } from "./errors.js";
import * as raw from "./generated/wgrad.js";
import {
  type DType,
  type NestedArray,
  type TypedArray,
  dtypeNumber,
  hostValues,
  wholeNumber,
} from "./host.js";
import { RawKernels } from "./kernels.js";
import { catchForgotten, release } from "./net.js";
import { Optimizers } from "./optim.js";
import { type Profile, makeProfile } from "./profile.js";
import { Registry } from "./registry.js";
import { Tensor, makeTensor } from "./tensor.js";

/** What every tensor-making call takes. */
export interface TensorOptions {
  /** The element type. Default `"f32"`, or what the data suggest. */
  dtype?: DType;
  /** Whether `backward` collects a gradient here. */
  requiresGrad?: boolean;
}

/** Options of `engine.tensor`. */
export interface DataOptions extends TensorOptions {
  /** The shape; one dimension, or that of the nested arrays, when left out. */
  shape?: readonly number[];
}

/** Options of `engine.rand`. */
export interface RandOptions extends TensorOptions {
  /** The lower end, included. Default 0. */
  low?: number;
  /** The upper end, excluded. Default 1. */
  high?: number;
}

/** Why a GPU device was lost, in WebGPU's words. */
export interface LostInfo {
  /** `"destroyed"` when it was given back, by `dispose()` too; otherwise `"unknown"`. */
  readonly reason: string;
  /** What the browser says about it. */
  readonly message: string;
}

/** The GPU an engine runs on, in WebGPU's words; parts that the browser keeps to itself are empty. */
export interface AdapterInfo {
  /** Who made it, such as `"nvidia"`. */
  readonly vendor: string;
  /** The family, such as `"hopper"`. */
  readonly architecture: string;
  /** The model and the driver, where the browser tells. */
  readonly description: string;
  /** Whether it is a CPU that pretends to be a GPU. */
  readonly isFallback: boolean;
}

/** What an engine holds. */
export interface MemoryInfo {
  /** Tensors that were not disposed. */
  readonly tensors: number;
  /** Bytes that live tensors need, those a graph keeps included. */
  readonly bytesUsed: number;
  /** Bytes held from the device, buffers kept for reuse included. */
  readonly bytesAllocated: number;
  /** The most bytes that live tensors needed at one time. */
  readonly bytesPeak: number;
  /**
   * GPU objects made so far: buffers, bind groups and pipelines; 0 on the CPU. Work that repeats makes none once it is warm.
   */
  readonly objectsCreated: number;
}

let construct: (opened: Opened) => Engine;

/**
 * A device on which tensors live and operations run. Made by {@link init}; tensors of different engines do not mix.
 *
 * Methods that make tensors throw {@link DisposedError} once the engine was disposed, {@link ArgumentError} for an unknown
 * option, {@link ShapeError} for a shape that is none, {@link DTypeError} for a type that is none or an integer type with
 * `requiresGrad`, and {@link LimitError} for more than 8 dimensions or more than the device and the memory hold.
 */
export class Engine {
  static {
    named(this, "Engine");
  }

  /** Where it runs. */
  readonly device: "webgpu" | "cpu";
  /** Why `device: "auto"` took the CPU; null otherwise. */
  readonly fallbackReason: string | null;
  /** The GPU, on a WebGPU engine. */
  readonly adapter: AdapterInfo | null;
  /** Features in force: WebGPU's names, and `"simd"` on the CPU. */
  readonly features: ReadonlySet<string>;
  /** Resolves when the GPU device is lost, which the engine's own `dispose()` brings about too; pending until then. */
  readonly lost: Promise<LostInfo>;
  /** The fused kernels without the tape. */
  readonly kernels: RawKernels;
  /** Makers of optimizers. */
  readonly optim: Optimizers;
  readonly #registry = new Registry();
  #handle: number;

  static {
    construct = (opened) => new Engine(opened);
  }

  private constructor(opened: Opened) {
    this.#handle = opened.handle;
    this.device = opened.device;
    this.fallbackReason = opened.fallbackReason;
    this.adapter = opened.adapter;
    this.features = opened.features;
    this.lost = opened.lost;
    this.kernels = new RawKernels(this, (handle) => makeTensor(this, this.#registry, handle));
    this.optim = new Optimizers(this);
    catchForgotten(this, disposing(opened.handle));
  }

  #live(): number {
    if (this.#handle === 0) throw new DisposedError("engine: it was disposed; make a new one with init()");
    return this.#handle;
  }

  #finish(handle: number, requiresGrad: unknown, op: string): Tensor {
    const tensor = makeTensor(this, this.#registry, handle);
    try {
      if (booleanOption(op, "requiresGrad", requiresGrad, false)) tensor.requiresGrad = true;
    } catch (error) {
      tensor.dispose();
      throw error;
    }
    return tensor;
  }

  /** The `GPUDevice` of a WebGPU engine, for work of your own beside it; null on the CPU. */
  get gpuDevice(): GPUDevice | null {
    return (raw.gpuDevice(this.#live()) as GPUDevice | undefined) ?? null;
  }

  /**
   * A tensor from a typed array, nested arrays or a number. The data are copied. Float32 and Float64 give f32, Float16
   * f16, signed and short integers i32, Uint32 u32, truth values bool, plain numbers f32; `dtype` overrides.
   * @param data a typed array (one dimension unless `shape` is given), arrays nested to one depth, or a scalar
   * @throws {@link ShapeError} for ragged arrays, and when `shape` has not as many elements as the data
   * @throws {@link ArgumentError} for data that are none of these, and for a value that an integer type does not hold
   * @throws {@link LimitError} for arrays nested deeper than 8 levels
   * @example
   * ```ts
   * engine.tensor([[1, 2, 3], [4, 5, 6]]).shape; // [2, 3]
   * engine.tensor(new Float32Array(6), { shape: [2, 3], requiresGrad: true }).shape; // [2, 3]
   * ```
   */
  tensor(data: TypedArray | NestedArray | number | boolean, options?: DataOptions): Tensor {
    checkOptions("tensor", options, ["shape", "dtype", "requiresGrad"]);
    if (options?.dtype !== undefined) dtypeNumber("tensor", options.dtype);
    const given = options?.shape === undefined ? undefined : checkShape("tensor", options.shape);
    const { values, shape, dtype } = hostValues(data, given, options?.dtype);
    const elements = shape.reduce((a, b) => a * b, 1);
    if (values.length !== elements) {
      throw new ShapeError(
        `tensor: ${values.length} values for shape ${show(shape)}, which has ${elements} elements`,
      );
    }
    const [engine, kind] = [this.#live(), dtypeNumber("tensor", dtype)];
    const handle =
      values instanceof Float32Array
        ? raw.fromF32(engine, values, shape, kind)
        : values instanceof Int32Array
          ? raw.fromI32(engine, values, shape)
          : raw.fromU32(engine, values, shape, kind);
    return this.#finish(handle, options?.requiresGrad, "tensor");
  }

  /** A tensor of zeros. */
  zeros(shape: readonly number[], options?: TensorOptions): Tensor {
    return this.#filled("zeros", 1, shape, 0, options);
  }

  /** A tensor of ones. */
  ones(shape: readonly number[], options?: TensorOptions): Tensor {
    return this.#filled("ones", 2, shape, 1, options);
  }

  /**
   * A tensor filled with one value.
   * @throws {@link ArgumentError} for a value that is no number, or that an integer `dtype` does not hold
   */
  full(shape: readonly number[], value: number, options?: TensorOptions): Tensor {
    if (typeof value !== "number")
      throw new ArgumentError(`full: value is ${show(value)}; it must be a number`);
    return this.#filled("full", 0, shape, value, options);
  }

  #filled(
    op: string,
    caller: number,
    shape: readonly number[],
    value: number,
    options?: TensorOptions,
  ): Tensor {
    checkOptions(op, options, ["dtype", "requiresGrad"]);
    const { dtype } = options ?? {};
    if (dtype === "i32" || dtype === "u32") wholeNumber(value, dtype, op);
    const sizes = checkShape(op, shape);
    const handle = raw.full(
      this.#live(),
      sizes,
      value,
      dtypeNumber(op, options?.dtype === undefined ? "f32" : options.dtype),
      caller,
    );
    return this.#finish(handle, options?.requiresGrad, op);
  }

  /**
   * Uniform random numbers in `[low, high)`: 24 bits each of Philox4x32-10 (Salmon et al. 2011), the same on every device
   * for one seed. Without {@link Engine.manualSeed} the seed is 0: a new engine gives the same numbers every time.
   * @throws {@link ArgumentError} unless both ends are finite in f32 and `low` is below `high`
   * @throws {@link DTypeError} for a type other than f32 and f16
   */
  rand(shape: readonly number[], options?: RandOptions): Tensor {
    checkOptions("rand", options, ["low", "high", "dtype", "requiresGrad"]);
    const [low, high] = [
      numberOption("rand", "low", options?.low, 0),
      numberOption("rand", "high", options?.high, 1),
    ];
    const finite = [low, high].every((end) => Number.isFinite(Math.fround(end)));
    if (!finite || !(low < high))
      throw new ArgumentError(
        `rand: low is ${low} and high is ${high}; both must be finite f32 numbers, low below high`,
      );
    const sizes = checkShape("rand", shape);
    const handle = raw.uniform(this.#live(), sizes, low, high, floatType("rand", options?.dtype));
    return this.#finish(handle, options?.requiresGrad, "rand");
  }

  /**
   * Normal random numbers of mean 0 and variance 1, by Box and Muller (1958) from the numbers of {@link Engine.rand}.
   * @throws {@link DTypeError} for a type other than f32 and f16
   */
  randn(shape: readonly number[], options?: TensorOptions): Tensor {
    checkOptions("randn", options, ["dtype", "requiresGrad"]);
    const sizes = checkShape("randn", shape);
    const handle = raw.randn(this.#live(), sizes, floatType("randn", options?.dtype));
    return this.#finish(handle, options?.requiresGrad, "randn");
  }

  /**
   * Sets the state of the random numbers: equal seeds give equal numbers on every device.
   * @param seed a whole number from 0 to 2^53 - 1
   * @throws {@link ArgumentError} for another
   */
  manualSeed(seed: number): void {
    if (!Number.isSafeInteger(seed) || seed < 0) {
      throw new ArgumentError(
        `manualSeed: seed is ${show(seed)}; it must be a whole number from 0 to 2^53 - 1`,
      );
    }
    raw.manualSeed(this.#live(), seed >>> 0, Math.floor(seed / 2 ** 32));
  }

  /**
   * Runs `f` and disposes every tensor made inside, except what `f` returns (a tensor, or tensors in arrays and plain
   * objects). Gradients of tensors that outlive it survive. Calls nest: what an inner one returns belongs to the outer one.
   * @returns what `f` returns
   * @throws {@link ArgumentError} when `f` is asynchronous: its tensors would be freed while it still runs
   * @example
   * ```ts
   * const x = engine.tensor([1, 2, 3]);
   * const y = engine.tidy(() => x.mul(x).add(1)); // the product is freed
   * await y.array(); // [2, 5, 10]
   * ```
   */
  tidy<T>(f: () => T): T {
    checkFunction("tidy", f);
    return this.#scoped(f, (result) => {
      rejectPromise("tidy", result);
      return tensorsIn(result);
    });
  }

  /** Runs `f` and disposes every tensor made inside, except those that `kept` gives for its result and what it made. */
  #scoped<T>(f: () => T, kept: (result: T, made: readonly Tensor[]) => ReadonlySet<Tensor>): T {
    const scope: Tensor[] = [];
    this.#registry.scopes.push(scope);
    let survivors: ReadonlySet<Tensor> = new Set();
    try {
      const result = f();
      survivors = kept(result, scope);
      return result;
    } finally {
      this.#registry.scopes.splice(this.#registry.scopes.indexOf(scope), 1);
      const outer = this.#registry.scopes.at(-1);
      for (const tensor of scope) {
        if (survivors.has(tensor)) outer?.push(tensor);
        else tensor.dispose();
      }
    }
  }

  /**
   * Runs `f` without recording: its results need no gradient, and nothing is kept for a backward pass.
   * @returns what `f` returns
   * @throws {@link ArgumentError} when `f` is asynchronous: what runs meanwhile would not be recorded either
   */
  noGrad<T>(f: () => T): T {
    checkFunction("noGrad", f);
    const engine = this.#live();
    raw.pauseRecording(engine, true);
    try {
      const result = f();
      rejectPromise("noGrad", result);
      return result;
    } finally {
      raw.pauseRecording(engine, false);
    }
  }

  /** What the engine holds at the moment. */
  memory(): MemoryInfo {
    const [bytesUsed = 0, bytesAllocated = 0, bytesPeak = 0, objectsCreated = 0] = raw.memoryInfo(
      this.#live(),
    );
    return { tensors: this.#registry.tensors, bytesUsed, bytesAllocated, bytesPeak, objectsCreated };
  }

  /**
   * Runs `f` and tells what each kernel that it called cost. Work that was queued before is finished first and is not in
   * it; work that others queue while an asynchronous `f` waits is. On the CPU times are those of the host's clock, which
   * browsers coarsen, to 0.1 ms or 1 ms: a kernel's sum over many calls says more than one call.
   * @param f what to measure; it may be asynchronous, and its result is dropped. Tensors that it makes are its own to free
   * @throws {@link ArgumentError} when `f` is no function, and during another profile of this engine: they neither nest nor
   *   overlap
   * @throws {@link UnsupportedError} where the device cannot note calls
   * @throws {@link KernelError} when the GPU rejected queued work
   * @throws what `f` throws, once the profile is ended
   * @example
   * ```ts
   * const a = engine.ones([64, 32]);
   * const b = engine.ones([32, 16]);
   * const profile = await engine.profile(() => {
   *   for (let k = 0; k < 10; k++) a.matmul(b).dispose();
   * });
   * profile.kernels[0].kernel; // "matmul"
   * profile.kernels[0].calls; // 10
   * profile.calls[0].flops; // 65536
   * const table = profile.toString(); // times in ms, GB/s and GFLOP/s
   * const file = JSON.stringify(profile.trace()); // for chrome://tracing and Perfetto
   * ```
   */
  async profile<T>(f: () => T | Promise<T>): Promise<Profile> {
    checkFunction("profile", f);
    await this.sync();
    raw.profileStart(this.#live());
    try {
      await f();
    } catch (error) {
      // What f threw is what counts.
      await this.#stopProfile().catch(() => undefined);
      throw error;
    }
    return makeProfile(await this.#stopProfile());
  }

  async #stopProfile(): Promise<[string[], Float64Array]> {
    return (await raw.profileStop(this.#live())) as [string[], Float64Array];
  }

  /**
   * Resolves once the device has done everything queued so far. Only measurements need it: reading waits by itself.
   * @throws {@link KernelError} when the GPU rejected queued work
   */
  async sync(): Promise<void> {
    await raw.sync(this.#live());
  }

  /**
   * Runs `f` once, so that all it needs is there when it runs again: its kernels are compiled while the page goes on, its
   * memory is taken. What `f` changes is changed. The tensors that it makes are disposed, unless it is asynchronous.
   * @param f what is to be quick later, such as a training step
   * @returns when the device has compiled and done all of it
   * @throws {@link KernelError} when the device cannot compile a kernel or rejects its work; what `f` throws
   * @example
   * ```ts
   * const x = engine.ones([8, 64]);
   * const model = () => x.layerNorm().siluMul(x);
   * await engine.warmup(model);
   * model().shape; // [8, 64]
   * ```
   */
  async warmup(f: () => unknown): Promise<void> {
    checkFunction("warmup", f);
    // An asynchronous function is not done with its tensors when it returns.
    await this.#scoped(f, (result, made) => new Set(isPromise(result) ? made : []));
    await this.sync();
  }

  /** Gives the device's memory back; the engine's tensors cannot be used after it. A second call does nothing. */
  dispose(): void {
    if (this.#handle === 0) return;
    release(this);
    raw.disposeEngine(this.#handle);
    this.#handle = 0;
  }

  /** As `dispose`, for `using`. */
  [Symbol.dispose](): void {
    this.dispose();
  }
}

/**
 * Wraps what `init()` opened.
 * @internal
 */
export function makeEngine(opened: Opened): Engine {
  return construct(opened);
}

function floatType(op: string, dtype: DType | undefined): number {
  const kind = dtypeNumber(op, dtype === undefined ? "f32" : dtype);
  if (dtype === undefined || dtype === "f32" || dtype === "f16") return kind;
  throw new DTypeError(`${op}: dtype is ${show(dtype)}; random numbers are f32 or f16`);
}

function checkFunction(op: string, f: unknown): void {
  if (typeof f !== "function") throw new ArgumentError(`${op}: it takes a function, not ${show(f)}`);
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

function rejectPromise(op: string, result: unknown): void {
  if (isPromise(result)) {
    // Nobody else will look at it; its own failure would be an unhandled rejection.
    Promise.resolve(result).catch(() => undefined);
    throw new ArgumentError(`${op}: the function is asynchronous; it must finish before ${op} returns`);
  }
}

function tensorsIn(value: unknown, found = new Set<Tensor>(), seen = new Set<object>()): Set<Tensor> {
  if (value instanceof Tensor) found.add(value);
  else if (typeof value === "object" && value !== null && !seen.has(value) && !ArrayBuffer.isView(value)) {
    seen.add(value);
    for (const part of Object.values(value)) tensorsIn(part, found, seen);
  }
  return found;
}

/** What disposes an engine. Made here: a closure of the constructor would hold the engine, and nothing would ever collect it. */
function disposing(handle: number): () => void {
  return () => {
    raw.disposeEngine(handle);
  };
}

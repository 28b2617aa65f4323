import {
  booleanOption,
  checkDims,
  checkIndex,
  checkOptions,
  checkShape,
  choiceOption,
  numberOption,
  show,
} from "./check.js";
import type { Engine } from "./engine.js";
import { ArgumentError, DisposedError, named } from "./errors.js";
import * as raw from "./generated/wgrad.js";
import { DTYPES, type DType, type HostArray, type Nested, halfBits, nested } from "./host.js";
import type { Registry } from "./registry.js";

/** An operand: a number stands for a scalar tensor of the other operand's type. */
export type Operand = Tensor | number;

/** Which GELU: `"none"` is exact (by erf), `"tanh"` the approximation. */
export interface GeluOptions {
  approximate?: "none" | "tanh";
}

/** Options of `layerNorm`. */
export interface LayerNormOptions {
  /** The last dimensions that are normalised; the last one when left out. */
  normalizedShape?: readonly number[];
  /** Added to the variance. Default 1e-5. */
  eps?: number;
}

/** Options of sums and means. */
export interface ReduceOptions {
  /** The dimension or dimensions; all when left out. Negative ones count from the end. */
  dim?: number | readonly number[] | null;
  /** Whether reduced dimensions stay, at size 1. */
  keepdim?: boolean;
}

/** Options of `crossEntropy`. */
export interface CrossEntropyOptions {
  /** How the rows' losses become the result. Default `"mean"`, over the rows that count. */
  reduction?: "mean" | "sum" | "none";
  /** The target of rows that do not count. Default -100. */
  ignoreIndex?: number;
  /** The part of the target spread over all classes, 0 to 1. Default 0. */
  labelSmoothing?: number;
}

/** Options of `slice`. `start` and `end` count from the end when negative and are clamped, as in Python. */
export interface SliceOptions {
  dim?: number;
  start?: number;
  end?: number;
  step?: number;
}

/** Options of `backward`. */
export interface BackwardOptions {
  /** Keeps the graph for another `backward`. */
  retainGraph?: boolean;
}

const NONE: readonly number[] = [];

/** Operations' numbers, asked for once. */
const numbers = new Map<string, number>();

function operationNumber(op: string): number {
  let number = numbers.get(op);
  if (number === undefined) {
    number = raw.operation(op);
    if (number === undefined) throw new Error(`the module has no operation ${op}: it is of another version`);
    numbers.set(op, number);
  }
  return number;
}

let construct: (engine: Engine, registry: Registry, handle: number) => Tensor;
let handleOf: (tensor: unknown, op: string, name: string) => number;

/**
 * An n-dimensional array on an engine's device. Every operation is a method that returns a new tensor at once and
 * queues the work; only reading waits. Operations borrow their arguments.
 *
 * Free it with `dispose()`, `using` or `engine.tidy()`.
 */
export class Tensor {
  /** The engine it lives on. */
  readonly engine: Engine;
  readonly #registry: Registry;
  #handle: number;
  #shape: readonly number[] | null = null;

  static {
    named(this, "Tensor");
    construct = (engine, registry, handle) => new Tensor(engine, registry, handle);
    handleOf = (tensor, op, name) => {
      if (!(tensor instanceof Tensor))
        throw new ArgumentError(`${op}: ${name} is ${show(tensor)}; it must be a tensor`);
      return tensor.#live(op);
    };
  }

  private constructor(engine: Engine, registry: Registry, handle: number) {
    this.engine = engine;
    this.#registry = registry;
    this.#handle = handle;
    registry.add(this, handle);
  }

  #live(op: string): number {
    if (this.#handle === 0) {
      throw new DisposedError(`${op}: this tensor was disposed (by dispose(), using, or the end of a tidy)`);
    }
    return this.#handle;
  }

  #wrap(handle: number): Tensor {
    return new Tensor(this.engine, this.#registry, handle);
  }

  /** Calls an operation of this tensor, up to two more, and numbers. */
  #call(op: string, numbers: readonly number[] = NONE, b = 0, c = 0): Tensor {
    const [number, a] = [operationNumber(op), this.#live(op)];
    const handle =
      numbers.length === 0
        ? raw.run(number, a, b, c)
        : raw.runWith(number, a, b, c, Float64Array.from(numbers));
    return this.#wrap(handle);
  }

  /** Calls a binary operation; a number becomes a scalar for the length of the call. */
  #binary(op: string, other: Operand, numbers?: readonly number[]): Tensor {
    if (typeof other !== "number") return this.#call(op, numbers, handleOf(other, op, "the other operand"));
    const a = this.#live(op);
    const scalar = raw.full(this.#engineHandle(), new Uint32Array(0), other, raw.dtype(a), 0);
    try {
      return this.#call(op, numbers, scalar);
    } finally {
      raw.free(scalar);
    }
  }

  #engineHandle(): number {
    return engineHandle(this.engine);
  }

  /** The sizes of the dimensions; `[]` for a scalar. */
  get shape(): number[] {
    this.#shape ??= Array.from(raw.shape(this.#live("shape")));
    return [...this.#shape];
  }

  /** The type of the elements. */
  get dtype(): DType {
    return DTYPES[raw.dtype(this.#live("dtype"))] ?? "f32";
  }

  /** Whether gradients flow to or through this tensor. */
  get requiresGrad(): boolean {
    return raw.requiresGrad(this.#live("requiresGrad"));
  }

  set requiresGrad(on: boolean) {
    raw.setRequiresGrad(this.#live("requiresGrad"), booleanOption("requiresGrad", "the value", on, false));
  }

  /** The gradient that `backward` has collected here, as a new handle, or null. Assigning null forgets it. */
  get grad(): Tensor | null {
    const handle = raw.grad(this.#live("grad"));
    return handle === 0 ? null : this.#wrap(handle);
  }

  set grad(gradient: Tensor | null) {
    raw.setGrad(this.#live("grad"), gradient === null ? 0 : handleOf(gradient, "grad", "the gradient"));
  }

  /**
   * Sends a gradient back to every leaf this tensor was computed from; there they add up in `grad`.
   * @param upstream the gradient of this tensor, of its shape and type; a tensor of one element can do without (1)
   * @throws GradError without a graph, or when it was freed by an earlier call without `retainGraph`
   */
  backward(upstream?: Tensor | null, options?: BackwardOptions): void {
    checkOptions("backward", options, ["retainGraph"]);
    const up = upstream === undefined || upstream === null ? 0 : handleOf(upstream, "backward", "upstream");
    raw.backward(
      this.#live("backward"),
      up,
      booleanOption("backward", "retainGraph", options?.retainGraph, false),
    );
  }

  /** The same elements outside the graph. */
  detach(): Tensor {
    return this.#call("detach");
  }

  /**
   * The elements in row-major order, in a fresh array: f32 and f16 as `Float32Array`, i32 as `Int32Array`, u32 as
   * `Uint32Array`, bool as `Uint8Array`. With `raw`, f16 comes as the bits in a `Uint16Array`.
   */
  async data(options?: { raw?: boolean }): Promise<HostArray> {
    checkOptions("data", options, ["raw"]);
    const handle = this.#live("data");
    const bits = booleanOption("data", "raw", options?.raw, false) && this.dtype === "f16";
    const values = (await raw.data(handle)) as HostArray;
    return bits && values instanceof Float32Array ? halfBits(values) : values;
  }

  /** The elements as nested arrays; a scalar as a number, bool as truth values. */
  async array(): Promise<Nested> {
    const { shape, dtype } = this;
    return nested(await this.data(), shape, dtype === "bool");
  }

  /**
   * The only element as a number.
   * @throws ArgumentError when there are more, or none
   */
  async item(): Promise<number> {
    const { shape } = this;
    if (shape.some((d) => d !== 1)) {
      throw new ArgumentError(`item: shape ${show(shape)} has not exactly one element; read data() instead`);
    }
    return (await this.data())[0] ?? NaN;
  }

  /** Frees this handle; what a graph still needs lives on until its backward is done. A second call does nothing. */
  dispose(): void {
    if (this.#handle === 0) return;
    const handle = this.#handle;
    this.#handle = 0;
    this.#registry.remove(this, handle);
  }

  /** As `dispose`, for `using`. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  /** `this + other`, broadcast. */
  add(other: Operand): Tensor {
    return this.#binary("add", other);
  }

  /** `this - other`, broadcast. */
  sub(other: Operand): Tensor {
    return this.#binary("sub", other);
  }

  /** `this * other`, broadcast. */
  mul(other: Operand): Tensor {
    return this.#binary("mul", other);
  }

  /** `this / other`, broadcast. */
  div(other: Operand): Tensor {
    return this.#binary("div", other);
  }

  /** `silu(this) * b`, broadcast, as one kernel: SwiGLU with separate operands. */
  siluMul(b: Operand): Tensor {
    return this.#binary("siluMul", b);
  }

  /** `gelu(this) * b`, broadcast, as one kernel: GEGLU with separate operands. */
  geluMul(b: Operand, options?: GeluOptions): Tensor {
    return this.#binary("geluMul", b, [approximation("geluMul", options)]);
  }

  /** `relu(this) * b`, broadcast, as one kernel. NaN stays NaN. */
  reluMul(b: Operand): Tensor {
    return this.#binary("reluMul", b);
  }

  /** `sigmoid(this) * b`, broadcast, as one kernel. */
  sigmoidMul(b: Operand): Tensor {
    return this.#binary("sigmoidMul", b);
  }

  /** `silu(x[…, :d]) * x[…, d:]` of `[…, 2d]`, without a copy. */
  swiglu(): Tensor {
    return this.#call("swiglu");
  }

  /** `gelu(x[…, :d]) * x[…, d:]` of `[…, 2d]`, without a copy. */
  geglu(options?: GeluOptions): Tensor {
    return this.#call("geglu", [approximation("geglu", options)]);
  }

  /** `relu(x[…, :d]) * x[…, d:]` of `[…, 2d]`, without a copy. */
  reglu(): Tensor {
    return this.#call("reglu");
  }

  /** `x[…, :d] * sigmoid(x[…, d:])` of `[…, 2d]`, without a copy: the gate is the second half, as in PyTorch. */
  glu(): Tensor {
    return this.#call("glu");
  }

  /**
   * Layer normalisation (Ba et al. 2016): `(x - mean) / sqrt(var + eps) * weight + bias` over the last dimensions,
   * biased variance. `weight` and `bias` are each optional and have the shape of what is normalised.
   */
  layerNorm(weight?: Tensor | null, bias?: Tensor | null, options?: LayerNormOptions): Tensor {
    checkOptions("layerNorm", options, ["normalizedShape", "eps"]);
    const eps = numberOption("layerNorm", "eps", options?.eps, 1e-5);
    const normalized = options?.normalizedShape ?? this.shape.slice(-1);
    const sizes = checkShape("layerNorm", normalized);
    const [w, b] = [optionalHandle(weight, "layerNorm", "weight"), optionalHandle(bias, "layerNorm", "bias")];
    return this.#call("layerNorm", [eps, ...sizes], w, b);
  }

  /** The matrix product; dimensions before the last two are batches and broadcast. */
  matmul(other: Tensor): Tensor {
    return this.#call("matmul", NONE, handleOf(other, "matmul", "the other operand"));
  }

  /** `this · weightᵀ + bias`: `weight` is `[out, in]`, `bias` is `[out]`. */
  linear(weight: Tensor, bias?: Tensor | null): Tensor {
    const [w, b] = [handleOf(weight, "linear", "weight"), optionalHandle(bias, "linear", "bias")];
    return this.#call("linear", NONE, w, b);
  }

  /** The sum over dimensions, in one fixed order. */
  sum(options?: ReduceOptions): Tensor {
    return this.#reduce("sum", options);
  }

  /** The mean over dimensions; NaN over no element. */
  mean(options?: ReduceOptions): Tensor {
    return this.#reduce("mean", options);
  }

  #reduce(op: string, options: ReduceOptions | undefined): Tensor {
    checkOptions(op, options, ["dim", "keepdim"]);
    const keepdim = booleanOption(op, "keepdim", options?.keepdim, false);
    const dims = checkDims(op, options?.dim);
    return this.#call(op, [Number(keepdim), Number(dims !== undefined), ...(dims ?? NONE)]);
  }

  /**
   * Softmax cross-entropy of logits `[rows, classes]` and i32 targets `[rows]` (or `[n, classes, d…]` and `[n, d…]`).
   * A target that is no class is an IndexError: at once on the CPU, with the next read on WebGPU.
   */
  crossEntropy(target: Tensor, options?: CrossEntropyOptions): Tensor {
    const op = "crossEntropy";
    checkOptions(op, options, ["reduction", "ignoreIndex", "labelSmoothing"]);
    const reduction = choiceOption(op, "reduction", options?.reduction, ["mean", "sum", "none"]);
    const ignore = checkIndex(op, "ignoreIndex", options?.ignoreIndex ?? -100);
    const smoothing = numberOption(op, "labelSmoothing", options?.labelSmoothing, 0);
    const labels = handleOf(target, op, "target");
    return this.#call(op, [reduction, ignore, smoothing], labels);
  }

  /** A row-major tensor of the same elements: a copy only where this is a view in another order. */
  contiguous(): Tensor {
    return this.#call("contiguous");
  }

  /** The same elements in order under another shape; one size may be -1. */
  reshape(shape: readonly number[]): Tensor {
    return this.#call("reshape", Array.from(checkShape("reshape", shape, -1)));
  }

  /** Two dimensions exchanged, as a view. */
  transpose(dim0: number, dim1: number): Tensor {
    const [a, b] = [checkIndex("transpose", "dim0", dim0), checkIndex("transpose", "dim1", dim1)];
    return this.#call("transpose", [a, b]);
  }

  /** Dimension `k` of the result is dimension `dims[k]`, as a view. */
  permute(dims: readonly number[]): Tensor {
    return this.#call("permute", Array.from(checkDims("permute", dims) ?? NONE));
  }

  /** Broadcast to a shape without a copy; -1 keeps a size. */
  expand(shape: readonly number[]): Tensor {
    return this.#call("expand", Array.from(checkShape("expand", shape, -1)));
  }

  /** A range of one dimension, as a view. */
  slice(options: SliceOptions): Tensor {
    const given: unknown = options;
    checkOptions("slice", given === undefined ? null : given, ["dim", "start", "end", "step"]);
    const at = (name: keyof SliceOptions, otherwise: number): number => {
      const value = options[name] ?? otherwise;
      return value === Infinity ? 2 ** 31 - 1 : checkIndex("slice", name, value);
    };
    return this.#call("slice", [at("dim", 0), at("start", 0), at("end", Infinity), at("step", 1)]);
  }

  /** `length` elements of `dim` from `start`, as a view. */
  narrow(dim: number, start: number, length: number): Tensor {
    const [d, s] = [checkIndex("narrow", "dim", dim), checkIndex("narrow", "start", start)];
    const n = checkIndex("narrow", "length", length);
    if (n < 0) throw new ArgumentError(`narrow: length is ${n}; it must be 0 or more`);
    return this.#call("narrow", [d, s, n]);
  }

  /** A dimension of size 1 inserted before `dim`. */
  unsqueeze(dim: number): Tensor {
    return this.#call("unsqueeze", [checkIndex("unsqueeze", "dim", dim)]);
  }

  /** The dimension `dim` removed if its size is 1; all of size 1 when it is left out. */
  squeeze(dim?: number): Tensor {
    return this.#call("squeeze", dim === undefined ? NONE : [checkIndex("squeeze", "dim", dim)]);
  }

  /** The dimensions `startDim` to `endDim`, both included, as one. */
  flatten(startDim = 0, endDim = -1): Tensor {
    const [a, b] = [checkIndex("flatten", "startDim", startDim), checkIndex("flatten", "endDim", endDim)];
    return this.#call("flatten", [a, b]);
  }

  /** Type, shape and device in words. */
  toString(): string {
    if (this.#handle === 0) return "Tensor(disposed)";
    return `Tensor(${this.dtype}, [${this.shape.join(", ")}], ${this.engine.device})`;
  }
}

let engineHandle: (engine: Engine) => number = () => 0;

/** The engine's side of the bargain: how tensors find its handle. */
export function setEngineHandle(find: (engine: Engine) => number): void {
  engineHandle = find;
}

/** 0 for the exact GELU, 1 for the approximation. */
function approximation(op: string, options: GeluOptions | undefined): number {
  checkOptions(op, options, ["approximate"]);
  return choiceOption(op, "approximate", options?.approximate, ["none", "tanh"]);
}

/** The handle of a tensor that may be left out: 0 stands for none. */
function optionalHandle(tensor: Tensor | null | undefined, op: string, name: string): number {
  return tensor === undefined || tensor === null ? 0 : handleOf(tensor, op, name);
}

/** Wraps a handle that the WebAssembly side made. */
export function makeTensor(engine: Engine, registry: Registry, handle: number): Tensor {
  return construct(engine, registry, handle);
}

/** The handle of a tensor of this engine, checked: `name` says in an error which argument it is. */
export function tensorHandle(tensor: unknown, op: string, name: string, engine: Engine): number {
  const handle = handleOf(tensor, op, name);
  if ((tensor as Tensor).engine !== engine) {
    throw new ArgumentError(
      `${op}: ${name} is of another engine; different engines do not mix: read it and make it anew on this one`,
    );
  }
  return handle;
}

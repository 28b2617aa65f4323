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

/** Options of the operations with a GELU (Hendrycks and Gimpel 2016, arXiv:1606.08415). */
export interface GeluOptions {
  /**
   * Which form: `"none"` (the default) is exact, `x · Φ(x)` with the error function; `"tanh"` is
   * `½x(1 + tanh(√(2/π)(x + 0.044715x³)))`, which some published models were trained with.
   */
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
  /** The dimension. Default 0; negative ones count from the end. */
  dim?: number;
  /** The first place taken. Default 0. */
  start?: number;
  /** The place before which it ends. Default: the size of the dimension; `Infinity` is that too. */
  end?: number;
  /** From one place to the next, 1 or more. Default 1. */
  step?: number;
}

/** Options of `backward`. */
export interface BackwardOptions {
  /** Keeps the graph for another `backward`. */
  retainGraph?: boolean;
}

const NONE: number[] = [];

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
let caughtHandle: (tensor: Tensor) => number;

/**
 * An n-dimensional array on an engine's device, made by an {@link Engine} or by an operation. Every operation is a method
 * that returns a new tensor at once and queues the work; only reading waits. Operations borrow their arguments: what goes
 * in stays usable and is the caller's to free, with `dispose()`, `using` or {@link Engine.tidy}.
 *
 * Shapes are broadcast as in NumPy and PyTorch: from the last dimension, a size of 1 or a missing dimension stretches.
 * Negative dimensions count from the end. FEATURES.md lists the types each operation takes.
 *
 * What every method can throw, and is not repeated below: {@link DisposedError} after `dispose()`;
 * {@link ArgumentError} for an argument that is no tensor or is of another engine, and for an unknown option;
 * {@link DTypeError} for a type it does not take, or operands of different types; {@link LimitError} when the result
 * does not fit into memory or the device's limits; {@link DeviceLostError} once the GPU is gone. The engine stays usable
 * after all but the last.
 */
export class Tensor {
  /** The engine it lives on. */
  readonly engine: Engine;
  readonly #registry: Registry;
  #handle: number;
  /** Whether the net under `dispose()` has it. */
  #caught = false;
  #shape: readonly number[] | null = null;

  static {
    named(this, "Tensor");
    construct = (engine, registry, handle) => new Tensor(engine, registry, handle);
    handleOf = (tensor, op, name) => {
      if (!(tensor instanceof Tensor))
        throw new ArgumentError(`${op}: ${name} is ${show(tensor)}; it must be a tensor`);
      return tensor.#live(op);
    };
    caughtHandle = (tensor) => {
      tensor.#caught = tensor.#handle !== 0;
      return tensor.#handle;
    };
  }

  private constructor(engine: Engine, registry: Registry, handle: number) {
    this.engine = engine;
    this.#registry = registry;
    this.#handle = handle;
    registry.add(this);
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
  #call(op: string, numbers: number[] = NONE, b = 0, c = 0): Tensor {
    const [number, a] = [operationNumber(op), this.#live(op)];
    const handle = numbers.length === 0 ? raw.run(number, a, b, c) : raw.runWith(number, a, b, c, numbers);
    return this.#wrap(handle);
  }

  /** Calls a binary operation; a number becomes a scalar for the length of the call. */
  #binary(op: string, other: Operand, numbers?: number[]): Tensor {
    if (typeof other !== "number") return this.#call(op, numbers, handleOf(other, op, "the other operand"));
    const scalar = raw.scalar(operationNumber(op), this.#live(op), other);
    try {
      return this.#call(op, numbers, scalar);
    } finally {
      raw.free(scalar);
    }
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

  /**
   * Whether gradients flow to or through this tensor. It can be assigned on a tensor that was made, not computed.
   * @throws {@link DTypeError} for an integer tensor
   * @throws {@link GradError} for the result of recorded operations; `detach()` gives one outside the graph
   */
  get requiresGrad(): boolean {
    return raw.requiresGrad(this.#live("requiresGrad"));
  }

  /** Makes a tensor collect gradients, or stop. */
  set requiresGrad(on: boolean) {
    raw.setRequiresGrad(this.#live("requiresGrad"), booleanOption("requiresGrad", "the value", on, false));
  }

  /**
   * The gradient that {@link Tensor.backward} has collected here, of this tensor's shape and type, or null. Each read
   * gives a new handle to the same memory, to be freed like any tensor. Assigning null forgets it.
   */
  get grad(): Tensor | null {
    const handle = raw.grad(this.#live("grad"));
    return handle === 0 ? null : this.#wrap(handle);
  }

  /** Replaces the gradient by a tensor of this shape and type, or forgets it. */
  set grad(gradient: Tensor | null) {
    raw.setGrad(this.#live("grad"), gradient === null ? 0 : handleOf(gradient, "grad", "the gradient"));
  }

  /**
   * Sends a gradient back to every leaf this tensor was computed from; there they add up in `grad`. The graph is freed on
   * the way. A call that fails adds nothing and frees nothing.
   * @param upstream the gradient of this tensor, of its shape and type; a tensor of one element can do without (1)
   * @throws {@link GradError} without a graph, when an earlier call without `retainGraph` freed it, when a saved tensor
   *   was changed in place since, or when `upstream` is left out for more than one element
   * @throws {@link ShapeError} when `upstream` has another shape
   * @example
   * ```ts
   * const x = engine.tensor([1, 2, 3], { requiresGrad: true });
   * x.mul(x).sum().backward();
   * await x.grad!.array(); // [2, 4, 6]
   * ```
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

  /** The same elements outside the graph: a new handle to the same memory, through which no gradient flows. */
  detach(): Tensor {
    return this.#call("detach");
  }

  /**
   * The elements in row-major order, in a fresh array: f32 and f16 as `Float32Array`, i32 as `Int32Array`, u32 as
   * `Uint32Array`, bool as `Uint8Array` of 0 and 1. They are what the tensor holds at the call, whatever is changed or
   * disposed meanwhile.
   * @param options `raw`: give f16 as its bits, in a `Uint16Array`. Default false
   * @throws {@link IndexError} when an operation queued before met a value out of range, such as a class number
   * @throws {@link KernelError} when the GPU rejected work queued before
   */
  async data(options?: { raw?: boolean }): Promise<HostArray> {
    checkOptions("data", options, ["raw"]);
    const handle = this.#live("data");
    const bits = booleanOption("data", "raw", options?.raw, false) && this.dtype === "f16";
    const values = (await raw.data(handle)) as HostArray;
    return bits && values instanceof Float32Array ? halfBits(values) : values;
  }

  /**
   * The elements as nested arrays of the tensor's shape; a scalar as a number, bool as truth values.
   * @throws as {@link Tensor.data}
   * @example
   * ```ts
   * await engine.tensor([1, 2, 3, 4], { shape: [2, 2] }).array(); // [[1, 2], [3, 4]]
   * ```
   */
  async array(): Promise<Nested> {
    const { shape, dtype } = this;
    return nested(await this.data(), shape, dtype === "bool");
  }

  /**
   * The only element as a number.
   * @throws {@link ArgumentError} when there are more, or none; otherwise as {@link Tensor.data}
   */
  async item(): Promise<number> {
    const { shape } = this;
    if (shape.some((d) => d !== 1)) {
      throw new ArgumentError(`item: shape ${show(shape)} has not exactly one element; read data() instead`);
    }
    return (await this.data())[0] ?? NaN;
  }

  /**
   * Frees this handle; what a graph or another view still needs lives on until they are done. A second call does nothing.
   */
  dispose(): void {
    if (this.#handle === 0) return;
    const handle = this.#handle;
    this.#handle = 0;
    this.#registry.remove(this, handle, this.#caught);
  }

  /** As `dispose`, for `using`. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  /**
   * `this + other`, broadcast.
   * @param other a tensor of the same type, or a number
   * @throws {@link ShapeError} when the shapes do not broadcast
   * @example
   * ```ts
   * const column = engine.tensor([[10], [20]]);
   * await column.add(engine.tensor([1, 2, 3])).array(); // [[11, 12, 13], [21, 22, 23]]
   * ```
   */
  add(other: Operand): Tensor {
    return this.#binary("add", other);
  }

  /**
   * `this - other`, broadcast.
   * @param other a tensor of the same type, or a number
   * @throws {@link ShapeError} when the shapes do not broadcast
   */
  sub(other: Operand): Tensor {
    return this.#binary("sub", other);
  }

  /**
   * `this * other`, broadcast.
   * @param other a tensor of the same type, or a number
   * @throws {@link ShapeError} when the shapes do not broadcast
   */
  mul(other: Operand): Tensor {
    return this.#binary("mul", other);
  }

  /**
   * `this / other`, broadcast. Division by zero gives infinity or NaN, as IEEE 754 has it.
   * @param other a tensor of the same type, or a number
   * @throws {@link ShapeError} when the shapes do not broadcast
   */
  div(other: Operand): Tensor {
    return this.#binary("div", other);
  }

  /**
   * `silu(this) * b`, broadcast, as one kernel: SwiGLU (Shazeer 2020, arXiv:2002.05202) with separate operands.
   * `silu(x) = x / (1 + exp(-x))`; at ±infinity it and its gradient take their limits.
   * @throws {@link ShapeError} when the shapes do not broadcast
   * @example
   * ```ts
   * const gate = engine.tensor([1, -2, 0.5]);
   * await gate.siluMul(engine.tensor([3, 0.25, -1])).array(); // [2.193176, -0.059601, -0.31123]
   * ```
   */
  siluMul(b: Operand): Tensor {
    return this.#binary("siluMul", b);
  }

  /**
   * `gelu(this) * b`, broadcast, as one kernel: GEGLU (Shazeer 2020, arXiv:2002.05202) with separate operands. The GELU is
   * the exact one unless `approximate` says otherwise.
   * @throws {@link ShapeError} when the shapes do not broadcast
   */
  geluMul(b: Operand, options?: GeluOptions): Tensor {
    return this.#binary("geluMul", b, [approximation("geluMul", options)]);
  }

  /**
   * `relu(this) * b`, broadcast, as one kernel: ReGLU (Shazeer 2020, arXiv:2002.05202) with separate operands. NaN stays
   * NaN; the gradient at 0 is 0.
   * @throws {@link ShapeError} when the shapes do not broadcast
   */
  reluMul(b: Operand): Tensor {
    return this.#binary("reluMul", b);
  }

  /**
   * `sigmoid(this) * b`, broadcast, as one kernel: the gate of a GLU (Dauphin et al. 2017, arXiv:1612.08083) with separate
   * operands. `sigmoid(x) = 1 / (1 + exp(-x))`.
   * @throws {@link ShapeError} when the shapes do not broadcast
   */
  sigmoidMul(b: Operand): Tensor {
    return this.#binary("sigmoidMul", b);
  }

  /**
   * `silu(x[…, :d]) * x[…, d:]`: `[…, 2d]` gives `[…, d]`, without a copy of the halves (Shazeer 2020, arXiv:2002.05202).
   * @throws {@link ShapeError} when the last dimension is odd, or there is none
   * @example
   * ```ts
   * await engine.tensor([[1, -2, 3, 0.25]]).swiglu().array(); // [[2.193176, -0.059601]]
   * ```
   */
  swiglu(): Tensor {
    return this.#call("swiglu");
  }

  /**
   * `gelu(x[…, :d]) * x[…, d:]`: `[…, 2d]` gives `[…, d]`, without a copy of the halves (Shazeer 2020, arXiv:2002.05202).
   * @throws {@link ShapeError} when the last dimension is odd, or there is none
   */
  geglu(options?: GeluOptions): Tensor {
    return this.#call("geglu", [approximation("geglu", options)]);
  }

  /**
   * `relu(x[…, :d]) * x[…, d:]`: `[…, 2d]` gives `[…, d]`, without a copy of the halves (Shazeer 2020, arXiv:2002.05202).
   * @throws {@link ShapeError} when the last dimension is odd, or there is none
   */
  reglu(): Tensor {
    return this.#call("reglu");
  }

  /**
   * `x[…, :d] * sigmoid(x[…, d:])`: `[…, 2d]` gives `[…, d]`, without a copy of the halves (Dauphin et al. 2017,
   * arXiv:1612.08083). The gate is the second half, as in PyTorch's `glu`, where the three others have it first.
   * @throws {@link ShapeError} when the last dimension is odd, or there is none
   */
  glu(): Tensor {
    return this.#call("glu");
  }

  /**
   * Layer normalisation (Ba et al. 2016, arXiv:1607.06450): `(x - mean) / sqrt(var + eps) * weight + bias` over the last
   * dimensions, with the biased variance. The shape stays; statistics are f32.
   * @param weight of the shape of what is normalised; 1 when left out
   * @param bias of the same shape; 0 when left out
   * @throws {@link ShapeError} unless `normalizedShape` are the last dimensions and `weight` and `bias` have that shape
   * @throws {@link ArgumentError} when `eps` is below 0
   * @example
   * ```ts
   * await engine.tensor([[1, 3], [2, 2]]).layerNorm().array(); // [[-0.999995, 0.999995], [0, 0]]
   * ```
   */
  layerNorm(weight?: Tensor | null, bias?: Tensor | null, options?: LayerNormOptions): Tensor {
    checkOptions("layerNorm", options, ["normalizedShape", "eps"]);
    const eps = numberOption("layerNorm", "eps", options?.eps, 1e-5);
    const normalized = options?.normalizedShape ?? this.shape.slice(-1);
    const sizes = checkShape("layerNorm", normalized);
    const [w, b] = [optionalHandle(weight, "layerNorm", "weight"), optionalHandle(bias, "layerNorm", "bias")];
    return this.#call("layerNorm", [eps, ...sizes], w, b);
  }

  /**
   * The matrix product: `[…, m, k]` and `[…, k, n]` give `[…, m, n]`. Dimensions before the last two are batches and
   * broadcast; an operand of one dimension is a row on the left or a column on the right, and its dimension is dropped
   * again. Transposed operands are not copied.
   * @throws {@link ShapeError} for a scalar, when the inner sizes differ, or when the batches do not broadcast
   * @example
   * ```ts
   * const a = engine.tensor([[1, 2], [3, 4]]);
   * await a.matmul(engine.tensor([10, 1])).array(); // [12, 34]
   * ```
   */
  matmul(other: Tensor): Tensor {
    return this.#call("matmul", NONE, handleOf(other, "matmul", "the other operand"));
  }

  /**
   * `this · weightᵀ + bias`: `[…, in]` gives `[…, out]`.
   * @param weight `[out, in]`, as PyTorch keeps it
   * @param bias `[out]`; 0 when left out
   * @throws {@link ShapeError} when the shapes do not fit
   */
  linear(weight: Tensor, bias?: Tensor | null): Tensor {
    const [w, b] = [handleOf(weight, "linear", "weight"), optionalHandle(bias, "linear", "bias")];
    return this.#call("linear", NONE, w, b);
  }

  /**
   * The sum over one dimension, several or all. The order of the additions depends on the shape alone, so that the same
   * tensor gives the same bits every time; sums of f16 are made in f32. The sum of no element is 0.
   * @throws {@link IndexError} for a dimension that there is not
   * @throws {@link ShapeError} for one that is named twice
   * @example
   * ```ts
   * const x = engine.tensor([[1, 2], [3, 4]]);
   * await x.sum({ dim: 0 }).array(); // [4, 6]
   * await x.sum({ dim: -1, keepdim: true }).array(); // [[3], [7]]
   * ```
   */
  sum(options?: ReduceOptions): Tensor {
    return this.#reduce("sum", options);
  }

  /**
   * The mean over one dimension, several or all; NaN over no element.
   * @throws as {@link Tensor.sum}
   */
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
   * Softmax cross-entropy, in nats: `logsumexp(x) - x[target]` of logits `[rows, classes]` and classes `[rows]`, or of
   * `[n, classes, d…]` and `[n, d…]`, as in PyTorch. No probability is formed that could underflow. The result is a scalar
   * for `"mean"` and `"sum"`, and of the target's shape for `"none"`; the mean over no row that counts is NaN.
   * `labelSmoothing` is that of Szegedy et al. 2016 (arXiv:1512.00567).
   * @param target class numbers from 0, in i32
   * @throws {@link ShapeError} when logits and target do not fit
   * @throws {@link ArgumentError} for a `labelSmoothing` outside 0 to 1
   * @throws {@link IndexError} for a target that is no class and not `ignoreIndex`: at once on the CPU, with the next
   *   read on WebGPU
   * @example
   * ```ts
   * const logits = engine.tensor([[2, 0], [0, 0]]);
   * const target = engine.tensor(Int32Array.of(0, 1));
   * await logits.crossEntropy(target, { reduction: "none" }).array(); // [0.126928, 0.693147]
   * ```
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

  /** A row-major tensor of the same elements and shape: a copy only where this is a view in another order. */
  contiguous(): Tensor {
    return this.#call("contiguous");
  }

  /**
   * The same elements in row-major order under another shape: a view where the memory allows it, else a copy.
   * @param shape the sizes; one may be -1, which is worked out from the rest
   * @throws {@link ShapeError} when the shape does not have as many elements, or -1 stands twice or cannot be worked out
   */
  reshape(shape: readonly number[]): Tensor {
    return this.#call("reshape", checkShape("reshape", shape, -1));
  }

  /**
   * Two dimensions exchanged, as a view.
   * @throws {@link IndexError} for a dimension that there is not
   */
  transpose(dim0: number, dim1: number): Tensor {
    const [a, b] = [checkIndex("transpose", "dim0", dim0), checkIndex("transpose", "dim1", dim1)];
    return this.#call("transpose", [a, b]);
  }

  /**
   * The dimensions in another order, as a view: dimension `k` of the result is dimension `dims[k]` of this.
   * @throws {@link ShapeError} unless each dimension is named once
   * @throws {@link IndexError} for a dimension that there is not
   * @example
   * ```ts
   * engine.zeros([2, 3, 4]).permute([2, 0, 1]).shape; // [4, 2, 3]
   * ```
   */
  permute(dims: readonly number[]): Tensor {
    return this.#call("permute", checkDims("permute", dims) ?? NONE);
  }

  /**
   * Broadcast to a shape without a copy: dimensions of size 1 repeat, and new ones may come in front.
   * @param shape the sizes; -1 keeps the one that is there
   * @throws {@link ShapeError} when a size other than 1 would change, or dimensions would go
   */
  expand(shape: readonly number[]): Tensor {
    return this.#call("expand", checkShape("expand", shape, -1));
  }

  /**
   * A range of one dimension, as a view: the places `start`, `start + step`, … before `end`. Both ends count from the
   * end when negative and are clamped, as in Python.
   * @throws {@link ArgumentError} for a step below 1
   * @throws {@link IndexError} for a dimension that there is not, and for places that are no whole numbers
   * @example
   * ```ts
   * await engine.tensor([0, 1, 2, 3, 4]).slice({ start: -4, step: 2 }).array(); // [1, 3]
   * ```
   */
  slice(options: SliceOptions): Tensor {
    const given: unknown = options;
    checkOptions("slice", given === undefined ? null : given, ["dim", "start", "end", "step"]);
    const at = (name: keyof SliceOptions, otherwise: number): number => {
      const value = options[name] ?? otherwise;
      return value === Infinity ? 2 ** 31 - 1 : checkIndex("slice", name, value);
    };
    return this.#call("slice", [at("dim", 0), at("start", 0), at("end", Infinity), at("step", 1)]);
  }

  /**
   * `length` places of a dimension from `start` on, as a view. Nothing is clamped.
   * @throws {@link IndexError} when the range is not within the dimension, or there is no such dimension
   * @throws {@link ArgumentError} for a `length` below 0
   */
  narrow(dim: number, start: number, length: number): Tensor {
    const [d, s] = [checkIndex("narrow", "dim", dim), checkIndex("narrow", "start", start)];
    const n = checkIndex("narrow", "length", length);
    if (n < 0) throw new ArgumentError(`narrow: length is ${n}; it must be 0 or more`);
    return this.#call("narrow", [d, s, n]);
  }

  /**
   * A dimension of size 1 inserted before `dim`, as a view; -1 appends it.
   * @throws {@link IndexError} when there is no such place
   * @throws {@link LimitError} for more than 8 dimensions
   */
  unsqueeze(dim: number): Tensor {
    return this.#call("unsqueeze", [checkIndex("unsqueeze", "dim", dim)]);
  }

  /**
   * The dimension `dim` removed if its size is 1, as a view; all of size 1 when it is left out.
   * @throws {@link IndexError} for a dimension that there is not
   */
  squeeze(dim?: number): Tensor {
    return this.#call("squeeze", dim === undefined ? NONE : [checkIndex("squeeze", "dim", dim)]);
  }

  /**
   * The dimensions `startDim` to `endDim`, both included, as one; a view where the memory allows it, else a copy.
   * @throws {@link IndexError} for a dimension that there is not
   * @throws {@link ShapeError} when `startDim` lies behind `endDim`
   */
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

/** 0 for the exact GELU, 1 for the approximation. */
function approximation(op: string, options: GeluOptions | undefined): number {
  checkOptions(op, options, ["approximate"]);
  return choiceOption(op, "approximate", options?.approximate, ["none", "tanh"]);
}

/** The handle of a tensor that may be left out: 0 stands for none. */
function optionalHandle(tensor: Tensor | null | undefined, op: string, name: string): number {
  return tensor === undefined || tensor === null ? 0 : handleOf(tensor, op, name);
}

/**
 * Wraps a handle that the WebAssembly side made.
 * @internal
 */
export function makeTensor(engine: Engine, registry: Registry, handle: number): Tensor {
  return construct(engine, registry, handle);
}

/**
 * The handle of a tensor that the net is about to catch; 0 when it was disposed.
 * @internal
 */
export function handleToCatch(tensor: Tensor): number {
  return caughtHandle(tensor);
}

/**
 * The handle of a tensor of this engine, checked: `name` says in an error which argument it is.
 * @internal
 */
export function tensorHandle(tensor: unknown, op: string, name: string, engine: Engine): number {
  const handle = handleOf(tensor, op, name);
  if ((tensor as Tensor).engine !== engine) {
    throw new ArgumentError(
      `${op}: ${name} is of another engine; different engines do not mix: read it and make it anew on this one`,
    );
  }
  return handle;
}

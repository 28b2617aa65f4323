import { checkOptions, choiceOption, numberOption } from "./check.js";
import type { Engine } from "./engine.js";
import { named } from "./errors.js";
import * as raw from "./generated/wgrad.js";
import { type GeluOptions, type Tensor, tensorHandle } from "./tensor.js";

/**
 * The fused kernels without the tape: nothing is recorded, gradients are asked for by hand. Found as
 * {@link Engine.kernels}. All operands are of one floating-point type and of this engine; what else a call can throw is
 * said at {@link Tensor}.
 */
export class RawKernels {
  static {
    named(this, "RawKernels");
  }

  readonly #engine: Engine;
  readonly #make: (handle: number) => Tensor;

  /** @internal */
  constructor(engine: Engine, make: (handle: number) => Tensor) {
    this.#engine = engine;
    this.#make = make;
  }

  /** The handle of a tensor of this engine. */
  #of(tensor: Tensor, op: string, name: string): number {
    return tensorHandle(tensor, op, name, this.#engine);
  }

  /** The same for one that may be left out. */
  #optional(tensor: Tensor | null | undefined, op: string, name: string): number {
    return tensor === undefined || tensor === null ? 0 : this.#of(tensor, op, name);
  }

  #gatedBackward(op: string, act: number, dy: Tensor, a: Tensor, b: Tensor): [Tensor, Tensor] {
    const [u, x, y] = [this.#of(dy, op, "dy"), this.#of(a, op, "a"), this.#of(b, op, "b")];
    return Array.from(raw.gatedBackward(u, x, y, act), this.#make) as [Tensor, Tensor];
  }

  /**
   * `[da, db]` of {@link Tensor.siluMul | siluMul}`(a, b)` for the gradient `dy` of its result, each of its operand's shape.
   * @throws {@link ShapeError} unless `a` and `b` broadcast and `dy` has the shape of the result
   * @example
   * ```ts
   * const [a, b, dy] = [[1, 2], [3, 4], [1, 1]].map((values) => engine.tensor(values));
   * const [da, db] = engine.kernels.siluMulBackward(dy!, a!, b!);
   * await da.array(); // [2.783012, 4.363137]
   * await db.array(); // [0.731059, 1.761594]
   * ```
   */
  siluMulBackward(dy: Tensor, a: Tensor, b: Tensor): [Tensor, Tensor] {
    return this.#gatedBackward("siluMulBackward", 0, dy, a, b);
  }

  /**
   * `[da, db]` of {@link Tensor.geluMul | geluMul}`(a, b)` for the gradient `dy` of its result, each of its operand's shape.
   * @throws {@link ShapeError} unless `a` and `b` broadcast and `dy` has the shape of the result
   */
  geluMulBackward(dy: Tensor, a: Tensor, b: Tensor, options?: GeluOptions): [Tensor, Tensor] {
    checkOptions("geluMulBackward", options, ["approximate"]);
    const form = choiceOption("geluMulBackward", "approximate", options?.approximate, ["none", "tanh"]);
    return this.#gatedBackward("geluMulBackward", 1 + form, dy, a, b);
  }

  /**
   * `[da, db]` of {@link Tensor.reluMul | reluMul}`(a, b)` for the gradient `dy` of its result, each of its operand's shape.
   * @throws {@link ShapeError} unless `a` and `b` broadcast and `dy` has the shape of the result
   */
  reluMulBackward(dy: Tensor, a: Tensor, b: Tensor): [Tensor, Tensor] {
    return this.#gatedBackward("reluMulBackward", 3, dy, a, b);
  }

  /**
   * `[da, db]` of {@link Tensor.sigmoidMul | sigmoidMul}`(a, b)` for the gradient `dy` of its result, each of its operand's
   * shape.
   * @throws {@link ShapeError} unless `a` and `b` broadcast and `dy` has the shape of the result
   */
  sigmoidMulBackward(dy: Tensor, a: Tensor, b: Tensor): [Tensor, Tensor] {
    return this.#gatedBackward("sigmoidMulBackward", 4, dy, a, b);
  }

  /**
   * `[y, mean, rstd]` of {@link Tensor.layerNorm} over the last dimension. `y` has the shape of `x`; the statistics are
   * f32, of shape `[rows]`; `rstd` is `1 / sqrt(var + eps)`.
   * @param weight `[columns]`; 1 when left out
   * @param bias `[columns]`; 0 when left out
   * @param options `eps` is added to the variance. Default 1e-5
   * @throws {@link ShapeError} when the shapes do not fit
   * @throws {@link ArgumentError} when `eps` is below 0
   */
  layerNormForward(
    x: Tensor,
    weight?: Tensor | null,
    bias?: Tensor | null,
    options?: { eps?: number },
  ): [Tensor, Tensor, Tensor] {
    const op = "layerNormForward";
    checkOptions(op, options, ["eps"]);
    const eps = numberOption(op, "eps", options?.eps, 1e-5);
    const [w, b] = [this.#optional(weight, op, "weight"), this.#optional(bias, op, "bias")];
    const handles = raw.layerNormForward(this.#of(x, op, "x"), w, b, eps);
    return Array.from(handles, this.#make) as [Tensor, Tensor, Tensor];
  }

  /**
   * `[dx, dw, db]` of a layer normalisation for the gradient `dy` of its result and the statistics that
   * {@link RawKernels.layerNormForward} gave. `dx` has the shape of `x`, the other two are `[columns]`; sums over rows are
   * made in one fixed order.
   * @param weight the one of the forward call; 1 when left out
   * @throws {@link ShapeError} when the shapes do not fit
   */
  layerNormBackward(
    dy: Tensor,
    x: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight?: Tensor | null,
  ): [Tensor, Tensor, Tensor] {
    const op = "layerNormBackward";
    const handles = raw.layerNormBackward(
      this.#of(dy, op, "dy"),
      this.#of(x, op, "x"),
      this.#of(mean, op, "mean"),
      this.#of(rstd, op, "rstd"),
      this.#optional(weight, op, "weight"),
    );
    return Array.from(handles, this.#make) as [Tensor, Tensor, Tensor];
  }
}

import { checkOptions, finiteOption, numberOption, show } from "./check.js";
import type { Engine } from "./engine.js";
import { ArgumentError, DisposedError, named } from "./errors.js";
import * as raw from "./generated/wgrad.js";
import { catchForgotten, release } from "./net.js";
import { type Tensor, tensorHandle } from "./tensor.js";

/** Options of AdamW, with PyTorch's defaults. */
export interface AdamWOptions {
  /** The learning rate, 0 or more. Default 1e-3. */
  lr?: number;
  /** The decay of the two moments, each from 0 to 1, 1 excluded. Default [0.9, 0.999]. */
  betas?: readonly [number, number];
  /** Added to the root of the second moment, 0 or more. Default 1e-8. */
  eps?: number;
  /** The decoupled weight decay, 0 or more. Default 0.01. */
  weightDecay?: number;
}

/** Changes parameters by the gradients that {@link Tensor.backward} collected in them. Made by {@link Optimizers}. */
export class Optimizer {
  static {
    named(this, "Optimizer");
  }

  #handle: number;
  #lr: number;

  /** @internal */
  constructor(handle: number, lr: number) {
    this.#handle = handle;
    this.#lr = lr;
    catchForgotten(this, () => {
      raw.freeOptimizer(handle);
    });
  }

  #live(op: string): number {
    if (this.#handle === 0) throw new DisposedError(`${op}: this optimizer was disposed`);
    return this.#handle;
  }

  /**
   * The learning rate; assign to change it from the next step on.
   * @throws {@link ArgumentError} when it is set to what is not finite or below 0
   */
  get lr(): number {
    return this.#lr;
  }

  /** Changes the learning rate of later steps. */
  set lr(lr: number) {
    raw.optimizerSetLr(this.#live("lr"), finiteOption("adamw", "lr", lr, NaN));
    this.#lr = lr;
  }

  /**
   * One step, in place, for every parameter that has a gradient; the others stay. A graph that has saved a parameter
   * cannot go backward after it.
   * @throws {@link LimitError} when there is no memory for the moments, which the first step makes
   * @throws {@link DisposedError} when the optimizer was disposed
   */
  step(): void {
    raw.optimizerStep(this.#live("step"));
  }

  /** Forgets the gradients of all parameters; without it the next `backward` adds to them. */
  zeroGrad(): void {
    raw.optimizerZeroGrad(this.#live("zeroGrad"));
  }

  /** Frees the moments; the parameters stay. A second call does nothing. */
  dispose(): void {
    if (this.#handle === 0) return;
    release(this);
    raw.freeOptimizer(this.#handle);
    this.#handle = 0;
  }

  /** As `dispose`, for `using`. */
  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** Makers of optimizers. Found as {@link Engine.optim}. */
export class Optimizers {
  readonly #engine: Engine;

  /** @internal */
  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /**
   * Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101), the moments in f32. A step makes of a
   * parameter `p` with gradient `g`: `m = β₁m + (1 - β₁)g`, `v = β₂v + (1 - β₂)g²`,
   * `p = p(1 - lr · weightDecay) - lr · m̂ / (√v̂ + eps)` with `m̂ = m / (1 - β₁ᵗ)` and `v̂ = v / (1 - β₂ᵗ)`.
   * @param parameters tensors that require gradients and were made, not computed; each once
   * @throws {@link GradError} for a parameter that requires no gradient or is the result of recorded operations
   * @throws {@link ArgumentError} for an option out of range, for no parameter, one given twice, and for a view
   * @example
   * ```ts
   * const w = engine.tensor([4], { requiresGrad: true });
   * const optimizer = engine.optim.adamw([w], { lr: 0.5, weightDecay: 0 });
   * for (let k = 0; k < 100; k++) {
   *   optimizer.zeroGrad();
   *   w.mul(w).sum().backward();
   *   optimizer.step();
   * }
   * Math.abs(await w.item()) < 0.1; // true
   * ```
   */
  adamw(parameters: readonly Tensor[], options?: AdamWOptions): Optimizer {
    checkOptions("adamw", options, ["lr", "betas", "eps", "weightDecay"]);
    if (!Array.isArray(parameters)) {
      throw new ArgumentError(`adamw: parameters are ${show(parameters)}; they must be an array of tensors`);
    }
    const handles = Uint32Array.from(parameters as readonly Tensor[], (p, k) =>
      tensorHandle(p, "adamw", `parameter ${k}`, this.#engine),
    );
    const lr = finiteOption("adamw", "lr", options?.lr, 1e-3);
    const betas: unknown = options?.betas ?? [0.9, 0.999];
    if (!Array.isArray(betas) || betas.length !== 2) {
      throw new ArgumentError(`adamw: betas are ${show(betas)}; they must be two numbers`);
    }
    const [beta1, beta2] = (betas as unknown[]).map((b) => numberOption("adamw", "betas", b, NaN));
    const eps = finiteOption("adamw", "eps", options?.eps, 1e-8);
    const decay = finiteOption("adamw", "weightDecay", options?.weightDecay, 0.01);
    return new Optimizer(raw.adamw(handles, lr, beta1 ?? NaN, beta2 ?? NaN, eps, decay), lr);
  }
}

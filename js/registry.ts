import * as raw from "./generated/wgrad.js";
import { catchForgotten, release } from "./net.js";
import { type Tensor, handleToCatch } from "./tensor.js";

/** New tensors that are held before the net is looked after in the midst of a task. */
const FRESH = 1024;

/** What tensors of one engine share: how many there are, and the open scopes that own new ones. */
export class Registry {
  tensors = 0;
  readonly scopes: Tensor[][] = [];
  /**
   * Tensors that the net does not catch yet. To put one in and take it out again is as dear as the rest of a call, and the
   * garbage collector pays as much once more; but most tensors are freed in the task that made them, in which the net frees
   * nothing anyway.
   */
  #fresh: Tensor[] = [];

  /** Takes note of a new tensor. */
  add(tensor: Tensor): void {
    this.tensors++;
    this.scopes.at(-1)?.push(tensor);
    const count = this.#fresh.push(tensor);
    if (count === FRESH) this.#sweep();
    else if (count === 1)
      queueMicrotask(() => {
        this.#sweep();
      });
  }

  /** Frees a tensor by hand; `caught` if the net has it. */
  remove(tensor: Tensor, handle: number, caught: boolean): void {
    if (caught) release(tensor);
    this.#free(handle);
  }

  /** Puts what is left of the new tensors into the net. */
  #sweep(): void {
    const fresh = this.#fresh;
    this.#fresh = [];
    for (const tensor of fresh) {
      const handle = handleToCatch(tensor);
      if (handle !== 0) catchForgotten(tensor, this.#freeing(handle));
    }
  }

  /** What frees a handle. Made apart from the tensor, which it must not hold. */
  #freeing(handle: number): () => void {
    return () => {
      this.#free(handle);
    };
  }

  #free(handle: number): void {
    this.tensors--;
    raw.free(handle);
  }
}

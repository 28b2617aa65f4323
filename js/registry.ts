import * as raw from "./generated/wgrad.js";
import { catchForgotten, release } from "./net.js";
import type { Tensor } from "./tensor.js";

/** What tensors of one engine share: how many there are, and the open scopes that own new ones. */
export class Registry {
  tensors = 0;
  readonly scopes: Tensor[][] = [];

  /** Takes note of a new tensor. */
  add(tensor: Tensor, handle: number): void {
    this.tensors++;
    this.scopes.at(-1)?.push(tensor);
    catchForgotten(tensor, () => {
      this.#free(handle);
    });
  }

  /** Frees a tensor by hand. */
  remove(tensor: Tensor, handle: number): void {
    release(tensor);
    this.#free(handle);
  }

  #free(handle: number): void {
    this.tensors--;
    raw.free(handle);
  }
}

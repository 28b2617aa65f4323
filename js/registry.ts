import * as raw from "./generated/wgrad.js";
import type { Tensor } from "./tensor.js";

/** What tensors of one engine share: how many there are, and the open scopes that own new ones. */
export class Registry {
  tensors = 0;
  readonly scopes: Tensor[][] = [];
  #net: FinalizationRegistry<number> | null = null;

  /** Takes note of a new tensor; `handle` is freed when the garbage collector finds it undisposed. */
  add(tensor: Tensor, handle: number): void {
    this.tensors++;
    this.scopes.at(-1)?.push(tensor);
    this.#net ??= new FinalizationRegistry<number>((forgotten) => {
      this.tensors--;
      raw.free(forgotten);
    });
    this.#net.register(tensor, handle, tensor);
  }

  /** Frees a handle for good. */
  remove(tensor: Tensor, handle: number): void {
    this.tensors--;
    this.#net?.unregister(tensor);
    raw.free(handle);
  }
}

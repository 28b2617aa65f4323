// What the module says there is: kernels and distributions of inputs, and the text of shaders.
import load, { compose, distributions, kernels } from "../../lab/generated/lab.js";
import wasm from "../../lab/generated/lab_bg.wasm?url";

export interface Group {
  /** Of several flags exactly one is set; one alone is set or not. */
  flags: string[];
  /** The device chooses, and a call leaves the first one set. */
  tuned: boolean;
}

export interface Kernel {
  name: string;
  groups: Group[];
  sizes: { name: string; usual: number }[];
  scalars: string[];
  strategies: string[];
}

export interface Distribution {
  name: string;
  note: string;
}

export interface Variant {
  flags: string[];
  scalar: string;
  strategy: string;
}

export interface Registry {
  kernels: Kernel[];
  distributions: Distribution[];
}

/** Loads the module, here or in the worker. */
export const loadModule = (): Promise<unknown> => load({ module_or_path: wasm });

export async function loadRegistry(): Promise<Registry> {
  await loadModule();
  return {
    kernels: JSON.parse(kernels()) as Kernel[],
    distributions: JSON.parse(distributions()) as Distribution[],
  };
}

export const shaderText = (kernel: string, { flags, scalar, strategy }: Variant): string =>
  compose(kernel, flags, scalar, strategy);

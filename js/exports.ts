/** What both entries of the package export beside `init`. */
export type {
  BackwardOptions,
  CrossEntropyOptions,
  GeluOptions,
  LayerNormOptions,
  Operand,
  ReduceOptions,
  SliceOptions,
} from "./tensor.js";
export type { AdapterInfo, DataOptions, LostInfo, MemoryInfo, RandOptions, TensorOptions } from "./engine.js";
export type { AdamWOptions } from "./optim.js";
export type { DType, HostArray, Nested, NestedArray, TypedArray } from "./host.js";
export type { Init, InitOptions, WasmSource } from "./init.js";
export type { ErrorCode } from "./errors.js";
export { Engine } from "./engine.js";
export { Tensor } from "./tensor.js";
export { Optimizer } from "./optim.js";
export { Profile } from "./profile.js";
export type { KernelCall, KernelProfile, Trace, TraceEvent } from "./profile.js";
export type { Optimizers } from "./optim.js";
export type { RawKernels } from "./kernels.js";
export {
  ArgumentError,
  DeviceLostError,
  DisposedError,
  DTypeError,
  FormatError,
  GradError,
  IndexError,
  KernelError,
  LimitError,
  ShapeError,
  UnsupportedError,
  WgradError,
} from "./errors.js";

declare global {
  // Declared here for TypeScript 5, whose DOM has no WebGPU; elsewhere it merges with the real one.
  // eslint-disable-next-line @typescript-eslint/no-empty-object-type
  interface GPUDevice {}
  interface SymbolConstructor {
    /** Declared here for programs that do not include `esnext.disposable`. */
    readonly dispose: unique symbol;
  }
}

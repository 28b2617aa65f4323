/** What every wgrad error has beside a message: the name of its class, for code that cannot use `instanceof`. */
export type ErrorCode =
  | "ShapeError"
  | "DTypeError"
  | "IndexError"
  | "LimitError"
  | "DisposedError"
  | "DeviceLostError"
  | "UnsupportedError"
  | "FormatError"
  | "ArgumentError"
  | "GradError"
  | "KernelError";

/**
 * Gives a class its name back, which minifying takes: consoles and error messages show it.
 * @internal
 */
export function named(constructor: object, name: string): void {
  Object.defineProperty(constructor, "name", { value: name });
}

/** The base of all errors that wgrad throws or rejects with. The engine stays usable after all but `DeviceLostError`. */
export class WgradError extends Error {
  /** The name of the class. */
  readonly code: ErrorCode;

  static {
    named(this, "WgradError");
  }

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
    this.name = code;
  }
}

/** Shapes do not fit together, or a dimension is not one. */
export class ShapeError extends WgradError {
  static {
    named(this, "ShapeError");
  }

  constructor(message: string) {
    super("ShapeError", message);
  }
}

/** An element type the operation does not take, or a mix that needs a cast. */
export class DTypeError extends WgradError {
  static {
    named(this, "DTypeError");
  }

  constructor(message: string) {
    super("DTypeError", message);
  }
}

/** A dimension or an index out of range. */
export class IndexError extends WgradError {
  static {
    named(this, "IndexError");
  }

  constructor(message: string) {
    super("IndexError", message);
  }
}

/** More than the device or the memory holds. */
export class LimitError extends WgradError {
  static {
    named(this, "LimitError");
  }

  constructor(message: string) {
    super("LimitError", message);
  }
}

/** A tensor or an engine used after `dispose`. */
export class DisposedError extends WgradError {
  static {
    named(this, "DisposedError");
  }

  constructor(message: string) {
    super("DisposedError", message);
  }
}

/** The GPU device is gone; a new engine works. */
export class DeviceLostError extends WgradError {
  static {
    named(this, "DeviceLostError");
  }

  constructor(message: string) {
    super("DeviceLostError", message);
  }
}

/** A valid request that this browser or device cannot serve. */
export class UnsupportedError extends WgradError {
  static {
    named(this, "UnsupportedError");
  }

  constructor(message: string) {
    super("UnsupportedError", message);
  }
}

/** Data that is not in the format it should have. */
export class FormatError extends WgradError {
  static {
    named(this, "FormatError");
  }

  constructor(message: string) {
    super("FormatError", message);
  }
}

/** An option or value outside what the operation takes. */
export class ArgumentError extends WgradError {
  static {
    named(this, "ArgumentError");
  }

  constructor(message: string) {
    super("ArgumentError", message);
  }
}

/** Automatic differentiation was asked for something impossible. */
export class GradError extends WgradError {
  static {
    named(this, "GradError");
  }

  constructor(message: string) {
    super("GradError", message);
  }
}

/**
 * The GPU cannot compile a kernel, rejected its work or, as `debug` finds, did it wrongly: a fault of wgrad or of the driver. The
 * message names the kernel. Every read of what depends on that work rejects; all else goes on, except under `debug`.
 */
export class KernelError extends WgradError {
  static {
    named(this, "KernelError");
  }

  constructor(message: string) {
    super("KernelError", message);
  }
}

/**
 * The error of this class name; what the WebAssembly side throws is made here.
 * @internal
 */
export function makeError(code: string, message: string): WgradError {
  const classes: Record<ErrorCode, new (message: string) => WgradError> = {
    ShapeError,
    DTypeError,
    IndexError,
    LimitError,
    DisposedError,
    DeviceLostError,
    UnsupportedError,
    FormatError,
    ArgumentError,
    GradError,
    KernelError,
  };
  return new classes[code as ErrorCode](message);
}

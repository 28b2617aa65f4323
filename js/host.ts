import { show } from "./check.js";
import { ArgumentError, DTypeError, LimitError, ShapeError } from "./errors.js";

/** The most dimensions a tensor can have. */
const MAX_RANK = 8;

/** The element types of tensors. */
export type DType = "f32" | "f16" | "i32" | "u32" | "bool";

/** Typed arrays that a tensor can be made from. A `Float16Array` is taken too, where the browser has it. */
export type TypedArray =
  | Float32Array
  | Float64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | Uint8Array
  | Uint8ClampedArray
  | Uint16Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

/** Numbers or truth values in nested arrays, all of one depth. */
export type NestedArray = readonly (number | boolean | NestedArray)[];

/** What reading a tensor gives: f32 and f16 as `Float32Array`, bool as `Uint8Array` of 0 and 1. */
export type HostArray = Float32Array | Int32Array | Uint32Array | Uint8Array | Uint16Array;

/**
 * The types in the order of their numbers on the WebAssembly side.
 * @internal
 */
export const DTYPES: readonly DType[] = ["f32", "f16", "i32", "u32", "bool"];

/**
 * The number of a type.
 * @internal
 */
export function dtypeNumber(op: string, dtype: unknown): number {
  const place = DTYPES.indexOf(dtype as DType);
  if (place < 0)
    throw new DTypeError(`${op}: dtype is ${show(dtype)}; it must be ${DTYPES.map(show).join(", ")}`);
  return place;
}

/**
 * Elements as they cross to WebAssembly: the buffer's type follows from the tensor's.
 * @internal
 */
export interface HostValues {
  readonly dtype: DType;
  readonly shape: number[];
  readonly values: Float32Array | Int32Array | Uint32Array;
}

function defaultType(array: ArrayBufferView): DType {
  const name = array.constructor.name;
  if (name === "Float16Array") return "f16";
  if (name.startsWith("Float")) return "f32";
  return name === "Uint32Array" ? "u32" : "i32";
}

/**
 * A number that an integer type holds.
 * @internal
 */
export function wholeNumber(value: number | bigint | boolean, dtype: DType, op = "tensor"): number {
  const [low, high] = dtype === "i32" ? [-(2 ** 31), 2 ** 31 - 1] : [0, 2 ** 32 - 1];
  const number = Number(value);
  if (!Number.isInteger(number) || number < low || number > high) {
    throw new ArgumentError(
      `${op}: ${show(value)} is no ${dtype}; it must be a whole number from ${String(low)} to ${String(high)}`,
    );
  }
  return number;
}

function converted(values: ArrayLike<number | bigint | boolean>, dtype: DType): HostValues["values"] {
  if (dtype === "f32" || dtype === "f16") {
    if (values instanceof Float32Array) return values;
    return Float32Array.from(values, Number);
  }
  if (dtype === "bool") return Uint32Array.from(values, (v) => (v ? 1 : 0));
  if (dtype === "i32") {
    if (values instanceof Int32Array) return values;
    return Int32Array.from(values, (v) => wholeNumber(v, dtype));
  }
  if (values instanceof Uint32Array) return values;
  return Uint32Array.from(values, (v) => wholeNumber(v, dtype));
}

/** The shape of nested arrays and their values in order. */
function flattened(data: NestedArray): { shape: number[]; values: (number | boolean)[] } {
  const shape: number[] = [];
  for (let level: unknown = data; Array.isArray(level); level = level[0]) {
    // An array inside itself has no end.
    if (shape.length === MAX_RANK)
      throw new LimitError(`tensor: arrays are nested deeper than ${MAX_RANK} levels`);
    shape.push(level.length);
  }
  const values: (number | boolean)[] = [];
  const walk = (part: unknown, depth: number): void => {
    if (depth === shape.length) {
      if (typeof part !== "number" && typeof part !== "boolean") {
        throw new ShapeError(
          `tensor: ${show(part)} at depth ${String(depth)} of nested arrays; numbers stand at one depth`,
        );
      }
      values.push(part);
      return;
    }
    const want = shape[depth] ?? 0;
    if (!Array.isArray(part) || part.length !== want) {
      const got = Array.isArray(part) ? `${String(part.length)} elements` : show(part);
      throw new ShapeError(
        `tensor: nested arrays are ragged: ${got} at depth ${String(depth)}, where the first has ${String(want)}`,
      );
    }
    for (const item of part) walk(item, depth + 1);
  };
  walk(data, 0);
  return { shape, values };
}

/**
 * What a tensor is made from, in the host's terms. The caller's arrays are only read.
 * @internal
 */
export function hostValues(
  data: TypedArray | NestedArray | number | boolean,
  shape: number[] | undefined,
  dtype: DType | undefined,
): HostValues {
  if (typeof data === "number" || typeof data === "boolean") {
    const kind = dtype ?? (typeof data === "number" ? "f32" : "bool");
    return { dtype: kind, shape: shape ?? [], values: converted([data], kind) };
  }
  if (ArrayBuffer.isView(data) && !(data instanceof DataView)) {
    const kind = dtype ?? defaultType(data);
    return { dtype: kind, shape: shape ?? [data.length], values: converted(data, kind) };
  }
  if (Array.isArray(data)) {
    const flat = flattened(data as NestedArray);
    const truth = flat.values.length > 0 && flat.values.every((v) => typeof v === "boolean");
    const kind = dtype ?? (truth ? "bool" : "f32");
    return { dtype: kind, shape: shape ?? flat.shape, values: converted(flat.values, kind) };
  }
  throw new ArgumentError(
    `tensor: data is ${show(data)}; it must be a typed array, nested arrays or a number`,
  );
}

/**
 * The bits of f16 values held as f32; the values are f16 already, so nothing is rounded.
 * @internal
 */
export function halfBits(values: Float32Array): Uint16Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return Uint16Array.from(bits, (b, k) => {
    const sign = (b >>> 16) & 0x8000;
    const exponent = (b >>> 23) & 0xff;
    const fraction = (b >>> 13) & 0x3ff;
    if (exponent === 0xff) return sign | 0x7c00 | (fraction === 0 && (b & 0x7fffff) !== 0 ? 1 : fraction);
    if (exponent >= 113) return sign | ((exponent - 112) << 10) | fraction;
    return sign | Math.round(Math.abs(values[k] ?? 0) * 2 ** 24);
  });
}

/** A nested array of these elements. */
export type Nested = number | boolean | Nested[];

/**
 * Elements in row-major order as nested arrays of `shape`.
 * @internal
 */
export function nested(values: ArrayLike<number>, shape: readonly number[], truth: boolean): Nested {
  let next = 0;
  const build = (depth: number): Nested => {
    if (depth === shape.length) {
      const value = values[next++] ?? 0;
      return truth ? value !== 0 : value;
    }
    return Array.from({ length: shape[depth] ?? 0 }, () => build(depth + 1));
  };
  return build(0);
}

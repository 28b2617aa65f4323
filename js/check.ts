import { ArgumentError, IndexError, LimitError, ShapeError } from "./errors.js";

/** How a value reads in an error: the first few levels and elements of an array. */
export function show(value: unknown, depth = 0): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value.toString()}n`;
  if (typeof value === "function") return "a function";
  if (typeof value === "symbol") return "a symbol";
  if (Array.isArray(value)) {
    if (depth === 3) return "[…]";
    const parts = (value as unknown[]).slice(0, 16).map((v) => show(v, depth + 1));
    return `[${parts.join(", ")}${value.length > 16 ? ", …" : ""}]`;
  }
  if (typeof value === "object" && value !== null) {
    // An object without a prototype has no constructor.
    const { constructor } = value as { constructor?: { name?: string } };
    return `a ${constructor?.name ?? "object"}`;
  }
  return String(value);
}

/** Checks that `options` is an object with no key but these: a misspelt option must not be ignored. */
export function checkOptions(op: string, options: unknown, known: readonly string[]): void {
  if (options === undefined) return;
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new ArgumentError(`${op}: options are an object with ${known.join(", ")}, not ${show(options)}`);
  }
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) {
      const right = known.length > 0 ? `it takes ${known.join(", ")}` : "it takes none";
      throw new ArgumentError(`${op}: unknown option ${show(key)}; ${right}`);
    }
  }
}

/** A number option, or its default. */
export function numberOption(op: string, name: string, value: unknown, otherwise: number): number {
  if (value === undefined) return otherwise;
  if (typeof value !== "number" || Number.isNaN(value)) {
    throw new ArgumentError(`${op}: ${name} is ${show(value)}; it must be a number`);
  }
  return value;
}

/** A number option that must be finite, or its default. */
export function finiteOption(op: string, name: string, value: unknown, otherwise: number): number {
  const number = numberOption(op, name, value, otherwise);
  if (Number.isFinite(number)) return number;
  throw new ArgumentError(`${op}: ${name} is ${show(value)}; it must be a finite number`);
}

/** A truth option, or its default. */
export function booleanOption(op: string, name: string, value: unknown, otherwise: boolean): boolean {
  if (value === undefined) return otherwise;
  if (typeof value !== "boolean")
    throw new ArgumentError(`${op}: ${name} is ${show(value)}; it must be true or false`);
  return value;
}

/** One of several words, or the first of them. */
export function choiceOption(op: string, name: string, value: unknown, choices: readonly string[]): number {
  if (value === undefined) return 0;
  const place = choices.indexOf(value as string);
  if (place < 0) {
    throw new ArgumentError(`${op}: ${name} is ${show(value)}; it must be ${choices.map(show).join(" or ")}`);
  }
  return place;
}

const MAX_SIZE = 2 ** 31 - 1;

/** Sizes of dimensions: whole numbers from 0 (or from -1, where one may be worked out). */
export function checkShape(op: string, shape: unknown, least = 0): number[] {
  if (!Array.isArray(shape) && !(ArrayBuffer.isView(shape) && !(shape instanceof DataView))) {
    throw new ShapeError(`${op}: a shape is an array of sizes, not ${show(shape)}`);
  }
  const sizes = [...(shape as Iterable<unknown>)];
  for (const size of sizes) {
    if (typeof size === "number" && Number.isInteger(size) && size > MAX_SIZE) {
      throw new LimitError(
        `${op}: size ${size} in shape ${show(sizes)}; a dimension has at most ${MAX_SIZE} elements`,
      );
    }
    if (typeof size !== "number" || !Number.isInteger(size) || size < least) {
      throw new ShapeError(
        `${op}: size ${show(size)} in shape ${show(sizes)}; sizes are whole numbers from ${String(least)} on`,
      );
    }
  }
  return sizes as number[];
}

/** A dimension or position: a whole number. */
export function checkIndex(op: string, name: string, value: unknown): number {
  if (typeof value !== "number" || !Number.isInteger(value)) {
    throw new IndexError(`${op}: ${name} is ${show(value)}; it must be a whole number`);
  }
  return Math.max(-MAX_SIZE, Math.min(MAX_SIZE, value));
}

/** A dimension or several; none when it is left out. */
export function checkDims(op: string, dim: unknown): number[] | undefined {
  if (dim === undefined || dim === null) return undefined;
  // Copied: what an array leaves out becomes undefined, which is no dimension.
  const dims = Array.isArray(dim) ? [...(dim as unknown[])] : [dim];
  return dims.map((d) => checkIndex(op, "dim", d));
}

// What the page and its worker say to each other.
import type { Variant } from "./registry";

export interface Request {
  kernel: string;
  flags: string[];
  dtype: string;
  sizes: number[];
  inputs: string;
}

export type DeviceName = "webgpu" | "cpu";

/** A number, or the name of one that JSON has not: NaN, Infinity, -Infinity, -0. */
export type Figure = number | string;

export interface Worst {
  index: number;
  row: number | null;
  col: number | null;
  got: Figure;
  want: Figure;
  absolute: Figure;
  relative: Figure;
  /** In multiples of the tolerance. */
  ratio: Figure;
}

export interface Output {
  binding: string;
  count: number;
  got: Figure[];
  want: Figure[] | null;
  worst: Worst | null;
}

export interface Outcome {
  outputs: Output[];
  /** What ran; null on the CPU. */
  variant: Variant | null;
  milliseconds: number;
  bytes: number;
  /** In GB/s. */
  rate: number;
  copyRate: number;
}

export interface Failure {
  kind: string;
  words: string;
}

export type Message =
  | { type: "status"; words: string }
  | { type: "outcome"; device: DeviceName; title: string; outcome: Outcome }
  | { type: "device-failure"; device: DeviceName; failure: Failure }
  | { type: "done"; compared: boolean }
  /** Nothing came of it; `broken`: the worker cannot go on. */
  | { type: "failure"; failure: Failure; broken: boolean };

// Numbers for people.
import type { Figure } from "./messages";

const names: Record<string, string> = { NaN: "NaN", Infinity: "∞", "-Infinity": "−∞", "-0": "−0" };

/** With as many digits as are wanted; very large and very small ones in powers of ten. */
export function figure(value: Figure, digits = 7): string {
  if (typeof value === "string") return names[value] ?? value;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) {
    const [mantissa = "", exponent = ""] = value.toExponential(digits - 1).split("e");
    return minus(`${Number(mantissa)}e${exponent.replace("+", "")}`);
  }
  return minus(String(Number(value.toPrecision(digits))));
}

const minus = (text: string): string => text.replaceAll("-", "−");

export const count = (value: number): string => value.toLocaleString("en");

export const size = (bytes: number): string =>
  bytes < 10_000 ? `${count(bytes)} B` : `${count(Math.round(bytes / 1000))} kB`;

export function time(milliseconds: number): string {
  if (milliseconds >= 1000) return `${(milliseconds / 1000).toPrecision(3)} s`;
  if (milliseconds >= 1) return `${milliseconds.toPrecision(3)} ms`;
  return `${(milliseconds * 1000).toPrecision(3)} µs`;
}

export const rate = (gigabytes: number): string =>
  `${gigabytes >= 100 ? Math.round(gigabytes) : Number(gigabytes.toPrecision(2))} GB/s`;

/** A part of something, or how many times it is that. */
export const share = (part: number): string =>
  part < 10 ? `${figure(part * 100, 2)} %` : `${figure(part, 2)} times`;

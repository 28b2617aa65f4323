import { named } from "./errors.js";

/** What one call of a kernel cost. */
export interface KernelCall {
  /** The kernel's name. */
  readonly kernel: string;
  /** When it began, in milliseconds since the profile did; null where the device has no timestamps. */
  readonly start: number | null;
  /** How long it took, in milliseconds; null where the device has no timestamps. */
  readonly time: number | null;
  /**
   * Bytes of the tensors that it reads and writes, each counted once, and twice where it is changed in place. A view counts
   * as all of the memory that it looks at, an f16 element as the device holds it.
   */
  readonly bytes: number;
  /** Floating-point operations, two for each multiplication and addition of a matrix product; 0 where they are not counted. */
  readonly flops: number;
}

/** What all calls of one kernel cost together. */
export interface KernelProfile {
  /** The kernel's name. */
  readonly kernel: string;
  /** How often it was called. */
  readonly calls: number;
  /** How long the calls took, in milliseconds; null where the device has no timestamps. */
  readonly time: number | null;
  /** Bytes that they read and wrote. */
  readonly bytes: number;
  /** Floating-point operations; 0 where they are not counted. */
  readonly flops: number;
  /** Bytes by time, in GB/s; null without a time. */
  readonly bandwidth: number | null;
  /** Operations by time, in GFLOP/s; null without a time or where they are not counted. */
  readonly throughput: number | null;
}

/** A call in Chrome's trace-event format. */
export interface TraceEvent {
  /** The kernel's name. */
  readonly name: string;
  /** A complete event: one with a duration. */
  readonly ph: "X";
  /** When it began, in microseconds. */
  readonly ts: number;
  /** How long it took, in microseconds. */
  readonly dur: number;
  /** A number of the process, which the format wants. */
  readonly pid: number;
  /** A number of the thread, which the format wants. */
  readonly tid: number;
  /** What is shown beside it. */
  readonly args: Pick<KernelCall, "bytes" | "flops">;
}

/** A profile in Chrome's trace-event format. */
export interface Trace {
  /** The calls in order. */
  readonly traceEvents: TraceEvent[];
  /** The unit that times are shown in. */
  readonly displayTimeUnit: "ms";
}

/** A sum with NaN in it is not known. */
const known = (value: number): number | null => (Number.isNaN(value) ? null : value);

/** What the kernels that ran inside {@link Engine.profile} cost. */
export class Profile {
  static {
    named(this, "Profile");
  }

  /** Every call, in order. */
  readonly calls: readonly KernelCall[];
  /** The calls by kernel: those that took longest come first, without times those that were called most. */
  readonly kernels: readonly KernelProfile[];
  /** How long all calls took, in milliseconds; null where the device has no timestamps. */
  readonly time: number | null;

  /** @internal */
  constructor(calls: readonly KernelCall[]) {
    const sums = new Map<string, { calls: number; time: number; bytes: number; flops: number }>();
    let total = 0;
    for (const { kernel, time, bytes, flops } of calls) {
      const sum = sums.get(kernel) ?? { calls: 0, time: 0, bytes: 0, flops: 0 };
      sums.set(kernel, sum);
      sum.calls++;
      sum.time += time ?? NaN;
      sum.bytes += bytes;
      sum.flops += flops;
      total += time ?? NaN;
    }
    // Per millisecond, in millions, is per second in billions. A coarse clock may show no time at all.
    const rate = (amount: number, time: number): number | null =>
      time > 0 && amount > 0 ? amount / time / 1e6 : null;
    const kernels = Array.from(sums, ([kernel, sum]) => ({
      kernel,
      ...sum,
      time: known(sum.time),
      bandwidth: rate(sum.bytes, sum.time),
      throughput: rate(sum.flops, sum.time),
    }));
    this.calls = calls;
    this.kernels = kernels.sort((a, b) => (b.time ?? 0) - (a.time ?? 0) || b.calls - a.calls);
    this.time = known(total);
  }

  /** The kernels as a table of text, for a console. */
  toString(): string {
    const fixed = (value: number | null, digits: number): string => value?.toFixed(digits) ?? "–";
    const rows = [["kernel", "calls", "ms", "%", "GB/s", "GFLOP/s"]];
    for (const { kernel, calls, time, bandwidth, throughput } of this.kernels) {
      const share = time !== null && this.time ? (100 * time) / this.time : null;
      const numbers = [fixed(time, 3), fixed(share, 1), fixed(bandwidth, 2), fixed(throughput, 2)];
      rows.push([kernel, String(calls), ...numbers]);
    }
    rows.push(["all", String(this.calls.length), fixed(this.time, 3)]);
    const widths = rows[0]?.map((_, k) => Math.max(...rows.map((row) => row[k]?.length ?? 0))) ?? [];
    const line = (row: string[]): string =>
      row
        .map((cell, k) => (k === 0 ? cell.padEnd(widths[k] ?? 0) : cell.padStart(widths[k] ?? 0)))
        .join("  ");
    return rows.map(line).join("\n");
  }

  /**
   * The calls in Chrome's trace-event format: as JSON, a file that `chrome://tracing` and Perfetto open. Without timestamps
   * it is empty.
   */
  trace(): Trace {
    const traceEvents: TraceEvent[] = [];
    for (const { kernel, start, time, bytes, flops } of this.calls) {
      if (start === null || time === null) continue;
      const when = { ts: start * 1e3, dur: time * 1e3, pid: 1, tid: 1 };
      traceEvents.push({ name: kernel, ph: "X", ...when, args: { bytes, flops } });
    }
    return { traceEvents, displayTimeUnit: "ms" };
  }
}

/**
 * A profile of what crossed from WebAssembly: the names of the calls' kernels, and four numbers for each call.
 * @internal
 */
export function makeProfile([names, numbers]: [string[], Float64Array]): Profile {
  const calls = names.map((kernel, k) => {
    const [start = NaN, time = NaN, bytes = 0, flops = 0] = numbers.subarray(4 * k, 4 * k + 4);
    return { kernel, start: known(start / 1e3), time: known(time / 1e3), bytes, flops };
  });
  return new Profile(calls);
}

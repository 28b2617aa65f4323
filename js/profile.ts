import { named } from "./errors.js";

/** One call of a kernel while a profile was taken. */
export interface KernelCall {
  /** The kernel's name. */
  readonly kernel: string;
  /** When it began, in milliseconds since the first call; null where the device tells no times. */
  readonly start: number | null;
  /** How long it took, in milliseconds; null where the device tells no times. */
  readonly time: number | null;
  /** Bytes of the tensors that it reads and writes, each counted once; what is updated in place is read and written. */
  readonly bytes: number;
  /** Floating-point operations of kernels that are limited by them, such as matrix products; otherwise 0. */
  readonly flops: number;
}

/** All calls of one kernel while a profile was taken. */
export interface KernelProfile {
  /** The kernel's name. */
  readonly kernel: string;
  /** How often it was called. */
  readonly calls: number;
  /** How long all calls took, in milliseconds; null where the device tells no times. */
  readonly time: number | null;
  /** Bytes that they read and wrote. */
  readonly bytes: number;
  /** Their floating-point operations, or 0. */
  readonly flops: number;
  /** 10^9 bytes a second; null without a time. */
  readonly bandwidth: number | null;
  /** 10^9 floating-point operations a second; null without a time, or where they are not counted. */
  readonly throughput: number | null;
}

/** An event of Chrome's trace format; times are in microseconds. */
export interface TraceEvent {
  readonly name: string;
  readonly cat: string;
  readonly ph: "X";
  readonly ts: number;
  readonly dur: number;
  readonly pid: number;
  readonly tid: number;
  readonly args: { readonly bytes: number; readonly flops: number };
}

/** What calls of kernels cost: the result of {@link Engine.profile}. */
export class Profile {
  static {
    named(this, "Profile");
  }

  /** Every call, in order. */
  readonly calls: readonly KernelCall[];
  /** The calls by kernel, those that took longest first. */
  readonly kernels: readonly KernelProfile[];
  /** How long all calls took together, in milliseconds; null where the device tells no times. */
  readonly time: number | null;

  /** @internal */
  constructor(calls: readonly KernelCall[]) {
    this.calls = calls;
    const groups = new Map<string, KernelCall[]>();
    for (const call of calls) {
      const group = groups.get(call.kernel);
      if (group) group.push(call);
      else groups.set(call.kernel, [call]);
    }
    this.kernels = Array.from(groups, ([kernel, group]) => summed(kernel, group)).sort(
      (a, b) => (b.time ?? 0) - (a.time ?? 0) || b.calls - a.calls,
    );
    this.time = calls.every(({ time }) => time === null) ? null : sum(calls, "time");
  }

  /** A table for a console: a line a kernel, with its share of the time. */
  toString(): string {
    const head = ["kernel", "calls", "ms", "share", "GB/s", "GFLOP/s"];
    const digits = (value: number | null, places: number): string => value?.toFixed(places) ?? "–";
    const lines = this.kernels.map((k) => [
      k.kernel,
      String(k.calls),
      digits(k.time, 3),
      k.time === null || !this.time ? "–" : `${((100 * k.time) / this.time).toFixed(1)} %`,
      digits(k.bandwidth, 1),
      digits(k.throughput, 1),
    ]);
    lines.push(["all", String(this.calls.length), digits(this.time, 3), "", "", ""]);
    const rows = [head, ...lines];
    const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
    const padded = (cell: string, column: number): string => {
      const width = widths[column] ?? 0;
      return column === 0 ? cell.padEnd(width) : cell.padStart(width);
    };
    return rows.map((row) => row.map(padded).join("  ").trimEnd()).join("\n");
  }

  /**
   * The calls in Chrome's trace event format: as JSON it opens in chrome://tracing and ui.perfetto.dev. Calls without a time
   * are left out.
   */
  trace(): { traceEvents: TraceEvent[]; displayTimeUnit: "ms" } {
    const traceEvents: TraceEvent[] = [];
    for (const { kernel, start, time, bytes, flops } of this.calls) {
      if (start === null || time === null) continue;
      const [ts, dur] = [1000 * start, 1000 * time];
      traceEvents.push({
        name: kernel,
        cat: "kernel",
        ph: "X",
        ts,
        dur,
        pid: 1,
        tid: 1,
        args: { bytes, flops },
      });
    }
    return { traceEvents, displayTimeUnit: "ms" };
  }
}

const sum = (calls: readonly KernelCall[], name: "time" | "bytes" | "flops"): number =>
  calls.reduce((total, call) => total + (call[name] ?? 0), 0);

function summed(kernel: string, calls: readonly KernelCall[]): KernelProfile {
  const time = calls.every((call) => call.time === null) ? null : sum(calls, "time");
  const [bytes, flops] = [sum(calls, "bytes"), sum(calls, "flops")];
  // Per millisecond a million is 10^9 a second. A clock too coarse for the calls gives no rate.
  const rate = (amount: number): number | null => (time === null || time === 0 ? null : amount / time / 1e6);
  return {
    kernel,
    calls: calls.length,
    time,
    bytes,
    flops,
    bandwidth: rate(bytes),
    throughput: flops > 0 ? rate(flops) : null,
  };
}

/**
 * The profile of what the module noted: names, and four numbers a call.
 * @internal
 */
export function makeProfile([names, numbers]: readonly [readonly string[], readonly number[]]): Profile {
  const milliseconds = (value = NaN): number | null => (Number.isNaN(value) ? null : value / 1000);
  return new Profile(
    names.map((kernel, k) => {
      const [start, time, bytes = 0, flops = 0] = numbers.slice(4 * k, 4 * k + 4);
      return { kernel, start: milliseconds(start), time: milliseconds(time), bytes, flops };
    }),
  );
}

// Prints what the suite measured.

const prefixes = ["", "k", "M", "G", "T", "P"];

function rateText(rate, unit) {
  const step = Math.max(0, Math.min(prefixes.length - 1, Math.floor(Math.log10(rate) / 3)));
  return `${(rate / 1000 ** step).toPrecision(3)} ${prefixes[step]}${unit}`;
}

function timeText(milliseconds) {
  if (milliseconds >= 1000) return `${(milliseconds / 1000).toPrecision(3)} s`;
  if (milliseconds >= 1) return `${milliseconds.toPrecision(3)} ms`;
  return `${(milliseconds * 1000).toPrecision(3)} µs`;
}

/** The result of `runSuite` as lines of text. */
export function tableOf({ device, adapter, software, rows }) {
  const title = { webgpu: "WebGPU", cpu: "CPU (WebAssembly)" }[device];
  const head = [`${title}: ${adapter}`];
  if (software) {
    head.push("A SOFTWARE ADAPTER: a CPU that pretends to be a GPU. These figures mean nothing for a GPU.");
  }
  const cells = [
    ["", "size", "time", "rate", "limit", "of the limit"],
    ...rows.map(({ name, size, unit, milliseconds, rate, limitRate, ofLimit, ratio }) => [
      name,
      size,
      timeText(milliseconds),
      rateText(rate, unit),
      rateText(limitRate, unit),
      ratio ? `1/${ratio.toFixed(1)}` : ofLimit.toFixed(2),
    ]),
  ];
  const widths = cells[0].map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  const lines = cells.map((row) =>
    row
      .map((cell, column) => (column < 2 ? cell.padEnd(widths[column]) : cell.padStart(widths[column])))
      .join("  "),
  );
  return [...head, "", ...lines].join("\n");
}

/** What the columns are, for those who read the table only. */
export const legend =
  "time: the median batch, for one call. limit: the fastest batch of a plain copy over the same bytes, or of\n" +
  "multiply-adds in registers, taken in turns with the row. Of a recorded op the calls alone are timed, its limit is a\n" +
  "loop over WebGPU written by hand, and both are their fastest batch. Only ratios of one run mean anything.";

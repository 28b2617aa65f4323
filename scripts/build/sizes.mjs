// Prints how large the package's files are, and what a page that uses ./slim downloads.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { root } from "../lib/process.mjs";

/** Sizes of a file of dist/ in bytes. */
export function sizeOf(name) {
  const bytes = readFileSync(join(root, "dist", name));
  return { name, raw: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length };
}

/** Prints one line for each file. */
export function printSizes() {
  const sizes = ["index.js", "slim.js", "wgrad_bg.wasm"].map(sizeOf);
  const [, slim, wasm] = sizes;
  const total = { name: "slim + wasm", raw: slim.raw + wasm.raw, gzip: slim.gzip + wasm.gzip };
  const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`.padStart(12);
  console.log(`${"".padEnd(14)}${"raw".padStart(12)}${"gzip".padStart(12)}`);
  for (const { name, raw, gzip } of [...sizes, total]) {
    console.log(`${name.padEnd(14)}${kilobytes(raw)}${kilobytes(gzip)}`);
  }
}

// Compiles the crate to WebAssembly and writes js/generated: the module, its JavaScript glue and the glue's types.
import { cpSync, rmSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { isFresh } from "../lib/files.mjs";
import { cargoBin, output, root, run, runModule } from "../lib/process.mjs";
import { findWasmBindgen } from "../setup.mjs";

const target = "wasm32-unknown-unknown";
const sources = [
  "src",
  "shaders",
  "Cargo.toml",
  "Cargo.lock",
  ".cargo",
  "build.rs",
  "scripts/build/wasm.mjs",
];
const products = ["wgrad.js", "wgrad.d.ts", "wgrad_bg.wasm.d.ts", "wgrad_bg.wasm"];

// What rustc and wasm-bindgen make use of; wasm-opt takes no module that has more than it was told of.
const wasmFeatures = [
  "simd",
  "bulk-memory",
  "nontrapping-float-to-int",
  "sign-ext",
  "mutable-globals",
  "reference-types",
  "multivalue",
].map((feature) => `--enable-${feature}`);

// Size first: the loops that decide speed are vector code that stays as it is. A second round finds what the first laid open.
const smaller = [
  "-Oz",
  "--flatten",
  "--rereloop",
  "-Oz",
  "-Oz",
  "--strip-producers",
  "--strip-target-features",
];

/** Builds js/generated unless it is newer than every source, or WGRAD_FORCE=1 is set. Says whether it did. */
export async function buildWasm() {
  const generated = products.map((name) => join("js", "generated", name));
  if (process.env.WGRAD_FORCE !== "1" && isFresh(generated, sources)) return false;
  const started = new Date();
  // Messages of panics name source files: without this they would publish the builder's home folder. cargo adds it to
  // the flags in .cargo/config.toml, where RUSTFLAGS would replace them.
  // Where std's own sources are installed, they stand in the sysroot.
  const sysroot = output("rustc", "--print", "sysroot")?.trim();
  const folders = [[dirname(cargoBin), "cargo"], ...(sysroot ? [[sysroot, "rust"]] : [])];
  const flags = JSON.stringify(folders.map(([from, to]) => `--remap-path-prefix=${from}=${to}`));
  const config = ["--config", `target.${target}.rustflags=${flags}`];
  await run("cargo", ["build", "--release", "--target", target, "--lib", ...config]);

  // Everything is made aside and moved when all went well, so that a failure leaves the last good state.
  const aside = join(root, "target", "wgrad-bindgen");
  rmSync(aside, { recursive: true, force: true });
  const compiled = join(process.env.CARGO_TARGET_DIR ?? "target", target, "release", "wgrad.wasm");
  const glue = ["--target", "web", "--omit-default-module-path", "--out-dir", aside, "--out-name", "wgrad"];
  await run(findWasmBindgen() ?? "wasm-bindgen", [...glue, compiled]);
  const module = join(aside, "wgrad_bg.wasm");
  await runModule("binaryen/bin/wasm-opt", [module, ...smaller, ...wasmFeatures, "-o", module]);

  const folder = join(root, "js", "generated");
  rmSync(folder, { recursive: true, force: true });
  // All of it: the glue may import snippets.
  cpSync(aside, folder, { recursive: true });
  // A source that was edited meanwhile is newer than this.
  for (const path of generated) utimesSync(join(root, path), started, started);
  return true;
}

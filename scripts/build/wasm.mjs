// Compiles a crate to WebAssembly and writes the module, its JavaScript glue and the glue's types.
import { cpSync, rmSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { isFresh } from "../lib/files.mjs";
import { cargoBin, output, root, run, runModule } from "../lib/process.mjs";
import { findWasmBindgen } from "../setup.mjs";

const target = "wasm32-unknown-unknown";

/** What the crate is made of. */
export const crateSources = [
  "src",
  "shaders",
  "Cargo.toml",
  "Cargo.lock",
  ".cargo",
  "build.rs",
  "scripts/build/wasm.mjs",
];

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
export function buildWasm() {
  return buildModule({
    crate: "wgrad",
    name: "wgrad",
    folder: join("js", "generated"),
    sources: crateSources,
  });
}

/**
 * Compiles a crate of the workspace and writes its module, glue and types to a folder, unless they are newer than every
 * source, or WGRAD_FORCE=1 is set. Says whether it did.
 * @param {{ crate: string, name: string, folder: string, sources: string[] }} options `name`: of the files
 */
export async function buildModule({ crate, name, folder, sources }) {
  const products = [`${name}.js`, `${name}.d.ts`, `${name}_bg.wasm.d.ts`, `${name}_bg.wasm`];
  const generated = products.map((product) => join(folder, product));
  if (process.env.WGRAD_FORCE !== "1" && isFresh(generated, sources)) return false;
  const started = new Date();
  // Messages of panics name source files: without this they would publish the builder's home folder. cargo adds it to
  // the flags in .cargo/config.toml, where RUSTFLAGS would replace them.
  // Where std's own sources are installed, they stand in the sysroot.
  const sysroot = output("rustc", "--print", "sysroot")?.trim();
  const folders = [[dirname(cargoBin), "cargo"], ...(sysroot ? [[sysroot, "rust"]] : [])];
  const flags = JSON.stringify(folders.map(([from, to]) => `--remap-path-prefix=${from}=${to}`));
  const config = ["--config", `target.${target}.rustflags=${flags}`];
  await run("cargo", ["build", "--release", "--target", target, "--package", crate, "--lib", ...config]);

  // Everything is made aside and moved when all went well, so that a failure leaves the last good state.
  const aside = join(root, "target", `${crate}-bindgen`);
  rmSync(aside, { recursive: true, force: true });
  const file = `${crate.replaceAll("-", "_")}.wasm`;
  const compiled = join(process.env.CARGO_TARGET_DIR ?? "target", target, "release", file);
  const glue = ["--target", "web", "--omit-default-module-path", "--out-dir", aside, "--out-name", name];
  await run(findWasmBindgen() ?? "wasm-bindgen", [...glue, compiled]);
  const module = join(aside, `${name}_bg.wasm`);
  await runModule("binaryen/bin/wasm-opt", [module, ...smaller, ...wasmFeatures, "-o", module]);

  rmSync(join(root, folder), { recursive: true, force: true });
  // All of it: the glue may import snippets.
  cpSync(aside, join(root, folder), { recursive: true });
  // A source that was edited meanwhile is newer than this.
  for (const path of generated) utimesSync(join(root, path), started, started);
  return true;
}

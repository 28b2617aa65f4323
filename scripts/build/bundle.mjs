// Bundles js/ into dist/: one plain ES module for each entry of the package, and the WebAssembly beside them.
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../lib/process.mjs";

const wasm = join(root, "js", "generated", "wgrad_bg.wasm");

/** Writes dist/index.js (with the module inlined), dist/slim.js and dist/wgrad_bg.wasm. */
export async function bundle() {
  // Imported here: a fresh checkout has no packages until setup has run.
  const { build } = await import("esbuild");
  const options = {
    absWorkingDir: root,
    bundle: true,
    format: "esm",
    platform: "neutral",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    minify: true,
    logLevel: "warning",
    // wasm-bindgen lists a snippet once for every function that comes from it.
    logOverride: { "duplicate-object-key": "silent" },
  };
  await build({ ...options, entryPoints: ["js/index.ts"], outfile: "dist/index.js", plugins: [inlineWasm] });
  await build({ ...options, entryPoints: ["js/slim.ts"], outfile: "dist/slim.js", plugins: [refuseWasm] });
  copyFileSync(wasm, join(root, "dist", "wgrad_bg.wasm"));
}

const virtual = /^virtual:wgrad-wasm$/;

// `import wasm from "virtual:wgrad-wasm"` gives the module as base64.
const inlineWasm = {
  name: "wgrad-wasm",
  setup(build) {
    build.onResolve({ filter: virtual }, ({ path }) => ({ path, namespace: "wgrad-wasm" }));
    build.onLoad({ filter: virtual, namespace: "wgrad-wasm" }, () => ({
      contents: `export default ${JSON.stringify(readFileSync(wasm).toString("base64"))}`,
      loader: "js",
    }));
  },
};

const refuseWasm = {
  name: "no-wgrad-wasm",
  setup(build) {
    build.onResolve({ filter: virtual }, ({ importer }) => ({
      errors: [{ text: `the slim entry must not inline the module (imported by ${importer})` }],
    }));
  },
};

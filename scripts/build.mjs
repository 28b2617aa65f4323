// Builds the package: src/ to js/generated (skipped when nothing changed; WGRAD_FORCE=1 forces it), js/ to dist/.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { bundle } from "./build/bundle.mjs";
import { printSizes } from "./build/sizes.mjs";
import { emitTypes } from "./build/types.mjs";
import { buildWasm } from "./build/wasm.mjs";
import { root } from "./lib/process.mjs";
import { setup } from "./setup.mjs";

/** Builds dist/; the machine must be set up. */
export async function build() {
  const compiled = await buildWasm();
  console.log(compiled ? "build: js/generated is new" : "build: js/generated is up to date");
  rmSync(join(root, "dist"), { recursive: true, force: true });
  await bundle();
  await emitTypes();
  printSizes();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    await setup();
    await build();
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}

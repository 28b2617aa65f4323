// Compiles the kernel lab's crate and writes www/lab/generated. The package has nothing of it.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setup } from "../setup.mjs";
import { buildModule, crateSources } from "./wasm.mjs";

const sources = [...crateSources, "www/lab/src", "www/lab/Cargo.toml"];

/** Builds www/lab/generated unless it is up to date. Says whether it did. */
export function buildLab() {
  const folder = join("www", "lab", "generated");
  return buildModule({ crate: "wgrad-lab", name: "lab", folder, sources });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    await setup();
    console.log((await buildLab()) ? "build: the lab is new" : "build: the lab is up to date");
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}

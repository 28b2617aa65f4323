// WebGPU in Node: Dawn as the npm package `webgpu`, made `navigator.gpu`.
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The root of the repository. */
export const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** The command line's --name=value options. */
export const options = Object.fromEntries(
  process.argv.slice(2).map((argument) => argument.replace(/^--/, "").split(/=(.*)/s)),
);

/** Defines `navigator.gpu`; --webgpu= names the package's index.js. */
export async function defineGpu() {
  const where = resolve(options.webgpu ?? join(root, ".gpu/webgpu/index.js"));
  const { create, globals } = await import(pathToFileURL(where).href);
  Object.assign(globalThis, globals);
  const toggles = [
    "enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia",
    "disable-dawn-features=timestamp_quantization",
  ];
  Object.defineProperty(globalThis, "navigator", { value: { gpu: create(toggles) }, configurable: true });
}

// WebGPU in Node: Dawn as the npm package `webgpu`, made `navigator.gpu`.
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../scripts/lib/process.mjs";

/** Defines `navigator.gpu`; `where` is the index.js of the npm package. */
export async function defineGpu(where) {
  const module = resolve(where || join(root, ".gpu/webgpu/index.js"));
  const { create, globals } = await import(pathToFileURL(module).href);
  Object.assign(globalThis, globals);
  const toggles = [
    "enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia",
    "disable-dawn-features=timestamp_quantization",
  ];
  Object.defineProperty(globalThis, "navigator", { value: { gpu: create(toggles) }, configurable: true });
}

import base64 from "virtual:wgrad-wasm";
import { type Init, makeInit } from "./init.js";

export * from "./exports.js";

function decoded(): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  return bytes;
}

/**
 * Makes an engine: on a GPU where there is one, else on the CPU. The WebAssembly module is inside this file, so that
 * every bundler, module script, worker and Node load it as it is; `wgrad/slim` is the same with the module in a file of
 * its own. Importing does nothing: no `navigator`, no `fetch`, no WebAssembly until this is called.
 * @throws {@link UnsupportedError} when WebAssembly cannot be loaded (a content security policy must allow
 *   `'wasm-unsafe-eval'`), or when `device: "webgpu"` or `gpuDevice` cannot be had
 * @throws {@link ArgumentError} for an option that is none
 * @example
 * ```ts
 * import { init } from "wgrad";
 *
 * const engine = await init();
 * if (engine.fallbackReason) console.log(`on the CPU: ${engine.fallbackReason}`);
 * ```
 */
export const init: Init = makeInit(decoded);

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
 * every bundler, module script, worker and Node load it as it is.
 */
export const init: Init = makeInit(decoded);

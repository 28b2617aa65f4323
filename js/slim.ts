import { type Init, makeInit } from "./init.js";

export * from "./exports.js";

/** Makes an engine, as the main entry does; the WebAssembly module is loaded from `wgrad_bg.wasm` beside this file. */
export const init: Init = makeInit(() => new URL("./wgrad_bg.wasm", import.meta.url));

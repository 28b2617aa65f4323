// In Node: importing asks nothing of the machine, and both entries compute on the CPU.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { compute } from "./compute.js";

// Node 20 has no navigator, and later ones none that helps.
delete globalThis.navigator;
const touched = [];
const hidden = ["navigator", "fetch", "WebAssembly", "atob", "document", "self"].map((name) => {
  const before = Object.getOwnPropertyDescriptor(globalThis, name);
  const get = () => {
    touched.push(name);
    return before?.value;
  };
  Object.defineProperty(globalThis, name, { configurable: true, get });
  return [name, before];
});
const { init } = await import("wgrad");
const slim = await import("wgrad/slim");
for (const [name, before] of hidden) {
  delete globalThis[name];
  if (before) Object.defineProperty(globalThis, name, before);
}

const require = createRequire(import.meta.url);
const wasm = await readFile(require.resolve("wgrad/wgrad_bg.wasm"));
// Node requires ES modules too.
const required = require("wgrad").init === init;
const { name, version } = require("wgrad/package.json");
const answers = [await compute(init), await compute(slim.init, { wasm })].map((text) => JSON.parse(text));
console.log(JSON.stringify({ touched, required, name, version, answers }));

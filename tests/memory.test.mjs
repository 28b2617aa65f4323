// Reads at the same time, and memory that must not grow, on every engine. tests/support/memory.mjs has the bodies.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { everywhere } from "./support/everywhere.mjs";

// Node has gc() only on request, which can still be made.
setFlagsFromString("--expose-gc");
globalThis.gc ??= runInNewContext("gc");

await everywhere("memory.mjs", { args: ["--js-flags=--expose-gc"] });

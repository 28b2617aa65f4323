// The reference cases on a real GPU, from Node through Dawn (the npm package `webgpu`):
//   node bench/gpu.mjs [--webgpu=PATH_TO_ITS_INDEX_JS] [--only=REGEX]
// Needs dist/ (npm run build). Prints the adapter, the device's features and the cases that fail.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { report, runCases } from "../tests/cases/run.mjs";
import { defineGpu, options, root } from "./dawn.mjs";

await defineGpu();
const { init } = await import("../dist/index.js");
const engine = await init({ device: "webgpu" });
console.log(engine.adapter, [...engine.features].join(" "));

const folder = join(root, "tests/data");
const files = readdirSync(folder).filter((f) => f.endsWith(".json"));
const cases = files.flatMap((f) => JSON.parse(readFileSync(join(folder, f), "utf8")));
const only = options.only ? new RegExp(options.only) : null;
const known = (op) => op === "adamw" || typeof engine.tensor(0)[op] === "function";
const exists = (c) => (c.op === "graph" ? c.attrs.steps.every((s) => known(s.op)) : known(c.op));
const chosen = cases.filter((c) => exists(c) && (!only || only.test(c.id)));
const result = await runCases(engine, chosen, undefined, { device: "webgpu" });
report(result);
engine.dispose();
process.exit(result.total.fail > 0 ? 1 : 0);

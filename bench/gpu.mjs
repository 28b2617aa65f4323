// The reference cases on a real GPU, from Node through Dawn (the npm package `webgpu`):
//   node bench/gpu.mjs [--webgpu=PATH_TO_ITS_INDEX_JS] [--only=REGEX]
// Needs dist/ (npm run build). Prints the adapter, the device's features and the cases that fail.
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { report, runCases } from "../tests/cases/run.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const options = Object.fromEntries(process.argv.slice(2).map((a) => a.replace(/^--/, "").split(/=(.*)/s)));
const where = resolve(options.webgpu ?? join(root, ".gpu/webgpu/index.js"));

const { create, globals } = await import(pathToFileURL(where).href);
Object.assign(globalThis, globals);
const toggles = [
  "enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia",
  "disable-dawn-features=timestamp_quantization",
];
Object.defineProperty(globalThis, "navigator", { value: { gpu: create(toggles) }, configurable: true });

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

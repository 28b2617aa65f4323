// The reference cases and the benchmark on a real GPU, from Node through Dawn (the npm package `webgpu`):
//   node bench/gpu.mjs [--cases] [--bench] [--only=REGEX] [--json=FILE] [--quick] [--webgpu=PATH_TO_ITS_INDEX_JS]
// Both parts run unless one is named. Needs dist/ (npm run build). Prints the adapter, the device's features, the cases
// that fail and the benchmark's table.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../scripts/lib/process.mjs";
import { report, runCases } from "../tests/cases/run.mjs";
import { isPresent } from "../tests/support/present.mjs";
import { defineGpu } from "./dawn.mjs";
import { readOptions } from "./options.mjs";
import { runSuite } from "./suite.mjs";
import { legend, tableOf } from "./table.mjs";

const options = readOptions({ cases: false, bench: false, only: "", json: "", quick: false, webgpu: "" });
const both = options.cases === options.bench;

/** Runs the reference cases of the operations that there are; gives how many failed. */
async function runReferenceCases(engine) {
  const folder = join(root, "tests/data");
  const files = readdirSync(folder).filter((f) => f.endsWith(".json"));
  const cases = files.flatMap((f) => JSON.parse(readFileSync(join(folder, f), "utf8")));
  const only = new RegExp(options.only);
  const chosen = cases.filter((c) => isPresent(c) && only.test(c.id));
  const result = await runCases(engine, chosen, undefined, { device: "webgpu" });
  report(result);
  return result.total.fail;
}

async function runBench(engine) {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const result = await runSuite(engine, options);
  const versions = { wgrad: version, node: process.versions.node };
  console.log(`\nwgrad ${version}, Node ${versions.node} with Dawn\n${legend}\n\n${tableOf(result)}`);
  if (!options.json) return;
  writeFileSync(
    options.json,
    `${JSON.stringify({ versions, date: new Date(), results: [result] }, null, 2)}\n`,
  );
}

await defineGpu(options.webgpu);
const { init } = await import("../dist/index.js");
const engine = await init({ device: "webgpu" });
console.log(engine.adapter, [...engine.features].join(" "));
const failed = both || options.cases ? await runReferenceCases(engine) : 0;
if (both || options.bench) await runBench(engine);
engine.dispose();
process.exit(failed > 0 ? 1 : 0);

// wgrad on WebGPU and on the CPU beside the device's own limits, in headless Chromium:
//   npm run bench -- [--only=REGEX] [--json=FILE] [--quick]
// Chromium's adapter is a software one there; on a real GPU, use bench/gpu.mjs.
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { build } from "../scripts/build.mjs";
import { root } from "../scripts/lib/process.mjs";
import { setup } from "../scripts/setup.mjs";
import { multiplyAddModule } from "./cpu-limit.mjs";
import { readOptions } from "./options.mjs";
import { legend, tableOf } from "./table.mjs";

/** Runs in the page. */
async function inPage({ device, options }) {
  const [{ init }, { runSuite }] = await Promise.all([import("/dist/index.js"), import("/bench/suite.mjs")]);
  const engine = await init({ device });
  const result = await runSuite(engine, options);
  engine.dispose();
  return result;
}

async function main() {
  const { only, json, quick } = readOptions({ only: "", json: "", quick: false });
  await setup({ tests: true });
  await build();
  const { openPage } = await import("../tests/support/browser.mjs");
  const module = Array.from(await multiplyAddModule());
  const folders = { "/dist/": join(root, "dist"), "/bench/": join(root, "bench") };
  const opened = await openPage({ folders });
  try {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const [cpu] = cpus();
    const versions = { wgrad: version, chromium: opened.browser.version(), node: process.versions.node };
    const machine = `${cpu?.model ?? "unknown"}, ${cpus().length} cores`;
    console.log(
      `\nwgrad ${version}, Chromium ${versions.chromium}, Node ${versions.node}; ${machine}\n${legend}`,
    );
    const results = [];
    for (const device of ["webgpu", "cpu"]) {
      const options = { only, quick, multiplyAddModule: module };
      const result = await opened.page.evaluate(inPage, { device, options });
      results.push(result);
      console.log(`\n${tableOf(result)}`);
    }
    if (opened.problems.length > 0) throw new Error(`the page had errors:\n${opened.problems.join("\n")}`);
    if (json)
      writeFileSync(json, `${JSON.stringify({ versions, machine, date: new Date(), results }, null, 2)}\n`);
  } finally {
    await opened.close();
  }
}

try {
  await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

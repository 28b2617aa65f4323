// Writes FEATURES.md: what every operation takes and does, tried on the CPU here and on WebGPU in headless Chromium.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { featuresDocument } from "./features/document.mjs";
import { probe } from "./features/probe.mjs";
import { root } from "./lib/process.mjs";
import { setup } from "./setup.mjs";

const file = join(root, "FEATURES.md");

/** The page as it is in the repository. */
export const committedFeatures = () => readFileSync(file, "utf8");

/** The page as the package in dist/ makes it. */
export async function currentFeatures() {
  const { init } = await import(pathToFileURL(join(root, "dist", "index.js")).href);
  const engine = await init({ device: "cpu" });
  try {
    return featuresDocument(await probe(engine), await probeInChromium());
  } finally {
    engine.dispose();
  }
}

async function probeInChromium() {
  // Imported here: a fresh checkout has no packages until setup has run.
  const { openPage } = await import("../tests/support/browser.mjs");
  const folders = { "/dist/": join(root, "dist"), "/features/": join(root, "scripts", "features") };
  const { page, problems, close } = await openPage({ folders });
  try {
    const found = await page.evaluate(async () => {
      const [{ init }, { probe }] = await Promise.all([
        import("/dist/index.js"),
        import("/features/probe.mjs"),
      ]);
      return probe(await init({ device: "webgpu" }));
    });
    if (problems.length > 0) throw new Error(`the page had errors:\n${problems.join("\n")}`);
    return found;
  } finally {
    await close();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    await setup({ tests: true });
    await build();
    writeFileSync(file, await currentFeatures());
    console.log("FEATURES.md is written");
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}

// Formats all sources: npm run format.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root, run, runModule } from "./lib/process.mjs";

/** Formats Rust; with `--check` it only says what is not formatted. */
export async function formatRust(...flags) {
  await run("cargo", ["fmt", "--all", ...flags]);
  // The registry's macro makes modules of these, which cargo fmt does not see.
  const kernels = join("src", "kernels");
  const files = readdirSync(join(root, kernels)).filter((name) => name.endsWith(".rs"));
  await run("rustfmt", ["--edition", "2024", ...flags, ...files.map((name) => join(kernels, name))]);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    await formatRust();
    await runModule("prettier/bin/prettier.cjs", ["--write", "."]);
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}

// Emits the package's type declarations into dist/ and checks that they stand on their own.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { root, runModule } from "../lib/process.mjs";

const dist = join(root, "dist");

/** Writes dist/*.d.ts; throws if one imports what the package does not ship. */
export async function emitTypes() {
  await runModule("typescript/bin/tsc", ["-p", "tsconfig.build.json"]);
  const problems = declarations().flatMap((file) =>
    importsOf(file).flatMap((path) => problemWith(file, path)),
  );
  if (problems.length > 0)
    throw new Error(`the emitted types cannot be published:\n  ${problems.join("\n  ")}`);
}

function declarations() {
  const names = readdirSync(dist, { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(".d.ts")).map((name) => join(dist, name));
}

function importsOf(file) {
  const specifier = /(?:\bfrom\s*|\bimport\s*\(?\s*|<reference (?:path|types)=)["']([^"']+)["']/g;
  return [...readFileSync(file, "utf8").matchAll(specifier)].map((match) => match[1]);
}

function problemWith(file, path) {
  const where = `${relative(root, file)} refers to "${path}"`;
  if (!path.startsWith(".")) return [`${where}: the package has no dependencies`];
  // Under moduleResolution node16 a consumer's tsc finds "./x.js" only.
  if (!path.endsWith(".js")) return [`${where}: write the extension .js`];
  const declared = join(dirname(file), path.replace(/\.js$/, ".d.ts"));
  return existsSync(declared) ? [] : [`${where}: not part of the package`];
}

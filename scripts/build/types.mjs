// Emits the package's type declarations into dist/ and checks that they stand on their own.
import { existsSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { root, runModule } from "../lib/process.mjs";

const dist = join(root, "dist");

/** Writes the dist/*.d.ts that the entries need; throws if one imports what the package does not ship. */
export async function emitTypes() {
  await runModule("typescript/bin/tsc", ["-p", "tsconfig.build.json"]);
  removeUnreachable();
  const problems = declarations().flatMap((file) =>
    importsOf(file).flatMap((path) => problemWith(file, path)),
  );
  if (problems.length > 0)
    throw new Error(`the emitted types cannot be published:\n  ${problems.join("\n  ")}`);
}

// Modules of our own whose types no user meets.
function removeUnreachable() {
  const reached = new Set(["index", "slim"].map((entry) => join(dist, `${entry}.d.ts`)));
  // A set gives what is added on the way too.
  for (const file of reached) {
    const imported = importsOf(file).map((path) => declarationOf(file, path));
    for (const path of imported) if (existsSync(path)) reached.add(path);
  }
  for (const file of declarations()) if (!reached.has(file)) rmSync(file);
}

const declarationOf = (file, path) => join(dirname(file), path.replace(/\.js$/, ".d.ts"));

function declarations() {
  const names = readdirSync(dist, { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(".d.ts")).map((name) => join(dist, name));
}

function importsOf(file) {
  const specifier = /(?:\bfrom\s*|\bimport\s*\(?\s*|<reference (?:path|types)=)["']([^"']+)["']/g;
  // Without the examples in comments.
  const text = readFileSync(file, "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
  return [...text.matchAll(specifier)].map((match) => match[1]);
}

function problemWith(file, path) {
  const where = `${relative(root, file)} refers to "${path}"`;
  if (!path.startsWith(".")) return [`${where}: the package has no dependencies`];
  // Under moduleResolution node16 a consumer's tsc finds "./x.js" only.
  if (!path.endsWith(".js")) return [`${where}: write the extension .js`];
  return existsSync(declarationOf(file, path)) ? [] : [`${where}: not part of the package`];
}

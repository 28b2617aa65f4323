// Runs every check, goes on after a failure, and sums up. `npm test -- --only=cargo` runs the steps with that in
// their names; `npm test -- --list` names them.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { formatRust } from "./format.mjs";
import { findChromedriver } from "./lib/browser.mjs";
import { root, run, runModule } from "./lib/process.mjs";
import { setup } from "./setup.mjs";

const wasmTarget = ["--target", "wasm32-unknown-unknown"];
const denyWarnings = ["--", "-D", "warnings"];

// `needsBuild`: reads js/generated or dist, so the step brings the build along (a second or two when it is warm).
const steps = [
  { name: "cargo fmt", action: () => formatRust("--check") },
  { name: "cargo clippy", action: () => run("cargo", ["clippy", "--all-targets", ...denyWarnings]) },
  {
    name: "cargo clippy wasm32",
    action: () => run("cargo", ["clippy", "--workspace", ...wasmTarget, "--all-targets", ...denyWarnings]),
  },
  {
    name: "prettier",
    action: () => runModule("prettier/bin/prettier.cjs", ["--check", "--log-level=warn", "."]),
  },
  { name: "build", action: buildAll },
  { name: "eslint", needsBuild: true, action: () => runModule("eslint/bin/eslint.js", ["."]) },
  { name: "tsc", needsBuild: true, action: typeCheck },
  // docs/api: an export without a comment or a link that leads nowhere fails.
  { name: "typedoc", needsBuild: true, action: () => runModule("typedoc/bin/typedoc", []) },
  { name: "cargo doc", action: rustDocs },
  { name: "cargo test", action: () => run("cargo", ["test"]) },
  { name: "wasm-pack test", action: browserTests },
  { name: "node tests", needsBuild: true, action: nodeTests },
];

async function buildAll() {
  await run(process.execPath, ["scripts/build.mjs"]);
  await run(process.execPath, ["scripts/build/lab.mjs"]);
}

async function typeCheck() {
  await runModule("typescript/bin/tsc", ["-p", "tsconfig.json"]);
  await runModule("typescript/bin/tsc", ["-p", "tsconfig.node.json"]);
}

async function rustDocs() {
  const env = { RUSTDOCFLAGS: "-D warnings" };
  // Private items too, which is where most links are; for wasm32 what only exists there.
  const args = ["doc", "--no-deps", "--document-private-items"];
  await run("cargo", args, { env });
  await run("cargo", [...args, ...wasmTarget], { env });
}

function browserTests() {
  // The default limit of 20 s is for the whole of a test file.
  const env = { WASM_BINDGEN_TEST_TIMEOUT: process.env.WASM_BINDGEN_TEST_TIMEOUT ?? "600" };
  const options = ["--headless", "--chrome", "--chromedriver", findChromedriver()];
  return run("wasm-pack", ["test", "--mode", "no-install", ...options], { env });
}

function nodeTests() {
  const files = readdirSync(join(root, "tests")).filter((name) => name.endsWith(".test.mjs"));
  if (files.length === 0) throw new Error("no tests/*.test.mjs");
  const paths = files.sort().map((name) => join("tests", name));
  return run(process.execPath, ["--test", "--test-concurrency=1", "--test-reporter=spec", ...paths]);
}

function selected(filter) {
  const named = steps.filter((step) => step.name.includes(filter));
  if (named.length === 0) throw new Error(`no step has "${filter}" in its name: ${names(steps)}`);
  const build = named.some((step) => step.needsBuild);
  return steps.filter((step) => named.includes(step) || (build && step.name === "build"));
}

const names = (list) => list.map((step) => step.name).join(", ");

async function runStep({ name, action }) {
  console.log(`\n=== ${name}`);
  const started = performance.now();
  let failure = null;
  try {
    await action();
  } catch (error) {
    failure = error;
    console.error(error.message);
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`=== ${name}: ${failure ? "FAILED" : "ok"} after ${seconds} s`);
  return { name, ok: !failure, seconds };
}

function summarize(results) {
  const width = Math.max(...results.map(({ name }) => name.length));
  console.log("\n=== summary");
  for (const { name, ok, seconds } of results) {
    console.log(`${ok ? "ok    " : "FAILED"}  ${name.padEnd(width)}  ${seconds.padStart(7)} s`);
  }
  const failed = results.filter(({ ok }) => !ok).length;
  console.log(`\n${results.length - failed} passed, ${failed} failed`);
  if (failed > 0) process.exitCode = 1;
}

async function main() {
  if (process.argv.includes("--list")) return console.log(names(steps));
  const filter =
    process.argv.find((argument) => argument.startsWith("--only="))?.slice("--only=".length) ?? "";
  const chosen = selected(filter);
  const results = [await runStep({ name: "setup", action: () => setup({ tests: true }) })];
  if (results[0].ok) for (const step of chosen) results.push(await runStep(step));
  summarize(results);
}

try {
  await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

// Makes a machine that has rustup and Node ready to build, and with --tests to test. What is there stays as it is.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { findChromedriver, findChromium } from "./lib/browser.mjs";
import { newest } from "./lib/files.mjs";
import { find, findAll, output, root, run } from "./lib/process.mjs";

const target = "wasm32-unknown-unknown";

/** Everything that a build needs; with `tests` what the tests need besides. */
export async function setup({ tests = false } = {}) {
  await npmPackages();
  await rustTarget();
  await wasmBindgen();
  if (!tests) return;
  await rustComponents();
  await wasmPack();
  await browser();
}

/** The version of wasm-bindgen that Cargo.toml pins; the command-line tool must be the same. */
export function wasmBindgenVersion() {
  const pin = /^wasm-bindgen\s*=.*"=(\d+\.\d+\.\d+)"/m.exec(readFileSync(join(root, "Cargo.toml"), "utf8"));
  if (!pin) throw new Error('Cargo.toml: no line like wasm-bindgen = "=0.2.130"');
  return pin[1];
}

/** The path of the `wasm-bindgen` program of the pinned version, or null. */
export function findWasmBindgen() {
  const wanted = `wasm-bindgen ${wasmBindgenVersion()}`;
  return findAll("wasm-bindgen").find((path) => output(path, "--version")?.trim() === wanted) ?? null;
}

async function npmPackages() {
  if (newest("node_modules/.package-lock.json") >= newest("package-lock.json")) return;
  await install("the npm packages", "run `npm ci`", () => run("npm", ["ci"]));
}

async function rustTarget() {
  // A Rust without rustup has no list of targets, but a folder for each.
  const folder = join(output("rustc", "--print", "sysroot")?.trim() ?? ".", "lib", "rustlib", target);
  if (output("rustup", "target", "list", "--installed")?.includes(target) || existsSync(folder)) return;
  await install(`the Rust target ${target}`, `run \`rustup target add ${target}\` (https://rustup.rs)`, () =>
    run("rustup", ["target", "add", target]),
  );
}

async function rustComponents() {
  if (output("cargo", "fmt", "--version") && output("cargo", "clippy", "--version")) return;
  await install("rustfmt and clippy", "run `rustup component add rustfmt clippy`", () =>
    run("rustup", ["component", "add", "rustfmt", "clippy"]),
  );
}

async function wasmBindgen() {
  if (findWasmBindgen()) return;
  const version = wasmBindgenVersion();
  // Not --locked: a crate that its lock file names has been withdrawn.
  const args = ["install", "wasm-bindgen-cli", "--version", version, "--force"];
  const what = `wasm-bindgen ${version} (compiled here, a few minutes)`;
  await install(what, `run \`cargo ${args.join(" ")}\``, () => run("cargo", args));
}

async function wasmPack() {
  if (find("wasm-pack")) return;
  const args = ["install", "wasm-pack", "--locked"];
  const what = "wasm-pack (compiled here, a few minutes)";
  await install(what, `run \`cargo ${args.join(" ")}\``, () => run("cargo", args));
}

async function browser() {
  if (findChromium() && findChromedriver()) return;
  const hand =
    "install Chromium or Chrome and the ChromeDriver of the same version, on the PATH or named by CHROME and CHROMEDRIVER";
  await install("Chromium and its driver", hand, async () => {
    if (!find("apt-get")) throw new Error("there is no apt-get here");
    const sudo = process.getuid() === 0 ? [] : ["sudo"];
    const apt = (...args) => {
      const [program, ...rest] = [
        ...sudo,
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "-qq",
        ...args,
      ];
      return run(program, rest, { quiet: true });
    };
    await apt("update");
    await apt("install", "-y", "--no-install-recommends", "chromium", "chromium-driver", "fonts-liberation");
    if (!findChromium() || !findChromedriver()) throw new Error("apt-get installed no program of that name");
  });
}

async function install(what, byHand, action) {
  console.log(`setup: installing ${what}`);
  try {
    await action();
  } catch (error) {
    throw new Error(`setup: could not install ${what}: ${error.message}\n  By hand: ${byHand}.`, {
      cause: error,
    });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    await setup({ tests: process.argv.includes("--tests") });
    console.log("setup: ready");
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}

// Projects of users in temporary folders: with packages from npm, another Node, and Dawn for WebGPU in Node.
import { spawn } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { findChromium } from "../../scripts/lib/browser.mjs";
import { root } from "../../scripts/lib/process.mjs";

/** Chromium's WebGPU for Node. Its 130 MB are why it is installed by the tests that need it, and by them only. */
export const dawnPackage = "webgpu@0.6.2";

/** The Nodes that the package is tried in, by major version. */
const nodeVersions = { 20: "20.20.2", 22: "22.23.3" };

/** Runs a program to its end: `{ code, out, err }`. */
export async function start(program, args, { cwd, env = {} } = {}) {
  const windows = process.platform === "win32";
  const child = spawn(program, args, {
    cwd,
    shell: windows && program === "npm",
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (part) => (out += part));
  child.stderr.setEncoding("utf8").on("data", (part) => (err += part));
  const code = await new Promise((done, fail) => child.once("error", fail).once("close", done));
  return { code, out, err };
}

/** Packs the package as it would be published into a folder; gives what npm says of it. */
export async function pack(folder) {
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder];
  const { code, out, err } = await start("npm", args, { cwd: root });
  if (code !== 0) throw new Error(`npm pack ends with ${code}:\n${err}`);
  // An array, or from npm 12 on an object by the packages' names.
  return Object.values(JSON.parse(out))[0];
}

/** Installs packages into a project's node_modules, beside what is there. */
export async function install(project, ...packages) {
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--no-save"];
  // The prefix by name: what `npm test` leaves in the environment points to this repository.
  const { code, out, err } = await start("npm", ["install", "--prefix", project, ...flags, ...packages], {
    cwd: project,
  });
  if (code !== 0) throw new Error(`npm install ${packages.join(" ")} ends with ${code}:\n${out}\n${err}`);
}

/** The package that holds Node of this major version for this machine, or null if it is the one that runs this. */
export function nodePackage(major) {
  if (process.versions.node.startsWith(`${major}.`)) return null;
  const { platform, arch } = process;
  const mac = platform === "darwin" && arch === "arm64";
  const name = `${mac ? "node-bin" : "node"}-${platform === "win32" ? "win" : platform}-${arch}`;
  return { name, spec: `${name}@${nodeVersions[major]}` };
}

/** The program of a Node that was installed from `nodePackage`. */
export function nodeProgram(project, major) {
  const found = nodePackage(major);
  if (!found) return process.execPath;
  const file = process.platform === "win32" ? "node.exe" : "node";
  return join(project, "node_modules", found.name, "bin", file);
}

/**
 * The environment in which Dawn finds an adapter without a GPU: Chromium brings a software one, and the Vulkan loader for
 * it. Where it does not, as on a Mac, Dawn has the machine's own.
 */
export function dawnEnvironment() {
  const folders = [dirname(realpathSync(findChromium())), "/usr/lib/chromium", "/opt/google/chrome"];
  const folder = folders.find((path) => existsSync(join(path, "vk_swiftshader_icd.json")));
  if (!folder) return {};
  return { VK_DRIVER_FILES: join(folder, "vk_swiftshader_icd.json"), LD_LIBRARY_PATH: folder };
}

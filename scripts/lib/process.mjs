// Runs other programs from the root of the repository, and finds them.
import { spawn, spawnSync } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The root of the repository. */
export const root = fileURLToPath(new URL("../../", import.meta.url));

const windows = process.platform === "win32";

/** Where `cargo install` puts programs; it need not be on the PATH. */
export const cargoBin = join(process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "bin");

const searchPath = [...(process.env.PATH ?? "").split(delimiter).filter(Boolean), cargoBin];

/** The environment for everything that is started here: programs of `cargo install` are found too. */
export const environment = { ...process.env, PATH: searchPath.join(delimiter) };

/** All executable files of one of these names, in the order of the names, then of the PATH. */
export function findAll(...names) {
  const suffix = windows ? ".exe" : "";
  return names.flatMap((name) =>
    searchPath.map((folder) => join(folder, name + suffix)).filter(isExecutable),
  );
}

/** The first executable file of one of these names, or null. */
export function find(...names) {
  return findAll(...names)[0] ?? null;
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** What a program prints, or null if it cannot be started or fails. */
export function output(program, ...args) {
  const done = spawnSync(program, args, { cwd: root, encoding: "utf8", env: environment });
  return done.status === 0 ? done.stdout : null;
}

const running = new Set();

// A signal to this process alone must not leave what it started behind.
function keepTrackOf(child) {
  if (process.listenerCount("SIGTERM") === 0) {
    process.on("SIGINT", () => stop("SIGINT", 130));
    process.on("SIGTERM", () => stop("SIGTERM", 143));
  }
  running.add(child);
  child.once("exit", () => running.delete(child));
}

function stop(signal, exitCode) {
  for (const child of running) child.kill(signal);
  process.exit(exitCode);
}

/** Runs a program with this terminal as its own; rejects unless it exits with 0. */
export function run(program, args, { env = {}, quiet = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: root,
      env: { ...environment, ...env },
      stdio: ["ignore", quiet ? "ignore" : "inherit", "inherit"],
      // npm and npx are command files there, which only a shell can start.
      shell: windows && /^np[mx]$/.test(program),
    });
    keepTrackOf(child);
    child.once("error", (error) => reject(new Error(`${program}: ${error.message}`)));
    child.once("exit", (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`${[program, ...args].join(" ")}: ${signal ?? `exit code ${code}`}`));
    });
  });
}

/** Runs a JavaScript program of an npm package, given as its path under node_modules. */
export function runModule(path, args, options) {
  return run(process.execPath, [join(root, "node_modules", path), ...args], options);
}

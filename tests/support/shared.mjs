// Where the reference cases are: tests/data/, a committed copy of the part of ../shared/cases that is in use.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../../", import.meta.url));

/** The folder with the reference cases that the tests read. */
export const casesFolder = join(repository, "tests", "data");

/** The reference cases' runner. */
export const casesRunner = join(repository, "tests", "cases", "run.mjs");

const origin = join(repository, "..", "shared", "cases");

/** The families that are copied here: gated, norm, ... */
export function caseFamilies() {
  const names = readdirSync(casesFolder).filter((name) => name.endsWith(".json"));
  return names.map((name) => name.slice(0, -".json".length)).sort();
}

/** The cases of one family, as parsed JSON. */
export function readCases(family) {
  return JSON.parse(readFileSync(join(casesFolder, `${family}.json`), "utf8"));
}

/**
 * The files of tests/data that differ from their originals beside the repository, or null where there are none
 * (a checkout on its own).
 */
export function casesOutOfStep() {
  if (!existsSync(origin)) return null;
  return readdirSync(casesFolder).filter((name) => {
    const original = join(origin, name);
    return !existsSync(original) || !readFileSync(original).equals(readFileSync(join(casesFolder, name)));
  });
}

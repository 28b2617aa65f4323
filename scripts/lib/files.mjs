// Compares the age of files.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { root } from "./process.mjs";

/** When a path under the root was last changed, folders with all that they hold; 0 if it does not exist. */
export function newest(path) {
  const stat = statSync(join(root, path), { throwIfNoEntry: false });
  if (!stat) return 0;
  // A folder's own time changes when a file in it is added or removed.
  const inside = stat.isDirectory()
    ? readdirSync(join(root, path)).map((name) => newest(join(path, name)))
    : [];
  return Math.max(stat.mtimeMs, ...inside);
}

/** Whether all products exist and none is older than any source. */
export function isFresh(products, sources) {
  const oldest = Math.min(...products.map((path) => newest(path)));
  return oldest > 0 && oldest >= Math.max(...sources.map((path) => newest(path)));
}

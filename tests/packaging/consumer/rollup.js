// node rollup.js <folder>: what Rollup says goes to standard error
import { nodeResolve } from "@rollup/plugin-node-resolve";
import { rollup } from "rollup";

for (const name of ["main", "slim", "slim-given"]) {
  const bundle = await rollup({ input: `${name}.js`, plugins: [nodeResolve()] });
  await bundle.write({ file: `${process.argv[2]}/${name}.js`, format: "es" });
  await bundle.close();
}

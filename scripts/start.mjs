// Sets the machine up, builds the package and serves the demo. Arguments go to Vite: npm start -- --port 5300
import { build } from "./build.mjs";
import { buildLab } from "./build/lab.mjs";
import { runModule } from "./lib/process.mjs";
import { setup } from "./setup.mjs";

try {
  await setup();
  await build();
  await buildLab();
  await runModule("vite/bin/vite.js", ["www", ...process.argv.slice(2)]);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

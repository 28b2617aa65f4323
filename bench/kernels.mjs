// Every kernel against float64, in every form that the device can compile, from Node:
//   node bench/kernels.mjs [--webgpu=PATH_TO_ITS_INDEX_JS] [--device=cpu]
// Needs www/lab/generated (node scripts/build/lab.mjs). On WebGPU it goes through Dawn (see bench/dawn.mjs).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../scripts/lib/process.mjs";
import lab, { Device, checkAll } from "../www/lab/generated/lab.js";
import { defineGpu } from "./dawn.mjs";
import { readOptions } from "./options.mjs";

const options = readOptions({ webgpu: "", device: "webgpu" });

await lab({ module_or_path: readFileSync(join(root, "www/lab/generated/lab_bg.wasm")) });
const device = await open();
let failed = 0;
// The device's own choice, then every form by force.
for (const strategy of [undefined, ...device.strategies]) {
  device.force(strategy);
  for (const dtype of ["f32", "f16"]) report(JSON.parse(await checkAll(device, dtype)), dtype, strategy);
}
device.dispose();
console.log(failed > 0 ? `${failed} failures` : "no failures");
process.exit(failed > 0 ? 1 : 0);

async function open() {
  if (options.device === "cpu") return Device.cpu();
  await defineGpu(options.webgpu);
  const opened = await Device.webgpu();
  const { vendor, architecture, device, description } = opened.gpuDevice.adapterInfo;
  console.log({ vendor, architecture, device, description });
  console.log([...opened.gpuDevice.features].sort().join(" "));
  return opened;
}

function report({ counts, failures }, dtype, strategy = "the device's own form") {
  const all = counts.reduce((sum, { count }) => sum + count, 0);
  console.log(`\n${dtype}, ${strategy}: ${all} calls, ${failures.length} failures`);
  console.log(counts.map(({ kernel, count }) => `${kernel} ${count}`).join(", "));
  for (const { kernel, case: name, flags, words } of failures)
    console.log(`  ${kernel} [${flags}] ${name}: ${words}`);
  failed += failures.length;
}

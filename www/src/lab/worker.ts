// Runs calls away from the page, which goes on painting.
import { Device, Trial } from "../../lab/generated/lab.js";
import type { DeviceName, Failure, Message, Outcome, Request } from "./messages";
import { loadModule } from "./registry";

const tell = (message: Message): void => {
  postMessage(message);
};
const loaded = loadModule();
let gpu: Device | null = null;

addEventListener("message", ({ data }: MessageEvent<Request>) => void run(data));

async function run(request: Request): Promise<void> {
  let trial: Trial | null = null;
  try {
    await loaded;
    tell({ type: "status", words: "Drawing inputs, computing in float64 …" });
    const { kernel, flags, dtype, sizes, inputs } = request;
    trial = new Trial(kernel, flags, dtype, Float64Array.from(sizes), inputs);
    const compared = trial.refer();
    tell({ type: "status", words: "Running on WebGPU …" });
    await onDevice(trial, "webgpu");
    tell({ type: "status", words: "Running on the CPU …" });
    await onDevice(trial, "cpu");
    tell({ type: "done", compared });
  } catch (error) {
    tell({ type: "failure", failure: failureOf(error), broken: isTrap(error) });
  }
  // After a trap nothing of the module can be used.
  try {
    trial?.free();
  } catch {
    gpu = null;
  }
}

/** A failure of one device is told and leaves the other alone. */
async function onDevice(trial: Trial, name: DeviceName): Promise<void> {
  try {
    const device = name === "cpu" ? Device.cpu() : (gpu ??= await Device.webgpu());
    const outcome = JSON.parse(await trial.run(device)) as Outcome;
    tell({ type: "outcome", device: name, title: titleOf(device), outcome });
    if (name === "cpu") device.free();
  } catch (error) {
    if (isTrap(error)) throw error;
    tell({ type: "device-failure", device: name, failure: failureOf(error) });
    if (name === "cpu") return;
    // A device that was lost, or is short of memory, makes room for a new one.
    gpu?.dispose();
    gpu = null;
  }
}

interface AdapterInfo {
  vendor: string;
  architecture: string;
  description: string;
}

function titleOf(device: Device): string {
  const gpuDevice = device.gpuDevice as { adapterInfo: AdapterInfo } | undefined;
  if (!gpuDevice) return "SIMD code in WebAssembly, one thread";
  const { vendor, architecture, description } = gpuDevice.adapterInfo;
  const names = new Set([vendor, architecture, description].filter((name) => name !== ""));
  return [...names].join(", ") || "an adapter without a name";
}

const isTrap = (error: unknown): boolean => error instanceof WebAssembly.RuntimeError;

function failureOf(error: unknown): Failure {
  if (isTrap(error)) {
    const words = "the module stopped, most likely for want of memory: smaller sizes will do";
    return { kind: "LimitError", words };
  }
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  return { kind: name, words: message };
}

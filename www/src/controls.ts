// The controls of the page and what they are set to.
import type { SplitName } from "./data";
import { element } from "./dom";
import type { Settings } from "./trainer";
import { epochsPerRun } from "./trainer";
import type { Trainer } from "./trainer";

export type Device = "auto" | "webgpu" | "cpu";

export const controls = {
  start: element("start", HTMLButtonElement),
  reset: element("reset", HTMLButtonElement),
  clear: element("clear", HTMLButtonElement),
  profile: element("profile", HTMLButtonElement),
  rate: element("rate", HTMLSelectElement),
  seed: element("seed", HTMLInputElement),
  slow: element("slow", HTMLInputElement),
  fieldsets: [...document.querySelectorAll("fieldset")],
};

export function radios(name: "device" | "split"): HTMLInputElement[] {
  return [...document.querySelectorAll<HTMLInputElement>(`input[name="${name}"]`)];
}

const checked = (name: "device" | "split"): string =>
  radios(name).find((radio) => radio.checked)?.value ?? "";
export const chosenDevice = (): Device => checked("device") as Device;
export const chosenSplit = (): SplitName => checked("split") as SplitName;

export function chooseDevice(device: string): void {
  for (const radio of radios("device")) radio.checked = radio.value === device;
}

export function settings(): Settings {
  const { rate, seed } = controls;
  // An empty field is no number.
  return { learningRate: Number(rate.value), seed: Math.max(0, Math.trunc(seed.valueAsNumber) || 0) };
}

/** Enables what can be used: choices where nothing is under way, running and resetting where there is a trainer. */
export function showControls(trainer: Trainer | null, busy: boolean): void {
  controls.start.disabled = busy || !trainer;
  controls.reset.disabled = busy || !trainer;
  controls.profile.disabled = busy || !trainer;
  for (const fieldset of controls.fieldsets) fieldset.disabled = busy;
  controls.start.textContent = startWords(trainer);
}

function startWords(trainer: Trainer | null): string {
  if (trainer?.running) return "Pause";
  if (!trainer?.progress.step) return "Start training";
  return trainer.finished ? `Train ${epochsPerRun} more` : "Continue";
}

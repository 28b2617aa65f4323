// Starts the page: wires the controls and reads the address (?autostart, ?device=cpu, ?seed=7).
import { chooseDevice, controls, radios } from "./controls";
import { Demo } from "./demo";
import { element } from "./dom";
import { faultOf } from "./faults";
import modelSource from "./model.ts?raw";
import "./style.css";
import { onThemeChange } from "./theme";
import { makeBars } from "./view";

makeBars();
element("code", HTMLElement).textContent = modelSource.trim();

const address = new URLSearchParams(location.search);
const device = address.get("device");
if (radios("device").some(({ value }) => value === device)) chooseDevice(device ?? "auto");
const seed = Number(address.get("seed"));
if (address.has("seed") && Number.isInteger(seed) && seed >= 0) controls.seed.value = String(seed);

const demo = new Demo();
// Whatever nobody expected is told on the page too.
window.addEventListener("error", ({ error, message }) => {
  demo.fail(faultOf(error ?? message));
});
window.addEventListener("unhandledrejection", ({ reason }) => {
  demo.fail(faultOf(reason));
});

controls.start.addEventListener("click", () => void demo.toggle());
controls.reset.addEventListener("click", () => void demo.reset());
controls.clear.addEventListener("click", () => {
  demo.clearPad();
});
controls.profile.addEventListener("click", () => void demo.measure());
controls.rate.addEventListener("change", () => {
  demo.setLearningRate();
});
controls.slow.addEventListener("change", () => {
  demo.setPace();
});
controls.seed.addEventListener("change", () => void demo.reset());
for (const radio of radios("device")) radio.addEventListener("change", () => void demo.useEngine());
for (const radio of radios("split")) radio.addEventListener("change", () => void demo.useSplit());
onThemeChange(() => {
  demo.repaint();
});

await demo.load();
if (address.has("autostart")) await demo.toggle();

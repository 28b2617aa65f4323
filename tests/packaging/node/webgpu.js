// In Node: what init() does as Node is, and with the npm package `webgpu` as the application's navigator.gpu.
import { create, globals } from "webgpu";
import { init } from "wgrad";
import { compute } from "./compute.js";

const asItIs = await init();
const before = { device: asItIs.device, reason: asItIs.fallbackReason };
asItIs.dispose();

Object.assign(globalThis, globals);
Object.defineProperty(globalThis, "navigator", { value: { gpu: create([]) }, configurable: true });
const engine = await init({ device: "webgpu" });
const { adapter } = engine;
engine.dispose();
const chosen = await init();
const automatic = { device: chosen.device, reason: chosen.fallbackReason };
chosen.dispose();
const answer = JSON.parse(await compute(init, { device: "webgpu" }));
console.log(JSON.stringify({ before, adapter, automatic, answer }));

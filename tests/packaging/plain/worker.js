import { init } from "./consumer/node_modules/wgrad/dist/index.js";
import { compute } from "./consumer/compute.js";

self.onmessage = async ({ data }) => self.postMessage(await compute(init, data));

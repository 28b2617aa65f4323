import { init } from "wgrad";
import { compute } from "./compute.js";

self.onmessage = async ({ data }) => self.postMessage(await compute(init, data));

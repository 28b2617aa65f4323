import { init } from "wgrad/slim";
import wasm from "wgrad/wgrad_bg.wasm?url";
import { compute } from "./compute.js";

compute(init, { wasm }).then((text) => (document.title = text));

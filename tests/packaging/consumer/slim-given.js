import { init } from "wgrad/slim";
import { compute } from "./compute.js";

compute(init, { wasm: "/assets/wgrad_bg.wasm" }).then((text) => (document.title = text));

import { init } from "wgrad/slim";
import { compute } from "./compute.js";

compute(init).then((text) => (document.title = text));

import { init } from "wgrad";
import { compute } from "./compute.js";

compute(init).then((text) => (document.title = text));

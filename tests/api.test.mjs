// The interface as users meet it, wrong use above all, on every engine. tests/support/api.mjs has the bodies.
import { everywhere } from "./support/everywhere.mjs";

await everywhere("api.mjs");

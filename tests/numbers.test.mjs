// Numbers where other packages went wrong, on every engine. tests/support/numbers.mjs has the bodies.
import { everywhere } from "./support/everywhere.mjs";

await everywhere("numbers.mjs");

// engine.profile and engine.warmup on every engine. The bodies are in support/profile.mjs.
import { everywhere } from "./support/everywhere.mjs";

await everywhere("profile.mjs");

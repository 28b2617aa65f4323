// Bodies of tests/api.test.mjs: the calls as users make them, wrong ones too. Each room has its own file in api/.
import { bodies as agreement } from "./api/agreement.mjs";
import { bodies as operands } from "./api/arguments.mjs";
import { bodies as data } from "./api/data.mjs";
import { bodies as gradients } from "./api/gradients.mjs";
import { bodies as lifetime } from "./api/lifetime.mjs";
import { bodies as options } from "./api/options.mjs";
import { bodies as scopes } from "./api/scopes.mjs";
import { bodies as shapes } from "./api/shapes.mjs";

export const bodies = {};
for (const room of [shapes, operands, options, gradients, lifetime, scopes, data, agreement]) {
  for (const [name, body] of Object.entries(room)) {
    // One would be lost.
    if (name in bodies) throw new Error(`two bodies are called "${name}"`);
    bodies[name] = body;
  }
}

// Calls that must fail, and an engine that must not mind.
import { fails, ok, works } from "../expect.mjs";

/**
 * Each row is `[call, code, words]`, and `call` must fail with that error and those words in its message. After each,
 * the engine still computes. All rows are tried; what was wrong is told at the end.
 */
export async function allFail({ wgrad, engine }, rows) {
  const wrong = [];
  for (const [call, code, words] of rows) {
    try {
      await fails(wgrad, call, code, words);
      await works(engine, `after ${call}`);
    } catch (error) {
      wrong.push(error.message);
    }
  }
  ok(wrong.length === 0, wrong.join("\n"));
}

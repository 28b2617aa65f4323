// Pages of their own for tests that change what a page has, such as its GPU.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { openTestPage } from "./everywhere.mjs";

/**
 * Opens a browser for the tests of a file. `inPage` runs `body(argument)` in a page of its own, which has `wgrad` and `expect`
 * as globals; no error may show there; `prepare` runs in the page before anything else. `opened()` is what `openPage` gave.
 */
export function pagesOfTheirOwn() {
  let opened;
  before(async () => {
    opened = await openTestPage();
  });
  after(() => opened?.close());

  async function inPage(body, argument, { prepare } = {}) {
    const page = await opened.context.newPage();
    const problems = [];
    page.on("pageerror", (error) => problems.push(String(error.stack ?? error)));
    page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    try {
      if (prepare) await page.addInitScript(prepare);
      await page.goto(`${opened.url}blank.html`);
      await page.evaluate(async () => {
        globalThis.wgrad = await import("/dist/index.js");
        globalThis.expect = await import("/tests/support/expect.mjs");
      });
      const result = await page.evaluate(body, argument);
      assert.deepEqual(problems, []);
      return result;
    } finally {
      await page.close();
    }
  }
  return { inPage, opened: () => opened };
}

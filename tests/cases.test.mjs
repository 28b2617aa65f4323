// The reference cases on every engine, those of the operations that there are. None is skipped.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { runCases } from "./cases/run.mjs";
import { openTestPage, packageUrl } from "./support/everywhere.mjs";
import { isPresent, operations } from "./support/present.mjs";
import { caseFamilies, readCases } from "./support/shared.mjs";

const cases = caseFamilies().flatMap(readCases).filter(isPresent);

/** As many as there were when this was written: a filter that lets none through would pass otherwise. */
const least = 255;

test("there are as many cases as ever, some of each operation", () => {
  assert.ok(cases.length >= least, `${cases.length} cases`);
  for (const op of [...operations, "graph"]) assert.ok(cases.some((c) => c.op === op), op); // prettier-ignore
});

function allPassed({ total, failures }) {
  assert.deepEqual(failures, []);
  assert.deepEqual(total, { pass: cases.length, fail: 0, skip: 0 });
}

test("CPU in Node", async () => {
  const { init } = await import(packageUrl);
  const engine = await init({ device: "cpu" });
  allPassed(await runCases(engine, cases));
  engine.dispose();
});

describe("in Chromium", () => {
  let opened;
  before(async () => {
    opened = await openTestPage();
  });
  after(() => opened?.close());

  for (const device of ["cpu", "webgpu"]) {
    test(device, async () => {
      allPassed(await opened.page.evaluate(run, { cases, device }));
      assert.deepEqual(opened.problems, []);
    });
  }

  // Runs in the page.
  async function run({ cases, device }) {
    const [{ init }, { runCases }] = await Promise.all([
      import("/dist/index.js"),
      import("/tests/cases/run.mjs"),
    ]);
    const engine = await init({ device });
    return runCases(engine, cases);
  }
});

// The tests' own helpers: a browser with a WebGPU adapter, the server, the reference cases.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { after, before, test } from "node:test";
import { launchBrowser, openPage } from "./support/browser.mjs";
import { caseFamilies, casesFolder, casesOutOfStep, readCases } from "./support/shared.mjs";

let opened;
before(async () => {
  opened = await openPage({ folders: { "/cases/": casesFolder } });
});
after(() => opened?.close());

test("a page opens, cross-origin isolated and without errors", async () => {
  assert.equal(await opened.page.title(), "blank");
  assert.equal(await opened.page.evaluate(() => crossOriginIsolated), true);
  assert.deepEqual(opened.problems, []);
});

test("the page has the software WebGPU adapter and a device", async () => {
  const adapter = await opened.page.evaluate(async () => {
    const found = await navigator.gpu.requestAdapter();
    const device = await found?.requestDevice();
    device?.destroy();
    return found && { ...pick(found.info), device: device !== undefined };

    function pick({ vendor, architecture }) {
      return { vendor, architecture };
    }
  });
  assert.deepEqual(adapter, { vendor: "google", architecture: "swiftshader", device: true });
});

test("the page reads the served files as they are", async () => {
  const text = await opened.page.evaluate(async () => (await fetch("/cases/graph.json")).text());
  assert.equal(text, readFileSync(`${casesFolder}/graph.json`, "utf8"));
});

test("the server gives nothing from outside its folders", async () => {
  for (const path of [
    "/cases/../support.test.mjs",
    "/cases/..%2fsupport.test.mjs",
    "/cases/%00",
    "/package.json",
  ]) {
    assert.equal(await statusOf(new URL(opened.url), path), 404, path);
  }
});

// Not fetch, which tidies a path before it asks.
function statusOf({ hostname, port }, path) {
  return new Promise((resolve, reject) => {
    const asked = request({ hostname, port, path }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asked.on("error", reject).end();
  });
}

test("an error in the page is noted", async () => {
  const { page, problems, close } = await openPage();
  try {
    const noted = page.waitForEvent("pageerror");
    await page.evaluate(() => console.error("told"));
    await page.addScriptTag({ content: 'throw new Error("thrown")' });
    await noted;
    assert.equal(problems.length, 2);
    assert.match(problems[0], /told/);
    assert.match(problems[1], /thrown/);
  } finally {
    await close();
  }
});

test("a browser that is missing is an error", async () => {
  const before = process.env.CHROME;
  process.env.CHROME = "/nowhere/chromium";
  try {
    await assert.rejects(launchBrowser());
  } finally {
    if (before === undefined) delete process.env.CHROME;
    else process.env.CHROME = before;
  }
});

test("the reference cases are there", () => {
  assert.ok(caseFamilies().includes("gated"));
  for (const family of caseFamilies()) assert.ok(readCases(family).length > 0, family);
});

test("the reference cases equal those they were copied from", () => {
  // Null: a checkout on its own, where there is nothing to compare with.
  assert.deepEqual(casesOutOfStep() ?? [], []);
});

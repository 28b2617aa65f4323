// The kernel lab as a person uses it: every kernel with every distribution of inputs, on WebGPU and on the CPU.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { root } from "../scripts/lib/process.mjs";
import { openPage } from "./support/browser.mjs";
import { buildSite, inspectLooks } from "./support/site.mjs";

const minute = 60_000;
/** The registry's lines, from the source: the page has no list of its own. */
const registered = /registry! \{([^}]*)\}/
  .exec(readFileSync(join(root, "src/kernels.rs"), "utf8"))[1]
  .match(/\w+/g);
/** No multiple of a vec4, longer than a subgroup: small enough to be quick. */
const side = 37;

let site;
before(async () => {
  site = await buildSite();
});
after(() => site?.remove());

/** Opens the lab, ready to run. */
async function open(options = {}) {
  const opened = await openPage({ folders: { "/": site.folder }, ...options });
  try {
    await opened.page.goto(`${opened.url}lab.html`);
    await opened.page.locator("#run:enabled").waitFor();
    return opened;
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function withLab(options, body) {
  const opened = await open(options);
  try {
    return await body(opened.page, opened);
  } finally {
    await opened.close();
  }
}

const text = (page, id) => page.locator(`#${id}`).textContent();
const state = (page, device) => page.locator(`#${device}`).getAttribute("data-state");
const size = (page, name) => page.locator(`#sizes input[name="${name}"]`);

async function run(page) {
  await page.locator("#run").click();
  await page.waitForFunction(
    () => /^(Done|Nothing|Stopped)/.test(document.getElementById("status").textContent),
    null,
    { timeout: minute },
  );
}

async function choose(page, kernel, inputs = "normal", dtype = "f32") {
  await page.locator("#kernel").selectOption(kernel);
  await page.locator("#inputs").selectOption(inputs);
  await page.locator("#dtype").selectOption(dtype);
  for (const field of await page.locator("#sizes input").all())
    await field.fill(String(Math.min(side, Number(await field.inputValue()))));
}

describe("every kernel", () => {
  let opened;
  let page;
  before(async () => {
    opened = await open();
    page = opened.page;
  });
  after(() => opened?.close());

  test("is listed, from the registry", async () => {
    const listed = await page.locator("#kernel option").allTextContents();
    assert.deepEqual(listed, registered);
  });

  for (const kernel of registered) {
    test(`${kernel} agrees with float64 on any inputs`, async () => {
      const distributions = await page.locator("#inputs option").allTextContents();
      assert.equal(distributions.length, 4);
      for (const inputs of distributions) await agrees(kernel, inputs, "f32");
      for (const inputs of ["normal", "extremes"]) await agrees(kernel, inputs, "f16");
    });
  }

  async function agrees(kernel, inputs, dtype) {
    await choose(page, kernel, inputs, dtype);
    await run(page);
    const name = `${kernel}, ${inputs}`;
    assert.equal(await text(page, "alert"), "", name);
    for (const device of ["webgpu", "cpu"]) {
      assert.equal(await state(page, device), "within", `${name}, ${dtype}: ${await text(page, device)}`);
      const figures = await page
        .locator(`#${device} .figures data`)
        .evaluateAll((all) => all.map((d) => +d.value));
      assert.ok(figures.length === 5 && figures.every((value) => value > 0), `${name}: ${figures}`);
    }
    const columns = await page.locator("#first thead").first().locator("th").allTextContents();
    assert.deepEqual(columns, ["#", "float64", "WebGPU", "CPU"]);
  }

  test("nothing was reported as an error", () => assert.deepEqual(opened.problems, []));
});

test("flags and sizes that cannot be are told, and the next run works", () =>
  withLab({}, async (page, { problems }) => {
    const refused = async (words) => {
      await run(page);
      assert.equal(await text(page, "status"), "Nothing was run.");
      assert.match(await text(page, "alert"), words);
    };
    await choose(page, "layer_norm");
    for (const wrong of ["0", "1.5", "-3", ""]) {
      await size(page, "rows").fill(wrong);
      await refused(/ArgumentError rows is a whole number from 1 to \d+, not/);
    }
    await size(page, "rows").fill("100000000");
    await refused(/3700000000|elements/);
    await choose(page, "gated_backward");
    const flags = page.locator("#flags select");
    await flags.nth(1).selectOption("strided");
    await flags.nth(2).selectOption("packed");
    await refused(/packed gradient is written by rows/);
    await flags.nth(1).selectOption("flat");
    await run(page);
    assert.equal(await text(page, "alert"), "");
    assert.equal(await text(page, "status"), "Done: every error is within the tolerance.");
    assert.deepEqual(problems, []);
  }));

test("a large call is timed but not compared, and can be stopped", () =>
  withLab({}, async (page) => {
    await choose(page, "fill");
    await size(page, "count").fill(String(10_000_000));
    await run(page);
    assert.equal(await text(page, "status"), "Done: timed, not compared.");
    assert.deepEqual([await state(page, "webgpu"), await state(page, "cpu")], ["timed", "timed"]);
    await choose(page, "matmul");
    for (const name of ["m", "k", "n"]) await size(page, name).fill("1024");
    await page.locator("#run").click();
    await page.getByRole("button", { name: "Stop" }).click();
    assert.equal(await text(page, "status"), "Stopped.");
    await choose(page, "fill");
    await run(page);
    assert.match(await text(page, "status"), /^Done: every error/);
  }));

test("the shader of any variant is shown, and the one in use is marked", () =>
  withLab({}, async (page) => {
    const shader = () => text(page, "shader");
    await choose(page, "layer_norm");
    await run(page);
    // The tests' adapter is a software one.
    assert.match(await text(page, "in-use"), /^In use: serial, f32, plain\.$/);
    assert.equal(await page.locator("#strategy").inputValue(), "serial");
    assert.ok(await page.locator("#used").isVisible());
    assert.match(await shader(), /weight/);
    await page.locator("#strategy").selectOption("subgroups");
    assert.ok(await page.locator("#used").isHidden());
    assert.match(await shader(), /^enable subgroups;/);
    await page.locator("#scalar").selectOption("f16");
    assert.match(await shader(), /^enable f16;[^]*alias scalar = f16;/);
    const plain = await shader();
    await page.locator("#tuning select").selectOption("narrow");
    assert.notEqual(await shader(), plain);
    await page.getByRole("checkbox", { name: "weight" }).uncheck();
    assert.doesNotMatch(await shader(), /array<element>;\n.*var<storage, read> weight/);
    await page.locator("#kernel").selectOption("matmul");
    assert.match(await shader(), /fn main/);
    assert.equal(await text(page, "in-use"), "None has run yet.");
  }));

test("without WebGPU the CPU runs alone, with the reason", () =>
  withLab({}, async (page, { problems }) => {
    const hidden = 'Object.defineProperty(WorkerNavigator.prototype, "gpu", { get: () => undefined });\n';
    await page.route("**/worker-*.js", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: hidden + (await response.text()) });
    });
    await choose(page, "gated");
    await run(page);
    assert.equal(await state(page, "webgpu"), "failed");
    assert.match(await text(page, "webgpu"), /UnsupportedError.*navigator\.gpu/);
    assert.equal(await state(page, "cpu"), "within");
    assert.match(await text(page, "in-use"), /No shader has run/);
    assert.deepEqual(problems, []);
  }));

test("the page paints while it computes", () =>
  withLab({}, async (page) => {
    await choose(page, "matmul");
    for (const name of ["m", "k", "n"]) await size(page, name).fill("512");
    await page.locator("#run").click();
    const longest = await page.evaluate(
      () =>
        new Promise((resolve) => {
          let [last, most, frames] = [performance.now(), 0, 0];
          const next = (now) => {
            most = Math.max(most, now - last);
            last = now;
            if (++frames < 60) requestAnimationFrame(next);
            else resolve(most);
          };
          requestAnimationFrame(next);
        }),
    );
    assert.ok(longest < 500, `${longest} ms without a frame`);
  }));

test("both pages lead to each other", () =>
  withLab({}, async (page) => {
    await page.getByRole("navigation").getByRole("link", { name: "Demo" }).click();
    await page.locator("#draw").waitFor();
    await page.getByRole("navigation").getByRole("link", { name: "Kernel lab" }).click();
    await page.locator("#run:enabled").waitFor();
  }));

test("the keyboard alone runs a kernel, and every control has a name", () =>
  withLab({}, async (page) => {
    await choose(page, "fill");
    const focused = () => page.evaluate(() => document.activeElement.id);
    for (let presses = 0; presses < 15 && (await focused()) !== "run"; presses++)
      await page.keyboard.press("Tab");
    assert.equal(await focused(), "run");
    await page.keyboard.press("Enter");
    await page.locator('#cpu[data-state="within"]').waitFor();
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("button, input, select, [role=region], [role=group]")]
        .filter(
          (c) =>
            !c.ariaLabel && !c.labels?.length && !c.innerText?.trim() && !c.hasAttribute("aria-labelledby"),
        )
        .map((c) => c.outerHTML),
    );
    assert.deepEqual(nameless, []);
  }));

for (const colorScheme of ["light", "dark"]) {
  test(`${colorScheme}: text stands out, on a small screen too`, () =>
    withLab({}, async (page) => {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.setViewportSize({ width: 360, height: 740 });
      // With something over the tolerance on the page.
      await choose(page, "adamw", "nan and infinity");
      await run(page);
      // A colour that is mixed while the mouse is over it has no rgb() for the inspection.
      await page.mouse.move(0, 0);
      const { wide, paper, faint } = await page.evaluate(inspectLooks);
      assert.ok(wide <= 360, `the page is ${wide} px wide`);
      assert.equal(paper > 0.5, colorScheme === "light");
      assert.deepEqual(faint, []);
    }));
}

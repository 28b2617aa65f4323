// The demo page as a person uses it: training, drawing, errors, small screens, light and dark.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { openPage } from "./support/browser.mjs";
import { buildSite, inspectLooks } from "./support/site.mjs";

const minutes = 60_000;

let site;
before(async () => {
  site = await buildSite();
});
after(() => site?.remove());

/** Opens the page after `prepare(page)`, ready to train unless `ready` is false. */
async function open(query = "", { prepare, ready = true } = {}) {
  const opened = await openPage({ folders: { "/": site.folder } });
  const { page, url } = opened;
  try {
    await prepare?.(page);
    await page.goto(`${url}index.html${query}`);
    if (ready) await page.locator("#start:enabled").waitFor();
    return opened;
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** Runs `body` with an open page, which is closed whatever happens. */
async function withPage(query, options, body) {
  const opened = await open(query, options);
  try {
    return await body(opened.page, opened);
  } finally {
    await opened.close();
  }
}

const text = (page, id) => page.locator(`#${id}`).textContent();
/** The number behind a figure; NaN where there is none yet. */
const figure = async (page, id) => Number((await page.locator(`#${id}`).getAttribute("value")) || NaN);
const step = async (page) => Number((await text(page, "step")).replaceAll(",", ""));
const untilStep = (page, least, timeout = 2 * minutes) =>
  page.waitForFunction(
    (wanted) => Number(document.getElementById("step").textContent.replaceAll(",", "")) >= wanted,
    least,
    { timeout },
  );
const untilStatus = (page, start, timeout = 2 * minutes) =>
  page.waitForFunction((words) => document.getElementById("status").textContent.startsWith(words), start, {
    timeout,
  });

async function train(page, timeout) {
  await page.locator("#start").click();
  await untilStatus(page, "Done", timeout);
}

/** The ten probabilities that the page shows, once it shows them. */
async function probabilities(page) {
  await page.locator('#bars data:not([value=""])').last().waitFor();
  const values = await page.locator("#bars data").evaluateAll((all) => all.map(({ value }) => Number(value)));
  const sum = values.reduce((total, value) => total + value, 0);
  assert.equal(values.length, 10);
  assert.ok(Math.abs(sum - 1) < 1e-6, `the probabilities add up to ${sum}`);
  return values;
}

const best = (values) => values.indexOf(Math.max(...values));

test("the page opens without errors, names its engine and the reason for it", () =>
  withPage("", {}, async (page, { problems }) => {
    assert.match(await text(page, "headline"), /^wgrad /);
    // The tests' browser has a software adapter only, which the automatic choice leaves aside.
    assert.match(await text(page, "engine-words"), /^Runs on the CPU.*Chosen automatically: \w.{10,}/);
    assert.equal(await text(page, "start"), "Start training");
    assert.equal(await step(page), 0, "nothing trains before Start is pressed");
    assert.deepEqual(problems, []);
  }));

test("?autostart starts the training", () =>
  withPage("?device=cpu&autostart", {}, (page) => untilStep(page, 1)));

describe("training on the CPU", () => {
  let opened;
  let page;
  let longestFrame;
  before(async () => {
    opened = await open("?device=cpu");
    page = opened.page;
    await page.evaluate(watchFrames);
    await train(page);
    longestFrame = await page.evaluate(() => globalThis.longestFrame);
  });
  after(() => opened?.close());

  // Notes the longest time between two frames.
  function watchFrames() {
    let last = performance.now();
    globalThis.longestFrame = 0;
    const next = (now) => {
      globalThis.longestFrame = Math.max(globalThis.longestFrame, now - last);
      last = now;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  }

  test("15 epochs reach 97 % in less than 20 seconds", async () => {
    assert.equal(await text(page, "epoch"), "15 / 15");
    const accuracy = await figure(page, "accuracy-shuffled");
    const seconds = await figure(page, "seconds");
    console.log(`page, CPU: ${accuracy.toFixed(4)} of the shuffled split after ${seconds.toFixed(2)} s`);
    assert.ok(accuracy >= 0.97, `accuracy ${accuracy}`);
    assert.ok(seconds > 0 && seconds < 20, `${seconds} s`);
    assert.ok((await figure(page, "speed")) > 500);
    assert.ok((await figure(page, "loss")) < 0.2);
  });

  test("the page paints while it trains", () => {
    assert.ok(longestFrame > 0 && longestFrame < 1000, `${longestFrame} ms without a frame`);
  });

  test("the digits that are read wrongly are shown with the guess", async () => {
    const captions = await page.locator("#misses button").allTextContents();
    const accuracy = await figure(page, "accuracy-shuffled");
    assert.equal(captions.length, Math.min(24, Math.round(360 * (1 - accuracy))));
    for (const caption of captions) {
      const [, label, guess] = /^(\d) as (\d)$/.exec(caption) ?? assert.fail(caption);
      assert.notEqual(label, guess);
    }
    if (captions.length === 0) return;
    await page.locator("#misses button").first().click();
    assert.equal(
      String(best(await probabilities(page))),
      captions[0].at(-1),
      "the pad's answer is the guess",
    );
  });

  test("each sample is read as what it is", async () => {
    let right = 0;
    for (let digit = 0; digit < 10; digit++) {
      await page.getByRole("button", { name: `A ${digit}: load it into the pad` }).click();
      const values = await probabilities(page);
      if (digit === 3) assert.equal(best(values), 3);
      if (best(values) === digit) right++;
    }
    assert.ok(right >= 9, `${right} of 10`);
  });

  test("digits drawn with the mouse are read", async () => {
    const one = [[0.5, 0.15], [0.5, 0.85]]; // prettier-ignore
    const seven = [[0.3, 0.17], [0.7, 0.17], [0.45, 0.85]]; // prettier-ignore
    const turn = (part) => [
      0.5 + 0.22 * Math.sin(2 * Math.PI * part),
      0.5 - 0.32 * Math.cos(2 * Math.PI * part),
    ];
    const zero = Array.from({ length: 25 }, (_, index) => turn(index / 24));
    for (const [digit, points] of [
      [0, zero],
      [1, one],
      [7, seven],
    ]) {
      await draw(page, points);
      assert.equal(best(await probabilities(page)), digit);
      assert.equal(await text(page, "answer"), String(digit));
    }
  });

  async function draw(page, points) {
    await page.getByRole("button", { name: "Clear" }).click();
    assert.equal(await text(page, "answer"), "–", "an empty pad has no answer");
    await page.locator("#pad").scrollIntoViewIfNeeded();
    const { x, y, width, height } = await page.locator("#pad").boundingBox();
    const place = ([right, down]) => [x + right * width, y + down * height];
    await page.mouse.move(...place(points[0]));
    await page.mouse.down();
    for (const point of points.slice(1)) await page.mouse.move(...place(point), { steps: 3 });
    await page.mouse.up();
  }

  test("digits drawn with the keyboard are read", async () => {
    const names = { "←": "ArrowLeft", "→": "ArrowRight", "↑": "ArrowUp", "↓": "ArrowDown", "·": "Space" };
    const corner = "←←←←←←←↑↑↑↑↑↑↑";
    for (const [digit, path] of [
      [1, "→→→·↓↓↓↓↓↓↓·"],
      [4, "→→·↓↓↓↓→→→→·↑←·↓↓↓↓·"],
    ]) {
      await page.getByRole("button", { name: "Clear" }).click();
      await page.locator("#pad").focus();
      for (const key of corner + path) await page.keyboard.press(names[key]);
      assert.equal(best(await probabilities(page)), digit);
    }
    assert.match(await text(page, "pad-status"), /^Row 8, column 6, pen up\.$/);
    await page.keyboard.press("Backspace");
    await page.keyboard.press("Backspace");
    assert.equal(await text(page, "answer"), "–", "all strokes are taken back");
  });

  test("training leaks no tensors", async () => {
    const tensors = await figure(page, "memory");
    assert.ok(tensors > 12, "the model alone has twelve");
    await train(page);
    assert.equal(await text(page, "epoch"), "30 / 30");
    assert.equal(await figure(page, "memory"), tensors);
  });

  test("the same seed gives the same numbers, another seed others", async () => {
    const run = async () => {
      await page.locator("#reset").click();
      await untilStatus(page, "Ready");
      await train(page);
      return figure(page, "loss");
    };
    const [first, second] = [await run(), await run()];
    assert.equal(second, first);
    await page.getByLabel("Seed").fill("7");
    assert.notEqual(await run(), first);
  });

  test("hands that it has not seen are a second figure", async () => {
    const shuffled = await figure(page, "accuracy-shuffled");
    await page.getByRole("radio", { name: "Other writers" }).check();
    await untilStatus(page, "Ready");
    assert.equal(await step(page), 0, "a network that trained on these digits does not count");
    await train(page);
    const writers = await figure(page, "accuracy-writers");
    console.log(`page, CPU: ${writers.toFixed(4)} of the digits of other writers`);
    assert.ok(writers > 0.85 && writers < shuffled, `${writers} against ${shuffled}`);
    assert.equal(await figure(page, "accuracy-shuffled"), shuffled, "the first figure stays");
  });

  test("nothing was reported as an error", async () => {
    assert.deepEqual(opened.problems, []);
    assert.equal(await text(page, "alert"), "");
  });
});

describe("where the time goes", () => {
  const measured = (page) => page.locator("#profile-words", { hasText: /calls of kernels/ }).waitFor();
  const rows = (page) =>
    page
      .locator("#profile-table tbody tr")
      .evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));

  test("steps are measured kernel by kernel, and the network at hand is left alone", () =>
    withPage("?device=cpu", {}, async (page, { problems }) => {
      const tensors = await figure(page, "memory");
      assert.equal(await page.locator("#trace").isVisible(), false);
      await page.getByRole("button", { name: "Measure 20 training steps" }).click();
      await measured(page);
      const [all, inside, calls] = (await text(page, "profile-words"))
        .match(/^20 steps took ([\d.]+) ms: ([\d.]+) ms of it in ([\d,]+) calls of kernels/)
        .slice(1)
        .map((number) => Number(number.replaceAll(",", "")));
      assert.ok(inside > 0 && inside <= all, `${inside} of ${all} ms`);

      const table = await rows(page);
      const [names, counts, times, shares] = [0, 1, 2, 3].map((column) => table.map((row) => row[column]));
      for (const name of ["matmul", "gated_backward", "layer_norm", "cross_entropy", "adamw"]) {
        assert.ok(names.includes(name), `${name} in ${names}`);
      }
      // Twelve parameters, each updated in each step.
      assert.equal(counts[names.indexOf("adamw")], "240");
      const sum = (cells) => cells.reduce((total, cell) => total + parseFloat(cell.replaceAll(",", "")), 0);
      assert.equal(sum(counts), calls);
      assert.ok(Math.abs(sum(times) - inside) < 0.3, `${sum(times)} of ${inside} ms`);
      assert.ok(Math.abs(sum(shares) - 100) < 1, `${sum(shares)} %`);
      assert.match(table[names.indexOf("matmul")].at(-1), /^[\d.]+ GFLOP\/s$/);
      assert.match(table[names.indexOf("gated_backward")].at(-1), /^[\d.]+ GB\/s$/);

      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("link", { name: "Download the trace" }).click(),
      ]);
      assert.equal(download.suggestedFilename(), "wgrad-trace.json");
      const { traceEvents } = JSON.parse(readFileSync(await download.path(), "utf8"));
      assert.equal(traceEvents.length, calls);

      assert.equal(await step(page), 0, "no step of the network at hand");
      assert.equal(await figure(page, "memory"), tensors, "nothing stays");
      assert.match(await text(page, "memory-words"), /^Memory: \d+ tensors · .+ in use · .+ held/);
      assert.deepEqual(problems, []);
    }));

  test("steps can be measured during the training, which gives the same loss as without", () =>
    withPage("?device=cpu", {}, async (page, { problems }) => {
      await train(page);
      const loss = await figure(page, "loss");
      await page.locator("#reset").click();
      await untilStatus(page, "Ready");
      await page.getByLabel(/Slow motion/).check();
      await page.locator("#start").click();
      await untilStep(page, 3);
      await page.locator("#profile").click();
      await measured(page);
      assert.equal(await text(page, "start"), "Pause", "the training goes on");
      await page.getByLabel(/Slow motion/).uncheck();
      await untilStatus(page, "Done");
      assert.equal(await figure(page, "loss"), loss);
      assert.deepEqual(problems, []);
    }));

  test("what is measured on a GPU while it trains is timed, and has no kernels of the training", () =>
    withPage("?device=webgpu", {}, async (page, { problems }) => {
      await page.locator("#start").click();
      await untilStep(page, 5);
      await page.locator("#profile").focus();
      await page.keyboard.press("Enter");
      await measured(page);
      const table = new Map((await rows(page)).map(([name, ...cells]) => [name, cells]));
      for (const [name, calls] of [
        ["gated", 20],
        ["layer_norm", 40],
        ["adamw", 240],
      ])
        assert.equal(table.get(name)[0], String(calls), name);
      assert.match(table.get("matmul")[1], /^\d[\d,.]* ms$/);
      assert.equal(await page.evaluate(() => document.activeElement.id), "profile", "the focus stays");
      const total = await page.locator("#profile-table tfoot td").allTextContents();
      assert.equal(total[0], "1,100");
      assert.match(total[1], /^\d[\d,.]* ms$/);
      await untilStep(page, (await step(page)) + 3);
      assert.deepEqual(problems, []);
    }));

  test("a reset meanwhile waits, and training does not go on by itself", () =>
    withPage("?device=webgpu", {}, async (page, { problems }) => {
      await page.locator("#start").click();
      await untilStep(page, 1);
      await page.evaluate(() => {
        globalThis.told = [];
        const note = (records) =>
          globalThis.told.push(
            ...records.flatMap(({ addedNodes }) => [...addedNodes]).map((node) => node.data),
          );
        new MutationObserver(note).observe(document.getElementById("start"), { childList: true });
        document.getElementById("profile").click();
        const seed = document.getElementById("seed");
        seed.value = "7";
        seed.dispatchEvent(new Event("change"));
      });
      await untilStatus(page, "Ready");
      await page.waitForTimeout(400);
      assert.equal(await step(page), 0);
      assert.equal(await text(page, "start"), "Start training");
      const told = await page.evaluate(() => globalThis.told);
      assert.ok(!told.slice(told.lastIndexOf("Continue")).includes("Pause"), `it started anew: ${told}`);
      await page.locator("#profile").click();
      await measured(page);
      assert.deepEqual(problems, []);
    }));

  test("a GPU without timestamps shows calls, and why there are no times", () => {
    const prepare = (page) =>
      page.addInitScript(() => {
        const { requestDevice } = GPUAdapter.prototype;
        GPUAdapter.prototype.requestDevice = function ({ requiredFeatures, ...rest }) {
          const others = [...requiredFeatures].filter((feature) => feature !== "timestamp-query");
          return requestDevice.call(this, { ...rest, requiredFeatures: others });
        };
      });
    return withPage("?device=webgpu", { prepare }, async (page) => {
      await page.locator("#profile").click();
      await measured(page);
      assert.match(await text(page, "profile-words"), /no timestamps/);
      const adamw = (await rows(page)).find(([name]) => name === "adamw");
      assert.deepEqual(adamw.slice(1), ["240", "–", "–", "–"]);
      assert.equal(await page.locator("#trace").isVisible(), false, "the trace would be empty");
    });
  });

  test("figures of one engine do not stay beside another", () =>
    withPage("?device=webgpu", {}, async (page, { problems }) => {
      await page.locator("#profile").click();
      await measured(page);
      await page.getByRole("radio", { name: "CPU" }).check();
      await page.locator("#profile:enabled").waitFor();
      assert.equal(await text(page, "profile-words"), "");
      await page.locator("#profile").click();
      await measured(page);
      await page.getByRole("radio", { name: "Automatic" }).check();
      await page.locator("#profile:enabled").waitFor();
      assert.equal(await page.locator("#profile-table table").count(), 0);
      assert.equal(await page.locator("#trace").isVisible(), false);
      assert.deepEqual(problems, []);
    }));
});

test("pause stops, continue goes on, reset starts anew", () =>
  withPage("?device=cpu", {}, async (page) => {
    await page.getByLabel(/Slow motion/).check();
    await page.getByRole("button", { name: "Start training" }).click();
    await untilStep(page, 3);
    await page.getByRole("button", { name: "Pause" }).click();
    await untilStatus(page, "Paused");
    const paused = await step(page);
    assert.ok(paused < 345, "it was still under way");
    await page.waitForTimeout(400);
    assert.equal(await step(page), paused);
    await page.getByRole("button", { name: "Continue" }).click();
    await untilStep(page, paused + 3);
    await page.getByRole("button", { name: "Reset" }).click();
    await untilStatus(page, "Ready");
    assert.equal(await step(page), 0);
    assert.equal(await text(page, "loss"), "–");
    assert.equal(await text(page, "accuracy-shuffled"), "–");
  }));

test("the keyboard alone reaches Start, with a visible focus", () =>
  withPage("?device=cpu", {}, async (page) => {
    const focused = () => page.evaluate(() => document.activeElement.id);
    for (let presses = 0; presses < 10 && (await focused()) !== "start"; presses++)
      await page.keyboard.press("Tab");
    assert.equal(await focused(), "start");
    const outline = await page.locator("#start").evaluate((button) => getComputedStyle(button).outlineStyle);
    assert.equal(outline, "solid");
    await page.keyboard.press("Enter");
    await untilStep(page, 1);
  }));

test("every control has a name", () =>
  withPage("?device=cpu", {}, async (page) => {
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("button, input, select, canvas, [role=img]")]
        // A thumbnail's picture is part of its button, a curve's of its chart.
        .filter((control) => !control.matches("button canvas, [role=img] canvas"))
        .filter((control) => !control.ariaLabel && !control.labels?.length && !control.innerText?.trim())
        .map((control) => control.outerHTML),
    );
    assert.deepEqual(nameless, []);
  }));

describe("training on WebGPU", () => {
  test("the software adapter is taken when it is asked for, and learns", () =>
    withPage("?device=webgpu", {}, async (page, { problems }) => {
      assert.match(await text(page, "engine-words"), /^Runs on WebGPU: .*software adapter/);
      await train(page, 5 * minutes);
      const accuracy = await figure(page, "accuracy-shuffled");
      const seconds = await figure(page, "seconds");
      console.log(`page, WebGPU: ${accuracy.toFixed(4)} of the shuffled split after ${seconds.toFixed(1)} s`);
      assert.ok(accuracy >= 0.97, `accuracy ${accuracy}`);
      await page.getByRole("button", { name: "A 3: load it into the pad" }).click();
      assert.equal(best(await probabilities(page)), 3);
      assert.deepEqual(problems, []);
    }));

  test("a lost device is told, and the CPU goes on", () =>
    withPage("?device=webgpu", { prepare: (page) => page.addInitScript(keepDevices) }, async (page) => {
      await page.locator("#start").click();
      await untilStep(page, 1);
      await page.evaluate(() => globalThis.devices.forEach((device) => device.destroy()));
      await page.getByRole("alert").getByText("DeviceLostError").waitFor();
      await page.getByRole("button", { name: "Start a new engine" }).waitFor();
      await page.getByRole("button", { name: "Switch to the CPU" }).click();
      await page.locator('#engine-words[data-device="cpu"]').waitFor();
      assert.equal(await text(page, "alert"), "");
      await page.locator("#start:enabled").click();
      await untilStep(page, 1);
    }));

  function keepDevices() {
    const { requestDevice } = GPUAdapter.prototype;
    globalThis.devices = [];
    GPUAdapter.prototype.requestDevice = async function (...args) {
      const device = await requestDevice.apply(this, args);
      globalThis.devices.push(device);
      return device;
    };
  }
});

describe("errors stand on the page", () => {
  test("no WebGPU where it was chosen", () => {
    const prepare = (page) =>
      page.addInitScript(() => {
        Object.defineProperty(Navigator.prototype, "gpu", { get: () => undefined });
      });
    return withPage("?device=webgpu", { prepare, ready: false }, async (page, { problems }) => {
      const alert = page.getByRole("alert");
      await alert.getByText("UnsupportedError").waitFor();
      assert.ok((await alert.textContent()).length > 100, "it says what to do");
      assert.equal(await page.locator("#start").isEnabled(), false);
      await page.getByRole("button", { name: "Switch to the CPU" }).click();
      await page.locator("#start:enabled").waitFor();
      assert.equal(await text(page, "alert"), "");
      assert.deepEqual(problems, []);
    });
  });

  test("the digits are missing", async () => {
    let missing = true;
    const prepare = (page) =>
      page.route("**/digits.bin", (route) => (missing ? route.fulfill({ status: 404 }) : route.continue()));
    await withPage("?device=cpu", { prepare, ready: false }, async (page) => {
      await page.getByRole("alert").getByText("DataError").waitFor();
      assert.match(await text(page, "alert"), /digits\.bin.*404/);
      missing = false;
      await page.getByRole("button", { name: "Try again" }).click();
      await page.locator("#start:enabled").waitFor();
      assert.equal(await text(page, "alert"), "");
    });
  });

  test("a file that is not the digits", () => {
    const prepare = (page) =>
      page.route("**/digits.bin", (route) => route.fulfill({ body: "<!doctype html>" }));
    return withPage("?device=cpu", { prepare, ready: false }, async (page) => {
      await page.getByRole("alert").getByText("DataError").waitFor();
      assert.match(await text(page, "alert"), /15 bytes/);
    });
  });

  test("weights that run away", () =>
    withPage("?device=cpu", {}, async (page) => {
      // No rate on offer goes wrong by itself.
      await page
        .locator("#rate option")
        .last()
        .evaluate((option) => (option.value = "1e30"));
      await page.locator("#rate").selectOption("1e30");
      await page.locator("#start").click();
      await page.getByRole("alert").getByText("TrainingError").waitFor();
      assert.equal(await text(page, "status"), "Stopped by an error.");
      await page.getByLabel("Learning rate").selectOption("0.001");
      await page.getByRole("button", { name: "Reset the network" }).click();
      await untilStatus(page, "Ready");
      await train(page);
      assert.ok((await figure(page, "accuracy-shuffled")) >= 0.97);
    }));

  test("something nobody expected", () =>
    withPage("?device=cpu", {}, async (page) => {
      await page.evaluate(() => {
        setTimeout(() => {
          throw new RangeError("out of the blue");
        });
      });
      await page.getByRole("alert").getByText("RangeError").waitFor();
      assert.match(await text(page, "alert"), /out of the blue/);
    }));
});

describe("the page's looks", () => {
  for (const colorScheme of ["light", "dark"]) {
    test(`${colorScheme}: text stands out, on a small screen too`, () =>
      withPage("?device=cpu&autostart", {}, async (page) => {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        await page.setViewportSize({ width: 360, height: 740 });
        await untilStatus(page, "Done");
        await page.getByRole("button", { name: "A 3: load it into the pad" }).click();
        await probabilities(page);
        await page.locator("#profile").click();
        await page.locator("#profile-table tbody tr").first().waitFor();
        const { wide, paper, faint } = await page.evaluate(inspectLooks);
        assert.ok(wide <= 360, `the page is ${wide} px wide`);
        assert.equal(paper > 0.5, colorScheme === "light");
        assert.deepEqual(faint, []);
      }));
  }
});

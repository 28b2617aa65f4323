// Every snippet of the README is run as a reader would: in Node, in a page, through a bundler.
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { build } from "esbuild";
import { createServer } from "vite";
import { root } from "../scripts/lib/process.mjs";
import { openPage } from "./support/browser.mjs";
import { dawnEnvironment, dawnPackage, install, start } from "./support/projects.mjs";

/** The fenced blocks under the heading that each stands under. */
function blocksOf(markdown) {
  const blocks = [];
  let heading = "";
  let open = null;
  for (const line of markdown.split("\n")) {
    const fence = /^\s*```(.*)$/.exec(line);
    if (open && fence) {
      blocks.push({ ...open, code: `${open.lines.join("\n")}\n` });
      open = null;
    } else if (open) {
      open.lines.push(line);
    } else if (fence) {
      open = { heading, language: fence[1].trim(), lines: [] };
    } else if (/^#+ /.test(line)) {
      heading = line.replace(/^#+ /, "");
    }
  }
  return blocks;
}

const blocks = blocksOf(readFileSync(join(root, "README.md"), "utf8"));
/** What is not code: commands for a shell, and what a program prints. */
const prose = ["sh", "text"];
const snippets = blocks.filter(({ language }) => !prose.includes(language));

let project;
before(async () => {
  project = mkdtempSync(join(tmpdir(), "wgrad-readme-"));
  writeFileSync(join(project, "package.json"), '{ "private": true, "type": "module" }');
  await install(project, dawnPackage);
  // A copy, as npm would make it: bundlers treat a link to the outside as the user's own source.
  const installed = join(project, "node_modules", "wgrad");
  mkdirSync(installed);
  for (const part of ["package.json", "dist"]) {
    cpSync(join(root, part), join(installed, part), { recursive: true });
  }
});
after(() => rmSync(project, { recursive: true, force: true, maxRetries: 3 }));

function write(name, text) {
  const file = join(project, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

/** What a module prints in Node. */
async function printed(name, code, env) {
  const {
    code: status,
    out,
    err,
  } = await start(process.execPath, [write(name, code)], { cwd: project, env });
  assert.equal(status, 0, err);
  return out;
}

/** Checks the lines that the first example prints; the last digits are the machine's. */
function learned(lines) {
  const told = blocks
    .find(({ language }) => language === "text")
    .code.trim()
    .split("\n");
  const words = (line) => line.replace(/[\d.]+/g, "#");
  const numbers = (line) => line.match(/[\d.]+/g).map(Number);
  assert.deepEqual(lines.map(words), told.map(words));
  for (const [k, line] of told.slice(0, -1).entries()) {
    const [[step, loss], [wantedStep, wanted]] = [numbers(lines[k]), numbers(line)];
    assert.equal(step, wantedStep);
    assert.ok(Math.abs(loss - wanted) < 0.05, `${lines[k]}, where the README has ${line}`);
  }
  assert.ok(numbers(lines.at(-1))[0] > 880, lines.at(-1));
}

/** Opens a page and waits until its module has made the global `engine`, which must compute. */
async function pageComputes(page) {
  await page.waitForFunction(() => globalThis.engine !== undefined, null, { timeout: 60_000 });
  const values = await page.evaluate(() => globalThis.engine.tensor([1, 2, 3]).mul(2).array());
  assert.deepEqual(values, [2, 4, 6]);
}

const script = (code) => `${code}globalThis.engine = engine;\n`;
const moduleIn = (name) =>
  `<!doctype html><meta charset="utf-8"><script type="module" src="${name}"></script>`;

/** How each snippet is run, in the order of the README. */
const runners = {
  "A trained model in five minutes: js": async (code) => {
    learned((await printed("train.mjs", code)).trim().split("\n"));
  },
  "The same in a page: html": async (code) => {
    write("index.html", code);
    const opened = await openPage({ folders: { "/": project } });
    try {
      const lines = [];
      const last = opened.page.waitForEvent("console", { predicate: (m) => /points right/.test(m.text()) });
      opened.page.on("console", (message) => lines.push(message.text()));
      await opened.page.goto(`${opened.url}index.html`);
      await last;
      learned(lines);
      assert.deepEqual(opened.problems, []);
    } finally {
      await opened.close();
    }
  },
  "What to know: js": async (code) => {
    const out = await printed("gradient.mjs", code);
    const [values, gradient] = [...out.matchAll(/\[([^\]]*)\]/g)].map(([, list]) =>
      list.split(",").map(Number),
    );
    const near = (got, want) =>
      want.forEach((w, k) => assert.ok(Math.abs(got[k] - w) < 1e-5, `${got} is not ${want}`));
    near(values, [2.193175736, -0.0596014599, -0.3112296656]);
    near(gradient, [2.783011536, -0.04539212439, 2.959844749]);
    assert.match(out, / cpu .*WebGPU/);
  },
  "What to know: js (2)": async (code) => {
    assert.match(await printed("warmup.mjs", `${code}console.log(y.shape);\n`), /\[ 8, 32 \]/);
  },
  "What to know: js (3)": async (code) => {
    const told = code.match(/(?<=^\/\/ ).*/gm);
    const lines = (await printed("profile.mjs", code)).trim().split("\n");
    // The times are the machine's.
    const columns = (line) => line.trim().split(/ +/).slice(0, 2);
    assert.deepEqual(lines.map(columns), told.map(columns));
  },
  "What to know: js (4)": async (code) => {
    assert.equal(`// ${await printed("error.mjs", code)}`, `${code.trim().split("\n").at(-1)}\n`);
  },
  "What to know: js (5)": async (code) => {
    write("debug.mjs", script(code));
    const map = JSON.stringify({ imports: { wgrad: "./node_modules/wgrad/dist/index.js" } });
    write("debug.html", `<script type="importmap">${map}</script>${moduleIn("./debug.mjs")}`);
    const opened = await openPage({ folders: { "/": project }, path: "debug.html" });
    try {
      await pageComputes(opened.page);
      assert.equal(await opened.page.evaluate(() => globalThis.engine.device), "webgpu");
      assert.deepEqual(opened.problems, []);
    } finally {
      await opened.close();
    }
  },
  "Bundlers, pages, Node: js": async (code) => {
    const entry = write("slim.js", script(code));
    const outfile = join(project, "bundled", "slim.js");
    await build({ entryPoints: [entry], bundle: true, format: "esm", outfile, logLevel: "error" });
    const wasm = readFileSync(join(project, "node_modules", "wgrad", "dist", "wgrad_bg.wasm"));
    write("bundled/assets/wgrad_bg.wasm", wasm);
    write("bundled/slim.html", moduleIn("slim.js"));
    const opened = await openPage({ folders: { "/": join(project, "bundled") }, path: "slim.html" });
    try {
      await pageComputes(opened.page);
    } finally {
      await opened.close();
    }
  },
  "Bundlers, pages, Node: js (2)": async (code) => {
    write("vite/main.js", script(code));
    write("vite/index.html", moduleIn("./main.js"));
    const server = await createServer({
      root: join(project, "vite"),
      configFile: false,
      logLevel: "error",
      server: { host: "127.0.0.1", port: 0, watch: null, fs: { allow: [project] } },
    });
    const opened = await openPage();
    try {
      await server.listen();
      await opened.page.goto(`http://127.0.0.1:${server.httpServer.address().port}/`);
      await pageComputes(opened.page);
    } finally {
      await opened.close();
      await server.close();
    }
  },
  "Bundlers, pages, Node: js (3)": async (code) => {
    assert.equal((await printed("dawn.mjs", code, dawnEnvironment())).trim(), "[ 2, 4, 6 ] webgpu");
  },
};

/** "heading: language", numbered from the second one on. */
function namesOf(list) {
  const seen = new Map();
  return list.map(({ heading, language }) => {
    const name = `${heading}: ${language}`;
    seen.set(name, (seen.get(name) ?? 0) + 1);
    return seen.get(name) > 1 ? `${name} (${seen.get(name)})` : name;
  });
}

test("every snippet is run below", () => {
  assert.deepEqual(namesOf(snippets), Object.keys(runners));
});

for (const [name, runner] of Object.entries(runners)) {
  test(name, { timeout: 120_000 }, () => runner(snippets[Object.keys(runners).indexOf(name)].code));
}

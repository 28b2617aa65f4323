// The package as it is published: packed, installed into real projects, bundled, opened and type-checked.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { sizeOf } from "../scripts/build/sizes.mjs";
import { launchBrowser } from "./support/browser.mjs";
import { install, pack, start } from "./support/projects.mjs";
import { serve } from "./support/server.mjs";

const repository = fileURLToPath(new URL("../", import.meta.url));
const own = JSON.parse(readFileSync(join(repository, "package.json"), "utf8"));
const sources = fileURLToPath(new URL("packaging/", import.meta.url));
const folder = realpathSync(mkdtempSync(join(tmpdir(), "wgrad-packaging-")));
// One project with every tool: consumers differ in who reads its sources.
const project = join(folder, "consumer");
const modules = join(project, "node_modules");
const installed = join(modules, "wgrad");

/** Bytes of gzip that a page with ./slim may download of wgrad. */
const slimBudget = 150_000;

/** silu([1, -2, 0.5]) · [3, 0.25, -1], in float64. */
const expected = [2.193175736, -0.0596014599, -0.3112296656];
/** f32 and another order of operations: values of this size are good to 1e-6. */
const tolerance = 1e-5;

let packed;
let tarball;
let browser;

before(async () => {
  packed = await pack(folder);
  tarball = join(folder, packed.filename);
  cpSync(join(sources, "consumer"), project, { recursive: true });
  await install(project, tarball);
  browser = await launchBrowser();
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

/** Runs a program to its end, which must be good: `[standard output, standard error]`. */
async function run(program, args) {
  const { code, out, err } = await start(program, args, { cwd: project });
  assert.equal(code, 0, `${program} ${args.join(" ")} ends with ${code}:\n${out}\n${err}`);
  return [out, err];
}

const node = (...args) => run(process.execPath, args);

/** Runs a tool's program in the project. */
const tool = (path, ...args) => node(join(modules, path), ...args);

/** What a bundler said, which should be nothing. */
const quiet = ([out, err]) => assert.equal(`${out}${err}`.trim(), "");

/**
 * Opens a page and waits for the JSON in its title.
 * @param {{ policy?: string }} [options] the page's content security policy
 * @returns the answer, and all that stood in the console or could not be loaded
 */
async function open(url, { policy } = {}) {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const said = [];
    page.on("pageerror", (error) => said.push(String(error.stack ?? error)));
    // Vite's own client says on the debug level that it is there.
    page.on(
      "console",
      (message) => message.type() !== "debug" && said.push(`${message.type()}: ${message.text()}`),
    );
    page.on("requestfailed", (request) => said.push(`${request.url()}: ${request.failure()?.errorText}`));
    page.on(
      "response",
      (response) => response.status() >= 400 && said.push(`${response.url()}: ${response.status()}`),
    );
    if (policy !== undefined) {
      await page.route("**/*.html", async (route) => {
        const response = await route.fetch();
        await route.fulfill({
          response,
          headers: { ...response.headers(), "content-security-policy": policy },
        });
      });
    }
    await page.goto(url);
    try {
      await page.waitForFunction(() => /^[[{]/.test(document.title), null, { timeout: 60_000 });
    } catch {
      assert.fail(`${url}: no answer; the console: ${said.join("\n") || "empty"}`);
    }
    return { answer: JSON.parse(await page.title()), said };
  } finally {
    await context.close();
  }
}

function right(answer, device) {
  assert.ok(answer.values, `no values: ${JSON.stringify(answer)}`);
  assert.equal(answer.device, device);
  assert.equal(answer.values.length, expected.length);
  answer.values.forEach((value, k) => {
    assert.ok(Math.abs(value - expected[k]) <= tolerance, `value ${k} is ${value}, not ${expected[k]}`);
  });
}

/** Opens a page whose answer must be right and whose console must stay empty. */
async function computes(url, options) {
  const { answer, said } = await open(url, options);
  // The test browser's adapter is software, so "auto" takes the CPU.
  right(answer, "cpu");
  assert.deepEqual(said, []);
}

/** As `computes`, for the page with two workers. */
async function workersCompute(url) {
  const { answer, said } = await open(url);
  assert.ok(Array.isArray(answer), `no answers: ${JSON.stringify(answer)}`);
  right(answer[0], "cpu");
  right(answer[1], "webgpu");
  assert.deepEqual(said, []);
}

/** Serves folders while `body` runs with the server's URL. */
async function served(folders, body) {
  const server = await serve(folders);
  try {
    await body(server.url);
  } finally {
    await server.close();
  }
}

/** Writes a page that loads one script. */
function writePage(path, script) {
  writeFileSync(path, `<!doctype html><meta charset="utf-8"><title>waiting</title>${script}`);
}

describe("the tarball", () => {
  const text = (path) => readFileSync(join(installed, path), "utf8");

  test("holds every export and its types, the licences, the README, and nothing else", () => {
    const files = packed.files.map(({ path }) => path);
    const targets = Object.values(own.exports).flatMap((entry) =>
      typeof entry === "string" ? entry : Object.values(entry),
    );
    const exported = [...targets, own.main, own.types].map((path) => path.replace(/^\.\//, ""));
    const wanted = new Set([...exported, "package.json", "README.md", "LICENSE-APACHE", "LICENSE-MIT"]);
    const isType = (path) => path.endsWith(".d.ts");
    const others = (list) => list.filter((path) => !isType(path)).sort();
    assert.deepEqual(others(files), others([...wanted]));
    const types = files.filter(isType);
    for (const path of [...wanted].filter(isType)) assert.ok(types.includes(path), path);
    // Besides those of the entries there are only types that others refer to.
    const modules = readdirSync(join(repository, "js"));
    for (const path of types.filter((type) => !wanted.has(type))) {
      const name = path.slice("dist/".length, -".d.ts".length);
      assert.ok(modules.includes(`${name}.ts`), path);
      const named = types.some((other) => other !== path && text(other).includes(`"./${name}.js"`));
      assert.ok(named, `${path}: no other type refers to it`);
    }
  });

  test("is installed as it was built", () => {
    for (const { path } of packed.files) {
      assert.ok(readFileSync(join(installed, path)).equals(readFileSync(join(repository, path))), path);
    }
  });

  test("names no source map, no dependency and no script that runs at its installation", () => {
    for (const path of readdirSync(join(installed, "dist"))) {
      if (!path.endsWith(".wasm")) assert.doesNotMatch(text(`dist/${path}`), /sourceMappingURL/, path);
    }
    const { dependencies, peerDependencies, optionalDependencies, scripts } = JSON.parse(
      text("package.json"),
    );
    assert.deepEqual(
      [dependencies, peerDependencies, optionalDependencies],
      [undefined, undefined, undefined],
    );
    const runs = Object.keys(scripts).filter((name) => /install|prepare|prepublish/.test(name));
    assert.deepEqual(runs, []);
  });

  test("the main entry holds the module of the slim one", () => {
    const base64 = readFileSync(join(installed, "dist/wgrad_bg.wasm")).toString("base64");
    assert.ok(text("dist/index.js").includes(base64));
    assert.ok(!text("dist/slim.js").includes(base64.slice(0, 200)));
  });

  test("what ./slim loads stays within its budget", () => {
    const total = sizeOf("slim.js").gzip + sizeOf("wgrad_bg.wasm").gzip;
    assert.ok(total < slimBudget, `slim.js and the module are ${total} bytes of gzip, of ${slimBudget}`);
  });

  test("the module names no folder of the machine that built it", () => {
    const wasm = readFileSync(join(installed, "dist/wgrad_bg.wasm"), "latin1");
    const cargo = process.env.CARGO_HOME ?? join(homedir(), ".cargo");
    const found = [cargo, homedir(), repository].filter((path) => path.length > 1 && wasm.includes(path));
    assert.deepEqual(found, []);
  });

  test("publint has no complaint", async () => {
    const [out, err] = await tool("publint/src/cli.js", "run", tarball, "--strict");
    assert.match(out, /All good/, `${out}${err}`);
  });

  test("Are The Types Wrong finds types, and right ones", async () => {
    const flags = ["--format", "json", "--profile", "esm-only", "--exclude-entrypoints", "./wgrad_bg.wasm"];
    const [out] = await tool("@arethetypeswrong/cli/dist/index.js", tarball, ...flags);
    const { analysis } = JSON.parse(out);
    // Without types at all there is no problem to find.
    assert.equal(analysis.types?.kind, "included", JSON.stringify(analysis.types));
    const kinds = ["node16-esm", "bundler"];
    for (const entry of [".", "./slim"]) {
      for (const kind of kinds) {
        const { resolution } = analysis.entrypoints[entry].resolutions[kind];
        assert.ok(resolution?.isTypeScript, `${entry}, ${kind}: ${JSON.stringify(resolution)}`);
      }
    }
    const problems = analysis.problems.filter((problem) =>
      kinds.includes(problem.resolutionKind ?? "bundler"),
    );
    assert.deepEqual(problems, []);
  });
});

describe("consumers in the browser", () => {
  for (const vite of ["vite5", "vite7", "vite8"]) {
    test(`${vite}, built`, async () => {
      const out = join(folder, `${vite}-build`);
      quiet(await node("vite.js", vite, "build", out));
      await served({ "/": out }, async (url) => {
        await computes(`${url}index.html`);
        await computes(`${url}slim.html`);
        await computes(`${url}slim-vite.html`);
        await workersCompute(`${url}workers.html`);
      });
    });

    test(`${vite}, development server`, async () => {
      const child = spawn(process.execPath, ["vite.js", vite, "dev", join(folder, `${vite}-cache`)], {
        cwd: project,
        stdio: ["ignore", "pipe", "pipe"],
      });
      const closed = new Promise((done) => child.once("close", done));
      try {
        let told = "";
        child.stderr.setEncoding("utf8").on("data", (part) => (told += part));
        child.stdout.setEncoding("utf8");
        const url = await new Promise((done, fail) => {
          child.stdout.once("data", (line) => done(line.trim()));
          closed.then(() => fail(new Error(`the server ended: ${told}`)));
        });
        await computes(`${url}index.html`);
        await workersCompute(`${url}workers.html`);
        await computes(`${url}slim-vite.html`);
        // Vite 5 to 7 move the script of the slim entry away from its module in development.
        if (vite === "vite8") await computes(`${url}slim.html`);
        assert.equal(told, "");
      } finally {
        child.kill();
        await closed;
      }
    });
  }

  test("webpack", async () => {
    const out = join(folder, "webpack");
    quiet(await node("webpack.js", out));
    for (const name of ["main", "slim", "workers"]) {
      writePage(join(out, `${name}.html`), `<script defer src="${name}.js"></script>`);
    }
    await served({ "/": out }, async (url) => {
      await computes(`${url}main.html`);
      await computes(`${url}slim.html`);
      await workersCompute(`${url}workers.html`);
    });
  });

  test("esbuild", async () => {
    const out = join(folder, "esbuild");
    const flags = ["--bundle", "--minify", "--log-level=warning"];
    quiet(await tool("esbuild/bin/esbuild", "main.js", ...flags, `--outfile=${join(out, "main.js")}`));
    writePage(join(out, "main.html"), '<script defer src="main.js"></script>');
    await served({ "/": out }, (url) => computes(`${url}main.html`));
  });

  test("esbuild, the slim entry with its file copied", async () => {
    const out = join(folder, "esbuild-slim");
    const flags = ["--bundle", "--minify", "--log-level=warning", `--outdir=${out}`];
    // A plain script has no import.meta: it must be told where the file is.
    const plain = [...flags, "--log-override:empty-import-meta=silent"];
    quiet(await tool("esbuild/bin/esbuild", "slim-given.js", ...plain));
    quiet(await tool("esbuild/bin/esbuild", "slim.js", "--format=esm", ...flags));
    await slimComputes(out, '<script defer src="slim-given.js"></script>');
  });

  test("Rollup", async () => {
    const out = join(folder, "rollup");
    quiet(await node("rollup.js", out));
    writePage(join(out, "main.html"), '<script type="module" src="main.js"></script>');
    await served({ "/": out }, (url) => computes(`${url}main.html`));
    await slimComputes(out, '<script type="module" src="slim-given.js"></script>');
  });

  /** Both ways with a copy of the module: beside the script, and anywhere that `init` is told of. */
  async function slimComputes(out, given) {
    const wasm = join(installed, "dist", "wgrad_bg.wasm");
    mkdirSync(join(out, "assets"));
    writePage(join(out, "slim.html"), '<script type="module" src="slim.js"></script>');
    writePage(join(out, "slim-given.html"), given);
    await served({ "/": out }, async (url) => {
      const { answer } = await open(`${url}slim.html`);
      assert.equal(answer.error?.code, "UnsupportedError", "nothing has copied the file yet");
      cpSync(wasm, join(out, "assets", "wgrad_bg.wasm"));
      await computes(`${url}slim-given.html`);
      cpSync(wasm, join(out, "wgrad_bg.wasm"));
      await computes(`${url}slim.html`);
    });
  }

  test("no bundler: an import map, a relative path, workers, the slim entry", async () => {
    await served({ "/": join(sources, "plain"), "/consumer/": project }, async (url) => {
      await computes(`${url}import-map.html`);
      await computes(`${url}relative.html`);
      await workersCompute(`${url}workers.html`);
      await computes(`${url}slim.html`);
    });
  });
});

describe("a content security policy", () => {
  const allowed = "script-src 'self' 'wasm-unsafe-eval'";
  const pages = join(folder, "policy");

  /** Runs `body` with the URL of `main.html` and `slim.html`, which hold no inline script. */
  async function withPages(body) {
    mkdirSync(pages, { recursive: true });
    for (const [name, entry] of Object.entries({ main: "index", slim: "slim" })) {
      const imports = `import { init } from "/consumer/node_modules/wgrad/dist/${entry}.js";`;
      const compute = 'import { compute } from "/consumer/compute.js";';
      writeFileSync(
        join(pages, `${name}.js`),
        `${imports}\n${compute}\ndocument.title = await compute(init);\n`,
      );
      writePage(join(pages, `${name}.html`), `<script type="module" src="${name}.js"></script>`);
    }
    await served({ "/": pages, "/consumer/": project }, body);
  }

  test("with 'wasm-unsafe-eval' and nothing more, both entries compute", () =>
    withPages(async (url) => {
      for (const name of ["main", "slim"]) await computes(`${url}${name}.html`, { policy: allowed });
      await computes(`${url}main.html`, { policy: `default-src 'none'; ${allowed}` });
      await computes(`${url}slim.html`, { policy: `default-src 'none'; connect-src 'self'; ${allowed}` });
    }));

  test("without it, init throws an UnsupportedError that names it", () =>
    withPages(async (url) => {
      for (const name of ["main", "slim"]) {
        const { answer } = await open(`${url}${name}.html`, { policy: "script-src 'self'" });
        assert.equal(answer.error?.code, "UnsupportedError", JSON.stringify(answer));
        assert.match(answer.error.message, /add 'wasm-unsafe-eval' to script-src/);
      }
    }));
});

describe("TypeScript", () => {
  const bundler = ["--module", "esnext", "--moduleResolution", "bundler"];
  const node16 = ["--module", "node16", "--moduleResolution", "node16"];
  // TypeScript 5 knows no WebGPU by itself, TypeScript 6 contradicts @webgpu/types.
  for (const [what, compiler, config, flags] of [
    ["6, bundler, without esnext.disposable", "typescript", "tsconfig.json", bundler],
    ["6, bundler, with it", "typescript", "tsconfig.using.json", bundler],
    ["6, node16, without esnext.disposable", "typescript", "tsconfig.json", node16],
    ["6, node16, with it", "typescript", "tsconfig.using.json", node16],
    ["5, without @webgpu/types", "typescript5", "tsconfig.json", bundler],
    ["5, with @webgpu/types", "typescript5", "tsconfig.webgpu.json", node16],
  ]) {
    test(what, async () => quiet(await tool(`${compiler}/bin/tsc`, "-p", join("types", config), ...flags)));
  }
});

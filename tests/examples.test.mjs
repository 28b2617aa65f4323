// The examples in the API documentation run, and give what their comments say.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { transform } from "esbuild";
import { root } from "../scripts/lib/process.mjs";
import { packageUrl } from "./support/everywhere.mjs";

/** The examples of a source, each with the line it starts on. */
function examplesOf(name) {
  const text = readFileSync(join(root, "js", name), "utf8");
  return [...text.matchAll(/@example\s*\n\s*\* ```ts\n([\s\S]*?)\n\s*\* ```/g)].map((match) => ({
    where: `js/${name}:${text.slice(0, match.index).split("\n").length}`,
    code: match[1].replace(/^\s*\* ?/gm, ""),
  }));
}

const sources = readdirSync(join(root, "js")).filter((name) => name.endsWith(".ts"));
const examples = sources.flatMap(examplesOf);

/** `expression; // value` becomes a check, when the comment is JSON. */
function withChecks(code) {
  let checks = 0;
  const lines = code.split("\n").map((line) => {
    const [, expression, comment] = /^(?!const |let )(\S.*); \/\/ (.*)$/.exec(line) ?? [];
    if (expression === undefined) return line;
    checks++;
    return `near(${expression}, ${JSON.stringify(JSON.parse(comment))});`;
  });
  return { code: lines.join("\n"), checks };
}

/** Numbers within a millionth, or the last digit that is written. */
function near(got, want) {
  if (Array.isArray(want)) {
    assert.equal(got.length, want.length);
    want.forEach((w, k) => near(got[k], w));
  } else if (typeof want === "number") {
    assert.ok(Math.abs(got - want) <= 2e-6, `${got} is not ${want}`);
  } else {
    assert.equal(got, want);
  }
}

describe("examples", () => {
  let folder;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "wgrad-examples-"));
  });
  after(() => rmSync(folder, { recursive: true }));

  test("there are some", () => assert.ok(examples.length >= 12, `${examples.length} examples`));

  for (const [k, { where, code }] of examples.entries()) {
    test(where, async () => {
      const { code: checked, checks } = withChecks(code);
      const makesEngine = checked.includes("init(");
      assert.ok(checks > 0 || makesEngine, "the example shows no result");
      const start = `import { init } from "wgrad";\nconst engine = await init({ device: "cpu" });\n`;
      const source = `const { near } = globalThis.examples;\n${makesEngine ? "" : start}${checked}\nengine.dispose();`;
      const { code: module } = await transform(source, { loader: "ts", format: "esm" });
      const file = join(folder, `example-${k}.mjs`);
      writeFileSync(file, module.replaceAll('"wgrad"', JSON.stringify(packageUrl)));
      globalThis.examples = { near };
      await import(pathToFileURL(file).href);
    });
  }
});

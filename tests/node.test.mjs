// The package as it is published, in every Node that it is for: on the CPU, and on WebGPU where the application brings it.
import assert from "node:assert/strict";
import {
  copyFileSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { root } from "../scripts/lib/process.mjs";
import {
  dawnEnvironment,
  dawnPackage,
  install,
  nodePackage,
  nodeProgram,
  pack,
  start,
} from "./support/projects.mjs";

const majors = [20, 22];
const own = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const sources = join(root, "tests", "packaging");

let project;

before(async () => {
  project = realpathSync(mkdtempSync(join(tmpdir(), "wgrad-node-")));
  const { filename } = await pack(project);
  cpSync(join(sources, "node"), project, { recursive: true });
  copyFileSync(join(sources, "consumer", "compute.js"), join(project, "compute.js"));
  writeFileSync(join(project, "package.json"), '{ "private": true, "type": "module" }');
  const others = majors.map(nodePackage).filter(Boolean);
  await install(project, join(project, filename), dawnPackage, ...others.map(({ spec }) => spec));
});

after(() => rmSync(project, { recursive: true, force: true, maxRetries: 3 }));

/** The line of JSON that a module prints, and what it says besides. */
async function answers(major, file, env) {
  const { code, out, err } = await start(nodeProgram(project, major), [file], { cwd: project, env });
  assert.equal(code, 0, err);
  return { ...JSON.parse(out), err };
}

/** silu([1, -2, 0.5]) · [3, 0.25, -1], in float64. */
const expected = [2.193175736, -0.0596014599, -0.3112296656];

function right({ values, device, error }, wanted) {
  assert.equal(error, undefined);
  assert.equal(device, wanted);
  // f32 and another order of operations: values of this size are good to 1e-6.
  values.forEach((value, k) =>
    assert.ok(Math.abs(value - expected[k]) <= 1e-5, `${values}, not ${expected}`),
  );
  assert.equal(values.length, expected.length);
}

for (const major of majors) {
  describe(`Node ${major}`, () => {
    test("it is that Node", async () => {
      const { out } = await start(nodeProgram(project, major), ["--version"]);
      assert.match(out, new RegExp(`^v${major}\\.`));
    });

    test("importing touches nothing, both entries compute", async () => {
      const { touched, required, name, version, answers: results, err } = await answers(major, "import.js");
      assert.equal(err, "");
      assert.deepEqual(touched, []);
      assert.equal(required, true);
      assert.deepEqual({ name, version }, { name: own.name, version: own.version });
      assert.equal(results.length, 2);
      for (const result of results) right(result, "cpu");
    });

    test("init() takes the CPU and says why; with the npm package webgpu there is a GPU", async () => {
      const { before, adapter, automatic, answer } = await answers(major, "webgpu.js", dawnEnvironment());
      assert.equal(before.device, "cpu");
      assert.match(before.reason, /navigator\.gpu/);
      right(answer, "webgpu");
      // A software adapter is left aside by "auto"; a machine with a GPU has none.
      assert.equal(automatic.device, adapter.isFallback ? "cpu" : "webgpu");
      if (adapter.isFallback) assert.match(automatic.reason, /software/);
    });
  });
}

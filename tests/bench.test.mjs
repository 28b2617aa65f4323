// The benchmark runs and measures; its figures are not looked at.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../scripts/lib/process.mjs";

const bench = (...args) =>
  spawnSync(process.execPath, ["bench/run.mjs", ...args], { cwd: root, encoding: "utf8", timeout: 300_000 });

test("every row that is asked for is measured on both engines, and a software adapter is called one", () => {
  const folder = mkdtempSync(join(tmpdir(), "wgrad-bench-"));
  try {
    const file = join(folder, "figures.json");
    const { status, stdout, stderr } = bench(
      "--quick",
      "--only=siluMul|matmul 512|2048|recorded",
      `--json=${file}`,
    );
    assert.equal(status, 0, stderr);
    assert.match(stdout, /A SOFTWARE ADAPTER.*mean nothing for a GPU/);
    const { versions, results } = JSON.parse(readFileSync(file, "utf8"));
    assert.ok(versions.wgrad && versions.chromium && versions.node);
    assert.deepEqual(
      results.map(({ device, software }) => [device, software]),
      [
        ["webgpu", true],
        ["cpu", false],
      ],
    );
    for (const { device, rows } of results) {
      const names = rows.map(({ name }) => name);
      assert.deepEqual(names, [
        "gated forward (siluMul)",
        "gated backward (siluMul)",
        "LayerNorm forward",
        "LayerNorm backward (dx, dw, db)",
        "matmul",
        "queue: gated forward (siluMul)",
        ...(device === "webgpu" ? ["queue: recorded op, the page's time"] : []),
      ]);
      for (const { name, milliseconds, limitRate, ofLimit } of rows) {
        // Nothing is ten times faster than the limit; it would not have been computed.
        const sound = milliseconds > 0 && limitRate > 0 && ofLimit > 0 && ofLimit < 10;
        assert.ok(sound, `${device}, ${name}: ${milliseconds} ms, ${ofLimit} of the limit`);
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("an option that there is not, and an expression that is none, are errors", () => {
  for (const [option, words] of [
    ["--onyl=matmul", /unknown option --onyl=matmul; there are --only=…/],
    ["--quick=yes", /unknown option --quick=yes/],
    ["--only=(", /regular expression/],
  ]) {
    const { status, stderr } = bench(option);
    assert.equal(status, 1);
    assert.match(stderr, words);
  }
});

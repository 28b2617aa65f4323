// FEATURES.md says what the package does: every operation is tried on the CPU in Node and on WebGPU in Chromium.
import assert from "node:assert/strict";
import { test } from "node:test";
import { probe } from "../scripts/features/probe.mjs";
import { committedFeatures, currentFeatures } from "../scripts/features.mjs";
import { packageUrl } from "./support/everywhere.mjs";

test("FEATURES.md is up to date", async () => {
  assert.equal(committedFeatures(), await currentFeatures(), "run `npm run features`");
});

test("an operation without a sample, and one that is not there, are errors", async () => {
  const { init, Tensor } = await import(packageUrl);
  const engine = await init({ device: "cpu" });
  Tensor.prototype.frobnicate = () => undefined;
  await assert.rejects(probe(engine), /Tensor.frobnicate has no sample/);
  delete Tensor.prototype.frobnicate;
  const { add } = Tensor.prototype;
  delete Tensor.prototype.add;
  await assert.rejects(probe(engine), /the sample add is of no operation of Tensor/);
  Tensor.prototype.add = add;
  engine.dispose();
});

test("an operation that gives no numbers or refuses with another error is an error", async () => {
  const { init, Tensor, ShapeError } = await import(packageUrl);
  const engine = await init({ device: "cpu" });
  const { add } = Tensor.prototype;
  try {
    Tensor.prototype.add = (b) => b.engine.full([1], NaN);
    await assert.rejects(probe(engine), /Tensor.add in f32 gives NaN/);
    Tensor.prototype.add = () => {
      throw new ShapeError("no");
    };
    await assert.rejects(probe(engine), /Tensor.add in f32: no/);
  } finally {
    Tensor.prototype.add = add;
  }
  engine.dispose();
});

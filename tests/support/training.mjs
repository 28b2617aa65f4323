// The demo's training as a function of an engine, for tests/digits.test.mjs. It runs in Node and in a page.

/**
 * Trains the demo's network on the digits.
 * @param demo the demo's own modules, bundled: DigitModel, splitDigits, Batches, randomSource
 * @param bytes digits.bin
 * @returns the losses, and after every epoch the part of the 360 held-out digits that is read rightly
 */
export async function train(engine, demo, bytes, { seed = 0, steps = Infinity, epochs = Infinity } = {}) {
  const { DigitModel, splitDigits, Batches, randomSource } = demo;
  const images = Math.floor(bytes.length / 65);
  const digits = { pixels: bytes.subarray(0, images * 64), labels: bytes.subarray(images * 64) };
  const split = splitDigits(digits, "shuffled");
  engine.manualSeed(seed);
  const model = new DigitModel(engine);
  const optimizer = engine.optim.adamw(model.parameters, { lr: 1e-3 });
  const batches = new Batches(split.train, 64, randomSource(seed));
  const accuracies = [];
  const losses = [];
  for (let step = 0; step < steps && accuracies.length < epochs; step++) {
    const { images, labels, count } = batches.take();
    const loss = engine.tidy(() => {
      const logits = model.forward(engine.tensor(images, { shape: [count, 64] }));
      const loss = logits.crossEntropy(engine.tensor(labels));
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
      return loss;
    });
    losses.push(await loss.item());
    loss.dispose();
    if ((step + 1) % batches.perEpoch === 0) accuracies.push(await accuracy(engine, model, split.test));
  }
  for (const thing of [optimizer, ...model.parameters]) thing.dispose();
  return { losses, accuracies, held: split.test.count };
}

async function accuracy(engine, model, { images, labels, count }) {
  const logits = engine.tidy(() =>
    engine.noGrad(() => model.forward(engine.tensor(images, { shape: [count, 64] }))),
  );
  const rows = await logits.array();
  logits.dispose();
  const right = rows.filter((row, k) => row.indexOf(Math.max(...row)) === labels[k]);
  return right.length / count;
}

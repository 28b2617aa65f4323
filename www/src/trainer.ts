// The training loop: short bursts of steps between frames, a look at the held-out digits now and then.
import type { Engine, Optimizer, Profile, Tensor } from "wgrad";
import { append } from "./curve";
import type { Curve } from "./curve";
import { Batches, pixelCount, randomSource } from "./data";
import type { Split, Subset } from "./data";
import { judge, softmax } from "./evaluation";
import type { Evaluation } from "./evaluation";
import { DigitModel } from "./model";

export const epochsPerRun = 15;
const batchSize = 64;
const weightDecay = 0.01;
/** Milliseconds of a frame that training may take; the rest is the page's. */
const frameBudget = 12;
/** A read from a GPU waits for all that is queued: bursts there are sized to take about this long. */
const burstTarget = { shortest: 25, longest: 100 };
/** An evaluation that takes less than this many milliseconds is worth having four times an epoch. */
const cheapEvaluation = 20;

export interface Settings {
  seed: number;
  learningRate: number;
}

export interface Progress {
  step: number;
  stepsPerEpoch: number;
  goalEpochs: number;
  /** Time spent in run(), pauses not counted. */
  seconds: number;
  imagesPerSecond: number | null;
  loss: number | null;
  evaluation: Evaluation | null;
  curve: Curve;
}

/** What some steps cost. */
export interface Measurement {
  steps: number;
  profile: Profile;
  /** Milliseconds from the first step until the device was done with the last. */
  took: number;
}

export class TrainingError extends Error {
  override readonly name = "TrainingError";
}

export class Trainer {
  readonly progress: Progress;
  /** One step a frame, so that an eye can follow. */
  slow = false;
  private readonly model: DigitModel;
  private readonly optimizer: Optimizer;
  private readonly testImages: Tensor;
  private readonly batches: Batches;
  private wanted = false;
  private current: Promise<void> | null = null;
  private burstLimit = 1;
  private evaluationTime = 0;

  constructor(
    readonly engine: Engine,
    readonly split: Split,
    settings: Settings,
    private readonly report: (evaluated: boolean) => void,
  ) {
    engine.manualSeed(settings.seed);
    this.model = new DigitModel(engine);
    this.optimizer = engine.optim.adamw(this.model.parameters, { lr: settings.learningRate, weightDecay });
    this.testImages = engine.tensor(split.test.images, { shape: [split.test.count, pixelCount] });
    this.batches = new Batches(split.train, batchSize, randomSource(settings.seed));
    this.progress = {
      step: 0,
      stepsPerEpoch: this.batches.perEpoch,
      goalEpochs: epochsPerRun,
      seconds: 0,
      imagesPerSecond: null,
      loss: null,
      evaluation: null,
      curve: { x: [], trainLoss: [], testLoss: [], accuracy: [] },
    };
  }

  get running(): boolean {
    return this.current !== null;
  }

  get finished(): boolean {
    return this.progress.step >= this.progress.goalEpochs * this.progress.stepsPerEpoch;
  }

  set learningRate(value: number) {
    this.optimizer.lr = value;
  }

  /** How many numbers the network learns. */
  get weights(): number {
    const sizes = this.model.parameters.map(({ shape }) => shape.reduce((size, length) => size * length, 1));
    return sizes.reduce((sum, size) => sum + size, 0);
  }

  /** Trains until the goal or a pause; once there, sets a goal further on. */
  run(): Promise<void> {
    if (this.finished) this.progress.goalEpochs += epochsPerRun;
    this.wanted = true;
    this.current ??= this.loop().finally(() => {
      this.current = null;
    });
    return this.current;
  }

  /** Resolves when the step under way is done; whoever awaits run() hears of its failure. */
  async pause(): Promise<void> {
    this.wanted = false;
    await this.current?.catch(() => undefined);
  }

  /** The ten probabilities for one image of 64 values from 0 to 1. */
  async predict(image: Float32Array): Promise<number[]> {
    const { engine, model } = this;
    const logits = engine.tidy(() =>
      engine.noGrad(() => model.forward(engine.tensor(image, { shape: [1, pixelCount] }))),
    );
    return softmax(await readAndDispose(logits));
  }

  /** Measures steps that are in none of the figures. */
  async measure(steps: number): Promise<Measurement> {
    // The first step compiles shaders and makes the optimizer's state.
    this.trainOn(this.batches.take()).dispose();
    let began = NaN;
    const profile = await this.engine.profile(() => {
      began = performance.now();
      for (let k = 0; k < steps; k++) this.trainOn(this.batches.take()).dispose();
    });
    return { steps, profile, took: performance.now() - began };
  }

  /** Frees what lives on the device. */
  dispose(): void {
    this.wanted = false;
    this.optimizer.dispose();
    for (const parameter of this.model.parameters) parameter.dispose();
    this.testImages.dispose();
  }

  private async loop(): Promise<void> {
    let since = performance.now();
    const tick = (): void => {
      const now = performance.now();
      this.progress.seconds += (now - since) / 1000;
      since = now;
    };
    if (!this.progress.evaluation) await this.evaluate();
    while (this.wanted && !this.finished) {
      const due = this.nextEvaluation();
      await this.burst(due);
      const evaluated = this.progress.step >= due;
      if (evaluated) await this.evaluate();
      tick();
      this.report(evaluated);
      await nextFrame();
    }
    tick();
  }

  /** The step after which the held-out digits are next looked at. */
  private nextEvaluation(): number {
    const { step, stepsPerEpoch } = this.progress;
    const epochEnd = (Math.floor(step / stepsPerEpoch) + 1) * stepsPerEpoch;
    if (this.evaluationTime > cheapEvaluation) return epochEnd;
    const interval = Math.ceil(stepsPerEpoch / 4);
    const inEpoch = step % stepsPerEpoch;
    return Math.min(epochEnd, step - inEpoch + (Math.floor(inEpoch / interval) + 1) * interval);
  }

  /** Steps until the frame's time is used, at most up to step `end`; then waits for their losses. */
  private async burst(end: number): Promise<void> {
    const { progress, engine } = this;
    const began = performance.now();
    // Ops on a GPU only queue: time says nothing there, so the count is bounded too.
    const limit = this.slow ? 1 : engine.device === "cpu" ? Infinity : this.burstLimit;
    const kept: Tensor[] = [];
    let images = 0;
    let steps = 0;
    do {
      const batch = this.batches.take();
      const loss = this.trainOn(batch);
      images += batch.count;
      steps++;
      progress.step++;
      const last = progress.step === end || steps === limit;
      if (last || steps % 4 === 1) kept.push(loss);
      else loss.dispose();
    } while (progress.step < end && steps < limit && performance.now() - began < frameBudget);
    const losses = await Promise.all(kept.map(readAndDispose));
    const took = performance.now() - began;
    this.adapt(took, steps);
    this.note(losses.map((values) => values[0] ?? NaN));
    const rate = (images / took) * 1000;
    const before = progress.imagesPerSecond ?? rate;
    progress.imagesPerSecond = before + (rate - before) * Math.min(1, took / 400);
  }

  private trainOn({ images, labels, count }: Subset): Tensor {
    const { engine, model, optimizer } = this;
    return engine.tidy(() => {
      const logits = model.forward(engine.tensor(images, { shape: [count, pixelCount] }));
      const loss = logits.crossEntropy(engine.tensor(labels));
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
      return loss;
    });
  }

  private adapt(took: number, steps: number): void {
    if (took > burstTarget.longest) this.burstLimit = Math.max(1, Math.floor(steps / 2));
    else if (took < burstTarget.shortest && steps >= this.burstLimit) this.burstLimit = steps * 2;
  }

  private note(losses: number[]): void {
    const { progress } = this;
    const loss = losses.reduce((sum, value) => sum + value, 0) / losses.length;
    if (!Number.isFinite(loss)) {
      throw new TrainingError(`the loss is ${loss} after step ${progress.step}: the weights have run away`);
    }
    progress.loss = losses.at(-1) ?? null;
    append(progress.curve, { x: progress.step / progress.stepsPerEpoch, trainLoss: loss });
  }

  private async evaluate(): Promise<void> {
    const { engine, model, progress, split } = this;
    const began = performance.now();
    const logits = engine.tidy(() => engine.noGrad(() => model.forward(this.testImages)));
    const evaluation = judge(await readAndDispose(logits), split.test.labels);
    // The first one also warms up: its time says nothing.
    if (progress.evaluation) this.evaluationTime = performance.now() - began;
    progress.evaluation = evaluation;
    append(progress.curve, {
      x: progress.step / progress.stepsPerEpoch,
      testLoss: evaluation.loss,
      accuracy: evaluation.accuracy,
    });
  }
}

async function readAndDispose(tensor: Tensor): Promise<ArrayLike<number>> {
  try {
    return await tensor.data();
  } finally {
    tensor.dispose();
  }
}

/** The next frame; a hidden page has none and goes on after a moment. */
function nextFrame(): Promise<void> {
  return new Promise((resolve) => {
    const late = setTimeout(resolve, 200);
    requestAnimationFrame(() => {
      clearTimeout(late);
      resolve();
    });
  });
}

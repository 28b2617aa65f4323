// The demo: which digits, which engine, which network, and what happens to them.
import { init } from "wgrad";
import type { Engine } from "wgrad";
import { Charts } from "./charts";
import { chooseDevice, chosenDevice, chosenSplit, controls, settings, showControls } from "./controls";
import type { Curve } from "./curve";
import { levelsOf, loadDigits, splitDigits } from "./data";
import type { Digits, Split, SplitName } from "./data";
import { Wall } from "./digits";
import { element } from "./dom";
import { faultOf, kindOf, lostFault } from "./faults";
import type { Fault, Remedy } from "./faults";
import { Pad } from "./pad";
import { showProfile, showProfileWords } from "./profile";
import { Recogniser } from "./recogniser";
import { Trainer } from "./trainer";
import * as view from "./view";

/** Milliseconds to wait for a device that may never answer. */
const patience = 2000;

/** Enough for a clock that a browser has made coarse. */
const measuredSteps = 20;

const otherSplit = (name: SplitName): SplitName => (name === "shuffled" ? "writers" : "shuffled");

export class Demo {
  private digits: Digits | null = null;
  private split: Split | null = null;
  private engine: Engine | null = null;
  private trainer: Trainer | null = null;
  private measuring: Promise<void> | null = null;
  /** Whether training goes on once that is over. */
  private resumes = false;
  /** The last run on each split, the one under way included. */
  private readonly curves: Record<SplitName, Curve | null> = { shuffled: null, writers: null };
  private readonly charts = new Charts(
    element("loss-chart", HTMLElement),
    element("accuracy-chart", HTMLElement),
  );
  private readonly wall = new Wall(element("wall", HTMLCanvasElement));
  private readonly recogniser = new Recogniser((error) => {
    this.fail(faultOf(error));
  });
  private readonly pad = new Pad(
    element("pad", HTMLCanvasElement),
    (levels) => {
      this.recogniser.look(levels);
    },
    (words) => {
      view.write("pad-status", words);
    },
  );

  /** Loads the digits, then starts the engine. */
  async load(): Promise<void> {
    view.showFault(null, this.remedy);
    view.showStatus("Loading the digits …");
    try {
      this.digits = await loadDigits();
    } catch (error) {
      this.fail(faultOf(error));
      return;
    }
    this.takeSplit();
    await this.useEngine();
  }

  /** Leaves the engine at hand and starts the chosen one. */
  async useEngine(): Promise<void> {
    const device = chosenDevice();
    await this.leaveEngine();
    view.showFault(null, this.remedy);
    view.showStatus("Starting the engine …");
    try {
      const engine = await init({ device });
      this.engine = engine;
      void engine.lost.then((loss) => this.lose(engine, loss));
    } catch (error) {
      view.showEngine(null, device);
      this.fail(faultOf(error));
      return;
    }
    view.showEngine(this.engine, device);
    this.renew();
  }

  async useSplit(): Promise<void> {
    this.takeSplit();
    await this.reset();
  }

  /** A new network on the same engine. */
  async reset(): Promise<void> {
    if (!this.trainer) return;
    showControls(this.trainer, true);
    await this.rest(this.trainer);
    view.showFault(null, this.remedy);
    this.renew();
  }

  /** Start, pause, continue: what the button says. */
  async toggle(): Promise<void> {
    const { trainer } = this;
    if (trainer?.running) await trainer.pause();
    else if (trainer) await this.run(trainer);
  }

  setLearningRate(): void {
    if (this.trainer) this.trainer.learningRate = settings().learningRate;
  }

  setPace(): void {
    if (this.trainer) this.trainer.slow = controls.slow.checked;
  }

  /** Shows where the time of some steps goes. They are another network's; the one at hand waits, if it is training. */
  async measure(): Promise<void> {
    const { trainer } = this;
    if (!trainer || this.measuring) return;
    this.resumes = trainer.running;
    const measuring = this.measureBeside(trainer);
    this.measuring = measuring;
    showControls(trainer, true);
    // It keeps the focus; a second press does nothing.
    controls.profile.disabled = false;
    await measuring;
    if (this.measuring === measuring) this.measuring = null;
    view.showMemory(this.engine);
    if (trainer !== this.trainer) return;
    showControls(trainer, false);
    if (!this.resumes) return;
    if (trainer.finished) this.showRest(trainer);
    else await this.run(trainer);
  }

  private async measureBeside(trainer: Trainer): Promise<void> {
    const { engine, split } = trainer;
    showProfileWords("Measuring …");
    let copy: Trainer | null = null;
    try {
      // The kernels of a step under way would count too, and the step would wait for the measured ones.
      await trainer.pause();
      copy = new Trainer(engine, split, settings(), () => undefined);
      const measured = await copy.measure(measuredSteps);
      if (engine === this.engine) showProfile(measured);
    } catch (error) {
      if (engine !== this.engine) return;
      showProfile(null);
      if (kindOf(error) === "UnsupportedError")
        showProfileWords(`This engine cannot be measured (${faultOf(error).message}).`);
      else this.fail(faultOf(error));
    } finally {
      copy?.dispose();
    }
  }

  clearPad(): void {
    this.pad.clear();
  }

  /** Paints all canvases anew, in the colours of the page. */
  repaint(): void {
    this.charts.repaint();
    this.wall.paint();
    this.pad.paint();
    this.recogniser.repaint();
    this.showSamples();
    this.refresh(true);
  }

  fail(fault: Fault): void {
    view.showFault(fault, this.remedy);
    this.resumes = false;
    if (!this.trainer?.running) view.showStatus("Stopped by an error.");
    showControls(this.trainer, false);
  }

  private async run(trainer: Trainer): Promise<void> {
    view.showFault(null, this.remedy);
    view.showStatus(`Training on the ${trainer.engine.device === "cpu" ? "CPU" : "GPU"} …`);
    const run = trainer.run();
    showControls(trainer, false);
    try {
      await run;
    } catch (error) {
      if (trainer === this.trainer) this.fail(faultOf(error));
      return;
    }
    if (trainer === this.trainer && !this.measuring) this.showRest(trainer);
  }

  private showRest(trainer: Trainer): void {
    this.refresh(true);
    view.showOutcome(trainer);
    showControls(trainer, false);
  }

  /** Resolves when neither a step nor a measurement is under way. */
  private async rest(trainer: Trainer | null): Promise<void> {
    this.resumes = false;
    await trainer?.pause();
    await this.measuring;
  }

  /** A network trained on the other split would know the answers: whoever calls this makes a new one. */
  private takeSplit(): void {
    if (!this.digits) return;
    const name = chosenSplit();
    this.split = splitDigits(this.digits, name);
    view.write("key-this", view.splitWords[name]);
    view.write("key-other", view.splitWords[otherSplit(name)]);
    this.wall.show(this.split.test, null);
    this.showSamples();
  }

  private renew(): void {
    const { engine, split } = this;
    if (!engine || !split) {
      showControls(null, false);
      return;
    }
    this.trainer?.dispose();
    this.trainer = null;
    try {
      this.trainer = new Trainer(engine, split, settings(), (evaluated) => {
        this.refresh(evaluated);
      });
    } catch (error) {
      this.fail(faultOf(error));
      return;
    }
    this.setPace();
    view.write("weights", this.trainer.weights.toLocaleString("en"), this.trainer.weights);
    view.showStatus("Ready: an untrained network.");
    this.refresh(true);
    showControls(this.trainer, false);
  }

  private async lose(engine: Engine, loss: { reason: string; message: string }): Promise<void> {
    // An engine that was disposed of is lost as well, but no longer at hand.
    if (engine !== this.engine) return;
    await this.leaveEngine();
    view.showEngine(null, chosenDevice());
    this.fail(lostFault(loss));
  }

  private async leaveEngine(): Promise<void> {
    const { engine, trainer } = this;
    this.engine = null;
    this.trainer = null;
    this.recogniser.use(null);
    showControls(null, true);
    showProfile(null);
    await Promise.race([this.rest(trainer), new Promise((resolve) => setTimeout(resolve, patience))]);
    this.measuring = null;
    trainer?.dispose();
    engine?.dispose();
  }

  private readonly remedy = (remedy: Remedy): void => {
    // The button that was pressed goes: the focus moves to what is next.
    controls.start.focus();
    if (remedy === "reload") location.reload();
    else if (remedy === "load") void this.load();
    else if (remedy === "reset") void this.reset();
    else {
      if (remedy !== "new-engine") chooseDevice(remedy);
      void this.useEngine();
    }
  };

  private refresh(evaluated: boolean): void {
    const { trainer, split } = this;
    if (!trainer || !split) return;
    const { progress } = trainer;
    this.curves[split.name] = progress.curve;
    view.showProgress(progress);
    view.showMemory(this.engine);
    const other = this.curves[otherSplit(split.name)];
    this.charts.show(progress.curve, other);
    element("key-other", HTMLElement).hidden = !other;
    if (evaluated) {
      view.showAccuracy(split.name, progress.evaluation);
      view.showMisses(split.test, progress.evaluation, this.pick);
      this.wall.show(split.test, progress.evaluation);
    }
    this.recogniser.use(trainer);
  }

  private readonly pick = (levels: Uint8Array): void => {
    this.pad.load(levels);
    element("pad", HTMLElement).scrollIntoView({ block: "nearest" });
  };

  /** One held-out example of each digit. */
  private showSamples(): void {
    const test = this.split?.test;
    if (!test) return;
    const rows = Array.from({ length: 10 }, (_, digit) => test.labels.indexOf(digit)).filter(
      (row) => row >= 0,
    );
    const thumbnails = rows.map((row) => {
      const label = String(test.labels[row]);
      return { levels: levelsOf(test, row), label: `A ${label}: load it into the pad`, caption: label };
    });
    view.showThumbnails(element("samples", HTMLElement), thumbnails, this.pick);
  }
}

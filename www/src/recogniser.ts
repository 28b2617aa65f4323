// Keeps the answer in step with the pad and with the network.
import { toUnit } from "./data";
import type { Trainer } from "./trainer";
import { percent, showAnswer, showSeen, write } from "./view";

/** Milliseconds of rest after which the answer is also spoken. */
const restBeforeSpeaking = 700;

export class Recogniser {
  private levels: Uint8Array | null = null;
  private trainer: Trainer | null = null;
  private busy = false;
  private again = false;
  private rest = 0;

  constructor(private readonly failed: (error: unknown) => void) {}

  /** The pad shows something else. */
  look(levels: Uint8Array | null): void {
    this.levels = levels;
    showSeen(levels);
    void this.ask();
  }

  /** The network is another one, or has learnt more. */
  use(trainer: Trainer | null): void {
    this.trainer = trainer;
    void this.ask();
  }

  repaint(): void {
    showSeen(this.levels);
  }

  /** While one question is under way, at most one more waits: the latest. */
  private async ask(): Promise<void> {
    this.again = true;
    if (this.busy) return;
    this.busy = true;
    while (this.again) {
      this.again = false;
      await this.answer();
    }
    this.busy = false;
  }

  private async answer(): Promise<void> {
    const { trainer, levels } = this;
    try {
      const probabilities = trainer && levels ? await trainer.predict(toUnit(levels)) : null;
      if (trainer !== this.trainer) return;
      showAnswer(probabilities, trainer !== null && trainer.progress.step > 0);
      this.speak(probabilities);
    } catch (error) {
      if (trainer === this.trainer) this.failed(error);
    }
  }

  private speak(probabilities: number[] | null): void {
    clearTimeout(this.rest);
    if (!probabilities || this.trainer?.running) return;
    this.rest = window.setTimeout(() => {
      const best = Math.max(...probabilities);
      write("answer-status", `Read as ${probabilities.indexOf(best)}, ${percent(best)} sure.`);
    }, restBeforeSpeaking);
  }
}

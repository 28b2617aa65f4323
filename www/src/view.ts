// Writes to the page: figures, status, errors, the answer.
import type { Engine } from "wgrad";
import { levelsOf } from "./data";
import type { SplitName, Subset } from "./data";
import { paintDigit } from "./digits";
import { element } from "./dom";
import type { Evaluation } from "./evaluation";
import { remedyWords } from "./faults";
import type { Fault, Remedy } from "./faults";
import { epochsPerRun } from "./trainer";
import type { Progress, Trainer } from "./trainer";

const mostMisses = 24;

/** Text for people and the number itself for machines. */
export function write(id: string, text: string, value: number | null = null): void {
  const found = element(id, HTMLElement);
  if (found.textContent !== text) found.textContent = text;
  if (found instanceof HTMLDataElement) found.value = value === null ? "" : String(value);
}

export const percent = (part: number): string => `${(part * 100).toFixed(1)} %`;
const seconds = (value: number): string =>
  value < 60 ? `${value.toFixed(1)} s` : `${Math.floor(value / 60)} min ${Math.floor(value % 60)} s`;
export const splitWords: Record<SplitName, string> = { shuffled: "shuffled split", writers: "other writers" };

export function showStatus(words: string): void {
  write("status", words);
}

/** How far a run has come, once it rests. */
export function showOutcome({ progress, finished }: Trainer): void {
  const { evaluation } = progress;
  const all = evaluation?.guesses.length ?? 0;
  const score = `${evaluation?.correct ?? 0} of ${all} held-out digits read right`;
  showStatus(finished ? `Done in ${seconds(progress.seconds)}: ${score}.` : `Paused: ${score} so far.`);
}

export function showProgress(progress: Progress): void {
  const { step, stepsPerEpoch, goalEpochs, imagesPerSecond, loss } = progress;
  write("epoch", `${Math.floor(step / stepsPerEpoch)} / ${goalEpochs}`);
  write("step", step.toLocaleString("en"));
  write("seconds", seconds(progress.seconds), progress.seconds);
  const rate = imagesPerSecond === null ? "–" : Math.round(imagesPerSecond).toLocaleString("en");
  write("speed", rate, imagesPerSecond);
  write("loss", loss === null ? "–" : loss.toFixed(3), loss);
}

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)}\u00a0MiB`;

export function showMemory(engine: Engine | null): void {
  const memory = engine?.memory();
  write(
    "memory",
    memory ? `${memory.tensors} · ${mebibytes(memory.bytesUsed)}` : "–",
    memory?.tensors ?? null,
  );
  if (!memory) {
    write("memory-words", "");
    return;
  }
  const { tensors, bytesUsed, bytesAllocated, bytesPeak, objectsCreated } = memory;
  const words = [
    `${tensors} tensors`,
    `${mebibytes(bytesUsed)} in use`,
    `${mebibytes(bytesAllocated)} held`,
    `${mebibytes(bytesPeak)} at the peak`,
  ];
  // The CPU has none.
  if (objectsCreated > 0) words.push(`${objectsCreated.toLocaleString("en")} GPU objects made`);
  write("memory-words", `Memory: ${words.join(" · ")}`);
}

export function showAccuracy(name: SplitName, evaluation: Evaluation | null): void {
  write(`accuracy-${name}`, evaluation ? percent(evaluation.accuracy) : "–", evaluation?.accuracy ?? null);
}

export function showEngine(engine: Engine | null, choice: string): void {
  const reason = engine?.fallbackReason;
  const chosen =
    choice === "auto"
      ? reason
        ? ` Chosen automatically: ${sentence(reason)}`
        : " Chosen automatically."
      : "";
  write("engine-words", engine ? `${engineWords(engine)}${chosen}` : "No engine is running.");
  element("engine-words", HTMLElement).dataset["device"] = engine?.device ?? "";
}

function engineWords({ device, adapter }: Engine): string {
  if (device === "cpu") return "Runs on the CPU, as SIMD code in WebAssembly.";
  const names = [adapter?.vendor, adapter?.architecture, adapter?.description];
  const words = [...new Set(names.filter((name) => name))].join(", ") || "an adapter without a name";
  return `Runs on WebGPU: ${words}${adapter?.isFallback ? ", a software adapter, so slow" : ""}.`;
}

function sentence(words: string): string {
  return /[.!?]$/.test(words) ? words : `${words}.`;
}

export function showFault(fault: Fault | null, act: (remedy: Remedy) => void): void {
  const region = element("alert", HTMLElement);
  region.replaceChildren();
  if (!fault) return;
  const title = document.createElement("p");
  const kind = document.createElement("strong");
  kind.textContent = fault.kind;
  title.append(kind, ` ${sentence(fault.message)}`);
  const advice = document.createElement("p");
  advice.textContent = fault.advice;
  const buttons = document.createElement("p");
  buttons.className = "alert-buttons";
  buttons.append(
    ...fault.remedies.map((remedy) =>
      button(remedyWords[remedy], () => {
        act(remedy);
      }),
    ),
  );
  region.append(title, advice, buttons);
  region.scrollIntoView({ block: "nearest" });
}

function button(words: string, act: () => void): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = words;
  made.addEventListener("click", act);
  return made;
}

export function makeBars(): void {
  const rows = Array.from({ length: 10 }, (_, digit) => {
    const row = document.createElement("li");
    row.innerHTML = `<span class="bar-digit">${digit}</span><span class="bar-track"><span class="bar"></span></span><data class="bar-value" value="">–</data>`;
    return row;
  });
  element("bars", HTMLElement).replaceChildren(...rows);
}

/** The ten probabilities, or null for an empty pad. */
export function showAnswer(probabilities: number[] | null, trained: boolean): void {
  const best = probabilities ? probabilities.indexOf(Math.max(...probabilities)) : null;
  write("answer", best === null ? "–" : String(best));
  element("answer", HTMLElement).classList.toggle("none", best === null);
  const certain = probabilities && best !== null ? `${percent(probabilities[best] ?? 0)} sure` : "";
  write(
    "answer-note",
    !probabilities ? "Draw a digit to ask." : trained ? certain : "a guess: it has not trained yet",
  );
  for (const [digit, row] of [...element("bars", HTMLElement).children].entries()) {
    const probability = probabilities?.[digit] ?? null;
    row.classList.toggle("best", digit === best);
    row.querySelector<HTMLElement>(".bar")?.style.setProperty("scale", `${probability ?? 0} 1`);
    const value = row.querySelector("data");
    if (!value) continue;
    value.textContent = probability === null ? "–" : percent(probability);
    value.value = probability === null ? "" : String(probability);
  }
}

export function showSeen(levels: Uint8Array | null): void {
  const seen = element("seen", HTMLCanvasElement);
  paintDigit(seen, levels ?? new Uint8Array(64));
  const ink = levels?.reduce((sum, level) => sum + level, 0) ?? 0;
  seen.ariaLabel = levels ? `An 8 by 8 image, ${percent(ink / 1024)} ink` : "Nothing yet";
}

/** A digit as a button, with a caption where there is something to say. */
export interface Thumbnail {
  levels: Uint8Array;
  label: string;
  caption: string;
}

/** Fills a list with thumbnails; buttons that are there stay, so that the focus does. */
export function showThumbnails(
  list: HTMLElement,
  thumbnails: Thumbnail[],
  pick: (levels: Uint8Array) => void,
): void {
  while (list.children.length > thumbnails.length) list.lastElementChild?.remove();
  thumbnails.forEach(({ levels, label, caption }, index) => {
    const item = list.children[index] ?? list.appendChild(document.createElement("li"));
    const made = item.querySelector("button") ?? item.appendChild(button("", () => undefined));
    const canvas = made.querySelector("canvas") ?? document.createElement("canvas");
    paintDigit(canvas, levels);
    made.replaceChildren(canvas, caption);
    made.ariaLabel = label;
    made.onclick = () => {
      pick(levels);
    };
  });
}

/** The held-out digits that are read wrongly, and how. */
export function showMisses(
  test: Subset,
  evaluation: Evaluation | null,
  pick: (levels: Uint8Array) => void,
): void {
  const rows = evaluation
    ? [...evaluation.guesses.keys()].filter((row) => evaluation.guesses[row] !== test.labels[row])
    : [];
  const thumbnails = rows.slice(0, mostMisses).map((row) => {
    const [label, guess] = [test.labels[row] ?? 0, evaluation?.guesses[row] ?? 0];
    const words = `A ${label}, read as ${guess}: load it into the pad`;
    return { levels: levelsOf(test, row), label: words, caption: `${label} as ${guess}` };
  });
  showThumbnails(element("misses", HTMLElement), thumbnails, pick);
  const all = `${rows.length} of ${test.count}`;
  const shown = rows.length > mostMisses ? `; the first ${mostMisses}` : "";
  const words =
    rows.length === 0
      ? "None: all are read right."
      : `${all}${shown}. Each is captioned with what it is and how it is read.`;
  write(
    "misses-note",
    evaluation ? words : `Start the training (${epochsPerRun} epochs) to see which digits are hard.`,
  );
}

// What came of a run: a card a device, and the first results beside each other.
import { element, make } from "../dom";
import { count, figure, rate, share, size, time } from "./format";
import type { DeviceName, Failure, Figure, Outcome, Output, Worst } from "./messages";

const results = element("results", HTMLElement);
const first = element("first", HTMLElement);
const deviceNames: Record<DeviceName, string> = { webgpu: "WebGPU", cpu: "CPU" };

/** Whether an error is larger than is tolerated, NaN and infinity included. */
export const isOver = (worst: Worst): boolean => !(Number(worst.ratio) <= 1);

export class Results {
  #outcomes = new Map<DeviceName, Outcome>();

  clear(): void {
    this.#outcomes.clear();
    results.hidden = true;
    first.replaceChildren();
    for (const device of ["webgpu", "cpu"] as const)
      this.#fill(device, "waiting", make("p", {}, "Waiting …"));
  }

  show(device: DeviceName, title: string, outcome: Outcome): void {
    this.#outcomes.set(device, outcome);
    const errors = outcome.outputs.map(errorRow);
    const over = outcome.outputs.some(({ worst }) => worst && isOver(worst));
    const compared = outcome.outputs.some(({ worst }) => worst);
    const verdict = !compared ? "not compared" : over ? "over the tolerance" : "within the tolerance";
    this.#fill(
      device,
      compared ? (over ? "over" : "within") : "timed",
      make("p", { className: "note" }, title),
      make("p", { className: "verdict" }, verdict),
      speed(outcome),
      ...errors,
    );
    first.replaceChildren(...this.#firstTables());
  }

  showFailure(device: DeviceName, { kind, words }: Failure): void {
    this.#fill(device, "failed", make("p", { className: "failure" }, make("strong", {}, kind), ` ${words}`));
  }

  /** How many outputs are over the tolerance. */
  get over(): number {
    const outputs = [...this.#outcomes.values()].flatMap((outcome) => outcome.outputs);
    return outputs.filter(({ worst }) => worst && isOver(worst)).length;
  }

  #fill(device: DeviceName, state: string, ...content: Node[]): void {
    const card = element(device, HTMLElement);
    card.dataset["state"] = state;
    card.querySelector(".device-body")?.replaceChildren(...content);
    if (state !== "waiting") results.hidden = false;
  }

  #firstTables(): Node[] {
    const [known] = this.#outcomes.values();
    return (known?.outputs ?? []).map((output, place) => {
      const columns: [string, Figure[]][] = output.want ? [["float64", output.want]] : [];
      for (const [device, outcome] of this.#outcomes)
        columns.push([deviceNames[device], outcome.outputs[place]?.got ?? []]);
      return firstTable(output, columns);
    });
  }
}

function speed({ milliseconds, rate: reached, copyRate, bytes }: Outcome): HTMLElement {
  const entry = (name: string, value: string, exact: number): HTMLElement => {
    const data = make("data", { value: String(exact) }, value);
    return make("div", {}, make("dt", {}, name), make("dd", {}, data));
  };
  return make(
    "dl",
    { className: "figures" },
    entry("A call", time(milliseconds), milliseconds),
    entry("Needed once", size(bytes), bytes),
    entry("Rate", rate(reached), reached),
    entry("Copying here", rate(copyRate), copyRate),
    entry("Of copying", share(reached / copyRate), reached / copyRate),
  );
}

function errorRow({ binding, worst }: Output): HTMLElement {
  if (!worst) return make("p", { className: "error" }, make("code", {}, binding), " not compared");
  const row = make("div", { className: isOver(worst) ? "error over" : "error" });
  const ratio = make("data", { value: String(worst.ratio) }, figure(worst.ratio, 2));
  row.append(
    make("p", {}, make("code", {}, binding), " largest error ", ratio, " of the tolerance"),
    make("p", { className: "note" }, ...detail(worst)),
  );
  row.dataset["binding"] = binding;
  return row;
}

function detail({ index, row, col, got, want, absolute, relative, ratio }: Worst): string[] {
  if (ratio === 0) return ["every value is the one that float64 rounds to"];
  const where = row === null ? "" : ` (row ${count(row)}, column ${count(col ?? 0)})`;
  // Of NaN and infinity there is no distance.
  const finite = typeof absolute === "number";
  const sizes = finite ? `; absolute ${figure(absolute, 2)}, relative ${figure(relative, 2)}` : "";
  return [`at ${count(index)}${where}: got ${figure(got, 9)}, float64 says ${figure(want, 9)}${sizes}`];
}

function firstTable({ binding, count: all }: Output, columns: [string, Figure[]][]): HTMLElement {
  const rows = Math.max(...columns.map(([, values]) => values.length));
  const cell = (text: string): HTMLElement => make("td", {}, text);
  const scope = (text: string, of: string): HTMLElement => make("th", { scope: of }, text);
  const head = make("tr", {}, scope("#", "col"), ...columns.map(([name]) => scope(name, "col")));
  const body = Array.from({ length: rows }, (_, place) =>
    make(
      "tr",
      {},
      scope(String(place), "row"),
      ...columns.map(([, values]) => cell(figure(values[place] ?? ""))),
    ),
  );
  const caption = make("caption", {}, make("code", {}, binding), ` ${count(all)} in all`);
  const table = make("table", {}, caption, make("thead", {}, head), make("tbody", {}, ...body));
  const frame = make("div", { className: "scroll", tabIndex: 0, role: "region" }, table);
  frame.ariaLabel = `First results of ${binding}`;
  return frame;
}

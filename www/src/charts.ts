// The two curves: loss and accuracy by epoch.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Curve } from "./curve";
import { onResize, themeValue } from "./theme";
import { epochsPerRun } from "./trainer";

const height = 220;

/** A line in a colour of the page. */
function line(color: string, options: Partial<uPlot.Series> = {}): uPlot.Series {
  return { stroke: () => themeValue(color), width: 2, spanGaps: true, points: { show: false }, ...options };
}

const marker: Partial<uPlot.Series> = { points: { size: 5, fill: () => themeValue("--paper") } };

function axis(options: Partial<uPlot.Axis> = {}): uPlot.Axis {
  return {
    stroke: () => themeValue("--muted"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: () => themeValue("--rule"), width: 1 },
    ticks: { show: false },
    ...options,
  };
}

function plot(
  element: HTMLElement,
  scale: uPlot.Scale,
  yAxis: Partial<uPlot.Axis>,
  series: uPlot.Series[],
): uPlot {
  const options: uPlot.Options = {
    width: Math.max(element.clientWidth, 100),
    height,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, range: (_, __, last) => [0, Math.max(epochsPerRun, last || 0)] },
      y: scale,
    },
    axes: [
      axis({ size: 28, incrs: [1, 3, 5, 15, 30, 60], grid: { show: false } }),
      axis({ size: 48, ...yAxis }),
    ],
    series: [{}, ...series],
  };
  return new uPlot(options, [[], ...series.map(() => [])], element);
}

export class Charts {
  private readonly loss: uPlot;
  private readonly accuracy: uPlot;

  constructor(
    private readonly lossElement: HTMLElement,
    private readonly accuracyElement: HTMLElement,
  ) {
    // Logarithmic: the loss falls a thousandfold.
    const lossRange: uPlot.Scale.Range = (_, lowest, highest) => [
      Math.min(0.1, 10 ** Math.floor(Math.log10(lowest || 1))),
      Math.max(4, Math.min(highest || 4, 100)),
    ];
    const powersOfTen: Partial<uPlot.Axis> = {
      splits: () => [0.0001, 0.001, 0.01, 0.1, 1, 10, 100],
      values: (_, ticks) => ticks.map(String),
    };
    // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- Distr.Logarithmic exists in the types only
    const lossScale: uPlot.Scale = { distr: 3, range: lossRange };
    this.loss = plot(lossElement, lossScale, powersOfTen, [
      line("--quiet", { width: 1.5 }),
      line("--accent", marker),
    ]);
    // The first steps climb from a tenth; after that the last few per cent are what counts.
    const accuracyRange: uPlot.Scale.Range = (_, __, highest) => (highest > 0.85 ? [0.8, 1] : [0, 1]);
    const percent: Partial<uPlot.Axis> = {
      values: (_, ticks) => ticks.map((tick) => `${Math.round(tick * 100)} %`),
    };
    this.accuracy = plot(accuracyElement, { range: accuracyRange }, percent, [
      line("--quiet", { width: 1.5, dash: [5, 4] }),
      line("--accent", marker),
    ]);
    for (const element of [lossElement, accuracyElement]) {
      onResize(element, () => {
        this.resize();
      });
    }
  }

  /** `other` is the last run on the other split, to compare with. */
  show(curve: Curve, other: Curve | null): void {
    this.loss.setData([curve.x, curve.trainLoss, curve.testLoss]);
    const beside = other ?? { x: [], accuracy: [] };
    const joined = uPlot.join([
      [beside.x, beside.accuracy],
      [curve.x, curve.accuracy],
    ]);
    this.accuracy.setData(joined);
    this.describe(curve);
  }

  /** Takes the colours of the page again. */
  repaint(): void {
    this.loss.redraw(false, true);
    this.accuracy.redraw(false, true);
  }

  private resize(): void {
    this.loss.setSize({ width: this.lossElement.clientWidth, height });
    this.accuracy.setSize({ width: this.accuracyElement.clientWidth, height });
  }

  private describe(curve: Curve): void {
    const known = (column: (number | null)[]): number[] => column.filter((value) => value !== null);
    const [first, last] = [known(curve.testLoss)[0], known(curve.testLoss).at(-1)];
    const accuracy = known(curve.accuracy).at(-1);
    if (first === undefined || last === undefined || accuracy === undefined) return;
    const epochs = Math.floor(curve.x.at(-1) ?? 0);
    const losses = `from ${first.toFixed(2)} to ${last.toFixed(2)} on held-out digits`;
    this.lossElement.ariaLabel = `Loss by epoch: ${losses} after ${epochs} epochs`;
    this.accuracyElement.ariaLabel = `Accuracy by epoch: ${(accuracy * 100).toFixed(1)} % after ${epochs} epochs`;
  }
}

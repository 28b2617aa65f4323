// Draws 8×8 digits: thumbnails, and the wall of all held-out digits.
import { levelsOf, maxLevel, pixelCount } from "./data";
import type { Subset } from "./data";
import type { Evaluation } from "./evaluation";
import { onResize, themeColor } from "./theme";
import type { Color } from "./theme";

const side = 8;
/** One pixel of paper around each digit of the wall. */
const tile = side + 2;
/** Ways to lay 360 digits out, widest first. */
const wallColumns = [40, 36, 30, 24, 20, 18];
/** Screen pixels for each pixel of a digit, where there is room. */
const usualZoom = 2;

/** Paints levels in the ink of the page. */
export function paintDigit(canvas: HTMLCanvasElement, levels: Uint8Array): void {
  canvas.width = side;
  canvas.height = side;
  const context = canvas.getContext("2d");
  if (!context) return;
  const image = context.createImageData(side, side);
  const ink = themeColor("--ink");
  for (let pixel = 0; pixel < pixelCount; pixel++) {
    image.data.set([...ink, ((levels[pixel] ?? 0) / maxLevel) * 255], pixel * 4);
  }
  context.putImageData(image, 0, 0);
}

/** All held-out digits in one picture; those the network gets wrong stand out on a tinted ground. */
export class Wall {
  private test: Subset | null = null;
  private evaluation: Evaluation | null = null;

  constructor(private readonly canvas: HTMLCanvasElement) {
    onResize(canvas.parentElement ?? canvas, () => {
      this.paint();
    });
  }

  show(test: Subset, evaluation: Evaluation | null): void {
    this.test = test;
    this.evaluation = evaluation;
    this.paint();
  }

  paint(): void {
    const { canvas, test } = this;
    const context = canvas.getContext("2d");
    const room = canvas.parentElement?.clientWidth ?? 0;
    if (!test || !context || room === 0) return;
    const columns = wallColumns.find((count) => room >= count * tile * usualZoom) ?? 18;
    canvas.width = columns * tile;
    canvas.height = Math.ceil(test.count / columns) * tile;
    // A whole number of screen pixels for each pixel of a digit keeps them even, unless that wastes the room.
    const most = (room / canvas.width) * devicePixelRatio;
    const zoom = (most < usualZoom ? most : Math.floor(most)) / devicePixelRatio;
    canvas.style.width = `${canvas.width * zoom}px`;
    canvas.style.height = `${canvas.height * zoom}px`;
    const image = context.createImageData(canvas.width, canvas.height);
    const colors = { ink: themeColor("--ink"), wrong: themeColor("--accent"), tint: themeColor("--tint") };
    for (let row = 0; row < test.count; row++) {
      const left = (row % columns) * tile;
      const top = Math.floor(row / columns) * tile;
      const wrong = this.evaluation !== null && this.evaluation.guesses[row] !== test.labels[row];
      if (wrong) fillTile(image, left, top, colors.tint);
      const strength = this.evaluation && !wrong ? 0.62 : 1;
      const ink = wrong ? colors.wrong : colors.ink;
      stamp(image, left + 1, top + 1, levelsOf(test, row), ink, strength);
    }
    context.putImageData(image, 0, 0);
  }
}

function fillTile(image: ImageData, left: number, top: number, color: Color): void {
  for (let pixel = 0; pixel < tile * tile; pixel++) {
    const at = (top + Math.floor(pixel / tile)) * image.width + left + (pixel % tile);
    image.data.set([...color, 255], at * 4);
  }
}

/** Mixes a digit over what is there. */
function stamp(
  image: ImageData,
  left: number,
  top: number,
  levels: Uint8Array,
  ink: Color,
  strength: number,
): void {
  for (let pixel = 0; pixel < pixelCount; pixel++) {
    const at = ((top + Math.floor(pixel / side)) * image.width + left + (pixel % side)) * 4;
    const part = ((levels[pixel] ?? 0) / maxLevel) * strength;
    const opaque = (image.data[at + 3] ?? 0) > 0;
    ink.forEach((value, channel) => {
      const below = image.data[at + channel] ?? 0;
      image.data[at + channel] = opaque ? below + (value - below) * part : value;
    });
    if (!opaque) image.data[at + 3] = part * 255;
  }
}

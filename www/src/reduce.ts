// From pen strokes to the 8×8 levels of the data set: fit into a box, 32×32 bitmap, ink counted in 4×4 blocks.

import { between } from "./stroke";
import type { Point, Stroke } from "./stroke";

const side = 32;
const block = 4;
/** The data set's digits fill the height of the bitmap and somewhat more than this of its width. */
const box = { width: 18, height: side };
/** They also carry about the same ink, whatever pen wrote them: 4.9 of 16 on average. */
const inkTarget = Math.round((4.9 / 16) * side * side);
const radius = { thinnest: 1.6, first: 2.3, thickest: 4.4 };
/** A digit as narrow as a 1 is not stretched to the width of a 0 by more than this. */
const maxStretch = 1.6;

/** The 64 levels from 0 to 16, or null where nothing is drawn. */
export function reduce(strokes: readonly Stroke[]): Uint8Array | null {
  const drawn = strokes.filter((stroke) => stroke.length > 0);
  if (drawn.length === 0) return null;
  // The pen's width decides how much room the middle of the line has, and the line's length how wide a pen
  // makes the usual ink: a few rounds settle both.
  let pen = radius.first;
  let distances = new Float32Array(0);
  for (let round = 0; round < 4; round++) {
    distances = distancesTo(fit(drawn, pen));
    pen = penForInk(distances);
  }
  return countBlocks(distances, pen);
}

/** Moves and scales strokes so that a pen of this radius fills the box, centred in the bitmap. */
function fit(strokes: readonly Stroke[], pen: number): Stroke[] {
  const xs = strokes.flatMap((stroke) => stroke.map(({ x }) => x));
  const ys = strokes.flatMap((stroke) => stroke.map(({ y }) => y));
  const [left, right, top, bottom] = [minimum(xs), maximum(xs), minimum(ys), maximum(ys)];
  // Infinity for a dot or a straight line: then the other direction decides.
  const wide = (box.width - 2 * pen) / (right - left);
  const high = (box.height - 2 * pen) / (bottom - top);
  const least = Math.min(wide, high);
  // A single dot stays a dot.
  const scale = Number.isFinite(least) ? least * maxStretch : 0;
  const [scaleX, scaleY] = [Math.min(wide, scale), Math.min(high, scale)];
  const [middleX, middleY] = [(left + right) / 2, (top + bottom) / 2];
  return strokes.map((stroke) =>
    stroke.map(({ x, y }) => ({
      x: side / 2 + (x - middleX) * scaleX,
      y: side / 2 + (y - middleY) * scaleY,
    })),
  );
}

/** For each pixel of the bitmap how far its middle is from the nearest stroke. */
function distancesTo(strokes: readonly Stroke[]): Float32Array<ArrayBuffer> {
  const distances = new Float32Array(side * side).fill(Infinity);
  for (const stroke of strokes) {
    stroke.forEach((to, index) => {
      const from = stroke[index - 1] ?? to;
      for (let pixel = 0; pixel < distances.length; pixel++) {
        const middle = { x: (pixel % side) + 0.5, y: Math.floor(pixel / side) + 0.5 };
        distances[pixel] = Math.min(distances[pixel] ?? Infinity, distanceToSegment(middle, from, to));
      }
    });
  }
  return distances;
}

function distanceToSegment(point: Point, from: Point, to: Point): number {
  const along = { x: to.x - from.x, y: to.y - from.y };
  const length = along.x ** 2 + along.y ** 2;
  const part = length === 0 ? 0 : ((point.x - from.x) * along.x + (point.y - from.y) * along.y) / length;
  const nearest = between(from, to, Math.min(1, Math.max(0, part)));
  return Math.hypot(point.x - nearest.x, point.y - nearest.y);
}

function penForInk(distances: Float32Array): number {
  const wanted = distances.slice().sort()[inkTarget] ?? radius.first;
  return Math.min(radius.thickest, Math.max(radius.thinnest, wanted));
}

function countBlocks(distances: Float32Array, pen: number): Uint8Array {
  const levels = new Uint8Array((side / block) ** 2);
  distances.forEach((distance, pixel) => {
    if (distance > pen) return;
    const column = Math.floor((pixel % side) / block);
    const row = Math.floor(pixel / side / block);
    const index = row * (side / block) + column;
    levels[index] = (levels[index] ?? 0) + 1;
  });
  return levels;
}

// Not Math.min(...values): a long drawing has more points than a call takes arguments.
const minimum = (values: number[]): number => values.reduce((a, b) => Math.min(a, b), Infinity);
const maximum = (values: number[]): number => values.reduce((a, b) => Math.max(a, b), -Infinity);

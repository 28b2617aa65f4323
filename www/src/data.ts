// The digits: loading, the two ways to hold some out, and shuffled batches.

export const imageCount = 1797;
export const pixelCount = 64;
export const testCount = 360;
/** Pixels are whole levels from 0 to 16. */
export const maxLevel = 16;

/** "shuffled": a random sample is held out. "writers": the end of the file is, which other people wrote. */
export type SplitName = "shuffled" | "writers";

export interface Subset {
  /** [count, 64], from 0 to 1. */
  images: Float32Array;
  labels: Int32Array;
  count: number;
}

export interface Split {
  name: SplitName;
  train: Subset;
  test: Subset;
}

export interface Digits {
  /** Levels, image after image. */
  pixels: Uint8Array;
  labels: Uint8Array;
}

export class DataError extends Error {
  override readonly name = "DataError";
}

/** Reads digits.bin, which lies beside the page. */
export async function loadDigits(): Promise<Digits> {
  const url = new URL("digits.bin", document.baseURI);
  let response: Response;
  try {
    response = await fetch(url);
  } catch (cause) {
    throw new DataError(`${url.pathname} cannot be fetched`, { cause });
  }
  if (!response.ok) throw new DataError(`${url.pathname} answers with status ${response.status}`);
  const bytes = new Uint8Array(await response.arrayBuffer());
  const expected = imageCount * (pixelCount + 1);
  // Some servers answer any address with their start page.
  if (bytes.length !== expected) {
    throw new DataError(`${url.pathname} has ${bytes.length} bytes, not ${expected}: not the digits`);
  }
  return {
    pixels: bytes.subarray(0, imageCount * pixelCount),
    labels: bytes.subarray(imageCount * pixelCount),
  };
}

/** Holds 360 of the 1,797 out. The shuffled split is the same on every visit, whatever the training seed. */
export function splitDigits(digits: Digits, name: SplitName): Split {
  const order = Uint32Array.from({ length: imageCount }, (_, index) => index);
  if (name === "shuffled") shuffle(order, randomSource(1797));
  const boundary = imageCount - testCount;
  return {
    name,
    train: subset(digits, order.subarray(0, boundary)),
    test: subset(digits, order.subarray(boundary)),
  };
}

function subset(digits: Digits, indices: Uint32Array): Subset {
  const images = new Float32Array(indices.length * pixelCount);
  const labels = new Int32Array(indices.length);
  indices.forEach((index, row) => {
    const levels = digits.pixels.subarray(index * pixelCount, (index + 1) * pixelCount);
    images.set(toUnit(levels), row * pixelCount);
    labels[row] = digits.labels[index] ?? 0;
  });
  return { images, labels, count: indices.length };
}

/** Levels of 0 to 16 as numbers from 0 to 1. */
export function toUnit(levels: Uint8Array): Float32Array {
  return Float32Array.from(levels, (level) => level / maxLevel);
}

/** The levels of one image of a subset. */
export function levelsOf(from: Subset, row: number): Uint8Array {
  const image = from.images.subarray(row * pixelCount, (row + 1) * pixelCount);
  return Uint8Array.from(image, (value) => Math.round(value * maxLevel));
}

/** Xorshift with 32 bits of state: numbers in [0, 1) that a seed fixes, in every browser alike. */
export function randomSource(seed: number): () => number {
  // An odd multiplier spreads small seeds; the state must not be 0.
  let state = Math.imul(seed + 1, 0x9e3779b1) | 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** Fisher and Yates, in place. */
function shuffle(values: Uint32Array, random: () => number): void {
  for (let last = values.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    const moved = values[last] ?? 0;
    values[last] = values[other] ?? 0;
    values[other] = moved;
  }
}

/** Endless batches, each epoch in a new order; the last batch of an epoch holds what is left. */
export class Batches {
  private readonly order: Uint32Array;
  private next: number;

  constructor(
    private readonly from: Subset,
    private readonly size: number,
    private readonly random: () => number,
  ) {
    this.order = Uint32Array.from({ length: from.count }, (_, index) => index);
    this.next = from.count;
  }

  get perEpoch(): number {
    return Math.ceil(this.from.count / this.size);
  }

  take(): Subset {
    if (this.next >= this.from.count) {
      shuffle(this.order, this.random);
      this.next = 0;
    }
    const rows = this.order.subarray(this.next, this.next + this.size);
    this.next += rows.length;
    const images = new Float32Array(rows.length * pixelCount);
    const labels = new Int32Array(rows.length);
    rows.forEach((row, index) => {
      images.set(this.from.images.subarray(row * pixelCount, (row + 1) * pixelCount), index * pixelCount);
      labels[index] = this.from.labels[row] ?? 0;
    });
    return { images, labels, count: rows.length };
  }
}

// The record of a run, point by point.

/** Columns of equal length; x counts epochs. */
export interface Curve {
  x: number[];
  trainLoss: (number | null)[];
  testLoss: (number | null)[];
  accuracy: (number | null)[];
}

/** Adds a point, or completes the last one where it has the same x. */
export function append(curve: Curve, point: { x: number } & Partial<Record<keyof Curve, number>>): void {
  if (curve.x.at(-1) !== point.x) {
    curve.x.push(point.x);
    for (const column of [curve.trainLoss, curve.testLoss, curve.accuracy]) column.push(null);
  }
  const row = curve.x.length - 1;
  if (point.trainLoss !== undefined) curve.trainLoss[row] = point.trainLoss;
  if (point.testLoss !== undefined) curve.testLoss[row] = point.testLoss;
  if (point.accuracy !== undefined) curve.accuracy[row] = point.accuracy;
}

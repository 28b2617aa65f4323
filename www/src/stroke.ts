// Pen strokes: points in parts of the pad's side, and the curves through them.

export interface Point {
  x: number;
  y: number;
}
export type Stroke = readonly Point[];

/** Cuts the corners twice: a quick hand leaves few points, and they should not show. */
export function smooth(stroke: Stroke): Stroke {
  return cutCorners(cutCorners(stroke));
}

/** Steps from cell to cell as a hand would write them: each point moves towards its neighbours, ends stay. */
export function relax(stroke: Stroke): Stroke {
  return average(average(stroke));
}

function average(stroke: Stroke): Stroke {
  return stroke.map((point, index) => {
    const [before, after] = [stroke[index - 1], stroke[index + 1]];
    return before && after ? between(point, between(before, after, 0.5), 0.5) : point;
  });
}

function cutCorners(stroke: Stroke): Stroke {
  const first = stroke[0];
  const last = stroke.at(-1);
  if (stroke.length < 3 || !first || !last) return stroke;
  const cut = [first];
  stroke.slice(1).forEach((to, index) => {
    const from = stroke[index] ?? to;
    cut.push(between(from, to, 0.25), between(from, to, 0.75));
  });
  cut.push(last);
  return cut;
}

export function between(from: Point, to: Point, part: number): Point {
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
}

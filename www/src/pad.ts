// The drawing pad: pen strokes from mouse, finger, stylus or keyboard, or a digit of the data set to look at.
import { maxLevel } from "./data";
import { reduce } from "./reduce";
import { relax, smooth } from "./stroke";
import type { Point, Stroke } from "./stroke";
import { onResize, themeValue } from "./theme";

const cells = 8;
/** Width of the pen and distance of two points worth keeping, as parts of the pad's side. */
const penWidth = 0.085;
const spacing = 0.008;

const moves: Record<string, [columns: number, rows: number] | undefined> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
  Home: [-1, -1],
  PageUp: [1, -1],
  End: [-1, 1],
  PageDown: [1, 1],
};

interface Drawn {
  points: Point[];
  /** Made cell by cell with the arrow keys. */
  stepped: boolean;
}

export class Pad {
  private strokes: Drawn[] = [];
  /** The stroke that is being drawn. */
  private open: Drawn | null = null;
  private sample: Uint8Array | null = null;
  private cursor = { column: 3, row: 1 };
  private penDown = false;
  private keyboard = false;

  /** `changed` gets the 64 levels from 0 to 16, or null for an empty pad; `say` what the keyboard did. */
  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly changed: (levels: Uint8Array | null) => void,
    private readonly say: (words: string) => void,
  ) {
    canvas.addEventListener("pointerdown", this.pointerDown);
    canvas.addEventListener("pointermove", this.pointerMove);
    canvas.addEventListener("pointerup", this.lift);
    canvas.addEventListener("pointercancel", this.lift);
    canvas.addEventListener("keydown", this.keyDown);
    canvas.addEventListener("focus", () => {
      this.keyboard = canvas.matches(":focus-visible");
      this.paint();
    });
    canvas.addEventListener("blur", () => {
      this.keyboard = false;
      this.lift();
    });
    onResize(canvas, () => {
      this.paint();
    });
  }

  clear(): void {
    this.strokes = [];
    this.lift();
    this.sample = null;
    this.update();
  }

  /** Shows a digit of the data set as it is; the next stroke takes its place. */
  load(levels: Uint8Array): void {
    this.strokes = [];
    this.lift();
    this.sample = levels;
    this.update();
  }

  private update(): void {
    this.paint();
    this.changed(this.sample ?? reduce(this.curves));
  }

  private get curves(): Stroke[] {
    return this.strokes.map(({ points, stepped }) => smooth(stepped ? relax(points) : points));
  }

  private readonly pointerDown = (event: PointerEvent): void => {
    if (event.button !== 0 || !event.isPrimary) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.keyboard = false;
    this.lift();
    this.begin(this.pointOf(event), false);
  };

  private readonly pointerMove = (event: PointerEvent): void => {
    if (!this.open || !this.canvas.hasPointerCapture(event.pointerId)) return;
    const events = event.getCoalescedEvents();
    for (const step of events.length > 0 ? events : [event]) this.extend(this.pointOf(step));
    this.update();
  };

  private readonly lift = (): void => {
    this.open = null;
    this.penDown = false;
    this.paint();
  };

  private begin(point: Point, stepped: boolean): void {
    this.sample = null;
    this.open = { points: [point], stepped };
    this.strokes.push(this.open);
    this.update();
  }

  private extend(point: Point): void {
    const points = this.open?.points;
    const last = points?.at(-1);
    if (last && Math.hypot(point.x - last.x, point.y - last.y) >= spacing) points?.push(point);
  }

  private pointOf(event: PointerEvent): Point {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    const inside = (value: number): number => Math.min(1, Math.max(0, value));
    return { x: inside((event.clientX - left) / width), y: inside((event.clientY - top) / height) };
  }

  private readonly keyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = moves[event.key];
    this.keyboard = true;
    if (move) this.moveCursor(...move);
    else if (event.key === " " || event.key === "Enter") this.togglePen();
    else if (event.key === "Backspace" || event.key === "Delete") this.takeBack();
    else return;
    event.preventDefault();
  };

  private moveCursor(columns: number, rows: number): void {
    const inside = (value: number): number => Math.min(cells - 1, Math.max(0, value));
    this.cursor = { column: inside(this.cursor.column + columns), row: inside(this.cursor.row + rows) };
    if (this.penDown) {
      this.extend(this.cursorPoint);
      this.update();
    } else {
      this.paint();
    }
    this.sayCursor();
  }

  private togglePen(): void {
    if (this.penDown) {
      this.lift();
    } else {
      this.penDown = true;
      this.begin(this.cursorPoint, true);
    }
    this.sayCursor();
  }

  private takeBack(): void {
    this.lift();
    this.sample = null;
    this.strokes.pop();
    this.update();
    this.say(`Last stroke taken back, ${this.strokes.length} left.`);
  }

  private get cursorPoint(): Point {
    return { x: (this.cursor.column + 0.5) / cells, y: (this.cursor.row + 0.5) / cells };
  }

  private sayCursor(): void {
    const pen = this.penDown ? "pen down" : "pen up";
    this.say(`Row ${this.cursor.row + 1}, column ${this.cursor.column + 1}, ${pen}.`);
  }

  /** Paints everything anew; also after a change of the theme. */
  paint(): void {
    const { canvas } = this;
    const context = canvas.getContext("2d");
    const size = Math.round(canvas.clientWidth * devicePixelRatio);
    if (!context || size === 0) return;
    canvas.width = size;
    canvas.height = size;
    if (this.sample) this.paintSample(context, this.sample, size / cells);
    this.paintGrid(context, size);
    this.paintStrokes(context, size);
    if (this.keyboard) this.paintCursor(context, size / cells);
  }

  private paintSample(context: CanvasRenderingContext2D, levels: Uint8Array, cell: number): void {
    context.fillStyle = themeValue("--ink");
    levels.forEach((level, index) => {
      context.globalAlpha = level / maxLevel;
      const [column, row] = [index % cells, Math.floor(index / cells)];
      const [left, top] = [Math.round(column * cell), Math.round(row * cell)];
      context.fillRect(left, top, Math.round((column + 1) * cell) - left, Math.round((row + 1) * cell) - top);
    });
    context.globalAlpha = 1;
  }

  private paintGrid(context: CanvasRenderingContext2D, size: number): void {
    context.fillStyle = themeValue("--rule");
    const line = Math.max(1, Math.round(devicePixelRatio));
    for (let index = 1; index < cells; index++) {
      const at = Math.round((index * size) / cells);
      context.fillRect(at, 0, line, size);
      context.fillRect(0, at, size, line);
    }
  }

  private paintStrokes(context: CanvasRenderingContext2D, size: number): void {
    context.strokeStyle = themeValue("--ink");
    context.lineWidth = penWidth * size;
    context.lineCap = "round";
    context.lineJoin = "round";
    for (const curve of this.curves) {
      context.beginPath();
      // From the first point to itself: a stroke of one point is a dot.
      for (const { x, y } of [...curve.slice(0, 1), ...curve]) context.lineTo(x * size, y * size);
      context.stroke();
    }
  }

  private paintCursor(context: CanvasRenderingContext2D, cell: number): void {
    const { column, row } = this.cursor;
    const line = 3 * devicePixelRatio;
    context.strokeStyle = themeValue("--accent");
    context.lineWidth = line;
    context.setLineDash(this.penDown ? [] : [line * 1.5, line]);
    context.strokeRect(column * cell + line / 2, row * cell + line / 2, cell - line, cell - line);
    context.setLineDash([]);
  }
}

// The site as it would be published, and how its pages look.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "vite";
import { buildLab } from "../../scripts/build/lab.mjs";
import { root } from "../../scripts/lib/process.mjs";

/** Builds the demo and the kernel lab into a new folder; `remove()` deletes it. */
export async function buildSite() {
  await buildLab();
  const folder = mkdtempSync(join(tmpdir(), "wgrad-page-"));
  const configFile = join(root, "www", "vite.config.ts");
  await build({ configFile, logLevel: "error", build: { outDir: folder, emptyOutDir: true } });
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** In a page: its width, its background's luminance and the texts with less contrast than WCAG AA asks for. */
export function inspectLooks() {
  const parse = (color) => {
    const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const channel = (value) => (value <= 10.31 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ({ r, g, b }) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ground = (element) => {
    const color = parse(getComputedStyle(element).backgroundColor);
    return color.a > 0 || !element.parentElement ? color : ground(element.parentElement);
  };
  const faint = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility() || element.closest(".visually-hidden, :disabled")) continue;
    const style = getComputedStyle(element);
    const [one, other] = [luminance(parse(style.color)), luminance(ground(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (contrast < (large ? 3 : 4.5)) faint.push(`${element.outerHTML.slice(0, 80)}: ${contrast.toFixed(2)}`);
  }
  const paper = luminance(ground(document.body));
  return { wide: document.documentElement.scrollWidth, paper, faint };
}

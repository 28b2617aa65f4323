// The page's colours for what is painted on canvases, and when to paint anew.

export type Color = [red: number, green: number, blue: number];

/** The value of a custom property of the page, for example "--ink". */
export function themeValue(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The same as numbers; the properties are written as #rrggbb. */
export function themeColor(name: string): Color {
  const value = Number.parseInt(themeValue(name).slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** Calls back when the system switches between light and dark. */
export function onThemeChange(repaint: () => void): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
}

/** Calls back when an element has another size, in the frame after: painting may change sizes again. */
export function onResize(element: Element, repaint: () => void): void {
  let due = false;
  const observer = new ResizeObserver(() => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      repaint();
    });
  });
  observer.observe(element);
}

// Finds the Chromium and the driver that the tests run in.
import { existsSync } from "node:fs";
import { find } from "./process.mjs";

const macChrome = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome";

/** The path of Chromium or Chrome, or null. The environment variable CHROME goes first. */
export function findChromium() {
  if (process.env.CHROME) return process.env.CHROME;
  const found = find("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome");
  return found ?? (existsSync(macChrome) ? macChrome : null);
}

/** The path of ChromeDriver, or null. The environment variable CHROMEDRIVER goes first. */
export function findChromedriver() {
  return process.env.CHROMEDRIVER || find("chromedriver");
}

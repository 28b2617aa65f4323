// Opens a page in Chromium with its software WebGPU adapter. No browser is an error: a test never skips for it.
import { chromium } from "playwright-core";
import { findChromium } from "../../scripts/lib/browser.mjs";
import { serve } from "./server.mjs";

// --no-sandbox: the sandbox does not start as root, as in a container.
const launchArguments = [
  "--no-sandbox",
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
  "--enable-features=Vulkan",
  "--ignore-gpu-blocklist",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];

/**
 * Launches the browser.
 * @param {string[]} [extraArguments] further command-line arguments, for example "--disable-webgpu"
 * @returns {Promise<import("playwright-core").Browser>}
 */
export async function launchBrowser(extraArguments = []) {
  const executablePath = findChromium();
  if (!executablePath) {
    throw new Error("no Chromium or Chrome on the PATH: run `node scripts/setup.mjs --tests`, or set CHROME");
  }
  return chromium.launch({ executablePath, headless: true, args: [...launchArguments, ...extraArguments] });
}

/**
 * Serves folders (see server.mjs) and opens one of their pages.
 * @param {{ folders?: Record<string, string>, path?: string, args?: string[] }} [options] `path`: without a leading
 *   slash, an empty page by default
 * @returns `page`; `context` and `browser`; `url` of the server; `problems`, the texts of uncaught errors and of
 *   console errors so far; `close()`, which ends all of it
 */
export async function openPage({ folders = {}, path = "blank.html", args = [] } = {}) {
  const closers = [];
  const close = async () => {
    while (closers.length > 0) await closers.pop()();
  };
  try {
    const server = await serve(folders);
    closers.push(() => server.close());
    const browser = await launchBrowser(args);
    closers.push(() => browser.close());
    const context = await browser.newContext();
    const page = await context.newPage();
    const problems = [];
    page.on("pageerror", (error) => problems.push(String(error.stack ?? error)));
    page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    await page.goto(server.url + path);
    return { page, context, browser, url: server.url, problems, close };
  } catch (error) {
    await close();
    throw error;
  }
}

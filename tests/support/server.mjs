// A static HTTP server for tests: files of given folders, as a cross-origin isolated page.
import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, resolve, sep } from "node:path";
import { pipeline } from "node:stream";

const contentTypes = {
  ".bin": "application/octet-stream",
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".map": "application/json; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

// With these a page has SharedArrayBuffer and fine timers.
const isolation = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-store",
};

const blankPage = '<!doctype html><meta charset="utf-8"><title>blank</title>';

/**
 * Serves folders on a free port of this machine.
 * `folders` maps URL prefixes to folders, the longest prefix first: { "/": "www/dist", "/pkg/": "dist" }.
 * /blank.html is an empty page unless a folder has one.
 * @returns {Promise<{ url: string, close(): Promise<void> }>} `url` ends in a slash.
 */
export async function serve(folders) {
  const mounts = Object.entries(folders)
    .map(([prefix, folder]) => ({ prefix: `/${prefix}/`.replace(/\/+/g, "/"), folder: resolve(folder) }))
    .sort((a, b) => b.prefix.length - a.prefix.length);
  const server = createServer((request, response) => answer(mounts, request, response));
  await new Promise((done, fail) => server.once("error", fail).listen(0, "127.0.0.1", done));
  const close = () =>
    new Promise((done) => {
      server.close(done);
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${server.address().port}/`, close };
}

function answer(mounts, request, response) {
  const path = pathOf(request.url);
  const file = path && fileFor(mounts, path);
  if (file) {
    const type = contentTypes[extname(file)] ?? "application/octet-stream";
    response.writeHead(200, { ...isolation, "Content-Type": type });
    pipeline(createReadStream(file), response, () => {});
  } else if (path === "/favicon.ico") {
    // The browser asks by itself; a 404 would stand among the page's errors.
    response.writeHead(204, isolation).end();
  } else if (path === "/blank.html") {
    response.writeHead(200, { ...isolation, "Content-Type": contentTypes[".html"] }).end(blankPage);
  } else {
    response
      .writeHead(404, { ...isolation, "Content-Type": "text/plain" })
      .end(`not found: ${request.url}\n`);
  }
}

function pathOf(url) {
  try {
    const path = decodeURIComponent(new URL(url, "http://localhost").pathname);
    return path.includes("\0") ? null : path;
  } catch {
    return null;
  }
}

function fileFor(mounts, path) {
  for (const { prefix, folder } of mounts) {
    if (!path.startsWith(prefix)) continue;
    const wanted = resolve(join(folder, path.slice(prefix.length)));
    if (wanted !== folder && !wanted.startsWith(folder + sep)) continue;
    for (const file of [wanted, join(wanted, "index.html")]) {
      if (statSync(file, { throwIfNoEntry: false })?.isFile()) return file;
    }
  }
  return null;
}

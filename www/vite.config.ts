// The demo, a plain page that uses the built package as its users do, and the kernel lab.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const page = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const repository = fileURLToPath(new URL("..", import.meta.url));

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  // Relative, so that the built page works in any folder of a site.
  base: "./",
  resolve: {
    alias: [{ find: /^wgrad$/, replacement: fileURLToPath(new URL("../dist/index.js", import.meta.url)) }],
  },
  server: {
    open: false,
    // dist and node_modules lie above the page's root.
    fs: { allow: [repository] },
  },
  worker: { format: "es" },
  build: {
    target: "es2022",
    outDir: "dist",
    emptyOutDir: true,
    rolldownOptions: { input: [page("index.html"), page("lab.html")] },
  },
});

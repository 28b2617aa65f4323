// node vite.js <package> build <folder> | node vite.js <package> dev <cache folder>: the URL is the first line
import { fileURLToPath } from "node:url";

const [name, command, folder] = process.argv.slice(2);
const { build, createServer } = await import(name);
const root = fileURLToPath(new URL(".", import.meta.url));
const common = { root, configFile: false, cacheDir: folder, logLevel: "warn" };
if (command === "build") {
  const input = ["index.html", "slim.html", "slim-vite.html", "workers.html"];
  const options = {
    outDir: folder,
    emptyOutDir: true,
    chunkSizeWarningLimit: 5000,
    rollupOptions: { input },
  };
  await build({ ...common, build: options });
} else {
  const server = await createServer({ ...common, server: { host: "127.0.0.1", port: 0, watch: null } });
  await server.listen();
  const { port } = server.httpServer.address();
  console.log(`http://127.0.0.1:${port}/`);
}

// node webpack.js <folder>: what webpack says goes to standard error
import { fileURLToPath } from "node:url";
import webpack from "webpack";

const compiler = webpack({
  context: fileURLToPath(new URL(".", import.meta.url)),
  mode: "production",
  entry: { main: "./main.js", slim: "./slim.js", workers: "./workers.js" },
  output: { path: process.argv[2] },
  performance: { hints: false },
});
compiler.run((error, stats) => {
  if (error) throw error;
  const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
  for (const { message } of [...errors, ...warnings]) console.error(message);
  if (errors.length > 0) process.exitCode = 1;
  compiler.close(() => {});
});

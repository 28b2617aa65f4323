// Writes what was found as FEATURES.md.

const heads = {
  Tensor: [
    "Operations",
    "Methods of `Tensor`. `a.add(2)` is `a.add(b)` with a scalar; other options are in the API documentation.",
  ],
  Engine: ["Making tensors", "Methods of `Engine`."],
  "engine.kernels": ["Kernels without the tape", "Methods of `engine.kernels`: nothing is recorded."],
  "engine.optim": ["Optimizers", "Methods of `engine.optim`. Types are those of the parameters."],
};

const preface = `# Features

What each operation takes and does, found by trying it: \`npm run features\` writes this page from the built package, and a
test fails when it is out of date. A type that is not named gives a \`DTypeError\` or an \`UnsupportedError\`. f16 is a storage type: arithmetic is in f32.
`;

const list = (names) => (names.length > 0 ? names.join(", ") : "—");

/** The inputs that gradients reach: once where it is the same everywhere, or else for each device and type. */
function gradientText(devices) {
  const found = Object.entries(devices).flatMap(([device, types]) =>
    Object.entries(types)
      .filter(([dtype]) => dtype === "f32" || dtype === "f16")
      .map(([dtype, inputs]) => ({ where: `${device} ${dtype}`, inputs: list(inputs) })),
  );
  const kinds = new Set(found.map(({ inputs }) => inputs));
  if (kinds.size <= 1) return [...kinds][0] ?? "—";
  return found.map(({ where, inputs }) => `${where}: ${inputs}`).join("; ");
}

function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const line = (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  return [line(rows[0]), line(widths.map((width) => "-".repeat(width))), ...rows.slice(1).map(line)].join(
    "\n",
  );
}

/** The page. `cpu` and `webgpu` are what `probe` gave there. */
export function featuresDocument(cpu, webgpu) {
  const parts = cpu.map(({ title, operations }, section) => {
    const [head, text] = heads[title];
    const tape = title === "Tensor";
    const rows = operations.map(({ call, types }, k) => {
      const devices = { CPU: types, WebGPU: webgpu[section].operations[k].types };
      const works = Object.values(devices).map((found) => list(Object.keys(found)));
      return [`\`${call}\``, ...works, ...(tape ? [gradientText(devices)] : [])];
    });
    const columns = ["call", "CPU", "WebGPU", ...(tape ? ["gradients reach"] : [])];
    return `## ${head}\n\n${text}\n\n${table([columns, ...rows])}\n`;
  });
  return [preface, ...parts].join("\n");
}

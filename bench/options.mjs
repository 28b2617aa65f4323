// The command line of the benchmarks: --name=value and --name.

/** The options that were given over these defaults; an unknown one is an error, and so is a regular expression that is none. */
export function readOptions(defaults) {
  const options = { ...defaults };
  for (const argument of process.argv.slice(2)) {
    const [, name, value] = /^--([a-z]+)(?:=(.*))?$/s.exec(argument) ?? [];
    if (
      name === undefined ||
      !(name in defaults) ||
      (typeof defaults[name] === "string") !== (value !== undefined)
    ) {
      const known = Object.entries(defaults).map(
        ([key, d]) => `--${key}${typeof d === "string" ? "=…" : ""}`,
      );
      throw new Error(`unknown option ${argument}; there are ${known.join(", ")}`);
    }
    options[name] = value ?? true;
  }
  if ("only" in options) new RegExp(options.only);
  return options;
}

// What the page says and offers when something fails.

export type Remedy = "cpu" | "auto" | "new-engine" | "load" | "reset" | "reload";

export interface Fault {
  /** The error's class. */
  kind: string;
  message: string;
  advice: string;
  remedies: Remedy[];
}

export const remedyWords: Record<Remedy, string> = {
  cpu: "Switch to the CPU",
  auto: "Choose automatically",
  "new-engine": "Start a new engine",
  load: "Try again",
  reset: "Reset the network",
  reload: "Reload the page",
};

const advices: Record<string, Pick<Fault, "advice" | "remedies"> | undefined> = {
  DataError: {
    advice:
      "The digits belong beside this page, as digits.bin. Check the connection or the server, then try again.",
    remedies: ["load"],
  },
  UnsupportedError: {
    advice:
      "WebGPU needs a browser that has it, a page on https or localhost, and a graphics driver the browser trusts. The CPU trains the same network.",
    remedies: ["cpu", "auto"],
  },
  DeviceLostError: {
    advice: "The weights were on the device that went away, so training begins anew on the next one.",
    remedies: ["new-engine", "cpu"],
  },
  TrainingError: {
    advice: "Steps of this size overshoot. Choose a lower learning rate, then reset.",
    remedies: ["reset"],
  },
};

export function faultOf(error: unknown): Fault {
  const kind = kindOf(error);
  const message = error instanceof Error ? error.message : String(error);
  const { advice, remedies } = advices[kind] ?? {
    advice: "This should not happen. A new engine often helps; otherwise reload the page.",
    remedies: ["new-engine", "cpu", "reload"],
  };
  return { kind, message, advice, remedies };
}

/** wgrad's errors carry their class in `code` too, which a minifier leaves alone. */
export function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return "Error";
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}

/** What `engine.lost` tells, as the error that an operation would meet. */
export function lostFault({ reason, message }: { reason: string; message: string }): Fault {
  const known = faultOf(
    Object.assign(new Error(message || "the GPU device is gone"), { code: "DeviceLostError" }),
  );
  return { ...known, message: `${known.message} (reason: ${reason})` };
}

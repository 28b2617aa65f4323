// Where the time goes: the kernels of some steps as a table, and their calls as a trace.
import type { KernelProfile, Profile } from "wgrad";
import { element, make } from "./dom";
import type { Measurement } from "./trainer";
import { percent, write } from "./view";

export function showProfileWords(words: string): void {
  write("profile-words", words);
}

/** Shows what was measured; null takes it away, since it was another engine's. */
export function showProfile(measured: Measurement | null): void {
  element("profile-table", HTMLElement).replaceChildren(...(measured ? [table(measured)] : []));
  showProfileWords(measured ? summary(measured) : "");
  const link = element("trace", HTMLAnchorElement);
  URL.revokeObjectURL(link.href);
  const trace = measured?.profile.trace();
  link.hidden = !trace?.traceEvents.length;
  if (trace) link.href = URL.createObjectURL(new Blob([JSON.stringify(trace)], { type: "application/json" }));
}

function summary({ profile, steps, took }: Measurement): string {
  const calls = `${profile.calls.length.toLocaleString("en")} calls of kernels`;
  const all = `${steps} steps took ${took.toFixed(1)} ms`;
  if (profile.time === null) return `${all}: ${calls}, without times, since this device has no timestamps.`;
  const inside = `${profile.time.toFixed(1)} ms of it in ${calls}`;
  return `${all}: ${inside}, the rest in preparing them. Perfetto and chrome://tracing open the trace.`;
}

function table({ profile, steps }: Measurement): HTMLTableElement {
  const words = `${steps} training steps, forward, backward and AdamW`;
  const caption = make("caption", { className: "visually-hidden" }, words);
  const names = ["Kernel", "Calls", "Time", "Share", "Rate"];
  const heads = names.map((name) => make("th", { scope: "col" }, name));
  const rows = profile.kernels.map((kernel) => row(kernel, profile.time));
  if (profile.time) rows[0]?.classList.add("best");
  return make(
    "table",
    { className: "profile" },
    caption,
    make("thead", {}, make("tr", {}, ...heads)),
    make("tbody", {}, ...rows),
    make("tfoot", {}, total(profile)),
  );
}

function row(kernel: KernelProfile, all: number | null): HTMLTableRowElement {
  const { time, calls } = kernel;
  const share = time !== null && all ? time / all : null;
  const bar = make("span", { className: "bar" });
  bar.style.setProperty("scale", `${share ?? 0} 1`);
  // A long name may break where a word of it ends.
  const name = kernel.kernel.split(/(?<=_)/).flatMap((part) => [part, make("wbr")]);
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, make("code", {}, ...name)),
    make("td", {}, calls.toLocaleString("en")),
    make("td", {}, time === null ? "–" : `${time.toFixed(2)} ms`),
    make(
      "td",
      {},
      make(
        "span",
        { className: "share" },
        make("span", { className: "bar-track" }, bar),
        share === null ? "–" : percent(share),
      ),
    ),
    make("td", {}, rate(kernel)),
  );
}

function total({ calls, time }: Profile): HTMLTableRowElement {
  const texts = [
    calls.length.toLocaleString("en"),
    time === null ? "–" : `${time.toFixed(2)} ms`,
    time ? percent(1) : "–",
    // Of all kernels together a rate says nothing.
    "",
  ];
  const cells = texts.map((text) => make("td", {}, text));
  return make("tr", {}, make("th", { scope: "row" }, "All"), ...cells);
}

/** Arithmetic where it is counted, else bytes: what bounds the kernel. */
function rate({ throughput, bandwidth }: KernelProfile): string {
  if (throughput !== null) return `${figure(throughput)} GFLOP/s`;
  return bandwidth === null ? "–" : `${figure(bandwidth)} GB/s`;
}

/** A rate in three digits: there are small ones, and large ones. */
function figure(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 20 });
}

// Starts the kernel lab and wires its controls.
import { element, make } from "../dom";
import "../style.css";
import "../styles/lab.css";
import { Form } from "./form";
import type { Failure, Message } from "./messages";
import { loadRegistry } from "./registry";
import { Results } from "./results";
import { Runner } from "./runner";
import { Shader } from "./shader";

const choices = element("choices", HTMLFormElement);
const button = element("run", HTMLButtonElement);
const alert = element("alert", HTMLElement);
const results = new Results();
const runner = new Runner(hear);
let form: Form | null = null;
let shader: Shader | null = null;
let running = false;

function say(words: string): void {
  element("status", HTMLElement).textContent = words;
}

function rest(words: string): void {
  running = false;
  button.textContent = "Run";
  choices.ariaBusy = "false";
  say(words);
}

function fail({ kind, words }: Failure): void {
  alert.replaceChildren(make("p", {}, make("strong", {}, kind), ` ${words}`));
  rest("Nothing was run.");
}

function run({ request }: Form): void {
  running = true;
  button.textContent = "Stop";
  choices.ariaBusy = "true";
  alert.replaceChildren();
  say("Starting …");
  results.clear();
  runner.run(request);
}

function hear(message: Message): void {
  if (message.type === "status") say(message.words);
  else if (message.type === "outcome") {
    results.show(message.device, message.title, message.outcome);
    if (message.device === "webgpu") shader?.showUsed(message.outcome.variant);
  } else if (message.type === "device-failure") {
    results.showFailure(message.device, message.failure);
    if (message.device === "webgpu") shader?.showUsed(null);
  } else if (message.type === "failure") fail(message.failure);
  else finish(message.compared);
}

function finish(compared: boolean): void {
  const note = compared
    ? "Errors are in multiples of what is tolerated."
    : "Too large to compare here (see below): timed only.";
  element("results-note", HTMLElement).textContent = note;
  const { over } = results;
  const verdict = over > 0 ? `${over} ${over > 1 ? "outputs are" : "output is"} over the tolerance` : null;
  rest(`Done: ${verdict ?? (compared ? "every error is within the tolerance" : "timed, not compared")}.`);
}

choices.noValidate = true;
choices.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!form) return;
  if (running) {
    runner.stop();
    rest("Stopped.");
  } else run(form);
});
element("kernel", HTMLSelectElement).addEventListener("change", () => {
  form?.showKernel();
  shader?.showKernel();
});
element("flags", HTMLElement).addEventListener("change", () => shader?.show());
element("inputs", HTMLSelectElement).addEventListener("change", () => form?.showNote());
const failWith = (error: unknown): void => {
  fail(
    error instanceof Error
      ? { kind: error.name, words: error.message }
      : { kind: "Error", words: String(error) },
  );
};
window.addEventListener("error", ({ error, message }) => {
  failWith(error ?? message);
});
window.addEventListener("unhandledrejection", ({ reason }) => {
  failWith(reason);
});

form = new Form(await loadRegistry());
shader = new Shader(form);
button.disabled = false;
say("Ready.");

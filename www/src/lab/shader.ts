// The text of the shader, and which variant of it.
import { element, make } from "../dom";
import { select } from "./form";
import type { Form } from "./form";
import { shaderText } from "./registry";
import type { Variant } from "./registry";

const strategy = element("strategy", HTMLSelectElement);
const scalar = element("scalar", HTMLSelectElement);
const tuning = element("tuning", HTMLElement);
const code = element("shader", HTMLElement);
const badge = element("used", HTMLElement);

export class Shader {
  #form: Form;
  /** The variant that ran last, of the kernel that is chosen. */
  #used: Variant | null = null;

  constructor(form: Form) {
    this.#form = form;
    for (const part of [strategy, scalar, tuning])
      part.addEventListener("change", () => {
        this.show();
      });
    this.showKernel();
  }

  /** Builds the switches of the chosen kernel. */
  showKernel(): void {
    this.#used = null;
    const { strategies, scalars, groups } = this.#form.kernel;
    strategy.replaceChildren(...strategies.map((name) => new Option(name)));
    scalar.replaceChildren(...scalars.map((name) => new Option(name)));
    const tuned = groups.filter((group) => group.tuned);
    tuning.replaceChildren(...tuned.map(({ flags }) => select("tuning", flags)));
    element("in-use", HTMLElement).textContent = "None has run yet.";
    this.show();
  }

  /** Turns the switches to what ran; null where no shader did. */
  showUsed(variant: Variant | null): void {
    this.#used = variant;
    const words = variant
      ? `In use: ${variantWords(variant, this.#tuned(variant))}.`
      : "No shader has run here.";
    element("in-use", HTMLElement).textContent = words;
    if (variant) {
      strategy.value = variant.strategy;
      scalar.value = variant.scalar;
      for (const choice of tuning.querySelectorAll("select"))
        choice.value = variant.flags.find((flag) => hasOption(choice, flag)) ?? "";
    }
    this.show();
  }

  show(): void {
    const shown = this.#shown();
    code.replaceChildren(make("code", {}, text(this.#form.kernel.name, shown)));
    badge.hidden = !this.#used || !same(shown, this.#used);
  }

  #shown(): Variant {
    const choices = [...tuning.querySelectorAll("select")];
    // The device's groups stand at their first in the form's flags.
    const own = this.#form.flags.filter((flag) => !choices.some((choice) => hasOption(choice, flag)));
    const flags = [...own, ...choices.map(({ value }) => value)];
    return { flags, scalar: scalar.value, strategy: strategy.value };
  }

  #tuned({ flags }: Variant): string[] {
    const names = this.#form.kernel.groups.filter((group) => group.tuned).flatMap((group) => group.flags);
    return flags.filter((flag) => names.includes(flag));
  }
}

const variantWords = ({ strategy: form, scalar: type }: Variant, tuned: string[]): string =>
  [form, type, ...tuned].join(", ");

const hasOption = (choice: HTMLSelectElement, value: string): boolean =>
  [...choice.options].some((option) => option.value === value);

function text(kernel: string, variant: Variant): string {
  try {
    return shaderText(kernel, variant);
  } catch (error) {
    return `// ${error instanceof Error ? error.message : String(error)}`;
  }
}

const same = (one: Variant, other: Variant): boolean =>
  one.strategy === other.strategy &&
  one.scalar === other.scalar &&
  [...one.flags].sort().join() === [...other.flags].sort().join();

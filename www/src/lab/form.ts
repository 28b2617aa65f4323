// The choices: built for a kernel from what the registry says of it.
import { element, make } from "../dom";
import type { Request } from "./messages";
import type { Group, Kernel, Registry } from "./registry";

const kernelChoice = element("kernel", HTMLSelectElement);
const dtypeChoice = element("dtype", HTMLSelectElement);
const inputsChoice = element("inputs", HTMLSelectElement);
const flags = element("flags", HTMLElement);
const sizes = element("sizes", HTMLElement);

/** A choice with a name above it. */
export function select(name: string, options: string[]): HTMLLabelElement {
  const choice = make("select", { name, autocomplete: "off" }, ...options.map((value) => new Option(value)));
  return make("label", { className: "field wide" }, make("span", {}, name), choice);
}

function flagControl({ flags: names }: Group): HTMLLabelElement {
  const [first = ""] = names;
  if (names.length > 1) return select(nameOf(names), names);
  const box = make("input", { type: "checkbox", name: first, checked: true });
  return make("label", { className: "check" }, box, make("span", {}, first));
}

/** Groups of flags have no names; those that are known by one are called so. */
function nameOf(names: string[]): string {
  if (names.includes("silu")) return "activation";
  if (names.includes("vec4")) return "layout form";
  if (names.includes("da")) return "gradients";
  return names.length > 3 ? "which" : names.join(" or ");
}

export class Form {
  #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
    kernelChoice.replaceChildren(...registry.kernels.map(({ name }) => new Option(name)));
    inputsChoice.replaceChildren(...registry.distributions.map(({ name }) => new Option(name)));
    this.showKernel();
    this.showNote();
  }

  get kernel(): Kernel {
    const found = this.#registry.kernels.find(({ name }) => name === kernelChoice.value);
    if (!found) throw new Error("no kernel is chosen");
    return found;
  }

  /** Builds the choices of the chosen kernel. */
  showKernel(): void {
    const { groups, sizes: named } = this.kernel;
    flags.replaceChildren(...groups.filter(({ tuned }) => !tuned).map(flagControl));
    sizes.replaceChildren(
      ...named.map(({ name, usual }) => {
        const input = make("input", { type: "number", name, min: "1", step: "1", value: String(usual) });
        input.autocomplete = "off";
        return make("label", { className: "field" }, make("span", {}, name), input);
      }),
    );
  }

  /** Says what the chosen distribution holds. */
  showNote(): void {
    const chosen = this.#registry.distributions.find(({ name }) => name === inputsChoice.value);
    element("inputs-note", HTMLElement).textContent = chosen ? `Inputs: ${chosen.note}.` : "";
  }

  /** The flags that are chosen here, and of the device's groups the first. */
  get flags(): string[] {
    const picked = [...flags.querySelectorAll<HTMLSelectElement | HTMLInputElement>("select, input")].map(
      (control) => {
        if (control instanceof HTMLSelectElement) return control.value;
        return control.checked ? control.name : "";
      },
    );
    const tuned = this.kernel.groups.filter((group) => group.tuned).map((group) => group.flags[0] ?? "");
    return [...picked, ...tuned].filter((name) => name !== "");
  }

  get request(): Request {
    const fields = [...sizes.querySelectorAll("input")];
    return {
      kernel: this.kernel.name,
      flags: this.flags,
      dtype: dtypeChoice.value,
      // An empty field is no number.
      sizes: fields.map(({ value }) => (value.trim() === "" ? Number.NaN : Number(value))),
      inputs: inputsChoice.value,
    };
  }
}

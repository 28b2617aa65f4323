// Which of the reference cases are for operations that there are.

/** The operations that there are, by the cases' names. */
export const operations = new Set(
  (
    "siluMul geluMul reluMul sigmoidMul swiglu geglu reglu glu layerNorm matmul linear " +
    "add sub mul div sum mean crossEntropy adamw"
  ).split(" "),
);

/** Arithmetic on integers is to come. */
const later = new Set(["sub/i32", "sum/i32"]);

/** Whether a case can pass. */
export function isPresent({ id, op, attrs }) {
  if (later.has(id)) return false;
  return op === "graph" ? attrs.steps.every((step) => operations.has(step.op)) : operations.has(op);
}

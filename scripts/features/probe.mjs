// Tries every operation in every type on an engine; runs in a page and in Node.
import { engineSamples, kernelSamples, noOperations, optimizerSamples, tensorSamples } from "./samples.mjs";

export const types = ["f32", "f16", "i32", "u32", "bool"];

const isFloat = (dtype) => dtype === "f32" || dtype === "f16";

/** Operations in the order of the source: the members of a prototype without those that are none. */
function operationsOf(prototype, others, samples, owner) {
  const members = Object.getOwnPropertyNames(prototype);
  const operations = members.filter((name) => !others.includes(name));
  const complaints = [
    ...operations.filter((name) => !(name in samples)).map((name) => `${owner}.${name} has no sample`),
    ...Object.keys(samples)
      .filter((name) => !operations.includes(name))
      .map((name) => `the sample ${name} is of no operation of ${owner}`),
    ...others.filter((name) => !members.includes(name)).map((name) => `${owner} has no member ${name}`),
  ];
  if (complaints.length > 0) {
    throw new Error(`scripts/features/samples.mjs is out of step:\n  ${complaints.join("\n  ")}`);
  }
  return operations;
}

const elements = (shape) => shape.reduce((a, b) => a * b, 1);

function makeInputs(engine, { inputs = {}, given = {} }, dtype, requiresGrad) {
  const made = Object.entries(inputs).map(([name, shape]) => {
    // No zeros, which div would not like, and none that f16 would round.
    const data = Array.from({ length: elements(shape) }, (_, k) => (dtype === "bool" ? 1 : k + 1));
    return [name, engine.tensor(data, { shape, dtype, requiresGrad })];
  });
  const fixed = Object.entries(given).map(([name, data]) => [name, engine.tensor(data)]);
  return { tensors: Object.fromEntries([...made, ...fixed]), floats: Object.fromEntries(made) };
}

const isRefusal = (error) => error.code === "DTypeError" || error.code === "UnsupportedError";

/** The tensors in what an operation gave. */
const resultsOf = (value) => (typeof value.data === "function" ? [value] : Object.values(value));

async function readAll(tensors, what) {
  for (const tensor of tensors) {
    const values = await tensor.data();
    if (!values.every(Number.isFinite)) throw new Error(`${what} gives ${values.join(", ")}`);
  }
}

/** What an operation does in one type: null if it refuses, or else the names of the inputs that its gradient reaches. */
async function tryOne(engine, sample, dtype, what) {
  const { tensors, floats } = makeInputs(engine, sample, dtype, isFloat(dtype));
  let value;
  try {
    value = await sample.call({ engine, dtype, ...tensors });
  } catch (error) {
    if (isRefusal(error)) return null;
    throw new Error(`${what}: ${error.message}`, { cause: error });
  }
  const results = resultsOf(value);
  await readAll(results, what);
  const differentiable = results.filter((tensor) => tensor.requiresGrad);
  for (const tensor of differentiable) {
    tensor.backward(engine.ones(tensor.shape, { dtype: tensor.dtype }), { retainGraph: true });
  }
  const reached = Object.entries(floats).filter(([, tensor]) => tensor.grad !== null);
  await readAll(
    reached.map(([, tensor]) => tensor.grad),
    `the gradient of ${what}`,
  );
  return reached.map(([name]) => name);
}

/** Whether an optimizer changes a parameter of this type. */
async function tryOptimizer(engine, sample, dtype, what) {
  if (!isFloat(dtype)) return null;
  const { tensors } = makeInputs(engine, sample, dtype, true);
  const before = [];
  for (const tensor of Object.values(tensors)) {
    before.push(await tensor.data());
    tensor.sum().backward();
  }
  try {
    sample.call({ engine, ...tensors }).step();
  } catch (error) {
    if (isRefusal(error)) return null;
    throw new Error(`${what}: ${error.message}`, { cause: error });
  }
  for (const [k, tensor] of Object.values(tensors).entries()) {
    const after = await tensor.data();
    if (after.every((value, i) => value === before[k][i])) throw new Error(`${what} changes nothing`);
  }
  return [];
}

/** The part of a sample's source that is the call. */
const shown = ({ call }) => call.toString().replace(/^[\s\S]*?=>\s*/, "");

/**
 * Tries all operations.
 * @returns sections, each with its operations: `{ title, operations: [{ name, call, types }] }`, where `types` has for
 *   every type that works the inputs that a gradient reaches
 */
export async function probe(engine) {
  const sections = [
    ["Tensor", "tensor", Object.getPrototypeOf(engine.tensor(0)), tensorSamples, tryOne],
    ["Engine", "engine", Object.getPrototypeOf(engine), engineSamples, tryOne],
    ["engine.kernels", "kernels", Object.getPrototypeOf(engine.kernels), kernelSamples, tryOne],
    ["engine.optim", "optim", Object.getPrototypeOf(engine.optim), optimizerSamples, tryOptimizer],
  ];
  const result = [];
  for (const [title, key, prototype, samples, attempt] of sections) {
    const operations = [];
    for (const name of operationsOf(prototype, noOperations[key], samples, title)) {
      const works = {};
      for (const dtype of types) {
        const reached = await attempt(engine, samples[name], dtype, `${title}.${name} in ${dtype}`);
        if (reached !== null) works[dtype] = reached;
      }
      operations.push({ name, call: shown(samples[name]), types: works });
    }
    result.push({ title, operations });
  }
  return result;
}

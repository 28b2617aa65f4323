// One small call of every public operation, for FEATURES.md. `inputs` are made as tensors of these shapes in each type
// in turn, `given` as tensors of the type their data suggest. The text of `call` is what FEATURES.md shows.

const pair = { a: [2, 4], b: [2, 4] };
const matrix = { x: [2, 4] };

/** Methods of `Tensor`. */
export const tensorSamples = {
  detach: { inputs: matrix, call: ({ x }) => x.detach() },
  add: { inputs: pair, call: ({ a, b }) => a.add(b) },
  sub: { inputs: pair, call: ({ a, b }) => a.sub(b) },
  mul: { inputs: pair, call: ({ a, b }) => a.mul(b) },
  div: { inputs: pair, call: ({ a, b }) => a.div(b) },
  siluMul: { inputs: pair, call: ({ a, b }) => a.siluMul(b) },
  geluMul: { inputs: pair, call: ({ a, b }) => a.geluMul(b) },
  reluMul: { inputs: pair, call: ({ a, b }) => a.reluMul(b) },
  sigmoidMul: { inputs: pair, call: ({ a, b }) => a.sigmoidMul(b) },
  swiglu: { inputs: matrix, call: ({ x }) => x.swiglu() },
  geglu: { inputs: matrix, call: ({ x }) => x.geglu() },
  reglu: { inputs: matrix, call: ({ x }) => x.reglu() },
  glu: { inputs: matrix, call: ({ x }) => x.glu() },
  layerNorm: {
    inputs: { x: [2, 4], weight: [4], bias: [4] },
    call: ({ x, weight, bias }) => x.layerNorm(weight, bias),
  },
  matmul: { inputs: { a: [2, 3], b: [3, 2] }, call: ({ a, b }) => a.matmul(b) },
  linear: {
    inputs: { x: [2, 3], weight: [4, 3], bias: [4] },
    call: ({ x, weight, bias }) => x.linear(weight, bias),
  },
  sum: { inputs: matrix, call: ({ x }) => x.sum() },
  mean: { inputs: matrix, call: ({ x }) => x.mean() },
  crossEntropy: {
    inputs: { logits: [2, 4] },
    given: { target: Int32Array.of(1, 3) },
    call: ({ logits, target }) => logits.crossEntropy(target),
  },
  // Of a view in another order, which has to be copied.
  contiguous: { inputs: matrix, call: ({ x }) => x.transpose(0, 1).contiguous() },
  reshape: { inputs: matrix, call: ({ x }) => x.reshape([4, 2]) },
  transpose: { inputs: matrix, call: ({ x }) => x.transpose(0, 1) },
  permute: { inputs: matrix, call: ({ x }) => x.permute([1, 0]) },
  expand: { inputs: { x: [2, 1] }, call: ({ x }) => x.expand([2, 4]) },
  slice: { inputs: matrix, call: ({ x }) => x.slice({ dim: 1, start: 1, step: 2 }) },
  narrow: { inputs: matrix, call: ({ x }) => x.narrow(1, 1, 2) },
  unsqueeze: { inputs: matrix, call: ({ x }) => x.unsqueeze(0) },
  squeeze: { inputs: { x: [1, 4] }, call: ({ x }) => x.squeeze(0) },
  flatten: { inputs: matrix, call: ({ x }) => x.flatten() },
};

/** Methods of `Engine` that make tensors. */
export const engineSamples = {
  tensor: { call: ({ engine, dtype }) => engine.tensor([1, 0, 1], { dtype }) },
  zeros: { call: ({ engine, dtype }) => engine.zeros([2, 3], { dtype }) },
  ones: { call: ({ engine, dtype }) => engine.ones([2, 3], { dtype }) },
  full: { call: ({ engine, dtype }) => engine.full([2, 3], 1, { dtype }) },
  rand: { call: ({ engine, dtype }) => engine.rand([2, 3], { dtype }) },
  randn: { call: ({ engine, dtype }) => engine.randn([2, 3], { dtype }) },
};

const gradients = { dy: [2, 4], a: [2, 4], b: [2, 4] };

/** Methods of `engine.kernels`, which record nothing. */
export const kernelSamples = {
  siluMulBackward: {
    inputs: gradients,
    call: ({ engine, dy, a, b }) => engine.kernels.siluMulBackward(dy, a, b),
  },
  geluMulBackward: {
    inputs: gradients,
    call: ({ engine, dy, a, b }) => engine.kernels.geluMulBackward(dy, a, b),
  },
  reluMulBackward: {
    inputs: gradients,
    call: ({ engine, dy, a, b }) => engine.kernels.reluMulBackward(dy, a, b),
  },
  sigmoidMulBackward: {
    inputs: gradients,
    call: ({ engine, dy, a, b }) => engine.kernels.sigmoidMulBackward(dy, a, b),
  },
  layerNormForward: {
    inputs: { x: [2, 4], w: [4], b: [4] },
    call: ({ engine, x, w, b }) => engine.kernels.layerNormForward(x, w, b),
  },
  layerNormBackward: {
    inputs: { dy: [2, 4], x: [2, 4], w: [4] },
    given: { mean: Float32Array.of(2.5, 6.5), rstd: Float32Array.of(0.9, 0.9) },
    call: ({ engine, dy, x, mean, rstd, w }) => engine.kernels.layerNormBackward(dy, x, mean, rstd, w),
  },
};

/** Methods of `engine.optim`: the parameter gets a gradient, and a step must change it. */
export const optimizerSamples = {
  adamw: { inputs: { p: [4] }, call: ({ engine, p }) => engine.optim.adamw([p]) },
};

/** Members of the two classes that are no operations. */
export const noOperations = {
  tensor: [
    "constructor",
    "shape",
    "dtype",
    "requiresGrad",
    "grad",
    "backward",
    "data",
    "array",
    "item",
    "dispose",
    "toString",
  ],
  engine: [
    "constructor",
    "gpuDevice",
    "manualSeed",
    "tidy",
    "noGrad",
    "memory",
    "profile",
    "warmup",
    "sync",
    "dispose",
  ],
  kernels: ["constructor"],
  optim: ["constructor"],
};

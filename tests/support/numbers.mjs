// Bodies of tests/numbers.test.mjs: what the arithmetic must give, at the inputs where other packages went wrong.
import { equal, fails, near, ok } from "./expect.mjs";

/** Single-precision results of well-behaved formulas. */
const usual = { relative: 2e-6, absolute: 1e-7 };

// Float64 references.
const sigmoid = (x) => (x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x)));
const slope = (x) => Math.exp(-Math.abs(x)) / (1 + Math.exp(-Math.abs(x))) ** 2;
const silu = (x) => x * sigmoid(x);
const siluSlope = (x) => sigmoid(x) + x * slope(x);

const range = (length, f) => Array.from({ length }, (_, k) => f(k));

/** Reads a tensor and frees it. */
async function take(tensor) {
  try {
    return await tensor.data();
  } finally {
    tensor.dispose();
  }
}

/** Runs `f` with a list that it puts tensors on, which are freed after it. */
async function scoped(f) {
  const made = [];
  try {
    return await f((tensor) => {
      made.push(tensor);
      return tensor;
    });
  } finally {
    for (const tensor of made) tensor.dispose();
  }
}

/** Layer normalisation and its gradients in float64, for rows of `cols`. */
function layerNormReference({ x, weight, bias, dy, cols, eps = 1e-5 }) {
  const y = [];
  const dx = [];
  const dw = new Array(cols).fill(0);
  const db = new Array(cols).fill(0);
  for (let at = 0; at < x.length; at += cols) {
    const row = x.slice(at, at + cols);
    const mean = row.reduce((sum, v) => sum + v, 0) / cols;
    const variance = row.reduce((sum, v) => sum + (v - mean) ** 2, 0) / cols;
    const rstd = 1 / Math.sqrt(variance + eps);
    const normal = row.map((v) => (v - mean) * rstd);
    const up = normal.map((_, k) => dy[at + k] * (weight?.[k] ?? 1));
    const meanUp = up.reduce((sum, v) => sum + v, 0) / cols;
    const meanBoth = up.reduce((sum, v, k) => sum + v * normal[k], 0) / cols;
    normal.forEach((n, k) => {
      y.push(n * (weight?.[k] ?? 1) + (bias?.[k] ?? 0));
      dx.push(rstd * (up[k] - meanUp - n * meanBoth));
      dw[k] += dy[at + k] * n;
      db[k] += dy[at + k];
    });
  }
  return { y, dx, dw, db };
}

const f32 = (values) => Array.from(values, Math.fround);

/** Fails at the first element of `got` that is not near `want(k)`: no list of millions of expectations is made. */
function eachNear(got, length, want, { relative, absolute = 0 }, what) {
  ok(got.length === length, `${what}: ${got.length} elements, expected ${length}`);
  for (let k = 0; k < length; k++) {
    const w = want(k);
    if (!(Math.abs(got[k] - w) <= absolute + relative * Math.abs(w))) {
      throw new Error(`${what}: [${k}] is ${got[k]}, expected ${w}`);
    }
  }
}

/** A pattern of 7 values that no power of two divides: an element in the wrong place shows. */
function pattern(length) {
  const values = new Float32Array(length);
  for (let k = 0; k < length; k++) values[k] = (k % 7) - 3;
  return values;
}

const siluOfPattern = range(7, (k) => silu(k - 3));
const slopeOfPattern = range(7, (k) => siluSlope(k - 3));

async function manyElements(engine, length, { gradient = false } = {}) {
  await scoped(async (keep) => {
    const a = keep(engine.tensor(pattern(length), { requiresGrad: gradient }));
    const y = keep(a.siluMul(2));
    eachNear(await y.data(), length, (k) => 2 * siluOfPattern[k % 7], { relative: 1e-6 }, "siluMul");
    if (!gradient) return;
    y.backward(keep(engine.ones([length])));
    const tolerance = { relative: 1e-6, absolute: 1e-7 };
    eachNear(await keep(a.grad).data(), length, (k) => 2 * slopeOfPattern[k % 7], tolerance, "gradient");
  });
}

export const bodies = {
  "gated products and both gradients are the known ones": ({ engine }) =>
    scoped(async (keep) => {
      const a = keep(engine.tensor([1, -2, 0.5], { requiresGrad: true }));
      const b = keep(engine.tensor([3, 0.25, -1], { requiresGrad: true }));
      keep(a.siluMul(b)).backward(keep(engine.tensor([1, 2, -4])));
      near(await keep(a.grad).data(), [2.783011536, -0.04539212439, 2.959844749], usual, "da");
      near(await keep(b.grad).data(), [0.7310585786, -0.4768116881, -1.244918662], usual, "db");
      equal(await a.data(), [1, -2, 0.5], "a is as it was");
      equal(await b.data(), [3, 0.25, -1], "b is as it was");
    }),

  "GELU is x above 10 and 0 below -10, its gradient 1 and 0, in both forms": ({ engine }) =>
    scoped(async (keep) => {
      const large = f32([10, 13.24, 20, 20.625, 100, 1000, 3e38]);
      const x = [...large, ...large.map((v) => -v)];
      for (const approximate of ["none", "tanh"]) {
        const a = keep(engine.tensor(x, { requiresGrad: true }));
        const y = keep(a.geluMul(1, { approximate }));
        keep(y.sum()).backward();
        const tiny = { relative: 1e-6, absolute: 1e-20 };
        near(await y.data(), [...large, ...large.map(() => 0)], tiny, approximate);
        const slopes = [...large.map(() => 1), ...large.map(() => 0)];
        near(await keep(a.grad).data(), slopes, tiny, `${approximate}, gradient`);
        const packed = keep(
          engine.tensor(
            x.flatMap((v) => [v, 1]),
            { shape: [x.length, 2] },
          ),
        );
        const glued = keep(packed.geglu({ approximate }));
        near(await glued.data(), [...large, ...large.map(() => 0)], tiny, `geglu ${approximate}`);
      }
    }),

  "gradients of sigmoid and SiLU neither overflow nor turn NaN": ({ engine }) =>
    scoped(async (keep) => {
      const x = f32([-45, -10.0179, 0, 45, 89, -89, 1000, -1000, 3e38, -3e38]);
      for (const [op, want] of [
        ["sigmoidMul", slope],
        ["siluMul", siluSlope],
      ]) {
        const a = keep(engine.tensor(x, { requiresGrad: true }));
        keep(keep(a[op](1)).sum()).backward();
        const got = await keep(a.grad).data();
        near(got, x.map((v) => want(v) || 0), { relative: 1e-5 }, op); // prettier-ignore
      }
      const known = keep(engine.tensor([-45], { requiresGrad: true }));
      keep(known.sigmoidMul(1)).backward();
      near(await keep(known.grad).data(), [2.8625e-20], { relative: 1e-4 }, "sigmoid' at -45");
      const other = keep(engine.tensor([-10.0179], { requiresGrad: true }));
      keep(other.siluMul(1)).backward();
      near(await keep(other.grad).data(), [-4.0211e-4], { relative: 1e-4 }, "silu' at -10.0179");
    }),

  "SiLU and GELU take their limits at infinity": ({ engine }) =>
    scoped(async (keep) => {
      for (const op of ["siluMul", "geluMul"]) {
        const a = keep(engine.tensor([Infinity, -Infinity], { requiresGrad: true }));
        const y = keep(a[op](1));
        keep(y.sum()).backward();
        near(await y.data(), [Infinity, 0], {}, op);
        near(await keep(a.grad).data(), [1, 0], {}, `gradient of ${op}`);
      }
    }),

  "NaN stays NaN through relu at every length, in the body and in the tail": ({ engine }) =>
    scoped(async (keep) => {
      const six = [NaN, -1, 2, -0, Infinity, -Infinity];
      const relu = [NaN, 0, 2, 0, Infinity, 0];
      for (const length of [6, 64, 1025]) {
        const x = range(length, (k) => six[k % 6]);
        const want = range(length, (k) => relu[k % 6]);
        const a = keep(engine.tensor(x));
        near(await keep(a.reluMul(1)).data(), want, {}, `by a number, ${length}`);
        const ones = keep(engine.ones([length]));
        near(await keep(a.reluMul(ones)).data(), want, {}, `by a tensor, ${length}`);
        near(await keep(ones.mul(a)).data(), x, {}, `mul, ${length}`);
        // A NaN in the other factor stays too.
        const gate = keep(engine.full([length], -1));
        const nan = keep(engine.full([length], NaN));
        equal(await keep(gate.reluMul(nan)).data(), range(length, () => NaN), `relu(-1) · NaN, ${length}`); // prettier-ignore
      }
    }),

  "one tensor as both operands: siluMul(x, x), x.mul(x), x.add(x), x.sub(x), x.div(x)": ({ engine }) =>
    scoped(async (keep) => {
      for (const length of [3, 1025]) {
        const values = f32(range(length, (k) => (k % 11) / 4 - 1.3));
        const rows = [
          ["siluMul", (v) => silu(v) * v, (v) => siluSlope(v) * v + silu(v)],
          ["sigmoidMul", (v) => sigmoid(v) * v, (v) => slope(v) * v + sigmoid(v)],
          ["mul", (v) => v * v, (v) => 2 * v],
          ["add", (v) => v + v, () => 2],
          ["sub", () => 0, () => 0],
          ["div", () => 1, () => 0],
        ];
        for (const [op, value, gradient] of rows) {
          const x = keep(engine.tensor(values, { requiresGrad: true }));
          const y = keep(x[op](x));
          keep(y.sum()).backward();
          const tolerance = { relative: 3e-6, absolute: 5e-7 };
          near(await y.data(), values.map(value), tolerance, `${op}, ${length}`);
          near(await keep(x.grad).data(), values.map(gradient), tolerance, `gradient of ${op}, ${length}`);
        }
      }
    }),

  "LayerNorm keeps its digits on a large mean": ({ engine }) =>
    scoped(async (keep) => {
      const x = keep(engine.tensor([0, 1, 2, 3, 3, 2, 1, 0].map((k) => 10000 + k / 128)));
      const [outer, inner] = [1.261511247, 0.420503749];
      const want = [-outer, -inner, inner, outer, outer, inner, -inner, -outer];
      near(await keep(x.layerNorm()).data(), want, { relative: 1e-4 }, "layerNorm");
    }),

  "LayerNorm counts no padded lane, forwards and backwards": ({ engine }) =>
    scoped(async (keep) => {
      for (const cols of [1, 2, 3, 4, 5, 31, 33, 63, 64, 65, 257, 1025]) {
        const rows = 3;
        const x = f32(range(rows * cols, (k) => ((k * 37) % 101) / 25 - 2));
        const dy = f32(range(rows * cols, (k) => ((k * 53) % 89) / 40 - 1));
        const weight = f32(range(cols, (k) => 0.5 + (k % 5) / 4));
        const bias = f32(range(cols, (k) => (k % 3) - 1));
        const tensors = [
          engine.tensor(x, { shape: [rows, cols], requiresGrad: true }),
          engine.tensor(weight, { requiresGrad: true }),
          engine.tensor(bias, { requiresGrad: true }),
        ].map(keep);
        const y = keep(tensors[0].layerNorm(tensors[1], tensors[2]));
        y.backward(keep(engine.tensor(dy, { shape: [rows, cols] })));
        const want = layerNormReference({ x, weight, bias, dy, cols });
        const tolerance = { relative: 1e-5, absolute: 5e-6 };
        near(await y.data(), want.y, tolerance, `D = ${cols}`);
        // Of one column the variance is 0: 1/√eps = 316 multiplies what rounding leaves.
        const wide = cols === 1 ? { absolute: 1e-4 } : tolerance;
        near(await keep(tensors[0].grad).data(), want.dx, wide, `D = ${cols}, dx`);
        near(await keep(tensors[1].grad).data(), want.dw, tolerance, `D = ${cols}, dw`);
        near(await keep(tensors[2].grad).data(), want.db, tolerance, `D = ${cols}, db`);
      }
    }),

  "LayerNorm over 70,001 rows adds up all of them": ({ engine }) =>
    scoped(async (keep) => {
      const rows = 70_001;
      const repeated = (pair) => Float32Array.from({ length: 2 * rows }, (_, k) => pair[k % 2]);
      const x = keep(engine.tensor(repeated([1, -1]), { shape: [rows, 2], requiresGrad: true }));
      const weight = keep(engine.ones([2], { requiresGrad: true }));
      const bias = keep(engine.zeros([2], { requiresGrad: true }));
      const y = keep(x.layerNorm(weight, bias));
      y.backward(keep(engine.tensor(repeated([1, 2]), { shape: [rows, 2] })));
      near(await keep(weight.grad).data(), [70000.65, -140001.3], { relative: 1e-6 }, "dw");
      equal(await keep(bias.grad).data(), [70001, 140002], "db");
      const rstd = 1 / Math.sqrt(1 + 1e-5);
      eachNear(await y.data(), 2 * rows, (k) => (k % 2 ? -rstd : rstd), { relative: 1e-6 }, "y");
      // dx = rstd · (dy - mean(dy) - n · mean(dy · n)), with n = ±rstd and mean(dy · n) = -rstd / 2.
      const dx = rstd * (-0.5 + (rstd * rstd) / 2);
      const gradient = await keep(x.grad).data();
      eachNear(gradient, 2 * rows, (k) => (k % 2 ? -dx : dx), { relative: 0, absolute: 2e-7 }, "dx");
    }),

  "gradients have the shapes of their inputs": ({ engine }) =>
    scoped(async (keep) => {
      const leaf = (shape) => keep(engine.randn(shape, { requiresGrad: true }));
      const x = leaf([2, 3, 4]);
      const weight = leaf([4]);
      const bias = leaf([4]);
      keep(keep(keep(x.layerNorm(weight, bias)).add(x)).sum()).backward();
      equal(keep(x.grad).shape, [2, 3, 4], "LayerNorm and a residual");
      equal(keep(weight.grad).shape, [4], "weight");
      equal(keep(bias.grad).shape, [4], "bias");

      const two = leaf([2, 3, 4]);
      const scale = leaf([3, 4]);
      keep(keep(two.layerNorm(scale, null, { normalizedShape: [3, 4] })).sum()).backward();
      equal(keep(two.grad).shape, [2, 3, 4], "two normalised dimensions");
      equal(keep(scale.grad).shape, [3, 4], "their weight");

      for (const [left, right] of [
        [[2, 3, 4], [4]],
        [
          [2, 1, 4],
          [3, 1],
        ],
        [[], [2, 2]],
        [[1, 1, 5], [5]],
        [
          [0, 3],
          [1, 3],
        ],
      ]) {
        for (const op of ["siluMul", "geluMul", "reluMul", "sigmoidMul", "add", "sub", "mul", "div"]) {
          const [a, b] = [leaf(left), leaf(right)];
          keep(keep(a[op](b)).sum()).backward();
          equal(keep(a.grad).shape, left, `${op}: the first of [${left}] and [${right}]`);
          equal(keep(b.grad).shape, right, `${op}: the second of [${left}] and [${right}]`);
        }
      }

      const [input, matrix, offset] = [leaf([2, 3, 4]), leaf([5, 4]), leaf([5])];
      keep(keep(input.linear(matrix, offset)).sum()).backward();
      for (const t of [input, matrix, offset]) equal(keep(t.grad).shape, t.shape, "linear");
      for (const [left, right] of [
        [[4], [4]],
        [[4], [4, 2]],
        [[2, 4], [4]],
        [
          [3, 1, 2, 4],
          [5, 4, 2],
        ],
      ]) {
        const [a, b] = [leaf(left), leaf(right)];
        keep(keep(a.matmul(b)).sum()).backward();
        equal(keep(a.grad).shape, left, `matmul: the first of [${left}] and [${right}]`);
        equal(keep(b.grad).shape, right, `matmul: the second of [${left}] and [${right}]`);
      }
    }),

  "views compute as their copies do, gradients too": ({ engine }) =>
    scoped(async (keep) => {
      const views = {
        transposed: (x) => x.transpose(0, 1),
        "sliced with an offset": (x) => x.slice({ dim: 0, start: 1, end: 5 }),
        "sliced with a step": (x) => x.slice({ dim: 1, start: 1, step: 2 }),
        "sliced and transposed": (x) => keep(x.slice({ dim: 1, start: 2, end: 6 })).transpose(0, 1),
        narrowed: (x) => x.narrow(1, 3, 4),
        expanded: (x) => keep(x.slice({ dim: 0, start: 2, end: 3 })).expand([6, 8]),
      };
      const uses = {
        layerNorm: (v) => v.layerNorm(),
        siluMul: (v) => v.siluMul(v),
        geluMul: (v) => v.geluMul(2),
        swiglu: (v) => v.swiglu(),
        glu: (v) => v.glu(),
        sum: (v) => v.sum({ dim: 0 }),
        mean: (v) => v.mean({ dim: -1 }),
        add: (v) => v.add(v),
      };
      const values = f32(range(48, (k) => ((k * 29) % 47) / 16 - 1.4));
      for (const [viewName, view] of Object.entries(views)) {
        for (const [useName, use] of Object.entries(uses)) {
          const run = async (copied) => {
            const x = keep(engine.tensor(values, { shape: [6, 8], requiresGrad: true }));
            const v = keep(view(x));
            // A copy by way of the host, so that nothing of the view is left.
            const input = copied
              ? keep(engine.tensor(await v.data(), { shape: v.shape, requiresGrad: true }))
              : v;
            const y = keep(use(input));
            const weights = f32(range(y.shape.reduce((a, b) => a * b, 1), (k) => 1 + (k % 5) / 4)); // prettier-ignore
            const up = keep(engine.tensor(weights, { shape: y.shape }));
            y.backward(up);
            if (copied) v.backward(keep(input.grad));
            return { shape: y.shape, y: await y.data(), dx: await keep(x.grad).data() };
          };
          const [got, want] = [await run(false), await run(true)];
          const what = `${useName} of a tensor ${viewName}`;
          equal(got.shape, want.shape, what);
          near(got.y, want.y, { relative: 1e-6, absolute: 1e-7 }, what);
          near(got.dx, want.dx, { relative: 1e-6, absolute: 1e-6 }, `gradient of ${what}`);
        }
      }
    }),

  "4,194,241 elements": ({ engine }) => manyElements(engine, 4_194_241),
  "16,776,961 elements": ({ engine }) => manyElements(engine, 16_776_961),
  "16,777,217 elements": ({ engine }) => manyElements(engine, 16_777_217, { gradient: true }),

  "20,000,000 ones add up to 20,000,000": ({ engine }) =>
    scoped(async (keep) => {
      equal(await keep(keep(engine.ones([20_000_000])).sum()).item(), 20_000_000, "sum");
    }),

  "33,554,433 elements are all right, or a LimitError with the size and the limit": {
    alone: true,
    async run({ wgrad, engine }) {
      const length = 33_554_433;
      try {
        const a = engine.tensor(pattern(length));
        const y = a.siluMul(1.5);
        a.dispose();
        eachNear(await take(y), length, (k) => 1.5 * siluOfPattern[k % 7], { relative: 1e-6 }, "siluMul");
      } catch (error) {
        if (!(error instanceof wgrad.LimitError)) throw error;
        ok(/\d{8,}/.test(error.message), `${error.message}: the size should be in it`);
        ok(/at most \d{7,}/.test(error.message), `${error.message}: the limit should be in it`);
      }
    },
  },

  "empty tensors go through everything": ({ engine }) =>
    scoped(async (keep) => {
      const empty = () => keep(engine.zeros([0], { requiresGrad: true }));
      for (const op of ["siluMul", "geluMul", "reluMul", "sigmoidMul", "add", "sub", "mul", "div"]) {
        const [a, b] = [empty(), empty()];
        const y = keep(a[op](b));
        equal(y.shape, [0], op);
        equal(await y.data(), [], op);
        keep(y.sum()).backward();
        equal(keep(a.grad).shape, [0], `gradient of ${op}`);
        equal(await keep(b.grad).data(), [], `gradient of ${op}`);
        equal(await keep(a[op](2)).data(), [], `${op} and a number`);
      }
      equal(await keep(empty().sum()).item(), 0, "sum of nothing");
      equal(await keep(empty().mean()).item(), NaN, "mean of nothing");
      equal(await empty().array(), [], "array");
      equal(keep(empty().swiglu()).shape, [0], "swiglu");

      const x = keep(engine.zeros([0, 4], { requiresGrad: true }));
      const weight = keep(engine.ones([4], { requiresGrad: true }));
      const bias = keep(engine.zeros([4], { requiresGrad: true }));
      const y = keep(x.layerNorm(weight, bias));
      equal(y.shape, [0, 4], "layerNorm");
      y.backward(keep(engine.zeros([0, 4])));
      equal(keep(x.grad).shape, [0, 4], "dx");
      equal(await keep(weight.grad).data(), [0, 0, 0, 0], "dw");
      equal(await keep(bias.grad).data(), [0, 0, 0, 0], "db");

      equal(await keep(x.matmul(keep(engine.ones([4, 2])))).data(), [], "matmul of no row");
      const inner = keep(keep(engine.zeros([2, 0])).matmul(keep(engine.zeros([0, 3]))));
      equal(await inner.data(), [0, 0, 0, 0, 0, 0], "matmul over nothing");
      equal(await keep(keep(engine.zeros([0, 3])).sum({ dim: 0 })).data(), [0, 0, 0], "sum over no row");
      const none = keep(engine.tensor(new Int32Array(0)));
      equal(
        await keep(keep(engine.zeros([0, 3])).crossEntropy(none, { reduction: "sum" })).item(),
        0,
        "loss",
      );
    }),

  "a subarray gives its own elements": ({ engine }) =>
    scoped(async (keep) => {
      const values = [1, 2, 3, 4, 10, 20, 30, 40];
      for (const Kind of [Float32Array, Float64Array, Int32Array, Uint32Array, Int16Array, Uint8Array]) {
        const part = Kind.from(values).subarray(4, 8);
        equal(await keep(engine.tensor(part)).data(), [10, 20, 30, 40], Kind.name);
        const sums = keep(keep(engine.tensor(part, { shape: [2, 2], dtype: "f32" })).sum({ dim: 1 }));
        equal(await sums.data(), [30, 70], `${Kind.name}, sums`);
      }
    }),

  "a tensor does not share the caller's array, nor a result the module's memory": ({ engine }) =>
    scoped(async (keep) => {
      const source = Float32Array.of(1, 2, 3);
      const x = keep(engine.tensor(source));
      source.fill(9);
      equal(await x.data(), [1, 2, 3], "after the source changed");
      const nested = [[1, 2], [3, 4]]; // prettier-ignore
      const y = keep(engine.tensor(nested));
      nested[0][0] = 9;
      equal(await y.data(), [1, 2, 3, 4], "after the nested source changed");
      const shape = [3];
      const z = keep(engine.zeros(shape));
      shape[0] = 7;
      z.shape.push(5);
      equal(z.shape, [3], "the shape is the tensor's own");

      const result = await x.data();
      // 64 MB more: views of the old memory would be detached, and show no element.
      const big = keep(engine.zeros([1 << 24]));
      keep(big.add(1));
      keep(engine.tensor(new Float32Array(1 << 24)));
      equal(result, [1, 2, 3], "after the memory grew");
      result.fill(7);
      equal(await x.data(), [1, 2, 3], "after a result was written to");
      equal(result.byteOffset, 0, "a result is an array of its own");
      equal(result.buffer.byteLength, 12, "and no larger");
    }),

  "equal inputs give equal bits, run after run": ({ engine }) =>
    scoped(async (keep) => {
      const make = (shape, seed) => {
        const length = shape.reduce((a, b) => a * b, 1);
        const values = range(length, (k) => Math.sin(k * 12.9898 + seed));
        return keep(engine.tensor(values, { shape, requiresGrad: true }));
      };
      const run = async () => {
        const [x, w, v] = [make([300, 64], 1), make([128, 64], 2), make([64], 3)];
        const y = keep(keep(keep(x.layerNorm(v)).linear(w)).swiglu());
        keep(y.mean()).backward();
        const tensors = [y, ...[x, w, v].map((t) => keep(t.grad))];
        return Promise.all(tensors.map((t) => t.data()));
      };
      const first = await run();
      for (let k = 0; k < 3; k++) {
        (await run()).forEach((got, part) => equal(got, first[part], `part ${part} of run ${k + 2}`));
      }
    }),

  "a broadcast to more elements than there can be is a LimitError": ({ wgrad, engine }) =>
    scoped(async (keep) => {
      // 65,536² is 0 in 32 bits, and 65,537² is 131,073.
      for (const side of [65_536, 65_537]) {
        const [a, b] = [keep(engine.ones([side, 1])), keep(engine.ones([1, side]))];
        for (const op of ["add", "sub", "mul", "div", "siluMul", "geluMul", "reluMul", "sigmoidMul"]) {
          await fails(
            wgrad,
            () => keep(a[op](b)),
            "LimitError",
            [op, `[${side}, ${side}]`],
            `${op}, ${side}`,
          );
        }
      }
    }),
};

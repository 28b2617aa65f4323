// The benchmark's cases over the public API, for either device. A case is (params, inputs, env) => handle with run(k),
// read() and dispose(); bench/README.md says more.
import { init } from "../../dist/index.js";

export function adapter(name, device) {
  let engine;

  /** A handle around `call`, which returns named tensors; their memory is freed as a user would. */
  const handle = (call, inputs) => ({
    async run(k) {
      for (let i = 0; i < k; i++) for (const t of Object.values(call())) t.dispose();
      await engine.sync();
    },
    async read() {
      const out = {};
      for (const [key, tensor] of Object.entries(call())) {
        out[key] = await tensor.data();
        tensor.dispose();
      }
      return out;
    },
    dispose: () => inputs.forEach((t) => t.dispose()),
  });
  const up = (data, shape, options) => engine.tensor(data, { shape, ...options });

  const swiglu =
    (forward, backward) =>
    ({ n }, { a, b, g }) => {
      const inputs = [up(a, [n]), up(b, [n]), ...(backward ? [up(g, [n])] : [])];
      const [x, y, dy] = inputs;
      return handle(() => {
        const out = forward ? { y: x.siluMul(y) } : {};
        if (backward) [out.da, out.db] = engine.kernels.siluMulBackward(dy, x, y);
        return out;
      }, inputs);
    };

  const layerNorm =
    (forward, backward) =>
    ({ rows, cols }, { x, w, b, g }) => {
      const [X, W, B] = [up(x, [rows, cols]), up(w, [cols]), up(b, [cols])];
      const [y, mean, rstd] = engine.kernels.layerNormForward(X, W, B);
      y.dispose();
      const inputs = [X, W, B, mean, rstd];
      if (backward) inputs.push(up(g, [rows, cols]));
      return handle(() => {
        if (!backward) return { y: X.layerNorm(W, B) };
        let [m, r, out] = [mean, rstd, {}];
        if (forward) [out.y, m, r] = engine.kernels.layerNormForward(X, W, B);
        [out.dx, out.dw, out.db] = engine.kernels.layerNormBackward(inputs[5], X, m, r, W);
        if (forward) {
          m.dispose();
          r.dispose();
        }
        return out;
      }, inputs);
    };

  const matmul = ({ m, k, n }, { a, b }) => {
    const [A, B] = [up(a, [m, k]), up(b, [k, n])];
    return handle(() => ({ y: A.matmul(B) }), [A, B]);
  };

  return {
    name,
    async init(env) {
      engine = await init({ device });
      const { vendor = "", architecture = "", description = "" } = engine.adapter ?? {};
      return {
        version: env.version ?? "",
        adapter: [vendor, architecture, description].filter(Boolean).join(" | "),
      };
    },
    cases: {
      swiglu_fwd: swiglu(true, false),
      swiglu_bwd: swiglu(false, true),
      swiglu_fwd_bwd: swiglu(true, true),
      layernorm_fwd: layerNorm(true, false),
      layernorm_bwd: layerNorm(false, true),
      layernorm_fwd_bwd: layerNorm(true, true),
      matmul,
      softmax: null,
      attention: null,
      mlp_train_step: null,
      gpt_train_step: null,
    },
  };
}

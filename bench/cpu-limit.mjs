// The multiply-add rate of one CPU thread, as WebAssembly: SIMD128 has no fused form, so it is a product and a sum, as
// in wgrad's own kernels.

/** More chains than latency needs; with the two constants they just fit in 16 registers. */
const chains = 12;

const names = Array.from({ length: chains }, (_, k) => `$sum${k}`);

const text = `(module
  (global (export "operations") i32 (i32.const ${chains * 4 * 2}))
  (func (export "multiplyAdd") (param $rounds i32) (result f32)
    (local $factor v128) (local $term v128) ${names.map((name) => `(local ${name} v128)`).join(" ")}
    (local.set $factor (f32x4.splat (f32.const 0.75)))
    (local.set $term (f32x4.splat (f32.const 0.5)))
    ${names.map((name, k) => `(local.set ${name} (f32x4.splat (f32.const ${k})))`).join("\n    ")}
    (loop $again
      ${names.map(step).join("\n      ")}
      (br_if $again (local.tee $rounds (i32.sub (local.get $rounds) (i32.const 1)))))
    (f32x4.extract_lane 0 ${names.map((name) => `(local.get ${name})`).reduce((a, b) => `(f32x4.add ${a} ${b})`)})))`;

function step(name) {
  return `(local.set ${name} (f32x4.add (f32x4.mul (local.get ${name}) (local.get $factor)) (local.get $term)))`;
}

/** The module's bytes. `operations` is a global of it: those of one round. */
export async function multiplyAddModule() {
  // Imported here: the GPU bench does without it.
  const { default: binaryen } = await import("binaryen");
  const module = binaryen.parseText(text);
  try {
    module.setFeatures(binaryen.Features.SIMD128);
    if (!module.validate()) throw new Error("the multiply-add module is not valid");
    return module.emitBinary();
  } finally {
    module.dispose();
  }
}

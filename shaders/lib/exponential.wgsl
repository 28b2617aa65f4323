// The exponential, the logarithm, and what is made of one exponential: e^x = 2^n·e^r with n = round(x / ln 2).
// Formulas and coefficients are those of src/math/exponential.rs, which gives their errors.
//
// WGSL may assume that NaN and infinities do not exist, so both are told by their bits, and clamps compare the bits of
// magnitudes: as integers these are ordered like the numbers, with NaN above all. The builtin exp is 3 + 2|x| ulp off
// and flushes; here only a result below the smallest normal may flush.

const SIGN_BIT = 0x80000000u;
const MAGNITUDE_BITS = 0x7fffffffu;
const INFINITY_BITS = 0x7f800000u;
const LN_2_HIGH = 0.69314575f;
const LN_2_LOW = 1.4286068e-6f;

fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & MAGNITUDE_BITS) > INFINITY_BITS;
}

fn is_negative(x: f32) -> bool {
  return (bitcast<u32>(x) & SIGN_BIT) != 0u;
}

// |x|, at most limit; NaN gives limit.
fn clamped_magnitude(x: f32, limit: f32) -> f32 {
  return bitcast<f32>(min(bitcast<u32>(x) & MAGNITUDE_BITS, bitcast<u32>(limit)));
}

fn with_sign_of(magnitude: f32, x: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(magnitude) & MAGNITUDE_BITS) | (bitcast<u32>(x) & SIGN_BIT));
}

// x where it is NaN, else value.
fn unless_nan(x: f32, value: f32) -> f32 {
  return select(value, x, is_nan(x));
}

// 2^n for -126 <= n <= 127.
fn power_of_two(n: i32) -> f32 {
  return bitcast<f32>((n + 127i) << 23u);
}

// e^x with its power of two set apart in two halves, so that factors can be multiplied in before a result becomes
// tiny or infinite.
struct ScaledExp {
  fraction: f32, // e^r - 1
  scale: vec2<f32>,
}

fn expm1_reduced(r: f32) -> f32 {
  return r + r * r * (0.5f + r * (0.16666532f + r * (0.041666158f + r * (0.008368133f + r * 0.0013976004f))));
}

// e^(high + low), |high + low| < 160, low at most a thousandth of high.
fn scaled_exp(high: f32, low: f32) -> ScaledExp {
  let n = round((high + low) * 1.442695f);
  let r = (high - n * LN_2_HIGH) + (low - n * LN_2_LOW);
  let whole = i32(n);
  let half = whole >> 1u;
  return ScaledExp(expm1_reduced(r), vec2<f32>(power_of_two(half), power_of_two(whole - half)));
}

fn exp_times(e: ScaledExp, factor: f32) -> f32 {
  return (factor + factor * e.fraction) * e.scale.x * e.scale.y;
}

fn exp_f32(x: f32) -> f32 {
  let limit = select(89.0f, 105.0f, is_negative(x));
  return unless_nan(x, exp_times(scaled_exp(with_sign_of(clamped_magnitude(x, limit), x), 0.0f), 1.0f));
}

// sigmoid(y) and sigmoid(-y) = e^(-y)·sigmoid(y) for y >= 0, neither from a difference.
struct Logistic {
  upper: f32,
  exp: ScaledExp,
}

// From e^(-y).
fn logistic(e: ScaledExp) -> Logistic {
  return Logistic(1.0f / (1.0f + exp_times(e, 1.0f)), e);
}

// factor·sigmoid(-y).
fn lower_times(l: Logistic, factor: f32) -> f32 {
  return exp_times(l.exp, l.upper * factor);
}

fn sigmoid_f32(x: f32) -> f32 {
  let l = logistic(scaled_exp(-clamped_magnitude(x, 105.0f), 0.0f));
  return unless_nan(x, select(l.upper, lower_times(l, 1.0f), is_negative(x)));
}

fn tanh_f32(x: f32) -> f32 {
  let magnitude = clamped_magnitude(x, 10.0f);
  let doubled = -2.0f * magnitude;
  let n = round(doubled * 1.442695f);
  let scale = power_of_two(i32(n));
  let grown = expm1_reduced((doubled - n * LN_2_HIGH) - n * LN_2_LOW) * scale;
  let m = grown + (scale - 1.0f);
  let near = magnitude < 0.55f;
  let quotient = select(2.0f * (grown + scale), -m, near) / (2.0f + m);
  return unless_nan(x, with_sign_of(select(1.0f - quotient, quotient, near), x));
}

// The natural logarithm: -inf at 0, NaN below, inf at inf.
fn log_f32(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  // Subnormals go through their integer, because arithmetic may flush them.
  let subnormal = bits < 0x800000u;
  let normal_bits = bitcast<i32>(select(bits, bitcast<u32>(f32(bits)), subnormal));
  let k = (normal_bits - 0x3f3504f3i) >> 23u;
  let f = bitcast<f32>(normal_bits - (k << 23u)) - 1.0f;
  let exponent = f32(k) + select(0.0f, -149.0f, subnormal);
  let p = 0.33333313f + f * (-0.2500001f + f * (0.20002119f + f * (-0.16667996f + f * (0.1421952f
    + f * (-0.12405543f + f * (0.118883766f + f * (-0.11676054f + f * 0.06746642f)))))));
  let sum = exponent * LN_2_HIGH + (f - (0.5f * f * f - (f * f * f * p + exponent * LN_2_LOW)));
  // Infinity and NaN as literals would be rejected; "bits & 0" makes them values of the running shader.
  let magnitude = bits & MAGNITUDE_BITS;
  let at_zero = bitcast<f32>(0xff800000u | (bits & 0u));
  let below = bitcast<f32>(0x7fc00000u | (bits & 0u));
  let positive = select(sum, x, magnitude >= INFINITY_BITS);
  let of_sign = select(positive, below, is_negative(x));
  return unless_nan(x, select(of_sign, at_zero, magnitude == 0u));
}

// The error function and its complement, erfc x = e^(-x²)·erfcx x, accurate relative to the result.
// Formulas and coefficients are those of src/math/error_function.rs, which gives their errors.
#import exponential

// e^(-s·x²)·g(x) in factors: exp holds e^(-s·x²) / stretch, and g is quotient / stretch.
struct Tail {
  exp: ScaledExp,
  quotient: f32,
  stretch: f32,
}

// x >= 0 split where its square and its sums with a centre are exact, and t = (x - c) / (x + c).
struct TailArgument {
  high: f32,
  low: f32,
  inverse: f32, // 1 / (high + c)
  d: f32, // x + c = (high + c)·(1 + d)
  t: f32,
}

fn tail_argument(x: f32, center: f32) -> TailArgument {
  let high = round(x * 256.0f) * 0.00390625f;
  let low = x - high;
  let inverse = 1.0f / (high + center);
  let d = low * inverse;
  let t_high = (high - center) * inverse;
  return TailArgument(high, low, inverse, d, t_high + d * (1.0f - t_high) * (1.0f - d));
}

// square is s; q is the fit at a.t.
fn tail_from(x: f32, a: TailArgument, square: f32, q: f32) -> Tail {
  let low = square * a.low * (x + a.high) + (a.d - 0.5f * a.d * a.d);
  return Tail(scaled_exp(-square * (a.high * a.high), -low), q * a.inverse, 1.0f + a.d);
}

fn erfcx_fit(t: f32) -> f32 {
  let upper = 0.011222086f + t * (-0.0029917532f + t * (-0.0012521829f + t * (0.000408315f + t * 0.00019095898f)));
  return 1.047402f + t * (-0.7796444f + t * (0.4139498f + t * (-0.1359073f + t * (0.010840747f + t * upper))));
}

fn mills_fit(t: f32) -> f32 {
  let upper = 0.007825196f + t * (-0.002249162f + t * (-0.00084914354f + t * (0.0003070909f + t * 0.00013345004f)));
  return 0.7410803f + t * (-0.5529922f + t * (0.29537597f + t * (-0.09838449f + t * (0.008718613f + t * upper))));
}

// For erfc x, 0 <= x <= 10.4.
fn erfc_tail(x: f32) -> Tail {
  let a = tail_argument(x, 2.375f);
  return tail_from(x, a, 1.0f, erfcx_fit(a.t));
}

// For the normal distribution's tail, 0 <= x <= 14.65.
fn normal_tail(x: f32) -> Tail {
  let a = tail_argument(x, 3.375f);
  return tail_from(x, a, 0.5f, mills_fit(a.t));
}

fn tail_times(tail: Tail, factor: f32) -> f32 {
  return exp_times(tail.exp, tail.quotient * factor);
}

// erf x for |x| <= 0.75.
fn erf_series(x: f32) -> f32 {
  let s = x * x;
  let upper = -0.026834624f + s * (0.0051143453f + s * -0.0006749511f);
  let series = x + x * (0.12837917f + s * (-0.3761262f + s * (0.11283377f + s * upper)));
  // Near the smallest normal the second term may flush, and with it an eighth of the result.
  return select(series, x * 1.1283792f, abs(x) < 1e-30f);
}

fn erf_f32(x: f32) -> f32 {
  let magnitude = clamped_magnitude(x, 10.375f);
  let far = 1.0f - tail_times(erfc_tail(magnitude), 1.0f);
  let value = select(far, erf_series(magnitude), magnitude < 0.75f);
  return unless_nan(x, with_sign_of(value, x));
}

fn erfc_f32(x: f32) -> f32 {
  let magnitude = clamped_magnitude(x, 10.375f);
  let tail = tail_times(erfc_tail(magnitude), 1.0f);
  let near = 1.0f - with_sign_of(erf_series(magnitude), x);
  let value = select(select(tail, 2.0f - tail, is_negative(x)), near, magnitude < 0.75f);
  return unless_nan(x, value);
}

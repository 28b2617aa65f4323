// The activations of the gated kernels: act(x), and act_with_derivative(x) -> (value, derivative).
// Exactly one of the flags silu, gelu_erf, gelu_tanh, relu, sigmoid is set. Formulas are those of
// src/math/activation.rs: everything comes from the small side, where nothing cancels or overflows.
#import exponential
#if gelu_erf
#import error_function
#endif

#if relu
fn is_above_zero(x: f32) -> bool {
  // As integers, positive numbers and positive NaN are above 0; -0 and negative numbers are below.
  return bitcast<i32>(x) > 0i || is_nan(x);
}

fn act(x: f32) -> f32 {
  return select(0.0f, x, is_above_zero(x));
}

fn act_with_derivative(x: f32) -> vec2<f32> {
  return select(vec2<f32>(0.0f), vec2<f32>(x, 1.0f), is_above_zero(x));
}
#elif sigmoid
fn act(x: f32) -> f32 {
  return sigmoid_f32(x);
}

fn act_with_derivative(x: f32) -> vec2<f32> {
  let l = logistic(scaled_exp(-clamped_magnitude(x, 105.0f), 0.0f));
  let value = select(l.upper, lower_times(l, 1.0f), is_negative(x));
  return select(vec2<f32>(value, lower_times(l, l.upper)), vec2<f32>(x), is_nan(x));
}
#elif gelu_erf
const LARGEST_MAGNITUDE = 14.625f;

fn value_from(x: f32, magnitude: f32, tail: Tail) -> f32 {
  // Not x minus the lower part: near the smallest normal that part may flush, and with it half of the result.
  let upper = 1.0f - tail_times(tail, 1.0f);
  return select(x * upper, -tail_times(tail, magnitude), is_negative(x));
}

fn act(x: f32) -> f32 {
  let magnitude = clamped_magnitude(x, LARGEST_MAGNITUDE);
  return unless_nan(x, value_from(x, magnitude, normal_tail(magnitude)));
}

fn act_with_derivative(x: f32) -> vec2<f32> {
  let magnitude = clamped_magnitude(x, LARGEST_MAGNITUDE);
  let tail = normal_tail(magnitude);
  // The lower tail minus |x|·e^(-x²/2)/sqrt(2π), the exponential taken out.
  let lower = exp_times(tail.exp, tail.quotient - magnitude * 0.3989423f * tail.stretch);
  let derivative = select(1.0f - lower, lower, is_negative(x));
  return select(vec2<f32>(value_from(x, magnitude, tail), derivative), vec2<f32>(x), is_nan(x));
}
#else
struct Gate {
  magnitude: f32, // |x|, clamped
  logistic: Logistic, // of the sigmoid's argument
  slope: f32, // the derivative of that argument
}

#if gelu_tanh
// The leading twelve bits, whose products with each other are exact.
fn twelve_bits(x: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
}

// x·sigmoid(2u), u = sqrt(2/π)·(x + 0.044715·x³). The exponential multiplies a relative error of 2u by 2u: so each
// product is split into an exact part and a much smaller rest.
fn gate(x: f32) -> Gate {
  let magnitude = clamped_magnitude(x, 11.0f);
  let high = twelve_bits(magnitude);
  let low = magnitude - high;
  let square = magnitude * magnitude;
  let square_high = twelve_bits(square);
  let square_low = (high * high - square_high) + low * (magnitude + high);
  let product = 0.0713501f * square_high;
  let leading = twelve_bits(1.59375f + product);
  let rest = 4.7186163e-6f * square + 0.0713501f * square_low;
  let trailing = ((1.59375f - leading) + product) + (0.0020191215f + rest);
  let exp = scaled_exp(-(high * leading), -(low * leading + magnitude * trailing));
  return Gate(magnitude, logistic(exp), 1.5957692f + 0.21406445f * magnitude * magnitude);
}
#else
fn gate(x: f32) -> Gate {
  let magnitude = clamped_magnitude(x, 110.0f);
  return Gate(magnitude, logistic(scaled_exp(-magnitude, 0.0f)), 1.0f);
}
#endif

fn value_from(x: f32, g: Gate) -> f32 {
  return select(x * g.logistic.upper, -lower_times(g.logistic, g.magnitude), is_negative(x));
}

fn act(x: f32) -> f32 {
  return unless_nan(x, value_from(x, gate(x)));
}

fn act_with_derivative(x: f32) -> vec2<f32> {
  let g = gate(x);
  let lower = lower_times(g.logistic, 1.0f - g.magnitude * g.logistic.upper * g.slope);
  let derivative = select(1.0f - lower, lower, is_negative(x));
  return select(vec2<f32>(value_from(x, g), derivative), vec2<f32>(x), is_nan(x));
}
#endif

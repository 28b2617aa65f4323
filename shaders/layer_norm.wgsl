// y = (x - mean) * rstd * weight + bias over each row, rstd = 1 / sqrt(var + eps), biased variance.
// One f32 cannot hold the mean of a row far from zero closely enough: the mean of x - mean is a second part of it.
// Terms are divided before they are added, so that large values do not overflow in a sum.
// `plain` reads a row three times; `wide` and `narrow` hold it in registers, four elements to a vector.
#import dispatch
#import reduce

struct Params {
  rows: u32,
  cols: u32,
  eps: f32,
  inverse_cols: f32,
}

#if plain
alias element = scalar;
#else
alias element = vec4<scalar>;
#endif

@group(0) @binding(0) var<storage, read> x: array<element>;
#if weight
@group(0) @binding(1) var<storage, read> weight: array<element>;
#endif
#if bias
@group(0) @binding(2) var<storage, read> bias: array<element>;
#endif
@group(0) @binding(3) var<storage, read_write> y: array<element>;
@group(0) @binding(4) var<storage, read_write> mean: array<f32>;
@group(0) @binding(5) var<storage, read_write> rstd: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

#import row_main

// What a row's sums of x - center and of its square make: the rest of the mean, and 1 / std.
fn statistics(row: u32, lane: u32, center: f32, sums: vec3<f32>) -> vec2<f32> {
  // A variance that rounding made negative counts as zero. By its bits: max(NaN, 0) may be 0.
  let variance = sums.y - sums.x * sums.x;
  let bits = bitcast<u32>(variance);
  let r = 1.0 / sqrt(select(variance, 0.0, bits > 0x80000000u && bits <= 0xff800000u) + params.eps);
  if lane == 0u {
    mean[row] = center + sums.x;
    rstd[row] = r;
  }
  return vec2<f32>(sums.x, r);
}

#if plain
fn row_kernel(row: u32, lane: u32) {
  let start = row * params.cols;
  var sum = 0.0;
  for (var first = lane; first < params.cols; first += BLOCK) {
    var part = 0.0;
    let end = min(first + BLOCK, params.cols);
    for (var k = first; k < end; k += LANES) { part += f32(x[start + k]) * params.inverse_cols; }
    sum += part;
  }
  let center = row_sum(sum, lane);
  var rest = vec3<f32>(0.0);
  for (var first = lane; first < params.cols; first += BLOCK) {
    var part = vec3<f32>(0.0);
    let end = min(first + BLOCK, params.cols);
    for (var k = first; k < end; k += LANES) {
      let d = f32(x[start + k]) - center;
      let share = d * params.inverse_cols;
      part += vec3<f32>(share, d * share, 0.0);
    }
    rest += part;
  }
  let s = statistics(row, lane, center, row_sum3(rest, lane));
  for (var k = lane; k < params.cols; k += LANES) {
    var v = ((f32(x[start + k]) - center) - s.x) * s.y;
#if weight
    v *= f32(weight[k]);
#endif
#if bias
    v += f32(bias[k]);
#endif
    y[start + k] = to_scalar(v);
  }
}
#else
#import held

fn row_kernel(row: u32, lane: u32) {
  let quads = params.cols / 4u;
  let start = row * quads;
  var v: array<vec4<f32>, HELD>;
  var sum = 0.0;
  for (var k = 0u; k < HELD; k++) {
    let at = lane + k * lanes();
    v[k] = vec4<f32>(0.0);
    if at < quads { v[k] = vec4<f32>(x[start + at]); }
    sum += dot(v[k], vec4<f32>(params.inverse_cols));
  }
  let center = row_sum(sum, lane);
  var rest = vec3<f32>(0.0);
  for (var k = 0u; k < HELD; k++) {
    if lane + k * lanes() < quads {
      v[k] -= center;
      let share = v[k] * params.inverse_cols;
      rest += vec3<f32>(dot(share, vec4<f32>(1.0)), dot(v[k], share), 0.0);
    }
  }
  let s = statistics(row, lane, center, row_sum3(rest, lane));
  for (var k = 0u; k < HELD; k++) {
    let at = lane + k * lanes();
    if at < quads {
      var r = (v[k] - s.x) * s.y;
#if weight
      r *= vec4<f32>(weight[at]);
#endif
#if bias
      r += vec4<f32>(bias[at]);
#endif
      y[start + at] = to_scalar4(r);
    }
  }
}
#endif

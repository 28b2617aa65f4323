// y = (x - mean) * rstd * weight + bias over each row, rstd = 1 / sqrt(var + eps), biased variance.
// One f32 cannot hold the mean of a row far from zero closely enough: the mean of x - mean is a second part of it.
#import dispatch
#import reduce

struct Params {
  rows: u32,
  cols: u32,
  eps: f32,
  inverse_cols: f32,
}

@group(0) @binding(0) var<storage, read> x: array<scalar>;
#if weight
@group(0) @binding(1) var<storage, read> weight: array<scalar>;
#endif
#if bias
@group(0) @binding(2) var<storage, read> bias: array<scalar>;
#endif
@group(0) @binding(3) var<storage, read_write> y: array<scalar>;
@group(0) @binding(4) var<storage, read_write> mean: array<f32>;
@group(0) @binding(5) var<storage, read_write> rstd: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

#import row_main

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
  // Terms are divided before they are added, so that squares of large values do not overflow in the sum.
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
  rest = row_sum3(rest, lane);
  let shift = rest.x;
  let r = 1.0 / sqrt(max(rest.y - shift * shift, 0.0) + params.eps);
  if lane == 0u {
    mean[row] = center + shift;
    rstd[row] = r;
  }
  for (var k = lane; k < params.cols; k += LANES) {
    var v = ((f32(x[start + k]) - center) - shift) * r;
#if weight
    v *= f32(weight[k]);
#endif
#if bias
    v += f32(bias[k]);
#endif
    y[start + k] = to_scalar(v);
  }
}

// dx = rstd * (g - c1 - xhat * c2), g = dy * weight, c1 = mean(g), c2 = mean(g * xhat), all three row sums at once.
// The third is the mean of x - mean that one f32 left over; the sums over rows need it too, so it is written out.
#import dispatch
#import reduce

struct Params {
  rows: u32,
  cols: u32,
  inverse_cols: f32,
  padding: u32,
}

@group(0) @binding(0) var<storage, read> dy: array<scalar>;
@group(0) @binding(1) var<storage, read> x: array<scalar>;
@group(0) @binding(2) var<storage, read> mean: array<f32>;
@group(0) @binding(3) var<storage, read> rstd: array<f32>;
#if weight
@group(0) @binding(4) var<storage, read> weight: array<scalar>;
#endif
#if dx
@group(0) @binding(5) var<storage, read_write> dx: array<scalar>;
#endif
#if shift
@group(0) @binding(6) var<storage, read_write> shift: array<f32>;
#endif
@group(0) @binding(7) var<uniform> params: Params;

#import row_main

fn weighted(row_start: u32, k: u32) -> f32 {
#if weight
  return f32(dy[row_start + k]) * f32(weight[k]);
#else
  return f32(dy[row_start + k]);
#endif
}

fn row_kernel(row: u32, lane: u32) {
  let start = row * params.cols;
  let center = mean[row];
  let r = rstd[row];
  var sums = vec3<f32>(0.0);
  for (var first = lane; first < params.cols; first += BLOCK) {
    var part = vec3<f32>(0.0);
    let end = min(first + BLOCK, params.cols);
    for (var k = first; k < end; k += LANES) {
      let g = weighted(start, k) * params.inverse_cols;
      let d = f32(x[start + k]) - center;
      part += vec3<f32>(g, g * (d * r), d * params.inverse_cols);
    }
    sums += part;
  }
  sums = row_sum3(sums, lane);
#if shift
  if lane == 0u { shift[row] = sums.z; }
#endif
#if dx
  // g * (d - shift) summed is g * d summed less shift times g summed.
  let c2 = sums.y - sums.x * (sums.z * r);
  for (var k = lane; k < params.cols; k += LANES) {
    let centered = ((f32(x[start + k]) - center) - sums.z) * r;
    dx[start + k] = to_scalar(r * (weighted(start, k) - sums.x - centered * c2));
  }
#endif
}

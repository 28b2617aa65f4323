// dx = rstd * (g - c1 - xhat * c2), g = dy * weight, c1 = mean(g), c2 = mean(g * xhat), and the sums dw of dy * xhat and db of
// dy over groups of rows: a group is what row_main calls a row here, so that one pass over x and dy gives all three.
// A row's three sums are taken at once; the third is the mean of x - mean that one f32 left over.
#import dispatch
#import reduce

struct Params {
  // Groups of rows.
  rows: u32,
  cols: u32,
  inverse_cols: f32,
  all_rows: u32,
  group_rows: u32,
}

#if plain
alias element = scalar;
alias sums = f32;
#else
alias element = vec4<scalar>;
alias sums = vec4<f32>;
#endif

@group(0) @binding(0) var<storage, read> dy: array<element>;
@group(0) @binding(1) var<storage, read> x: array<element>;
@group(0) @binding(2) var<storage, read> mean: array<f32>;
@group(0) @binding(3) var<storage, read> rstd: array<f32>;
#if weight
@group(0) @binding(4) var<storage, read> weight: array<element>;
#endif
#if dx
@group(0) @binding(5) var<storage, read_write> dx: array<element>;
#endif
#if dw
@group(0) @binding(6) var<storage, read_write> dw: array<sums>;
#endif
#if db
@group(0) @binding(7) var<storage, read_write> db: array<sums>;
#endif
@group(0) @binding(8) var<uniform> params: Params;

#import row_main

#if plain
fn weighted(upstream: f32, k: u32) -> f32 {
#if weight
  return upstream * f32(weight[k]);
#else
  return upstream;
#endif
}

fn one_row(group: u32, row: u32, lane: u32, is_first: bool) {
  let start = row * params.cols;
  let center = mean[row];
  let r = rstd[row];
  var total = vec3<f32>(0.0);
  for (var first = lane; first < params.cols; first += BLOCK) {
    var part = vec3<f32>(0.0);
    let end = min(first + BLOCK, params.cols);
    for (var k = first; k < end; k += LANES) {
      let g = weighted(f32(dy[start + k]), k) * params.inverse_cols;
      let d = f32(x[start + k]) - center;
      part += vec3<f32>(g, g * (d * r), d * params.inverse_cols);
    }
    total += part;
  }
  total = row_sum3(total, lane);
  // g * (d - shift) summed is g * d summed less shift times g summed.
  let c2 = total.y - total.x * (total.z * r);
  for (var k = lane; k < params.cols; k += LANES) {
    let upstream = f32(dy[start + k]);
    let centered = ((f32(x[start + k]) - center) - total.z) * r;
#if dx
    dx[start + k] = to_scalar(r * (weighted(upstream, k) - total.x - centered * c2));
#endif
    // A lane has its columns to itself: the group's sums can stay in memory.
    let place = group * params.cols + k;
#if dw
    if is_first { dw[place] = upstream * centered; } else { dw[place] += upstream * centered; }
#endif
#if db
    if is_first { db[place] = upstream; } else { db[place] += upstream; }
#endif
  }
}

fn row_kernel(group: u32, lane: u32) {
  let first = group * params.group_rows;
  let last = min(first + params.group_rows, params.all_rows);
  for (var row = first; row < last; row++) { one_row(group, row, lane, row == first); }
}
#else
#import held

fn weighted(upstream: vec4<f32>, at: u32) -> vec4<f32> {
#if weight
  return upstream * vec4<f32>(weight[at]);
#else
  return upstream;
#endif
}

// A row's vectors as a lane reads them. Places past the end read the last one, and count as zero: loads behind a condition would
// wait for each other.
var<private> next_u: array<vec4<scalar>, HELD>;
var<private> next_x: array<vec4<scalar>, HELD>;

fn read_row(row: u32, quads: u32, lane: u32) {
  for (var k = 0u; k < HELD; k++) {
    let at = row * quads + min(lane + k * lanes(), quads - 1u);
    next_u[k] = dy[at];
    next_x[k] = x[at];
  }
}

fn row_kernel(group: u32, lane: u32) {
  let quads = params.cols / 4u;
  let first = group * params.group_rows;
  let last = min(first + params.group_rows, params.all_rows);
  var sum_w: array<vec4<f32>, HELD>;
  var sum_b: array<vec4<f32>, HELD>;
  read_row(first, quads, lane);
  for (var row = first; row < last; row++) {
    let center = mean[row];
    let r = rstd[row];
    var u: array<vec4<f32>, HELD>;
    var d: array<vec4<f32>, HELD>;
    var total = vec3<f32>(0.0);
    for (var k = 0u; k < HELD; k++) {
      let at = lane + k * lanes();
      u[k] = select(vec4<f32>(0.0), vec4<f32>(next_u[k]), at < quads);
      d[k] = select(vec4<f32>(0.0), vec4<f32>(next_x[k]) - center, at < quads);
      let g = weighted(u[k], min(at, quads - 1u)) * params.inverse_cols;
      total += vec3<f32>(dot(g, vec4<f32>(1.0)), dot(g, d[k] * r), dot(d[k], vec4<f32>(params.inverse_cols)));
    }
    // The next row is on its way while this one's sums are taken.
    if row + 1u < last { read_row(row + 1u, quads, lane); }
    total = row_sum3(total, lane);
    let c2 = total.y - total.x * (total.z * r);
    for (var k = 0u; k < HELD; k++) {
      let at = lane + k * lanes();
      if at < quads {
        let centered = (d[k] - total.z) * r;
#if dx
        dx[row * quads + at] = to_scalar4(r * (weighted(u[k], at) - total.x - centered * c2));
#endif
        sum_w[k] += u[k] * centered;
        sum_b[k] += u[k];
      }
    }
  }
  for (var k = 0u; k < HELD; k++) {
    let at = lane + k * lanes();
    if at < quads {
#if dw
      dw[group * quads + at] = sum_w[k];
#endif
#if db
      db[group * quads + at] = sum_b[k];
#endif
    }
  }
}
#endif

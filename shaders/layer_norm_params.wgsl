// The first of two ordered stages of dw = sum(dy * xhat) and db = sum(dy) over rows: one partial sum a column and group.
#import dispatch

struct Params {
  rows: u32,
  cols: u32,
  groups: u32,
  rows_per_group: u32,
}

@group(0) @binding(0) var<storage, read> dy: array<scalar>;
#if dw
@group(0) @binding(1) var<storage, read> x: array<scalar>;
@group(0) @binding(2) var<storage, read> mean: array<f32>;
@group(0) @binding(3) var<storage, read> rstd: array<f32>;
@group(0) @binding(4) var<storage, read> shift: array<f32>;
@group(0) @binding(5) var<storage, read_write> dw: array<f32>;
#endif
#if db
@group(0) @binding(6) var<storage, read_write> db: array<f32>;
#endif
@group(0) @binding(7) var<uniform> params: Params;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let i = linear_workgroup(workgroup, workgroups) * 256u + local;
  if i >= params.groups * params.cols { return; }
  let group = i / params.cols;
  let col = i % params.cols;
  let first = group * params.rows_per_group;
  let last = min(first + params.rows_per_group, params.rows);
  var sum = vec2<f32>(0.0);
  for (var row = first; row < last; row++) {
    let place = row * params.cols + col;
    let upstream = f32(dy[place]);
#if dw
    sum.x += upstream * (((f32(x[place]) - mean[row]) - shift[row]) * rstd[row]);
#endif
    sum.y += upstream;
  }
#if dw
  dw[i] = sum.x;
#endif
#if db
  db[i] = sum.y;
#endif
}

// c = a b for matrices that lie anyhow: a transposed operand is a pair of strides. Batches are walked like any view.
#import dispatch
#import strided

struct Params {
  m: u32,
  n: u32,
  k: u32,
  batches: u32,
  a_offset: u32,
  b_offset: u32,
  a_row: u32,
  a_col: u32,
  b_row: u32,
  b_col: u32,
  rank: u32,
  padding: u32,
  sizes: array<vec4<u32>, 2>,
  a_strides: array<vec4<u32>, 2>,
  b_strides: array<vec4<u32>, 2>,
}

@group(0) @binding(0) var<storage, read> a: array<scalar>;
@group(0) @binding(1) var<storage, read> b: array<scalar>;
@group(0) @binding(2) var<storage, read_write> c: array<scalar>;
@group(0) @binding(3) var<uniform> params: Params;

// Where a batch of each operand begins.
fn bases(batch: u32) -> vec2<u32> {
  return vec2<u32>(
    params.a_offset + position(batch, params.sizes, params.a_strides, params.rank),
    params.b_offset + position(batch, params.sizes, params.b_strides, params.rank));
}

fn store_row(batch: u32, row: u32, first_col: u32, values: vec4<f32>) {
  if row >= params.m { return; }
  let start = (batch * params.m + row) * params.n;
  for (var j = 0u; j < 4u; j++) {
    if first_col + j < params.n { c[start + first_col + j] = to_scalar(values[j]); }
  }
}

#if serial
// Without barriers: an invocation has 4 x 4 results and reads what they need.
@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let i = linear_workgroup(workgroup, workgroups) * 64u + local;
  let wide = (params.n + 3u) / 4u;
  let high = (params.m + 3u) / 4u;
  if i >= params.batches * high * wide { return; }
  let batch = i / (high * wide);
  let row = (i / wide) % high * 4u;
  let col = i % wide * 4u;
  let base = bases(batch);
  // Rows and columns past the end read the last one again: in bounds, and never stored.
  let last = vec2<u32>(params.m - 1u, params.n - 1u);
  let a0 = base.x + min(row, last.x) * params.a_row;
  let a1 = base.x + min(row + 1u, last.x) * params.a_row;
  let a2 = base.x + min(row + 2u, last.x) * params.a_row;
  let a3 = base.x + min(row + 3u, last.x) * params.a_row;
  let b0 = base.y + min(col, last.y) * params.b_col;
  let b1 = base.y + min(col + 1u, last.y) * params.b_col;
  let b2 = base.y + min(col + 2u, last.y) * params.b_col;
  let b3 = base.y + min(col + 3u, last.y) * params.b_col;
  var r0 = vec4<f32>(0.0);
  var r1 = vec4<f32>(0.0);
  var r2 = vec4<f32>(0.0);
  var r3 = vec4<f32>(0.0);
  for (var k = 0u; k < params.k; k++) {
    let y = k * params.b_row;
    let x = k * params.a_col;
    let v = vec4<f32>(f32(b[b0 + y]), f32(b[b1 + y]), f32(b[b2 + y]), f32(b[b3 + y]));
    r0 += f32(a[a0 + x]) * v;
    r1 += f32(a[a1 + x]) * v;
    r2 += f32(a[a2 + x]) * v;
    r3 += f32(a[a3 + x]) * v;
  }
  store_row(batch, row, col, r0);
  store_row(batch, row + 1u, col, r1);
  store_row(batch, row + 2u, col, r2);
  store_row(batch, row + 3u, col, r3);
}
#else
// 64 x 64 results a workgroup, 4 x 4 an invocation, 16 of k at a time through workgroup memory.
var<workgroup> tile_a: array<array<f32, 64>, 16>;
var<workgroup> tile_b: array<array<f32, 64>, 16>;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let wide = (params.n + 63u) / 64u;
  let high = (params.m + 63u) / 64u;
  let i = linear_workgroup(workgroup, workgroups);
  if i >= params.batches * high * wide { return; }
  let batch = i / (high * wide);
  let row = (i / wide) % high * 64u;
  let col = i % wide * 64u;
  let base = bases(batch);
  let x = local % 16u * 4u;
  let y = local / 16u * 4u;
  var r0 = vec4<f32>(0.0);
  var r1 = vec4<f32>(0.0);
  var r2 = vec4<f32>(0.0);
  var r3 = vec4<f32>(0.0);
  // Neighbouring invocations read neighbouring elements, whichever way the operand lies.
  let a_along_k = params.a_col == 1u;
  let b_along_k = params.b_row == 1u;
  for (var k0 = 0u; k0 < params.k; k0 += 16u) {
    for (var part = 0u; part < 4u; part++) {
      let e = part * 256u + local;
      let ak = select(e / 64u, e % 16u, a_along_k);
      let am = select(e % 64u, e / 16u, a_along_k);
      var v = 0.0;
      if row + am < params.m && k0 + ak < params.k {
        v = f32(a[base.x + (row + am) * params.a_row + (k0 + ak) * params.a_col]);
      }
      tile_a[ak][am] = v;
      let bk = select(e / 64u, e % 16u, b_along_k);
      let bn = select(e % 64u, e / 16u, b_along_k);
      v = 0.0;
      if col + bn < params.n && k0 + bk < params.k {
        v = f32(b[base.y + (k0 + bk) * params.b_row + (col + bn) * params.b_col]);
      }
      tile_b[bk][bn] = v;
    }
    workgroupBarrier();
    for (var k = 0u; k < 16u; k++) {
      let v = vec4<f32>(tile_b[k][x], tile_b[k][x + 1u], tile_b[k][x + 2u], tile_b[k][x + 3u]);
      r0 += tile_a[k][y] * v;
      r1 += tile_a[k][y + 1u] * v;
      r2 += tile_a[k][y + 2u] * v;
      r3 += tile_a[k][y + 3u] * v;
    }
    workgroupBarrier();
  }
  store_row(batch, row + y, col + x, r0);
  store_row(batch, row + y + 1u, col + x, r1);
  store_row(batch, row + y + 2u, col + x, r2);
  store_row(batch, row + y + 3u, col + x, r3);
}
#endif

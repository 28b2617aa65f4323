// Copies elements from one layout to another.
#import dispatch
#import strided

struct Params {
  count: u32,
  rank: u32,
  source_offset: u32,
  target_offset: u32,
  sizes: array<vec4<u32>, 2>,
  source_strides: array<vec4<u32>, 2>,
  target_strides: array<vec4<u32>, 2>,
}

@group(0) @binding(0) var<storage, read> source: array<scalar>;
@group(0) @binding(1) var<storage, read_write> out: array<scalar>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let i = linear_workgroup(workgroup, workgroups) * 256u + local;
  if i >= params.count { return; }
  let from_place = params.source_offset + position(i, params.sizes, params.source_strides, params.rank);
  let to_place = params.target_offset + position(i, params.sizes, params.target_strides, params.rank);
  out[to_place] = source[from_place];
}

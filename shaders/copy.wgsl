// Copies elements from one layout to another; under `vec4` both lie in order without gaps, from whole vectors on.
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

#if vec4
alias element = vec4<scalar>;
#else
alias element = scalar;
#endif

@group(0) @binding(0) var<storage, read> source: array<element>;
@group(0) @binding(1) var<storage, read_write> out: array<element>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let i = linear_workgroup(workgroup, workgroups) * 256u + local;
#if vec4
  let first = i * 4u;
  if first >= params.count { return; }
  let value = source[params.source_offset / 4u + i];
  let place = params.target_offset / 4u + i;
  if first + 4u <= params.count {
    out[place] = value;
  } else {
    // What lies behind the last element is not this copy's.
    for (var k = 0u; k < params.count - first; k++) { out[place][k] = value[k]; }
  }
#else
  if i >= params.count { return; }
  let from_place = params.source_offset + position(i, params.sizes, params.source_strides, params.rank);
  let to_place = params.target_offset + position(i, params.sizes, params.target_strides, params.rank);
  out[to_place] = source[from_place];
#endif
}

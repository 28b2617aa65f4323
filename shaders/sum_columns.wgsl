// Sums of a middle dimension, [outer, length, inner] -> [outer, groups, inner], `per_group` elements to a group.
#import dispatch

struct Params {
  outer: u32,
  length: u32,
  inner: u32,
  groups: u32,
  per_group: u32,
  scale: f32,
}

#if resumed
@group(0) @binding(1) var<storage, read> partials_in: array<f32>;
#else
@group(0) @binding(0) var<storage, read> x: array<scalar>;
#endif
#if partial
@group(0) @binding(3) var<storage, read_write> partials_out: array<f32>;
#else
@group(0) @binding(2) var<storage, read_write> out: array<scalar>;
#endif
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let i = linear_workgroup(workgroup, workgroups) * 256u + local;
  if i >= params.outer * params.groups * params.inner { return; }
  let col = i % params.inner;
  let group = (i / params.inner) % params.groups;
  let start = (i / params.inner / params.groups) * params.length * params.inner + col;
  let first = group * params.per_group;
  let last = min(first + params.per_group, params.length);
  var sum = 0.0;
  for (var k = first; k < last; k++) {
#if resumed
    sum += partials_in[start + k * params.inner];
#else
    sum += f32(x[start + k * params.inner]);
#endif
  }
#if partial
  partials_out[i] = sum * params.scale;
#else
  out[i] = to_scalar(sum * params.scale);
#endif
}

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

fn term(at: u32) -> f32 {
#if resumed
  return partials_in[at];
#else
  return f32(x[at]);
#endif
}

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
  // Four at a time: the loads of a column do not wait for each other.
  var sum = 0.0;
  var k = first;
  for (; k + 4u <= last; k += 4u) {
    let at = start + k * params.inner;
    sum += (term(at) + term(at + params.inner)) + (term(at + 2u * params.inner) + term(at + 3u * params.inner));
  }
  for (; k < last; k++) { sum += term(start + k * params.inner); }
#if partial
  partials_out[i] = sum * params.scale;
#else
  out[i] = to_scalar(sum * params.scale);
#endif
}

// Every element becomes one value, given by its bits.
#import dispatch

struct Params {
  count: u32,
  bits: u32,
}

@group(0) @binding(0) var<storage, read_write> out: array<scalar>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let i = linear_workgroup(workgroup, workgroups) * 256u + local;
  if i >= params.count { return; }
#if float
  out[i] = to_scalar(bitcast<f32>(params.bits));
#else
  out[i] = bitcast<scalar>(params.bits);
#endif
}

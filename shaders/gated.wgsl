// out = act(a) * b. Packed layouts are two views of one buffer, so they need nothing of their own.
#import activation
#import dispatch
#import pair

@group(0) @binding(0) var<storage, read> a: array<element>;
@group(0) @binding(1) var<storage, read> b: array<element>;
@group(0) @binding(2) var<storage, read_write> out: array<element>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let i = linear_workgroup(workgroup, workgroups) * 256u + local;
  if i >= outputs(params) { return; }
  let at = places(params, i);
#if vec4
  let x = vec4<f32>(a[at.x]);
  out[i] = to_scalar4(vec4<f32>(act(x.x), act(x.y), act(x.z), act(x.w)) * vec4<f32>(b[at.y]));
#else
  out[i] = to_scalar(act(f32(a[at.x])) * f32(b[at.y]));
#endif
}

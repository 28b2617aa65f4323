// out = a (+, -, *, /) b under broadcasting.
#import dispatch
#import pair

@group(0) @binding(0) var<storage, read> a: array<element>;
@group(0) @binding(1) var<storage, read> b: array<element>;
@group(0) @binding(2) var<storage, read_write> out: array<element>;
@group(0) @binding(3) var<uniform> params: Params;

#if vec4
alias wide = vec4<f32>;
#else
alias wide = f32;
#endif

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let i = linear_workgroup(workgroup, workgroups) * 256u + local;
  if i >= outputs(params) { return; }
  let at = places(params, i);
  let x = wide(a[at.x]);
  let y = wide(b[at.y]);
#if add
  let z = x + y;
#elif sub
  let z = x - y;
#elif mul
  let z = x * y;
#else
  let z = x / y;
#endif
#if vec4
  out[i] = to_scalar4(z);
#else
  out[i] = to_scalar(z);
#endif
}

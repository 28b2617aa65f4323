// One step of AdamW in place: decay, then the bias-corrected moments.
#import dispatch

struct Params {
  count: u32,
  rate: f32,
  beta1: f32,
  beta2: f32,
  eps: f32,
  keep: f32,
  inverse_correction1: f32,
  inverse_root_correction2: f32,
}

@group(0) @binding(0) var<storage, read_write> parameter: array<scalar>;
@group(0) @binding(1) var<storage, read_write> first: array<f32>;
@group(0) @binding(2) var<storage, read_write> second: array<f32>;
@group(0) @binding(3) var<storage, read> gradient: array<scalar>;
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let i = linear_workgroup(workgroup, workgroups) * 256u + local;
  if i >= params.count { return; }
  let g = f32(gradient[i]);
  let m = first[i] + (1.0 - params.beta1) * (g - first[i]);
  // Not as a step towards g * g: where that is infinite, the moment stays so.
  let v = params.beta2 * second[i] + (1.0 - params.beta2) * g * g;
  first[i] = m;
  second[i] = v;
  let step = params.rate * (m * params.inverse_correction1) / (sqrt(v) * params.inverse_root_correction2 + params.eps);
  parameter[i] = to_scalar(f32(parameter[i]) * params.keep - step);
}

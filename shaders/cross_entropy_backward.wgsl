// dx = dy * (softmax(x) - q), q the smoothed one-hot row; zero where the row is ignored or its target is no class.
#import dispatch
#import exponential

struct Params {
  rows: u32,
  classes: u32,
  ignore_index: i32,
  smoothing: f32,
  kernel: u32,
}

@group(0) @binding(0) var<storage, read> dy: array<scalar>;
@group(0) @binding(1) var<storage, read> x: array<scalar>;
@group(0) @binding(2) var<storage, read> labels: array<i32>;
@group(0) @binding(3) var<storage, read> row_max: array<f32>;
@group(0) @binding(4) var<storage, read> log_sum: array<f32>;
@group(0) @binding(5) var<storage, read_write> dx: array<scalar>;
@group(0) @binding(6) var<uniform> params: Params;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let i = linear_workgroup(workgroup, workgroups) * 256u + local;
  if i >= params.rows * params.classes { return; }
  let row = i / params.classes;
  let label = labels[row];
  if label == params.ignore_index {
    dx[i] = to_scalar(0.0);
    return;
  }
  let probability = exp_f32((f32(x[i]) - row_max[row]) - log_sum[row]);
  let hit = select(0.0, 1.0 - params.smoothing, u32(label) == i % params.classes);
  dx[i] = to_scalar(f32(dy[row]) * (probability - hit - params.smoothing / f32(params.classes)));
}

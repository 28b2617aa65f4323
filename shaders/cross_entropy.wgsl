// loss = log(sum(exp(x))) - x[target] by rows, smoothed: (1 - s) of it and s of the mean over all classes.
// The row's maximum and the logarithm are saved for the backward pass; an ignored row has loss 0 and does not count.
#import dispatch
#import exponential
#import faults
#import reduce

struct Params {
  rows: u32,
  classes: u32,
  ignore_index: i32,
  smoothing: f32,
  kernel: u32,
}

@group(0) @binding(0) var<storage, read> x: array<scalar>;
@group(0) @binding(1) var<storage, read> labels: array<i32>;
@group(0) @binding(2) var<storage, read_write> loss: array<scalar>;
@group(0) @binding(3) var<storage, read_write> counted: array<scalar>;
@group(0) @binding(4) var<storage, read_write> row_max: array<f32>;
@group(0) @binding(5) var<storage, read_write> log_sum: array<f32>;
@group(0) @binding(6) var<storage, read_write> faults: Faults;
@group(0) @binding(7) var<uniform> params: Params;

#import row_main

fn row_kernel(row: u32, lane: u32) {
  let start = row * params.classes;
  var top = bitcast<f32>(0xff7fffffu);
  for (var k = lane; k < params.classes; k += LANES) { top = max(top, f32(x[start + k])); }
  top = row_maximum(top, lane);
  var sums = vec3<f32>(0.0);
  for (var first = lane; first < params.classes; first += BLOCK) {
    var part = vec3<f32>(0.0);
    let end = min(first + BLOCK, params.classes);
    for (var k = first; k < end; k += LANES) {
      let below = f32(x[start + k]) - top;
      part += vec3<f32>(exp_f32(below), -below, 0.0);
    }
    sums += part;
  }
  sums = row_sum3(sums, lane);
  if lane != 0u { return; }
  let log_of_sum = log_f32(sums.x);
  row_max[row] = top;
  log_sum[row] = log_of_sum;
  let label = labels[row];
  let ignored = label == params.ignore_index;
  var value = 0.0;
  if !ignored {
    if label < 0 || u32(label) >= params.classes {
      report_fault(params.kernel, row, label);
    } else {
      value = (1.0 - params.smoothing) * ((top - f32(x[start + u32(label)])) + log_of_sum);
      // 0 * inf would be NaN where a logit is -inf.
      if params.smoothing > 0.0 { value += params.smoothing * (log_of_sum + sums.y / f32(params.classes)); }
    }
  }
  loss[row] = to_scalar(value);
  counted[row] = to_scalar(select(1.0, 0.0, ignored));
}

// Sums of the last dimension in parts: `rows` counts parts, `chunks` to a row of `cols`, up to `chunk` elements each.
#import dispatch
#import reduce

struct Params {
  rows: u32,
  cols: u32,
  chunks: u32,
  chunk: u32,
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

#import row_main

fn row_kernel(row: u32, lane: u32) {
  let start = (row / params.chunks) * params.cols;
  let first = (row % params.chunks) * params.chunk;
  let last = min(first + params.chunk, params.cols);
  var sum = 0.0;
  for (var block = first + lane; block < last; block += BLOCK) {
    var part = 0.0;
    let end = min(block + BLOCK, last);
    for (var k = block; k < end; k += LANES) {
#if resumed
      part += partials_in[start + k];
#else
      part += f32(x[start + k]);
#endif
    }
    sum += part;
  }
  sum = row_sum(sum, lane) * params.scale;
  if lane == 0u {
#if partial
    partials_out[row] = sum;
#else
    out[row] = to_scalar(sum);
#endif
  }
}

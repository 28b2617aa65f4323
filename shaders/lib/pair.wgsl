// Where the two operands of an output lie; src/pairing.rs plans it. `i` counts vec4s under `vec4`, else elements.
#import strided

struct Params {
  count: u32,
  cols: u32,
  a_offset: u32,
  b_offset: u32,
  a_row: u32,
  b_row: u32,
  rank: u32,
  padding: u32,
  sizes: array<vec4<u32>, 2>,
  a_strides: array<vec4<u32>, 2>,
  b_strides: array<vec4<u32>, 2>,
}

#if vec4
alias element = vec4<scalar>;

// The buffers are padded to whole vec4s: the last one may run past the last element.
fn outputs(params: Params) -> u32 {
  return (params.count + 3u) / 4u;
}

fn places(params: Params, i: u32) -> vec2<u32> {
  let cols = (params.cols + 3u) / 4u;
  let row = i / cols;
  let col = i % cols;
  return vec2<u32>((params.a_offset + row * params.a_row) / 4u + col, (params.b_offset + row * params.b_row) / 4u + col);
}
#else
alias element = scalar;

fn outputs(params: Params) -> u32 {
  return params.count;
}

#if flat
fn places(params: Params, i: u32) -> vec2<u32> {
  let row = i / params.cols;
  let col = i % params.cols;
  return vec2<u32>(params.a_offset + row * params.a_row + col, params.b_offset + row * params.b_row + col);
}
#else
fn places(params: Params, i: u32) -> vec2<u32> {
  return vec2<u32>(
    params.a_offset + position(i, params.sizes, params.a_strides, params.rank),
    params.b_offset + position(i, params.sizes, params.b_strides, params.rank));
}
#endif
#endif

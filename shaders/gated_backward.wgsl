// da = dy * b * act'(a), db = dy * act(a). The activation is computed again from a: nothing else is saved.
// `packed` writes both into dx, rows of [da | db], or of [db | da] under `packed_swapped`.
#import activation
#import dispatch
#import pair

@group(0) @binding(0) var<storage, read> dy: array<element>;
@group(0) @binding(1) var<storage, read> a: array<element>;
@group(0) @binding(2) var<storage, read> b: array<element>;
#if packed
@group(0) @binding(5) var<storage, read_write> dx: array<element>;
#endif
#if packed_swapped
@group(0) @binding(5) var<storage, read_write> dx: array<element>;
#endif
#if da
@group(0) @binding(3) var<storage, read_write> da: array<element>;
#endif
#if db
@group(0) @binding(4) var<storage, read_write> db: array<element>;
#endif
#if both
@group(0) @binding(3) var<storage, read_write> da: array<element>;
@group(0) @binding(4) var<storage, read_write> db: array<element>;
#endif
@group(0) @binding(6) var<uniform> params: Params;

#if vec4
alias wide = vec4<f32>;

fn narrow(v: wide) -> element {
  return to_scalar4(v);
}

struct Slope {
  value: wide,
  derivative: wide,
}

fn slope(x: wide) -> Slope {
  let p = act_with_derivative(x.x);
  let q = act_with_derivative(x.y);
  let r = act_with_derivative(x.z);
  let s = act_with_derivative(x.w);
  return Slope(wide(p.x, q.x, r.x, s.x), wide(p.y, q.y, r.y, s.y));
}
#else
alias wide = f32;

fn narrow(v: wide) -> element {
  return to_scalar(v);
}

struct Slope {
  value: wide,
  derivative: wide,
}

fn slope(x: wide) -> Slope {
  let p = act_with_derivative(x);
  return Slope(p.x, p.y);
}
#endif

// dy * b * act'. Where dy * b alone is infinite, which is told by its bits, the derivative comes first: it may be zero.
fn to_gate(upstream: wide, b: wide, derivative: wide) -> wide {
  let both = upstream * b;
#if vec4
  let infinite = (bitcast<vec4<u32>>(both) & vec4<u32>(0x7fffffffu)) == vec4<u32>(0x7f800000u);
#else
  let infinite = (bitcast<u32>(both) & 0x7fffffffu) == 0x7f800000u;
#endif
  return select(both * derivative, upstream * derivative * b, infinite);
}

// The width of a packed row's half, and where output i lies in the first half.
fn packed_width() -> u32 {
#if vec4
  return (params.cols + 3u) / 4u;
#else
  return params.cols;
#endif
}

fn packed_row(i: u32) -> u32 {
  return i + (i / packed_width()) * packed_width();
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let i = linear_workgroup(workgroup, workgroups) * 256u + local;
  if i >= outputs(params) { return; }
  let at = places(params, i);
  let upstream = wide(dy[i]);
  let s = slope(wide(a[at.x]));
#if packed
  let first = packed_row(i);
  dx[first] = narrow(to_gate(upstream, wide(b[at.y]), s.derivative));
  dx[first + packed_width()] = narrow(upstream * s.value);
#endif
#if packed_swapped
  let first = packed_row(i);
  dx[first] = narrow(upstream * s.value);
  dx[first + packed_width()] = narrow(to_gate(upstream, wide(b[at.y]), s.derivative));
#endif
#if da
  da[i] = narrow(to_gate(upstream, wide(b[at.y]), s.derivative));
#endif
#if db
  db[i] = narrow(upstream * s.value);
#endif
#if both
  da[i] = narrow(to_gate(upstream, wide(b[at.y]), s.derivative));
  db[i] = narrow(upstream * s.value);
#endif
}

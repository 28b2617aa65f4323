// Sums and maxima over the invocations that share a row, its lanes (a maximum skips NaN, as WGSL's max does).
//   serial               one lane, no barrier
//   subgroups and narrow a row to a subgroup, no barrier
//   subgroups            a row to a workgroup, inside subgroups first
//   else                 a row to a workgroup, through workgroup memory
#if serial
const LANES: u32 = 1u;

fn row_sum(value: f32, lane: u32) -> f32 {
  return value;
}

fn row_sum3(value: vec3<f32>, lane: u32) -> vec3<f32> {
  return value;
}

fn row_maximum(value: f32, lane: u32) -> f32 {
  return value;
}

fn lanes() -> u32 {
  return LANES;
}
#else
const LANES: u32 = 256u;

#if subgroups
var<private> subgroup_lane: u32;
var<private> subgroup_lanes: u32;

#if narrow
fn row_sum(value: f32, lane: u32) -> f32 {
  return subgroupAdd(value);
}

fn row_sum3(value: vec3<f32>, lane: u32) -> vec3<f32> {
  return subgroupAdd(value);
}

fn lanes() -> u32 {
  return subgroup_lanes;
}
#else
// A subgroup's first invocation leaves its sum in workgroup memory and the others leave zeros; then every subgroup adds all
// slots. No assumption on which invocations form a subgroup is made, and the order is fixed.
var<workgroup> partials: array<vec3<f32>, 256>;

fn row_sum3(value: vec3<f32>, lane: u32) -> vec3<f32> {
  let own = subgroupAdd(value);
  partials[lane] = select(vec3<f32>(0.0), own, subgroup_lane == 0u);
  workgroupBarrier();
  var total = vec3<f32>(0.0);
  for (var k = subgroup_lane; k < LANES; k += subgroup_lanes) { total += partials[k]; }
  total = subgroupAdd(total);
  workgroupBarrier();
  return total;
}

fn row_maximum(value: f32, lane: u32) -> f32 {
  partials[lane].x = subgroupMax(value);
  workgroupBarrier();
  var total = value;
  for (var k = subgroup_lane; k < LANES; k += subgroup_lanes) { total = max(total, partials[k].x); }
  total = subgroupMax(total);
  workgroupBarrier();
  return total;
}

fn row_sum(value: f32, lane: u32) -> f32 {
  return row_sum3(vec3<f32>(value, 0.0, 0.0), lane).x;
}

fn lanes() -> u32 {
  return LANES;
}
#endif
#else
var<workgroup> partials: array<vec3<f32>, 256>;

fn row_sum3(value: vec3<f32>, lane: u32) -> vec3<f32> {
  partials[lane] = value;
  for (var width = LANES / 2u; width > 0u; width /= 2u) {
    workgroupBarrier();
    if lane < width { partials[lane] += partials[lane + width]; }
  }
  workgroupBarrier();
  let total = partials[0];
  workgroupBarrier();
  return total;
}

fn row_maximum(value: f32, lane: u32) -> f32 {
  partials[lane].x = value;
  for (var width = LANES / 2u; width > 0u; width /= 2u) {
    workgroupBarrier();
    if lane < width { partials[lane].x = max(partials[lane].x, partials[lane + width].x); }
  }
  workgroupBarrier();
  let total = partials[0].x;
  workgroupBarrier();
  return total;
}

fn row_sum(value: f32, lane: u32) -> f32 {
  return row_sum3(vec3<f32>(value, 0.0, 0.0), lane).x;
}

fn lanes() -> u32 {
  return LANES;
}
#endif
#endif

// Elements after which a running sum is set aside: error grows with the block, not with the row.
const BLOCK: u32 = 64u * LANES;

// Sums and maxima over the invocations that share a row (a maximum skips NaN, as WGSL's max does). Under `serial` one invocation has the whole row: nothing to do.
// LANES invocations share a row; `lane` is the invocation's place among them.
#if serial
const LANES: u32 = 1u;
const ROWS_PER_WORKGROUP: u32 = 64u;

fn row_sum(value: f32, lane: u32) -> f32 {
  return value;
}

fn row_sum3(value: vec3<f32>, lane: u32) -> vec3<f32> {
  return value;
}

fn row_maximum(value: f32, lane: u32) -> f32 {
  return value;
}
#else
const LANES: u32 = 256u;
const ROWS_PER_WORKGROUP: u32 = 1u;

#if subgroups
// A subgroup sums its own, its first invocation leaves the sum in workgroup memory and the others leave zeros; then every
// subgroup adds all slots. No assumption on which invocations form a subgroup is made, and the order is fixed.
var<workgroup> partials: array<vec3<f32>, 256>;
var<private> subgroup_lane: u32;
var<private> subgroup_lanes: u32;

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
#else
var<workgroup> partials: array<vec3<f32>, 256>;

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
#endif

fn row_sum(value: f32, lane: u32) -> f32 {
  return row_sum3(vec3<f32>(value, 0.0, 0.0), lane).x;
}
#endif

// Elements after which a running sum is set aside: error grows with the block, not with the row.
const BLOCK: u32 = 64u * LANES;

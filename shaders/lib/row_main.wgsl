// The entry point of kernels that work on rows: calls row_kernel(row, lane) for params.rows rows.
#if serial
@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let row = linear_workgroup(workgroup, workgroups) * 64u + local;
  if row < params.rows { row_kernel(row, 0u); }
}
#elif subgroups
#if narrow
// Eight rows a workgroup. A subgroup's place is how many subgroups have a first invocation before its own: nothing is assumed of
// a subgroup's size or of which invocations form it.
const TEAM_ROWS: u32 = 8u;
var<workgroup> firsts: array<u32, 256>;
#endif
@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
  @builtin(subgroup_invocation_id) invocation: u32,
  @builtin(subgroup_size) size: u32,
) {
  subgroup_lane = invocation;
  subgroup_lanes = size;
#if narrow
  let first = subgroupMin(local);
  firsts[local] = select(0u, 1u, local == first);
  workgroupBarrier();
  var before = 0u;
  for (var k = 0u; k < 256u; k += size) {
    let other = k + invocation;
    before += select(0u, firsts[min(other, 255u)], other < first);
  }
  var place = subgroupAdd(before);
  for (; place < TEAM_ROWS; place += 256u / size) {
    let row = linear_workgroup(workgroup, workgroups) * TEAM_ROWS + place;
    if row < params.rows { row_kernel(row, invocation); }
  }
#else
  let row = linear_workgroup(workgroup, workgroups);
  if row < params.rows { row_kernel(row, local); }
#endif
}
#else
@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let row = linear_workgroup(workgroup, workgroups);
  if row < params.rows { row_kernel(row, local); }
}
#endif

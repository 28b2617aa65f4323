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
  let row = linear_workgroup(workgroup, workgroups);
  if row < params.rows { row_kernel(row, local); }
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

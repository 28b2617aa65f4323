// A dispatch of any size is folded into two dimensions below 65,536 each; this is its linear index again.
fn linear_workgroup(workgroup: vec3<u32>, workgroups: vec3<u32>) -> u32 {
  return workgroup.x + workgroup.y * workgroups.x;
}

// Walks up to eight merged dimensions, outermost first; unused ones have size 1. Negative strides wrap in u32.

// The position of element `index` (row-major over `sizes`) in an operand with these strides.
fn position(index: u32, sizes: array<vec4<u32>, 2>, strides: array<vec4<u32>, 2>, rank: u32) -> u32 {
  var rest = index;
  var at = 0u;
  for (var k = rank; k > 0u; k--) {
    let d = k - 1u;
    let size = sizes[d / 4u][d % 4u];
    at += (rest % size) * strides[d / 4u][d % 4u];
    rest = rest / size;
  }
  return at;
}

//! Two operands walked together under broadcasting: the plan that binary and gated kernels share.
//!
//! A plan is one of three forms, chosen so that the common cases read memory in order: `vec4` and `flat` walk rows of
//! neighbours (one row for equal shapes, a zero row stride for a broadcast row, a double one for packed halves);
//! `strided` walks anything else.

use crate::kernel::params;
use crate::layout::{Layout, merge};
use crate::shape::MAX_RANK;
use crate::simd::{F32x4, LANES};

params! {
    /// Where the operands of each output element lie. Counts and positions are in elements.
    struct PairParams {
        count: u32,
        cols: u32,
        a_offset: u32,
        b_offset: u32,
        a_row: u32,
        b_row: u32,
        rank: u32,
        padding: u32,
        sizes: [[u32; 4]; 2],
        a_strides: [[u32; 4]; 2],
        b_strides: [[u32; 4]; 2],
    }
}

impl PairParams {
    pub(crate) const LAYOUT: &'static [crate::kernel::Field] = Self::FIELDS;
}

/// The flags of the three forms, as kernels list them.
pub(crate) const FORMS: &[&str] = &["vec4", "flat", "strided"];

/// Eight values as the shader wants them.
pub(crate) fn lanes(values: impl Iterator<Item = isize>) -> [[u32; 4]; 2] {
    let mut out = [[0; 4]; 2];
    for (k, v) in values.enumerate().take(MAX_RANK) {
        out[k / 4][k % 4] = v as u32;
    }
    out
}

/// Plans the walk over two layouts of one shape.
pub(crate) fn plan(a: &Layout, b: &Layout) -> (&'static str, PairParams) {
    let shape = a.shape();
    debug_assert_eq!(shape, b.shape());
    let merged = merge(shape, [a.strides(), b.strides()]);
    let (rank, sa, sb) = (merged.rank(), merged.strides(0), merged.strides(1));
    let count = shape.elements() as u32;
    let mut params = PairParams {
        count,
        cols: count,
        a_offset: a.offset() as u32,
        b_offset: b.offset() as u32,
        a_row: 0,
        b_row: 0,
        rank: rank as u32,
        padding: 0,
        sizes: lanes(merged.sizes().iter().map(|&s| s as isize)),
        a_strides: lanes(sa.iter().copied()),
        b_strides: lanes(sb.iter().copied()),
    };
    let in_rows = rank <= 2 && (rank == 0 || (sa[rank - 1] == 1 && sb[rank - 1] == 1));
    if !in_rows {
        return ("strided", params);
    }
    if rank == 2 {
        params.cols = merged.sizes()[1] as u32;
        (params.a_row, params.b_row) = (sa[0] as u32, sb[0] as u32);
    }
    let whole =
        params.cols.is_multiple_of(4) && params.a_row.is_multiple_of(4) && params.b_row.is_multiple_of(4);
    let aligned = params.a_offset.is_multiple_of(4) && params.b_offset.is_multiple_of(4);
    (if aligned && (rank < 2 || whole) { "vec4" } else { "flat" }, params)
}

/// Plans the walk over the halves of packed rows, `half` elements each; the first operand is the second half where
/// `swapped`. Rows stay rows whatever their length: packed gradients are written by them.
pub(crate) fn plan_packed(rows: usize, half: usize, swapped: bool) -> (&'static str, PairParams) {
    let (low, high) = (0, half as u32);
    let (a_offset, b_offset) = if swapped { (high, low) } else { (low, high) };
    let width = 2 * half as u32;
    let params = PairParams {
        count: (rows * half) as u32,
        cols: half as u32,
        a_offset,
        b_offset,
        a_row: width,
        b_row: width,
        rank: 2,
        padding: 0,
        sizes: lanes([rows as isize, half as isize].into_iter()),
        a_strides: lanes([width as isize, 1].into_iter()),
        b_strides: lanes([width as isize, 1].into_iter()),
    };
    (if half.is_multiple_of(4) { "vec4" } else { "flat" }, params)
}

/// Invocations that a form needs.
pub(crate) fn invocations(params: &PairParams, vec4: bool) -> u64 {
    let count = u64::from(params.count);
    if vec4 { count.div_ceil(4) } else { count }
}

/// A stretch of neighbouring outputs: where it and its operands begin, its length, and the operands' steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub out: usize,
    pub a: usize,
    pub b: usize,
    pub len: usize,
    pub a_step: isize,
    pub b_step: isize,
}

/// Calls `each` for every stretch, in order.
pub(crate) fn for_each_run(p: &PairParams, strided: bool, mut each: impl FnMut(Run)) {
    if p.count == 0 {
        return;
    }
    if !strided {
        let cols = p.cols as usize;
        for row in 0..p.count as usize / cols {
            each(Run {
                out: row * cols,
                a: p.a_offset as usize + row * p.a_row as usize,
                b: p.b_offset as usize + row * p.b_row as usize,
                len: cols,
                a_step: 1,
                b_step: 1,
            });
        }
        return;
    }
    let rank = p.rank as usize;
    let at = |v: &[[u32; 4]; 2], k: usize| v[k / 4][k % 4];
    let stride = |v: &[[u32; 4]; 2], k: usize| at(v, k) as i32 as isize;
    let len = at(&p.sizes, rank - 1) as usize;
    let mut index = [0u32; MAX_RANK];
    let (mut a, mut b) = (p.a_offset as isize, p.b_offset as isize);
    for run in 0..p.count as usize / len {
        each(Run {
            out: run * len,
            a: a as usize,
            b: b as usize,
            len,
            a_step: stride(&p.a_strides, rank - 1),
            b_step: stride(&p.b_strides, rank - 1),
        });
        for k in (0..rank - 1).rev() {
            index[k] += 1;
            a += stride(&p.a_strides, k);
            b += stride(&p.b_strides, k);
            if index[k] < at(&p.sizes, k) {
                break;
            }
            let size = at(&p.sizes, k) as isize;
            a -= size * stride(&p.a_strides, k);
            b -= size * stride(&p.b_strides, k);
            index[k] = 0;
        }
    }
}

/// The longest stretch that [`for_each_block`] gives.
pub(crate) const BLOCK: usize = 1024;

/// Works on a stretch: the place of its first output, and its operands.
pub(crate) type EachBlock<'f> = &'f mut dyn FnMut(usize, &[f32], &[f32]);

/// Calls `each` for stretches of neighbouring outputs in order; operands that do not lie side by side are gathered first.
pub(crate) fn for_each_block(p: &PairParams, strided: bool, a: &[f32], b: &[f32], each: EachBlock<'_>) {
    let mut space = [[0.0; BLOCK]; 2];
    for_each_run(p, strided, |run| {
        for k in (0..run.len).step_by(BLOCK) {
            let len = (run.len - k).min(BLOCK);
            let [to_a, to_b] = &mut space;
            let a = stretch(a, run.a, k, run.a_step, &mut to_a[..len]);
            let b = stretch(b, run.b, k, run.b_step, &mut to_b[..len]);
            each(run.out + k, a, b);
        }
    });
}

/// The elements from number `k` on of those that begin at `start` and are `step` apart: where they lie, or gathered in
/// `space`.
fn stretch<'a>(from: &'a [f32], start: usize, k: usize, step: isize, space: &'a mut [f32]) -> &'a [f32] {
    if step == 1 {
        return &from[start + k..][..space.len()];
    }
    for (k, to) in (k..).zip(&mut *space) {
        *to = from[(start as isize + k as isize * step) as usize];
    }
    space
}

/// `out[i] = f(a[i], b[i])`, two vectors at a time: a browser checks for interrupts at every turn of a loop. What is left over
/// takes the same way, filled up with zeros.
pub(crate) fn zip_lanes<F>(a: &[f32], b: &[f32], out: &mut [f32], f: F)
where
    F: Fn(F32x4, F32x4) -> F32x4 + Copy,
{
    const TURN: usize = 2 * LANES;
    let body = out.len() / TURN * TURN;
    for ((x, y), o) in a.chunks_exact(TURN).zip(b.chunks_exact(TURN)).zip(out.chunks_exact_mut(TURN)) {
        let (low, high) = o.split_at_mut(LANES);
        f(F32x4::load(x), F32x4::load(y)).store(low);
        f(F32x4::load(&x[LANES..]), F32x4::load(&y[LANES..])).store(high);
    }
    let rest = &mut out[body..];
    if !rest.is_empty() {
        let mut padded = [[0.0; TURN]; 3];
        let [x, y, o] = &mut padded;
        x[..rest.len()].copy_from_slice(&a[body..]);
        y[..rest.len()].copy_from_slice(&b[body..]);
        zip_lanes(x, y, o, f);
        rest.copy_from_slice(&o[..rest.len()]);
    }
}

/// The operands' positions for output `index`, one at a time: what the float64 references use.
pub(crate) fn positions(p: &PairParams, strided: bool, index: usize) -> (usize, usize) {
    if !strided {
        let (row, col) = (index / p.cols as usize, index % p.cols as usize);
        return (
            p.a_offset as usize + row * p.a_row as usize + col,
            p.b_offset as usize + row * p.b_row as usize + col,
        );
    }
    let (mut rest, mut a, mut b) = (index, p.a_offset as isize, p.b_offset as isize);
    for k in (0..p.rank as usize).rev() {
        let at = |v: &[[u32; 4]; 2]| v[k / 4][k % 4];
        let digit = (rest % at(&p.sizes) as usize) as isize;
        rest /= at(&p.sizes) as usize;
        a += digit * at(&p.a_strides) as i32 as isize;
        b += digit * at(&p.b_strides) as i32 as isize;
    }
    (a as usize, b as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    fn layout(dims: &[usize]) -> Layout {
        Layout::contiguous(Shape::new("test", dims).unwrap())
    }

    #[test]
    fn common_shapes_take_the_fast_forms() {
        let a = layout(&[3, 8]);
        assert_eq!(plan(&a, &a).0, "vec4");
        let odd = layout(&[65]);
        assert_eq!(plan(&odd, &odd).0, "vec4");
        let row = layout(&[8]).expand("t", a.shape()).unwrap();
        assert_eq!(plan(&a, &row).0, "vec4");
        let (low, high) = (layout(&[3, 8]).slice(1, 0, 4, 1), layout(&[3, 8]).slice(1, 4, 4, 1));
        assert_eq!(plan(&low, &high).0, "vec4");
        let (low, high) = (layout(&[3, 6]).slice(1, 0, 3, 1), layout(&[3, 6]).slice(1, 3, 3, 1));
        assert_eq!(plan(&low, &high).0, "flat");
        let scalar = layout(&[]).expand("t", a.shape()).unwrap();
        assert_eq!(plan(&a, &scalar).0, "strided");
    }

    #[test]
    fn runs_and_positions_agree() {
        let a = layout(&[4, 3, 2]).permute(&[2, 0, 1]);
        let b = layout(&[4, 1]).expand("t", a.shape()).unwrap();
        let (form, p) = plan(&a, &b);
        assert_eq!(form, "strided");
        let mut seen = 0;
        for_each_run(&p, true, |run| {
            for k in 0..run.len {
                let step = |at: usize, s: isize| (at as isize + k as isize * s) as usize;
                assert_eq!(
                    (step(run.a, run.a_step), step(run.b, run.b_step)),
                    positions(&p, true, run.out + k)
                );
                seen += 1;
            }
        });
        assert_eq!(seen, 24);
    }
}

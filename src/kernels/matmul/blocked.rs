//! The CPU's matrix product: panels of `a` and `b` packed for a 4 × 8 micro-kernel, blocks of `k` that stay in the cache.

use std::cell::RefCell;

use crate::simd::F32x4;

/// Rows of a micro-tile.
const MR: usize = 4;
/// Columns of a micro-tile: two vectors, so that eight accumulators stay in registers.
const NR: usize = 8;
/// Depth of a block: a packed panel of `b` then takes 8 KiB.
const KC: usize = 256;
/// Rows of a packed block of `a`: 64 KiB.
const MC: usize = 64;

/// A matrix inside a buffer.
pub(super) struct Matrix<'a> {
    pub data: &'a [f32],
    pub start: usize,
    pub row: isize,
    pub col: isize,
}

impl Matrix<'_> {
    #[inline(always)]
    fn at(&self, row: usize, col: usize) -> usize {
        (self.start as isize + row as isize * self.row + col as isize * self.col) as usize
    }

    /// Copies `width` lines of `depth` elements side by side, filled up with zeros to whole panels of `side`: element
    /// `(line, k)` of a panel lies at `k * side + line`. `place(line, k)` is its position in the data.
    #[inline(always)]
    fn pack(
        &self,
        side: usize,
        width: usize,
        depth: usize,
        into: &mut [f32],
        place: impl Fn(usize, usize) -> usize,
    ) {
        for (panel, into) in into.chunks_exact_mut(side * depth).enumerate().take(width.div_ceil(side)) {
            let first = panel * side;
            let lines = side.min(width - first);
            if lines < side {
                into.fill(0.0);
            }
            for line in 0..lines {
                for k in 0..depth {
                    into[k * side + line] = self.data[place(first + line, k)];
                }
            }
        }
    }
}

thread_local! {
    /// Packing space, kept between calls.
    static SPACE: RefCell<(Vec<f32>, Vec<f32>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// `c = a b`, row-major. Every element is summed over `k` in order, blocks of [`KC`] at a time.
pub(super) fn multiply((m, n, k): (usize, usize, usize), a: &Matrix<'_>, b: &Matrix<'_>, c: &mut [f32]) {
    if k == 0 {
        c.fill(0.0);
        return;
    }
    SPACE.with_borrow_mut(|(packed_a, packed_b)| {
        let depth = k.min(KC);
        packed_b.resize(n.next_multiple_of(NR) * depth, 0.0);
        packed_a.resize(m.min(MC).next_multiple_of(MR) * depth, 0.0);
        for k0 in (0..k).step_by(KC) {
            let depth = (k - k0).min(KC);
            b.pack(NR, n, depth, packed_b, |line, p| b.at(k0 + p, line));
            for m0 in (0..m).step_by(MC) {
                let rows = (m - m0).min(MC);
                a.pack(MR, rows, depth, packed_a, |line, p| a.at(m0 + line, k0 + p));
                for (panel_b, j0) in packed_b.chunks_exact(NR * depth).zip((0..n).step_by(NR)) {
                    for (panel_a, i0) in packed_a.chunks_exact(MR * depth).zip((0..rows).step_by(MR)) {
                        let tile = micro_tile(panel_a, panel_b);
                        let (live_rows, live_cols) = (MR.min(rows - i0), NR.min(n - j0));
                        for (i, [low, high]) in tile.into_iter().enumerate().take(live_rows) {
                            let c = &mut c[(m0 + i0 + i) * n + j0..][..live_cols];
                            add_row(c, low, high, k0 > 0);
                        }
                    }
                }
            }
        }
    });
}

/// The product of two packed panels: 4 rows of 8 sums over the panels' depth.
#[inline(always)]
fn micro_tile(a: &[f32], b: &[f32]) -> [[F32x4; 2]; MR] {
    let mut tile = [[F32x4::splat(0.0); 2]; MR];
    for (a, b) in a.chunks_exact(MR).zip(b.chunks_exact(NR)) {
        let (low, high) = (F32x4::load(b), F32x4::load(&b[4..]));
        for (row, &a) in tile.iter_mut().zip(a) {
            let a = F32x4::splat(a);
            row[0] = row[0] + a * low;
            row[1] = row[1] + a * high;
        }
    }
    tile
}

#[inline(always)]
fn add_row(c: &mut [f32], low: F32x4, high: F32x4, add: bool) {
    if let Ok(c) = <&mut [f32; NR]>::try_from(&mut *c) {
        let (first, second) = c.split_at_mut(4);
        let (low, high) =
            if add { (F32x4::load(first) + low, F32x4::load(second) + high) } else { (low, high) };
        low.store(first);
        high.store(second);
        return;
    }
    let values = low.to_array().into_iter().chain(high.to_array());
    for (c, v) in c.iter_mut().zip(values) {
        *c = if add { *c + v } else { v };
    }
}

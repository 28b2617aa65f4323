//! Sums on the CPU: f32 lanes over short blocks, blocks in f64, in one fixed order.

use crate::simd::F32x4;

/// Elements that f32 lanes may add up before the sum moves to f64: error grows with the block, not with the length.
const BLOCK: usize = 1024;

/// The sum of `f` over `n` elements, taken four at a time as `f(start, live)`; dead lanes must be zero.
#[inline(always)]
pub(crate) fn sum_by<const N: usize>(n: usize, f: impl Fn(usize, usize) -> [F32x4; N]) -> [f64; N] {
    let mut total = [0.0; N];
    for block in (0..n).step_by(BLOCK) {
        let end = (block + BLOCK).min(n);
        // Two sums that take turns hide the latency of an addition.
        let mut sums = [[F32x4::splat(0.0); N]; 2];
        let mut add = |x: [F32x4; N]| {
            for i in 0..N {
                (sums[0][i], sums[1][i]) = (sums[1][i], sums[0][i] + x[i]);
            }
        };
        let body = block + (end - block) / 4 * 4;
        for k in (block..body).step_by(4) {
            add(f(k, 4));
        }
        if body < end {
            add(f(body, end - body));
        }
        for i in 0..N {
            total[i] += f64::from((sums[0][i] + sums[1][i]).sum());
        }
    }
    total
}

/// Loads `live` elements from `at` on, zeros behind them.
#[inline(always)]
pub(crate) fn load(from: &[f32], at: usize, live: usize) -> F32x4 {
    if live >= 4 { F32x4::load(&from[at..at + 4]) } else { F32x4::load_partial(&from[at..at + live]) }
}

/// Stores four results, or the first `live` of them.
#[inline(always)]
pub(crate) fn store(value: F32x4, to: &mut [f32], at: usize, live: usize) {
    if live >= 4 {
        value.store(&mut to[at..at + 4]);
    } else {
        value.store_partial(&mut to[at..at + live]);
    }
}

/// The sum of a slice.
pub(crate) fn sum(values: &[f32]) -> f64 {
    sum_by(values.len(), |k, live| [load(values, k, live)])[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sums_keep_their_digits() {
        assert!((sum(&vec![1.0; 20_000_000]) - 2e7).abs() < 0.5);
        let tenths = vec![0.1f32; 1_392_640];
        let exact = f64::from(0.1f32) * 1_392_640.0;
        assert!((sum(&tenths) - exact).abs() < 1e-6 * exact);
        for n in 0..40 {
            assert!((sum(&vec![1.0; n]) - n as f64).abs() < 1e-9, "{n}");
        }
    }
}

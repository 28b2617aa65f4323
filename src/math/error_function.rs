//! The error function and its complement, `erfc x = e^(-x²)·erfcx x`, accurate relative to the result down to its
//! underflow.
//!
//! A rounded square would cost up to `x²` ulp in the exponential, so that `x` is split in two: the square of the high
//! part is exact, the rest is small.

#![allow(
    clippy::inline_always,
    reason = "kernels inline these into their loops, where constants stay in registers"
)]

use super::exponential::{ScaledExp, polynomial, with_sign_of};
use crate::simd::F32x4;

/// 1.5·2^15: adding it rounds to a multiple of 2^-8.
const GRID: f32 = 49_152.0;

/// Below this magnitude `erf` comes from its odd series, above from `erfc`.
const SERIES_END: f32 = 0.75;
/// `erf x = x + x·p(x²)` on |x| ≤ ¾: p from the constant term up, error at most 7.2e-9 of the result.
const ERF: [f32; 6] =
    [0.128_379_17, -0.376_126_2, 0.112_833_77, -0.026_834_624, 0.005_114_345_3, -0.000_674_951_1];

/// A fit `g(x) = q(t) / (x + c)` with `t = (x - c) / (x + c)`, which maps [0, ∞) to [-1, 1).
struct Fit {
    /// `c`: where the fit is good, and so round that sums with it are exact.
    center: f32,
    /// `q` from the constant term up.
    coefficients: [f32; 10],
    /// `s` in the exponential `e^(-s·x²)` that goes with `g`.
    square: f32,
}

/// `erfcx x = e^(x²)·erfc x` on 0 ≤ x ≤ 10.4, error at most 1.4e-8 of the result.
const ERFCX: Fit = Fit {
    center: 2.375,
    coefficients: [
        1.047_402,
        -0.779_644_4,
        0.413_949_8,
        -0.135_907_3,
        0.010_840_747,
        0.011_222_086,
        -0.002_991_753_2,
        -0.001_252_182_9,
        0.000_408_315,
        0.000_190_958_98,
    ],
    square: 1.0,
};

/// `e^(x²/2)·Φ(-x) = ½·erfcx(x/√2)` on 0 ≤ x ≤ 14.65, error at most 1.5e-8 of the result: a fit of its own, because a
/// rounded `x/√2` would cost digits.
const MILLS: Fit = Fit {
    center: 3.375,
    coefficients: [
        0.741_080_3,
        -0.552_992_2,
        0.295_375_97,
        -0.098_384_49,
        0.008_718_613,
        0.007_825_196,
        -0.002_249_162,
        -0.000_849_143_54,
        0.000_307_090_9,
        0.000_133_450_04,
    ],
    square: 0.5,
};

/// `e^(-s·x²)·g(x)` in factors: `exp` holds `e^(-s·x²) / stretch`, and `g` is `quotient / stretch`.
#[derive(Clone, Copy)]
pub(super) struct Tail {
    pub(super) exp: ScaledExp,
    pub(super) quotient: F32x4,
    /// `1 + d`, close to 1.
    pub(super) stretch: F32x4,
}

impl Tail {
    /// For `erfc x`, 0 ≤ x ≤ 10.4.
    #[inline(always)]
    fn erfc(x: F32x4) -> Self {
        Self::new(x, &ERFCX)
    }

    /// For `Φ(-x)`, the normal distribution's tail, 0 ≤ x ≤ 14.65.
    #[inline(always)]
    pub(super) fn normal(x: F32x4) -> Self {
        Self::new(x, &MILLS)
    }

    #[inline(always)]
    fn new(x: F32x4, fit: &Fit) -> Self {
        // On a grid of 2^-8 the square of the high part and its sums with the centre are exact.
        let high = (x + F32x4::splat(GRID)) - F32x4::splat(GRID);
        let low = x - high;
        let center = F32x4::splat(fit.center);
        let one = F32x4::splat(1.0);
        // x + c = (high + c)·(1 + d). In t the factor counts to second order; the reciprocal before q leaves it to
        // the exponent, ln(1 + d) = d - d²/2, where it costs no rounding.
        let inverse = one / (high + center);
        let d = low * inverse;
        let t_high = (high - center) * inverse;
        let t = t_high + d * (one - t_high) * (one - d);
        let square_low = low * (x + high) * F32x4::splat(fit.square);
        let exp = ScaledExp::of_sum(
            high * high * F32x4::splat(-fit.square),
            -(square_low + (d - F32x4::splat(0.5) * d * d)),
        );
        Self { exp, quotient: polynomial(t, &fit.coefficients) * inverse, stretch: one + d }
    }

    /// `factor·e^(-s·x²)·g(x)`.
    #[inline(always)]
    pub(super) fn times(self, factor: F32x4) -> F32x4 {
        self.exp.times(self.quotient * factor)
    }
}

/// `erfc x` for `x ≥ 0`; NaN gives NaN.
#[inline(always)]
fn erfc_positive(x: F32x4) -> F32x4 {
    // erfc is 0 in f32 from 10.06 on; the exponential would leave its range much later.
    let tail = Tail::erfc(x.min(F32x4::splat(10.4)));
    tail.exp.times(tail.quotient)
}

/// `erf x` for |x| ≤ ¾.
#[inline(always)]
fn erf_series(x: F32x4) -> F32x4 {
    x + x * polynomial(x * x, &ERF)
}

/// The error function `2/√π·∫₀ˣ e^(-t²) dt`.
#[inline(always)]
#[must_use]
pub fn erf(x: F32x4) -> F32x4 {
    let magnitude = x.abs();
    let far = with_sign_of(F32x4::splat(1.0) - erfc_positive(magnitude), x);
    F32x4::select(magnitude.lt(F32x4::splat(SERIES_END)), erf_series(x), far)
}

/// The complementary error function `1 - erf x`, relatively accurate in its tail.
#[inline(always)]
#[must_use]
pub fn erfc(x: F32x4) -> F32x4 {
    let magnitude = x.abs();
    let tail = erfc_positive(magnitude);
    let far = F32x4::select(x.lt(F32x4::splat(0.0)), F32x4::splat(2.0) - tail, tail);
    F32x4::select(magnitude.lt(F32x4::splat(SERIES_END)), F32x4::splat(1.0) - erf_series(x), far)
}

/// The scaled complement `e^(x²)·erfc x` for 0 ≤ x ≤ 10.4.
#[inline(always)]
#[must_use]
pub fn erfcx(x: F32x4) -> F32x4 {
    let tail = Tail::erfc(x);
    tail.quotient / tail.stretch
}

/// [`erf`] of one number.
#[must_use]
pub fn erf_f32(x: f32) -> f32 {
    erf(F32x4::splat(x)).to_array()[0]
}

/// [`erfc`] of one number.
#[must_use]
pub fn erfc_f32(x: f32) -> f32 {
    erfc(F32x4::splat(x)).to_array()[0]
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "limits are reached exactly")]
mod tests {
    use super::*;
    use crate::math::{truth, ulp};

    #[test]
    fn erf_is_accurate_everywhere() {
        assert!(ulp::worst("erf", erf, truth::erf) <= 1.75);
    }

    #[test]
    fn erfc_is_accurate_everywhere() {
        assert!(ulp::worst("erfc", erfc, truth::erfc) <= 3.7);
    }

    #[test]
    fn special_values() {
        let x = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY];
        assert_eq!(x.map(erf_f32).map(f32::to_bits), [0.0, -0.0, 1.0, -1.0f32].map(f32::to_bits));
        assert_eq!(x.map(erfc_f32), [1.0, 1.0, 0.0, 2.0]);
        assert!(erf_f32(f32::NAN).is_nan() && erfc_f32(f32::NAN).is_nan());
        // 1.4e-45 is the smallest f32, reached just before 10.055.
        assert!(erfc_f32(10.05) > 0.0 && erfc_f32(10.06) == 0.0);
    }

    #[test]
    fn erfcx_is_the_complement_without_its_exponential() {
        for i in 0..1000 {
            let x = i as f32 * 0.01;
            let want = (f64::from(x) * f64::from(x)).exp() * truth::erfc(f64::from(x));
            let got = erfcx(F32x4::splat(x)).to_array()[0];
            assert!((f64::from(got) - want).abs() <= 4e-7 * want, "{got} for {want} at {x}");
        }
    }
}

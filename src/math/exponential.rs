//! The exponential, the logarithm, and what is made of one exponential: `e^x = 2^n·e^r` with `n = round(x / ln 2)`.
//!
//! `r = x - n·ln 2` is formed with `ln 2` in two parts, so that `n` times the high part is exact. The factor `2^n` is
//! applied last and in two halves: a result below the smallest normal number is then rounded once.

#![allow(
    clippy::inline_always,
    reason = "kernels inline these into their loops, where constants stay in registers"
)]

use crate::simd::{F32x4, I32x4};

/// 1.5·2²³: adding it rounds to an integer, which then stands in the low bits of the sum.
const ROUNDER: f32 = 12_582_912.0;
/// `ln 2` to 15 bits, so that its product with an exponent is exact.
const LN_2_HIGH: f32 = 0.693_145_75;
/// `ln 2 - LN_2_HIGH`.
const LN_2_LOW: f32 = 1.428_606_8e-6;

/// `e^r = 1 + r + r²·q(r)` on |r| ≤ ln 2 / 2: q from the constant term up, error at most 1.6e-8 of `e^r - 1`.
/// The first coefficient is exactly ½, so that `e^r - 1` is right to the last bit for tiny `r`.
const EXP: [f32; 5] = [0.5, 0.166_665_32, 0.041_666_158, 0.008_368_133, 0.001_397_600_4];

/// `ln(1 + f) = f - f²/2 + f³·p(f)` on √½ ≤ 1 + f ≤ √2: p from the constant term up, error at most 2.9e-9 of the
/// logarithm.
const LN: [f32; 9] = [
    0.333_333_13,
    -0.250_000_1,
    0.200_021_19,
    -0.166_679_96,
    0.142_195_2,
    -0.124_055_43,
    0.118_883_766,
    -0.116_760_54,
    0.067_466_42,
];

/// `c[0] + c[1]·x + c[2]·x² + …` by Horner's rule.
#[inline(always)]
pub(super) fn polynomial<const N: usize>(x: F32x4, coefficients: &[f32; N]) -> F32x4 {
    let mut sum = F32x4::splat(coefficients[N - 1]);
    for &c in coefficients[..N - 1].iter().rev() {
        sum = sum * x + F32x4::splat(c);
    }
    sum
}

/// `2^n` for -126 ≤ n ≤ 127, by its bits.
#[inline(always)]
fn power_of_two(n: I32x4) -> F32x4 {
    F32x4::from_bits((n + I32x4::splat(127)).shift_left(23))
}

/// `x / ln 2` rounded to an integer, as a float and as an integer. |x| is below 2²¹.
#[inline(always)]
fn exponent(x: F32x4) -> (F32x4, I32x4) {
    let shifted = x * F32x4::splat(std::f32::consts::LOG2_E) + F32x4::splat(ROUNDER);
    (shifted - F32x4::splat(ROUNDER), shifted.to_bits() - I32x4::splat(ROUNDER.to_bits() as i32))
}

/// `x - n·ln 2`.
#[inline(always)]
fn remainder(x: F32x4, n: F32x4) -> F32x4 {
    (x - n * F32x4::splat(LN_2_HIGH)) - n * F32x4::splat(LN_2_LOW)
}

/// `e^r - 1` for |r| ≤ ln 2 / 2.
#[inline(always)]
fn expm1_reduced(r: F32x4) -> F32x4 {
    r + r * r * polynomial(r, &EXP)
}

/// `e^x` for `x ≤ 0`, held 2^64 times too large, so that factors can be multiplied in before a tiny result is rounded.
#[derive(Clone, Copy)]
pub(super) struct ScaledExp(F32x4);

impl ScaledExp {
    /// The exponent of what the value is too large by.
    const LIFT: i32 = 64;
    /// `2^-64`.
    const LOWER: f32 = f32::from_bits(((127 - Self::LIFT) as u32) << 23);

    /// `e^x` for x from -130 to 0; NaN gives NaN.
    #[inline(always)]
    pub(super) fn new(x: F32x4) -> Self {
        let (n, bits) = exponent(x);
        Self::from_parts(remainder(x, n), bits)
    }

    /// `e^(high + low)` for a sum from -130 to 0, where `low` is at most a thousandth of `high`, and `high` and its
    /// distance from a multiple of `LN_2_HIGH` are exact.
    #[inline(always)]
    pub(super) fn of_sum(high: F32x4, low: F32x4) -> Self {
        let (n, bits) = exponent(high + low);
        let r = (high - n * F32x4::splat(LN_2_HIGH)) + (low - n * F32x4::splat(LN_2_LOW));
        Self::from_parts(r, bits)
    }

    #[inline(always)]
    fn from_parts(r: F32x4, n: I32x4) -> Self {
        Self((F32x4::splat(1.0) + expm1_reduced(r)) * power_of_two(n + I32x4::splat(Self::LIFT)))
    }

    /// `factor·e^x` for a factor up to 2^60, rounded into the subnormal range once.
    #[inline(always)]
    pub(super) fn times(self, factor: F32x4) -> F32x4 {
        factor * self.0 * F32x4::splat(Self::LOWER)
    }

    /// `e^x`.
    #[inline(always)]
    pub(super) fn value(self) -> F32x4 {
        self.0 * F32x4::splat(Self::LOWER)
    }
}

/// `σ(y)` and `σ(-y) = e^(-y)·σ(y)` for one `y ≥ 0`, neither from a difference.
#[derive(Clone, Copy)]
pub(super) struct Logistic {
    /// `σ(y)`, from ½ to 1.
    pub(super) upper: F32x4,
    /// `e^(-y)`.
    pub(super) exp: ScaledExp,
}

impl Logistic {
    /// From `e^(-y)`.
    #[inline(always)]
    pub(super) fn new(exp: ScaledExp) -> Self {
        let one = F32x4::splat(1.0);
        Self { upper: one / (one + exp.value()), exp }
    }

    /// `factor·σ(-y)`, right also where it is subnormal.
    #[inline(always)]
    pub(super) fn lower_times(self, factor: F32x4) -> F32x4 {
        self.exp.times(self.upper * factor)
    }

    /// `σ(-y)`.
    #[inline(always)]
    pub(super) fn lower(self) -> F32x4 {
        self.exp.times(self.upper)
    }
}

/// `e^x`; infinite above 88.72, subnormal below -87.33, 0 below -103.97.
#[inline(always)]
#[must_use]
pub fn exp(x: F32x4) -> F32x4 {
    // Beyond these bounds the result stays infinite and zero, and the exponent within what the scale can build.
    let clamped = x.min(F32x4::splat(89.0)).max(F32x4::splat(-105.0));
    let (n, bits) = exponent(clamped);
    // Two halves of 2^n, which itself may be outside the normal range.
    let half = bits.shift_right(1);
    let grown = F32x4::splat(1.0) + expm1_reduced(remainder(clamped, n));
    grown * power_of_two(half) * power_of_two(bits - half)
}

/// `e^x - 1`, relatively accurate near 0.
#[inline(always)]
#[must_use]
pub fn expm1(x: F32x4) -> F32x4 {
    // Beyond these bounds the result stays infinite and -1.
    let clamped = x.min(F32x4::splat(89.0)).max(F32x4::splat(-18.0));
    let (n, bits) = exponent(clamped);
    let half = bits.shift_right(1);
    let rest = bits - half;
    // 2^n·((e^r - 1) + (1 - 2^-n)), the power of two last: 2^128 by itself would overflow.
    let zero = I32x4::splat(0);
    let missing = F32x4::splat(1.0) - power_of_two(zero - half) * power_of_two(zero - rest);
    let result = (expm1_reduced(remainder(clamped, n)) + missing) * power_of_two(half) * power_of_two(rest);
    with_sign_of(result, x)
}

/// The hyperbolic tangent, from `m = e^(-2|x|) - 1`: `-m / (2 + m)` up to 0.55, where the numerator keeps the digits, and
/// `1 - 2e^(-2|x|) / (2 + m)` above, where the quotient is the small part.
#[inline(always)]
#[must_use]
pub fn tanh(x: F32x4) -> F32x4 {
    // From 9.02 on the result rounds to 1.
    let magnitude = x.abs().min(F32x4::splat(10.0));
    let doubled = magnitude * F32x4::splat(-2.0);
    let (n, bits) = exponent(doubled);
    let scale = power_of_two(bits);
    let grown = expm1_reduced(remainder(doubled, n)) * scale;
    let m = grown + (scale - F32x4::splat(1.0));
    let near = magnitude.lt(F32x4::splat(0.55));
    let quotient = F32x4::select(near, -m, F32x4::splat(2.0) * (grown + scale)) / (F32x4::splat(2.0) + m);
    with_sign_of(F32x4::select(near, quotient, F32x4::splat(1.0) - quotient), x)
}

/// `magnitude` with its sign bit replaced by that of `sign`.
#[inline(always)]
pub(super) fn with_sign_of(magnitude: F32x4, sign: F32x4) -> F32x4 {
    let sign_bit = sign.to_bits() & I32x4::splat(i32::MIN);
    F32x4::from_bits((magnitude.to_bits() & I32x4::splat(i32::MAX)) | sign_bit)
}

/// `σ(x) = 1 / (1 + e^(-x))`, relatively accurate also where it is tiny.
#[inline(always)]
#[must_use]
pub fn sigmoid(x: F32x4) -> F32x4 {
    let logistic = Logistic::new(ScaledExp::new((-x.abs()).max(F32x4::splat(-105.0))));
    F32x4::select(x.lt(F32x4::splat(0.0)), logistic.lower(), logistic.upper)
}

/// The natural logarithm: -∞ at ±0, NaN below 0, ∞ at ∞.
///
/// `ln x = k·ln 2 + ln(1 + f)` with `x = 2^k·(1 + f)` and `√½ ≤ 1 + f < √2`.
#[inline(always)]
#[must_use]
pub fn ln(x: F32x4) -> F32x4 {
    let subnormal = x.lt(F32x4::splat(f32::MIN_POSITIVE));
    let scaled = F32x4::select(subnormal, x * F32x4::splat(8_388_608.0), x);
    let lift = F32x4::select(subnormal, F32x4::splat(-23.0), F32x4::splat(0.0));
    let bits = scaled.to_bits();
    let k = (bits - I32x4::splat(std::f32::consts::FRAC_1_SQRT_2.to_bits() as i32)).shift_right(23);
    let f = F32x4::from_bits(bits - k.shift_left(23)) - F32x4::splat(1.0);
    let k = k.to_float() + lift;
    let half_square = F32x4::splat(0.5) * f * f;
    let cubic = f * f * f * polynomial(f, &LN);
    let sum = k * F32x4::splat(LN_2_HIGH) + (f - (half_square - (cubic + k * F32x4::splat(LN_2_LOW))));
    let infinity = F32x4::splat(f32::INFINITY);
    let zero = F32x4::splat(0.0);
    let finite = F32x4::select(x.lt(infinity), sum, x);
    let positive = F32x4::select(x.lt(zero), F32x4::splat(f32::NAN), finite);
    F32x4::select(x.eq(zero), -infinity, positive)
}

/// [`exp`] of one number.
#[must_use]
pub fn exp_f32(x: f32) -> f32 {
    exp(F32x4::splat(x)).to_array()[0]
}

/// [`expm1`] of one number.
#[must_use]
pub fn expm1_f32(x: f32) -> f32 {
    expm1(F32x4::splat(x)).to_array()[0]
}

/// [`tanh`] of one number.
#[must_use]
pub fn tanh_f32(x: f32) -> f32 {
    tanh(F32x4::splat(x)).to_array()[0]
}

/// [`sigmoid`] of one number.
#[must_use]
pub fn sigmoid_f32(x: f32) -> f32 {
    sigmoid(F32x4::splat(x)).to_array()[0]
}

/// [`ln`] of one number.
#[must_use]
pub fn ln_f32(x: f32) -> f32 {
    ln(F32x4::splat(x)).to_array()[0]
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "limits are reached exactly")]
mod tests {
    use super::*;
    use crate::math::ulp;

    #[test]
    fn exp_is_accurate_everywhere() {
        assert!(ulp::worst("exp", exp, f64::exp) <= 1.1);
    }

    #[test]
    fn expm1_is_accurate_everywhere() {
        assert!(ulp::worst("expm1", expm1, f64::exp_m1) <= 1.75);
    }

    #[test]
    fn tanh_is_accurate_everywhere() {
        assert!(ulp::worst("tanh", tanh, f64::tanh) <= 2.4);
    }

    #[test]
    fn sigmoid_is_accurate_everywhere() {
        assert!(ulp::worst("sigmoid", sigmoid, |x| 1.0 / (1.0 + (-x).exp())) <= 2.4);
    }

    #[test]
    fn ln_is_accurate_everywhere() {
        assert!(ulp::worst("ln", ln, f64::ln) <= 0.9);
    }

    #[test]
    fn special_values() {
        let x = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY];
        assert_eq!(x.map(exp_f32), [1.0, 1.0, f32::INFINITY, 0.0]);
        assert_eq!(x.map(expm1_f32).map(f32::to_bits), [0.0, -0.0, f32::INFINITY, -1.0].map(f32::to_bits));
        assert_eq!(x.map(tanh_f32).map(f32::to_bits), [0.0, -0.0, 1.0, -1.0f32].map(f32::to_bits));
        assert_eq!(x.map(sigmoid_f32), [0.5, 0.5, 1.0, 0.0]);
        assert_eq!(
            x[..3].iter().map(|&x| ln_f32(x)).collect::<Vec<_>>(),
            [f32::NEG_INFINITY, f32::NEG_INFINITY, f32::INFINITY]
        );
        assert!([-1.0, -1e-45, f32::NEG_INFINITY].iter().all(|&x| ln_f32(x).is_nan()));
        for function in [exp_f32, expm1_f32, tanh_f32, sigmoid_f32, ln_f32] {
            assert!(function(f32::NAN).is_nan() && function(-f32::NAN).is_nan());
        }
    }

    #[test]
    fn overflow_and_underflow() {
        // The last finite result, the last normal one, the last that is not zero, and their neighbours.
        assert!(exp_f32(88.722_83).is_finite() && exp_f32(88.722_84) == f32::INFINITY);
        assert!(exp_f32(-87.336_54) >= f32::MIN_POSITIVE && exp_f32(-87.336_55) < f32::MIN_POSITIVE);
        assert!(exp_f32(-103.972_07).to_bits() == 1 && exp_f32(-103.972_09) == 0.0);
        assert_eq!(ln_f32(1.0), 0.0);
    }
}

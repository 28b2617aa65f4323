//! Activations of the gated kernels, value and derivative from one exponential.
//!
//! Each of `Silu`, `GeluErf` and `GeluTanh` is `f(x) = x·Φ(x)` with `Φ(-x) = 1 - Φ(x)`, so that `f'(-x) = 1 - f'(x)`.
//! Everything is computed from the small side, `Φ(-|x|)`, which is one exponential times something smooth: nothing
//! overflows, nothing cancels but where a derivative crosses zero, and the tails keep their digits. Magnitudes are
//! clamped where both small sides have long rounded to zero; this gives the limits at ±∞ too.

#![allow(
    clippy::inline_always,
    reason = "kernels inline these into their loops, where constants stay in registers"
)]

use super::error_function::Tail;
use super::exponential::{Logistic, ScaledExp, sigmoid};
use crate::simd::{F32x4, I32x4};

/// A scalar function applied to every lane, with its derivative.
pub trait Activation {
    /// `f(x)`.
    fn value(x: F32x4) -> F32x4;

    /// `f(x)` and `f'(x)`; the value is that of [`Activation::value`], bit by bit.
    fn value_and_derivative(x: F32x4) -> (F32x4, F32x4);
}

/// `x·σ(x)` (Elfwing, Uchibe and Doya 2017; also swish).
#[derive(Clone, Copy, Debug)]
pub struct Silu;

/// `½x·erfc(-x/√2)` (Hendrycks and Gimpel 2016), `approximate: "none"` in `PyTorch`.
#[derive(Clone, Copy, Debug)]
pub struct GeluErf;

/// `x·σ(2u)`, `u = √(2/π)·(x + 0.044715·x³)`, which is `½x·(1 + tanh u)`; `approximate: "tanh"` in `PyTorch`.
#[derive(Clone, Copy, Debug)]
pub struct GeluTanh;

/// `x` above 0, 0 below and at 0; NaN stays NaN, and its derivative is 1 so that a gradient passes.
#[derive(Clone, Copy, Debug)]
pub struct Relu;

/// `1 / (1 + e^(-x))`.
#[derive(Clone, Copy, Debug)]
pub struct Sigmoid;

#[inline(always)]
fn zero() -> F32x4 {
    F32x4::splat(0.0)
}

#[inline(always)]
fn one() -> F32x4 {
    F32x4::splat(1.0)
}

/// `a` where x is negative, `b` elsewhere, at NaN too.
#[inline(always)]
fn by_sign(x: F32x4, a: F32x4, b: F32x4) -> F32x4 {
    F32x4::select(x.lt(zero()), a, b)
}

/// `x·σ(y)` for a `y` with the sign of `x`, of which `logistic` holds |y|; below `-clamp` it is as at `-clamp`.
#[inline(always)]
fn gate(x: F32x4, clamp: f32, logistic: Logistic) -> F32x4 {
    let upper = x.max(F32x4::splat(-clamp)) * logistic.upper;
    // Times e^(-|y|), which is at most 1: the greater of the two where x is negative, the smaller elsewhere.
    upper.max(logistic.exp.times(upper))
}

/// The derivative of [`gate`] where `slope` is `dy/dx`: at -|x| it is `σ(-|y|)·(1 - |x|·σ(|y|)·slope)`.
#[inline(always)]
fn gate_derivative(x: F32x4, magnitude: F32x4, logistic: Logistic, slope: F32x4) -> F32x4 {
    let lower = logistic.lower_times(one() - magnitude * logistic.upper * slope);
    by_sign(x, lower, one() - lower)
}

impl Silu {
    /// From here on, the result on the small side is 0.
    const CLAMP: f32 = 110.0;

    #[inline(always)]
    fn parts(x: F32x4) -> (F32x4, Logistic) {
        let below = (-x.abs()).max(F32x4::splat(-Self::CLAMP));
        (-below, Logistic::new(ScaledExp::new(below)))
    }
}

impl Activation for Silu {
    #[inline(always)]
    fn value(x: F32x4) -> F32x4 {
        gate(x, Self::CLAMP, Self::parts(x).1)
    }

    #[inline(always)]
    fn value_and_derivative(x: F32x4) -> (F32x4, F32x4) {
        let (magnitude, logistic) = Self::parts(x);
        (gate(x, Self::CLAMP, logistic), gate_derivative(x, magnitude, logistic, one()))
    }
}

/// `1/√(2π)`.
const INVERSE_SQRT_2_PI: f32 = 0.398_942_3;
/// `2√(2/π)`: its leading bits, and the rest.
const LINEAR: [f32; 2] = [1.59375, 0.002_019_121_5];
/// `2√(2/π)·0.044715`: its leading twelve bits, and the rest.
const CUBIC: [f32; 2] = [0.071_350_1, 4.718_616_3e-6];

impl GeluTanh {
    /// From here on, the result on the small side is 0.
    const CLAMP: f32 = 11.0;

    /// |x| clamped, and the logistic of `2u`.
    ///
    /// The exponential multiplies a relative error of `2u` by `2u`, up to 100: so each product here is split into a
    /// part that is exact, twelve bits by twelve, and a remainder a thousand times smaller.
    #[inline(always)]
    fn parts(x: F32x4) -> (F32x4, Logistic) {
        let magnitude = x.abs().min(F32x4::splat(Self::CLAMP));
        let (high, low) = twelve_bits(magnitude);
        // x² = square_high + square_low.
        let square = magnitude * magnitude;
        let (square_high, _) = twelve_bits(square);
        let square_low = (high * high - square_high) + low * (magnitude + high);
        // 2u/x = leading + trailing.
        let product = F32x4::splat(CUBIC[0]) * square_high;
        let (leading, _) = twelve_bits(F32x4::splat(LINEAR[0]) + product);
        let rest = F32x4::splat(CUBIC[1]) * square + F32x4::splat(CUBIC[0]) * square_low;
        let trailing = ((F32x4::splat(LINEAR[0]) - leading) + product) + (F32x4::splat(LINEAR[1]) + rest);
        let exp = ScaledExp::of_sum(-(high * leading), -(low * leading + magnitude * trailing));
        (magnitude, Logistic::new(exp))
    }
}

/// The leading twelve bits of every lane, whose products with each other are exact, and the rest.
#[inline(always)]
fn twelve_bits(x: F32x4) -> (F32x4, F32x4) {
    let high = F32x4::from_bits(x.to_bits() & I32x4::splat(!0xfff));
    (high, x - high)
}

impl Activation for GeluTanh {
    #[inline(always)]
    fn value(x: F32x4) -> F32x4 {
        gate(x, Self::CLAMP, Self::parts(x).1)
    }

    #[inline(always)]
    fn value_and_derivative(x: F32x4) -> (F32x4, F32x4) {
        let (magnitude, logistic) = Self::parts(x);
        let slope = F32x4::splat(LINEAR[0] + LINEAR[1])
            + F32x4::splat(3.0 * (CUBIC[0] + CUBIC[1])) * magnitude * magnitude;
        (gate(x, Self::CLAMP, logistic), gate_derivative(x, magnitude, logistic, slope))
    }
}

impl GeluErf {
    /// |x| clamped, and the factors of `Φ(-|x|)`.
    #[inline(always)]
    fn parts(x: F32x4) -> (F32x4, Tail) {
        let magnitude = x.abs().min(F32x4::splat(14.625));
        (magnitude, Tail::normal(magnitude))
    }

    #[inline(always)]
    fn value_from(x: F32x4, magnitude: F32x4, tail: Tail) -> F32x4 {
        let lower = tail.times(magnitude);
        by_sign(x, -lower, x - lower)
    }
}

impl Activation for GeluErf {
    #[inline(always)]
    fn value(x: F32x4) -> F32x4 {
        let (magnitude, tail) = Self::parts(x);
        Self::value_from(x, magnitude, tail)
    }

    #[inline(always)]
    fn value_and_derivative(x: F32x4) -> (F32x4, F32x4) {
        let (magnitude, tail) = Self::parts(x);
        // Φ(-|x|) - |x|·e^(-x²/2)/√(2π), the exponential taken out.
        let density = magnitude * F32x4::splat(INVERSE_SQRT_2_PI) * tail.stretch;
        let lower = tail.exp.times(tail.quotient - density);
        (Self::value_from(x, magnitude, tail), by_sign(x, lower, one() - lower))
    }
}

impl Activation for Relu {
    #[inline(always)]
    fn value(x: F32x4) -> F32x4 {
        F32x4::select(x.le(zero()), zero(), x)
    }

    #[inline(always)]
    fn value_and_derivative(x: F32x4) -> (F32x4, F32x4) {
        (Self::value(x), F32x4::select(x.le(zero()), zero(), one()))
    }
}

impl Activation for Sigmoid {
    #[inline(always)]
    fn value(x: F32x4) -> F32x4 {
        sigmoid(x)
    }

    #[inline(always)]
    fn value_and_derivative(x: F32x4) -> (F32x4, F32x4) {
        let logistic = Logistic::new(ScaledExp::new((-x.abs()).max(F32x4::splat(-105.0))));
        (by_sign(x, logistic.lower(), logistic.upper), logistic.lower_times(logistic.upper))
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "limits are reached exactly")]
mod tests {
    use super::*;
    use crate::math::{truth, ulp};
    use std::f64::consts::{PI, SQRT_2};

    fn derivative<A: Activation>(x: F32x4) -> F32x4 {
        A::value_and_derivative(x).1
    }

    /// `x·σ(y)` with `dy/dx = slope`: value, derivative, and the sum of the magnitudes of the derivative's terms.
    fn gated(x: f64, y: f64, slope: f64) -> [f64; 3] {
        let (upper, lower) = (1.0 / (1.0 + (-y).exp()), 1.0 / (1.0 + y.exp()));
        terms(x, upper, if lower * upper == 0.0 { 0.0 } else { upper * lower * slope })
    }

    /// The same for `x·share`, where `density` is the derivative of `share`.
    fn terms(x: f64, share: f64, density: f64) -> [f64; 3] {
        let far = if density == 0.0 { 0.0 } else { x * density };
        [if share == 0.0 { 0.0 } else { x * share }, share + far, share + far.abs()]
    }

    fn silu(x: f64) -> [f64; 3] {
        gated(x, x, 1.0)
    }

    fn gelu_tanh(x: f64) -> [f64; 3] {
        let factor = 2.0 * (2.0 / PI).sqrt();
        gated(x, factor * (x + 0.044_715 * x * x * x), factor * (1.0 + 3.0 * 0.044_715 * x * x))
    }

    fn gelu_erf(x: f64) -> [f64; 3] {
        terms(x, 0.5 * truth::erfc(-x / SQRT_2), (-0.5 * x * x).exp() / (2.0 * PI).sqrt())
    }

    /// Value and derivative of one activation within `limits` of the truth, in ulp; derivatives in ulp of the sum of
    /// their terms' magnitudes, because they cross zero.
    fn check<A: Activation>(name: &str, truth: fn(f64) -> [f64; 3], limits: [f64; 2]) {
        let value = ulp::worst_of_terms(name, A::value, |x| [truth(x)[0]; 2]);
        assert!(value <= limits[0], "{name}: {value} ulp");
        let slope = ulp::worst_of_terms(&format!("{name}'"), derivative::<A>, |x| [truth(x)[1], truth(x)[2]]);
        assert!(slope <= limits[1], "{name}': {slope} ulp");
    }

    #[test]
    fn silu_is_accurate_everywhere() {
        check::<Silu>("silu", silu, [4.0, 6.0]);
    }

    #[test]
    fn gelu_erf_is_accurate_everywhere() {
        check::<GeluErf>("gelu_erf", gelu_erf, [5.0, 6.0]);
    }

    #[test]
    fn gelu_tanh_is_accurate_everywhere() {
        check::<GeluTanh>("gelu_tanh", gelu_tanh, [4.0, 6.0]);
    }

    #[test]
    fn sigmoid_is_accurate_everywhere() {
        let truth = |x: f64| {
            let (upper, lower) = (1.0 / (1.0 + (-x).exp()), 1.0 / (1.0 + x.exp()));
            [upper, upper * lower, upper * lower]
        };
        check::<Sigmoid>("sigmoid", truth, [4.0, 6.0]);
    }

    #[test]
    fn relu_is_exact() {
        check::<Relu>("relu", |x| if x <= 0.0 { [0.0; 3] } else { [x, 1.0, 1.0] }, [0.0, f64::INFINITY]);
        let x = F32x4::from_array([0.0, -0.0, 1e-45, f32::NAN]);
        let (value, slope) = Relu::value_and_derivative(x);
        assert_eq!(slope.to_array(), [0.0, 0.0, 1.0, 1.0]);
        assert!(value.to_array()[3].is_nan());
    }

    #[test]
    fn values_agree_with_and_without_derivative() {
        fn both<A: Activation>(x: F32x4) {
            assert_eq!(A::value(x).to_bits().to_array(), A::value_and_derivative(x).0.to_bits().to_array());
        }
        for i in -4000..4000 {
            let x = F32x4::splat(i as f32 * 0.25) + F32x4::from_array([0.0, 0.01, 0.1, 0.2]);
            both::<Silu>(x);
            both::<GeluErf>(x);
            both::<GeluTanh>(x);
            both::<Relu>(x);
            both::<Sigmoid>(x);
        }
    }

    /// Within half a unit of the tenth digit that the expectations have, plus 4 ulp.
    #[track_caller]
    fn close(got: f32, want: f64) {
        let error = (f64::from(got) - want).abs();
        assert!(error <= 5e-7 * want.abs() + 1.5e-45, "{got:e} for {want:e}");
    }

    #[test]
    fn users_reports() {
        fn at<A: Activation>(x: f32) -> [f32; 2] {
            let (value, slope) = A::value_and_derivative(F32x4::splat(x));
            [value.to_array()[0], slope.to_array()[0]]
        }
        close(at::<Silu>(-10.0179)[1], -0.000_402_110_731_3);
        close(at::<Silu>(-45.0)[1], -1.259_508_175e-18);
        close(at::<Silu>(-100.0)[0], -3.720_075_976e-42);
        close(at::<Sigmoid>(-45.0)[1], 2.862_518_58e-20);
        close(at::<GeluErf>(-6.0)[0], -5.919_525_869e-9);
        close(at::<GeluErf>(-5.0)[1], -7.146_946_002e-6);
        close(at::<GeluErf>(-13.24)[1], -4.517_920_537e-38);
        close(at::<GeluTanh>(-6.0)[0], -8.439_648_98e-11);
        close(at::<GeluTanh>(-6.0)[1], -7.709_976_013e-10);
        for x in [10.0, 13.24, 20.0, 20.625, 21.657_722, 89.0, 100.0, 1000.0, f32::MAX, f32::INFINITY] {
            for [value, slope] in [at::<GeluErf>(x), at::<GeluTanh>(x)] {
                assert_eq!([value, slope], [x, 1.0]);
            }
            if x >= 20.0 {
                assert_eq!(at::<Silu>(x)[0], x);
                close(at::<Silu>(x)[1], 1.0);
                assert_eq!(at::<Sigmoid>(x)[0], 1.0);
            }
        }
        for x in [-1000.0, f32::MIN, f32::NEG_INFINITY] {
            for pair in [at::<Silu>(x), at::<GeluErf>(x), at::<GeluTanh>(x), at::<Sigmoid>(x), at::<Relu>(x)]
            {
                assert_eq!(pair, [0.0, 0.0]);
            }
        }
        for pair in
            [at::<Silu>(f32::NAN), at::<GeluErf>(f32::NAN), at::<GeluTanh>(f32::NAN), at::<Sigmoid>(f32::NAN)]
        {
            assert!(pair[0].is_nan() && pair[1].is_nan());
        }
    }
}

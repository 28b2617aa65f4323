//! Elementary functions on [`F32x4`](crate::simd::F32x4), within 4 ulp of the true value at every `f32`, subnormal
//! results included, and activations within 5; NaN stays NaN and infinities give the limits.
//!
//! The shaders in `shaders/lib` hold the same formulas with the same coefficients. Both come from minimax fits
//! (Remez, rounded to `f32` one coefficient at a time while the rest was fitted again); each comment gives the
//! interval and the largest error of the fit, in exact arithmetic.

pub mod activation;
pub mod error_function;
pub mod exponential;

/// Functions in float64 that `std` lacks.
#[cfg(test)]
mod truth {
    use std::f64::consts::{FRAC_2_SQRT_PI, PI};

    /// `e^(-x²)·Σ 2^k·x^(2k+1) / (2k+1)!!`, whose terms have one sign; for |x| < 3.
    fn erf_by_series(x: f64) -> f64 {
        let mut term = x;
        let mut sum = x;
        let mut odd = 1.0;
        while term.abs() > sum.abs() * 1e-17 {
            odd += 2.0;
            term *= 2.0 * x * x / odd;
            sum += term;
        }
        FRAC_2_SQRT_PI * (-x * x).exp() * sum
    }

    /// Laplace's continued fraction `e^(-x²)/√π / (x + ½/(x + 1/(x + 3/2/(x + …))))`; for x ≥ 3.
    fn erfc_by_fraction(x: f64) -> f64 {
        let fraction = (1..=80).rev().fold(x, |tail, k| x + 0.5 * f64::from(k) / tail);
        (-x * x).exp() / (PI.sqrt() * fraction)
    }

    pub fn erfc(x: f64) -> f64 {
        match x {
            x if x.abs() < 3.0 => 1.0 - erf_by_series(x),
            x if x > 30.0 => 0.0,
            x if x < -30.0 => 2.0,
            x if x > 0.0 => erfc_by_fraction(x),
            x => 2.0 - erfc_by_fraction(-x),
        }
    }

    pub fn erf(x: f64) -> f64 {
        if x.abs() < 3.0 { erf_by_series(x) } else { 1.0 - erfc(x) }
    }
}

/// Distances from float64 truth, over every thousandth bit pattern or, with `WGRAD_EXHAUSTIVE=1`, over all.
#[cfg(test)]
#[allow(clippy::float_cmp, reason = "no error is no error")]
mod ulp {
    use crate::simd::F32x4;

    /// One unit in the last place of an `f32` near `magnitude`.
    fn unit(magnitude: f64) -> f64 {
        let exponent = ((magnitude.abs().to_bits() >> 52) as i32 - 1023).clamp(-126, 127);
        2f64.powi(exponent - 23)
    }

    /// How far `got` is from `truth`, in ulp of `magnitude`; infinite where only one of them is NaN or infinite. An
    /// infinite `got` counts as 2^128 beside a truth that is finite in float64, so that overflow is held to the same
    /// limit.
    fn distance(got: f32, truth: f64, magnitude: f64) -> f64 {
        if (got.is_nan() && truth.is_nan()) || got == truth as f32 {
            return 0.0;
        }
        let value = if got.is_infinite() { 2f64.powi(128).copysign(f64::from(got)) } else { f64::from(got) };
        let error = (value - truth).abs() / unit(magnitude);
        if error.is_nan() { f64::INFINITY } else { error }
    }

    /// The worst distance of `function` from `truth`.
    pub fn worst(name: &str, function: fn(F32x4) -> F32x4, truth: fn(f64) -> f64) -> f64 {
        worst_of_terms(name, function, |x| [truth(x); 2])
    }

    /// The worst distance of `function` from the first of `truth`, in ulp of the second: where terms cancel, the sum
    /// of their magnitudes.
    pub fn worst_of_terms(
        name: &str,
        function: fn(F32x4) -> F32x4,
        truth: impl Fn(f64) -> [f64; 2] + Sync,
    ) -> f64 {
        let exhaustive = std::env::var("WGRAD_EXHAUSTIVE").is_ok_and(|v| v == "1");
        let step = if exhaustive { 1 } else { 1000 };
        let half = 1u64 << 31;
        let part = |start: u64| {
            let mut worst = (0.0, 0.0f32, 0.0f32);
            for bits in (start..start + half).step_by(4 * step) {
                let x: [f32; 4] = std::array::from_fn(|i| f32::from_bits((bits + (i * step) as u64) as u32));
                let y = function(F32x4::from_array(x)).to_array();
                for (x, y) in x.into_iter().zip(y) {
                    let [truth, magnitude] = truth(f64::from(x));
                    let error = distance(y, truth, magnitude);
                    if error > worst.0 {
                        worst = (error, x, y);
                    }
                }
            }
            worst
        };
        let (a, b) = std::thread::scope(|scope| {
            let negative = scope.spawn(|| part(half));
            (part(0), negative.join().expect("the other half does not panic"))
        });
        let (error, x, y) = if a.0 >= b.0 { a } else { b };
        println!("{name}: {error:.3} ulp at {x:e} ({:#010x}), which gave {y:e}", x.to_bits());
        error
    }
}

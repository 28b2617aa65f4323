//! Random numbers: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), on the host.

use crate::backend::try_collect;
use crate::error::Result;
use crate::math::exponential::ln_f32;

/// A counter-based generator: number `k` of a seed is a function of both.
#[derive(Debug, Clone)]
pub(crate) struct Philox {
    key: [u32; 2],
    counter: u64,
}

impl Philox {
    pub fn new(seed: u64) -> Self {
        Self { key: [seed as u32, (seed >> 32) as u32], counter: 0 }
    }

    /// Four numbers for a counter: ten rounds of two multiplications.
    fn block(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
        let ([mut k0, mut k1], [mut c0, mut c1, mut c2, mut c3]) = (key, counter);
        for _ in 0..10 {
            let low = u64::from(c0) * 0xD251_1F53;
            let high = u64::from(c2) * 0xCD9E_8D57;
            (c0, c1, c2, c3) =
                ((high >> 32) as u32 ^ c1 ^ k0, high as u32, (low >> 32) as u32 ^ c3 ^ k1, low as u32);
            k0 = k0.wrapping_add(0x9E37_79B9);
            k1 = k1.wrapping_add(0xBB67_AE85);
        }
        [c0, c1, c2, c3]
    }

    /// Runs `f` on the next numbers. A call uses up whole blocks, so that what follows does not depend on `n` modulo four; a call
    /// that fails uses up none.
    fn take<T>(&mut self, n: usize, f: impl FnOnce(&mut dyn Iterator<Item = u32>) -> Result<T>) -> Result<T> {
        let (key, first, end) = (self.key, self.counter, self.counter + n.div_ceil(4) as u64);
        let mut numbers = (first..end).flat_map(|c| Self::block(key, [c as u32, (c >> 32) as u32, 0, 0]));
        let result = f(&mut numbers)?;
        self.counter = end;
        Ok(result)
    }

    /// Uniform in `[low, high)`, from the upper 24 bits.
    pub fn uniform(&mut self, n: usize, low: f32, high: f32) -> Result<Vec<f32>> {
        // In f64, where the span of two floats is finite.
        let (from, span) = (f64::from(low), f64::from(high) - f64::from(low));
        self.take(n, |numbers| {
            let values = numbers.take(n).map(|bits| {
                let value = (from + span * (f64::from(bits >> 8) / 16_777_216.0)) as f32;
                // Rounding may reach the open end.
                if value < high { value } else { low }
            });
            try_collect("rand", n, values)
        })
    }

    /// Normal of mean 0 and variance 1 (Box and Muller 1958), two numbers from two.
    pub fn normal(&mut self, n: usize) -> Result<Vec<f32>> {
        self.take(n.next_multiple_of(2), |numbers| {
            let pairs = (0..n.div_ceil(2)).flat_map(|_| {
                let mut next = || numbers.next().expect("as many as were asked for");
                let (first, second) = (next(), next());
                // In (0, 1], so that the logarithm is finite.
                let u = ((first >> 8) + 1) as f32 / 16_777_216.0;
                let radius = f64::from(-2.0 * ln_f32(u)).sqrt();
                let (sin, cos) = sin_cos(second);
                [(radius * cos) as f32, (radius * sin) as f32]
            });
            try_collect("randn", n, pairs.take(n))
        })
    }
}

/// Sine and cosine of `fraction / 2^32` turns, to 13 digits: Taylor's series on an eighth of a turn to either side of a
/// quarter.
fn sin_cos(fraction: u32) -> (f64, f64) {
    let quarter = fraction.wrapping_add(1 << 29) >> 30;
    let rest = fraction.wrapping_sub(quarter << 30) as i32;
    let x = f64::from(rest) * (std::f64::consts::TAU / 4_294_967_296.0);
    let (mut sin, mut cos, mut term) = (0.0, 0.0, 1.0);
    for k in 0..8 {
        let even = f64::from(2 * k);
        cos += term;
        term *= x / (even + 1.0);
        sin += term;
        term *= -x / (even + 2.0);
    }
    match quarter {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_the_paper() {
        // Known answers from the authors' Random123 distribution (kat_vectors).
        assert_eq!(Philox::block([0, 0], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let ones = u32::MAX;
        assert_eq!(Philox::block([ones; 2], [ones; 4]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }

    #[test]
    fn sines_are_right() {
        for k in 0..100_000u32 {
            let fraction = k.wrapping_mul(0x9E37_79B9);
            let (sin, cos) = (f64::from(fraction) / 4_294_967_296.0 * std::f64::consts::TAU).sin_cos();
            let (s, c) = sin_cos(fraction);
            assert!((s - sin).abs() < 1e-13 && (c - cos).abs() < 1e-13, "{fraction}: {s} {c}");
        }
        assert_eq!(
            [0, 1 << 30, 1 << 31, 3 << 30].map(sin_cos).map(|(s, c)| (s + 0.0, c + 0.0)),
            [(0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0)]
        );
    }

    #[test]
    fn moments_are_right() {
        let mut generator = Philox::new(7);
        let z = generator.normal(100_001).unwrap();
        let mean = z.iter().map(|&v| f64::from(v)).sum::<f64>() / z.len() as f64;
        let var = z.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / z.len() as f64;
        assert!(mean.abs() < 0.015 && (var - 1.0).abs() < 0.03, "{mean} {var}");
        let u = generator.uniform(100_000, -3.0, 1.0).unwrap();
        assert!(u.iter().all(|v| (-3.0..1.0).contains(v)));
        let mean = u.iter().map(|&v| f64::from(v)).sum::<f64>() / u.len() as f64;
        assert!((mean + 1.0).abs() < 0.02, "{mean}");
    }
}

//! Distributions of input values.

use std::cell::Cell;
use std::f64::consts::TAU;

use half::f16;
use wgrad::DType;
use wgrad::kernel::check::{Made, Sizing};

/// How input values are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    Normal,
    Offset,
    Extremes,
    NonFinite,
}

/// Every distribution with its name and what it holds.
pub const DISTRIBUTIONS: &[(Distribution, &str, &str)] = &[
    (Distribution::Normal, "normal", "mean 0, standard deviation 1"),
    (Distribution::Offset, "offset", "mean 10,000, standard deviation 1: differences of large numbers"),
    (
        Distribution::Extremes,
        "extremes",
        "the largest values the kernel allows (1e30 at most), 1e-30, subnormal numbers, zeros, and where activations end",
    ),
    (Distribution::NonFinite, "nan and infinity", "normal, with some NaN, +∞ and −∞ among them"),
];

/// The most elements that the lab draws for one call: half a gigabyte.
pub const MOST: usize = 1 << 27;

/// A generator of numbers that depend on a name and a place alone (`SplitMix64`; Steele et al. 2014).
fn bits(seed: u64, place: u64) -> u64 {
    let mut z = seed.wrapping_add(place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn unit(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Box and Muller 1958.
fn normal(seed: u64, place: u64) -> f64 {
    let (u, v) = (unit(bits(seed, 2 * place)), unit(bits(seed, 2 * place + 1)));
    (-2.0 * u.ln()).sqrt() * (TAU * v).cos()
}

/// Where activations and their derivatives saturate, vanish or turn.
const TURNS: &[f32] = &[0.0, 1.0, 10.0179, 13.24, 20.625, 45.0, 89.0, 100.0, 1000.0];

/// Draws the inputs of one call.
pub struct Source<'a> {
    pub distribution: Distribution,
    pub dtype: DType,
    pub sizing: &'a Sizing,
    /// Elements drawn so far.
    pub drawn: Cell<usize>,
}

impl Source<'_> {
    /// Values for a binding, already rounded to the type that holds them.
    pub fn draw(&self, binding: &'static str, count: usize) -> Made<Vec<f32>> {
        self.drawn.set(self.drawn.get().saturating_add(count));
        if self.drawn.get() > MOST {
            return Err(format!("these sizes take more than {MOST} elements, the most that the lab draws"));
        }
        let seed = binding.bytes().fold(0u64, |h, b| bits(h, u64::from(b)));
        let mut values = Vec::new();
        values.try_reserve_exact(count).map_err(|_| format!("there is no memory for {count} elements"))?;
        let specials = self.specials();
        // Few, so that most rows are clean.
        let apart = (count as u64 / 3).clamp(1, 4096);
        values.extend((0..count as u64).map(|i| {
            let value = match self.distribution {
                Distribution::Offset => (10_000.0 + normal(seed, i)) as f32,
                Distribution::Extremes => specials[(bits(seed, i) % specials.len() as u64) as usize],
                Distribution::NonFinite if i % apart == seed % apart => {
                    specials[(i / apart) as usize % specials.len()]
                }
                Distribution::Normal | Distribution::NonFinite => normal(seed, i) as f32,
            };
            if self.dtype == DType::F16 { f16::from_f32(value).to_f32() } else { value }
        }));
        Ok(values)
    }

    /// The values that a distribution is about.
    fn specials(&self) -> Vec<f32> {
        match self.distribution {
            Distribution::Extremes => {
                let half = self.dtype == DType::F16;
                let most = self.sizing.largest.min(if half { 6e4 } else { 1e30 });
                let small: &[f32] =
                    if half { &[6.2e-5, 5e-6, 6e-8] } else { &[1e-30, 1.2e-38, 1e-40, 1e-45] };
                let sizes = TURNS.iter().copied().filter(|&v| v <= most).chain([most]);
                sizes.chain(small.iter().copied()).flat_map(|v| [v, -v]).collect()
            }
            _ => vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY],
        }
    }
}

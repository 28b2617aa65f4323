//! What a kernel is held against: its float64 reference and the calls that tests make.
//!
//! This stands apart from [`Kernel`], so that the published module, which never looks here, does without it.

use super::{Flags, Kernel};

/// A kernel with what it is tested by.
pub struct Check {
    /// The kernel.
    pub kernel: &'static Kernel,
    /// The same in plain float64, slow and obvious.
    pub reference: fn(&RefArgs<'_>) -> Vec<Vec<f64>>,
    /// Calls that tests and benchmarks make.
    pub cases: fn() -> Vec<Case>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Check").field(&self.kernel.name).finish()
    }
}

/// What a float64 reference gets: the inputs as numbers, by the kernel's bindings.
pub struct RefArgs<'a> {
    /// The kernel.
    pub kernel: &'static Kernel,
    /// The flags of the call.
    pub flags: Flags,
    /// The parameters' bytes.
    pub params: &'a [u8],
    /// Every binding's content before the call; empty for outputs and absent ones.
    pub inputs: &'a [Vec<f64>],
}

impl RefArgs<'_> {
    pub(crate) fn params<P: bytemuck::Pod>(&self) -> P {
        bytemuck::pod_read_unaligned(self.params)
    }
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.kernel.has(self.flags, flag)
    }
    pub(crate) fn input(&self, name: &str) -> &[f64] {
        let place =
            self.kernel.bindings.iter().position(|b| b.name == name).expect("a binding of this kernel");
        &self.inputs[place]
    }
}

/// What a test case puts into a binding.
#[derive(Debug, Clone)]
pub enum CaseBuffer {
    /// The variant has no such binding.
    Absent,
    /// An input, or the content before an update.
    Floats(Vec<f32>),
    /// An input of signed integers.
    Integers(Vec<i32>),
    /// An output of this many elements.
    Output(usize),
}

/// One call of a kernel that tests and benchmarks make.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it looks at.
    pub label: String,
    /// The flags.
    pub flags: Flags,
    /// The parameters' bytes.
    pub params: Vec<u8>,
    /// One entry a binding.
    pub buffers: Vec<CaseBuffer>,
    /// Passes if `|got - want| <= absolute + relative * |want|`.
    pub relative: f64,
    /// See `relative`.
    pub absolute: f64,
}

/// Deterministic test values: a hash of the index, spread over `low..high`.
pub(crate) fn spread(n: usize, seed: u32, low: f32, high: f32) -> Vec<f32> {
    (0..n as u32)
        .map(|i| {
            let mut h = i.wrapping_add(seed.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
            h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
            h ^= h >> 16;
            low + (high - low) * (h as f32 / u32::MAX as f32)
        })
        .collect()
}

//! What a kernel is held against: its float64 reference and the calls that tests make.
//!
//! This stands apart from [`Kernel`], so that the published module, which never looks here, does without it.

use super::{Access, Element, Flags, Kernel, Strategy, Traits};

/// A kernel with what it is tested by.
pub struct Check {
    /// The kernel.
    pub kernel: &'static Kernel,
    /// The same in plain float64, slow and obvious.
    pub reference: Reference,
    /// Calls that tests make: the shapes at the edges.
    pub cases: fn() -> Vec<Case>,
    /// How calls of any size are made.
    pub sizing: &'static Sizing,
}

impl Check {
    /// The flags of these names: of every group with several, one.
    ///
    /// # Errors
    /// The name that is unknown, or the group that lacks a choice.
    pub fn select(&self, names: &[&str]) -> Made<Flags> {
        let kernel = self.kernel;
        if let Some(name) = names.iter().find(|name| !kernel.flags.concat().contains(name)) {
            return Err(format!("{} has no flag {name}", kernel.name));
        }
        let chosen = |group: &[&str]| group.iter().filter(|flag| names.contains(flag)).count();
        match kernel.flags.iter().find(|group| group.len() > 1 && chosen(group) != 1) {
            Some(group) => Err(format!("choose one of {}", group.join(", "))),
            None => Ok(kernel.set(names)),
        }
    }

    /// A call of these sizes, one for each of [`Sizing::sizes`], with values from `fill(binding, count)`.
    ///
    /// # Errors
    /// What is wrong with the sizes, which of them and the flags do not go together, or what `fill` says.
    pub fn sized(&self, flags: Flags, sizes: &[usize], fill: Fill<'_>) -> Made<Case> {
        let names = self.sizing.sizes;
        if sizes.len() != names.len() {
            return Err(format!("{} takes {} sizes, not {}", self.kernel.name, names.len(), sizes.len()));
        }
        (self.sizing.make)(&Request { flags, sizes, fill })
    }

    /// Whether the device chooses in this group of flags, by [`Kernel::tune`]: a call leaves its first one set.
    #[must_use]
    pub fn tuned(&self, group: &[&str]) -> bool {
        let sizes: Vec<usize> = self.sizing.sizes.iter().map(|(_, usual)| *usual).collect();
        let first: Vec<&str> = self.kernel.flags.iter().filter(|g| g.len() > 1).map(|g| g[0]).collect();
        let flags = self.kernel.set(&first);
        let mask = self.kernel.set(group).0;
        let Ok(case) = self.sized(flags, &sizes, &|_, n| Ok(vec![0.0; n])) else { return false };
        let traits = Traits { strategy: Strategy::Workgroup, min_subgroup: 0 };
        ((self.kernel.tune)(&case.params, flags, traits).0 ^ flags.0) & mask != 0
    }
}

/// What was made for a call, or what is wrong with its sizes or flags.
pub type Made<T> = Result<T, String>;

/// Values for a binding, this many; or why there are none.
pub type Fill<'a> = &'a dyn Fn(&'static str, usize) -> Made<Vec<f32>>;

/// How calls of any size are made: what the kernel lab asks for and shows.
#[derive(Debug)]
pub struct Sizing {
    /// The sizes' names, each with what is usual.
    pub sizes: &'static [(&'static str, usize)],
    /// The largest magnitude of inputs at which every intermediate result stays inside f32.
    pub largest: f32,
    /// Bindings that hold a grid, each with the place of the size that is the length of its rows.
    pub grids: &'static [(&'static str, usize)],
    /// Makes the call.
    pub make: fn(&Request<'_>) -> Made<Case>,
}

/// What a call of a given size is made from.
pub struct Request<'a> {
    /// The flags that were chosen.
    pub flags: Flags,
    pub(crate) sizes: &'a [usize],
    pub(crate) fill: Fill<'a>,
}

impl Request<'_> {
    /// All sizes; none is 0.
    pub(crate) fn sizes<const N: usize>(&self) -> Made<[usize; N]> {
        let sizes: [usize; N] = self.sizes.try_into().expect("as many as the kernel names");
        if sizes.contains(&0) {
            return Err("every size is at least 1".into());
        }
        Ok(sizes)
    }

    /// The product of sizes, if a kernel can count so far.
    #[allow(clippy::unused_self, reason = "it is the request that is refused")]
    pub(crate) fn elements(&self, sizes: &[usize]) -> Made<usize> {
        let product = sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
        product.filter(|&n| n <= LARGEST).ok_or_else(|| {
            let words: Vec<String> = sizes.iter().map(ToString::to_string).collect();
            format!("{} elements are too many; {LARGEST} go into one buffer here", words.join(" × "))
        })
    }

    /// Values for a binding.
    pub(crate) fn values(&self, binding: &'static str, count: usize) -> Made<Vec<f32>> {
        self.elements(&[count]).and_then(|count| (self.fill)(binding, count))
    }

    /// The same as an input.
    pub(crate) fn input(&self, binding: &'static str, count: usize) -> Made<CaseBuffer> {
        self.values(binding, count).map(CaseBuffer::Floats)
    }
}

/// The most elements of one buffer in a sized call: 512 MiB of f32, with room for copies in 32-bit memory.
const LARGEST: usize = 1 << 27;

/// Results in float64, one list a binding; empty for inputs.
pub type Reference = fn(&RefArgs<'_>) -> Vec<Vec<f64>>;

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
    /// Passes if `|got - want| <= absolute * terms + relative * |want|`.
    pub relative: f64,
    /// See `relative`.
    pub absolute: f64,
    /// How large the terms are that an output is a sum of, laid out as the reference's results; 1 where it is not said
    /// or infinite. NaN where the order of terms decides between NaN and infinity: then all that is asked of a result
    /// that is not finite is not to be finite.
    pub terms: Option<Reference>,
}

impl Case {
    /// The bytes that have to be moved once, with elements of this size: all inputs and all outputs.
    #[must_use]
    pub fn bytes(&self, kernel: &Kernel, scalar_bytes: usize) -> usize {
        let each = kernel.bindings.iter().zip(&self.buffers).map(|(binding, buffer)| {
            let (count, passes) = match buffer {
                CaseBuffer::Absent => (0, 0),
                // What is updated is read and written.
                CaseBuffer::Floats(v) => (v.len(), if binding.access == Access::Read { 1 } else { 2 }),
                CaseBuffer::Integers(v) => (v.len(), 1),
                CaseBuffer::Output(n) => (*n, 1),
            };
            count * passes * if binding.element == Element::Scalar { scalar_bytes } else { 4 }
        });
        each.sum()
    }
}

/// The same call with the magnitudes of its inputs: for kernels that only add up products, the size of their terms.
pub(crate) fn of_magnitudes(args: &RefArgs<'_>, reference: Reference) -> Vec<Vec<f64>> {
    let inputs: Vec<Vec<f64>> = args.inputs.iter().map(|v| v.iter().map(|x| x.abs()).collect()).collect();
    let mut terms = reference(&RefArgs { inputs: &inputs, ..*args });
    // A NaN comes from the inputs alone, so the result must be one.
    terms.iter_mut().flatten().filter(|term| term.is_nan()).for_each(|term| *term = 1.0);
    terms
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

//! What a kernel is: bindings, parameters, variants, and what its CPU twin gets.
//!
//! The kernels themselves are in [`crate::kernels`], what they are tested with in [`check`].

use std::cell::{Ref, RefMut};

use crate::error::Result;
use crate::wgsl::{self, Dialect, Scalar};

pub mod check;

/// How a kernel's binding is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read only: the same buffer may stand behind several of these.
    Read,
    /// Written in full.
    Write,
    /// Written in part; what lies between stays.
    Part,
    /// Updated in place.
    Update,
}

/// What a binding's array holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// The tensor's own type, `scalar` in the shader.
    Scalar,
    /// 32-bit floats whatever the tensor's type: statistics and optimizer state.
    F32,
    /// 32-bit signed integers.
    I32,
    /// The backend's own record of values that a kernel found out of range.
    Faults,
}

/// The most storage buffers of a kernel: what every device of WebGPU can bind.
pub(crate) const MAX_BINDINGS: usize = 8;

/// One storage buffer of a kernel. Its number in the shader is its place in the kernel's list.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// The variable's name in the shader.
    pub name: &'static str,
    /// How it is used.
    pub access: Access,
    /// What it holds.
    pub element: Element,
    /// The binding is there when one of these flags is set; always, when the list is empty.
    pub when: &'static [&'static str],
}

impl Binding {
    pub(crate) const fn new(name: &'static str, access: Access) -> Self {
        Self { name, access, element: Element::Scalar, when: &[] }
    }
    pub(crate) const fn read(name: &'static str) -> Self {
        Self::new(name, Access::Read)
    }
    pub(crate) const fn write(name: &'static str) -> Self {
        Self::new(name, Access::Write)
    }
    pub(crate) const fn update(name: &'static str) -> Self {
        Self::new(name, Access::Update)
    }
    pub(crate) const fn holds(mut self, element: Element) -> Self {
        self.element = element;
        self
    }
    pub(crate) const fn when(mut self, flags: &'static [&'static str]) -> Self {
        self.when = flags;
        self
    }
}

/// One member of a parameter struct as Rust lays it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The member's name.
    pub name: &'static str,
    /// Bytes from the start.
    pub offset: usize,
    /// Bytes it takes.
    pub size: usize,
}

/// Declares a kernel's uniform parameters: the struct, and its layout for the check against the shader.
macro_rules! params {
    ($(#[$meta:meta])* struct $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(C)]
        pub(crate) struct $name { $($(#[$doc])* pub $field: $type),* }
        impl $name {
            const FIELDS: &'static [crate::kernel::Field] = &[$(crate::kernel::Field {
                name: stringify!($field),
                offset: std::mem::offset_of!($name, $field),
                size: std::mem::size_of::<$type>(),
            }),*];
        }
    };
}
pub(crate) use params;

/// A set of a kernel's flags, by their place in [`Kernel::flags`] read from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u32);

/// Which form of a reduction a device gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// No invocation needs another: the only form of elementwise kernels.
    Elementwise,
    /// Sums inside subgroups first.
    Subgroups,
    /// Sums through workgroup memory.
    Workgroup,
    /// One invocation a row and no barrier, for software adapters.
    Serial,
}

impl Strategy {
    fn flag(self) -> Option<&'static str> {
        match self {
            Self::Subgroups => Some("subgroups"),
            Self::Serial => Some("serial"),
            Self::Elementwise | Self::Workgroup => None,
        }
    }
}

/// What a device means for the choice between forms of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// The form of its reductions.
    pub strategy: Strategy,
    /// The fewest invocations that a subgroup can have; 0 where there are none.
    pub min_subgroup: u32,
}

/// What a shader is composed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Variant {
    /// The flags that are set.
    pub flags: Flags,
    /// What `scalar` is.
    pub scalar: Scalar,
    /// The form of its reductions.
    pub strategy: Strategy,
}

/// A kernel: everything both backends, the tests and the benchmark know of it.
pub struct Kernel {
    /// The name, also of the shader's file.
    pub name: &'static str,
    /// The shader's source, before composition.
    pub source: &'static str,
    /// The storage buffers; the uniform parameters follow as the last binding.
    pub bindings: &'static [Binding],
    /// The layout of the parameters.
    pub fields: &'static [Field],
    /// The parameters' size in bytes.
    pub params_size: usize,
    /// Groups of flags: of a group with several exactly one is set; one alone is set or not.
    pub flags: &'static [&'static [&'static str]],
    /// The element types it works on.
    pub scalars: &'static [Scalar],
    /// The forms it has.
    pub strategies: &'static [Strategy],
    /// Sets the flags that are the device's choice: forms that differ in speed only.
    pub tune: fn(&[u8], Flags, Traits) -> Flags,
    /// How many workgroups a call needs.
    pub workgroups: fn(&[u8], Flags, Strategy) -> u64,
    /// The floating-point operations of a call, where arithmetic may bound it.
    pub flops: fn(&[u8], Flags) -> u64,
    /// The CPU twin.
    pub cpu: fn(&mut CpuArgs<'_>) -> Result<()>,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Kernel").field(&self.name).finish()
    }
}

/// For kernels with one form on every device.
pub(crate) const UNTUNED: fn(&[u8], Flags, Traits) -> Flags = |_, flags, _| flags;

/// For kernels that memory bounds: their arithmetic is not counted.
pub(crate) const NO_FLOPS: fn(&[u8], Flags) -> u64 = |_, _| 0;

/// The floating-point types, which every differentiable kernel takes.
pub(crate) const FLOATS: &[Scalar] = &[Scalar::F32, Scalar::F16, Scalar::F16InF32];
/// The forms of a kernel that sums over rows.
pub(crate) const ROWS: &[Strategy] = &[Strategy::Subgroups, Strategy::Workgroup, Strategy::Serial];
/// The form of a kernel in which no invocation needs another.
pub(crate) const ELEMENTWISE: &[Strategy] = &[Strategy::Elementwise];

impl Kernel {
    /// The flags' names in order.
    pub(crate) fn flag_names(&self) -> impl Iterator<Item = &'static str> {
        self.flags.iter().flat_map(|group| group.iter().copied())
    }

    /// The set of these flags. A name the kernel does not have is a fault in the caller and is caught by debug builds.
    pub(crate) fn set(&self, names: &[&str]) -> Flags {
        let mut bits = 0;
        for name in names.iter().filter(|name| !name.is_empty()) {
            let place = self.flag_names().position(|flag| flag == *name);
            debug_assert!(place.is_some(), "{names:?}");
            bits |= place.map_or(0, |place| 1 << place);
        }
        Flags(bits)
    }

    /// The set with `new` in place of `old`.
    pub(crate) fn replace(&self, flags: Flags, old: &str, new: &str) -> Flags {
        Flags(flags.0 & !self.set(&[old]).0 | self.set(&[new]).0)
    }

    /// Whether `flag` is in the set.
    #[must_use]
    pub fn has(&self, flags: Flags, flag: &str) -> bool {
        self.flag_names().enumerate().any(|(k, name)| name == flag && flags.0 >> k & 1 == 1)
    }

    /// Whether a binding is there in this variant.
    #[must_use]
    pub fn binds(&self, flags: Flags, binding: &Binding) -> bool {
        binding.when.is_empty() || binding.when.iter().any(|flag| self.has(flags, flag))
    }

    /// The WGSL text of a variant.
    ///
    /// # Errors
    /// A fault in the shader's directives.
    pub fn compose(
        &self,
        variant: Variant,
        dialect: Dialect,
    ) -> std::result::Result<String, wgsl::ComposeError> {
        let form = variant.strategy.flag();
        wgsl::compose(self.name, self.source, variant.scalar, dialect, &|flag| {
            form == Some(flag)
                || (flag == "float" && variant.scalar.is_float())
                // Slim rows are narrow rows with fewer registers.
                || (flag == "narrow" && self.has(variant.flags, "slim"))
                || self.has(variant.flags, flag)
        })
    }

    /// Every variant there is.
    #[must_use]
    pub fn variants(&self) -> Vec<Variant> {
        let mut sets = vec![0u32];
        let mut first = 0;
        for group in self.flags {
            let choices: Vec<u32> =
                if group.len() == 1 { vec![0, 1] } else { (0..group.len()).map(|k| 1 << k).collect() };
            sets = sets.iter().flat_map(|s| choices.iter().map(move |c| s | c << first)).collect();
            first += group.len();
        }
        let mut all = Vec::new();
        for &bits in &sets {
            for &scalar in self.scalars {
                for &strategy in self.strategies {
                    all.push(Variant { flags: Flags(bits), scalar, strategy });
                }
            }
        }
        all
    }
}

/// A buffer as a CPU twin sees it: borrowed for the length of the call.
pub enum CpuBuffer<'a> {
    /// Absent in this variant, or already taken.
    Absent,
    /// For reading.
    Read(Ref<'a, [f32]>),
    /// For writing.
    Write(RefMut<'a, [f32]>),
}

/// What a CPU twin gets.
pub struct CpuArgs<'a> {
    /// The kernel that runs.
    pub kernel: &'static Kernel,
    /// The flags of the call.
    pub flags: Flags,
    /// The parameters' bytes.
    pub params: &'a [u8],
    /// The buffers, in the order of the kernel's bindings.
    pub buffers: Vec<CpuBuffer<'a>>,
}

impl<'a> CpuArgs<'a> {
    pub(crate) fn params<P: bytemuck::Pod>(&self) -> P {
        bytemuck::pod_read_unaligned(self.params)
    }

    pub(crate) fn has(&self, flag: &str) -> bool {
        self.kernel.has(self.flags, flag)
    }

    fn take(&mut self, name: &str) -> CpuBuffer<'a> {
        let place =
            self.kernel.bindings.iter().position(|b| b.name == name).expect("a binding of this kernel");
        std::mem::replace(&mut self.buffers[place], CpuBuffer::Absent)
    }

    /// A buffer for reading, if this variant has it. Each can be taken once.
    pub(crate) fn try_read(&mut self, name: &str) -> Option<Ref<'a, [f32]>> {
        match self.take(name) {
            CpuBuffer::Read(buffer) => Some(buffer),
            _ => None,
        }
    }

    pub(crate) fn read(&mut self, name: &str) -> Ref<'a, [f32]> {
        self.try_read(name).expect("a buffer for reading")
    }

    /// A buffer for reading as signed integers.
    pub(crate) fn read_i32(&mut self, name: &str) -> Ref<'a, [i32]> {
        Ref::map(self.read(name), bytemuck::cast_slice)
    }

    pub(crate) fn try_write(&mut self, name: &str) -> Option<RefMut<'a, [f32]>> {
        match self.take(name) {
            CpuBuffer::Write(buffer) => Some(buffer),
            _ => None,
        }
    }

    pub(crate) fn write(&mut self, name: &str) -> RefMut<'a, [f32]> {
        self.try_write(name).expect("a buffer for writing")
    }
}

//! The registry: one line per kernel.
//!
//! A kernel is a shader in `shaders/` and a file of the same name in `src/kernels/` with its bindings, its parameters,
//! its CPU twin, its float64 reference, its test cases and how a call of any size is made. Offline validation, the
//! comparison with float64 and of the backends with each other, and its place in the kernel lab follow from the line here.

use crate::kernel::Kernel;
use crate::kernel::check::Check;

/// The error for a value out of range that kernel number `kernel` met at `place`.
#[cfg_attr(
    not(target_arch = "wasm32"),
    allow(dead_code, reason = "only a device that cannot stop writes them down")
)]
pub(crate) fn fault(kernel: usize, place: usize, value: i32) -> crate::error::Error {
    match ALL.get(kernel) {
        Some(k) if k.name == "cross_entropy" => cross_entropy::label_error(place, value, None),
        other => crate::error::Error::index(
            other.map_or("webgpu", |k| k.name),
            format!("{value} at {place} is out of range"),
        ),
    }
}

/// The registry's lines become the modules, the table and the macro that expands once per kernel.
macro_rules! registry {
    ($($name:ident),* $(,)?) => {
        $(pub(crate) mod $name;)*
        /// Every kernel.
        pub static ALL: &[&Kernel] = &[$(&$name::KERNEL),*];
        /// Every kernel with what it is tested by.
        pub static CHECKS: &[Check] = &[$(Check {
            kernel: &$name::KERNEL,
            reference: $name::reference,
            cases: $name::cases,
            sizing: &$name::SIZING,
        }),*];
    };
}

registry! {
    adamw,
    binary,
    copy,
    cross_entropy,
    cross_entropy_backward,
    fill,
    gated,
    gated_backward,
    layer_norm,
    layer_norm_backward,
    matmul,
    sum_columns,
    sum_rows,
}

//! Tensors, automatic differentiation and fused neural-network kernels for the browser: hand-written WGSL on WebGPU,
//! and the same operations as SIMD code in WebAssembly where there is none.
//!
//! The Rust API mirrors the JavaScript one: an [`Engine`] is a device, a [`Tensor`] lives on it, operations are methods,
//! and errors are values of one [`Error`] type. ARCHITECTURE.md says how the parts hang together.

mod accumulate;
mod autograd;
mod backend;
pub mod check;
mod dtype;
mod engine;
mod error;
#[cfg(target_arch = "wasm32")]
mod js;
pub mod kernel;
pub mod kernels;
mod layout;
pub mod math;
mod ops;
pub mod optim;
mod pairing;
mod profile;
mod random;
mod shape;
pub mod simd;
mod tensor;
pub mod wgsl;

pub use backend::{HostData, Memory};
pub use dtype::DType;
pub use engine::Engine;
pub use error::{Error, ErrorKind, Result};
pub use layout::Layout;
pub use ops::gated::Approximate;
pub use ops::loss::{CrossEntropy, Reduction};
pub use profile::KernelCall;
pub use shape::{MAX_ELEMENTS, MAX_RANK, Shape};
pub use tensor::Tensor;

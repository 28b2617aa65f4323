//! Runs a kernel's case on an engine and compares it with the kernel's float64 reference.
//!
//! Native tests, browser tests and the kernel lab all call this, so that a kernel is tested by being registered.

use crate::backend::HostData;
use crate::dtype::DType;
use crate::engine::Engine;
use crate::error::Result;
use crate::kernel::check::{Case, CaseBuffer, Check, RefArgs};
use crate::kernel::{Access, Element};
use crate::tensor::Tensor;

/// The element of an output that is furthest off, in multiples of the tolerance.
#[derive(Debug, Clone, PartialEq)]
pub struct Worst {
    /// The binding's name.
    pub binding: &'static str,
    /// The element's place in it.
    pub index: usize,
    /// What the engine computed.
    pub got: f64,
    /// What float64 says.
    pub want: f64,
    /// The error divided by the tolerance; above 1 is a failure. Infinite where one is NaN or infinite and the other not.
    pub ratio: f64,
}

/// The smallest normal f32: results below it may be flushed to zero.
const TINY: f64 = f32::MIN_POSITIVE as f64;

/// The error of `got` in multiples of `absolute + relative * |want|`.
#[must_use]
pub fn error_ratio(got: f64, want: f64, relative: f64, absolute: f64) -> f64 {
    let rounded = f64::from(want as f32);
    if got.is_nan() && want.is_nan() {
        return 0.0;
    }
    if got.is_nan() || want.is_nan() {
        return f64::INFINITY;
    }
    // Bit for bit what float64 rounds to, infinities included.
    if got.to_bits() == rounded.to_bits() || (got == 0.0 && rounded == 0.0) {
        return 0.0;
    }
    if got.is_infinite() || rounded.is_infinite() {
        return f64::INFINITY;
    }
    if want.abs() < TINY && got.abs() <= TINY {
        return 0.0;
    }
    let tolerance = absolute + relative * want.abs();
    if tolerance == 0.0 { f64::INFINITY } else { (got - want).abs() / tolerance }
}

/// Runs `case` of a kernel on `engine` with elements of `dtype`; the worst element of all outputs.
///
/// For `f16` the inputs are rounded first, and half a unit in the last place of f16 is added to the tolerance.
///
/// # Errors
/// Whatever running and reading can fail with.
pub async fn run_case(engine: &Engine, check: &Check, case: &Case, dtype: DType) -> Result<Option<Worst>> {
    let kernel = check.kernel;
    let mut tensors: Vec<Option<Tensor>> = Vec::new();
    let mut inputs: Vec<Vec<f64>> = Vec::new();
    for (binding, buffer) in kernel.bindings.iter().zip(&case.buffers) {
        let own = if binding.element == Element::Scalar { dtype } else { DType::F32 };
        let (tensor, input) = match buffer {
            CaseBuffer::Absent => (None, vec![]),
            CaseBuffer::Floats(v) => {
                let t = engine.tensor_from(HostData::F32(v.clone()), &[v.len()], own)?;
                let round = |x: &f32| {
                    if own == DType::F16 { half::f16::from_f32(*x).to_f64() } else { f64::from(*x) }
                };
                (Some(t), v.iter().map(round).collect())
            }
            CaseBuffer::Integers(v) => {
                (Some(engine.tensor_i32(v, &[v.len()])?), v.iter().map(|&x| f64::from(x)).collect())
            }
            // Filled with NaN: what the kernel leaves unwritten is seen.
            CaseBuffer::Output(n) => (Some(engine.full(&[*n], f64::NAN, own)?), vec![]),
        };
        tensors.push(tensor);
        inputs.push(input);
    }
    let places: Vec<Option<&Tensor>> = tensors.iter().map(Option::as_ref).collect();
    engine.run_bytes(kernel, case.flags, dtype, &case.params, &places)?;
    let args = RefArgs { kernel, flags: case.flags, params: &case.params, inputs: &inputs };
    let wanted = (check.reference)(&args);
    let mut worst: Option<Worst> = None;
    for ((binding, tensor), want) in kernel.bindings.iter().zip(&tensors).zip(&wanted) {
        let Some(tensor) = tensor.as_ref().filter(|_| binding.access != Access::Read) else { continue };
        let got = tensor.data().await?.to_f64();
        assert_eq!(
            got.len(),
            want.len(),
            "{}: the reference of {} has another length",
            kernel.name,
            binding.name
        );
        for (index, (&got, &want)) in got.iter().zip(want).enumerate() {
            let halves = tensor.dtype() == DType::F16;
            let (want, relative, absolute) = if halves {
                // Half a unit of f16, whose smallest step is 2^-24.
                (half::f16::from_f64(want).to_f64(), case.relative + 9.8e-4, case.absolute + 6e-8)
            } else {
                (want, case.relative, case.absolute)
            };
            let ratio = error_ratio(got, want, relative, absolute);
            if worst.as_ref().is_none_or(|w| ratio > w.ratio) {
                worst = Some(Worst { binding: binding.name, index, got, want, ratio });
            }
        }
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use super::error_ratio;

    #[test]
    fn nan_and_infinity_never_pass_by_chance() {
        assert!(error_ratio(f64::NAN, 1.0, 1.0, 1.0) > 1.0);
        assert!(error_ratio(1.0, f64::NAN, 1.0, 1.0) > 1.0);
        assert!(error_ratio(f64::INFINITY, 1.0, 1.0, 1.0) > 1.0);
        assert!(error_ratio(f64::NEG_INFINITY, f64::INFINITY, 1.0, 1.0) > 1.0);
        assert!(error_ratio(f64::NAN, f64::NAN, 0.0, 0.0) < 1.0);
        assert!(error_ratio(f64::INFINITY, f64::INFINITY, 0.0, 0.0) < 1.0);
        assert!(error_ratio(1.0 + 1e-3, 1.0, 1e-4, 0.0) > 1.0);
    }
}

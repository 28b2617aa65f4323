//! Runs a kernel's case on an engine and compares it with the kernel's float64 reference.
//!
//! Native tests, browser tests and the kernel lab all call this, so that a kernel is tested by being registered.

use crate::backend::HostData;
use crate::dtype::DType;
use crate::engine::Engine;
use crate::error::Result;
use crate::kernel::check::{Case, CaseBuffer, Check, RefArgs, Reference};
use crate::kernel::{Access, Binding, Element, Flags, Kernel};
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
    // Where rounding is allowed at all, so is an intermediate result that was flushed.
    if tolerance == 0.0 { f64::INFINITY } else { (got - want).abs() / tolerance.max(TINY) }
}

/// A case with elements of one type.
#[derive(Clone, Copy)]
pub struct Trial<'a> {
    /// The kernel with its reference.
    pub check: &'a Check,
    /// The call.
    pub case: &'a Case,
    /// The type of the bindings that take the tensor's own.
    pub dtype: DType,
}

impl std::fmt::Debug for Trial<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Trial({} {} {})", self.check.kernel.name, self.case.label, self.dtype)
    }
}

impl Trial<'_> {
    fn dtype_of(&self, binding: &Binding) -> DType {
        if binding.element == Element::Scalar { self.dtype } else { DType::F32 }
    }

    /// The call's tensors on `engine`. Outputs are filled with NaN: what the kernel leaves unwritten is seen.
    ///
    /// # Errors
    /// Whatever making tensors can fail with.
    pub fn call(&self, engine: &Engine) -> Result<Call> {
        let mut tensors = Vec::new();
        for (binding, buffer) in self.check.kernel.bindings.iter().zip(&self.case.buffers) {
            let dtype = self.dtype_of(binding);
            tensors.push(match buffer {
                CaseBuffer::Absent => None,
                CaseBuffer::Floats(v) => {
                    Some(engine.tensor_from(HostData::F32(v.clone()), &[v.len()], dtype)?)
                }
                CaseBuffer::Integers(v) => Some(engine.tensor_i32(v, &[v.len()])?),
                CaseBuffer::Output(n) => Some(engine.full(&[*n], f64::NAN, dtype)?),
            });
        }
        Ok(Call {
            engine: engine.clone(),
            kernel: self.check.kernel,
            flags: self.case.flags,
            dtype: self.dtype,
            params: self.case.params.clone(),
            tensors,
        })
    }

    /// What float64 makes of the inputs as the tensors hold them.
    #[must_use]
    pub fn expected(&self) -> Expected {
        let round =
            |x: f32, dtype| if dtype == DType::F16 { half::f16::from_f32(x).to_f64() } else { f64::from(x) };
        let buffers = self.check.kernel.bindings.iter().zip(&self.case.buffers);
        let mut inputs: Vec<Vec<f64>> = buffers
            .map(|(binding, buffer)| match buffer {
                CaseBuffer::Floats(v) => v.iter().map(|&x| round(x, self.dtype_of(binding))).collect(),
                CaseBuffer::Integers(v) => v.iter().map(|&x| f64::from(x)).collect(),
                CaseBuffer::Absent | CaseBuffer::Output(_) => vec![],
            })
            .collect();
        let want = self.refer(self.check.reference, &inputs);
        let terms = self.case.terms.map(|terms| self.refer(terms, &inputs));
        let subnormal = |x: &f64| *x != 0.0 && x.abs() < TINY;
        let flushed = inputs.iter().flatten().any(subnormal).then(|| {
            inputs.iter_mut().flatten().filter(|x| subnormal(x)).for_each(|x| *x = 0.0f64.copysign(*x));
            self.refer(self.check.reference, &inputs)
        });
        Expected { want, flushed, terms }
    }

    fn refer(&self, reference: Reference, inputs: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (kernel, case) = (self.check.kernel, self.case);
        reference(&RefArgs { kernel, flags: case.flags, params: &case.params, inputs })
    }

    /// The worst element of every output: `outputs` is what a call gave, on a `device` of that name.
    #[must_use]
    pub fn compare(&self, expected: &Expected, outputs: &[Vec<f64>], device: &str) -> Vec<Worst> {
        let mut all = Vec::new();
        for (k, (binding, got)) in self.check.kernel.bindings.iter().zip(outputs).enumerate() {
            if got.is_empty() {
                continue;
            }
            let want = &expected.want[k];
            let name = (self.check.kernel.name, binding.name);
            assert_eq!(got.len(), want.len(), "{name:?}: the reference has another length");
            let terms = expected.terms.as_ref().map(|terms| &terms[k]);
            // WGSL lets a device take subnormal inputs as zero.
            let flushed = expected.flushed.as_ref().filter(|_| device == "webgpu").map(|f| &f[k]);
            let ratio = |i: usize, want: f64| {
                let term = terms.map_or(1.0, |t| t[i]);
                if term.is_nan() && !want.is_finite() && !got[i].is_finite() {
                    return 0.0;
                }
                let absolute = self.case.absolute * if term.is_finite() { term } else { 1.0 };
                if self.dtype_of(binding) == DType::F16 {
                    // Half a unit of f16, whose smallest step is 2^-24.
                    let want = half::f16::from_f64(want).to_f64();
                    error_ratio(got[i], want, self.case.relative + 9.8e-4, absolute + 6e-8)
                } else {
                    error_ratio(got[i], want, self.case.relative, absolute)
                }
            };
            let mut worst: Option<Worst> = None;
            for (index, &value) in got.iter().enumerate() {
                let either = flushed.map_or(f64::INFINITY, |f| ratio(index, f[index]));
                let ratio = ratio(index, want[index]).min(either);
                if worst.as_ref().is_none_or(|w| ratio > w.ratio) {
                    worst =
                        Some(Worst { binding: binding.name, index, got: value, want: want[index], ratio });
                }
            }
            all.extend(worst);
        }
        all
    }
}

/// What float64 says of a trial.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The outputs, one list a binding; empty for inputs.
    pub want: Vec<Vec<f64>>,
    /// The same where subnormal inputs are taken as zero, if there are any.
    flushed: Option<Vec<Vec<f64>>>,
    terms: Option<Vec<Vec<f64>>>,
}

/// A call whose tensors are on an engine: it can be run again and again.
#[derive(Debug)]
pub struct Call {
    engine: Engine,
    kernel: &'static Kernel,
    flags: Flags,
    dtype: DType,
    params: Vec<u8>,
    tensors: Vec<Option<Tensor>>,
}

impl Call {
    /// Queues the kernel once.
    ///
    /// # Errors
    /// Whatever queueing can fail with.
    pub fn run(&self) -> Result<()> {
        let places: Vec<Option<&Tensor>> = self.tensors.iter().map(Option::as_ref).collect();
        self.engine.run_bytes(self.kernel, self.flags, self.dtype, &self.params, &places)
    }

    /// The outputs, one list a binding; empty for inputs.
    ///
    /// # Errors
    /// Whatever reading can fail with.
    pub async fn outputs(&self) -> Result<Vec<Vec<f64>>> {
        let mut all = Vec::new();
        for (binding, tensor) in self.kernel.bindings.iter().zip(&self.tensors) {
            all.push(match tensor {
                Some(tensor) if binding.access != Access::Read => tensor.data().await?.to_f64(),
                _ => vec![],
            });
        }
        Ok(all)
    }
}

/// Runs `case` of a kernel on `engine` with elements of `dtype`; the worst element of all outputs.
///
/// For `f16` the inputs are rounded first, and half a unit in the last place of f16 is added to the tolerance.
///
/// # Errors
/// Whatever running and reading can fail with.
pub async fn run_case(engine: &Engine, check: &Check, case: &Case, dtype: DType) -> Result<Option<Worst>> {
    let trial = Trial { check, case, dtype };
    let call = trial.call(engine)?;
    call.run()?;
    let all = trial.compare(&trial.expected(), &call.outputs().await?, engine.device());
    Ok(all.into_iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio)))
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

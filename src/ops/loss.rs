//! Losses.

use crate::dtype::DType;
use crate::error::{Error, Result, number_f32};
use crate::kernels::{cross_entropy, cross_entropy_backward};
use crate::ops::float_type;
use crate::ops::shape::dense;
use crate::tensor::Tensor;

/// How the losses of the rows become the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reduction {
    /// Their mean over the rows that count.
    #[default]
    Mean,
    /// Their sum.
    Sum,
    /// One each.
    None,
}

/// Options of [`Tensor::cross_entropy`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossEntropy {
    /// How the rows' losses become the result.
    pub reduction: Reduction,
    /// The target of rows that do not count.
    pub ignore_index: i32,
    /// The part of the target spread evenly over all classes, 0 to 1.
    pub label_smoothing: f32,
}

impl Default for CrossEntropy {
    fn default() -> Self {
        Self { reduction: Reduction::Mean, ignore_index: -100, label_smoothing: 0.0 }
    }
}

const OP: &str = "crossEntropy";

impl Tensor {
    /// Softmax cross-entropy of logits `[rows, classes]` and integer targets `[rows]` (or `[n, classes, d…]` and
    /// `[n, d…]`, as in PyTorch), from the log-sum-exp: no one-hot, no probability that could underflow.
    ///
    /// # Errors
    /// `ShapeError` when target and input do not fit; `DTypeError` unless the targets are i32; `ArgumentError` for a
    /// smoothing outside 0 to 1; `IndexError` for a target that is no class: at once on the CPU, with the next read on
    /// WebGPU.
    pub fn cross_entropy(&self, target: &Self, options: CrossEntropy) -> Result<Self> {
        self.same_engine(OP, target)?;
        float_type(OP, self)?;
        if target.dtype() != DType::I32 {
            return Err(Error::dtype(
                OP,
                format!("targets are class numbers in i32, not {}", target.dtype()),
            ));
        }
        if !(0.0..=1.0).contains(&options.label_smoothing) {
            return Err(Error::argument(
                OP,
                format!("labelSmoothing is {}; it lies in 0 to 1", number_f32(options.label_smoothing)),
            ));
        }
        let rank = self.shape().rank();
        if rank > 2 {
            return self.channels_last(target, options);
        }
        let classes = self.shape().last().copied().unwrap_or(0);
        let lead = &self.shape()[..rank.saturating_sub(1)];
        if rank == 0 || *lead != **target.shape() {
            return Err(Error::shape(
                OP,
                format!(
                    "input {} and target {} do not fit; for logits [rows, classes] the target is [rows]",
                    self.shape(),
                    target.shape()
                ),
            ));
        }
        let (x, target) = (dense(OP, self)?, dense(OP, target)?);
        let rows = target.shape().elements();
        if rows > 0 && classes == 0 {
            return Err(Error::shape(OP, format!("input {} has no class", self.shape())));
        }
        let (losses, counted) = per_row(&x, &target, rows, classes, options)?;
        match options.reduction {
            Reduction::None => Ok(losses),
            Reduction::Sum => losses.sum(None, false),
            Reduction::Mean => losses.sum(None, false)?.div(&counted.sum(None, false)?),
        }
    }

    /// The form with the classes in dimension 1.
    fn channels_last(&self, target: &Self, options: CrossEntropy) -> Result<Self> {
        let rank = self.shape().rank();
        let order: Vec<isize> = std::iter::once(0).chain(2..rank as isize).chain([1]).collect();
        let last = self.permute(&order)?;
        if last.shape()[..rank - 1] != **target.shape() {
            return Err(Error::shape(
                OP,
                format!(
                    "input {} and target {} do not fit; the target has no dimension 1",
                    self.shape(),
                    target.shape()
                ),
            ));
        }
        let flat = last.reshape(&[target.shape().elements() as isize, self.shape()[1] as isize])?;
        let losses = flat.cross_entropy(&target.reshape(&[-1])?, options)?;
        if options.reduction == Reduction::None {
            return losses.reshape(&target.shape().iter().map(|&d| d as isize).collect::<Vec<_>>());
        }
        Ok(losses)
    }
}

/// The loss of each row, and 1 for each row that counts.
fn per_row(
    x: &Tensor,
    target: &Tensor,
    rows: usize,
    classes: usize,
    options: CrossEntropy,
) -> Result<(Tensor, Tensor)> {
    let engine = x.engine();
    let row = |dtype| engine.empty(OP, *target.shape(), dtype);
    let (losses, counted) = (row(x.dtype())?, row(x.dtype())?);
    let (row_max, log_sum) = (row(DType::F32)?, row(DType::F32)?);
    let params = cross_entropy::Params::new(rows, classes, options.ignore_index, options.label_smoothing);
    if rows > 0 {
        let kernel = &cross_entropy::KERNEL;
        let tensors =
            [Some(x), Some(target), Some(&losses), Some(&counted), Some(&row_max), Some(&log_sum), None];
        engine.run(kernel, kernel.set(&[]), x.dtype(), &params, &tensors)?;
    }
    let saved = [x, target, &row_max, &log_sum];
    let losses = losses.recorded(OP, &[Some(x)], &saved, move |g| {
        let [x, target, row_max, log_sum] = [&g.saved[0], &g.saved[1], &g.saved[2], &g.saved[3]];
        let dx = x.engine().empty(OP, *x.shape(), x.dtype())?;
        if x.shape().elements() > 0 {
            let dy = dense(OP, g.dy())?;
            let kernel = &cross_entropy_backward::KERNEL;
            let tensors = [Some(&dy), Some(x), Some(target), Some(row_max), Some(log_sum), Some(&dx)];
            x.engine().run(kernel, kernel.set(&[]), x.dtype(), &params, &tensors)?;
        }
        Ok(vec![Some(dx)])
    });
    Ok((losses, counted))
}

//! Matrix products.

use crate::error::{Error, Result};
use crate::kernels::matmul::{KERNEL, Params};
use crate::ops::create::full;
use crate::ops::one_float_type;
use crate::ops::reduce::sum_to;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// `[batch…, m, k] · [batch…, k, n]`, batches broadcast; not recorded.
fn forward(op: &'static str, a: &Tensor, b: &Tensor, batch: &Shape) -> Result<Tensor> {
    let (m, k) = (a.shape()[a.shape().rank() - 2], a.shape()[a.shape().rank() - 1]);
    let n = b.shape()[b.shape().rank() - 1];
    let with = |tail: [usize; 2]| {
        let dims: Vec<usize> = batch.iter().copied().chain(tail).collect();
        Shape::new(op, &dims)
    };
    let shape = with([m, n])?;
    if k == 0 {
        return full(a.engine(), op, shape, 0.0, a.dtype());
    }
    let out = a.engine().empty(op, shape, a.dtype())?;
    if shape.elements() > 0 {
        let params =
            Params::new(&a.layout().expand(op, &with([m, k])?)?, &b.layout().expand(op, &with([k, n])?)?);
        a.engine().run(&KERNEL, KERNEL.set(&[]), a.dtype(), &params, &[Some(a), Some(b), Some(&out)])?;
    }
    Ok(out)
}

/// The last two dimensions exchanged, outside the graph.
fn transposed(x: &Tensor) -> Tensor {
    let rank = x.shape().rank();
    x.view(x.layout().transpose(rank - 2, rank - 1))
}

/// The product of two tensors of at least two dimensions.
fn product(op: &'static str, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (ra, rb) = (a.shape().rank(), b.shape().rank());
    let unfit = || {
        Error::shape(
            op,
            format!(
                "shapes {} and {} do not fit; the last size of the first must be the second last of the second, and \
                 sizes before them equal or 1",
                a.shape(),
                b.shape()
            ),
        )
    };
    if a.shape()[ra - 1] != b.shape()[rb - 2] {
        return Err(unfit());
    }
    let batch = |s: &Shape, rank: usize| Shape::from_checked(&s[..rank - 2]);
    let batch = batch(a.shape(), ra).broadcast(&batch(b.shape(), rb)).ok_or_else(unfit)?;
    let out = forward(op, a, b, &batch)?;
    Ok(out.recorded(op, &[Some(a), Some(b)], &[a, b], move |g| {
        let (a, b) = (&g.saved[0], &g.saved[1]);
        let da = || sum_to(&forward(op, g.dy(), &transposed(b), &batch)?, a.shape());
        let db = || sum_to(&forward(op, &transposed(a), g.dy(), &batch)?, b.shape());
        Ok(vec![g.wants[0].then(da).transpose()?, g.wants[1].then(db).transpose()?])
    }))
}

impl Tensor {
    /// The matrix product. 1-D operands are a row on the left and a column on the right, and their dimension is dropped
    /// again; dimensions before the last two are batches and broadcast. Transposed operands are not copied.
    ///
    /// # Errors
    /// `ShapeError` for a scalar or sizes that do not fit; `DTypeError` unless both are the same floating-point type.
    pub fn matmul(&self, other: &Self) -> Result<Self> {
        multiply("matmul", self, other)
    }

    /// `self · weightᵀ + bias`: `weight` is `[out, in]`, `bias` is `[out]`, the last dimension of `self` is `in`.
    ///
    /// # Errors
    /// `ShapeError` when sizes do not fit; `DTypeError` unless all are the same floating-point type.
    pub fn linear(&self, weight: &Self, bias: Option<&Self>) -> Result<Self> {
        if weight.shape().rank() != 2 || self.shape().last() != Some(&weight.shape()[1]) {
            return Err(Error::shape(
                "linear",
                format!(
                    "input {} and weight {} do not fit; the weight is [out, in], and `in` is the input's last size",
                    self.shape(),
                    weight.shape()
                ),
            ));
        }
        let out = weight.shape()[0];
        if let Some(bias) = bias.filter(|b| **b.shape() != [out]) {
            let shape = bias.shape();
            return Err(Error::shape(
                "linear",
                format!("bias has shape {shape}; it must be [{out}], as the weight's rows"),
            ));
        }
        let y = multiply("linear", self, &weight.transpose(0, 1)?)?;
        bias.map_or(Ok(y.clone()), |b| y.add(b))
    }
}

fn multiply(op: &'static str, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    one_float_type(op, a, b)?;
    let (ra, rb) = (a.shape().rank(), b.shape().rank());
    if ra == 0 || rb == 0 {
        return Err(Error::shape(
            op,
            format!("shapes {} and {}: a scalar is no matrix; use mul", a.shape(), b.shape()),
        ));
    }
    if rb == 2 && ra > 2 && a.shape().elements() > 0 {
        // Rows of all batches as one matrix: one product, and the gradient of `b` is summed inside it.
        let rows = a.reshape(&[-1, a.shape()[ra - 1] as isize])?;
        let mut dims: Vec<isize> = a.shape().iter().map(|&d| d as isize).collect();
        dims[ra - 1] = b.shape()[1] as isize;
        return product(op, &rows, b)?.reshape(&dims);
    }
    let left = if ra == 1 { a.unsqueeze(0)? } else { a.clone() };
    let right = if rb == 1 { b.unsqueeze(1)? } else { b.clone() };
    let mut out = product(op, &left, &right)?;
    if ra == 1 {
        out = out.squeeze(Some(-2))?;
    }
    if rb == 1 {
        out = out.squeeze(Some(-1))?;
    }
    Ok(out)
}

//! Sums and means over dimensions.

use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::kernels::{sum_columns, sum_rows};
use crate::ops::create::full;
use crate::ops::create::scalar;
use crate::ops::float_type;
use crate::ops::shape::{copied, dense};
use crate::shape::{List, Shape};
use crate::tensor::Tensor;

/// `x` summed down to `shape`, from which it was broadcast.
pub(crate) fn sum_to(x: &Tensor, shape: &Shape) -> Result<Tensor> {
    if x.shape() == shape {
        return Ok(x.clone());
    }
    let lead = x.shape().rank() - shape.rank();
    let dims: Vec<usize> =
        (0..x.shape().rank()).filter(|&d| d < lead || (shape[d - lead] == 1 && x.shape()[d] != 1)).collect();
    let back: Vec<isize> = shape.iter().map(|&d| d as isize).collect();
    reduce("sum", x, &dims, 1.0)?.reshape(&back)
}

/// The dimensions of a reduction, checked: all of them when none is given.
fn dimensions(op: &'static str, shape: &Shape, dims: Option<&[isize]>) -> Result<Vec<usize>> {
    let Some(dims) = dims.filter(|d| !d.is_empty()) else { return Ok((0..shape.rank()).collect()) };
    let named = dims.iter().map(|&d| shape.dim(op, d)).collect::<Result<Vec<_>>>()?;
    if named.iter().enumerate().any(|(k, d)| named[..k].contains(d)) {
        return Err(crate::Error::shape(op, format!("{} names a dimension of {shape} twice", List(dims))));
    }
    // In order; a scalar accepts the dimensions 0 and -1 and has none.
    Ok((0..shape.rank()).filter(|d| named.contains(d)).collect())
}

/// The shape with the reduced dimensions at size 1, or without them.
fn reduced(shape: &Shape, dims: &[usize], keep: bool) -> Shape {
    let kept = shape.iter().enumerate().filter(|(k, _)| keep || !dims.contains(k));
    Shape::from_checked(&kept.map(|(k, &d)| if dims.contains(&k) { 1 } else { d }).collect::<Vec<_>>())
}

/// Sums `x` over `dims`, times `scale`; the result keeps the dimensions at size 1. Not recorded.
fn reduce(op: &'static str, x: &Tensor, dims: &[usize], scale: f32) -> Result<Tensor> {
    let keep = reduced(x.shape(), dims, true);
    if keep.elements() == 0 {
        return x.engine().empty(op, keep, x.dtype());
    }
    let length: usize = dims.iter().map(|&d| x.shape()[d]).product();
    if length == 0 {
        // The scale of an empty mean is infinite: 0 * inf is the NaN that PyTorch gives.
        return full(x.engine(), op, keep, f64::from(0.0 * scale), x.dtype());
    }
    let mut dims = dims.to_vec();
    dims.retain(|&d| x.shape()[d] != 1);
    if dims.is_empty() {
        // A result of its own: an alias would change with the tensor. (The mean of one element has scale 1.)
        return copied(op, &x.detach());
    }
    let mut now = dense(op, &x.detach())?;
    // Neighbouring dimensions go in one pass, the last ones first.
    loop {
        let end = dims.pop().map_or(0, |d| d + 1);
        let mut start = end.saturating_sub(1);
        while dims.last().is_some_and(|&d| d + 1 == start) {
            start = dims.pop().expect("looked at above");
        }
        let last = dims.is_empty();
        let product = |dims: &[usize]| dims.iter().product::<usize>();
        let outer = product(&now.shape()[..start]);
        let length = product(&now.shape()[start..end]);
        let inner = product(&now.shape()[end..]);
        let shape = (start..end).fold(*now.shape(), |s, d| s.with(d, 1));
        let target = Target { op, shape, dtype: x.dtype() };
        let scale = if last { scale } else { 1.0 };
        now = if inner == 1 {
            rows(&target, &now, outer, length, scale)?
        } else {
            columns(&target, &now, true, [outer, length, inner], scale)?
        };
        if last {
            return Ok(now);
        }
    }
}

/// What a staged sum makes.
struct Target {
    op: &'static str,
    shape: Shape,
    dtype: DType,
}

/// `[outer, length] → [outer]`, in as many stages as the length needs.
fn rows(target: &Target, x: &Tensor, outer: usize, length: usize, scale: f32) -> Result<Tensor> {
    stages(
        target,
        x,
        true,
        length,
        |_| sum_rows::CHUNK,
        |length, chunks, last| {
            let params = sum_rows::Params {
                rows: (outer * chunks) as u32,
                cols: length as u32,
                chunks: chunks as u32,
                chunk: sum_rows::CHUNK as u32,
                scale: if last { scale } else { 1.0 },
            };
            (&sum_rows::KERNEL, outer * chunks, params)
        },
    )
}

/// `[outer, length, inner] → [outer, inner]`, in as many stages as the length needs.
fn columns(target: &Target, x: &Tensor, fresh: bool, dims: [usize; 3], scale: f32) -> Result<Tensor> {
    let [outer, length, inner] = dims;
    stages(target, x, fresh, length, sum_columns::per_group, |length, groups, last| {
        let params = sum_columns::Params {
            outer: outer as u32,
            length: length as u32,
            inner: inner as u32,
            groups: groups as u32,
            per_group: sum_columns::per_group(length) as u32,
            scale: if last { scale } else { 1.0 },
        };
        (&sum_columns::KERNEL, outer * groups * inner, params)
    })
}

/// Adds up groups until one is left. Between stages the sums are f32; `fresh` says that `x` is a tensor, not such sums.
fn stages<P: bytemuck::Pod>(
    target: &Target,
    x: &Tensor,
    fresh: bool,
    mut length: usize,
    per_group: impl Fn(usize) -> usize,
    stage: impl Fn(usize, usize, bool) -> (&'static Kernel, usize, P),
) -> Result<Tensor> {
    let engine = x.engine();
    let (mut now, mut fresh) = (x.clone(), fresh);
    loop {
        let groups = length.div_ceil(per_group(length));
        let last = groups == 1;
        let (kernel, partials, params) = stage(length, groups, last);
        let out = if last {
            engine.empty(target.op, target.shape, target.dtype)?
        } else {
            engine.empty(target.op, Shape::from_checked(&[partials]), DType::F32)?
        };
        let tensors =
            [fresh.then_some(&now), (!fresh).then_some(&now), last.then_some(&out), (!last).then_some(&out)];
        engine.run(kernel, sum_rows::flags(kernel, fresh, last), target.dtype, &params, &tensors)?;
        if last {
            return Ok(out);
        }
        (now, length, fresh) = (out, groups, false);
    }
}

/// Adds up the partial sums `[groups, columns]` of a first stage into a tensor of `shape` and the type of `like`.
pub(crate) fn finish_columns(
    op: &'static str,
    partials: &Tensor,
    groups: usize,
    shape: Shape,
    like: &Tensor,
) -> Result<Tensor> {
    let target = Target { op, shape, dtype: like.dtype() };
    columns(&target, partials, false, [1, groups, shape.elements()], 1.0)
}

fn sum_scaled(
    op: &'static str,
    x: &Tensor,
    dims: Option<&[isize]>,
    keepdim: bool,
    mean: bool,
) -> Result<Tensor> {
    float_type(op, x)?;
    let from = *x.shape();
    let dims = dimensions(op, &from, dims)?;
    let length: usize = dims.iter().map(|&d| from[d]).product();
    let scale = if mean { (1.0 / length as f64) as f32 } else { 1.0 };
    let kept = reduced(&from, &dims, true);
    let out = reduce(op, x, &dims, scale)?;
    let layout =
        out.layout().reshape(&reduced(&from, &dims, keepdim)).expect("sizes of 1 come and go freely");
    Ok(out.view(layout).recorded(op, &[Some(x)], &[], move |g| {
        let dy = g.dy().layout().reshape(&kept).map(|l| g.dy().view(l));
        let dy = match dy {
            Some(view) => view,
            None => dense(op, g.dy())?.reshape(&kept.iter().map(|&d| d as isize).collect::<Vec<_>>())?,
        };
        let dy = if mean { dy.mul(&scalar(op, &dy, f64::from(scale))?)? } else { dy };
        Ok(vec![Some(dy.expand_to(op, &from)?)])
    }))
}

impl Tensor {
    /// The sum over `dims` (all when `None`); with `keepdim` they stay at size 1. Sums are f32 and ordered: long ones
    /// are taken in stages, so that 20,000,000 ones are 20,000,000.
    ///
    /// # Errors
    /// `IndexError` when there is no such dimension; `DTypeError` for integers.
    pub fn sum(&self, dims: Option<&[isize]>, keepdim: bool) -> Result<Self> {
        sum_scaled("sum", self, dims, keepdim, false)
    }

    /// The mean over `dims`, as [`Tensor::sum`]; NaN over no element.
    ///
    /// # Errors
    /// As [`Tensor::sum`].
    pub fn mean(&self, dims: Option<&[isize]>, keepdim: bool) -> Result<Self> {
        sum_scaled("mean", self, dims, keepdim, true)
    }
}

//! Views and copies: the same elements under another shape or order.

use crate::error::{Error, Result};
use crate::kernels::copy;
use crate::layout::Layout;
use crate::ops::create::full;
use crate::ops::reduce::sum_to;
use crate::shape::{List, Shape};
use crate::tensor::Tensor;

/// Writes the elements of `source` to the places of `target` in `out`'s storage.
fn copy_into(source: &Tensor, out: &Tensor, target: &Layout) -> Result<()> {
    if source.shape().elements() == 0 {
        return Ok(());
    }
    let params = copy::Params::new(source.layout(), target);
    source.engine().run(
        &copy::KERNEL,
        copy::KERNEL.set(&["walk"]),
        source.dtype(),
        &params,
        &[Some(source), Some(out)],
    )
}

/// A row-major tensor with these elements: the tensor itself if it is one, else a copy.
pub(crate) fn contiguous(op: &'static str, x: &Tensor) -> Result<Tensor> {
    if x.layout().is_contiguous() {
        return Ok(x.clone());
    }
    copied(op, x)
}

/// A row-major copy.
pub(crate) fn copied(op: &'static str, x: &Tensor) -> Result<Tensor> {
    let out = x.engine().empty(op, *x.shape(), x.dtype())?;
    copy_into(x, &out, out.layout())?;
    Ok(out.recorded("contiguous", &[Some(x)], &[], |g| Ok(vec![Some(g.dy().clone())])))
}

/// As [`contiguous`], and from the start of its storage: what kernels without an offset take.
pub(crate) fn dense(op: &'static str, x: &Tensor) -> Result<Tensor> {
    if x.layout().offset() == 0 { contiguous(op, x) } else { copied(op, x) }
}

impl Tensor {
    /// A row-major tensor with the same elements: itself if it is one already, else a copy.
    ///
    /// # Errors
    /// `LimitError` when memory is short.
    pub fn contiguous(&self) -> Result<Self> {
        contiguous("contiguous", self)
    }

    /// The same elements in order under another shape; one size may be -1 and follows from the others. A view where
    /// strides allow it, else a copy.
    ///
    /// # Errors
    /// `ShapeError` when the sizes do not multiply to as many elements.
    pub fn reshape(&self, dims: &[isize]) -> Result<Self> {
        let shape = inferred(self.shape(), dims)?;
        let (from, source) = match self.layout().reshape(&shape) {
            Some(_) => (*self.shape(), self.clone()),
            None => (*self.shape(), contiguous("reshape", self)?),
        };
        let layout = source.layout().reshape(&shape).expect("a contiguous layout takes every shape");
        Ok(source.view(layout).recorded("reshape", &[Some(&source)], &[], move |g| {
            let back: Vec<isize> = from.iter().map(|&d| d as isize).collect();
            Ok(vec![Some(g.dy().reshape(&back)?)])
        }))
    }

    /// Dimensions `dim0` and `dim1` exchanged, as a view.
    ///
    /// # Errors
    /// `IndexError` when there is no such dimension.
    pub fn transpose(&self, dim0: isize, dim1: isize) -> Result<Self> {
        let (a, b) = (self.shape().dim("transpose", dim0)?, self.shape().dim("transpose", dim1)?);
        let view = self.view(self.layout().transpose(a, b));
        Ok(view.recorded("transpose", &[Some(self)], &[], move |g| {
            Ok(vec![Some(g.dy().view(g.dy().layout().transpose(a, b)))])
        }))
    }

    /// Dimension `k` of the result is dimension `dims[k]` of this tensor, as a view.
    ///
    /// # Errors
    /// `ShapeError` unless `dims` names every dimension once; `IndexError` when there is no such dimension.
    pub fn permute(&self, dims: &[isize]) -> Result<Self> {
        let order = dims.iter().map(|&d| self.shape().dim("permute", d)).collect::<Result<Vec<_>>>()?;
        let rank = self.shape().rank();
        if order.len() != rank || (0..rank).any(|d| !order.contains(&d)) {
            return Err(Error::shape(
                "permute",
                format!("{} must name each of the {rank} dimensions of {} once", List(dims), self.shape()),
            ));
        }
        let mut inverse = vec![0; rank];
        for (k, &d) in order.iter().enumerate() {
            inverse[d] = k;
        }
        let view = self.view(self.layout().permute(&order));
        Ok(view.recorded("permute", &[Some(self)], &[], move |g| {
            Ok(vec![Some(g.dy().view(g.dy().layout().permute(&inverse)))])
        }))
    }

    /// Broadcast to `dims` without a copy: new dimensions in front, size 1 repeated; -1 keeps a size.
    ///
    /// # Errors
    /// `ShapeError` when a size differs and is not 1.
    pub fn expand(&self, dims: &[isize]) -> Result<Self> {
        let lead = dims.len().checked_sub(self.shape().rank());
        let mut sizes = Vec::with_capacity(dims.len());
        for (k, &d) in dims.iter().enumerate() {
            let kept = lead.and_then(|lead| k.checked_sub(lead)).map(|i| self.shape()[i]);
            sizes.push(match (usize::try_from(d), kept) {
                (Ok(d), _) => d,
                (Err(_), Some(kept)) if d == -1 => kept,
                _ => {
                    return Err(Error::shape(
                        "expand",
                        format!(
                            "size {d} of {}; sizes are 0 or more, or -1 to keep one of {}",
                            List(dims),
                            self.shape()
                        ),
                    ));
                }
            });
        }
        self.expand_to("expand", &Shape::new("expand", &sizes)?)
    }

    pub(crate) fn expand_to(&self, op: &'static str, shape: &Shape) -> Result<Self> {
        if self.shape() == shape {
            return Ok(self.clone());
        }
        let from = *self.shape();
        let view = self.view(self.layout().expand(op, shape)?);
        Ok(view.recorded("expand", &[Some(self)], &[], move |g| Ok(vec![Some(sum_to(g.dy(), &from)?)])))
    }

    /// Elements `start`, `start + step`, … below `end` along `dim`, as a view. `start` and `end` count from the end
    /// when negative and are clamped to the size, as in Python.
    ///
    /// # Errors
    /// `IndexError` when there is no such dimension; `ArgumentError` for a step below 1.
    pub fn slice(&self, dim: isize, start: isize, end: isize, step: isize) -> Result<Self> {
        if self.shape().rank() == 0 {
            return Err(Error::index("slice", "a scalar has no dimension to slice"));
        }
        let dim = self.shape().dim("slice", dim)?;
        if step < 1 {
            return Err(Error::argument("slice", format!("step {step}; it must be 1 or more")));
        }
        let size = self.shape()[dim] as isize;
        let clamp = |v: isize| if v < 0 { v + size } else { v }.clamp(0, size);
        let (start, end) = (clamp(start), clamp(end));
        let count = ((end - start).max(0) as usize).div_ceil(step as usize);
        Ok(self.sliced("slice", dim, start as usize, count, step))
    }

    /// `length` elements of `dim` from `start`, as a view; `start` counts from the end when negative.
    ///
    /// # Errors
    /// `IndexError` when the range leaves the dimension.
    pub fn narrow(&self, dim: isize, start: isize, length: usize) -> Result<Self> {
        if self.shape().rank() == 0 {
            return Err(Error::index("narrow", "a scalar has no dimension to narrow"));
        }
        let dim = self.shape().dim("narrow", dim)?;
        let size = self.shape()[dim];
        let first = if start < 0 { start + size as isize } else { start };
        let Some(first) =
            usize::try_from(first).ok().filter(|f| f.checked_add(length).is_some_and(|e| e <= size))
        else {
            return Err(Error::index(
                "narrow",
                format!("start {start} and length {length} leave dimension {dim}, which has size {size}"),
            ));
        };
        Ok(self.sliced("narrow", dim, first, length, 1))
    }

    fn sliced(&self, op: &'static str, dim: usize, start: usize, count: usize, step: isize) -> Self {
        let from = *self.shape();
        let view = self.view(self.layout().slice(dim, start, count, step));
        view.recorded(op, &[Some(self)], &[], move |g| {
            let zeros = full(g.dy().engine(), op, from, 0.0, g.dy().dtype())?;
            copy_into(g.dy(), &zeros, &zeros.layout().slice(dim, start, count, step))?;
            Ok(vec![Some(zeros)])
        })
    }

    /// A dimension of size 1 inserted before `dim`.
    ///
    /// # Errors
    /// `IndexError` when there is no such place.
    pub fn unsqueeze(&self, dim: isize) -> Result<Self> {
        let at = Shape::dim_of_rank("unsqueeze", dim, self.shape().rank() + 1)?;
        let mut dims: Vec<isize> = self.shape().iter().map(|&d| d as isize).collect();
        dims.insert(at, 1);
        self.reshape(&dims)
    }

    /// The dimension `dim` removed if its size is 1; all of size 1 when `dim` is `None`.
    ///
    /// # Errors
    /// `IndexError` when there is no such dimension.
    pub fn squeeze(&self, dim: Option<isize>) -> Result<Self> {
        let only = dim.map(|d| self.shape().dim("squeeze", d)).transpose()?;
        let kept = self.shape().iter().enumerate().filter(|&(k, &d)| d != 1 || only.is_some_and(|o| o != k));
        let dims: Vec<isize> = kept.map(|(_, &d)| d as isize).collect();
        self.reshape(&dims)
    }

    /// The dimensions `start` to `end`, both included, as one.
    ///
    /// # Errors
    /// `IndexError` when there is no such dimension; `ShapeError` when `start` comes after `end`.
    pub fn flatten(&self, start: isize, end: isize) -> Result<Self> {
        if self.shape().rank() == 0 {
            return self.reshape(&[1]);
        }
        let (first, last) = (self.shape().dim("flatten", start)?, self.shape().dim("flatten", end)?);
        if first > last {
            return Err(Error::shape(
                "flatten",
                format!("start {start} comes after end {end} in {}", self.shape()),
            ));
        }
        let sizes = |s: &[usize]| s.iter().map(|&d| d as isize).collect::<Vec<_>>();
        let mut dims = sizes(&self.shape()[..first]);
        dims.push(self.shape()[first..=last].iter().product::<usize>() as isize);
        dims.extend(sizes(&self.shape()[last + 1..]));
        self.reshape(&dims)
    }
}

/// The shape that `dims` asks for, with a -1 worked out.
fn inferred(from: &Shape, dims: &[isize]) -> Result<Shape> {
    let unfit = |why: &str| {
        Error::shape(
            "reshape",
            format!("{from} of {} elements cannot become {}: {why}", from.elements(), List(dims)),
        )
    };
    let mut sizes = Vec::with_capacity(dims.len());
    let mut open = None;
    for (k, &d) in dims.iter().enumerate() {
        match d {
            -1 if open.is_some() => return Err(unfit("only one size may be -1")),
            -1 => {
                open = Some(k);
                sizes.push(1);
            }
            d => sizes.push(usize::try_from(d).map_err(|_| unfit("a size is 0 or more, or -1"))?),
        }
    }
    let known = Shape::new("reshape", &sizes)?.elements();
    if let Some(k) = open {
        if known == 0 || !from.elements().is_multiple_of(known) {
            return Err(unfit("no whole number fits -1"));
        }
        sizes[k] = from.elements() / known;
    } else if known != from.elements() {
        return Err(unfit(&format!("that has {known} elements")));
    }
    Shape::new("reshape", &sizes)
}

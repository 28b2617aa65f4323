//! Shapes: up to eight dimensions, held by value so that making a view allocates nothing.

use std::fmt;
use std::ops::Deref;

use crate::error::{Error, Result};

/// The most dimensions a tensor can have.
pub const MAX_RANK: usize = 8;

/// The most elements a tensor can have: kernels count in 32 bits.
pub const MAX_ELEMENTS: usize = u32::MAX as usize;

/// The sizes of a tensor's dimensions, outermost first.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [usize; MAX_RANK],
    rank: usize,
}

impl Shape {
    /// A shape, checked: at most [`MAX_RANK`] dimensions and [`MAX_ELEMENTS`] elements.
    ///
    /// # Errors
    /// `LimitError` when there are more.
    pub fn new(op: &'static str, dims: &[usize]) -> Result<Self> {
        if dims.len() > MAX_RANK {
            return Err(Error::limit(
                op,
                format!("{} has {} dimensions; a tensor has at most {MAX_RANK}", List(dims), dims.len()),
            ));
        }
        let mut elements = 1usize;
        for &d in dims.iter().filter(|&&d| d != 0) {
            elements = elements.checked_mul(d).filter(|&n| u32::try_from(n).is_ok()).ok_or_else(|| {
                Error::limit(
                    op,
                    format!("{} has more than {MAX_ELEMENTS} elements, the most a tensor holds", List(dims)),
                )
            })?;
        }
        Ok(Self::from_checked(dims))
    }

    /// A shape whose bounds are known to hold, since it comes from shapes that were checked.
    pub(crate) fn from_checked(dims: &[usize]) -> Self {
        let mut all = [1; MAX_RANK];
        all[..dims.len()].copy_from_slice(dims);
        Self { dims: all, rank: dims.len() }
    }

    /// The number of elements; 1 for a scalar.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.iter().product()
    }

    /// The number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The position of `dim`, which counts from the end when negative.
    ///
    /// # Errors
    /// `IndexError` when the shape has no such dimension.
    pub fn dim(&self, op: &'static str, dim: isize) -> Result<usize> {
        Self::dim_of_rank(op, dim, self.rank)
    }

    /// As [`Shape::dim`], for a given rank. A scalar has the dimensions 0 and -1, as in PyTorch.
    pub(crate) fn dim_of_rank(op: &'static str, dim: isize, rank: usize) -> Result<usize> {
        let span = rank.max(1) as isize;
        if dim < -span || dim >= span {
            return Err(Error::index(
                op,
                format!(
                    "dim {dim} is out of range for a tensor of {rank} dimensions; it may be {} to {}",
                    -span,
                    span - 1
                ),
            ));
        }
        Ok(if dim < 0 { dim + span } else { dim } as usize)
    }

    /// The shape both broadcast to, aligned at the last dimension; `None` when they do not fit.
    #[must_use]
    pub fn broadcast(&self, other: &Self) -> Option<Self> {
        let rank = self.rank.max(other.rank);
        let mut dims = [1; MAX_RANK];
        for (k, out) in dims[..rank].iter_mut().enumerate() {
            let pick = |s: &Self| (k + s.rank).checked_sub(rank).map_or(1, |i| s.dims[i]);
            *out = match (pick(self), pick(other)) {
                (a, b) if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                _ => return None,
            };
        }
        Some(Self { dims, rank })
    }

    /// This shape with `dim` replaced.
    #[must_use]
    pub(crate) fn with(&self, dim: usize, size: usize) -> Self {
        let mut s = *self;
        s.dims[dim] = size;
        s
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.dims[..self.rank]
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&List(self), f)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&List(self), f)
    }
}

/// Sizes or dimensions as `[2, 3]`. `Debug` writes the same, with code for indentation and padding behind it.
pub(crate) struct List<'a, T>(pub &'a [T]);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (k, value) in self.0.iter().enumerate() {
            f.write_str(if k == 0 { "" } else { ", " })?;
            value.fmt(f)?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[usize]) -> Shape {
        Shape::new("test", dims).unwrap()
    }

    #[test]
    fn broadcasting_aligns_at_the_last_dimension() {
        assert_eq!(shape(&[3, 1]).broadcast(&shape(&[4])), Some(shape(&[3, 4])));
        assert_eq!(shape(&[]).broadcast(&shape(&[2, 0])), Some(shape(&[2, 0])));
        assert_eq!(shape(&[2, 3]).broadcast(&shape(&[2, 4])), None);
        assert_eq!(shape(&[0]).broadcast(&shape(&[3])), None);
    }

    #[test]
    fn limits_are_errors() {
        assert_eq!(Shape::new("t", &[1; 9]).unwrap_err().kind().code(), "LimitError");
        assert_eq!(Shape::new("t", &[65536, 65536]).unwrap_err().kind().code(), "LimitError");
        assert_eq!(Shape::new("t", &[usize::MAX, 2]).unwrap_err().kind().code(), "LimitError");
        assert_eq!(Shape::new("t", &[usize::MAX, 0, 2]).unwrap_err().kind().code(), "LimitError");
        assert_eq!(shape(&[]).elements(), 1);
    }

    #[test]
    fn dimensions_count_from_both_ends() {
        let s = shape(&[2, 3]);
        assert_eq!(s.dim("t", -1).unwrap(), 1);
        assert_eq!(s.dim("t", 0).unwrap(), 0);
        assert_eq!(s.dim("t", 2).unwrap_err().kind().code(), "IndexError");
        assert_eq!(shape(&[]).dim("t", -1).unwrap(), 0);
    }
}

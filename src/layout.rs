//! Layouts: how a tensor's elements lie in its storage. Views change the layout and share the storage.

use crate::error::{Error, Result};
use crate::shape::{MAX_RANK, Shape};

/// Shape, strides (in elements, possibly zero or negative) and the position of the first element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    shape: Shape,
    strides: [isize; MAX_RANK],
    offset: usize,
}

impl Layout {
    /// Row-major from the start of a storage.
    #[must_use]
    pub fn contiguous(shape: Shape) -> Self {
        let mut strides = [0; MAX_RANK];
        let mut step = 1;
        for k in (0..shape.rank()).rev() {
            strides[k] = step;
            step *= shape[k].max(1) as isize;
        }
        Self { shape, strides, offset: 0 }
    }

    /// The sizes of the dimensions.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The distance between neighbours along each dimension, in elements.
    #[must_use]
    pub fn strides(&self) -> &[isize] {
        &self.strides[..self.shape.rank()]
    }

    /// The position of the first element in the storage.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Whether the elements lie in row-major order without gaps (dimensions of size 1 do not count).
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        if self.shape.elements() == 0 {
            return true;
        }
        let mut step = 1;
        for k in (0..self.shape.rank()).rev() {
            if self.shape[k] != 1 {
                if self.strides[k] != step {
                    return false;
                }
                step *= self.shape[k] as isize;
            }
        }
        true
    }

    /// Dimensions `a` and `b` exchanged.
    #[must_use]
    pub fn transpose(&self, a: usize, b: usize) -> Self {
        let mut order: Vec<usize> = (0..self.shape.rank()).collect();
        if a != b {
            order.swap(a, b);
        }
        self.permute(&order)
    }

    /// Dimension `k` of the result is dimension `order[k]` of this layout.
    #[must_use]
    pub fn permute(&self, order: &[usize]) -> Self {
        let dims: Vec<usize> = order.iter().map(|&d| self.shape[d]).collect();
        let mut strides = [0; MAX_RANK];
        for (k, &d) in order.iter().enumerate() {
            strides[k] = self.strides[d];
        }
        Self { shape: Shape::from_checked(&dims), strides, offset: self.offset }
    }

    /// Broadcast to `shape`: new dimensions in front, size 1 repeated by a zero stride.
    ///
    /// # Errors
    /// `ShapeError` when a size differs and is not 1.
    pub fn expand(&self, op: &'static str, shape: &Shape) -> Result<Self> {
        if self.shape == *shape {
            return Ok(*self);
        }
        let lead = shape.rank().checked_sub(self.shape.rank());
        let fits = lead.is_some_and(|lead| {
            self.shape.iter().zip(&shape[lead..]).all(|(&have, &want)| have == want || have == 1)
        });
        let Some(lead) = lead.filter(|_| fits) else {
            return Err(Error::shape(
                op,
                format!(
                    "{} cannot be expanded to {shape}; each size must be equal or 1, aligned at the last dimension",
                    self.shape
                ),
            ));
        };
        let mut strides = [0; MAX_RANK];
        for k in 0..self.shape.rank() {
            strides[lead + k] = if self.shape[k] == shape[lead + k] { self.strides[k] } else { 0 };
        }
        Ok(Self { shape: *shape, strides, offset: self.offset })
    }

    /// Every `step`-th element of `dim` from `start`, `size` of them. The range must lie inside.
    #[must_use]
    pub(crate) fn slice(&self, dim: usize, start: usize, size: usize, step: isize) -> Self {
        let mut out = *self;
        out.shape = self.shape.with(dim, size);
        if out.shape.elements() != 0 {
            out.offset = (self.offset as isize + start as isize * self.strides[dim]) as usize;
        }
        // Of one element or none the step says nothing, and may be as large as it likes.
        if size > 1 {
            out.strides[dim] *= step;
        }
        out
    }

    /// The same elements in order under another shape of as many elements, if strides can express it.
    #[must_use]
    pub fn reshape(&self, shape: &Shape) -> Option<Self> {
        if self.is_contiguous() {
            return Some(Self { offset: self.offset, ..Self::contiguous(*shape) });
        }
        // Walk both shapes from the end, matching runs of dimensions with equal products.
        let merged = merge(&self.shape, [&self.strides]);
        let mut strides = [0; MAX_RANK];
        let (mut k, mut have, mut step) = (merged.rank(), 1, 0);
        for d in (0..shape.rank()).rev() {
            if shape[d] == 1 {
                continue;
            }
            if have == 1 {
                k = k.checked_sub(1)?;
                (have, step) = (merged.sizes()[k], merged.strides(0)[k]);
            }
            if have % shape[d] != 0 {
                return None;
            }
            strides[d] = step;
            step *= shape[d] as isize;
            have /= shape[d];
        }
        Some(Self { shape: *shape, strides, offset: self.offset })
    }
}

/// Several operands walked together, with neighbouring dimensions merged wherever all strides allow it. Held by value, as shapes
/// are: every call of an elementwise kernel makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Merged<const OPERANDS: usize> {
    sizes: [usize; MAX_RANK],
    strides: [[isize; MAX_RANK]; OPERANDS],
    rank: usize,
}

impl<const OPERANDS: usize> Merged<OPERANDS> {
    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn sizes(&self) -> &[usize] {
        &self.sizes[..self.rank]
    }

    /// An operand's stride along each merged dimension.
    pub fn strides(&self, operand: usize) -> &[isize] {
        &self.strides[operand][..self.rank]
    }
}

/// Drops dimensions of size 1 and merges neighbours that every operand walks as one.
pub(crate) fn merge<const OPERANDS: usize>(
    shape: &Shape,
    operands: [&[isize]; OPERANDS],
) -> Merged<OPERANDS> {
    let mut merged = Merged { sizes: [1; MAX_RANK], strides: [[0; MAX_RANK]; OPERANDS], rank: 0 };
    let Merged { sizes, strides, rank } = &mut merged;
    for (k, &size) in shape.iter().enumerate().filter(|&(_, &size)| size != 1) {
        let joins =
            *rank > 0 && operands.iter().zip(&*strides).all(|(o, s)| s[*rank - 1] == o[k] * size as isize);
        if joins {
            sizes[*rank - 1] *= size;
        } else {
            sizes[*rank] = size;
            *rank += 1;
        }
        for (o, s) in operands.iter().zip(strides.iter_mut()) {
            s[*rank - 1] = o[k];
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(dims: &[usize]) -> Layout {
        Layout::contiguous(Shape::new("test", dims).unwrap())
    }
    fn shape(dims: &[usize]) -> Shape {
        Shape::new("test", dims).unwrap()
    }

    #[test]
    fn a_transpose_is_not_contiguous_until_it_is_undone() {
        let t = layout(&[3, 4]).transpose(0, 1);
        assert_eq!(t.strides(), [1, 4]);
        assert!(!t.is_contiguous());
        assert!(t.transpose(0, 1).is_contiguous());
        assert!(layout(&[3, 1]).transpose(0, 1).is_contiguous());
    }

    #[test]
    fn reshape_is_a_view_only_where_strides_can_express_it() {
        assert!(layout(&[2, 6]).reshape(&shape(&[3, 4])).is_some());
        let t = layout(&[3, 4]).transpose(0, 1);
        assert!(t.reshape(&shape(&[12])).is_none());
        assert_eq!(t.reshape(&shape(&[2, 2, 3])).unwrap().strides(), [2, 1, 4]);
        let rows = layout(&[4, 6]).slice(1, 2, 3, 1);
        assert_eq!(rows.reshape(&shape(&[2, 2, 3])).unwrap().strides(), [12, 6, 1]);
        assert!(rows.reshape(&shape(&[12])).is_none());
    }

    #[test]
    fn merging_keeps_broadcast_dimensions_apart() {
        let a = layout(&[2, 3, 4]);
        let b = layout(&[4]).expand("t", a.shape()).unwrap();
        let m = merge(a.shape(), [a.strides(), b.strides()]);
        assert_eq!(m.sizes(), [6, 4]);
        assert_eq!((m.strides(0), m.strides(1)), (&[4, 1][..], &[0, 1][..]));
        assert_eq!(merge(a.shape(), [a.strides()]).sizes(), [24]);
    }

    #[test]
    fn expand_repeats_only_size_one() {
        assert_eq!(layout(&[3, 1]).expand("t", &shape(&[2, 3, 5])).unwrap().strides(), [0, 1, 0]);
        assert!(layout(&[3]).expand("t", &shape(&[4])).is_err());
        assert!(layout(&[2, 3]).expand("t", &shape(&[3])).is_err());
    }
}

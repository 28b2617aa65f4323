//! Operations: guard, forward and gradient side by side, one file a family. They know no device.

pub(crate) mod binary;
pub(crate) mod create;
pub(crate) mod gated;
pub(crate) mod layer_norm;
pub(crate) mod loss;
pub(crate) mod matmul;
pub(crate) mod reduce;
pub(crate) mod shape;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Both operands must live on one engine and hold one floating-point type, which is returned.
fn one_float_type(op: &'static str, a: &Tensor, b: &Tensor) -> Result<DType> {
    a.same_engine(op, b)?;
    float_type(op, a)?;
    if a.dtype() != b.dtype() {
        return Err(Error::dtype(
            op,
            format!("the operands are {} and {}; both must have the same type", a.dtype(), b.dtype()),
        ));
    }
    Ok(a.dtype())
}

/// The operand must hold floating-point numbers.
fn float_type(op: &'static str, a: &Tensor) -> Result<DType> {
    if a.dtype().is_float() {
        Ok(a.dtype())
    } else {
        Err(Error::dtype(op, format!("takes f32 or f16, not {}", a.dtype())))
    }
}

/// The common shape of two operands under broadcasting.
fn broadcast(op: &'static str, a: &Tensor, b: &Tensor) -> Result<Shape> {
    if a.shape() == b.shape() {
        return Ok(*a.shape());
    }
    let shape = a.shape().broadcast(b.shape()).ok_or_else(|| {
        Error::shape(
            op,
            format!(
                "shapes {} and {} do not broadcast; sizes must be equal or 1, aligned at the last dimension",
                a.shape(),
                b.shape()
            ),
        )
    })?;
    // Two views can be small and their broadcast too large for any tensor.
    Shape::new(op, &shape)
}

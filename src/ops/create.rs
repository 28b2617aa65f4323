//! Tensors out of nothing.

use crate::dtype::DType;
use crate::engine::Engine;
use crate::error::{Error, Result, number};
use crate::kernels::fill;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// The bits of `value` as an element of `dtype`.
fn bits(op: &'static str, value: f64, dtype: DType) -> Result<u32> {
    let whole = |low: f64, high: f64| {
        if value.fract() == 0.0 && (low..=high).contains(&value) {
            return Ok(value);
        }
        let range = format!("a whole number from {} to {}", low as i64, high as i64);
        Err(Error::argument(op, format!("{} is no {dtype}; it must be {range}", number(value))))
    };
    Ok(match dtype {
        DType::F32 | DType::F16 => (value as f32).to_bits(),
        DType::I32 => whole(f64::from(i32::MIN), f64::from(i32::MAX))? as i32 as u32,
        DType::U32 => whole(0.0, f64::from(u32::MAX))? as u32,
        DType::Bool => u32::from(value != 0.0),
    })
}

/// A tensor filled with one value.
pub(crate) fn full(
    engine: &Engine,
    op: &'static str,
    shape: Shape,
    value: f64,
    dtype: DType,
) -> Result<Tensor> {
    let bits = bits(op, value, dtype)?;
    let out = engine.empty(op, shape, dtype)?;
    if shape.elements() > 0 {
        let params = fill::Params { count: shape.elements() as u32, bits };
        engine.run(&fill::KERNEL, fill::KERNEL.set(&[]), dtype, &params, &[Some(&out)])?;
    }
    Ok(out)
}

/// A number as an operand beside `like`: a shared scalar of its type, to be read only.
pub(crate) fn scalar(op: &'static str, like: &Tensor, value: f64) -> Result<Tensor> {
    like.engine().scalar(op, bits(op, value, like.dtype())?, like.dtype())
}

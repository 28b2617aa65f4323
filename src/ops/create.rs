//! Tensors out of nothing.

use crate::dtype::DType;
use crate::engine::Engine;
use crate::error::Result;
use crate::kernels::fill;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// A tensor filled with one value.
pub(crate) fn full(
    engine: &Engine,
    op: &'static str,
    shape: Shape,
    value: f32,
    dtype: DType,
) -> Result<Tensor> {
    if !dtype.is_float() {
        let n = shape.elements();
        let data = match dtype {
            DType::I32 => crate::HostData::I32(vec![value as i32; n]),
            DType::Bool => crate::HostData::U32(vec![u32::from(value != 0.0); n]),
            _ => crate::HostData::U32(vec![value as u32; n]),
        };
        return engine.upload(op, data, &shape, dtype);
    }
    let out = engine.empty(op, shape, dtype)?;
    if shape.elements() > 0 {
        let params = fill::Params { count: shape.elements() as u32, bits: value.to_bits() };
        engine.run(&fill::KERNEL, fill::KERNEL.set(&[]), dtype, &params, &[Some(&out)])?;
    }
    Ok(out)
}

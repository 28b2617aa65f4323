//! Making, reading and differentiating tensors.

use js_sys::{Float32Array, Int32Array, Object, Promise, Uint8Array, Uint32Array};
use wasm_bindgen::prelude::wasm_bindgen;

use super::{TENSORS, Thrown, engine, keep, optional, promise, sizes, tensor, thrown};
use crate::backend::try_collect;
use crate::error::{Error, Result};
use crate::{DType, HostData, Tensor};

/// Element types by number: what crosses the boundary is no string.
const TYPES: [DType; 5] = [DType::F32, DType::F16, DType::I32, DType::U32, DType::Bool];

fn dtype(number: u8) -> Result<DType> {
    TYPES.get(usize::from(number)).copied().ok_or_else(|| Error::dtype("tensor", "no such type"))
}

/// The contents of a typed array, or an error where there is no memory for them.
fn copied<T: Copy + Default>(length: u32, copy: impl FnOnce(&mut [T])) -> Result<Vec<T>> {
    let length = length as usize;
    let mut values = try_collect("tensor", length, std::iter::repeat_n(T::default(), length))?;
    copy(&mut values);
    Ok(values)
}

/// A tensor of a typed array's elements: straight to a GPU where that can be, otherwise by way of the module's memory.
fn made(
    handle: u32,
    array: &Object,
    length: u32,
    shape: &[u32],
    kind: u8,
    copy: impl Fn() -> Result<HostData>,
) -> Result<u32> {
    let (engine, shape, dtype) = (engine(handle)?, sizes(shape), dtype(kind)?);
    let sent = engine.upload_array(array, length as usize, &shape, dtype, &copy)?;
    sent.map_or_else(|| engine.tensor_from(copy()?, &shape, dtype), Ok).map(keep)
}

/// A tensor of `f32` or `f16`.
#[wasm_bindgen(js_name = fromF32)]
pub fn from_f32(engine: u32, data: &Float32Array, shape: &[u32], kind: u8) -> Thrown<u32> {
    let copy = || copied(data.length(), |to| data.copy_to(to)).map(HostData::F32);
    thrown(made(engine, data, data.length(), shape, kind, copy))
}

/// A tensor of `i32`.
#[wasm_bindgen(js_name = fromI32)]
pub fn from_i32(engine: u32, data: &Int32Array, shape: &[u32]) -> Thrown<u32> {
    let copy = || copied(data.length(), |to| data.copy_to(to)).map(HostData::I32);
    thrown(made(engine, data, data.length(), shape, 2, copy))
}

/// A tensor of `u32` or `bool`.
#[wasm_bindgen(js_name = fromU32)]
pub fn from_u32(engine: u32, data: &Uint32Array, shape: &[u32], kind: u8) -> Thrown<u32> {
    let copy = || copied(data.length(), |to| data.copy_to(to)).map(HostData::U32);
    thrown(made(engine, data, data.length(), shape, kind, copy))
}

/// A tensor filled with one value; `caller` is 0 for full, 1 for zeros, 2 for ones.
#[wasm_bindgen(js_name = full)]
pub fn full(handle: u32, shape: &[u32], value: f64, kind: u8, caller: u8) -> Thrown<u32> {
    let op = ["full", "zeros", "ones"][usize::from(caller.min(2))];
    thrown((|| engine(handle)?.filled(op, &sizes(shape), value, dtype(kind)?).map(keep))())
}

/// Uniform random numbers.
#[wasm_bindgen(js_name = uniform)]
pub fn uniform(handle: u32, shape: &[u32], low: f32, high: f32, kind: u8) -> Thrown<u32> {
    thrown((|| engine(handle)?.uniform(&sizes(shape), low, high, dtype(kind)?).map(keep))())
}

/// Normal random numbers.
#[wasm_bindgen(js_name = randn)]
pub fn randn(handle: u32, shape: &[u32], kind: u8) -> Thrown<u32> {
    thrown((|| engine(handle)?.randn(&sizes(shape), dtype(kind)?).map(keep))())
}

/// Frees a handle.
#[wasm_bindgen(js_name = free)]
pub fn free(handle: u32) {
    // Dropped outside the borrow: what the tensor held may be other tensors.
    let tensor = TENSORS.with_borrow_mut(|t| t.take(handle));
    drop(tensor);
}

/// The sizes of the dimensions.
#[wasm_bindgen(js_name = shape)]
pub fn shape(handle: u32) -> Thrown<Vec<u32>> {
    thrown(tensor(handle)).map(|t| t.shape().iter().map(|&d| d as u32).collect())
}

/// The number of the element type.
#[wasm_bindgen(js_name = dtype)]
pub fn dtype_of(handle: u32) -> Thrown<u8> {
    let tensor = thrown(tensor(handle))?;
    Ok(TYPES.iter().position(|&t| t == tensor.dtype()).unwrap_or(0) as u8)
}

/// Whether gradients flow to or through the tensor.
#[wasm_bindgen(js_name = requiresGrad)]
pub fn requires_grad(handle: u32) -> Thrown<bool> {
    thrown(tensor(handle)).map(|t| t.requires_grad())
}

/// Makes the tensor of a handle a leaf, or no leaf.
#[wasm_bindgen(js_name = setRequiresGrad)]
pub fn set_requires_grad(handle: u32, on: bool) -> Thrown<()> {
    thrown(tensor(handle).and_then(|mut tensor| {
        tensor.set_requires_grad(on)?;
        TENSORS.with_borrow_mut(|table| table.slots[handle as usize - 1] = Some(tensor));
        Ok(())
    }))
}

/// A handle of the gradient, or 0.
#[wasm_bindgen(js_name = grad)]
pub fn grad(handle: u32) -> Thrown<u32> {
    thrown(tensor(handle)).map(|t| t.grad().map_or(0, keep))
}

/// Replaces the gradient; 0 forgets it.
#[wasm_bindgen(js_name = setGrad)]
pub fn set_grad(handle: u32, gradient: u32) -> Thrown<()> {
    thrown((|| tensor(handle)?.set_grad(optional(gradient)?.as_ref()))())
}

/// Sends gradients back; `upstream` 0 stands for 1.
#[wasm_bindgen(js_name = backward)]
pub fn backward(handle: u32, upstream: u32, retain: bool) -> Thrown<()> {
    thrown((|| tensor(handle)?.backward(optional(upstream)?.as_ref(), retain))())
}

/// A promise of the elements in a fresh typed array. Reading starts at once: the handle may be freed while it is on.
#[wasm_bindgen(js_name = data)]
pub fn data(handle: u32) -> Thrown<Promise> {
    let tensor: Tensor = thrown(tensor(handle))?;
    let boolean = tensor.dtype() == DType::Bool;
    let elements = tensor.data();
    Ok(promise(Box::pin(async move {
        Ok(match thrown(elements.await)? {
            HostData::F32(v) => Float32Array::from(v.as_slice()).into(),
            HostData::I32(v) => Int32Array::from(v.as_slice()).into(),
            HostData::U32(v) if boolean => {
                let bytes = thrown(try_collect("data", v.len(), v.iter().map(|&x| x as u8)))?;
                Uint8Array::from(bytes.as_slice()).into()
            }
            HostData::U32(v) => Uint32Array::from(v.as_slice()).into(),
        })
    })))
}

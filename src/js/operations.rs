//! Operations and optimizers over handles.

use std::cell::RefCell;

use wasm_bindgen::prelude::wasm_bindgen;

use super::{Table, Thrown, dims, keep, optional, sizes, tensor, thrown};
use crate::error::Result;
use crate::optim::{AdamW, AdamWOptions};
use crate::{Approximate, CrossEntropy, Reduction, Tensor};

/// Exports operations: each takes handles, then plain values, and gives a handle.
macro_rules! operations {
    ($($(#[$doc:meta])* $js:literal $name:ident($($tensor:ident),*; $($arg:ident: $type:ty),*) $body:expr;)*) => {
        $(
            $(#[$doc])*
            #[wasm_bindgen(js_name = $js)]
            #[allow(clippy::needless_pass_by_value, reason = "the boundary passes by value")]
            pub fn $name($($tensor: u32,)* $($arg: $type),*) -> Thrown<u32> {
                let run = || -> Result<Tensor> {
                    $(let $tensor = tensor($tensor)?;)*
                    $body
                };
                thrown(run()).map(keep)
            }
        )*
    };
}

fn approximate(tanh: bool) -> Approximate {
    if tanh { Approximate::Tanh } else { Approximate::None }
}

operations! {
    /// `a + b`.
    "add" add(a, b;) a.add(&b);
    /// `a - b`.
    "sub" sub(a, b;) a.sub(&b);
    /// `a * b`.
    "mul" mul(a, b;) a.mul(&b);
    /// `a / b`.
    "div" div(a, b;) a.div(&b);
    /// `silu(a) * b`.
    "siluMul" silu_mul(a, b;) a.silu_mul(&b);
    /// `gelu(a) * b`.
    "geluMul" gelu_mul(a, b; tanh: bool) a.gelu_mul(&b, approximate(tanh));
    /// `relu(a) * b`.
    "reluMul" relu_mul(a, b;) a.relu_mul(&b);
    /// `sigmoid(a) * b`.
    "sigmoidMul" sigmoid_mul(a, b;) a.sigmoid_mul(&b);
    /// Packed `silu(a) * b`.
    "swiglu" swiglu(x;) x.swiglu();
    /// Packed `gelu(a) * b`.
    "geglu" geglu(x; tanh: bool) x.geglu(approximate(tanh));
    /// Packed `relu(a) * b`.
    "reglu" reglu(x;) x.reglu();
    /// Packed `a * sigmoid(b)`.
    "glu" glu(x;) x.glu();
    /// Layer normalisation; weight and bias may be 0.
    "layerNorm" layer_norm(x; weight: u32, bias: u32, normalized: &[u32], eps: f32)
        x.layer_norm(&sizes(normalized), optional(weight)?.as_ref(), optional(bias)?.as_ref(), eps);
    /// The matrix product.
    "matmul" matmul(a, b;) a.matmul(&b);
    /// `x · weightᵀ + bias`; bias may be 0.
    "linear" linear(x, weight; bias: u32) x.linear(&weight, optional(bias)?.as_ref());
    /// The sum over dimensions; none means all.
    "sum" sum(x; over: Option<Vec<i32>>, keepdim: bool) x.sum(over.map(|d| dims(&d)).as_deref(), keepdim);
    /// The mean over dimensions; none means all.
    "mean" mean(x; over: Option<Vec<i32>>, keepdim: bool) x.mean(over.map(|d| dims(&d)).as_deref(), keepdim);
    /// Cross-entropy from integer targets; `reduction` is 0 for mean, 1 for sum, 2 for none.
    "crossEntropy" cross_entropy(x, target; reduction: u8, ignore_index: i32, label_smoothing: f32)
        x.cross_entropy(&target, CrossEntropy {
            reduction: [Reduction::Mean, Reduction::Sum, Reduction::None][usize::from(reduction.min(2))],
            ignore_index,
            label_smoothing,
        });
    /// A row-major tensor of the same elements.
    "contiguous" contiguous(x;) x.contiguous();
    /// Another shape.
    "reshape" reshape(x; shape: &[i32]) x.reshape(&dims(shape));
    /// Two dimensions exchanged.
    "transpose" transpose(x; dim0: i32, dim1: i32) x.transpose(dim0 as isize, dim1 as isize);
    /// Dimensions in another order.
    "permute" permute(x; order: &[i32]) x.permute(&dims(order));
    /// Broadcast to a shape.
    "expand" expand(x; shape: &[i32]) x.expand(&dims(shape));
    /// A range of a dimension with a step.
    "slice" slice(x; dim: i32, start: i32, end: i32, step: i32)
        x.slice(dim as isize, start as isize, end as isize, step as isize);
    /// A range of a dimension.
    "narrow" narrow(x; dim: i32, start: i32, length: u32) x.narrow(dim as isize, start as isize, length as usize);
    /// A dimension of size 1 inserted.
    "unsqueeze" unsqueeze(x; dim: i32) x.unsqueeze(dim as isize);
    /// Dimensions of size 1 removed.
    "squeeze" squeeze(x; dim: Option<i32>) x.squeeze(dim.map(|d| d as isize));
    /// Dimensions joined.
    "flatten" flatten(x; start: i32, end: i32) x.flatten(start as isize, end as isize);
    /// The same elements outside the graph.
    "detach" detach(x;) Ok(x.detach());
}

fn keep_all<const N: usize>(tensors: Result<[Tensor; N]>) -> Thrown<Vec<u32>> {
    thrown(tensors).map(|t| t.into_iter().map(keep).collect())
}

/// `[da, db]` of a gated product; `act` is 0 for silu, 1 for gelu, 2 for gelu by tanh, 3 for relu, 4 for sigmoid.
#[wasm_bindgen(js_name = gatedBackward)]
pub fn gated_backward(dy: u32, a: u32, b: u32, act: u8) -> Thrown<Vec<u32>> {
    keep_all((|| {
        let (dy, a, b) = (tensor(dy)?, tensor(a)?, tensor(b)?);
        match act {
            0 => Tensor::silu_mul_backward(&dy, &a, &b),
            1 => Tensor::gelu_mul_backward(&dy, &a, &b, Approximate::None),
            2 => Tensor::gelu_mul_backward(&dy, &a, &b, Approximate::Tanh),
            3 => Tensor::relu_mul_backward(&dy, &a, &b),
            _ => Tensor::sigmoid_mul_backward(&dy, &a, &b),
        }
    })())
}

/// `[y, mean, rstd]`; weight and bias may be 0.
#[wasm_bindgen(js_name = layerNormForward)]
pub fn layer_norm_forward(x: u32, weight: u32, bias: u32, eps: f32) -> Thrown<Vec<u32>> {
    keep_all((|| tensor(x)?.layer_norm_forward(optional(weight)?.as_ref(), optional(bias)?.as_ref(), eps))())
}

/// `[dx, dw, db]`; weight may be 0.
#[wasm_bindgen(js_name = layerNormBackward)]
pub fn layer_norm_backward(dy: u32, x: u32, mean: u32, rstd: u32, weight: u32) -> Thrown<Vec<u32>> {
    keep_all((|| {
        let (dy, x, mean, rstd) = (tensor(dy)?, tensor(x)?, tensor(mean)?, tensor(rstd)?);
        Tensor::layer_norm_backward(&dy, &x, &mean, &rstd, optional(weight)?.as_ref())
    })())
}

thread_local! {
    static OPTIMIZERS: RefCell<Table<AdamW>> = const { RefCell::new(Table::new()) };
}

fn with_optimizer<T>(handle: u32, f: impl FnOnce(&mut AdamW) -> Result<T>) -> Thrown<T> {
    // Taken out for the call: a step runs operations.
    let optimizer = OPTIMIZERS
        .with_borrow_mut(|t| t.slots.get_mut((handle as usize).wrapping_sub(1)).and_then(Option::take));
    let Some(mut optimizer) = optimizer else { return thrown(Err(super::gone("optimizer"))) };
    let result = f(&mut optimizer);
    OPTIMIZERS.with_borrow_mut(|t| t.slots[handle as usize - 1] = Some(optimizer));
    thrown(result)
}

/// An AdamW optimizer of these tensors.
#[wasm_bindgen(js_name = adamw)]
pub fn adamw(
    parameters: &[u32],
    lr: f64,
    beta1: f64,
    beta2: f64,
    eps: f64,
    weight_decay: f64,
) -> Thrown<u32> {
    thrown((|| {
        let parameters = parameters.iter().map(|&p| tensor(p)).collect::<Result<Vec<_>>>()?;
        let optimizer =
            AdamW::new(parameters, AdamWOptions { lr, betas: (beta1, beta2), eps, weight_decay })?;
        Ok(OPTIMIZERS.with_borrow_mut(|t| t.put(optimizer)))
    })())
}

/// One step.
#[wasm_bindgen(js_name = optimizerStep)]
pub fn optimizer_step(handle: u32) -> Thrown<()> {
    with_optimizer(handle, AdamW::step)
}

/// Forgets all gradients.
#[wasm_bindgen(js_name = optimizerZeroGrad)]
pub fn optimizer_zero_grad(handle: u32) -> Thrown<()> {
    with_optimizer(handle, |o| {
        o.zero_grad();
        Ok(())
    })
}

/// Changes the learning rate.
#[wasm_bindgen(js_name = optimizerSetLr)]
pub fn optimizer_set_lr(handle: u32, lr: f64) -> Thrown<()> {
    with_optimizer(handle, |o| o.set_lr(lr))
}

/// Frees an optimizer and its moments.
#[wasm_bindgen(js_name = freeOptimizer)]
pub fn free_optimizer(handle: u32) {
    let optimizer = OPTIMIZERS.with_borrow_mut(|t| t.take(handle));
    drop(optimizer);
}

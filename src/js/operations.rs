//! Operations and optimizers over handles.

use std::cell::RefCell;

use wasm_bindgen::prelude::wasm_bindgen;

use super::{Table, Thrown, keep, optional, tensor, thrown};
use crate::error::Result;
use crate::ops::create;
use crate::optim::{AdamW, AdamWOptions};
use crate::{Approximate, CrossEntropy, Reduction, Tensor};

/// What an operation is called with: up to three tensors, of which some may be missing, and numbers.
struct Call<'a> {
    tensors: [Option<Tensor>; 3],
    numbers: &'a [f64],
}

impl Call<'_> {
    fn tensor(&self, place: usize) -> Result<&Tensor> {
        self.tensors[place].as_ref().ok_or_else(|| super::gone("tensor"))
    }
    fn optional(&self, place: usize) -> Option<&Tensor> {
        self.tensors[place].as_ref()
    }
    fn number(&self, place: usize) -> f64 {
        self.numbers.get(place).copied().unwrap_or(0.0)
    }
    fn index(&self, place: usize) -> isize {
        self.number(place) as isize
    }
    fn flag(&self, place: usize) -> bool {
        self.number(place) != 0.0
    }
    /// The numbers from `place` on.
    fn indices(&self, place: usize) -> Vec<isize> {
        self.numbers.iter().skip(place).map(|&n| n as isize).collect()
    }
    fn approximate(&self) -> Approximate {
        if self.flag(0) { Approximate::Tanh } else { Approximate::None }
    }
    /// Whether dimensions stay, then whether there is a list of dimensions, then that list.
    fn reduce(&self, f: fn(&Tensor, Option<&[isize]>, bool) -> Result<Tensor>) -> Result<Tensor> {
        let dims = self.flag(1).then(|| self.indices(2));
        f(self.tensor(0)?, dims.as_deref(), self.flag(0))
    }
}

type Operation = fn(&Call<'_>) -> Result<Tensor>;

/// Operations by name. One table and two exports in place of an export each: an export is a hundred bytes of shims on both
/// sides of the boundary.
static OPERATIONS: &[(&str, Operation)] = &[
    ("add", |c| c.tensor(0)?.add(c.tensor(1)?)),
    ("sub", |c| c.tensor(0)?.sub(c.tensor(1)?)),
    ("mul", |c| c.tensor(0)?.mul(c.tensor(1)?)),
    ("div", |c| c.tensor(0)?.div(c.tensor(1)?)),
    ("siluMul", |c| c.tensor(0)?.silu_mul(c.tensor(1)?)),
    ("geluMul", |c| c.tensor(0)?.gelu_mul(c.tensor(1)?, c.approximate())),
    ("reluMul", |c| c.tensor(0)?.relu_mul(c.tensor(1)?)),
    ("sigmoidMul", |c| c.tensor(0)?.sigmoid_mul(c.tensor(1)?)),
    ("swiglu", |c| c.tensor(0)?.swiglu()),
    ("geglu", |c| c.tensor(0)?.geglu(c.approximate())),
    ("reglu", |c| c.tensor(0)?.reglu()),
    ("glu", |c| c.tensor(0)?.glu()),
    // eps, then the normalised sizes.
    ("layerNorm", |c| {
        let normalized: Vec<usize> = c.indices(1).iter().map(|&size| size as usize).collect();
        c.tensor(0)?.layer_norm(&normalized, c.optional(1), c.optional(2), c.number(0) as f32)
    }),
    ("matmul", |c| c.tensor(0)?.matmul(c.tensor(1)?)),
    ("linear", |c| c.tensor(0)?.linear(c.tensor(1)?, c.optional(2))),
    ("sum", |c| c.reduce(Tensor::sum)),
    ("mean", |c| c.reduce(Tensor::mean)),
    // The reduction's place, the ignored label, the smoothing.
    ("crossEntropy", |c| {
        let reduction = match c.index(0) {
            0 => Reduction::Mean,
            1 => Reduction::Sum,
            _ => Reduction::None,
        };
        let (ignore_index, label_smoothing) = (c.index(1) as i32, c.number(2) as f32);
        c.tensor(0)?.cross_entropy(c.tensor(1)?, CrossEntropy { reduction, ignore_index, label_smoothing })
    }),
    ("contiguous", |c| c.tensor(0)?.contiguous()),
    ("reshape", |c| c.tensor(0)?.reshape(&c.indices(0))),
    ("transpose", |c| c.tensor(0)?.transpose(c.index(0), c.index(1))),
    ("permute", |c| c.tensor(0)?.permute(&c.indices(0))),
    ("expand", |c| c.tensor(0)?.expand(&c.indices(0))),
    // The dimension, start, end, step.
    ("slice", |c| c.tensor(0)?.slice(c.index(0), c.index(1), c.index(2), c.index(3))),
    // The dimension, start, length.
    ("narrow", |c| c.tensor(0)?.narrow(c.index(0), c.index(1), c.index(2) as usize)),
    ("unsqueeze", |c| c.tensor(0)?.unsqueeze(c.index(0))),
    ("squeeze", |c| c.tensor(0)?.squeeze(c.numbers.first().map(|&dim| dim as isize))),
    // The first and the last dimension.
    ("flatten", |c| c.tensor(0)?.flatten(c.index(0), c.index(1))),
    ("detach", |c| Ok(c.tensor(0)?.detach())),
];

/// The number of an operation.
#[wasm_bindgen(js_name = operation)]
#[must_use]
pub fn operation(name: &str) -> Option<u32> {
    OPERATIONS.iter().position(|(known, _)| *known == name).map(|place| place as u32)
}

/// A handle of the scalar that stands for a number beside the tensor `a`.
#[wasm_bindgen(js_name = scalar)]
pub fn scalar(number: u32, a: u32, value: f64) -> Thrown<u32> {
    thrown((|| create::scalar(named(number)?.0, &tensor(a)?, value))()).map(keep)
}

fn named(number: u32) -> Result<&'static (&'static str, Operation)> {
    OPERATIONS.get(number as usize).ok_or_else(|| super::gone("operation"))
}

/// Runs an operation on up to three tensors, 0 where there is none, with numbers; a handle of the result.
#[wasm_bindgen(js_name = runWith)]
pub fn run_with(number: u32, a: u32, b: u32, c: u32, numbers: &[f64]) -> Thrown<u32> {
    let result = (|| {
        let (_, operation) = named(number)?;
        operation(&Call { tensors: [optional(a)?, optional(b)?, optional(c)?], numbers })
    })();
    thrown(result).map(keep)
}

/// [`run_with`] without numbers, which saves the copy of the list.
#[wasm_bindgen(js_name = run)]
pub fn run(number: u32, a: u32, b: u32, c: u32) -> Thrown<u32> {
    run_with(number, a, b, c, &[])
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

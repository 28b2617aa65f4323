//! Fused gated activations (GLU variants, Shazeer 2020, arXiv:2002.05202): `act(a) · b` as one kernel.

use crate::error::{Error, Result};
use crate::kernels::{gated, gated_backward};
use crate::ops::reduce::sum_to;
use crate::ops::shape::dense;
use crate::ops::{broadcast, float_type, one_float_type};
use crate::pairing::{plan, plan_packed};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Which GELU (Hendrycks and Gimpel 2016, arXiv:1606.08415).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approximate {
    /// `x · Φ(x)`, exact.
    #[default]
    None,
    /// `½x(1 + tanh(√(2/π)(x + 0.044715x³)))`.
    Tanh,
}

impl Approximate {
    fn flag(self) -> &'static str {
        match self {
            Self::None => "gelu_erf",
            Self::Tanh => "gelu_tanh",
        }
    }
}

/// `act(a) · b`, broadcast; not recorded.
fn forward(op: &'static str, act: &'static str, a: &Tensor, b: &Tensor, shape: Shape) -> Result<Tensor> {
    let out = a.engine().empty(op, shape, a.dtype())?;
    if shape.elements() > 0 {
        let (form, params) = plan(&a.layout().expand(op, &shape)?, &b.layout().expand(op, &shape)?);
        let flags = gated::KERNEL.set(&[act, form]);
        a.engine().run(&gated::KERNEL, flags, a.dtype(), &params, &[Some(a), Some(b), Some(&out)])?;
    }
    Ok(out)
}

/// The gradients of `act(a) · b`, of the shape of `dy`: the ones that are wanted.
fn backward(
    op: &'static str,
    act: &'static str,
    [dy, a, b]: [&Tensor; 3],
    wants: [bool; 2],
) -> Result<[Option<Tensor>; 2]> {
    let shape = *dy.shape();
    let make = |wanted| if wanted { dy.engine().empty(op, shape, dy.dtype()).map(Some) } else { Ok(None) };
    let (da, db) = (make(wants[0])?, make(wants[1])?);
    let want = match wants {
        [true, true] => "both",
        [true, false] => "da",
        [false, true] => "db",
        [false, false] => return Ok([None, None]),
    };
    if shape.elements() > 0 {
        let dy = dense(op, dy)?;
        let (form, params) = plan(&a.layout().expand(op, &shape)?, &b.layout().expand(op, &shape)?);
        let flags = gated_backward::KERNEL.set(&[act, form, want]);
        let tensors = [Some(&dy), Some(a), Some(b), da.as_ref(), db.as_ref(), None];
        dy.engine().run(&gated_backward::KERNEL, flags, dy.dtype(), &params, &tensors)?;
    }
    Ok([da, db])
}

fn gated_mul(op: &'static str, act: &'static str, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    one_float_type(op, a, b)?;
    let shape = broadcast(op, a, b)?;
    let out = forward(op, act, a, b, shape)?;
    Ok(out.recorded(op, &[Some(a), Some(b)], &[a, b], move |g| {
        let (a, b) = (&g.saved[0], &g.saved[1]);
        let [da, db] = backward(op, act, [g.dy(), a, b], [g.wants[0], g.wants[1]])?;
        Ok(vec![
            da.map(|d| sum_to(&d, a.shape())).transpose()?,
            db.map(|d| sum_to(&d, b.shape())).transpose()?,
        ])
    }))
}

/// Two halves of the last dimension as one gated product: `act` of the first, or of the second for `glu`.
fn packed(op: &'static str, act: &'static str, x: &Tensor, swapped: bool) -> Result<Tensor> {
    float_type(op, x)?;
    let rank = x.shape().rank();
    let width = if rank == 0 { 1 } else { x.shape()[rank - 1] };
    if width % 2 != 0 {
        return Err(Error::shape(
            op,
            format!(
                "{} has a last dimension of {width}; it must be even, two halves side by side",
                x.shape()
            ),
        ));
    }
    let x = &dense(op, x)?;
    let half = width / 2;
    let shape = x.shape().with(rank - 1, half);
    let out = x.engine().empty(op, shape, x.dtype())?;
    let elements = shape.elements();
    let (form, params) = plan_packed(elements.checked_div(half).unwrap_or(0), half, swapped);
    if elements > 0 {
        let flags = gated::KERNEL.set(&[act, form]);
        x.engine().run(&gated::KERNEL, flags, x.dtype(), &params, &[Some(x), Some(x), Some(&out)])?;
    }
    Ok(out.recorded(op, &[Some(x)], &[x], move |g| {
        let x = &g.saved[0];
        let dx = x.engine().empty(op, *x.shape(), x.dtype())?;
        if elements > 0 {
            let dy = dense(op, g.dy())?;
            let want = if swapped { "packed_swapped" } else { "packed" };
            let flags = gated_backward::KERNEL.set(&[act, form, want]);
            let tensors = [Some(&dy), Some(x), Some(x), None, None, Some(&dx)];
            x.engine().run(&gated_backward::KERNEL, flags, x.dtype(), &params, &tensors)?;
        }
        Ok(vec![Some(dx)])
    }))
}

impl Tensor {
    /// `silu(self) · b`, broadcast, as one kernel: SwiGLU with separate operands.
    ///
    /// # Errors
    /// `ShapeError` when the shapes do not broadcast; `DTypeError` unless both are the same floating-point type.
    pub fn silu_mul(&self, b: &Self) -> Result<Self> {
        gated_mul("siluMul", "silu", self, b)
    }

    /// `gelu(self) · b`, broadcast, as one kernel: GEGLU with separate operands.
    ///
    /// # Errors
    /// As [`Tensor::silu_mul`].
    pub fn gelu_mul(&self, b: &Self, approximate: Approximate) -> Result<Self> {
        gated_mul("geluMul", approximate.flag(), self, b)
    }

    /// `relu(self) · b`, broadcast, as one kernel: ReGLU with separate operands. NaN stays NaN.
    ///
    /// # Errors
    /// As [`Tensor::silu_mul`].
    pub fn relu_mul(&self, b: &Self) -> Result<Self> {
        gated_mul("reluMul", "relu", self, b)
    }

    /// `sigmoid(self) · b`, broadcast, as one kernel.
    ///
    /// # Errors
    /// As [`Tensor::silu_mul`].
    pub fn sigmoid_mul(&self, b: &Self) -> Result<Self> {
        gated_mul("sigmoidMul", "sigmoid", self, b)
    }

    /// `silu(x[…, :d]) · x[…, d:]` of `[…, 2d]`, without a copy.
    ///
    /// # Errors
    /// `ShapeError` when the last dimension is odd; `DTypeError` for integers.
    pub fn swiglu(&self) -> Result<Self> {
        packed("swiglu", "silu", self, false)
    }

    /// `gelu(x[…, :d]) · x[…, d:]` of `[…, 2d]`, without a copy.
    ///
    /// # Errors
    /// As [`Tensor::swiglu`].
    pub fn geglu(&self, approximate: Approximate) -> Result<Self> {
        packed("geglu", approximate.flag(), self, false)
    }

    /// `relu(x[…, :d]) · x[…, d:]` of `[…, 2d]`, without a copy.
    ///
    /// # Errors
    /// As [`Tensor::swiglu`].
    pub fn reglu(&self) -> Result<Self> {
        packed("reglu", "relu", self, false)
    }

    /// `x[…, :d] · sigmoid(x[…, d:])` of `[…, 2d]`, without a copy: the gate is the second half, as in PyTorch.
    ///
    /// # Errors
    /// As [`Tensor::swiglu`].
    pub fn glu(&self) -> Result<Self> {
        packed("glu", "sigmoid", self, true)
    }

    /// The gradients `[da, db]` of `silu(a) · b` without the tape, of the shapes of `a` and `b`, for the gradient `dy`
    /// of the output.
    ///
    /// # Errors
    /// As [`Tensor::silu_mul`]; `ShapeError` when `dy` has not the output's shape.
    pub fn silu_mul_backward(dy: &Self, a: &Self, b: &Self) -> Result<[Self; 2]> {
        gradients("siluMulBackward", "silu", dy, a, b)
    }

    /// The gradients `[da, db]` of `gelu(a) · b` without the tape, as [`Tensor::silu_mul_backward`].
    ///
    /// # Errors
    /// As [`Tensor::silu_mul_backward`].
    pub fn gelu_mul_backward(dy: &Self, a: &Self, b: &Self, approximate: Approximate) -> Result<[Self; 2]> {
        gradients("geluMulBackward", approximate.flag(), dy, a, b)
    }

    /// The gradients `[da, db]` of `relu(a) · b` without the tape, as [`Tensor::silu_mul_backward`].
    ///
    /// # Errors
    /// As [`Tensor::silu_mul_backward`].
    pub fn relu_mul_backward(dy: &Self, a: &Self, b: &Self) -> Result<[Self; 2]> {
        gradients("reluMulBackward", "relu", dy, a, b)
    }

    /// The gradients `[da, db]` of `sigmoid(a) · b` without the tape, as [`Tensor::silu_mul_backward`].
    ///
    /// # Errors
    /// As [`Tensor::silu_mul_backward`].
    pub fn sigmoid_mul_backward(dy: &Self, a: &Self, b: &Self) -> Result<[Self; 2]> {
        gradients("sigmoidMulBackward", "sigmoid", dy, a, b)
    }
}

/// Both gradients of `act(a) · b`, summed to the operands' shapes.
fn gradients(
    op: &'static str,
    act: &'static str,
    dy: &Tensor,
    a: &Tensor,
    b: &Tensor,
) -> Result<[Tensor; 2]> {
    one_float_type(op, a, b)?;
    one_float_type(op, dy, a)?;
    let shape = broadcast(op, a, b)?;
    if *dy.shape() != shape {
        return Err(Error::shape(
            op,
            format!("dy has shape {}; it must be {shape}, that of the output", dy.shape()),
        ));
    }
    let [da, db] = dy.engine().no_grad(|| backward(op, act, [dy, a, b], [true, true]))?;
    let whole = |d: Option<Tensor>, to: &Tensor| sum_to(&d.expect("both were asked for"), to.shape());
    Ok([whole(da, a)?, whole(db, b)?])
}

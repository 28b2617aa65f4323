//! Elementwise arithmetic with broadcasting.

use crate::error::Result;
use crate::kernels::binary::KERNEL;
use crate::ops::create::scalar;
use crate::ops::reduce::sum_to;
use crate::ops::{broadcast, one_float_type};
use crate::pairing::plan;
use crate::tensor::Tensor;

/// `out = a ∘ b`; not recorded.
fn forward(op: &'static str, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let dtype = one_float_type(op, a, b)?;
    let shape = broadcast(op, a, b)?;
    let out = a.engine().empty(op, shape, dtype)?;
    if shape.elements() > 0 {
        let (form, params) = plan(&a.layout().expand(op, &shape)?, &b.layout().expand(op, &shape)?);
        a.engine().run(&KERNEL, KERNEL.set(&[op, form]), dtype, &params, &[Some(a), Some(b), Some(&out)])?;
    }
    Ok(out)
}

impl Tensor {
    /// `self + other`, broadcast.
    ///
    /// # Errors
    /// `ShapeError` when the shapes do not broadcast; `DTypeError` unless both are the same floating-point type.
    #[allow(clippy::should_implement_trait, reason = "it can fail")]
    pub fn add(&self, other: &Self) -> Result<Self> {
        let (a, b) = (*self.shape(), *other.shape());
        Ok(forward("add", self, other)?.recorded("add", &[Some(self), Some(other)], &[], move |g| {
            Ok(vec![
                g.wants[0].then(|| sum_to(g.dy(), &a)).transpose()?,
                g.wants[1].then(|| sum_to(g.dy(), &b)).transpose()?,
            ])
        }))
    }

    /// `self - other`, broadcast.
    ///
    /// # Errors
    /// As [`Tensor::add`].
    #[allow(clippy::should_implement_trait, reason = "it can fail")]
    pub fn sub(&self, other: &Self) -> Result<Self> {
        let (a, b) = (*self.shape(), *other.shape());
        Ok(forward("sub", self, other)?.recorded("sub", &[Some(self), Some(other)], &[], move |g| {
            let negated = || sum_to(&scalar("sub", g.dy(), -1.0)?.mul(g.dy())?, &b);
            Ok(vec![
                g.wants[0].then(|| sum_to(g.dy(), &a)).transpose()?,
                g.wants[1].then(negated).transpose()?,
            ])
        }))
    }

    /// `self * other`, broadcast.
    ///
    /// # Errors
    /// As [`Tensor::add`].
    #[allow(clippy::should_implement_trait, reason = "it can fail")]
    pub fn mul(&self, other: &Self) -> Result<Self> {
        let out = forward("mul", self, other)?;
        Ok(out.recorded("mul", &[Some(self), Some(other)], &[self, other], |g| {
            let (a, b) = (&g.saved[0], &g.saved[1]);
            let da = || sum_to(&g.dy().mul(b)?, a.shape());
            let db = || sum_to(&g.dy().mul(a)?, b.shape());
            Ok(vec![g.wants[0].then(da).transpose()?, g.wants[1].then(db).transpose()?])
        }))
    }

    /// `self / other`, broadcast.
    ///
    /// # Errors
    /// As [`Tensor::add`].
    #[allow(clippy::should_implement_trait, reason = "it can fail")]
    pub fn div(&self, other: &Self) -> Result<Self> {
        let out = forward("div", self, other)?;
        Ok(out.recorded("div", &[Some(self), Some(other)], &[self, other], |g| {
            let (a, b) = (&g.saved[0], &g.saved[1]);
            let share = g.dy().div(b)?;
            let da = || sum_to(&share, a.shape());
            // -dy/b · (a/b): no square of b that could overflow.
            let db = || sum_to(&scalar("div", b, -1.0)?.mul(&share.mul(&a.div(b)?)?)?, b.shape());
            Ok(vec![g.wants[0].then(da).transpose()?, g.wants[1].then(db).transpose()?])
        }))
    }
}

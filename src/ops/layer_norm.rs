//! Layer normalisation (Ba et al. 2016, arXiv:1607.06450) over the last dimensions.

use crate::dtype::DType;
use crate::error::{Error, Result, number_f32};
use crate::kernels::{layer_norm, layer_norm_backward};
use crate::ops::create::full;
use crate::ops::reduce::finish_columns;
use crate::ops::shape::dense;
use crate::ops::{float_type, one_float_type};
use crate::shape::{List, Shape};
use crate::tensor::Tensor;

const OP: &str = "layerNorm";

/// How a tensor falls into rows.
#[derive(Clone, Copy)]
struct Rows {
    count: usize,
    cols: usize,
    /// The normalised dimensions.
    normalized: Shape,
}

impl Rows {
    fn of(x: &Tensor, normalized: &[usize]) -> Result<Self> {
        let rank = x.shape().rank();
        let lead = rank.checked_sub(normalized.len());
        let Some(lead) = lead.filter(|&lead| !normalized.is_empty() && x.shape()[lead..] == *normalized)
        else {
            return Err(Error::shape(
                OP,
                format!(
                    "normalizedShape {} must be the last dimensions of the input, which is {}",
                    List(normalized),
                    x.shape()
                ),
            ));
        };
        let normalized = Shape::from_checked(normalized);
        let count = x.shape()[..lead].iter().product();
        Ok(Self { count, cols: normalized.elements(), normalized })
    }

    fn is_empty(self) -> bool {
        self.count == 0 || self.cols == 0
    }

    /// The same for tensors that must match it.
    fn check_affine(self, name: &str, t: &Tensor, x: &Tensor) -> Result<()> {
        one_float_type(OP, x, t)?;
        if *t.shape() == self.normalized {
            return Ok(());
        }
        Err(Error::shape(
            OP,
            format!(
                "{name} has shape {}; it must be {}, the normalised dimensions",
                t.shape(),
                self.normalized
            ),
        ))
    }
}

fn check_eps(eps: f32) -> Result<()> {
    if eps >= 0.0 && eps.is_finite() {
        return Ok(());
    }
    Err(Error::argument(OP, format!("eps is {}; it must be 0 or a small positive number", number_f32(eps))))
}

/// `[y, mean, rstd]`; not recorded. Operands are dense.
fn forward(
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    r: Rows,
    eps: f32,
) -> Result<[Tensor; 3]> {
    let engine = x.engine();
    let statistic = || engine.empty(OP, Shape::from_checked(&[r.count]), DType::F32);
    let (y, mean, rstd) = (engine.empty(OP, *x.shape(), x.dtype())?, statistic()?, statistic()?);
    if !r.is_empty() {
        let params = layer_norm::Params {
            rows: r.count as u32,
            cols: r.cols as u32,
            eps,
            inverse_cols: 1.0 / r.cols as f32,
        };
        let flags = layer_norm::flags(weight.is_some(), bias.is_some());
        let tensors = [Some(x), weight, bias, Some(&y), Some(&mean), Some(&rstd)];
        engine.run(&layer_norm::KERNEL, flags, x.dtype(), &params, &tensors)?;
    }
    Ok([y, mean, rstd])
}

/// What a backward pass reads; all dense.
struct Saved<'a> {
    dy: &'a Tensor,
    x: &'a Tensor,
    mean: &'a Tensor,
    rstd: &'a Tensor,
    weight: Option<&'a Tensor>,
}

/// `[dx, dw, db]`: those that are wanted.
fn backward(s: &Saved<'_>, r: Rows, wants: [bool; 3]) -> Result<[Option<Tensor>; 3]> {
    let engine = s.x.engine();
    let [wants_x, wants_w, wants_b] = wants;
    if r.is_empty() {
        let zeros = |shape: Shape| full(engine, OP, shape, 0.0, s.x.dtype());
        let when = |wanted: bool, shape| wanted.then(|| zeros(shape)).transpose();
        return Ok([
            when(wants_x, *s.x.shape())?,
            when(wants_w, r.normalized)?,
            when(wants_b, r.normalized)?,
        ]);
    }
    let params = layer_norm_backward::Params::new(r.count, r.cols);
    let groups = params.rows as usize;
    let dx = wants_x.then(|| engine.empty(OP, *s.x.shape(), s.x.dtype())).transpose()?;
    let partials = |wanted: bool| {
        wanted.then(|| engine.empty(OP, Shape::from_checked(&[groups, r.cols]), DType::F32)).transpose()
    };
    let (dw, db) = (partials(wants_w)?, partials(wants_b)?);
    let flags = layer_norm_backward::flags(s.weight.is_some(), wants);
    let operands = [Some(s.dy), Some(s.x), Some(s.mean), Some(s.rstd), s.weight];
    let tensors: Vec<_> = operands.into_iter().chain([dx.as_ref(), dw.as_ref(), db.as_ref()]).collect();
    engine.run(&layer_norm_backward::KERNEL, flags, s.x.dtype(), &params, &tensors)?;
    let finish = |p: Option<Tensor>| p.map(|p| finish_columns(OP, &p, groups, r.normalized, s.x)).transpose();
    Ok([dx, finish(dw)?, finish(db)?])
}

impl Tensor {
    /// `(x − mean) / √(var + eps) · weight + bias` over the last dimensions, `normalized` of them; the variance is the
    /// biased one. `weight` and `bias`, each optional, have the shape `normalized`.
    ///
    /// # Errors
    /// `ShapeError` unless `normalized` are the input's last dimensions and the others fit; `DTypeError` unless all are
    /// one floating-point type; `ArgumentError` for a negative `eps`.
    pub fn layer_norm(
        &self,
        normalized: &[usize],
        weight: Option<&Self>,
        bias: Option<&Self>,
        eps: f32,
    ) -> Result<Self> {
        let (r, Dense { x, weight, bias }) = prepare(self, normalized, weight, bias, eps)?;
        let [y, mean, rstd] = forward(&x, weight.as_ref(), bias.as_ref(), r, eps)?;
        let mut saved = vec![&x, &mean, &rstd];
        saved.extend(&weight);
        Ok(y.recorded(OP, &[Some(&x), weight.as_ref(), bias.as_ref()], &saved, move |g| {
            let dy = dense(OP, g.dy())?;
            let [x, mean, rstd] = [&g.saved[0], &g.saved[1], &g.saved[2]];
            let saved = Saved { dy: &dy, x, mean, rstd, weight: g.saved.get(3) };
            Ok(backward(&saved, r, [g.wants[0], g.wants[1], g.wants[2]])?.into())
        }))
    }

    /// The forward kernel without the tape, over the last dimension: `[y, mean, rstd]`, the statistics f32, one a row.
    ///
    /// # Errors
    /// As [`Tensor::layer_norm`].
    pub fn layer_norm_forward(
        &self,
        weight: Option<&Self>,
        bias: Option<&Self>,
        eps: f32,
    ) -> Result<[Self; 3]> {
        let (r, Dense { x, weight, bias }) = prepare(self, &self.last_dimension()?, weight, bias, eps)?;
        forward(&x, weight.as_ref(), bias.as_ref(), r, eps)
    }

    /// The backward kernels without the tape, over the last dimension: `[dx, dw, db]` for the upstream gradient `dy`;
    /// `mean` and `rstd` are those of [`Tensor::layer_norm_forward`].
    ///
    /// # Errors
    /// `ShapeError`, `DTypeError` when the operands do not fit together.
    pub fn layer_norm_backward(
        dy: &Self,
        x: &Self,
        mean: &Self,
        rstd: &Self,
        weight: Option<&Self>,
    ) -> Result<[Self; 3]> {
        let (r, operands) = prepare(x, &x.last_dimension()?, weight, None, 0.0)?;
        one_float_type(OP, x, dy)?;
        if dy.shape() != x.shape() {
            return Err(Error::shape(
                OP,
                format!("dy has shape {}; it must be {}, that of x", dy.shape(), x.shape()),
            ));
        }
        for (name, t) in [("mean", mean), ("rstd", rstd)] {
            x.same_engine(OP, t)?;
            if t.dtype() != DType::F32 || t.shape().elements() != r.count {
                let right = format!("it must be f32 with one element for each of the {} rows", r.count);
                return Err(Error::shape(
                    OP,
                    format!("{name} is {} of shape {}; {right}", t.dtype(), t.shape()),
                ));
            }
        }
        let (dy, mean, rstd) = (dense(OP, dy)?, dense(OP, mean)?, dense(OP, rstd)?);
        let saved =
            Saved { dy: &dy, x: &operands.x, mean: &mean, rstd: &rstd, weight: operands.weight.as_ref() };
        Ok(backward(&saved, r, [true; 3])?.map(|d| d.expect("all were asked for")))
    }

    fn last_dimension(&self) -> Result<Vec<usize>> {
        let last = self.shape().last();
        last.map(|&d| vec![d]).ok_or_else(|| Error::shape(OP, "a scalar has no dimension to normalise"))
    }
}

/// Operands as the kernels take them.
struct Dense {
    x: Tensor,
    weight: Option<Tensor>,
    bias: Option<Tensor>,
}

fn prepare(
    x: &Tensor,
    normalized: &[usize],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f32,
) -> Result<(Rows, Dense)> {
    float_type(OP, x)?;
    check_eps(eps)?;
    let r = Rows::of(x, normalized)?;
    for (name, t) in [("weight", weight), ("bias", bias)] {
        t.map(|t| r.check_affine(name, t, x)).transpose()?;
    }
    let optional = |t: Option<&Tensor>| t.map(|t| dense(OP, t)).transpose();
    Ok((r, Dense { x: dense(OP, x)?, weight: optional(weight)?, bias: optional(bias)? }))
}

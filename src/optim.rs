//! Optimizers.

use crate::dtype::DType;
use crate::error::{Error, Result, number};
use crate::kernels::adamw::{KERNEL, Params};
use crate::ops::create::full;
use crate::ops::shape::dense;
use crate::tensor::Tensor;

/// Options of [`AdamW`], with PyTorch's defaults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamWOptions {
    /// The learning rate.
    pub lr: f64,
    /// The decay of the two moments.
    pub betas: (f64, f64),
    /// What is added to the root of the second moment.
    pub eps: f64,
    /// The decoupled weight decay.
    pub weight_decay: f64,
}

impl Default for AdamWOptions {
    fn default() -> Self {
        Self { lr: 1e-3, betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.01 }
    }
}

impl AdamWOptions {
    fn check(&self) -> Result<()> {
        let fail = |message: String| Err(Error::argument("adamw", message));
        if !(self.lr >= 0.0 && self.lr.is_finite()) {
            return fail(format!("lr is {}; it must be finite, 0 or more", number(self.lr)));
        }
        let unit = |b: f64| (0.0..1.0).contains(&b);
        if !(unit(self.betas.0) && unit(self.betas.1)) {
            let (first, second) = (number(self.betas.0), number(self.betas.1));
            return fail(format!("betas are ({first}, {second}); each lies in 0 to 1, 1 excluded"));
        }
        if !(self.eps >= 0.0 && self.eps.is_finite()) {
            return fail(format!("eps is {}; it must be finite, 0 or more", number(self.eps)));
        }
        if !(self.weight_decay >= 0.0 && self.weight_decay.is_finite()) {
            return fail(format!(
                "weightDecay is {}; it must be finite, 0 or more",
                number(self.weight_decay)
            ));
        }
        Ok(())
    }
}

struct Slot {
    parameter: Tensor,
    /// The first and second moments, f32, made at the first step with a gradient.
    moments: Option<(Tensor, Tensor)>,
    steps: i32,
}

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101).
pub struct AdamW {
    options: AdamWOptions,
    slots: Vec<Slot>,
}

impl AdamW {
    /// An optimizer of these parameters.
    ///
    /// # Errors
    /// `ArgumentError` for an option out of range; `GradError` for a parameter that requires no gradient.
    pub fn new(parameters: Vec<Tensor>, options: AdamWOptions) -> Result<Self> {
        options.check()?;
        let argument = |message: String| Err(Error::argument("adamw", message));
        if parameters.is_empty() {
            return argument("there is no parameter to optimise".into());
        }
        for (k, p) in parameters.iter().enumerate() {
            let named = format!("parameter {k} of shape {}", p.shape());
            if !p.requires_grad() {
                return Err(Error::grad("adamw", format!("{named} does not require a gradient")));
            }
            if !p.is_leaf() {
                return Err(Error::grad(
                    "adamw",
                    format!("{named} was computed; give the tensors it came from"),
                ));
            }
            let whole = p.layout().is_contiguous() && p.shape().elements() == p.storage().0.elements;
            if !whole {
                return argument(format!("{named} is a view; give the tensor it was made from"));
            }
            p.same_engine("adamw", &parameters[0])?;
            if let Some(twin) = parameters[..k].iter().position(|q| q.shares_storage(p)) {
                return argument(format!("parameter {k} is the same tensor as parameter {twin}"));
            }
        }
        let slots =
            parameters.into_iter().map(|parameter| Slot { parameter, moments: None, steps: 0 }).collect();
        Ok(Self { options, slots })
    }

    /// The learning rate.
    #[must_use]
    pub fn lr(&self) -> f64 {
        self.options.lr
    }

    /// Changes the learning rate of later steps.
    ///
    /// # Errors
    /// `ArgumentError` for a rate below 0.
    pub fn set_lr(&mut self, lr: f64) -> Result<()> {
        let options = AdamWOptions { lr, ..self.options };
        options.check()?;
        self.options = options;
        Ok(())
    }

    /// One step for every parameter that has a gradient.
    ///
    /// # Errors
    /// `LimitError` when memory for the moments is short; `DisposedError`, `DeviceLostError`.
    pub fn step(&mut self) -> Result<()> {
        let o = self.options;
        for slot in &mut self.slots {
            let Some(gradient) = slot.parameter.grad() else { continue };
            let parameter = &slot.parameter;
            let count = parameter.shape().elements();
            if count == 0 {
                continue;
            }
            let engine = parameter.engine();
            if slot.moments.is_none() {
                let zeros = || full(engine, "adamw", *parameter.shape(), 0.0, DType::F32);
                slot.moments = Some((zeros()?, zeros()?));
            }
            let (first, second) = slot.moments.as_ref().expect("made above");
            let gradient = engine.no_grad(|| dense("adamw", &gradient))?;
            let steps = slot.steps + 1;
            let params = Params {
                count: count as u32,
                rate: o.lr as f32,
                beta1: o.betas.0 as f32,
                beta2: o.betas.1 as f32,
                eps: o.eps as f32,
                keep: (1.0 - o.lr * o.weight_decay) as f32,
                inverse_correction1: (1.0 / (1.0 - o.betas.0.powi(steps))) as f32,
                inverse_root_correction2: (1.0 / (1.0 - o.betas.1.powi(steps)).sqrt()) as f32,
            };
            let tensors = [Some(parameter), Some(first), Some(second), Some(&gradient)];
            engine.run(&KERNEL, KERNEL.set(&[]), parameter.dtype(), &params, &tensors)?;
            parameter.bump_version();
            slot.steps = steps;
        }
        Ok(())
    }

    /// Forgets the gradients of all parameters.
    pub fn zero_grad(&self) {
        for slot in &self.slots {
            // Forgetting cannot fail.
            let _ = slot.parameter.set_grad(None);
        }
    }
}

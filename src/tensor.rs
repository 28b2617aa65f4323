//! Tensors: a view of a storage, and a place in the graph of gradients.

use std::fmt;
use std::rc::Rc;

use crate::autograd::{self, Backward, BackwardFn, Value, Variable};
use crate::backend::{HostData, Storage};
use crate::dtype::DType;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops;
use crate::shape::Shape;

/// An n-dimensional array on an engine's device. Cloning gives another handle to the same elements.
#[derive(Clone)]
pub struct Tensor {
    view: Rc<View>,
    variable: Option<Rc<Variable<Self>>>,
}

/// What handles of one tensor share: they are passed around much, and should be two words.
struct View {
    engine: Engine,
    storage: Storage,
    layout: Layout,
    dtype: DType,
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({}, {}, {})", self.shape(), self.dtype(), self.engine().device())
    }
}

impl Value for Tensor {
    fn accumulate(&self, other: &Self) -> Result<Self> {
        self.add(other)
    }
    fn version(&self) -> u32 {
        self.storage().version()
    }
}

impl Tensor {
    pub(crate) fn new(engine: Engine, storage: Storage, layout: Layout, dtype: DType) -> Self {
        Self { view: Rc::new(View { engine, storage, layout, dtype }), variable: None }
    }

    /// The sizes of the dimensions.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        self.view.layout.shape()
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.view.dtype
    }

    /// The engine it lives on.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.view.engine
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.view.layout
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.view.storage
    }

    /// Another view of the same elements, outside the graph.
    pub(crate) fn view(&self, layout: Layout) -> Self {
        Self::new(self.engine().clone(), self.storage().clone(), layout, self.dtype())
    }

    /// Whether gradients flow to or through it.
    #[must_use]
    pub fn requires_grad(&self) -> bool {
        self.variable.is_some()
    }

    /// Makes it a leaf that collects a gradient.
    ///
    /// # Errors
    /// `DTypeError` when its elements are not floating-point; `GradError` when it is the result of a recorded call.
    pub fn set_requires_grad(&mut self, on: bool) -> Result<()> {
        if self.variable.as_ref().is_some_and(|v| !v.is_leaf()) {
            return Err(Error::grad(
                "requiresGrad",
                "only a tensor that no recorded call computed can be changed",
            ));
        }
        if on && !self.dtype().is_float() {
            return Err(Error::dtype(
                "requiresGrad",
                format!("{} has no gradient; f32 and f16 have", self.dtype()),
            ));
        }
        if on != self.variable.is_some() {
            self.variable = on.then(Variable::leaf);
        }
        Ok(())
    }

    /// The gradient that `backward` has collected here.
    #[must_use]
    pub fn grad(&self) -> Option<Self> {
        self.variable.as_ref().and_then(|v| v.gradient())
    }

    /// Replaces the collected gradient; `None` forgets it.
    ///
    /// # Errors
    /// `GradError` for a gradient of a tensor that requires none; `ShapeError`, `DTypeError` when it is not like the
    /// tensor; `ArgumentError` when it lives on another engine.
    pub fn set_grad(&self, gradient: Option<&Self>) -> Result<()> {
        if let Some(gradient) = gradient {
            self.like_this("grad", "the gradient", gradient)?;
        }
        match &self.variable {
            Some(variable) => variable.set_gradient(gradient.map(Self::as_gradient).transpose()?),
            None if gradient.is_none() => {}
            None => {
                return Err(Error::grad(
                    "grad",
                    "this tensor does not require a gradient; set requiresGrad first",
                ));
            }
        }
        Ok(())
    }

    /// What stands for this tensor as a gradient: itself, or a copy where an optimizer may change it in place.
    fn as_gradient(&self) -> Result<Self> {
        let detached = self.detach();
        if self.variable.is_some() { ops::shape::copied("backward", &detached) } else { Ok(detached) }
    }

    /// Fails unless `other` has this tensor's engine, shape and type.
    fn like_this(&self, op: &'static str, name: &str, other: &Self) -> Result<()> {
        self.same_engine(op, other)?;
        if other.shape() != self.shape() {
            let message = format!(
                "{name} has shape {}; it must be {}, that of the tensor",
                other.shape(),
                self.shape()
            );
            return Err(Error::shape(op, message));
        }
        if other.dtype() != self.dtype() {
            let message = format!("{name} is {}; it must be {}, as the tensor", other.dtype(), self.dtype());
            return Err(Error::dtype(op, message));
        }
        Ok(())
    }

    /// Whether it is a leaf: made, not computed by a recorded call.
    pub(crate) fn is_leaf(&self) -> bool {
        self.variable.as_ref().is_none_or(|v| v.is_leaf())
    }

    /// Whether both are views of one storage.
    pub(crate) fn shares_storage(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.storage().0, &other.storage().0)
    }

    /// The same elements outside the graph.
    #[must_use]
    pub fn detach(&self) -> Self {
        Self { view: Rc::clone(&self.view), variable: None }
    }

    /// Sends a gradient back to every leaf this tensor was computed from; there they add up in [`Tensor::grad`].
    ///
    /// `upstream` is the gradient of this tensor, of its shape and type; a tensor of one element may leave it out (1).
    /// The graph is freed unless `retain` is set.
    ///
    /// # Errors
    /// `GradError` without a graph, without a needed `upstream`, after the graph was freed, or when a saved tensor was
    /// changed in place; `ShapeError`, `DTypeError` for an unfitting `upstream`. Nothing is added when it fails.
    pub fn backward(&self, upstream: Option<&Self>, retain: bool) -> Result<()> {
        let Some(variable) = &self.variable else {
            return Err(Error::grad(
                "backward",
                "this tensor does not require a gradient: none of its inputs has requiresGrad, or it was made in noGrad",
            ));
        };
        let upstream = match upstream {
            Some(up) => {
                self.like_this("backward", "upstream", up)?;
                up.as_gradient()?
            }
            None if self.shape().elements() == 1 => {
                ops::create::full(self.engine(), "backward", *self.shape(), 1.0, self.dtype())?
            }
            None => {
                return Err(Error::grad(
                    "backward",
                    format!(
                        "a tensor of shape {} needs an upstream gradient; only one element can do without",
                        self.shape()
                    ),
                ));
            }
        };
        self.engine().no_grad(|| autograd::backward(variable, upstream, retain))
    }

    /// The elements in row-major order, once the device has computed them. They are those of the moment of the call,
    /// whatever happens to the tensor before they arrive.
    ///
    /// # Errors
    /// `DisposedError`, `DeviceLostError`, `IndexError` for an index that an earlier call found out of range.
    pub fn data(&self) -> impl Future<Output = Result<HostData>> + use<> {
        let started = self.engine().no_grad(|| ops::shape::contiguous("data", self)).map(|dense| {
            let (start, count) = (dense.layout().offset(), dense.shape().elements());
            self.engine().backend().read("data", dense.storage(), start, count)
        });
        async move { started?.await }
    }

    /// Fails when `other` lives on another engine.
    pub(crate) fn same_engine(&self, op: &'static str, other: &Self) -> Result<()> {
        if self.engine() == other.engine() {
            return Ok(());
        }
        Err(Error::argument(
            op,
            "the tensors belong to different engines; read one and make it anew on the other",
        ))
    }

    /// Puts `output` on the tape as the result of `op`, if any input needs a gradient and recording is on.
    ///
    /// Saved tensors that are variables must be among the inputs.
    pub(crate) fn recorded(
        self,
        op: &'static str,
        inputs: &[Option<&Self>],
        saved: &[&Self],
        backward: impl Fn(&Backward<'_, Self>) -> Result<Vec<Option<Self>>> + 'static,
    ) -> Self {
        if self.engine().records() && inputs.iter().flatten().any(|t| t.requires_grad()) {
            self.record(op, inputs, saved, Box::new(backward))
        } else {
            self
        }
    }

    fn record(
        self,
        op: &'static str,
        inputs: &[Option<&Self>],
        saved: &[&Self],
        backward: BackwardFn<Self>,
    ) -> Self {
        let variables = inputs.iter().map(|t| t.and_then(|t| t.variable.clone())).collect();
        let saved = saved.iter().map(|&t| t.clone()).collect();
        let variable = autograd::record(op, variables, saved, 1, backward).pop();
        Self { variable, ..self }
    }

    /// Marks an in-place change, so that a backward that saved the old elements fails instead of being wrong.
    pub(crate) fn bump_version(&self) {
        self.storage().bump_version();
    }
}

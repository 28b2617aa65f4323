//! An engine: a device and the state that its tensors share.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

#[cfg(target_arch = "wasm32")]
use crate::backend::checked::Checked;
use crate::backend::cpu::CpuBackend;
#[cfg(target_arch = "wasm32")]
use crate::backend::webgpu::WebGpuBackend;
use crate::backend::{Backend, HostData, Launch, Memory, Storage};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Flags, Kernel, MAX_BINDINGS};
use crate::layout::Layout;
use crate::profile::KernelCall;
use crate::random::Philox;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Scalars that are kept for the next call with the same number; when there are more, all are forgotten.
const KEEP_SCALARS: usize = 32;

/// A device, made with [`Engine::cpu`] or by the JavaScript layer, on which tensors live and operations run.
///
/// Cloning gives another handle to the same engine.
#[derive(Clone)]
pub struct Engine(Rc<Inner>);

struct Inner {
    backend: Box<dyn Backend>,
    /// The same backend, where it is WebGPU: what only that one can.
    #[cfg(target_arch = "wasm32")]
    gpu: Option<WebGpuBackend>,
    paused: Cell<u32>,
    profiling: Cell<bool>,
    random: RefCell<Philox>,
    scalars: RefCell<Vec<Scalar>>,
}

/// A scalar that an operation was called with. A storage, not a tensor, which would hold the engine that holds it.
struct Scalar {
    dtype: DType,
    bits: u32,
    storage: Storage,
    /// Bytes of the engine's that it takes.
    size: u64,
}

impl Inner {
    fn new(backend: Box<dyn Backend>) -> Self {
        Self {
            backend,
            #[cfg(target_arch = "wasm32")]
            gpu: None,
            paused: Cell::new(0),
            profiling: Cell::new(false),
            random: RefCell::new(Philox::new(0)),
            scalars: RefCell::default(),
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Engine").field(&self.device()).finish()
    }
}

impl PartialEq for Engine {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Engine {
    /// An engine on the calling thread's CPU.
    ///
    /// ```
    /// # async fn example() -> wgrad::Result<()> {
    /// let engine = wgrad::Engine::cpu();
    /// let a = engine.tensor(&[1.0, -2.0, 0.5], &[3])?;
    /// let b = engine.tensor(&[3.0, 0.25, -1.0], &[3])?;
    /// let y = a.silu_mul(&b)?.data().await?; // silu(a) * b
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn cpu() -> Self {
        Self::on_cpu(None)
    }

    /// An engine on the calling thread's CPU that keeps `keep` bytes of freed memory for reuse.
    pub(crate) fn on_cpu(keep: Option<u64>) -> Self {
        Self::with_backend(Box::new(CpuBackend::keeping(keep)))
    }

    /// An engine on the adapter that `navigator.gpu` gives, a software one included.
    ///
    /// # Errors
    /// `UnsupportedError` when there is no WebGPU, no adapter or no device.
    #[cfg(target_arch = "wasm32")]
    pub async fn webgpu() -> Result<Self> {
        Self::from_adapter(&crate::backend::webgpu::device::request_adapter().await?).await
    }

    /// An engine on a device of this `GPUAdapter`, with every feature and limit it has.
    ///
    /// # Errors
    /// `UnsupportedError` when the adapter gives no device.
    #[cfg(target_arch = "wasm32")]
    pub async fn from_adapter(adapter: &wasm_bindgen::JsValue) -> Result<Self> {
        let device = crate::backend::webgpu::device::request_device(adapter).await?;
        let software = crate::backend::webgpu::device::is_software(&device);
        Self::on_device(device, true, software, false, None)
    }

    /// An engine on this `GPUDevice`, which stays the caller's: disposing the engine leaves it alive.
    ///
    /// # Errors
    /// `UnsupportedError` when it is no device.
    #[cfg(target_arch = "wasm32")]
    pub fn from_device(device: wasm_bindgen::JsValue) -> Result<Self> {
        let software = crate::backend::webgpu::device::is_software(&device);
        Self::on_device(device, false, software, false, None)
    }

    /// An engine on this `GPUDevice`; disposing the engine destroys it if it is `owned`. With `debug` the CPU checks every call;
    /// `keep` is how many bytes of freed memory are kept for reuse.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn on_device(
        device: wasm_bindgen::JsValue,
        owned: bool,
        software: bool,
        debug: bool,
        keep: Option<u64>,
    ) -> Result<Self> {
        let gpu = WebGpuBackend::from_device(device, owned, software, keep)?;
        let mut backend: Box<dyn Backend> = Box::new(gpu.clone());
        if debug {
            backend = Box::new(Checked::new(backend));
        }
        Ok(Self(Rc::new(Inner { gpu: Some(gpu), ..Inner::new(backend) })))
    }

    /// The `GPUDevice` of a WebGPU engine.
    #[cfg(target_arch = "wasm32")]
    #[must_use]
    pub fn gpu_device(&self) -> Option<wasm_bindgen::JsValue> {
        self.0.gpu.as_ref().map(|gpu| gpu.handle().clone())
    }

    /// Whether this WebGPU engine's device can compile a variant.
    #[cfg(target_arch = "wasm32")]
    #[must_use]
    pub fn offers(&self, variant: crate::kernel::Variant) -> bool {
        self.0.gpu.as_ref().is_some_and(|gpu| gpu.offers(variant))
    }

    /// The variant that a call of a kernel takes on this WebGPU engine's device.
    #[cfg(target_arch = "wasm32")]
    #[must_use]
    pub fn variant(
        &self,
        kernel: &Kernel,
        flags: Flags,
        dtype: DType,
        params: &[u8],
    ) -> Option<crate::kernel::Variant> {
        self.0.gpu.as_ref().map(|gpu| gpu.variant(kernel, flags, dtype, params))
    }

    /// Makes this WebGPU engine take one form of reductions wherever a kernel has it, so that tests reach those that
    /// the device would not choose; `None` leaves the choice to the device again.
    #[cfg(target_arch = "wasm32")]
    pub fn force_strategy(&self, strategy: Option<crate::kernel::Strategy>) {
        if let Some(gpu) = &self.0.gpu {
            gpu.force(strategy);
        }
    }

    /// Compiles a variant of a kernel on this WebGPU engine's device.
    ///
    /// # Errors
    /// `KernelError` with the compiler's words.
    #[cfg(target_arch = "wasm32")]
    pub async fn compile(&self, kernel: &'static Kernel, variant: crate::kernel::Variant) -> Result<()> {
        match &self.0.gpu {
            Some(gpu) => gpu.compile(kernel, variant).await,
            None => Err(Error::argument("compile", "only a WebGPU engine compiles shaders")),
        }
    }

    pub(crate) fn with_backend(backend: Box<dyn Backend>) -> Self {
        Self(Rc::new(Inner::new(backend)))
    }

    /// `"cpu"` or `"webgpu"`.
    #[must_use]
    pub fn device(&self) -> &'static str {
        self.0.backend.name()
    }

    /// What the engine's tensors hold. Scalars that it keeps by itself are not among the bytes in use.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let memory = self.0.backend.memory();
        let scalars: u64 = self.0.scalars.borrow().iter().map(|s| s.size).sum();
        Memory { bytes_used: memory.bytes_used - scalars, ..memory }
    }

    /// Hands queued work to the device without waiting for it.
    ///
    /// # Errors
    /// `DisposedError`, `DeviceLostError`.
    pub fn flush(&self) -> Result<()> {
        self.0.backend.flush()
    }

    /// Resolves once the device has done everything queued so far.
    ///
    /// # Errors
    /// `DisposedError`, `DeviceLostError`, or the first fault of the queued work.
    pub fn sync(&self) -> impl Future<Output = Result<()>> + use<> {
        self.0.backend.sync()
    }

    /// Notes what every call of a kernel costs, until [`Engine::profile_stop`]. Work that was queued before is not in the
    /// profile, but may still run beside it: wait for [`Engine::sync`] first.
    ///
    /// ```
    /// # async fn example() -> wgrad::Result<()> {
    /// let engine = wgrad::Engine::cpu();
    /// let a = engine.ones(&[64, 64])?;
    /// engine.profile_start()?;
    /// a.matmul(&a)?;
    /// let calls = engine.profile_stop().await?;
    /// assert_eq!((calls[0].kernel, calls[0].flops), ("matmul", 2 * 64 * 64 * 64));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `ArgumentError` during a profile: they do not nest; `UnsupportedError` where the device cannot; `DisposedError`,
    /// `DeviceLostError`.
    pub fn profile_start(&self) -> Result<()> {
        if self.0.profiling.get() {
            return Err(Error::argument(
                "profile",
                "a profile of this engine is under way; await it first, since profiles do not nest",
            ));
        }
        self.0.backend.profile_start()?;
        self.0.profiling.set(true);
        Ok(())
    }

    /// Ends a profile: its calls in order, once the device has done them.
    ///
    /// # Errors
    /// `ArgumentError` when there is no profile under way; otherwise as [`Engine::sync`].
    pub fn profile_stop(&self) -> impl Future<Output = Result<Vec<KernelCall>>> + use<> {
        let engine = self.clone();
        let stopped = engine.0.profiling.get().then(|| engine.0.backend.profile_stop());
        async move {
            let Some(stopped) = stopped else {
                return Err(Error::argument("profile", "no profile is under way"));
            };
            let calls = stopped.await;
            // Only now: the next one must not overlap with the waiting.
            engine.0.profiling.set(false);
            calls
        }
    }

    /// Gives the device's memory back; every later call on the engine or its tensors is a `DisposedError`.
    pub fn dispose(&self) {
        self.0.scalars.take();
        self.0.backend.dispose();
    }

    /// Runs `f` without recording: its results need no gradient.
    pub fn no_grad<T>(&self, f: impl FnOnce() -> T) -> T {
        self.pause_recording(true);
        let result = f();
        self.pause_recording(false);
        result
    }

    /// Starts or ends a stretch without recording.
    pub(crate) fn pause_recording(&self, pause: bool) {
        let depth = self.0.paused.get();
        self.0.paused.set(if pause { depth + 1 } else { depth.saturating_sub(1) });
    }

    pub(crate) fn records(&self) -> bool {
        self.0.paused.get() == 0
    }

    /// Sets the state of the random numbers: equal seeds give equal numbers on every device.
    pub fn manual_seed(&self, seed: u64) {
        self.0.random.replace(Philox::new(seed));
    }

    /// A tensor of `f32` values in row-major order.
    ///
    /// # Errors
    /// `ShapeError` when `values` are not as many as `shape` has elements; `LimitError` when memory is short.
    pub fn tensor(&self, values: &[f32], shape: &[usize]) -> Result<Tensor> {
        self.upload("tensor", HostData::F32(values.to_vec()), shape, DType::F32)
    }

    /// A tensor of integers in row-major order.
    ///
    /// # Errors
    /// As [`Engine::tensor`].
    pub fn tensor_i32(&self, values: &[i32], shape: &[usize]) -> Result<Tensor> {
        self.upload("tensor", HostData::I32(values.to_vec()), shape, DType::I32)
    }

    /// A tensor of `dtype` from elements in its host type (`f16` from `f32`, `bool` from `u32`).
    ///
    /// # Errors
    /// As [`Engine::tensor`]; `DTypeError` when the host type is another.
    pub fn tensor_from(&self, data: HostData, shape: &[usize], dtype: DType) -> Result<Tensor> {
        self.upload("tensor", data, shape, dtype)
    }

    pub(crate) fn upload(
        &self,
        op: &'static str,
        data: HostData,
        dims: &[usize],
        dtype: DType,
    ) -> Result<Tensor> {
        let shape = Shape::new(op, dims)?;
        if data.len() != shape.elements() {
            return Err(Error::shape(
                op,
                format!("{} values for shape {shape}, which has {} elements", data.len(), shape.elements()),
            ));
        }
        let fits = matches!(
            (&data, dtype),
            (HostData::F32(_), DType::F32 | DType::F16)
                | (HostData::I32(_), DType::I32)
                | (HostData::U32(_), DType::U32 | DType::Bool)
        );
        if !fits {
            return Err(Error::dtype(op, format!("these values cannot make a tensor of {dtype}")));
        }
        let storage = self.0.backend.upload(op, dtype, data)?;
        Ok(Tensor::new(self.clone(), storage, Layout::contiguous(shape), dtype))
    }

    /// A tensor of a typed array of 32-bit elements, straight to the GPU's queue: large ones would be copied twice more on the
    /// way through the module's memory. `copy` makes such a copy, where there is no other way; `None` where it is the only one.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn upload_array(
        &self,
        array: &js_sys::Object,
        length: usize,
        dims: &[usize],
        dtype: DType,
        copy: &dyn Fn() -> Result<HostData>,
    ) -> Result<Option<Tensor>> {
        let shape = Shape::new("tensor", dims)?;
        let Some(gpu) = self.0.gpu.as_ref().filter(|_| shape.elements() == length) else { return Ok(None) };
        let storage = gpu.upload_array("tensor", dtype, array, length, copy)?;
        Ok(storage.map(|storage| Tensor::new(self.clone(), storage, Layout::contiguous(shape), dtype)))
    }

    /// A tensor filled with one value.
    ///
    /// # Errors
    /// `LimitError` when memory is short; `ArgumentError` for a value that an integer type does not hold.
    pub fn full(&self, shape: &[usize], value: f64, dtype: DType) -> Result<Tensor> {
        self.filled("full", shape, value, dtype)
    }

    pub(crate) fn filled(
        &self,
        op: &'static str,
        shape: &[usize],
        value: f64,
        dtype: DType,
    ) -> Result<Tensor> {
        crate::ops::create::full(self, op, Shape::new(op, shape)?, value, dtype)
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// `LimitError` when memory is short.
    pub fn zeros(&self, shape: &[usize]) -> Result<Tensor> {
        self.filled("zeros", shape, 0.0, DType::F32)
    }

    /// A tensor of ones.
    ///
    /// # Errors
    /// `LimitError` when memory is short.
    pub fn ones(&self, shape: &[usize]) -> Result<Tensor> {
        self.filled("ones", shape, 1.0, DType::F32)
    }

    /// Uniform random numbers in `[low, high)`.
    ///
    /// # Errors
    /// `LimitError` when memory is short.
    pub fn uniform(&self, shape: &[usize], low: f32, high: f32, dtype: DType) -> Result<Tensor> {
        let n = Shape::new("rand", shape)?.elements();
        let mut values = self.0.random.borrow_mut().uniform(n, low, high)?;
        if dtype == DType::F16 {
            // Rounding to f16 may reach the open end.
            let inside = |v: f32| half::f16::from_f32(v).to_f32() < high;
            values.iter_mut().filter(|v| !inside(**v)).for_each(|v| *v = low);
        }
        self.upload("rand", HostData::F32(values), shape, dtype)
    }

    /// Uniform random numbers in `[0, 1)`.
    ///
    /// # Errors
    /// `LimitError` when memory is short.
    pub fn rand(&self, shape: &[usize]) -> Result<Tensor> {
        self.uniform(shape, 0.0, 1.0, DType::F32)
    }

    /// Normal random numbers of mean 0 and variance 1.
    ///
    /// # Errors
    /// `LimitError` when memory is short.
    pub fn randn(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let n = Shape::new("randn", shape)?.elements();
        let values = self.0.random.borrow_mut().normal(n)?;
        self.upload("randn", HostData::F32(values), shape, dtype)
    }

    /// A fresh contiguous tensor; its content is arbitrary until a kernel writes it.
    pub(crate) fn empty(&self, op: &'static str, shape: Shape, dtype: DType) -> Result<Tensor> {
        let storage = self.0.backend.alloc(op, dtype, shape.elements())?;
        Ok(Tensor::new(self.clone(), storage, Layout::contiguous(shape), dtype))
    }

    /// A scalar with these bits (an f32's for `F16`) that whoever asks for it shares: nothing may write into it. A number beside
    /// a tensor is mostly the same again at the next step, and as a tensor of its own would take a kernel or a write each time.
    pub(crate) fn scalar(&self, op: &'static str, bits: u32, dtype: DType) -> Result<Tensor> {
        let mut scalars = self.0.scalars.borrow_mut();
        let known = scalars.iter().find(|s| s.dtype == dtype && s.bits == bits);
        let storage = if let Some(scalar) = known {
            scalar.storage.clone()
        } else {
            if scalars.len() == KEEP_SCALARS {
                scalars.clear();
            }
            let used = || self.0.backend.memory().bytes_used;
            let before = used();
            // Written by the host: a kernel could be lost with its list, and the number would be wrong ever after.
            let storage = self.0.backend.upload(op, dtype, HostData::from_words(dtype, vec![bits]))?;
            scalars.push(Scalar { dtype, bits, storage: storage.clone(), size: used() - before });
            storage
        };
        Ok(Tensor::new(self.clone(), storage, Layout::contiguous(Shape::from_checked(&[])), dtype))
    }

    /// Queues a kernel; `dtype` is that of its `scalar` bindings.
    pub(crate) fn run<P: bytemuck::Pod>(
        &self,
        kernel: &'static Kernel,
        flags: Flags,
        dtype: DType,
        params: &P,
        tensors: &[Option<&Tensor>],
    ) -> Result<()> {
        self.run_bytes(kernel, flags, dtype, bytemuck::bytes_of(params), tensors)
    }

    pub(crate) fn run_bytes(
        &self,
        kernel: &'static Kernel,
        flags: Flags,
        dtype: DType,
        params: &[u8],
        tensors: &[Option<&Tensor>],
    ) -> Result<()> {
        let mut space: [Option<&Storage>; MAX_BINDINGS] = [None; MAX_BINDINGS];
        let buffers = &mut space[..tensors.len()];
        for (buffer, tensor) in buffers.iter_mut().zip(tensors) {
            *buffer = tensor.map(Tensor::storage);
        }
        self.0.backend.run(&Launch { kernel, flags, dtype, params, buffers })
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        self.0.backend.as_ref()
    }
}

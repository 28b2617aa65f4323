//! The WebGPU backend: calls are noted in a list, handed over in one submit, read back through staging buffers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use half::f16;
use wasm_bindgen::prelude::{JsCast, JsValue};
use wasm_bindgen_futures::spawn_local;
use wgpu::webgpu::{GpuBuffer, GpuDevice};

use super::{Backend, Buffer, HostData, Launch, LocalFuture, Memory, Storage, disposed, try_collect};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{Element, Flags, Kernel, Strategy, Traits, Variant};
use crate::profile::KernelCall;
use crate::wgsl::Scalar;

pub(crate) mod device;
mod pipelines;
mod pool;
mod recorder;
mod table;

use device::{Capabilities, Listener, message, settled, usage};
use pipelines::Pipelines;
pub(crate) use pool::GpuMemory;
use pool::Pool;
use recorder::{Recorder, gpu};

/// Most workgroups along one dimension of a dispatch.
const MAX_WORKGROUPS: u64 = 65_535;

/// How long the news of a lost device may take after a read has failed.
const LOSS_TOLD_MS: u32 = 1000;

/// Bytes of the device's record of values out of range.
const FAULTS_SIZE: u64 = 16;

/// What became of the device.
#[derive(Default)]
struct State {
    disposed: Cell<bool>,
    lost: RefCell<Option<String>>,
    /// The first error that the device reported by itself: the next read rejects with it.
    fault: RefCell<Option<Error>>,
    /// Whether a call that can report values out of range was noted since the last read.
    faults_pending: Cell<bool>,
    flush_planned: Cell<bool>,
    /// The form of reductions to take instead of the device's own.
    forced: Cell<Option<Strategy>>,
    /// Hears of errors, on a device that is the engine's own; the device goes with it.
    listener: RefCell<Option<Listener>>,
}

/// A copy on its way to the host.
struct Copied {
    staging: GpuBuffer,
    /// Words asked for; the record of faults follows them where `faults` is set.
    words: usize,
    faults: bool,
}

struct Shared {
    owned: bool,
    device: GpuDevice,
    capabilities: Capabilities,
    pool: Rc<Pool>,
    pipelines: Pipelines,
    recorder: RefCell<Recorder>,
    faults: GpuBuffer,
    state: State,
}

/// Runs kernels on a WebGPU device.
#[derive(Clone)]
pub(crate) struct WebGpuBackend(Rc<Shared>);

impl WebGpuBackend {
    /// This device; unless `owned`, disposing the engine leaves it alive. `software` where a CPU pretends to be a GPU.
    pub fn from_device(handle: JsValue, owned: bool, software: bool) -> Result<Self> {
        let device: GpuDevice = handle.unchecked_into();
        let capabilities = device::capabilities(&device, software)?;
        let kind = usage::STORAGE | usage::COPY_SRC | usage::COPY_DST;
        let shared = Rc::new(Shared {
            pool: Rc::new(Pool::new(device.clone(), capabilities.max_binding)),
            pipelines: Pipelines::default(),
            recorder: RefCell::new(Recorder::new(&device, capabilities.uniform_alignment)),
            state: State::default(),
            faults: device::create_buffer(&device, "faults", FAULTS_SIZE as f64, kind),
            capabilities,
            owned,
            device,
        });
        watch(&shared);
        Ok(Self(shared))
    }

    /// The JavaScript device.
    pub fn handle(&self) -> &JsValue {
        self.0.device.as_ref()
    }

    /// Compiles one variant; an error is the compiler's.
    pub async fn compile(&self, kernel: &'static Kernel, variant: Variant) -> Result<()> {
        let device = &self.0.device;
        device::push_error_scope(device);
        let made = pipelines::create(device, kernel, variant);
        let error = settled(device::pop_error_scope(device)).await;
        made?;
        match error.map(|e| e.as_string()) {
            Ok(Some(text)) => Err(Error::new(ErrorKind::Kernel, kernel.name, text)),
            _ => Ok(()),
        }
    }

    /// The variant that a call takes on this device.
    pub fn variant(&self, kernel: &Kernel, flags: Flags, dtype: DType, params: &[u8]) -> Variant {
        let strategy = self.0.strategy(kernel);
        let traits = Traits { strategy, min_subgroup: self.0.capabilities.min_subgroup };
        Variant { flags: (kernel.tune)(params, flags, traits), scalar: self.0.scalar(dtype), strategy }
    }

    /// Takes this form of reductions where a kernel has it, or the device's own again.
    pub fn force(&self, strategy: Option<Strategy>) {
        self.0.state.forced.set(strategy);
    }

    /// Whether a variant is one that this device can compile.
    pub fn offers(&self, variant: Variant) -> bool {
        let caps = &self.0.capabilities;
        (variant.scalar != Scalar::F16 || caps.f16)
            && (variant.strategy != Strategy::Subgroups || caps.subgroups)
    }
}

/// Keeps an eye on the device: its loss, and errors that nothing else catches.
fn watch(shared: &Rc<Shared>) {
    let weak = Rc::downgrade(shared);
    let lost = device::loss(&shared.device);
    spawn_local(async move {
        let reason = settled(lost).await.unwrap_or(JsValue::UNDEFINED);
        if let Some(shared) = weak.upgrade() {
            shared.state.lost.replace(Some(reason.as_string().unwrap_or_default()));
        }
    });
    // On a device of the caller's, other people's errors would arrive here too: error scopes serve there.
    if shared.owned {
        let weak = Rc::downgrade(shared);
        let listener = Listener::new(move |text: String| {
            if let Some(shared) = weak.upgrade() {
                shared.note_fault(text);
            }
        });
        device::on_error(&shared.device, &listener);
        shared.state.listener.replace(Some(listener));
    }
}

impl Shared {
    fn check(&self, op: &'static str) -> Result<()> {
        if self.state.disposed.get() {
            return Err(disposed(op));
        }
        match &*self.state.lost.borrow() {
            Some(reason) => Err(lost_error(op, reason)),
            None => Ok(()),
        }
    }

    /// Memory for a tensor; `idle` where the host will write it.
    fn alloc(&self, op: &'static str, dtype: DType, elements: usize, idle: bool) -> Result<Storage> {
        self.check(op)?;
        // Whole vec4s, so that kernels may read and write past the last element.
        let bytes = (elements as u64 * self.scalar(dtype).bytes() as u64).next_multiple_of(16).max(16);
        Ok(Storage::new(Buffer::Gpu(self.pool.alloc(op, bytes, idle)?), dtype, elements))
    }

    fn flush(self: &Rc<Self>) {
        if !self.owned {
            device::push_error_scope(&self.device);
        }
        self.recorder.borrow_mut().flush(&self.device, &self.pipelines, &self.faults);
        self.pool.settle();
        if !self.owned {
            let (error, weak) = (device::pop_error_scope(&self.device), Rc::downgrade(self));
            spawn_local(async move {
                let text = settled(error).await.ok().and_then(|e| e.as_string());
                if let (Some(text), Some(shared)) = (text, weak.upgrade()) {
                    shared.note_fault(text);
                }
            });
        }
    }

    fn note_fault(&self, text: String) {
        self.state.fault.borrow_mut().get_or_insert_with(|| Error::new(ErrorKind::Kernel, "webgpu", text));
    }

    /// Flushes at the end of the running JavaScript task, unless something does before.
    fn plan_flush(self: &Rc<Self>) {
        if self.state.flush_planned.replace(true) {
            return;
        }
        let weak = Rc::downgrade(self);
        spawn_local(async move {
            if let Some(shared) = weak.upgrade() {
                shared.state.flush_planned.set(false);
                if shared.check("flush").is_ok() {
                    shared.flush();
                }
            }
        });
    }

    fn scalar(&self, dtype: DType) -> Scalar {
        match dtype {
            DType::F32 => Scalar::F32,
            DType::F16 if self.capabilities.f16 => Scalar::F16,
            DType::F16 => Scalar::F16InF32,
            DType::I32 => Scalar::I32,
            DType::U32 | DType::Bool => Scalar::U32,
        }
    }

    fn strategy(&self, kernel: &Kernel) -> Strategy {
        if let Some(forced) = self.state.forced.get().filter(|s| kernel.strategies.contains(s)) {
            return forced;
        }
        let caps = &self.capabilities;
        let preferred: &[Strategy] = match (caps.software, caps.subgroups) {
            (true, _) => &[Strategy::Serial, Strategy::Workgroup],
            (false, true) => &[Strategy::Subgroups, Strategy::Workgroup],
            (false, false) => &[Strategy::Workgroup],
        };
        let found = preferred.iter().copied().find(|s| kernel.strategies.contains(s));
        found.unwrap_or(Strategy::Elementwise)
    }

    /// Hands over what is queued and then a copy of `bytes` from `start` of a buffer, with the record of faults behind
    /// them. What the caller does next comes later in the queue and is not seen.
    fn copy_out(self: &Rc<Self>, source: &GpuBuffer, start: u64, bytes: u64) -> Copied {
        self.flush();
        let faults = self.state.faults_pending.replace(false);
        let extra = if faults { FAULTS_SIZE as f64 } else { 0.0 };
        let staging = device::copy_out(&self.device, source, start as f64, bytes as f64, &self.faults, extra);
        Copied { staging, words: (bytes / 4) as usize, faults }
    }

    /// Waits for a copy and takes its words.
    async fn arrive(&self, op: &'static str, copied: Copied) -> Result<Vec<u32>> {
        if let Err(error) = settled(device::map(&copied.staging)).await {
            return Err(self.why_no_map(op, &error).await);
        }
        let count = copied.words + if copied.faults { FAULTS_SIZE as usize / 4 } else { 0 };
        let mut words = try_collect(op, count, std::iter::repeat_n(0u32, count))?;
        device::take(&copied.staging, &mut words)
            .map_err(|e| Error::new(ErrorKind::Kernel, op, message(&e)))?;
        if let Some(error) = self.take_fault() {
            return Err(error);
        }
        if copied.faults {
            let record = words.split_off(copied.words);
            if record[0] > 0 {
                return Err(crate::kernels::fault(record[1] as usize, record[2] as usize, record[3] as i32));
            }
        }
        Ok(words)
    }

    /// Why a staging buffer could not be mapped: mostly because the device is gone, which is told in a later task.
    async fn why_no_map(&self, op: &'static str, error: &JsValue) -> Error {
        if let Err(known) = self.check(op) {
            return known;
        }
        let told = settled(device::loss_within(&self.device, LOSS_TOLD_MS)).await;
        if let Some(reason) = told.ok().and_then(|reason| reason.as_string()) {
            let lost = lost_error(op, &reason);
            self.state.lost.replace(Some(reason));
            return lost;
        }
        self.take_fault().unwrap_or_else(|| Error::new(ErrorKind::Kernel, op, message(error)))
    }

    fn take_fault(&self) -> Option<Error> {
        self.state.fault.borrow_mut().take()
    }
}

fn lost_error(op: &'static str, reason: &str) -> Error {
    Error::new(
        ErrorKind::DeviceLost,
        op,
        format!("the GPU device is lost ({reason}); make a new engine with init()"),
    )
}

fn no_profile() -> Error {
    Error::new(ErrorKind::Unsupported, "profile", "calls are not timed on WebGPU; take a CPU engine")
}

/// A one-dimensional count of workgroups, folded into two dimensions.
fn fold(workgroups: u64) -> (u32, u32) {
    let rows = workgroups.div_ceil(MAX_WORKGROUPS).max(1);
    (workgroups.div_ceil(rows) as u32, rows as u32)
}

impl Backend for WebGpuBackend {
    fn name(&self) -> &'static str {
        "webgpu"
    }

    fn alloc(&self, op: &'static str, dtype: DType, elements: usize) -> Result<Storage> {
        self.0.alloc(op, dtype, elements, false)
    }

    fn upload(&self, op: &'static str, dtype: DType, data: HostData) -> Result<Storage> {
        let storage = self.0.alloc(op, dtype, data.len(), true)?;
        if data.is_empty() {
            return Ok(storage);
        }
        let write = |bytes: &[u8]| device::write(&self.0.device, &gpu(&storage).buffer, bytes);
        match (&data, dtype, self.0.capabilities.f16) {
            (HostData::F32(values), DType::F16, true) => {
                let padding = (values.len() % 2 == 1).then_some(f16::ZERO);
                let halves = values.iter().map(|&v| f16::from_f32(v)).chain(padding);
                let halves = try_collect(op, values.len().next_multiple_of(2), halves)?;
                write(bytemuck::cast_slice(&halves));
            }
            (HostData::F32(values), DType::F16, false) => {
                let rounded = values.iter().map(|&v| f16::from_f32(v).to_f32());
                let rounded = try_collect(op, values.len(), rounded)?;
                write(bytemuck::cast_slice(&rounded));
            }
            _ => write(bytemuck::cast_slice(data.words())),
        }
        Ok(storage)
    }

    fn run(&self, launch: &Launch<'_>) -> Result<()> {
        let (shared, kernel) = (&self.0, launch.kernel);
        shared.check(kernel.name)?;
        let variant = self.variant(kernel, launch.flags, launch.dtype, launch.params);
        let pipeline = shared.pipelines.get(&shared.device, kernel, variant)?;
        let workgroups = (kernel.workgroups)(launch.params, variant.flags, variant.strategy);
        let buffers = launch.buffers.iter().flatten().map(|&s| Rc::clone(gpu(s))).collect();
        if kernel.bindings.last().is_some_and(|b| b.element == Element::Faults) {
            shared.state.faults_pending.set(true);
        }
        let full = shared.recorder.borrow_mut().push(pipeline, buffers, launch.params, fold(workgroups));
        if full {
            shared.flush();
        } else {
            shared.plan_flush();
        }
        Ok(())
    }

    fn read(
        &self,
        op: &'static str,
        storage: &Storage,
        start: usize,
        count: usize,
    ) -> LocalFuture<Result<HostData>> {
        let shared = Rc::clone(&self.0);
        let (dtype, scalar) = (storage.0.dtype, shared.scalar(storage.0.dtype));
        let from = start * scalar.bytes();
        // Copies are of whole words: an odd f16 takes its neighbour along.
        let first = from / 4 * 4;
        let bytes = (from + count * scalar.bytes() - first).next_multiple_of(4);
        let copied =
            shared.check(op).map(|()| shared.copy_out(&gpu(storage).buffer, first as u64, bytes as u64));
        Box::pin(async move {
            let words = shared.arrive(op, copied?).await?;
            if scalar == Scalar::F16 {
                let halves: &[f16] = &bytemuck::cast_slice(&words)[(from - first) / 2..][..count];
                return try_collect(op, count, halves.iter().map(|h| h.to_f32())).map(HostData::F32);
            }
            Ok(HostData::from_words(dtype, words))
        })
    }

    fn flush(&self) -> Result<()> {
        self.0.check("flush")?;
        self.0.flush();
        Ok(())
    }

    fn sync(&self) -> LocalFuture<Result<()>> {
        let shared = Rc::clone(&self.0);
        // A copy comes after everything before it in the queue; without one, mapping waits for nothing.
        let copied = shared.check("sync").map(|()| shared.copy_out(&shared.faults, 0, 4));
        Box::pin(async move { shared.arrive("sync", copied?).await.map(|_| ()) })
    }

    fn profile_start(&self) -> Result<()> {
        Err(no_profile())
    }

    fn profile_stop(&self) -> LocalFuture<Result<Vec<KernelCall>>> {
        Box::pin(std::future::ready(Err(no_profile())))
    }

    fn memory(&self) -> Memory {
        Memory { bytes_used: self.0.pool.used(), bytes_allocated: self.0.pool.allocated() }
    }

    fn dispose(&self) {
        if self.0.state.disposed.replace(true) {
            return;
        }
        self.0.recorder.borrow_mut().dispose();
        self.0.pool.dispose();
        self.0.faults.destroy();
        if self.0.owned {
            self.0.device.destroy();
        }
    }
}

//! The WebGPU backend: calls are noted in a list, handed over in one submit, read back through staging buffers.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use half::f16;
use js_sys::Object;
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
mod event;
mod handover;
mod memory;
mod pipelines;
mod pool;
mod readback;
mod recorder;
mod submission;
mod table;
mod timing;

use device::{Capabilities, settled, usage};
use pipelines::{Pipeline, Pipelines};
pub(crate) use pool::GpuMemory;
use pool::{Pool, PooledBuffer};
use readback::{RECORD_SIZE, Source, Staging};
use recorder::{Buffers, Call, FLUSH_AT, Recorder};
use submission::Submissions;
use timing::Profile;

/// Most workgroups along one dimension of a dispatch.
const MAX_WORKGROUPS: u64 = 65_535;

/// How long the list may become while it waits for pipelines and memory; then the page waits too.
const PATIENCE: usize = 8 * FLUSH_AT;

/// What became of the device.
#[derive(Default)]
struct State {
    disposed: Cell<bool>,
    lost: RefCell<Option<String>>,
    /// Whether a call that can report values out of range was noted since the last read.
    record_pending: Cell<bool>,
    flush_planned: Cell<bool>,
    /// How often the host wrote into a buffer.
    writes: Cell<u64>,
    /// The form of reductions to take instead of the device's own.
    forced: Cell<Option<Strategy>>,
}

struct Shared {
    owned: bool,
    device: GpuDevice,
    capabilities: Capabilities,
    pool: Rc<Pool>,
    pipelines: Pipelines,
    recorder: RefCell<Recorder>,
    submissions: RefCell<Submissions>,
    staging: Staging,
    /// The record of values out of range.
    record: GpuBuffer,
    profile: Profile,
    state: State,
}

/// Runs kernels on a WebGPU device.
#[derive(Clone)]
pub(crate) struct WebGpuBackend(Rc<Shared>);

impl WebGpuBackend {
    /// This device; unless `owned`, disposing the engine leaves it alive. `software` where a CPU pretends to be a GPU; `keep`
    /// says how many bytes of free buffers to keep.
    pub fn from_device(handle: JsValue, owned: bool, software: bool, keep: Option<u64>) -> Result<Self> {
        let device: GpuDevice = handle.unchecked_into();
        let capabilities = device::capabilities(&device, software)?;
        let kind = usage::STORAGE | usage::COPY_SRC | usage::COPY_DST;
        let shared = Rc::new(Shared {
            pool: Rc::new(Pool::new(device.clone(), capabilities.max_binding, keep)),
            pipelines: Pipelines::default(),
            recorder: RefCell::new(Recorder::new(&device, capabilities.uniform_alignment)),
            submissions: RefCell::default(),
            staging: Staging::default(),
            state: State::default(),
            profile: Profile::default(),
            record: device::create_buffer(&device, "record", RECORD_SIZE as f64, kind),
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
        let pipeline = pipelines::create(&self.0.device, kernel, variant, 0)?;
        pipeline.compile(self.0.device.clone()).await;
        pipeline.failure.take().map_or(Ok(()), Err)
    }

    /// The variant that a call takes on this device.
    pub fn variant(&self, kernel: &Kernel, flags: Flags, dtype: DType, params: &[u8]) -> Variant {
        let strategy = self.0.strategy(kernel);
        let traits = Traits { strategy, min_subgroup: self.0.capabilities.min_subgroup };
        Variant { flags: (kernel.tune)(params, flags, traits), scalar: self.0.scalar(dtype), strategy }
    }

    /// Memory with the elements of a typed array, whose bits are those of `dtype` here; `None` where they are not. `copy` makes
    /// a copy for the case that the memory is not there yet.
    pub fn upload_array(
        &self,
        op: &'static str,
        dtype: DType,
        array: &Object,
        length: usize,
        copy: &dyn Fn() -> Result<HostData>,
    ) -> Result<Option<Storage>> {
        if dtype == DType::F16 || length == 0 {
            return Ok(None);
        }
        let storage = self.0.alloc(op, dtype, length, true)?;
        let buffer = gpu(&storage);
        if buffer.is_asked() {
            self.0.write(buffer, copy()?.into_words());
        } else {
            self.0.wrote(buffer);
            buffer.with(|handle| device::write_array(&self.0.device, handle, array));
        }
        Ok(Some(storage))
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

/// Keeps an eye on the device: who waits for a lost one shall not wait longer.
fn watch(shared: &Rc<Shared>) {
    let weak = Rc::downgrade(shared);
    let lost = device::loss(&shared.device);
    spawn_local(async move {
        let reason = settled(lost).await.unwrap_or(JsValue::UNDEFINED);
        if let Some(shared) = weak.upgrade() {
            shared.lose(reason.as_string().unwrap_or_default());
        }
    });
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

    fn lose(&self, reason: String) {
        self.state.lost.replace(Some(reason));
        self.abandon();
    }

    /// Nothing that was noted will be done any more.
    fn abandon(&self) {
        self.recorder.borrow_mut().dispose();
        self.submissions.borrow_mut().abandon();
    }

    /// The pipeline of a variant. A new one is compiled while the page goes on; the list waits for it.
    fn pipeline(self: &Rc<Self>, kernel: &'static Kernel, variant: Variant) -> Result<Rc<Pipeline>> {
        let (pipeline, new) = self.pipelines.get(&self.device, kernel, variant)?;
        if let Some(error) = &*pipeline.failure.borrow() {
            return Err(error.clone());
        }
        if new {
            let (weak, pipeline, device) = (Rc::downgrade(self), Rc::clone(&pipeline), self.device.clone());
            spawn_local(async move {
                pipeline.compile(device).await;
                resume(&weak);
            });
        }
        Ok(pipeline)
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
}

/// Goes on with a list that waited.
fn resume(weak: &Weak<Shared>) {
    if let Some(shared) = weak.upgrade()
        && shared.check("flush").is_ok()
    {
        shared.flush();
    }
}

fn lost_error(op: &'static str, reason: &str) -> Error {
    Error::new(
        ErrorKind::DeviceLost,
        op,
        format!("the GPU device is lost ({reason}); make a new engine with init()"),
    )
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
        let words = match (data, dtype, self.0.capabilities.f16) {
            (HostData::F32(values), DType::F16, true) => {
                let bits = |v: Option<&f32>| u32::from(v.map_or(0, |&v| f16::from_f32(v).to_bits()));
                let pairs = values.chunks(2).map(|pair| bits(pair.first()) | bits(pair.get(1)) << 16);
                try_collect(op, values.len().div_ceil(2), pairs)?
            }
            (HostData::F32(mut values), DType::F16, false) => {
                for v in &mut values {
                    *v = f16::from_f32(*v).to_f32();
                }
                HostData::F32(values).into_words()
            }
            (data, ..) => data.into_words(),
        };
        self.0.write(gpu(&storage), words);
        Ok(storage)
    }

    fn run(&self, launch: &Launch<'_>) -> Result<()> {
        let (shared, kernel) = (&self.0, launch.kernel);
        shared.check(kernel.name)?;
        let variant = self.variant(kernel, launch.flags, launch.dtype, launch.params);
        let pipeline = shared.pipeline(kernel, variant)?;
        let workgroups = fold((kernel.workgroups)(launch.params, variant.flags, variant.strategy));
        let mut buffers = Buffers::default();
        for (place, storage) in buffers.iter_mut().zip(launch.buffers.iter().flatten()) {
            *place = Some(Rc::clone(gpu(storage)));
        }
        if kernel.bindings.last().is_some_and(|b| b.element == Element::Faults) {
            shared.state.record_pending.set(true);
        }
        let profiled = shared.profile.note(|| KernelCall::of(launch, &|dtype| shared.scalar(dtype).bytes()));
        let call = Call { pipeline, buffers, workgroups, profiled };
        let noted = shared.recorder.borrow_mut().push(call, launch.params);
        if noted >= PATIENCE {
            shared.flush_all();
        } else if noted % FLUSH_AT == 0 {
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
        let bytes = (from + count * scalar.bytes() - first).next_multiple_of(4) as u64;
        let source = Source::Buffer { buffer: Rc::clone(gpu(storage)), start: first as u64, bytes };
        let copy = shared.check(op).map(|()| shared.copy_out(source, false));
        Box::pin(async move {
            let words = shared.arrive(op, copy?).await?;
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
        // The record is copied after everything before it in the queue; without a copy, mapping waits for nothing.
        let copy = shared.check("sync").map(|()| shared.copy_out(Source::Nothing, true));
        Box::pin(async move { shared.arrive("sync", copy?).await.map(|_| ()) })
    }

    fn profile_start(&self) -> Result<()> {
        self.0.check("profile")?;
        let profile = &self.0.profile;
        profile.timer.get_or_init(|| device::create_timer(&self.0.device, FLUSH_AT as u32));
        profile.start();
        Ok(())
    }

    fn profile_stop(&self) -> LocalFuture<Result<Vec<KernelCall>>> {
        let (shared, done) = (Rc::clone(&self.0), self.sync());
        shared.profile.stop();
        Box::pin(async move {
            let done = done.await;
            let calls = shared.profile.take();
            done.map(|()| calls)
        })
    }

    fn memory(&self) -> Memory {
        let (pool, shared) = (&self.0.pool, &self.0);
        Memory {
            bytes_used: pool.used(),
            bytes_allocated: pool.allocated(),
            bytes_peak: pool.peak(),
            objects_created: pool.created()
                + shared.staging.created()
                + shared.pipelines.created()
                + shared.recorder.borrow().created(),
        }
    }

    fn dispose(&self) {
        if self.0.state.disposed.replace(true) {
            return;
        }
        self.0.abandon();
        self.0.pool.dispose();
        self.0.staging.dispose();
        self.0.record.destroy();
        if self.0.owned {
            self.0.device.destroy();
        }
    }
}

fn gpu(storage: &Storage) -> &Rc<PooledBuffer> {
    match &storage.0.buffer {
        Buffer::Gpu(memory) => &memory.buffer,
        Buffer::Cpu(_) => unreachable!("operations refuse tensors of another engine"),
    }
}

//! The WebGPU backend: calls are noted in a list, handed over in one submit, read back through staging buffers.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};

use half::f16;
use js_sys::{Array, Float64Array, Object, Promise};
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
mod pipelines;
mod pool;
mod readback;
mod recorder;
mod submission;
mod table;

use device::{Capabilities, message, settled, usage};
use pipelines::{Pipeline, Pipelines};
pub(crate) use pool::GpuMemory;
use pool::{Pool, PooledBuffer};
use readback::{Copy, RECORD_SIZE, Source, Staging};
use recorder::{Buffers, Call, FLUSH_AT, Objects, Recorder};
use submission::{Note, Submission, Submissions};

/// Most workgroups along one dimension of a dispatch.
const MAX_WORKGROUPS: u64 = 65_535;

/// How long the news of a lost device may take after a read has failed.
const LOSS_TOLD_MS: u32 = 1000;

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

/// A profile that is being taken.
#[derive(Default)]
struct Profile {
    calls: RefCell<Option<Vec<KernelCall>>>,
    /// What times calls, once there was a profile, on a device that can.
    timer: OnceCell<JsValue>,
}

impl Profile {
    /// Notes a call; its place, if a profile is being taken.
    fn note(&self, call: impl FnOnce() -> KernelCall) -> Option<u32> {
        let mut calls = self.calls.borrow_mut();
        let calls = calls.as_mut()?;
        calls.push(call());
        Some(calls.len() as u32 - 1)
    }

    /// Takes the times of a submission, two a call that is not skipped.
    fn time(&self, submission: &Submission, times: &[f64]) {
        let Some(calls) = &mut *self.calls.borrow_mut() else { return };
        let notes = submission.calls.iter().filter(|note| !note.skipped);
        for (note, times) in notes.zip(times.chunks_exact(2)) {
            if let Some(call) = note.profiled.and_then(|place| calls.get_mut(place as usize)) {
                // Nanoseconds; a device may take two for one.
                call.start = Some(times[0] / 1e3);
                call.time = Some(((times[1] - times[0]) / 1e3).max(0.0));
            }
        }
    }
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

/// The device's answers to a submission; none when it is lost.
async fn heard(answer: Promise) -> Array {
    settled(answer).await.map(JsCast::unchecked_into).unwrap_or_default()
}

/// The device's answer to a submission: a fault that left all of it undone, with the words, and whether it is memory.
fn complaint(answers: &Array) -> Option<(ErrorKind, String)> {
    let invalid = answers.get(0).as_string().map(|text| (ErrorKind::Kernel, text));
    invalid.or_else(|| answers.get(1).as_string().map(|text| (ErrorKind::Limit, text)))
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

    /// Memory for a tensor; `idle` where the host will write it.
    fn alloc(
        self: &Rc<Self>,
        op: &'static str,
        dtype: DType,
        elements: usize,
        idle: bool,
    ) -> Result<Storage> {
        self.check(op)?;
        // Whole vec4s, so that kernels may read and write past the last element.
        let bytes = (elements as u64 * self.scalar(dtype).bytes() as u64).next_multiple_of(16).max(16);
        let memory = self.pool.alloc(op, bytes, idle)?;
        self.sound(&memory.buffer);
        for (buffer, answer) in self.pool.take_asked() {
            spawn_local(confirm(Rc::downgrade(self), op, buffer, answer));
        }
        Ok(Storage::new(Buffer::Gpu(memory), dtype, elements))
    }

    /// What a buffer held does not matter any more.
    fn sound(&self, buffer: &PooledBuffer) {
        if !self.recorder.borrow_mut().sound(buffer.id + 1) {
            self.submissions.borrow_mut().sound(buffer.id + 1);
        }
    }

    /// The host writes into a buffer.
    fn wrote(&self, buffer: &PooledBuffer) {
        self.sound(buffer);
        self.state.writes.set(self.state.writes.get() + 1);
    }

    /// What the host has done to buffers beside the submissions: those cannot be repeated after it.
    fn touched(&self) -> u64 {
        self.state.writes.get() + self.pool.destroyed()
    }

    /// Writes words into a buffer that no noted call uses.
    fn write(&self, buffer: &PooledBuffer, words: Vec<u32>) {
        self.wrote(buffer);
        if let Some(words) = self.pool.let_wait(buffer, words) {
            buffer.with(|handle| device::write(&self.device, handle, bytemuck::cast_slice(&words)));
        }
    }

    fn objects(&self) -> Objects<'_> {
        Objects {
            device: &self.device,
            pipelines: &self.pipelines,
            staging: &self.staging,
            record: &self.record,
            timer: self.profile.timer.get(),
        }
    }

    /// Hands over all that is noted and waits for nothing. What waits comes back here when that is over.
    fn flush(self: &Rc<Self>) {
        loop {
            let mut recorder = self.recorder.borrow_mut();
            let Some((submission, answer)) = recorder.submit(&self.objects(), false) else { break };
            drop(recorder);
            self.remember(submission, answer);
        }
        self.pool.settle();
    }

    /// Hands over all that is noted, whatever the page has to wait for.
    fn flush_all(self: &Rc<Self>) {
        for pipeline in self.recorder.borrow().wanted() {
            pipeline.compile_now(&self.device);
        }
        loop {
            let mut recorder = self.recorder.borrow_mut();
            let Some((submission, answer)) = recorder.submit(&self.objects(), true) else { break };
            drop(recorder);
            self.remember(submission, answer);
        }
        self.pool.settle();
    }

    /// Waits for the device's answer to a submission.
    fn remember(self: &Rc<Self>, submission: Submission, answer: Promise) {
        let submission = Rc::new(submission);
        for copy in &submission.copies {
            copy.submitted.happen();
        }
        if let Some(sent) = self.submissions.borrow_mut().push(Rc::clone(&submission)) {
            self.recorder.borrow_mut().recycle(sent);
        }
        let (weak, touched) = (Rc::downgrade(self), self.touched());
        spawn_local(async move {
            let answers = heard(answer).await;
            let Some(shared) = weak.upgrade() else { return };
            if let Ok(times) = answers.get(2).dyn_into::<Float64Array>() {
                shared.profile.time(&submission, &times.to_vec());
            }
            let verdicts = match complaint(&answers) {
                Some((kind, text)) => shared.examine(&submission, touched, kind, text).await,
                None => Vec::new(),
            };
            submission.verdicts.replace(Some(verdicts));
            shared.submissions.borrow_mut().settle();
        });
    }

    /// Finds out which calls of a rejected submission were at fault. The device has done nothing of it: if nothing came after,
    /// its calls go out again, one by one, so that only what depends on a faulty one is lost.
    async fn examine(
        &self,
        submission: &Rc<Submission>,
        touched: u64,
        kind: ErrorKind,
        text: String,
    ) -> Vec<Option<Error>> {
        let named: Vec<&'static str> =
            submission.calls.iter().filter(|note| !note.skipped).map(Note::kernel).collect();
        let untouched = self.submissions.borrow().is_latest(submission) && self.touched() == touched;
        if kind != ErrorKind::Kernel || !untouched || self.check("").is_err() {
            let mut kernels = named.clone();
            kernels.dedup();
            let error = Error::new(kind, kernels.join(" or "), rejected(&text));
            return vec![Some(error); named.len()];
        }
        let answers = self.recorder.borrow().submit_singly(&self.objects(), submission);
        let mut verdicts = Vec::new();
        let mut names = named.iter();
        for answer in answers {
            let complaint = complaint(&heard(answer).await);
            let Some(name) = names.next() else {
                for copy in &submission.copies {
                    let error =
                        complaint.as_ref().map(|(kind, text)| Error::new(*kind, "read", rejected(text)));
                    let known = copy.error.take();
                    copy.error.replace(known.or(error));
                }
                break;
            };
            // What was wrong may be a bind group: nobody shall find it again.
            if complaint.is_some() {
                self.recorder.borrow_mut().forget_groups();
            }
            verdicts.push(complaint.map(|(kind, text)| Error::new(kind, *name, rejected(&text))));
        }
        verdicts
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

    /// Notes a copy to the host and hands over all that is noted. What the caller does next comes later in the queue and is not
    /// seen.
    fn copy_out(self: &Rc<Self>, source: Source, record: bool) -> Rc<Copy> {
        let record = self.state.record_pending.replace(false) || record;
        let copy = Rc::new(Copy::new(source, record));
        self.recorder.borrow_mut().copy(Rc::clone(&copy));
        self.flush();
        copy
    }

    /// Waits for a copy and takes its words.
    async fn arrive(&self, op: &'static str, copy: Rc<Copy>) -> Result<Vec<u32>> {
        let bytes = copy.bytes();
        copy.submitted.wait().await;
        loop {
            self.check(op)?;
            let Some(staged) = copy.staging.borrow().clone() else { return Err(disposed(op)) };
            let mapped = settled(device::map(&staged.buffer, bytes as f64)).await;
            copy.settled.wait().await;
            let mut words =
                try_collect(op, bytes as usize / 4, std::iter::repeat_n(0u32, bytes as usize / 4))?;
            let taken = mapped.and_then(|_| device::take(&staged.buffer, &mut words));
            let again = copy.staging.borrow().as_ref().is_some_and(|latest| !Rc::ptr_eq(latest, &staged));
            if taken.is_ok() {
                self.staging.give_back(staged);
            }
            if again {
                continue;
            }
            self.check(op)?;
            if let Some(error) = copy.error.take() {
                return Err(error);
            }
            if let Err(error) = taken {
                return Err(self.why_no_map(op, &error).await);
            }
            if copy.record {
                let record = words.split_off((copy.source.bytes() / 4) as usize);
                if record[0] > 0 {
                    let (kernel, place, value) = (record[1] as usize, record[2] as usize, record[3] as i32);
                    return Err(crate::kernels::fault(kernel, place, value));
                }
            }
            return Ok(words);
        }
    }

    /// Why a staging buffer could not be mapped: mostly because the device is gone, which is told in a later task.
    async fn why_no_map(&self, op: &'static str, error: &JsValue) -> Error {
        let told = settled(device::loss_within(&self.device, LOSS_TOLD_MS)).await;
        if let Some(reason) = told.ok().and_then(|reason| reason.as_string()) {
            let lost = lost_error(op, &reason);
            self.lose(reason);
            return lost;
        }
        Error::new(ErrorKind::Kernel, op, message(error))
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

/// Waits for the memory of a new large buffer. If there is none, all that lies unused is given back, and it is asked for once
/// more.
async fn confirm(weak: Weak<Shared>, op: &'static str, buffer: Weak<PooledBuffer>, answer: Promise) {
    // Nothing holds the buffer here while it is waited for: it may be given back and taken again.
    let both = || Some((weak.upgrade().filter(|shared| shared.check(op).is_ok())?, buffer.upgrade()?));
    let complains = async |answer| settled(answer).await.ok().and_then(|text| text.as_string());
    let mut complaint = complains(answer).await;
    if complaint.is_some() {
        let Some((shared, buffer)) = both() else { return };
        shared.pool.empty();
        let again = shared.pool.create_again(&buffer);
        drop((shared, buffer));
        if let Some(again) = again {
            complaint = complains(again).await;
        }
    }
    let Some((shared, buffer)) = both() else { return };
    let waiting = shared.pool.answered(&buffer);
    match (complaint, waiting) {
        (Some(words), _) => shared.pool.give_up(op, &buffer, &words),
        (None, Some(waiting)) => {
            let bytes = bytemuck::cast_slice(&waiting);
            buffer.with(|handle| device::write(&shared.device, handle, bytes));
        }
        (None, None) => {}
    }
    drop(buffer);
    shared.flush();
}

/// What a kernel's error says of the device's words.
fn rejected(text: &str) -> String {
    format!("the GPU rejected it, so that nothing that depends on it can be read: {text}")
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
        profile.calls.replace(Some(Vec::new()));
        Ok(())
    }

    fn profile_stop(&self) -> LocalFuture<Result<Vec<KernelCall>>> {
        let (shared, done) = (Rc::clone(&self.0), self.sync());
        Box::pin(async move {
            let done = done.await;
            let mut calls = shared.profile.calls.take().unwrap_or_default();
            done?;
            // The device's clock has a beginning of its own.
            let first = calls.iter().filter_map(|call| call.start).fold(f64::INFINITY, f64::min);
            for start in calls.iter_mut().filter_map(|call| call.start.as_mut()) {
                *start -= first;
            }
            Ok(calls)
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

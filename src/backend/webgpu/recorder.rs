//! The op list: calls and copies are noted, and handed over in one compute pass and one submit.

use std::rc::Rc;

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::JsValue;
use wgpu::webgpu::{GpuBuffer, GpuDevice};

use super::device::{begin_submission, create_buffer, create_group, submit, usage};
use super::pipelines::{Pipeline, Pipelines};
use super::pool::PooledBuffer;
use super::readback::{Copy, Source, Staging};
use super::submission::{Note, Sent, Submission};
use super::table::Table;

/// Calls of one submit, and that are noted before the list is handed over by itself.
pub(super) const FLUSH_AT: usize = 256;

/// Bind groups that are kept for reuse.
const KEEP_GROUPS: usize = 4096;

/// The most storage buffers of a kernel: what every WebGPU device has.
pub(super) const MAX_BUFFERS: usize = 8;

/// The buffers of a call in the order of its bindings.
pub(super) type Buffers = [Option<Rc<PooledBuffer>>; MAX_BUFFERS];

/// A noted call. It keeps its buffers alive until it was handed over; their tensors may be gone, and later calls may write them.
#[derive(Debug)]
pub(super) struct Call {
    pub pipeline: Rc<Pipeline>,
    pub buffers: Buffers,
    pub workgroups: (u32, u32),
    /// Its place in the profile that is being taken.
    pub profiled: Option<u32>,
}

/// What is noted.
#[derive(Debug)]
enum Item {
    Call(Call),
    Copy(Rc<Copy>),
}

impl Item {
    fn buffers(&self) -> impl Iterator<Item = &Rc<PooledBuffer>> {
        let (many, one) = match self {
            Self::Call(call) => (&call.buffers[..], None),
            Self::Copy(copy) => (&[][..], copy.source.buffer()),
        };
        many.iter().flatten().chain(one)
    }

    /// Whether what it needs is still on its way.
    fn waits(&self) -> bool {
        let compiling = matches!(self, Self::Call(call) if !call.pipeline.settled.happened());
        compiling || self.buffers().any(|buffer| buffer.is_asked())
    }
}

/// A pipeline and the buffers behind its bindings, each number one higher; 0 for none.
type GroupKey = (u32, [u32; MAX_BUFFERS]);

/// What a list is handed over with.
pub(super) struct Objects<'a> {
    pub device: &'a GpuDevice,
    pub pipelines: &'a Pipelines,
    pub staging: &'a Staging,
    /// Stands behind bindings that operations leave to the backend.
    pub record: &'a GpuBuffer,
    /// What times the calls of a profile, where the device can.
    pub timer: Option<&'a JsValue>,
}

/// The list of one device.
#[derive(Debug)]
pub(super) struct Recorder {
    items: Vec<Item>,
    /// Parameters of the noted calls, `alignment` bytes each.
    params: Vec<u8>,
    uniforms: GpuBuffer,
    alignment: usize,
    groups: Table<GroupKey, u32>,
    /// The browser's objects, by the numbers in `groups`.
    made: Array,
    /// How many bind groups were made.
    created: u64,
    /// Buffers that are sound from here on, with how many items were noted before.
    sound: Vec<(usize, u32)>,
    /// Memory of an earlier submission, for the next.
    spare: Sent,
}

impl Recorder {
    pub fn new(device: &GpuDevice, alignment: u32) -> Self {
        // No kernel has more than 256 bytes of parameters.
        let alignment = alignment.max(256) as usize;
        let size = (FLUSH_AT * alignment) as f64;
        let uniforms = create_buffer(device, "parameters", size, usage::UNIFORM | usage::COPY_DST);
        Self {
            items: Vec::new(),
            params: Vec::new(),
            uniforms,
            alignment,
            groups: Table::default(),
            made: Array::new(),
            created: 0,
            sound: Vec::new(),
            spare: Sent::default(),
        }
    }

    /// Notes a call; how many are noted now.
    pub fn push(&mut self, call: Call, params: &[u8]) -> usize {
        let end = self.params.len() + self.alignment;
        self.params.extend_from_slice(params);
        self.params.resize(end, 0);
        self.items.push(Item::Call(call));
        self.items.len()
    }

    /// Notes a copy to the host.
    pub fn copy(&mut self, copy: Rc<Copy>) {
        self.items.push(Item::Copy(copy));
    }

    /// Notes that a buffer holds nothing spoilt for what is noted from now on. Where nothing is noted that is not the list's to
    /// remember.
    pub fn sound(&mut self, buffer: u32) -> bool {
        if self.items.is_empty() {
            return false;
        }
        self.sound.push((self.items.len(), buffer));
        true
    }

    /// The pipelines that noted calls wait for.
    pub fn wanted(&self) -> impl Iterator<Item = &Rc<Pipeline>> {
        self.items.iter().filter_map(|item| match item {
            Item::Call(call) if !call.pipeline.settled.happened() => Some(&call.pipeline),
            _ => None,
        })
    }

    /// The buffers of noted calls and copies whose memory is not answered for yet.
    pub fn asked(&self) -> impl Iterator<Item = &Rc<PooledBuffer>> {
        self.items.iter().flat_map(Item::buffers).filter(|buffer| buffer.is_asked())
    }

    pub fn created(&self) -> u64 {
        self.created
    }

    /// How many items at the front can go out together, calls and then copies, and how many of them are calls. What waits for
    /// something stays, and all behind it, unless `all` is set.
    fn front(&self, all: bool) -> (usize, usize) {
        let (mut end, mut calls) = (0, 0);
        for item in &self.items {
            let is_call = matches!(item, Item::Call(_));
            let full = is_call && (calls < end || calls == FLUSH_AT);
            if full || !all && item.waits() {
                break;
            }
            end += 1;
            calls += usize::from(is_call);
        }
        (end, calls)
    }

    /// Hands over the front of the list; what was handed over, and the device's answer. `None` when nothing is ready.
    pub fn submit(&mut self, objects: &Objects<'_>, all: bool) -> Option<(Submission, Promise)> {
        let (end, calls) = self.front(all);
        if end == 0 {
            return None;
        }
        if self.groups.len() > KEEP_GROUPS {
            self.forget_groups();
        }
        begin_submission(objects.device);
        let (sound, later) = self.sound.drain(..).partition(|&(before, _)| before <= calls);
        self.sound = later;
        for (before, _) in &mut self.sound {
            *before = before.saturating_sub(end);
        }
        let mut submission = Submission { sound, ..Submission::default() };
        let mut sent = std::mem::take(&mut self.spare);
        sent.list.clear();
        let mut bad = Vec::new();
        let behind = self.items.split_off(end);
        let items = std::mem::replace(&mut self.items, behind);
        for (k, item) in items.into_iter().enumerate() {
            match item {
                Item::Call(call) => {
                    let note = Note::of(&call, &mut bad);
                    if !note.skipped {
                        let (group, (x, y)) = (self.group(&call, &note, objects), call.workgroups);
                        let offset = (k * self.alignment) as u32;
                        sent.list.extend([call.pipeline.id, group, offset, x, y]);
                    }
                    submission.calls.push(note);
                }
                Item::Copy(copy) => submission.copies.push(copy),
            }
        }
        sent.params.clear();
        sent.params.extend_from_slice(&self.params[calls * self.alignment..]);
        std::mem::swap(&mut self.params, &mut sent.params);
        sent.params.truncate(calls * self.alignment);
        let timed = submission.calls.iter().any(|note| note.profiled.is_some());
        let untimed = JsValue::NULL;
        let timer = objects.timer.filter(|_| timed).unwrap_or(&untimed);
        sent.groups = self.made.clone();
        let answer = self.send(objects, &sent.list, &sent, &submission.copies, timer);
        submission.sent.replace(sent);
        Some((submission, answer))
    }

    /// The bind group of a call.
    fn group(&mut self, call: &Call, note: &Note, objects: &Objects<'_>) -> u32 {
        let key = (call.pipeline.id, note.buffers);
        if let Some(group) = self.groups.get(&key) {
            return *group;
        }
        let numbers = &call.pipeline.bindings;
        let buffers = Array::new();
        for buffer in &call.buffers[..numbers.len() - 1] {
            match buffer {
                Some(buffer) => buffer.with(|handle| buffers.push(handle)),
                None => buffers.push(objects.record),
            };
        }
        buffers.push(&self.uniforms);
        let pipeline = objects.pipelines.objects().get(call.pipeline.id);
        let size = call.pipeline.params_size;
        let group = self.made.push(&create_group(objects.device, &pipeline, numbers, &buffers, size)) - 1;
        self.created += 1;
        self.groups.insert(key, group);
        group
    }

    /// Submits a part of what is sent, with all parameters, and copies. The parameters' buffer is written from its start every time:
    /// the queue keeps the order.
    fn send(
        &self,
        objects: &Objects<'_>,
        list: &[u32],
        sent: &Sent,
        copies: &[Rc<Copy>],
        timer: &JsValue,
    ) -> Promise {
        let (flat, none) = (Array::new(), JsValue::NULL);
        for copy in copies {
            let staged = objects.staging.take(objects.device, copy.bytes());
            let bytes = match &copy.source {
                Source::Buffer { buffer, start, bytes } => {
                    copy.error.replace(buffer.missing());
                    buffer.with(|handle| flat.push(handle));
                    flat.push(&JsValue::from(*start as f64));
                    if copy.error.borrow().is_some() { 0 } else { *bytes }
                }
                Source::Nothing => {
                    flat.push(objects.record);
                    flat.push(&JsValue::from(0));
                    0
                }
            };
            flat.push(&JsValue::from(bytes as f64));
            flat.push(&staged.buffer);
            let record: &JsValue = if copy.record { objects.record } else { &none };
            flat.push(record);
            copy.staging.replace(Some(staged));
        }
        let pipelines = objects.pipelines.objects();
        submit(objects.device, &self.uniforms, &sent.params, pipelines, &sent.groups, list, &flat, timer)
    }

    /// Submits the calls of a rejected submission one by one, if they shall, and its copies: the device's answers, one a call
    /// that is not skipped, and the one for the copies.
    pub fn submit_again(
        &self,
        objects: &Objects<'_>,
        submission: &Submission,
        calls: bool,
    ) -> (Vec<Promise>, Promise) {
        let sent = submission.sent.borrow();
        let send = |list, copies| {
            begin_submission(objects.device);
            self.send(objects, list, &sent, copies, &JsValue::NULL)
        };
        let list = if calls { &sent.list[..] } else { &[] };
        let answers = list.chunks_exact(5).map(|call| send(call, &[])).collect();
        (answers, send(&[], &submission.copies))
    }

    /// Makes all bind groups anew when they are next needed.
    pub fn forget_groups(&mut self) {
        self.groups.clear();
        // Lists that were handed over go on naming those of the old array.
        self.made = Array::new();
    }

    /// Takes memory that an earlier submission no longer needs.
    pub fn recycle(&mut self, sent: Sent) {
        self.spare = sent;
    }

    /// Forgets everything, without handing it over.
    pub fn dispose(&mut self) {
        for item in self.items.drain(..) {
            if let Item::Copy(copy) = item {
                copy.abandon();
            }
        }
        self.params.clear();
        self.forget_groups();
        self.uniforms.destroy();
    }
}

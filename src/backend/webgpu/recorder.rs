//! The op list: calls are noted, and a flush turns the list into one compute pass and one submit.

use std::rc::Rc;

use js_sys::Array;
use wgpu::webgpu::{GpuBuffer, GpuDevice};

use super::device::{create_buffer, create_group, submit, usage, write};
use super::pipelines::{Pipeline, Pipelines};
use super::pool::PooledBuffer;
use super::table::Table;
use crate::backend::{Buffer, Storage};

/// Calls that are noted before the list is handed over by itself.
const FLUSH_AT: usize = 256;

/// Bind groups that are kept for reuse.
const KEEP_GROUPS: usize = 1024;

/// A noted call. It keeps its buffers alive until it was handed over; their tensors may be gone, and later calls may write them.
#[derive(Debug)]
struct Op {
    pipeline: Rc<Pipeline>,
    buffers: Vec<Rc<PooledBuffer>>,
    /// Where its parameters begin.
    offset: u32,
    workgroups: (u32, u32),
}

/// A pipeline and the buffers behind its bindings.
type GroupKey = (u32, Vec<u64>);

/// The list of one device.
#[derive(Debug)]
pub(super) struct Recorder {
    ops: Vec<Op>,
    params: Vec<u8>,
    uniforms: GpuBuffer,
    alignment: usize,
    groups: Table<GroupKey, u32>,
    /// The browser's objects, by the numbers in `groups`.
    made: Array,
}

impl Recorder {
    pub fn new(device: &GpuDevice, alignment: u32) -> Self {
        // No kernel has more than 256 bytes of parameters.
        let alignment = alignment.max(256) as usize;
        let size = (FLUSH_AT * alignment) as f64;
        let uniforms = create_buffer(device, "parameters", size, usage::UNIFORM | usage::COPY_DST);
        Self {
            ops: Vec::new(),
            params: Vec::new(),
            uniforms,
            alignment,
            groups: Table::default(),
            made: Array::new(),
        }
    }

    /// Notes a call; whether the list is now full.
    pub fn push(
        &mut self,
        pipeline: Rc<Pipeline>,
        buffers: Vec<Rc<PooledBuffer>>,
        params: &[u8],
        workgroups: (u32, u32),
    ) -> bool {
        let offset = self.params.len();
        self.params.extend_from_slice(params);
        self.params.resize(offset + self.alignment, 0);
        self.ops.push(Op { pipeline, buffers, offset: offset as u32, workgroups });
        self.ops.len() == FLUSH_AT
    }

    /// Hands the list over. The parameters' buffer is written from its start every time: the queue keeps the order.
    /// `faults` stands behind bindings that operations leave to the backend.
    pub fn flush(&mut self, device: &GpuDevice, pipelines: &Pipelines, faults: &GpuBuffer) {
        if self.ops.is_empty() {
            return;
        }
        if self.groups.len() > KEEP_GROUPS {
            self.groups.clear();
            self.made.set_length(0);
        }
        write(device, &self.uniforms, &self.params);
        let mut list = Vec::with_capacity(5 * self.ops.len());
        for op in &self.ops {
            let ids = op.buffers.iter().map(|b| b.id).collect();
            let group = *self.groups.entry((op.pipeline.id, ids)).or_insert_with(|| {
                let pipeline = pipelines.objects().get(op.pipeline.id);
                let numbers = &op.pipeline.bindings;
                let buffers = Array::new();
                for k in 0..numbers.len() - 1 {
                    buffers.push(op.buffers.get(k).map_or(faults, |b| &b.buffer));
                }
                buffers.push(&self.uniforms);
                let group = create_group(device, &pipeline, numbers, &buffers, op.pipeline.params_size);
                self.made.push(&group) - 1
            });
            list.extend([op.pipeline.id, group, op.offset, op.workgroups.0, op.workgroups.1]);
        }
        submit(device, pipelines.objects(), &self.made, &list);
        self.params.clear();
        self.ops.clear();
    }

    /// Forgets everything, without handing it over.
    pub fn dispose(&mut self) {
        self.ops.clear();
        self.params.clear();
        self.groups.clear();
        self.made.set_length(0);
        self.uniforms.destroy();
    }
}

pub(super) fn gpu(storage: &Storage) -> &Rc<PooledBuffer> {
    match &storage.0.buffer {
        Buffer::Gpu(memory) => &memory.buffer,
        Buffer::Cpu(_) => unreachable!("operations refuse tensors of another engine"),
    }
}

//! The op list: calls are noted, and a flush turns the list into one compute pass and one submit.

use std::rc::Rc;

use super::pipelines::Pipeline;
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
type GroupKey = (usize, Vec<u64>);

/// The list of one device.
#[derive(Debug)]
pub(super) struct Recorder {
    ops: Vec<Op>,
    params: Vec<u8>,
    uniforms: wgpu::Buffer,
    alignment: usize,
    groups: Table<GroupKey, wgpu::BindGroup>,
}

impl Recorder {
    pub fn new(device: &wgpu::Device, alignment: u32) -> Self {
        // No kernel has more than 256 bytes of parameters.
        let alignment = alignment.max(256) as usize;
        let uniforms = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("parameters"),
            size: (FLUSH_AT * alignment) as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        Self { ops: Vec::new(), params: Vec::new(), uniforms, alignment, groups: Table::default() }
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
    pub fn flush(&mut self, device: &wgpu::Device, queue: &wgpu::Queue, faults: &wgpu::Buffer) {
        if self.ops.is_empty() {
            return;
        }
        if self.groups.len() > KEEP_GROUPS {
            self.groups.clear();
        }
        queue.write_buffer(&self.uniforms, 0, &self.params);
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            let mut current = usize::MAX;
            for op in &self.ops {
                let uniforms = &self.uniforms;
                let ids = op.buffers.iter().map(|b| b.id).collect();
                let group = self
                    .groups
                    .entry((op.pipeline.id, ids))
                    .or_insert_with(|| bind(device, &op.pipeline, &op.buffers, uniforms, faults));
                if current != op.pipeline.id {
                    pass.set_pipeline(&op.pipeline.compute);
                    current = op.pipeline.id;
                }
                pass.set_bind_group(0, &*group, &[op.offset]);
                pass.dispatch_workgroups(op.workgroups.0, op.workgroups.1, 1);
            }
        }
        queue.submit([encoder.finish()]);
        self.params.clear();
        self.ops.clear();
    }

    /// Forgets everything, without handing it over.
    pub fn dispose(&mut self) {
        self.ops.clear();
        self.params.clear();
        self.groups.clear();
        self.uniforms.destroy();
    }
}

pub(super) fn gpu(storage: &Storage) -> &Rc<PooledBuffer> {
    match &storage.0.buffer {
        Buffer::Gpu(memory) => &memory.buffer,
        Buffer::Cpu(_) => unreachable!("operations refuse tensors of another engine"),
    }
}

fn bind(
    device: &wgpu::Device,
    pipeline: &Pipeline,
    buffers: &[Rc<PooledBuffer>],
    uniforms: &wgpu::Buffer,
    faults: &wgpu::Buffer,
) -> wgpu::BindGroup {
    let mut entries: Vec<_> = pipeline
        .bindings
        .iter()
        .enumerate()
        .map(|(k, &binding)| wgpu::BindGroupEntry {
            binding,
            resource: buffers.get(k).map_or(faults, |b| &b.buffer).as_entire_binding(),
        })
        .collect();
    let (binding, size) = pipeline.params;
    entries.push(wgpu::BindGroupEntry {
        binding,
        resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: uniforms,
            offset: 0,
            size: std::num::NonZeroU64::new(size),
        }),
    });
    device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.layout,
        entries: &entries,
    })
}

//! Compute pipelines, one a kernel's variant, made when first needed.

use std::cell::RefCell;
use std::rc::Rc;

use super::table::Table;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{Access, Kernel, Variant};
use crate::wgsl::Dialect;

/// A pipeline and the layout of its bindings.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub id: usize,
    pub compute: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
    /// The numbers of the storage bindings that this variant has, in order.
    pub bindings: Vec<u32>,
    /// The number of the parameters' binding, and their size.
    pub params: (u32, u64),
}

/// All pipelines of a device.
#[derive(Debug, Default)]
pub(super) struct Pipelines {
    made: RefCell<Table<(&'static str, Variant), Rc<Pipeline>>>,
}

impl Pipelines {
    /// The pipeline of a variant.
    pub fn get(
        &self,
        device: &wgpu::Device,
        kernel: &'static Kernel,
        variant: Variant,
    ) -> Result<Rc<Pipeline>> {
        let key = (kernel.name, variant);
        if let Some(pipeline) = self.made.borrow().get(&key) {
            return Ok(Rc::clone(pipeline));
        }
        let id = self.made.borrow().len();
        let pipeline = Rc::new(create(device, kernel, variant, id)?);
        self.made.borrow_mut().insert(key, Rc::clone(&pipeline));
        Ok(pipeline)
    }
}

pub(super) fn create(
    device: &wgpu::Device,
    kernel: &'static Kernel,
    variant: Variant,
    id: usize,
) -> Result<Pipeline> {
    let text = kernel
        .compose(variant, Dialect::Browser)
        .map_err(|e| Error::new(ErrorKind::Kernel, kernel.name, e.to_string()))?;
    let label = Some(kernel.name);
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label,
        source: wgpu::ShaderSource::Wgsl(text.into()),
    });
    let buffer = |binding, ty, has_dynamic_offset| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size: None },
        count: None,
    };
    let present = kernel.bindings.iter().enumerate().filter(|(_, b)| kernel.binds(variant.flags, b));
    let mut entries: Vec<_> = present
        .map(|(k, b)| {
            let read_only = b.access == Access::Read;
            buffer(k as u32, wgpu::BufferBindingType::Storage { read_only }, false)
        })
        .collect();
    let bindings = entries.iter().map(|e| e.binding).collect();
    let params = kernel.bindings.len() as u32;
    entries.push(buffer(params, wgpu::BufferBindingType::Uniform, true));
    let layout =
        device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
    let whole = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label,
        bind_group_layouts: &[Some(&layout)],
        immediate_size: 0,
    });
    let compute = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label,
        layout: Some(&whole),
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    Ok(Pipeline {
        id,
        compute,
        layout,
        bindings,
        params: (params, kernel.params_size.next_multiple_of(16) as u64),
    })
}

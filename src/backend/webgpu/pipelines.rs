//! Compute pipelines, one a kernel's variant, made when first needed.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::Array;
use wasm_bindgen::prelude::JsValue;
use wgpu::webgpu::GpuDevice;

use super::device::create_pipeline;
use super::table::Table;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{Access, Kernel, Variant};
use crate::wgsl::Dialect;

/// What the recorder knows of a pipeline.
#[derive(Debug)]
pub(super) struct Pipeline {
    /// Its place among all.
    pub id: u32,
    /// The numbers of the bindings that this variant has, in order; the last is that of the parameters.
    pub bindings: Vec<u32>,
    /// Bytes of the parameters.
    pub params_size: u32,
}

/// All pipelines of a device.
#[derive(Debug, Default)]
pub(super) struct Pipelines {
    known: RefCell<Table<(&'static str, Variant), Rc<Pipeline>>>,
    /// By their ids.
    made: Array,
}

impl Pipelines {
    /// The pipeline of a variant.
    pub fn get(&self, device: &GpuDevice, kernel: &'static Kernel, variant: Variant) -> Result<Rc<Pipeline>> {
        let key = (kernel.name, variant);
        if let Some(pipeline) = self.known.borrow().get(&key) {
            return Ok(Rc::clone(pipeline));
        }
        let id = self.made.push(&create(device, kernel, variant)?) - 1;
        let present = kernel.bindings.iter().enumerate().filter(|(_, b)| kernel.binds(variant.flags, b));
        let mut bindings: Vec<u32> = present.map(|(number, _)| number as u32).collect();
        bindings.push(kernel.bindings.len() as u32);
        let params_size = kernel.params_size.next_multiple_of(16) as u32;
        let pipeline = Rc::new(Pipeline { id, bindings, params_size });
        self.known.borrow_mut().insert(key, Rc::clone(&pipeline));
        Ok(pipeline)
    }

    /// The browser's objects, by the pipelines' ids.
    pub fn objects(&self) -> &Array {
        &self.made
    }
}

/// Makes a pipeline. What is wrong with it the device reports later.
pub(super) fn create(device: &GpuDevice, kernel: &'static Kernel, variant: Variant) -> Result<JsValue> {
    let text = kernel
        .compose(variant, Dialect::Browser)
        .map_err(|e| Error::new(ErrorKind::Kernel, kernel.name, e.to_string()))?;
    let present = kernel.bindings.iter().enumerate().filter(|(_, b)| kernel.binds(variant.flags, b));
    let storage: Vec<u32> =
        present.map(|(number, b)| 2 * number as u32 + u32::from(b.access == Access::Read)).collect();
    Ok(create_pipeline(device, kernel.name, &text, &storage, kernel.bindings.len() as u32))
}

//! Compute pipelines, one a kernel's variant, made when first needed and compiled while the page goes on.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::Array;
use wasm_bindgen::prelude::JsValue;
use wgpu::webgpu::GpuDevice;

use super::device::{compile, compile_now, create_pipeline, settled};
use super::event::Event;
use super::table::Table;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{Access, Kernel, Variant};
use crate::wgsl::Dialect;

/// What the recorder knows of a pipeline.
#[derive(Debug)]
pub(super) struct Pipeline {
    /// Its place among all.
    pub id: u32,
    pub kernel: &'static Kernel,
    /// The numbers of the bindings that this variant has, in order; the last is that of the parameters.
    pub bindings: Vec<u32>,
    /// Bytes of the parameters.
    pub params_size: u32,
    /// Which of its buffers it reads, and which it writes: the lowest bit is the first buffer.
    pub reads: u32,
    pub writes: u32,
    /// The browser has compiled it, or given up.
    pub settled: Event,
    /// Why it cannot be had.
    pub failure: RefCell<Option<Error>>,
    object: JsValue,
}

impl Pipeline {
    /// Compiles it. The answer is in `failure` when `settled` has happened.
    pub async fn compile(&self, device: GpuDevice) {
        let answer = settled(compile(&device, &self.object)).await;
        if let Some(complaint) = answer.ok().and_then(|text| text.as_string()) {
            self.failure.replace(Some(Error::new(ErrorKind::Kernel, self.kernel.name, complaint)));
        }
        self.settled.happen();
    }

    /// Has it compiled while the page waits; what is wrong with it the device reports at its first use.
    pub fn compile_now(&self, device: &GpuDevice) {
        if !self.settled.happened() {
            compile_now(device, &self.object);
            self.settled.happen();
        }
    }
}

/// All pipelines of a device.
#[derive(Debug, Default)]
pub(super) struct Pipelines {
    /// By the kernel's address: a static has one.
    known: RefCell<Table<(usize, Variant), Rc<Pipeline>>>,
    /// The browser's objects by the pipelines' ids.
    objects: Array,
    created: Cell<u64>,
}

impl Pipelines {
    /// The pipeline of a variant, and whether it is new: nobody compiles it yet.
    pub fn get(
        &self,
        device: &GpuDevice,
        kernel: &'static Kernel,
        variant: Variant,
    ) -> Result<(Rc<Pipeline>, bool)> {
        let key = (std::ptr::from_ref(kernel) as usize, variant);
        if let Some(pipeline) = self.known.borrow().get(&key) {
            return Ok((Rc::clone(pipeline), false));
        }
        let pipeline = Rc::new(create(device, kernel, variant, self.objects.length())?);
        self.objects.push(&pipeline.object);
        self.created.set(self.created.get() + 1);
        self.known.borrow_mut().insert(key, Rc::clone(&pipeline));
        Ok((pipeline, true))
    }

    /// The browser's objects, by the pipelines' ids.
    pub fn objects(&self) -> &Array {
        &self.objects
    }

    /// How many were made.
    pub fn created(&self) -> u64 {
        self.created.get()
    }
}

/// Makes a pipeline that nobody compiles yet.
pub(super) fn create(
    device: &GpuDevice,
    kernel: &'static Kernel,
    variant: Variant,
    id: u32,
) -> Result<Pipeline> {
    let text = kernel
        .compose(variant, Dialect::Browser)
        .map_err(|e| Error::new(ErrorKind::Kernel, kernel.name, e.to_string()))?;
    let (mut bindings, mut storage, mut reads, mut writes) = (Vec::new(), Vec::new(), 0, 0);
    for (number, binding) in kernel.bindings.iter().enumerate() {
        if !kernel.binds(variant.flags, binding) {
            continue;
        }
        let bit = 1 << bindings.len();
        reads |= if binding.access == Access::Write { 0 } else { bit };
        writes |= if binding.access == Access::Read { 0 } else { bit };
        bindings.push(number as u32);
        storage.push(2 * number as u32 + u32::from(binding.access == Access::Read));
    }
    let parameters = kernel.bindings.len() as u32;
    bindings.push(parameters);
    Ok(Pipeline {
        id,
        kernel,
        bindings,
        params_size: kernel.params_size.next_multiple_of(16) as u32,
        reads,
        writes,
        settled: Event::default(),
        failure: RefCell::default(),
        object: create_pipeline(device, kernel.name, &text, &storage, parameters),
    })
}

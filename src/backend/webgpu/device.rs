//! The browser's WebGPU: wgpu's handles of its objects, and the calls of `gpu.js`.
//!
//! wgpu's own layer above those handles is left out. It would be a sixth of the download, it requests neither subgroups nor an
//! adapter's limits, cannot take a device that a page already has, and makes no pipeline asynchronously.

use js_sys::{Array, Object, Promise};
use wasm_bindgen::prelude::{JsCast, JsValue, wasm_bindgen};
use wgpu::webgpu::{GpuBuffer, GpuDevice};

use crate::error::{Error, ErrorKind, Result};

/// `GPUBufferUsage`: what a buffer is for.
pub(super) mod usage {
    pub const MAP_READ: u32 = 1;
    pub const COPY_SRC: u32 = 4;
    pub const COPY_DST: u32 = 8;
    pub const UNIFORM: u32 = 64;
    pub const STORAGE: u32 = 128;
}

#[wasm_bindgen(module = "/src/backend/webgpu/gpu.js")]
extern "C" {
    #[wasm_bindgen(js_name = requestAdapter)]
    fn raw_request_adapter() -> Promise;
    #[wasm_bindgen(js_name = requestDevice)]
    pub(crate) fn raw_request_device(adapter: &JsValue) -> Promise;
    #[wasm_bindgen(js_name = isFallback)]
    fn is_fallback(device: &GpuDevice) -> bool;
    #[wasm_bindgen(js_name = capabilities, catch)]
    fn raw_capabilities(device: &GpuDevice) -> std::result::Result<Vec<f64>, JsValue>;
    pub(super) fn loss(device: &GpuDevice) -> Promise;
    #[wasm_bindgen(js_name = lossWithin)]
    pub(super) fn loss_within(device: &GpuDevice, milliseconds: u32) -> Promise;
    #[wasm_bindgen(js_name = pushErrorScope)]
    pub(super) fn push_error_scope(device: &GpuDevice, kind: &str);
    #[wasm_bindgen(js_name = popErrorScope)]
    pub(super) fn pop_error_scope(device: &GpuDevice) -> Promise;
    #[wasm_bindgen(js_name = createBuffer)]
    pub(super) fn create_buffer(device: &GpuDevice, label: &str, size: f64, usage: u32) -> GpuBuffer;
    pub(super) fn write(device: &GpuDevice, buffer: &GpuBuffer, bytes: &[u8]);
    #[wasm_bindgen(js_name = write)]
    pub(super) fn write_array(device: &GpuDevice, buffer: &GpuBuffer, array: &Object);
    #[wasm_bindgen(js_name = createPipeline)]
    pub(super) fn create_pipeline(
        device: &GpuDevice,
        label: &str,
        code: &str,
        storage: &[u32],
        parameters: u32,
    ) -> JsValue;
    pub(super) fn compile(device: &GpuDevice, pipeline: &JsValue) -> Promise;
    #[wasm_bindgen(js_name = compileNow)]
    pub(super) fn compile_now(device: &GpuDevice, pipeline: &JsValue);
    #[wasm_bindgen(js_name = createGroup)]
    pub(super) fn create_group(
        device: &GpuDevice,
        pipeline: &JsValue,
        numbers: &[u32],
        buffers: &Array,
        size: u32,
    ) -> JsValue;
    #[wasm_bindgen(js_name = beginSubmission)]
    pub(super) fn begin_submission(device: &GpuDevice);
    #[wasm_bindgen(js_name = createTimer)]
    pub(super) fn create_timer(device: &GpuDevice, count: u32) -> JsValue;
    pub(super) fn submit(
        device: &GpuDevice,
        uniforms: &GpuBuffer,
        parameters: &[u8],
        pipelines: &Array,
        groups: &Array,
        list: &[u32],
        copies: &Array,
        timer: &JsValue,
    ) -> Promise;
    pub(super) fn map(staging: &GpuBuffer, bytes: f64) -> Promise;
    #[wasm_bindgen(catch)]
    pub(super) fn take(staging: &GpuBuffer, words: &mut [u32]) -> std::result::Result<(), JsValue>;
}

/// Waits for a promise.
pub(super) async fn settled(promise: Promise) -> std::result::Result<JsValue, JsValue> {
    wasm_bindgen_futures::JsFuture::from(promise).await
}

/// What a device can do, as far as kernels are concerned.
#[derive(Debug, Clone, Default)]
pub(crate) struct Capabilities {
    pub f16: bool,
    pub subgroups: bool,
    /// The fewest invocations of a subgroup, 0 where it is not known.
    pub min_subgroup: u32,
    /// A CPU pretends to be a GPU: barriers are slow there.
    pub software: bool,
    pub max_binding: u64,
    pub uniform_alignment: u32,
}

fn unsupported(error: &JsValue) -> Error {
    Error::new(ErrorKind::Unsupported, "init", message(error))
}

/// What a rejected promise or a caught exception says.
pub(super) fn message(error: &JsValue) -> String {
    js_sys::Reflect::get(error, &"message".into())
        .ok()
        .and_then(|text| text.as_string())
        .or_else(|| error.as_string())
        .unwrap_or_else(|| "an error without a message".into())
}

/// The adapter that `navigator.gpu` gives.
pub(crate) async fn request_adapter() -> Result<JsValue> {
    settled(raw_request_adapter()).await.map_err(|e| unsupported(&e))
}

/// A device of this adapter with every feature it has and every limit at its highest.
pub(crate) async fn request_device(adapter: &JsValue) -> Result<JsValue> {
    settled(raw_request_device(adapter)).await.map_err(|e| unsupported(&e))
}

/// Whether the browser says that the device's adapter is a CPU in disguise.
pub(crate) fn is_software(device: &JsValue) -> bool {
    is_fallback(device.unchecked_ref())
}

/// What the device offers; an error where it is no device.
pub(super) fn capabilities(device: &GpuDevice, software: bool) -> Result<Capabilities> {
    let offered = raw_capabilities(device).map_err(|e| unsupported(&e))?;
    let at = |place: usize| offered.get(place).copied().unwrap_or(0.0);
    Ok(Capabilities {
        f16: at(0) != 0.0,
        subgroups: at(1) != 0.0,
        min_subgroup: at(2) as u32,
        software,
        max_binding: at(3) as u64,
        uniform_alignment: at(4) as u32,
    })
}

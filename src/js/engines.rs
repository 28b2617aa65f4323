//! Engines.

use js_sys::{Array, Float64Array, Promise};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use super::{ENGINES, Thrown, engine, promise, thrown};
use crate::Engine;
use crate::backend::webgpu::device::raw_request_device;

fn put(engine: Engine) -> u32 {
    ENGINES.with_borrow_mut(|t| t.put(engine))
}

/// An engine on this thread's CPU that keeps so many bytes of freed memory for reuse; undefined leaves it to the engine.
#[wasm_bindgen(js_name = cpuEngine)]
#[must_use]
pub fn cpu_engine(keep: Option<f64>) -> u32 {
    put(Engine::on_cpu(keep.map(|bytes| bytes as u64)))
}

/// A promise of a device of this `GPUAdapter`, with every feature and limit it has.
#[wasm_bindgen(js_name = requestDevice)]
pub fn request_device(adapter: &JsValue) -> Promise {
    raw_request_device(adapter)
}

/// An engine on this `GPUDevice`, which goes with it if it is `owned`; `software` if a CPU pretends to be this GPU; `debug` if the
/// CPU is to check every call. It keeps so many bytes of freed memory for reuse; undefined leaves it to the engine.
#[wasm_bindgen(js_name = deviceEngine)]
pub fn device_engine(
    gpu_device: JsValue,
    owned: bool,
    software: bool,
    debug: bool,
    keep: Option<f64>,
) -> Thrown<u32> {
    thrown(Engine::on_device(gpu_device, owned, software, debug, keep.map(|bytes| bytes as u64))).map(put)
}

/// The engine's `GPUDevice`, or undefined.
#[wasm_bindgen(js_name = gpuDevice)]
pub fn gpu_device(handle: u32) -> Thrown<JsValue> {
    thrown(engine(handle)).map(|e| e.gpu_device().unwrap_or(JsValue::UNDEFINED))
}

/// `[bytes used, bytes allocated, the most bytes used, GPU objects made]`.
#[wasm_bindgen(js_name = memoryInfo)]
pub fn memory_info(handle: u32) -> Thrown<Vec<f64>> {
    let m = thrown(engine(handle))?.memory();
    Ok([m.bytes_used, m.bytes_allocated, m.bytes_peak, m.objects_created].map(|n| n as f64).to_vec())
}

/// A promise that resolves when the work queued until now is done.
#[wasm_bindgen(js_name = sync)]
pub fn sync(handle: u32) -> Thrown<Promise> {
    let done = thrown(engine(handle))?.sync();
    Ok(promise(Box::pin(async move { thrown(done.await).map(|()| JsValue::UNDEFINED) })))
}

/// Notes what every kernel costs from now on.
#[wasm_bindgen(js_name = profileStart)]
pub fn profile_start(handle: u32) -> Thrown<()> {
    thrown(engine(handle).and_then(|e| e.profile_start()))
}

/// A promise of the calls since: their kernels' names, and four numbers each, start and time in microseconds (NaN where
/// they are not known), bytes and floating-point operations.
#[wasm_bindgen(js_name = profileStop)]
pub fn profile_stop(handle: u32) -> Thrown<Promise> {
    let stopped = thrown(engine(handle))?.profile_stop();
    Ok(promise(Box::pin(async move {
        let (names, mut numbers) = (Array::new(), Vec::new());
        for call in thrown(stopped.await)? {
            names.push(&call.kernel.into());
            let known = |time: Option<f64>| time.unwrap_or(f64::NAN);
            numbers.extend([known(call.start), known(call.time), call.bytes as f64, call.flops as f64]);
        }
        Ok(Array::of2(&names, &Float64Array::from(numbers.as_slice())).into())
    })))
}

/// Gives the device's memory back and forgets the engine.
#[wasm_bindgen(js_name = disposeEngine)]
pub fn dispose_engine(handle: u32) {
    if let Some(engine) = ENGINES.with_borrow_mut(|t| t.take(handle)) {
        engine.dispose();
    }
}

/// Starts or ends a stretch without recording; stretches nest.
#[wasm_bindgen(js_name = pauseRecording)]
pub fn pause_recording(handle: u32, pause: bool) -> Thrown<()> {
    thrown(engine(handle)).map(|e| e.pause_recording(pause))
}

/// Sets the state of the random numbers from the low and high half of a seed.
#[wasm_bindgen(js_name = manualSeed)]
pub fn manual_seed(handle: u32, low: u32, high: u32) -> Thrown<()> {
    thrown(engine(handle)).map(|e| e.manual_seed(u64::from(low) | u64::from(high) << 32))
}

//! Adoption: wgpu runs on a device that was made outside of it, with every feature and limit.
//!
//! wgpu's own request knows neither subgroups nor the adapter's full limits, and cannot take a device that a page
//! already has. So the device is made through JavaScript handles, and wgpu is shown a `navigator.gpu` that answers with
//! it: for the length of one synchronous call, then the real one is back.

use js_sys::{Array, Function, Object, Promise, Reflect};
use wasm_bindgen::prelude::{Closure, JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::error::{Error, ErrorKind, Result};

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

fn unsupported(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unsupported, "init", message)
}

pub(super) fn get(object: &JsValue, name: &str) -> JsValue {
    Reflect::get(object, &JsValue::from_str(name)).unwrap_or(JsValue::UNDEFINED)
}

/// What a rejected promise or a caught exception says.
pub(super) fn message(error: &JsValue) -> String {
    get(error, "message").as_string().unwrap_or_else(|| format!("{error:?}"))
}

fn call(object: &JsValue, method: &str, argument: &JsValue) -> Result<JsValue> {
    let function: Function =
        get(object, method).dyn_into().map_err(|_| unsupported(format!("this has no method {method}")))?;
    function.call1(object, argument).map_err(|e| unsupported(message(&e)))
}

/// Waits for a promise, or takes what is no promise as it is.
async fn resolve(value: JsValue) -> std::result::Result<JsValue, JsValue> {
    match value.dyn_into::<Promise>() {
        Ok(promise) => JsFuture::from(promise).await,
        Err(value) => Ok(value),
    }
}

/// The adapter that `navigator.gpu` gives.
pub(crate) async fn request_adapter() -> Result<JsValue> {
    let gpu = get(&get(&js_sys::global(), "navigator"), "gpu");
    if gpu.is_undefined() || gpu.is_null() {
        return Err(unsupported("there is no navigator.gpu: WebGPU is not available here"));
    }
    let adapter = resolve(call(&gpu, "requestAdapter", &Object::new())?).await;
    match adapter.map_err(|e| unsupported(message(&e)))? {
        adapter if adapter.is_null() || adapter.is_undefined() => Err(unsupported("WebGPU gave no adapter")),
        adapter => Ok(adapter),
    }
}

/// A device of this adapter with every feature it has and every limit at its highest.
pub(crate) async fn request_device(adapter: &JsValue) -> Result<JsValue> {
    let descriptor = Object::new();
    let set = |object: &Object, name: &str, value: &JsValue| {
        Reflect::set(object, &JsValue::from_str(name), value).expect("a plain object takes every property");
    };
    set(&descriptor, "requiredFeatures", &Array::from(&get(adapter, "features")));
    let limits = Object::new();
    let offered = get(adapter, "limits");
    // Limits are getters of a prototype: `for in` finds them where `keys` does not.
    let prototype = Object::get_prototype_of(&offered);
    for name in Object::get_own_property_names(&prototype).iter().filter_map(|n| n.as_string()) {
        if let Some(value) = get(&offered, &name).as_f64() {
            set(&limits, &name, &value.into());
        }
    }
    set(&descriptor, "requiredLimits", &limits);
    set(&descriptor, "label", &"wgrad".into());
    let device = resolve(call(adapter, "requestDevice", &descriptor)?).await;
    match device.map_err(|e| unsupported(message(&e)))? {
        device if get(&device, "queue").is_object() => Ok(device),
        other => Err(unsupported(format!("requestDevice gave {other:?}, which is no device"))),
    }
}

/// What a `GPUDeviceLostInfo` says.
pub(super) fn loss(info: &JsValue) -> String {
    let reason = get(info, "reason").as_string().unwrap_or_else(|| "unknown".into());
    format!("{reason}: {}", message(info))
}

/// Why the device is lost, if that is told within some milliseconds.
pub(super) async fn lost_within(device: &JsValue, milliseconds: u32) -> Option<String> {
    let timer = Promise::new(&mut |resolve, _| {
        if let Ok(set) = get(&js_sys::global(), "setTimeout").dyn_into::<Function>() {
            let _ = set.call2(&JsValue::UNDEFINED, &resolve, &milliseconds.into());
        }
    });
    let first = Promise::race(&Array::of2(&get(device, "lost"), &timer));
    let info = JsFuture::from(first).await.ok()?;
    info.is_object().then(|| loss(&info))
}

/// What the device offers.
pub(super) fn capabilities(device: &JsValue, software: bool) -> Capabilities {
    let features = get(device, "features");
    let has = |name: &str| call(&features, "has", &name.into()).is_ok_and(|v| v.is_truthy());
    let (limits, info) = (get(device, "limits"), get(device, "adapterInfo"));
    let limit = |name: &str, least: f64| get(&limits, name).as_f64().unwrap_or(least);
    let binding = limit("maxStorageBufferBindingSize", 134_217_728.0);
    Capabilities {
        f16: has("shader-f16"),
        subgroups: has("subgroups"),
        min_subgroup: get(&info, "subgroupMinSize").as_f64().unwrap_or(0.0) as u32,
        software,
        max_binding: binding.min(limit("maxBufferSize", 268_435_456.0)) as u64,
        uniform_alignment: limit("minUniformBufferOffsetAlignment", 256.0) as u32,
    }
}

/// Whether the browser says that the device's adapter is a CPU in disguise.
pub(crate) fn is_software(device: &JsValue) -> bool {
    get(&get(device, "adapterInfo"), "isFallbackAdapter").is_truthy()
}

/// wgpu's handles of a device that exists already.
pub(super) async fn adopt(device: &JsValue) -> Result<(wgpu::Device, wgpu::Queue)> {
    let failed = |what: &str| unsupported(format!("wgpu did not take the device: {what}"));
    let adapter = Object::new();
    let put =
        |object: &JsValue, name: &str, value: &JsValue| Reflect::set(object, &name.into(), value).is_ok();
    let answer = |value: &JsValue| {
        let value = value.clone();
        Closure::once_into_js(move |_: JsValue| Promise::resolve(&value))
    };
    put(&adapter, "requestDevice", &answer(device));
    for name in ["features", "limits"] {
        put(&adapter, name, &get(device, name));
    }
    put(&adapter, "info", &get(device, "adapterInfo"));
    let gpu = Object::new();
    put(&gpu, "requestAdapter", &answer(&adapter));
    let request = with_gpu(&gpu, || {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        instance.request_adapter(&wgpu::RequestAdapterOptions::default())
    });
    let adapter = request.await.map_err(|e| failed(&e.to_string()))?;
    adapter.request_device(&wgpu::DeviceDescriptor::default()).await.map_err(|e| failed(&e.to_string()))
}

/// Calls `f` while `navigator.gpu` is `gpu`, in a place where it can be used; then everything is as it was.
fn with_gpu<T>(gpu: &Object, f: impl FnOnce() -> T) -> T {
    let global = js_sys::global();
    let mut undo: Vec<Box<dyn FnOnce()>> = Vec::new();
    if get(&global, "Window").is_undefined() && get(&global, "WorkerGlobalScope").is_undefined() {
        undo.push(replace(&global, "WorkerGlobalScope", &Object::new()));
    }
    let navigator = get(&global, "navigator");
    if navigator.is_object() {
        undo.push(replace(navigator.unchecked_ref(), "gpu", gpu));
    } else {
        let navigator = Object::new();
        Reflect::set(&navigator, &"gpu".into(), gpu).expect("a plain object takes every property");
        undo.push(replace(&global, "navigator", &navigator));
    }
    let result = f();
    undo.into_iter().rev().for_each(|u| u());
    result
}

/// Defines an own property; what is returned puts back what was there.
fn replace(object: &Object, name: &str, value: &JsValue) -> Box<dyn FnOnce()> {
    let (object, name) = (object.clone(), JsValue::from_str(name));
    let before = Object::get_own_property_descriptor(&object, &name);
    let descriptor = Object::new();
    Reflect::set(&descriptor, &"value".into(), value).expect("a plain object takes every property");
    Reflect::set(&descriptor, &"configurable".into(), &JsValue::TRUE)
        .expect("a plain object takes every property");
    // A frozen object keeps its property; adoption then fails with wgpu's own error.
    let _ = Reflect::define_property(&object, &name, &descriptor);
    Box::new(move || {
        let _ = if before.is_undefined() {
            Reflect::delete_property(&object, &name)
        } else {
            Reflect::define_property(&object, &name, before.unchecked_ref())
        };
    })
}

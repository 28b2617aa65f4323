//! The kernel lab's module: what is registered, its shaders' text, and calls of any size on a device, compared with
//! float64 and timed. The page `www/lab.html` and `bench/kernels.mjs` use it; it is no part of the package.
#![cfg(target_arch = "wasm32")]

use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wgrad::Error;

mod all;
mod device;
mod inputs;
mod json;
mod registry;
mod timing;
mod trial;

/// What is thrown for an error of wgrad: its class as the name.
fn throw(error: &Error) -> JsValue {
    let made = js_sys::Error::new(&error.to_string());
    made.set_name(error.kind().code());
    made.into()
}

/// What is thrown for a choice that cannot be.
fn refuse(words: &str) -> JsValue {
    let made = js_sys::Error::new(words);
    made.set_name("ArgumentError");
    made.into()
}

/// Says in the console where a fault was met; runs by itself.
#[wasm_bindgen(start)]
pub fn start() {
    console_error_panic_hook::set_once();
}

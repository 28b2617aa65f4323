//! The WebAssembly interface: plain functions over numbers. The TypeScript layer in `js/` makes classes of them.
//!
//! Engines, tensors and optimizers are handles: places in tables that live here. The layer above never passes a handle
//! it has freed, so a wrong one is a fault of that layer and an error, not a trap.

use std::cell::RefCell;

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use crate::backend::LocalFuture;
use crate::error::{Error, ErrorKind, Result};
use crate::{Engine, Tensor};

mod engines;
mod operations;
mod tensors;

/// A table of handles. Handle 0 means none.
struct Table<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Table<T> {
    const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    fn put(&mut self, value: T) -> u32 {
        if let Some(handle) = self.free.pop() {
            self.slots[handle as usize - 1] = Some(value);
            return handle;
        }
        self.slots.push(Some(value));
        self.slots.len() as u32
    }

    fn get(&self, handle: u32) -> Option<&T> {
        self.slots.get((handle as usize).wrapping_sub(1))?.as_ref()
    }

    fn take(&mut self, handle: u32) -> Option<T> {
        let value = self.slots.get_mut((handle as usize).wrapping_sub(1))?.take()?;
        self.free.push(handle);
        Some(value)
    }
}

thread_local! {
    static ENGINES: RefCell<Table<Engine>> = const { RefCell::new(Table::new()) };
    static TENSORS: RefCell<Table<Tensor>> = const { RefCell::new(Table::new()) };
    static ERRORS: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// What is thrown: made by the function that the TypeScript layer gave, so that it is one of its classes.
fn throw(error: &Error) -> JsValue {
    let (code, message) = (error.kind().code(), error.to_string());
    let made = ERRORS.with_borrow(|make| {
        make.as_ref().and_then(|make| make.call2(&JsValue::NULL, &code.into(), &message.as_str().into()).ok())
    });
    made.unwrap_or_else(|| js_sys::Error::new(&message).into())
}

type Thrown<T> = std::result::Result<T, JsValue>;

fn thrown<T>(result: Result<T>) -> Thrown<T> {
    result.map_err(|e| throw(&e))
}

/// One function for all promises: what makes one of a future is kilobytes for every type of it.
fn promise(future: LocalFuture<Thrown<JsValue>>) -> Promise {
    future_to_promise(future)
}

fn gone(what: &'static str) -> Error {
    Error::new(ErrorKind::Disposed, what, "it was disposed")
}

fn engine(handle: u32) -> Result<Engine> {
    ENGINES.with_borrow(|t| t.get(handle).cloned()).ok_or_else(|| gone("engine"))
}

fn tensor(handle: u32) -> Result<Tensor> {
    TENSORS.with_borrow(|t| t.get(handle).cloned()).ok_or_else(|| gone("tensor"))
}

/// The tensor of a handle, or none for handle 0.
fn optional(handle: u32) -> Result<Option<Tensor>> {
    if handle == 0 { Ok(None) } else { tensor(handle).map(Some) }
}

fn keep(tensor: Tensor) -> u32 {
    TENSORS.with_borrow_mut(|t| t.put(tensor))
}

fn sizes(values: &[u32]) -> Vec<usize> {
    values.iter().map(|&d| d as usize).collect()
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(text: &str);
}

/// Runs once, before anything else: `make_error(code, message)` makes what is thrown.
#[wasm_bindgen(js_name = setUp)]
pub fn set_up(make_error: Function) {
    // A panic is a fault of wgrad; without this the page would see an "unreachable" and no more.
    std::panic::set_hook(Box::new(|info| console_error(&info.to_string())));
    ERRORS.set(Some(make_error));
}

//! A device whose every call is held against the CPU's: what an engine with `debug` runs on.
//!
//! A call's inputs are copied out before it and its outputs after it; both are on their way to the host while the device goes on.
//! Comparing them is a promise that follows the one of the call before, so that the first call that disagrees is the
//! first that is told of.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytemuck::cast_slice;
use js_sys::Promise;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::{JsFuture, future_to_promise};

use super::agreement::{Disagreement, VARIATION, compare, largest};
use super::cpu::CpuBackend;
use super::{Backend, HostData, Launch, LocalFuture, Memory, Storage, StorageInner, try_collect};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, number, number_f32};
use crate::kernel::{Access, Binding, Element, Flags, Kernel};
use crate::profile::KernelCall;

/// How often the inputs of a call that seems to disagree are varied: of few draws all could happen to change nothing.
const VARIATIONS: u32 = 4;

/// Holds a device against the CPU.
pub(crate) struct Checked {
    device: Box<dyn Backend>,
    judge: Rc<Judge>,
    /// Resolves when all calls so far are compared.
    compared: RefCell<Promise>,
    /// What the device reported through our copies since the last read: the next read's to tell.
    reported: RefCell<Report>,
}

/// An error that the reads of one stretch may find.
type Report = Rc<RefCell<Option<Error>>>;

/// The CPU, and its verdict.
#[derive(Default)]
struct Judge {
    cpu: CpuBackend,
    /// The first disagreement, which stops the engine.
    stopped: RefCell<Option<Error>>,
}

/// What stands behind a binding of a call.
struct Bound {
    binding: &'static Binding,
    /// Its place among the kernel's bindings.
    place: usize,
    dtype: DType,
    elements: usize,
    /// The content before the call, of what it reads or updates.
    before: HostData,
    /// The content after it, of what it writes or updates.
    after: HostData,
}

/// A call that was queued.
struct Call {
    kernel: &'static Kernel,
    flags: Flags,
    dtype: DType,
    params: Vec<u8>,
    bounds: Vec<Bound>,
}

/// Copies on their way, with the place of what they are of among the call's.
type Copies = Vec<(usize, LocalFuture<Result<HostData>>)>;

impl Checked {
    pub fn new(device: Box<dyn Backend>) -> Self {
        let compared = RefCell::new(Promise::resolve(&JsValue::UNDEFINED));
        Self { device, judge: Rc::default(), compared, reported: RefCell::default() }
    }

    /// `pending`, once all calls so far are compared and none of them was wrong.
    fn after_checks<T: 'static>(&self, pending: LocalFuture<Result<T>>) -> LocalFuture<Result<T>> {
        let compared = Some(JsFuture::from(self.compared.borrow().clone()));
        let (judge, reported) = (Rc::clone(&self.judge), self.reported.take());
        Box::pin(Held { judge, reported, compared, pending })
    }
}

/// What is held back until the calls before it are compared. Its state by hand is a third of what an async block makes of it.
struct Held<T> {
    judge: Rc<Judge>,
    reported: Report,
    compared: Option<JsFuture>,
    pending: LocalFuture<Result<T>>,
}

impl<T> Future for Held<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(compared) = &mut self.compared {
            let _ = ready!(Pin::new(compared).poll(context));
            self.compared = None;
            self.judge.verdict(&self.reported)?;
        }
        self.pending.as_mut().poll(context)
    }
}

impl Judge {
    fn check(&self) -> Result<()> {
        self.stopped.borrow().clone().map_or(Ok(()), Err)
    }

    /// What was found in the calls since a read, or before.
    fn verdict(&self, reported: &Report) -> Result<()> {
        self.check()?;
        reported.take().map_or(Ok(()), Err)
    }

    /// Compares a call's outputs with the CPU's; the disagreement or the twin's own error is the error.
    fn compare(&self, call: &Call) -> Result<Option<Error>> {
        let twin = self.twin(call, 0)?;
        // Outputs that are written together are of the same terms; those that are updated are numbers of their own.
        let mut beside: f32 = 0.0;
        for (bound, want) in call.bounds.iter().zip(&twin) {
            if bound.binding.access == Access::Write && bound.dtype.is_float() {
                beside = beside.max(largest(want));
            }
        }
        for (k, bound) in call.bounds.iter().enumerate() {
            let (got, want) = (cast_slice(bound.after.words()), &twin[k]);
            let beside = if bound.binding.access == Access::Write { beside } else { largest(want) };
            // What is only read has nothing after the call.
            if compare(got, want, bound.dtype, beside, &[]).is_none() {
                continue;
            }
            let mut varied = Vec::new();
            for draw in 1..=VARIATIONS {
                varied.push(self.twin(call, draw)?.swap_remove(k));
            }
            if let Some(found) = compare(got, want, bound.dtype, beside, &varied) {
                return Ok(Some(call.error(bound, &found)));
            }
        }
        Ok(None)
    }

    /// What the CPU makes of a call's inputs, or of varied ones where `draw` is not 0: the words of all that is bound.
    fn twin(&self, call: &Call, draw: u32) -> Result<Vec<Vec<f32>>> {
        let &Call { kernel, flags, ref params, .. } = call;
        let (cpu, op) = (&self.cpu, kernel.name);
        let mut storages = Vec::new();
        for bound in &call.bounds {
            storages.push(if bound.binding.access == Access::Write {
                cpu.alloc(op, DType::F32, bound.elements)?
            } else {
                let before: &[f32] = cast_slice(bound.before.words());
                let mut words = try_collect(op, before.len(), before.iter().copied())?;
                if draw > 0 && bound.dtype.is_float() {
                    vary(&mut words, draw, bound.place as u32);
                }
                // Nothing is to be rounded: f16 elements of a GPU are.
                cpu.upload(op, DType::F32, HostData::F32(words))?
            });
        }
        let mut buffers = vec![None; kernel.bindings.len()];
        for (bound, storage) in call.bounds.iter().zip(&storages) {
            buffers[bound.place] = Some(storage);
        }
        // Rounding to f16 would hide what a variation changes.
        let dtype = if draw > 0 { DType::F32 } else { call.dtype };
        cpu.run(&Launch { kernel, flags, dtype, params, buffers: &buffers })?;
        let mut results = Vec::new();
        for storage in &storages {
            results.push(cpu.words(op, storage, 0, storage.0.elements)?);
        }
        Ok(results)
    }
}

/// Makes each value a little larger or smaller. The first draw makes all larger, which moves sums of what cancels
/// furthest; from the third on, the smallest are 0, as devices may take them.
fn vary(values: &mut [f32], draw: u32, input: u32) {
    let mut state = (draw << 8 | input).wrapping_mul(0x9E37_79B9);
    for value in values {
        // The generator of Numerical Recipes, of which the highest bit is the best.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let step = value.abs() * VARIATION;
        if draw > 2 && value.abs() < f32::MIN_POSITIVE {
            *value = 0.0;
        } else {
            *value += if draw > 1 && state >> 31 == 1 { -step } else { step };
        }
    }
}

fn add(text: &mut String, parts: &[&str]) {
    for part in parts {
        *text += part;
    }
}

/// A number in that text.
#[inline(never)]
fn show(value: f64, float: bool) -> String {
    if float { number_f32(value as f32) } else { number(value) }
}

impl Call {
    /// Says where one of its outputs disagrees, and what the call was.
    fn error(&self, output: &Bound, found: &Disagreement) -> Error {
        let kernel = self.kernel;
        let mut op = String::from(kernel.name);
        let mut separator = " (";
        for (k, flag) in kernel.flag_names().enumerate() {
            if self.flags.0 >> k & 1 == 1 {
                add(&mut op, &[separator, flag]);
                separator = ", ";
            }
        }
        if separator == ", " {
            op += ")";
        }
        let (name, float) = (output.binding.name, output.dtype.is_float());
        let (got, want) = (show(found.got, float), show(found.want, float));
        let mut text = show(found.count as f64, false);
        let place = show(found.place as f64, false);
        add(
            &mut text,
            &[
                " elements of ",
                name,
                " are not what the CPU computes; furthest from it is ",
                name,
                "[",
                &place,
                "], ",
                &got,
                " on WebGPU and ",
                &want,
                " on the CPU",
            ],
        );
        separator = ". The buffers: ";
        for Bound { binding, dtype, elements, .. } in &self.bounds {
            let elements = show(*elements as f64, false);
            add(&mut text, &[separator, binding.name, ": ", dtype.name(), "[", &elements, "]"]);
            separator = ", ";
        }
        Error::new(ErrorKind::Kernel, op, text)
    }
}

impl Backend for Checked {
    fn name(&self) -> &'static str {
        self.device.name()
    }

    fn alloc(&self, op: &'static str, dtype: DType, elements: usize) -> Result<Storage> {
        self.device.alloc(op, dtype, elements)
    }

    fn upload(&self, op: &'static str, dtype: DType, data: HostData) -> Result<Storage> {
        self.device.upload(op, dtype, data)
    }

    fn run(&self, launch: &Launch<'_>) -> Result<()> {
        self.judge.check()?;
        let &Launch { kernel, flags, dtype, params, buffers } = launch;
        let (mut bounds, mut copies): (Vec<Bound>, Copies) = (Vec::new(), Vec::new());
        let copy = |storage: &Storage| self.device.read(kernel.name, storage, 0, storage.0.elements);
        for (place, (binding, &storage)) in kernel.bindings.iter().zip(buffers).enumerate() {
            let Some(storage) = storage.filter(|_| binding.element != Element::Faults) else { continue };
            if binding.access != Access::Write {
                copies.push((bounds.len(), copy(storage)));
            }
            let (before, after) = (HostData::U32(Vec::new()), HostData::U32(Vec::new()));
            let StorageInner { dtype, elements, .. } = *storage.0;
            bounds.push(Bound { binding, place, dtype, elements, before, after });
        }
        let inputs = copies.len();
        self.device.run(launch)?;
        for (k, bound) in bounds.iter().enumerate() {
            if let Some(storage) = buffers[bound.place].filter(|_| bound.binding.access != Access::Read) {
                copies.push((k, copy(storage)));
            }
        }
        let mut call = Call { kernel, flags, dtype, params: params.to_vec(), bounds };
        let (judge, reported) = (Rc::clone(&self.judge), Rc::clone(&self.reported.borrow()));
        let earlier = self.compared.borrow().clone();
        *self.compared.borrow_mut() = future_to_promise(async move {
            let _ = JsFuture::from(earlier).await;
            let mut failed = None;
            for (k, (place, copy)) in copies.into_iter().enumerate() {
                let bound = &mut call.bounds[place];
                let content = if k < inputs { &mut bound.before } else { &mut bound.after };
                match copy.await {
                    Ok(elements) => *content = elements,
                    Err(error) => failed = Some(error),
                }
            }
            if failed.is_none() && judge.check().is_ok() {
                match judge.compare(&call) {
                    Ok(found) => *judge.stopped.borrow_mut() = found,
                    Err(error) => failed = Some(error),
                }
            }
            // What the device reported, or the twin in its place, is the next read's to tell.
            if let (Some(error), reported @ None) = (failed, &mut *reported.borrow_mut()) {
                *reported = Some(error);
            }
            Ok(JsValue::UNDEFINED)
        });
        Ok(())
    }

    fn read(
        &self,
        op: &'static str,
        storage: &Storage,
        start: usize,
        count: usize,
    ) -> LocalFuture<Result<HostData>> {
        self.after_checks(self.device.read(op, storage, start, count))
    }

    fn flush(&self) -> Result<()> {
        self.device.flush()
    }

    fn sync(&self) -> LocalFuture<Result<()>> {
        self.after_checks(self.device.sync())
    }

    fn profile_start(&self) -> Result<()> {
        self.device.profile_start()
    }

    fn profile_stop(&self) -> LocalFuture<Result<Vec<KernelCall>>> {
        self.after_checks(self.device.profile_stop())
    }

    fn memory(&self) -> Memory {
        self.device.memory()
    }

    fn dispose(&self) {
        self.device.dispose();
        self.judge.cpu.dispose();
    }
}

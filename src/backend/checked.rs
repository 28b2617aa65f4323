//! A device whose every call is held against the CPU's: what an engine with `debug` runs on.
//!
//! A call's inputs are copied out before it and its outputs after it; both are on their way to the host while the device goes on.
//! Comparing them is a promise that follows the one of the call before, so that the first call that disagrees is the
//! first that is told of.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::Promise;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::{JsFuture, future_to_promise};

use super::agreement::{Disagreement, Tolerance, VARIATION, compare, largest};
use super::cpu::CpuBackend;
use super::{Backend, HostData, Launch, LocalFuture, Memory, Storage, try_collect};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, number, number_f32};
use crate::kernel::{Access, Element, Flags, Kernel};
use crate::random::Philox;

/// How often the inputs of a call that seems to disagree are varied: of few draws all could happen to change nothing.
const VARIATIONS: u64 = 4;

/// Holds a device against the CPU.
pub(crate) struct Checked {
    device: Box<dyn Backend>,
    judge: Rc<Judge>,
    /// Resolves when all calls so far are compared.
    compared: RefCell<Promise>,
    /// What the device reported through our copies since the last read: the next read's to tell.
    reported: RefCell<Report>,
}

type Report = Rc<RefCell<Option<Error>>>;

/// The CPU, and its verdict.
#[derive(Default)]
struct Judge {
    cpu: CpuBackend,
    /// The first disagreement, which stops the engine.
    stopped: RefCell<Option<Error>>,
}

/// One binding of a call that was queued.
struct Bound {
    /// The first binding with the same storage.
    first: usize,
    access: Access,
    dtype: DType,
    elements: usize,
    /// The storage's elements before and after the call, with its first binding.
    before: Option<LocalFuture<Result<HostData>>>,
    after: Option<LocalFuture<Result<HostData>>>,
}

/// A call that was queued.
struct Call {
    kernel: &'static Kernel,
    flags: Flags,
    dtype: DType,
    params: Vec<u8>,
    bindings: Vec<Option<Bound>>,
}

/// Elements of a call's bindings.
type Elements = Vec<Option<HostData>>;

impl Checked {
    pub fn new(device: Box<dyn Backend>) -> Self {
        let compared = RefCell::new(Promise::resolve(&JsValue::UNDEFINED));
        Self { device, judge: Rc::default(), compared, reported: RefCell::default() }
    }

    /// `pending`, once all calls so far are compared; what was found instead.
    fn after_checks<T: 'static>(
        &self,
        pending: impl FnOnce() -> LocalFuture<Result<T>>,
    ) -> LocalFuture<Result<T>> {
        if let Err(stopped) = self.judge.check() {
            return Box::pin(std::future::ready(Err(stopped)));
        }
        let (pending, judge) = (pending(), Rc::clone(&self.judge));
        let (compared, reported) = (self.compared.borrow().clone(), self.reported.take());
        Box::pin(async move {
            let result = pending.await;
            done(compared).await;
            judge.check()?;
            reported.take().map_or(result, Err)
        })
    }

    /// What a call reads and how large its buffers are, before it runs.
    fn note(&self, launch: &Launch<'_>) -> Call {
        let kernel = launch.kernel;
        let same = |a: &Storage, b: &Storage| Rc::ptr_eq(&a.0, &b.0);
        let bindings =
            kernel.bindings.iter().zip(launch.buffers).enumerate().map(|(k, (binding, &storage))| {
                let storage = storage.filter(|_| binding.element != Element::Faults)?;
                let first = launch.buffers.iter().position(|s| s.is_some_and(|s| same(s, storage)));
                let before = first == Some(k) && binding.access != Access::Write;
                Some(Bound {
                    first: first.unwrap_or(k),
                    access: binding.access,
                    dtype: storage.0.dtype,
                    elements: storage.0.elements,
                    before: before.then(|| self.device.read(kernel.name, storage, 0, storage.0.elements)),
                    after: None,
                })
            });
        let bindings = bindings.collect();
        let Launch { flags, dtype, params, .. } = *launch;
        Call { kernel, flags, dtype, params: params.to_vec(), bindings }
    }
}

/// Waits for a promise that only says when.
async fn done(promise: Promise) {
    let _ = JsFuture::from(promise).await;
}

/// Waits for those copies that were asked for.
async fn arrived(
    bindings: &mut [Option<Bound>],
    copy: fn(&mut Bound) -> &mut Option<LocalFuture<Result<HostData>>>,
) -> Result<Elements> {
    let mut all = Vec::new();
    for bound in bindings {
        all.push(match bound.as_mut().and_then(|bound| copy(bound).take()) {
            Some(elements) => Some(elements.await?),
            None => None,
        });
    }
    Ok(all)
}

impl Judge {
    fn check(&self) -> Result<()> {
        self.stopped.borrow().clone().map_or(Ok(()), Err)
    }

    /// Waits for a call's copies and compares; an error is the device's, or the twin's.
    async fn compare(&self, mut call: Call) -> Result<Option<Error>> {
        let before = arrived(&mut call.bindings, |bound| &mut bound.before).await?;
        let after = arrived(&mut call.bindings, |bound| &mut bound.after).await?;
        let twin = self.twin(&call, &before, None)?;
        // Outputs that are written together are of the same terms; those that are updated are numbers of their own.
        let written = call.bindings.iter().zip(&twin).filter_map(|(bound, elements)| {
            elements.as_ref().filter(|_| matches!(bound, Some(b) if b.access == Access::Write))
        });
        let beside = written.map(largest).fold(0.0, f64::max);
        for (k, bound) in call.bindings.iter().enumerate() {
            let (Some(bound), Some(got), Some(want)) = (bound, &after[k], &twin[k]) else { continue };
            let beside = if bound.access == Access::Write { beside } else { largest(want) };
            let tolerance = Tolerance::new(bound.dtype, beside);
            if compare(got, want, tolerance, &[]).is_none() {
                continue;
            }
            let mut varied = Vec::new();
            for draw in 0..VARIATIONS {
                varied.extend(self.twin(&call, &before, Some(draw))?.swap_remove(k));
            }
            if let Some(found) = compare(got, want, tolerance, &varied) {
                return Ok(Some(call.error(k, found)));
            }
        }
        Ok(None)
    }

    /// What the CPU makes of a call's inputs, or of a variation of them.
    fn twin(&self, call: &Call, before: &Elements, variation: Option<u64>) -> Result<Elements> {
        let (cpu, op) = (&self.cpu, call.kernel.name);
        let mut storages: Vec<Option<Storage>> = Vec::new();
        for (k, bound) in call.bindings.iter().enumerate() {
            storages.push(match (bound, &before[k]) {
                (Some(bound), _) if bound.first != k => storages[bound.first].clone(),
                (Some(_), Some(HostData::F32(values))) => {
                    // As they are: f16 elements that came from a GPU are rounded.
                    let values = vary(op, values, variation.map(|draw| draw << 8 | k as u64))?;
                    Some(cpu.upload(op, DType::F32, HostData::F32(values))?)
                }
                (Some(bound), Some(integers)) => {
                    let words = try_collect(op, integers.len(), integers.words().iter().copied())?;
                    Some(cpu.upload(op, bound.dtype, HostData::from_words(bound.dtype, words))?)
                }
                (Some(bound), None) => Some(cpu.alloc(op, bound.dtype, bound.elements)?),
                (None, _) => None,
            });
        }
        let Call { kernel, flags, params, .. } = call;
        // Rounding to f16 would hide what a variation changes.
        let dtype = if variation.is_some() && call.dtype == DType::F16 { DType::F32 } else { call.dtype };
        let buffers: Vec<_> = storages.iter().map(Option::as_ref).collect();
        cpu.run(&Launch { kernel, flags: *flags, dtype, params, buffers: &buffers })?;
        let mut outputs = Vec::new();
        for (bound, storage) in call.bindings.iter().zip(&storages) {
            outputs.push(match (bound, storage) {
                (Some(bound), Some(storage)) if bound.access != Access::Read => {
                    Some(cpu.elements(op, storage, 0, bound.elements)?)
                }
                _ => None,
            });
        }
        Ok(outputs)
    }
}

/// A copy of the values, each a little larger or smaller where `seed` says how. The first draw makes all larger in size, which
/// moves sums of what cancels furthest.
fn vary(op: &'static str, values: &[f32], seed: Option<u64>) -> Result<Vec<f32>> {
    let copies = values.iter().copied();
    match seed {
        None => try_collect(op, values.len(), copies),
        Some(seed) if seed < 1 << 8 => try_collect(op, values.len(), copies.map(|v| v + v.abs() * VARIATION)),
        Some(seed) => {
            let mut factors = Philox::new(seed).uniform(values.len(), 1.0 - VARIATION, 1.0 + VARIATION)?;
            factors.iter_mut().zip(copies).for_each(|(factor, v)| *factor *= v);
            Ok(factors)
        }
    }
}

impl Call {
    /// Says where output `place` disagrees, and what the call was.
    fn error(&self, place: usize, found: Disagreement) -> Error {
        let kernel = self.kernel;
        let mut flags = String::new();
        for flag in kernel.flags.iter().copied().flatten().filter(|flag| kernel.has(self.flags, flag)) {
            flags.push_str(if flags.is_empty() { " (" } else { ", " });
            flags.push_str(flag);
        }
        if !flags.is_empty() {
            flags.push(')');
        }
        let mut sizes = String::new();
        for (binding, bound) in kernel.bindings.iter().zip(&self.bindings) {
            if let Some(Bound { dtype, elements, .. }) = bound {
                sizes += &format!(
                    "{}{}: {dtype}[{elements}]",
                    if sizes.is_empty() { "" } else { ", " },
                    binding.name
                );
            }
        }
        let (output, elements, float) = match &self.bindings[place] {
            Some(bound) => (kernel.bindings[place].name, bound.elements, bound.dtype.is_float()),
            None => ("", 0, false),
        };
        let show = |value: f64| if float { number_f32(value as f32) } else { number(value) };
        Error::new(
            ErrorKind::Kernel,
            [kernel.name, &flags].concat(),
            format!(
                "WebGPU and the CPU disagree in {} of {elements} elements of {output}, most at {}: {} on WebGPU, {} on the \
                 CPU; the buffers are {sizes}",
                found.count,
                found.place,
                show(found.got),
                show(found.want),
            ),
        )
    }
}

impl Backend for Checked {
    fn name(&self) -> &'static str {
        self.device.name()
    }

    fn alloc(&self, op: &'static str, dtype: DType, elements: usize) -> Result<Storage> {
        self.judge.check()?;
        self.device.alloc(op, dtype, elements)
    }

    fn upload(&self, op: &'static str, dtype: DType, data: HostData) -> Result<Storage> {
        self.judge.check()?;
        self.device.upload(op, dtype, data)
    }

    fn run(&self, launch: &Launch<'_>) -> Result<()> {
        self.judge.check()?;
        let mut call = self.note(launch);
        self.device.run(launch)?;
        for (bound, storage) in call.bindings.iter_mut().zip(launch.buffers) {
            if let (Some(bound), Some(storage)) = (bound, storage)
                && bound.access != Access::Read
            {
                bound.after = Some(self.device.read(launch.kernel.name, storage, 0, bound.elements));
            }
        }
        let (judge, reported) = (Rc::clone(&self.judge), Rc::clone(&self.reported.borrow()));
        let before = self.compared.borrow().clone();
        self.compared.replace(future_to_promise(async move {
            done(before).await;
            if judge.check().is_ok() {
                match judge.compare(call).await {
                    Ok(found) => drop(judge.stopped.replace(found)),
                    Err(error) => drop(reported.borrow_mut().get_or_insert(error)),
                }
            }
            Ok(JsValue::UNDEFINED)
        }));
        Ok(())
    }

    fn read(
        &self,
        op: &'static str,
        storage: &Storage,
        start: usize,
        count: usize,
    ) -> LocalFuture<Result<HostData>> {
        self.after_checks(|| self.device.read(op, storage, start, count))
    }

    fn flush(&self) -> Result<()> {
        self.judge.check()?;
        self.device.flush()
    }

    fn sync(&self) -> LocalFuture<Result<()>> {
        self.after_checks(|| self.device.sync())
    }

    fn memory(&self) -> Memory {
        self.device.memory()
    }

    fn dispose(&self) {
        self.device.dispose();
        self.judge.cpu.dispose();
    }
}

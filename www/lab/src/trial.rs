//! One call of chosen flags, sizes and inputs, on any device.

use std::cell::Cell;

use serde_json::{Value, json};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wgrad::DType;
use wgrad::Error;
use wgrad::check::{self, Expected, Worst};
use wgrad::kernel::check::{Case, CaseBuffer, Check};
use wgrad::wgsl::Scalar;

use crate::device::Device;
use crate::inputs::{DISTRIBUTIONS, MOST, Source};
use crate::json::{number, variant};
use crate::registry::find;
use crate::{refuse, throw, timing};

/// The most elements, inputs and outputs, that are compared with float64.
const MOST_CHECKED: usize = 1 << 23;
/// The most steps (the product of all sizes) that the reference takes.
const MOST_STEPS: f64 = (1u64 << 30) as f64;
/// How much is copied to measure a device's rate, in bytes read and written: as much as the call needs, inside this.
const COPIED: std::ops::RangeInclusive<usize> = 8 << 20..=256 << 20;
/// How many of an output's first values are told.
const FIRST: usize = 8;

/// A call with its inputs, and what float64 makes of them.
#[wasm_bindgen]
pub struct Trial {
    check: &'static Check,
    case: Case,
    dtype: DType,
    sizes: Vec<usize>,
    expected: Option<Expected>,
}

#[wasm_bindgen]
impl Trial {
    /// A call of these flags, sizes (in the kernel's order) and inputs.
    #[wasm_bindgen(constructor)]
    #[allow(clippy::needless_pass_by_value, reason = "what comes from JavaScript is owned")]
    pub fn new(
        kernel: &str,
        flags: Vec<String>,
        dtype: &str,
        sizes: Vec<f64>,
        distribution: &str,
    ) -> Result<Self, JsValue> {
        let check = find(kernel)?;
        let dtype = DType::from_name(dtype).filter(|d| d.is_float()).ok_or_else(|| refuse("f32 or f16"))?;
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let made = made(check, &flags, dtype, &sizes, distribution);
        let (case, sizes) = made.map_err(|words| refuse(&words))?;
        Ok(Self { check, case, dtype, sizes, expected: None })
    }

    /// Computes the float64 reference, unless there is too much of it. Says whether results will be checked.
    pub fn refer(&mut self) -> bool {
        let steps: f64 = self.sizes.iter().map(|&n| n as f64).product();
        if self.elements() <= MOST_CHECKED && steps <= MOST_STEPS {
            self.expected = Some(self.trial().expected());
        }
        self.expected.is_some()
    }

    /// Runs the call on a device: the first results, the largest errors, time and rate, as JSON.
    pub async fn run(&self, device: &Device) -> Result<String, JsValue> {
        self.outcome(device).await.map(|outcome| outcome.to_string()).map_err(|e| throw(&e))
    }
}

/// The case and its sizes as whole numbers, or what is wrong with the choices.
pub fn made(
    check: &Check,
    flags: &[&str],
    dtype: DType,
    sizes: &[f64],
    distribution: &str,
) -> Result<(Case, Vec<usize>), String> {
    let kind = DISTRIBUTIONS.iter().find(|(_, name, _)| *name == distribution);
    let &(distribution, ..) = kind.ok_or_else(|| format!("no distribution is called {distribution}"))?;
    let named = check.sizing.sizes.iter().zip(sizes);
    let whole: Result<Vec<usize>, String> = named
        .map(|((name, _), &size)| match size {
            size if size.fract() == 0.0 && (1.0..=MOST as f64).contains(&size) => Ok(size as usize),
            _ => Err(format!("{name} is a whole number from 1 to {MOST}, not {size}")),
        })
        .collect();
    let (whole, flags) = (whole?, check.select(flags)?);
    let source = Source { distribution, dtype, sizing: check.sizing, drawn: Cell::new(0) };
    let case = check.sized(flags, &whole, &|binding, count| source.draw(binding, count))?;
    let outputs = case.buffers.iter().map(|b| if let CaseBuffer::Output(n) = b { *n } else { 0 });
    let all = outputs.fold(source.drawn.get(), usize::saturating_add);
    if all > MOST {
        return Err(format!("these sizes make {all} elements in all; the lab takes {MOST} at most"));
    }
    Ok((case, whole))
}

impl Trial {
    fn trial(&self) -> check::Trial<'_> {
        check::Trial { check: self.check, case: &self.case, dtype: self.dtype }
    }

    fn elements(&self) -> usize {
        let count = |buffer: &CaseBuffer| match buffer {
            CaseBuffer::Absent => 0,
            CaseBuffer::Floats(v) => v.len(),
            CaseBuffer::Integers(v) => v.len(),
            CaseBuffer::Output(n) => *n,
        };
        self.case.buffers.iter().map(count).sum()
    }

    async fn outcome(&self, Device(engine): &Device) -> Result<Value, Error> {
        let kernel = self.check.kernel;
        let call = self.trial().call(engine)?;
        call.run()?;
        let got = call.outputs().await?;
        let compared = self.expected.as_ref().map(|e| self.trial().compare(e, &got, engine.device()));
        let outputs = kernel.bindings.iter().zip(&got).enumerate().filter(|(_, (_, got))| !got.is_empty());
        let outputs = outputs.map(|(k, (binding, got))| {
            let first = |values: &[f64]| values.iter().take(FIRST).map(|&v| number(v)).collect::<Value>();
            let worst = compared.iter().flatten().find(|w| w.binding == binding.name);
            json!({
                "binding": binding.name,
                "count": got.len(),
                "got": first(got),
                "want": self.expected.as_ref().map(|e| first(&e.want[k])),
                "worst": worst.map(|w| self.place(w)),
            })
        });
        let outputs = outputs.collect::<Value>();
        drop(got);

        let chosen = engine.variant(kernel, self.case.flags, self.dtype, &self.case.params);
        let halves = self.dtype == DType::F16 && chosen.is_some_and(|v| v.scalar == Scalar::F16);
        let bytes = self.case.bytes(kernel, if halves { 2 } else { 4 });
        let copied = copy_of(bytes.clamp(*COPIED.start(), *COPIED.end()));
        let copy = copied.trial().call(engine)?;
        let (milliseconds, copy_milliseconds) = timing::pair(engine, &call, &copy).await?;
        let rate = |bytes: usize, milliseconds: f64| bytes as f64 / 1e6 / milliseconds;
        Ok(json!({
            "outputs": outputs,
            "variant": chosen.map(|v| variant(kernel, v)),
            "milliseconds": milliseconds,
            "bytes": bytes,
            "rate": rate(bytes, milliseconds),
            "copyRate": rate(copied.case.bytes(copied.check.kernel, 4), copy_milliseconds),
        }))
    }

    /// Where and how large an error is.
    fn place(&self, worst: &Worst) -> Value {
        let grid = self.check.sizing.grids.iter().find(|(binding, _)| *binding == worst.binding);
        let width = grid.map(|&(_, size)| self.sizes[size]);
        let error = (worst.got - worst.want).abs();
        json!({
            "index": worst.index,
            "row": width.map(|w| worst.index / w),
            "col": width.map(|w| worst.index % w),
            "got": number(worst.got),
            "want": number(worst.want),
            "absolute": number(error),
            "relative": number(error / worst.want.abs()),
            "ratio": number(worst.ratio),
        })
    }
}

/// The copy kernel over as many bytes, read and written.
fn copy_of(bytes: usize) -> Trial {
    let check = find("copy").expect("the copy kernel is registered");
    let sizes = vec![1, bytes / 8, 1];
    let flags = check.select(&["walk"]).expect("a flag of the copy kernel");
    let case = check.sized(flags, &sizes, &|_, n| Ok(vec![1.0; n])).expect("sizes below the limit fit");
    Trial { check, case, dtype: DType::F32, sizes, expected: None }
}

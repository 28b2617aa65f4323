//! Every kernel on a device, for `bench/kernels.mjs`.

use serde_json::{Value, json};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wgrad::check::run_case;
use wgrad::kernel::check::{Case, Check};
use wgrad::kernels::CHECKS;
use wgrad::{DType, Engine};

use crate::device::Device;
use crate::inputs::DISTRIBUTIONS;
use crate::json::flag_names;
use crate::refuse;
use crate::trial::made;

/// The longest side of a call with drawn inputs: past a vec4, a subgroup and a workgroup.
const SIDE: f64 = 260.0;

/// Runs every case of every kernel with elements of `dtype`, then a small call of each choice of flags with each
/// distribution of inputs. Counts by kernel and the failures, as JSON.
#[wasm_bindgen(js_name = checkAll)]
pub async fn check_all(device: &Device, dtype: &str) -> Result<String, JsValue> {
    let dtype = DType::from_name(dtype).filter(|d| d.is_float()).ok_or_else(|| refuse("f32 or f16"))?;
    let (mut counts, mut failures) = (Vec::new(), Vec::new());
    for check in CHECKS {
        let mut count = 0;
        for case in (check.cases)() {
            count += 1;
            failures.extend(fault(&device.0, check, &case, dtype).await);
        }
        for case in drawn(check, dtype) {
            count += 1;
            failures.extend(fault(&device.0, check, &case, dtype).await);
        }
        counts.push(json!({ "kernel": check.kernel.name, "count": count }));
    }
    Ok(json!({ "counts": counts, "failures": failures }).to_string())
}

async fn fault(engine: &Engine, check: &Check, case: &Case, dtype: DType) -> Option<Value> {
    let words = match run_case(engine, check, case, dtype).await {
        Ok(worst) => worst.filter(|w| w.ratio.is_nan() || w.ratio > 1.0).map(|w| format!("{w:?}")),
        Err(e) => Some(format!("{}: {e}", e.kind().code())),
    }?;
    let flags = flag_names(check.kernel, case.flags).join(" ");
    Some(json!({ "kernel": check.kernel.name, "case": case.label, "flags": flags, "words": words }))
}

/// Small calls of every choice of flags that is not the device's, with every distribution.
fn drawn(check: &Check, dtype: DType) -> Vec<Case> {
    let sizes: Vec<f64> = check.sizing.sizes.iter().map(|&(_, usual)| (usual as f64).min(SIDE)).collect();
    let mut choices: Vec<Vec<&str>> = vec![vec![]];
    for group in check.kernel.flags {
        let options: Vec<&[&str]> = match group {
            [one] => vec![&[], std::slice::from_ref(one)],
            tuned if check.tuned(tuned) => vec![&tuned[..1]],
            many => many.chunks(1).collect(),
        };
        choices =
            choices.iter().flat_map(|c| options.iter().map(move |o| [c.as_slice(), o].concat())).collect();
    }
    let mut all = Vec::new();
    for flags in &choices {
        for (_, name, _) in DISTRIBUTIONS {
            // Choices that do not go together make no case.
            if let Ok((case, _)) = made(check, flags, dtype, &sizes, name) {
                all.push(Case { label: format!("{name}, {}", case.label), ..case });
            }
        }
    }
    all
}

//! What there is: kernels, distributions of inputs, and the text of every variant.

use serde_json::{Value, json};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wgrad::kernel::Variant;
use wgrad::kernel::check::Check;
use wgrad::kernels::CHECKS;
use wgrad::wgsl::Dialect;

use crate::inputs::DISTRIBUTIONS;
use crate::json::{SCALARS, STRATEGIES, name_of, value_of};
use crate::refuse;

pub fn find(kernel: &str) -> Result<&'static Check, JsValue> {
    let found = CHECKS.iter().find(|check| check.kernel.name == kernel);
    found.ok_or_else(|| refuse(&format!("no kernel is called {kernel}")))
}

/// Every registered kernel, as JSON: its groups of flags (`tuned`: the device chooses), sizes, scalars and strategies.
#[wasm_bindgen]
#[must_use]
pub fn kernels() -> String {
    CHECKS.iter().map(describe).collect::<Value>().to_string()
}

fn describe(check: &Check) -> Value {
    let kernel = check.kernel;
    let groups = kernel.flags.iter().map(|group| json!({ "flags": group, "tuned": check.tuned(group) }));
    let sizes = check.sizing.sizes.iter().map(|(name, usual)| json!({ "name": name, "usual": usual }));
    json!({
        "name": kernel.name,
        "groups": groups.collect::<Value>(),
        "sizes": sizes.collect::<Value>(),
        "scalars": kernel.scalars.iter().map(|s| name_of(SCALARS, s)).collect::<Value>(),
        "strategies": kernel.strategies.iter().map(|s| name_of(STRATEGIES, s)).collect::<Value>(),
    })
}

/// The distributions of inputs, as JSON: name and what it holds.
#[wasm_bindgen]
#[must_use]
pub fn distributions() -> String {
    let all = DISTRIBUTIONS.iter().map(|(_, name, note)| json!({ "name": name, "note": note }));
    all.collect::<Value>().to_string()
}

/// The WGSL text of a variant as a browser gets it.
#[wasm_bindgen]
#[allow(clippy::needless_pass_by_value, reason = "what comes from JavaScript is owned")]
pub fn compose(kernel: &str, flags: Vec<String>, scalar: &str, strategy: &str) -> Result<String, JsValue> {
    let check = find(kernel)?;
    let (Some(scalar), Some(strategy)) = (value_of(SCALARS, scalar), value_of(STRATEGIES, strategy)) else {
        return Err(refuse(&format!("{scalar} or {strategy} is unknown")));
    };
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let flags = check.select(&flags).map_err(|words| refuse(&words))?;
    let text = check.kernel.compose(Variant { flags, scalar, strategy }, Dialect::Browser);
    text.map_err(|e| refuse(&e.to_string()))
}

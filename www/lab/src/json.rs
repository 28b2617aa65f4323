//! Numbers and variants as JSON.

use serde_json::{Value, json};
use wgrad::kernel::{Flags, Kernel, Strategy, Variant};
use wgrad::wgsl::Scalar;

/// A number; JSON has none for NaN and infinity, which become their JavaScript names.
pub fn number(value: f64) -> Value {
    if value.is_finite() {
        // Zero keeps its sign as text.
        if value == 0.0 && value.is_sign_negative() { json!("-0") } else { json!(value) }
    } else if value.is_nan() {
        json!("NaN")
    } else {
        json!(if value > 0.0 { "Infinity" } else { "-Infinity" })
    }
}

pub const STRATEGIES: &[(Strategy, &str)] = &[
    (Strategy::Elementwise, "elementwise"),
    (Strategy::Subgroups, "subgroups"),
    (Strategy::Workgroup, "workgroup"),
    (Strategy::Serial, "serial"),
];

pub const SCALARS: &[(Scalar, &str)] = &[
    (Scalar::F32, "f32"),
    (Scalar::F16, "f16"),
    (Scalar::F16InF32, "f16 in f32"),
    (Scalar::I32, "i32"),
    (Scalar::U32, "u32"),
];

pub fn name_of<T: PartialEq>(table: &[(T, &'static str)], value: &T) -> &'static str {
    table.iter().find(|(v, _)| v == value).map_or("", |(_, name)| name)
}

pub fn value_of<T: Copy>(table: &[(T, &'static str)], name: &str) -> Option<T> {
    table.iter().find(|(_, n)| *n == name).map(|(value, _)| *value)
}

pub fn flag_names(kernel: &Kernel, flags: Flags) -> Vec<&'static str> {
    kernel.flags.concat().into_iter().filter(|flag| kernel.has(flags, flag)).collect()
}

pub fn variant(kernel: &Kernel, variant: Variant) -> Value {
    json!({
        "flags": flag_names(kernel, variant.flags),
        "scalar": name_of(SCALARS, &variant.scalar),
        "strategy": name_of(STRATEGIES, &variant.strategy),
    })
}

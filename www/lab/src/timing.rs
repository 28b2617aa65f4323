//! How long a call takes, beside the device's own copying.

use js_sys::{Function, Reflect};
use wasm_bindgen::prelude::{JsCast, JsValue};
use wgrad::check::Call;
use wgrad::{Engine, Result};

/// A batch is at least this long, so that waiting for it counts little.
const BATCH_MS: f64 = 30.0;
/// Batches of each; the median counts.
const BATCHES: usize = 5;
/// Two calls that take longer than this together are timed once.
const SLOW_MS: f64 = 100.0;
const MOST_CALLS: u32 = 1000;

fn now() -> f64 {
    let get = |object: &JsValue, name: &str| Reflect::get(object, &name.into()).unwrap_or(JsValue::UNDEFINED);
    let performance = get(&js_sys::global(), "performance");
    let clock = get(&performance, "now").dyn_into::<Function>().ok();
    clock.and_then(|f| f.call0(&performance).ok()).and_then(|v| v.as_f64()).unwrap_or_else(js_sys::Date::now)
}

/// Milliseconds a call in a batch of `calls`.
async fn batch(engine: &Engine, call: &Call, calls: u32) -> Result<f64> {
    let start = now();
    for _ in 0..calls {
        call.run()?;
    }
    engine.sync().await?;
    Ok((now() - start) / f64::from(calls))
}

/// How many calls fill a batch.
async fn fill(engine: &Engine, call: &Call) -> Result<(u32, f64)> {
    // The first one compiles.
    batch(engine, call, 1).await?;
    let mut calls = 1;
    loop {
        let each = batch(engine, call, calls).await?;
        if each * f64::from(calls) >= BATCH_MS || calls >= MOST_CALLS {
            return Ok((calls, each));
        }
        calls = (calls * 4).min(MOST_CALLS);
    }
}

/// The medians of both calls' milliseconds; their batches take turns, so that both meet the same machine.
pub async fn pair(engine: &Engine, call: &Call, other: &Call) -> Result<(f64, f64)> {
    let (calls, first) = fill(engine, call).await?;
    let (other_calls, other_first) = fill(engine, other).await?;
    let (mut times, mut other_times) = (vec![first], vec![other_first]);
    if first + other_first < SLOW_MS {
        for _ in 1..BATCHES {
            times.push(batch(engine, call, calls).await?);
            other_times.push(batch(engine, other, other_calls).await?);
        }
    }
    Ok((median(times), median(other_times)))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

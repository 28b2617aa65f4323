//! Devices that calls run on.

use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wgrad::Engine;
use wgrad::kernel::{Flags, Strategy, Variant};
use wgrad::wgsl::Scalar;

use crate::json::{STRATEGIES, name_of, value_of};
use crate::{refuse, throw};

/// An engine on the CPU or on WebGPU.
#[wasm_bindgen]
pub struct Device(pub(crate) Engine);

#[wasm_bindgen]
impl Device {
    /// The calling thread's CPU.
    #[must_use]
    pub fn cpu() -> Self {
        Self(Engine::cpu())
    }

    /// The adapter that `navigator.gpu` gives.
    pub async fn webgpu() -> Result<Self, JsValue> {
        Engine::webgpu().await.map(Self).map_err(|e| throw(&e))
    }

    /// The `GPUDevice`, or undefined.
    #[wasm_bindgen(getter, js_name = gpuDevice)]
    #[must_use]
    pub fn gpu_device(&self) -> JsValue {
        self.0.gpu_device().unwrap_or(JsValue::UNDEFINED)
    }

    /// The forms of reductions that the device can compile; none on the CPU.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn strategies(&self) -> Vec<String> {
        let offered = STRATEGIES.iter().filter(|(strategy, _)| {
            *strategy != Strategy::Elementwise
                && self.0.offers(Variant { flags: Flags(0), scalar: Scalar::F32, strategy: *strategy })
        });
        offered.map(|(strategy, _)| name_of(STRATEGIES, strategy).to_owned()).collect()
    }

    /// Makes the device take one form of reductions, or its own again.
    #[allow(clippy::needless_pass_by_value, reason = "what comes from JavaScript is owned")]
    pub fn force(&self, strategy: Option<String>) -> Result<(), JsValue> {
        let found = strategy.as_deref().map(|name| value_of(STRATEGIES, name).ok_or(name));
        let strategy = found.transpose().map_err(|name| refuse(&format!("no strategy is called {name}")))?;
        self.0.force_strategy(strategy);
        Ok(())
    }

    /// Gives the device's memory back.
    pub fn dispose(&self) {
        self.0.dispose();
    }
}

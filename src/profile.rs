//! What a profile notes of each call of a kernel.

use std::rc::Rc;

use crate::backend::Launch;
use crate::dtype::DType;
use crate::kernel::Access;

/// One call of a kernel while a profile was taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelCall {
    /// The kernel's name.
    pub kernel: &'static str,
    /// When it began, in microseconds since the profile did; `None` where the device has no timestamps.
    pub start: Option<f64>,
    /// How long it took, in microseconds; `None` where the device has no timestamps.
    pub time: Option<f64>,
    /// Bytes of the storages that it reads and writes, each counted once, and twice where it is updated in place. A
    /// view counts as the whole of its storage.
    pub bytes: u64,
    /// Floating-point operations; 0 for kernels in which they are not counted.
    pub flops: u64,
}

impl KernelCall {
    /// What is known of a call before it runs; `width` is the bytes that an element takes on the device.
    pub(crate) fn of(launch: &Launch<'_>, width: &dyn Fn(DType) -> usize) -> Self {
        let kernel = launch.kernel;
        let mut bytes = 0;
        for (k, (binding, storage)) in kernel.bindings.iter().zip(launch.buffers).enumerate() {
            let Some(storage) = storage else { continue };
            // One storage may stand behind several bindings.
            if launch.buffers[..k].iter().flatten().any(|before| Rc::ptr_eq(&before.0, &storage.0)) {
                continue;
            }
            let ways = if binding.access == Access::Update { 2 } else { 1 };
            bytes += ways * storage.0.elements as u64 * width(storage.0.dtype) as u64;
        }
        let flops = (kernel.flops)(launch.params, launch.flags);
        Self { kernel: kernel.name, start: None, time: None, bytes, flops }
    }
}

/// The time on the host's clock in microseconds, from any beginning.
#[cfg(target_arch = "wasm32")]
pub(crate) fn now() -> f64 {
    use wasm_bindgen::prelude::wasm_bindgen;

    #[wasm_bindgen]
    extern "C" {
        #[wasm_bindgen(js_namespace = performance, js_name = now)]
        fn performance_now() -> f64;
    }
    performance_now() * 1e3
}

/// The time on the host's clock in microseconds, from any beginning.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn now() -> f64 {
    use std::sync::LazyLock;
    use std::time::Instant;

    static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGINNING.elapsed().as_secs_f64() * 1e6
}

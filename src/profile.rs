//! What calls of kernels cost.

use crate::backend::{Launch, Storage};
use crate::dtype::DType;
use crate::kernel::{Access, Element};

/// One call of a kernel while a profile was taken.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct KernelCall {
    /// The kernel's name.
    pub kernel: &'static str,
    /// When it began, in microseconds since the first call; `None` where the device tells no times.
    pub start: Option<f64>,
    /// How long it took, in microseconds; `None` where the device tells no times.
    pub time: Option<f64>,
    /// Bytes of the tensors that it reads and writes, each counted once; what is updated in place is read and written.
    pub bytes: u64,
    /// Floating-point operations, where memory is not all that counts; otherwise 0.
    pub flops: u64,
}

impl KernelCall {
    /// A call without its times.
    pub(crate) fn of(launch: &Launch<'_>, width: impl Fn(DType) -> usize) -> Self {
        let kernel = launch.kernel;
        let mut seen: Vec<&Storage> = Vec::new();
        let mut bytes = 0;
        for (binding, storage) in kernel.bindings.iter().zip(launch.buffers) {
            let Some(storage) = storage.filter(|_| binding.element != Element::Faults) else { continue };
            if seen.iter().any(|s| std::rc::Rc::ptr_eq(&s.0, &storage.0)) {
                continue;
            }
            seen.push(storage);
            let times = if binding.access == Access::Update { 2 } else { 1 };
            bytes += (times * storage.0.elements * width(storage.0.dtype)) as u64;
        }
        Self {
            kernel: kernel.name,
            start: None,
            time: None,
            bytes,
            flops: (kernel.flops)(launch.params, launch.flags),
        }
    }

    /// The call with its beginning and end, in nanoseconds of the device's clock.
    pub(crate) fn timed(&mut self, begin: f64, end: f64) {
        self.start = Some(begin / 1e3);
        self.time = Some(((end - begin) / 1e3).max(0.0));
    }
}

/// Lets time begin with the first call.
pub(crate) fn from_the_first(calls: &mut [KernelCall]) {
    let first = calls.iter().filter_map(|call| call.start).fold(f64::INFINITY, f64::min);
    for start in calls.iter_mut().filter_map(|call| call.start.as_mut()) {
        *start -= first;
    }
}

/// Now, in nanoseconds of a clock that only goes forward.
#[cfg(target_arch = "wasm32")]
pub(crate) fn nanoseconds() -> f64 {
    #[wasm_bindgen::prelude::wasm_bindgen]
    extern "C" {
        #[wasm_bindgen(js_namespace = performance)]
        fn now() -> f64;
    }
    now() * 1e6
}

/// Now, in nanoseconds of a clock that only goes forward.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn nanoseconds() -> f64 {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed().as_secs_f64() * 1e9
}

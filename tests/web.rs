//! The same in a browser: the reference cases, the faults and every kernel, on the CPU engine in wasm and on
//! WebGPU.
//!
//! Without an adapter the WebGPU tests fail; they do not skip.
#![cfg(target_arch = "wasm32")]

mod cases;

use std::fmt::Write;

use cases::{FILES, File, faults};
use wasm_bindgen_test::{console_log, wasm_bindgen_test, wasm_bindgen_test_configure};
use wgrad::kernel::Kernel;
use wgrad::kernels::CHECKS;
use wgrad::{DType, Engine};

wasm_bindgen_test_configure!(run_in_browser);

#[allow(clippy::unused_async, reason = "made as the other engine is")]
async fn cpu() -> Engine {
    Engine::cpu()
}

async fn webgpu() -> Engine {
    Engine::webgpu().await.expect("a WebGPU adapter, a software one at least")
}

/// Every case of every kernel against its float64 reference.
async fn check_kernels(engine: &Engine) {
    check_some(engine, "kernels", |_| true, &[DType::F32, DType::F16]).await;
}

/// The cases of the kernels that are `wanted`.
async fn check_some(engine: &Engine, what: &str, wanted: impl Fn(&Kernel) -> bool, dtypes: &[DType]) {
    let mut count = 0;
    let mut failures = String::new();
    let checks: Vec<_> = CHECKS.iter().filter(|check| wanted(check.kernel)).collect();
    for check in &checks {
        let kernel = check.kernel;
        for case in (check.cases)() {
            for &dtype in dtypes {
                count += 1;
                let fault = match wgrad::check::run_case(engine, check, &case, dtype).await {
                    Ok(worst) => {
                        worst.filter(|w| w.ratio.is_nan() || w.ratio > 1.0).map(|w| format!("{w:?}"))
                    }
                    Err(e) => Some(format!("{}: {e}", e.kind().code())),
                };
                if let Some(fault) = fault {
                    write!(failures, "\n  {} {} {dtype}: {fault}", kernel.name, case.label)
                        .expect("a string takes everything");
                }
            }
        }
    }
    console_log!("{what:10} {}: {count} cases", engine.device());
    assert!(failures.is_empty(), "{}{failures}", engine.device());
    assert!(count >= dtypes.len() * checks.len() && count > 0, "every kernel has a case");
}

macro_rules! files {
    ($($name:ident),* $(,)?) => {
        $(#[wasm_bindgen_test]
        async fn $name() {
            let engine = engine().await;
            console_log!("{}", File::named(stringify!($name)).run(&engine).await);
            engine.dispose();
        })*

        #[wasm_bindgen_test]
        fn every_file_has_a_test() {
            let tested = [$(stringify!($name)),*];
            assert_eq!(FILES.iter().map(|f| f.name).collect::<Vec<_>>(), tested);
        }
    };
}

macro_rules! fault_tests {
    ($($name:ident),* $(,)?) => {
        $(#[wasm_bindgen_test]
        async fn $name() {
            let engine = engine().await;
            faults::$name(engine.clone()).await;
            engine.dispose();
        })*
    };
}

/// One body for both devices: `engine` is what the module calls so.
macro_rules! tests {
    () => {
        use super::{FILES, File, check_kernels, console_log, faults, wasm_bindgen_test};

        files!(binary, f16, gated, graph, loss, matmul, norm, optimizer, reduction);

        faults::each_fault!(fault_tests);

        #[wasm_bindgen_test]
        async fn every_kernel_agrees_with_float64() {
            let engine = engine().await;
            check_kernels(&engine).await;
            engine.dispose();
        }
    };
}

mod on_cpu {
    use super::cpu as engine;
    tests!();
}

mod on_webgpu {
    use super::{check_some, webgpu as engine};
    use wgrad::DType;
    use wgrad::kernel::{Kernel, Strategy};
    use wgrad::kernels::ALL;
    use wgrad::wgsl::Scalar;

    tests!();

    /// The forms of reductions that a software adapter would not choose.
    #[wasm_bindgen_test]
    async fn every_form_of_reduction() {
        let engine = engine().await;
        for form in [Strategy::Subgroups, Strategy::Workgroup] {
            engine.force_strategy(Some(form));
            let has = |kernel: &Kernel| kernel.strategies.contains(&form);
            check_some(&engine, &format!("{form:?}"), has, &[DType::F32]).await;
        }
        engine.dispose();
    }

    /// What the browser's compiler accepts is not what naga accepts.
    #[wasm_bindgen_test]
    async fn every_variant_compiles() {
        let engine = engine().await;
        let (mut compiled, mut without_f16, mut without_subgroups) = (0, 0, 0);
        let mut failures = Vec::new();
        for kernel in ALL {
            for variant in kernel.variants() {
                if engine.offers(variant) {
                    compiled += 1;
                    if let Err(e) = engine.compile(kernel, variant).await {
                        failures.push(format!("{} {variant:?}: {e}", kernel.name));
                    }
                } else if variant.scalar == Scalar::F16 {
                    without_f16 += 1;
                } else {
                    // Nothing but these two features may stand between a variant and a device.
                    assert_eq!(variant.strategy, Strategy::Subgroups, "{} {variant:?}", kernel.name);
                    without_subgroups += 1;
                }
            }
        }
        console_log!(
            "variants   webgpu: {compiled} compiled; {without_f16} want f16, {without_subgroups} subgroups"
        );
        assert!(failures.is_empty(), "{} variants failed:\n{}", failures.len(), failures.join("\n"));
        assert!(compiled > 100, "only {compiled} variants were compiled");
        engine.dispose();
    }
}

//! Every registered kernel, natively: its shader is valid in every variant and agrees with the Rust side, and its CPU
//! twin agrees with its float64 reference.
#![cfg(not(target_arch = "wasm32"))]

use std::collections::BTreeMap;

use naga::valid::{Capabilities, ValidationFlags, Validator};
use wgrad::kernel::{Access, Element, Kernel, Variant};
use wgrad::kernels::{ALL, CHECKS};
use wgrad::wgsl::{Dialect, Scalar};
use wgrad::{DType, Engine};

fn parse(kernel: &Kernel, variant: Variant) -> naga::Module {
    let text = kernel.compose(variant, Dialect::Naga).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
    let module = naga::front::wgsl::parse_str(&text)
        .unwrap_or_else(|e| panic!("{} {variant:?}: {}\n{text}", kernel.name, e.emit_to_string(&text)));
    let capabilities = Capabilities::SHADER_FLOAT16 | Capabilities::SUBGROUP;
    Validator::new(ValidationFlags::all(), capabilities)
        .subgroup_stages(naga::valid::ShaderStages::COMPUTE)
        .subgroup_operations(naga::valid::SubgroupOperationSet::all())
        .validate(&module)
        .unwrap_or_else(|e| panic!("{} {variant:?}: {}", kernel.name, e.emit_to_string(&text)));
    module
}

/// The storage buffers of a composed shader: number -> (name, whether it is written, the innermost element type).
fn storage(module: &naga::Module) -> BTreeMap<u32, (String, bool, Option<naga::Scalar>)> {
    let mut all = BTreeMap::new();
    for (_, variable) in module.global_variables.iter() {
        let naga::AddressSpace::Storage { access } = variable.space else { continue };
        let binding = variable.binding.expect("a storage buffer has a binding");
        assert_eq!(binding.group, 0, "all bindings are in group 0");
        let element = match module.types[variable.ty].inner {
            naga::TypeInner::Array { base, .. } => module.types[base].inner.scalar(),
            _ => None,
        };
        let written = access.contains(naga::StorageAccess::STORE);
        all.insert(binding.binding, (variable.name.clone().unwrap_or_default(), written, element));
    }
    all
}

fn expected_scalar(element: Element, scalar: Scalar) -> Option<naga::Scalar> {
    match element {
        Element::Scalar => Some(match scalar {
            Scalar::F32 | Scalar::F16InF32 => naga::Scalar::F32,
            Scalar::F16 => naga::Scalar::F16,
            Scalar::I32 => naga::Scalar::I32,
            Scalar::U32 => naga::Scalar::U32,
        }),
        Element::F32 => Some(naga::Scalar::F32),
        Element::I32 => Some(naga::Scalar::I32),
        Element::Faults => None,
    }
}

/// The parameter struct: name, offset and size of every member, and the whole.
fn check_params(kernel: &Kernel, module: &naga::Module) {
    let mut uniforms = module.global_variables.iter().filter(|(_, v)| v.space == naga::AddressSpace::Uniform);
    let (_, variable) = uniforms.next().unwrap_or_else(|| panic!("{}: no uniform parameters", kernel.name));
    assert!(uniforms.next().is_none(), "{}: more than one uniform", kernel.name);
    let place = variable.binding.expect("a uniform has a binding").binding;
    assert_eq!(
        place as usize,
        kernel.bindings.len(),
        "{}: the parameters follow the storage buffers",
        kernel.name
    );
    let naga::TypeInner::Struct { ref members, .. } = module.types[variable.ty].inner else {
        panic!("{}: the parameters are no struct", kernel.name)
    };
    let mut layouter = naga::proc::Layouter::default();
    layouter.update(module.to_ctx()).expect("the module is valid");
    let shader: Vec<_> = members
        .iter()
        .map(|m| (m.name.clone().unwrap_or_default(), m.offset as usize, layouter[m.ty].size as usize))
        .collect();
    let rust: Vec<_> = kernel.fields.iter().map(|f| (f.name.to_owned(), f.offset, f.size)).collect();
    assert_eq!(shader, rust, "{}: Params differ between the shader and Rust", kernel.name);
    let end = rust.last().map_or(0, |(_, offset, size)| offset + size);
    assert_eq!(kernel.params_size, end, "{}: Rust's Params end in padding", kernel.name);
}

#[test]
fn every_variant_is_valid_and_matches_the_rust_side() {
    let mut count = 0;
    for kernel in ALL {
        for variant in kernel.variants() {
            let module = parse(kernel, variant);
            let found = storage(&module);
            let mut wanted = BTreeMap::new();
            for (number, binding) in kernel.bindings.iter().enumerate() {
                if kernel.binds(variant.flags, binding) {
                    let written = binding.access != Access::Read;
                    let element = expected_scalar(binding.element, variant.scalar);
                    wanted.insert(number as u32, (binding.name.to_owned(), written, element));
                }
            }
            assert_eq!(found, wanted, "{} {variant:?}: bindings differ", kernel.name);
            check_params(kernel, &module);
            count += 1;
        }
    }
    assert!(count > 100, "only {count} variants were composed");
}

#[test]
fn every_shader_has_a_registry_line() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/shaders");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder of shaders")
        .map(|e| e.expect("a readable entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "wgsl"))
        .map(|p| p.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    files.sort();
    let mut names: Vec<String> = ALL.iter().map(|k| k.name.to_owned()).collect();
    names.sort();
    assert_eq!(files, names);
}

#[test]
fn limits_that_every_device_has_are_kept() {
    for kernel in ALL {
        for variant in kernel.variants() {
            let bound = kernel.bindings.iter().filter(|b| kernel.binds(variant.flags, b)).count();
            assert!(bound <= 8, "{}: {bound} storage buffers", kernel.name);
        }
        assert!(kernel.params_size <= 256, "{}: parameters above 256 bytes", kernel.name);
    }
}

#[test]
fn every_cpu_twin_agrees_with_float64() {
    let engine = Engine::cpu();
    for check in CHECKS {
        let (kernel, cases) = (check.kernel, (check.cases)());
        assert!(!cases.is_empty(), "{} has no case", kernel.name);
        for dtype in [DType::F32, DType::F16] {
            for case in &cases {
                let run = wgrad::check::run_case(&engine, check, case, dtype);
                let worst = pollster(run).unwrap_or_else(|e| panic!("{} {}: {e}", kernel.name, case.label));
                if let Some(w) = worst {
                    assert!(w.ratio <= 1.0, "{} {} {dtype}: {w:?}", kernel.name, case.label);
                }
            }
        }
    }
}

/// Runs a future of the CPU engine, which is always ready.
fn pollster<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("the CPU engine never waits"),
    }
}

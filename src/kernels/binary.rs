//! Elementwise arithmetic of two operands: `out = a ∘ b` for +, −, ·, ÷.

use super::gated::{formed, layouts, span};
use crate::error::Result;
use crate::kernel::check::{Case, CaseBuffer, RefArgs, Sizing, spread};
use crate::kernel::{Binding, CpuArgs, ELEMENTWISE, FLOATS, Kernel, NO_FLOPS, UNTUNED};
use crate::pairing::{FORMS, PairParams, for_each_block, invocations, plan, positions, zip_lanes};
use crate::wgsl::source::shader;

/// The operations, as flags.
pub(crate) const OPERATIONS: &[&str] = &["add", "sub", "mul", "div"];

pub(crate) static KERNEL: Kernel = Kernel {
    name: "binary",
    source: shader!("binary"),
    bindings: &[Binding::read("a"), Binding::read("b"), Binding::write("out")],
    fields: PairParams::LAYOUT,
    params_size: size_of::<PairParams>(),
    flags: &[OPERATIONS, FORMS],
    scalars: FLOATS,
    strategies: ELEMENTWISE,
    tune: UNTUNED,
    workgroups: |params, flags, _| {
        invocations(bytemuck::from_bytes(params), KERNEL.has(flags, "vec4")).div_ceil(256)
    },
    flops: NO_FLOPS,
    cpu,
};

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    let row: fn(&[f32], &[f32], &mut [f32]) = match OPERATIONS.iter().find(|&&f| args.has(f)).copied() {
        Some("add") => |a, b, out| zip_lanes(a, b, out, |x, y| x + y),
        Some("sub") => |a, b, out| zip_lanes(a, b, out, |x, y| x - y),
        Some("mul") => |a, b, out| zip_lanes(a, b, out, |x, y| x * y),
        _ => |a, b, out| zip_lanes(a, b, out, |x, y| x / y),
    };
    let (p, strided) = (args.params::<PairParams>(), args.has("strided"));
    let (a, b, mut out) = (args.read("a"), args.read("b"), args.write("out"));
    for_each_block(&p, strided, &a, &b, &mut |place, a, b| row(a, b, &mut out[place..place + a.len()]));
    Ok(())
}

pub(crate) fn reference(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let (p, strided) = (args.params::<PairParams>(), args.has("strided"));
    let out = (0..p.count as usize).map(|i| {
        let (a, b) = positions(&p, strided, i);
        let (x, y) = (args.input("a")[a], args.input("b")[b]);
        match OPERATIONS.iter().find(|&&f| args.has(f)).copied() {
            Some("add") => x + y,
            Some("sub") => x - y,
            Some("mul") => x * y,
            _ => x / y,
        }
    });
    vec![vec![], vec![], out.collect()]
}

/// Division on a GPU may be off by 2.5 ulp.
fn relative(op: &str) -> f64 {
    if op == "div" { 4e-7 } else { 1.3e-7 }
}

pub(crate) static SIZING: Sizing = Sizing {
    sizes: &[("rows", 1024), ("cols", 1024)],
    largest: 1e30,
    grids: &[("out", 1)],
    make: |request| {
        let (a, b, params) = formed(&KERNEL, request)?;
        Ok(Case {
            label: format!("{}", a.shape()),
            flags: request.flags,
            params: bytemuck::bytes_of(&params).to_vec(),
            buffers: vec![
                request.input("a", span(&a))?,
                request.input("b", span(&b))?,
                CaseBuffer::Output(params.count as usize),
            ],
            relative: relative(if KERNEL.has(request.flags, "div") { "div" } else { "" }),
            absolute: 0.0,
            terms: None,
        })
    },
};

pub(crate) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for op in OPERATIONS {
        for (name, a, b) in layouts() {
            let (form, params) = plan(&a, &b);
            all.push(Case {
                label: format!("{op} {name}"),
                flags: KERNEL.set(&[op, form]),
                params: bytemuck::bytes_of(&params).to_vec(),
                buffers: vec![
                    CaseBuffer::Floats(spread(span(&a), 1, -3.0, 3.0)),
                    CaseBuffer::Floats(spread(span(&b), 2, 0.5, 3.0)),
                    CaseBuffer::Output(params.count as usize),
                ],
                relative: relative(op),
                absolute: 0.0,
                terms: None,
            });
        }
    }
    all
}

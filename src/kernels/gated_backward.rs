//! Fused gated activations, backward: `da = dy · b · act'(a)`, `db = dy · act(a)`.

use std::cell::RefMut;

use super::gated::{ACTIVATIONS, activation64, gate_values, layouts, span};
use crate::kernel::check::{Case, CaseBuffer, RefArgs, spread};
use crate::kernel::{Binding, CpuArgs, ELEMENTWISE, FLOATS, Kernel, UNTUNED};
use crate::error::Result;
use crate::math::activation::{Activation, GeluErf, GeluTanh, Relu, Sigmoid, Silu};
use crate::pairing::{FORMS, PairParams, for_each_run, gather, invocations, plan, plan_packed, positions, scatter};

/// Which gradients are written: into buffers of their own, or both into the packed one.
/// (`packed_swapped` where the gate is the second half).
pub(crate) const WANTED: &[&str] = &["da", "db", "both", "packed", "packed_swapped"];

pub(crate) static KERNEL: Kernel = Kernel {
    name: "gated_backward",
    source: include_str!("../../shaders/gated_backward.wgsl"),
    bindings: &[
        Binding::read("dy"),
        Binding::read("a"),
        Binding::read("b"),
        Binding::write("da").when(&["da", "both"]),
        Binding::write("db").when(&["db", "both"]),
        Binding::write("dx").when(&["packed", "packed_swapped"]),
    ],
    fields: PairParams::LAYOUT,
    params_size: size_of::<PairParams>(),
    flags: &[ACTIVATIONS, FORMS, WANTED],
    scalars: FLOATS,
    strategies: ELEMENTWISE,
    tune: UNTUNED,
    workgroups: |params, flags, _| {
        invocations(bytemuck::from_bytes(params), KERNEL.has(flags, "vec4")).div_ceil(256)
    },
    cpu,
};

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    match ACTIVATIONS.iter().find(|&&f| args.has(f)).copied() {
        Some("silu") => backward::<Silu>(args),
        Some("gelu_erf") => backward::<GeluErf>(args),
        Some("gelu_tanh") => backward::<GeluTanh>(args),
        Some("relu") => backward::<Relu>(args),
        _ => backward::<Sigmoid>(args),
    }
    Ok(())
}

fn backward<A: Activation>(args: &mut CpuArgs<'_>) {
    let (p, strided) = (args.params::<PairParams>(), args.has("strided"));
    let (dy, a, b) = (args.read("dy"), args.read("a"), args.read("b"));
    let (mut da, mut db) = (args.try_write("da"), args.try_write("db"));
    let (mut dx, swapped) = (args.try_write("dx"), args.has("packed_swapped"));
    for_each_run(&p, strided, |run| {
        for k in (0..run.len).step_by(4) {
            let live = run.len - k;
            let upstream = gather(&dy, run.out + k, 1, live);
            let x = gather(&a, (run.a as isize + k as isize * run.a_step) as usize, run.a_step, live);
            let y = gather(&b, (run.b as isize + k as isize * run.b_step) as usize, run.b_step, live);
            let (value, derivative) = A::value_and_derivative(x);
            let (to_a, to_b) = (upstream * y * derivative, upstream * value);
            if let Some(dx) = &mut dx {
                let (low, high) = if swapped { (to_b, to_a) } else { (to_a, to_b) };
                scatter(low, dx, 2 * run.out + k, live);
                scatter(high, dx, 2 * run.out + run.len + k, live);
            }
            let put = |v, to: &mut Option<RefMut<'_, [f32]>>| {
                if let Some(to) = to {
                    scatter(v, to, run.out + k, live);
                }
            };
            put(to_a, &mut da);
            put(to_b, &mut db);
        }
    });
}

pub(crate) fn reference(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let (p, strided) = (args.params::<PairParams>(), args.has("strided"));
    let act = ACTIVATIONS.iter().find(|&&f| args.has(f)).expect("exactly one is set");
    let (mut da, mut db) = (Vec::new(), Vec::new());
    for i in 0..p.count as usize {
        let (a, b) = positions(&p, strided, i);
        let (value, derivative) = activation64(act, args.input("a")[a]);
        da.push(args.input("dy")[i] * args.input("b")[b] * derivative);
        db.push(args.input("dy")[i] * value);
    }
    if args.has("packed") || args.has("packed_swapped") {
        let cols = p.cols as usize;
        let (low, high) = if args.has("packed") { (&da, &db) } else { (&db, &da) };
        let rows = low.chunks(cols).zip(high.chunks(cols));
        let dx = rows.flat_map(|(a, b)| a.iter().chain(b).copied()).collect();
        return vec![vec![], vec![], vec![], vec![], vec![], dx];
    }
    vec![vec![], vec![], vec![], da, db, vec![]]
}

pub(crate) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for act in ACTIVATIONS {
        for (name, a, b) in layouts() {
            for want in WANTED.iter().filter(|&&w| w.starts_with("packed") == name.starts_with("packed")) {
                let (rows, half) = (a.shape().elements() / a.shape().last().unwrap_or(&1), *a.shape().last().unwrap_or(&1));
                let packed = want.starts_with("packed");
                let (form, params) =
                    if packed { plan_packed(rows, half, *want == "packed_swapped") } else { plan(&a, &b) };
                let count = params.count as usize;
                let output = |flags: &[&str], n| {
                    if flags.contains(want) { CaseBuffer::Output(n) } else { CaseBuffer::Absent }
                };
                all.push(Case {
                    label: format!("{act} {name} {want}"),
                    flags: KERNEL.set(&[act, form, want]),
                    params: bytemuck::bytes_of(&params).to_vec(),
                    buffers: vec![
                        CaseBuffer::Floats(spread(count, 3, -1.0, 1.0)),
                        CaseBuffer::Floats(gate_values(if packed { 2 * count } else { span(&a) })),
                        CaseBuffer::Floats(spread(if packed { 2 * count } else { span(&b) }, 2, -2.0, 2.0)),
                        output(&["da", "both"], count),
                        output(&["db", "both"], count),
                        output(&["packed", "packed_swapped"], 2 * count),
                    ],
                    relative: 1e-5,
                    absolute: 1e-6,
                });
            }
        }
    }
    all
}

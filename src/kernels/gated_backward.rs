//! Fused gated activations, backward: `da = dy · b · act'(a)`, `db = dy · act(a)`.

use std::cell::RefMut;

use super::gated::{ACTIVATIONS, activation64, formed, gate_values, layouts, span};
use crate::kernel::check::{Case, CaseBuffer, Made, RefArgs, Request, Sizing, spread};
use crate::kernel::{Binding, CpuArgs, ELEMENTWISE, FLOATS, Flags, Kernel, UNTUNED};
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
    outputs(args, da, db)
}

/// Both gradients in their places.
fn outputs(args: &RefArgs<'_>, da: Vec<f64>, db: Vec<f64>) -> Vec<Vec<f64>> {
    if args.has("packed") || args.has("packed_swapped") {
        let cols = args.params::<PairParams>().cols as usize;
        let (low, high) = if args.has("packed") { (&da, &db) } else { (&db, &da) };
        let rows = low.chunks(cols).zip(high.chunks(cols));
        let dx = rows.flat_map(|(a, b)| a.iter().chain(b).copied()).collect();
        return vec![vec![], vec![], vec![], vec![], vec![], dx];
    }
    vec![vec![], vec![], vec![], da, db, vec![]]
}

pub(crate) static SIZING: Sizing = Sizing {
    sizes: &[("rows", 1024), ("cols", 1024)],
    // The product of dy and b.
    largest: 1e18,
    grids: &[("da", 1), ("db", 1)],
    make: sized,
};

fn sized(request: &Request<'_>) -> Made<Case> {
    let packed = ["packed", "packed_swapped"].map(|flag| KERNEL.has(request.flags, flag));
    let (size, params) = if packed.contains(&true) {
        let [rows, half] = request.sizes()?;
        let (form, params) = plan_packed(rows, half, packed[1]);
        if KERNEL.has(request.flags, "strided") || (KERNEL.has(request.flags, "vec4") && form != "vec4") {
            let words = "a packed gradient is written by rows: choose flat, or vec4 with cols a multiple of 4";
            return Err(words.into());
        }
        ([request.elements(&[2, rows, half])?; 2], params)
    } else {
        let (a, b, params) = formed(&KERNEL, request)?;
        ([span(&a), span(&b)], params)
    };
    let count = params.count as usize;
    let [da, db, dx] = written(request.flags, count);
    Ok(Case {
        label: format!("{count}"),
        flags: request.flags,
        params: bytemuck::bytes_of(&params).to_vec(),
        buffers: vec![
            request.input("dy", count)?,
            request.input("a", size[0])?,
            request.input("b", size[1])?,
            da,
            db,
            dx,
        ],
        relative: 1e-5,
        absolute: 1e-6,
        terms: Some(|args| {
            let (p, strided) = (args.params::<PairParams>(), args.has("strided"));
            let dy = args.input("dy");
            let b = |i| args.input("b")[positions(&p, strided, i).1];
            let da = (0..p.count as usize).map(|i| (dy[i] * b(i)).abs()).collect();
            outputs(args, da, dy.iter().map(|v| v.abs()).collect())
        }),
    })
}

/// The outputs that these flags ask for: da, db and the packed dx.
fn written(flags: Flags, count: usize) -> [CaseBuffer; 3] {
    let output = |wanted: [&str; 2], n| {
        let there = wanted.iter().any(|flag| KERNEL.has(flags, flag));
        if there { CaseBuffer::Output(n) } else { CaseBuffer::Absent }
    };
    [
        output(["da", "both"], count),
        output(["db", "both"], count),
        output(["packed", "packed_swapped"], 2 * count),
    ]
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
                let flags = KERNEL.set(&[act, form, want]);
                let [da, db, dx] = written(flags, count);
                all.push(Case {
                    label: format!("{act} {name} {want}"),
                    flags,
                    params: bytemuck::bytes_of(&params).to_vec(),
                    buffers: vec![
                        CaseBuffer::Floats(spread(count, 3, -1.0, 1.0)),
                        CaseBuffer::Floats(gate_values(if packed { 2 * count } else { span(&a) })),
                        CaseBuffer::Floats(spread(if packed { 2 * count } else { span(&b) }, 2, -2.0, 2.0)),
                        da,
                        db,
                        dx,
                    ],
                    relative: 1e-5,
                    absolute: 1e-6,
                    terms: None,
                });
            }
        }
    }
    all
}

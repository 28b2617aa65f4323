//! Fused gated activations, backward: `da = dy · b · act'(a)`, `db = dy · act(a)`.

use super::gated::{ACTIVATIONS, activation64, formed, gate_values, layouts, span};
use crate::error::Result;
use crate::kernel::check::{Case, CaseBuffer, Made, RefArgs, Request, Sizing, spread};
use crate::kernel::{Binding, CpuArgs, ELEMENTWISE, FLOATS, Flags, Kernel, NO_FLOPS, UNTUNED};
use crate::math::activation::{Activation, GeluErf, GeluTanh, Relu, Sigmoid, Silu};
use crate::pairing::{BLOCK, FORMS, PairParams, for_each_block, invocations, plan, plan_packed, positions};
use crate::simd::F32x4;
use crate::wgsl::source::shader;

/// Which gradients are written: into buffers of their own, or both into the packed one.
/// (`packed_swapped` where the gate is the second half).
pub(crate) const WANTED: &[&str] = &["da", "db", "both", "packed", "packed_swapped"];

pub(crate) static KERNEL: Kernel = Kernel {
    name: "gated_backward",
    source: shader!("gated_backward"),
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
    flops: NO_FLOPS,
    cpu,
};

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    let row = match ACTIVATIONS.iter().find(|&&f| args.has(f)).copied() {
        Some("silu") => backward::<Silu>,
        Some("gelu_erf") => backward::<GeluErf>,
        Some("gelu_tanh") => backward::<GeluTanh>,
        Some("relu") => backward::<Relu>,
        _ => backward::<Sigmoid>,
    };
    let (p, strided) = (args.params::<PairParams>(), args.has("strided"));
    let (dy, a, b) = (args.read("dy"), args.read("a"), args.read("b"));
    let (mut da, mut db) = (args.try_write("da"), args.try_write("db"));
    let (mut dx, swapped) = (args.try_write("dx"), args.has("packed_swapped"));
    let cols = (p.cols as usize).max(1);
    // Where a gradient is not wanted, it goes here.
    let mut unwanted = [0.0; BLOCK];
    for_each_block(&p, strided, &a, &b, &mut |place, a, b| {
        let here = place..place + a.len();
        let dy = &dy[here.clone()];
        if let Some(dx) = &mut dx {
            let (line, col) = (place / cols, place % cols);
            let (low, high) = dx[2 * line * cols..][..2 * cols].split_at_mut(cols);
            let (low, high) = (&mut low[col..][..dy.len()], &mut high[col..][..dy.len()]);
            let (da, db) = if swapped { (high, low) } else { (low, high) };
            return row(dy, a, b, da, db);
        }
        let unwanted = &mut unwanted[..dy.len()];
        match (&mut da, &mut db) {
            (Some(da), Some(db)) => row(dy, a, b, &mut da[here.clone()], &mut db[here]),
            (Some(da), None) => row(dy, a, b, &mut da[here], unwanted),
            (None, Some(db)) => row(dy, a, b, unwanted, &mut db[here]),
            (None, None) => {}
        }
    });
    Ok(())
}

/// `da` and `db` of neighbouring elements. What is left over of the fours takes the same way, filled up with zeros, so
/// that the activation is there once.
fn backward<A: Activation>(dy: &[f32], a: &[f32], b: &[f32], da: &mut [f32], db: &mut [f32]) {
    let body = dy.len() / 4 * 4;
    let operands = dy.chunks_exact(4).zip(a.chunks_exact(4)).zip(b.chunks_exact(4));
    for (((dy, a), b), (da, db)) in operands.zip(da.chunks_exact_mut(4).zip(db.chunks_exact_mut(4))) {
        let upstream = F32x4::load(dy);
        let (value, derivative) = A::value_and_derivative(F32x4::load(a));
        // Where upstream · b alone is infinite the derivative comes first: it may be zero.
        let (b, infinity) = (F32x4::load(b), F32x4::splat(f32::INFINITY));
        let both = upstream * b;
        let overflow = both.abs().eq(infinity);
        F32x4::select(overflow, upstream * derivative * b, both * derivative).store(da);
        (upstream * value).store(db);
    }
    let rest = dy.len() - body;
    if rest > 0 {
        let mut padded = [[0.0; 4]; 5];
        let [dy4, a4, b4, da4, db4] = &mut padded;
        for (to, from) in [(&mut *dy4, dy), (&mut *a4, a), (&mut *b4, b)] {
            to[..rest].copy_from_slice(&from[body..]);
        }
        backward::<A>(dy4, a4, b4, da4, db4);
        da[body..].copy_from_slice(&da4[..rest]);
        db[body..].copy_from_slice(&db4[..rest]);
    }
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
    largest: 1e30,
    grids: &[("da", 1), ("db", 1)],
    make: sized,
};

fn sized(request: &Request<'_>) -> Made<Case> {
    let packed = ["packed", "packed_swapped"].map(|flag| KERNEL.has(request.flags, flag));
    let (size, params) = if packed.contains(&true) {
        let [rows, half] = request.sizes()?;
        let (form, params) = plan_packed(rows, half, packed[1]);
        if KERNEL.has(request.flags, "strided") || (KERNEL.has(request.flags, "vec4") && form != "vec4") {
            let words =
                "a packed gradient is written by rows: choose flat, or vec4 with cols a multiple of 4";
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
                let (rows, half) =
                    (a.shape().elements() / a.shape().last().unwrap_or(&1), *a.shape().last().unwrap_or(&1));
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

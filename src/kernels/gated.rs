//! Fused gated activations, forward: `out = act(a) · b` (GLU variants, Shazeer 2020, arXiv:2002.05202).

use crate::error::Result;
use crate::kernel::check::{Case, CaseBuffer, Made, RefArgs, Request, Sizing, spread};
use crate::kernel::{Binding, CpuArgs, ELEMENTWISE, FLOATS, Kernel, NO_FLOPS, UNTUNED};
use crate::layout::Layout;
use crate::math::activation::{Activation, GeluErf, GeluTanh, Relu, Sigmoid, Silu};
use crate::pairing::{FORMS, PairParams, for_each_block, invocations, plan, positions, zip_lanes};
use crate::shape::Shape;
use crate::wgsl::source::shader;

/// The activations, as flags.
pub(crate) const ACTIVATIONS: &[&str] = &["silu", "gelu_erf", "gelu_tanh", "relu", "sigmoid"];

pub(crate) static KERNEL: Kernel = Kernel {
    name: "gated",
    source: shader!("gated"),
    bindings: &[Binding::read("a"), Binding::read("b"), Binding::write("out")],
    fields: PairParams::LAYOUT,
    params_size: size_of::<PairParams>(),
    flags: &[ACTIVATIONS, FORMS],
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
        Some("silu") => forward::<Silu>,
        Some("gelu_erf") => forward::<GeluErf>,
        Some("gelu_tanh") => forward::<GeluTanh>,
        Some("relu") => forward::<Relu>,
        _ => forward::<Sigmoid>,
    };
    let (p, strided) = (args.params::<PairParams>(), args.has("strided"));
    let (a, b, mut out) = (args.read("a"), args.read("b"), args.write("out"));
    for_each_block(&p, strided, &a, &b, &mut |place, a, b| row(a, b, &mut out[place..place + a.len()]));
    Ok(())
}

fn forward<A: Activation>(a: &[f32], b: &[f32], out: &mut [f32]) {
    zip_lanes(a, b, out, |x, y| A::value(x) * y);
}

/// The activation and its derivative in float64, in textbook form with the limits at infinity.
pub(crate) fn activation64(flag: &str, x: f64) -> (f64, f64) {
    let sigmoid = |v: f64| if v >= 0.0 { 1.0 / (1.0 + (-v).exp()) } else { v.exp() / (1.0 + v.exp()) };
    if flag != "sigmoid" && x == f64::INFINITY {
        return (x, 1.0);
    }
    if x == f64::NEG_INFINITY {
        return (0.0, 0.0);
    }
    match flag {
        "silu" => {
            let s = sigmoid(x);
            (x * s, s * (1.0 + x * sigmoid(-x)))
        }
        "gelu_erf" => {
            let phi = 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
            (x * phi, phi + x * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt())
        }
        "gelu_tanh" => {
            let c = (2.0 / std::f64::consts::PI).sqrt();
            let s = sigmoid(2.0 * c * (x + 0.044_715 * x * x * x));
            let slope = 2.0 * c * (1.0 + 3.0 * 0.044_715 * x * x);
            let tail = s * sigmoid(-2.0 * c * (x + 0.044_715 * x * x * x)) * slope;
            (x * s, s + if tail == 0.0 { 0.0 } else { x * tail })
        }
        "relu" => (if x <= 0.0 { 0.0 } else { x }, if x <= 0.0 { 0.0 } else { 1.0 }),
        _ => (sigmoid(x), sigmoid(x) * sigmoid(-x)),
    }
}

pub(crate) fn reference(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let (p, strided) = (args.params::<PairParams>(), args.has("strided"));
    let act = ACTIVATIONS.iter().find(|&&f| args.has(f)).expect("exactly one is set");
    let out = (0..p.count as usize).map(|i| {
        let (a, b) = positions(&p, strided, i);
        activation64(act, args.input("a")[a]).0 * args.input("b")[b]
    });
    vec![vec![], vec![], out.collect()]
}

/// Pairs of layouts that lead to each of the forms, with names.
pub(crate) fn layouts() -> Vec<(&'static str, Layout, Layout)> {
    let of = |dims: &[usize]| Layout::contiguous(Shape::from_checked(dims));
    let rows = of(&[5, 12]);
    let expand = |l: Layout, s: &Layout| l.expand("case", s.shape()).expect("shapes of a case fit");
    vec![
        ("one", of(&[]), of(&[])),
        ("tail", of(&[1027]), of(&[1027])),
        ("broadcast row", rows, expand(of(&[12]), &rows)),
        ("packed", of(&[5, 24]).slice(1, 0, 12, 1), of(&[5, 24]).slice(1, 12, 12, 1)),
        ("packed odd", of(&[5, 14]).slice(1, 0, 7, 1), of(&[5, 14]).slice(1, 7, 7, 1)),
        ("packed pairs", of(&[5, 2]).slice(1, 0, 1, 1), of(&[5, 2]).slice(1, 1, 1, 1)),
        ("broadcast both", expand(of(&[5, 1]), &rows), expand(of(&[1, 12]), &rows)),
        ("transposed", of(&[12, 5]).transpose(0, 1), rows),
    ]
}

/// Inputs that reach the activations' tails, with the values that faults are reported for.
pub(crate) fn gate_values(n: usize) -> Vec<f32> {
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        -10.0179,
        13.24,
        -13.24,
        20.625,
        -45.0,
        89.0,
        -89.0,
        100.0,
        -100.0,
        1000.0,
        -1000.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1e-30,
        3e38,
        -3e38,
    ];
    let mut values = spread(n, 1, -8.0, 8.0);
    for (k, v) in values.iter_mut().enumerate().filter(|(k, _)| k % 3 == 1) {
        *v = special[k / 3 % special.len()];
    }
    values
}

pub(crate) fn span(layout: &Layout) -> usize {
    let last: usize = layout
        .shape()
        .iter()
        .zip(layout.strides())
        .map(|(&n, &s)| n.saturating_sub(1) * s.unsigned_abs())
        .sum();
    layout.offset() + last + 1
}

/// Two layouts of `rows` by `cols` that lead to the form which was chosen, and the plan over them.
pub(crate) fn formed(kernel: &Kernel, request: &Request<'_>) -> Made<(Layout, Layout, PairParams)> {
    let [rows, cols] = request.sizes()?;
    let form = FORMS.iter().find(|&&form| kernel.has(request.flags, form)).expect("exactly one is set");
    // Neighbours; neighbours that no vec4 begins at; every second element.
    let (width, start, step) = match *form {
        "vec4" => (cols, 0, 1),
        "flat" => (cols + 1, 1, 1),
        _ => (request.elements(&[2, cols])?, 0, 2),
    };
    request.elements(&[rows, width])?;
    let a = Layout::contiguous(Shape::from_checked(&[rows, width])).slice(1, start, cols, step);
    let b = if *form == "strided" { Layout::contiguous(*a.shape()) } else { a };
    match plan(&a, &b) {
        (found, params) if found == *form => Ok((a, b, params)),
        (found, _) => Err(format!("{rows} × {cols} elements always take the form {found}, not {form}")),
    }
}

pub(crate) static SIZING: Sizing =
    Sizing { sizes: &[("rows", 1024), ("cols", 1024)], largest: 1e30, grids: &[("out", 1)], make: sized };

fn sized(request: &Request<'_>) -> Made<Case> {
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
        relative: 3e-6,
        absolute: 1e-37,
        // An activation below the smallest normal number may be flushed before it meets b.
        terms: Some(|args| {
            let (p, strided) = (args.params::<PairParams>(), args.has("strided"));
            let b = |i| args.input("b")[positions(&p, strided, i).1];
            vec![vec![], vec![], (0..p.count as usize).map(|i| (1.0 + b(i).abs()).max(1.0)).collect()]
        }),
    })
}

pub(crate) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for act in ACTIVATIONS {
        for (name, a, b) in layouts() {
            let (form, params) = plan(&a, &b);
            all.push(Case {
                label: format!("{act} {name}"),
                flags: KERNEL.set(&[act, form]),
                params: bytemuck::bytes_of(&params).to_vec(),
                buffers: vec![
                    CaseBuffer::Floats(gate_values(span(&a))),
                    CaseBuffer::Floats(spread(span(&b), 2, -2.0, 2.0)),
                    CaseBuffer::Output(params.count as usize),
                ],
                relative: 3e-6,
                absolute: 1e-37,
                terms: None,
            });
        }
    }
    all
}

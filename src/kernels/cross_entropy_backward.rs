//! Softmax cross-entropy from integer labels, backward: `dx = dy · (softmax(x) − q)`, `q` the smoothed one-hot row.

use super::cross_entropy::{Params, SMOOTHING, labels};
use crate::accumulate::{load, store};
use crate::error::Result;
use crate::kernel::check::{Case, CaseBuffer, Fill, Made, RefArgs, Request, Sizing, spread};
use crate::kernel::{Binding, CpuArgs, ELEMENTWISE, Element, FLOATS, Kernel, NO_FLOPS, UNTUNED};
use crate::math::exponential::exp;
use crate::simd::F32x4;
use crate::wgsl::source::shader;

pub(crate) static KERNEL: Kernel = Kernel {
    name: "cross_entropy_backward",
    source: shader!("cross_entropy_backward"),
    bindings: &[
        Binding::read("dy"),
        Binding::read("x"),
        Binding::read("labels").holds(Element::I32),
        Binding::read("row_max").holds(Element::F32),
        Binding::read("log_sum").holds(Element::F32),
        Binding::write("dx"),
    ],
    fields: Params::LAYOUT,
    params_size: size_of::<Params>(),
    flags: &[],
    scalars: FLOATS,
    strategies: ELEMENTWISE,
    tune: UNTUNED,
    workgroups: |params, _, _| {
        let p = bytemuck::from_bytes::<Params>(params);
        (u64::from(p.rows) * u64::from(p.classes)).div_ceil(256)
    },
    flops: NO_FLOPS,
    cpu,
};

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    let p = args.params::<Params>();
    let n = p.classes as usize;
    let (dy, x, labels) = (args.read("dy"), args.read("x"), args.read_i32("labels"));
    let (row_max, log_sum, mut dx) = (args.read("row_max"), args.read("log_sum"), args.write("dx"));
    let spread = F32x4::splat(p.smoothing / n as f32);
    for (row, (x, dx)) in x.chunks_exact(n).zip(dx.chunks_exact_mut(n)).take(p.rows as usize).enumerate() {
        if labels[row] == p.ignore_index {
            dx.fill(0.0);
            continue;
        }
        let (top, log, dy) = (F32x4::splat(row_max[row]), F32x4::splat(log_sum[row]), dy[row]);
        let upstream = F32x4::splat(dy);
        for k in (0..n).step_by(4) {
            let probability = exp((load(x, k, n - k) - top) - log);
            store(upstream * (probability - spread), dx, k, n - k);
        }
        if let Some(hit) = usize::try_from(labels[row]).ok().and_then(|label| dx.get_mut(label)) {
            let label = labels[row] as usize;
            let probability = crate::math::exponential::exp_f32((x[label] - row_max[row]) - log_sum[row]);
            *hit = dy * (probability - (1.0 - p.smoothing) - p.smoothing / n as f32);
        }
    }
    Ok(())
}

pub(crate) fn reference(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let p = args.params::<Params>();
    let n = p.classes as usize;
    let mut dx = Vec::new();
    for (row, x) in args.input("x").chunks_exact(n).enumerate().take(p.rows as usize) {
        let label = args.input("labels")[row] as i64;
        let (top, log) = (args.input("row_max")[row], args.input("log_sum")[row]);
        let s = f64::from(p.smoothing);
        for (k, v) in x.iter().enumerate() {
            let q = if label == k as i64 { 1.0 - s } else { 0.0 } + s / n as f64;
            let ignored = label == i64::from(p.ignore_index);
            dx.push(if ignored { 0.0 } else { args.input("dy")[row] * ((v - top - log).exp() - q) });
        }
    }
    vec![vec![], vec![], vec![], vec![], vec![], dx]
}

pub(crate) static SIZING: Sizing = Sizing {
    sizes: &[("rows", 1024), ("classes", 1000)],
    largest: 1e30,
    grids: &[("dx", 1)],
    make: |request| sized(request, SMOOTHING),
};

fn sized(request: &Request<'_>, smoothing: f32) -> Made<Case> {
    let [rows, classes] = request.sizes()?;
    let count = request.elements(&[rows, classes])?;
    let x = request.values("x", count)?;
    let saved = x.chunks(classes).map(|row| {
        let top = row.iter().copied().fold(f32::MIN, f32::max);
        (top, row.iter().map(|v| f64::from(v - top).exp()).sum::<f64>().ln() as f32)
    });
    let (row_max, log_sum) = saved.unzip();
    Ok(Case {
        label: format!("{rows}x{classes} smoothing {smoothing}"),
        flags: request.flags,
        params: bytemuck::bytes_of(&Params::new(rows, classes, -100, smoothing)).to_vec(),
        buffers: vec![
            request.input("dy", rows)?,
            CaseBuffer::Floats(x),
            CaseBuffer::Integers(labels(rows, classes)),
            CaseBuffer::Floats(row_max),
            CaseBuffer::Floats(log_sum),
            CaseBuffer::Output(count),
        ],
        relative: 1e-5,
        absolute: 1e-6,
        terms: Some(|args| {
            let classes = args.params::<Params>().classes as usize;
            let terms = args.input("dy").iter().flat_map(|dy| std::iter::repeat_n(dy.abs(), classes));
            vec![vec![], vec![], vec![], vec![], vec![], terms.collect()]
        }),
    })
}

pub(crate) fn cases() -> Vec<Case> {
    let fill: Fill<'_> =
        &|binding, n| Ok(if binding == "dy" { spread(n, 4, -1.0, 1.0) } else { spread(n, 1, -5.0, 5.0) });
    let made = [(1, 1, 0.0), (65, 10, 0.0), (3, 1000, 0.1)].map(|(rows, classes, smoothing)| {
        sized(&Request { flags: KERNEL.set(&[]), sizes: &[rows, classes], fill }, smoothing)
    });
    made.into_iter().map(|case| case.expect("sizes of a case fit")).collect()
}

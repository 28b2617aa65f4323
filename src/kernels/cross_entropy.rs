//! Softmax cross-entropy from integer labels, forward: `loss = log Σ exp(x) − x[target]` by rows, with label smoothing.

use super::layer_norm::row_workgroups;
use crate::accumulate::{load, sum_by};
use crate::error::{Error, Result};
use crate::kernel::check::{Case, CaseBuffer, Fill, Made, RefArgs, Request, Sizing, spread};
use crate::kernel::params;
use crate::kernel::{Access, Binding, CpuArgs, Element, FLOATS, Kernel, NO_FLOPS, ROWS, UNTUNED};
use crate::kernels::ALL;
use crate::math::exponential::{exp, ln_f32};
use crate::simd::F32x4;
use crate::wgsl::source::shader;

params! {
    struct Params {
        rows: u32,
        classes: u32,
        ignore_index: i32,
        smoothing: f32,
        /// This kernel's place in the registry: how the device names it in its record of faults.
        kernel: u32,
    }
}

impl Params {
    pub const LAYOUT: &'static [crate::kernel::Field] = Self::FIELDS;

    pub fn new(rows: usize, classes: usize, ignore_index: i32, smoothing: f32) -> Self {
        let kernel = ALL.iter().position(|k| k.name == KERNEL.name).expect("this kernel is registered");
        Self { rows: rows as u32, classes: classes as u32, ignore_index, smoothing, kernel: kernel as u32 }
    }
}

pub(crate) static KERNEL: Kernel = Kernel {
    name: "cross_entropy",
    source: shader!("cross_entropy"),
    bindings: &[
        Binding::read("x"),
        Binding::read("labels").holds(Element::I32),
        Binding::write("loss"),
        Binding::write("counted"),
        Binding::write("row_max").holds(Element::F32),
        Binding::write("log_sum").holds(Element::F32),
        Binding::new("faults", Access::Update).holds(Element::Faults),
    ],
    fields: Params::FIELDS,
    params_size: size_of::<Params>(),
    flags: &[],
    scalars: FLOATS,
    strategies: ROWS,
    tune: UNTUNED,
    workgroups: |params, _, strategy| row_workgroups(bytemuck::from_bytes::<Params>(params).rows, strategy),
    flops: NO_FLOPS,
    cpu,
};

/// The error for a label that is no class; both backends give the same.
pub(crate) fn label_error(row: usize, label: i32, classes: Option<u32>) -> Error {
    let right = classes.map_or_else(|| "below the number of classes".into(), |c| format!("0 to {}", c - 1));
    Error::index(
        "crossEntropy",
        format!("target {label} in row {row} is no class; a target is {right} or ignoreIndex"),
    )
}

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    let p = args.params::<Params>();
    let n = p.classes as usize;
    let (x, labels) = (args.read("x"), args.read_i32("labels"));
    let (mut loss, mut counted) = (args.write("loss"), args.write("counted"));
    let (mut row_max, mut log_sum) = (args.write("row_max"), args.write("log_sum"));
    for (row, x) in x.chunks_exact(n).enumerate().take(p.rows as usize) {
        let top = x.iter().copied().fold(f32::MIN, f32::max);
        let middle = F32x4::splat(top);
        let [sum, below] = sum_by(n, |k, live| {
            let d = load(x, k, live) - super::layer_norm::load_splat(middle, live);
            // exp(0) = 1 in a dead lane must not count.
            [super::layer_norm::load_splat(exp(d), live), -d]
        });
        let log = ln_f32(sum as f32);
        (row_max[row], log_sum[row]) = (top, log);
        let ignored = labels[row] == p.ignore_index;
        counted[row] = if ignored { 0.0 } else { 1.0 };
        loss[row] = if ignored {
            0.0
        } else {
            let target = usize::try_from(labels[row]).ok().and_then(|t| x.get(t));
            let target = target.ok_or_else(|| label_error(row, labels[row], Some(p.classes)))?;
            let exact = (1.0 - p.smoothing) * ((top - target) + log);
            if p.smoothing > 0.0 { exact + p.smoothing * (log + (below / n as f64) as f32) } else { exact }
        };
    }
    Ok(())
}

pub(crate) fn reference(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let p = args.params::<Params>();
    let n = p.classes as usize;
    let mut out = vec![Vec::new(); 7];
    for (row, x) in args.input("x").chunks_exact(n).enumerate().take(p.rows as usize) {
        let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log = x.iter().map(|v| (v - top).exp()).sum::<f64>().ln();
        let label = args.input("labels")[row] as i64;
        let ignored = label == i64::from(p.ignore_index);
        let s = f64::from(p.smoothing);
        let mean = x.iter().map(|v| top + log - v).sum::<f64>() / n as f64;
        let exact = if ignored { 0.0 } else { top + log - x[label as usize] };
        out[2].push(if ignored { 0.0 } else { (1.0 - s) * exact + if s > 0.0 { s * mean } else { 0.0 } });
        out[3].push(f64::from(u8::from(!ignored)));
        out[4].push(top);
        out[5].push(log);
    }
    out
}

/// Labels over all classes, with some rows ignored.
pub(crate) fn labels(rows: usize, classes: usize) -> Vec<i32> {
    (0..rows).map(|r| if r % 5 == 3 { -100 } else { (r * 7 % classes) as i32 }).collect()
}

pub(crate) static SIZING: Sizing = Sizing {
    sizes: &[("rows", 1024), ("classes", 1000)],
    largest: 1e30,
    grids: &[],
    make: |request| sized(request, SMOOTHING),
};

/// The label smoothing of sized calls.
pub(crate) const SMOOTHING: f32 = 0.1;

fn sized(request: &Request<'_>, smoothing: f32) -> Made<Case> {
    let [rows, classes] = request.sizes()?;
    Ok(Case {
        label: format!("{rows}x{classes} smoothing {smoothing}"),
        flags: request.flags,
        params: bytemuck::bytes_of(&Params::new(rows, classes, -100, smoothing)).to_vec(),
        buffers: vec![
            request.input("x", request.elements(&[rows, classes])?)?,
            CaseBuffer::Integers(labels(rows, classes)),
            CaseBuffer::Output(rows),
            CaseBuffer::Output(rows),
            CaseBuffer::Output(rows),
            CaseBuffer::Output(rows),
            CaseBuffer::Absent,
        ],
        relative: 1e-5,
        absolute: 2e-6,
        terms: None,
    })
}

pub(crate) fn cases() -> Vec<Case> {
    let shapes = [(1, 1, 0.0, 1.0), (65, 10, 0.0, 5.0), (3, 1000, 0.1, 5.0), (7, 65, 0.0, 90.0)];
    let made = shapes.map(|(rows, classes, smoothing, size)| {
        let fill: Fill<'_> = &|_, n| Ok(spread(n, 1, -size, size));
        sized(&Request { flags: KERNEL.set(&[]), sizes: &[rows, classes], fill }, smoothing)
    });
    made.into_iter().map(|case| case.expect("sizes of a case fit")).collect()
}

//! Sums of the last dimension, in chunks: long rows take two or more ordered stages.

use super::layer_norm::row_workgroups;
use crate::accumulate::sum;
use crate::error::Result;
use crate::kernel::check::{Case, CaseBuffer, Fill, Made, RefArgs, Request, Sizing, of_magnitudes, spread};
use crate::kernel::params;
use crate::kernel::{Binding, CpuArgs, Element, FLOATS, Flags, Kernel, NO_FLOPS, ROWS, UNTUNED};
use crate::wgsl::source::shader;

/// The most elements that one workgroup adds up.
pub(crate) const CHUNK: usize = 16384;

params! {
    struct Params {
        /// Parts in all: the rows of the tensor, `chunks` parts each.
        rows: u32,
        cols: u32,
        chunks: u32,
        chunk: u32,
        /// What each sum is multiplied by, for means.
        scale: f32,
    }
}

pub(crate) static KERNEL: Kernel = Kernel {
    name: "sum_rows",
    source: shader!("sum_rows"),
    bindings: STAGED,
    fields: Params::FIELDS,
    params_size: size_of::<Params>(),
    flags: STAGES,
    scalars: FLOATS,
    strategies: ROWS,
    tune: UNTUNED,
    workgroups: |params, _, strategy| row_workgroups(bytemuck::from_bytes::<Params>(params).rows, strategy),
    flops: NO_FLOPS,
    cpu,
};

/// Which end of a staged sum this call is: the first reads the tensor, the last writes it.
pub(crate) const STAGES: &[&[&str]] = &[&["fresh", "resumed"], &["last", "partial"]];

/// The buffers of a staged sum: between stages it is f32 whatever the tensor's type.
pub(crate) const STAGED: &[Binding] = &[
    Binding::read("x").when(&["fresh"]),
    Binding::read("partials_in").holds(Element::F32).when(&["resumed"]),
    Binding::write("out").when(&["last"]),
    Binding::write("partials_out").holds(Element::F32).when(&["partial"]),
];

/// The flags of a stage.
pub(crate) fn flags(kernel: &Kernel, first: bool, last: bool) -> Flags {
    kernel.set(&[if first { "fresh" } else { "resumed" }, if last { "last" } else { "partial" }])
}

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    let p = args.params::<Params>();
    let x = if args.has("fresh") { args.read("x") } else { args.read("partials_in") };
    let mut out = if args.has("last") { args.write("out") } else { args.write("partials_out") };
    for (part, o) in out.iter_mut().enumerate().take(p.rows as usize) {
        let start = part / p.chunks as usize * p.cols as usize;
        let first = part % p.chunks as usize * p.chunk as usize;
        let last = (first + p.chunk as usize).min(p.cols as usize);
        *o = (sum(&x[start + first..start + last]) * f64::from(p.scale)) as f32;
    }
    Ok(())
}

pub(crate) fn reference(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let p = args.params::<Params>();
    let x = args.input(if args.has("fresh") { "x" } else { "partials_in" });
    let sums = (0..p.rows as usize)
        .map(|part| {
            let start = part / p.chunks as usize * p.cols as usize;
            let first = part % p.chunks as usize * p.chunk as usize;
            let last = (first + p.chunk as usize).min(p.cols as usize);
            x[start + first..start + last].iter().sum::<f64>() * f64::from(p.scale)
        })
        .collect();
    staged_outputs(args, sums)
}

/// The outputs in their places.
pub(crate) fn staged_outputs(args: &RefArgs<'_>, sums: Vec<f64>) -> Vec<Vec<f64>> {
    let (last, partial) = if args.has("last") { (sums, vec![]) } else { (vec![], sums) };
    vec![vec![], vec![], last, partial]
}

/// The buffers of a stage.
pub(crate) fn staged_buffers(
    kernel: &Kernel,
    request: &Request<'_>,
    inputs: usize,
    outputs: usize,
) -> Made<Vec<CaseBuffer>> {
    let has = |flag| kernel.has(request.flags, flag);
    let (x, partials) = if has("fresh") {
        (request.input("x", inputs)?, CaseBuffer::Absent)
    } else {
        (CaseBuffer::Absent, request.input("partials_in", inputs)?)
    };
    let out = CaseBuffer::Output(outputs);
    let (whole, part) = if has("last") { (out, CaseBuffer::Absent) } else { (CaseBuffer::Absent, out) };
    Ok(vec![x, partials, whole, part])
}

pub(crate) static SIZING: Sizing = Sizing {
    sizes: &[("rows", 1024), ("cols", 4096)],
    largest: 1e30,
    grids: &[],
    make: |request| {
        let case = sized(request, CHUNK)?;
        Ok(Case { relative: 0.0, terms: Some(|args| of_magnitudes(args, reference)), ..case })
    },
};

fn sized(request: &Request<'_>, chunk: usize) -> Made<Case> {
    let [rows, cols] = request.sizes()?;
    let inputs = request.elements(&[rows, cols])?;
    let chunks = usize::div_ceil(cols, chunk);
    let params = Params {
        rows: (rows * chunks) as u32,
        cols: cols as u32,
        chunks: chunks as u32,
        chunk: chunk as u32,
        scale: 0.5,
    };
    Ok(Case {
        label: format!("{rows}x{cols} in {chunk}"),
        flags: request.flags,
        params: bytemuck::bytes_of(&params).to_vec(),
        buffers: staged_buffers(&KERNEL, request, inputs, rows * chunks)?,
        // A few hundred terms below 1.
        relative: 2e-6,
        absolute: 2e-6,
        terms: None,
    })
}

pub(crate) fn cases() -> Vec<Case> {
    let fill: Fill<'_> = &|_, n| Ok(spread(n, 1, -1.0, 1.0));
    let made = [
        (1, 1, CHUNK, true, true),
        (3, 65, CHUNK, true, true),
        (2, 1000, 256, true, false),
        (2, 4, CHUNK, false, true),
        (130, 7, 3, false, false),
    ]
    .map(|(rows, cols, chunk, fresh, last)| {
        sized(&Request { flags: flags(&KERNEL, fresh, last), sizes: &[rows, cols], fill }, chunk)
    });
    made.into_iter().map(|case| case.expect("sizes of a case fit")).collect()
}

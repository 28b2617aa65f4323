//! Sums of a middle dimension, `[outer, length, inner] → [outer, groups, inner]`: long columns take ordered stages.

use super::sum_rows::{STAGED, STAGES, flags, staged_buffers, staged_outputs};
use crate::error::Result;
use crate::kernel::check::{Case, Fill, Made, RefArgs, Request, Sizing, of_magnitudes, spread};
use crate::kernel::params;
use crate::kernel::{CpuArgs, ELEMENTWISE, FLOATS, Kernel, NO_FLOPS, UNTUNED};
use crate::wgsl::source::shader;

/// Elements of a column that one invocation adds up: all of a short one, else so many that two stages do.
pub(crate) fn per_group(length: usize) -> usize {
    const SHORT: usize = 64;
    const LONG: usize = 256;
    if length <= SHORT { SHORT } else { (length as f64).sqrt().ceil().min(LONG as f64) as usize }
}

params! {
    struct Params {
        outer: u32,
        length: u32,
        inner: u32,
        groups: u32,
        per_group: u32,
        /// What each sum is multiplied by, for means.
        scale: f32,
    }
}

pub(crate) static KERNEL: Kernel = Kernel {
    name: "sum_columns",
    source: shader!("sum_columns"),
    bindings: STAGED,
    fields: Params::FIELDS,
    params_size: size_of::<Params>(),
    flags: STAGES,
    scalars: FLOATS,
    strategies: ELEMENTWISE,
    tune: UNTUNED,
    workgroups: |params, _, _| {
        let p = bytemuck::from_bytes::<Params>(params);
        (u64::from(p.outer) * u64::from(p.groups) * u64::from(p.inner)).div_ceil(256)
    },
    flops: NO_FLOPS,
    cpu,
};

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    let p = args.params::<Params>();
    let x = if args.has("fresh") { args.read("x") } else { args.read("partials_in") };
    let mut out = if args.has("last") { args.write("out") } else { args.write("partials_out") };
    let (length, inner) = (p.length as usize, p.inner as usize);
    for (part, out) in out.chunks_exact_mut(inner).enumerate().take((p.outer * p.groups) as usize) {
        let start = part / p.groups as usize * length;
        let first = part % p.groups as usize * p.per_group as usize;
        let last = (first + p.per_group as usize).min(length);
        out.fill(0.0);
        for k in first..last {
            for (o, x) in out.iter_mut().zip(&x[(start + k) * inner..][..inner]) {
                *o += x;
            }
        }
        for o in out {
            *o *= p.scale;
        }
    }
    Ok(())
}

pub(crate) fn reference(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let p = args.params::<Params>();
    let x = args.input(if args.has("fresh") { "x" } else { "partials_in" });
    let (length, inner, groups) = (p.length as usize, p.inner as usize, p.groups as usize);
    let mut sums = vec![0.0; p.outer as usize * groups * inner];
    for (i, v) in x.iter().enumerate().take(p.outer as usize * length * inner) {
        let (outer, k, col) = (i / inner / length, i / inner % length, i % inner);
        sums[(outer * groups + k / p.per_group as usize) * inner + col] += v * f64::from(p.scale);
    }
    staged_outputs(args, sums)
}

pub(crate) static SIZING: Sizing = Sizing {
    sizes: &[("outer", 1), ("length", 4096), ("inner", 768)],
    largest: 1e30,
    grids: &[("out", 2), ("partials_out", 2)],
    make: |request| {
        // Up to 256 additions one after the other.
        Ok(Case { relative: 0.0, terms: Some(|args| of_magnitudes(args, reference)), ..sized(request)? })
    },
};

fn sized(request: &Request<'_>) -> Made<Case> {
    let [outer, length, inner] = request.sizes()?;
    let groups = usize::div_ceil(length, per_group(length));
    let params = Params {
        outer: outer as u32,
        length: length as u32,
        inner: inner as u32,
        groups: groups as u32,
        per_group: per_group(length) as u32,
        scale: 0.5,
    };
    let inputs = request.elements(&[outer, length, inner])?;
    Ok(Case {
        label: format!("{outer}x{length}x{inner}"),
        flags: request.flags,
        params: bytemuck::bytes_of(&params).to_vec(),
        buffers: staged_buffers(&KERNEL, request, inputs, outer * groups * inner)?,
        // Up to 128 terms below 1.
        relative: 2e-6,
        absolute: 3e-6,
        terms: None,
    })
}

pub(crate) fn cases() -> Vec<Case> {
    let shapes =
        [(1, 1, 1, true, true), (3, 5, 67, true, true), (2, 300, 3, true, false), (1, 7, 300, false, true)];
    let fill: Fill<'_> = &|_, n| Ok(spread(n, 1, -1.0, 1.0));
    let made = shapes.map(|(outer, length, inner, fresh, last)| {
        sized(&Request { flags: flags(&KERNEL, fresh, last), sizes: &[outer, length, inner], fill })
    });
    made.into_iter().map(|case| case.expect("sizes of a case fit")).collect()
}

//! Layer normalisation, backward for the input: `dx = rstd · (g − c1 − x̂ · c2)` with `g = dy · weight`,
//! `c1 = mean(g)`, `c2 = mean(g · x̂)`; the three sums of a row are taken in one reduction.

use super::layer_norm::{SIZES, load_splat, row_workgroups, statistics64};
use super::{Binding, Case, CaseBuffer, CpuArgs, Element, FLOATS, Flags, Kernel, ROWS, RefArgs, spread};
use crate::accumulate::{load, sum_by};
use crate::error::Result;
use crate::pairing::scatter;
use crate::simd::F32x4;

params! {
    struct Params {
        rows: u32,
        cols: u32,
        inverse_cols: f32,
        padding: u32,
    }
}

pub(crate) static KERNEL: Kernel = Kernel {
    name: "layer_norm_backward",
    source: include_str!("../../shaders/layer_norm_backward.wgsl"),
    bindings: &[
        Binding::read("dy"),
        Binding::read("x"),
        Binding::read("mean").holds(Element::F32),
        Binding::read("rstd").holds(Element::F32),
        Binding::read("weight").when(&["weight"]),
        Binding::write("dx").when(&["dx"]),
        // The part of each row's mean that `mean` lost to rounding.
        Binding::write("shift").holds(Element::F32).when(&["shift"]),
    ],
    fields: Params::FIELDS,
    params_size: size_of::<Params>(),
    flags: &[&["weight"], &["dx"], &["shift"]],
    scalars: FLOATS,
    strategies: ROWS,
    workgroups: |params, _, strategy| row_workgroups(bytemuck::from_bytes::<Params>(params).rows, strategy),
    cpu,
    reference,
    cases,
};

/// The flags of a call.
pub(crate) fn flags(weight: bool, dx: bool, shift: bool) -> Flags {
    let on = |set, name| if set { name } else { "" };
    KERNEL.set(&[on(weight, "weight"), on(dx, "dx"), on(shift, "shift")])
}

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    let p = args.params::<Params>();
    let n = p.cols as usize;
    let (dy, x) = (args.read("dy"), args.read("x"));
    let (mean, rstd, weight) = (args.read("mean"), args.read("rstd"), args.try_read("weight"));
    let (mut dx, mut shifts) = (args.try_write("dx"), args.try_write("shift"));
    let scale = F32x4::splat(p.inverse_cols);
    for row in 0..p.rows as usize {
        let (x, dy) = (&x[row * n..][..n], &dy[row * n..][..n]);
        let (middle, r) = (F32x4::splat(mean[row]), F32x4::splat(rstd[row]));
        let upstream = |k, live| match &weight {
            Some(w) => load(dy, k, live) * load(w, k, live),
            None => load(dy, k, live),
        };
        let [c1, c2, shift] = sum_by(n, |k, live| {
            let g = upstream(k, live) * scale;
            let d = load(x, k, live) - load_splat(middle, live);
            [g, g * (d * r), d * scale]
        });
        let c2 = c2 - c1 * shift * f64::from(rstd[row]);
        if let Some(shifts) = &mut shifts {
            shifts[row] = shift as f32;
        }
        if let Some(dx) = &mut dx {
            let dx = &mut dx[row * n..][..n];
            let (c1, c2) = (F32x4::splat(c1 as f32), F32x4::splat(c2 as f32));
            let shift = F32x4::splat(shift as f32);
            for k in (0..n).step_by(4) {
                let live = n - k;
                let centered = ((load(x, k, live) - middle) - shift) * r;
                scatter(r * (upstream(k, live) - c1 - centered * c2), dx, k, live);
            }
        }
    }
    Ok(())
}

fn reference(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let p = args.params::<Params>();
    let n = p.cols as usize;
    let (mut dx, mut shifts) = (Vec::new(), Vec::new());
    for row in 0..p.rows as usize {
        let x = &args.input("x")[row * n..][..n];
        let mean = x.iter().sum::<f64>() / n as f64;
        let rstd = args.input("rstd")[row];
        let g: Vec<f64> = (0..n)
            .map(|k| {
                args.input("dy")[row * n + k] * if args.has("weight") { args.input("weight")[k] } else { 1.0 }
            })
            .collect();
        let c1 = g.iter().sum::<f64>() / n as f64;
        let c2 = g.iter().zip(x).map(|(g, x)| g * (x - mean) * rstd).sum::<f64>() / n as f64;
        dx.extend(g.iter().zip(x).map(|(g, x)| rstd * (g - c1 - (x - mean) * rstd * c2)));
        shifts.push(mean - args.input("mean")[row]);
    }
    let keep = |flag, v| if args.has(flag) { v } else { Vec::new() };
    vec![vec![], vec![], vec![], vec![], vec![], keep("dx", dx), keep("shift", shifts)]
}

fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (k, &(rows, cols, around)) in SIZES.iter().enumerate() {
        let (weight, dx, shift) = (k % 2 == 0, k % 3 != 1, k % 3 != 0);
        let params =
            Params { rows: rows as u32, cols: cols as u32, inverse_cols: 1.0 / cols as f32, padding: 0 };
        let x = spread(rows * cols, 1, around - 2.0, around + 2.0);
        let wide: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
        let stats: Vec<(f64, f64)> = wide.chunks(cols).map(|r| statistics64(r, 1e-5)).collect();
        let output = |wanted, n| if wanted { CaseBuffer::Output(n) } else { CaseBuffer::Absent };
        let affine = if weight { CaseBuffer::Floats(spread(cols, 2, 0.5, 1.5)) } else { CaseBuffer::Absent };
        all.push(Case {
            label: format!("{rows}x{cols} around {around}"),
            flags: flags(weight, dx, shift),
            params: bytemuck::bytes_of(&params).to_vec(),
            buffers: vec![
                CaseBuffer::Floats(spread(rows * cols, 4, -1.0, 1.0)),
                CaseBuffer::Floats(x),
                CaseBuffer::Floats(stats.iter().map(|s| s.0 as f32).collect()),
                CaseBuffer::Floats(stats.iter().map(|s| s.1 as f32).collect()),
                affine,
                output(dx, rows * cols),
                output(shift, rows),
            ],
            // A row of one column has rstd = 316 and a gradient of exactly zero.
            relative: 1e-5,
            absolute: if cols == 1 { 1e-3 } else { 5e-6 },
        });
    }
    all
}

//! Layer normalisation, backward for weight and bias: `dw = Σ dy · x̂` and `db = Σ dy` over groups of rows. The groups'
//! sums are added by `sum_columns`: two ordered stages, the same bits every time.

use super::{Binding, Case, CaseBuffer, CpuArgs, ELEMENTWISE, Element, FLOATS, Flags, Kernel, RefArgs, spread};
use crate::error::Result;

/// Rows whose contributions one invocation adds up.
pub(crate) const ROWS_PER_GROUP: usize = 64;

params! {
    struct Params {
        rows: u32,
        cols: u32,
        groups: u32,
        rows_per_group: u32,
    }
}

pub(crate) static KERNEL: Kernel = Kernel {
    name: "layer_norm_params",
    source: include_str!("../../shaders/layer_norm_params.wgsl"),
    bindings: &[
        Binding::read("dy"),
        Binding::read("x").when(&["dw"]),
        Binding::read("mean").holds(Element::F32).when(&["dw"]),
        Binding::read("rstd").holds(Element::F32).when(&["dw"]),
        Binding::read("shift").holds(Element::F32).when(&["dw"]),
        Binding::write("dw").holds(Element::F32).when(&["dw"]),
        Binding::write("db").holds(Element::F32).when(&["db"]),
    ],
    fields: Params::FIELDS,
    params_size: size_of::<Params>(),
    flags: &[&["dw"], &["db"]],
    scalars: FLOATS,
    strategies: ELEMENTWISE,
    workgroups: |params, _, _| {
        let p = bytemuck::from_bytes::<Params>(params);
        (u64::from(p.groups) * u64::from(p.cols)).div_ceil(256)
    },
    cpu,
    reference,
    cases,
};

/// The flags of a call.
pub(crate) fn flags(dw: bool, db: bool) -> Flags {
    KERNEL.set(&[if dw { "dw" } else { "" }, if db { "db" } else { "" }])
}

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    let p = args.params::<Params>();
    let n = p.cols as usize;
    let (wants_dw, dy) = (args.has("dw"), args.read("dy"));
    let normalised = wants_dw.then(|| (args.read("x"), args.read("mean"), args.read("rstd"), args.read("shift")));
    let (mut dw, mut db) = (args.try_write("dw"), args.try_write("db"));
    for group in 0..p.groups as usize {
        let first = group * p.rows_per_group as usize;
        let last = (first + p.rows_per_group as usize).min(p.rows as usize);
        let mut sums_w = dw.as_mut().map(|dw| &mut dw[group * n..][..n]);
        let mut sums_b = db.as_mut().map(|db| &mut db[group * n..][..n]);
        for sums in [&mut sums_w, &mut sums_b].into_iter().flatten() {
            sums.fill(0.0);
        }
        for row in first..last {
            let dy = &dy[row * n..][..n];
            if let (Some(sums), Some((x, mean, rstd, shift))) = (&mut sums_w, &normalised) {
                let (center, shift, r) = (mean[row], shift[row], rstd[row]);
                for ((s, &g), &x) in sums.iter_mut().zip(dy).zip(&x[row * n..][..n]) {
                    *s += g * (((x - center) - shift) * r);
                }
            }
            if let Some(sums) = &mut sums_b {
                for (s, &g) in sums.iter_mut().zip(dy) {
                    *s += g;
                }
            }
        }
    }
    Ok(())
}

fn reference(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let p = args.params::<Params>();
    let n = p.cols as usize;
    let mut sums = [vec![0.0; p.groups as usize * n], vec![0.0; p.groups as usize * n]];
    for row in 0..p.rows as usize {
        for k in 0..n {
            let place = row / p.rows_per_group as usize * n + k;
            let dy = args.input("dy")[row * n + k];
            if args.has("dw") {
                let mean = args.input("mean")[row] + args.input("shift")[row];
                sums[0][place] += dy * (args.input("x")[row * n + k] - mean) * args.input("rstd")[row];
            }
            sums[1][place] += dy;
        }
    }
    let [dw, db] = sums;
    let keep = |flag, v| if args.has(flag) { v } else { Vec::new() };
    let (dw, db) = (keep("dw", dw), keep("db", db));
    vec![vec![], vec![], vec![], vec![], vec![], dw, db]
}

fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (rows, cols, dw, db) in [(1, 1, true, true), (63, 5, true, false), (130, 67, true, true), (65, 3, false, true)] {
        let groups = usize::div_ceil(rows, ROWS_PER_GROUP);
        let params = Params {
            rows: rows as u32,
            cols: cols as u32,
            groups: groups as u32,
            rows_per_group: ROWS_PER_GROUP as u32,
        };
        let input = |n, seed, low, high| {
            if dw { CaseBuffer::Floats(spread(n, seed, low, high)) } else { CaseBuffer::Absent }
        };
        let output = |wanted| if wanted { CaseBuffer::Output(groups * cols) } else { CaseBuffer::Absent };
        all.push(Case {
            label: format!("{rows}x{cols}"),
            flags: flags(dw, db),
            params: bytemuck::bytes_of(&params).to_vec(),
            buffers: vec![
                CaseBuffer::Floats(spread(rows * cols, 4, -1.0, 1.0)),
                input(rows * cols, 1, -2.0, 2.0),
                input(rows, 2, -0.5, 0.5),
                input(rows, 3, 0.5, 2.0),
                input(rows, 5, -1e-4, 1e-4),
                output(dw),
                output(db),
            ],
            // Sums of 64 terms of size 4.
            relative: 1e-5,
            absolute: 3e-5,
        });
    }
    all
}

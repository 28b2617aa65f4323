//! Layer normalisation, backward: `dx = rstd · (g − c1 − x̂ · c2)` with `g = dy · weight`, `c1 = mean(g)`,
//! `c2 = mean(g · x̂)`, and the sums `dw = Σ dy · x̂`, `db = Σ dy` over groups of rows, all in one pass. The groups' sums are
//! added by `sum_columns`: two or more ordered stages, the same bits every time.

use super::layer_norm::{HELD, SIZES, held_form, held_workgroups, load_splat, statistics64};
use crate::accumulate::{load, store, sum_by};
use crate::error::Result;
use crate::kernel::check::{Case, CaseBuffer, Fill, Made, RefArgs, Request, Sizing, spread};
use crate::kernel::params;
use crate::kernel::{Binding, CpuArgs, Element, FLOATS, Flags, Kernel, NO_FLOPS, ROWS};
use crate::simd::F32x4;
use crate::wgsl::source::shader;

params! {
    struct Params {
        /// Groups of rows.
        rows: u32,
        cols: u32,
        inverse_cols: f32,
        all_rows: u32,
        group_rows: u32,
    }
}

impl Params {
    /// Groups that are enough for a GPU and few enough to be added up quickly: up to 32 rows each. Narrow rows share
    /// workgroups, so there are more of them.
    pub fn new(rows: usize, cols: usize) -> Self {
        let group_rows = (rows / if cols <= 1024 { 2048 } else { 1024 }).clamp(1, 32);
        Self {
            rows: rows.div_ceil(group_rows) as u32,
            cols: cols as u32,
            inverse_cols: 1.0 / cols as f32,
            all_rows: rows as u32,
            group_rows: group_rows as u32,
        }
    }
}

pub(crate) static KERNEL: Kernel = Kernel {
    name: "layer_norm_backward",
    source: shader!("layer_norm_backward"),
    bindings: &[
        Binding::read("dy"),
        Binding::read("x"),
        Binding::read("mean").holds(Element::F32),
        Binding::read("rstd").holds(Element::F32),
        Binding::read("weight").when(&["weight"]),
        Binding::write("dx").when(&["dx"]),
        Binding::write("dw").holds(Element::F32).when(&["dw"]),
        Binding::write("db").holds(Element::F32).when(&["db"]),
    ],
    fields: Params::FIELDS,
    params_size: size_of::<Params>(),
    flags: &[&["weight"], &["dx"], &["dw"], &["db"], HELD],
    scalars: FLOATS,
    strategies: ROWS,
    tune: |params, flags, traits| {
        let form = held_form(bytemuck::from_bytes::<Params>(params).cols, traits);
        KERNEL.replace(flags, "plain", form)
    },
    workgroups: |params, flags, strategy| {
        held_workgroups(&KERNEL, flags, bytemuck::from_bytes::<Params>(params).rows, strategy)
    },
    flops: NO_FLOPS,
    cpu,
};

/// The flags of a call.
pub(crate) fn flags(weight: bool, [dx, dw, db]: [bool; 3]) -> Flags {
    let on = |set, name| if set { name } else { "" };
    KERNEL.set(&[on(weight, "weight"), on(dx, "dx"), on(dw, "dw"), on(db, "db"), "plain"])
}

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    let p = args.params::<Params>();
    let n = p.cols as usize;
    let (dy, x) = (args.read("dy"), args.read("x"));
    let (mean, rstd, weight) = (args.read("mean"), args.read("rstd"), args.try_read("weight"));
    let (mut dx, mut dw, mut db) = (args.try_write("dx"), args.try_write("dw"), args.try_write("db"));
    for sums in [&mut dw, &mut db].into_iter().flatten() {
        sums.fill(0.0);
    }
    let scale = F32x4::splat(p.inverse_cols);
    for row in 0..p.all_rows as usize {
        let (x, dy) = (&x[row * n..][..n], &dy[row * n..][..n]);
        let (middle, r) = (F32x4::splat(mean[row]), F32x4::splat(rstd[row]));
        let weighted = |k, live| match &weight {
            Some(w) => load(dy, k, live) * load(w, k, live),
            None => load(dy, k, live),
        };
        let [c1, c2, shift] = sum_by(n, |k, live| {
            let g = weighted(k, live) * scale;
            let d = load(x, k, live) - load_splat(middle, live);
            [g, g * (d * r), d * scale]
        });
        let c2 = F32x4::splat((c2 - c1 * shift * f64::from(rstd[row])) as f32);
        let (c1, shift) = (F32x4::splat(c1 as f32), F32x4::splat(shift as f32));
        let group = row / p.group_rows as usize * n;
        for k in (0..n).step_by(4) {
            let live = n - k;
            let centered = ((load(x, k, live) - middle) - shift) * r;
            if let Some(dx) = &mut dx {
                store(r * (weighted(k, live) - c1 - centered * c2), dx, row * n + k, live);
            }
            let upstream = load(dy, k, live);
            if let Some(dw) = &mut dw {
                store(load(dw, group + k, live) + upstream * centered, dw, group + k, live);
            }
            if let Some(db) = &mut db {
                store(load(db, group + k, live) + upstream, db, group + k, live);
            }
        }
    }
    Ok(())
}

pub(crate) fn reference(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let p = args.params::<Params>();
    let n = p.cols as usize;
    let mut dx = Vec::new();
    let [mut dw, mut db] = [(); 2].map(|()| vec![0.0; p.rows as usize * n]);
    for row in 0..p.all_rows as usize {
        let (x, dy) = (&args.input("x")[row * n..][..n], &args.input("dy")[row * n..][..n]);
        let mean = x.iter().sum::<f64>() / n as f64;
        let rstd = args.input("rstd")[row];
        let weight = |k: usize| if args.has("weight") { args.input("weight")[k] } else { 1.0 };
        let g: Vec<f64> = dy.iter().enumerate().map(|(k, dy)| dy * weight(k)).collect();
        let normal: Vec<f64> = x.iter().map(|x| (x - mean) * rstd).collect();
        let c1 = g.iter().sum::<f64>() / n as f64;
        let c2 = g.iter().zip(&normal).map(|(g, x)| g * x).sum::<f64>() / n as f64;
        dx.extend(g.iter().zip(&normal).map(|(g, x)| rstd * (g - c1 - x * c2)));
        for k in 0..n {
            dw[row / p.group_rows as usize * n + k] += dy[k] * normal[k];
            db[row / p.group_rows as usize * n + k] += dy[k];
        }
    }
    let keep = |flag, v| if args.has(flag) { v } else { Vec::new() };
    let outputs = [keep("dx", dx), keep("dw", dw), keep("db", db)];
    std::iter::repeat_n(Vec::new(), 5).chain(outputs).collect()
}

pub(crate) static SIZING: Sizing = Sizing {
    sizes: &[("rows", 1024), ("cols", 768)],
    // The product of dy and weight, many times a standard deviation.
    largest: 1e12,
    grids: &[("dx", 1), ("dw", 1), ("db", 1)],
    make: |request| Ok(Case { terms: Some(terms), ..sized(request)? }),
};

fn sized(request: &Request<'_>) -> Made<Case> {
    let [rows, cols] = request.sizes()?;
    let count = request.elements(&[rows, cols])?;
    let params = Params::new(rows, cols);
    let x = request.values("x", count)?;
    let wide: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
    let saved = wide.chunks(cols).map(|row| statistics64(row, 1e-5));
    let (mean, rstd) = saved.map(|(mean, rstd)| (mean as f32, rstd as f32)).unzip();
    let has = |flag| KERNEL.has(request.flags, flag);
    let output = |flag, n| if has(flag) { CaseBuffer::Output(n) } else { CaseBuffer::Absent };
    let sums = params.rows as usize * cols;
    Ok(Case {
        label: format!("{rows}x{cols}"),
        flags: request.flags,
        params: bytemuck::bytes_of(&params).to_vec(),
        buffers: vec![
            request.input("dy", count)?,
            CaseBuffer::Floats(x),
            CaseBuffer::Floats(mean),
            CaseBuffer::Floats(rstd),
            if has("weight") { request.input("weight", cols)? } else { CaseBuffer::Absent },
            output("dx", count),
            output("dw", sums),
            output("db", sums),
        ],
        relative: 1e-5,
        absolute: 5e-6,
        terms: None,
    })
}

/// The reference with every difference a sum.
fn terms(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let p = args.params::<Params>();
    let n = p.cols as usize;
    let mut dx = Vec::new();
    let [mut dw, mut db] = [(); 2].map(|()| vec![0.0; p.rows as usize * n]);
    for row in 0..p.all_rows as usize {
        let (x, dy) = (&args.input("x")[row * n..][..n], &args.input("dy")[row * n..][..n]);
        let mean = x.iter().sum::<f64>() / n as f64;
        let rstd = args.input("rstd")[row];
        let weight = |k: usize| if args.has("weight") { args.input("weight")[k] } else { 1.0 };
        let g: Vec<f64> = dy.iter().enumerate().map(|(k, dy)| (dy * weight(k)).abs()).collect();
        let normal: Vec<f64> = x.iter().map(|x| 1.0 + ((x - mean) * rstd).abs()).collect();
        let c1 = g.iter().sum::<f64>() / n as f64;
        let c2 = g.iter().zip(&normal).map(|(g, x)| g * x).sum::<f64>() / n as f64;
        // Where infinities meet, the order of terms decides between NaN and infinity.
        let known = |v: f64| if v.is_finite() { v } else { f64::NAN };
        dx.extend(g.iter().zip(&normal).map(|(g, x)| known(rstd * (g + c1 + x * c2))));
        for k in 0..n {
            dw[row / p.group_rows as usize * n + k] += dy[k].abs() * normal[k];
            db[row / p.group_rows as usize * n + k] += dy[k].abs();
        }
    }
    std::iter::repeat_n(Vec::new(), 5).chain([dx, dw, db]).collect()
}

pub(crate) fn cases() -> Vec<Case> {
    // The last rows make groups of two, the last of one.
    let shapes = SIZES.iter().chain(&[(4097, 8, 3.0)]).enumerate();
    let made = shapes.map(|(k, &(rows, cols, around))| {
        let fill: Fill<'_> = &|binding, n| {
            Ok(match binding {
                "x" => spread(n, 1, around - 2.0, around + 2.0),
                "weight" => spread(n, 2, 0.5, 1.5),
                _ => spread(n, 4, -1.0, 1.0),
            })
        };
        let flags = flags(k % 2 == 0, [k % 3 != 1, k % 3 != 2, k % 4 != 3]);
        let case = sized(&Request { flags, sizes: &[rows, cols], fill }).expect("sizes of a case fit");
        // A row of one column has rstd = 316 and a gradient of exactly zero.
        let absolute = if cols == 1 { 1e-3 } else { case.absolute };
        Case { label: format!("{rows}x{cols} around {around}"), absolute, ..case }
    });
    made.collect()
}

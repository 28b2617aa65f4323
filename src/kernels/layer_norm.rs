//! Layer normalisation, forward (Ba et al. 2016, arXiv:1607.06450): `y = (x − mean) · rstd · weight + bias` by rows.

use crate::accumulate::{load, store, sum_by};
use crate::error::Result;
use crate::kernel::check::{Case, CaseBuffer, Fill, Made, RefArgs, Request, Sizing, spread};
use crate::kernel::params;
use crate::kernel::{Binding, CpuArgs, Element, FLOATS, Flags, Kernel, NO_FLOPS, ROWS, Strategy, Traits};
use crate::simd::F32x4;
use crate::wgsl::source::shader;

params! {
    struct Params {
        rows: u32,
        cols: u32,
        eps: f32,
        inverse_cols: f32,
    }
}

pub(crate) static KERNEL: Kernel = Kernel {
    name: "layer_norm",
    source: shader!("layer_norm"),
    bindings: &[
        Binding::read("x"),
        Binding::read("weight").when(&["weight"]),
        Binding::read("bias").when(&["bias"]),
        Binding::write("y"),
        Binding::write("mean").holds(Element::F32),
        Binding::write("rstd").holds(Element::F32),
    ],
    fields: Params::FIELDS,
    params_size: size_of::<Params>(),
    flags: &[&["weight"], &["bias"], HELD],
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

/// How a row is worked on: read again and again, held by a subgroup (`slim` with fewer registers), or by a workgroup.
pub(crate) const HELD: &[&str] = &["plain", "slim", "narrow", "wide"];

/// Elements of a row that a lane holds at most, by form; `shaders/lib/held.wgsl` has the vectors of four.
const SLIM_LANE: u32 = 24;
const NARROW_LANE: u32 = 32;
const WIDE_ROW: u32 = 4096;
/// Rows a workgroup in the narrow form.
const NARROW_ROWS: u64 = 8;

/// The fastest form that holds rows of `cols` on this device.
pub(crate) fn held_form(cols: u32, traits: Traits) -> &'static str {
    if traits.strategy == Strategy::Serial || !cols.is_multiple_of(4) || cols > WIDE_ROW {
        "plain"
    } else if traits.strategy == Strategy::Subgroups && cols <= SLIM_LANE * traits.min_subgroup {
        "slim"
    } else if traits.strategy == Strategy::Subgroups && cols <= NARROW_LANE * traits.min_subgroup {
        "narrow"
    } else {
        "wide"
    }
}

/// Workgroups for kernels that hold rows.
pub(crate) fn held_workgroups(kernel: &Kernel, flags: Flags, rows: u32, strategy: Strategy) -> u64 {
    let narrow = kernel.has(flags, "narrow") || kernel.has(flags, "slim");
    if strategy == Strategy::Subgroups && narrow {
        u64::from(rows).div_ceil(NARROW_ROWS)
    } else {
        row_workgroups(rows, strategy)
    }
}

/// The flags of a call.
pub(crate) fn flags(weight: bool, bias: bool) -> Flags {
    KERNEL.set(&[if weight { "weight" } else { "" }, if bias { "bias" } else { "" }, "plain"])
}

/// Workgroups for kernels that work on rows: one a row, or one an invocation.
pub(crate) fn row_workgroups(rows: u32, strategy: Strategy) -> u64 {
    if strategy == Strategy::Serial { u64::from(rows).div_ceil(64) } else { u64::from(rows) }
}

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    let p = args.params::<Params>();
    let n = p.cols as usize;
    let (x, weight, bias) = (args.read("x"), args.try_read("weight"), args.try_read("bias"));
    let (mut y, mut mean, mut rstd) = (args.write("y"), args.write("mean"), args.write("rstd"));
    let scale = F32x4::splat(p.inverse_cols);
    for (row, (x, y)) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)).take(p.rows as usize).enumerate() {
        // Shares are summed, not values: the sum of a row of large values must not overflow.
        let center = sum_by(n, |k, live| [load(x, k, live) * scale])[0] as f32;
        let middle = F32x4::splat(center);
        let [shift, square] = sum_by(n, |k, live| {
            let d = load(x, k, live) - load_splat(middle, live);
            let share = d * scale;
            [share, d * share]
        });
        let r = (1.0 / ((square - shift * shift).max(0.0) + f64::from(p.eps)).sqrt()) as f32;
        // Written so that a NaN in the row stays one: f64::max would turn it into 0.
        let r = if square.is_nan() { f32::NAN } else { r };
        let shift = shift as f32;
        mean[row] = center + shift;
        rstd[row] = r;
        let (shift, r) = (F32x4::splat(shift), F32x4::splat(r));
        for k in (0..n).step_by(4) {
            let live = n - k;
            let mut v = ((load(x, k, live) - middle) - shift) * r;
            if let Some(w) = &weight {
                v = v * load(w, k, live);
            }
            if let Some(b) = &bias {
                v = v + load(b, k, live);
            }
            store(v, y, k, live);
        }
    }
    Ok(())
}

/// A constant in the live lanes, zero in the others.
#[inline(always)]
pub(crate) fn load_splat(value: F32x4, live: usize) -> F32x4 {
    if live >= 4 { value } else { F32x4::load_partial(&value.to_array()[..live]) }
}

/// Mean and 1/std of a row in float64.
pub(crate) fn statistics64(row: &[f64], eps: f64) -> (f64, f64) {
    let n = row.len() as f64;
    let mean = row.iter().sum::<f64>() / n;
    let var = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    (mean, 1.0 / (var + eps).sqrt())
}

pub(crate) fn reference(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let p = args.params::<Params>();
    let (mut y, mut means, mut rstds) = (Vec::new(), Vec::new(), Vec::new());
    for row in args.input("x").chunks_exact(p.cols as usize).take(p.rows as usize) {
        let (mean, rstd) = statistics64(row, f64::from(p.eps));
        for (k, x) in row.iter().enumerate() {
            let weight = if args.has("weight") { args.input("weight")[k] } else { 1.0 };
            let bias = if args.has("bias") { args.input("bias")[k] } else { 0.0 };
            y.push((x - mean) * rstd * weight + bias);
        }
        // Nothing deviates from an infinite mean by a number: both statistics are NaN.
        means.push(if rstd.is_nan() { f64::NAN } else { mean });
        rstds.push(rstd);
    }
    vec![vec![], vec![], vec![], y, means, rstds]
}

/// Rows and columns at the edges of workgroups and vectors, and the value that a row lies around.
pub(crate) const SIZES: &[(usize, usize, f32)] = &[
    (3, 1, 0.0),
    (2, 3, 0.0),
    (5, 31, 100.0),
    (4, 63, 0.0),
    (3, 65, -1000.0),
    (2, 255, 0.0),
    (70, 257, 10000.0),
    (2, 1025, 0.0),
    (9, 768, 10.0),
    (20, 64, 10.0),
    (9, 8, 0.0),
    (3, 4096, 0.0),
    (2, 4100, 0.0),
];

pub(crate) static SIZING: Sizing = Sizing {
    sizes: &[("rows", 1024), ("cols", 768)],
    // The square of a value.
    largest: 1e18,
    grids: &[("y", 1)],
    make: |request| Ok(Case { terms: Some(terms), ..sized(request)? }),
};

fn sized(request: &Request<'_>) -> Made<Case> {
    let [rows, cols] = request.sizes()?;
    let count = request.elements(&[rows, cols])?;
    let params = Params { rows: rows as u32, cols: cols as u32, eps: 1e-5, inverse_cols: 1.0 / cols as f32 };
    let affine = |name| {
        let wanted = KERNEL.has(request.flags, name);
        if wanted { request.input(name, cols) } else { Ok(CaseBuffer::Absent) }
    };
    Ok(Case {
        label: format!("{rows}x{cols}"),
        flags: request.flags,
        params: bytemuck::bytes_of(&params).to_vec(),
        buffers: vec![
            request.input("x", count)?,
            affine("weight")?,
            affine("bias")?,
            CaseBuffer::Output(count),
            CaseBuffer::Output(rows),
            CaseBuffer::Output(rows),
        ],
        // What a variance shifted by the rest of the mean reaches, and division and root on a GPU.
        relative: 3e-6,
        absolute: 2e-6,
        terms: None,
    })
}

fn terms(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let (p, plain) = (args.params::<Params>(), vec![1.0; args.params::<Params>().cols as usize]);
    let weight = if args.has("weight") { args.input("weight") } else { &plain };
    let rows = || args.input("x").chunks_exact(p.cols as usize);
    let y = rows().flat_map(|row| {
        let (mean, rstd) = statistics64(row, f64::from(p.eps));
        row.iter().zip(weight).map(move |(x, w)| (1.0 + ((x - mean) * rstd).abs()) * w.abs())
    });
    let means = rows().map(|row| row.iter().map(|x| x.abs()).sum::<f64>() / row.len() as f64);
    let rstds = rows().map(|row| statistics64(row, f64::from(p.eps)).1);
    vec![vec![], vec![], vec![], y.collect(), means.collect(), rstds.collect()]
}

pub(crate) fn cases() -> Vec<Case> {
    let made = SIZES.iter().enumerate().map(|(k, &(rows, cols, around))| {
        let fill: Fill<'_> = &|binding, n| {
            Ok(match binding {
                "x" => spread(n, 1, around - 2.0, around + 2.0),
                "weight" => spread(n, 2, 0.5, 1.5),
                _ => spread(n, 3, 0.5, 1.5),
            })
        };
        let case = sized(&Request { flags: flags(k % 2 == 0, k % 4 < 2), sizes: &[rows, cols], fill });
        let label = format!("{rows}x{cols} around {around}");
        Case { label, ..case.expect("sizes of a case fit") }
    });
    made.collect()
}

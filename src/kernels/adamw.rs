//! One step of AdamW in place (Loshchilov and Hutter 2019, arXiv:1711.05101), with PyTorch's order of operations.

use crate::error::Result;
use crate::kernel::check::{Case, CaseBuffer, Fill, Made, RefArgs, Request, Sizing, of_magnitudes, spread};
use crate::kernel::params;
use crate::kernel::{Access, Binding, CpuArgs, ELEMENTWISE, Element, FLOATS, Kernel, NO_FLOPS, UNTUNED};
use crate::wgsl::source::shader;

params! {
    struct Params {
        count: u32,
        rate: f32,
        beta1: f32,
        beta2: f32,
        eps: f32,
        /// 1 − rate · weight decay.
        keep: f32,
        /// 1 / (1 − beta1^t).
        inverse_correction1: f32,
        /// 1 / √(1 − beta2^t).
        inverse_root_correction2: f32,
    }
}

pub(crate) static KERNEL: Kernel = Kernel {
    name: "adamw",
    source: shader!("adamw"),
    bindings: &[
        Binding::update("parameter"),
        Binding::new("first", Access::Update).holds(Element::F32),
        Binding::new("second", Access::Update).holds(Element::F32),
        Binding::read("gradient"),
    ],
    fields: Params::FIELDS,
    params_size: size_of::<Params>(),
    flags: &[],
    scalars: FLOATS,
    strategies: ELEMENTWISE,
    tune: UNTUNED,
    workgroups: |params, _, _| u64::from(bytemuck::from_bytes::<Params>(params).count).div_ceil(256),
    flops: NO_FLOPS,
    cpu,
};

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    let p = args.params::<Params>();
    let (mut parameter, gradient) = (args.write("parameter"), args.read("gradient"));
    let (mut first, mut second) = (args.write("first"), args.write("second"));
    let moments = first.iter_mut().zip(second.iter_mut());
    for ((w, &g), (m, v)) in parameter.iter_mut().zip(gradient.iter()).zip(moments).take(p.count as usize) {
        *m += (1.0 - p.beta1) * (g - *m);
        // Not as a step towards g²: where that is infinite, the moment stays so.
        *v = p.beta2 * *v + (1.0 - p.beta2) * g * g;
        let step = p.rate * (*m * p.inverse_correction1) / (v.sqrt() * p.inverse_root_correction2 + p.eps);
        *w = *w * p.keep - step;
    }
    Ok(())
}

pub(crate) fn reference(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let p = args.params::<Params>();
    let mut out = vec![Vec::new(); 4];
    for i in 0..p.count as usize {
        let g = args.input("gradient")[i];
        let (beta1, beta2) = (f64::from(p.beta1), f64::from(p.beta2));
        // PyTorch's lerp: an infinite moment becomes NaN.
        let m = args.input("first")[i] + (1.0 - beta1) * (g - args.input("first")[i]);
        let v = beta2 * args.input("second")[i] + (1.0 - beta2) * g * g;
        let root = v.sqrt() * f64::from(p.inverse_root_correction2) + f64::from(p.eps);
        let step = f64::from(p.rate) * m * f64::from(p.inverse_correction1) / root;
        out[0].push(args.input("parameter")[i] * f64::from(p.keep) - step);
        out[1].push(m);
        out[2].push(v);
    }
    out
}

pub(crate) static SIZING: Sizing = Sizing {
    sizes: &[("count", 1 << 20)],
    // The square of a gradient.
    largest: 1e18,
    grids: &[],
    make: sized,
};

/// The error that a sum's terms leave, in parts of them.
const ABSOLUTE: f64 = 2e-6;

fn sized(request: &Request<'_>) -> Made<Case> {
    let [count] = request.sizes()?;
    let params = Params {
        count: count as u32,
        rate: 0.01,
        beta1: 0.9,
        beta2: 0.99,
        eps: 1e-8,
        keep: 0.999,
        inverse_correction1: 2.0,
        inverse_root_correction2: 3.0,
    };
    // A mean of squares is never negative.
    let second = request.values("second", count)?.iter().map(|v| v.abs()).collect();
    Ok(Case {
        label: format!("{count}"),
        flags: request.flags,
        params: bytemuck::bytes_of(&params).to_vec(),
        buffers: vec![
            request.input("parameter", count)?,
            request.input("first", count)?,
            CaseBuffer::Floats(second),
            request.input("gradient", count)?,
        ],
        relative: 0.0,
        absolute: ABSOLUTE,
        terms: Some(|args| of_magnitudes(args, terms)),
    })
}

/// The reference, with the step added instead of taken away.
fn terms(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let mut out = reference(args);
    let p = args.params::<Params>();
    // A moment below the smallest normal number is rounded coarsely or flushed, before the smallest root divides it.
    let lost = f64::from(f32::MIN_POSITIVE) * f64::from(p.rate * p.inverse_correction1 / p.eps) / ABSOLUTE;
    for (w, before) in out[0].iter_mut().zip(args.input("parameter")) {
        *w = 2.0 * before * f64::from(p.keep) - *w + lost;
    }
    out
}

pub(crate) fn cases() -> Vec<Case> {
    let fill: Fill<'_> = &|binding, n| {
        Ok(match binding {
            "parameter" => spread(n, 1, -2.0, 2.0),
            "first" => spread(n, 2, -0.1, 0.1),
            "second" => spread(n, 3, 0.001, 0.1),
            _ => spread(n, 4, -1.0, 1.0),
        })
    };
    vec![sized(&Request { flags: KERNEL.set(&[]), sizes: &[515], fill }).expect("sizes of a case fit")]
}

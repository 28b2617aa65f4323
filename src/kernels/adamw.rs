//! One step of AdamW in place (Loshchilov and Hutter 2019, arXiv:1711.05101), with PyTorch's order of operations.

use crate::kernel::params;
use crate::kernel::check::{Case, CaseBuffer, RefArgs, spread};
use crate::kernel::{Access, Binding, CpuArgs, ELEMENTWISE, Element, FLOATS, Kernel, UNTUNED};
use crate::error::Result;
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
    cpu,
};

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    let p = args.params::<Params>();
    let (mut parameter, gradient) = (args.write("parameter"), args.read("gradient"));
    let (mut first, mut second) = (args.write("first"), args.write("second"));
    let moments = first.iter_mut().zip(second.iter_mut());
    for ((w, &g), (m, v)) in parameter.iter_mut().zip(gradient.iter()).zip(moments).take(p.count as usize) {
        *m += (1.0 - p.beta1) * (g - *m);
        *v += (1.0 - p.beta2) * (g * g - *v);
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
        let m = beta1 * args.input("first")[i] + (1.0 - beta1) * g;
        let v = beta2 * args.input("second")[i] + (1.0 - beta2) * g * g;
        let root = v.sqrt() * f64::from(p.inverse_root_correction2) + f64::from(p.eps);
        let step = f64::from(p.rate) * m * f64::from(p.inverse_correction1) / root;
        out[0].push(args.input("parameter")[i] * f64::from(p.keep) - step);
        out[1].push(m);
        out[2].push(v);
    }
    out
}

pub(crate) fn cases() -> Vec<Case> {
    let params = Params {
        count: 515,
        rate: 0.01,
        beta1: 0.9,
        beta2: 0.99,
        eps: 1e-8,
        keep: 0.999,
        inverse_correction1: 2.0,
        inverse_root_correction2: 3.0,
    };
    vec![Case {
        label: "515".into(),
        flags: KERNEL.set(&[]),
        params: bytemuck::bytes_of(&params).to_vec(),
        buffers: vec![
            CaseBuffer::Floats(spread(515, 1, -2.0, 2.0)),
            CaseBuffer::Floats(spread(515, 2, -0.1, 0.1)),
            CaseBuffer::Floats(spread(515, 3, 0.001, 0.1)),
            CaseBuffer::Floats(spread(515, 4, -1.0, 1.0)),
        ],
        // The differences that make the moments cancel at worst to a hundredth.
        relative: 2e-6,
        absolute: 1e-6,
    }]
}

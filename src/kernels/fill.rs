//! Every element becomes one value.

use crate::error::Result;
use crate::kernel::check::{Case, CaseBuffer, Made, RefArgs, Request, Sizing};
use crate::kernel::params;
use crate::kernel::{Binding, CpuArgs, ELEMENTWISE, Kernel, NO_FLOPS, UNTUNED};
use crate::wgsl::Scalar;
use crate::wgsl::source::shader;

params! {
    struct Params {
        count: u32,
        /// The value's bits: a uniform f32 that is NaN may lose its sign or payload on the way.
        bits: u32,
    }
}

pub(crate) static KERNEL: Kernel = Kernel {
    name: "fill",
    source: shader!("fill"),
    bindings: &[Binding::write("out")],
    fields: Params::FIELDS,
    params_size: size_of::<Params>(),
    flags: &[],
    scalars: &[Scalar::F32, Scalar::F16, Scalar::F16InF32, Scalar::I32, Scalar::U32],
    strategies: ELEMENTWISE,
    tune: UNTUNED,
    workgroups: |params, _, _| u64::from(bytemuck::from_bytes::<Params>(params).count).div_ceil(256),
    flops: NO_FLOPS,
    cpu,
};

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    let p = args.params::<Params>();
    args.write("out").fill(f32::from_bits(p.bits));
    Ok(())
}

pub(crate) fn reference(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let p = args.params::<Params>();
    vec![vec![f64::from(f32::from_bits(p.bits)); p.count as usize]]
}

pub(crate) static SIZING: Sizing =
    Sizing { sizes: &[("count", 1 << 20)], largest: f32::MAX, grids: &[], make: sized };

fn sized(request: &Request<'_>) -> Made<Case> {
    let [count] = request.sizes()?;
    let value = request.values("out", 1)?[0];
    let params = Params { count: request.elements(&[count])? as u32, bits: value.to_bits() };
    Ok(Case {
        label: format!("{value}"),
        flags: request.flags,
        params: bytemuck::bytes_of(&params).to_vec(),
        buffers: vec![CaseBuffer::Output(count)],
        relative: 0.0,
        absolute: 0.0,
        terms: None,
    })
}

pub(crate) fn cases() -> Vec<Case> {
    let made = [0.0f32, -1.5, f32::NAN, f32::INFINITY].map(|value| {
        sized(&Request { flags: KERNEL.set(&[]), sizes: &[257], fill: &|_, n| Ok(vec![value; n]) })
    });
    made.into_iter().map(|case| case.expect("sizes of a case fit")).collect()
}

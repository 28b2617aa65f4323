//! Copies elements from one layout to another: what makes a view contiguous, and what writes into a view.

use super::gated::{layouts, span};
use crate::error::Result;
use crate::kernel::check::{Case, CaseBuffer, RefArgs, Sizing, spread};
use crate::kernel::params;
use crate::kernel::{Access, Binding, CpuArgs, ELEMENTWISE, Kernel, NO_FLOPS};
use crate::layout::{Layout, merge};
use crate::pairing::{PairParams, for_each_run, lanes, positions};
use crate::shape::Shape;
use crate::wgsl::Scalar;
use crate::wgsl::source::shader;

params! {
    struct Params {
        count: u32,
        rank: u32,
        source_offset: u32,
        target_offset: u32,
        sizes: [[u32; 4]; 2],
        source_strides: [[u32; 4]; 2],
        target_strides: [[u32; 4]; 2],
    }
}

impl Params {
    /// Copies the elements of `source` to the places of `target`; both have one shape.
    pub fn new(source: &Layout, target: &Layout) -> Self {
        let merged = merge(source.shape(), [source.strides(), target.strides()]);
        Self {
            count: source.shape().elements() as u32,
            rank: merged.rank() as u32,
            source_offset: source.offset() as u32,
            target_offset: target.offset() as u32,
            sizes: lanes(merged.sizes().iter().map(|&s| s as isize)),
            source_strides: lanes(merged.strides(0).iter().copied()),
            target_strides: lanes(merged.strides(1).iter().copied()),
        }
    }

    /// Whether both lie in order without gaps, from whole vectors on.
    fn is_block(&self) -> bool {
        let in_order = |strides: &[[u32; 4]; 2]| self.rank == 0 || (self.rank == 1 && strides[0][0] == 1);
        in_order(&self.source_strides)
            && in_order(&self.target_strides)
            && self.source_offset.is_multiple_of(4)
            && self.target_offset.is_multiple_of(4)
    }

    /// The same walk as a pair's: the source is `a`, the target `b`.
    fn as_pair(&self) -> PairParams {
        // A scalar has no dimension left to walk: give it one of size 1.
        let (rank, sizes) =
            if self.rank == 0 { (1, lanes([1].into_iter())) } else { (self.rank, self.sizes) };
        PairParams {
            count: self.count,
            cols: self.count,
            a_offset: self.source_offset,
            b_offset: self.target_offset,
            a_row: 0,
            b_row: 0,
            rank,
            padding: 0,
            sizes,
            a_strides: self.source_strides,
            b_strides: self.target_strides,
        }
    }
}

/// How the elements are found: by walking both layouts, or as they lie.
const FORMS: &[&str] = &["walk", "vec4"];

pub(crate) static KERNEL: Kernel = Kernel {
    name: "copy",
    source: shader!("copy"),
    // The target keeps what lies between its elements.
    bindings: &[Binding::read("source"), Binding::new("out", Access::Part)],
    fields: Params::FIELDS,
    params_size: size_of::<Params>(),
    flags: &[FORMS],
    scalars: &[Scalar::F32, Scalar::F16, Scalar::F16InF32, Scalar::I32, Scalar::U32],
    strategies: ELEMENTWISE,
    tune: |params, flags, _| {
        if bytemuck::from_bytes::<Params>(params).is_block() {
            KERNEL.replace(flags, "walk", "vec4")
        } else {
            flags
        }
    },
    workgroups: |params, flags, _| {
        let count = u64::from(bytemuck::from_bytes::<Params>(params).count);
        if KERNEL.has(flags, "vec4") { count.div_ceil(4 * 256) } else { count.div_ceil(256) }
    },
    flops: NO_FLOPS,
    cpu,
};

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    let p = args.params::<Params>().as_pair();
    let (source, mut out) = (args.read("source"), args.write("out"));
    for_each_run(&p, true, |run| {
        if (run.a_step, run.b_step) == (1, 1) {
            out[run.b..run.b + run.len].copy_from_slice(&source[run.a..run.a + run.len]);
            return;
        }
        let (mut from, mut to) = (run.a as isize, run.b as isize);
        for _ in 0..run.len {
            out[to as usize] = source[from as usize];
            from += run.a_step;
            to += run.b_step;
        }
    });
    Ok(())
}

pub(crate) fn reference(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let p = args.params::<Params>().as_pair();
    // A target that is written in full holds nothing before.
    let before = args.input("out");
    let mut out = if before.is_empty() { vec![f64::NAN; p.count as usize] } else { before.to_vec() };
    for i in 0..p.count as usize {
        let (from, to) = positions(&p, true, i);
        out[to] = args.input("source")[from];
    }
    vec![vec![], out]
}

pub(crate) static SIZING: Sizing = Sizing {
    sizes: &[("rows", 1024), ("cols", 1024), ("step", 1)],
    largest: f32::MAX,
    grids: &[("out", 1)],
    make: |request| {
        let [rows, cols, step] = request.sizes()?;
        let wide = Shape::from_checked(&[rows, request.elements(&[cols, step])?]);
        let count = request.elements(&[rows, cols, step]).map(|all| all / step)?;
        let source = Layout::contiguous(wide).slice(1, 0, cols, step as isize);
        let target = Layout::contiguous(*source.shape());
        Ok(Case {
            label: format!("{rows}x{cols}, every {step}"),
            flags: request.flags,
            params: bytemuck::bytes_of(&Params::new(&source, &target)).to_vec(),
            buffers: vec![request.input("source", span(&source))?, CaseBuffer::Output(count)],
            relative: 0.0,
            absolute: 0.0,
            terms: None,
        })
    },
};

/// A copy of `source` to the places of `target` in a buffer of `space` elements.
fn case(label: String, source: &Layout, target: &Layout, space: usize) -> Case {
    Case {
        label,
        flags: KERNEL.set(&["walk"]),
        params: bytemuck::bytes_of(&Params::new(source, target)).to_vec(),
        buffers: vec![
            CaseBuffer::Floats(spread(span(source), 1, -1.0, 1.0)),
            CaseBuffer::Floats(spread(space, 2, -1.0, 1.0)),
        ],
        relative: 0.0,
        absolute: 0.0,
        terms: None,
    }
}

pub(crate) fn cases() -> Vec<Case> {
    // In the middle of both: what lies around the copy stays, in the last vector too.
    let line = Layout::contiguous(Shape::from_checked(&[64]));
    let inside = [21, 24].map(|length| {
        case(format!("{length} inside"), &line.slice(0, 8, length, 1), &line.slice(0, 12, length, 1), 64)
    });
    layouts()
        .into_iter()
        .flat_map(|(name, a, b)| {
            [(name, a, Layout::contiguous(*a.shape())), (name, Layout::contiguous(*b.shape()), b)]
        })
        // Several elements for one place have no order: a target never repeats.
        .filter(|(_, _, target)| {
            target.strides().iter().zip(target.shape().iter()).all(|(&s, &n)| s != 0 || n == 1)
        })
        .map(|(name, source, target)| {
            let label = format!("{name} to {:?}", target.strides());
            case(label, &source, &target, span(&target))
        })
        .chain(inside)
        .collect()
}

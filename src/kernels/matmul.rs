//! Matrix product `c = a b` over batches; a transposed operand is read through its strides, never copied.

use crate::error::Result;
use crate::kernel::check::{Case, CaseBuffer, RefArgs, Sizing, of_magnitudes, spread};
use crate::kernel::params;
use crate::kernel::{Binding, CpuArgs, FLOATS, Kernel, Strategy, UNTUNED};
use crate::layout::{Layout, merge};
use crate::pairing::lanes;
use crate::shape::Shape;
use crate::wgsl::source::shader;

mod blocked;

params! {
    struct Params {
        m: u32,
        n: u32,
        k: u32,
        batches: u32,
        a_offset: u32,
        b_offset: u32,
        a_row: u32,
        a_col: u32,
        b_row: u32,
        b_col: u32,
        rank: u32,
        padding: u32,
        sizes: [[u32; 4]; 2],
        a_strides: [[u32; 4]; 2],
        b_strides: [[u32; 4]; 2],
    }
}

impl Params {
    /// The product of `[batch…, m, k]` and `[batch…, k, n]`; the batch dimensions are equal (expanded where they were not).
    pub fn new(a: &Layout, b: &Layout) -> Self {
        let rank = a.shape().rank();
        let batch = Shape::from_checked(&a.shape()[..rank - 2]);
        let (sa, sb) = (a.strides(), b.strides());
        let merged = merge(&batch, &[&sa[..rank - 2], &sb[..rank - 2]]);
        Self {
            m: a.shape()[rank - 2] as u32,
            n: b.shape()[rank - 1] as u32,
            k: a.shape()[rank - 1] as u32,
            batches: batch.elements() as u32,
            a_offset: a.offset() as u32,
            b_offset: b.offset() as u32,
            a_row: sa[rank - 2] as u32,
            a_col: sa[rank - 1] as u32,
            b_row: sb[rank - 2] as u32,
            b_col: sb[rank - 1] as u32,
            rank: merged.sizes.len() as u32,
            padding: 0,
            sizes: lanes(merged.sizes.iter().map(|&s| s as isize)),
            a_strides: lanes(merged.strides[0].iter().copied()),
            b_strides: lanes(merged.strides[1].iter().copied()),
        }
    }

    /// Where batch `index` of `a` and of `b` begins.
    fn bases(&self, index: usize) -> (usize, usize) {
        let (mut rest, mut a, mut b) = (index, self.a_offset as isize, self.b_offset as isize);
        for d in (0..self.rank as usize).rev() {
            let at = |v: &[[u32; 4]; 2]| v[d / 4][d % 4];
            let digit = (rest % at(&self.sizes) as usize) as isize;
            rest /= at(&self.sizes) as usize;
            a += digit * at(&self.a_strides) as i32 as isize;
            b += digit * at(&self.b_strides) as i32 as isize;
        }
        (a as usize, b as usize)
    }
}

pub(crate) static KERNEL: Kernel = Kernel {
    name: "matmul",
    source: shader!("matmul"),
    bindings: &[Binding::read("a"), Binding::read("b"), Binding::write("c")],
    fields: Params::FIELDS,
    params_size: size_of::<Params>(),
    flags: &[],
    scalars: FLOATS,
    strategies: &[Strategy::Workgroup, Strategy::Serial],
    tune: UNTUNED,
    workgroups: |params, _, strategy| {
        let p = bytemuck::from_bytes::<Params>(params);
        let tiles =
            |side| u64::from(p.batches) * u64::from(p.m.div_ceil(side)) * u64::from(p.n.div_ceil(side));
        if strategy == Strategy::Serial { tiles(4).div_ceil(64) } else { tiles(64) }
    },
    flops: |params, _| {
        let p = bytemuck::from_bytes::<Params>(params);
        [p.m, p.n, p.k, p.batches].into_iter().fold(2, |flops, size| flops * u64::from(size))
    },
    cpu,
};

fn cpu(args: &mut CpuArgs<'_>) -> Result<()> {
    let p = args.params::<Params>();
    let (a, b, mut c) = (args.read("a"), args.read("b"), args.write("c"));
    let (m, n, k) = (p.m as usize, p.n as usize, p.k as usize);
    let stride = |s: u32| s as i32 as isize;
    for (batch, c) in c.chunks_exact_mut(m * n).enumerate().take(p.batches as usize) {
        let (from_a, from_b) = p.bases(batch);
        blocked::multiply(
            (m, n, k),
            &blocked::Matrix { data: &a, start: from_a, row: stride(p.a_row), col: stride(p.a_col) },
            &blocked::Matrix { data: &b, start: from_b, row: stride(p.b_row), col: stride(p.b_col) },
            c,
        );
    }
    Ok(())
}

pub(crate) fn reference(args: &RefArgs<'_>) -> Vec<Vec<f64>> {
    let p = args.params::<Params>();
    let (a, b) = (args.input("a"), args.input("b"));
    let mut c = Vec::new();
    for batch in 0..p.batches as usize {
        let (from_a, from_b) = p.bases(batch);
        for i in 0..p.m {
            for j in 0..p.n {
                let terms = (0..p.k).map(|k| {
                    a[from_a + (i * p.a_row + k * p.a_col) as usize]
                        * b[from_b + (k * p.b_row + j * p.b_col) as usize]
                });
                c.push(terms.sum());
            }
        }
    }
    vec![vec![], vec![], c]
}

pub(crate) static SIZING: Sizing = Sizing {
    sizes: &[("batches", 1), ("m", 512), ("k", 512), ("n", 512)],
    // A product of two, thousands of times.
    largest: 1e15,
    grids: &[("c", 3)],
    make: |request| {
        let [batches, m, k, n] = request.sizes()?;
        let [of_a, of_b, of_c] = [[batches, m, k], [batches, k, n], [batches, m, n]];
        let counts = (request.elements(&of_a)?, request.elements(&of_b)?, request.elements(&of_c)?);
        let [a, b] = [of_a, of_b].map(|dims| Layout::contiguous(Shape::from_checked(&dims)));
        Ok(Case {
            label: format!("{m}x{n}x{k}"),
            flags: request.flags,
            params: bytemuck::bytes_of(&Params::new(&a, &b)).to_vec(),
            buffers: vec![
                request.input("a", counts.0)?,
                request.input("b", counts.1)?,
                CaseBuffer::Output(counts.2),
            ],
            // Every addition rounds; the errors walk at random.
            relative: 0.0,
            absolute: 1.2e-7 * (1.0 + (k as f64).sqrt()),
            terms: Some(|args| of_magnitudes(args, reference)),
        })
    },
};

pub(crate) fn cases() -> Vec<Case> {
    let of = |dims: &[usize]| Layout::contiguous(Shape::from_checked(dims));
    let mut all = Vec::new();
    for (m, n, k) in [(1, 1, 1), (3, 5, 7), (64, 64, 16), (65, 66, 17), (130, 9, 257), (4, 300, 33)] {
        let flipped = |l: Layout| l.transpose(1, 2);
        for (name, a, b) in [
            ("plain", of(&[1, m, k]), of(&[1, k, n])),
            ("a transposed", flipped(of(&[1, k, m])), of(&[1, k, n])),
            ("b transposed", of(&[1, m, k]), flipped(of(&[1, n, k]))),
            ("batched", of(&[3, m, k]), flipped(of(&[3, n, k]))),
        ] {
            all.push(Case {
                label: format!("{m}x{n}x{k} {name}"),
                flags: KERNEL.set(&[]),
                params: bytemuck::bytes_of(&Params::new(&a, &b)).to_vec(),
                buffers: vec![
                    CaseBuffer::Floats(spread(a.shape().elements(), 1, -1.0, 1.0)),
                    CaseBuffer::Floats(spread(b.shape().elements(), 2, -1.0, 1.0)),
                    CaseBuffer::Output(a.shape()[0] * m * n),
                ],
                // k terms below 1, each sum rounded.
                relative: 3e-6,
                absolute: 1e-7 * (k as f64) + 1e-6,
                terms: None,
            });
        }
    }
    all
}

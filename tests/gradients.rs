//! `backward` against numeric derivatives of float64 twins of the operations, over random shapes, views and
//! operands.
//!
//! A central difference of the engine's own f32 results would be too coarse to see anything: the twin is
//! differentiated.
#![cfg(not(target_arch = "wasm32"))]

mod cases;

use proptest::prelude::*;
use wgrad::{Approximate, CrossEntropy, Engine, Reduction, Result, Tensor};

use cases::block_on;
use cases::naive::{Array, View, gelu, relu, sigmoid, signed, silu, values};

/// The step of a central difference: truncation and rounding are both near 1e-10 in float64.
const STEP: f64 = 1e-6;
/// f32 results of sums of at most a few hundred terms, in multiples of the largest gradient.
const TOLERANCE: f64 = 2e-5;
const CASES: u32 = 256;

/// A tensor that the caller made.
#[derive(Debug, Clone)]
struct Leaf {
    shape: Vec<usize>,
    data: Vec<f32>,
    grad: bool,
}

/// An operand: a view of a leaf.
#[derive(Debug, Clone)]
struct Operand {
    leaf: usize,
    views: Vec<View>,
}

/// The shape of a leaf, and the views that make an operand of it.
type Viewed = (Vec<usize>, Vec<View>);

#[derive(Debug, Clone, Default)]
struct Call {
    leaves: Vec<Leaf>,
    operands: Vec<Operand>,
}

impl Call {
    fn with(mut self, base: Viewed, seed: u64, range: (f64, f64), grad: bool) -> Self {
        let (shape, views) = base;
        let data = values(shape.iter().product(), seed, range.0, range.1);
        self.operands.push(Operand { leaf: self.leaves.len(), views });
        self.leaves.push(Leaf { shape, data, grad });
        self
    }

    fn arrays(&self, leaves: &[Array]) -> Vec<Array> {
        let view = |o: &Operand| o.views.iter().fold(leaves[o.leaf].clone(), |x, v| v.of_array(&x));
        self.operands.iter().map(view).collect()
    }
}

/// Holds the gradients of `op` against numeric ones of `twin`.
fn check(call: &Call, op: impl Fn(&[Tensor]) -> Result<Tensor>, twin: impl Fn(&[Array]) -> Array) {
    let engine = Engine::cpu();
    let leaves: Vec<Tensor> = call
        .leaves
        .iter()
        .map(|l| {
            let mut t = engine.tensor(&l.data, &l.shape).expect("a tensor");
            t.set_requires_grad(l.grad).expect("f32 has a gradient");
            t
        })
        .collect();
    let view = |o: &Operand| o.views.iter().try_fold(leaves[o.leaf].clone(), |x, v| v.of_tensor(&x));
    let operands: Vec<Tensor> = call.operands.iter().map(|o| view(o).expect("a view")).collect();
    let out = op(&operands).expect("an op");
    let plain: Vec<Array> = call.leaves.iter().map(|l| Array::from_f32(&l.shape, &l.data)).collect();
    let want = twin(&call.arrays(&plain));
    assert_eq!(**out.shape(), *want.shape, "the shape");
    let read = |t: &Tensor| block_on(t.data()).expect("a read").to_f64();
    close("the result", &read(&out), &want.data);
    let any = call.leaves.iter().any(|l| l.grad);
    assert_eq!(out.requires_grad(), any);
    if !any {
        assert_eq!(out.backward(None, false).expect_err("no graph").kind().code(), "GradError");
        return;
    }
    let up = values(want.data.len(), 99, -1.0, 1.0);
    let upstream = engine.tensor(&up, &want.shape).expect("a tensor");
    // Twice, with the graph kept: the gradients add up, and the second must not find the first in its inputs.
    out.backward(Some(&upstream), true).expect("a backward");
    let first: Vec<Option<Tensor>> = leaves.iter().map(Tensor::grad).collect();
    let first: Vec<Option<Vec<f64>>> = first.iter().map(|g| g.as_ref().map(read)).collect();
    out.backward(Some(&upstream), false).expect("a second backward");
    let loss = |leaves: &[Array]| -> f64 {
        twin(&call.arrays(leaves)).data.iter().zip(&up).map(|(y, &u)| y * f64::from(u)).sum()
    };
    for (k, leaf) in call.leaves.iter().enumerate() {
        let Some(once) = &first[k] else {
            assert!(!leaf.grad, "leaf {k} has no gradient");
            continue;
        };
        assert!(leaf.grad, "leaf {k} has a gradient that it did not ask for");
        let mut numeric = vec![];
        for i in 0..leaf.data.len() {
            let mut moved = plain.clone();
            moved[k].data[i] += STEP;
            let above = loss(&moved);
            moved[k].data[i] -= 2.0 * STEP;
            numeric.push((above - loss(&moved)) / (2.0 * STEP));
        }
        let twice = leaves[k].grad().expect("a gradient");
        assert_eq!(**twice.shape(), *leaf.shape, "the gradient's shape of leaf {k}");
        close(&format!("the gradient of leaf {k}"), once, &numeric);
        close(
            &format!("twice the gradient of leaf {k}"),
            &read(&twice),
            &numeric.iter().map(|g| 2.0 * g).collect::<Vec<_>>(),
        );
    }
}

fn close(what: &str, got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len(), "{what}: the length");
    let scale = want.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    for (k, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).abs() <= TOLERANCE * scale, "{what}[{k}]: got {got:e}, expected {want:e}");
    }
}

/// A shape of `ranks` dimensions; now and then one is empty.
fn shape(ranks: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<usize>> {
    let size = prop_oneof![1 => Just(0usize), 12 => 1..5usize];
    prop::collection::vec(size, ranks)
}

/// One step back from a view: the shape it was made from, and the view.
fn undo(shape: &[usize], kind: u8, a: usize, b: usize) -> Option<(Vec<usize>, View)> {
    let mut base = shape.to_vec();
    let rank = shape.len();
    if rank == 0 {
        return (kind == 3).then(|| (vec![1; a % 3], View::Reshape(vec![])));
    }
    let (d, e) = (a % rank, b % rank);
    match kind {
        0 => {
            base.swap(d, e);
            Some((base, View::Transpose(d, e)))
        }
        1 => {
            let (start, step, count) = (b % 3, 1 + b / 3 % 2, shape[d]);
            base[d] = start + if count == 0 { 0 } else { (count - 1) * step + 1 } + b / 6 % 2;
            Some((base, View::Slice { dim: d, start, count, step }))
        }
        2 => {
            base[d] = 1;
            if d == 0 && b.is_multiple_of(2) {
                base.remove(0);
            }
            Some((base, View::Expand(shape.to_vec())))
        }
        3 => {
            let flat = base[d..].iter().product();
            base.truncate(d);
            base.push(flat);
            Some((base, View::Reshape(shape.to_vec())))
        }
        _ => None,
    }
}

/// A leaf's shape and the views that turn it into `shape`: up to three of them.
fn viewed(shape: Vec<usize>) -> impl Strategy<Value = Viewed> {
    prop::collection::vec((0..6u8, 0..12usize, 0..12usize), 0..4).prop_map(move |steps| {
        let (mut base, mut views) = (shape.clone(), vec![]);
        for (kind, a, b) in steps {
            if let Some((before, view)) = undo(&base, kind, a, b) {
                base = before;
                views.insert(0, view);
            }
        }
        (base, views)
    })
}

/// A shape that broadcasts to `shape`.
fn narrower(shape: &[usize]) -> impl Strategy<Value = Vec<usize>> + use<> {
    let shape = shape.to_vec();
    (0..=shape.len(), prop::collection::vec(any::<bool>(), shape.len())).prop_map(move |(from, one)| {
        shape.iter().zip(one).skip(from).map(|(&d, one)| if one { 1 } else { d }).collect()
    })
}

/// Two operands that broadcast, each maybe whole, each maybe a view; gradients of both, one or none.
fn pair(b_range: (f64, f64)) -> impl Strategy<Value = Call> {
    let shapes = shape(0..=3).prop_flat_map(|s| {
        let whole = Just(s.clone());
        let either = || prop_oneof![whole.clone().boxed(), narrower(&s).boxed()];
        (either(), either())
    });
    let operands = shapes.prop_flat_map(|(a, b)| (viewed(a), viewed(b)));
    (operands, any::<u64>(), 0..10u8).prop_map(move |((a, b), seed, wants)| {
        Call::default().with(a, seed, (-3.0, 3.0), wants != 0 && wants != 1).with(
            b,
            seed ^ 7,
            b_range,
            wants > 2 || wants == 1,
        )
    })
}

/// One operand, maybe a view.
fn single(ranks: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Call> {
    (shape(ranks).prop_flat_map(viewed), any::<u64>())
        .prop_map(|(x, seed)| Call::default().with(x, seed, (-3.0, 3.0), true))
}

/// One operand whose last dimension is even.
fn packed() -> impl Strategy<Value = Call> {
    let even = shape(1..=3).prop_map(|mut s| {
        *s.last_mut().expect("a dimension") *= 2;
        s
    });
    (even.prop_flat_map(viewed), any::<u64>())
        .prop_map(|(x, seed)| Call::default().with(x, seed, (-3.0, 3.0), true))
}

/// The call again with one leaf as both operands: `x op x`.
fn doubled(call: &Call) -> Call {
    let operand = Operand { leaf: 0, views: call.operands[0].views.clone() };
    Call { leaves: vec![call.leaves[0].clone()], operands: vec![operand.clone(), operand] }
}

fn products(call: &Call, approximate: Approximate) {
    check(call, |t| t[0].silu_mul(&t[1]), |t| t[0].zip(&t[1], |a, b| silu(a) * b));
    check(call, |t| t[0].relu_mul(&t[1]), |t| t[0].zip(&t[1], |a, b| relu(a) * b));
    check(call, |t| t[0].sigmoid_mul(&t[1]), |t| t[0].zip(&t[1], |a, b| sigmoid(a) * b));
    check(call, |t| t[0].gelu_mul(&t[1], approximate), |t| t[0].zip(&t[1], |a, b| gelu(a, approximate) * b));
}

fn approximate() -> impl Strategy<Value = Approximate> {
    prop_oneof![Just(Approximate::None), Just(Approximate::Tanh)]
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() }
}

/// Of two halves.
fn halved(f: impl Fn(f64, f64) -> f64) -> impl Fn(&[Array]) -> Array {
    move |t| {
        let (a, b) = t[0].halves();
        a.zip(&b, &f)
    }
}

/// The operand's shape behind its views.
fn viewed_shape(call: &Call) -> Vec<usize> {
    let leaf = &call.leaves[0];
    let x = Array::from_f32(&leaf.shape, &leaf.data);
    call.operands[0].views.iter().fold(x, |x, v| v.of_array(&x)).shape
}

/// Operands of a matrix product: batches that broadcast, vectors on either side, views.
fn factors() -> impl Strategy<Value = [Viewed; 2]> {
    let sizes = (0..5usize, 0..5usize, 0..5usize, shape(0..=2), 0..4u8);
    sizes.prop_flat_map(|(m, k, n, batch, vectors)| {
        let side = |vector: bool, tail: [usize; 2]| {
            if vector {
                return Just(vec![k]).boxed();
            }
            narrower(&batch).prop_map(move |s| s.into_iter().chain(tail).collect::<Vec<_>>()).boxed()
        };
        let (left, right) = (side(vectors & 1 == 1, [m, k]), side(vectors & 2 == 2, [k, n]));
        [left.prop_flat_map(viewed).boxed(), right.prop_flat_map(viewed).boxed()]
    })
}

/// Input, weight and bias of a linear layer.
fn layer() -> impl Strategy<Value = [Viewed; 3]> {
    (shape(0..=2), 0..5usize, 0..5usize).prop_flat_map(|(lead, width, out)| {
        let x: Vec<usize> = lead.into_iter().chain([width]).collect();
        [viewed(x).boxed(), viewed(vec![out, width]).boxed(), viewed(vec![out]).boxed()]
    })
}

/// Input, weight and bias of a norm over the last dimensions, and how many those are.
fn normed() -> impl Strategy<Value = ([Viewed; 3], usize)> {
    (shape(0..=2), prop::collection::vec(1..6usize, 1..=2)).prop_flat_map(|(lead, last)| {
        let x: Vec<usize> = lead.iter().chain(&last).copied().collect();
        ([viewed(x).boxed(), viewed(last.clone()).boxed(), viewed(last.clone()).boxed()], Just(last.len()))
    })
}

/// Logits and a target for each of their rows; some do not count.
fn classified() -> impl Strategy<Value = (Viewed, Vec<i32>)> {
    (1..6usize, 1..6usize).prop_flat_map(|(rows, classes)| {
        let target = prop_oneof![1 => Just(-100), 5 => 0..classes as i32];
        (viewed(vec![rows, classes]), prop::collection::vec(target, rows))
    })
}

/// A part of a dimension of this size: its start and length.
fn part(size: usize, a: usize, b: usize) -> (usize, usize) {
    let start = a.min(size);
    (start, b.min(size - start))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn arithmetic(call in pair((-3.0, 3.0))) {
        check(&call, |t| t[0].add(&t[1]), |t| t[0].zip(&t[1], |a, b| a + b));
        check(&call, |t| t[0].sub(&t[1]), |t| t[0].zip(&t[1], |a, b| a - b));
        check(&call, |t| t[0].mul(&t[1]), |t| t[0].zip(&t[1], |a, b| a * b));
    }

    #[test]
    fn quotients(call in pair((0.5, 3.0))) {
        check(&call, |t| t[0].div(&t[1]), |t| t[0].zip(&t[1], |a, b| a / b));
    }

    #[test]
    fn gated(call in pair((-3.0, 3.0)), approximate in approximate()) {
        products(&call, approximate);
    }

    #[test]
    fn one_tensor_as_both_operands(call in single(0..=3), approximate in approximate()) {
        let call = doubled(&call);
        products(&call, approximate);
        check(&call, |t| t[0].add(&t[1]), |t| t[0].zip(&t[1], |a, b| a + b));
        check(&call, |t| t[0].sub(&t[1]), |t| t[0].zip(&t[1], |a, b| a - b));
        check(&call, |t| t[0].mul(&t[1]), |t| t[0].zip(&t[1], |a, b| a * b));
        check(&call, |t| t[0].div(&t[1]), |t| t[0].zip(&t[1], |a, b| a / b));
    }

    #[test]
    fn one_square_matrix_as_both_operands(n in 0..5usize, seed: u64, turned: bool) {
        let views = if turned { vec![View::Transpose(0, 1)] } else { vec![] };
        let call = Call::default().with((vec![n, n], vec![]), seed, (-2.0, 2.0), true);
        let call = Call { operands: vec![call.operands[0].clone(), Operand { leaf: 0, views }], ..call };
        check(&call, |t| t[0].matmul(&t[1]), |t| t[0].matmul(&t[1]).expect("it fits"));
    }

    #[test]
    fn packed_halves(call in packed(), approximate in approximate()) {
        check(&call, |t| t[0].swiglu(), halved(|a, b| silu(a) * b));
        check(&call, |t| t[0].reglu(), halved(|a, b| relu(a) * b));
        check(&call, |t| t[0].glu(), halved(|a, b| a * sigmoid(b)));
        check(&call, |t| t[0].geglu(approximate), halved(|a, b| gelu(a, approximate) * b));
    }

    #[test]
    fn sums_and_means(call in single(0..=4), dims in any::<[bool; 4]>(), keep: bool, negative: bool) {
        let shape = viewed_shape(&call);
        let rank = shape.len();
        let chosen: Vec<usize> = (0..rank).filter(|&d| dims[d]).collect();
        let from = if negative { rank as isize } else { 0 };
        let asked: Vec<isize> = chosen.iter().rev().map(|&d| d as isize - from).collect();
        // No dimension at all means every one, as in PyTorch.
        let chosen = if chosen.is_empty() { (0..rank).collect() } else { chosen };
        check(&call, |t| t[0].sum(Some(&asked), keep), |t| t[0].sum(&chosen, keep));
        if !shape.contains(&0) {
            check(&call, |t| t[0].mean(Some(&asked), keep), |t| t[0].mean(&chosen, keep));
        }
    }

    #[test]
    fn matrix_products([a, b] in factors(), seed: u64, wants in 0..6u8) {
        let call = Call::default().with(a, seed, (-2.0, 2.0), wants != 0);
        let call = call.with(b, seed ^ 7, (-2.0, 2.0), wants != 1);
        check(&call, |t| t[0].matmul(&t[1]), |t| t[0].matmul(&t[1]).expect("it fits"));
    }

    #[test]
    fn linear_layers([x, w, b] in layer(), bias: bool, seed: u64, wants in 0..8u8) {
        let grad = |k: u8| wants >> k & 1 == 1;
        let call = Call::default().with(x, seed, (-2.0, 2.0), grad(0));
        let mut call = call.with(w, seed ^ 7, (-2.0, 2.0), grad(1));
        if bias {
            call = call.with(b, seed ^ 9, (-2.0, 2.0), grad(2));
        }
        check(&call, |t| t[0].linear(&t[1], t.get(2)), |t| {
            let y = t[0].matmul(&t[1].transpose(0, 1)).expect("it fits");
            t.get(2).map_or(y.clone(), |b| y.zip(b, |y, b| y + b))
        });
    }

    #[test]
    fn layer_norms(([x, w, b], count) in normed(), weight: bool, bias: bool, seed: u64, wants in 0..8u8) {
        // Where values of a row are close together, a gradient is a difference of terms 1 / √eps times as large: an eps like this
        // keeps their rounding below the tolerance.
        const EPS: f32 = 0.25;
        let grad = |k: u8| wants >> k & 1 == 1;
        let mut call = Call::default().with(x, seed, (-2.0, 2.0), grad(0));
        if weight {
            call = call.with(w, seed ^ 7, (-2.0, 2.0), grad(1));
        }
        if bias {
            call = call.with(b, seed ^ 9, (-2.0, 2.0), grad(2));
        }
        let place = if weight { 2 } else { 1 };
        check(
            &call,
            |t| {
                let shape = t[0].shape();
                let normalized = shape[shape.rank() - count..].to_vec();
                t[0].layer_norm(&normalized, t.get(1).filter(|_| weight), t.get(place).filter(|_| bias), EPS)
            },
            |t| {
                let (weight, bias) = (t.get(1).filter(|_| weight), t.get(place).filter(|_| bias));
                t[0].layer_norm(count, weight, bias, f64::from(EPS))
            },
        );
    }

    #[test]
    fn cross_entropies(
        (x, targets) in classified(),
        label_smoothing in prop_oneof![Just(0.0f32), Just(0.25f32)],
        reduction in prop_oneof![Just(Reduction::Mean), Just(Reduction::Sum), Just(Reduction::None)],
        seed: u64,
    ) {
        // The mean over no row is NaN; the reference cases have it.
        prop_assume!(targets.iter().any(|&t| t >= 0));
        let options = CrossEntropy { reduction, label_smoothing, ..CrossEntropy::default() };
        let call = Call::default().with(x, seed, (-4.0, 4.0), true);
        check(
            &call,
            |t| t[0].cross_entropy(&t[0].engine().tensor_i32(&targets, &[targets.len()])?, options),
            |t| t[0].cross_entropy(&targets, options),
        );
    }

    #[test]
    fn shapes_alone(call in single(0..=4), a in 0..12usize, b in 0..12usize) {
        // The views of the operand are the operation.
        check(&call, |t| t[0].contiguous(), |t| t[0].clone());
        check(&call, |t| t[0].reshape(&[-1]), |t| t[0].reshape(&[t[0].data.len()]));
        check(&call, |t| t[0].flatten(0, -1), |t| t[0].reshape(&[t[0].data.len()]));
        check(&call, |t| t[0].squeeze(None), |t| View::Squeeze.of_array(&t[0]));
        let place = a % (viewed_shape(&call).len() + 1);
        check(&call, |t| t[0].unsqueeze(place as isize), |t| View::Unsqueeze(place).of_array(&t[0]));
        check(
            &call,
            |t| t[0].permute(&signed(&turned(t[0].shape().rank(), a))),
            |t| t[0].permute(&turned(t[0].rank(), a)),
        );
        let (start, length) = part(*viewed_shape(&call).last().unwrap_or(&1), a, b);
        check(
            &call,
            |t| t[0].unsqueeze(0)?.narrow(-1, start as isize, length),
            |t| {
                let x = View::Unsqueeze(0).of_array(&t[0]);
                View::Narrow { dim: x.rank() - 1, start, length }.of_array(&x)
            },
        );
    }
}

/// The dimensions in a cycle.
fn turned(rank: usize, by: usize) -> Vec<usize> {
    (0..rank).map(|d| (d + by) % rank).collect()
}

type Raw = fn(&Tensor, &Tensor, &Tensor) -> Result<[Tensor; 2]>;
type Taped = fn(&Tensor, &Tensor) -> Result<Tensor>;

/// The raw kernels beside the tape give what the tape gives.
#[test]
fn kernels_without_the_tape_agree_with_it() {
    let engine = Engine::cpu();
    let read = |t: &Tensor| block_on(t.data()).expect("a read");
    let leaf = |shape: &[usize], seed| {
        let mut t = engine.tensor(&values(shape.iter().product(), seed, -2.0, 2.0), shape).expect("a tensor");
        t.set_requires_grad(true).expect("f32 has a gradient");
        t
    };
    let gated: [(Raw, Taped); 5] = [
        (Tensor::silu_mul_backward, Tensor::silu_mul),
        (Tensor::relu_mul_backward, Tensor::relu_mul),
        (Tensor::sigmoid_mul_backward, Tensor::sigmoid_mul),
        (
            |dy, a, b| Tensor::gelu_mul_backward(dy, a, b, Approximate::None),
            |a, b| a.gelu_mul(b, Approximate::None),
        ),
        (
            |dy, a, b| Tensor::gelu_mul_backward(dy, a, b, Approximate::Tanh),
            |a, b| a.gelu_mul(b, Approximate::Tanh),
        ),
    ];
    for (raw, taped) in gated {
        let (a, b) = (leaf(&[3, 5], 1), leaf(&[5], 2));
        let dy = engine.tensor(&values(15, 3, -1.0, 1.0), &[3, 5]).expect("a tensor");
        taped(&a, &b).and_then(|y| y.backward(Some(&dy), false)).expect("a backward");
        let [da, db] = raw(&dy, &a, &b).expect("the kernel");
        assert_eq!(read(&da), read(&a.grad().expect("a gradient")));
        assert_eq!(read(&db), read(&b.grad().expect("a gradient")));
        assert_eq!(raw(&a, &b, &b).map(|_| ()).expect_err("dy does not fit").kind().code(), "ShapeError");
    }
    let (x, w) = (leaf(&[2, 3, 7], 1), leaf(&[7], 2));
    let dy = engine.tensor(&values(42, 3, -1.0, 1.0), &[2, 3, 7]).expect("a tensor");
    x.layer_norm(&[7], Some(&w), None, 1e-5).and_then(|y| y.backward(Some(&dy), false)).expect("a backward");
    let [_, mean, rstd] = x.layer_norm_forward(Some(&w), None, 1e-5).expect("the kernel");
    let [dx, dw, db] = Tensor::layer_norm_backward(&dy, &x, &mean, &rstd, Some(&w)).expect("the kernel");
    assert_eq!(read(&dx), read(&x.grad().expect("a gradient")));
    assert_eq!(read(&dw), read(&w.grad().expect("a gradient")));
    close("db", &read(&db).to_f64(), &Array::new(&[6, 7], read(&dy).to_f64()).sum(&[0], false).data);
}

//! Random shapes and views: what a tensor holds equals a computation by index, no input makes a call panic.
#![cfg(not(target_arch = "wasm32"))]

mod cases;

use proptest::prelude::*;
use wgrad::{Approximate, CrossEntropy, DType, Engine, HostData, Reduction, Result, Tensor};

use cases::block_on;
use cases::naive::{Array, View, broadcast, signed, values};

/// Of results of sums of at most a few hundred terms, against the sum of their absolute values.
const TOLERANCE: f64 = 2e-6;
const CASES: u32 = 512;

type Seeds = Vec<(u8, usize, usize, usize)>;

/// Numbers from which a chain of views is made.
fn seeds() -> impl Strategy<Value = Seeds> {
    prop::collection::vec((0..9u8, any::<usize>(), any::<usize>(), any::<usize>()), 0..6)
}

/// Up to five dimensions of 0 to 5 elements; empty ones are rare enough for the others to be seen.
fn shape() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1 => Just(0usize), 12 => 1..6usize], 0..=5)
}

/// The view that the numbers make of a tensor of `shape`; at most 7 dimensions and 4096 elements come out.
fn view(shape: &[usize], (kind, a, b, c): (u8, usize, usize, usize)) -> Option<View> {
    let rank = shape.len();
    let elements: usize = shape.iter().product();
    if rank == 0 {
        return match kind {
            0..3 => Some(View::Unsqueeze(0)),
            3..6 => Some(View::Expand(vec![a % 4, 1 + b % 4])),
            _ => Some(View::Reshape(vec![1; a % 3])),
        };
    }
    let (d, e) = (a % rank, b % rank);
    let size = shape[d];
    match kind {
        0 => Some(View::Transpose(d, e)),
        1 => {
            let mut dims: Vec<usize> = (0..rank).collect();
            dims.rotate_left(e);
            dims.swap(0, d);
            Some(View::Permute(dims))
        }
        2 => {
            let (start, step) = (b % (size + 1), 1 + c % 3);
            let count = (size - start).div_ceil(step);
            Some(View::Slice { dim: d, start, count: c / 3 % (count + 1), step })
        }
        3 => {
            let start = b % (size + 1);
            Some(View::Narrow { dim: d, start, length: c % (size - start + 1) })
        }
        4 => {
            let mut to: Vec<usize> = shape.iter().map(|&s| if s == 1 { c % 4 } else { s }).collect();
            if rank < 7 && b.is_multiple_of(2) {
                to.insert(0, 1 + a % 3);
            }
            (to.iter().product::<usize>() <= 4096).then_some(View::Expand(to))
        }
        5 => {
            // Another factorisation: two dimensions as one, or one as two.
            let mut to = shape.to_vec();
            if rank > 1 && c.is_multiple_of(2) {
                let at = d.min(rank - 2);
                let joined = to[at] * to[at + 1];
                to.splice(at..=at + 1, [joined]);
            } else if rank < 7 {
                let factor = (1..=size.max(1)).filter(|f| size.is_multiple_of(*f)).nth(b % 2).unwrap_or(1);
                to.splice(d..=d, [factor, size / factor]);
            }
            assert_eq!(to.iter().product::<usize>(), elements);
            Some(View::Reshape(to))
        }
        6 => (rank < 7).then_some(View::Unsqueeze(b % (rank + 1))),
        7 => Some(View::Squeeze),
        _ => Some(View::Flatten(d.min(e), d.max(e))),
    }
}

/// A tensor and an array with the same elements, the tensor through a chain of views.
fn pair(engine: &Engine, shape: &[usize], seeds: &Seeds, seed: u64) -> (Tensor, Array) {
    let data = values(shape.iter().product(), seed, -4.0, 4.0);
    let mut tensor = engine.tensor(&data, shape).expect("a tensor");
    let mut array = Array::from_f32(shape, &data);
    for &numbers in seeds {
        if let Some(view) = view(&array.shape, numbers) {
            tensor = view.of_tensor(&tensor).unwrap_or_else(|e| panic!("{view:?} of {:?}: {e}", array.shape));
            array = view.of_array(&array);
        }
    }
    (tensor, array)
}

fn read(t: &Tensor) -> Vec<f64> {
    block_on(t.data()).expect("a read").to_f64()
}

fn same(what: &str, got: &Tensor, want: &Array) {
    assert_eq!(**got.shape(), *want.shape, "{what}: the shape");
    assert_eq!(read(got), want.data, "{what}");
}

fn close(what: &str, got: &Tensor, want: &Array, sizes: &[f64]) {
    assert_eq!(**got.shape(), *want.shape, "{what}: the shape");
    for (k, ((got, want), size)) in read(got).iter().zip(&want.data).zip(sizes).enumerate() {
        assert!(
            (got - want).abs() <= TOLERANCE * (1.0 + size),
            "{what}[{k}]: got {got:e}, expected {want:e}"
        );
    }
}

fn code<T>(result: Result<T>) -> Option<&'static str> {
    result.err().map(|e| e.kind().code())
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() }
}

type Op = fn(&Tensor, &Tensor) -> Result<Tensor>;
type Twin = fn(f64, f64) -> f64;

const OPS: [(&str, Op, Twin); 5] = [
    ("add", Tensor::add, |x, y| x + y),
    ("sub", Tensor::sub, |x, y| x - y),
    ("mul", Tensor::mul, |x, y| x * y),
    ("div", Tensor::div, |x, y| x / y),
    ("reluMul", Tensor::relu_mul, |x, y| x.max(0.0) * y),
];

/// The last dimensions from `from` on, every second one of size 1: it broadcasts with `shape`.
fn fitting(shape: &[usize], from: usize) -> Vec<usize> {
    let tail = shape.iter().skip(from.min(shape.len())).enumerate();
    tail.map(|(k, &d)| if k % 2 == from % 2 { 1 } else { d }).collect()
}

/// The sizes of a batch from `from` on; a bit of `ones` makes a size 1.
fn part_of_batch(batch: &[usize], from: usize, ones: u8) -> Vec<usize> {
    let tail = batch.iter().skip(from.min(batch.len())).enumerate();
    tail.map(|(k, &d)| if ones >> k & 1 == 1 { 1 } else { d }).collect()
}

/// A matrix of a batch, its last two dimensions exchanged when `turned`.
fn matrix(engine: &Engine, shape: &[usize], seed: u64, turned: bool) -> (Tensor, Array) {
    let data = values(shape.iter().product(), seed, -2.0, 2.0);
    let (t, x) = (engine.tensor(&data, shape).expect("a tensor"), Array::from_f32(shape, &data));
    if !turned || shape.len() < 2 {
        return (t, x);
    }
    let view = View::Transpose(shape.len() - 2, shape.len() - 1);
    (view.of_tensor(&t).expect("a view"), view.of_array(&x))
}

/// A call succeeds with a tensor that can be read, or fails with one of these errors.
fn known(what: &str, result: Result<Tensor>, codes: &[&str]) {
    match result {
        // Views may be as large as a tensor can be; reading such a one would take its memory.
        Ok(view) if view.shape().elements() > 1 << 16 => {}
        Ok(view) => assert_eq!(read(&view).len(), view.shape().elements(), "{what}"),
        Err(e) => assert!(codes.contains(&e.kind().code()), "{what}: {}: {e}", e.kind().code()),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_view_holds_what_an_index_finds(shape in shape(), seeds in seeds(), half in any::<bool>()) {
        let engine = Engine::cpu();
        let (tensor, array) = pair(&engine, &shape, &seeds, 1);
        same("the view", &tensor, &array);
        same("its copy", &tensor.contiguous().expect("a copy"), &array);
        let zero = engine.zeros(&[]).expect("a scalar");
        same("its sum with 0", &tensor.add(&zero).expect("a sum"), &array);
        if half {
            // The values are whole multiples of 1/128 below 4: f16 holds them.
            let data = values(shape.iter().product(), 1, -4.0, 4.0);
            let halves = engine.tensor_from(HostData::F32(data), &shape, DType::F16).expect("a tensor");
            let mut viewed = halves;
            let mut now = shape.clone();
            for &numbers in &seeds {
                if let Some(view) = view(&now, numbers) {
                    viewed = view.of_tensor(&viewed).expect("as for f32");
                    now = viewed.shape().to_vec();
                }
            }
            let want = array.map(|x| f64::from(half::f16::from_f64(x).to_f32()));
            same("the view of f16", &viewed, &want);
        }
    }

    #[test]
    fn broadcasting_is_by_index_or_an_error(
        a in shape(), b in shape(), sa in seeds(), sb in seeds(), fit: bool, from in 0..6usize,
    ) {
        let engine = Engine::cpu();
        let (ta, aa) = pair(&engine, &a, &sa, 1);
        // Random shapes seldom broadcast: every second one is made to.
        let (b, sb) = if fit { (fitting(&aa.shape, from), vec![]) } else { (b, sb) };
        let (tb, ab) = pair(&engine, &b, &sb, 2);
        let fits = broadcast(&aa.shape, &ab.shape);
        prop_assume!(fits.as_ref().is_none_or(|s| s.iter().product::<usize>() <= 1 << 16));
        for (name, op, twin) in OPS {
            let got = op(&ta, &tb);
            if fits.is_some() {
                let want = aa.zip(&ab, |x, y| f64::from(twin(x, y) as f32));
                close(name, &got.expect(name), &want, &want.map(f64::abs).data);
            } else {
                prop_assert_eq!(code(got), Some("ShapeError"), "{}: {:?}, {:?}", name, aa.shape, ab.shape);
            }
        }
    }

    #[test]
    fn sums_are_by_index(shape in shape(), seeds in seeds(), dims in any::<[bool; 8]>(), keep: bool) {
        let engine = Engine::cpu();
        let (tensor, array) = pair(&engine, &shape, &seeds, 1);
        let chosen: Vec<usize> = (0..array.rank()).filter(|&d| dims[d]).collect();
        // No dimension at all means every one.
        let all = if chosen.is_empty() { (0..array.rank()).collect() } else { chosen.clone() };
        let sizes = array.map(f64::abs).sum(&all, keep).data;
        let sum = tensor.sum(Some(&signed(&chosen)), keep).expect("a sum");
        close("sum", &sum, &array.sum(&all, keep), &sizes);
        let mean = tensor.mean(Some(&signed(&chosen)), keep).expect("a mean");
        let want = array.mean(&all, keep);
        if want.data.iter().all(|x| x.is_finite()) {
            close("mean", &mean, &want, &sizes);
        } else {
            prop_assert!(read(&mean).iter().all(|x| x.is_nan()), "the mean of nothing is NaN");
        }
    }

    #[test]
    fn long_sums_are_by_index(
        outer in 1..4usize, length in 1..9000usize, inner in 1..4usize, which in 0..3usize,
    ) {
        let shape = [outer, length, inner];
        let data = values(outer * length * inner, 1, -1.0, 3.0);
        let array = Array::from_f32(&shape, &data);
        let dims: &[usize] = [&[1][..], &[1, 2], &[0, 1]][which];
        let sizes = array.map(f64::abs).sum(dims, false).data;
        let sum = Engine::cpu().tensor(&data, &shape).and_then(|x| x.sum(Some(&signed(dims)), false));
        close("a long sum", &sum.expect("a sum"), &array.sum(dims, false), &sizes);
    }

    #[test]
    fn matrix_products_are_by_index_or_an_error(
        m in 0..9usize, k in 0..9usize, n in 0..9usize, batch in prop::collection::vec(1..4usize, 0..=3),
        from in (0..4usize, 0..4usize), ones: u8, turn: (bool, bool), vectors in 0..8u8, wrong in 0..8u8,
    ) {
        let engine = Engine::cpu();
        let k2 = if wrong == 0 { k + 1 } else { k };
        let mut a = if vectors == 1 { vec![k] } else { part_of_batch(&batch, from.0, ones) };
        if vectors != 1 {
            a.extend(if turn.0 { [k, m] } else { [m, k] });
        }
        let mut b = if vectors == 2 { vec![k2] } else { part_of_batch(&batch, from.1, ones >> 4) };
        if vectors != 2 {
            b.extend(if turn.1 { [n, k2] } else { [k2, n] });
        }
        let (ta, aa) = matrix(&engine, &a, 1, turn.0);
        let (tb, ab) = matrix(&engine, &b, 2, turn.1);
        let got = ta.matmul(&tb);
        if let Some(want) = aa.matmul(&ab) {
            let sizes = aa.map(f64::abs).matmul(&ab.map(f64::abs)).expect("it fits").data;
            close("matmul", &got.expect("it fits"), &want, &sizes);
        } else {
            prop_assert_eq!(code(got), Some("ShapeError"), "{:?} and {:?}", aa.shape, ab.shape);
        }
    }

    #[test]
    fn layer_norm_is_by_row(
        lead in prop::collection::vec(0..5usize, 0..=3), cols in 1..70usize, weight: bool, bias: bool,
        offset in -100.0..100.0f32,
    ) {
        let engine = Engine::cpu();
        let shape: Vec<usize> = lead.iter().copied().chain([cols]).collect();
        let x: Vec<f32> = values(shape.iter().product(), 1, -2.0, 2.0).iter().map(|x| x + offset).collect();
        let (w, b) = (values(cols, 2, -1.5, 1.5), values(cols, 3, -1.0, 1.0));
        let vector = |v: &[f32]| (engine.tensor(v, &[cols]).expect("a tensor"), Array::from_f32(&[cols], v));
        let ((tw, aw), (tb, ab)) = (vector(&w), vector(&b));
        let (tw, aw) = (weight.then_some(&tw), weight.then_some(&aw));
        let (tb, ab) = (bias.then_some(&tb), bias.then_some(&ab));
        let got = engine.tensor(&x, &shape).and_then(|x| x.layer_norm(&[cols], tw, tb, 1e-5));
        let want = Array::from_f32(&shape, &x).layer_norm(1, aw, ab, 1e-5);
        // Of a row, the statistics are known to half a unit of the offset at worst.
        let sizes: Vec<f64> = want.data.iter().map(|x| 4.0 + x.abs()).collect();
        close("layerNorm", &got.expect("a norm"), &want, &sizes);
    }

    #[test]
    fn no_argument_makes_a_view_panic(
        shape in shape(), seeds in seeds(), a in extreme(), b in extreme(), c in extreme(),
        sizes in prop::collection::vec(extreme(), 0..10),
    ) {
        let engine = Engine::cpu();
        let (t, array) = pair(&engine, &shape, &seeds, 1);
        let rank = array.rank() as isize;
        let inside = |d: isize| d >= -rank.max(1) && d < rank.max(1);
        known("reshape", t.reshape(&sizes), &["ShapeError", "LimitError"]);
        known("expand", t.expand(&sizes), &["ShapeError", "LimitError"]);
        known("permute", t.permute(&sizes), &["ShapeError", "IndexError"]);
        known("slice", t.slice(a, b, c, 1), &["IndexError"]);
        known("slice with a step", t.slice(a, 0, b, c), &["IndexError", "ArgumentError"]);
        known("narrow", t.narrow(a, b, c as usize), &["IndexError"]);
        known("transpose", t.transpose(a, b), &["IndexError"]);
        known("unsqueeze", t.unsqueeze(a), &["IndexError", "LimitError"]);
        known("squeeze", t.squeeze(Some(a)), &["IndexError"]);
        known("flatten", t.flatten(a, b), &["IndexError", "ShapeError"]);
        known("sum", t.sum(Some(&sizes), false), &["IndexError", "ShapeError"]);
        known("mean", t.mean(Some(&[a, b]), true), &["IndexError", "ShapeError"]);
        prop_assert_eq!(t.transpose(a, b).is_ok(), inside(a) && inside(b));
        prop_assert_eq!(t.squeeze(Some(a)).is_ok(), inside(a));
        prop_assert_eq!(t.sum(Some(&[a]), false).is_ok(), inside(a));
    }

    #[test]
    fn no_shape_makes_an_operation_panic(
        shapes in prop::collection::vec(shape(), 3), count in 0..4usize,
        eps in prop_oneof![Just(1e-5), Just(0.0), Just(-1.0), Just(f32::NAN), Just(f32::INFINITY)],
    ) {
        let engine = Engine::cpu();
        let make = |k: usize| {
            let data = values(shapes[k].iter().product(), k as u64, -1.0, 1.0);
            engine.tensor(&data, &shapes[k]).expect("a tensor")
        };
        let (x, w, b) = (make(0), make(1), make(2));
        let tail = shapes[0][shapes[0].len().saturating_sub(count)..].to_vec();
        let good = eps >= 0.0 && eps.is_finite();
        for (weight, bias) in [(Some(&w), None), (None, Some(&b)), (Some(&w), Some(&b)), (None, None)] {
            let fits = !tail.is_empty() && [weight, bias].iter().flatten().all(|t| **t.shape() == *tail);
            match code(x.layer_norm(&tail, weight, bias, eps)) {
                None => prop_assert!(fits && good),
                Some("ArgumentError") => prop_assert!(!good),
                Some(other) => prop_assert!(other == "ShapeError" && !fits, "{}", other),
            }
        }
        prop_assert!(code(x.layer_norm(&shapes[1], None, None, 1e-5)).is_none_or(|c| c == "ShapeError"));
        let weight_fits = shapes[1].len() == 2 && shapes[0].last() == Some(&shapes[1][1]);
        let fits = weight_fits && *shapes[2] == shapes[1][..1];
        let linear = code(x.linear(&w, Some(&b)));
        prop_assert_eq!(linear, if fits { None } else { Some("ShapeError") }, "linear of {:?}", &shapes);
        let even = shapes[0].last().is_some_and(|d| d % 2 == 0);
        for packed in [x.swiglu(), x.reglu(), x.glu(), x.geglu(Approximate::Tanh)] {
            prop_assert_eq!(code(packed), if even { None } else { Some("ShapeError") });
        }
        let target = engine.tensor_i32(&vec![0; shapes[1].iter().product()], &shapes[1]).expect("a tensor");
        let shape_or_index = |c: Option<&str>| c.is_none_or(|c| c == "ShapeError" || c == "IndexError");
        for reduction in [Reduction::Mean, Reduction::Sum, Reduction::None] {
            let options = CrossEntropy { reduction, ..CrossEntropy::default() };
            prop_assert!(shape_or_index(code(x.cross_entropy(&target, options))));
            // A target of the right shape; class 0 exists unless there is none.
            let mut rows = shapes[0].clone();
            if rows.is_empty() {
                continue;
            }
            rows.remove(usize::from(rows.len() > 1));
            let target = engine.tensor_i32(&vec![0; rows.iter().product()], &rows).expect("a tensor");
            let loss = x.cross_entropy(&target, options);
            let classes = shapes[0][usize::from(shapes[0].len() > 1)];
            let right = if classes > 0 { loss.is_ok() } else { shape_or_index(code(loss)) };
            prop_assert!(right, "crossEntropy of {:?}", &shapes[0]);
        }
        let wrong = engine.tensor_i32(&[1], &[1]).expect("a tensor");
        for result in [
            x.add(&wrong), x.silu_mul(&wrong), x.matmul(&wrong),
            wrong.sum(None, false), wrong.swiglu(), wrong.layer_norm(&[1], None, None, 1e-5),
        ] {
            prop_assert_eq!(code(result), Some("DTypeError"));
        }
        // No shape of these has 7 elements.
        prop_assert_eq!(code(engine.tensor(&[0.0; 7], &shapes[0])), Some("ShapeError"));
    }
}

/// Numbers near zero, near the rank, and at the ends of their type.
fn extreme() -> impl Strategy<Value = isize> {
    prop_oneof![
        8 => -7..8isize,
        1 => Just(isize::MAX),
        1 => Just(isize::MIN),
        1 => Just(isize::MAX - 1),
        1 => any::<isize>(),
        1 => Just(1 << 31),
        1 => Just(1 << 32),
    ]
}

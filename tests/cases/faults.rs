//! Faults that users of such packages report, for gated activations and `LayerNorm`: one function a row, on any
//! engine.
//!
//! A function panics with what is wrong.

use wgrad::{Approximate, Engine, Error, Result, Tensor};

use super::compare::same_bits;
use super::naive::{Array, gelu, sigmoid, silu, values};

const GELUS: [Approximate; 2] = [Approximate::None, Approximate::Tanh];

/// What a careful f32 implementation meets under WGSL's accuracy rules.
const RELATIVE: f64 = 1e-5;
const ABSOLUTE: f64 = 3e-6;

/// A leaf that collects a gradient.
pub fn leaf(engine: &Engine, values: &[f32], shape: &[usize]) -> Tensor {
    let mut t = engine.tensor(values, shape).expect("a tensor");
    t.set_requires_grad(true).expect("f32 has a gradient");
    t
}

/// The elements as numbers.
pub async fn read(t: &Tensor) -> Vec<f64> {
    t.data().await.expect("a read").to_f64()
}

async fn gradient(t: &Tensor) -> Vec<f64> {
    read(&t.grad().expect("a gradient")).await
}

/// Panics unless every element is within `absolute + relative * |want|`; NaN equals NaN only.
pub fn assert_close(what: &str, got: &[f64], want: &[f64], relative: f64, absolute: f64) {
    assert_eq!(got.len(), want.len(), "{what}: the length");
    for (k, (&got, &want)) in got.iter().zip(want).enumerate() {
        let fits = if want.is_finite() && got.is_finite() {
            (got - want).abs() <= absolute + relative * want.abs()
        } else {
            got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan())
        };
        assert!(fits, "{what}[{k}]: got {got:e}, expected {want:e}");
    }
}

/// `act(x) · 1` and its gradient: the activation and its derivative.
async fn activation(
    engine: &Engine,
    x: &[f32],
    op: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> [Vec<f64>; 2] {
    let a = leaf(engine, x, &[x.len()]);
    let ones = engine.ones(&[x.len()]).expect("ones");
    let y = op(&a, &ones).expect("an activation");
    y.backward(Some(&ones), false).expect("a backward");
    [read(&y).await, gradient(&a).await]
}

/// tanh overflows and GELU turns NaN.
pub async fn gelu_far_out(engine: Engine) {
    let x: Vec<f32> = [10.0, 13.24, 20.0, 20.625, 100.0, 1000.0].into_iter().flat_map(|x| [x, -x]).collect();
    for form in GELUS {
        let [y, dy] = activation(&engine, &x, |a, b| a.gelu_mul(b, form)).await;
        // Below -10 the value is under 1e-22, and so is its derivative.
        let want_y: Vec<f64> = x.iter().map(|&x| f64::from(x.max(0.0))).collect();
        let want_dy: Vec<f64> = x.iter().map(|&x| f64::from(u8::from(x > 0.0))).collect();
        assert_close(&format!("gelu {form:?}"), &y, &want_y, 0.0, 1e-20);
        assert_close(&format!("gelu' {form:?}"), &dy, &want_dy, 1e-7, 1e-20);
    }
}

/// A squared denominator overflows and the derivative turns NaN or 0.
pub async fn sigmoid_far_out(engine: Engine) {
    let x = [-45.0, -10.0179, 89.0, -89.0, 1000.0, -1000.0];
    let [y, dy] = activation(&engine, &x, Tensor::sigmoid_mul).await;
    let want: Vec<f64> = x.iter().map(|&x| sigmoid(f64::from(x))).collect();
    assert_close("sigmoid", &y, &want, RELATIVE, 1.18e-38);
    let want: Vec<f64> = x.iter().map(|&x| sigmoid(f64::from(x)) * sigmoid(-f64::from(x))).collect();
    assert_close("sigmoid'", &dy, &want, RELATIVE, 1.18e-38);
    assert_close("sigmoid'(-45)", &dy[..1], &[2.8625e-20], 1e-4, 0.0);
    let [y, dy] = activation(&engine, &x, Tensor::silu_mul).await;
    let want: Vec<f64> = x.iter().map(|&x| silu(f64::from(x))).collect();
    assert_close("silu", &y, &want, RELATIVE, 1.18e-38);
    let slope = |x: f64| sigmoid(x) + x * sigmoid(x) * sigmoid(-x);
    let want: Vec<f64> = x.iter().map(|&x| slope(f64::from(x))).collect();
    assert_close("silu'", &dy, &want, RELATIVE, 1.18e-38);
    assert_close("silu'(-10.0179)", &dy[1..2], &[-4.0211e-4], 1e-4, 0.0);
}

/// NaN is swallowed, depending on the length.
pub async fn nan_stays(engine: Engine) {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let pattern = [f32::NAN, -1.0, 2.0, -0.0, f32::INFINITY, f32::NEG_INFINITY];
    for n in [6, 64, 1025] {
        let cycle = |p: &[f64; 6]| -> Vec<f64> { p.iter().copied().cycle().take(n).collect() };
        // Repeated over the whole length, NaN comes to every lane, in the body and in the tail.
        let x: Vec<f32> = pattern.iter().copied().cycle().take(n).collect();
        let [y, dy] = activation(&engine, &x, Tensor::relu_mul).await;
        assert_close(&format!("relu of {n}"), &y, &cycle(&[nan, 0.0, 2.0, 0.0, inf, 0.0]), 0.0, 0.0);
        assert_close(&format!("relu' of {n}"), &dy, &cycle(&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]), 0.0, 0.0);
        let [y, dy] = activation(&engine, &x, Tensor::sigmoid_mul).await;
        let (s, ds) = (sigmoid, |x| sigmoid(x) * sigmoid(-x));
        assert_close(
            &format!("sigmoid of {n}"),
            &y,
            &cycle(&[nan, s(-1.0), s(2.0), 0.5, 1.0, 0.0]),
            RELATIVE,
            0.0,
        );
        assert_close(
            &format!("sigmoid' of {n}"),
            &dy,
            &cycle(&[nan, ds(-1.0), ds(2.0), 0.25, 0.0, 0.0]),
            RELATIVE,
            0.0,
        );
        let [y, _] = activation(&engine, &x, Tensor::silu_mul).await;
        assert_close(
            &format!("silu of {n}"),
            &y,
            &cycle(&[nan, silu(-1.0), silu(2.0), 0.0, inf, 0.0]),
            RELATIVE,
            0.0,
        );
        for form in GELUS {
            let [y, dy] = activation(&engine, &x, |a, b| a.gelu_mul(b, form)).await;
            let want = cycle(&[nan, gelu(-1.0, form), gelu(2.0, form), 0.0, inf, 0.0]);
            assert_close(&format!("gelu {form:?} of {n}"), &y, &want, RELATIVE, ABSOLUTE);
            assert!(
                dy.iter().zip(&x).all(|(d, x)| d.is_nan() == x.is_nan()),
                "gelu' {form:?} of {n}: {dy:?}"
            );
        }
        // One NaN at the very end, as the second operand.
        let mut b = vec![1.0; n];
        b[n - 1] = f32::NAN;
        let (a, b) = (engine.ones(&[n]).expect("ones"), engine.tensor(&b, &[n]).expect("a tensor"));
        let y = read(&a.relu_mul(&b).expect("relu")).await;
        assert!(y[n - 1].is_nan() && y[..n - 1].iter().all(|y| !y.is_nan()), "a last NaN of {n}");
    }
    // A row of LayerNorm with a NaN is NaN, its neighbours are not.
    let mut x = values(3 * 65, 1, -1.0, 1.0);
    x[65 + 64] = f32::NAN;
    let y = engine.tensor(&x, &[3, 65]).and_then(|x| x.layer_norm(&[65], None, None, 1e-5)).expect("a norm");
    let y = read(&y).await;
    assert!(y[65..130].iter().all(|y| y.is_nan()), "NaN fills its row");
    assert!(y[..65].iter().chain(&y[130..]).all(|y| !y.is_nan()), "NaN stays in its row");
}

/// Gradients land in swapped slots, or over a saved input.
pub async fn gated_slots(engine: Engine) {
    let (a, b) = (leaf(&engine, &[1.0, -2.0, 0.5], &[3]), leaf(&engine, &[3.0, 0.25, -1.0], &[3]));
    let dy = engine.tensor(&[1.0, 2.0, -4.0], &[3]).expect("a tensor");
    let (da, db) = (
        [2.783_011_536, -0.045_392_124_39, 2.959_844_749],
        [0.731_058_578_6, -0.476_811_688_1, -1.244_918_662],
    );
    let y = a.silu_mul(&b).expect("silu");
    y.backward(Some(&dy), true).expect("a backward");
    assert_close("da", &gradient(&a).await, &da, RELATIVE, 0.0);
    assert_close("db", &gradient(&b).await, &db, RELATIVE, 0.0);
    assert_close("a", &read(&a).await, &[1.0, -2.0, 0.5], 0.0, 0.0);
    assert_close("b", &read(&b).await, &[3.0, 0.25, -1.0], 0.0, 0.0);
    assert_close("dy", &read(&dy).await, &[1.0, 2.0, -4.0], 0.0, 0.0);
    // Again with the graph kept: exactly twice as much.
    y.backward(Some(&dy), false).expect("a second backward");
    assert_close("2 da", &gradient(&a).await, &da.map(|d| 2.0 * d), RELATIVE, 0.0);
    assert_close("2 db", &gradient(&b).await, &db.map(|d| 2.0 * d), RELATIVE, 0.0);
    let [got_a, got_b] = Tensor::silu_mul_backward(&dy, &a, &b).expect("the kernel");
    assert_close("raw da", &read(&got_a).await, &da, RELATIVE, 0.0);
    assert_close("raw db", &read(&got_b).await, &db, RELATIVE, 0.0);
}

/// One buffer is bound twice.
pub async fn same_operand(engine: Engine) {
    let numbers = [1.0, -2.0, 0.5, 3.0, -0.25];
    let up = engine.ones(&[5]).expect("ones");
    let both = |f: fn(f64) -> f64| numbers.map(|x| f(f64::from(x)));
    let x = leaf(&engine, &numbers, &[5]);
    let y = x.silu_mul(&x).expect("silu");
    y.backward(Some(&up), false).expect("a backward");
    assert_close("silu(x) x", &read(&y).await, &both(|x| silu(x) * x), RELATIVE, ABSOLUTE);
    let slope = |x: f64| 2.0 * silu(x) + x * x * sigmoid(x) * sigmoid(-x);
    assert_close("its gradient", &gradient(&x).await, &both(slope), RELATIVE, ABSOLUTE);
    let x = leaf(&engine, &numbers, &[5]);
    let y = x.mul(&x).expect("mul");
    y.backward(Some(&up), false).expect("a backward");
    assert_close("x x", &read(&y).await, &both(|x| x * x), RELATIVE, 0.0);
    assert_close("2 x", &gradient(&x).await, &both(|x| 2.0 * x), RELATIVE, 0.0);
    // The upstream gradient is an operand too.
    let x = leaf(&engine, &numbers, &[5]);
    x.silu_mul(&x).expect("silu").backward(Some(&x.detach()), false).expect("a backward");
    let want: Vec<f64> = numbers.iter().map(|&x| f64::from(x) * slope(f64::from(x))).collect();
    assert_close("x as upstream", &gradient(&x).await, &want, RELATIVE, ABSOLUTE);
}

/// `LayerNorm` cancels on a large mean.
pub async fn large_mean(engine: Engine) {
    let x = [0.0, 1.0, 2.0, 3.0, 3.0, 2.0, 1.0, 0.0].map(|k: f32| 10_000.0 + k / 128.0);
    let y = engine.tensor(&x, &[1, 8]).and_then(|x| x.layer_norm(&[8], None, None, 1e-5)).expect("a norm");
    let half = [-1.261_511_247, -0.420_503_749, 0.420_503_749, 1.261_511_247];
    let want: Vec<f64> = half.iter().chain(half.iter().rev()).copied().collect();
    assert_close("a large mean", &read(&y).await, &want, 0.0, 1e-4);
}

/// The gradients `[dx, dw, db]` of a `LayerNorm` in float64, by its formula.
fn layer_norm_gradients(x: &Array, weight: &[f32], dy: &Array, eps: f64) -> [Vec<f64>; 3] {
    let cols = weight.len();
    let (mut dx, mut dw, mut db) = (vec![], vec![0.0; cols], vec![0.0; cols]);
    let n = cols as f64;
    for (row, dy) in x.data.chunks(cols).zip(dy.data.chunks(cols)) {
        let mean = row.iter().sum::<f64>() / n;
        let rstd = 1.0 / libm::sqrt(row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n + eps);
        let normal: Vec<f64> = row.iter().map(|x| (x - mean) * rstd).collect();
        let scaled: Vec<f64> = dy.iter().zip(weight).map(|(dy, &w)| dy * f64::from(w)).collect();
        let first = scaled.iter().sum::<f64>() / n;
        let second = scaled.iter().zip(&normal).map(|(s, x)| s * x).sum::<f64>() / n;
        for c in 0..cols {
            dx.push(rstd * (scaled[c] - first - normal[c] * second));
            dw[c] += dy[c] * normal[c];
            db[c] += dy[c];
        }
    }
    [dx, dw, db]
}

/// Padded lanes are counted.
pub async fn odd_widths(engine: Engine) {
    for cols in [1, 3, 31, 33, 63, 65, 257, 1025] {
        for rows in [1, 5] {
            let shape = [rows, cols];
            let (x, w, b) =
                (values(rows * cols, 1, -2.0, 3.0), values(cols, 2, -1.5, 1.5), values(cols, 3, -1.0, 1.0));
            let dy = values(rows * cols, 4, -1.0, 1.0);
            let (tx, tw, tb) =
                (leaf(&engine, &x, &shape), leaf(&engine, &w, &[cols]), leaf(&engine, &b, &[cols]));
            let y = tx.layer_norm(&[cols], Some(&tw), Some(&tb), 1e-5).expect("a norm");
            y.backward(Some(&engine.tensor(&dy, &shape).expect("a tensor")), false).expect("a backward");
            let (ax, aw, ab) =
                (Array::from_f32(&shape, &x), Array::from_f32(&[cols], &w), Array::from_f32(&[cols], &b));
            let want = ax.layer_norm(1, Some(&aw), Some(&ab), 1e-5);
            let what = format!("LayerNorm of [{rows}, {cols}]");
            assert_close(&what, &read(&y).await, &want.data, RELATIVE, ABSOLUTE);
            let [dx, dw, db] = layer_norm_gradients(&ax, &w, &Array::from_f32(&shape, &dy), 1e-5);
            assert_close(&format!("{what}: dx"), &gradient(&tx).await, &dx, RELATIVE, 5e-6);
            assert_close(&format!("{what}: dw"), &gradient(&tw).await, &dw, RELATIVE, 5e-6);
            assert_close(&format!("{what}: db"), &gradient(&tb).await, &db, RELATIVE, 5e-6);
        }
    }
}

/// Rows past 65,535 are lost, or partial sums are sized by a floor.
pub async fn many_rows(engine: Engine) {
    const ROWS: usize = 70_001;
    let x: Vec<f32> = [1.0, -1.0].into_iter().cycle().take(2 * ROWS).collect();
    let dy: Vec<f32> = [1.0, 2.0].into_iter().cycle().take(2 * ROWS).collect();
    let (x, w, b) =
        (leaf(&engine, &x, &[ROWS, 2]), leaf(&engine, &[1.0, 1.0], &[2]), leaf(&engine, &[0.0, 0.0], &[2]));
    let y = x.layer_norm(&[2], Some(&w), Some(&b), 1e-5).expect("a norm");
    y.backward(Some(&engine.tensor(&dy, &[ROWS, 2]).expect("a tensor")), false).expect("a backward");
    let normal = 1.0 / libm::sqrt(1.0 + 1e-5);
    let want: Vec<f64> = [normal, -normal].into_iter().cycle().take(2 * ROWS).collect();
    assert_close("y", &read(&y).await, &want, 1e-6, 0.0);
    assert_close("dw", &gradient(&w).await, &[70_000.65, -140_001.30], 1e-6, 0.0);
    assert_close("db", &gradient(&b).await, &[70_001.0, 140_002.0], 1e-7, 0.0);
}

/// A gradient comes back as `[rows, cols]`, not in the input's shape.
pub async fn gradient_shapes(engine: Engine) {
    let shape = [2, 3, 4];
    let x = leaf(&engine, &values(24, 1, -1.0, 1.0), &shape);
    let (w, b) = (leaf(&engine, &values(4, 2, 0.5, 1.5), &[4]), leaf(&engine, &[0.0; 4], &[4]));
    let y = x.layer_norm(&[4], Some(&w), Some(&b), 1e-5).and_then(|y| y.add(&x)).expect("a block");
    y.backward(Some(&engine.ones(&shape).expect("ones")), false).expect("a backward");
    for (name, t) in [("x", &x), ("w", &w), ("b", &b)] {
        assert_eq!(t.grad().expect("a gradient").shape(), t.shape(), "the gradient of {name}");
    }
    // The residual path carries 1; the norm's carries what the formula says.
    let ones = Array::new(&shape, vec![1.0; 24]);
    let (ax, aw) = (Array::from_f32(&shape, &values(24, 1, -1.0, 1.0)), values(4, 2, 0.5, 1.5));
    let [dx, _, _] = layer_norm_gradients(&ax, &aw, &ones, 1e-5);
    let want: Vec<f64> = dx.iter().map(|d| d + 1.0).collect();
    assert_close("dx", &gradient(&x).await, &want, RELATIVE, 5e-6);
    // Gated operands of different ranks keep their shapes too.
    let (g, v) =
        (leaf(&engine, &values(24, 5, -1.0, 1.0), &shape), leaf(&engine, &values(3, 6, -1.0, 1.0), &[3, 1]));
    g.silu_mul(&v)
        .expect("silu")
        .backward(Some(&engine.ones(&shape).expect("ones")), false)
        .expect("a backward");
    assert_eq!(**g.grad().expect("a gradient").shape(), shape);
    assert_eq!(**v.grad().expect("a gradient").shape(), [3, 1]);
}

type Make = fn(&Tensor) -> Result<Tensor>;
type Twin = fn(&Array) -> Array;
type Op = fn(&Tensor, &Tensor) -> Result<Tensor>;

/// Views of an 8 by 8 matrix, and the same of an array.
const VIEWS: [(&str, Make, Twin); 5] = [
    ("a transpose", |t| t.transpose(0, 1), |x| x.transpose(0, 1)),
    (
        "a slice with an offset",
        |t| t.slice(0, 3, 8, 1)?.slice(1, 1, 7, 1),
        |x| x.slice(0, 3, 5, 1).slice(1, 1, 6, 1),
    ),
    ("every second", |t| t.slice(1, 1, 8, 2), |x| x.slice(1, 1, 4, 2)),
    ("an expand", |t| t.slice(0, 2, 3, 1)?.expand(&[6, 8]), |x| x.slice(0, 2, 1, 1).expand(&[6, 8])),
    ("a column expanded", |t| t.slice(1, 5, 6, 1)?.expand(&[8, 4]), |x| x.slice(1, 5, 1, 1).expand(&[8, 4])),
];

const OPS: [(&str, Op); 4] = [
    ("siluMul", Tensor::silu_mul),
    ("geluMul, swapped", |x, y| y.gelu_mul(x, Approximate::Tanh)),
    ("swiglu", |x, _| x.swiglu()),
    ("layerNorm", |x, y| {
        let last = *x.shape().last().expect("a matrix");
        x.layer_norm(&[last], Some(&y.slice(0, 0, 1, 1)?.reshape(&[last as isize])?), None, 1e-5)
    }),
];

/// Strides are ignored.
pub async fn strides(engine: Engine) {
    let numbers = values(64, 7, -2.0, 2.0);
    for (view_name, make, twin) in VIEWS {
        // Which element of the matrix each element of the view is.
        let places = twin(&Array::new(&[8, 8], (0..64).map(f64::from).collect()));
        let elements: Vec<f32> = places.data.iter().map(|&p| numbers[p as usize]).collect();
        let other = engine.tensor(&values(elements.len(), 8, -2.0, 2.0), &places.shape).expect("a tensor");
        for (op_name, op) in OPS {
            let whole = leaf(&engine, &numbers, &[8, 8]);
            let copy = leaf(&engine, &elements, &places.shape);
            let got = make(&whole).and_then(|view| op(&view, &other)).expect("an op of a view");
            let want = op(&copy, &other).expect("an op of a copy");
            let what = format!("{op_name} of {view_name}");
            assert_eq!(got.shape(), want.shape(), "{what}");
            assert_close(&what, &read(&got).await, &read(&want).await, 1e-6, 1e-7);
            let up = values(want.shape().elements(), 9, -1.0, 1.0);
            let up = engine.tensor(&up, want.shape()).expect("a tensor");
            got.backward(Some(&up), false).expect("a backward");
            want.backward(Some(&up), false).expect("a backward");
            let (mut sums, mut most) = (vec![0.0; 64], 1.0);
            for (&g, &place) in gradient(&copy).await.iter().zip(&places.data) {
                sums[place as usize] += g;
                most = f64::max(most, g.abs());
            }
            // Of an expanded row the parts may cancel: the error is that of the largest.
            let absolute = ABSOLUTE * most;
            assert_close(&format!("{what}: gradient"), &gradient(&whole).await, &sums, RELATIVE, absolute);
        }
    }
}

/// `silu(a) · b` of `n` elements, forward and backward: every element is right.
async fn large(engine: &Engine, n: usize) -> Result<()> {
    // Periods that divide neither each other nor a workgroup: a wrong index gives a wrong value.
    const A: usize = 1009;
    const B: usize = 499;
    let (table_a, table_b) = (values(A, 1, -4.0, 4.0), values(B, 2, -2.0, 2.0));
    let cycle = |table: &[f32]| -> Vec<f32> { table.iter().copied().cycle().take(n).collect() };
    let act: Vec<f64> = table_a.iter().map(|&x| silu(f64::from(x))).collect();
    let slope = |x: f64| sigmoid(x) + x * sigmoid(x) * sigmoid(-x);
    let slopes: Vec<f64> = table_a.iter().map(|&x| slope(f64::from(x))).collect();
    let mut a = engine.tensor(&cycle(&table_a), &[n])?;
    let mut b = engine.tensor(&cycle(&table_b), &[n])?;
    a.set_requires_grad(true)?;
    b.set_requires_grad(true)?;
    let check = async |what: &str, t: &Tensor, want: &dyn Fn(usize) -> f64| {
        let data = t.data().await?;
        assert_eq!(data.len(), n, "{what} of {n}");
        for i in 0..n {
            let (got, want) = (super::compare::element(&data, i), want(i));
            assert!(
                (got - want).abs() <= ABSOLUTE + RELATIVE * want.abs(),
                "{what} of {n}[{i}]: got {got:e}, expected {want:e}"
            );
        }
        Ok::<(), Error>(())
    };
    let y = a.silu_mul(&b)?;
    check("silu(a) b", &y, &|i| act[i % A] * f64::from(table_b[i % B])).await?;
    y.backward(Some(&engine.ones(&[n])?), false)?;
    drop(y);
    check("da", &a.grad().expect("a gradient"), &|i| slopes[i % A] * f64::from(table_b[i % B])).await?;
    check("db", &b.grad().expect("a gradient"), &|i| act[i % A]).await
}

/// More than 65,535 workgroups, and more elements than f32 can count.
pub async fn many_workgroups(engine: Engine) {
    for n in [4_194_241, 16_776_961, 16_777_217] {
        large(&engine, n).await.expect("a large tensor");
    }
}

/// Larger than a binding is by default: right, or an error that says so; never zeros.
pub async fn past_the_binding(engine: Engine) {
    const N: usize = 33_554_433;
    if let Err(e) = large(&engine, N).await {
        assert_eq!(e.kind().code(), "LimitError", "{e}");
        assert!(e.to_string().contains(|c: char| c.is_ascii_digit()), "{e}: names the size and the limit");
    }
    // The engine is usable afterwards.
    let y = engine.tensor(&[1.0, -2.0], &[2]).and_then(|x| x.silu_mul(&x)).expect("a small tensor");
    assert_close("afterwards", &read(&y).await, &[silu(1.0), 2.0 * sigmoid(-2.0) * 2.0], RELATIVE, ABSOLUTE);
}

/// Tensors without an element.
pub async fn empty(engine: Engine) {
    let nothing = leaf(&engine, &[], &[0]);
    for (name, y) in [
        ("siluMul", nothing.silu_mul(&nothing)),
        ("geluMul", nothing.gelu_mul(&nothing, Approximate::Tanh)),
        ("reluMul", nothing.relu_mul(&nothing)),
        ("sigmoidMul", nothing.sigmoid_mul(&nothing)),
        ("swiglu", nothing.swiglu()),
        ("glu", nothing.glu()),
        ("add", nothing.add(&nothing)),
    ] {
        let y = y.unwrap_or_else(|e| panic!("{name} of []: {e}"));
        assert_eq!(**y.shape(), [0], "{name}");
        y.backward(Some(&engine.zeros(&[0]).expect("zeros")), false)
            .unwrap_or_else(|e| panic!("{name} of []: {e}"));
        assert!(read(&y).await.is_empty(), "{name}");
        assert_eq!(**nothing.grad().expect("a gradient").shape(), [0], "{name}");
    }
    let (x, w, b) =
        (leaf(&engine, &[], &[0, 4]), leaf(&engine, &[1.0; 4], &[4]), leaf(&engine, &[0.0; 4], &[4]));
    let y = x.layer_norm(&[4], Some(&w), Some(&b), 1e-5).expect("a norm of no row");
    assert_eq!(**y.shape(), [0, 4]);
    y.backward(Some(&engine.zeros(&[0, 4]).expect("zeros")), false).expect("a backward of no row");
    assert!(read(&y).await.is_empty());
    assert_eq!(**x.grad().expect("a gradient").shape(), [0, 4]);
    assert_close("dw", &gradient(&w).await, &[0.0; 4], 0.0, 0.0);
    assert_close("db", &gradient(&b).await, &[0.0; 4], 0.0, 0.0);
    let total = nothing.sum(None, false).expect("a sum of nothing");
    assert_eq!(total.shape().rank(), 0);
    assert_close("sum of []", &read(&total).await, &[0.0], 0.0, 0.0);
    total.backward(None, false).expect("a backward to nothing");
    // A row without a column, and a broadcast with nothing.
    let hollow = engine
        .zeros(&[3, 0])
        .and_then(|x| x.layer_norm(&[0], None, None, 1e-5))
        .expect("a norm of no column");
    assert_eq!(**hollow.shape(), [3, 0]);
    let one = leaf(&engine, &[2.0], &[1]);
    let y = one.silu_mul(&nothing).expect("1 broadcasts to 0");
    assert_eq!(**y.shape(), [0]);
    y.backward(Some(&engine.zeros(&[0]).expect("zeros")), false).expect("a backward");
    assert_close("the gradient of what was broadcast to nothing", &gradient(&one).await, &[0.0], 0.0, 0.0);
}

/// The same input gives the same bits.
pub async fn same_again(engine: Engine) {
    let (rows, cols) = (513, 257);
    let mut before = None;
    for _ in 0..3 {
        let x = leaf(&engine, &values(rows * cols, 1, -3.0, 3.0), &[rows, cols]);
        let w = leaf(&engine, &values(cols, 2, -1.0, 1.0), &[cols]);
        let y = x.layer_norm(&[cols], Some(&w), None, 1e-5).and_then(|y| y.silu_mul(&x)).expect("a block");
        y.backward(Some(&y.detach()), false).expect("a backward");
        let mut now = vec![];
        for t in [y, x.grad().expect("a gradient"), w.grad().expect("a gradient")] {
            now.push(t.data().await.expect("a read"));
        }
        if let Some(before) = before.replace(now.clone()) {
            let same = now.iter().zip::<&Vec<_>>(&before).all(|(a, b)| same_bits(a, b));
            assert!(same, "another run gave other bits");
        }
    }
}

/// What a reduction returns is its own: a parameter's update in place must not show through.
pub async fn results_are_their_own(engine: Engine) {
    let p = leaf(&engine, &[1.5], &[1]);
    let loss = p.sum(None, false).expect("a sum");
    loss.backward(None, false).expect("a backward");
    let options = wgrad::optim::AdamWOptions { lr: 0.5, ..Default::default() };
    wgrad::optim::AdamW::new(vec![p.clone()], options).and_then(|mut o| o.step()).expect("a step");
    assert!((read(&p).await[0] - 1.5).abs() > 0.1, "the step moved the parameter");
    assert_close("the loss of before the step", &read(&loss).await, &[1.5], 0.0, 0.0);
}

/// Two views of one element broadcast to more elements than a tensor holds, or than 32 bits count.
pub async fn too_many_elements(engine: Engine) {
    const SIDE: isize = 1 << 30;
    let one = engine.tensor(&[1.0], &[1, 1]).expect("a tensor");
    assert_eq!(one.expand(&[SIDE, 4]).map(|_| ()).expect_err("2^32 elements").kind().code(), "LimitError");
    let tall = one.expand(&[SIDE, 1]).expect("a view takes no memory");
    let wide = one.expand(&[1, SIDE]).expect("a view takes no memory");
    for (name, result) in [
        ("add", tall.add(&wide)),
        ("siluMul", tall.silu_mul(&wide)),
        ("reluMul", wide.relu_mul(&tall)),
        ("matmul", tall.matmul(&wide)),
    ] {
        assert_eq!(result.map(|_| ()).expect_err(name).kind().code(), "LimitError", "{name}");
    }
    assert_close("afterwards", &read(&one).await, &[1.0], 0.0, 0.0);
}

/// Calls a macro with the name of every fault.
#[allow(unused_macros, reason = "not every test crate looks at the faults")]
macro_rules! each_fault {
    ($macro:ident) => {
        $macro! {
            gelu_far_out, sigmoid_far_out, nan_stays, gated_slots, same_operand, large_mean, odd_widths,
            many_rows, gradient_shapes, strides, many_workgroups, past_the_binding, empty, same_again,
            results_are_their_own, too_many_elements,
        }
    };
}
#[allow(unused_imports, reason = "as above")]
pub(crate) use each_fault;

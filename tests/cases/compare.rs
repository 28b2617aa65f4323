//! Whether a tensor is what a case expects.

use wgrad::HostData;

use super::format::Elements;

/// Below it an f32 may be flushed to zero.
const SUBNORMAL: f64 = 1.18e-38;
/// Below it an f16 may be flushed to zero.
const SUBNORMAL_F16: f64 = 6.104e-5;

/// What counts as equal.
#[derive(Debug, Clone, Copy)]
pub struct Tolerance {
    pub relative: f64,
    pub absolute: f64,
    /// The sign of zero counts.
    pub signed_zero: bool,
    /// The tensor holds f16.
    pub half: bool,
}

impl Tolerance {
    fn accepts(self, got: f64, want: f64) -> bool {
        // Every comparison below is one that NaN fails.
        if want.is_nan() || got.is_nan() {
            return want.is_nan() && got.is_nan();
        }
        if want.is_infinite() || got.is_infinite() {
            return got.to_bits() == want.to_bits();
        }
        if want == 0.0 && got == 0.0 {
            return !self.signed_zero || got.is_sign_negative() == want.is_sign_negative();
        }
        // Expectations have 10 digits: the f32 nearest to one is right.
        (got - want).abs() <= self.absolute + self.relative * want.abs()
            || got.to_bits() == f64::from(want as f32).to_bits()
            || (want.abs() < SUBNORMAL && got.abs() <= SUBNORMAL)
            || (self.half && want.abs() < SUBNORMAL_F16 && got == 0.0)
    }
}

/// One element, whatever its type.
pub fn element(data: &HostData, i: usize) -> f64 {
    match data {
        HostData::F32(v) => f64::from(v[i]),
        HostData::I32(v) => f64::from(v[i]),
        HostData::U32(v) => f64::from(v[i]),
    }
}

/// Holds the `n` elements of `got` against what is expected.
///
/// # Errors
/// How many are wrong, and the first of them.
pub fn compare(got: &HostData, want: &Elements, n: usize, tolerance: Tolerance) -> Result<(), String> {
    if got.len() != n {
        return Err(format!("{} elements, expected {n}", got.len()));
    }
    let mut wrong = 0usize;
    let mut first = None;
    let mut check = |i: usize, want: f64| {
        let got = element(got, i);
        if !tolerance.accepts(got, want) {
            wrong += 1;
            first.get_or_insert((i, got, want));
        }
    };
    match want {
        Elements::All(data) if data.len() != n => {
            return Err(format!("the case has {} elements for {n}", data.len()));
        }
        Elements::All(data) => data.iter().enumerate().for_each(|(i, w)| check(i, w.0)),
        Elements::Fill(f) => (0..n).for_each(|i| check(i, f.fill.at(i as f64))),
        Elements::Some(s) => s.samples.iter().for_each(|&(i, w)| check(i, w.0)),
    }
    first
        .map_or(Ok(()), |(i, got, want)| Err(format!("[{i}] got {got:e}, expected {want:e} ({wrong} wrong)")))
}

/// Whether two results are the same bit for bit.
pub fn same_bits(a: &HostData, b: &HostData) -> bool {
    match (a, b) {
        (HostData::F32(a), HostData::F32(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.to_bits() == y.to_bits())
        }
        _ => a == b,
    }
}

#[test]
fn only_what_the_format_says_is_equal() {
    let exact = Tolerance { relative: 0.0, absolute: 0.0, signed_zero: false, half: false };
    let loose = Tolerance { relative: 1e-3, absolute: 1e-3, ..exact };
    let signed = Tolerance { signed_zero: true, ..loose };
    let half = Tolerance { half: true, ..exact };
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    for (tolerance, got, want, right) in [
        (loose, nan, nan, true),
        (loose, nan, 1.0, false),
        (loose, 1.0, nan, false),
        (loose, inf, inf, true),
        (loose, -inf, inf, false),
        (loose, 1e30, inf, false),
        (loose, inf, 1e30, false),
        (loose, 1.0019, 1.0, true),
        (loose, 1.0021, 1.0, false),
        (exact, f64::from(0.1f32), 0.1, true),
        (exact, f64::from(0.1f32) + 1e-8, 0.1, false),
        (exact, -0.0, 0.0, true),
        (signed, -0.0, 0.0, false),
        (signed, -0.0, -0.0, true),
        (exact, 0.0, 1e-39, true),
        (exact, 0.0, 2e-38, false),
        (exact, 0.0, 1e-5, false),
        (half, 0.0, 1e-5, true),
        (half, 2e-5, 1e-5, false),
    ] {
        assert_eq!(tolerance.accepts(got, want), right, "{got:e} for {want:e} with {tolerance:?}");
    }
}

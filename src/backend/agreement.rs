//! Whether two backends' results of one call are the same numbers, but for the roundings that a device may choose.

use crate::dtype::DType;

/// How far f32 results may lie apart, by their size: a device's division, roots and powers are a few units of 2^-24 off, and
/// so is a sum in another order; a term or a factor that is missing is far more.
const RELATIVE: f64 = 1e-4;

/// The same for f16 results: where two roundings fall on either side they are 2^-10 apart. Twice that, for a result
/// that was rounded on the way.
const RELATIVE_F16: f64 = 1.0 / 512.0;

/// How far all results may lie apart, by the largest beside them: 16 units of f32 in what they are differences of.
const BESIDE: f64 = 1.0 / 1_048_576.0;

/// How many times the effect of a varied input two results may lie apart.
const MARGIN: f64 = 4.0;

/// By how much inputs are varied: 64 units of f32, so that an effect stands out from the roundings.
#[cfg_attr(not(target_arch = "wasm32"), allow(dead_code, reason = "only the check of a device varies"))]
pub(super) const VARIATION: f32 = 1.0 / 262_144.0;

/// What a comparison allows.
#[derive(Debug, Clone, Copy)]
struct Tolerance {
    relative: f64,
    absolute: f64,
    /// The smallest normal number: below it a device may take 0.
    normal: f64,
}

impl Tolerance {
    /// For results of `dtype` beside which the largest is `largest`.
    fn new(dtype: DType, largest: f64) -> Self {
        let beside = BESIDE * largest;
        match dtype {
            DType::F32 => Self { relative: RELATIVE, absolute: beside, normal: f64::from(f32::MIN_POSITIVE) },
            // The last bit of the smallest numbers is 2^-24.
            DType::F16 => {
                let normal = half::f16::MIN_POSITIVE.to_f64();
                Self { relative: RELATIVE_F16, absolute: beside + normal / 1024.0, normal }
            }
            DType::I32 | DType::U32 | DType::Bool => Self { relative: 0.0, absolute: 0.0, normal: 0.0 },
        }
    }

    /// How many times what is allowed the two lie apart; above 1 they disagree.
    fn excess(&self, got: f64, want: f64, sensitivity: f64) -> f64 {
        if same(got, want) || sensitivity == f64::INFINITY || (got == 0.0 && want.abs() < self.normal) {
            return 0.0;
        }
        // A part of an infinity would allow all numbers.
        let own = if want.is_finite() { self.relative * want.abs() + self.absolute } else { 0.0 };
        let (apart, allowed) = ((got - want).abs(), own + MARGIN * sensitivity);
        if apart <= allowed {
            return 0.0;
        }
        // NaN and infinities first; beside an allowance of 0 the numbers further apart.
        let excess = apart / allowed.max(f64::from(f32::MIN_POSITIVE));
        if excess.is_nan() { f64::INFINITY } else { excess.max(2.0) }
    }
}

/// Where two backends' results disagree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Disagreement {
    /// How many elements do.
    pub count: usize,
    /// The place of the worst of them, and what it is on either side.
    pub place: usize,
    pub got: f64,
    pub want: f64,
}

#[allow(clippy::float_cmp, reason = "infinities are meant, and all that needs no tolerance")]
fn same(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

/// What a word of storage is as a number.
fn number(dtype: DType, word: f32) -> f64 {
    match dtype {
        DType::F32 | DType::F16 => f64::from(word),
        DType::I32 => f64::from(word.to_bits() as i32),
        DType::U32 | DType::Bool => f64::from(word.to_bits()),
    }
}

/// The largest finite size of floats.
pub(super) fn largest(values: &[f32]) -> f32 {
    values.iter().map(|v| v.abs()).filter(|size| size.is_finite()).fold(0.0, f32::max)
}

/// Compares `got` with `want`, words of storage of `dtype`. `varied` are what `want` becomes of inputs that were varied
/// a little: where a result is the small difference of large terms, its roundings are theirs, and nothing but the call itself
/// knows the terms.
pub(super) fn compare(
    got: &[f32],
    want: &[f32],
    dtype: DType,
    largest: f32,
    varied: &[Vec<f32>],
) -> Option<Disagreement> {
    let tolerance = Tolerance::new(dtype, f64::from(largest));
    let mut found = Disagreement { count: 0, place: 0, got: 0.0, want: 0.0 };
    let mut worst = 0.0;
    for (place, (&got, &want)) in got.iter().zip(want).enumerate() {
        let (got, want) = (number(dtype, got), number(dtype, want));
        let mut sensitivity: f64 = 0.0;
        for values in varied {
            // NaN, of equal infinities, is no effect: `max` leaves it out.
            let varied = number(dtype, values[place]);
            sensitivity =
                sensitivity.max(if same(varied, got) { f64::INFINITY } else { (varied - want).abs() });
        }
        let excess = tolerance.excess(got, want, sensitivity);
        found.count += usize::from(excess > 0.0);
        if excess > worst {
            worst = excess;
            found = Disagreement { place, got, want, ..found };
        }
    }
    (found.count > 0).then_some(found)
}

#[cfg(test)]
mod tests {
    use bytemuck::cast_slice;

    use super::*;

    fn floats(got: &[f32], want: &[f32], dtype: DType, varied: &[&[f32]]) -> Option<Disagreement> {
        let varied: Vec<_> = varied.iter().map(|values| values.to_vec()).collect();
        compare(got, want, dtype, largest(want), &varied)
    }

    fn agree(got: f32, want: f32) -> bool {
        floats(&[got], &[want], DType::F32, &[]).is_none()
    }

    #[test]
    fn roundings_agree_and_faults_do_not() {
        assert!(agree(1.0, 1.000_05));
        assert!(!agree(1.0, 1.001));
        assert!(!agree(1.0, -1.0));
        assert!(agree(0.0, -0.0));
        // A small result is held against its own size, but for the roundings of the largest beside it.
        assert_eq!(floats(&[1e-3, 1.0], &[1.0005e-3, 1.0], DType::F32, &[]), None);
        let small = floats(&[2e-3, 1.0], &[1e-3, 1.0], DType::F32, &[]).unwrap();
        assert_eq!((small.count, small.place), (1, 0));
        assert!(floats(&[0.0, 0.0], &[1e-9, 0.0], DType::F32, &[]).is_some());
    }

    #[test]
    fn what_is_not_finite_meets_its_like() {
        const NAN: f32 = f32::NAN;
        const INF: f32 = f32::INFINITY;
        for (got, want) in [(NAN, NAN), (INF, INF), (-INF, -INF)] {
            assert!(agree(got, want), "{got} {want}");
        }
        for (got, want) in [
            (NAN, 1.0),
            (1.0, NAN),
            (INF, 1.0),
            (1.0, INF),
            (INF, -INF),
            (NAN, INF),
            (INF, NAN),
            (f32::MAX, INF),
            (NAN, 0.0),
        ] {
            assert!(!agree(got, want), "{got} {want}");
        }
        let worst = floats(&[2.0, NAN, 9.0], &[1.0, 1.0, 1.0], DType::F32, &[]).unwrap();
        assert_eq!((worst.count, worst.place, worst.want), (3, 1, 1.0));
        assert!(worst.got.is_nan());
    }

    #[test]
    fn the_smallest_numbers_may_be_flushed_to_zero_only() {
        assert!(agree(0.0, 1e-39));
        assert!(!agree(1e-30, 1e-39));
        assert_eq!(floats(&[0.0], &[5e-5], DType::F16, &[]), None);
        assert!(floats(&[0.0], &[7e-5], DType::F16, &[]).is_some());
        assert!(floats(&[2e-5], &[5e-5], DType::F16, &[]).is_some());
    }

    #[test]
    fn f16_may_round_to_the_neighbour() {
        assert_eq!(floats(&[1.0], &[1.000_976_6], DType::F16, &[]), None);
        assert!(floats(&[1.0], &[1.000_976_6], DType::F32, &[]).is_some());
        assert!(floats(&[1.0], &[1.003], DType::F16, &[]).is_some());
    }

    #[test]
    fn a_difference_of_large_terms_may_differ_as_they_do() {
        // 1e6 - 1e6, say: either side is right.
        assert!(floats(&[0.03], &[-0.01], DType::F32, &[]).is_some());
        assert_eq!(floats(&[0.03], &[-0.01], DType::F32, &[&[-0.01], &[1.5]]), None);
        assert!(floats(&[9.0], &[-0.01], DType::F32, &[&[1.5]]).is_some());
        // At the edge of overflow either side is right.
        assert_eq!(floats(&[f32::INFINITY], &[f32::MAX], DType::F32, &[&[f32::INFINITY]]), None);
        assert_eq!(floats(&[f32::MAX], &[f32::INFINITY], DType::F32, &[&[f32::MAX]]), None);
        assert_eq!(floats(&[f32::NAN], &[1.0], DType::F32, &[&[2.0], &[f32::NAN]]), None);
        assert!(floats(&[f32::NAN], &[1.0], DType::F32, &[&[2.0]]).is_some());
        assert!(floats(&[1.0], &[f32::INFINITY], DType::F32, &[&[f32::INFINITY]]).is_some());
    }

    #[test]
    fn integers_are_equal_or_not() {
        let against =
            |got: [i32; 3]| compare(cast_slice(&got), cast_slice(&[1, 2, 1 << 30]), DType::I32, 1e9, &[]);
        assert_eq!(against([1, 2, 1 << 30]), None);
        let worst = Disagreement { count: 2, place: 1, got: 9.0, want: 2.0 };
        assert_eq!(against([1, 9, (1 << 30) + 1]), Some(worst));
    }
}

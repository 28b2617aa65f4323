//! One vector of four `f32` lanes, the same bit by bit on wasm `simd128` and everywhere else.
//!
//! Two backends carry the same function names: the `simd128` instructions, and arrays that LLVM turns into vector
//! code by itself. No operation fuses a multiplication with an addition, and sums of lanes have one fixed order, so
//! a result tested natively is the result in the browser. The one exception is the payload of a NaN, which
//! WebAssembly leaves open. The file is long so that both backends and the operations stand beside each other.

#![allow(clippy::inline_always, reason = "a call for one vector instruction costs more than the instruction")]

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Sub};

/// The `simd128` instructions under the names of the portable backend.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod backend {
    pub use core::arch::wasm32::{
        f32x4_abs as abs, f32x4_add as add, f32x4_convert_i32x4 as to_float, f32x4_div as div,
        f32x4_eq as eq, f32x4_floor as floor, f32x4_le as le, f32x4_lt as lt, f32x4_mul as mul,
        f32x4_nearest as round, f32x4_neg as neg, f32x4_pmax as max, f32x4_pmin as min, f32x4_splat as splat,
        f32x4_sqrt as sqrt, f32x4_sub as sub, i32x4_add as int_add, i32x4_all_true as all,
        i32x4_shl as shift_left, i32x4_shr as shift_right, i32x4_splat as int_splat, i32x4_sub as int_sub,
        i32x4_trunc_sat_f32x4 as to_int, u32x4_shr as shift_right_logical, v128 as Floats, v128 as Ints,
        v128 as Mask, v128_and as int_and, v128_and as and, v128_any_true as any,
        v128_bitselect as bitselect, v128_not as not, v128_or as int_or, v128_or as or, v128_xor as int_xor,
    };
    use core::arch::wasm32::{v128_load, v128_store};

    #[inline(always)]
    pub fn load(from: &[f32; 4]) -> Floats {
        // SAFETY: the array is sixteen readable bytes, and wasm loads need no alignment.
        unsafe { v128_load(from.as_ptr().cast()) }
    }
    #[inline(always)]
    pub fn store(v: Floats, to: &mut [f32; 4]) {
        // SAFETY: the array is sixteen writable bytes, and wasm stores need no alignment.
        unsafe { v128_store(to.as_mut_ptr().cast(), v) }
    }
    #[inline(always)]
    pub fn int_load(from: &[i32; 4]) -> Ints {
        // SAFETY: as in `load`.
        unsafe { v128_load(from.as_ptr().cast()) }
    }
    #[inline(always)]
    pub fn int_store(v: Ints, to: &mut [i32; 4]) {
        // SAFETY: as in `store`.
        unsafe { v128_store(to.as_mut_ptr().cast(), v) }
    }
    #[inline(always)]
    pub fn to_bits(v: Floats) -> Ints {
        v
    }
    #[inline(always)]
    pub fn from_bits(v: Ints) -> Floats {
        v
    }
    #[inline(always)]
    pub fn select(mask: Mask, a: Floats, b: Floats) -> Floats {
        bitselect(a, b, mask)
    }
}

/// Arrays, lane by lane; every loop has four steps and no dependence, which LLVM vectorises.
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
mod backend {
    use std::array::from_fn;

    pub type Floats = [f32; 4];
    pub type Ints = [i32; 4];
    /// All bits of a lane set, or none.
    pub type Mask = [i32; 4];

    /// Defines functions on whole vectors from an expression on one lane.
    macro_rules! lanewise {
        ($($name:ident($($arg:ident: $vector:ty),+) -> $out:ty = $lane:expr;)+) => {$(
            #[inline(always)]
            pub fn $name($($arg: $vector),+) -> $out {
                from_fn(|i| { $(let $arg = $arg[i];)+ $lane })
            }
        )+};
    }
    lanewise! {
        add(a: Floats, b: Floats) -> Floats = a + b;
        sub(a: Floats, b: Floats) -> Floats = a - b;
        mul(a: Floats, b: Floats) -> Floats = a * b;
        div(a: Floats, b: Floats) -> Floats = a / b;
        neg(a: Floats) -> Floats = -a;
        abs(a: Floats) -> Floats = a.abs();
        sqrt(a: Floats) -> Floats = a.sqrt();
        floor(a: Floats) -> Floats = a.floor();
        round(a: Floats) -> Floats = a.round_ties_even();
        min(a: Floats, b: Floats) -> Floats = if b < a { b } else { a };
        max(a: Floats, b: Floats) -> Floats = if a < b { b } else { a };
        lt(a: Floats, b: Floats) -> Mask = -i32::from(a < b);
        le(a: Floats, b: Floats) -> Mask = -i32::from(a <= b);
        eq(a: Floats, b: Floats) -> Mask = -i32::from(a == b);
        and(a: Mask, b: Mask) -> Mask = a & b;
        or(a: Mask, b: Mask) -> Mask = a | b;
        not(a: Mask) -> Mask = !a;
        select(mask: Mask, a: Floats, b: Floats) -> Floats = if mask != 0 { a } else { b };
        to_bits(a: Floats) -> Ints = a.to_bits() as i32;
        from_bits(a: Ints) -> Floats = f32::from_bits(a as u32);
        to_float(a: Ints) -> Floats = a as f32;
        to_int(a: Floats) -> Ints = a as i32;
        int_add(a: Ints, b: Ints) -> Ints = a.wrapping_add(b);
        int_sub(a: Ints, b: Ints) -> Ints = a.wrapping_sub(b);
        int_and(a: Ints, b: Ints) -> Ints = a & b;
        int_or(a: Ints, b: Ints) -> Ints = a | b;
        int_xor(a: Ints, b: Ints) -> Ints = a ^ b;
    }

    #[inline(always)]
    pub fn splat(value: f32) -> Floats {
        [value; 4]
    }
    #[inline(always)]
    pub fn int_splat(value: i32) -> Ints {
        [value; 4]
    }
    #[inline(always)]
    pub fn load(from: &[f32; 4]) -> Floats {
        *from
    }
    #[inline(always)]
    pub fn store(v: Floats, to: &mut [f32; 4]) {
        *to = v;
    }
    #[inline(always)]
    pub fn int_load(from: &[i32; 4]) -> Ints {
        *from
    }
    #[inline(always)]
    pub fn int_store(v: Ints, to: &mut [i32; 4]) {
        *to = v;
    }
    #[inline(always)]
    pub fn shift_left(a: Ints, bits: u32) -> Ints {
        a.map(|lane| lane << bits)
    }
    #[inline(always)]
    pub fn shift_right(a: Ints, bits: u32) -> Ints {
        a.map(|lane| lane >> bits)
    }
    #[inline(always)]
    pub fn shift_right_logical(a: Ints, bits: u32) -> Ints {
        a.map(|lane| (lane as u32 >> bits) as i32)
    }
    #[inline(always)]
    pub fn any(mask: Mask) -> bool {
        mask.iter().any(|&lane| lane != 0)
    }
    #[inline(always)]
    pub fn all(mask: Mask) -> bool {
        mask.iter().all(|&lane| lane != 0)
    }
}

/// Lanes of a vector.
pub const LANES: usize = 4;

/// Four `f32` lanes.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct F32x4(backend::Floats);

/// Four `i32` lanes: the bits of an [`F32x4`], exponents, and what is computed from them.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct I32x4(backend::Ints);

/// Four truth values, the result of a comparison of [`F32x4`].
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Mask32x4(backend::Mask);

/// Implements operators by functions of the backend.
macro_rules! operators {
    ($($vector:ident: $operator:ident, $method:ident = $function:ident;)+) => {$(
        impl $operator for $vector {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(backend::$function(self.0, other.0))
            }
        }
    )+};
}
operators! {
    F32x4: Add, add = add;
    F32x4: Sub, sub = sub;
    F32x4: Mul, mul = mul;
    F32x4: Div, div = div;
    I32x4: Add, add = int_add;
    I32x4: Sub, sub = int_sub;
    I32x4: BitAnd, bitand = int_and;
    I32x4: BitOr, bitor = int_or;
    I32x4: BitXor, bitxor = int_xor;
}

impl Neg for F32x4 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(backend::neg(self.0))
    }
}

impl F32x4 {
    /// The same value in every lane.
    #[inline(always)]
    #[must_use]
    pub fn splat(value: f32) -> Self {
        Self(backend::splat(value))
    }

    /// Lane `i` is `lanes[i]`.
    #[inline(always)]
    #[must_use]
    pub fn from_array(lanes: [f32; LANES]) -> Self {
        Self(backend::load(&lanes))
    }

    /// The lanes in order.
    #[inline(always)]
    #[must_use]
    pub fn to_array(self) -> [f32; LANES] {
        let mut lanes = [0.0; LANES];
        backend::store(self.0, &mut lanes);
        lanes
    }

    /// The first four values of `from`.
    ///
    /// # Panics
    /// If `from` is shorter than four.
    #[inline(always)]
    #[must_use]
    pub fn load(from: &[f32]) -> Self {
        Self(backend::load(from.first_chunk().expect("a vector load needs four values")))
    }

    /// Writes the lanes over the first four values of `to`.
    ///
    /// # Panics
    /// If `to` is shorter than four.
    #[inline(always)]
    pub fn store(self, to: &mut [f32]) {
        backend::store(self.0, to.first_chunk_mut().expect("a vector store needs room for four values"));
    }

    /// The values of `from`, at most four, then zeros.
    #[inline(always)]
    #[must_use]
    pub fn load_partial(from: &[f32]) -> Self {
        let mut lanes = [0.0; LANES];
        for (lane, &value) in lanes.iter_mut().zip(from) {
            *lane = value;
        }
        Self::from_array(lanes)
    }

    /// Writes as many lanes as `to` has room for.
    #[inline(always)]
    pub fn store_partial(self, to: &mut [f32]) {
        for (value, lane) in to.iter_mut().zip(self.to_array()) {
            *value = lane;
        }
    }

    /// The magnitude: the sign bit cleared, also of a NaN.
    #[inline(always)]
    #[must_use]
    pub fn abs(self) -> Self {
        Self(backend::abs(self.0))
    }

    /// `other < self ? other : self`: a NaN in `self` stays, a NaN in `other` is passed over, and of two zeros
    /// `self` stays. One instruction; [`F32x4::minimum`] is the one that keeps every NaN.
    #[inline(always)]
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self(backend::min(self.0, other.0))
    }

    /// `self < other ? other : self`: a NaN in `self` stays, a NaN in `other` is passed over, and of two zeros
    /// `self` stays. One instruction; [`F32x4::maximum`] is the one that keeps every NaN.
    #[inline(always)]
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self(backend::max(self.0, other.0))
    }

    /// The smaller value, NaN if either is NaN; of two zeros `self`.
    #[inline(always)]
    #[must_use]
    pub fn minimum(self, other: Self) -> Self {
        Self::select(other.is_nan(), other, self.min(other))
    }

    /// The larger value, NaN if either is NaN; of two zeros `self`.
    #[inline(always)]
    #[must_use]
    pub fn maximum(self, other: Self) -> Self {
        Self::select(other.is_nan(), other, self.max(other))
    }

    /// The correctly rounded square root; NaN below zero.
    #[inline(always)]
    #[must_use]
    pub fn sqrt(self) -> Self {
        Self(backend::sqrt(self.0))
    }

    /// The largest integer that is not larger.
    #[inline(always)]
    #[must_use]
    pub fn floor(self) -> Self {
        Self(backend::floor(self.0))
    }

    /// The nearest integer, the even one where two are equally near.
    #[inline(always)]
    #[must_use]
    pub fn round_ties_even(self) -> Self {
        Self(backend::round(self.0))
    }

    /// `self < other`; false where either is NaN.
    #[inline(always)]
    #[must_use]
    pub fn lt(self, other: Self) -> Mask32x4 {
        Mask32x4(backend::lt(self.0, other.0))
    }

    /// `self <= other`; false where either is NaN.
    #[inline(always)]
    #[must_use]
    pub fn le(self, other: Self) -> Mask32x4 {
        Mask32x4(backend::le(self.0, other.0))
    }

    /// `self > other`; false where either is NaN.
    #[inline(always)]
    #[must_use]
    pub fn gt(self, other: Self) -> Mask32x4 {
        other.lt(self)
    }

    /// `self >= other`; false where either is NaN.
    #[inline(always)]
    #[must_use]
    pub fn ge(self, other: Self) -> Mask32x4 {
        other.le(self)
    }

    /// `self == other`; false where either is NaN, true for zeros of either sign.
    #[inline(always)]
    #[must_use]
    pub fn eq(self, other: Self) -> Mask32x4 {
        Mask32x4(backend::eq(self.0, other.0))
    }

    /// Where a lane is NaN.
    #[inline(always)]
    #[must_use]
    pub fn is_nan(self) -> Mask32x4 {
        self.eq(self).not()
    }

    /// `a` where the mask is true, `b` elsewhere. Both have been computed: nothing branches.
    #[inline(always)]
    #[must_use]
    pub fn select(mask: Mask32x4, a: Self, b: Self) -> Self {
        Self(backend::select(mask.0, a.0, b.0))
    }

    /// The bit patterns.
    #[inline(always)]
    #[must_use]
    pub fn to_bits(self) -> I32x4 {
        I32x4(backend::to_bits(self.0))
    }

    /// The values with these bit patterns.
    #[inline(always)]
    #[must_use]
    pub fn from_bits(bits: I32x4) -> Self {
        Self(backend::from_bits(bits.0))
    }

    /// The integer part, saturating at the ends of `i32`; 0 for NaN (Rust's `as`).
    #[inline(always)]
    #[must_use]
    pub fn to_int(self) -> I32x4 {
        I32x4(backend::to_int(self.0))
    }

    /// The sum of the lanes in one fixed order, `(0 + 2) + (1 + 3)`.
    #[inline(always)]
    #[must_use]
    pub fn sum(self) -> f32 {
        let [a, b, c, d] = self.to_array();
        (a + c) + (b + d)
    }
}

impl I32x4 {
    /// The same value in every lane.
    #[inline(always)]
    #[must_use]
    pub fn splat(value: i32) -> Self {
        Self(backend::int_splat(value))
    }

    /// Lane `i` is `lanes[i]`.
    #[inline(always)]
    #[must_use]
    pub fn from_array(lanes: [i32; LANES]) -> Self {
        Self(backend::int_load(&lanes))
    }

    /// The lanes in order.
    #[inline(always)]
    #[must_use]
    pub fn to_array(self) -> [i32; LANES] {
        let mut lanes = [0; LANES];
        backend::int_store(self.0, &mut lanes);
        lanes
    }

    /// Shifts every lane to the left; `bits` is below 32.
    #[inline(always)]
    #[must_use]
    pub fn shift_left(self, bits: u32) -> Self {
        Self(backend::shift_left(self.0, bits))
    }

    /// Shifts every lane to the right and fills with the sign; `bits` is below 32.
    #[inline(always)]
    #[must_use]
    pub fn shift_right(self, bits: u32) -> Self {
        Self(backend::shift_right(self.0, bits))
    }

    /// Shifts every lane to the right and fills with zeros; `bits` is below 32.
    #[inline(always)]
    #[must_use]
    pub fn shift_right_logical(self, bits: u32) -> Self {
        Self(backend::shift_right_logical(self.0, bits))
    }

    /// The nearest floats.
    #[inline(always)]
    #[must_use]
    pub fn to_float(self) -> F32x4 {
        F32x4(backend::to_float(self.0))
    }
}

impl Mask32x4 {
    /// True where both are.
    #[inline(always)]
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(backend::and(self.0, other.0))
    }

    /// True where either is.
    #[inline(always)]
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(backend::or(self.0, other.0))
    }

    /// True where this one is false.
    #[inline(always)]
    #[must_use]
    #[expect(
        clippy::should_implement_trait,
        reason = "stands beside `and` and `or`, which have no operator either"
    )]
    pub fn not(self) -> Self {
        Self(backend::not(self.0))
    }

    /// True in some lane.
    #[inline(always)]
    #[must_use]
    pub fn any(self) -> bool {
        backend::any(self.0)
    }

    /// True in every lane.
    #[inline(always)]
    #[must_use]
    pub fn all(self) -> bool {
        backend::all(self.0)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "operations that are exact")]
mod tests {
    use super::*;

    const X: [f32; 4] = [1.5, -2.5, f32::NAN, -0.0];
    const Y: [f32; 4] = [-1.0, f32::NAN, 3.0, 0.0];

    fn v(lanes: [f32; 4]) -> F32x4 {
        F32x4::from_array(lanes)
    }

    /// By bits, so that zeros keep their sign and NaN is equal to itself.
    #[track_caller]
    fn same(got: F32x4, want: [f32; 4]) {
        assert_eq!(got.to_array().map(f32::to_bits), want.map(f32::to_bits), "{got:?} for {want:?}");
    }

    fn lanes(mask: Mask32x4) -> [bool; 4] {
        F32x4::select(mask, F32x4::splat(1.0), F32x4::splat(0.0)).to_array().map(|x| x == 1.0)
    }

    #[test]
    fn memory_is_read_and_written_in_order() {
        let mut out = [9.0; 5];
        F32x4::load(&[1.0, 2.0, 3.0, 4.0, 5.0]).store(&mut out);
        assert_eq!(out, [1.0, 2.0, 3.0, 4.0, 9.0]);
        let mut out = [9.0; 3];
        F32x4::load_partial(&[1.0, 2.0]).store_partial(&mut out);
        assert_eq!(out, [1.0, 2.0, 0.0]);
        same(F32x4::load_partial(&[]), [0.0; 4]);
        same(F32x4::load_partial(&[1.0, 2.0, 3.0, 4.0, 5.0]), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    #[should_panic(expected = "four values")]
    fn a_short_load_panics() {
        let _ = F32x4::load(&[1.0, 2.0, 3.0]);
    }

    #[test]
    fn arithmetic_is_lane_by_lane_and_never_fused() {
        let (a, b) = (v([3.0, -1.0, 0.5, 1e20]), v([2.0, 4.0, -0.25, 1e20]));
        same(a + b, [5.0, 3.0, 0.25, 2e20]);
        same(a - b, [1.0, -5.0, 0.75, 0.0]);
        same(a * b, [6.0, -4.0, -0.125, f32::INFINITY]);
        same(a / b, [1.5, -0.25, -2.0, 1.0]);
        same(-v([0.0, -0.0, 1.0, -1.0]), [-0.0, 0.0, -1.0, 1.0]);
        // Fused, this is 2^-24, the square's rounding.
        let x = F32x4::splat(1.0 + 1.0 / 4096.0);
        same(x * x + F32x4::splat(-1.000_488_3), [0.0; 4]);
    }

    #[test]
    fn minimum_and_maximum_say_what_nan_does() {
        same(v(X).min(v(Y)), [-1.0, -2.5, f32::NAN, -0.0]);
        same(v(X).max(v(Y)), [1.5, -2.5, f32::NAN, -0.0]);
        same(v(X).minimum(v(Y)), [-1.0, f32::NAN, f32::NAN, -0.0]);
        same(v(X).maximum(v(Y)), [1.5, f32::NAN, f32::NAN, -0.0]);
    }

    #[test]
    fn rounding() {
        same(v([0.5, 1.5, -0.5, 2.499]).round_ties_even(), [0.0, 2.0, -0.0, 2.0]);
        same(v([0.5, -0.5, -0.0, 1e30]).floor(), [0.0, -1.0, -0.0, 1e30]);
        same(v([4.0, 2.0, 0.0, f32::INFINITY]).sqrt(), [2.0, std::f32::consts::SQRT_2, 0.0, f32::INFINITY]);
        same(v([-0.0, -3.0, 3.0, f32::NEG_INFINITY]).abs(), [0.0, 3.0, 3.0, f32::INFINITY]);
    }

    #[test]
    fn comparisons_are_false_at_nan() {
        assert_eq!(lanes(v(X).lt(v(Y))), [false; 4]);
        assert_eq!(lanes(v(X).le(v(Y))), [false, false, false, true]);
        assert_eq!(lanes(v(X).gt(v(Y))), [true, false, false, false]);
        assert_eq!(lanes(v(X).ge(v(Y))), [true, false, false, true]);
        assert_eq!(lanes(v(X).eq(v(Y))), [false, false, false, true]);
        assert_eq!(lanes(v(X).is_nan()), [false, false, true, false]);
    }

    #[test]
    fn masks() {
        let (a, b) = (v(X).is_nan(), v(Y).is_nan());
        assert_eq!(lanes(a.or(b)), [false, true, true, false]);
        assert_eq!(lanes(a.and(b)), [false; 4]);
        assert_eq!(lanes(a.not()), [true, true, false, true]);
        assert!(a.any() && !a.all() && !a.and(b).any() && a.or(a.not()).all());
        same(F32x4::select(a, v([1.0; 4]), v([2.0; 4])), [2.0, 2.0, 1.0, 2.0]);
    }

    #[test]
    fn bits_and_integers() {
        let bits = v([1.0, -2.0, 0.0, -0.0]).to_bits();
        assert_eq!(bits.to_array(), [0x3f80_0000, i32::MIN + 0x4000_0000, 0, i32::MIN]);
        same(F32x4::from_bits(bits), [1.0, -2.0, 0.0, -0.0]);
        let n = I32x4::from_array([1, -1, i32::MIN, i32::MAX]);
        assert_eq!(n.shift_left(4).to_array(), [16, -16, 0, -16]);
        assert_eq!(n.shift_right(1).to_array(), [0, -1, i32::MIN >> 1, i32::MAX >> 1]);
        assert_eq!(n.shift_right_logical(31).to_array(), [0, 1, 1, 0]);
        let one = I32x4::splat(1);
        assert_eq!((n + one).to_array(), [2, 0, i32::MIN + 1, i32::MIN]);
        assert_eq!((n - one).to_array(), [0, -2, i32::MAX, i32::MAX - 1]);
        assert_eq!((n & one).to_array(), [1, 1, 0, 1]);
        assert_eq!((n | one).to_array(), [1, -1, i32::MIN + 1, i32::MAX]);
        assert_eq!((n ^ one).to_array(), [0, -2, i32::MIN + 1, i32::MAX - 1]);
        assert_eq!(v([1.9, -1.9, f32::NAN, 1e20]).to_int().to_array(), [1, -1, 0, i32::MAX]);
        same(I32x4::from_array([3, -3, 0, 16_777_217]).to_float(), [3.0, -3.0, 0.0, 16_777_216.0]);
    }

    #[test]
    fn the_sum_has_one_order() {
        // (1 + -1e8) + (1e8 + 1) loses both ones to rounding; from left to right only the first is lost.
        assert_eq!(v([1.0, 1e8, -1e8, 1.0]).sum(), 0.0);
    }
}

//! Native numbers as lanes. Each is one lane; the loops of the host device turn them into vectors.

use super::lanes::{Bits, Float, Lane, Mask, Whole};
use std::hint::select_unpredictable;

impl Mask for bool {
    #[inline(always)]
    fn all(value: bool) -> bool {
        value
    }
}

macro_rules! lane {
    ($($ty:ty),*) => {$(
        impl Lane for $ty {
            type Mask = bool;
            #[inline(always)]
            fn select(mask: bool, yes: $ty, no: $ty) -> $ty {
                select_unpredictable(mask, yes, no)
            }
            #[inline(always)]
            fn same(self, other: $ty) -> bool {
                self == other
            }
            #[inline(always)]
            fn less(self, other: $ty) -> bool {
                self < other
            }
            #[inline(always)]
            fn at_most(self, other: $ty) -> bool {
                self <= other
            }
        }
    )*};
}
lane!(f32, f64, u8, u32, i32, i64, u64);

macro_rules! bits {
    ($ty:ty, $signed:ty, $double:ty) => {
        impl Bits for $ty {
            #[inline(always)]
            fn word(value: u64) -> $ty {
                value as $ty
            }
            #[inline(always)]
            fn plus(self, other: $ty) -> $ty {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: $ty) -> $ty {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn times(self, other: $ty) -> $ty {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn times_high(self, other: $ty) -> $ty {
                ((self as $double * other as $double) >> <$ty>::BITS) as $ty
            }
            #[inline(always)]
            fn shift_left(self, count: u32) -> $ty {
                self << count
            }
            #[inline(always)]
            fn shift_right(self, count: u32) -> $ty {
                self >> count
            }
            #[inline(always)]
            fn shift_right_signed(self, count: u32) -> $ty {
                (self as $signed >> count) as $ty
            }
            #[inline(always)]
            fn shift_left_by(self, count: $ty) -> $ty {
                self.wrapping_shl(count as u32)
            }
            #[inline(always)]
            fn shift_right_by(self, count: $ty) -> $ty {
                self.wrapping_shr(count as u32)
            }
            #[inline(always)]
            fn pick(table: &'static [u64], index: $ty) -> $ty {
                table[index as usize] as $ty
            }
        }
    };
}
bits!(u32, i32, u64);
bits!(u64, i64, u128);

macro_rules! float {
    ($ty:ty, $bits:ty, $wide:literal, $magic:literal) => {
        impl Float for $ty {
            type Bits = $bits;
            const WIDE: bool = $wide;
            #[inline(always)]
            fn lit(value: f64) -> $ty {
                value as $ty
            }
            #[inline(always)]
            fn from_bits(bits: $bits) -> $ty {
                <$ty>::from_bits(bits)
            }
            #[inline(always)]
            fn to_bits(self) -> $bits {
                <$ty>::to_bits(self)
            }
            #[inline(always)]
            fn magnitude(self) -> $ty {
                self.abs()
            }
            #[inline(always)]
            fn round_down(self) -> $ty {
                self.floor()
            }
            #[inline(always)]
            fn round_up(self) -> $ty {
                self.ceil()
            }
            #[inline(always)]
            fn truncated(self) -> $ty {
                self.trunc()
            }
            #[inline(always)]
            fn root(self) -> $ty {
                self.sqrt()
            }
            #[inline(always)]
            fn nearest_small(self) -> $ty {
                // The sum's ulp is 1, so the addition rounds to an integer, in vector registers of any CPU.
                (self + $magic) - $magic
            }
            #[inline(always)]
            fn small_to_bits(self) -> $bits {
                (self + $magic).to_bits().wrapping_sub(<$ty>::to_bits($magic))
            }
            #[inline(always)]
            fn small_from_bits(bits: $bits) -> $ty {
                <$ty>::from_bits(bits.wrapping_add(<$ty>::to_bits($magic))) - $magic
            }
            #[inline(always)]
            fn low_bits_plus(self, more: f64) -> $bits {
                (self + ($magic + more as $ty)).to_bits()
            }
            #[inline(always)]
            fn lesser(self, other: $ty) -> $ty {
                select_unpredictable(other < self, other, self)
            }
            #[inline(always)]
            #[allow(clippy::neg_cmp_op_on_partial_ord)] // NaN lies beyond every limit.
            fn is_beyond(self, limit: f64) -> bool {
                !(self.abs() <= limit as $ty)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }
            #[inline(always)]
            fn is_infinite(self) -> bool {
                self.abs() == <$ty>::INFINITY
            }
            #[inline(always)]
            fn infinity() -> $ty {
                <$ty>::INFINITY
            }
            #[inline(always)]
            fn nan() -> $ty {
                <$ty>::NAN
            }
            #[inline(always)]
            fn exact_remainder(self, divisor: $ty) -> $ty {
                self % divisor
            }
            #[inline(always)]
            fn pinned(self, _: impl FnOnce() -> $ty) -> $ty {
                // Rust's compiler never rearranges floats.
                self
            }
            #[inline(always)]
            fn less_part(self, factor: $ty, constant: $ty) -> $ty {
                self - factor * constant
            }
            #[inline(always)]
            fn with_sign_of(self, sign: $ty) -> $ty {
                self.copysign(sign)
            }
        }
    };
}
float!(f32, u32, false, 12582912.0);
float!(f64, u64, true, 6755399441055744.0);

macro_rules! whole {
    ($($ty:ty, $signed:literal, $times_saturating:expr;)*) => {$(
        impl Whole for $ty {
            const SIGNED: bool = $signed;
            #[inline(always)]
            fn whole(value: i64) -> $ty {
                value as $ty
            }
            #[inline(always)]
            fn least() -> $ty {
                <$ty>::MIN
            }
            #[inline(always)]
            fn greatest() -> $ty {
                <$ty>::MAX
            }
            #[inline(always)]
            fn plus(self, other: $ty) -> $ty {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: $ty) -> $ty {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn times(self, other: $ty) -> $ty {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn times_saturating(self, other: $ty) -> $ty {
                let product: fn($ty, $ty) -> $ty = $times_saturating;
                product(self, other)
            }
            #[inline(always)]
            fn quotient(self, divisor: $ty) -> $ty {
                self.wrapping_div(divisor)
            }
            #[inline(always)]
            fn has_bit(self, n: u32) -> bool {
                // Bits beyond the width repeat the sign.
                (self >> n.min(<$ty>::BITS - 1)) & 1 == 1
            }
        }
    )*};
}
whole!(
    // Products in twice the width vectorise; the saturating intrinsics do not.
    u8, false, |a, b| (a as u16 * b as u16).min(255) as u8;
    i32, true, |a, b| (a as i64 * b as i64).clamp(i32::MIN as i64, i32::MAX as i64) as i32;
    u32, false, |a, b| (a as u64 * b as u64).min(u32::MAX as u64) as u32;
    i64, true, |a, b| a.saturating_mul(b);
);

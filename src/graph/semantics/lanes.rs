//! The traits over which a semantic function is generic.
//!
//! Names differ from those of the primitive types' own methods (`less` and not `lt`), so that generic code cannot
//! call a native method by accident.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

/// A truth value in each lane.
pub trait Mask:
    Copy + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    /// The same in every lane.
    fn all(value: bool) -> Self;
}

/// A number with an order in each lane.
pub trait Lane: Copy {
    /// Truth values for the same lanes.
    type Mask: Mask;
    /// `yes` where the mask is true, else `no`; both are evaluated.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
    /// `self == other`; false where one is NaN.
    fn same(self, other: Self) -> Self::Mask;
    /// `self < other`; false where one is NaN.
    fn less(self, other: Self) -> Self::Mask;
    /// `self <= other`; false where one is NaN.
    fn at_most(self, other: Self) -> Self::Mask;
    /// `self > other`; false where one is NaN.
    #[inline(always)]
    fn more(self, other: Self) -> Self::Mask {
        other.less(self)
    }
    /// `self >= other`; false where one is NaN.
    #[inline(always)]
    fn at_least(self, other: Self) -> Self::Mask {
        other.at_most(self)
    }
}

/// The bits of a float as an unsigned integer; arithmetic wraps, and signed numbers are in two's complement.
pub trait Bits:
    Lane + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    /// A constant; its low bits if the type is narrower.
    fn word(value: u64) -> Self;
    /// Wrapping sum.
    fn plus(self, other: Self) -> Self;
    /// Wrapping difference.
    fn minus(self, other: Self) -> Self;
    /// Wrapping product.
    fn times(self, other: Self) -> Self;
    /// The high half of the product.
    fn times_high(self, other: Self) -> Self;
    /// Shifted left by a constant below the width.
    fn shift_left(self, count: u32) -> Self;
    /// Shifted right by a constant below the width; zeros are shifted in.
    fn shift_right(self, count: u32) -> Self;
    /// Shifted right by a constant below the width; the sign is shifted in.
    fn shift_right_signed(self, count: u32) -> Self;
    /// Shifted left by a count per lane, below the width.
    fn shift_left_by(self, count: Self) -> Self;
    /// Shifted right by a count per lane, below the width.
    fn shift_right_by(self, count: Self) -> Self;
    /// The table's word at `index`, which is below its length.
    fn pick(table: &'static [u64], index: Self) -> Self;
}

/// Polynomial coefficients for f32 and for f64, constant term first.
pub struct Poly {
    /// Coefficients for 24 bits; every number is exactly an f32.
    pub narrow: &'static [f64],
    /// Coefficients for 53 bits.
    pub wide: &'static [f64],
}

/// f32 or f64 in each lane.
pub trait Float:
    Lane + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The float's bits.
    type Bits: Bits<Mask = Self::Mask>;
    /// Whether it is f64.
    const WIDE: bool;
    /// Explicit bits of the mantissa: 23 or 52.
    const MANTISSA: u32 = if Self::WIDE { 52 } else { 23 };
    /// The exponent's bias: 127 or 1023.
    const BIAS: u64 = if Self::WIDE { 1023 } else { 127 };

    /// A finite, normal constant or zero, rounded to the type.
    fn lit(value: f64) -> Self;
    /// The float with these bits.
    fn from_bits(bits: Self::Bits) -> Self;
    /// Its bits.
    fn to_bits(self) -> Self::Bits;
    /// The absolute value.
    fn magnitude(self) -> Self;
    /// The greatest integer that is not above the number.
    fn round_down(self) -> Self;
    /// The least integer that is not below the number.
    fn round_up(self) -> Self;
    /// The integer next to zero.
    fn truncated(self) -> Self;
    /// The square root.
    fn root(self) -> Self;
    /// The nearest integer of a number below 2^22 (f32) or 2^51 (f64); ties may be rounded either way.
    fn nearest_small(self) -> Self;
    /// An integral number below 2^22 or 2^51, in two's complement.
    fn small_to_bits(self) -> Self::Bits;
    /// The float of a two's complement integer below 2^22 or 2^51.
    fn small_from_bits(bits: Self::Bits) -> Self;
    /// The low bits, in two's complement, of an integral number below 2^21 or 2^50 plus an integral constant as small.
    /// The bits above the lowest 22 or 51 may have any value, so callers shift the result to the place where only the
    /// low bits count. This costs one addition and no conversion, which is slow on GPUs.
    fn low_bits_plus(self, more: f64) -> Self::Bits;
    /// The lesser of two numbers; any value if one is NaN.
    fn lesser(self, other: Self) -> Self;
    /// Whether the number's magnitude exceeds a positive constant, or the number is NaN.
    fn is_beyond(self, limit: f64) -> Self::Mask;
    /// Whether it is NaN.
    fn is_nan(self) -> Self::Mask;
    /// Whether it is an infinity.
    fn is_infinite(self) -> Self::Mask;
    /// Infinity.
    fn infinity() -> Self;
    /// A quiet NaN.
    fn nan() -> Self;
    /// The exact remainder of the division truncated toward zero, for finite numbers and a divisor that is not zero. It
    /// takes long, and is rarely needed.
    fn exact_remainder(self, divisor: Self) -> Self;
    /// `self` with the sign of `sign`.
    fn with_sign_of(self, sign: Self) -> Self;

    /// The number itself, which must have the sign of `sign`. A shader's compiler does not know that, and so it cannot
    /// replace `(a + b) - a` by `b` (SEM-2).
    fn pinned(self, sign: impl FnOnce() -> Self) -> Self;

    /// `self - factor * constant`. A constant that is subtracted in parts, of which the first multiplies exactly, stays
    /// in parts. A shader's compiler that adds the parts up again would lose this exactness (SEM-2).
    fn less_part(self, factor: Self, constant: Self) -> Self;

    /// One of two constants by the type's width.
    #[inline(always)]
    fn lit2(narrow: f64, wide: f64) -> Self {
        Self::lit(if Self::WIDE { wide } else { narrow })
    }

    /// The number without the low half of its mantissa, so that products of such numbers are exact (SEM-2).
    #[inline(always)]
    fn high_half(self) -> Self {
        let mask = if Self::WIDE { !0x7ff_ffffu64 } else { 0xffff_f000 };
        Self::from_bits(self.to_bits() & Self::Bits::word(mask))
    }
}

/// A MATLAB integer class in each lane. Arithmetic saturates where the name says so.
pub trait Whole: Lane {
    /// Whether it has negative numbers.
    const SIGNED: bool;
    /// A constant in range.
    fn whole(value: i64) -> Self;
    /// The least number.
    fn least() -> Self;
    /// The greatest number.
    fn greatest() -> Self;
    /// Wrapping sum.
    fn plus(self, other: Self) -> Self;
    /// Wrapping difference.
    fn minus(self, other: Self) -> Self;
    /// Wrapping product.
    fn times(self, other: Self) -> Self;
    /// The product, saturated.
    fn times_saturating(self, other: Self) -> Self;
    /// The quotient toward zero; the divisor is neither 0 nor -1.
    fn quotient(self, divisor: Self) -> Self;
    /// Whether bit `n` is set.
    fn has_bit(self, n: u32) -> Self::Mask;
}

/// The polynomial at `x`, by Horner's rule.
#[inline(always)]
pub fn horner<F: Float>(x: F, poly: &'static Poly) -> F {
    let coefficients = if F::WIDE { poly.wide } else { poly.narrow };
    let mut at = coefficients.len() - 1;
    let mut sum = F::lit(coefficients[at]);
    while at > 0 {
        at -= 1;
        sum = sum * x + F::lit(coefficients[at]);
    }
    sum
}

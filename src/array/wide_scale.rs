//! Exact products and quotients of `i64` and a number that is none, as ops on `i64`, which fuse to one kernel.
//!
//! In: an `i64` array and an f64 that is known when the op is recorded. Out: the exact result, rounded half away from zero
//! and saturated. A number with a fraction is `±mantissa / 2^shift`, its mantissa odd and below 2^53. Must hold: WIDE-1.

use super::handle::Array;
use super::operand::Operand;
use super::record::{apply, cast_in};
use super::wide::{LIMIT, Wide};
use crate::graph::{DType, ElementOp};

/// Bits of a limb: sums of a few products of two limbs fit an `i64`.
const LIMB: u32 = 27;
/// From this shift on, a product is less than a half, and a quotient beyond `i64`: an `i64` has 63 bits, a mantissa 53.
const SHIFT_MAX: u32 = 117;
/// Bits that a quotient gains in a step: a remainder below 2^53 times 2 to this fits an `i64`.
pub(super) const STEP: u32 = 10;

/// The magnitude of a number with a fraction as `mantissa / 2^shift`.
pub(super) fn parts(number: f64) -> (i64, u32) {
    let bits = number.to_bits();
    let (field, fraction) = ((bits >> 52 & 0x7ff) as u32, (bits & ((1 << 52) - 1)) as i64);
    let (mantissa, shift) = if field == 0 { (fraction, 1074) } else { (fraction | 1 << 52, 1075 - field) };
    let spare = mantissa.trailing_zeros();
    (mantissa >> spare, shift - spare)
}

pub(super) fn has_fraction(number: f64) -> bool {
    number.is_finite() && number.trunc() != number
}

impl Wide<'_> {
    /// `x * number`.
    pub(super) fn times(&self, number: f64) -> Array {
        if !has_fraction(number) {
            return self.far(number);
        }
        let (mantissa, shift) = parts(number);
        if shift >= SHIFT_MAX {
            return self.everywhere(0);
        }
        let signed = |limb: i64| if number < 0.0 { -limb } else { limb };
        let (m0, m1) = (signed(mantissa % (1 << LIMB)), signed(mantissa >> LIMB));
        // Half of what is rounded away is added, and below zero one unit less: ties go away from zero.
        let half = |limb: u32| match ((shift - 1) / LIMB).min(3) == limb {
            true => 1i64 << (shift - 1 - limb * LIMB),
            false => 0,
        };
        let is_below = if number < 0.0 { ElementOp::Gt } else { ElementOp::Lt };
        let below = self.counted(&self.op(is_below, self.x, 0));
        let (x0, rest) = self.split(self.x);
        let (x1, x2) = self.split(&rest);
        let p0 = self.op(ElementOp::Sub, self.plus_product(half(0), &x0, m0), &below);
        let (d0, carry) = self.split(&p0);
        let p1 = self.op(ElementOp::Add, self.plus_product(half(1), &x0, m1), self.product(&x1, m0));
        let (d1, carry) = self.split(&self.op(ElementOp::Add, p1, carry));
        let p2 = self.op(ElementOp::Add, self.plus_product(half(2), &x1, m1), self.product(&x2, m0));
        let (d2, carry) = self.split(&self.op(ElementOp::Add, p2, carry));
        let d3 = self.op(ElementOp::Add, self.plus_product(half(3), &x2, m1), carry);
        // The sum is high * 2^54 + low, and low is not negative.
        let high = self.op(ElementOp::Add, self.product(&d3, 1 << LIMB), d2);
        if shift >= 2 * LIMB {
            return self.shifted(&high, shift - 2 * LIMB);
        }
        let low = self.op(ElementOp::Add, self.product(&d1, 1 << LIMB), d0);
        let total = self.product(&high, 1 << (2 * LIMB - shift));
        let total = self.op(ElementOp::Add, total, self.shifted(&low, shift));
        let below = self.op(ElementOp::Lt, &high, -(1i64 << (63 + shift - 2 * LIMB)));
        self.select(&below, i64::MIN, &total)
    }

    /// `x / number`.
    pub(super) fn over(&self, number: f64) -> Array {
        let positive = number > 0.0;
        if !has_fraction(number) {
            return self.over_large(number);
        }
        let (mantissa, shift) = parts(number);
        if shift >= SHIFT_MAX {
            return self.far(number.signum() * f64::INFINITY);
        }
        // Long division of x * 2^shift, rounded down; the remainder stays in 0..mantissa.
        let rest = self.op(ElementOp::Rem, self.x, mantissa);
        let quotient = self.op(ElementOp::Div, self.op(ElementOp::Sub, self.x, &rest), mantissa);
        let below = self.counted(&self.op(ElementOp::Lt, &rest, 0));
        let mut quotient = self.op(ElementOp::Sub, quotient, &below);
        let mut rest = self.op(ElementOp::Add, rest, self.product(&below, mantissa));
        let mut left = shift;
        while left > 0 {
            let step = left.min(STEP);
            left -= step;
            let dividend = self.product(&rest, 1 << step);
            rest = self.op(ElementOp::Mod, &dividend, mantissa);
            let digits = self.op(ElementOp::Div, self.op(ElementOp::Sub, dividend, &rest), mantissa);
            quotient = self.op(ElementOp::Add, self.product(&quotient, 1 << step), digits);
        }
        // An odd mantissa leaves no ties. What is less than the least i64 has lost its digits on the way.
        let twice = self.product(&rest, 2);
        let limit = number.abs() * LIMIT;
        let far_below = self.compared(ElementOp::Lt, -limit);
        if positive {
            let up = self.counted(&self.op(ElementOp::Gt, twice, mantissa));
            let rounded = self.op(ElementOp::Add, quotient, up);
            return self.select(&far_below, i64::MIN, &rounded);
        }
        // -q - 1 is an i64 for every q that is one.
        let down = self.counted(&self.op(ElementOp::Lt, twice, mantissa));
        let rounded = self.op(ElementOp::Add, self.op(ElementOp::Sub, -1, quotient), down);
        let rounded = self.select(&far_below, i64::MAX, &rounded);
        self.select(&self.compared(ElementOp::Ge, limit), i64::MIN, &rounded)
    }

    /// `number / x`, where that is exact in `i64`: whole numbers beyond it are not here.
    pub(super) fn under(&self, number: f64) -> Option<Array> {
        let zero = |by: &Wide<'_>| by.op(ElementOp::Eq, by.x, 0);
        let far = if number > 0.0 { i64::MAX } else { i64::MIN };
        if number.is_nan() {
            return Some(self.everywhere(0));
        }
        if number.is_infinite() {
            let negative = self.op(ElementOp::Lt, self.x, 0);
            return Some(self.select(
                &negative,
                if far == i64::MAX { i64::MIN } else { i64::MAX },
                &self.everywhere(far),
            ));
        }
        if !has_fraction(number) {
            return None;
        }
        let magnitude = number.abs();
        let (whole, half) = (magnitude.trunc() as i64, (magnitude.fract() * 2.0) as i64);
        let divisor = apply(ElementOp::Abs, &mut [self.x.into()], self.at);
        let rest = self.op(ElementOp::Rem, whole, &divisor);
        let quotient = self.op(ElementOp::Div, self.op(ElementOp::Sub, whole, &rest), &divisor);
        let twice = self.op(ElementOp::Add, self.product(&rest, 2), half);
        let up = self.counted(&self.op(ElementOp::Ge, twice, &divisor));
        let sign = apply(ElementOp::Sign, &mut [self.x.into()], self.at);
        let signed = self.op(ElementOp::Mul, sign, if number > 0.0 { 1 } else { -1 });
        let result = self.op(ElementOp::Mul, self.op(ElementOp::Add, quotient, up), signed);
        Some(self.select(&zero(self), far, &result))
    }

    /// `x * number` for a number beyond `i64`: the greatest or the least, and 0 of 0.
    fn far(&self, number: f64) -> Array {
        if number.is_nan() {
            return self.everywhere(0);
        }
        let sign = if number > 0.0 { i64::MAX } else { -i64::MAX };
        self.op(ElementOp::Mul, self.with(ElementOp::Mul, i64::MAX), sign)
    }

    /// `x / number` for a number beyond `i64`: at most 1.
    fn over_large(&self, number: f64) -> Array {
        let half = number.abs() / 2.0;
        let one = if number > 0.0 { 1 } else { -1 };
        // Also NaN.
        if half.is_nan() || half > LIMIT {
            return self.everywhere(0);
        }
        let below = self.compared(ElementOp::Le, -half);
        let above = self.compared(ElementOp::Ge, half);
        self.select(&above, one, &self.select(&below, -one, &self.everywhere(0)))
    }

    pub(super) fn op<'b>(&self, op: ElementOp, a: impl Into<Operand<'b>>, b: impl Into<Operand<'b>>) -> Array {
        apply(op, &mut [a.into(), b.into()], self.at)
    }

    pub(super) fn product(&self, a: &Array, by: i64) -> Array {
        self.op(ElementOp::Mul, a, by)
    }

    fn plus_product(&self, first: i64, a: &Array, by: i64) -> Array {
        self.op(ElementOp::Add, self.product(a, by), first)
    }

    pub(super) fn select(&self, mask: &Array, yes: i64, no: &Array) -> Array {
        apply(ElementOp::Select, &mut [mask.into(), yes.into(), no.into()], self.at)
    }

    /// 1 where a condition holds, else 0.
    fn counted(&self, mask: &Array) -> Array {
        cast_in(&mask.0.home, mask, DType::I64, self.at)
    }

    /// The lowest limb, which is not negative, and the rest.
    fn split(&self, a: &Array) -> (Array, Array) {
        (self.op(ElementOp::Mod, a, 1i64 << LIMB), self.shifted(a, LIMB))
    }

    /// `a / 2^by`, rounded down.
    fn shifted(&self, a: &Array, by: u32) -> Array {
        if by == 0 {
            return a.clone();
        }
        let unit = 1i64 << by;
        let rest = self.op(ElementOp::Mod, a, unit);
        self.op(ElementOp::Div, self.op(ElementOp::Sub, a, rest), unit)
    }
}

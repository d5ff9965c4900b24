//! MATLAB's integer classes: sums and products saturate, quotients round half away from zero.

use super::lanes::{Mask, Whole};

#[inline(always)]
fn negative<I: Whole>(a: I) -> I::Mask {
    if I::SIGNED { a.less(I::whole(0)) } else { I::Mask::all(false) }
}

/// `a` itself: rounding does not change an integer.
#[inline(always)]
pub fn same<I: Whole>(a: I) -> I {
    a
}

/// `-a`, saturated.
#[inline(always)]
pub fn neg<I: Whole>(a: I) -> I {
    if !I::SIGNED {
        return I::whole(0);
    }
    I::select(a.same(I::least()), I::greatest(), I::whole(0).minus(a))
}

/// `|a|`, saturated.
#[inline(always)]
pub fn abs<I: Whole>(a: I) -> I {
    if I::SIGNED { I::select(negative(a), neg(a), a) } else { a }
}

/// -1, 0 or 1.
#[inline(always)]
pub fn sign<I: Whole>(a: I) -> I {
    let positive = I::select(a.same(I::whole(0)), a, I::whole(1));
    if I::SIGNED { I::select(negative(a), I::whole(-1), positive) } else { positive }
}

/// `a * a`, saturated.
#[inline(always)]
pub fn square<I: Whole>(a: I) -> I {
    a.times_saturating(a)
}

/// `1 / a`, rounded half away from zero.
#[inline(always)]
pub fn reciprocal<I: Whole>(a: I) -> I {
    div(I::whole(1), a)
}

/// `a + b`, saturated.
#[inline(always)]
pub fn add<I: Whole>(a: I, b: I) -> I {
    let sum = a.plus(b);
    if I::SIGNED {
        // It wrapped if the sum went down although b is not negative, or the other way round.
        let wrapped = sum.less(a) ^ negative(b);
        I::select(wrapped, I::select(negative(b), I::least(), I::greatest()), sum)
    } else {
        I::select(sum.less(a), I::greatest(), sum)
    }
}

/// `a - b`, saturated.
#[inline(always)]
pub fn sub<I: Whole>(a: I, b: I) -> I {
    let difference = a.minus(b);
    if I::SIGNED {
        let wrapped = a.less(difference) ^ negative(b);
        I::select(wrapped, I::select(negative(b), I::greatest(), I::least()), difference)
    } else {
        I::select(a.less(b), I::whole(0), difference)
    }
}

/// `a * b`, saturated.
#[inline(always)]
pub fn mul<I: Whole>(a: I, b: I) -> I {
    a.times_saturating(b)
}

/// A divisor that [`Whole::quotient`] accepts: 2 in place of 0 and -1, which callers treat separately.
#[inline(always)]
fn plain_divisor<I: Whole>(b: I) -> I {
    let odd = b.same(I::whole(0));
    let odd = if I::SIGNED { odd | b.same(I::whole(-1)) } else { odd };
    I::select(odd, I::whole(2), b)
}

/// `a / b`, rounded half away from zero; `x / 0` saturates by the sign of `x`, `0 / 0` is 0.
#[inline(always)]
pub fn div<I: Whole>(a: I, b: I) -> I {
    let zero = I::whole(0);
    let divisor = plain_divisor(b);
    let quotient = a.quotient(divisor);
    let rest = a.minus(quotient.times(divisor));
    let rounded = if I::SIGNED {
        // Both are compared as negative numbers, because their magnitude may overflow.
        let rest_below = I::select(negative(rest), rest, zero.minus(rest));
        let divisor_below = I::select(negative(divisor), divisor, zero.minus(divisor));
        let away = rest_below.at_most(divisor_below.minus(rest_below));
        let step = I::select(negative(a) ^ negative(divisor), I::whole(-1), I::whole(1));
        I::select(away, quotient.plus(step), quotient)
    } else {
        I::select(rest.at_least(divisor.minus(rest)), quotient.plus(I::whole(1)), quotient)
    };
    let saturated = I::select(a.same(zero), zero, I::select(negative(a), I::least(), I::greatest()));
    let result = I::select(b.same(zero), saturated, rounded);
    if I::SIGNED { I::select(b.same(I::whole(-1)), neg(a), result) } else { result }
}

#[inline(always)]
fn plain_remainder<I: Whole>(a: I, b: I) -> I {
    let divisor = plain_divisor(b);
    let rest = a.minus(a.quotient(divisor).times(divisor));
    if I::SIGNED { I::select(b.same(I::whole(-1)), I::whole(0), rest) } else { rest }
}

/// The remainder with the dividend's sign; 0 where `b` is 0.
#[inline(always)]
pub fn rem<I: Whole>(a: I, b: I) -> I {
    I::select(b.same(I::whole(0)), I::whole(0), plain_remainder(a, b))
}

/// The remainder with the divisor's sign; `a` where `b` is 0.
#[inline(always)]
pub fn modulo<I: Whole>(a: I, b: I) -> I {
    let rest = plain_remainder(a, b);
    let moved = if I::SIGNED {
        let other_side = negative(rest) ^ negative(b);
        I::select(rest.same(I::whole(0)), rest, I::select(other_side, rest.plus(b), rest))
    } else {
        rest
    };
    I::select(b.same(I::whole(0)), a, moved)
}

/// The lesser.
#[inline(always)]
pub fn min<I: Whole>(a: I, b: I) -> I {
    I::select(b.less(a), b, a)
}

/// The greater.
#[inline(always)]
pub fn max<I: Whole>(a: I, b: I) -> I {
    I::select(a.less(b), b, a)
}

/// `x` no less than `low` and no greater than `high`.
#[inline(always)]
pub fn clamp<I: Whole>(x: I, low: I, high: I) -> I {
    min(max(x, low), high)
}

/// `a` to the power `n`, saturated; a negative `n` gives the rounded reciprocal.
#[inline(always)]
pub fn pow<I: Whole>(a: I, n: I) -> I {
    let one = I::whole(1);
    let zero = I::whole(0);
    // From an exponent of 64 on only the parity matters: every product has saturated, or |a| is at most 1.
    let parity = I::select(n.has_bit(0), one, zero);
    let exponent = I::select(n.less(I::whole(64)), n, I::whole(64).plus(parity));
    let mut result = one;
    let mut factor = a;
    for bit in 0..7 {
        result = I::select(exponent.has_bit(bit), result.times_saturating(factor), result);
        if bit < 6 {
            factor = factor.times_saturating(factor);
        }
    }
    if !I::SIGNED {
        return result;
    }
    // 1 / a^|n|: for |a| = 1 it is the sign by parity, for 0 it saturates, for 2 and -2 it rounds at n = -1.
    let unit = I::select(negative(a) & !n.has_bit(0), one, a);
    let half = I::select(n.same(I::whole(-1)), sign(a), zero);
    let two = a.same(I::whole(2)) | a.same(I::whole(-2));
    let beyond = I::select(two, half, zero);
    let magnitude_one = a.same(one) | a.same(I::whole(-1));
    let inverse = I::select(a.same(zero), I::greatest(), I::select(magnitude_one, unit, beyond));
    I::select(negative(n), inverse, result)
}

/// False: the result of `isnan` and `isinf` for integers.
#[inline(always)]
pub fn never<I: Whole>(a: I) -> I::Mask {
    a.less(a)
}

/// True: the result of `isfinite` for integers.
#[inline(always)]
pub fn always<I: Whole>(a: I) -> I::Mask {
    a.same(a)
}

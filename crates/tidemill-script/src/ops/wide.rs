//! Arithmetic of the 64-bit integer classes. It is exact, even beside floats. The result is rounded once, half away
//! from zero, and saturated.

use crate::syntax::ast::BinaryOp;

/// Returns an exact result between integers. Quotients are rounded half away from zero, and `x / 0` lies beyond every
/// class.
pub(crate) fn integers(op: BinaryOp, a: i128, b: i128) -> i128 {
    match op {
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a.saturating_mul(b),
        BinaryOp::Div => quotient(a, b),
        BinaryOp::LeftDiv => quotient(b, a),
        _ => a + b,
    }
}

/// `a / b`, rounded half away from zero.
pub(crate) fn quotient(a: i128, b: i128) -> i128 {
    if b == 0 {
        return a.signum() * (1 << 100);
    }
    let (q, r) = (a / b, a % b);
    if 2 * r.abs() >= b.abs() { q + a.signum() * b.signum() } else { q }
}

/// Returns `a` to the power `n`, saturated. A negative `n` gives 0, except for 1 and -1.
pub(crate) fn power(a: i128, n: i128) -> i128 {
    const FAR: i128 = 1 << 100;
    if n < 0 {
        return match a {
            1 => 1,
            -1 => 1 - 2 * (n % 2).abs(),
            _ => 0,
        };
    }
    let (mut result, mut factor, mut left) = (1i128, a, n);
    while left > 0 {
        if left % 2 == 1 {
            result = result.saturating_mul(factor).clamp(-FAR, FAR);
        }
        factor = factor.saturating_mul(factor).clamp(-FAR, FAR);
        left /= 2;
    }
    result
}

/// A number with more bits than any 64-bit integer and double have together: `mantissa * 2^exponent`. It is truncated
/// towards zero, so the final rounding is right.
#[derive(Clone, Copy, Debug)]
enum Exact {
    Finite { negative: bool, mantissa: u128, exponent: i32 },
    Infinite { negative: bool },
    Nan,
}

use Exact::{Finite, Infinite, Nan};

impl Exact {
    /// Normalises the number so that the mantissa's second-highest bit is set, which keeps one bit free for sums.
    fn finite(negative: bool, mantissa: u128, exponent: i32) -> Exact {
        if mantissa == 0 {
            return Finite { negative, mantissa: 0, exponent: 0 };
        }
        let shift = mantissa.leading_zeros() as i32 - 1;
        let mantissa = if shift < 0 { mantissa >> 1 } else { mantissa << shift };
        Finite { negative, mantissa, exponent: exponent - shift }
    }

    fn of_integer(x: i128) -> Exact {
        Exact::finite(x < 0, x.unsigned_abs(), 0)
    }

    fn of_float(x: f64) -> Exact {
        let negative = x.is_sign_negative();
        if x.is_nan() {
            return Nan;
        }
        if x.is_infinite() {
            return Infinite { negative };
        }
        let bits = x.to_bits();
        let (field, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        let (mantissa, exponent) = if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
        Exact::finite(negative, mantissa as u128, exponent)
    }

    fn negated(self) -> Exact {
        match self {
            Finite { negative, mantissa, exponent } => Finite { negative: !negative, mantissa, exponent },
            Infinite { negative } => Infinite { negative: !negative },
            Nan => Nan,
        }
    }

    fn plus(self, other: Exact) -> Exact {
        let (a, b) = match (self, other) {
            (Nan, _) | (_, Nan) => return Nan,
            (Infinite { negative: a }, Infinite { negative: b }) if a != b => return Nan,
            (Infinite { .. }, _) => return self,
            (_, Infinite { .. }) => return other,
            (Finite { mantissa: 0, .. }, _) => return other,
            (_, Finite { mantissa: 0, .. }) => return self,
            (Finite { negative: p, mantissa: m, exponent: e }, Finite { negative: q, mantissa: n, exponent: f }) => {
                if e >= f { ((p, m, e), (q, n, f)) } else { ((q, n, f), (p, m, e)) }
            }
        };
        let distance = (a.2 - b.2) as u32;
        let lesser = b.1.checked_shr(distance).unwrap_or(0);
        if a.0 == b.0 {
            return Exact::finite(a.0, a.1 + lesser, a.2);
        }
        // The truncated bits count as one more unit to subtract.
        let lost = (distance >= 128 || lesser << distance != b.1) as u128;
        if a.1 >= lesser + lost {
            Exact::finite(a.0, a.1 - lesser - lost, a.2)
        } else {
            Exact::finite(b.0, lesser - a.1, a.2)
        }
    }

    fn times(self, other: Exact) -> Exact {
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Finite { negative: p, mantissa: m, exponent: e }, Finite { negative: q, mantissa: n, exponent: f }) => {
                // Factors have at most 64 bits, so the low halves of the mantissas are zero.
                Exact::finite(p != q, (m >> 63) * (n >> 63), e + f + 126)
            }
            (Finite { mantissa: 0, .. }, _) | (_, Finite { mantissa: 0, .. }) => Nan,
            _ => Infinite { negative: self.is_negative() != other.is_negative() },
        }
    }

    fn over(self, other: Exact) -> Exact {
        let negative = self.is_negative() != other.is_negative();
        match (self, other) {
            (Nan, _) | (_, Nan) | (Infinite { .. }, Infinite { .. }) => Nan,
            (Finite { mantissa: 0, .. }, Finite { mantissa: 0, .. }) => Nan,
            (Infinite { .. }, _) | (_, Finite { mantissa: 0, .. }) => Infinite { negative },
            (_, Infinite { .. }) => Finite { negative, mantissa: 0, exponent: 0 },
            (Finite { mantissa: m, exponent: e, .. }, Finite { mantissa: n, exponent: f, .. }) => {
                let n = n >> 63;
                let (first, rest) = (m / n, m % n);
                Exact::finite(negative, (first << 60) | ((rest << 60) / n), e - f - 63 - 60)
            }
        }
    }

    fn is_negative(self) -> bool {
        matches!(self, Finite { negative: true, .. } | Infinite { negative: true })
    }

    /// Returns the nearest integer, rounded half away from zero: for infinity one far beyond every class, and 0 for
    /// NaN.
    fn whole(self) -> i128 {
        const FAR: i128 = 1 << 100;
        let (negative, magnitude) = match self {
            Nan => return 0,
            Infinite { negative } => (negative, FAR),
            Finite { negative, mantissa: 0, .. } => (negative, 0),
            Finite { negative, mantissa, exponent } => match exponent {
                -60.. => (negative, FAR),
                -127..=-61 => (negative, ((mantissa + (1 << (-exponent - 1))) >> -exponent) as i128),
                _ => (negative, 0),
            },
        };
        if negative { -magnitude } else { magnitude }
    }
}

/// Computes with an integer and a float, in this order, or in the other if `swapped`.
pub(crate) fn with_float(op: BinaryOp, a: i128, b: f64, swapped: bool) -> i128 {
    // If the float is an integer, too, integer arithmetic suffices, except for zero, which has a sign.
    let whole = b as i64;
    if whole as f64 == b && whole != 0 && whole != i64::MAX {
        return if swapped { integers(op, whole.into(), a) } else { integers(op, a, whole.into()) };
    }
    let (x, y) = (Exact::of_integer(a), Exact::of_float(b));
    let (x, y) = if swapped { (y, x) } else { (x, y) };
    match op {
        BinaryOp::Sub => x.plus(y.negated()),
        BinaryOp::Mul => x.times(y),
        BinaryOp::Div => x.over(y),
        BinaryOp::LeftDiv => y.over(x),
        _ => x.plus(y),
    }
    .whole()
}

/// Compares an integer with a float exactly; `None` if the float is NaN.
pub(crate) fn compare(a: i128, b: f64) -> Option<std::cmp::Ordering> {
    if b.is_nan() {
        return None;
    }
    // Beyond 2^100 the conversion saturates, or keeps the order. Below that, floor is exact.
    let below = b.floor();
    let whole = below as i128;
    Some(a.cmp(&whole).then(if b > below { std::cmp::Ordering::Less } else { std::cmp::Ordering::Equal }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use BinaryOp::*;

    fn int64(x: i128) -> i64 {
        x.clamp(i64::MIN as i128, i64::MAX as i128) as i64
    }
    fn uint64(x: i128) -> u64 {
        x.clamp(0, u64::MAX as i128) as u64
    }

    #[test]
    fn integers_beside_doubles_are_computed_exactly() {
        const N: i128 = 9007199254740993;
        const MAX: i128 = i64::MAX as i128;
        assert_eq!(int64(with_float(Add, N, 0.0, false)), 9007199254740993);
        assert_eq!(int64(with_float(Add, N, 0.5, false)), 9007199254740994);
        assert_eq!(int64(with_float(Mul, N, 2.5, false)), 22517998136852483);
        assert_eq!(int64(with_float(Mul, MAX, 0.5, false)), 4611686018427387904);
        assert_eq!(int64(with_float(Div, MAX, 2.0, false)), 4611686018427387904);
        assert_eq!(int64(with_float(Div, MAX, 3.0, false)), 3074457345618258602);
        assert_eq!(int64(with_float(Sub, MAX, 1e10, false)), 9223372026854775807);
        assert_eq!(uint64(with_float(Sub, u64::MAX as i128, 1e3, false)), 18446744073709550615);
        assert_eq!(uint64(with_float(Mul, u64::MAX as i128, 0.1, false)), 1844674407370955264);
        assert_eq!(uint64(with_float(Div, u64::MAX as i128, 7.5, false)), 2459565876494606882);
        assert_eq!(uint64(with_float(Sub, 5, 1e19, true)), 9999999999999999995);
        assert_eq!(uint64(with_float(Sub, 5, 1e19, false)), 0);
        assert_eq!(int64(with_float(Sub, 5, 1e19, false)), i64::MIN);
        assert_eq!(int64(with_float(Div, 3, 1e19, true)), 3333333333333333333);
        assert_eq!(int64(with_float(Mul, N, 0.1, false)), 900719925474099);
        assert_eq!(int64(with_float(Add, 4611686018427387905, 0.4999999999, false)), 4611686018427387905);
        assert_eq!(int64(with_float(Div, 7, -0.0, false)), i64::MIN);
        assert_eq!(int64(with_float(Mul, 7, f64::NAN, false)), 0);
        assert_eq!(int64(integers(Div, i64::MIN as i128, -1)), i64::MAX);
        assert_eq!(int64(integers(Div, -7, 2)), -4);
    }

    #[test]
    fn comparisons_with_floats_are_exact() {
        use std::cmp::Ordering::*;
        assert_eq!(compare(9007199254740993, 9007199254740992.0), Some(Greater));
        assert_eq!(compare(i64::MAX as i128, 9223372036854775807.0), Some(Less));
        assert_eq!(compare(-3, -2.5), Some(Less));
        assert_eq!(compare(-2, -2.5), Some(Greater));
        assert_eq!(compare(2, f64::INFINITY), Some(Less));
        assert_eq!(compare(2, f64::NAN), None);
    }
}

//! `i64` beside f64: exact, although neither type holds the other.
//!
//! In: an elementwise op on an `i64` array and f64. Out: ops whose result is that of exact arithmetic, rounded half
//! away from zero and saturated; comparisons compare the exact numbers. Must hold: WIDE-1 (`graph::wide`).
//!
//! An op beside a known number is recorded unchanged, and computed as `graph::wide` says. This file records bounds and
//! choices, which round the number first. `wide_unknown.rs` records ops beside f64 that is not known when the op is
//! recorded. If such a number turns out to have a fraction, its products, quotients, remainders and powers are computed
//! in f64.

use super::handle::Array;
use super::operand::{Kind, Operand};
use super::record::{At, apply, cast_in};
use crate::graph::wide::{self as exact, rounded};
use crate::graph::{DType, ElementOp, Scalar};

/// The result of `op`, if an exact result needs more than a cast of the number to `i64`.
pub(super) fn exactly(op: ElementOp, operands: &[Operand<'_>], at: At) -> Option<Array> {
    if op == ElementOp::Clamp {
        return clamped(operands, at);
    }
    if op == ElementOp::Select {
        return selected(operands, at);
    }
    let [a, b] = operands else { return None };
    let (x, other, reversed) = match (wide(a), wide(b)) {
        (Some(x), None) => (x, b, false),
        (None, Some(x)) => (x, a, true),
        _ => return None,
    };
    let pin = || operands.iter().filter_map(Operand::array).fold(None, |pin, a| pin.max(a.1));
    let Some(number) = known(other) else {
        return Some(Wide { x, at }.beside(op, other.array()?, reversed)?.pinned(pin()));
    };
    if matches!(op, ElementOp::Min | ElementOp::Max) {
        // The number may be rounded first, because rounding keeps the order. A NaN is no bound.
        let none = if op == ElementOp::Min { i64::MAX } else { i64::MIN };
        let bound = if number.is_nan() { none } else { rounded(number) };
        return Some(Wide { x, at }.with(op, bound).pinned(pin()));
    }
    // The op takes the number as it is. If the number came as an array, that may be pinned, and the result must be
    // pinned, too.
    let is_array = other.array().is_some();
    (is_array && exact::takes(op)).then(|| {
        let mut sides = if reversed { [number.into(), x.into()] } else { [x.into(), number.into()] };
        apply(op, &mut sides, at).pinned(pin())
    })
}

/// Records `select(mask, x, number)` and `select(mask, number, x)`. The number is rounded, as by an assignment to the
/// array.
fn selected(operands: &[Operand<'_>], at: At) -> Option<Array> {
    let [mask, yes, no] = operands else { return None };
    let whole = |operand: &Operand<'_>| known(operand).map(rounded);
    let mask = || mask.array();
    match (wide(yes), wide(no)) {
        (Some(x), None) => {
            let number = whole(no)?;
            Some(apply(ElementOp::Select, &mut [mask()?.into(), x.into(), number.into()], at))
        }
        (None, Some(x)) => {
            let number = whole(yes)?;
            Some(apply(ElementOp::Select, &mut [mask()?.into(), number.into(), x.into()], at))
        }
        _ => None,
    }
}

/// Whether the operand is an array of `i64`.
fn wide<'a>(operand: &'a Operand<'_>) -> Option<&'a Array> {
    operand.array().filter(|a| a.dtype().is_ok_and(|dtype| dtype == DType::I64))
}

/// The f64 (or f32) value of an operand that is known: a number, or an array of one element that is on no tape.
fn known(operand: &Operand<'_>) -> Option<f64> {
    let scalar = match &operand.0 {
        Kind::Number(scalar) => *scalar,
        _ => {
            let array = operand.array()?;
            array
                .0
                .host
                .as_ref()
                .filter(|data| data.len() == 1 && array.shape().is_ok_and(|s| s.is_scalar()))?
                .scalar(0)
        }
    };
    match scalar {
        Scalar::F64(number) => Some(number),
        Scalar::F32(number) => Some(number.into()),
        _ => None,
    }
}

fn clamped(operands: &[Operand<'_>], at: At) -> Option<Array> {
    let [x, low, high] = operands else { return None };
    let x = wide(x)?;
    let wide_x = Wide { x, at };
    // The bounds may be rounded first, because rounding keeps the order. A bound that is NaN is ignored.
    let mut is_float = false;
    let mut bound = |operand: &Operand<'_>, none: i64| -> Option<Operand<'static>> {
        if let Some(number) = known(operand) {
            is_float = true;
            return Some((if number.is_nan() { none } else { rounded(number) }).into());
        }
        let array = operand.array().filter(|array| array.dtype().is_ok_and(|dtype| dtype.is_float()))?;
        if !array.shape().is_ok_and(|shape| shape.is_scalar()) {
            return None;
        }
        is_float = true;
        let missing = apply(ElementOp::IsNan, &mut [array.into()], at);
        Some(wide_x.choose(&missing, none, &wide_x.whole(array)).into())
    };
    let bounds = (bound(low, i64::MIN), bound(high, i64::MAX));
    if !is_float {
        return None;
    }
    let low = bounds.0.unwrap_or_else(|| low.into());
    let high = bounds.1.unwrap_or_else(|| high.into());
    Some(apply(ElementOp::Clamp, &mut [x.into(), low, high], at))
}

/// Records ops on an `i64` array.
pub(super) struct Wide<'a> {
    pub(super) x: &'a Array,
    pub(super) at: At,
}

impl Wide<'_> {
    pub(super) fn with(&self, op: ElementOp, number: i64) -> Array {
        apply(op, &mut [self.x.into(), number.into()], self.at)
    }

    pub(super) fn op<'b>(&self, op: ElementOp, a: impl Into<Operand<'b>>, b: impl Into<Operand<'b>>) -> Array {
        apply(op, &mut [a.into(), b.into()], self.at)
    }
}

/// The exact sum of `i64` over dimensions, saturated once, at the end. The low and the high halves of all elements are
/// summed separately, so that neither the order nor saturation on the way matters. `sum` adds up `i64` without
/// overflow, for at most 2^31 elements.
pub(super) fn summed(x: &Array, at: At, sum: impl Fn(&Array) -> Array) -> Array {
    const HALF: i64 = 1 << 32;
    let op = |op: ElementOp, a: Operand<'_>, b: Operand<'_>| apply(op, &mut [a, b], at);
    let low = op(ElementOp::Mod, x.into(), HALF.into());
    let high = op(ElementOp::Div, op(ElementOp::Sub, x.into(), (&low).into()).into(), HALF.into());
    let (low, high) = (sum(&low), sum(&high));
    // The sum of the low halves is not negative. Its carry is added to the sum of the high halves.
    let rest = op(ElementOp::Mod, (&low).into(), HALF.into());
    let carried = op(ElementOp::Div, op(ElementOp::Sub, (&low).into(), (&rest).into()).into(), HALF.into());
    let high = op(ElementOp::Add, high.into(), carried.into());
    let total = op(ElementOp::Add, op(ElementOp::Mul, (&high).into(), HALF.into()).into(), rest.into());
    let below = op(ElementOp::Lt, (&high).into(), (-(1i64 << 31)).into());
    let result = apply(ElementOp::Select, &mut [below.into(), i64::MIN.into(), total.into()], at);
    cast_in(&x.0.home, &result, DType::I64, at)
}

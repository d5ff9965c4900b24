//! `i64` beside f64: exact, although neither type holds the other.
//!
//! In: an elementwise op on an `i64` array and a number of f64, or f64 to compare with. Out: ops whose result is that of
//! exact arithmetic, rounded half away from zero and saturated; comparisons are those of the numbers themselves. Must
//! hold: WIDE-1: no value of the `i64` array passes through f64, whose 53 bits would round it.
//!
//! Products and quotients are in `wide_scale.rs`, remainders in `wide_remainder.rs`, and what can be done beside f64 that is
//! not known when the op is recorded in `wide_unknown.rs`. Computed in f64 are powers with a fraction, quotients and
//! remainders of whole numbers beyond `i64`, and products, quotients, remainders and powers with a number that is not
//! known yet and turns out to be no whole one.

use super::handle::Array;
use super::operand::{Kind, Operand};
use super::record::{At, apply, cast_in};
use crate::graph::table::DTypeRule;
use crate::graph::{DType, ElementOp, Scalar};

/// One past the greatest `i64`.
pub(super) const LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// The result of `op`, where exactness needs more than casting the number to `i64`.
pub(super) fn exactly(op: ElementOp, operands: &[Operand<'_>], at: At) -> Option<Array> {
    if op == ElementOp::Clamp {
        return clamped(operands, at);
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
    let is_plain = matches!(op.info().rule, DTypeRule::Arithmetic | DTypeRule::Comparison);
    let x = Wide { x, at };
    let result = match op {
        _ if number.trunc() == number && (-LIMIT..LIMIT).contains(&number) => {
            let is_array = operands.iter().all(|operand| operand.array().is_some());
            // As a number, the op takes it as it is. The sign of a zero matters to a quotient.
            if !is_plain || !is_array || number.to_bits() == (-0.0f64).to_bits() {
                return None;
            }
            let whole = Operand::from(number as i64);
            let mut sides = if reversed { [whole, x.x.into()] } else { [x.x.into(), whole] };
            apply(op, &mut sides, at)
        }
        ElementOp::Eq | ElementOp::Ne | ElementOp::Lt | ElementOp::Le | ElementOp::Gt | ElementOp::Ge => {
            x.compared(if reversed { mirrored(op) } else { op }, number)
        }
        ElementOp::Add => x.plus(number),
        ElementOp::Sub if reversed => x.taken_from(number),
        ElementOp::Sub => x.plus(-number),
        ElementOp::Mul => x.times(number),
        ElementOp::Div if reversed => x.under(number)?,
        ElementOp::Div => x.over(number),
        ElementOp::Min | ElementOp::Max if number.is_nan() => x.x.clone(),
        ElementOp::Min | ElementOp::Max => x.with(op, rounded(number)),
        ElementOp::Mod | ElementOp::Rem if reversed => x.remainder_under(op, number)?,
        ElementOp::Mod | ElementOp::Rem => x.remainder(op, number),
        _ => return None,
    };
    // A number that came as an array may be pinned, and so is what is computed with it.
    Some(result.pinned(pin()))
}

/// Whether the operand is an array of `i64`.
fn wide<'a>(operand: &'a Operand<'_>) -> Option<&'a Array> {
    operand.array().filter(|a| a.dtype().is_ok_and(|dtype| dtype == DType::I64))
}

/// The f64 (or f32) that an operand is known to be: a number, or an array of one element that was never sent anywhere.
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

/// The comparison with its sides exchanged.
pub(super) fn mirrored(op: ElementOp) -> ElementOp {
    match op {
        ElementOp::Lt => ElementOp::Gt,
        ElementOp::Le => ElementOp::Ge,
        ElementOp::Gt => ElementOp::Lt,
        ElementOp::Ge => ElementOp::Le,
        other => other,
    }
}

/// Half away from zero, saturated.
pub(super) fn rounded(number: f64) -> i64 {
    number.round() as i64
}

fn clamped(operands: &[Operand<'_>], at: At) -> Option<Array> {
    let [x, low, high] = operands else { return None };
    let x = wide(x)?;
    let wide_x = Wide { x, at };
    // Rounding keeps the order, so it may come first; a bound that is NaN is none.
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
        Some(wide_x.select(&missing, none, &wide_x.whole(array)).into())
    };
    let bounds = (bound(low, i64::MIN), bound(high, i64::MAX));
    if !is_float {
        return None;
    }
    let low = bounds.0.unwrap_or_else(|| low.into());
    let high = bounds.1.unwrap_or_else(|| high.into());
    Some(apply(ElementOp::Clamp, &mut [x.into(), low, high], at))
}

/// An `i64` array on its way through ops on `i64`.
pub(super) struct Wide<'a> {
    pub(super) x: &'a Array,
    pub(super) at: At,
}

impl Wide<'_> {
    pub(super) fn with(&self, op: ElementOp, number: i64) -> Array {
        apply(op, &mut [self.x.into(), number.into()], self.at)
    }

    /// `x op number`, for a number that is no `i64`.
    pub(super) fn compared(&self, op: ElementOp, number: f64) -> Array {
        let always = || self.with(ElementOp::Ge, i64::MIN);
        let never = || self.with(ElementOp::Lt, i64::MIN);
        if number.is_nan() || op == ElementOp::Eq || op == ElementOp::Ne {
            return if op == ElementOp::Ne { always() } else { never() };
        }
        let below = matches!(op, ElementOp::Lt | ElementOp::Le);
        if !(-LIMIT..LIMIT).contains(&number) {
            return if below == (number > 0.0) { always() } else { never() };
        }
        // Between two whole numbers: less is at most the one, greater is at least the other.
        match below {
            true => self.with(ElementOp::Le, number.floor() as i64),
            false => self.with(ElementOp::Ge, number.ceil() as i64),
        }
    }

    /// `x + number`.
    pub(super) fn plus(&self, number: f64) -> Array {
        if number.is_nan() {
            return self.everywhere(0);
        }
        if number.abs() >= 2.0 * LIMIT {
            return self.everywhere(if number > 0.0 { i64::MAX } else { i64::MIN });
        }
        if number.abs() >= LIMIT {
            // Whole and even. A sum that saturates at the first half would at the second.
            let half = (number / 2.0) as i64;
            let sum = self.with(ElementOp::Add, half);
            return apply(ElementOp::Add, &mut [sum.into(), half.into()], self.at);
        }
        let whole = number.trunc();
        let sum = if whole == 0.0 { self.x.clone() } else { self.with(ElementOp::Add, whole as i64) };
        self.stepped(&sum, number - whole)
    }

    /// `number - x`.
    fn taken_from(&self, number: f64) -> Array {
        if number.is_nan() || number.abs() >= 2.0 * LIMIT {
            return self.plus(number);
        }
        if number.abs() >= LIMIT {
            let half = (number / 2.0) as i64;
            let rest = apply(ElementOp::Sub, &mut [half.into(), self.x.into()], self.at);
            return apply(ElementOp::Add, &mut [rest.into(), half.into()], self.at);
        }
        let whole = number.trunc();
        let rest = apply(ElementOp::Sub, &mut [(whole as i64).into(), self.x.into()], self.at);
        let result = self.stepped(&rest, number - whole);
        if whole != 0.0 || number > 0.0 {
            return result;
        }
        // Less than one below 2^63, which the rest could not hold.
        let least = self.with(ElementOp::Eq, i64::MIN);
        apply(ElementOp::Select, &mut [least.into(), i64::MAX.into(), result.into()], self.at)
    }

    /// `sum + fraction`, rounded half away from zero.
    fn stepped(&self, sum: &Array, fraction: f64) -> Array {
        let step = fraction.signum() as i64;
        let moved = || apply(ElementOp::Add, &mut [sum.into(), step.into()], self.at);
        match fraction.abs().partial_cmp(&0.5) {
            Some(std::cmp::Ordering::Greater) => moved(),
            // A tie goes away from zero: up from 0 on, or down from 0 on.
            Some(std::cmp::Ordering::Equal) => {
                let op = if step > 0 { ElementOp::Ge } else { ElementOp::Le };
                let away = apply(op, &mut [sum.into(), 0i64.into()], self.at);
                apply(ElementOp::Select, &mut [away.into(), moved().into(), sum.into()], self.at)
            }
            _ => sum.clone(),
        }
    }

    /// One number in the array's shape.
    pub(super) fn everywhere(&self, number: i64) -> Array {
        let zero = self.with(ElementOp::Mul, 0);
        apply(ElementOp::Add, &mut [zero.into(), number.into()], self.at)
    }
}

/// The exact sum of `i64` over dimensions, saturated once, at the end: the halves of all elements are summed apart, so
/// that neither the order nor what saturates on the way matters. `sum` adds up `i64` of which none is lost: 2^31
/// elements at most.
pub(super) fn summed(x: &Array, at: At, sum: impl Fn(&Array) -> Array) -> Array {
    const HALF: i64 = 1 << 32;
    let op = |op: ElementOp, a: Operand<'_>, b: Operand<'_>| apply(op, &mut [a, b], at);
    let low = op(ElementOp::Mod, x.into(), HALF.into());
    let high = op(ElementOp::Div, op(ElementOp::Sub, x.into(), (&low).into()).into(), HALF.into());
    let (low, high) = (sum(&low), sum(&high));
    // The low halves' sum is not negative: what it carries is added to the high one.
    let rest = op(ElementOp::Mod, (&low).into(), HALF.into());
    let carried = op(ElementOp::Div, op(ElementOp::Sub, (&low).into(), (&rest).into()).into(), HALF.into());
    let high = op(ElementOp::Add, high.into(), carried.into());
    let total = op(ElementOp::Add, op(ElementOp::Mul, (&high).into(), HALF.into()).into(), rest.into());
    let below = op(ElementOp::Lt, (&high).into(), (-(1i64 << 31)).into());
    let result = apply(ElementOp::Select, &mut [below.into(), i64::MIN.into(), total.into()], at);
    cast_in(&x.0.home, &result, DType::I64, at)
}

//! `i64` beside f64 whose value is not known yet: exact comparisons, sums, differences and bounds.
//!
//! In: an `i64` array and an array of f64 or f32, which has one element if the result is `i64`. Out: ops on f64 that
//! take the numbers apart and ops on `i64`, which fuse to one kernel. Must hold: WIDE-1 (`graph::wide`).

use super::handle::Array;
use super::operand::Operand;
use super::record::{apply, cast_in};
use super::wide::Wide;
use crate::graph::wide::{Beside, Comparison, LIMIT, beside};
use crate::graph::{DType, ElementOp};

impl Wide<'_> {
    /// The result of `op` beside `number`, or on its left if `reversed`; `None` if the op is computed in f64.
    pub(super) fn beside(&self, op: ElementOp, number: &Array, reversed: bool) -> Option<Array> {
        let dtype = number.dtype().ok().filter(|dtype| dtype.is_float())?;
        let how = beside(op);
        if !matches!(how, Beside::Compare(_)) && !number.shape().is_ok_and(|shape| shape.is_scalar()) {
            return None;
        }
        let number =
            if dtype == DType::F64 { number.clone() } else { cast_in(&self.x.0.home, number, DType::F64, self.at) };
        Some(match how {
            Beside::Compare(how) => self.compared_with(if reversed { how.mirrored() } else { how }, &number),
            Beside::Sum => self.sum_with(&number, false),
            Beside::Difference if reversed => self.sum_with(&number, true),
            Beside::Difference => self.sum_with(&self.one(ElementOp::Neg, &number), false),
            Beside::Extreme => {
                let bounded = self.op(op, self.x, self.whole(&number));
                self.choose(&self.one(ElementOp::IsNan, &number), self.x, &bounded)
            }
            Beside::Product | Beside::Quotient | Beside::Remainder | Beside::Power => {
                self.whole_or_float(op, &number, reversed)
            }
            Beside::Bounds | Beside::Choice | Beside::Apart => return None,
        })
    }

    /// The op on `i64` if the number is whole and `i64` holds it, else the op on f64.
    fn whole_or_float(&self, op: ElementOp, number: &Array, reversed: bool) -> Array {
        let sides = |x: &Array, number: &Array| match reversed {
            true => self.op(op, number, x),
            false => self.op(op, x, number),
        };
        let exact = sides(self.x, &self.whole(number));
        let floats = cast_in(&self.x.0.home, self.x, DType::F64, self.at);
        let rounded = self.whole(&sides(&floats, number));
        let fits = self.fits(number);
        // The sign of a zero matters to a quotient, so a zero is divided by in f64.
        let fits = if op == ElementOp::Div {
            self.op(ElementOp::And, fits, self.float(ElementOp::Ne, number, 0.0))
        } else {
            fits
        };
        self.choose(&fits, &exact, &rounded)
    }

    /// Whether a number is whole and an `i64`.
    fn fits(&self, number: &Array) -> Array {
        let is_whole = self.op(ElementOp::Eq, number, self.one(ElementOp::Fix, number));
        let below = self.float(ElementOp::Lt, number, LIMIT);
        let inside = self.op(ElementOp::And, below, self.float(ElementOp::Ge, number, -LIMIT));
        self.op(ElementOp::And, is_whole, inside)
    }

    fn compared_with(&self, how: Comparison, number: &Array) -> Array {
        let down = || self.whole(&self.one(ElementOp::Floor, number));
        let up = || self.whole(&self.one(ElementOp::Ceil, number));
        let beyond = || self.float(ElementOp::Ge, number, LIMIT);
        let below = || self.float(ElementOp::Lt, number, -LIMIT);
        let some = || self.one(ElementOp::Not, &self.one(ElementOp::IsNan, number));
        let and = |a: Array, b: Array| self.op(ElementOp::And, a, b);
        let or = |a: Array, b: Array| self.op(ElementOp::Or, a, b);
        // An integer is less than a number if it is less than the number rounded up. Numbers beyond `i64`, where
        // rounding saturates, are treated separately, and so is NaN.
        match how {
            Comparison::Less => and(or(self.op(ElementOp::Lt, self.x, up()), beyond()), some()),
            Comparison::LessOrEqual => {
                and(self.op(ElementOp::Le, self.x, down()), self.float(ElementOp::Ge, number, -LIMIT))
            }
            Comparison::Greater => and(or(self.op(ElementOp::Gt, self.x, down()), below()), some()),
            Comparison::GreaterOrEqual => {
                and(self.op(ElementOp::Ge, self.x, up()), self.float(ElementOp::Lt, number, LIMIT))
            }
            Comparison::Equal => and(self.op(ElementOp::Eq, self.x, self.whole(number)), self.fits(number)),
            Comparison::NotEqual => self.one(ElementOp::Not, &self.compared_with(Comparison::Equal, number)),
        }
    }

    /// `x + number`, or `number - x`.
    fn sum_with(&self, number: &Array, negative: bool) -> Array {
        let bound = 4.0 * LIMIT;
        let number = &apply(ElementOp::Clamp, &mut [number.into(), (-bound).into(), bound.into()], self.at);
        let truncated = self.one(ElementOp::Fix, number);
        // The whole part is the sum of two halves, which fit `i64` if it is below 2^64, and of a third part that is not
        // zero beyond 2^64.
        let half = self.one(ElementOp::Fix, &self.float(ElementOp::Mul, &truncated, 0.5));
        let other = self.op(ElementOp::Sub, &truncated, &half);
        let far = self.one(ElementOp::Fix, &self.float(ElementOp::Mul, number, 0.5 / LIMIT));
        // The greater half is added first, because a sum that is just below 2^63 without it may not be so with it.
        let first = match negative {
            true => self.op(ElementOp::Sub, self.whole(&other), self.x),
            false => self.op(ElementOp::Add, self.x, self.whole(&other)),
        };
        let sum = self.op(ElementOp::Add, first, self.whole(&half));
        let sum = self.op(ElementOp::Add, sum, self.whole(&far));
        // The fraction, rounded half away from zero.
        let fraction = self.op(ElementOp::Sub, number, &truncated);
        let size = self.one(ElementOp::Abs, &fraction);
        let is_up = self.float(ElementOp::Gt, &fraction, 0.0);
        let zero_or = |op: ElementOp| self.op(op, &sum, 0i64);
        let outward = apply(
            ElementOp::Select,
            &mut [(&is_up).into(), zero_or(ElementOp::Ge).into(), zero_or(ElementOp::Le).into()],
            self.at,
        );
        let tie = self.op(ElementOp::And, self.float(ElementOp::Eq, &size, 0.5), outward);
        let away = self.op(ElementOp::Or, self.float(ElementOp::Gt, &size, 0.5), tie);
        let moved = self.op(ElementOp::Add, &sum, self.whole(&self.one(ElementOp::Sign, &fraction)));
        let mut result = self.choose(&away, moved, &sum);
        if negative {
            // The result is less than 1 below 2^63, but the sum `0 - x` could not hold 2^63.
            let least = self.with(ElementOp::Eq, i64::MIN);
            let small = self.float(ElementOp::Eq, &truncated, 0.0);
            result = self.choose(&self.op(ElementOp::And, least, small), i64::MAX, &result);
        }
        self.choose(&self.one(ElementOp::IsNan, number), 0i64, &result)
    }

    fn one(&self, op: ElementOp, a: &Array) -> Array {
        apply(op, &mut [a.into()], self.at)
    }

    fn float(&self, op: ElementOp, a: &Array, number: f64) -> Array {
        apply(op, &mut [a.into(), number.into()], self.at)
    }

    /// The number as `i64`: rounded half away from zero, saturated, and 0 for NaN.
    pub(super) fn whole(&self, number: &Array) -> Array {
        cast_in(&self.x.0.home, number, DType::I64, self.at)
    }

    /// `yes` where a condition holds, else `no`.
    pub(super) fn choose<'b>(&self, mask: &'b Array, yes: impl Into<Operand<'b>>, no: &'b Array) -> Array {
        apply(ElementOp::Select, &mut [mask.into(), yes.into(), no.into()], self.at)
    }
}

//! Exact remainders of `i64` and a number of f64 that is none, as ops on `i64`, which fuse to one kernel.
//!
//! In: an `i64` array and an f64 that is known when the op is recorded. Out: the exact remainder, with the signs of
//! `mod` and `rem`, rounded half away from zero. Must hold: WIDE-1; nothing on the way is beyond `i64`.

use super::handle::Array;
use super::wide::{LIMIT, Wide, rounded};
use super::wide_scale::{STEP, has_fraction, parts};
use crate::graph::ElementOp;

impl Wide<'_> {
    /// `mod(x, number)` or `rem(x, number)`.
    pub(super) fn remainder(&self, op: ElementOp, number: f64) -> Array {
        if !has_fraction(number) {
            return self.remainder_of_far(op, number);
        }
        if number.abs() < 0.5 {
            return self.everywhere(0);
        }
        // x * 2^shift in steps that fit an i64, reduced each time; then the remainder is a multiple of 2^-shift.
        let (mantissa, shift) = parts(number);
        let divisor = if op == ElementOp::Mod && number < 0.0 { -mantissa } else { mantissa };
        let mut rest = self.op(op, self.x, divisor);
        let mut left = shift;
        while left > 0 {
            let step = left.min(STEP);
            left -= step;
            rest = self.op(op, self.product(&rest, 1 << step), divisor);
        }
        self.op(ElementOp::Div, rest, 1i64 << shift)
    }

    /// By a number beyond `i64`, which is more than any `x` but -2^63.
    fn remainder_of_far(&self, op: ElementOp, number: f64) -> Array {
        if number.is_nan() {
            return self.everywhere(0);
        }
        if op == ElementOp::Mod {
            let other_side = if number > 0.0 { ElementOp::Lt } else { ElementOp::Gt };
            let moved = self.with(other_side, 0);
            return self.choose(&moved, self.plus(number), self.x);
        }
        if number.abs() == LIMIT {
            return self.select(&self.with(ElementOp::Eq, i64::MIN), 0, self.x);
        }
        self.x.clone()
    }

    /// `mod(number, x)` or `rem(number, x)`; `None` for whole numbers beyond `i64`.
    pub(super) fn remainder_under(&self, op: ElementOp, number: f64) -> Option<Array> {
        let zero = self.with(ElementOp::Eq, 0);
        // What `mod(number, 0)` and `rem(number, 0)` are.
        let by_zero = if op == ElementOp::Mod { rounded(number) } else { 0 };
        if !number.is_finite() {
            return Some(self.select(&zero, by_zero, &self.everywhere(0)));
        }
        if !has_fraction(number) {
            return None;
        }
        // The remainder of a whole number next to it, moved by the rest, whose sign is the result's.
        let beside = |whole: f64| {
            let rest = number - whole;
            let step = if rest.abs() >= 0.5 { rest.signum() as i64 } else { 0 };
            self.op(ElementOp::Add, self.op(op, whole as i64, self.x), step)
        };
        let result = match op {
            ElementOp::Mod => {
                let below = self.with(ElementOp::Lt, 0);
                self.choose(&below, beside(number.ceil()), &beside(number.floor()))
            }
            _ => beside(number.trunc()),
        };
        Some(self.select(&zero, by_zero, &result))
    }
}

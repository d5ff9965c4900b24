//! Derivatives of recurrences along lines. The adjoint of a recurrence is the same one, from the end of each line to its
//! begin.

use super::pull::{Shares, Steps};
use super::push::{Tangents, tangent_of};
use super::step::{Source, Step};
use crate::array::handle::Array;
use crate::array::recorder::Recorder;
use crate::array::structure::whole;
use crate::error::Result;
use crate::graph::{ElementOp, LinearOp, Nan, Op, ReduceOp, SliceDim};

impl Steps {
    /// The cotangents of a recurrence's right sides and coefficients.
    pub(super) fn recurrence_shares(&self, step: &Step, order: usize, above: &Array) -> Result<Shares> {
        let r = self.recorder(step);
        let by_sides = backwards(&r, &solved(&r, &backwards(&r, above)?, self.read(step, 1)?)?)?;
        let mut shares = Shares::new();
        if let Source::Step(_) = step.args[1].source {
            let (y, rows) = (step.value()?, step.meta.shape.dim(0));
            let mut by_each = Vec::with_capacity(order);
            for earlier in 1..=order {
                let left = rows.saturating_sub(earlier);
                let met = r.mul(&r.part(&by_sides, 0, rows - left, left)?, &r.part(y, 0, 0, left)?)?;
                let sum = r.reduce(&met, ReduceOp::Sum, 0b111, Nan::Include)?;
                by_each.push(r.apply(ElementOp::Neg, &mut [sum.into()])?);
            }
            shares.push((1, r.join(0, &by_each.iter().collect::<Vec<_>>())?));
        }
        if let Source::Step(_) = step.args[0].source {
            shares.push((0, by_sides));
        }
        Ok(shares)
    }

    /// The tangent of a recurrence's value.
    pub(super) fn recurrence_tangent(&self, step: &Step, order: usize, tangents: &Tangents) -> Result<Option<Array>> {
        let r = self.recorder(step);
        let mut sides = tangent_of(&step.args[0], tangents).cloned();
        if let Some(tangent) = tangent_of(&step.args[1], tangents) {
            let (y, rows) = (step.value()?, step.meta.shape.dim(0));
            for earlier in 1..=order.min(rows - 1) {
                let moved = r.padded(&r.part(y, 0, 0, rows - earlier)?, 0, earlier, 0)?;
                let by = r.apply(ElementOp::Neg, &mut [r.part(tangent, 0, earlier - 1, 1)?.into()])?;
                sides = Some(r.added(sides, r.mul(&moved, &by)?)?);
            }
        }
        sides.map(|sides| solved(&r, &sides, self.read(step, 1)?)).transpose()
    }
}

/// The recurrence with these coefficients, for lines `[n, 1, lines]`.
fn solved(r: &Recorder<'_>, sides: &Array, coefficients: &Array) -> Result<Array> {
    let order = coefficients.elements()? as u16;
    r.op(Op::Linear(LinearOp::Recurrence { order }), &[sides, coefficients], sides.meta()?.clone())
}

/// Each line in reverse.
fn backwards(r: &Recorder<'_>, lines: &Array) -> Result<Array> {
    let mut dims = whole(lines.shape()?);
    let rows = dims[0].len;
    if rows > 1 {
        dims[0] = SliceDim { start: rows - 1, step: -1, len: rows };
    }
    r.slice(lines, &dims)
}

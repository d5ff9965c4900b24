//! Records the most frequent ops in one pass: elementwise ops on lazy arrays of one session and one dtype, and plain
//! numbers, that need no cast.
//!
//! In: an op and its operands. Out: its node on the tape, or `None` if the general way (`record.rs`) has to record it:
//! because of faults, arrays of several sessions, values that are known on the host, dtypes that mix, or watched
//! values. Must hold: PLAIN-1: the general way would have recorded the same node.

use super::handle::{Array, Recorded};
use super::operand::{Kind, Operand};
use super::record::{At, OPERANDS_MAX};
use super::strict;
use super::tape::Home;
use crate::graph::table::DTypeRule;
use crate::graph::{Arg, DType, ElementOp, Meta, Op, Scalar, Shape};
use crate::ids::DeviceId;
use std::sync::Arc;

/// An op that is recorded in one pass.
struct Plain<'a> {
    home: &'a Arc<Home>,
    /// The index of the operand whose session is `home`.
    first: usize,
    /// The dtype in which the op computes.
    compute: DType,
    meta: Meta,
    pin: Option<DeviceId>,
    name: &'static str,
}

/// Records the op, if it is one of these. If an owned operand is the last handle of its value, it becomes the result's
/// handle.
pub(super) fn apply(op: ElementOp, operands: &mut [Operand<'_>], at: At) -> Option<Array> {
    let Plain { home, first, compute, meta, pin, name } = plain(op, operands)?;
    let mut args = [Arg::Scalar(Scalar::Bool(false)); OPERANDS_MAX];
    for (arg, operand) in args.iter_mut().zip(operands.iter()) {
        *arg = match &operand.0 {
            Kind::Number(number) => Arg::Scalar(number.cast(compute)),
            Kind::Borrowed(array) | Kind::Last(array) => Arg::Value(array.id()?),
            Kind::Owned(array) => Arg::Value(array.id()?),
            Kind::Beyond(_) => return None,
        };
    }
    let args = &args[..operands.len()];
    // If there is no room for the op, the general way reports it.
    let (mut tape, before) = home.begin_op().ok()?;
    let pushed = home.push_op(&mut tape, Op::Apply(op), args, &meta, pin, at);
    if pushed.is_ok() {
        for operand in operands.iter() {
            match &operand.0 {
                Kind::Owned(array) => home.let_go(&mut tape, array),
                Kind::Last(array) => home.let_go(&mut tape, array),
                Kind::Borrowed(_) | Kind::Number(_) | Kind::Beyond(_) => {}
            }
        }
    }
    let (session, segment) = (home.id, tape.segment);
    home.end_push(tape, before);
    let index = pushed.ok()?;
    let recorded = Recorded { session, index, segment, meta, source: false, pin, op: name, at };
    Some(handle(recorded, operands, first))
}

/// The handle of a value that the session of `operands[home]` has recorded. An owned operand becomes this handle if it
/// is free.
pub(super) fn handle(mut recorded: Recorded, operands: &mut [Operand<'_>], home: usize) -> Array {
    for operand in operands.iter_mut() {
        let Kind::Owned(array) = &mut operand.0 else { continue };
        match array.take_over(recorded) {
            Some(back) => recorded = back,
            None => match std::mem::replace(&mut operand.0, Kind::Number(Scalar::Bool(false))) {
                Kind::Owned(array) => return array,
                _ => unreachable!("RECORD-5: matched above"),
            },
        }
    }
    let home = operands[home].array().expect("RECORD-5: an op has an array among its operands").0.home.clone();
    recorded.handle(home)
}

fn plain<'a>(op: ElementOp, operands: &'a [Operand<'_>]) -> Option<Plain<'a>> {
    let info = op.info();
    if operands.len() != info.arity {
        return None;
    }
    let mut home: Option<(&Arc<Home>, usize)> = None;
    let mut meta: Option<&Meta> = None;
    let mut expanded: Option<Shape> = None;
    let mut pin = None;
    for (number, operand) in operands.iter().enumerate() {
        let Some(array) = operand.array() else { continue };
        let value = &*array.0;
        let own = value.meta.as_ref().ok().filter(|_| value.host.is_none())?;
        match (home, meta) {
            (Some((home, _)), Some(meta)) => {
                if !Arc::ptr_eq(home, &value.home) || meta.dtype != own.dtype {
                    return None;
                }
                let shape = expanded.as_ref().unwrap_or(&meta.shape);
                if *shape != own.shape {
                    expanded = Some(Shape::broadcast(shape, &own.shape).ok()?);
                } else if own.shape.axes() > shape.axes() {
                    expanded = Some(own.shape.clone());
                }
                pin = pin.max(array.1);
            }
            _ => (home, meta, pin) = (Some((&value.home, number)), Some(own), array.1),
        }
    }
    let ((home, first), meta) = (home?, meta?);
    if home.watches.are_any() {
        return None;
    }
    let compute = meta.dtype;
    // Beside floats, numbers are weak and truth values adapt.
    let output = match info.rule {
        DTypeRule::Arithmetic | DTypeRule::Real if compute.is_float() => compute,
        DTypeRule::Comparison | DTypeRule::Test if compute.is_float() => DType::Bool,
        DTypeRule::Logic if compute == DType::Bool => DType::Bool,
        DTypeRule::Arithmetic | DTypeRule::Real | DTypeRule::Comparison | DTypeRule::Test => return None,
        DTypeRule::Logic | DTypeRule::Select | DTypeRule::Cast => return None,
    };
    if home.is_strict() && !operands.iter().all(|operand| strict::fits(compute, operand)) {
        return None;
    }
    let shape = expanded.unwrap_or_else(|| meta.shape.clone());
    // RECORD-2: no operand here is without elements, since these are known; but two operands may expand to no elements.
    if shape.elements() == 0 {
        return None;
    }
    Some(Plain { home, first, compute, meta: Meta { dtype: output, shape }, pin, name: info.name })
}

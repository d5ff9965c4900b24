//! A compact record of an op, half the size of a [`Node`], for the most frequent ops on a tape.
//!
//! In: an elementwise op on one or two values of the tape's own session, and numbers. Out: its node, on the other side.
//! A record is written once and read once, by another thread, so its cost is its size. Must hold: BRIEF-1: the node
//! that comes out equals the one that went in.

use crate::error::Site;
use crate::graph::{Arg, DType, ElementOp, Meta, Node, Op, Scalar, Shape};
use crate::ids::{DeviceId, SessionId, ValueId};
use smallvec::SmallVec;

/// Most arguments of such an op.
const ARGS_MAX: usize = 2;

/// An elementwise op on values of its own session and scalars.
#[derive(Debug)]
pub struct Brief {
    /// For each argument, the number of a value or the bits of a scalar.
    args: [u64; ARGS_MAX],
    shape: Shape,
    at: Site,
    index: u64,
    op: ElementOp,
    dtype: DType,
    /// The dtype of its scalars.
    numbers: DType,
    pin: Option<DeviceId>,
    count: u8,
    /// Bit `i` is set if argument `i` is a scalar.
    is_number: u8,
}

impl Brief {
    /// The compact record of the op that makes value `value`; `None` if the op does not fit.
    #[inline]
    pub fn of(
        value: ValueId,
        op: ElementOp,
        args: &[Arg],
        meta: &Meta,
        pin: Option<DeviceId>,
        at: Site,
    ) -> Option<Brief> {
        if args.len() > ARGS_MAX {
            return None;
        }
        let mut brief = Brief {
            args: [0; ARGS_MAX],
            shape: meta.shape.clone(),
            at,
            index: value.index,
            op,
            dtype: meta.dtype,
            numbers: DType::Bool,
            pin,
            count: args.len() as u8,
            is_number: 0,
        };
        for (i, arg) in args.iter().enumerate() {
            match arg {
                Arg::Value(argument) if argument.session == value.session => brief.args[i] = argument.index,
                Arg::Scalar(number) if brief.is_number == 0 || brief.numbers == number.dtype() => {
                    brief.args[i] = number.bits();
                    brief.numbers = number.dtype();
                    brief.is_number |= 1 << i;
                }
                _ => return None,
            }
        }
        Some(brief)
    }

    /// The number of the value that it makes.
    #[inline]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The value that it makes.
    pub fn value(&self, session: SessionId) -> ValueId {
        ValueId { session, index: self.index }
    }

    /// The node, recorded by `session`.
    pub fn node(self, session: SessionId) -> Node {
        let mut args = SmallVec::<[Arg; 2]>::new();
        for (i, &bits) in self.args[..self.count as usize].iter().enumerate() {
            args.push(match self.is_number >> i & 1 {
                1 => Arg::Scalar(Scalar::from_bits(self.numbers, bits)),
                _ => Arg::Value(ValueId { session, index: bits }),
            });
        }
        let value = self.value(session);
        let meta = Meta { dtype: self.dtype, shape: self.shape };
        Node { value, op: Op::Apply(self.op), args, meta, pin: self.pin, at: self.at, block: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::Location;

    const HOME: SessionId = SessionId(7);

    fn value(index: u64) -> Arg {
        Arg::Value(ValueId { session: HOME, index })
    }

    fn brief(op: ElementOp, args: &[Arg], dims: &[usize]) -> Option<Brief> {
        let meta = Meta { dtype: DType::F32, shape: Shape::new(dims).unwrap() };
        let of = ValueId { session: HOME, index: 9 };
        Brief::of(of, op, args, &meta, Some(DeviceId(1)), Location::caller().into())
    }

    #[test]
    fn what_is_written_in_short_is_read_in_full() {
        let numbers = [Scalar::F32(-0.0), Scalar::F64(f64::NAN), Scalar::I64(i64::MIN), Scalar::Bool(true)];
        for number in numbers {
            for args in [vec![value(3), Arg::Scalar(number)], vec![Arg::Scalar(number), value(u64::MAX - 1)]] {
                let node = brief(ElementOp::Mul, &args, &[3, 4, 5]).unwrap().node(HOME);
                assert_eq!(
                    (node.value.index, node.pin, node.meta.shape.dims()),
                    (9, Some(DeviceId(1)), &[3, 4, 5][..])
                );
                assert!(matches!(node.op, Op::Apply(ElementOp::Mul)));
                assert_eq!(format!("{:?}", &node.args[..]), format!("{args:?}"));
            }
        }
        let node = brief(ElementOp::Exp, &[value(0)], &[2, 2]).unwrap().node(HOME);
        assert_eq!(format!("{:?}", &node.args[..]), format!("{:?}", [value(0)]));
    }

    #[test]
    fn what_does_not_fit_is_left_to_the_long_form() {
        let foreign = Arg::Value(ValueId { session: SessionId(8), index: 1 });
        assert!(brief(ElementOp::Add, &[value(1), foreign], &[2, 2]).is_none());
        assert!(brief(ElementOp::Clamp, &[value(1), value(2), value(3)], &[2, 2]).is_none());
        let mixed = [Arg::Scalar(Scalar::F32(1.0)), Arg::Scalar(Scalar::F64(1.0))];
        assert!(brief(ElementOp::Add, &mixed, &[2, 2]).is_none());
    }

    #[test]
    fn a_record_stays_small() {
        let size = std::mem::size_of::<super::super::tape::Record>();
        assert!(size <= 80, "{size} bytes");
    }
}

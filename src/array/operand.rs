//! What may stand beside an array in an op: arrays of either ownership, and plain numbers.
//!
//! Must hold: numbers are weak, so that `x * 0.5` and `x - 100` keep the dtype of `x`.

use super::handle::Array;
use crate::graph::{ArgType, Scalar};

/// An argument of an op: an array, or a number that adapts to its partner's dtype.
///
/// Made by `From` of `&Array`, `Array`, `f64`, `f32`, `i64`, `i32` and `bool`.
#[derive(Clone, Debug)]
pub struct Operand<'a>(pub(crate) Kind<'a>);

#[derive(Clone, Debug)]
pub(crate) enum Kind<'a> {
    Borrowed(&'a Array),
    /// The caller lets go of it right after the op, whatever becomes of that.
    Last(&'a Array),
    Owned(Array),
    /// F64 or I64, weak; or Bool, which is not.
    Number(Scalar),
}

impl<'a> Operand<'a> {
    /// A handle that is overwritten right after the op.
    pub(super) fn last(array: &'a mut Array) -> Operand<'a> {
        Operand(Kind::Last(array))
    }
}

impl Operand<'_> {
    pub(crate) fn array(&self) -> Option<&Array> {
        match &self.0 {
            Kind::Borrowed(a) | Kind::Last(a) => Some(a),
            Kind::Owned(a) => Some(a),
            Kind::Number(_) => None,
        }
    }

    /// How the op table sees it; `None` for an array that carries a fault.
    pub(crate) fn arg_type(&self) -> Option<ArgType> {
        match &self.0 {
            Kind::Number(n) => Some(ArgType { dtype: n.dtype(), weak: !matches!(n, Scalar::Bool(_)), scalar: true }),
            _ => {
                let meta = self.array()?.0.meta.as_ref().ok()?;
                Some(ArgType { dtype: meta.dtype, weak: false, scalar: meta.shape.is_scalar() })
            }
        }
    }
}

impl<'a> From<&'a Array> for Operand<'a> {
    fn from(array: &'a Array) -> Operand<'a> {
        Operand(Kind::Borrowed(array))
    }
}

impl From<Array> for Operand<'_> {
    fn from(array: Array) -> Self {
        Operand(Kind::Owned(array))
    }
}

impl<'a> From<&'a Operand<'_>> for Operand<'a> {
    fn from(operand: &'a Operand<'_>) -> Operand<'a> {
        match &operand.0 {
            Kind::Borrowed(a) | Kind::Last(a) => Operand(Kind::Borrowed(a)),
            Kind::Owned(a) => Operand(Kind::Borrowed(a)),
            Kind::Number(n) => Operand(Kind::Number(*n)),
        }
    }
}

macro_rules! number {
    ($($ty:ty => $variant:ident),*) => {$(
        impl From<$ty> for Operand<'_> {
            fn from(number: $ty) -> Self {
                Operand(Kind::Number(Scalar::$variant(number.into())))
            }
        }
    )*};
}
number!(f64 => F64, f32 => F64, i64 => I64, i32 => I64, bool => Bool);

//! The operands of an op: arrays, owned or borrowed, and plain numbers.
//!
//! Must hold: numbers are weak, so that `x * 0.5` and `x - 100` keep the dtype of `x`. OPERAND-1: a number is the value
//! that the program wrote, or a fault. A number that no scalar of the op table holds is `Beyond` until the array's
//! dtype is known.

use super::handle::Array;
use crate::graph::{ArgType, Scalar};

/// An argument of an op: an array, or a number that adapts to its partner's dtype.
///
/// `From` makes it of `&Array`, `Array`, and every numeric type of Rust up to 64 bits:
///
/// - `f64` and `f32` are taken as they are. Beside f32 they are rounded to f32. Beside integers the op is computed in
///   f64, or exactly if the array is `i64`, and its result is rounded to the array's dtype.
/// - `i8` to `i64`, `isize`, `u8` to `u64` and `usize` are whole numbers. Beside integer arrays they are exact, even
///   where f64 is not; a number that the array's dtype does not hold is computed in f64. Beside floats they are rounded
///   to the float. A `u64` or `usize` above `i64::MAX` is also rounded to the float beside floats, and comparisons use
///   its exact value. Other ops with it and an array of integers carry a fault (`ErrorKind::DType`), because no dtype
///   holds it.
/// - `bool` is a truth value, and f64 in arithmetic.
///
/// On the left of an operator, `f64`, `i64` and `bool` may stand as they are, and every other number as an `Operand`.
/// If `f32` were allowed there, too, the type of the literal in `(1.0 - &x).exp()` would be ambiguous, and it would not
/// compile.
///
/// ```
/// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
/// # let s = rt.session("operands").open();
/// use tidemill::Operand;
/// let x = s.from_slice(&[1.0f32, 2.0, 4.0], 3)?;
/// let (k, n) = (2.0f32, 4usize);
/// let y = Operand::from(k) / &x + &x / n + &x * 3u8;
/// assert_eq!(y.gather_blocking::<f32>()?.as_slice(), [5.25, 7.5, 13.5]);
/// # rt.shutdown_blocking()?;
/// # Ok::<(), tidemill::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Operand<'a>(pub(crate) Kind<'a>);

#[derive(Clone, Debug)]
pub(crate) enum Kind<'a> {
    Borrowed(&'a Array),
    /// The caller drops this handle right after the op, whether it succeeds or not.
    Last(&'a Array),
    Owned(Array),
    /// F64 or I64, which are weak, or Bool, which is not.
    Number(Scalar),
    /// A whole number above `i64::MAX` (OPERAND-1).
    Beyond(u64),
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
            Kind::Number(_) | Kind::Beyond(_) => None,
        }
    }

    /// The operand's type for the op table; `None` for an array that carries a fault.
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
            Kind::Beyond(n) => Operand(Kind::Beyond(*n)),
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
number! {
    f64 => F64, f32 => F64,
    i64 => I64, i32 => I64, i16 => I64, i8 => I64,
    u32 => I64, u16 => I64, u8 => I64,
    bool => Bool
}

macro_rules! wide_number {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Operand<'_> {
            fn from(number: $ty) -> Self {
                Operand(match i64::try_from(number) {
                    Ok(number) => Kind::Number(Scalar::I64(number)),
                    // No target has a pointer of more than 64 bits, and an `isize` is an i64.
                    Err(_) => Kind::Beyond(number as u64),
                })
            }
        }
    )*};
}
wide_number!(u64, usize, isize);

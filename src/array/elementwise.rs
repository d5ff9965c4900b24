//! Elementwise methods of [`Array`], one a row of the op table.

use super::handle::Array;
use super::operand::Operand;
use super::record::{apply, cast_in};
use crate::error::Result;
use crate::graph::{DType, Element, ElementOp};
use std::panic::Location;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> Array {
                apply(ElementOp::$op, &mut [self.into()], Location::caller())
            }
        )*}
    };
}

unary! {
    /// `|x|`; the least integer saturates.
    abs => Abs;
    /// -1, 0 or 1.
    sign => Sign;
    /// The square root; NaN of negative numbers.
    sqrt => Sqrt;
    /// `x * x`.
    square => Square;
    /// `1 / x`.
    reciprocal => Reciprocal;
    /// `e^x`.
    exp => Exp;
    /// `e^x - 1`, accurate near 0.
    expm1 => Expm1;
    /// `2^x`.
    exp2 => Exp2;
    /// The natural logarithm.
    log => Log;
    /// `ln(1 + x)`, accurate near 0.
    log1p => Log1p;
    /// The logarithm to base 2.
    log2 => Log2;
    /// The logarithm to base 10.
    log10 => Log10;
    /// The sine of radians.
    sin => Sin;
    /// The cosine of radians.
    cos => Cos;
    /// The cosine of pi times x, exact where that is 0, 1 or -1.
    cospi => Cospi;
    /// The tangent of radians.
    tan => Tan;
    /// The inverse sine, in radians.
    asin => Asin;
    /// The inverse cosine, in radians.
    acos => Acos;
    /// The inverse tangent, in radians.
    atan => Atan;
    /// The hyperbolic sine.
    sinh => Sinh;
    /// The hyperbolic cosine.
    cosh => Cosh;
    /// The hyperbolic tangent.
    tanh => Tanh;
    /// The inverse hyperbolic sine.
    asinh => Asinh;
    /// The inverse hyperbolic cosine.
    acosh => Acosh;
    /// The inverse hyperbolic tangent.
    atanh => Atanh;
    /// Rounds towards minus infinity.
    floor => Floor;
    /// Rounds towards plus infinity.
    ceil => Ceil;
    /// Rounds half away from zero.
    round => Round;
    /// Rounds towards zero.
    fix => Fix;
    /// Whether the element is NaN (bool).
    isnan => IsNan;
    /// Whether the element is infinite (bool).
    isinf => IsInf;
    /// Whether the element is neither NaN nor infinite (bool).
    isfinite => IsFinite;
    /// The error function.
    erf => Erf;
    /// The gamma function. For integers and bools it is f64 from a table: each value is correctly rounded.
    gamma => Gamma;
    /// The logarithm of the gamma function's absolute value.
    lgamma => Lgamma;
    /// `1 / (1 + e^-x)`.
    sigmoid => Sigmoid;
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name<'a>(&'a self, other: impl Into<Operand<'a>>) -> Array {
                apply(ElementOp::$op, &mut [self.into(), other.into()], Location::caller())
            }
        )*}
    };
}

binary! {
    /// `self^other`.
    pow => Pow;
    /// The remainder with the divisor's sign; `x` where the divisor is 0 (MATLAB `mod`).
    modulo => Mod;
    /// The remainder with the dividend's sign (MATLAB `rem`); also the operator `%`.
    remainder => Rem;
    /// The angle of the point `(other, self)`, in radians.
    atan2 => Atan2;
    /// `sqrt(self^2 + other^2)` without overflow.
    hypot => Hypot;
    /// The lesser of each pair; a number wins over NaN. [`Array::min_over`] is the least element of an array.
    min => Min;
    /// The greater of each pair; a number wins over NaN. [`Array::max_over`] is the greatest element of an array.
    max => Max;
    /// Whether `self < other` (bool).
    lt => Lt;
    /// Whether `self <= other` (bool).
    le => Le;
    /// Whether `self > other` (bool).
    gt => Gt;
    /// Whether `self >= other` (bool).
    ge => Ge;
    /// Whether the elements are equal (bool); NaN equals nothing.
    eq_to => Eq;
    /// Whether the elements differ (bool).
    ne_to => Ne;
}

impl Array {
    /// Each element, but at least `low` and at most `high`.
    #[track_caller]
    pub fn clamp<'a>(&'a self, low: impl Into<Operand<'a>>, high: impl Into<Operand<'a>>) -> Array {
        apply(ElementOp::Clamp, &mut [self.into(), low.into(), high.into()], Location::caller())
    }

    /// `yes` where this mask is not zero, `no` elsewhere.
    #[track_caller]
    pub fn select<'a>(&'a self, yes: impl Into<Operand<'a>>, no: impl Into<Operand<'a>>) -> Array {
        apply(ElementOp::Select, &mut [self.into(), yes.into(), no.into()], Location::caller())
    }

    /// The elements as `T`, converted as MATLAB does: to integers by rounding half away from zero and
    /// saturating, NaN to 0; to bool by "is not zero".
    #[track_caller]
    pub fn cast<T: Element>(&self) -> Array {
        self.cast_to(T::DTYPE)
    }

    /// As [`Array::cast`], with the dtype as a value.
    #[track_caller]
    pub fn cast_to(&self, dtype: DType) -> Array {
        cast_in(&self.0.home, self, dtype, Location::caller())
    }

    /// `self^other`, or the error that prevents recording it.
    ///
    /// # Errors
    /// The first operand's fault; `ErrorKind::Shape` and `ErrorKind::DType` if the operands do not fit each other.
    #[track_caller]
    pub fn try_pow<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Array> {
        self.pow(other).checked()
    }
}

/// `yes` where `mask` is not zero, `no` elsewhere.
#[track_caller]
pub fn select<'a>(mask: &'a Array, yes: impl Into<Operand<'a>>, no: impl Into<Operand<'a>>) -> Array {
    mask.select(yes, no)
}

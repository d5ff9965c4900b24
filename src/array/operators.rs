//! Rust's operators on arrays, for every ownership and for plain numbers on either side.
//!
//! The right side is anything that converts to an [`Operand`]. The left side is an array, `f64`, `i64`, `bool` or an
//! [`Operand`]. With a second float type there, the compiler could tell neither the type of the literal in `(1.0 -
//! &x).exp()` nor which `exp` is meant. An `f32` on the left is written `Operand::from(k) - &x`.
//!
//! `+ - * / %` are elementwise with implicit expansion, `-x` negates, `!x` is "is zero", `& | ^` are logical.
//! `%` is the remainder with the dividend's sign, as in Rust ([`Array::modulo`] takes the divisor's).

use super::handle::Array;
use super::operand::Operand;
use super::record::apply;
use crate::error::Result;
use crate::graph::ElementOp;
use std::ops;
use std::panic::Location;

macro_rules! binary {
    ($($trait:ident :: $method:ident, $try:ident => $op:ident, $what:literal;)*) => {$(
        binary!(@right $trait $method $op; Array);
        binary!(@right $trait $method $op; &Array);
        binary!(@left $trait $method $op; f64);
        binary!(@left $trait $method $op; i64);
        binary!(@left $trait $method $op; bool);
        binary!(@left $trait $method $op; Operand<'_>);

        impl Array {
            #[doc = concat!($what, ", or why it cannot be recorded.")]
            ///
            /// # Errors
            /// The first operand's fault; `ErrorKind::Shape` and `ErrorKind::DType` if the operands do not fit each
            /// other.
            #[track_caller]
            pub fn $try<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Array> {
                apply(ElementOp::$op, &mut [self.into(), other.into()], Location::caller()).checked()
            }
        }
    )*};
    // One impl covers all types on the right, so that `(x - 100).max(0.0)` has a known type without annotations. For
    // the same reason there is only one float and one integer type on the left, which literals become.
    (@right $trait:ident $method:ident $op:ident; $left:ty) => {
        impl<'a, T: Into<Operand<'a>>> ops::$trait<T> for $left {
            type Output = Array;
            #[track_caller]
            fn $method(self, other: T) -> Array {
                apply(ElementOp::$op, &mut [self.into(), other.into()], Location::caller())
            }
        }
    };
    (@left $trait:ident $method:ident $op:ident; $number:ty) => {
        impl ops::$trait<Array> for $number {
            type Output = Array;
            #[track_caller]
            fn $method(self, other: Array) -> Array {
                apply(ElementOp::$op, &mut [self.into(), other.into()], Location::caller())
            }
        }
        impl ops::$trait<&Array> for $number {
            type Output = Array;
            #[track_caller]
            fn $method(self, other: &Array) -> Array {
                apply(ElementOp::$op, &mut [self.into(), other.into()], Location::caller())
            }
        }
    };
}

binary! {
    Add::add, try_add => Add, "The sum";
    Sub::sub, try_sub => Sub, "The difference";
    Mul::mul, try_mul => Mul, "The elementwise product";
    Div::div, try_div => Div, "The elementwise quotient (integers round)";
    Rem::rem, try_rem => Rem, "The remainder with the dividend's sign";
    BitAnd::bitand, try_and => And, "Whether both are not zero";
    BitOr::bitor, try_or => Or, "Whether either is not zero";
    BitXor::bitxor, try_xor => Xor, "Whether exactly one is not zero";
}

macro_rules! unary {
    ($($trait:ident :: $method:ident => $op:ident;)*) => {$(
        impl ops::$trait for Array {
            type Output = Array;
            #[track_caller]
            fn $method(self) -> Array {
                apply(ElementOp::$op, &mut [self.into()], Location::caller())
            }
        }
        impl ops::$trait for &Array {
            type Output = Array;
            #[track_caller]
            fn $method(self) -> Array {
                apply(ElementOp::$op, &mut [self.into()], Location::caller())
            }
        }
    )*};
}

unary! {
    Neg::neg => Neg;
    Not::not => Not;
}

macro_rules! assign {
    ($($trait:ident :: $method:ident => $op:ident;)*) => {$(
        impl<'a, T: Into<Operand<'a>>> ops::$trait<T> for Array {
            /// Assigns the result to this handle; other handles of the old value keep it.
            #[track_caller]
            fn $method(&mut self, other: T) {
                *self = apply(ElementOp::$op, &mut [Operand::last(self), other.into()], Location::caller());
            }
        }
    )*};
}

assign! {
    AddAssign::add_assign => Add;
    SubAssign::sub_assign => Sub;
    MulAssign::mul_assign => Mul;
    DivAssign::div_assign => Div;
    RemAssign::rem_assign => Rem;
    BitAndAssign::bitand_assign => And;
    BitOrAssign::bitor_assign => Or;
    BitXorAssign::bitxor_assign => Xor;
}

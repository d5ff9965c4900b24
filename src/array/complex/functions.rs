//! Functions of complex arrays, expressed by functions of their parts.
//!
//! In: complex arrays. Out: real or complex ones. Branch cuts are those of C99, and so are results at zeros and
//! infinities, with two exceptions: if one part is infinite and one is NaN in C99, `exp`, `sinh`, `cosh`, `sin` and
//! `cos` may give NaN in both parts; and `cosh` and `tanh` of NaN are NaN in both parts.

use super::arithmetic::{ComplexOperand, mul};
use super::{ComplexArray, Here};
use crate::array::handle::Array;
use crate::graph::ElementOp as E;
use std::panic::Location;

impl ComplexArray {
    /// The complex conjugate.
    #[track_caller]
    pub fn conj(&self) -> ComplexArray {
        ComplexArray::new(self.re.clone(), -&self.im)
    }

    /// The first two dimensions exchanged, for each page, and conjugated.
    #[track_caller]
    pub fn adjoint(&self) -> ComplexArray {
        ComplexArray::new(self.re.transpose(), -&self.im.transpose())
    }

    /// The magnitude, without overflow; infinite if a part is infinite.
    #[track_caller]
    pub fn abs(&self) -> Array {
        Here(Location::caller()).two(E::Hypot, &self.re, &self.im)
    }

    /// The square of the magnitude.
    #[track_caller]
    pub fn norm_square(&self) -> Array {
        let here = Here(Location::caller());
        here.add(&here.one(E::Square, &self.re), &here.one(E::Square, &self.im))
    }

    /// The angle from the positive real axis, from -pi to pi.
    #[track_caller]
    pub fn arg(&self) -> Array {
        Here(Location::caller()).two(E::Atan2, &self.im, &self.re)
    }

    /// `e^z`.
    #[track_caller]
    pub fn exp(&self) -> ComplexArray {
        exp(Here(Location::caller()), self)
    }

    /// The natural logarithm, whose imaginary part is the angle. Its error is small beside its magnitude.
    #[track_caller]
    pub fn log(&self) -> ComplexArray {
        log(Here(Location::caller()), self)
    }

    /// The square root whose real part is not negative. The result has few correct digits if both parts of the operand
    /// are subnormal numbers.
    #[track_caller]
    pub fn sqrt(&self) -> ComplexArray {
        let here = Here(Location::caller());
        let half = |x: &Array| here.mul(x, 0.5);
        let size = here.two(E::Hypot, &half(&self.re), half(&self.im));
        let root = here.one(E::Sqrt, &here.add(&half(&here.one(E::Abs, &self.re)), &size));
        let infinite = here.one(E::IsInf, &self.im);
        let root = here.select(&infinite, f64::INFINITY, &root);
        // `other` is `im / (2 root)`. That division would give NaN if `root` is 0 or `im` is infinite; `other` is `im` there.
        let own = here.two(E::Or, &infinite, here.two(E::Eq, &root, 0.0));
        let other = here.select(&own, &self.im, here.div(&half(&self.im), &root));
        let left = here.two(E::And, &here.two(E::Lt, &self.re, 0.0), here.one(E::Not, &infinite));
        let below = here.two(E::Lt, &here.two(E::Atan2, &self.im, -1.0), 0.0);
        let turned = here.select(&below, here.one(E::Neg, &root), &root);
        let im = here.select(&left, &turned, &other);
        ComplexArray::new(here.select(&left, here.one(E::Abs, &other), &root), im)
    }

    /// The sine.
    #[track_caller]
    pub fn sin(&self) -> ComplexArray {
        let here = Here(Location::caller());
        let turned = sinh(here, &ComplexArray::new(here.one(E::Neg, &self.im), self.re.clone()));
        ComplexArray::new(turned.im.clone(), here.one(E::Neg, &turned.re))
    }

    /// The cosine.
    #[track_caller]
    pub fn cos(&self) -> ComplexArray {
        let here = Here(Location::caller());
        cosh(here, &ComplexArray::new(here.one(E::Neg, &self.im), self.re.clone()))
    }

    /// The tangent.
    #[track_caller]
    pub fn tan(&self) -> ComplexArray {
        let here = Here(Location::caller());
        let turned = tanh(here, &ComplexArray::new(here.one(E::Neg, &self.im), self.re.clone()));
        ComplexArray::new(turned.im.clone(), here.one(E::Neg, &turned.re))
    }

    /// The hyperbolic sine.
    #[track_caller]
    pub fn sinh(&self) -> ComplexArray {
        sinh(Here(Location::caller()), self)
    }

    /// The hyperbolic cosine.
    #[track_caller]
    pub fn cosh(&self) -> ComplexArray {
        cosh(Here(Location::caller()), self)
    }

    /// The hyperbolic tangent.
    #[track_caller]
    pub fn tanh(&self) -> ComplexArray {
        tanh(Here(Location::caller()), self)
    }

    /// `self^other`, computed as `e^(other log(self))`: the error grows with the size of that exponent. Any number to
    /// the power of 0 is 1. 0 to another power is 0 (or infinite, if the real part of the power is negative).
    #[track_caller]
    pub fn pow<'a>(&'a self, other: impl Into<ComplexOperand<'a>>) -> ComplexArray {
        let here = Here(Location::caller());
        let other = other.into();
        let power = exp(here, &mul(here, &log(here, self), &other));
        // The parts of the product with an infinite logarithm are NaN.
        let zero = here.two(E::And, &here.two(E::Eq, &self.re, 0.0), here.two(E::Eq, &self.im, 0.0));
        let (real, unit) = other.real_part_and_zero(here, &self.re);
        // `infinite` has the dtype of the base: `select` of two plain numbers would give an f64 array.
        let infinite = here.number(&self.re, f64::INFINITY);
        let of_zero = here.select(&here.two(E::Lt, &real, 0.0), &infinite, 0.0);
        let re = here.select(&unit, 1.0, here.select(&zero, &of_zero, &power.re));
        let none = here.two(E::Or, &zero, &unit);
        ComplexArray::new(re, here.select(&none, 0.0, &power.im))
    }

    /// Whether both parts are equal (bool).
    #[track_caller]
    pub fn eq_to(&self, other: &ComplexArray) -> Array {
        let here = Here(Location::caller());
        here.two(E::And, &here.two(E::Eq, &self.re, &other.re), here.two(E::Eq, &self.im, &other.im))
    }

    /// Whether a part differs (bool).
    #[track_caller]
    pub fn ne_to(&self, other: &ComplexArray) -> Array {
        let here = Here(Location::caller());
        here.one(E::Not, &self.eq_to(other))
    }

    /// Whether a part is NaN (bool).
    #[track_caller]
    pub fn isnan(&self) -> Array {
        let here = Here(Location::caller());
        here.two(E::Or, &here.one(E::IsNan, &self.re), here.one(E::IsNan, &self.im))
    }
}

/// The product; zero where the first factor is zero, also if the other one is infinite or NaN.
fn times(here: Here, zero: &Array, other: &Array) -> Array {
    let nothing = here.two(E::Eq, zero, 0.0);
    here.select(&nothing, zero, here.mul(zero, other))
}

fn exp(here: Here, z: &ComplexArray) -> ComplexArray {
    // `e^x` is taken as two factors `e^(x/2)`, one on each side of the turn: `e^x` alone may overflow where its product
    // with a small cosine does not.
    let root = here.one(E::Exp, &here.mul(&z.re, 0.5));
    let part = |turn: &Array| here.mul(&times(here, &root, turn), &root);
    let (cos, sin) = (here.one(E::Cos, &z.im), here.one(E::Sin, &z.im));
    let real = here.two(E::Eq, &z.im, 0.0);
    ComplexArray::new(part(&cos), here.select(&real, &z.im, part(&sin)))
}

fn log(here: Here, z: &ComplexArray) -> ComplexArray {
    let [x, y] = [&z.re, &z.im].map(|part| here.one(E::Abs, part));
    let size = here.two(E::Hypot, &x, &y);
    let (greater, lesser) = (here.two(E::Max, &x, &y), here.two(E::Min, &x, &y));
    // For magnitudes between 0.5 and 2 the real part is half of `log1p(|z|^2 - 1)`, with `|z|^2 - 1` computed as
    // `(greater - 1)(greater + 1) + lesser^2`.
    let beyond = here.mul(&here.two(E::Sub, &greater, 1.0), here.two(E::Add, &greater, 1.0));
    let beyond = here.add(&beyond, &here.one(E::Square, &lesser));
    let near = here.two(E::And, &here.two(E::Gt, &size, 0.5), here.two(E::Lt, &size, 2.0));
    let from_beyond = here.mul(&here.one(E::Log1p, &beyond), 0.5);
    let re = here.select(&near, &from_beyond, here.one(E::Log, &size));
    ComplexArray::new(re, here.two(E::Atan2, &z.im, &z.re))
}

fn sinh(here: Here, z: &ComplexArray) -> ComplexArray {
    let re = times(here, &here.one(E::Sinh, &z.re), &here.one(E::Cos, &z.im));
    ComplexArray::new(re, times(here, &here.one(E::Sin, &z.im), &here.one(E::Cosh, &z.re)))
}

fn cosh(here: Here, z: &ComplexArray) -> ComplexArray {
    let re = here.mul(&here.one(E::Cosh, &z.re), here.one(E::Cos, &z.im));
    let (sinh, sin) = (here.one(E::Sinh, &z.re), here.one(E::Sin, &z.im));
    let im = times(here, &sinh, &sin);
    let real = here.two(E::Eq, &sin, 0.0);
    ComplexArray::new(re, here.select(&real, here.mul(&sin, here.one(E::Sign, &sinh)), &im))
}

/// Kahan's method: with `t = tan y` and `s = sinh x`, the result is `(cosh x s (1 + t^2) + i t) / (1 + s^2 (1 + t^2))`.
/// For large `|x|` it is `sign x + 4 i sin y cos y e^(-2 |x|)`.
fn tanh(here: Here, z: &ComplexArray) -> ComplexArray {
    let (x, y) = (&z.re, &z.im);
    let tan = here.one(E::Tan, y);
    let beta = here.two(E::Add, &here.one(E::Square, &tan), 1.0);
    let (sinh, cosh) = (here.one(E::Sinh, x), here.one(E::Cosh, x));
    let below = here.two(E::Add, &here.mul(&beta, here.one(E::Square, &sinh)), 1.0);
    let re = here.div(&here.mul(&here.mul(&beta, &cosh), &sinh), &below);
    let im = here.div(&tan, &below);
    let size = here.one(E::Abs, x);
    // Beyond this limit, e^(-2 |x|) is less than half a unit of 1 in f64.
    let far = here.two(E::Gt, &size, 20.0);
    let small = here.one(E::Exp, &here.mul(&size, -2.0));
    let turns = here.mul(&here.mul(&here.one(E::Sin, y), here.one(E::Cos, y)), 4.0);
    let im = here.select(&far, times(here, &small, &turns), &im);
    ComplexArray::new(here.select(&far, here.one(E::Sign, x), &re), im)
}

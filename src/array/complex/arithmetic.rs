//! Operators of complex arrays.
//!
//! In: complex arrays, and complex or real arrays or numbers on their right; real arrays on their left. Out: their parts,
//! recorded. A real operand counts as without imaginary part.

use super::{ComplexArray, Here};
use crate::array::handle::Array;
use crate::array::operand::Operand;
use crate::array::record::{cast_in, derive};
use crate::graph::{ElementOp, View};
use num_complex::Complex;
use std::borrow::Cow;
use std::ops;
use std::panic::Location;

/// What stands beside a complex array in an op: a complex or real array, or a number.
#[derive(Clone, Debug)]
pub struct ComplexOperand<'a>(Kind<'a>);

#[derive(Clone, Debug)]
enum Kind<'a> {
    Complex(Cow<'a, ComplexArray>),
    Number(Complex<f64>),
    Real(Operand<'a>),
}

impl<'a> From<&'a ComplexArray> for ComplexOperand<'a> {
    fn from(array: &'a ComplexArray) -> Self {
        ComplexOperand(Kind::Complex(Cow::Borrowed(array)))
    }
}
impl From<ComplexArray> for ComplexOperand<'_> {
    fn from(array: ComplexArray) -> Self {
        ComplexOperand(Kind::Complex(Cow::Owned(array)))
    }
}
impl From<Complex<f64>> for ComplexOperand<'_> {
    fn from(number: Complex<f64>) -> Self {
        ComplexOperand(Kind::Number(number))
    }
}
impl From<Complex<f32>> for ComplexOperand<'_> {
    fn from(number: Complex<f32>) -> Self {
        ComplexOperand(Kind::Number(Complex::new(number.re.into(), number.im.into())))
    }
}

macro_rules! real {
    ($($ty:ty),*) => {$(
        impl<'a> From<$ty> for ComplexOperand<'a> {
            fn from(real: $ty) -> Self {
                ComplexOperand(Kind::Real(real.into()))
            }
        }
    )*};
}
real!(&'a Array, Array, f64, f32, i32, i64);

/// The parts of an operand, of which the imaginary one may be missing.
struct Operands<'a> {
    re: Operand<'a>,
    im: Option<Operand<'a>>,
}

impl ComplexOperand<'_> {
    fn parts(&self) -> Operands<'_> {
        match &self.0 {
            Kind::Complex(array) => Operands { re: (&array.re).into(), im: Some((&array.im).into()) },
            Kind::Number(number) => Operands { re: number.re.into(), im: Some(number.im.into()) },
            Kind::Real(real) => Operands { re: real.into(), im: None },
        }
    }
}

/// A sum or a difference.
pub(super) fn sum(here: Here, op: ElementOp, x: &ComplexArray, y: &ComplexOperand<'_>) -> ComplexArray {
    let Operands { re, im } = y.parts();
    let re = here.two(op, &x.re, re);
    let im = match im {
        Some(im) => here.two(op, &x.im, im),
        // It is as it was, of the other part's dtype and shape.
        None => derive(&[&x.im, &re], op.name(), here.0, |home, metas| {
            let part = cast_in(home, &x.im, metas[1].dtype, here.0);
            Ok(part.view(home, View::Broadcast, metas[1].shape.clone(), here.0))
        }),
    };
    ComplexArray::new(re, im)
}

pub(super) fn product(here: Here, x: &ComplexArray, y: &ComplexOperand<'_>) -> ComplexArray {
    let Operands { re, im } = y.parts();
    let Some(im) = im else {
        return ComplexArray::new(here.mul(&x.re, &re), here.mul(&x.im, &re));
    };
    let real = here.sub(&here.mul(&x.re, &re), &here.mul(&x.im, &im));
    ComplexArray::new(real, here.add(&here.mul(&x.re, &im), &here.mul(&x.im, &re)))
}

/// Smith's quotient: the divisor's lesser part over its greater one is at most 1.
pub(super) fn quotient(here: Here, x: &ComplexArray, y: &ComplexOperand<'_>) -> ComplexArray {
    let divisor = match &y.0 {
        Kind::Complex(array) => array.clone(),
        Kind::Number(number) => {
            Cow::Owned(ComplexArray::new(here.number(&x.re, number.re), here.number(&x.re, number.im)))
        }
        Kind::Real(real) => {
            let by = |part: &Array| here.two(ElementOp::Div, part, real);
            return ComplexArray::new(by(&x.re), by(&x.im));
        }
    };
    let (c, d) = (&divisor.re, &divisor.im);
    let [size_c, size_d] = [c, d].map(|part| here.one(ElementOp::Abs, part));
    let wide = here.two(ElementOp::Ge, &size_c, &size_d);
    let (greater, lesser) = (here.select(&wide, c, d), here.select(&wide, d, c));
    // Equal sizes may be zero or infinite.
    let equal = here.two(ElementOp::Eq, &size_c, &size_d);
    let signs = here.mul(&here.one(ElementOp::Sign, c), here.one(ElementOp::Sign, d));
    let ratio = here.select(&equal, &signs, here.div(&lesser, &greater));
    let scale = here.add(&greater, &here.mul(&lesser, &ratio));
    let (p, q) = (here.select(&wide, &x.re, &x.im), here.select(&wide, &x.im, &x.re));
    let re = here.div(&here.add(&p, &here.mul(&q, &ratio)), &scale);
    let im = here.div(&here.sub(&q, &here.mul(&p, &ratio)), &scale);
    let im = here.select(&wide, &im, here.one(ElementOp::Neg, &im));
    ComplexArray::new(re, im)
}

/// Any of the four.
fn binary(op: ElementOp, x: &ComplexArray, y: &ComplexOperand<'_>, here: Here) -> ComplexArray {
    match op {
        ElementOp::Mul => product(here, x, y),
        ElementOp::Div => quotient(here, x, y),
        sum_or_difference => sum(here, sum_or_difference, x, y),
    }
}

macro_rules! operators {
    ($($trait:ident :: $method:ident => $op:ident;)*) => {$(
        operators!(@right $trait $method $op; ComplexArray);
        operators!(@right $trait $method $op; &ComplexArray);
        operators!(@left $trait $method $op; Array, ComplexArray);
        operators!(@left $trait $method $op; Array, &ComplexArray);
        operators!(@left $trait $method $op; &Array, ComplexArray);
        operators!(@left $trait $method $op; &Array, &ComplexArray);
    )*};
    (@right $trait:ident $method:ident $op:ident; $left:ty) => {
        impl<'a, T: Into<ComplexOperand<'a>>> ops::$trait<T> for $left {
            type Output = ComplexArray;
            #[track_caller]
            fn $method(self, other: T) -> ComplexArray {
                let left: &ComplexArray = &self;
                binary(ElementOp::$op, left, &other.into(), Here(Location::caller()))
            }
        }
    };
    (@left $trait:ident $method:ident $op:ident; $left:ty, $right:ty) => {
        impl ops::$trait<$right> for $left {
            type Output = ComplexArray;
            #[track_caller]
            fn $method(self, other: $right) -> ComplexArray {
                binary(ElementOp::$op, &self.to_complex(), &other.into(), Here(Location::caller()))
            }
        }
    };
}

operators! {
    Add::add => Add;
    Sub::sub => Sub;
    Mul::mul => Mul;
    Div::div => Div;
}

macro_rules! negated {
    ($($ty:ty),*) => {$(
        impl ops::Neg for $ty {
            type Output = ComplexArray;
            #[track_caller]
            fn neg(self) -> ComplexArray {
                ComplexArray::new(-&self.re, -&self.im)
            }
        }
    )*};
}
negated!(ComplexArray, &ComplexArray);

impl ComplexOperand<'_> {
    /// The real part as an array, and whether the operand is zero (bool).
    pub(super) fn real_part_and_zero(&self, here: Here, like: &Array) -> (Array, Array) {
        let array = |part: &Operand<'_>| match part.array() {
            Some(array) => array.clone(),
            None => here.two(ElementOp::Add, &here.number(like, 0.0), part),
        };
        let Operands { re, im } = self.parts();
        let re = array(&re);
        let zero = here.two(ElementOp::Eq, &re, 0.0);
        match im {
            Some(im) => {
                let none = here.two(ElementOp::Eq, &array(&im), 0.0);
                (re, here.two(ElementOp::And, &zero, &none))
            }
            None => (re, zero),
        }
    }
}

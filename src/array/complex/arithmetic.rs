//! Operators of complex arrays.
//!
//! In: complex arrays, with complex or real arrays or numbers on their right; real arrays on their left. Out: the parts
//! of results, recorded. A real operand has no imaginary part, on either side; only a real dividend gets one of zeros.

use super::{ComplexArray, Here, complex, floats};
use crate::array::handle::Array;
use crate::array::operand::Operand;
use crate::array::record::{cast_in, derive};
use crate::graph::{DType, ElementOp, View};
use num_complex::Complex;
use std::borrow::Cow;
use std::ops;
use std::panic::Location;

/// The other operand of an op on a complex array: a complex or real array, or a number.
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

/// The parts of an operand. The imaginary part may be missing.
struct Operands<'a> {
    re: Operand<'a>,
    im: Option<Operand<'a>>,
}

impl ComplexOperand<'_> {
    fn parts(&self, here: Here) -> Operands<'_> {
        match &self.0 {
            Kind::Complex(array) => Operands { re: (&array.re).into(), im: Some((&array.im).into()) },
            Kind::Number(number) => Operands { re: number.re.into(), im: Some(number.im.into()) },
            Kind::Real(real) => Operands { re: real_part(here, real), im: None },
        }
    }
}

/// A real operand of an op on the parts of a complex array. Integers become f64. Bools take the dtype of the parts, as
/// they do beside a real array.
fn real_part<'a>(here: Here, real: &'a Operand<'_>) -> Operand<'a> {
    match real.array() {
        Some(array) if array.dtype().is_ok_and(|dtype| dtype != DType::Bool) => floats(array, "complex", here.0).into(),
        _ => real.into(),
    }
}

fn add(here: Here, x: &ComplexArray, y: &ComplexOperand<'_>) -> ComplexArray {
    sum(here, ElementOp::Add, x, y)
}

fn sub(here: Here, x: &ComplexArray, y: &ComplexOperand<'_>) -> ComplexArray {
    sum(here, ElementOp::Sub, x, y)
}

/// A sum or a difference.
fn sum(here: Here, op: ElementOp, x: &ComplexArray, y: &ComplexOperand<'_>) -> ComplexArray {
    let Operands { re, im } = y.parts(here);
    let re = here.two(op, &x.re, re);
    let im = match im {
        Some(im) => here.two(op, &x.im, im),
        // The imaginary part keeps its elements and takes the dtype and the shape of the new real part.
        None => derive(&[&x.im, &re], op.name(), here.0, |home, metas| {
            let part = cast_in(home, &x.im, metas[1].dtype, here.0);
            Ok(part.view(home, View::Broadcast, metas[1].shape.clone(), here.0))
        }),
    };
    ComplexArray::new(re, im)
}

pub(super) fn mul(here: Here, x: &ComplexArray, y: &ComplexOperand<'_>) -> ComplexArray {
    let Operands { re, im } = y.parts(here);
    let Some(im) = im else {
        return ComplexArray::new(here.mul(&x.re, &re), here.mul(&x.im, &re));
    };
    let real = here.sub(&here.mul(&x.re, &re), &here.mul(&x.im, &im));
    ComplexArray::new(real, here.add(&here.mul(&x.re, &im), &here.mul(&x.im, &re)))
}

/// The quotient by Smith's method: the divisor's lesser part divided by its greater part is at most 1.
fn div(here: Here, x: &ComplexArray, y: &ComplexOperand<'_>) -> ComplexArray {
    let divisor = match &y.0 {
        Kind::Complex(array) => array.clone(),
        Kind::Number(number) => {
            Cow::Owned(ComplexArray::new(here.number(&x.re, number.re), here.number(&x.re, number.im)))
        }
        Kind::Real(real) => {
            let real = real_part(here, real);
            let by = |part: &Array| here.two(ElementOp::Div, part, &real);
            return ComplexArray::new(by(&x.re), by(&x.im));
        }
    };
    let (c, d) = (&divisor.re, &divisor.im);
    let [size_c, size_d] = [c, d].map(|part| here.one(ElementOp::Abs, part));
    let wide = here.two(ElementOp::Ge, &size_c, &size_d);
    let (greater, lesser) = (here.select(&wide, c, d), here.select(&wide, d, c));
    // If `size_c` equals `size_d`, the signs of `c` and `d` give the ratio: 1, -1, or 0 for zeros. A division would give
    // NaN for two zeros and for two infinities.
    let equal = here.two(ElementOp::Eq, &size_c, &size_d);
    let signs = here.mul(&here.one(ElementOp::Sign, c), here.one(ElementOp::Sign, d));
    let ratio = here.select(&equal, &signs, here.div(&lesser, &greater));
    // Sums of two large numbers would overflow. Halving both the dividend and the divisor does not change the quotient.
    // A tiny divisor is not halved, because that may lose its last digits.
    let divisor_size = here.two(ElementOp::Max, &size_c, &size_d);
    let [size_re, size_im] = [&x.re, &x.im].map(|part| here.one(ElementOp::Abs, part));
    let size = here.two(ElementOp::Max, &here.two(ElementOp::Max, &size_re, &size_im), &divisor_size);
    let large = here.one(ElementOp::IsInf, &here.mul(&size, 2.0));
    let large = here.two(ElementOp::And, &large, here.two(ElementOp::Ge, &divisor_size, 0.25));
    let halved = |part: &Array| here.select(&large, here.mul(part, 0.5), part);
    let [greater, lesser, x_re, x_im] = [&greater, &lesser, &x.re, &x.im].map(halved);
    let scale = here.add(&greater, &here.mul(&lesser, &ratio));
    let (p, q) = (here.select(&wide, &x_re, &x_im), here.select(&wide, &x_im, &x_re));
    let re = here.div(&here.add(&p, &here.mul(&q, &ratio)), &scale);
    let im = here.div(&here.sub(&q, &here.mul(&p, &ratio)), &scale);
    let im = here.select(&wide, &im, here.one(ElementOp::Neg, &im));
    ComplexArray::new(re, im)
}

/// `x + z`, computed as `z + x`.
fn add_to(here: Here, x: &Array, z: &ComplexArray) -> ComplexArray {
    add(here, z, &x.into())
}

/// `x - z`, computed as `-z + x`.
fn sub_from(here: Here, x: &Array, z: &ComplexArray) -> ComplexArray {
    add(here, &negated(here, z), &x.into())
}

/// `x z`, computed as `z x`.
fn mul_by(here: Here, x: &Array, z: &ComplexArray) -> ComplexArray {
    mul(here, z, &x.into())
}

fn div_into(here: Here, x: &Array, z: &ComplexArray) -> ComplexArray {
    div(here, &complex(x, here.0), &z.into())
}

fn negated(here: Here, z: &ComplexArray) -> ComplexArray {
    ComplexArray::new(here.one(ElementOp::Neg, &z.re), here.one(ElementOp::Neg, &z.im))
}

macro_rules! operators {
    ($($trait:ident :: $method:ident => $right:ident, $left:ident;)*) => {$(
        operators!(@right $trait $method $right; ComplexArray);
        operators!(@right $trait $method $right; &ComplexArray);
        operators!(@left $trait $method $left; Array, ComplexArray);
        operators!(@left $trait $method $left; Array, &ComplexArray);
        operators!(@left $trait $method $left; &Array, ComplexArray);
        operators!(@left $trait $method $left; &Array, &ComplexArray);
    )*};
    (@right $trait:ident $method:ident $op:ident; $left:ty) => {
        impl<'a, T: Into<ComplexOperand<'a>>> ops::$trait<T> for $left {
            type Output = ComplexArray;
            #[track_caller]
            fn $method(self, other: T) -> ComplexArray {
                let left: &ComplexArray = &self;
                $op(Here(Location::caller()), left, &other.into())
            }
        }
    };
    (@left $trait:ident $method:ident $op:ident; $left:ty, $right:ty) => {
        impl ops::$trait<$right> for $left {
            type Output = ComplexArray;
            #[track_caller]
            fn $method(self, other: $right) -> ComplexArray {
                let (left, right): (&Array, &ComplexArray) = (&self, &other);
                $op(Here(Location::caller()), left, right)
            }
        }
    };
}

operators! {
    Add::add => add, add_to;
    Sub::sub => sub, sub_from;
    Mul::mul => mul, mul_by;
    Div::div => div, div_into;
}

macro_rules! negation {
    ($($ty:ty),*) => {$(
        impl ops::Neg for $ty {
            type Output = ComplexArray;
            #[track_caller]
            fn neg(self) -> ComplexArray {
                negated(Here(Location::caller()), &self)
            }
        }
    )*};
}
negation!(ComplexArray, &ComplexArray);

impl ComplexOperand<'_> {
    /// The real part as an array, and whether the operand is zero (bool).
    pub(super) fn real_part_and_zero(&self, here: Here, like: &Array) -> (Array, Array) {
        let array = |part: &Operand<'_>| match part.array() {
            Some(array) => array.clone(),
            None => here.two(ElementOp::Add, &here.number(like, 0.0), part),
        };
        let Operands { re, im } = self.parts(here);
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

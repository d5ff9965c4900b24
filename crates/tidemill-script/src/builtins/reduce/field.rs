//! The number types of host reductions, and their order.
//!
//! Must hold: complex numbers are ordered by absolute value, then by angle; NaN is never equal to or better than
//! another number.

use crate::value::Data;
use num_complex::{Complex, Complex32, Complex64};
use std::ops::{Add, Div, Mul, Sub};

/// A number type with the four operations: f64, f32 and the complex ones.
pub trait Field:
    Copy + PartialEq + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// The type in which sums of such numbers are computed: a real or complex number with the digits of doubles.
    type Wide: Field;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Converts a number.
    fn of(x: f64) -> Self;
    /// Divides each part by a real number.
    fn over(self, n: f64) -> Self;
    /// Whether any part is NaN.
    fn is_nan(self) -> bool;
    /// `|x|²`, as a number of the same type.
    fn abs_squared(self) -> Self;
    /// The square root of the real part.
    fn root(self) -> Self;
    /// The complex conjugate.
    fn conjugate(self) -> Self;
    /// `|x|` as a double.
    fn magnitude(self) -> f64;
    /// The number in its wide type.
    fn wide(self) -> Self::Wide;
    /// The number's real and imaginary parts.
    fn parts(self) -> [f64; 2];
    /// The number that a wide one is rounded to.
    fn narrow(wide: Self::Wide) -> Self;
    /// The number that these real and imaginary parts are rounded to.
    fn of_parts(parts: [f64; 2]) -> Self;
}

macro_rules! real {
    ($t:ty) => {
        impl Field for $t {
            type Wide = f64;
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            fn of(x: f64) -> $t {
                x as $t
            }
            fn over(self, n: f64) -> $t {
                self / n as $t
            }
            fn is_nan(self) -> bool {
                self.is_nan()
            }
            fn abs_squared(self) -> $t {
                self * self
            }
            fn root(self) -> $t {
                self.sqrt()
            }
            fn conjugate(self) -> $t {
                self
            }
            fn magnitude(self) -> f64 {
                self.abs() as f64
            }
            fn wide(self) -> f64 {
                self as f64
            }
            fn parts(self) -> [f64; 2] {
                [self as f64, 0.0]
            }
            fn narrow(wide: f64) -> $t {
                wide as $t
            }
            fn of_parts(parts: [f64; 2]) -> $t {
                parts[0] as $t
            }
        }
        impl Field for Complex<$t> {
            type Wide = Complex64;
            const ZERO: Complex<$t> = Complex::new(0.0, 0.0);
            const ONE: Complex<$t> = Complex::new(1.0, 0.0);
            fn of(x: f64) -> Complex<$t> {
                Complex::new(x as $t, 0.0)
            }
            fn over(self, n: f64) -> Complex<$t> {
                Complex::new(self.re / n as $t, self.im / n as $t)
            }
            fn is_nan(self) -> bool {
                self.re.is_nan() || self.im.is_nan()
            }
            fn abs_squared(self) -> Complex<$t> {
                Complex::new(self.re * self.re + self.im * self.im, 0.0)
            }
            fn root(self) -> Complex<$t> {
                Complex::new(self.re.sqrt(), 0.0)
            }
            fn conjugate(self) -> Complex<$t> {
                self.conj()
            }
            fn magnitude(self) -> f64 {
                self.norm() as f64
            }
            fn wide(self) -> Complex64 {
                Complex64::new(self.re as f64, self.im as f64)
            }
            fn parts(self) -> [f64; 2] {
                [self.re as f64, self.im as f64]
            }
            fn narrow(wide: Complex64) -> Complex<$t> {
                Complex::new(wide.re as $t, wide.im as $t)
            }
            fn of_parts(parts: [f64; 2]) -> Complex<$t> {
                Complex::new(parts[0] as $t, parts[1] as $t)
            }
        }
    };
}
real!(f64);
real!(f32);

/// An element of an array, as sorting and extrema order it.
pub trait Ordered: Copy + PartialEq {
    /// Whether it has no place in the order.
    fn no_number(self) -> bool {
        false
    }
    /// Whether it comes before another one; both must be numbers.
    fn before(self, other: Self) -> bool;
    /// Whether it is not zero (and not NaN).
    fn is_true(self) -> bool;
}

macro_rules! ordered {
    ($($t:ty => $zero:expr),*) => {$(
        impl Ordered for $t {
            fn before(self, other: $t) -> bool {
                self < other
            }
            fn is_true(self) -> bool {
                self != $zero
            }
        }
    )*};
}
ordered!(i8 => 0, i16 => 0, i32 => 0, i64 => 0, u8 => 0, u16 => 0, u32 => 0, u64 => 0, bool => false);

macro_rules! ordered_float {
    ($($t:ty),*) => {$(
        impl Ordered for $t {
            fn no_number(self) -> bool {
                self.is_nan()
            }
            fn before(self, other: $t) -> bool {
                self < other
            }
            fn is_true(self) -> bool {
                self != 0.0 && !self.is_nan()
            }
        }
        impl Ordered for Complex<$t> {
            fn no_number(self) -> bool {
                self.re.is_nan() || self.im.is_nan()
            }
            fn before(self, other: Complex<$t>) -> bool {
                let (a, b) = (self.norm(), other.norm());
                // An angle of -pi counts as pi, as in Octave.
                let angle = |z: Complex<$t>| {
                    let angle = z.im.atan2(z.re);
                    if angle == -(std::f64::consts::PI as $t) { -angle } else { angle }
                };
                a < b || a == b && angle(self) < angle(other)
            }
            fn is_true(self) -> bool {
                (self.re != 0.0 || self.im != 0.0) && !self.no_number()
            }
        }
    )*};
}
ordered_float!(f64, f32);

/// Returns data in which sums are computed: floats unchanged, and other classes as doubles.
pub fn as_float(data: &Data) -> std::borrow::Cow<'_, Data> {
    match data {
        Data::F64(_) | Data::F32(_) | Data::C64(_) | Data::C32(_) => std::borrow::Cow::Borrowed(data),
        other => std::borrow::Cow::Owned(Data::F64(other.to_f64())),
    }
}

/// Converts single data to double; other data is unchanged.
pub fn widened(data: &Data) -> Data {
    match data {
        Data::F32(v) => Data::F64(v.iter().map(|&x| x as f64).collect()),
        Data::C32(v) => Data::C64(v.iter().map(|z| Complex64::new(z.re as f64, z.im as f64)).collect()),
        other => other.clone(),
    }
}

/// Converts double data to single; other data is unchanged.
pub fn narrowed(data: &Data) -> Data {
    match data {
        Data::F64(v) => Data::F32(v.iter().map(|&x| x as f32).collect()),
        Data::C64(v) => Data::C32(v.iter().map(|z| Complex32::new(z.re as f32, z.im as f32)).collect()),
        other => other.clone(),
    }
}

/// Runs `$body` on float data, and wraps the resulting vector in the same variant. Data of another class counts as
/// empty doubles, so callers convert it first by [`as_float`].
macro_rules! float_data {
    ($data:expr, $v:ident => $body:expr) => {{
        use $crate::value::Data;
        match $data {
            Data::F32($v) => Data::F32($body),
            Data::C64($v) => Data::C64($body),
            Data::C32($v) => Data::C32($body),
            Data::F64($v) => Data::F64($body),
            other => {
                let $v = &other.to_f64();
                Data::F64($body)
            }
        }
    }};
}
pub(super) use float_data;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complex_numbers_are_ordered_by_size_then_angle() {
        let z = |re: f64, im: f64| Complex64::new(re, im);
        assert!(z(1.0, 0.0).before(z(0.0, 2.0)));
        assert!(z(-1.0, -1.0).before(z(1.0, 1.0)));
        assert!(!z(-1.0, -0.0).before(z(1.0, 0.0)), "an angle of -pi counts as pi");
        assert!(z(f64::NAN, 0.0).no_number());
    }
}

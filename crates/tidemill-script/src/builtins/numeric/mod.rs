//! Functions of numbers, element by element: special functions, bits, remainders, integers, classes, random numbers.

pub mod bessel;
mod bessel_values;
pub mod bits;
pub mod conversions;
mod degrees;
pub mod elementwise;
mod faddeeva;
pub mod incomplete;
mod incomplete_values;
pub mod integers;
pub mod operators;
mod parts;
pub mod random;
pub mod remainders;
mod special;

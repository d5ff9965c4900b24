//! Functions of samples: polynomials, interpolation, integrals, filters, convolutions, Fourier transforms.

pub mod convolution;
mod fits;
pub mod fourier;
mod integrals;
mod interpolation;
pub mod polynomials;

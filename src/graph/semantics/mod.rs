//! The functions of the elementwise ops, written once for all devices.
//!
//! Every function here is generic over a *lane*. A lane is a native number, with which the host device runs the
//! function in loops that vectorise, or a recorder (`kernels::element::trace`), which writes the same arithmetic down
//! as WGSL. In: lanes. Out: lanes. The rows of the op table name these functions.
//!
//! Must hold:
//! - SEM-1: no branch depends on a lane's value: choices are `select`s, so loops vectorise and shaders don't diverge.
//!   Long code for rare arguments is a function of its own, which the op's row names with the test that selects it.
//! - SEM-2: error-free products use operands cut to half a mantissa, so that they are exact whether or not a driver
//!   contracts `a * b + c`. Sums whose rounding error is used are `pinned`, since Mesa's compiler replaces `(a + b) -
//!   a` by `b`.
//! - SEM-3: no subnormal, infinity or NaN is written as a literal, and no literal zero takes part in an addition whose
//!   sign of zero matters.
//! - SEM-4: the result does not depend on the width of the loop: native lanes use no operation whose rounding
//!   differs between instruction sets.

pub mod arithmetic;
// Some coefficients begin with the digits of well-known constants, but are not these constants.
#[allow(clippy::approx_constant)]
mod coefficients;
pub mod exponential;
pub mod hyperbolic;
pub mod integer;
pub mod inverse;
mod lanes;
pub mod logarithm;
mod native;
pub mod power;
pub(crate) mod random;
pub(crate) mod rejection;
pub mod special;
pub mod trigonometric;

#[cfg(feature = "gpu")]
pub(crate) use coefficients::{COS, SIN};
pub use lanes::Lane;
#[cfg(feature = "gpu")]
pub(crate) use lanes::Poly;
#[cfg(feature = "gpu")]
pub use lanes::{Bits, Float, Mask, Whole};

//! The target that a kernel is written for: the demanded accuracy, and the properties of the device's arithmetic.
//!
//! In: the program's choice of accuracy, and the results of the probes that ran when the device was opened. Out: the
//! variants of functions that the WGSL writer chooses.

/// How accurate generated arithmetic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// At most 4 ulp over the whole range, 16 for `erf`, `gamma` and `lgamma`; `examples/ulp.rs` measures it.
    #[default]
    Accurate,
    /// A GPU uses WGSL's built-in functions, for which WGSL guarantees little accuracy.
    Fast,
}

/// Properties of a device's arithmetic, probed when the device is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FloatProfile {
    /// `fma(a, b, c)` rounds once.
    pub fma_fused: bool,
    /// f32 subnormals survive an addition.
    pub keeps_subnormals: bool,
    /// f32 division is correctly rounded.
    pub exact_division: bool,
    /// f32 square root is correctly rounded.
    pub exact_sqrt: bool,
    /// `-0.0` survives a multiplication by 1.
    pub keeps_negative_zero: bool,
}

impl FloatProfile {
    /// IEEE 754 in all points except for the fused multiply-add, which is too slow on CPUs without an instruction for
    /// it.
    pub const UNFUSED: FloatProfile = FloatProfile {
        fma_fused: false,
        keeps_subnormals: true,
        exact_division: true,
        exact_sqrt: true,
        keeps_negative_zero: true,
    };
    /// IEEE 754 in all points.
    #[cfg(test)]
    pub const EXACT: FloatProfile = FloatProfile { fma_fused: true, ..FloatProfile::UNFUSED };
    /// The weakest arithmetic that WGSL allows.
    #[cfg(test)]
    pub const LOOSE: FloatProfile = FloatProfile {
        fma_fused: false,
        keeps_subnormals: false,
        exact_division: false,
        exact_sqrt: false,
        keeps_negative_zero: false,
    };
}

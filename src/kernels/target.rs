//! What a kernel is written for: how accurate its arithmetic has to be, and what the arithmetic of the device does.
//!
//! In: what the program asked for, and what was probed when the device was opened. Out: which variant of a function the
//! WGSL writer takes.

/// How accurate generated arithmetic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// At most 4 ulp over the whole range, 16 for `erf`, `gamma` and `lgamma`; `examples/ulp.rs` measures it.
    #[default]
    Accurate,
    /// WGSL's built-ins on a GPU, whose error is loose.
    Fast,
}

/// What a device's arithmetic does, probed at start.
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
    /// IEEE 754 in all points but the fused multiply-add, which costs too much where no instruction does it.
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
    /// The least that WGSL allows.
    #[cfg(test)]
    pub const LOOSE: FloatProfile = FloatProfile {
        fma_fused: false,
        keeps_subnormals: false,
        exact_division: false,
        exact_sqrt: false,
        keeps_negative_zero: false,
    };
}

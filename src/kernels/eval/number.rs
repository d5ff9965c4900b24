//! The arithmetic of folds for each dtype: integers saturate, and the names say whether NaN is included or omitted.

/// A type of numbers that can be folded.
pub(super) trait Number: Copy + PartialEq + PartialOrd {
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// Infinity, or the greatest integer.
    const GREATEST: Self;
    /// Minus infinity, or the least integer.
    const LEAST: Self;
    /// The neutral element of `min_omit`.
    const MIN_OMIT_NEUTRAL: Self;
    /// The neutral element of `max_omit`.
    const MAX_OMIT_NEUTRAL: Self;
    /// Sum.
    fn plus(self, other: Self) -> Self;
    /// Product.
    fn times(self, other: Self) -> Self;
    /// Minimum; NaN if either is NaN.
    fn min_include(self, other: Self) -> Self;
    /// Minimum; NaN only if both are NaN.
    fn min_omit(self, other: Self) -> Self;
    /// Maximum; NaN if either is NaN.
    fn max_include(self, other: Self) -> Self;
    /// Maximum; NaN only if both are NaN.
    fn max_omit(self, other: Self) -> Self;
    /// Whether it is NaN.
    fn is_nan_number(self) -> bool;
}

macro_rules! float {
    ($($ty:ident),*) => {$(
        impl Number for $ty {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const GREATEST: Self = $ty::INFINITY;
            const LEAST: Self = $ty::NEG_INFINITY;
            const MIN_OMIT_NEUTRAL: Self = $ty::NAN;
            const MAX_OMIT_NEUTRAL: Self = $ty::NAN;
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn min_include(self, other: Self) -> Self {
                // A comparison with NaN is false: a NaN in `self` stays, one in `other` is taken. If both are zeros of
                // different sign, `self` stays, as in the GPU's folds.
                if other < self || other != other { other } else { self }
            }
            #[inline(always)]
            fn min_omit(self, other: Self) -> Self {
                if other < self || self != self { other } else { self }
            }
            #[inline(always)]
            fn max_include(self, other: Self) -> Self {
                if other > self || other != other { other } else { self }
            }
            #[inline(always)]
            fn max_omit(self, other: Self) -> Self {
                if other > self || self != self { other } else { self }
            }
            #[inline(always)]
            fn is_nan_number(self) -> bool { self != self }
        }
    )*};
}

macro_rules! integer {
    ($($ty:ident),*) => {$(
        impl Number for $ty {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const GREATEST: Self = $ty::MAX;
            const LEAST: Self = $ty::MIN;
            const MIN_OMIT_NEUTRAL: Self = $ty::MAX;
            const MAX_OMIT_NEUTRAL: Self = $ty::MIN;
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self.saturating_add(other) }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self.saturating_mul(other) }
            #[inline(always)]
            fn min_include(self, other: Self) -> Self { self.min(other) }
            #[inline(always)]
            fn min_omit(self, other: Self) -> Self { self.min(other) }
            #[inline(always)]
            fn max_include(self, other: Self) -> Self { self.max(other) }
            #[inline(always)]
            fn max_omit(self, other: Self) -> Self { self.max(other) }
            #[inline(always)]
            fn is_nan_number(self) -> bool { false }
        }
    )*};
}

float!(f32, f64);
integer!(u8, i32, u32, i64);

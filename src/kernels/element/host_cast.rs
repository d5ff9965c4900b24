//! Casts between any two dtypes on the host, as MATLAB does them.

use super::host::Call;
use super::loops::Unary;
use crate::graph::DType;
use crate::graph::semantics::arithmetic::round;

/// The conversion of a number to type `R`. Floats become integers by rounding half away from zero and saturating; NaN
/// becomes 0.
trait CastTo<R> {
    fn cast_to(self) -> R;
}

macro_rules! cast {
    ($from:ty, |$x:ident| $($to:ty => $value:expr),* $(,)?) => {$(
        impl CastTo<$to> for $from {
            #[inline(always)]
            fn cast_to(self) -> $to {
                let $x = self;
                $value
            }
        }
    )*};
}
// `as` from float to integer saturates and takes NaN to 0; between integers it wraps, so those are clamped first.
cast!(f32, |x| f32 => x, f64 => x as f64, u8 => round(x) as u8, i32 => round(x) as i32, u32 => round(x) as u32,
    i64 => round(x) as i64);
cast!(f64, |x| f32 => x as f32, f64 => x, u8 => round(x) as u8, i32 => round(x) as i32, u32 => round(x) as u32,
    i64 => round(x) as i64);
cast!(u8, |x| f32 => x as f32, f64 => x as f64, u8 => x, i32 => x as i32, u32 => x as u32, i64 => x as i64);
cast!(i32, |x| f32 => x as f32, f64 => x as f64, u8 => x.clamp(0, 255) as u8, i32 => x, u32 => x.max(0) as u32,
    i64 => x as i64);
cast!(u32, |x| f32 => x as f32, f64 => x as f64, u8 => x.min(255) as u8, i32 => x.min(i32::MAX as u32) as i32,
    u32 => x, i64 => x as i64);
cast!(i64, |x| f32 => x as f32, f64 => x as f64, u8 => x.clamp(0, 255) as u8,
    i32 => x.clamp(i32::MIN as i64, i32::MAX as i64) as i32, u32 => x.clamp(0, u32::MAX as i64) as u32, i64 => x);

struct To;

impl<A: CastTo<R>, R> Unary<A, R> for To {
    #[inline(always)]
    fn eval(a: A) -> R {
        a.cast_to()
    }
}

/// A cast to bool, stored as 0 or 1: 1 for numbers that are not zero, and 0 for NaN.
struct ToBool;

impl<A: PartialEq + Default> Unary<A, u8> for ToBool {
    #[inline(always)]
    fn eval(a: A) -> u8 {
        (a != A::default()) as u8
    }
}

/// Runs the call's cast from its input to its output dtype.
pub(super) fn run(call: &mut Call<'_, '_>) {
    macro_rules! from {
        ($a:ty) => {
            match call.output {
                DType::F32 => call.map1::<$a, f32, To>(),
                DType::F64 => call.map1::<$a, f64, To>(),
                DType::Bool => call.map1::<$a, u8, ToBool>(),
                DType::U8 => call.map1::<$a, u8, To>(),
                DType::I32 => call.map1::<$a, i32, To>(),
                DType::U32 => call.map1::<$a, u32, To>(),
                DType::I64 => call.map1::<$a, i64, To>(),
            }
        };
    }
    match call.input {
        DType::F32 => from!(f32),
        DType::F64 => from!(f64),
        // A bool's byte is 0 or 1, so it can be read as a number.
        DType::Bool | DType::U8 => from!(u8),
        DType::I32 => from!(i32),
        DType::U32 => from!(u32),
        DType::I64 => from!(i64),
    }
}

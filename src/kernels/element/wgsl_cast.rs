//! Casts between any two dtypes in WGSL.

use super::trace::{F32, F64, I32, I64, Traced, Truth, U8, U32, U64};
use crate::graph::DType;
use crate::graph::semantics::arithmetic::round;
use crate::graph::semantics::{Float, Lane, Whole};

/// The recorded value, of a kind, for an argument.
macro_rules! argument {
    ($kind:ident, $text:expr) => {
        Traced::<$kind>::named($text.to_string())
    };
}

/// Casts a float to an integer of kind `I` from `least` to `greatest`: rounded half away from zero, saturated, NaN as
/// 0. `top` is a float that is at least `greatest`, which itself may not be a float. From `top` on the result is
/// `greatest`.
macro_rules! to_whole {
    ($x:expr, $f:ident, $i:ident, $least:expr, $top:expr) => {{
        let x: Traced<$f> = round($x);
        let (least, top) = (Traced::<$f>::lit($least), Traced::<$f>::lit($top));
        let inside = x.more(least) & x.less(top);
        let value = Traced::<$f>::select(inside, x, Traced::<$f>::lit(0.0)).convert::<$i>();
        let value = Traced::<$i>::select(x.at_least(top), Traced::<$i>::greatest(), value);
        let value = Traced::<$i>::select(x.at_most(least), Traced::<$i>::least(), value);
        Traced::<$i>::select(x.is_nan(), Traced::<$i>::whole(0), value).id()
    }};
}

macro_rules! from_float {
    ($x:expr, $f:ident, $output:expr) => {{
        let x: Traced<$f> = $x;
        match $output {
            DType::F32 => x.convert::<F32>().id(),
            DType::F64 => x.convert::<F64>().id(),
            DType::Bool => (!x.same(Traced::<$f>::lit(0.0))).id(),
            DType::U8 => to_whole!(x, $f, U8, 0.0, 255.0),
            DType::U32 => to_whole!(x, $f, U32, 0.0, 4294967296.0),
            DType::I32 => to_whole!(x, $f, I32, -2147483648.0, 2147483648.0),
            DType::I64 => to_whole!(x, $f, I64, -9223372036854775808.0, 9223372036854775808.0),
        }
    }};
}

/// Casts an integer to another integer kind. `low` and `high` are the target's limits, if the source's are beyond them.
fn whole_to_whole<A, B>(x: Traced<A>, low: Option<i64>, high: Option<i64>) -> u32
where
    A: super::trace::Kind,
    B: super::trace::Kind,
    Traced<A>: Whole,
{
    let x = low.map_or(x, |low| Traced::select(x.less(Traced::whole(low)), Traced::whole(low), x));
    let x = high.map_or(x, |high| Traced::select(x.more(Traced::whole(high)), Traced::whole(high), x));
    if A::NAME == B::NAME { x.id() } else { x.convert::<B>().id() }
}

/// Casts an `i32` to an `i64`. Mesa 22.3 compiles `i64(x) < 0` of an i32 `x` to false, so the sign is extended by
/// arithmetic.
fn extended(x: Traced<I32>) -> Traced<I64> {
    let (sign, offset) = (Traced::constant("0x80000000u"), Traced::constant("2147483648li"));
    let raised: Traced<U32> = x.bitcast::<U32>().infix("^", sign);
    raised.convert::<U64>().bitcast::<I64>().infix("-", offset)
}

/// Records the cast of an argument.
pub(super) fn record(input: DType, output: DType, text: &str) -> u32 {
    const I32_MIN: i64 = i32::MIN as i64;
    const I32_MAX: i64 = i32::MAX as i64;
    const U32_MAX: i64 = u32::MAX as i64;
    match input {
        DType::F32 => from_float!(argument!(F32, text), F32, output),
        DType::F64 => from_float!(argument!(F64, text), F64, output),
        DType::Bool => from_bool(argument!(Truth, text), output),
        DType::U8 => {
            let x = argument!(U8, text);
            match output {
                DType::F32 => x.convert::<F32>().id(),
                DType::F64 => x.convert::<F64>().id(),
                DType::Bool => (!x.same(Traced::whole(0))).id(),
                DType::U8 | DType::U32 => x.id(),
                DType::I32 => whole_to_whole::<U8, I32>(x, None, None),
                DType::I64 => whole_to_whole::<U8, I64>(x, None, None),
            }
        }
        DType::U32 => {
            let x = argument!(U32, text);
            match output {
                DType::F32 => x.convert::<F32>().id(),
                DType::F64 => x.convert::<F64>().id(),
                DType::Bool => (!x.same(Whole::whole(0))).id(),
                DType::U8 => whole_to_whole::<U32, U8>(x, None, Some(255)),
                DType::U32 => x.id(),
                DType::I32 => whole_to_whole::<U32, I32>(x, None, Some(I32_MAX)),
                // The cast goes through u64, because Mesa's compiler extends the sign in a direct cast to i64.
                DType::I64 => x.convert::<U64>().bitcast::<I64>().id(),
            }
        }
        DType::I32 => {
            let x = argument!(I32, text);
            match output {
                DType::F32 => x.convert::<F32>().id(),
                DType::F64 => x.convert::<F64>().id(),
                DType::Bool => (!x.same(Traced::whole(0))).id(),
                DType::U8 => whole_to_whole::<I32, U8>(x, Some(0), Some(255)),
                DType::U32 => whole_to_whole::<I32, U32>(x, Some(0), None),
                DType::I32 => x.id(),
                DType::I64 => extended(x).id(),
            }
        }
        DType::I64 => {
            let x = argument!(I64, text);
            match output {
                DType::F32 => x.convert::<F32>().id(),
                DType::F64 => x.convert::<F64>().id(),
                DType::Bool => (!x.same(Traced::whole(0))).id(),
                DType::U8 => whole_to_whole::<I64, U8>(x, Some(0), Some(255)),
                DType::U32 => whole_to_whole::<I64, U32>(x, Some(0), Some(U32_MAX)),
                DType::I32 => whole_to_whole::<I64, I32>(x, Some(I32_MIN), Some(I32_MAX)),
                DType::I64 => x.id(),
            }
        }
    }
}

fn from_bool(x: Traced<Truth>, output: DType) -> u32 {
    match output {
        DType::Bool => x.id(),
        DType::F32 => Traced::select(x, Traced::<F32>::lit(1.0), Traced::lit(0.0)).id(),
        DType::F64 => Traced::select(x, Traced::<F64>::lit(1.0), Traced::lit(0.0)).id(),
        DType::U8 => Traced::select(x, Traced::<U8>::whole(1), Traced::whole(0)).id(),
        DType::U32 => Traced::<U32>::select(x, Whole::whole(1), Whole::whole(0)).id(),
        DType::I32 => Traced::select(x, Traced::<I32>::whole(1), Traced::whole(0)).id(),
        DType::I64 => Traced::select(x, Traced::<I64>::whole(1), Traced::whole(0)).id(),
    }
}

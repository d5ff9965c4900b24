//! The WGSL types of dtypes, in registers and in storage, and the conversions between them.
//!
//! Must hold: a bool is `bool` in registers and a word in storage; a u8 is a `u32` in both, at most 255.

use crate::graph::DType;

/// The scalar type of a value in registers.
pub(crate) fn register(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::Bool => "bool",
        DType::U8 | DType::U32 => "u32",
        DType::I32 => "i32",
        DType::I64 => "i64",
    }
}

/// The scalar type of an element in a buffer or in workgroup memory.
pub(crate) fn storage(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "u32",
        other => register(other),
    }
}

/// `scalar`, or a vector of four of it.
pub(crate) fn vector(scalar: &str, width: u32) -> String {
    if width == 1 { scalar.to_string() } else { format!("vec{width}<{scalar}>") }
}

/// The register type of `width` lanes.
pub(crate) fn typed(dtype: DType, width: u32) -> String {
    vector(register(dtype), width)
}

/// Converts an expression of storage type to the register type.
pub(crate) fn from_storage(dtype: DType, width: u32, expression: &str) -> String {
    match dtype {
        DType::Bool => format!("({expression} != {})", splat("u32", width, "0u")),
        _ => expression.to_string(),
    }
}

/// Converts an expression of register type to the storage type.
pub(crate) fn to_storage(dtype: DType, width: u32, expression: &str) -> String {
    match dtype {
        DType::Bool => {
            format!("select({}, {}, {expression})", splat("u32", width, "0u"), splat("u32", width, "1u"))
        }
        _ => expression.to_string(),
    }
}

/// A scalar expression, repeated in every lane.
pub(crate) fn splat(scalar: &str, width: u32, expression: &str) -> String {
    if width == 1 { expression.to_string() } else { format!("vec{width}<{scalar}>({expression})") }
}

/// The scalar of register type that consists of these 32-bit words (low first).
pub(crate) fn from_words(dtype: DType, words: &[String]) -> String {
    let wide = |words: &[String]| format!("((u64({}) << 32u) | u64({}))", words[1], words[0]);
    match dtype {
        DType::F32 => format!("bitcast<f32>({})", words[0]),
        DType::I32 => format!("bitcast<i32>({})", words[0]),
        DType::U32 | DType::U8 => words[0].clone(),
        DType::Bool => format!("({} != 0u)", words[0]),
        DType::F64 => format!("bitcast<f64>({})", wide(words)),
        DType::I64 => format!("bitcast<i64>({})", wide(words)),
    }
}

/// The 32-bit words (low first) of a scalar register.
pub(crate) fn to_words(dtype: DType, expression: &str) -> Vec<String> {
    match dtype {
        DType::F32 | DType::I32 => vec![format!("bitcast<u32>({expression})")],
        DType::U32 | DType::U8 => vec![expression.to_string()],
        DType::Bool => vec![format!("select(0u, 1u, {expression})")],
        DType::F64 | DType::I64 => vec![
            format!("u32(bitcast<u64>({expression}) & 0xfffffffflu)"),
            format!("u32(bitcast<u64>({expression}) >> 32u)"),
        ],
    }
}

/// Zero (false) of a dtype, as a scalar.
pub(crate) fn zero(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "0.0f",
        DType::F64 => "0.0lf",
        DType::Bool => "false",
        DType::U8 | DType::U32 => "0u",
        DType::I32 => "0i",
        DType::I64 => "0li",
    }
}

/// One (true) of a dtype, as a scalar.
pub(crate) fn one(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "1.0f",
        DType::F64 => "1.0lf",
        DType::Bool => "true",
        DType::U8 | DType::U32 => "1u",
        DType::I32 => "1i",
        DType::I64 => "1li",
    }
}

/// Positive or negative infinity for floats, otherwise the greatest or least number of the dtype, as a scalar.
pub(crate) fn extreme(dtype: DType, greatest: bool) -> &'static str {
    match (dtype, greatest) {
        (DType::F32, true) => "bitcast<f32>(0x7f800000u)",
        (DType::F32, false) => "bitcast<f32>(0xff800000u)",
        (DType::F64, true) => "bitcast<f64>(0x7ff0000000000000lu)",
        (DType::F64, false) => "bitcast<f64>(0xfff0000000000000lu)",
        (DType::Bool, true) => "true",
        (DType::Bool, false) => "false",
        (DType::U8, true) => "255u",
        (DType::U32, true) => "0xffffffffu",
        (DType::U8 | DType::U32, false) => "0u",
        (DType::I32, true) => "2147483647i",
        (DType::I32, false) => "bitcast<i32>(0x80000000u)",
        (DType::I64, true) => "9223372036854775807li",
        (DType::I64, false) => "bitcast<i64>(0x8000000000000000lu)",
    }
}

/// A quiet NaN, as a scalar; only for floats.
pub(crate) fn nan(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "bitcast<f32>(0x7fc00000u)",
        DType::F64 => "bitcast<f64>(0x7ff8000000000000lu)",
        _ => unreachable!("IR-7: only floats have a NaN"),
    }
}

/// Whether the lanes of a float register are NaN. Looks at their bits, because compilers may assume that there is no
/// NaN.
pub(crate) fn is_nan(dtype: DType, width: u32, expression: &str) -> String {
    against_infinity(dtype, width, expression, ">").unwrap_or_else(|| splat("bool", width, "false"))
}

/// Whether the lanes of a float register are infinite or NaN, by their bits.
pub(crate) fn is_not_finite(dtype: DType, width: u32, expression: &str) -> String {
    against_infinity(dtype, width, expression, ">=").unwrap_or_else(|| splat("bool", width, "false"))
}

/// Whether a float scalar is neither infinite nor NaN, by its bits.
pub(crate) fn is_finite(dtype: DType, expression: &str) -> String {
    against_infinity(dtype, 1, expression, "<").unwrap_or_else(|| "true".to_string())
}

/// Compares the bits of a float register, without their signs, with those of infinity; `None` for other dtypes.
fn against_infinity(dtype: DType, width: u32, expression: &str, compare: &str) -> Option<String> {
    let (bits, magnitude, infinity) = match dtype {
        DType::F32 => ("u32", "0x7fffffffu", "0x7f800000u"),
        DType::F64 => ("u64", "0x7ffffffffffffffflu", "0x7ff0000000000000lu"),
        DType::Bool | DType::U8 | DType::I32 | DType::U32 | DType::I64 => return None,
    };
    let of = |scalar: &str| splat(bits, width, scalar);
    let cast = vector(bits, width);
    Some(format!("((bitcast<{cast}>({expression}) & {}) {compare} {})", of(magnitude), of(infinity)))
}

/// The lanes of a vector, or the scalar itself.
pub(crate) fn lanes(expression: &str, width: u32) -> Vec<String> {
    if width == 1 {
        vec![expression.to_string()]
    } else {
        (0..4).map(|lane| format!("{expression}.{}", component(lane))).collect()
    }
}

/// The name of a component of a vector.
pub(crate) fn component(lane: u32) -> &'static str {
    ["x", "y", "z", "w"][lane as usize]
}

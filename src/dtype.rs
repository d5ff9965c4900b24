//! Element types and typed scalars.
//!
//! In: Rust values. Out: tags and bits that every later stage switches on, exhaustively.
//! Must hold: DTYPE-1: a cast yields a scalar of its target.

use std::fmt;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// IEEE 754 binary32 (MATLAB `single`).
    F32,
    /// IEEE 754 binary64 (MATLAB `double`).
    F64,
    /// True or false (MATLAB `logical`).
    Bool,
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
    /// Signed 64-bit integer, exact above 2^53.
    I64,
}

impl DType {
    /// All dtypes.
    pub const ALL: [DType; 7] = [DType::F32, DType::F64, DType::Bool, DType::U8, DType::I32, DType::U32, DType::I64];

    /// Bytes of an element in host memory (a bool is one byte).
    pub const fn bytes(self) -> usize {
        match self {
            DType::Bool | DType::U8 => 1,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F64 | DType::I64 => 8,
        }
    }

    /// Bytes of an element in a GPU buffer: nothing is narrower than a 32-bit word there, since WGSL
    /// has no narrower storage type.
    pub const fn gpu_bytes(self) -> usize {
        match self {
            DType::F64 | DType::I64 => 8,
            _ => 4,
        }
    }

    /// `f32`, `f64`, `bool`, …
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::Bool => "bool",
            DType::U8 => "u8",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::I64 => "i64",
        }
    }

    /// Whether it is `f32` or `f64`.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }

    /// Whether it is one of MATLAB's integer classes (bool is none).
    pub const fn is_integer(self) -> bool {
        matches!(self, DType::U8 | DType::I32 | DType::U32 | DType::I64)
    }

    /// Whether its GPU form takes 64 bits, which a device may lack.
    pub const fn is_wide(self) -> bool {
        matches!(self, DType::F64 | DType::I64)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One typed number. Equality is of bits, so that it can be hashed.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// `f32`
    F32(f32),
    /// `f64`
    F64(f64),
    /// `bool`
    Bool(bool),
    /// `u8`
    U8(u8),
    /// `i32`
    I32(i32),
    /// `u32`
    U32(u32),
    /// `i64`
    I64(i64),
}

impl Scalar {
    /// Its dtype.
    pub const fn dtype(self) -> DType {
        match self {
            Scalar::F32(_) => DType::F32,
            Scalar::F64(_) => DType::F64,
            Scalar::Bool(_) => DType::Bool,
            Scalar::U8(_) => DType::U8,
            Scalar::I32(_) => DType::I32,
            Scalar::U32(_) => DType::U32,
            Scalar::I64(_) => DType::I64,
        }
    }

    /// The value as a double (i64 above 2^53 rounds).
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::F32(v) => v as f64,
            Scalar::F64(v) => v,
            Scalar::Bool(v) => v as u8 as f64,
            Scalar::U8(v) => v as f64,
            Scalar::I32(v) => v as f64,
            Scalar::U32(v) => v as f64,
            Scalar::I64(v) => v as f64,
        }
    }

    /// Converts as MATLAB does: to an integer by rounding half away from zero and saturating, NaN to 0;
    /// to bool by "is not zero".
    pub fn cast(self, to: DType) -> Scalar {
        match (self, to) {
            // A shortcut for the most frequent case.
            (Scalar::F64(v), DType::F32) => return Scalar::F32(v as f32),
            _ if self.dtype() == to => return self,
            _ => {}
        }
        let exact: Option<i128> = match self {
            Scalar::Bool(v) => Some(v as i128),
            Scalar::U8(v) => Some(v as i128),
            Scalar::I32(v) => Some(v as i128),
            Scalar::U32(v) => Some(v as i128),
            Scalar::I64(v) => Some(v as i128),
            Scalar::F32(_) | Scalar::F64(_) => None,
        };
        let whole = || exact.unwrap_or_else(|| self.as_f64().round() as i128);
        match to {
            DType::F32 => Scalar::F32(match self {
                Scalar::I64(v) => v as f32,
                other => other.as_f64() as f32,
            }),
            DType::F64 => Scalar::F64(self.as_f64()),
            DType::Bool => Scalar::Bool(exact.map_or(self.as_f64() != 0.0, |v| v != 0)),
            DType::U8 => Scalar::U8(whole().clamp(0, u8::MAX as i128) as u8),
            DType::I32 => Scalar::I32(whole().clamp(i32::MIN as i128, i32::MAX as i128) as i32),
            DType::U32 => Scalar::U32(whole().clamp(0, u32::MAX as i128) as u32),
            DType::I64 => Scalar::I64(whole().clamp(i64::MIN as i128, i64::MAX as i128) as i64),
        }
    }

    /// Its bits, zero-extended, as they are stored in a kernel's parameters (low word first).
    pub fn bits(self) -> u64 {
        match self {
            Scalar::F32(v) => v.to_bits() as u64,
            Scalar::F64(v) => v.to_bits(),
            Scalar::Bool(v) => v as u64,
            Scalar::U8(v) => v as u64,
            Scalar::I32(v) => v as u32 as u64,
            Scalar::U32(v) => v as u64,
            Scalar::I64(v) => v as u64,
        }
    }

    /// The bits as the words that kernels read: the low word, and the high word of a 64-bit dtype.
    pub fn words(self) -> impl Iterator<Item = u32> {
        let bits = self.bits();
        [bits as u32, (bits >> 32) as u32].into_iter().take(if self.dtype().is_wide() { 2 } else { 1 })
    }

    /// The scalar of `dtype` with these bits.
    pub fn from_bits(dtype: DType, bits: u64) -> Scalar {
        match dtype {
            DType::F32 => Scalar::F32(f32::from_bits(bits as u32)),
            DType::F64 => Scalar::F64(f64::from_bits(bits)),
            DType::Bool => Scalar::Bool(bits != 0),
            DType::U8 => Scalar::U8(bits as u8),
            DType::I32 => Scalar::I32(bits as i32),
            DType::U32 => Scalar::U32(bits as u32),
            DType::I64 => Scalar::I64(bits as i64),
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::F32(v) => write!(f, "{v}"),
            Scalar::F64(v) => write!(f, "{v}"),
            Scalar::Bool(v) => write!(f, "{v}"),
            Scalar::U8(v) => write!(f, "{v}"),
            Scalar::I32(v) => write!(f, "{v}"),
            Scalar::U32(v) => write!(f, "{v}"),
            Scalar::I64(v) => write!(f, "{v}"),
        }
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that arrays can hold. Sealed: the dtypes are a closed set.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static + fmt::Debug + PartialEq + Default {
    /// The dtype of arrays of this type.
    const DTYPE: DType;
    /// The value as a typed scalar.
    fn to_scalar(self) -> Scalar;
    /// The scalar as this type. A scalar of another dtype is converted as MATLAB converts it.
    fn from_scalar(scalar: Scalar) -> Self;
}

macro_rules! element {
    ($($ty:ty => $variant:ident),*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$variant;
            fn to_scalar(self) -> Scalar { Scalar::$variant(self) }
            fn from_scalar(scalar: Scalar) -> Self {
                match scalar.cast(DType::$variant) { Scalar::$variant(v) => v, _ => unreachable!("DTYPE-1") }
            }
        }
    )*};
}
element!(f32 => F32, f64 => F64, bool => Bool, u8 => U8, i32 => I32, u32 => U32, i64 => I64);

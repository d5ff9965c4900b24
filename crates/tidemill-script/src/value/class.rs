//! The classes of values, and which class an operation on two of them has.

/// A class of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// 64-bit floating point, real or complex.
    Double,
    /// 32-bit floating point, real or complex.
    Single,
    /// Integers.
    Int8,
    /// Integers.
    Int16,
    /// Integers.
    Int32,
    /// Integers.
    Int64,
    /// Integers.
    Uint8,
    /// Integers.
    Uint16,
    /// Integers.
    Uint32,
    /// Integers.
    Uint64,
    /// Bytes of text.
    Char,
    /// Truth values.
    Logical,
    /// Cell arrays.
    Cell,
    /// Structs.
    Struct,
    /// Function handles.
    Function,
    /// `containers.Map`.
    Map,
    /// `inputParser`.
    Parser,
}

impl Class {
    /// Returns the bytes of an element in host memory; for classes that have complex numbers, those of a real number.
    pub fn bytes(self) -> usize {
        match self {
            Class::Double | Class::Int64 | Class::Uint64 => 8,
            Class::Single | Class::Int32 | Class::Uint32 => 4,
            Class::Int16 | Class::Uint16 => 2,
            Class::Char | Class::Logical | Class::Int8 | Class::Uint8 => 1,
            Class::Cell | Class::Struct | Class::Function | Class::Map | Class::Parser => size_of::<super::Value>(),
        }
    }

    /// All numeric, char and logical classes.
    pub const ARRAYS: [Class; 12] = [
        Class::Double,
        Class::Single,
        Class::Int8,
        Class::Int16,
        Class::Int32,
        Class::Int64,
        Class::Uint8,
        Class::Uint16,
        Class::Uint32,
        Class::Uint64,
        Class::Char,
        Class::Logical,
    ];

    /// Returns the name that `class(x)` gives.
    pub fn name(self) -> &'static str {
        match self {
            Class::Double => "double",
            Class::Single => "single",
            Class::Int8 => "int8",
            Class::Int16 => "int16",
            Class::Int32 => "int32",
            Class::Int64 => "int64",
            Class::Uint8 => "uint8",
            Class::Uint16 => "uint16",
            Class::Uint32 => "uint32",
            Class::Uint64 => "uint64",
            Class::Char => "char",
            Class::Logical => "logical",
            Class::Cell => "cell",
            Class::Struct => "struct",
            Class::Function => "function_handle",
            Class::Map => "containers.Map",
            Class::Parser => "inputParser",
        }
    }

    /// The array class of this name.
    pub fn from_name(name: &str) -> Option<Class> {
        Class::ARRAYS.into_iter().find(|c| c.name() == name)
    }

    /// Double or single.
    pub fn is_float(self) -> bool {
        matches!(self, Class::Double | Class::Single)
    }

    /// One of the eight integer classes.
    pub fn is_integer(self) -> bool {
        self.integer_range().is_some()
    }

    /// Float or integer.
    pub fn is_numeric(self) -> bool {
        self.is_float() || self.is_integer()
    }

    /// The least and greatest value of an integer class.
    pub fn integer_range(self) -> Option<(i128, i128)> {
        Some(match self {
            Class::Int8 => (i8::MIN as i128, i8::MAX as i128),
            Class::Int16 => (i16::MIN as i128, i16::MAX as i128),
            Class::Int32 => (i32::MIN as i128, i32::MAX as i128),
            Class::Int64 => (i64::MIN as i128, i64::MAX as i128),
            Class::Uint8 => (0, u8::MAX as i128),
            Class::Uint16 => (0, u16::MAX as i128),
            Class::Uint32 => (0, u32::MAX as i128),
            Class::Uint64 => (0, u64::MAX as i128),
            _ => return None,
        })
    }

    /// Returns the runtime's dtype for it, if there is one.
    pub fn dtype(self) -> Option<tidemill::DType> {
        use tidemill::DType;
        Some(match self {
            Class::Double => DType::F64,
            Class::Single => DType::F32,
            Class::Int32 => DType::I32,
            Class::Int64 => DType::I64,
            Class::Uint8 => DType::U8,
            Class::Uint32 => DType::U32,
            Class::Logical => DType::Bool,
            _ => return None,
        })
    }
}

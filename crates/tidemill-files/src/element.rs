//! The types of numbers in files, and how their bytes become elements.
//!
//! Must hold: ELEMENT-1: each type becomes one that holds all its numbers, but for u64, whose numbers are looked at.

use tidemill::{DType, Element};

/// A type of numbers in a file.
// Only `safetensors` have bf16.
#[cfg_attr(not(feature = "safetensors"), allow(dead_code))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    U8,
    I8,
    I16,
    U16,
    F16,
    BF16,
    I32,
    U32,
    F32,
    I64,
    U64,
    F64,
    C64,
    C128,
}

impl Kind {
    /// Bytes of a number; of a complex one, both parts.
    pub fn bytes(self) -> usize {
        match self {
            Kind::Bool | Kind::U8 | Kind::I8 => 1,
            Kind::I16 | Kind::U16 | Kind::F16 | Kind::BF16 => 2,
            Kind::I32 | Kind::U32 | Kind::F32 => 4,
            Kind::I64 | Kind::U64 | Kind::F64 | Kind::C64 => 8,
            Kind::C128 => 16,
        }
    }

    /// The real numbers of which one number is made: 2 of a complex one.
    pub fn parts(self) -> usize {
        if self.is_complex() { 2 } else { 1 }
    }

    pub fn is_complex(self) -> bool {
        matches!(self, Kind::C64 | Kind::C128)
    }

    /// The dtype of the array, or of its parts, that these numbers become.
    pub fn dtype(self) -> DType {
        match self {
            Kind::Bool => DType::Bool,
            Kind::U8 => DType::U8,
            Kind::I8 | Kind::I16 | Kind::I32 => DType::I32,
            Kind::U16 | Kind::U32 => DType::U32,
            Kind::I64 | Kind::U64 => DType::I64,
            Kind::F16 | Kind::BF16 | Kind::F32 | Kind::C64 => DType::F32,
            Kind::F64 | Kind::C128 => DType::F64,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Bool => "bool",
            Kind::U8 => "u8",
            Kind::I8 => "i8",
            Kind::I16 => "i16",
            Kind::U16 => "u16",
            Kind::F16 => "f16",
            Kind::BF16 => "bf16",
            Kind::I32 => "i32",
            Kind::U32 => "u32",
            Kind::F32 => "f32",
            Kind::I64 => "i64",
            Kind::U64 => "u64",
            Kind::F64 => "f64",
            Kind::C64 => "c64",
            Kind::C128 => "c128",
        }
    }

    /// The type that an array is stored as. `None` for a dtype that this version does not know.
    pub fn of(dtype: DType, is_complex: bool) -> Option<Kind> {
        Some(match (dtype, is_complex) {
            (DType::Bool, false) => Kind::Bool,
            (DType::U8, false) => Kind::U8,
            (DType::I32, false) => Kind::I32,
            (DType::U32, false) => Kind::U32,
            (DType::I64, false) => Kind::I64,
            (DType::F32, false) => Kind::F32,
            (DType::F64, false) => Kind::F64,
            (DType::F32, true) => Kind::C64,
            (DType::F64, true) => Kind::C128,
            _ => return None,
        })
    }
}

/// The elements of arrays, as they are read from bytes and from text, and written there.
pub(crate) trait FileElement: Element {
    /// Reads as many numbers (parts, of complex ones) as `out` holds.
    ///
    /// # Errors
    /// The place of a number that this type does not hold.
    fn decode(kind: Kind, big_endian: bool, bytes: &[u8], out: &mut [Self]) -> Result<(), usize>;

    /// Appends the elements, the low byte of each first.
    fn encode(elements: &[Self], out: &mut Vec<u8>);

    /// A number in text.
    #[cfg(feature = "csv")]
    fn parse(cell: &str) -> Option<Self>;

    /// Appends the number as text that `parse` reads as the same number.
    #[cfg(feature = "csv")]
    fn print(self, out: &mut String);
}

/// Reads numbers of `N` bytes.
fn numbers<const N: usize, T>(bytes: &[u8], big_endian: bool, out: &mut [T], number: impl Fn([u8; N]) -> T) {
    for (out, bytes) in out.iter_mut().zip(bytes.as_chunks::<N>().0) {
        let mut bytes = *bytes;
        if big_endian {
            bytes.reverse();
        }
        *out = number(bytes);
    }
}

macro_rules! elements {
    ($($t:ty { $($kind:ident $(| $more:ident)* => $number:expr),* } parse $parse:expr, print $print:expr;)*) => {$(
        impl FileElement for $t {
            fn decode(kind: Kind, big_endian: bool, bytes: &[u8], out: &mut [$t]) -> Result<(), usize> {
                match kind {
                    $(Kind::$kind $(| Kind::$more)* => numbers(bytes, big_endian, out, $number),)*
                    other => unreachable!("ELEMENT-1: {} becomes {}", other.name(), other.dtype()),
                }
                Ok(())
            }

            fn encode(elements: &[$t], out: &mut Vec<u8>) {
                out.extend(elements.iter().flat_map(|element| element.to_le_bytes()));
            }

            #[cfg(feature = "csv")]
            fn parse(cell: &str) -> Option<$t> {
                ($parse)(cell)
            }

            #[cfg(feature = "csv")]
            fn print(self, out: &mut String) {
                ($print)(self, out)
            }
        }
    )*};
}

elements! {
    u8 { U8 => |[byte]: [u8; 1]| byte }
        parse |cell: &str| cell.parse().ok(), print shown;
    i32 { I8 => |bytes| i32::from(i8::from_le_bytes(bytes)), I16 => |bytes| i32::from(i16::from_le_bytes(bytes)),
        I32 => i32::from_le_bytes } parse |cell: &str| cell.parse().ok(), print shown;
    u32 { U16 => |bytes| u32::from(u16::from_le_bytes(bytes)), U32 => u32::from_le_bytes }
        parse |cell: &str| cell.parse().ok(), print shown;
    f32 { F16 => |bytes| half::f16::from_le_bytes(bytes).to_f32(),
        BF16 => |bytes| half::bf16::from_le_bytes(bytes).to_f32(), F32 | C64 => f32::from_le_bytes }
        parse float, print |x: f32, out: &mut String| show_float(x, f64::from(x), out);
    f64 { F64 | C128 => f64::from_le_bytes }
        parse float, print |x: f64, out: &mut String| show_float(x, x, out);
}

impl FileElement for bool {
    fn decode(kind: Kind, _: bool, bytes: &[u8], out: &mut [bool]) -> Result<(), usize> {
        assert_eq!(kind, Kind::Bool, "ELEMENT-1");
        numbers(bytes, false, out, |[byte]: [u8; 1]| byte != 0);
        Ok(())
    }

    fn encode(elements: &[bool], out: &mut Vec<u8>) {
        out.extend(elements.iter().map(|&element| u8::from(element)));
    }

    #[cfg(feature = "csv")]
    fn parse(cell: &str) -> Option<bool> {
        match cell {
            "0" | "false" | "False" => Some(false),
            "1" | "true" | "True" => Some(true),
            _ => None,
        }
    }

    #[cfg(feature = "csv")]
    fn print(self, out: &mut String) {
        out.push(if self { '1' } else { '0' });
    }
}

impl FileElement for i64 {
    fn decode(kind: Kind, big_endian: bool, bytes: &[u8], out: &mut [i64]) -> Result<(), usize> {
        assert!(matches!(kind, Kind::I64 | Kind::U64), "ELEMENT-1");
        numbers(bytes, big_endian, out, i64::from_le_bytes);
        // A u64 above 2^63 - 1 has the sign's bit.
        match out.iter().position(|&number| kind == Kind::U64 && number < 0) {
            Some(at) => Err(at),
            None => Ok(()),
        }
    }

    fn encode(elements: &[i64], out: &mut Vec<u8>) {
        out.extend(elements.iter().flat_map(|element| element.to_le_bytes()));
    }

    #[cfg(feature = "csv")]
    fn parse(cell: &str) -> Option<i64> {
        cell.parse().ok()
    }

    #[cfg(feature = "csv")]
    fn print(self, out: &mut String) {
        shown(self, out);
    }
}

/// A cell without anything in it is a number that is not known.
#[cfg(feature = "csv")]
fn float<T: std::str::FromStr + From<f32>>(cell: &str) -> Option<T> {
    if cell.is_empty() { Some(T::from(f32::NAN)) } else { cell.parse().ok() }
}

#[cfg(feature = "csv")]
fn shown<T: std::fmt::Display>(number: T, out: &mut String) {
    use std::fmt::Write;
    // Writing to a string does not fail.
    let _ = write!(out, "{number}");
}

/// The fewest digits that are read as the same number; with an exponent where there would be many zeros.
#[cfg(feature = "csv")]
fn show_float<T: std::fmt::Display + std::fmt::LowerExp>(number: T, value: f64, out: &mut String) {
    use std::fmt::Write;
    let plain = value == 0.0 || !value.is_finite() || (1e-5..1e16).contains(&value.abs());
    let _ = if plain { write!(out, "{number}") } else { write!(out, "{number:e}") };
}

/// Calls generic code with the Rust type of a dtype.
macro_rules! by_dtype {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            tidemill::DType::F32 => {
                type $t = f32;
                $body
            }
            tidemill::DType::F64 => {
                type $t = f64;
                $body
            }
            tidemill::DType::Bool => {
                type $t = bool;
                $body
            }
            tidemill::DType::U8 => {
                type $t = u8;
                $body
            }
            tidemill::DType::I32 => {
                type $t = i32;
                $body
            }
            tidemill::DType::U32 => {
                type $t = u32;
                $body
            }
            tidemill::DType::I64 => {
                type $t = i64;
                $body
            }
            other => Err(tidemill::Error::new(
                tidemill::ErrorKind::DType,
                format!("this version of tidemill-files does not know the dtype {other}"),
            )),
        }
    };
}
pub(crate) use by_dtype;

//! The format of MAT files, version 5: bytes to named values and back.
//!
//! In: the bytes of a file. Out: values, each with its name. Must hold: for any bytes, nothing is read beyond them and
//! nothing is allocated beyond what they can fill. Values that scripts do not have (objects, sparse matrices) are an
//! error that says so.

use crate::env::DEPTH_MAX;
use crate::value::total::total;
use crate::value::{CellArray, Class, Data, Dims, StructArray, Tensor, Value};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use indexmap::IndexMap;
use num_complex::{Complex32, Complex64};
use std::io::{Read, Write};
use std::sync::Arc;

/// Types of data elements.
mod element {
    pub const INT8: u32 = 1;
    pub const UINT8: u32 = 2;
    pub const INT16: u32 = 3;
    pub const UINT16: u32 = 4;
    pub const INT32: u32 = 5;
    pub const UINT32: u32 = 6;
    pub const SINGLE: u32 = 7;
    pub const DOUBLE: u32 = 9;
    pub const INT64: u32 = 12;
    pub const UINT64: u32 = 13;
    pub const MATRIX: u32 = 14;
    pub const COMPRESSED: u32 = 15;
    pub const UTF8: u32 = 16;
    pub const UTF16: u32 = 17;
    pub const UTF32: u32 = 18;
}

/// Classes of arrays.
mod array {
    pub const CELL: u8 = 1;
    pub const STRUCT: u8 = 2;
    pub const OBJECT: u8 = 3;
    pub const CHAR: u8 = 4;
    pub const SPARSE: u8 = 5;
    pub const DOUBLE: u8 = 6;
    pub const SINGLE: u8 = 7;
    pub const INT8: u8 = 8;
}

/// Bits of an array's flags: the data has imaginary parts; the data is truth values.
const COMPLEX: u8 = 8;
const LOGICAL: u8 = 2;
/// The number of bytes of the header, which the file's elements follow.
const HEADER: usize = 128;
/// The most bytes to which one compressed element may expand.
const UNFOLDED_MAX: u64 = 1 << 34;

type Read5<T> = Result<T, String>;

/// Whether the bytes begin like a MAT file of version 5.
pub fn is_mat(bytes: &[u8]) -> bool {
    bytes.len() >= HEADER && matches!(&bytes[126..128], b"IM" | b"MI")
}

/// Returns the values of a file, in the file's order.
///
/// # Errors
/// A description of the fault in the bytes, or of the unsupported feature.
pub fn read(bytes: &[u8]) -> Read5<Vec<(String, Read5<Value>)>> {
    if !is_mat(bytes) {
        return Err("not a MAT file of version 5".into());
    }
    let big = &bytes[126..128] == b"MI";
    let mut reader = Reader { bytes, at: HEADER, big };
    let mut out = Vec::new();
    while reader.at < bytes.len() {
        let at = reader.at;
        let kind = reader.u32()?;
        let (name, value) = match kind {
            element::MATRIX => {
                let (len, rest) = (reader.u32()? as usize, bytes.len() - reader.at);
                if len > rest && !rest.is_multiple_of(8) {
                    return Err("the file ends too early".into());
                }
                reader.at = at;
                reader.matrix(0)?
            }
            element::COMPRESSED => {
                reader.at = at;
                let (_, body) = reader.element()?;
                let mut unfolded = Vec::new();
                let mut decoder = ZlibDecoder::new(body).take(UNFOLDED_MAX);
                decoder.read_to_end(&mut unfolded).map_err(|e| format!("a compressed element is damaged: {e}"))?;
                let mut inner = Reader { bytes: &unfolded, at: 0, big };
                if inner.u32()? != element::MATRIX {
                    continue;
                }
                inner.at = 0;
                inner.matrix(0)?
            }
            other => return Err(format!("invalid element type = {other}")),
        };
        // Values without a name are for MATLAB's internal use.
        if !name.is_empty() {
            out.push((name, value));
        }
    }
    Ok(out)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    big: bool,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Read5<&'a [u8]> {
        let end = self.at.checked_add(n).filter(|&end| end <= self.bytes.len());
        let Some(end) = end else { return Err("the file ends too early".into()) };
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn u32(&mut self) -> Read5<u32> {
        let b = self.take(4)?;
        let b = [b[0], b[1], b[2], b[3]];
        Ok(if self.big { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) })
    }

    /// Reads a data element: its type and its bytes. A small element has its bytes within the tag.
    fn element(&mut self) -> Read5<(u32, &'a [u8])> {
        let tag = self.u32()?;
        if tag >> 16 != 0 {
            let body = self.take(4)?;
            return match body.get(..(tag >> 16) as usize) {
                Some(body) => Ok((tag & 0xffff, body)),
                None => Err("a small element is longer than four bytes".into()),
            };
        }
        let len = self.u32()? as usize;
        let body = self.take(len)?;
        if tag != element::COMPRESSED {
            // Padding may be missing at the end of a file.
            self.at = self.at.saturating_add((8 - len % 8) % 8).min(self.bytes.len());
        }
        Ok((tag, body))
    }

    /// Reads an array with its tag: returns its name, and its value or the reason why it cannot be read.
    fn matrix(&mut self, depth: usize) -> Read5<(String, Read5<Value>)> {
        let (kind, len) = (self.u32()?, self.u32()? as usize);
        if kind != element::MATRIX {
            return Err("a cell or a field is no array".into());
        }
        let begin = self.at;
        let end = begin.saturating_add(len).min(self.bytes.len());
        let mut inner = Reader { bytes: &self.bytes[begin..end], at: 0, big: self.big };
        let (name, value) = inner.array(depth)?;
        if value.is_err() && len > end - begin {
            return Err("the file ends too early".into());
        }
        // Octave counts padding of char arrays that it does not write, so the end is where reading stopped.
        self.at = if value.is_ok() { begin + inner.at } else { end };
        Ok((name, value))
    }

    /// Reads an array: returns its name and its value.
    fn array(&mut self, depth: usize) -> Read5<(String, Read5<Value>)> {
        if self.bytes.is_empty() {
            return Ok((String::new(), Ok(Value::empty())));
        }
        if depth > DEPTH_MAX {
            return Err("cells and structs are nested too deep".into());
        }
        let (_, flags) = self.element()?;
        if flags.len() < 8 {
            return Err("an array's flags are damaged".into());
        }
        let (class, bits) = if self.big { (flags[3], flags[2]) } else { (flags[0], flags[1]) };
        let (kind, extents) = self.element()?;
        let extents: Vec<usize> =
            self.numbers(kind, extents)?.to_f64().into_iter().map(|x| if x >= 0.0 { x as usize } else { 0 }).collect();
        let dims = Dims::new(&extents);
        let (_, name) = self.element()?;
        let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_string();
        let value = self.body(&name, class, bits, dims, depth);
        Ok((name, value))
    }

    /// Reads the part of an array behind its name.
    fn body(&mut self, name: &str, class: u8, bits: u8, dims: Dims, depth: usize) -> Read5<Value> {
        match class {
            array::CELL => self.cell(dims, depth),
            array::STRUCT => self.structure(dims, depth),
            array::OBJECT => Err(format!("{name} is an object; objects are not read yet")),
            array::SPARSE => Err(format!("{name} is a sparse matrix; sparse matrices are not read yet")),
            array::CHAR => self.text(dims),
            array::DOUBLE..=15 => self.numeric(dims, class, bits),
            other => Err(format!("{name} is of class {other}, which is not read yet")),
        }
    }

    /// Returns the numbers in a data element.
    fn numbers(&self, kind: u32, bytes: &[u8]) -> Read5<Data> {
        macro_rules! of {
            ($variant:ident, $ty:ty) => {
                Data::$variant(
                    bytes
                        .chunks_exact(size_of::<$ty>())
                        .map(|c| c.try_into().unwrap_or_default())
                        .map(|c| if self.big { <$ty>::from_be_bytes(c) } else { <$ty>::from_le_bytes(c) })
                        .collect(),
                )
            };
        }
        Ok(match kind {
            element::INT8 => of!(I8, i8),
            element::UINT8 | element::UTF8 => Data::U8(bytes.to_vec()),
            element::INT16 => of!(I16, i16),
            element::UINT16 | element::UTF16 => of!(U16, u16),
            element::INT32 => of!(I32, i32),
            element::UINT32 | element::UTF32 => of!(U32, u32),
            element::SINGLE => of!(F32, f32),
            element::DOUBLE => of!(F64, f64),
            element::INT64 => of!(I64, i64),
            element::UINT64 => of!(U64, u64),
            other => return Err(format!("data of type {other} are not read yet")),
        })
    }

    fn part(&mut self, dims: &Dims) -> Read5<Data> {
        let (kind, bytes) = self.element()?;
        let data = self.numbers(kind, bytes)?;
        match data.len() == dims.elements() {
            true => Ok(data),
            false => Err(format!("an array of {dims} has {} elements", data.len())),
        }
    }

    fn numeric(&mut self, dims: Dims, class: u8, bits: u8) -> Read5<Value> {
        let classes = [
            Class::Double,
            Class::Single,
            Class::Int8,
            Class::Uint8,
            Class::Int16,
            Class::Uint16,
            Class::Int32,
            Class::Uint32,
            Class::Int64,
            Class::Uint64,
        ];
        let class = classes[(class - array::DOUBLE) as usize];
        let real = self.part(&dims)?;
        if bits & COMPLEX != 0 {
            let imaginary = self.part(&dims)?.to_f64();
            let pairs = real.to_f64().into_iter().zip(imaginary);
            let data = match class {
                Class::Single => Data::C32(pairs.map(|(re, im)| Complex32::new(re as f32, im as f32)).collect()),
                _ => Data::C64(pairs.map(|(re, im)| Complex64::new(re, im)).collect()),
            };
            return Ok(Value::tensor_as_is(Tensor::new(dims, data)));
        }
        let class = if bits & LOGICAL != 0 { Class::Logical } else { class };
        Ok(Value::tensor(Tensor::new(dims, real.converted(class))))
    }

    /// Reads characters as bytes: UTF-8 unchanged, and other encodings converted to UTF-8.
    fn text(&mut self, dims: Dims) -> Read5<Value> {
        let (kind, bytes) = self.element()?;
        let codes = self.numbers(kind, bytes)?.to_f64();
        if codes.iter().all(|&c| c < 128.0) || [element::UTF8, element::UINT8].contains(&kind) {
            let data: Vec<u8> = codes.iter().map(|&c| c as u8).collect();
            let dims = match data.len() == dims.elements() {
                true => dims,
                false => Dims::new(&[usize::from(!data.is_empty()), data.len()]),
            };
            return Ok(Value::tensor(Tensor::new(dims, Data::Char(data))));
        }
        let units: Vec<u16> = codes.iter().map(|&c| c as u16).collect();
        match dims.rows() {
            1 => Ok(Value::string(String::from_utf16_lossy(&units))),
            _ if units.len() == dims.elements() => {
                Ok(Value::tensor(Tensor::new(dims, Data::Char(units.iter().map(|&u| u as u8).collect()))))
            }
            _ => Err("a char array is damaged".into()),
        }
    }

    /// Reads the next element, which must be an array.
    fn nested(&mut self, depth: usize) -> Read5<Value> {
        self.matrix(depth + 1)?.1
    }

    fn cell(&mut self, dims: Dims, depth: usize) -> Read5<Value> {
        self.fits(dims.elements())?;
        let items = (0..dims.elements()).map(|_| self.nested(depth)).collect::<Read5<Vec<_>>>()?;
        Ok(Value::Cell(Arc::new(CellArray::new(dims, items))))
    }

    /// Returns an error for a number of items that the bytes cannot hold.
    fn fits(&self, n: usize) -> Read5<()> {
        if n > (self.bytes.len() - self.at) / 8 { Err("the file ends too early".into()) } else { Ok(()) }
    }

    fn structure(&mut self, dims: Dims, depth: usize) -> Read5<Value> {
        let (kind, len) = self.element()?;
        let len = self.numbers(kind, len)?.to_f64().first().map_or(0, |&x| x.max(0.0) as usize);
        let (_, names) = self.element()?;
        if len == 0 && !names.is_empty() {
            return Err("the names of fields are damaged".into());
        }
        let names: Vec<Arc<str>> = names
            .chunks_exact(len.max(1))
            .map(|name| String::from_utf8_lossy(name.split(|&b| b == 0).next().unwrap_or_default()).as_ref().into())
            .collect();
        self.fits(dims.elements().saturating_mul(names.len()))?;
        let mut fields: IndexMap<Arc<str>, Vec<Value>> = names.iter().map(|n| (n.clone(), Vec::new())).collect();
        if fields.len() != names.len() {
            return Err("a struct has a field twice".into());
        }
        if names.is_empty() && dims.elements() > self.bytes.len().saturating_mul(8) {
            return Err("a struct array without fields is too long".into());
        }
        for _ in 0..if names.is_empty() { 0 } else { dims.elements() } {
            for name in &names {
                let value = self.nested(depth)?;
                if let Some(values) = fields.get_mut(name) {
                    values.push(value);
                }
            }
        }
        Ok(Value::Struct(Arc::new(StructArray { dims, fields, class: None, cleanup: None })))
    }
}

/// Returns the bytes of a file with these values, which lie in host memory. `compress` compresses them as version 7
/// does.
///
/// # Errors
/// Values that the format cannot hold: function handles and maps; more than 4 GiB.
pub fn write(variables: &[(String, Value)], compress: bool) -> Result<Vec<u8>, String> {
    let mut out = b"MATLAB 5.0 MAT-file, written by Tidemill".to_vec();
    out.resize(124, b' ');
    out.extend([0x00, 0x01, b'I', b'M']);
    for (name, value) in variables {
        let mut bytes = Vec::new();
        array(&mut bytes, name, name, value)?;
        if !compress {
            out.extend(bytes);
            continue;
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        let packed = encoder.write_all(&bytes).and_then(|()| encoder.finish()).map_err(|e| e.to_string())?;
        out.extend(element::COMPRESSED.to_le_bytes());
        out.extend(length(packed.len())?);
        out.extend(packed);
    }
    Ok(out)
}

fn length(n: usize) -> Result<[u8; 4], String> {
    match u32::try_from(n) {
        Ok(n) => Ok(n.to_le_bytes()),
        Err(_) => Err("a variable of more than 4 GiB does not fit into a MAT file of version 5".into()),
    }
}

/// Appends a data element, padded to eight bytes.
fn put(out: &mut Vec<u8>, kind: u32, bytes: &[u8]) -> Result<(), String> {
    if (1..=4).contains(&bytes.len()) && kind != element::MATRIX {
        out.extend(((bytes.len() as u32) << 16 | kind).to_le_bytes());
        out.extend(bytes);
        out.resize(out.len() + 4 - bytes.len(), 0);
        return Ok(());
    }
    out.extend(kind.to_le_bytes());
    out.extend(length(bytes.len())?);
    out.extend(bytes);
    out.resize(out.len().next_multiple_of(8), 0);
    Ok(())
}

/// Returns an error for a value that a variable of a file cannot hold, however small its parts are. A value that occurs
/// in many places is written in each.
///
/// # Errors
/// A description of the fault for users.
pub fn check_length(value: &Value) -> Result<(), String> {
    length(total(value, &|_| ARRAY_BYTES_MIN)).map(|_| ())
}

/// The least number of bytes of an array: its tag, flags, dimensions and name.
const ARRAY_BYTES_MIN: usize = 48;

/// Appends an array as an element. Errors name the variable `of` which it is a part.
fn array(out: &mut Vec<u8>, of: &str, name: &str, value: &Value) -> Result<(), String> {
    let mut body = Vec::new();
    let (class, bits) = match value {
        Value::Cell(_) => (array::CELL, 0),
        Value::Struct(s) if s.class.is_some() => {
            return Err(format!("{of}: {} objects are not saved yet", s.class.unwrap_or_default()));
        }
        Value::Struct(_) => (array::STRUCT, 0),
        Value::Function(_) | Value::Colon | Value::Lazy(_) => {
            return Err(format!("{of}: function handles are not saved yet"));
        }
        Value::Map(_) | Value::Parser(_) => {
            return Err(format!("{of}: {} objects are not saved yet", value.class_name()));
        }
        other => {
            let class = match other.class() {
                Class::Char => array::CHAR,
                Class::Single => array::SINGLE,
                Class::Int8 => array::INT8,
                Class::Uint8 | Class::Logical => array::INT8 + 1,
                Class::Int16 => array::INT8 + 2,
                Class::Uint16 => array::INT8 + 3,
                Class::Int32 => array::INT8 + 4,
                Class::Uint32 => array::INT8 + 5,
                Class::Int64 => array::INT8 + 6,
                Class::Uint64 => array::INT8 + 7,
                _ => array::DOUBLE,
            };
            let complex = if other.is_complex() { COMPLEX } else { 0 };
            (class, complex | if other.class() == Class::Logical { LOGICAL } else { 0 })
        }
    };
    put(&mut body, element::UINT32, &[class, bits, 0, 0, 0, 0, 0, 0])?;
    // A row of text is saved like MATLAB's: its dimensions count units of UTF-16.
    let units = match value {
        Value::Tensor(t) if t.dims.len() == 2 && t.dims.rows() == 1 => match &*t.data {
            Data::Char(bytes) if !bytes.is_ascii() => {
                std::str::from_utf8(bytes).ok().map(|text| text.encode_utf16().collect::<Vec<u16>>())
            }
            _ => None,
        },
        _ => None,
    };
    let dims = units.as_ref().map_or_else(|| value.dims(), |units| Dims::new(&[1, units.len()]));
    let extents: Vec<u8> = dims.iter().flat_map(|&d| (d.min(i32::MAX as usize) as i32).to_le_bytes()).collect();
    put(&mut body, element::INT32, &extents)?;
    put(&mut body, element::INT8, name.as_bytes())?;
    match value {
        Value::Cell(c) => c.items.iter().try_for_each(|v| array(&mut body, of, "", v))?,
        Value::Struct(s) => fields(&mut body, of, s)?,
        Value::Num(x) => put(&mut body, element::DOUBLE, &x.to_le_bytes())?,
        Value::Bool(b) => put(&mut body, element::UINT8, &[*b as u8])?,
        Value::Tensor(t) => match units {
            Some(units) => {
                put(&mut body, element::UINT16, &units.iter().flat_map(|u| u.to_le_bytes()).collect::<Vec<_>>())?
            }
            None => elements(&mut body, &t.data)?,
        },
        Value::Function(_) | Value::Colon | Value::Lazy(_) | Value::Map(_) | Value::Parser(_) => {}
    }
    put(out, element::MATRIX, &body)
}

fn fields(out: &mut Vec<u8>, of: &str, s: &StructArray) -> Result<(), String> {
    let len = s.fields.keys().map(|k| k.len()).max().unwrap_or(0).max(31) + 1;
    put(out, element::INT32, &(len as i32).to_le_bytes())?;
    let mut names = Vec::with_capacity(len * s.fields.len());
    for name in s.fields.keys() {
        let end = names.len() + len;
        names.extend(name.as_bytes());
        names.resize(end, 0);
    }
    put(out, element::INT8, &names)?;
    for i in 0..s.len() {
        s.fields.values().try_for_each(|values| array(out, of, "", &values[i]))?;
    }
    Ok(())
}

fn elements(out: &mut Vec<u8>, data: &Data) -> Result<(), String> {
    macro_rules! bytes {
        ($v:expr) => {
            $v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()
        };
    }
    match data {
        Data::F64(v) => put(out, element::DOUBLE, &bytes!(v)),
        Data::F32(v) => put(out, element::SINGLE, &bytes!(v)),
        Data::I8(v) => put(out, element::INT8, &bytes!(v)),
        Data::I16(v) => put(out, element::INT16, &bytes!(v)),
        Data::I32(v) => put(out, element::INT32, &bytes!(v)),
        Data::I64(v) => put(out, element::INT64, &bytes!(v)),
        Data::U8(v) => put(out, element::UINT8, v),
        // Text that is not UTF-8 keeps its bytes, which its dimensions count.
        Data::Char(v) if !v.is_ascii() => put(out, element::UINT8, v),
        Data::Char(v) => {
            put(out, element::UINT16, &v.iter().flat_map(|&b| u16::from(b).to_le_bytes()).collect::<Vec<_>>())
        }
        Data::U16(v) => put(out, element::UINT16, &bytes!(v)),
        Data::U32(v) => put(out, element::UINT32, &bytes!(v)),
        Data::U64(v) => put(out, element::UINT64, &bytes!(v)),
        Data::Bool(v) => put(out, element::UINT8, &v.iter().map(|&b| b as u8).collect::<Vec<_>>()),
        Data::C64(v) => {
            put(out, element::DOUBLE, &v.iter().flat_map(|z| z.re.to_le_bytes()).collect::<Vec<_>>())?;
            put(out, element::DOUBLE, &v.iter().flat_map(|z| z.im.to_le_bytes()).collect::<Vec<_>>())
        }
        Data::C32(v) => {
            put(out, element::SINGLE, &v.iter().flat_map(|z| z.re.to_le_bytes()).collect::<Vec<_>>())?;
            put(out, element::SINGLE, &v.iter().flat_map(|z| z.im.to_le_bytes()).collect::<Vec<_>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> Vec<(String, Value)> {
        let mut s = StructArray::scalar();
        s.set("a", 1.5);
        s.set("name", "text");
        let complex =
            Tensor::new(Dims::new(&[1, 2]), Data::C64(vec![Complex64::new(1.0, 2.0), Complex64::new(3.0, -4.0)]));
        vec![
            ("x".into(), Value::Num(0.1)),
            ("row".into(), Value::row(vec![1.0, f64::NAN, f64::INFINITY])),
            ("flag".into(), Value::Bool(true)),
            ("z".into(), Value::tensor(complex)),
            ("c".into(), Value::cell(Dims::new(&[2, 1]), vec![Value::string("abc"), Value::empty()])),
            ("s".into(), Value::Struct(Arc::new(s))),
            ("accents".into(), Value::string("na\u{ef}ve \u{1f600}")),
            ("bytes".into(), Value::string([200u8, 65])),
            ("i".into(), Value::tensor(Tensor::new(Dims::new(&[1, 3]), Data::I16(vec![-1, 2, 3])))),
        ]
    }

    #[test]
    fn what_is_written_is_read_again() {
        for compress in [false, true] {
            let bytes = write(&variables(), compress).unwrap();
            let back: Vec<_> = read(&bytes).unwrap().into_iter().map(|(name, value)| (name, value.unwrap())).collect();
            assert_eq!(format!("{back:?}"), format!("{:?}", variables()));
        }
    }

    #[test]
    fn what_is_not_read_leaves_the_others_readable() {
        let mut bytes = write(&variables(), false).unwrap();
        // This makes the first variable's class that of a function handle.
        bytes[HEADER + 16] = 16;
        let back = read(&bytes).unwrap();
        assert_eq!(back[0].1.as_ref().unwrap_err(), "x is of class 16, which is not read yet");
        assert_eq!(
            (back.len(), back.iter().filter(|v| v.1.is_ok()).count()),
            (variables().len(), variables().len() - 1)
        );
    }

    #[test]
    fn arrays_that_count_more_bytes_than_they_have_are_read() {
        // This is how Octave writes char arrays of several rows: the length counts padding that is missing.
        let rows = Value::tensor(Tensor::new(Dims::new(&[2, 2]), Data::Char(b"acbd".to_vec())));
        let mut s = StructArray::scalar();
        s.set("rows", rows);
        let mut bytes =
            write(&[("s".into(), Value::Struct(Arc::new(s))), ("z".into(), Value::Num(7.0))], false).unwrap();
        let at = bytes.windows(8).rposition(|w| w == [14, 0, 0, 0, 56, 0, 0, 0]).unwrap();
        assert_eq!(bytes[at + 8], 6, "the flags of the field's array");
        bytes[at + 4] = 60;
        let back = read(&bytes).unwrap();
        assert!(back.len() == 2 && back.iter().all(|(_, value)| value.is_ok()), "{back:?}");
    }

    #[test]
    fn damaged_files_are_errors() {
        let bytes = write(&variables(), false).unwrap();
        for n in 0..bytes.len() {
            let cut = read(&bytes[..n]).map(|variables| variables.iter().filter(|v| v.1.is_ok()).count());
            assert!(cut.is_err() || cut < Ok(variables().len()), "{n} bytes are read as the whole file: {cut:?}");
            // A flipped byte may be part of a value. Then the value is read or refused, and nothing beyond the bytes is
            // read.
            let mut damaged = bytes.clone();
            damaged[n] ^= 0xff;
            let _ = read(&damaged);
        }
        assert!(read(b"no such thing").is_err());
    }
}

//! Arrays in host memory: column-major, of any array class.
//!
//! Must hold: VALUE-2; a tensor's data has exactly as many elements as its dimensions.

use super::class::Class;
use super::held::Held;
use num_complex::{Complex32, Complex64};
use smallvec::SmallVec;
use std::fmt;
use std::ops::{Deref, Index};

/// Dimensions: at least two, no trailing singletons beyond the second.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Dims(SmallVec<[usize; 3]>);

impl Dims {
    /// Makes dimensions of these extents: pads them to two, and drops trailing singletons.
    pub fn new(extents: &[usize]) -> Dims {
        let mut dims: SmallVec<[usize; 3]> = SmallVec::from_slice(extents);
        while dims.len() < 2 {
            dims.push(1);
        }
        while dims.len() > 2 && dims.last() == Some(&1) {
            dims.pop();
        }
        Dims(dims)
    }

    /// 1×1.
    pub fn scalar() -> Dims {
        Dims::new(&[1, 1])
    }

    /// 0×0.
    pub fn zero() -> Dims {
        Dims::new(&[0, 0])
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.0[0]
    }

    /// Columns (the second dimension).
    pub fn columns(&self) -> usize {
        self.0[1]
    }

    /// The extent of dimension `d` (from 0); 1 beyond the last.
    pub fn extent(&self, d: usize) -> usize {
        self.0.get(d).copied().unwrap_or(1)
    }

    /// Returns the same dimensions with another extent of dimension `d`.
    pub fn with(&self, d: usize, extent: usize) -> Dims {
        let mut dims = self.0.to_vec();
        while dims.len() <= d {
            dims.push(1);
        }
        dims[d] = extent;
        Dims::new(&dims)
    }

    /// The product of the extents, saturating.
    pub fn elements(&self) -> usize {
        let mut n: usize = 1;
        if self.0.contains(&0) {
            return 0;
        }
        for &d in &self.0 {
            n = n.saturating_mul(d);
        }
        n
    }

    /// The first dimension (from 0) whose extent is not 1; 0 if there is none.
    pub fn first_non_singleton(&self) -> usize {
        self.0.iter().position(|&d| d != 1).unwrap_or(0)
    }

    /// 1×1.
    pub fn is_scalar(&self) -> bool {
        self.0[..] == [1, 1]
    }

    /// Two dimensions, one of which is 1 (a scalar is a vector here).
    pub fn is_vector(&self) -> bool {
        self.0.len() == 2 && (self.0[0] == 1 || self.0[1] == 1)
    }

    /// Returns the common shape of both after broadcasting; `None` if they do not fit.
    pub fn broadcast(&self, other: &Dims) -> Option<Dims> {
        let rank = self.0.len().max(other.0.len());
        let mut out: SmallVec<[usize; 3]> = SmallVec::new();
        for d in 0..rank {
            match (self.extent(d), other.extent(d)) {
                (a, b) if a == b => out.push(a),
                (1, b) => out.push(b),
                (a, 1) => out.push(a),
                _ => return None,
            }
        }
        Some(Dims::new(&out))
    }
}

impl Deref for Dims {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

/// Formats as `2x3x4`, for messages.
impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (d, extent) in self.0.iter().enumerate() {
            if d > 0 {
                f.write_str("x")?;
            }
            write!(f, "{extent}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Elements, in column-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// double
    F64(Vec<f64>),
    /// single
    F32(Vec<f32>),
    /// int8
    I8(Vec<i8>),
    /// int16
    I16(Vec<i16>),
    /// int32
    I32(Vec<i32>),
    /// int64
    I64(Vec<i64>),
    /// uint8
    U8(Vec<u8>),
    /// uint16
    U16(Vec<u16>),
    /// uint32
    U32(Vec<u32>),
    /// uint64
    U64(Vec<u64>),
    /// char: bytes
    Char(Vec<u8>),
    /// logical
    Bool(Vec<bool>),
    /// complex double
    C64(Vec<Complex64>),
    /// complex single
    C32(Vec<Complex32>),
}

/// Runs `$body` with `$v` bound to the vector, whatever its type.
macro_rules! each_data {
    ($data:expr, $v:ident => $body:expr) => {{
        use $crate::value::Data;
        match $data {
            Data::F64($v) => $body,
            Data::F32($v) => $body,
            Data::I8($v) => $body,
            Data::I16($v) => $body,
            Data::I32($v) => $body,
            Data::I64($v) => $body,
            Data::U8($v) => $body,
            Data::U16($v) => $body,
            Data::U32($v) => $body,
            Data::U64($v) => $body,
            Data::Char($v) => $body,
            Data::Bool($v) => $body,
            Data::C64($v) => $body,
            Data::C32($v) => $body,
        }
    }};
}
/// Runs `$body` with `$v` bound to the vector, and wraps the resulting vector in the same variant.
macro_rules! map_data {
    ($data:expr, $v:ident => $body:expr) => {{
        use $crate::value::Data;
        match $data {
            Data::F64($v) => Data::F64($body),
            Data::F32($v) => Data::F32($body),
            Data::I8($v) => Data::I8($body),
            Data::I16($v) => Data::I16($body),
            Data::I32($v) => Data::I32($body),
            Data::I64($v) => Data::I64($body),
            Data::U8($v) => Data::U8($body),
            Data::U16($v) => Data::U16($body),
            Data::U32($v) => Data::U32($body),
            Data::U64($v) => Data::U64($body),
            Data::Char($v) => Data::Char($body),
            Data::Bool($v) => Data::Bool($body),
            Data::C64($v) => Data::C64($body),
            Data::C32($v) => Data::C32($body),
        }
    }};
}
pub(crate) use each_data;
pub(crate) use map_data;

impl Data {
    /// Makes `n` elements of a class, all with this value.
    pub fn filled(class: Class, value: f64, n: usize) -> Data {
        match class {
            Class::Single => Data::F32(vec![value as f32; n]),
            Class::Int8 => Data::I8(vec![value as i8; n]),
            Class::Int16 => Data::I16(vec![value as i16; n]),
            Class::Int32 => Data::I32(vec![value as i32; n]),
            Class::Int64 => Data::I64(vec![value as i64; n]),
            Class::Uint8 => Data::U8(vec![value as u8; n]),
            Class::Uint16 => Data::U16(vec![value as u16; n]),
            Class::Uint32 => Data::U32(vec![value as u32; n]),
            Class::Uint64 => Data::U64(vec![value as u64; n]),
            Class::Char => Data::Char(vec![value as u8; n]),
            Class::Logical => Data::Bool(vec![value != 0.0; n]),
            _ => Data::F64(vec![value; n]),
        }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        each_data!(self, v => v.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes that the elements take.
    pub fn bytes(&self) -> usize {
        each_data!(self, v => size_of_val(&v[..]))
    }

    /// The class.
    pub fn class(&self) -> Class {
        match self {
            Data::F64(_) | Data::C64(_) => Class::Double,
            Data::F32(_) | Data::C32(_) => Class::Single,
            Data::I8(_) => Class::Int8,
            Data::I16(_) => Class::Int16,
            Data::I32(_) => Class::Int32,
            Data::I64(_) => Class::Int64,
            Data::U8(_) => Class::Uint8,
            Data::U16(_) => Class::Uint16,
            Data::U32(_) => Class::Uint32,
            Data::U64(_) => Class::Uint64,
            Data::Char(_) => Class::Char,
            Data::Bool(_) => Class::Logical,
        }
    }

    /// Whether it has imaginary parts.
    pub fn is_complex(&self) -> bool {
        matches!(self, Data::C64(_) | Data::C32(_))
    }

    /// The bytes of char data.
    pub fn chars(&self) -> Option<&[u8]> {
        match self {
            Data::Char(v) => Some(v),
            _ => None,
        }
    }

    /// Returns element `i` as a double: the real part of a complex one, 0 or 1 for a logical.
    pub fn f64_at(&self, i: usize) -> f64 {
        match self {
            Data::F64(v) => v[i],
            Data::F32(v) => v[i] as f64,
            Data::I8(v) => v[i] as f64,
            Data::I16(v) => v[i] as f64,
            Data::I32(v) => v[i] as f64,
            Data::I64(v) => v[i] as f64,
            Data::U8(v) => v[i] as f64,
            Data::U16(v) => v[i] as f64,
            Data::U32(v) => v[i] as f64,
            Data::U64(v) => v[i] as f64,
            Data::Char(v) => v[i] as f64,
            Data::Bool(v) => v[i] as u8 as f64,
            Data::C64(v) => v[i].re,
            Data::C32(v) => v[i].re as f64,
        }
    }

    /// Element `i` as a complex double.
    pub fn c64_at(&self, i: usize) -> Complex64 {
        match self {
            Data::C64(v) => v[i],
            Data::C32(v) => Complex64::new(v[i].re as f64, v[i].im as f64),
            other => Complex64::new(other.f64_at(i), 0.0),
        }
    }

    /// Returns all elements as doubles (real parts).
    pub fn to_f64(&self) -> Vec<f64> {
        match self {
            Data::F64(v) => v.clone(),
            other => (0..other.len()).map(|i| other.f64_at(i)).collect(),
        }
    }

    /// `n` zeros (0, false, NUL) of a class.
    ///
    /// # Panics
    /// Never; classes that are not arrays give doubles.
    pub fn zeros(class: Class, n: usize) -> Data {
        match class {
            Class::Single => Data::F32(vec![0.0; n]),
            Class::Int8 => Data::I8(vec![0; n]),
            Class::Int16 => Data::I16(vec![0; n]),
            Class::Int32 => Data::I32(vec![0; n]),
            Class::Int64 => Data::I64(vec![0; n]),
            Class::Uint8 => Data::U8(vec![0; n]),
            Class::Uint16 => Data::U16(vec![0; n]),
            Class::Uint32 => Data::U32(vec![0; n]),
            Class::Uint64 => Data::U64(vec![0; n]),
            Class::Char => Data::Char(vec![0; n]),
            Class::Logical => Data::Bool(vec![false; n]),
            _ => Data::F64(vec![0.0; n]),
        }
    }

    /// Returns the elements at these positions, in this order. Positions must be in range.
    pub fn pick(&self, positions: impl Iterator<Item = usize> + Clone) -> Data {
        map_data!(self, v => positions.map(|i| v[i]).collect())
    }
}

/// A property that an array is known to have. It changes how the array is printed, but not its value. Code that makes a
/// new array or changes an element may drop it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Form {
    /// No such property.
    #[default]
    Full,
    /// A row that was made as a range; Octave lays it out by its limits.
    Range {
        /// The limit of the range, which may lie beyond its last element.
        limit: f64,
    },
    /// A matrix of a float class that was made with zeros off the diagonal (`eye`, `diag`).
    Diagonal,
    /// A matrix of doubles that was made with one 1 in each row and column (`lu`).
    Permutation,
    /// A literal `[]`, `''` or `""` that was written as a value for `struct`; Octave prints its kind.
    Null,
}

/// An array in host memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The dimensions.
    pub dims: Dims,
    /// The elements, column-major.
    pub data: Held,
    /// Whether char data came from double quotes. It prints alike, but some functions ask.
    pub double_quoted: bool,
    /// The property that the array is known to have.
    pub form: Form,
    /// Whether the script put it on the device (`gpuArray`), though the device has no arrays of its class. It counts as
    /// being there, and so does everything computed from it.
    pub pinned: bool,
}

impl Tensor {
    /// An array of these dimensions and elements.
    ///
    /// # Panics
    /// VALUE-2: if the dimensions have another number of elements than there are.
    pub fn new(dims: Dims, data: Data) -> Tensor {
        assert_eq!(dims.elements(), data.len(), "VALUE-2: dimensions {dims} for {} elements", data.len());
        Tensor { dims, data: data.into(), double_quoted: false, form: Form::Full, pinned: false }
    }

    /// One element.
    pub fn scalar(data: Data) -> Tensor {
        Tensor::new(Dims::scalar(), data)
    }

    /// Makes a char row; 0×0 if it is empty, like `''`.
    pub fn string(bytes: &[u8]) -> Tensor {
        let dims = if bytes.is_empty() { Dims::zero() } else { Dims::new(&[1, bytes.len()]) };
        Tensor::new(dims, Data::Char(bytes.to_vec()))
    }

    /// Zeros of a class.
    pub fn zeros(class: Class, dims: Dims) -> Tensor {
        let n = dims.elements();
        Tensor::new(dims, Data::zeros(class, n))
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Whether a range made it.
    pub fn is_range(&self) -> bool {
        matches!(self.form, Form::Range { .. })
    }

    /// Returns the same array, marked as diagonal if it is a matrix of a float class and zero off its diagonal.
    pub fn diagonal(mut self) -> Tensor {
        let rows = self.dims.rows().max(1);
        let off = |i: usize| i % rows != i / rows;
        let zero = match &*self.data {
            Data::F64(v) => v.iter().enumerate().all(|(i, x)| *x == 0.0 || !off(i)),
            Data::F32(v) => v.iter().enumerate().all(|(i, x)| *x == 0.0 || !off(i)),
            Data::C64(v) => v.iter().enumerate().all(|(i, z)| (z.re == 0.0 && z.im == 0.0) || !off(i)),
            Data::C32(v) => v.iter().enumerate().all(|(i, z)| (z.re == 0.0 && z.im == 0.0) || !off(i)),
            _ => false,
        };
        if zero && self.dims.len() == 2 && self.len() > 1 {
            self.form = Form::Diagonal;
        }
        self
    }

    /// Returns the same array, marked as a permutation matrix if it is one, of doubles, and no scalar.
    pub fn permutation(mut self) -> Tensor {
        let n = self.dims.rows();
        if let Data::F64(v) = &*self.data
            && self.dims.len() == 2
            && self.dims.columns() == n
            && n > 1
        {
            let mut taken = vec![false; n];
            let mut ones = v.iter().enumerate().filter(|(_, x)| **x != 0.0);
            let one_each = ones.all(|(k, x)| *x == 1.0 && !std::mem::replace(&mut taken[k % n], true))
                && v.chunks(n).all(|column| column.iter().filter(|x| **x != 0.0).count() == 1);
            if one_each {
                self.form = Form::Permutation;
            }
        }
        self
    }

    /// A char row or an empty char array.
    pub fn is_string(&self) -> bool {
        matches!(*self.data, Data::Char(_)) && self.dims.len() == 2 && (self.dims.rows() == 1 || self.is_empty())
    }

    /// Returns the same elements with other dimensions.
    pub fn reshaped(mut self, dims: Dims) -> Tensor {
        assert_eq!(dims.elements(), self.len(), "VALUE-2: a reshape keeps the elements");
        self.dims = dims;
        self.form = Form::Full;
        self
    }

    /// Makes complex data real if its imaginary parts are all zero.
    pub fn narrowed(mut self) -> Tensor {
        match &*self.data {
            Data::C64(v) if v.iter().all(|z| z.im == 0.0) => {
                self.data = Data::F64(v.iter().map(|z| z.re).collect()).into()
            }
            Data::C32(v) if v.iter().all(|z| z.im == 0.0) => {
                self.data = Data::F32(v.iter().map(|z| z.re).collect()).into()
            }
            _ => {}
        }
        self
    }

    /// Returns the rows of a char matrix, including blanks.
    pub fn row_strings(&self) -> Option<Vec<Vec<u8>>> {
        let chars = self.data.chars()?;
        let (rows, columns) = (self.dims.rows(), self.len().checked_div(self.dims.rows()).unwrap_or(0));
        Some((0..rows).map(|r| (0..columns).map(|c| *chars.index(c * rows + r)).collect()).collect())
    }
}

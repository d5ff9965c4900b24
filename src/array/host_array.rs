//! [`HostArray`], the result of a gather. The elements stay where the device delivered them until the program asks for
//! a `Vec`.
//!
//! Must hold: HOSTARRAY-1: the data have the type's dtype, and as many elements as the shape; this is checked in `new`.

use crate::bulk;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, Element, Shape};
use crate::host_buffer::HostBuffer;
use std::fmt;
use std::ops::{Deref, Index};
use std::sync::Arc;

/// An array in host memory, column-major. Cloning is cheap; the elements are shared and never change.
///
/// ```
/// use tidemill::{HostArray, Shape};
/// let a = HostArray::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], Shape::new(&[2, 2])?)?;
/// assert_eq!(a[[1, 0]], 2.0);
/// assert_eq!(a[2], 3.0);
/// assert_eq!(a.to_row_major(), [1.0, 3.0, 2.0, 4.0]);
/// # Ok::<(), tidemill::Error>(())
/// ```
#[derive(Clone)]
pub struct HostArray<T: Element> {
    data: Arc<HostBuffer>,
    shape: Shape,
    element: std::marker::PhantomData<T>,
}

impl<T: Element> HostArray<T> {
    /// Wraps delivered elements.
    ///
    /// # Errors
    /// `ErrorKind::DType` if they are of another type, `ErrorKind::Shape` if they are too few or too many.
    pub(crate) fn new(data: Arc<HostBuffer>, shape: Shape) -> Result<HostArray<T>> {
        if data.dtype() != T::DTYPE {
            let message = format!("{} elements were asked for as {}", data.dtype(), T::DTYPE);
            return Err(Error::new(ErrorKind::DType, message));
        }
        if data.len() != shape.elements() {
            let message = format!("{} elements do not fill an array of {shape}", data.len());
            return Err(Error::new(ErrorKind::Shape, message));
        }
        Ok(HostArray { data, shape, element: std::marker::PhantomData })
    }

    /// Takes a vector in column-major order without copying it.
    ///
    /// # Errors
    /// `ErrorKind::Shape` if its length does not fit the shape.
    pub fn from_vec(data: Vec<T>, shape: Shape) -> Result<HostArray<T>> {
        HostArray::new(HostBuffer::from_vec(data).shared(), shape)
    }

    /// The extents.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The elements in column-major order.
    pub fn as_slice(&self) -> &[T] {
        self.data.as_slice().expect("HOSTARRAY-1: the dtype was checked")
    }

    /// The elements in column-major order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.as_slice().iter()
    }

    /// The elements in column-major order, copied.
    pub fn into_vec(self) -> Vec<T> {
        let mut elements = Vec::new();
        bulk::append(self.as_slice(), &mut elements);
        elements
    }

    /// The elements in row-major order, copied.
    pub fn to_row_major(&self) -> Vec<T> {
        super::layout::to_row_major(self.as_slice(), self.shape.dims())
    }

    /// The element at coordinates; dimensions that are left out are 0.
    pub fn get(&self, coords: &[usize]) -> Option<&T> {
        let mut index = 0;
        let mut stride = 1;
        for (d, &c) in coords.iter().enumerate() {
            let extent = self.shape.dim(d);
            if c >= extent {
                return None;
            }
            index += c * stride;
            stride *= extent;
        }
        self.as_slice().get(index)
    }
}

impl<T: Element> Index<usize> for HostArray<T> {
    type Output = T;

    /// The element at a linear index in column-major order.
    fn index(&self, index: usize) -> &T {
        &self.as_slice()[index]
    }
}

impl<T: Element, const N: usize> Index<[usize; N]> for HostArray<T> {
    type Output = T;

    /// The element at coordinates.
    fn index(&self, coords: [usize; N]) -> &T {
        self.get(&coords).unwrap_or_else(|| panic!("{coords:?} is outside of an array of {}", self.shape))
    }
}

impl<T: Element> Index<(usize, usize)> for HostArray<T> {
    type Output = T;

    /// The element at a row and a column.
    fn index(&self, (row, column): (usize, usize)) -> &T {
        &self[[row, column]]
    }
}

impl<'a, T: Element> IntoIterator for &'a HostArray<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Element> AsRef<[T]> for HostArray<T> {
    fn as_ref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Element> PartialEq for HostArray<T> {
    fn eq(&self, other: &HostArray<T>) -> bool {
        self.shape == other.shape && self.as_slice() == other.as_slice()
    }
}

impl<T: Element> fmt::Debug for HostArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostArray({} {}) {:?}", self.shape, T::DTYPE, &self.as_slice()[..self.len().min(16)])
    }
}

impl<T: Element> fmt::Display for HostArray<T> {
    /// Prints columns aligned to the right, and each page under its coordinates.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return write!(f, "  empty {} {}", self.shape, T::DTYPE);
        }
        let (rows, columns) = (self.shape.dim(0), self.shape.dim(1));
        let cells: Vec<String> = self.iter().map(|v| cell(v.to_scalar())).collect();
        let width = cells.iter().map(String::len).max().unwrap_or(0) + 3;
        let pages = self.len() / (rows * columns);
        for page in 0..pages {
            if self.shape.rank() > 2 {
                writeln!(f, "{}(:,:{}) =", if page > 0 { "\n" } else { "" }, self.page_label(page))?;
            }
            for row in 0..rows {
                for column in 0..columns {
                    write!(f, "{:>width$}", cells[row + rows * (column + columns * page)])?;
                }
                if page + 1 < pages || row + 1 < rows {
                    writeln!(f)?;
                }
            }
        }
        Ok(())
    }
}

impl<T: Element> HostArray<T> {
    fn page_label(&self, mut page: usize) -> String {
        let mut label = String::new();
        for &extent in &self.shape.dims()[2..] {
            label.push_str(&format!(",{}", page % extent));
            page /= extent;
        }
        label
    }
}

fn cell(value: crate::graph::Scalar) -> String {
    use crate::graph::Scalar;
    match value {
        Scalar::F32(v) => float(v as f64),
        Scalar::F64(v) => float(v),
        Scalar::Bool(v) => (v as u8).to_string(),
        other => other.to_string(),
    }
}

fn float(v: f64) -> String {
    if v.is_nan() {
        "NaN".to_owned()
    } else if v.is_infinite() {
        if v > 0.0 { "Inf".to_owned() } else { "-Inf".to_owned() }
    } else if v == v.trunc() && v.abs() < 1e9 {
        format!("{}", v as i64)
    } else if v.abs() >= 1e5 || v.abs() < 1e-3 {
        format!("{v:.4e}")
    } else {
        format!("{v:.4}")
    }
}

/// A gathered array of any dtype.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum HostAny {
    /// f32 elements.
    F32(HostArray<f32>),
    /// f64 elements.
    F64(HostArray<f64>),
    /// bool elements.
    Bool(HostArray<bool>),
    /// u8 elements.
    U8(HostArray<u8>),
    /// i32 elements.
    I32(HostArray<i32>),
    /// u32 elements.
    U32(HostArray<u32>),
    /// i64 elements.
    I64(HostArray<i64>),
}

macro_rules! any {
    ($self:ident, $a:ident => $body:expr) => {
        match $self {
            HostAny::F32($a) => $body,
            HostAny::F64($a) => $body,
            HostAny::Bool($a) => $body,
            HostAny::U8($a) => $body,
            HostAny::I32($a) => $body,
            HostAny::U32($a) => $body,
            HostAny::I64($a) => $body,
        }
    };
}

impl HostAny {
    pub(crate) fn new(data: Arc<HostBuffer>, shape: Shape) -> Result<HostAny> {
        Ok(match data.dtype() {
            DType::F32 => HostAny::F32(HostArray::new(data, shape)?),
            DType::F64 => HostAny::F64(HostArray::new(data, shape)?),
            DType::Bool => HostAny::Bool(HostArray::new(data, shape)?),
            DType::U8 => HostAny::U8(HostArray::new(data, shape)?),
            DType::I32 => HostAny::I32(HostArray::new(data, shape)?),
            DType::U32 => HostAny::U32(HostArray::new(data, shape)?),
            DType::I64 => HostAny::I64(HostArray::new(data, shape)?),
        })
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        any!(self, a => a.data.dtype())
    }

    /// The extents.
    pub fn shape(&self) -> &Shape {
        any!(self, a => a.shape())
    }

    /// The elements as doubles, in column-major order (i64 above 2^53 rounds).
    pub fn to_f64(&self) -> Vec<f64> {
        any!(self, a => a.iter().map(|v| v.to_scalar().as_f64()).collect())
    }
}

impl fmt::Display for HostAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        any!(self, a => fmt::Display::fmt(a, f))
    }
}

/// Delivered elements as a slice, without a copy. They may be in memory that a device has mapped, which goes back to
/// the device when this is dropped. Holding it delays no other gather.
#[derive(Clone, Debug)]
pub struct MappedView<T: Element>(pub(crate) HostArray<T>);

impl<T: Element> MappedView<T> {
    /// The extents.
    pub fn shape(&self) -> &Shape {
        self.0.shape()
    }
}

impl<T: Element> Deref for MappedView<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_slice()
    }
}

#[cfg(feature = "serde")]
mod with_serde {
    use super::*;
    use serde::ser::SerializeStruct;

    impl<T: Element + serde::Serialize> serde::Serialize for HostArray<T> {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut out = serializer.serialize_struct("HostArray", 2)?;
            out.serialize_field("shape", self.shape.dims())?;
            out.serialize_field("data", self.as_slice())?;
            out.end()
        }
    }

    #[derive(serde::Deserialize)]
    struct Raw<T> {
        shape: Vec<usize>,
        data: Vec<T>,
    }

    impl<'de, T: Element + serde::Deserialize<'de>> serde::Deserialize<'de> for HostArray<T> {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let raw = Raw::<T>::deserialize(deserializer)?;
            let shape = Shape::new(&raw.shape).map_err(serde::de::Error::custom)?;
            HostArray::from_vec(raw.data, shape).map_err(serde::de::Error::custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host<T: Element>(data: Vec<T>, dims: &[usize]) -> HostArray<T> {
        HostArray::from_vec(data, Shape::new(dims).unwrap()).unwrap()
    }

    #[test]
    fn columns_are_printed_side_by_side() {
        let a = host(vec![1.0f64, 22.5, -3.0, f64::NAN], &[2, 2]);
        assert_eq!(a.to_string(), "         1        -3\n   22.5000       NaN");
        assert_eq!(host(vec![true, false], &[1, 2]).to_string(), "   1   0");
        assert_eq!(host::<f32>(vec![], &[0, 3]).to_string(), "  empty 0x3 f32");
        assert_eq!(host(vec![1i32, 2], &[1, 1, 2]).to_string(), "(:,:,0) =\n   1\n\n(:,:,1) =\n   2");
    }

    #[test]
    fn elements_are_found_by_coordinates_and_by_position() {
        let a = host(vec![1, 2, 3, 4, 5, 6], &[2, 3]);
        assert_eq!((a[[1, 2]], a[(0, 1)], a[4]), (6, 3, 5));
        assert_eq!(a.get(&[2, 0]), None);
        assert_eq!(a.to_row_major(), [1, 3, 5, 2, 4, 6]);
        assert_eq!(a.iter().sum::<i32>(), 21);
    }

    #[test]
    fn a_wrong_length_is_a_shape_error() {
        let error = HostArray::from_vec(vec![1.0f32], Shape::new(&[2, 2]).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape);
    }

    #[cfg(feature = "serde")]
    #[test]
    fn serde_keeps_shape_and_elements_and_checks_them() {
        let a = host(vec![1i32, 2, 3, 4], &[2, 2]);
        let text = serde_json::to_string(&a).unwrap();
        assert_eq!(text, r#"{"shape":[2,2],"data":[1,2,3,4]}"#);
        assert_eq!(serde_json::from_str::<HostArray<i32>>(&text).unwrap(), a);
        assert!(serde_json::from_str::<HostArray<i32>>(r#"{"shape":[2,2],"data":[1]}"#).is_err());
    }
}

//! [`AnyArray`], the array that reading a file returns: real or complex, as the file says; and
//! [`Tensor`], the array that a program passes to a function that writes files.

use tidemill::{Array, ComplexArray, DType, Error, ErrorKind, Result, Shape};

/// An array of real or of complex numbers.
#[derive(Clone, Debug)]
pub enum AnyArray {
    /// Real numbers.
    Real(Array),
    /// Complex numbers.
    Complex(ComplexArray),
}

impl AnyArray {
    /// The array of real numbers.
    ///
    /// # Errors
    /// `ErrorKind::DType` where the numbers are complex.
    pub fn real(self) -> Result<Array> {
        match self {
            AnyArray::Real(array) => Ok(array),
            AnyArray::Complex(_) => Err(Error::new(
                ErrorKind::DType,
                "the array is complex: take complex() of what was read, then re() or abs()",
            )),
        }
    }

    /// The array of complex numbers. Those of a real array have no imaginary parts.
    pub fn complex(self) -> ComplexArray {
        match self {
            AnyArray::Real(array) => array.to_complex(),
            AnyArray::Complex(array) => array,
        }
    }

    /// Whether the numbers are complex.
    pub fn is_complex(&self) -> bool {
        matches!(self, AnyArray::Complex(_))
    }

    /// The extents.
    ///
    /// # Errors
    /// The fault that the array carries.
    pub fn shape(&self) -> Result<&Shape> {
        match self {
            AnyArray::Real(array) => array.shape(),
            AnyArray::Complex(array) => array.shape(),
        }
    }

    /// The type of the elements, or of their parts.
    ///
    /// # Errors
    /// The fault that the array carries.
    pub fn dtype(&self) -> Result<DType> {
        match self {
            AnyArray::Real(array) => array.dtype(),
            AnyArray::Complex(array) => array.dtype(),
        }
    }
}

/// An array that a program passes to a function that writes files. Such functions take whatever becomes a `Tensor`: an [`Array`], a [`ComplexArray`], or an
/// [`AnyArray`], owned or borrowed.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub(crate) array: AnyArray,
    pub(crate) flat: bool,
}

impl Tensor {
    /// A row or a column that the file holds with one dimension, as NumPy and PyTorch store vectors: an array of `[n,
    /// 1]` as `(n,)`. Without this, files have at least two dimensions, as arrays have.
    pub fn vector(array: impl Into<Tensor>) -> Tensor {
        Tensor { flat: true, ..array.into() }
    }

    /// The extents in the file.
    ///
    /// # Errors
    /// The fault that the array carries; `ErrorKind::Shape` for a vector that is none.
    pub(crate) fn dims(&self) -> Result<Vec<usize>> {
        let shape = self.array.shape()?;
        if !self.flat {
            return Ok(shape.dims().to_vec());
        }
        if shape.dims().iter().filter(|&&extent| extent != 1).count() > 1 {
            return Err(Error::new(
                ErrorKind::Shape,
                format!("an array of {shape} is no vector: hand it over as it is"),
            ));
        }
        Ok(vec![shape.elements()])
    }
}

impl From<AnyArray> for Tensor {
    fn from(array: AnyArray) -> Tensor {
        Tensor { array, flat: false }
    }
}

macro_rules! tensors {
    ($($t:ty, $of:expr;)*) => {$(
        impl From<$t> for Tensor {
            fn from(array: $t) -> Tensor {
                Tensor::from($of(array))
            }
        }
    )*};
}
tensors! {
    &AnyArray, AnyArray::clone;
    Array, AnyArray::Real;
    &Array, |array: &Array| AnyArray::Real(array.clone());
    ComplexArray, AnyArray::Complex;
    &ComplexArray, |array: &ComplexArray| AnyArray::Complex(array.clone());
}

//! Arrow's arrays from and to those of Tidemill.
//!
//! Numbers lie in Arrow's arrays as in a column here: they are lent in both directions, not copied. Arrow's booleans
//! are bits, which are copied.

use ::arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type, Int32Type, Int64Type, UInt8Type, UInt32Type};
use ::arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, cast::AsArray};
use ::arrow_buffer::{Buffer, ScalarBuffer};
use bytes::Bytes;
use std::sync::Arc;
use tidemill::{Array, Element, Error, ErrorKind, HostAny, HostArray, Result, Session};

/// A column of an Arrow array's numbers. They are read where Arrow has them; f16, and integers of 8 and 16 bits, are
/// copied as in files.
///
/// # Errors
/// `ErrorKind::Argument` for an array with nulls (fill them before), `ErrorKind::DType` for types that no array holds;
/// those of [`Session::from_shared`].
#[track_caller]
pub fn from_arrow(s: &Session, array: &dyn ::arrow_array::Array) -> Result<Array> {
    use ::arrow_array::types::{Float16Type, Int8Type, Int16Type, UInt16Type};
    if array.null_count() > 0 {
        let message =
            format!("the Arrow array has {} nulls, which numbers have no place for: fill them", array.null_count());
        return Err(Error::new(ErrorKind::Argument, message));
    }
    macro_rules! lent {
        ($($t:ty),*) => {$(
            if let Some(array) = array.as_primitive_opt::<$t>() {
                return s.from_shared::<<$t as ArrowPrimitiveType>::Native>(Lent(array.values().clone()), array.len());
            }
        )*};
    }
    macro_rules! copied {
        ($($t:ty, $number:expr;)*) => {$(
            if let Some(array) = array.as_primitive_opt::<$t>() {
                return s.from_vec(array.values().iter().map($number).collect(), array.len());
            }
        )*};
    }
    lent!(Float32Type, Float64Type, Int32Type, Int64Type, UInt8Type, UInt32Type);
    copied! {
        Float16Type, |&number| number.to_f32();
        Int8Type, |&number| i32::from(number);
        Int16Type, |&number| i32::from(number);
        UInt16Type, |&number| u32::from(number);
    }
    match array.as_boolean_opt() {
        Some(array) => s.from_vec(array.values().iter().collect::<Vec<bool>>(), array.len()),
        None => {
            let message = format!("an Arrow array of {} becomes no array: cast it to numbers", array.data_type());
            Err(Error::new(ErrorKind::DType, message))
        }
    }
}

/// An Arrow array of gathered elements, in column-major order. Numbers stay where the device delivered them.
///
/// ```
/// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
/// # let s = rt.session("arrow").open();
/// use arrow_array::{Float64Array, cast::AsArray, types::Float64Type};
/// use tidemill_files::arrow;
/// let x = arrow::from_arrow(&s, &Float64Array::from(vec![1.0, 2.0, 3.0]))?;
/// let y = arrow::to_arrow(&(x * 2.0).gather_any().wait()?)?;
/// assert_eq!(y.as_primitive::<Float64Type>().values(), &[2.0, 4.0, 6.0]);
/// # rt.shutdown_blocking()?;
/// # Ok::<(), tidemill::Error>(())
/// ```
///
/// # Errors
/// `ErrorKind::DType` for a dtype that this version does not know.
pub fn to_arrow(array: &HostAny) -> Result<ArrayRef> {
    Ok(match array {
        HostAny::F32(array) => lent::<Float32Type>(array),
        HostAny::F64(array) => lent::<Float64Type>(array),
        HostAny::U8(array) => lent::<UInt8Type>(array),
        HostAny::I32(array) => lent::<Int32Type>(array),
        HostAny::U32(array) => lent::<UInt32Type>(array),
        HostAny::I64(array) => lent::<Int64Type>(array),
        HostAny::Bool(array) => Arc::new(BooleanArray::from(array.as_slice().to_vec())),
        other => {
            let message = format!("Arrow's type for {} is not known to this version of tidemill-files", other.dtype());
            return Err(Error::new(ErrorKind::DType, message));
        }
    })
}

/// Arrow's numbers, lent to a session.
struct Lent<T: ::arrow_buffer::ArrowNativeType>(ScalarBuffer<T>);

impl<T: ::arrow_buffer::ArrowNativeType> AsRef<[T]> for Lent<T> {
    fn as_ref(&self) -> &[T] {
        &self.0
    }
}

/// Gathered numbers, lent to Arrow.
struct Gathered<T: Element>(HostArray<T>);

impl<T: Element + bytemuck::NoUninit> AsRef<[u8]> for Gathered<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(self.0.as_slice())
    }
}

fn lent<A>(array: &HostArray<A::Native>) -> ArrayRef
where
    A: ArrowPrimitiveType,
    A::Native: Element + bytemuck::NoUninit,
{
    let length = array.len();
    let bytes = Buffer::from(Bytes::from_owner(Gathered(array.clone())));
    Arc::new(PrimitiveArray::<A>::new(ScalarBuffer::new(bytes, 0, length), None))
}

//! [`UploadWriter`]: memory that a user fills and hands over as an array.

use super::handle::Array;
use super::record::source;
use super::tape::Home;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Element, Shape};
use crate::host_buffer::HostBuffer;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

/// Memory for an array's elements, zero at first, in column-major order. [`UploadWriter::finish`] turns it into
/// the array without another copy on the host.
pub struct UploadWriter<T: Element> {
    home: Arc<Home>,
    shape: Shape,
    data: HostBuffer,
    written: usize,
    element: PhantomData<T>,
}

impl<T: Element> UploadWriter<T> {
    pub(crate) fn new(home: Arc<Home>, shape: Shape) -> Result<UploadWriter<T>> {
        let data = HostBuffer::try_zeroed(T::DTYPE, shape.elements())?;
        Ok(UploadWriter { home, shape, data, written: 0, element: PhantomData })
    }

    /// The extents.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// All elements, for writing in any order, also from several threads at a time (split the slice).
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.data.as_mut_slice().expect("BUF-2: the buffer was made here, of this type")
    }

    /// Appends elements after those that `write` wrote before.
    ///
    /// # Errors
    /// `ErrorKind::Shape` where the array would overflow; nothing is written then.
    pub fn write(&mut self, elements: &[T]) -> Result<()> {
        let (from, len) = (self.written, self.data.len());
        let Some(room) = self.as_mut_slice().get_mut(from..).and_then(|rest| rest.get_mut(..elements.len())) else {
            let message = format!("{} elements after {from} overflow an array of {len}", elements.len());
            return Err(Error::new(ErrorKind::Shape, message).with_op("upload"));
        };
        room.copy_from_slice(elements);
        self.written += elements.len();
        Ok(())
    }

    /// The array. Elements that were not written are zero.
    #[track_caller]
    pub fn finish(self) -> Array {
        source(&self.home, self.data, self.shape, "upload", Location::caller())
    }
}

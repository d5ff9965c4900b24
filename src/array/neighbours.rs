//! Arrays from and to those of the crate `ndarray`, behind the feature of that name.

use super::handle::Array;
use super::host_array::HostArray;
use super::session::Session;
use crate::error::Result;
use crate::graph::Element;
use ndarray::{ArcArray, ArrayBase, ArrayD, ArrayViewD, Data, Dimension, IxDyn, ShapeBuilder};

impl Session {
    /// An array of an `ndarray`'s elements.
    ///
    /// # Errors
    /// `ErrorKind::TooLarge` for more elements than an array may have, `ErrorKind::Rank` for more dimensions.
    #[track_caller]
    pub fn from_ndarray<T, S, D>(&self, array: &ArrayBase<S, D>) -> Result<Array>
    where
        T: Element,
        S: Data<Elem = T>,
        D: Dimension,
    {
        // Logical order of the transposed array is column-major order of this one.
        let data: Vec<T> = array.t().iter().copied().collect();
        self.from_vec(data, array.shape())
    }

    /// An array that reads the elements of an `ndarray` where they lie, as [`Session::from_shared`] does: without a copy,
    /// if they are contiguous in row-major or in column-major order; else they are copied.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("ndarray").open();
    /// let rows = ndarray::Array::from_shape_fn((200, 300), |(i, j)| (1000 * i + j) as f64);
    /// let x = s.from_shared_ndarray(rows)?;
    /// let (last, turned) = (x.slice((199, 299)), x.t());
    /// assert_eq!((last.item::<f64>().wait()?, turned.shape()?.dims()), (199_299.0, &[300, 200][..]));
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::from_ndarray`] and [`Session::from_shared`].
    #[track_caller]
    pub fn from_shared_ndarray<T, D>(&self, array: impl Into<ArcArray<T, D>>) -> Result<Array>
    where
        T: Element,
        D: Dimension + 'static,
    {
        let array = array.into();
        let (column_major, row_major) = (array.t().is_standard_layout(), array.is_standard_layout());
        let mut dims = array.shape().to_vec();
        if column_major {
            return self.from_shared::<T>(Contiguous(array), dims);
        }
        if !row_major {
            return self.from_ndarray(&array);
        }
        dims.reverse();
        let turned: Vec<usize> = (0..dims.len()).rev().collect();
        Ok(self.from_shared::<T>(Contiguous(array), dims)?.permute(&turned))
    }
}

/// Elements without gaps, which are lent in the order in which they lie.
struct Contiguous<T, D>(ArcArray<T, D>);

impl<T, D: Dimension> AsRef<[T]> for Contiguous<T, D> {
    fn as_ref(&self) -> &[T] {
        self.0.as_slice_memory_order().unwrap_or_default()
    }
}

impl<T: Element> HostArray<T> {
    /// The elements as an `ndarray` view, without a copy: its first axis is the fastest.
    pub fn as_ndarray(&self) -> ArrayViewD<'_, T> {
        ArrayViewD::from_shape(IxDyn(self.shape().dims()).f(), self.as_slice())
            .expect("HOSTARRAY-1: the shape and the length agree")
    }

    /// The elements as an `ndarray` array, copied.
    pub fn to_ndarray(&self) -> ArrayD<T> {
        self.as_ndarray().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Shape;

    #[test]
    fn ndarray_sees_the_same_elements_at_the_same_places() {
        let a = HostArray::from_vec(vec![1, 2, 3, 4, 5, 6], Shape::new(&[2, 3]).unwrap()).unwrap();
        let there = a.as_ndarray();
        assert_eq!((there[[0, 1]], there[[1, 2]], there.as_ptr()), (3, 6, a.as_slice().as_ptr()));
        assert_eq!(a.to_ndarray(), there);
        let ring = crate::array::fake::FakeRing::new(crate::config::Config::default());
        let row_major = ndarray::arr2(&[[1, 2, 3], [4, 5, 6]]);
        let back = ring.session("ndarray").from_ndarray(&row_major).unwrap().gather::<i32>();
        assert_eq!(futures::executor::block_on(back).unwrap()[[1, 0]], 4);
    }
}

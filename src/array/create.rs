//! Constructors of arrays: from host data, and filled.
//!
//! Must hold: constructors from host data return `Result`; the others carry their faults.

use super::dims::IntoShape;
use super::fold::iota;
use super::handle::Array;
use super::layout;
use super::record::{At, Input, check_readable, node, refused_source, source};
use super::runtime::IntoDevice;
use super::session::Session;
use super::upload::{UploadWriter, copied};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, Element, Meta, Op, Scalar, Shape, View};
use crate::host_buffer::HostBuffer;
use crate::ids::DeviceId;
use std::panic::Location;
use std::sync::Arc;

impl Session {
    /// An array with a copy of these elements, in column-major order.
    ///
    /// # Errors
    /// `ErrorKind::Shape` if their number does not fit the shape, `ErrorKind::TooLarge` if the shape overflows;
    /// `ErrorKind::Cancelled` if the session is closed, and `ErrorKind::Shutdown` if the runtime was shut down.
    #[track_caller]
    pub fn from_slice<T: Element>(&self, data: &[T], shape: impl IntoShape) -> Result<Array> {
        let at = Location::caller();
        let shape = self.checked(data.len(), shape, "from_slice", at)?;
        if let Some(refused) = refused_source(self.home(), data.len(), "from_slice", at) {
            return Ok(refused);
        }
        Ok(source(self.home(), copied(self.home(), data), shape, "from_slice", at))
    }

    /// An array that takes over these elements, in column-major order, without a copy.
    ///
    /// # Errors
    /// As [`Session::from_slice`].
    #[track_caller]
    pub fn from_vec<T: Element>(&self, data: Vec<T>, shape: impl IntoShape) -> Result<Array> {
        let at = Location::caller();
        let shape = self.checked(data.len(), shape, "from_vec", at)?;
        Ok(source(self.home(), HostBuffer::from_vec(data), shape, "from_vec", at))
    }

    /// An array that reads the elements in place, in column-major order, without a copy. The owner is an `Arc<[T]>`, or
    /// a type of your own that lends a part of something larger. The runtime drops the owner when neither this array
    /// nor work that is still to be computed reads the elements.
    ///
    /// The runtime asks the owner for its elements once, during this call. The owner must not write to these elements
    /// as long as they are lent. The host device reads them in place, and they count for no budget; a GPU gets a copy.
    /// The owner may be dropped on a thread of the runtime; its drop must not wait for anything there. The elements
    /// need no more alignment than `T` has.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// use std::sync::Arc;
    /// use tidemill::Runtime;
    ///
    /// /// One frame of a recording that stays in memory.
    /// struct Frame(Arc<Vec<f32>>, usize);
    ///
    /// impl AsRef<[f32]> for Frame {
    ///     fn as_ref(&self) -> &[f32] {
    ///         &self.0[self.1 * 6..][..6]
    ///     }
    /// }
    ///
    /// let rt = Runtime::builder().device("host").start().await?;
    /// let s = rt.session("frames").open();
    /// let recording = Arc::new((0..12).map(|i| i as f32).collect::<Vec<f32>>());
    /// let second = s.from_shared::<f32>(Frame(recording.clone(), 1), [2, 3])?;
    /// assert_eq!(second.sum(..).item::<f32>().await?, 51.0);
    ///
    /// let weights: Arc<[f32]> = Arc::from([0.5, 2.0]);
    /// let weighted = s.from_shared(weights.clone(), [2, 1])? * second;
    /// assert_eq!(weighted.gather::<f32>().await?.as_slice(), [3.0, 14.0, 4.0, 18.0, 5.0, 22.0]);
    /// # rt.shutdown().await
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Session::from_slice`]; `ErrorKind::Argument` if the owner's `as_ref` panics.
    #[track_caller]
    pub fn from_shared<T: Element>(
        &self,
        owner: impl AsRef<[T]> + Send + Sync + 'static,
        shape: impl IntoShape,
    ) -> Result<Array> {
        let at = Location::caller();
        let named = |error: Error| error.with_op("from_shared").with_location(at);
        self.home().is_open().map_err(named)?;
        let data = HostBuffer::from_shared(owner).map_err(named)?;
        let shape = self.checked(data.len(), shape, "from_shared", at)?;
        Ok(source(self.home(), data, shape, "from_shared", at))
    }

    /// An array of another session as one of this session, without a copy. Ops on the returned array alone are recorded
    /// in this session. (An op belongs to the session of its operands. If these are from several sessions, those from
    /// other sessions than the op's must be shared.)
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// let (weights, request) = (rt.session("weights").open(), rt.session("request").open());
    /// let w = weights.from_slice(&[1.0f64, 2.0], 2)?.share()?;
    /// let doubled = request.adopt(&w)? * 2.0;
    /// assert_eq!(doubled.gather_blocking::<f64>()?.as_slice(), [2.0, 4.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    ///
    /// # Errors
    /// The array's fault; `ErrorKind::Ownership` for an array of another runtime, or one that was neither evaluated nor
    /// shared ([`Array::share`](super::Array::share)).
    #[track_caller]
    pub fn adopt(&self, array: &Array) -> Result<Array> {
        self.home().is_open()?;
        let meta = array.meta()?;
        if Arc::ptr_eq(self.home(), &array.0.home) {
            return Ok(array.clone());
        }
        check_readable(self.home(), array)?;
        let view = Op::View(View::Reshape);
        Ok(node(self.home(), view, &[Input::Array(array)], meta.clone(), Location::caller()))
    }

    /// An array of these elements, which are in row-major order.
    ///
    /// # Errors
    /// As [`Session::from_slice`].
    #[track_caller]
    pub fn from_row_major<T: Element>(&self, data: &[T], shape: impl IntoShape) -> Result<Array> {
        let at = Location::caller();
        let shape = self.checked(data.len(), shape, "from_row_major", at)?;
        if let Some(refused) = refused_source(self.home(), data.len(), "from_row_major", at) {
            return Ok(refused);
        }
        let data = HostBuffer::from_vec(layout::to_column_major(data, shape.dims()));
        Ok(source(self.home(), data, shape, "from_row_major", at))
    }

    /// An array of one element.
    #[track_caller]
    pub fn scalar<T: Element>(&self, value: T) -> Array {
        source(self.home(), HostBuffer::from_slice(&[value]), Shape::scalar(), "scalar", Location::caller())
    }

    /// Memory that the program fills, and that becomes an array without another copy. If the runtime's device is a GPU,
    /// it is memory that the GPU reads, as long as there is some.
    ///
    /// # Errors
    /// `ErrorKind::TooLarge` for more elements than an array may have; `ErrorKind::Rank` for more dimensions;
    /// `ErrorKind::OutOfMemory` if the machine has no memory for them, or if the memory for writers is in use, which is
    /// as much as the host's budget. In that case the calling thread waits while the work that the session has recorded
    /// is computed, at most a minute, and 250 ms more; in async code it does not wait, and the error comes at once.
    /// `ErrorKind::Cancelled` if the session is closed, and `ErrorKind::Shutdown` if the runtime was shut down.
    /// [`Session::upload_async`] waits without blocking a thread.
    #[track_caller]
    pub fn upload<T: Element>(&self, shape: impl IntoShape) -> Result<UploadWriter<T>> {
        let at = Location::caller();
        let shape = shape.into_shape().map_err(|e| e.with_op("upload").with_location(at))?;
        UploadWriter::new(self.home().clone(), shape, None).map_err(|e| e.with_op("upload").with_location(at))
    }

    /// As [`Session::upload`]. But if the memory for writers is in use, the future waits until enough of it is free,
    /// and blocks no thread. Requests are served in the order in which they came. A future that is dropped takes no
    /// memory.
    ///
    /// Memory becomes free when an array that was filled and all work that reads it are gone, in the order of its
    /// session's program. Memory of another session becomes free when that session next awaits something or is flushed.
    /// The future waits forever for memory that the program itself keeps in use; use your executor's time-out if that
    /// is possible.
    ///
    /// ```
    /// # fn main() -> tidemill::Result<()> {
    /// # futures::executor::block_on(async {
    /// use tidemill::Runtime;
    ///
    /// let rt = Runtime::builder().device("host").host_budget(8 << 20).start().await?;
    /// let s = rt.session("frames").open();
    /// let mut sums = Vec::new();
    /// for frame in 0..8 {
    ///     // 4 MiB each, of the 8 MiB that writers may hold: the third waits until the first frame is done with.
    ///     let mut writer = s.upload_async::<f32>([1 << 20, 1]).await?;
    ///     writer.as_mut_slice().fill(frame as f32);
    ///     sums.push(writer.finish().max_over(..).item::<f32>());
    /// }
    /// let last = futures::future::try_join_all(sums).await?;
    /// assert_eq!(last[7], 7.0);
    /// # rt.shutdown().await
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As `upload`: `ErrorKind::OutOfMemory` at once if the array could never fit; `ErrorKind::Cancelled` if the
    /// session is closed, and `ErrorKind::Shutdown` if the runtime ends, also while the future waits.
    #[track_caller]
    pub fn upload_async<T: Element>(
        &self,
        shape: impl IntoShape,
    ) -> impl Future<Output = Result<UploadWriter<T>>> + Send + 'static {
        self.upload_when_free(Ok(None), shape.into_shape(), Location::caller())
    }

    /// As [`Session::upload`], for an array that is pinned to a device, as by [`Array::pin`]. With `"gpu"`, the program
    /// fills memory that the GPU reads, as it does with `upload` on a runtime whose device is a GPU.
    ///
    /// # Errors
    /// As `upload`; `ErrorKind::Device` for a device that the runtime does not have.
    #[track_caller]
    pub fn upload_to<T: Element>(&self, device: impl IntoDevice, shape: impl IntoShape) -> Result<UploadWriter<T>> {
        let at = Location::caller();
        let named = |e: Error| e.with_op("upload").with_location(at);
        let shape = shape.into_shape().map_err(named)?;
        let pin = self.pin_to(device).map_err(named)?;
        UploadWriter::new(self.home().clone(), shape, pin).map_err(named)
    }

    /// As [`Session::upload_to`], but waits as [`Session::upload_async`] does.
    ///
    /// # Errors
    /// As [`Session::upload_to`] and [`Session::upload_async`].
    #[track_caller]
    pub fn upload_async_to<T: Element>(
        &self,
        device: impl IntoDevice,
        shape: impl IntoShape,
    ) -> impl Future<Output = Result<UploadWriter<T>>> + Send + 'static {
        self.upload_when_free(self.pin_to(device), shape.into_shape(), Location::caller())
    }

    fn pin_to(&self, device: impl IntoDevice) -> Result<Option<DeviceId>> {
        Ok(self.home().link.device(device.into_device()?)?.map(|device| device.id))
    }

    fn upload_when_free<T: Element>(
        &self,
        pin: Result<Option<DeviceId>>,
        shape: Result<Shape>,
        at: At,
    ) -> impl Future<Output = Result<UploadWriter<T>>> + Send + 'static {
        let writer = pin.and_then(|pin| Ok(UploadWriter::when_free(self.home().clone(), shape?, pin)));
        async move {
            let named = |e: Error| e.with_op("upload").with_location(at);
            match writer {
                Ok(writer) => writer.await.map_err(named),
                Err(error) => Err(named(error)),
            }
        }
    }

    /// An array whose elements all have this value.
    #[track_caller]
    pub fn full<T: Element>(&self, value: T, shape: impl IntoShape) -> Array {
        self.filled("full", value.to_scalar(), shape, Location::caller())
    }

    /// Zeros.
    #[track_caller]
    pub fn zeros<T: Element>(&self, shape: impl IntoShape) -> Array {
        self.filled("zeros", Scalar::I64(0).cast(T::DTYPE), shape, Location::caller())
    }

    /// Ones.
    #[track_caller]
    pub fn ones<T: Element>(&self, shape: impl IntoShape) -> Array {
        self.filled("ones", Scalar::I64(1).cast(T::DTYPE), shape, Location::caller())
    }

    /// The identity matrix with `n` rows and columns.
    #[track_caller]
    pub fn eye<T: Element>(&self, n: usize) -> Array {
        self.made(Op::Eye, [n, n], T::DTYPE, &[], Location::caller())
    }

    /// `n` points from `first` to `last` in a row. Both ends are exact; a single point is `last`. If the difference of
    /// the ends is beyond the type's greatest number, points between them may be infinite.
    #[track_caller]
    pub fn linspace<T: Element>(&self, first: T, last: T, n: usize) -> Array {
        let at = Location::caller();
        if !T::DTYPE.is_float() {
            let message = format!("points between two ends are f32 or f64, not {}", T::DTYPE);
            return Array::faulty(self.home(), Error::new(ErrorKind::DType, message), "linspace", at);
        }
        self.made(Op::Linspace, [1, n], T::DTYPE, &[first.to_scalar(), last.to_scalar()], at)
    }

    /// `first, first + step, …` in a row, up to but not including `stop`.
    #[track_caller]
    pub fn arange<T: Element>(&self, first: T, stop: T, step: T) -> Array {
        let at = Location::caller();
        let (first, stop, step) = (first.to_scalar(), stop.to_scalar(), step.to_scalar());
        match points(first, stop, step) {
            // A single point has no step, so the step may be infinite.
            Some(1) if T::DTYPE.is_float() => self.ranged(first, Scalar::I64(0).cast(T::DTYPE), 1, at),
            Some(count) => self.ranged(first, step, count, at),
            None => {
                let message = format!("there is no range of {} from {first} to {stop} by {step}", T::DTYPE);
                Array::faulty(self.home(), Error::new(ErrorKind::Argument, message), "arange", at)
            }
        }
    }

    /// `count` points of a range that exists. A kernel computes a point as `first + step * i`, and the product of
    /// integers must not saturate. So a range that spans more than the type's greatest number is made of parts.
    fn ranged(&self, first: Scalar, step: Scalar, count: usize, at: At) -> Array {
        let dtype = first.dtype();
        let (Some(from), Some(by), Some(reach)) = (whole(first), whole(step), whole(greatest(dtype))) else {
            return self.made(Op::Iota, [1, count], dtype, &[first, step], at);
        };
        let part = usize::try_from(reach / by.abs() + 1).unwrap_or(usize::MAX);
        if count <= part {
            return self.made(Op::Iota, [1, count], dtype, &[first, step], at);
        }
        let made = |begin: usize| {
            let start = Scalar::I64((from + by * begin as i128) as i64).cast(dtype);
            self.made(Op::Iota, [1, part.min(count - begin)], dtype, &[start, step], at)
        };
        // There are at most three parts: a type spans twice its greatest number, and one.
        let parts: Vec<Array> = (0..count).step_by(part).map(made).collect();
        let parts: Vec<&Array> = parts.iter().collect();
        super::cat(1, &parts).unwrap_or_else(|error| Array::faulty(self.home(), error, "arange", at))
    }

    /// The shape of so many elements that the program brings.
    pub(super) fn checked(&self, len: usize, shape: impl IntoShape, name: &'static str, at: At) -> Result<Shape> {
        let named = |error: Error| error.with_op(name).with_location(at);
        self.home().is_open().map_err(named)?;
        let shape = shape.into_shape().map_err(named)?;
        if shape.elements() != len {
            let message = format!("{len} elements do not fill an array of {shape}, which holds {}", shape.elements());
            return Err(named(Error::new(ErrorKind::Shape, message)));
        }
        Ok(shape)
    }

    fn filled(&self, name: &'static str, value: Scalar, shape: impl IntoShape, at: At) -> Array {
        match shape.into_shape() {
            Ok(shape) => self.made(Op::Fill, shape, value.dtype(), &[value], at),
            Err(error) => Array::faulty(self.home(), error, name, at),
        }
    }

    pub(super) fn made(&self, op: Op, shape: impl IntoShape, dtype: DType, args: &[Scalar], at: At) -> Array {
        let name = op.name();
        match shape.into_shape() {
            Err(error) => Array::faulty(self.home(), error, name, at),
            Ok(shape) => {
                let inputs: smallvec::SmallVec<[Input<'_>; 2]> = args.iter().map(|&s| Input::Number(s)).collect();
                node(self.home(), op, &inputs, Meta { dtype, shape }, at)
            }
        }
    }
}

/// An integer's value.
fn whole(s: Scalar) -> Option<i128> {
    match s {
        Scalar::U8(v) => Some(i128::from(v)),
        Scalar::I32(v) => Some(i128::from(v)),
        Scalar::U32(v) => Some(i128::from(v)),
        Scalar::I64(v) => Some(i128::from(v)),
        Scalar::F32(_) | Scalar::F64(_) | Scalar::Bool(_) => None,
    }
}

/// The greatest number of an integer type.
fn greatest(dtype: DType) -> Scalar {
    Scalar::F64(f64::INFINITY).cast(dtype)
}

/// The number of points that `first, first + step, …` has before `stop`; exact for integers. `None` if there is no such
/// range.
fn points(first: Scalar, stop: Scalar, step: Scalar) -> Option<usize> {
    if let (Some(from), Some(to), Some(by)) = (whole(first), whole(stop), whole(step)) {
        if by == 0 {
            return None;
        }
        let span = to - from;
        let count = (span / by + i128::from(span % by != 0 && (span > 0) == (by > 0))).max(0);
        // A count beyond the greatest shape is left to the shape's own check, which reports it.
        return Some(usize::try_from(count).unwrap_or(usize::MAX));
    }
    let (from, to, by) = (first.as_f64(), stop.as_f64(), step.as_f64());
    if by.is_infinite() && from.is_finite() && !to.is_nan() {
        return Some(usize::from((to - from) * by > 0.0));
    }
    let count = ((to - from) / by).ceil();
    let known = first.dtype() != DType::Bool && count.is_finite();
    // Rounding may move the last of these points to `stop` or beyond, so they are not counted. The points are monotone.
    let most = known.then_some(count.max(0.0).min(u64::MAX as f64 / 2.0) as usize)?;
    let before = |i: usize| {
        let x = iota(first.dtype(), first, step, i).as_f64();
        if by > 0.0 { x < to } else { x > to }
    };
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    Some(low)
}

//! Gathers: futures of values, and the methods of [`Array`] that make them. A gather is in progress from its creation
//! on; its first poll cuts the tape.
//!
//! In: an array. Out: elements in host memory, or an error that names the op and its source line. `pending` implements
//! the waiting.

use super::handle::Array;
use super::host_array::{HostAny, HostArray, MappedView};
use super::pending::{Pending, may_block};
use super::record::cast_in;
use crate::bulk;
use crate::contract::messages::scheduler::Delivered;
use crate::contract::tape::Want;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, Element, Shape};
use crate::host_buffer::HostBuffer;
use futures::FutureExt;
use std::future::{Future, IntoFuture};
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

macro_rules! futures {
    ($($(#[$doc:meta])* $name:ident $(<$t:ident>)? { $($field:ident: $ty:ty),* } -> $out:ty, |$this:ident, $delivered:ident| $finish:expr;)*) => {$(
        $(#[$doc])*
        #[must_use = "a gather that is dropped is cancelled"]
        pub struct $name $(<$t: Element>)? {
            pending: Pending,
            $($field: $ty,)*
            output: std::marker::PhantomData<fn() -> $out>,
        }

        impl $(<$t: Element>)? $name $(<$t>)? {
            /// Waits on this thread.
            ///
            /// # Errors
            /// `ErrorKind::WouldBlock` inside of an async context; otherwise the errors of the future.
            pub fn wait(self) -> Result<$out> {
                may_block("waiting for a gather")?;
                futures::executor::block_on(self)
            }
        }

        impl $(<$t: Element>)? Future for $name $(<$t>)? {
            type Output = Result<$out>;

            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                let $this = self.get_mut();
                match $this.pending.poll(cx) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                    Poll::Ready(Ok($delivered)) => Poll::Ready($finish),
                }
            }
        }

        impl $(<$t: Element>)? Unpin for $name $(<$t>)? {}
    )*};
}

futures! {
    /// The elements of an array, of exactly its dtype.
    Gather<T> { shape: Shape } -> HostArray<T>,
        |this, delivered| HostArray::new(host(delivered)?, this.shape.clone());
    /// The elements of an array of any dtype.
    GatherAny { shape: Shape } -> HostAny,
        |this, delivered| HostAny::new(host(delivered)?, this.shape.clone());
    /// The elements of an array, copied into a vector of the caller, whose memory is reused.
    GatherInto<T> { into: Vec<T> } -> Vec<T>,
        |this, delivered| fill(std::mem::take(&mut this.into), &*host(delivered)?);
    /// The elements of an array, in the memory into which the device delivered them.
    GatherView<T> { shape: Shape } -> MappedView<T>,
        |this, delivered| HostArray::new(host(delivered)?, this.shape.clone()).map(MappedView);
    /// The one element of an array.
    Item<T> {} -> T,
        |this, delivered| host(delivered).and_then(|d| one(&d));
    /// An array's value, computed and kept on its device.
    Eval {} -> (),
        |this, delivered| { let _ = delivered; Ok(()) };
    /// The plan that computes an array, in words.
    Explain {} -> String,
        |this, delivered| text(delivered);
}

fn host(delivered: Delivered) -> Result<Arc<HostBuffer>> {
    match delivered {
        Delivered::Host(data) => Ok(data),
        other => Err(Error::new(
            ErrorKind::Internal,
            format!("GATHER-1: elements were expected, and {other:?} was delivered"),
        )),
    }
}

fn text(delivered: Delivered) -> Result<String> {
    match delivered {
        Delivered::Text(text) => Ok(text),
        other => {
            Err(Error::new(ErrorKind::Internal, format!("GATHER-1: text was expected, and {other:?} was delivered")))
        }
    }
}

fn fill<T: Element>(mut into: Vec<T>, data: &HostBuffer) -> Result<Vec<T>> {
    let elements = data.as_slice::<T>().ok_or_else(|| wrong_dtype::<T>(data.dtype()))?;
    into.clear();
    bulk::append(elements, &mut into);
    Ok(into)
}

fn one<T: Element>(data: &HostBuffer) -> Result<T> {
    let elements = data.as_slice::<T>().ok_or_else(|| wrong_dtype::<T>(data.dtype()))?;
    elements.first().copied().ok_or_else(|| Error::new(ErrorKind::Shape, "an empty array has no item"))
}

fn wrong_dtype<T: Element>(is: DType) -> Error {
    let message =
        format!("the array holds {is} and was gathered as {}: use gather_as::<{}>() to convert it", T::DTYPE, T::DTYPE);
    Error::new(ErrorKind::DType, message)
}

impl Array {
    /// Demands the elements in host memory. The value is that of the program at this call, whatever is recorded
    /// afterwards. Its computation begins when the session's tape is sent: at the latest at the first poll of this
    /// future, or earlier by a poll of another gather of the session, a full tape,
    /// [`Session::flush`](super::Session::flush), or the runtime's shutdown, which waits for it. The future only waits,
    /// under any executor. `T` must be the array's dtype; [`Array::gather_as`] converts.
    ///
    /// # Errors (of the future)
    /// The array's fault, `ErrorKind::DType`, and errors of its computation.
    #[track_caller]
    pub fn gather<T: Element>(&self) -> Gather<T> {
        let (pending, shape) = self.demand_exactly::<T>(Location::caller());
        Gather { pending, shape, output: std::marker::PhantomData }
    }

    /// As [`Array::gather`], converting to `T` as [`Array::cast`] does.
    #[track_caller]
    pub fn gather_as<T: Element>(&self) -> Gather<T> {
        cast_in(&self.0.home, self, T::DTYPE, Location::caller()).gather()
    }

    /// As [`Array::gather`], for any dtype. Awaiting an array does the same.
    pub fn gather_any(&self) -> GatherAny {
        GatherAny {
            pending: Pending::demand(self, Want::Host),
            shape: self.shape_or_empty(),
            output: std::marker::PhantomData,
        }
    }

    /// As [`Array::gather`], into a vector, which the future returns filled. Its old elements are dropped, and its
    /// memory is reused.
    #[track_caller]
    pub fn gather_into<T: Element>(&self, into: Vec<T>) -> GatherInto<T> {
        let (pending, _) = self.demand_exactly::<T>(Location::caller());
        GatherInto { pending, into, output: std::marker::PhantomData }
    }

    /// As [`Array::gather`], as a slice of the memory into which the device delivered the elements.
    #[track_caller]
    pub fn gather_view<T: Element>(&self) -> GatherView<T> {
        let (pending, shape) = self.demand_exactly::<T>(Location::caller());
        GatherView { pending, shape, output: std::marker::PhantomData }
    }

    /// The element of an array that has exactly one.
    ///
    /// # Errors (of the future)
    /// As [`Array::gather`], and `ErrorKind::Shape` if the array has no element or several.
    #[track_caller]
    pub fn item<T: Element>(&self) -> Item<T> {
        let at = Location::caller();
        let (mut pending, shape) = (Pending::Done, self.shape_or_empty());
        if self.error().is_none() && !shape.is_scalar() {
            let error =
                Error::new(ErrorKind::Shape, format!("item() takes an array of one element, and this one is {shape}"));
            pending = Pending::failed(error.with_op("item").with_location(at));
        } else {
            std::mem::swap(&mut pending, &mut self.demand_exactly::<T>(at).0);
        }
        Item { pending, output: std::marker::PhantomData }
    }

    /// Demands that the value is computed and kept on its device. The first poll cuts the tape.
    pub fn eval(&self) -> Eval {
        Eval { pending: Pending::demand(self, Want::Device), output: std::marker::PhantomData }
    }

    /// The plan by which the value would be computed now: regions, placement, kernels, bytes. Nothing is run for it. It
    /// cuts the tape, as `flush` does: ops recorded later do not fuse with ops recorded before.
    pub fn explain(&self) -> Explain {
        Explain { pending: Pending::explain(self), output: std::marker::PhantomData }
    }

    /// [`Array::gather`], waiting on this thread, for programs without an executor.
    ///
    /// # Errors
    /// `ErrorKind::WouldBlock` inside of an async context; otherwise as [`Array::gather`].
    #[track_caller]
    pub fn gather_blocking<T: Element>(&self) -> Result<HostArray<T>> {
        self.gather::<T>().wait()
    }

    /// Lets other sessions of the runtime use the array from now on, beside arrays of their own, or alone once they
    /// have [adopted](crate::Session::adopt) it. This cuts the session's tape, so that the scheduler knows the value
    /// before other sessions use it: ops recorded later do not fuse with ops recorded before. The array lives as long
    /// as its own session; [`Session::close`](crate::Session::close) ends it for all sessions.
    ///
    /// # Errors
    /// The array's fault.
    pub fn share(&self) -> Result<Array> {
        self.meta()?;
        if self.0.host.is_none() {
            self.0.home.flush();
            self.0.exported.store(true, Ordering::Release);
        }
        Ok(self.clone())
    }

    fn demand_exactly<T: Element>(&self, at: &'static Location<'static>) -> (Pending, Shape) {
        let pending = match self.dtype() {
            Ok(dtype) if dtype != T::DTYPE => {
                Pending::failed(wrong_dtype::<T>(dtype).with_op("gather").with_location(at))
            }
            _ => Pending::demand(self, Want::Host),
        };
        (pending, self.shape_or_empty())
    }

    fn shape_or_empty(&self) -> Shape {
        self.shape().cloned().unwrap_or_else(|_| Shape::scalar())
    }
}

impl IntoFuture for &Array {
    type Output = Result<HostAny>;
    type IntoFuture = GatherAny;

    fn into_future(self) -> GatherAny {
        self.gather_any()
    }
}

impl IntoFuture for Array {
    type Output = Result<HostAny>;
    type IntoFuture = GatherAny;

    fn into_future(self) -> GatherAny {
        self.gather_any()
    }
}

/// Several gathers as a stream, which yields each result as it finishes, with its position in `arrays`.
pub fn gather_all<'a, T: Element>(arrays: impl IntoIterator<Item = &'a Array>) -> GatherAll<T> {
    let indexed = |(i, array): (usize, &Array)| Indexed { index: i, gather: array.gather::<T>() };
    GatherAll(arrays.into_iter().enumerate().map(indexed).collect())
}

/// See [`gather_all`].
pub struct GatherAll<T: Element>(futures::stream::FuturesUnordered<Indexed<T>>);

struct Indexed<T: Element> {
    index: usize,
    gather: Gather<T>,
}

impl<T: Element> Future for Indexed<T> {
    type Output = (usize, Result<HostArray<T>>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let index = self.index;
        self.gather.poll_unpin(cx).map(|result| (index, result))
    }
}

impl<T: Element> futures::Stream for GatherAll<T> {
    type Item = (usize, Result<HostArray<T>>);

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        futures::StreamExt::poll_next_unpin(&mut self.0, cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len(), Some(self.0.len()))
    }
}

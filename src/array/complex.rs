//! Complex arrays: two real arrays under one handle. The scheduler, fusion, residency and the devices see real arrays
//! only.
//!
//! In: real arrays, or interleaved numbers. Out: ops on the parts, recorded like all other ops. Must hold: COMPLEX-1:
//! both parts have one shape and one dtype, f32 or f64, or one of them carries a fault. COMPLEX-2: `together`, if it is
//! set, is an array with one more dimension, whose two halves along this dimension are the parts.

mod arithmetic;
mod fourier;
mod functions;

pub use arithmetic::ComplexOperand;

use super::cat;
use super::dims::{Dims, IntoShape, Slices};
use super::gather::Gather;
use super::handle::Array;
use super::record::{At, Input, apply, as_floats, cast_in, derive, node, refused_source};
use super::reduce::products_dtype;
use super::session::Session;
use super::structure::zeros;
use crate::error::{Error, Result};
use crate::graph::{DType, Element, ElementOp, Meta, Op, Scalar, Shape, View};
use num_complex::Complex;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A lazily computed array of complex numbers, as [`Array`] is one of real numbers: its real and its imaginary parts are
/// two arrays of one shape, f32 or f64.
///
/// Operators take complex arrays, real arrays and numbers on the right. A real operand has no imaginary part, which is
/// not the same as an imaginary part of zero: `z * x` multiplies both parts by `x`. Products of complex numbers are
/// computed by the textbook formula, also those of infinite numbers. Quotients are scaled, so that they overflow only
/// if their result does. Errors are at most a few units in the last place of the result's magnitude.
///
/// ```
/// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
/// # let s = rt.session("complex").open();
/// use tidemill::num_complex::Complex;
/// let z = s.from_complex(&[Complex::new(3.0, 4.0), Complex::new(0.0, -1.0)], 2)?;
/// let w = (&z * Complex::new(0.0, 1.0)).conj();
/// assert_eq!(w.gather::<f64>().wait()?, [Complex::new(-4.0, -3.0), Complex::new(1.0, 0.0)]);
/// assert_eq!(z.abs().gather_blocking::<f64>()?.as_slice(), [5.0, 1.0]);
/// # rt.shutdown_blocking()?;
/// # Ok::<(), tidemill::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ComplexArray {
    re: Array,
    im: Array,
    together: Option<Array>,
}

/// The real types of which complex numbers are made: f32 and f64.
pub trait Part: Element {
    /// The number, rounded to this type.
    fn of(number: f64) -> Self;
}
impl Part for f32 {
    fn of(number: f64) -> f32 {
        number as f32
    }
}
impl Part for f64 {
    fn of(number: f64) -> f64 {
        number
    }
}

/// The elements of a complex array in host memory, in column-major order.
#[must_use = "a gather that is dropped is cancelled"]
pub struct GatherComplex<T: Part>(Gather<T>);

impl<T: Part> GatherComplex<T> {
    /// Waits on this thread.
    ///
    /// # Errors
    /// `ErrorKind::WouldBlock` inside of an async context; otherwise the errors of the future.
    pub fn wait(self) -> Result<Vec<Complex<T>>> {
        self.0.wait().map(|parts| joined(parts.as_slice()))
    }
}

impl<T: Part> Future for GatherComplex<T> {
    type Output = Result<Vec<Complex<T>>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|parts| parts.map(|parts| joined(parts.as_slice())))
    }
}

fn joined<T: Part>(parts: &[T]) -> Vec<Complex<T>> {
    parts.chunks_exact(2).map(|part| Complex::new(part[0], part[1])).collect()
}

impl Session {
    /// A complex array of real and imaginary parts, which expand to one shape. Parts of integers and bools become f64.
    #[track_caller]
    pub fn complex(&self, re: &Array, im: &Array) -> ComplexArray {
        re.complex(im)
    }

    /// A complex array with a copy of these elements, in column-major order.
    ///
    /// # Errors
    /// As [`Session::from_slice`].
    #[track_caller]
    pub fn from_complex<T: Part>(&self, data: &[Complex<T>], shape: impl IntoShape) -> Result<ComplexArray> {
        let at = Location::caller();
        let shape = self.checked(data.len(), shape, "from_complex", at)?;
        if let Some(refused) = refused_source(self.home(), 2 * data.len(), "from_complex", at) {
            return Ok(ComplexArray::new(refused.clone(), refused));
        }
        let parts: Vec<T> = data.iter().flat_map(|number| [number.re, number.im]).collect();
        let pairs = self.from_vec(parts, [2, data.len()])?;
        let part = |n: usize| {
            derive(&[&pairs], "from_complex", at, |home, _| {
                Ok(pairs.slice_dim(home, 0, n, 1, at)?.view(home, View::Reshape, shape.clone(), at))
            })
        };
        Ok(ComplexArray::new(part(0), part(1)))
    }
}

impl Array {
    /// The complex array whose real part is this array and whose imaginary part is `im`; both expand to one shape.
    #[track_caller]
    pub fn complex(&self, im: &Array) -> ComplexArray {
        let at = Location::caller();
        let part = |own: &Array| {
            derive(&[self, im], "complex", at, |home, metas| {
                let dtype = products_dtype(home, "complex", metas)?;
                let shape = Shape::broadcast(&metas[0].shape, &metas[1].shape)?;
                Ok(cast_in(home, own, dtype, at).view(home, View::Broadcast, shape, at))
            })
        };
        ComplexArray::new(part(self), part(im))
    }

    /// The complex array of these real numbers; its imaginary parts are zero.
    #[track_caller]
    pub fn to_complex(&self) -> ComplexArray {
        complex(self, Location::caller())
    }
}

/// The complex array of real numbers, recorded with `at` as its place in the program.
fn complex(array: &Array, at: At) -> ComplexArray {
    let re = floats(array, "complex", at);
    let im = derive(&[&re], "complex", at, |home, metas| Ok(zeros(home, metas[0].clone(), at)));
    ComplexArray::new(re, im)
}

/// An array as floats: integers and bools become f64.
fn floats(array: &Array, name: &'static str, at: At) -> Array {
    derive(&[array], name, at, |home, _| as_floats(home, array, at))
}

/// Methods that apply the same method to both parts.
macro_rules! of_parts {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*);)*) => {
        impl ComplexArray {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, $($arg: $ty),*) -> ComplexArray {
                ComplexArray::new(self.re.$name($(Clone::clone(&$arg)),*), self.im.$name($($arg),*))
            }
        )*}
    };
}

of_parts! {
    /// As [`Array::reshape`].
    reshape(shape: impl IntoShape + Clone);
    /// As [`Array::flatten`].
    flatten();
    /// As [`Array::permute`].
    permute(perm: &[usize]);
    /// The first two dimensions exchanged, for each page. The imaginary parts keep their signs.
    transpose();
    /// As [`Array::slice`].
    slice(slices: impl Slices + Clone);
    /// As [`Array::flip`].
    flip(dim: usize);
    /// As [`Array::repmat`].
    repmat(times: &[usize]);
    /// As [`Array::broadcast_to`].
    broadcast_to(shape: impl IntoShape + Clone);
    /// As [`Array::circshift`].
    circshift(shifts: &[i64]);
    /// As [`Array::diag`].
    diag(k: i64);
    /// As [`Array::take`].
    take(index: &Array);
    /// As [`Array::sum`].
    sum(dims: impl Dims + Clone);
    /// As [`Array::mean`].
    mean(dims: impl Dims + Clone);
    /// As [`Array::cumsum`].
    cumsum(dim: usize);
}

impl ComplexArray {
    fn new(re: Array, im: Array) -> ComplexArray {
        ComplexArray { re, im, together: None }
    }

    /// The real parts.
    pub fn re(&self) -> Array {
        self.re.clone()
    }

    /// The imaginary parts.
    pub fn im(&self) -> Array {
        self.im.clone()
    }

    /// The extents.
    ///
    /// # Errors
    /// The fault that the array carries.
    pub fn shape(&self) -> Result<&Shape> {
        self.meta().map(|meta| &meta.shape)
    }

    /// The type of the parts.
    ///
    /// # Errors
    /// The fault that the array carries.
    pub fn dtype(&self) -> Result<DType> {
        self.meta().map(|meta| meta.dtype)
    }

    fn meta(&self) -> Result<&Meta> {
        let meta = self.re.meta()?;
        self.im.meta().map(|_| meta)
    }

    /// The fault that the array carries, if any.
    pub fn error(&self) -> Option<&Error> {
        self.re.error().or(self.im.error())
    }

    /// The array, or the fault that it carries.
    ///
    /// # Errors
    /// The fault that the array carries.
    pub fn checked(self) -> Result<ComplexArray> {
        match self.error() {
            Some(error) => Err(error.clone()),
            None => Ok(self),
        }
    }

    /// Demands the elements in host memory, real and imaginary parts interleaved; `T` is the type of the parts. See
    /// [`Array::gather`].
    ///
    /// # Errors (of the future)
    /// As [`Array::gather`].
    #[track_caller]
    pub fn gather<T: Part>(&self) -> GatherComplex<T> {
        GatherComplex(self.interleaved(Location::caller()).gather())
    }

    /// Real numbers of shape `[2, n]`: each column holds both parts of an element.
    fn interleaved(&self, at: At) -> Array {
        if let Some(together) = &self.together {
            return derive(&[together], "gather", at, |home, metas| {
                let pairs = together.view(home, View::Reshape, Shape::new(&[metas[0].elements() / 2, 2])?, at);
                let shape = Shape::new(&[2, metas[0].elements() / 2])?;
                Ok(pairs.view(home, View::Permute([1, 0].as_slice().into()), shape, at))
            });
        }
        derive(&[&self.re, &self.im], "gather", at, |home, metas| {
            let row = Shape::new(&[1, metas[0].elements()])?;
            let [re, im] = [&self.re, &self.im].map(|part| part.view(home, View::Reshape, row.clone(), at));
            let meta = Meta { dtype: metas[0].dtype, shape: Shape::new(&[2, metas[0].elements()])? };
            Ok(node(home, Op::Cat { dim: 0 }, &[Input::Array(&re), Input::Array(&im)], meta, at))
        })
    }

    /// The elements with parts of another type.
    #[track_caller]
    pub fn cast<T: Part>(&self) -> ComplexArray {
        ComplexArray::new(self.re.cast::<T>(), self.im.cast::<T>())
    }

    /// The matrix product of each page, as [`Array::matmul`], computed by four products of the parts.
    #[track_caller]
    pub fn matmul(&self, other: &ComplexArray) -> ComplexArray {
        let re = self.re.matmul(&other.re) - self.im.matmul(&other.im);
        let im = self.re.matmul(&other.im) + self.im.matmul(&other.re);
        ComplexArray::new(re, im)
    }

    /// Joins complex arrays along a dimension, as [`cat`](crate::cat) does.
    ///
    /// # Errors
    /// As [`cat`](crate::cat).
    #[track_caller]
    pub fn cat(dim: usize, arrays: &[&ComplexArray]) -> Result<ComplexArray> {
        let re: Vec<&Array> = arrays.iter().map(|array| &array.re).collect();
        let im: Vec<&Array> = arrays.iter().map(|array| &array.im).collect();
        Ok(ComplexArray::new(cat(dim, &re)?, cat(dim, &im)?))
    }
}

impl From<&Array> for ComplexArray {
    #[track_caller]
    fn from(array: &Array) -> ComplexArray {
        array.to_complex()
    }
}

/// Records elementwise ops with the same place in the program.
#[derive(Clone, Copy)]
struct Here(At);

impl Here {
    fn one(self, op: ElementOp, x: &Array) -> Array {
        apply(op, &mut [x.into()], self.0)
    }

    fn two<'a>(self, op: ElementOp, x: &'a Array, y: impl Into<super::Operand<'a>>) -> Array {
        apply(op, &mut [x.into(), y.into()], self.0)
    }

    /// A number of an array's dtype, as an array of one element.
    fn number(self, like: &Array, value: f64) -> Array {
        derive(&[like], "complex", self.0, |home, metas| {
            let meta = Meta { dtype: metas[0].dtype, shape: Shape::scalar() };
            Ok(node(home, Op::Fill, &[Input::Number(Scalar::F64(value).cast(meta.dtype))], meta, self.0))
        })
    }

    fn add(self, x: &Array, y: &Array) -> Array {
        self.two(ElementOp::Add, x, y)
    }

    fn sub(self, x: &Array, y: &Array) -> Array {
        self.two(ElementOp::Sub, x, y)
    }

    fn mul<'a>(self, x: &'a Array, y: impl Into<super::Operand<'a>>) -> Array {
        self.two(ElementOp::Mul, x, y)
    }

    fn div(self, x: &Array, y: &Array) -> Array {
        self.two(ElementOp::Div, x, y)
    }

    fn select<'a>(
        self,
        mask: &'a Array,
        yes: impl Into<super::Operand<'a>>,
        no: impl Into<super::Operand<'a>>,
    ) -> Array {
        apply(ElementOp::Select, &mut [mask.into(), yes.into(), no.into()], self.0)
    }
}

//! Fourier transforms of arrays.
//!
//! In: real or complex arrays. Out: a node of [`Op::Fourier`], and views of its two parts, which fuse into the kernels
//! that read them. A transform of a transform reads both parts in place.

use super::arithmetic::mul;
use super::{ComplexArray, Here, floats};
use crate::array::handle::Array;
use crate::array::record::{At, Input, derive, node};
use crate::array::structure::{moved_around, zeros};
use crate::array::watch::noted_as;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Fourier, Meta, Op, Parts, Spectrum, View};
use smallvec::SmallVec;
use std::panic::Location;

impl Array {
    /// The discrete Fourier transform along a dimension, `y[k] = sum_i x[i] exp(-2 pi i k / n)`. Integers and bools are
    /// transformed in f64. The relative error of a line, in the Euclidean norm, is at most `eps log2(n)`, or a few
    /// times that if `n` has a prime factor above 13.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("spectrum").open();
    /// use tidemill::num_complex::Complex;
    /// let x = s.from_slice(&[1.0, 0.0, -1.0, 0.0], 4)?;
    /// let y = x.fft(0);
    /// assert_eq!(y.gather::<f64>().wait()?, [0.0, 2.0, 0.0, 2.0].map(|re| Complex::new(re, 0.0)));
    /// assert_eq!(y.ifft(0).re().gather_blocking::<f64>()?.as_slice(), [1.0, 0.0, -1.0, 0.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn fft(&self, dim: usize) -> ComplexArray {
        of_real(self, Transform::fft(dim), Location::caller())
    }

    /// As [`Array::fft`], for the first `n` elements along the dimension, or for all of them followed by zeros.
    #[track_caller]
    pub fn fft_n(&self, dim: usize, n: usize) -> ComplexArray {
        of_real(self, Transform::fft(dim).of(n), Location::caller())
    }

    /// The first `n / 2 + 1` elements of [`Array::fft`]. The others follow by symmetry, because the line is real.
    #[track_caller]
    pub fn rfft(&self, dim: usize) -> ComplexArray {
        of_real(self, Transform::rfft(dim), Location::caller())
    }

    /// As [`Array::rfft`], for `n` elements, as [`Array::fft_n`].
    #[track_caller]
    pub fn rfft_n(&self, dim: usize, n: usize) -> ComplexArray {
        of_real(self, Transform::rfft(dim).of(n), Location::caller())
    }

    /// The inverse of [`Array::fft`], applied to a real array: divided by `n`, with the opposite sign in the exponent.
    #[track_caller]
    pub fn ifft(&self, dim: usize) -> ComplexArray {
        of_real(self, Transform::ifft(dim), Location::caller())
    }

    /// [`Array::fft`] along several dimensions, one after the other.
    #[track_caller]
    pub fn fftn(&self, dims: &[usize]) -> ComplexArray {
        match dims {
            [] => self.to_complex(),
            [first, rest @ ..] => self.fft(*first).fftn(rest),
        }
    }

    /// The elements of a dimension, moved so that element 0 of a spectrum is in the middle, at `n / 2`.
    #[track_caller]
    pub fn fftshift(&self, dim: usize) -> Array {
        shifted(self, "fftshift", dim, |n| n / 2, Location::caller())
    }

    /// The inverse of [`Array::fftshift`].
    #[track_caller]
    pub fn ifftshift(&self, dim: usize) -> Array {
        shifted(self, "ifftshift", dim, |n| n.div_ceil(2), Location::caller())
    }
}

impl ComplexArray {
    /// As [`Array::fft`].
    #[track_caller]
    pub fn fft(&self, dim: usize) -> ComplexArray {
        self.transformed(Transform::fft(dim), Location::caller())
    }

    /// As [`Array::fft_n`].
    #[track_caller]
    pub fn fft_n(&self, dim: usize, n: usize) -> ComplexArray {
        self.transformed(Transform::fft(dim).of(n), Location::caller())
    }

    /// The inverse of [`ComplexArray::fft`]: divided by `n`, with the opposite sign in the exponent.
    #[track_caller]
    pub fn ifft(&self, dim: usize) -> ComplexArray {
        self.transformed(Transform::ifft(dim), Location::caller())
    }

    /// As [`ComplexArray::ifft`], for `n` elements, as [`Array::fft_n`].
    #[track_caller]
    pub fn ifft_n(&self, dim: usize, n: usize) -> ComplexArray {
        self.transformed(Transform::ifft(dim).of(n), Location::caller())
    }

    /// The inverse of [`Array::rfft`] for lines of `n` elements: real numbers from the first `n / 2 + 1` elements of
    /// their spectrum. The imaginary parts of the first of these, and of the last if `n` is even, are not read.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("half").open();
    /// let x = s.from_slice(&[3.0, 1.0, 2.0, 2.0], 4)?;
    /// let low = x.rfft(0).slice((0..1, ..));
    /// assert_eq!(low.irfft(0, 4).gather_blocking::<f64>()?.as_slice(), [2.0; 4]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn irfft(&self, dim: usize, n: usize) -> Array {
        self.recorded(Transform::irfft(dim).of(n), Location::caller())
    }

    /// [`ComplexArray::fft`] along several dimensions, one after the other.
    #[track_caller]
    pub fn fftn(&self, dims: &[usize]) -> ComplexArray {
        match dims {
            [] => self.clone(),
            [first, rest @ ..] => self.fft(*first).fftn(rest),
        }
    }

    /// [`ComplexArray::ifft`] along several dimensions, one after the other.
    #[track_caller]
    pub fn ifftn(&self, dims: &[usize]) -> ComplexArray {
        match dims {
            [] => self.clone(),
            [first, rest @ ..] => self.ifft(*first).ifftn(rest),
        }
    }

    /// As [`Array::fftshift`].
    #[track_caller]
    pub fn fftshift(&self, dim: usize) -> ComplexArray {
        ComplexArray::new(self.re.fftshift(dim), self.im.fftshift(dim))
    }

    /// As [`Array::ifftshift`].
    #[track_caller]
    pub fn ifftshift(&self, dim: usize) -> ComplexArray {
        ComplexArray::new(self.re.ifftshift(dim), self.im.ifftshift(dim))
    }

    /// The half spectrum of real lines of `n` elements, recorded at the program's line `at`.
    pub(in crate::array) fn half_spectrum(array: &Array, dim: usize, n: usize, at: At) -> ComplexArray {
        of_real(array, Transform::rfft(dim).of(n), at)
    }

    /// The transform of `n` elements, or its inverse, recorded at the program's line `at`.
    pub(in crate::array) fn transformed_by(&self, dim: usize, n: usize, inverse: bool, at: At) -> ComplexArray {
        let transform = if inverse { Transform::ifft(dim) } else { Transform::fft(dim) };
        self.transformed(transform.of(n), at)
    }

    /// The real lines of half spectra, recorded at the program's line `at`.
    pub(in crate::array) fn real_line(&self, dim: usize, n: usize, at: At) -> Array {
        self.recorded(Transform::irfft(dim).of(n), at)
    }

    /// The product, recorded at the program's line `at`.
    pub(in crate::array) fn times(&self, other: &ComplexArray, at: At) -> ComplexArray {
        mul(Here(at), self, &other.into())
    }

    fn transformed(&self, transform: Transform, at: At) -> ComplexArray {
        let made = self.recorded(transform, at);
        parts(made, at)
    }

    fn recorded(&self, transform: Transform, at: At) -> Array {
        match &self.together {
            Some(together) => transform.record(&[together], Parts::Together, at),
            None => transform.record(&[&self.re, &self.im], Parts::Apart, at),
        }
    }
}

/// The parameters of a transform that a method of `Array` or `ComplexArray` records.
struct Transform {
    dim: usize,
    /// The length of a line; `None` for the dimension's own extent.
    len: Option<usize>,
    inverse: bool,
    spectrum: Spectrum,
}

impl Transform {
    fn fft(dim: usize) -> Transform {
        Transform { dim, len: None, inverse: false, spectrum: Spectrum::Full }
    }

    fn ifft(dim: usize) -> Transform {
        Transform { inverse: true, ..Transform::fft(dim) }
    }

    fn rfft(dim: usize) -> Transform {
        Transform { spectrum: Spectrum::Half, ..Transform::fft(dim) }
    }

    fn irfft(dim: usize) -> Transform {
        Transform { inverse: true, ..Transform::rfft(dim) }
    }

    /// The same for lines of `n` elements.
    fn of(self, n: usize) -> Transform {
        Transform { len: Some(n), ..self }
    }

    fn name(&self) -> &'static str {
        match (self.inverse, self.spectrum) {
            (false, Spectrum::Full) => "fft",
            (true, Spectrum::Full) => "ifft",
            (false, Spectrum::Half) => "rfft",
            (true, Spectrum::Half) => "irfft",
        }
    }

    /// Records the transform of one array, or of two parts. A complex result has one more dimension, the last, which
    /// holds its two parts.
    fn record(&self, arrays: &[&Array], parts: Parts, at: At) -> Array {
        derive(arrays, self.name(), at, |home, metas| {
            let own = parts.numbers(&metas[0].shape)?;
            own.has_axis(self.dim)?;
            let fourier = self.fourier(own.dim(self.dim), parts)?;
            let meta = Meta { dtype: metas[0].dtype, shape: fourier.shape_yielded(&own)? };
            if metas[0].elements() == 0 {
                return Ok(noted_as(home, Op::Fourier(fourier), arrays, zeros(home, meta, at), at));
            }
            let inputs: SmallVec<[Input<'_>; 2]> = arrays.iter().map(|array| Input::Array(array)).collect();
            Ok(node(home, Op::Fourier(fourier), &inputs, meta, at))
        })
    }

    fn fourier(&self, extent: usize, parts: Parts) -> Result<Fourier> {
        let len = self.len.unwrap_or(extent);
        if len == 0 && self.spectrum == Spectrum::Half {
            return Err(Error::new(
                ErrorKind::Argument,
                "a transform of real lines needs lines of at least one element",
            ));
        }
        let len = u32::try_from(len).map_err(|_| {
            Error::new(
                ErrorKind::TooLarge,
                format!("a transform takes lines of at most {} elements, and {len} were asked for", u32::MAX),
            )
        })?;
        let Transform { dim, inverse, spectrum, .. } = *self;
        Ok(Fourier { dim: dim as u8, len, inverse, parts, spectrum })
    }
}

fn of_real(array: &Array, transform: Transform, at: At) -> ComplexArray {
    parts(transform.record(&[&floats(array, transform.name(), at)], Parts::Real, at), at)
}

/// The complex array of a transform's result.
fn parts(together: Array, at: At) -> ComplexArray {
    let part = |n: usize| {
        derive(&[&together], "fft", at, |home, metas| {
            let last = metas[0].shape.axes() - 1;
            let shape = Parts::Together.numbers(&metas[0].shape)?;
            Ok(together.slice_dim(home, last, n, 1, at)?.view(home, View::Reshape, shape, at))
        })
    };
    let (re, im) = (part(0), part(1));
    ComplexArray { re, im, together: Some(together) }
}

/// The elements of a dimension of `n` elements, moved by `by(n)` places.
fn shifted(array: &Array, name: &'static str, dim: usize, by: impl FnOnce(usize) -> usize, at: At) -> Array {
    derive(&[array], name, at, |home, metas| {
        metas[0].shape.has_axis(dim)?;
        let mut shifts = vec![0i64; dim + 1];
        shifts[dim] = by(metas[0].shape.dim(dim)) as i64;
        moved_around(home, array, &metas[0].shape, &shifts, at)
    })
}

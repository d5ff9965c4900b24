//! Convolutions. With a short kernel they are a sum of shifted products, which fuses; with a long one, products of
//! Fourier transforms.
//!
//! In: an array, a kernel, the padding beyond the array's edges, and which part is kept. Out: recorded ops. Must hold:
//! CONVOLVE-1: shapes alone decide between products and transforms, so that they alone decide the bits. CONVOLVE-2: a
//! kernel has an element, and one that is transformed has more than [`TAPS_MAX`].

mod channels;

use super::complex::ComplexArray;
use super::handle::Array;
use super::record::{At, Input, apply, derive, node, source};
use super::recorder::Recorder;
use super::structure::{whole, zeros};
use super::tape::Home;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{ElementOp, Meta, Op, Scalar, Shape, SliceDim};
use crate::host_buffer::HostBuffer;
use crate::kernels::fft::is_smooth;
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::Arc;

/// Kernels of at most this many elements are summed directly; for longer ones, transforms are faster.
const TAPS_MAX: usize = 64;

/// The elements beyond the edges of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Padding {
    /// This number.
    Constant(f64),
    /// The array mirrored at its first and last element, which are not repeated: `c b | a b c | b a`.
    Reflect,
    /// The element at the edge: `a a | a b c | c c`.
    Replicate,
    /// The array again: `b c | a b c | a b`.
    Circular,
}

/// Which part of a convolution is kept, along each dimension with `n` elements of the array and `k` of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it, `n + k - 1` elements.
    Full,
    /// Its middle, `n` elements from `k / 2` on.
    Same,
    /// The elements that depend on no element beyond the edges: `n - k + 1` elements.
    Valid,
}

/// How an array is convolved: which part of the result is kept; the elements beyond the array's edges (default: zeros);
/// `stride`, the distance between elements of the result that are kept (default: 1); `dilation`, the distance between
/// elements of the kernel (default: 1).
///
/// ```
/// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
/// # let s = rt.session("convolve").open();
/// use tidemill::{Convolution, Extent, Padding};
/// let x = s.from_slice(&[1.0, 2.0, 3.0, 4.0], 4)?;
/// let k = s.from_slice(&[1.0, 1.0, 1.0], 3)?;
/// let mirrored = Convolution::new(Extent::Same).padding(Padding::Reflect);
/// assert_eq!(x.convolve(&k, Extent::Same).gather_blocking::<f64>()?.as_slice(), [3.0, 6.0, 9.0, 7.0]);
/// assert_eq!(x.convolve_by(&k, &mirrored).gather_blocking::<f64>()?.as_slice(), [5.0, 6.0, 9.0, 10.0]);
/// # rt.shutdown_blocking()?;
/// # Ok::<(), tidemill::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Convolution {
    extent: Extent,
    padding: Padding,
    stride: SmallVec<[usize; 3]>,
    dilation: SmallVec<[usize; 3]>,
}

impl Convolution {
    /// A convolution that keeps this part, with zeros beyond the array's edges.
    pub fn new(extent: Extent) -> Convolution {
        Convolution { extent, padding: Padding::Constant(0.0), stride: SmallVec::new(), dilation: SmallVec::new() }
    }

    /// Sets the elements beyond the array's edges.
    pub fn padding(self, padding: Padding) -> Convolution {
        Convolution { padding, ..self }
    }

    /// Keeps every `stride[d]`-th element along dimension `d`, from the first on.
    pub fn stride(self, stride: &[usize]) -> Convolution {
        Convolution { stride: stride.into(), ..self }
    }

    /// Places the kernel's elements `dilation[d]` apart along dimension `d`, with zeros between them.
    pub fn dilation(self, dilation: &[usize]) -> Convolution {
        Convolution { dilation: dilation.into(), ..self }
    }
}

/// A convolution along one dimension.
#[derive(Clone, Copy, Debug)]
struct Along {
    /// Elements of padding before and behind the array.
    padding: (usize, usize),
    /// Elements of the array with its padding.
    padded: usize,
    /// Elements of the kernel.
    taps: usize,
    /// The distance between them.
    dilation: usize,
    /// The distance between elements that are kept.
    stride: usize,
    /// Elements of the result along this dimension.
    kept: usize,
    /// The place of the first of them in the convolution of the padded array.
    start: usize,
}

impl Along {
    fn of(extent: usize, taps: usize, dim: usize, how: &Convolution) -> Result<Along> {
        let [dilation, stride] = [&how.dilation, &how.stride].map(|of| of.get(dim).copied().unwrap_or(1));
        if dilation == 0 || stride == 0 {
            return Err(Error::new(ErrorKind::Argument, "strides and dilations of a convolution must be at least 1"));
        }
        let reach = taps.saturating_sub(1).saturating_mul(dilation);
        let (first, count) = match how.extent {
            Extent::Full => (0, extent.saturating_add(reach)),
            Extent::Same => (reach.div_ceil(2), extent),
            Extent::Valid => (reach, extent.saturating_sub(reach)),
        };
        let padding = if count == 0 { (0, 0) } else { (reach - first, first + count - extent) };
        let padded = padding.0.saturating_add(extent).saturating_add(padding.1);
        Ok(Along { padding, padded, taps, dilation, stride, kept: count.div_ceil(stride), start: reach })
    }

    /// The same convolution for lines that begin with the array's first element. The padding is zeros, and only those
    /// behind the array are needed, which keep products that wrap around out of the part that is kept.
    fn continued_by_zeros(self) -> Along {
        let before = self.padding.0;
        let padding = (0, self.padding.1);
        Along { padding, padded: self.padded - before, start: self.start - before, ..self }
    }

    /// The distance from the first to the last element of the array that the kernel meets.
    fn reach(&self) -> usize {
        (self.taps - 1) * self.dilation
    }
}

impl Array {
    /// The convolution with a kernel, along all dimensions of the kernel: `y[i] = sum_j k[j] x[i - j]`, where `x` is zero
    /// beyond its edges. Kernels of up to 64 elements are summed directly; the error is that of such a sum. Longer ones
    /// go through Fourier transforms: the error is small beside the norms of the array and of the kernel, and a NaN or an
    /// infinite element makes every result NaN that shares its transforms, not only its neighbours: a whole line, or a
    /// whole plane where the kernel has two dimensions.
    #[track_caller]
    pub fn convolve(&self, kernel: &Array, extent: Extent) -> Array {
        convolve(self, kernel, &Convolution::new(extent), Location::caller())
    }

    /// As [`Array::convolve`], with padding, strides and dilations.
    #[track_caller]
    pub fn convolve_by(&self, kernel: &Array, how: &Convolution) -> Array {
        convolve(self, kernel, how, Location::caller())
    }

    /// As [`Array::convolve_by`], with the kernel mirrored: `y[i] = sum_j k[j] x[i + j]`, for `Extent::Valid`.
    #[track_caller]
    pub fn correlate(&self, kernel: &Array, how: &Convolution) -> Array {
        let at = Location::caller();
        let mirrored = derive(&[kernel], "correlate", at, |home, metas| mirrored(home, kernel, &metas[0].shape, at));
        convolve(self, &mirrored, how, at)
    }

    /// The array with `by[d].0` elements of padding before it and `by[d].1` elements behind it, for each dimension `d`
    /// of `by`.
    #[track_caller]
    pub fn pad(&self, by: &[(usize, usize)], padding: Padding) -> Array {
        let at = Location::caller();
        derive(&[self], "pad", at, |home, _| padded(home, self, by, padding, at))
    }
}

fn mirrored(home: &Arc<Home>, kernel: &Array, shape: &Shape, at: At) -> Result<Array> {
    if shape.elements() == 0 {
        return Ok(kernel.clone());
    }
    let dims: SmallVec<[SliceDim; 4]> =
        shape.dims().iter().map(|&len| SliceDim { start: len - 1, step: if len < 2 { 1 } else { -1 }, len }).collect();
    kernel.sliced(home, dims, at)
}

fn padded(home: &Arc<Home>, array: &Array, by: &[(usize, usize)], padding: Padding, at: At) -> Result<Array> {
    let meta = array.meta()?;
    meta.shape.has_axis(by.len().saturating_sub(1))?;
    if by.iter().all(|&by| by == (0, 0)) {
        return Ok(array.clone());
    }
    let mut extents: SmallVec<[usize; 4]> = meta.shape.dims().into();
    extents.resize(extents.len().max(by.len()), 1);
    let mut part = SmallVec::<[SliceDim; 4]>::new();
    for (dim, extent) in extents.iter_mut().enumerate() {
        let (before, behind) = by.get(dim).copied().unwrap_or((0, 0));
        part.push(SliceDim { start: before, step: 1, len: *extent });
        *extent = extent.saturating_add(before).saturating_add(behind);
    }
    let shape = Shape::new(&extents)?;
    if let Padding::Constant(value) = padding {
        let filled = Meta { dtype: meta.dtype, shape };
        let number = Scalar::F64(value).cast(meta.dtype);
        let around = node(home, Op::Fill, &[Input::Number(number)], filled.clone(), at);
        if meta.elements() == 0 {
            return Ok(around);
        }
        let inputs = [Input::Array(&around), Input::Array(array)];
        return Ok(node(home, Op::AssignSlice(part.as_slice().into()), &inputs, filled, at));
    }
    if meta.elements() == 0 {
        return Err(Error::new(ErrorKind::Argument, "an array without elements can only be padded by a constant"));
    }
    let mut made = array.clone();
    for (dim, &by) in by.iter().enumerate().filter(|(_, by)| **by != (0, 0)) {
        made = around(home, &made, dim, by, padding, at)?;
    }
    Ok(made)
}

/// The array, continued along a dimension by its own elements.
fn around(
    home: &Arc<Home>,
    array: &Array,
    dim: usize,
    (before, behind): (usize, usize),
    padding: Padding,
    at: At,
) -> Result<Array> {
    let meta = array.meta()?;
    let extent = meta.shape.dim(dim) as i64;
    let place = |i: i64| match padding {
        Padding::Circular => i.rem_euclid(extent),
        Padding::Reflect if extent > 1 => {
            let i = i.rem_euclid(2 * (extent - 1));
            i.min(2 * (extent - 1) - i)
        }
        Padding::Constant(_) | Padding::Reflect | Padding::Replicate => i.clamp(0, extent - 1),
    };
    let places: Vec<u32> = (-(before as i64)..extent + behind as i64).map(|i| place(i) as u32).collect();
    let count = Shape::new(&[places.len()])?;
    let shape = crate::graph::rules::with_extent(&meta.shape, dim, places.len())?;
    let index = source(home, HostBuffer::from_vec(places), count, "pad", at);
    let meta = Meta { dtype: meta.dtype, shape };
    Ok(node(home, Op::Take { dim: Some(dim as u8) }, &[Input::Array(array), Input::Array(&index)], meta, at))
}

fn convolve(array: &Array, kernel: &Array, how: &Convolution, at: At) -> Array {
    derive(&[array, kernel], "convolve", at, |home, metas| {
        let [x, k] = Recorder { home, at }.factors("convolve", [array, kernel], metas)?;
        let (shape, taps) = (&metas[0].shape, &metas[1].shape);
        let dims = taps.rank().max(how.stride.len()).max(how.dilation.len());
        shape.has_axis(dims - 1)?;
        let along: SmallVec<[Along; 3]> =
            (0..dims).map(|dim| Along::of(shape.dim(dim), taps.dim(dim), dim, how)).collect::<Result<_>>()?;
        let mut extents: SmallVec<[usize; 4]> = (0..shape.axes()).map(|dim| shape.dim(dim)).collect();
        for (extent, along) in extents.iter_mut().zip(&along) {
            *extent = along.kept;
        }
        let meta = Meta { dtype: x.dtype()?, shape: Shape::new(&extents)? };
        if taps.elements() == 0 || shape.elements() == 0 || meta.elements() == 0 {
            return Ok(zeros(home, meta, at));
        }
        let is_direct = taps.elements() <= TAPS_MAX;
        if !is_direct && how.padding == Padding::Constant(0.0) {
            // Transforms continue lines by zeros themselves.
            let along: SmallVec<[Along; 3]> = along.into_iter().map(Along::continued_by_zeros).collect();
            return by_transforms(home, &x, &k, &along, at);
        }
        let by: SmallVec<[(usize, usize); 3]> = along.iter().map(|along| along.padding).collect();
        let x = padded(home, &x, &by, how.padding, at)?;
        match is_direct {
            true => by_products(home, &x, &k, &along, at),
            false => by_transforms(home, &x, &k, &along, at),
        }
    })
}

/// The first elements of the full convolution of lines along dimension 0 with a kernel `[taps, 1]`, as many as a line
/// has: `y[i] = sum_j k[j] x[i - j]`, where `x` is zero before its first element.
pub(super) fn causal(home: &Arc<Home>, x: &Array, k: &Array, at: At) -> Result<Array> {
    let (kept, taps) = (x.shape()?.dim(0), k.elements()?);
    let reach = taps - 1;
    let padding = (reach, reach);
    let along = Along { padding, padded: kept + 2 * reach, taps, dilation: 1, stride: 1, kept, start: reach };
    if taps > TAPS_MAX {
        return by_transforms(home, x, k, &[along.continued_by_zeros()], at);
    }
    by_products(home, &padded(home, x, &[(reach, 0)], Padding::Constant(0.0), at)?, k, &[along], at)
}

/// The sum of the products of each element of the kernel with the part of the array that it meets.
fn by_products(home: &Arc<Home>, x: &Array, k: &Array, along: &[Along], at: At) -> Result<Array> {
    let taps = k.meta()?.elements();
    let mut sum: Option<Array> = None;
    for tap in 0..taps {
        let mut rest = tap;
        let mut part = whole(x.shape()?);
        part.resize(part.len().max(along.len()), SliceDim { start: 0, step: 1, len: 1 });
        let mut own = SmallVec::<[SliceDim; 4]>::new();
        for (dim, along) in along.iter().enumerate() {
            let place = rest % along.taps;
            rest /= along.taps;
            let start = along.start - place * along.dilation;
            part[dim] = SliceDim { start, step: along.stride as isize, len: along.kept };
            own.push(SliceDim { start: place, step: 1, len: 1 });
        }
        let (met, weight) = (x.sliced(home, part, at)?, k.sliced(home, own, at)?);
        let product = apply(ElementOp::Mul, &mut [met.into(), weight.into()], at);
        sum = Some(match sum {
            None => product,
            Some(sum) => apply(ElementOp::Add, &mut [sum.into(), product.into()], at),
        });
    }
    sum.ok_or_else(|| Error::new(ErrorKind::Internal, "CONVOLVE-2: a kernel without elements"))
}

/// The product of the spectra, transformed back. Transforms are circular: products that wrap around the end of a line
/// are added to elements before the first one that is kept.
fn by_transforms(home: &Arc<Home>, x: &Array, k: &Array, along: &[Along], at: At) -> Result<Array> {
    let k = spread(home, k, along, at)?;
    let moving: SmallVec<[(usize, usize); 3]> = along
        .iter()
        .enumerate()
        .filter(|(_, along)| along.taps > 1)
        .map(|(dim, along)| (dim, fast_length(along.padded)))
        .collect();
    let [(first, len), rest @ ..] = moving.as_slice() else {
        return Err(Error::new(ErrorKind::Internal, "CONVOLVE-2: one element is no long kernel"));
    };
    let spectrum = |array: &Array| {
        rest.iter().fold(ComplexArray::half_spectrum(array, *first, *len, at), |spectrum, &(dim, len)| {
            spectrum.transformed_by(dim, len, false, at)
        })
    };
    let product = spectrum(x).times(&spectrum(&k), at);
    let product = rest.iter().fold(product, |product, &(dim, len)| product.transformed_by(dim, len, true, at));
    let made = product.real_line(*first, *len, at).checked()?;
    let mut part = whole(made.shape()?);
    // Dimensions beyond the array's rank have one element.
    for (slice, along) in part.iter_mut().zip(along) {
        *slice = SliceDim { start: along.start, step: along.stride as isize, len: along.kept };
    }
    made.sliced(home, part, at)
}

/// The kernel with zeros between its elements.
fn spread(home: &Arc<Home>, k: &Array, along: &[Along], at: At) -> Result<Array> {
    if along.iter().all(|along| along.dilation == 1) {
        return Ok(k.clone());
    }
    let extents: SmallVec<[usize; 3]> = along.iter().map(|along| along.reach() + 1).collect();
    let dims: SmallVec<[SliceDim; 4]> =
        along.iter().map(|along| SliceDim { start: 0, step: along.dilation as isize, len: along.taps }).collect();
    let meta = Meta { dtype: k.meta()?.dtype, shape: Shape::new(&extents)? };
    let around = zeros(home, meta.clone(), at);
    let inputs = [Input::Array(&around), Input::Array(k)];
    Ok(node(home, Op::AssignSlice(dims.as_slice().into()), &inputs, meta, at))
}

/// The least even length, from `least` on, that has no prime factor above 5.
fn fast_length(least: usize) -> usize {
    (least.max(2)..).find(|&length| length.is_multiple_of(2) && is_smooth(length, &[2, 3, 5])).unwrap_or(least)
}

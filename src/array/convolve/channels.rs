//! Convolutions of channels: each channel of the result is a sum of convolutions, one for each channel of its group.
//!
//! In: an array `[.., c, ..]` and a kernel `[.., c / groups, o]`. Out: recorded ops. The parts of the array that the
//! elements of the kernel meet are written side by side, and one product of matrices for each group, all groups as
//! pages of one op, sums over the kernel's elements and channels. If a group reads one channel, the sum is one of
//! shifted products, which fuses. Must hold: CONVOLVE-1, CONVOLVE-2.

use super::{Along, Array, Convolution, Location, TAPS_MAX, padded};
use crate::array::record::derive;
use crate::array::recorder::Recorder;
use crate::array::structure::whole;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Meta, Shape, SliceDim};
use smallvec::SmallVec;

/// The most bytes of parts of the array that are written side by side. Beyond that, products for some elements of the
/// kernel at a time are added.
const PARTS_BYTES_MAX: usize = 256 << 20;

impl Array {
    /// The convolutions of channels along the first `dims` dimensions, as in a layer of a neural network: channel `o`
    /// of the result is the sum over `c` of the convolutions of channel `c` with the kernel's part for both. The array
    /// is `[n1, .., c, ..]`: `dims` extents, the channels, and any further dimensions, each of whose elements is
    /// convolved alike. The kernel is `[k1, .., c / groups, o]`, and the result `[m1, .., o, ..]`.
    ///
    /// With several `groups`, channels are divided into as many equal ranges, and a channel of the result reads the
    /// channels of its own range only. `groups` equal to `c` makes each channel a convolution of its own (depthwise).
    ///
    /// The sums are products of matrices, with their error. Memory holds the part of the array that each element of the
    /// kernel meets, up to 256 MiB at a time; where a group reads one channel, and the kernel has up to 64 elements
    /// along `dims`, the sums are fused and take no memory.
    ///
    /// Channels that do not fit the kernel or the groups are a fault (`ErrorKind::Shape`), and so are no dimensions, no
    /// groups, and strides or dilations that are 0 or of further dimensions (`ErrorKind::Argument`).
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("channels").open();
    /// use tidemill::{Convolution, Extent};
    /// // Two channels of three elements, and a kernel of two elements for each.
    /// let x = s.from_slice(&[1.0, 2.0, 3.0, 10.0, 20.0, 30.0], [3, 2])?;
    /// let k = s.from_slice(&[1.0, 1.0, 1.0, -1.0], [2, 1, 2])?;
    /// let y = x.convolve_channels(&k, 1, 2, &Convolution::new(Extent::Valid));
    /// assert_eq!(y.gather_blocking::<f64>()?.as_slice(), [3.0, 5.0, 10.0, 10.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn convolve_channels(&self, kernel: &Array, dims: usize, groups: usize, how: &Convolution) -> Array {
        let at = Location::caller();
        derive(&[self, kernel], "convolve_channels", at, |home, metas| {
            let layout = Layout::of(metas, dims, groups, how)?;
            layout.convolved(Recorder { home, at }, [self, kernel], metas, how)
        })
    }

    /// As [`Array::convolve_channels`], with the kernel mirrored along the first `dims` dimensions, as
    /// [`Array::correlate`] does: the convolution of PyTorch's `conv1d`, `conv2d` and `conv3d`, whose dimensions have
    /// the opposite order.
    #[track_caller]
    pub fn correlate_channels(&self, kernel: &Array, dims: usize, groups: usize, how: &Convolution) -> Array {
        let at = Location::caller();
        derive(&[self, kernel], "correlate_channels", at, |home, metas| {
            let layout = Layout::of(metas, dims, groups, how)?;
            let mut slices = whole(&metas[1].shape);
            for slice in slices.iter_mut().take(dims).filter(|slice| slice.len > 1) {
                *slice = SliceDim { start: slice.len - 1, step: -1, len: slice.len };
            }
            let mirrored = kernel.sliced(home, slices, at)?;
            layout.convolved(Recorder { home, at }, [self, &mirrored], metas, how)
        })
    }
}

/// Extents of a convolution of channels.
struct Layout {
    along: SmallVec<[Along; 3]>,
    groups: usize,
    /// Channels of the array, and of the result, in a group.
    from: usize,
    to: usize,
    /// Elements of the dimensions behind the channels.
    batch: usize,
    /// The shape of the result.
    shape: Shape,
}

impl Layout {
    fn of(metas: &[&Meta], dims: usize, groups: usize, how: &Convolution) -> Result<Layout> {
        let (shape, kernel) = (&metas[0].shape, &metas[1].shape);
        if dims == 0 || groups == 0 || how.stride.len() > dims || how.dilation.len() > dims {
            let message = format!(
                "a convolution of channels needs a dimension, a group, and strides and dilations of its dimensions alone; \
                 there are {dims} dimensions, {groups} groups, {} strides and {} dilations",
                how.stride.len(),
                how.dilation.len()
            );
            return Err(Error::new(ErrorKind::Argument, message));
        }
        let (channels, from, made) = (shape.dim(dims), kernel.dim(dims), kernel.dim(dims + 1));
        let fits = channels == from.saturating_mul(groups) && made.is_multiple_of(groups) && kernel.rank() <= dims + 2;
        if !fits {
            let message = format!(
                "a kernel of {kernel} does not fit {channels} channels (dimension {dims} of {shape}) in {groups} groups: \
                 behind {dims} dimensions it has the channels of a group, and a multiple of {groups} channels of the result"
            );
            return Err(Error::new(ErrorKind::Shape, message));
        }
        let along: SmallVec<[Along; 3]> =
            (0..dims).map(|dim| Along::of(shape.dim(dim), kernel.dim(dim), dim, how)).collect::<Result<_>>()?;
        let mut extents: SmallVec<[usize; 4]> = (0..shape.axes().max(dims + 1)).map(|dim| shape.dim(dim)).collect();
        for (extent, along) in extents.iter_mut().zip(&along) {
            *extent = along.kept;
        }
        extents[dims] = made;
        let batch = extents[dims + 1..].iter().product();
        Ok(Layout { along, groups, from, to: made / groups, batch, shape: Shape::new(&extents)? })
    }

    /// Elements of the kernel for a pair of channels.
    fn taps(&self) -> usize {
        self.along.iter().map(|along| along.taps).product()
    }

    /// Elements of a channel of the result.
    fn places(&self) -> usize {
        self.along.iter().map(|along| along.kept).product()
    }

    fn convolved(&self, r: Recorder<'_>, of: [&Array; 2], metas: &[&Meta], how: &Convolution) -> Result<Array> {
        let [x, k] = r.factors("convolve_channels", of, metas)?;
        let meta = Meta { dtype: x.dtype()?, shape: self.shape.clone() };
        if metas.iter().any(|meta| meta.elements() == 0) || meta.elements() == 0 {
            return r.zeros(meta);
        }
        let by: SmallVec<[(usize, usize); 3]> = self.along.iter().map(|along| along.padding).collect();
        let x = padded(r.home, &x, &by, how.padding, r.at)?;
        let mut extents: SmallVec<[usize; 8]> = self.along.iter().map(|along| along.padded).collect();
        extents.extend([self.from, self.groups, self.batch]);
        let x = r.reshape(&x, Shape::new(&extents)?)?;
        let k = r.reshape(&k, Shape::new(&[self.taps(), self.from, self.to, self.groups])?)?;
        let made = match self.from == 1 && self.taps() <= TAPS_MAX {
            true => self.by_products(&r, &x, &k)?,
            false => self.by_matrices(&r, &x, &k)?,
        };
        r.reshape(&made, meta.shape)
    }

    /// The elements of the array that an element of the kernel meets, `[places, from, groups, batch]`.
    fn met(&self, r: &Recorder<'_>, x: &Array, tap: usize) -> Result<Array> {
        let mut rest = tap;
        let mut part = whole(x.shape()?);
        // Extents of 1 at the end are no dimensions of a shape.
        part.resize(part.len().max(self.along.len()), SliceDim { start: 0, step: 1, len: 1 });
        for (part, along) in part.iter_mut().zip(&self.along) {
            let start = along.start - rest % along.taps * along.dilation;
            rest /= along.taps;
            *part = SliceDim { start, step: along.stride as isize, len: along.kept };
        }
        r.reshape(&r.slice(x, &part)?, Shape::new(&[self.places(), self.from, self.groups, self.batch])?)
    }

    /// The sum of shifted products, for groups that read one channel: `[places, to, groups, batch]`.
    fn by_products(&self, r: &Recorder<'_>, x: &Array, k: &Array) -> Result<Array> {
        let mut sum = None;
        for tap in 0..self.taps() {
            let weight = r.reshape(&r.part(k, 0, tap, 1)?, Shape::new(&[1, self.to, self.groups])?)?;
            sum = Some(r.added(sum, r.mul(&self.met(r, x, tap)?, &weight)?)?);
        }
        sum.ok_or_else(|| Error::new(ErrorKind::Internal, "CONVOLVE-2: a kernel without elements"))
    }

    /// The products of matrices, whose pages are groups: `[places, to, groups, batch]`.
    fn by_matrices(&self, r: &Recorder<'_>, x: &Array, k: &Array) -> Result<Array> {
        let (taps, rows) = (self.taps(), self.places() * self.batch);
        let bytes = rows * self.from * self.groups * x.dtype()?.bytes();
        let at_once = (PARTS_BYTES_MAX / bytes).clamp(1, taps);
        let beside = Shape::new(&[rows, 1, self.from, self.groups])?;
        let mut sum = None;
        for first in (0..taps).step_by(at_once) {
            let count = at_once.min(taps - first);
            let parts = (first..first + count).map(|tap| {
                // Places and batch together are the rows of the matrices.
                r.reshape(&r.permute(&self.met(r, x, tap)?, &[0, 3, 1, 2])?, beside.clone())
            });
            let parts = parts.collect::<Result<Vec<Array>>>()?;
            let left = r.join(1, &parts.iter().collect::<Vec<_>>())?;
            let left = r.reshape(&left, Shape::new(&[rows, count * self.from, self.groups])?)?;
            let right = Shape::new(&[count * self.from, self.to, self.groups])?;
            let right = r.reshape(&r.part(k, 0, first, count)?, right)?;
            sum = Some(r.added(sum, r.matmul(&left, &right)?)?);
        }
        let sum = sum.ok_or_else(|| Error::new(ErrorKind::Internal, "CONVOLVE-2: a kernel without elements"))?;
        let apart = r.reshape(&sum, Shape::new(&[self.places(), self.batch, self.to, self.groups])?)?;
        r.permute(&apart, &[0, 2, 3, 1])
    }
}

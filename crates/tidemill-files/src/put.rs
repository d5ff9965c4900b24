//! From arrays into files, on a thread that may wait.
//!
//! In: a tensor. Out: its elements' bytes, in the order of the file. An array of several blocks is computed first, and
//! then gathered block by block; the next block is on its way while one is written.

use crate::Tensor;
use crate::any::AnyArray;
use crate::element::{FileElement, Kind, by_dtype};
use crate::error::{error, named};
use crate::layout::blocks;
use crate::threads::Stop;
use futures::FutureExt;
use futures::executor::block_on;
use std::ops::Range;
use std::path::Path;
use tidemill::{Array, ErrorKind, Gather, HostArray, Result, SliceArg};

/// Bytes that are gathered at a time.
const BLOCK_BYTES: usize = 16 << 20;

/// The type by which a tensor is stored.
pub(crate) fn kind(tensor: &Tensor, path: &Path) -> Result<Kind> {
    let dtype = tensor.array.dtype().map_err(|cause| named(path, &cause))?;
    Kind::of(dtype, tensor.array.is_complex())
        .ok_or_else(|| error(ErrorKind::DType, path, format!("{dtype} is not known to this version of tidemill-files")))
}

/// Takes the elements of a tensor's array, a block at a time, in the order of a file.
pub(crate) trait Take {
    fn take<T: FileElement>(&mut self, elements: &[T]) -> std::io::Result<()>;
}

/// Writes bytes.
pub(crate) struct Bytes<W>(pub W, Vec<u8>);

impl<W: std::io::Write> Bytes<W> {
    pub fn new(writer: W) -> Bytes<W> {
        Bytes(writer, Vec::new())
    }
}

impl<W: std::io::Write> Take for Bytes<W> {
    fn take<T: FileElement>(&mut self, elements: &[T]) -> std::io::Result<()> {
        for elements in elements.chunks(128 << 10) {
            self.1.clear();
            T::encode(elements, &mut self.1);
            self.0.write_all(&self.1)?;
        }
        Ok(())
    }
}

/// Hands the elements of a tensor to `take`, in the order of the file.
pub(crate) fn put(tensor: &Tensor, row_major: bool, path: &Path, take: &mut impl Take, stop: &Stop) -> Result<()> {
    let to = To { row_major, path, stop };
    let dtype = tensor.array.dtype().map_err(|cause| named(path, &cause))?;
    match &tensor.array {
        AnyArray::Real(array) => by_dtype!(dtype, T => to.real::<T>(&[array], take)),
        AnyArray::Complex(array) => {
            let (re, im) = (array.re(), array.im());
            by_dtype!(dtype, T => to.complex::<T>(&[&re, &im], take))
        }
    }
}

/// A block that was asked for.
enum Begun<T: FileElement> {
    Open(Gather<T>),
    Done(Result<HostArray<T>>),
}

struct To<'a> {
    row_major: bool,
    path: &'a Path,
    stop: &'a Stop,
}

impl To<'_> {
    fn real<T: FileElement>(&self, arrays: &[&Array], take: &mut impl Take) -> Result<()> {
        self.each::<T>(arrays, |parts| take.take(parts[0].as_slice()))
    }

    fn complex<T: FileElement>(&self, parts: &[&Array], take: &mut impl Take) -> Result<()> {
        let mut pairs: Vec<T> = Vec::new();
        self.each::<T>(parts, |parts| {
            pairs.clear();
            pairs.extend(parts[0].iter().zip(&parts[1]).flat_map(|(&re, &im)| [re, im]));
            take.take(&pairs)
        })
    }

    /// Calls `write` with each block of arrays of one shape.
    fn each<T: FileElement>(
        &self,
        arrays: &[&Array],
        mut write: impl FnMut(&[HostArray<T>]) -> std::io::Result<()>,
    ) -> Result<()> {
        let dims = arrays[0].shape().map_err(|cause| named(self.path, &cause))?.dims().to_vec();
        let elements_max = BLOCK_BYTES / (T::DTYPE.bytes() * arrays.len());
        let blocks = blocks(&dims, self.row_major, elements_max);
        if blocks.len() > 1 {
            for array in arrays {
                block_on(array.eval()).map_err(|cause| named(self.path, &cause))?;
            }
        }
        let mut next: Option<Vec<Begun<T>>> = blocks.first().map(|block| self.begin(arrays, block, blocks.len()));
        for at in 0..blocks.len() {
            self.stop.check(self.path)?;
            let gathers = next.take().unwrap_or_default();
            let mut parts = Vec::with_capacity(gathers.len());
            for begun in gathers {
                let part = match begun {
                    Begun::Done(part) => part,
                    Begun::Open(gather) => block_on(gather),
                };
                parts.push(part.map_err(|cause| named(self.path, &cause))?);
            }
            next = blocks.get(at + 1).map(|block| self.begin(arrays, block, blocks.len()));
            write(&parts).map_err(|cause| crate::error::io(self.path, "it can't be written", &cause))?;
        }
        Ok(())
    }

    /// Begins to gather a block.
    fn begin<T: FileElement>(&self, arrays: &[&Array], block: &[Range<usize>], blocks: usize) -> Vec<Begun<T>> {
        let slices: Vec<SliceArg> = block.iter().map(|range| SliceArg::from(range.clone())).collect();
        let turned: Vec<usize> = (0..block.len()).rev().collect();
        let one = |array: &&Array| {
            let part = if blocks > 1 { array.slice(&slices[..]) } else { (*array).clone() };
            let part = if self.row_major { part.permute(&turned) } else { part };
            let mut gather = part.gather::<T>();
            // The first poll sends it off.
            match (&mut gather).now_or_never() {
                Some(part) => Begun::Done(part),
                None => Begun::Open(gather),
            }
        };
        arrays.iter().map(one).collect()
    }
}

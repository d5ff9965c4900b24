//! Structure of [`Array`]: views (fused into their consumers' loads), joins, triangles, diagonals, products.

use super::dims::{IntoShape, Slices, resolve};
use super::handle::Array;
use super::record::{At, Input, cast_in, common_home, derive, node};
use super::reduce::products_dtype;
use super::strict;
use super::tape::Home;
use super::watch::noted_as;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::rules;
use crate::graph::{DType, Meta, Op, Scalar, Shape, SliceDim, View};
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::Arc;

/// The most arrays that one node joins. More arrays are joined in a tree, so that a kernel has enough bindings.
const JOIN_FAN_IN: usize = 4;

impl Array {
    /// The same elements, in column-major order, under another shape of as many elements.
    #[track_caller]
    pub fn reshape(&self, shape: impl IntoShape) -> Array {
        let at = Location::caller();
        derive(&[self], "reshape", at, |home, metas| {
            let shape = rules::reshaped(&metas[0].shape, shape.into_shape()?)?;
            Ok(self.view(home, View::Reshape, shape, at))
        })
    }

    /// All elements as one column.
    #[track_caller]
    pub fn flatten(&self) -> Array {
        let at = Location::caller();
        derive(&[self], "reshape", at, |home, metas| {
            let shape = Shape::new(&[metas[0].elements()])?;
            Ok(self.view(home, View::Reshape, shape, at))
        })
    }

    /// Dimension `d` of the result is dimension `perm[d]` of this array. `perm` names every dimension of the array
    /// once; it may name more, which become new ones of extent 1.
    #[track_caller]
    pub fn permute(&self, perm: &[usize]) -> Array {
        let at = Location::caller();
        derive(&[self], "permute", at, |home, metas| {
            let (shape, perm) = rules::permuted(&metas[0].shape, perm)?;
            Ok(self.view(home, View::Permute(perm.as_slice().into()), shape, at))
        })
    }

    /// The first two dimensions exchanged, for each page.
    #[track_caller]
    pub fn transpose(&self) -> Array {
        let at = Location::caller();
        derive(&[self], "permute", at, |home, metas| {
            let (shape, perm) = rules::permuted(&metas[0].shape, &transposed_order(&metas[0].shape))?;
            Ok(self.view(home, View::Permute(perm.as_slice().into()), shape, at))
        })
    }

    /// Short for [`Array::transpose`].
    #[track_caller]
    pub fn t(&self) -> Array {
        self.transpose()
    }

    /// A part: `x.slice((0..10, 0))`, `x.slice((.., step(.., -1)))`. Indices are 0-based. An integer keeps its
    /// dimension, with one element; dimensions that are not named are taken whole. A range or step outside of a tuple
    /// selects elements in column-major order: `x.slice(0..10)` is a column of the first ten.
    #[track_caller]
    pub fn slice(&self, slices: impl Slices) -> Array {
        let at = Location::caller();
        derive(&[self], "slice", at, |home, metas| {
            if slices.is_linear() {
                let column = self.view(home, View::Reshape, Shape::new(&[metas[0].elements()])?, at);
                let dims = resolve(column.shape()?, slices)?;
                return column.sliced(home, dims, at);
            }
            let dims = resolve(&metas[0].shape, slices)?;
            self.sliced(home, dims, at)
        })
    }

    /// The elements of a dimension in reverse.
    #[track_caller]
    pub fn flip(&self, dim: usize) -> Array {
        let at = Location::caller();
        derive(&[self], "slice", at, |home, metas| {
            metas[0].shape.has_axis(dim)?;
            let extent = metas[0].shape.dim(dim);
            if extent < 2 {
                return Ok(self.clone());
            }
            let mut dims = whole(&metas[0].shape);
            dims[dim] = SliceDim { start: extent - 1, step: -1, len: extent };
            self.sliced(home, dims, at)
        })
    }

    /// The array tiled, `times[d]` times in dimension `d`.
    #[track_caller]
    pub fn repmat(&self, times: &[usize]) -> Array {
        let at = Location::caller();
        derive(&[self], "repmat", at, |home, metas| {
            let shape = rules::repeated(&metas[0].shape, times)?;
            Ok(self.view(home, View::Repmat, shape, at))
        })
    }

    /// The array expanded to `shape`: extents of 1 grow.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl IntoShape) -> Array {
        let at = Location::caller();
        derive(&[self], "broadcast_to", at, |home, metas| {
            let shape = shape.into_shape()?;
            rules::expands(&metas[0].shape, &shape)?;
            Ok(self.view(home, View::Broadcast, shape, at))
        })
    }

    /// Elements moved by `shifts[d]` places along dimension `d`, around the end: `[1, 2, 3]` by 1 is `[3, 1, 2]`.
    #[track_caller]
    pub fn circshift(&self, shifts: &[i64]) -> Array {
        let at = Location::caller();
        derive(&[self], "circshift", at, |home, metas| moved_around(home, self, &metas[0].shape, shifts, at))
    }

    /// The lower triangle of each page up to diagonal `k`; the rest is zero.
    #[track_caller]
    pub fn tril(&self, k: i64) -> Array {
        self.triangle(false, k, Location::caller())
    }

    /// The upper triangle of each page from diagonal `k` on; the rest is zero.
    #[track_caller]
    pub fn triu(&self, k: i64) -> Array {
        self.triangle(true, k, Location::caller())
    }

    /// The `k`-th diagonal of a matrix as a column; for a vector, the square matrix with the vector on its `k`-th
    /// diagonal.
    #[track_caller]
    pub fn diag(&self, k: i64) -> Array {
        let at = Location::caller();
        derive(&[self], "diag", at, |home, metas| {
            let shape = &metas[0].shape;
            if shape.rank() > 2 || (shape.dim(0) != 1 && shape.dim(1) != 1) {
                let shape = rules::diagonal(shape, k)?;
                return Ok(self.view(home, View::Diagonal(k), shape, at));
            }
            let meta = Meta { dtype: metas[0].dtype, shape: rules::with_diagonal(shape.elements(), k)? };
            if shape.elements() == 0 {
                return Ok(zeros(home, meta, at));
            }
            let column = self.view(home, View::Reshape, Shape::new(&[shape.elements()])?, at);
            Ok(node(home, Op::MakeDiagonal(k), &[Input::Array(&column)], meta, at))
        })
    }

    /// The matrix product of each page: `[m, k, ..]` times `[k, n, ..]`. Integers and bools are multiplied in f64; a
    /// transposed operand is read in place.
    #[track_caller]
    pub fn matmul(&self, other: &Array) -> Array {
        matmul(self, other, Location::caller())
    }

    /// As [`Array::matmul`], or the error that prevents recording it.
    ///
    /// # Errors
    /// The first operand's fault; `ErrorKind::Shape` if the shapes do not fit.
    #[track_caller]
    pub fn try_matmul(&self, other: &Array) -> Result<Array> {
        self.matmul(other).checked()
    }

    /// As [`Array::reshape`], or the error that prevents recording it.
    ///
    /// # Errors
    /// The array's fault; `ErrorKind::Shape` if the numbers of elements differ.
    #[track_caller]
    pub fn try_reshape(&self, shape: impl IntoShape) -> Result<Array> {
        self.reshape(shape).checked()
    }

    /// As [`Array::slice`], or the error that prevents recording it.
    ///
    /// # Errors
    /// The array's fault; `ErrorKind::Index` if a bound lies outside.
    #[track_caller]
    pub fn try_slice(&self, slices: impl Slices) -> Result<Array> {
        self.slice(slices).checked()
    }

    /// A view of an array without a fault.
    pub(crate) fn view(&self, home: &Arc<Home>, view: View, shape: Shape, at: At) -> Array {
        let Ok(own) = self.meta() else { return self.clone() };
        let is_as_it_is = matches!(view, View::Reshape | View::Broadcast | View::Repmat) && own.shape == shape;
        if is_as_it_is && own.shape.axes() == shape.axes() {
            return self.clone();
        }
        // The elements stay in place; only the axes of the result differ.
        let view = if is_as_it_is { View::Reshape } else { view };
        let meta = Meta { dtype: own.dtype, shape };
        node(home, Op::View(view), &[Input::Array(self)], meta, at)
    }

    pub(crate) fn sliced(&self, home: &Arc<Home>, dims: SmallVec<[SliceDim; 4]>, at: At) -> Result<Array> {
        let own = &self.meta()?.shape;
        let shape = rules::sliced(own, &dims)?;
        let all = dims.iter().enumerate().all(|(d, s)| s.len == own.dim(d) && (s.len < 2 || s.step == 1));
        if all {
            return Ok(self.clone());
        }
        Ok(self.view(home, View::Slice(dims.as_slice().into()), shape, at))
    }

    /// `len` elements of one dimension, from `start` on.
    pub(crate) fn slice_dim(&self, home: &Arc<Home>, dim: usize, start: usize, len: usize, at: At) -> Result<Array> {
        let shape = &self.meta()?.shape;
        if (start, len) == (0, shape.dim(dim)) {
            return Ok(self.clone());
        }
        shape.has_axis(dim)?;
        let mut dims = whole(shape);
        while dims.len() <= dim {
            dims.push(SliceDim { start: 0, step: 1, len: 1 });
        }
        dims[dim] = SliceDim { start: if len == 0 { 0 } else { start }, step: 1, len };
        self.sliced(home, dims, at)
    }

    /// A triangle of each page; the rest is zero.
    pub(super) fn triangle(&self, upper: bool, diagonal: i64, at: At) -> Array {
        derive(&[self], if upper { "triu" } else { "tril" }, at, |home, metas| {
            Ok(node(home, Op::Triangle { upper, diagonal }, &[Input::Array(self)], metas[0].clone(), at))
        })
    }
}

/// The matrix product of each page.
pub(super) fn matmul(a: &Array, b: &Array, at: At) -> Array {
    derive(&[a, b], "matmul", at, |home, metas| {
        let shape = rules::multiplied(&metas[0].shape, &metas[1].shape)?;
        let meta = Meta { dtype: products_dtype(home, "matmul", metas)?, shape };
        if metas[0].elements() == 0 || metas[1].elements() == 0 {
            return Ok(noted_as(home, Op::MatMul, &[a, b], zeros(home, meta, at), at));
        }
        let (a, b) = (cast_in(home, a, meta.dtype, at), cast_in(home, b, meta.dtype, at));
        Ok(node(home, Op::MatMul, &[Input::Array(&a), Input::Array(&b)], meta, at))
    })
}

/// The order of dimensions for `permute` that exchanges the first two.
pub(super) fn transposed_order(shape: &Shape) -> SmallVec<[usize; 4]> {
    let mut order: SmallVec<[usize; 4]> = (0..shape.axes()).collect();
    order.swap(0, 1);
    order
}

/// A slice that takes every dimension whole.
pub(crate) fn whole(shape: &Shape) -> SmallVec<[SliceDim; 4]> {
    shape.dims().iter().map(|&len| SliceDim { start: 0, step: 1, len }).collect()
}

/// The elements of an array moved by `shifts[d]` places along dimension `d`, around the end; `shape` is the array's.
pub(crate) fn moved_around(home: &Arc<Home>, array: &Array, shape: &Shape, shifts: &[i64], at: At) -> Result<Array> {
    let shifts = rules::shifts(shape, shifts)?;
    if shifts.iter().all(|&shift| shift == 0) {
        return Ok(array.clone());
    }
    Ok(array.view(home, View::CircShift(shifts.as_slice().into()), shape.clone(), at))
}

/// Zeros of a dtype and shape.
pub(crate) fn zeros(home: &Arc<Home>, meta: Meta, at: At) -> Array {
    let zero = Scalar::I64(0).cast(meta.dtype);
    node(home, Op::Fill, &[Input::Number(zero)], meta, at)
}

/// Joins arrays along one of their dimensions, or along the next one, which is new. All other extents must be equal
/// (0x0 arrays are skipped). If dtypes differ, the first integer class wins, then f32, then f64.
///
/// # Errors
/// `ErrorKind::Argument` for an empty list, `ErrorKind::Index` for a dimension beyond those, `ErrorKind::Shape` for
/// arrays that do not fit together. The fault of an operand is not returned here, but carried by the result, as by
/// operators, because it depends on timing whether the fault is known already.
#[track_caller]
pub fn cat(dim: usize, arrays: &[&Array]) -> Result<Array> {
    let at = Location::caller();
    if arrays.is_empty() {
        return Err(Error::new(ErrorKind::Argument, "no arrays were given to join").with_op("cat").with_location(at));
    }
    if let Some(error) = arrays.iter().find_map(|array| array.meta().err()) {
        return Ok(Array::faulty(&arrays[0].0.home, error, "cat", at));
    }
    let joined = common_home(arrays.iter().copied()).and_then(|home| {
        let metas = arrays.iter().map(|a| a.meta()).collect::<Result<Vec<&Meta>>>()?;
        let shapes: Vec<&Shape> = metas.iter().map(|m| &m.shape).collect();
        let meta = Meta { dtype: joined_dtype(&metas), shape: rules::joined(&shapes, dim)? };
        metas.iter().try_for_each(|own| strict::converted(home, own.dtype, meta.dtype))?;
        let parts: Vec<Array> = arrays
            .iter()
            .zip(&metas)
            .filter(|(_, m)| m.elements() > 0)
            .map(|(a, _)| cast_in(home, a, meta.dtype, at))
            .collect();
        join(home, dim, parts, meta, at)
    });
    joined.map_err(|error| error.with_op("cat").with_location(at))
}

/// Joins arrays with elements along a dimension, by ops of a few arrays each.
pub(super) fn join(home: &Arc<Home>, dim: usize, mut parts: Vec<Array>, meta: Meta, at: At) -> Result<Array> {
    while parts.len() > 1 {
        let mut next = Vec::with_capacity(parts.len().div_ceil(JOIN_FAN_IN));
        for group in parts.chunks(JOIN_FAN_IN) {
            let shapes = group.iter().map(Array::shape).collect::<Result<Vec<&Shape>>>()?;
            let meta = Meta { dtype: meta.dtype, shape: rules::joined(&shapes, dim)? };
            let inputs: SmallVec<[Input<'_>; 4]> = group.iter().map(Input::Array).collect();
            next.push(match group {
                [one] => one.clone(),
                _ => node(home, Op::Cat { dim: dim as u8 }, &inputs, meta, at),
            });
        }
        parts = next;
    }
    let Some(joined) = parts.pop() else { return Ok(zeros(home, meta, at)) };
    // A single array that is joined along a new dimension gets that dimension here.
    Ok(joined.view(home, View::Reshape, meta.shape, at))
}

fn joined_dtype(metas: &[&Meta]) -> DType {
    let first = metas[0].dtype;
    if metas.iter().all(|m| m.dtype == first) {
        return first;
    }
    let integer = metas.iter().map(|m| m.dtype).find(|d| d.is_integer());
    let single = metas.iter().any(|m| m.dtype == DType::F32);
    integer.unwrap_or(if single { DType::F32 } else { DType::F64 })
}

//! Derivatives of reads and writes by index.
//!
//! Must hold: if several indices read one element, their cotangents are added in an order that depends on the indices
//! alone: they are sorted, those of equal indices are added in a tree, and the sums are written to their places.

use crate::array::handle::Array;
use crate::array::recorder::Recorder;
use crate::array::runs::sorted;
use crate::error::Result;
use crate::graph::gradient::Indexing;
use crate::graph::{DType, DimSet, ElementOp, Meta, Op, Shape};

/// Up to this many indices along a dimension, the cotangents are selected in one pass, without a sort.
const CHOSEN_MAX: usize = 4;

/// The cotangent of an array of `meta`, from `above`, the cotangent of the elements that `index` took of it.
/// `is_order`: the index holds each position once.
pub(super) fn added(
    r: &Recorder<'_>,
    meta: &Meta,
    above: &Array,
    index: &Array,
    indexing: Indexing,
    is_order: bool,
) -> Result<Array> {
    match indexing {
        Indexing::Slices(dim) => added_along(r, meta, above, index, usize::from(dim), false),
        Indexing::Linear => {
            let column = Shape::new(&[index.elements()?])?;
            let index = r.reshape(index, column.clone())?;
            added_to_column(r, meta, &r.reshape(above, column)?, &index, false)
        }
        Indexing::Along(dim) => {
            let dim = usize::from(dim);
            if index.shape()?.dim(dim) <= CHOSEN_MAX && !is_order {
                return chosen(r, meta, above, &checked(r, meta, index, dim)?, dim);
            }
            let column = Shape::new(&[index.elements()?])?;
            let places = if is_order { r.cast(index, DType::U32)? } else { checked(r, meta, index, dim)? };
            let index = r.reshape(&linear(r, meta, &places, dim)?, column.clone())?;
            added_to_column(r, meta, &r.reshape(above, column)?, &index, is_order)
        }
    }
}

/// The same for indices in memory order.
fn added_to_column(r: &Recorder<'_>, meta: &Meta, above: &Array, index: &Array, is_order: bool) -> Result<Array> {
    let column = Meta { dtype: meta.dtype, shape: Shape::new(&[meta.elements()])? };
    let sums = added_along(r, &column, above, index, 0, is_order)?;
    r.reshape(&sums, meta.shape.clone())
}

/// The same for places along a dimension, which a column of integers holds.
fn added_along(
    r: &Recorder<'_>,
    meta: &Meta,
    above: &Array,
    index: &Array,
    dim: usize,
    is_order: bool,
) -> Result<Array> {
    let (mut sums, mut places) = (above.clone(), index.clone());
    if index.elements()? > 1 && !is_order {
        (places, sums) = sorted(r, ElementOp::Add, index, above, dim, false)?;
    }
    // The last of equal indices has the sum of all, and wins the assignment.
    let by = if dim == 0 && meta.shape.dim(1) == 1 && meta.shape.rank() == 2 { None } else { Some(dim as u8) };
    r.op(Op::AssignIndex { dim: by }, &[&r.zeros(meta.clone())?, &places, &sums], meta.clone())
}

/// An index along a dimension as u32. The backward pass does not always read the value whose op checks the index. So
/// the places are taken by the index here, and an index outside of the array is also a fault of the gradient.
fn checked(r: &Recorder<'_>, meta: &Meta, index: &Array, dim: usize) -> Result<Array> {
    let places = r.expand(&r.positions_along(&meta.shape, 1 << dim)?, &meta.shape)?;
    let of_index = Meta { dtype: DType::U32, shape: index.shape()?.clone() };
    r.op(Op::TakeAlong { dim: dim as u8 }, &[&places, index], of_index)
}

/// For each element, the sum of `above` at those of the few indices (u32) of its line that are its place.
fn chosen(r: &Recorder<'_>, meta: &Meta, above: &Array, index: &Array, dim: usize) -> Result<Array> {
    let place = r.positions_along(&meta.shape, 1 << dim)?;
    let mut sum: Option<Array> = None;
    for n in 0..index.shape()?.dim(dim) {
        let here = r.binary(ElementOp::Eq, &place, &r.part(index, dim, n, 1)?)?;
        let share = r.select(&here, &r.part(above, dim, n, 1)?, 0.0)?;
        sum = Some(r.added(sum, share)?);
    }
    match sum {
        // The index may have more axes than the array.
        Some(sum) => r.reshape(&sum, meta.shape.clone()),
        None => r.zeros(meta.clone()),
    }
}

/// The places in memory order of the elements that an index (u32) selects along a dimension.
fn linear(r: &Recorder<'_>, meta: &Meta, index: &Array, dim: usize) -> Result<Array> {
    let shape = index.shape()?.clone();
    let below = (0..shape.rank()).filter(|&d| d < dim).fold(0, |set: DimSet, d| set | 1 << d);
    let above = (0..shape.rank()).filter(|&d| d > dim).fold(0, |set: DimSet, d| set | 1 << d);
    let inner: usize = (0..dim).map(|d| shape.dim(d)).product();
    let index = r.mul(index, inner as i64)?;
    let before = r.positions_along(&shape, below)?;
    let behind = r.positions_along(&shape, above)?;
    let behind = r.mul(&behind, (inner * meta.shape.dim(dim)) as i64)?;
    r.add(&r.add(&index, &before)?, &behind)
}

/// The cotangent of the values of an assignment: for each index, `above` if its value is the one that was kept, else 0.
pub(super) fn written(r: &Recorder<'_>, above: &Array, index: &Array, indexing: Indexing) -> Result<Array> {
    let own = above.meta()?;
    let count = index.elements()?;
    let dim = match indexing {
        Indexing::Linear => None,
        Indexing::Slices(dim) | Indexing::Along(dim) => Some(usize::from(dim)),
    };
    let (extent, taken) = match dim {
        None => {
            let meta = Meta { dtype: own.dtype, shape: index.shape()?.clone() };
            (own.elements(), r.op(Op::Take { dim: None }, &[above, index], meta)?)
        }
        Some(dim) => (own.shape.dim(dim), r.taken(above, dim, index)?),
    };
    // The last of equal indices wins; the values of the others were overwritten.
    let column = |extent: usize| -> Result<Meta> { Ok(Meta { dtype: DType::U32, shape: Shape::new(&[extent])? }) };
    let numbers = r.positions(Shape::new(&[count])?)?;
    let all = r.zeros(column(extent)?)?;
    let winners = r.op(Op::AssignIndex { dim: None }, &[&all, index, &numbers], column(extent)?)?;
    let winner = r.op(Op::Take { dim: None }, &[&winners, index], column(count)?)?;
    let mut is_kept = r.binary(ElementOp::Eq, &winner, &numbers)?;
    if let Some(dim) = dim {
        is_kept = r.reshape(&is_kept, Shape::scalar().with_dim(dim, count)?)?;
    }
    r.select(&is_kept, &taken, 0.0)
}

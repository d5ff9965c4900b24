//! Sums, products and extremes over runs of equal labels. Scatters use them, and gradients of values that several
//! indices read.
//!
//! In: values, each with a label, where equal labels are neighbours; or indices, which are sorted first. Out: recorded
//! ops. Must hold: RUNS-1: a tree of passes combines neighbours, so that the order depends on the labels and on sizes
//! alone. RUNS-2: shifted lines end in zeros, also those of labels. So a label may be 0 only if combining with zeros
//! changes nothing (sums).

use super::handle::Array;
use super::recorder::Recorder;
use crate::error::Result;
use crate::graph::{DType, ElementOp, Shape};

/// The number of positions that one pass of [`combined`] combines.
const FAN_IN: usize = 4;

/// The sorted indices (a column of integers), and for each its value along `dim`, combined by `op` with the values of
/// equal indices before it. So the last of equal indices has the combination of all. `is_one`: one value serves all
/// indices.
pub(super) fn sorted(
    r: &Recorder<'_>,
    op: ElementOp,
    index: &Array,
    values: &Array,
    dim: usize,
    is_one: bool,
) -> Result<(Array, Array)> {
    let order = r.order(index, 0, false)?;
    let places = r.taken(index, 0, &order)?;
    // If one value serves all indices, it need not be sorted.
    let values = if is_one { values.clone() } else { r.taken(values, dim, &order)? };
    // RUNS-2: the label is the index plus one.
    let labels = r.add(&r.cast(&places, DType::U32)?, 1i64)?;
    let labels = r.reshape(&labels, Shape::scalar().with_dim(dim, index.elements()?)?)?;
    Ok((places, combined(r, op, &values, &labels, dim, false)?))
}

/// Combines each element of a line by `op` (`Add`, `Mul`, `Min`, `Max`, `And`, `Or`) with the elements that have its
/// label and lie before it, or behind it (`from_end`).
pub(super) fn combined(
    r: &Recorder<'_>,
    op: ElementOp,
    values: &Array,
    labels: &Array,
    dim: usize,
    from_end: bool,
) -> Result<Array> {
    let extent = values.shape()?.dim(dim);
    let mut values = values.clone();
    let mut reach = 1;
    while reach < extent {
        let mut next = values.clone();
        for shift in (1..FAN_IN).map(|k| k * reach).take_while(|&shift| shift < extent) {
            let label = shifted(r, labels, dim, shift, from_end)?;
            let value = shifted(r, &values, dim, shift, from_end)?;
            let same = r.binary(ElementOp::Eq, &label, labels)?;
            // Values of other labels are replaced before a sum or product, because the derivative of a product
            // multiplies by them.
            let neutral = [(ElementOp::Add, 0i64), (ElementOp::Mul, 1)].into_iter().find(|(of, _)| *of == op);
            next = match neutral {
                Some((op, neutral)) => r.binary(op, &r.select(&same, &value, neutral)?, &next)?,
                None => r.select(&same, &r.binary(op, &value, &next)?, &next)?,
            };
        }
        values = next;
        reach *= FAN_IN;
    }
    Ok(values)
}

/// The array moved along a dimension, towards its beginning or its end, with zeros in the places that become free.
fn shifted(r: &Recorder<'_>, array: &Array, dim: usize, by: usize, to_beginning: bool) -> Result<Array> {
    let (from, before, behind) = if to_beginning { (by, 0, by) } else { (0, by, 0) };
    let kept = r.part(array, dim, from, array.shape()?.dim(dim) - by)?;
    r.padded(&kept, dim, before, behind)
}

//! Shape rules: they compute the shape of an op's result when the op is recorded.
//!
//! In: shapes and attributes. Out: the result's shape (and normalised attributes), or an error in plain words. Must
//! hold: the functions are pure; an op whose rule accepts its operands never fails later because of their shapes.

use super::op::{DimSet, SliceDim};
use super::shape::Shape;
use crate::error::{Error, ErrorKind, Result};
use smallvec::SmallVec;

fn shape_error(message: String) -> Error {
    Error::new(ErrorKind::Shape, message)
}

/// The set of `dims` of an array of `shape`.
///
/// # Errors
/// `ErrorKind::Index` where the array lacks one of them.
pub fn dim_set(shape: &Shape, dims: &[usize]) -> Result<DimSet> {
    dims.iter().try_fold(0, |set, &d| shape.has_axis(d).map(|()| set | 1 << d))
}

/// Whether `set` holds `dim`.
pub fn has_dim(set: DimSet, dim: usize) -> bool {
    dim < Shape::RANK_MAX && set & (1 << dim) != 0
}

/// All dimensions of `shape`.
pub fn all_dims(shape: &Shape) -> DimSet {
    ((1u32 << shape.rank()) - 1) as DimSet
}

/// The dimensions of `set` in which `shape` does not have exactly one element.
pub fn effective_dims(shape: &Shape, set: DimSet) -> DimSet {
    (0..shape.rank()).filter(|&d| has_dim(set, d) && shape.dim(d) != 1).fold(0, |s, d| s | 1 << d)
}

/// The shape after a reduction: reduced dimensions stay, with an extent of 1.
pub fn reduced(shape: &Shape, set: DimSet) -> Shape {
    let dims: SmallVec<[usize; 4]> =
        shape.dims().iter().enumerate().map(|(d, &n)| if has_dim(set, d) { 1 } else { n }).collect();
    let reduced = Shape::new(&dims).expect("SHAPE-2: reducing makes a shape smaller, or one element of an empty one");
    reduced.with_axes(shape.axes())
}

/// The shape of `from`'s elements under other extents.
///
/// # Errors
/// `ErrorKind::Shape` where the numbers of elements differ.
pub fn reshaped(from: &Shape, to: Shape) -> Result<Shape> {
    if from.elements() == to.elements() {
        return Ok(to);
    }
    Err(shape_error(format!(
        "{from} holds {} elements and cannot be reshaped to {to}, which holds {}",
        from.elements(),
        to.elements()
    )))
}

/// The shape after `result[d] = shape[perm[d]]`, and the permutation, completed to the rank.
///
/// # Errors
/// `ErrorKind::Argument` where `perm` names a dimension twice or leaves one of the array's out, `ErrorKind::Rank` where
/// it names more than an array may have.
pub fn permuted(shape: &Shape, perm: &[usize]) -> Result<(Shape, SmallVec<[u8; 4]>)> {
    let rank = perm.len().max(2);
    if rank > Shape::RANK_MAX {
        return Err(Shape::too_many(rank));
    }
    let mut full: SmallVec<[u8; 4]> = SmallVec::new();
    for d in 0..rank {
        full.push(perm.get(d).copied().unwrap_or(d).min(u8::MAX as usize) as u8);
    }
    let valid = perm.len() >= shape.rank() && (0..rank).all(|d| full.iter().filter(|&&p| p as usize == d).count() == 1);
    if !valid {
        return Err(Error::new(
            ErrorKind::Argument,
            format!("{perm:?} is not an order of the {} dimensions of {shape}", shape.rank()),
        ));
    }
    let dims: SmallVec<[usize; 4]> = full.iter().map(|&p| shape.dim(p as usize)).collect();
    Ok((Shape::new(&dims)?, full))
}

/// The shape of a slice.
///
/// # Errors
/// `ErrorKind::Index` where an element lies outside of `shape`.
pub fn sliced(shape: &Shape, dims: &[SliceDim]) -> Result<Shape> {
    shape.has_axis(dims.len().saturating_sub(1))?;
    for (d, s) in dims.iter().enumerate() {
        let extent = shape.dim(d);
        let last = s.start as i128 + s.step as i128 * (s.len as i128 - 1);
        if s.len > 0 && (s.start >= extent || last < 0 || last >= extent as i128) {
            return Err(Error::new(
                ErrorKind::Index,
                format!("a slice runs from {} to {last} in dimension {d} of {shape}, which has {extent}", s.start),
            ));
        }
    }
    let lens: SmallVec<[usize; 4]> =
        (0..dims.len().max(shape.axes())).map(|d| dims.get(d).map_or(shape.dim(d), |s| s.len)).collect();
    Shape::new(&lens)
}

/// Checks that `from` expands to `to`: each extent is 1 or equal to that of `to`.
///
/// # Errors
/// `ErrorKind::Shape` if an extent is neither.
pub fn expands(from: &Shape, to: &Shape) -> Result<()> {
    for d in 0..from.rank().max(to.rank()) {
        if from.dim(d) != to.dim(d) && from.dim(d) != 1 {
            return Err(shape_error(format!("{from} does not expand to {to}: dimension {d} is {}", from.dim(d))));
        }
    }
    Ok(())
}

/// The shape of `shape` tiled.
///
/// # Errors
/// `ErrorKind::TooLarge` where the number of elements overflows.
pub fn repeated(shape: &Shape, times: &[usize]) -> Result<Shape> {
    let mut dims = SmallVec::<[usize; 4]>::new();
    for d in 0..times.len().max(shape.axes()) {
        let t = times.get(d).copied().unwrap_or(1);
        let n = shape.dim(d).checked_mul(t);
        let overflows = || format!("{shape} repeated {t} times in dimension {d} overflows");
        dims.push(n.ok_or_else(|| Error::new(ErrorKind::TooLarge, overflows()))?);
    }
    Shape::new(&dims)
}

/// The shape of arrays joined along `dim`; empty 0x0 arrays are skipped, as MATLAB does.
///
/// # Errors
/// `ErrorKind::Shape` where another dimension differs, `ErrorKind::Argument` without arrays, `ErrorKind::Index` for a
/// dimension beyond the first one that follows the arrays' own, `ErrorKind::Rank` for one that no array may have.
pub fn joined(shapes: &[&Shape], dim: usize) -> Result<Shape> {
    let axes = shapes.iter().map(|s| s.axes()).max().unwrap_or(2);
    if dim >= Shape::RANK_MAX {
        return Err(Shape::too_many(dim.saturating_add(1)));
    }
    if dim > axes {
        let message = format!("arrays of up to {axes} dimensions are joined along dimension 0 to {axes}, not {dim}");
        return Err(Error::new(ErrorKind::Index, message));
    }
    let kept: SmallVec<[&Shape; 4]> = shapes.iter().copied().filter(|s| s.dims() != [0, 0]).collect();
    let Some(first) = kept.first() else {
        return match shapes.first() {
            Some(s) => Ok((*s).clone().with_axes(axes.max(dim + 1))),
            None => Err(Error::new(ErrorKind::Argument, "no arrays were given to join")),
        };
    };
    let rank = axes.max(dim + 1);
    let mut dims: SmallVec<[usize; 4]> = (0..rank).map(|d| first.dim(d)).collect();
    for other in &kept[1..] {
        if let Some(d) = (0..rank).find(|&d| d != dim && other.dim(d) != dims[d]) {
            return Err(shape_error(format!(
                "{first} and {other} cannot be joined along dimension {dim}: dimension {d} differs"
            )));
        }
        dims[dim] = dims[dim].saturating_add(other.dim(dim));
    }
    Shape::new(&dims)
}

/// Shifts per dimension, brought into `0..extent`.
///
/// # Errors
/// `ErrorKind::Index` where there are more than the array has dimensions.
pub fn shifts(shape: &Shape, by: &[i64]) -> Result<SmallVec<[usize; 4]>> {
    shape.has_axis(by.len().saturating_sub(1))?;
    let shift = |d: usize| match shape.dim(d) {
        0 => 0,
        n => by.get(d).copied().unwrap_or(0).rem_euclid(n as i64) as usize,
    };
    Ok((0..shape.rank()).map(shift).collect())
}

/// The length of a matrix's `k`-th diagonal.
///
/// # Errors
/// `ErrorKind::Shape` for more than two dimensions.
pub fn diagonal(shape: &Shape, k: i64) -> Result<Shape> {
    if shape.rank() != 2 {
        return Err(shape_error(format!("a diagonal is taken of a matrix, not of {shape}")));
    }
    let (rows, columns) = (shape.dim(0) as i128, shape.dim(1) as i128);
    let k = k as i128;
    let len = if k >= 0 { rows.min(columns - k) } else { (rows + k).min(columns) };
    Shape::new(&[len.max(0) as usize, 1])
}

/// The shape of the square matrix with `n` elements on its `k`-th diagonal.
///
/// # Errors
/// `ErrorKind::TooLarge` where the number of elements overflows.
pub fn with_diagonal(n: usize, k: i64) -> Result<Shape> {
    let side = n.saturating_add(k.unsigned_abs() as usize);
    Shape::new(&[side, side])
}

/// The shape of a matrix product of each page; pages expand.
///
/// # Errors
/// `ErrorKind::Shape` where the inner extents or the pages do not fit.
pub fn multiplied(a: &Shape, b: &Shape) -> Result<Shape> {
    if a.dim(1) != b.dim(0) {
        return Err(shape_error(format!(
            "{a} times {b}: the columns of the first ({}) and the rows of the second ({}) differ",
            a.dim(1),
            b.dim(0)
        )));
    }
    let mut dims: SmallVec<[usize; 4]> = SmallVec::from_slice(&[a.dim(0), b.dim(1)]);
    for d in 2..a.axes().max(b.axes()) {
        dims.push(match (a.dim(d), b.dim(d)) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => return Err(shape_error(format!("the pages of {a} and {b} do not expand to one shape"))),
        });
    }
    Shape::new(&dims)
}

/// The shape of `operand` with `count` elements in dimension `dim`.
///
/// # Errors
/// `ErrorKind::TooLarge` where the number of elements overflows, `ErrorKind::Index` for a dimension that the array
/// lacks.
pub fn with_extent(operand: &Shape, dim: usize, count: usize) -> Result<Shape> {
    operand.has_axis(dim)?;
    operand.with_dim(dim, count)
}

/// Checks that `index` may pick elements along `dim` of `operand`: all other extents are equal.
///
/// # Errors
/// `ErrorKind::Shape` where one differs; `ErrorKind::Argument` for a dimension that no array has.
pub fn taken_along(operand: &Shape, index: &Shape, dim: usize) -> Result<()> {
    if dim >= Shape::RANK_MAX {
        return Err(Error::new(ErrorKind::Argument, format!("dimension {dim} is beyond the greatest rank")));
    }
    let rank = operand.rank().max(index.rank());
    match (0..rank).find(|&d| d != dim && operand.dim(d) != index.dim(d)) {
        None => Ok(()),
        Some(d) => Err(shape_error(format!(
            "the index is {index} and the operand {operand}: they must agree but in dimension {dim}, and differ in {d}"
        ))),
    }
}

/// The distance between neighbours of `n` points from `from` to `to`. It is also right if the difference of the ends is
/// beyond the greatest number.
pub(crate) fn linspace_step(from: f64, to: f64, n: usize) -> f64 {
    let (span, parts) = (to - from, n.saturating_sub(1) as f64);
    match n {
        0 | 1 => 0.0,
        _ if span.is_infinite() => to / parts - from / parts,
        _ => span / parts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[usize]) -> Shape {
        Shape::new(dims).unwrap()
    }

    #[test]
    fn reduced_dimensions_stay_with_an_extent_of_one() {
        assert_eq!(reduced(&shape(&[4, 3, 2]), 0b10).dims(), [4, 1, 2]);
        assert_eq!(reduced(&shape(&[4, 3, 2]), 0b101).dims(), [1, 3]);
        assert_eq!(reduced(&shape(&[0, 3]), 1).dims(), [1, 3]);
        assert_eq!(effective_dims(&shape(&[4, 1, 2]), 0b10_0000_0110), 0b100);
    }

    #[test]
    fn extents_of_one_at_the_end_are_axes_where_they_were_named() {
        let of = |dims: &[usize]| (shape(dims).rank(), shape(dims).axes());
        assert_eq!([of(&[4]), of(&[4, 3]), of(&[4, 3, 1]), of(&[1; 20])], [(2, 2), (2, 2), (2, 3), (2, 16)]);
        assert_eq!(shape(&[4, 3, 1]), shape(&[4, 3]));
        // Arrays that are made from such an array keep the number of axes.
        let x = shape(&[4, 3, 2]);
        let once = reduced(&x, 0b100);
        assert_eq!((once.dims(), once.axes(), reduced(&once, 0b10).axes()), (&[4, 3][..], 3, 3));
        assert_eq!(Shape::broadcast(&shape(&[4, 3]), &shape(&[4, 3, 1])).unwrap().axes(), 3);
        assert_eq!(repeated(&shape(&[4, 3]), &[1, 1, 1]).unwrap().axes(), 3);
        assert_eq!(joined(&[&shape(&[4, 3])], 2).unwrap().axes(), 3);
        assert_eq!(sliced(&shape(&[4, 3, 1]), &[]).unwrap().axes(), 3);
        assert_eq!(with_extent(&shape(&[4, 3, 1]), 0, 2).unwrap().axes(), 3);
    }

    #[test]
    fn a_permutation_must_name_every_dimension_once() {
        let (result, full) = permuted(&shape(&[4, 3, 2]), &[2, 0, 1]).unwrap();
        assert_eq!(result.dims(), [2, 4, 3]);
        assert_eq!(full.as_slice(), [2, 0, 1]);
        assert_eq!(permuted(&shape(&[4, 3]), &[0, 0]).unwrap_err().kind(), ErrorKind::Argument);
        assert_eq!(permuted(&shape(&[4, 3, 2]), &[1, 0]).unwrap_err().kind(), ErrorKind::Argument);
        assert_eq!(permuted(&shape(&[4, 3, 1]), &[2, 1, 0]).unwrap().0.dims(), [1, 3, 4]);
        assert_eq!(permuted(&shape(&[4, 3]), &[2, 1, 0]).unwrap().0.axes(), 3);
    }

    #[test]
    fn slices_outside_of_the_array_are_index_errors() {
        let of = shape(&[4, 3]);
        let ok = [SliceDim { start: 3, step: -1, len: 4 }];
        assert_eq!(sliced(&of, &ok).unwrap().dims(), [4, 3]);
        let beyond = [SliceDim { start: 0, step: 2, len: 3 }];
        assert_eq!(sliced(&of, &beyond).unwrap_err().kind(), ErrorKind::Index);
        let below = [SliceDim { start: 1, step: -1, len: 3 }];
        assert_eq!(sliced(&of, &below).unwrap_err().kind(), ErrorKind::Index);
    }

    #[test]
    fn joining_skips_empty_squares_and_rejects_other_extents() {
        let (a, b, e) = (shape(&[2, 3]), shape(&[2, 1]), shape(&[0, 0]));
        assert_eq!(joined(&[&a, &e, &b], 1).unwrap().dims(), [2, 4]);
        assert_eq!(joined(&[&a, &a], 2).unwrap().dims(), [2, 3, 2]);
        assert_eq!(joined(&[&a, &b], 0).unwrap_err().kind(), ErrorKind::Shape);
        assert_eq!(joined(&[], 0).unwrap_err().kind(), ErrorKind::Argument);
        assert_eq!(joined(&[&a, &a], 3).unwrap_err().kind(), ErrorKind::Index);
    }

    #[test]
    fn diagonals_have_matlabs_lengths() {
        let of = shape(&[3, 5]);
        let len = |k| diagonal(&of, k).unwrap().dim(0);
        assert_eq!([len(0), len(2), len(4), len(9), len(-1), len(-3)], [3, 3, 1, 0, 2, 0]);
        assert_eq!(with_diagonal(3, -2).unwrap().dims(), [5, 5]);
    }

    #[test]
    fn matrix_products_check_the_inner_extent_and_expand_pages() {
        let of = |a: &[usize], b: &[usize]| multiplied(&shape(a), &shape(b));
        assert_eq!(of(&[2, 3], &[3, 4]).unwrap().dims(), [2, 4]);
        assert_eq!(of(&[2, 3, 7], &[3, 4]).unwrap().dims(), [2, 4, 7]);
        assert_eq!(of(&[2, 3], &[2, 3]).unwrap_err().kind(), ErrorKind::Shape);
        assert_eq!(of(&[2, 3, 2], &[3, 2, 3]).unwrap_err().kind(), ErrorKind::Shape);
    }

    #[test]
    fn shifts_wrap_and_overflowing_repeats_are_errors() {
        assert_eq!(shifts(&shape(&[4, 3]), &[-1, 7]).unwrap().as_slice(), [3, 1]);
        assert_eq!(repeated(&shape(&[2, 3]), &[2, 1, 2]).unwrap().dims(), [4, 3, 2]);
        assert_eq!(repeated(&shape(&[1 << 20, 1]), &[1 << 20]).unwrap_err().kind(), ErrorKind::TooLarge);
        assert_eq!(repeated(&shape(&[2, 3]), &[usize::MAX]).unwrap_err().kind(), ErrorKind::TooLarge);
    }
}

//! The places that several subscripts name together, visited in order: for reading, writing and growing.
//!
//! Must hold: INDEX-2: a grid's places lie inside the array for which it was made; the code that makes a grid has
//! checked that.

use super::subscript::{Places, Position, Subscript, Subscripts, folded, linear_dims, out_of_bound};
use crate::error::{Flow, fail_id};
use crate::value::Dims;
use smallvec::SmallVec;

/// The places of an index in an array.
pub struct Grid {
    axes: SmallVec<[Axis; 3]>,
    /// The sum of the offsets of the subscripts that name one place.
    base: usize,
    /// The number of places.
    len: usize,
}

/// A subscript that names several places, or none.
struct Axis {
    subscript: Subscript,
    len: usize,
    stride: usize,
}

impl Grid {
    /// Makes the grid of `subscripts` in an array. Each subscript is within its extent (INDEX-2).
    pub fn new(extents: &[usize], subscripts: Subscripts) -> Grid {
        let mut grid = Grid { axes: SmallVec::new(), base: 0, len: 1 };
        let mut stride = 1;
        for (subscript, &extent) in subscripts.into_iter().zip(extents) {
            debug_assert!(subscript.extent <= extent, "INDEX-2");
            let len = subscript.len(extent);
            grid.len = grid.len.saturating_mul(len);
            if len == 1 {
                // If the array has no elements the products may overflow, but then no place of the grid is used.
                grid.base = grid.base.wrapping_add(subscript.place(0).wrapping_mul(stride));
            } else {
                grid.axes.push(Axis { subscript, len, stride });
            }
            stride = stride.saturating_mul(extent);
        }
        grid
    }

    /// Returns the number of places.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the first place.
    pub fn first(&self) -> usize {
        self.axes.iter().fold(self.base, |at, axis| at + axis.subscript.place(0) * axis.stride)
    }

    /// Calls `run` with evenly spaced places in order: the first, the distance, and the number of places.
    pub fn runs(&self, mut run: impl FnMut(usize, isize, usize)) {
        if self.len == 0 {
            return;
        }
        let Some((inner, outer)) = self.axes.split_first() else { return run(self.base, 1, 1) };
        let mut counters: SmallVec<[usize; 3]> = SmallVec::from_elem(0, outer.len());
        loop {
            let base = outer.iter().zip(&counters).fold(self.base, |b, (a, &i)| b + a.subscript.place(i) * a.stride);
            let stride = inner.stride as isize;
            match &inner.subscript.places {
                Places::Range { first, step, len } => run(base + first * inner.stride, step * stride, *len),
                Places::List(list) => list.iter().for_each(|place| run(base + place * inner.stride, 1, 1)),
                Places::Colon | Places::One(_) => run(base, stride, inner.len),
            }
            let mut d = 0;
            loop {
                let Some(axis) = outer.get(d) else { return };
                counters[d] += 1;
                if counters[d] < axis.len {
                    break;
                }
                counters[d] = 0;
                d += 1;
            }
        }
    }

    /// Returns all places in order.
    pub fn positions(&self) -> Vec<usize> {
        let mut out = Vec::with_capacity(self.len);
        self.runs(|start, step, len| out.extend((0..len).map(|i| start.wrapping_add_signed(step * i as isize))));
        out
    }

    /// Copies the elements at these places.
    pub fn gather<T: Clone>(&self, from: &[T]) -> Vec<T> {
        let mut out = Vec::with_capacity(self.len);
        if let [Axis { subscript: Subscript { places: Places::List(list), .. }, stride, .. }] = &self.axes[..] {
            out.extend(list.iter().map(|place| from[self.base + place * stride].clone()));
            return out;
        }
        self.runs(|start, step, len| match step {
            1 => out.extend_from_slice(&from[start..start + len]),
            _ => out.extend((0..len).map(|i| from[start.wrapping_add_signed(step * i as isize)].clone())),
        });
        out
    }

    /// Overwrites the elements at these places: with `values` in order, or all with the single one in `values`.
    pub fn scatter<T: Clone>(&self, into: &mut [T], values: &[T]) {
        if let [one] = values {
            self.runs(|start, step, len| match step {
                1 => into[start..start + len].fill(one.clone()),
                _ => (0..len).for_each(|i| into[start.wrapping_add_signed(step * i as isize)] = one.clone()),
            });
            return;
        }
        let mut rest = values;
        self.runs(|start, step, len| {
            let (these, others) = rest.split_at(len.min(rest.len()));
            rest = others;
            match step {
                1 => into[start..start + these.len()].clone_from_slice(these),
                _ => {
                    for (i, value) in these.iter().enumerate() {
                        into[start.wrapping_add_signed(step * i as isize)] = value.clone();
                    }
                }
            }
        });
    }
}

/// How to read through subscripts: the places, and the result's shape.
pub struct Reading {
    /// The places.
    pub grid: Grid,
    /// The result's shape.
    pub dims: Dims,
}

/// Returns the result's shape of a read, and the array's extents as the subscripts see them.
///
/// # Errors
/// Subscripts beyond the array.
pub fn read_dims(array: &Dims, subscripts: &[Subscript]) -> Flow<(Dims, SmallVec<[usize; 3]>)> {
    let count = subscripts.len();
    let extents = folded(array, count);
    for (index, (subscript, &extent)) in subscripts.iter().zip(&extents).enumerate() {
        if subscript.extent > extent {
            return Err(out_of_bound(subscript.extent, Position { index, count }, extent, array));
        }
    }
    let dims = match subscripts {
        [one] => linear_dims(array, one, one.len(extents[0])),
        _ => {
            let lens: SmallVec<[usize; 3]> = subscripts.iter().zip(&extents).map(|(s, &n)| s.len(n)).collect();
            Dims::new(&lens)
        }
    };
    Ok((dims, extents))
}

/// Plans a read of an array through subscripts.
///
/// # Errors
/// Subscripts beyond the array.
pub fn reading(array: &Dims, subscripts: Subscripts) -> Flow<Reading> {
    let (dims, extents) = read_dims(array, &subscripts)?;
    Ok(Reading { grid: Grid::new(&extents, subscripts), dims })
}

/// How to write through subscripts: the array's new shape, and the places that are written.
pub struct Writing {
    /// The array's shape after the write.
    pub dims: Dims,
    /// The array's extents as the subscripts see them.
    pub extents: SmallVec<[usize; 3]>,
    /// The subscripts.
    pub subscripts: Subscripts,
    /// Whether nothing is written, since an empty value was assigned to no places.
    pub nothing: bool,
}

impl Writing {
    /// Returns the number of written places along each subscript.
    pub fn lens(&self) -> SmallVec<[usize; 3]> {
        self.subscripts.iter().zip(&self.extents).map(|(s, &n)| s.len(n)).collect()
    }

    /// The places.
    pub fn grid(self) -> Grid {
        Grid::new(&self.extents, self.subscripts)
    }
}

/// Plans a write of a value of the shape `value` into an array. A scalar is written to all places. Other values must
/// have the index's extents, not counting extents of 1. Places outside make the array grow.
///
/// # Errors
/// Shapes that do not fit; growth in an ambiguous direction.
pub fn writing(array: &Dims, subscripts: Subscripts, value: &Dims) -> Flow<Writing> {
    match &subscripts[..] {
        [] => crate::error::fail!("invalid empty index list"),
        [one] => {
            let n = array.elements();
            let (len, given) = (one.len(n), value.elements());
            if given != 1 && given != len {
                return nonconformant(&[len, 1], value);
            }
            let needs = one.needs(n);
            let dims = if needs == n { array.clone() } else { grown_vector(array, needs)? };
            Ok(Writing { dims, extents: SmallVec::from_slice(&[needs]), subscripts, nothing: false })
        }
        _ => write_many(array, subscripts, value),
    }
}

/// Returns the shape of a vector with more elements. An empty value, and one without rows, becomes a row.
fn grown_vector(array: &Dims, n: usize) -> Flow<Dims> {
    match array[..] {
        [0 | 1, _] => Ok(Dims::new(&[1, n])),
        [_, 1] => Ok(Dims::new(&[n, 1])),
        _ => ambiguous(),
    }
}

fn ambiguous<T>() -> Flow<T> {
    fail_id!(
        "Octave:invalid-resize",
        "Invalid resizing operation or ambiguous assignment to an out-of-bounds array element"
    )
}

fn write_many(array: &Dims, subscripts: Subscripts, value: &Dims) -> Flow<Writing> {
    let count = subscripts.len();
    let seen = folded(array, count);
    let extents: SmallVec<[usize; 3]> = if array.iter().all(|&d| d == 0) {
        asked_of_value(&subscripts, value)
    } else {
        subscripts.iter().zip(&seen).map(|(s, &n)| s.needs(n)).collect()
    };
    let lens: SmallVec<[usize; 3]> = subscripts.iter().zip(&extents).map(|(s, &n)| s.len(n)).collect();
    let long = |extents: &[usize]| extents.iter().copied().filter(|&n| n != 1).collect::<SmallVec<[usize; 3]>>();
    let given = long(value);
    if value.elements() != 1 && long(&lens) != given {
        let padded = |i: usize| given.get(i).copied().unwrap_or(1);
        let empty_value = if count == 2 { padded(0) == 0 || padded(1) == 0 } else { given.contains(&0) };
        if lens.contains(&0) && empty_value {
            let (dims, nothing) = (array.clone(), true);
            return Ok(Writing { dims, extents: seen, subscripts, nothing });
        }
        return match count {
            2 => nonconformant(&lens, &Dims::new(&value[..2])),
            _ => nonconformant(&Dims::new(&lens), &Dims::new(&given)),
        };
    }
    let grows = extents != seen;
    if grows && array.len() > count {
        return ambiguous();
    }
    let dims = if grows { Dims::new(&extents) } else { array.clone() };
    Ok(Writing { dims, extents, subscripts, nothing: false })
}

/// Returns the extents for a write into an array without extents. Colons take theirs from the value.
fn asked_of_value(subscripts: &[Subscript], value: &Dims) -> SmallVec<[usize; 3]> {
    let scalar = |s: &Subscript| s.is_one();
    if subscripts.iter().all(Subscript::is_colon) && (subscripts.len() > 2 || value.len() == 2) {
        return (0..subscripts.len()).map(|d| value.extent(d)).collect();
    }
    // Each subscript that is not one number stands for one extent of the value. If there are as many such subscripts as
    // extents, all extents count, otherwise those that are not 1.
    let exact = subscripts.iter().filter(|s| !scalar(s)).count() == value.len();
    let mut extents = value.iter().copied().filter(|&n| exact || n != 1);
    let mut out: SmallVec<[usize; 3]> = SmallVec::new();
    for s in subscripts {
        let given = match exact || s.is_colon() || subscripts.len() == 2 {
            true if !scalar(s) => extents.next(),
            _ => None,
        };
        out.push(if s.is_colon() { given.unwrap_or(1) } else { s.extent });
    }
    out
}

fn nonconformant<T>(target: &[usize], value: &Dims) -> Flow<T> {
    let target = target.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    fail_id!("Octave:nonconformant-args", "=: nonconformant arguments (op1 is {target}, op2 is {value})")
}

/// Arranges the elements for other dimensions, at least as large in each. New places hold `fill`. If only the last
/// extent grows, this is done in place, with room to spare.
pub fn resize<T: Clone>(data: &mut Vec<T>, old: &Dims, new: &Dims, fill: T) {
    if old == new {
        return;
    }
    let rank = old.len().max(new.len());
    let changed = (0..rank).find(|&d| old.extent(d) != new.extent(d)).unwrap_or(rank);
    let last_only = (changed + 1..rank).all(|d| old.extent(d) == 1 && new.extent(d) == 1);
    let n = new.elements();
    if last_only || data.is_empty() {
        data.resize(n, fill);
        return;
    }
    // Columns move apart. An array with an extent of zero has no columns to move.
    let subscripts: Subscripts =
        (0..rank).map(|d| Subscript::list((0..old.extent(d)).collect(), Dims::zero())).collect();
    let extents: SmallVec<[usize; 3]> = (0..rank).map(|d| new.extent(d)).collect();
    let mut out = vec![fill; n];
    let mut rest = std::mem::take(data).into_iter();
    Grid::new(&extents, subscripts).runs(|start, step, len| {
        for (i, value) in (0..len).zip(&mut rest) {
            out[start.wrapping_add_signed(step * i as isize)] = value;
        }
    });
    *data = out;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(extents: &[usize], places: &[&[usize]]) -> Grid {
        let subscripts = places.iter().map(|p| Subscript::list(p.to_vec(), Dims::new(&[1, p.len()]))).collect();
        Grid::new(extents, subscripts)
    }

    #[test]
    fn places_come_in_the_order_of_the_subscripts() {
        assert_eq!(grid(&[3, 3], &[&[2, 0], &[1, 1, 2]]).positions(), [5, 3, 5, 3, 8, 6]);
        assert_eq!(grid(&[3, 3], &[&[1], &[0, 1, 2]]).positions(), [1, 4, 7]);
        assert_eq!(grid(&[2, 3, 4], &[&[1], &[2], &[3]]).positions(), [23]);
        assert_eq!(grid(&[2, 3, 4], &[&[1], &[], &[3]]).positions(), [0usize; 0]);
        let all: Subscripts = (0..3).map(|_| Subscript::colon()).collect();
        assert_eq!(Grid::new(&[2, 3, 4], all).positions(), (0..24).collect::<Vec<_>>());
    }

    #[test]
    fn growing_moves_columns_apart_and_keeps_what_was_there() {
        let grown = |old: &[usize], new: &[usize]| {
            let mut data: Vec<i32> = (1..=Dims::new(old).elements() as i32).collect();
            resize(&mut data, &Dims::new(old), &Dims::new(new), 0);
            data
        };
        assert_eq!(grown(&[2, 2], &[3, 3]), [1, 2, 0, 3, 4, 0, 0, 0, 0]);
        assert_eq!(grown(&[1, 2], &[1, 4]), [1, 2, 0, 0]);
        assert_eq!(grown(&[1, 3], &[2, 3]), [1, 0, 2, 0, 3, 0]);
        assert_eq!(grown(&[2, 2], &[2, 2, 2]), [1, 2, 3, 4, 0, 0, 0, 0]);
        assert_eq!(grown(&[1, 2], &[2, 2, 2]), [1, 0, 2, 0, 0, 0, 0, 0]);
        assert_eq!(grown(&[0, 3], &[1, 3]), [0, 0, 0]);
    }
}

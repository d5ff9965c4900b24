//! Reflections `1 - tau v v'` of the rows or the columns of small matrices.
//!
//! In: matrices whose columns lie side by side. Must hold: every sum is taken in the order of its elements, so that
//! rounding errors, and with them the signs of tiny results, are those of a single loop over the elements. Only sums of
//! different columns, or steps of different rows, are computed at the same time.

use faer::Mat;
use multiversion::multiversion;
use std::array::from_fn;
use std::ops::Range;

/// The number of sums that are computed at the same time.
const STRANDS: usize = 8;

/// A matrix whose columns are slices, numbered from 0.
pub(super) trait Columns {
    fn column(&self, j: usize) -> &[f64];
    fn column_mut(&mut self, j: usize) -> &mut [f64];
}

impl Columns for Mat<f64> {
    fn column(&self, j: usize) -> &[f64] {
        self.col_as_slice(j)
    }

    fn column_mut(&mut self, j: usize) -> &mut [f64] {
        self.col_as_slice_mut(j)
    }
}

/// The way in which products are added.
pub(super) trait Arithmetic {
    /// The initial value of sums.
    const START: f64;

    /// Adds the products of the elements of two slices, for each column.
    fn dots(columns: [&[f64]; STRANDS], v: &[f64]) -> [f64; STRANDS];

    /// Adds a multiple of a slice of the same length.
    fn add(to: &mut [f64], by: f64, x: &[f64]);
}

/// The product and the sum are rounded once, together.
pub(super) struct Fused;

/// The product is rounded before it is added.
pub(super) struct Plain;

impl Arithmetic for Fused {
    const START: f64 = 0.0;

    fn dots(columns: [&[f64]; STRANDS], v: &[f64]) -> [f64; STRANDS] {
        fused_dots(columns, v)
    }

    fn add(to: &mut [f64], by: f64, x: &[f64]) {
        fused_add(to, by, x);
    }
}

impl Arithmetic for Plain {
    // Adding to -0 changes nothing, not even the sign of a zero.
    const START: f64 = -0.0;

    fn dots(columns: [&[f64]; STRANDS], v: &[f64]) -> [f64; STRANDS] {
        dots(columns, v, Self::START, |x, y, sum| sum + x * y)
    }

    fn add(to: &mut [f64], by: f64, x: &[f64]) {
        to.iter_mut().zip(x).for_each(|(to, x)| *to += by * x);
    }
}

#[multiversion(targets("x86_64+avx2+fma"))]
fn fused_dots(columns: [&[f64]; STRANDS], v: &[f64]) -> [f64; STRANDS] {
    dots(columns, v, Fused::START, |x, y, sum| x.mul_add(y, sum))
}

#[multiversion(targets("x86_64+avx2+fma"))]
fn fused_add(to: &mut [f64], by: f64, x: &[f64]) {
    to.iter_mut().zip(x).for_each(|(to, x)| *to = by.mul_add(*x, *to));
}

#[inline(always)]
fn dots(columns: [&[f64]; STRANDS], v: &[f64], start: f64, add: impl Fn(f64, f64, f64) -> f64) -> [f64; STRANDS] {
    let columns = columns.map(|column| &column[..v.len()]);
    let mut sums = [start; STRANDS];
    for (k, &v) in v.iter().enumerate() {
        for (sum, column) in sums.iter_mut().zip(&columns) {
            *sum = add(v, column[k], *sum);
        }
    }
    sums
}

/// Reflects the rows from `row` on of these columns.
pub(super) fn reflect_rows<A: Arithmetic>(
    a: &mut impl Columns,
    row: usize,
    columns: Range<usize>,
    v: &[f64],
    tau: f64,
) {
    if tau == 0.0 {
        return;
    }
    let rows = row..row + v.len();
    for first in columns.clone().step_by(STRANDS) {
        // If there are fewer columns, the last one is taken several times.
        let along = A::dots(from_fn(|k| &a.column((first + k).min(columns.end - 1))[rows.clone()]), v);
        for (j, along) in (first..columns.end).zip(along) {
            A::add(&mut a.column_mut(j)[rows.clone()], -tau * along, v);
        }
    }
}

/// Reflects the columns from `column` on of these rows.
pub(super) fn reflect_columns<A: Arithmetic>(
    a: &mut impl Columns,
    rows: Range<usize>,
    column: usize,
    v: &[f64],
    tau: f64,
) {
    if tau == 0.0 || rows.is_empty() {
        return;
    }
    let mut along = vec![A::START; rows.len()];
    for (k, v) in v.iter().enumerate() {
        A::add(&mut along, *v, &a.column(column + k)[rows.clone()]);
    }
    along.iter_mut().for_each(|along| *along *= -tau);
    for (k, v) in v.iter().enumerate() {
        A::add(&mut a.column_mut(column + k)[rows.clone()], *v, &along);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares both arithmetics, in both directions, with a loop over the elements, bit by bit.
    #[test]
    fn reflections_are_those_of_one_loop_over_the_elements() {
        fn check<A: Arithmetic>(add: impl Fn(f64, f64, f64) -> f64) {
            for n in [1, 5, 8, 19] {
                let given = Mat::from_fn(n + 2, n + 2, |i, j| ((i * 7 + j * 3 + i * j) as f64).sin());
                let v: Vec<f64> = (0..n).map(|k| (k as f64).cos()).collect();
                let (mut rows, mut columns) = (given.clone(), given.clone());
                reflect_rows::<A>(&mut rows, 2, 1..n + 2, &v, 1.25);
                reflect_columns::<A>(&mut columns, 1..n + 2, 2, &v, 1.25);
                for j in 1..n + 2 {
                    let along = (0..n).fold(A::START, |sum, k| add(v[k], given[(2 + k, j)], sum));
                    let across = (0..n).fold(A::START, |sum, k| add(v[k], given[(j, 2 + k)], sum));
                    for k in 0..n {
                        assert_eq!(rows[(2 + k, j)], add(-1.25 * along, v[k], given[(2 + k, j)]));
                        assert_eq!(columns[(j, 2 + k)], add(-1.25 * across, v[k], given[(j, 2 + k)]));
                    }
                }
                assert_eq!((rows[(2, 0)], columns[(0, 2)]), (given[(2, 0)], given[(0, 2)]));
            }
        }
        check::<Fused>(|x, y, sum| x.mul_add(y, sum));
        check::<Plain>(|x, y, sum| sum + x * y);
    }
}

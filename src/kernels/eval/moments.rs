//! Moments: count, base, and sums of the elements' differences from the base, in f64 for elements of any float dtype.
//!
//! In: accumulators and elements. Out: accumulators that include these elements; merged accumulators, once they are
//! closed. Must hold: EVAL-5 (`monoid.rs`).

use super::monoid::{self, Parts, by_float, components, lanes_mut, lanes_of};
use crate::graph::DType;
use crate::kernels::ir::Monoid;
use std::mem::MaybeUninit;

/// Folds values into open accumulators: (count, base, sum of `x - base`, sum of its squares). The base is a lane's
/// first value.
///
/// # Safety
/// `parts` holds a lane for each value.
#[inline(always)]
pub(super) unsafe fn fold<T: Copy + Into<f64>>(parts: Parts, values: &[T]) {
    // SAFETY: the caller's promise.
    let [count, base, sum, squares] = unsafe { parts.0.map(|at| lanes_mut::<f64>(at, values.len())) };
    // No row has more lanes than the row before it, so the accumulators of its lanes are all empty, or none is.
    if count.first() == Some(&0.0) {
        return begin([count, base, sum, squares], values);
    }
    count.iter_mut().for_each(|count| *count += 1.0);
    for (((sum, squares), &base), &x) in sum.iter_mut().zip(squares).zip(&*base).zip(values) {
        let off = x.into() - base;
        *sum += off;
        *squares += off * off;
    }
}

/// Folds the first values into empty accumulators.
#[inline(always)]
fn begin<T: Copy + Into<f64>>([count, base, sum, squares]: [&mut [f64]; 4], values: &[T]) {
    count.fill(1.0);
    base.iter_mut().zip(values).for_each(|(base, &x)| *base = x.into());
    // The sums begin with +0, but with NaN if the base is infinite or NaN.
    sum.iter_mut().zip(&*base).for_each(|(sum, &x)| *sum = x * 0.0 + 0.0);
    squares.copy_from_slice(sum);
}

/// The number of rows that [`fold_rows`] takes. For f64, an accumulator gets no more elements before it is closed.
pub(super) const ROWS: usize = 8;

/// As [`fold`] for [`ROWS`] rows, one after the other. A lane's sums stay in registers meanwhile.
///
/// # Safety
/// `parts` holds `lanes` lanes, and each row as many numbers of the dtype.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+bmi2"))]
pub(super) unsafe fn fold_rows(dtype: DType, parts: Parts, rows: [*const u8; ROWS], lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        by_float!(dtype, T => {
            let accumulators = parts.0.map(|at| lanes_mut::<f64>(at, lanes));
            add_rows(accumulators, rows.map(|row| lanes_of::<T>(row, lanes)));
        });
    }
}

#[inline(always)]
fn add_rows<T: Copy + Into<f64>>([count, base, sum, squares]: [&mut [f64]; 4], rows: [&[T]; ROWS]) {
    if count.first() == Some(&0.0) {
        begin([count, base, sum, squares], rows[0]);
        add_rows_to::<T, { ROWS - 1 }>(count, base, sum, squares, std::array::from_fn(|row| rows[row + 1]));
    } else {
        add_rows_to::<T, ROWS>(count, base, sum, squares, rows);
    }
}

#[inline(always)]
fn add_rows_to<T: Copy + Into<f64>, const N: usize>(
    count: &mut [f64],
    base: &[f64],
    sum: &mut [f64],
    squares: &mut [f64],
    rows: [&[T]; N],
) {
    let lanes = count.len();
    let (base, sum, squares) = (&base[..lanes], &mut sum[..lanes], &mut squares[..lanes]);
    let rows = rows.map(|row| &row[..lanes]);
    count.iter_mut().for_each(|count| *count += N as f64);
    for lane in 0..lanes {
        let (mut total, mut total_squares) = (sum[lane], squares[lane]);
        for row in rows {
            let off = row[lane].into() - base[lane];
            total += off;
            total_squares += off * off;
        }
        (sum[lane], squares[lane]) = (total, total_squares);
    }
}

/// As [`fold`], for the values whose byte in `on` is not 0.
///
/// # Safety
/// As [`fold`].
#[inline(always)]
pub(super) unsafe fn fold_where<T: Copy + Into<f64>>(parts: Parts, values: &[T], on: &[u8]) {
    // SAFETY: the caller's promise.
    let [count, base, sum, squares] = unsafe { parts.0.map(|at| lanes_mut::<f64>(at, values.len())) };
    for (lane, &x) in values.iter().enumerate() {
        let (x, on): (f64, bool) = (x.into(), on[lane] != 0);
        base[lane] = if on && count[lane] == 0.0 { x } else { base[lane] };
        let off = if on { x - base[lane] } else { 0.0 };
        count[lane] += on as u8 as f64;
        sum[lane] += off;
        squares[lane] += off * off;
    }
}

/// Merges two closed accumulators (Chan, Golub, LeVeque: "Updating formulae and a pairwise algorithm for computing
/// sample variances", 1979). The result has the base that is nearer to its mean.
#[inline(always)]
pub(super) fn merge(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
    // There are no branches, so that the compiler can vectorise it.
    let (first, none) = (a[0] == 0.0, b[0] == 0.0);
    let n = a[0] + b[0];
    let apart = (b[1] - a[1]) + (b[2] - a[2]);
    let share = b[0] / if n == 0.0 { 1.0 } else { n };
    let nearer = b[2].abs() < a[2].abs();
    let base = if nearer { b[1] } else { a[1] };
    let off = if nearer { b[2] - apart * (1.0 - share) } else { a[2] + apart * share };
    let squares = a[3] + b[3] + apart * apart * (a[0] * share);
    let pick = |both: f64, part: usize| {
        let later = if first { b[part] } else { both };
        if none { a[part] } else { later }
    };
    [n, pick(base, 1), pick(off, 2), pick(squares, 3)]
}

/// Closes accumulators after the last element was folded into them (EVAL-5): the sum becomes a mean.
///
/// # Safety
/// `parts` holds `lanes` lanes of moments.
#[multiversion::multiversion(targets("x86_64+avx2+bmi2"))]
pub(super) unsafe fn close(parts: Parts, lanes: usize) {
    // SAFETY: the caller's promise.
    let [count, _, off, squares] = unsafe { parts.0.map(|at| lanes_mut::<f64>(at, lanes)) };
    for ((count, off), squares) in count.iter().zip(off).zip(squares) {
        let mean = *off / if *count == 0.0 { 1.0 } else { *count };
        let rest = *squares - *off * mean;
        *squares = if rest < 0.0 { 0.0 } else { rest };
        *off = mean;
    }
}

/// Lanes in which moments of one line are kept: few, so that they stay in a core's first-level cache. A block makes
/// [`ROWS`] rows of so many lanes.
pub(super) const ALONG: usize = 128;

/// Lanes that [`accumulate_along`] needs. If blocks are closed, half of the lanes are closed accumulators, and the
/// other half are the open ones of the current block.
pub(super) fn lanes_along(dtype: DType) -> usize {
    if closes_blocks(dtype) { 2 * ALONG } else { ALONG }
}

/// Whether [`accumulate_along`] closes the accumulators after each block. In f64, an outlier that is the base of many
/// elements would cost digits.
pub(super) fn closes_blocks(dtype: DType) -> bool {
    dtype == DType::F64
}

/// Folds a block of one output's elements into its accumulators, which are merged later. If blocks are closed, the open
/// lanes are empty before and after this call.
///
/// # Safety
/// As [`monoid::accumulate`]; `parts` has [`lanes_along`] lanes, which [`monoid::init`] has initialised.
pub(super) unsafe fn accumulate_along(monoid: Monoid, dtype: DType, parts: Parts, args: [*const u8; 2], lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let second = if monoid == Monoid::MomentsWhere { DType::Bool } else { dtype };
        let closes = closes_blocks(dtype);
        let open = if closes { parts.skip(&components(monoid, dtype), ALONG) } else { parts };
        const WHOLE: usize = ROWS * ALONG;
        let whole = if monoid == Monoid::Moments { lanes / WHOLE * WHOLE } else { 0 };
        for start in (0..whole).step_by(WHOLE) {
            // The rows are read in parallel. They are read from a copy, because a core prefetches memory that is read
            // from the front to the end, as copying does.
            let mut copy = MaybeUninit::<[u64; WHOLE]>::uninit();
            let to = copy.as_mut_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(args[0].add(start * dtype.bytes()), to, WHOLE * dtype.bytes());
            let row = |row: usize| to.cast_const().add(row * ALONG * dtype.bytes());
            fold_rows(dtype, open, std::array::from_fn(row), ALONG);
        }
        for start in (whole..lanes).step_by(ALONG) {
            let row = [args[0].add(start * dtype.bytes()), args[1].add(start * second.bytes())];
            monoid::accumulate(monoid, dtype, open, row, ALONG.min(lanes - start));
        }
        if closes {
            close(open, ALONG);
            monoid::merge(monoid, dtype, parts, open, ALONG);
            monoid::init(monoid, dtype, open, ALONG);
        }
    }
}

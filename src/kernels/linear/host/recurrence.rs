//! Recurrences, a line at a time.

use super::{Page, Real};

/// Computes `y[i] = w[i] - sum_k a[k] y[i - 1 - k]`. The terms of the earliest elements are subtracted first, so that
/// an element waits for the one before it in one operation only.
pub(super) fn line<T: Real>(Page { a: w, b: a, .. }: Page<'_, T>, y: &mut [T]) {
    let w = w.col(0).try_as_col_major().expect("LIB-1: the elements of a line are neighbours").as_slice();
    match a.len() {
        1 => in_registers::<T, 1>(w, a, y),
        2 => in_registers::<T, 2>(w, a, y),
        3 => in_registers::<T, 3>(w, a, y),
        4 => in_registers::<T, 4>(w, a, y),
        5 => in_registers::<T, 5>(w, a, y),
        6 => in_registers::<T, 6>(w, a, y),
        7 => in_registers::<T, 7>(w, a, y),
        8 => in_registers::<T, 8>(w, a, y),
        _ => in_memory(w, a, y),
    }
}

/// Computes a line whose latest `ORDER` elements are held in registers.
fn in_registers<T: Real, const ORDER: usize>(w: &[T], a: &[T], y: &mut [T]) {
    let a: [T; ORDER] = std::array::from_fn(|k| a[k]);
    let mut latest = [T::ZERO; ORDER];
    for (y, &w) in y.iter_mut().zip(w) {
        let mut rest = w;
        for k in (0..ORDER).rev() {
            rest -= a[k] * latest[k];
        }
        latest.copy_within(..ORDER - 1, 1);
        latest[0] = rest;
        *y = rest;
    }
}

/// Computes a line that reads its earlier elements from the output.
fn in_memory<T: Real>(w: &[T], a: &[T], y: &mut [T]) {
    for (i, &w) in w.iter().enumerate() {
        let earlier = &y[i.saturating_sub(a.len())..i];
        let mut rest = w;
        for (&y, &a) in earlier.iter().zip(a[..earlier.len()].iter().rev()) {
            rest -= a * y;
        }
        y[i] = rest;
    }
}

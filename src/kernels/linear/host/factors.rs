//! Cholesky, LU and QR factorisations.

use super::{Page, Real, is_finite, memory};
use crate::error::Result;
use faer::dyn_stack::MemStack;
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::householder as reflections;
use faer::linalg::lu::partial_pivoting::factor as partial;
use faer::linalg::qr::no_pivoting::factor as orthogonal;
use faer::{Conj, Mat, MatMut};

/// Computes the lower factor. Returns false if the matrix is not positive definite.
pub(super) fn cholesky<T: Real>(Page { a, par, .. }: Page<'_, T>, out: &mut [T]) -> Result<bool> {
    let n = a.nrows();
    let mut lower = MatMut::from_column_major_slice_mut(out, n, n);
    lower.copy_from(a);
    let mut room = memory(llt::cholesky_in_place_scratch::<T>(n, par, Default::default()))?;
    let stack = MemStack::new(&mut room);
    let made = llt::cholesky_in_place(lower.as_mut(), Default::default(), par, stack, Default::default());
    // `faer` has used the upper triangle for intermediate results.
    for j in 1..n {
        for i in 0..j {
            lower[(i, j)] = T::ZERO;
        }
    }
    Ok(made.is_ok() && (0..n).all(|i| lower[(i, i)] > T::ZERO && lower[(i, i)].is_number()))
}

/// Computes both triangular factors, and the order of the rows.
pub(super) fn lu<T: Real>(Page { a, par, .. }: Page<'_, T>, out: &mut [T]) -> Result<()> {
    let (m, n) = (a.nrows(), a.ncols());
    let mut factors = MatMut::from_column_major_slice_mut(&mut out[..m * n], m, n);
    factors.copy_from(a);
    let (mut rows, mut inverse) = (vec![0usize; m], vec![0usize; m]);
    let mut room = memory(partial::lu_in_place_scratch::<usize, T>(m, n, par, Default::default()))?;
    let stack = MemStack::new(&mut room);
    let made = partial::lu_in_place(factors.as_mut(), &mut rows, &mut inverse, par, stack, Default::default());
    let mut is_odd = made.0.transposition_count % 2 == 1;
    // `faer` divides also by a pivot that is zero. Then the matrix is factored again, without such divisions.
    if (0..m.min(n)).any(|i| factors[(i, i)] == T::ZERO || !factors[(i, i)].is_number()) {
        factors.copy_from(a);
        is_odd = eliminate(&mut out[..m * n], m, &mut rows);
    }
    let order = &mut out[m * n..];
    let (rows_out, signs) = order.split_at_mut(m);
    for (to, &row) in rows_out.iter_mut().zip(&rows) {
        *to = T::position(row);
    }
    signs.fill(T::ONE);
    if is_odd {
        signs[0] = -T::ONE;
    }
    Ok(())
}

/// Factors columns of `m` elements in place, one after the other. A column whose pivot is zero is left as it is.
/// Returns whether the number of exchanges is odd.
fn eliminate<T: Real>(a: &mut [T], m: usize, rows: &mut [usize]) -> bool {
    rows.iter_mut().enumerate().for_each(|(i, row)| *row = i);
    let mut is_odd = false;
    for j in 0..m.min(a.len() / m) {
        let (done, later) = a.split_at_mut(m * (j + 1));
        let (before, own) = done.split_at_mut(m * j);
        let mut pivot = j;
        for i in j + 1..m {
            if own[i].magnitude() > own[pivot].magnitude() {
                pivot = i;
            }
        }
        if pivot != j {
            is_odd = !is_odd;
            rows.swap(pivot, j);
            own.swap(pivot, j);
            before.chunks_exact_mut(m).chain(later.chunks_exact_mut(m)).for_each(|column| column.swap(pivot, j));
        }
        let of = own[j];
        if of == T::ZERO {
            continue;
        }
        let factors = &mut own[j + 1..];
        factors.iter_mut().for_each(|x| *x /= of);
        for column in later.chunks_exact_mut(m) {
            let above = column[j];
            for (x, &factor) in column[j + 1..].iter_mut().zip(&*factors) {
                *x -= factor * above;
            }
        }
    }
    is_odd
}

/// Computes the orthogonal factor, and the upper one beside it.
pub(super) fn qr<T: Real>(Page { a, par, .. }: Page<'_, T>, full: bool, out: &mut [T]) -> Result<()> {
    let (m, n) = (a.nrows(), a.ncols());
    let k = m.min(n);
    let q = if full { m } else { k };
    // `faer` may not pass on a NaN.
    if !is_finite(a) {
        out.fill(T::NAN);
        return Ok(());
    }
    let (product, upper) = out.split_at_mut(m * q);
    let mut upper = MatMut::from_column_major_slice_mut(upper, m, n);
    upper.copy_from(a);
    let block = orthogonal::recommended_block_size::<T>(m, n);
    let mut coefficients = Mat::<T>::zeros(block, k);
    let mut room = memory(orthogonal::qr_in_place_scratch::<T>(m, n, block, par, Default::default()))?;
    let stack = MemStack::new(&mut room);
    orthogonal::qr_in_place(upper.as_mut(), coefficients.as_mut(), par, stack, Default::default());
    let mut product = MatMut::from_column_major_slice_mut(product, m, q);
    for j in 0..q {
        for i in 0..m {
            product[(i, j)] = if i == j { T::ONE } else { T::ZERO };
        }
    }
    let need = reflections::apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(m, block, q);
    let mut room = memory(need)?;
    reflections::apply_block_householder_sequence_on_the_left_in_place_with_conj(
        upper.as_ref().get(.., ..k),
        coefficients.as_ref(),
        Conj::No,
        product,
        par,
        MemStack::new(&mut room),
    );
    for j in 0..n {
        for i in j + 1..m {
            upper[(i, j)] = T::ZERO;
        }
    }
    Ok(())
}

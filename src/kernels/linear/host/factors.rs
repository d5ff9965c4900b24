//! Cholesky, LU and QR factorisations.

use super::{Page, Real, is_finite, memory};
use crate::error::Result;
use faer::dyn_stack::MemStack;
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::householder as reflections;
use faer::linalg::lu::partial_pivoting::factor as partial;
use faer::linalg::qr::col_pivoting::factor as pivoted;
use faer::linalg::qr::no_pivoting::factor as orthogonal;
use faer::{Conj, Mat, MatMut, MatRef, Par};

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
    multiply_out(upper.as_ref(), coefficients.as_ref(), MatMut::from_column_major_slice_mut(product, m, q), par)?;
    for j in 0..n {
        for i in j + 1..m {
            upper[(i, j)] = T::ZERO;
        }
    }
    Ok(())
}

/// Computes the factors of the matrix with exchanged columns, and the order of the columns.
pub(super) fn qr_pivoted<T: Real>(Page { a, par, .. }: Page<'_, T>, out: &mut [T]) -> Result<()> {
    let (m, n) = (a.nrows(), a.ncols());
    let k = m.min(n);
    let (product, rest) = out.split_at_mut(m * k);
    let (upper, order) = rest.split_at_mut(k * n);
    let mut columns: Vec<usize> = (0..n).collect();
    let greatest = (0..n)
        .flat_map(|j| (0..m).map(move |i| a[(i, j)].magnitude()))
        .fold(T::ZERO, |most, x| if x > most { x } else { most });
    let mut product = MatMut::from_column_major_slice_mut(product, m, k);
    // `faer` divides by the greatest norm.
    if is_finite(a) && greatest > T::ZERO {
        let mut factors = a.to_owned();
        let block = pivoted::recommended_block_size::<T>(m, n);
        let mut coefficients = Mat::<T>::zeros(block, k);
        let mut inverse = vec![0usize; n];
        let mut room = memory(pivoted::qr_in_place_scratch::<usize, T>(m, n, block, par, Default::default()))?;
        let stack = MemStack::new(&mut room);
        let to = coefficients.as_mut();
        pivoted::qr_in_place(factors.as_mut(), to, &mut columns, &mut inverse, par, stack, Default::default());
        multiply_out(factors.as_ref(), coefficients.as_ref(), product, par)?;
        let mut upper = MatMut::from_column_major_slice_mut(upper, k, n);
        for j in 0..n {
            for i in 0..k {
                upper[(i, j)] = if i <= j { factors[(i, j)] } else { T::ZERO };
            }
        }
    } else if is_finite(a) {
        unit(product.as_mut());
        upper.fill(T::ZERO);
    } else {
        product.fill(T::NAN);
        upper.fill(T::NAN);
    }
    for (to, &column) in order.iter_mut().zip(&columns) {
        *to = T::position(column);
    }
    Ok(())
}

/// Writes ones on the diagonal, and zeros elsewhere.
fn unit<T: Real>(mut matrix: MatMut<'_, T>) {
    for j in 0..matrix.ncols() {
        for i in 0..matrix.nrows() {
            matrix[(i, j)] = if i == j { T::ONE } else { T::ZERO };
        }
    }
}

/// Multiplies the reflections of a factorisation out: the first columns of their product, which is orthogonal.
fn multiply_out<T: Real>(
    factors: MatRef<'_, T>,
    coefficients: MatRef<'_, T>,
    mut product: MatMut<'_, T>,
    par: Par,
) -> Result<()> {
    unit(product.as_mut());
    let (m, columns) = (product.nrows(), product.ncols());
    let block = coefficients.nrows();
    let need = reflections::apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(m, block, columns);
    let mut room = memory(need)?;
    reflections::apply_block_householder_sequence_on_the_left_in_place_with_conj(
        factors.get(.., ..coefficients.ncols()),
        coefficients,
        Conj::No,
        product,
        par,
        MemStack::new(&mut room),
    );
    Ok(())
}

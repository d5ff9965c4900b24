//! Eigenvalues and singular values, with their vectors.

use super::{Page, Real, is_finite, memory};
use crate::error::Result;
use faer::dyn_stack::MemStack;
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::linalg::svd::{self, ComputeSvdVectors};
use faer::{ColMut, Mat, MatMut};

/// Computes the eigenvalues of a symmetric matrix, and its eigenvectors.
pub(super) fn eigh<T: Real>(Page { a, par, .. }: Page<'_, T>, vectors: bool, out: &mut [T]) -> Result<()> {
    let n = a.nrows();
    let (values, rest) = out.split_at_mut(n);
    let is_finite = (0..n).all(|j| (j..n).all(|i| a[(i, j)].is_number()));
    let compute = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let mut room = memory(evd::self_adjoint_evd_scratch::<T>(n, compute, par, Default::default()))?;
    let found = is_finite && {
        let values = ColMut::from_slice_mut(values).as_diagonal_mut();
        let to = vectors.then(|| MatMut::from_column_major_slice_mut(rest, n, n));
        evd::self_adjoint_evd(a, values, to, par, MemStack::new(&mut room), Default::default()).is_ok()
    };
    if !found {
        out.fill(T::NAN);
    }
    Ok(())
}

/// Computes the eigenvalues and eigenvectors of any square matrix, in real and imaginary parts.
pub(super) fn eig<T: Real>(Page { a, par, .. }: Page<'_, T>, out: &mut [T]) -> Result<()> {
    let n = a.nrows();
    let (no, yes) = (ComputeEigenvectors::No, ComputeEigenvectors::Yes);
    let mut room = memory(evd::evd_scratch::<T>(n, no, yes, par, Default::default()))?;
    let mut packed = Mat::<T>::zeros(n, n);
    let (real, rest) = out.split_at_mut(n);
    let (imaginary, parts) = rest.split_at_mut(n);
    let found = is_finite(a) && {
        let re = ColMut::from_slice_mut(real).as_diagonal_mut();
        let im = ColMut::from_slice_mut(&mut *imaginary).as_diagonal_mut();
        let stack = MemStack::new(&mut room);
        evd::evd_real(a, re, im, None, Some(packed.as_mut()), par, stack, Default::default()).is_ok()
    };
    if !found {
        out.fill(T::NAN);
        return Ok(());
    }
    let (re, im) = parts.split_at_mut(n * n);
    im.fill(T::ZERO);
    let mut j = 0;
    while j < n {
        // A pair of conjugate values has one vector, whose parts are two columns.
        let is_pair = imaginary[j] != T::ZERO && j + 1 < n;
        let mut square = T::ZERO;
        for part in 0..1 + is_pair as usize {
            square = (0..n).fold(square, |sum, i| sum + packed[(i, j + part)] * packed[(i, j + part)]);
        }
        let length = square.root();
        for i in 0..n {
            let x = packed[(i, j)] / length;
            re[i + n * j] = x;
            if is_pair {
                let y = packed[(i, j + 1)] / length;
                re[i + n * (j + 1)] = x;
                im[i + n * j] = y;
                im[i + n * (j + 1)] = -y;
            }
        }
        j += 1 + is_pair as usize;
    }
    Ok(())
}

/// Computes the singular values, and the vectors of both sides.
pub(super) fn svd<T: Real>(Page { a, par, .. }: Page<'_, T>, vectors: bool, out: &mut [T]) -> Result<()> {
    let (m, n) = (a.nrows(), a.ncols());
    let k = m.min(n);
    let compute = if vectors { ComputeSvdVectors::Thin } else { ComputeSvdVectors::No };
    let mut room = memory(svd::svd_scratch::<T>(m, n, compute, compute, par, Default::default()))?;
    let (values, rest) = out.split_at_mut(k);
    let (left, right) = rest.split_at_mut(if vectors { m * k } else { 0 });
    let found = is_finite(a) && {
        let values = ColMut::from_slice_mut(values).as_diagonal_mut();
        let left = vectors.then(|| MatMut::from_column_major_slice_mut(left, m, k));
        let right = vectors.then(|| MatMut::from_column_major_slice_mut(right, n, k));
        svd::svd(a, values, left, right, par, MemStack::new(&mut room), Default::default()).is_ok()
    };
    if !found {
        out.fill(T::NAN);
    }
    Ok(())
}

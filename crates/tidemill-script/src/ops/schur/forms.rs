//! The Schur and Hessenberg forms themselves, for the functions that return them. Unlike in the computation of
//! eigenvalues, the matrix is not scaled, so that the other factor stays orthogonal.

use super::{Balance, Square, hessenberg, isolated, triangular};
use num_complex::Complex64;

/// A form of a matrix, and the orthogonal factor of the transformation; both column-major.
pub(crate) struct Factored {
    pub form: Vec<f64>,
    pub factor: Vec<f64>,
}

/// Returns the real Schur form (dgees); `None` if it does not converge.
pub(crate) fn schur_form(a: &[f64], n: usize) -> Option<Factored> {
    if n == 0 {
        return Some(Factored { form: Vec::new(), factor: Vec::new() });
    }
    let mut t = Square { n, data: a.to_vec() };
    let mut z = Square::identity(n);
    let Balance { low, high, scale } = isolated(&mut t);
    hessenberg(&mut t, &mut z, low, high);
    let mut values: Vec<Complex64> = (1..=n).map(|i| Complex64::new(t.at(i, i), 0.0)).collect();
    triangular(&mut t, &mut z, low, high, &mut values)?;
    let mut exchange = |i: usize| {
        let with = scale[i] as usize;
        (1..=n).filter(|_| i != with).for_each(|j| z.swap((i, j), (with, j)));
    };
    (1..low).rev().for_each(&mut exchange);
    (high + 1..=n).for_each(&mut exchange);
    Some(Factored { form: t.data, factor: z.data })
}

/// The Hessenberg form (dgehrd).
pub(crate) fn hessenberg_form(a: &[f64], n: usize) -> Factored {
    let mut h = Square { n, data: a.to_vec() };
    let mut z = Square::identity(n);
    hessenberg(&mut h, &mut z, 1, n);
    Factored { form: h.data, factor: z.data }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the largest element of `U F U' - A` and of `U U' - I`.
    fn residual(a: &[f64], n: usize, f: &Factored) -> f64 {
        let product = |x: &dyn Fn(usize, usize) -> f64, y: &dyn Fn(usize, usize) -> f64, i: usize, j: usize| {
            (0..n).map(|k| x(i, k) * y(k, j)).sum::<f64>()
        };
        let u = |i: usize, j: usize| f.factor[j * n + i];
        let turned = |i: usize, j: usize| f.factor[i * n + j];
        let form = |i: usize, j: usize| f.form[j * n + i];
        let left = |i: usize, j: usize| product(&u, &form, i, j);
        let mut worst: f64 = 0.0;
        for i in 0..n {
            for j in 0..n {
                worst = worst.max((product(&left, &turned, i, j) - a[j * n + i]).abs());
                worst = worst.max((product(&u, &turned, i, j) - f64::from(i == j)).abs());
            }
        }
        worst
    }

    #[test]
    fn nothing_has_forms_of_nothing() {
        for found in [schur_form(&[], 0).expect("nothing converges"), hessenberg_form(&[], 0)] {
            assert!(found.form.is_empty() && found.factor.is_empty());
        }
    }

    #[test]
    fn both_forms_are_turned_back_into_the_matrix_by_their_factors_also_where_rows_were_exchanged() {
        let full = [4.0, 1.0, -2.0, 0.5, 3.0, 2.0, 1.0, -1.0, 7.0];
        // Its second row and third column are isolated.
        let alone = [1.0, 0.0, 2.0, 5.0, 3.0, 6.0, 0.0, 0.0, 4.0];
        for a in [full, alone] {
            let schur = schur_form(&a, 3).expect("it converges");
            assert!(residual(&a, 3, &schur) < 1e-13);
            assert_eq!(schur.form[2], 0.0);
            let hessenberg = hessenberg_form(&a, 3);
            assert!(residual(&a, 3, &hessenberg) < 1e-13);
            assert_eq!(hessenberg.form[2], 0.0);
        }
    }
}

//! Systems of linear equations, and inverses of matrices, by `faer`.
//!
//! Must hold: a square matrix is solved by triangular factors, as in MATLAB, with a warning if it is singular, or
//! nearly so in the precision of its numbers. Any other matrix is solved by its singular values.

use super::gauss::ROWS_MAX;
use super::linear::{Number, column_major, norm_1};
use crate::env::Env;
use crate::value::Class;
use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef};

fn epsilon(class: Class) -> f64 {
    if class == Class::Single { f32::EPSILON as f64 } else { f64::EPSILON }
}

/// Warns that a system's matrix is singular or nearly singular.
pub(crate) fn warn_singular(env: &mut Env, what: &str, rcond: f64) {
    if rcond == 0.0 {
        env.warn("Octave:singular-matrix", &format!("{what}matrix singular to machine precision"));
    } else {
        let text = format!("{what}matrix singular to machine precision, rcond = {}", significant(rcond));
        env.warn("Octave:nearly-singular-matrix", &text);
    }
}

/// Formats six significant digits, as C's `%g` does for small numbers.
fn significant(x: f64) -> String {
    let text = format!("{x:.5e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// Solves `a x = b`; the result is column-major.
pub(super) fn solve<T: Number>(env: &mut Env, a: MatRef<'_, T>, b: MatRef<'_, T>, class: Class) -> Vec<T> {
    let (m, n) = (a.nrows(), a.ncols());
    if m == 0 || n == 0 || b.ncols() == 0 {
        return vec![T::real(0.0); n * b.ncols()];
    }
    if m != n {
        return least_squares(a, b, class);
    }
    let nonzero = |i: usize, j: usize| a[(i, j)].size() != 0.0;
    let upper = (0..n).all(|j| (j + 1..n).all(|i| !nonzero(i, j)));
    let lower = !upper && (0..n).all(|j| (0..j).all(|i| !nonzero(i, j)));
    if upper || lower {
        if (0..n).any(|i| !nonzero(i, i)) {
            warn_singular(env, "", 0.0);
            let mut x = b.to_owned();
            substitute(a, &mut x, lower);
            return column_major(x.as_ref());
        }
        return triangular(env, a, b, upper, class);
    }
    // Most systems are small and far from singular.
    if class != Class::Single
        && let Some(x) = T::small_sound(a, b)
    {
        return x;
    }
    let lu = a.partial_piv_lu();
    let pivots = lu.U();
    if (0..n).any(|i| pivots[(i, i)].size() == 0.0 || pivots[(i, i)].size().is_nan()) {
        warn_singular(env, "", 0.0);
        return by_factors(a, b);
    }
    let rcond = reciprocal_condition(a, |y| lu.solve_in_place(y.as_mut()));
    if rcond < epsilon(class) || rcond.is_nan() {
        warn_singular(env, "", rcond);
    }
    if class != Class::Single
        && let Some(x) = T::small_solve(&column_major(a), n, &column_major(b))
    {
        return x;
    }
    column_major(lu.solve(b).as_ref())
}

/// Solves a triangular system without a zero on its diagonal.
fn triangular<T: Number>(env: &mut Env, a: MatRef<'_, T>, b: MatRef<'_, T>, upper: bool, class: Class) -> Vec<T> {
    let mut x = b.to_owned();
    let solve = |y: &mut Mat<T>| {
        if upper {
            a.solve_upper_triangular_in_place(y.as_mut());
        } else {
            a.solve_lower_triangular_in_place(y.as_mut());
        }
    };
    solve(&mut x);
    let rcond = reciprocal_condition(a, solve);
    if rcond < epsilon(class) {
        warn_singular(env, "", rcond);
    }
    column_major(x.as_ref())
}

/// Solves a triangular system with a zero on its diagonal; dividing by that zero gives infinities. It goes column by
/// column, and a solution of zero is not subtracted from the other rows.
fn substitute<T: Number>(a: MatRef<'_, T>, x: &mut Mat<T>, lower: bool) {
    let n = a.ncols();
    for c in 0..x.ncols() {
        for step in 0..n {
            let (j, others) = if lower { (step, step + 1..n) } else { (n - 1 - step, 0..n - 1 - step) };
            let pivot = a[(j, j)].size();
            if x[(j, c)].size() == 0.0 && pivot != 0.0 && !pivot.is_nan() {
                continue;
            }
            // Each part is divided by a real zero, since a complex quotient would lose the sign.
            x[(j, c)] = match a[(j, j)].size() == 0.0 {
                true => x[(j, c)].over_zero(),
                false => x[(j, c)] / a[(j, j)],
            };
            let solved = x[(j, c)];
            others.for_each(|i| x[(i, c)] -= a[(i, j)] * solved);
        }
    }
}

/// Solves a singular system by its factors.
fn by_factors<T: Number>(a: MatRef<'_, T>, b: MatRef<'_, T>) -> Vec<T> {
    let (w, order) = eliminated(a);
    let mut x = Mat::from_fn(b.nrows(), b.ncols(), |i, j| b[(order[i], j)]);
    for c in 0..w.ncols() {
        for j in 0..x.ncols() {
            let above = x[(c, j)];
            (c + 1..w.nrows()).for_each(|i| x[(i, j)] -= w[(i, c)] * above);
        }
    }
    substitute(w.as_ref(), &mut x, false);
    column_major(x.as_ref())
}

/// Does Gaussian elimination with partial pivoting (Golub and Van Loan, Matrix Computations, algorithm 3.4.1). Returns
/// both factors in one matrix, and the order of the rows.
pub(crate) fn eliminated<T: Number>(a: MatRef<'_, T>) -> (Mat<T>, Vec<usize>) {
    let (m, n) = (a.nrows(), a.ncols());
    if m == n
        && let Some((factors, order)) = T::small_factors(a)
    {
        return (Mat::from_fn(n, n, |i, j| factors[i + j * n]), order);
    }
    let mut w = a.to_owned();
    let mut order: Vec<usize> = (0..m).collect();
    for c in 0..m.min(n) {
        let pivot = (c..m).fold(c, |best, i| if w[(i, c)].size() > w[(best, c)].size() { i } else { best });
        if pivot != c {
            order.swap(pivot, c);
            for j in 0..n {
                let held = w[(c, j)];
                w[(c, j)] = w[(pivot, j)];
                w[(pivot, j)] = held;
            }
        }
        if w[(c, c)].size() == 0.0 {
            continue;
        }
        for i in c + 1..m {
            let factor = w[(i, c)] / w[(c, c)];
            w[(i, c)] = factor;
            for j in c + 1..n {
                let above = w[(c, j)];
                w[(i, j)] -= factor * above;
            }
        }
    }
    (w, order)
}

/// Whether a small square matrix has a pivot of exactly zero. Larger matrices are factored with fused products, which
/// seldom leave an exact zero.
pub(crate) fn is_singular<T: Number>(a: MatRef<'_, T>) -> bool {
    let n = a.nrows();
    n <= ROWS_MAX && {
        let (w, _) = eliminated(a);
        (0..n).any(|i| w[(i, i)].size() == 0.0)
    }
}

/// Returns 1 / (1-norm of the matrix * 1-norm of its inverse).
pub(crate) fn reciprocal_condition<T: Number>(a: MatRef<'_, T>, solve: impl Fn(&mut Mat<T>)) -> f64 {
    let n = a.nrows();
    let mut inverse = Mat::<T>::identity(n, n);
    solve(&mut inverse);
    let product = norm_1(a) * norm_1(inverse.as_ref());
    if product.is_infinite() { 0.0 } else { 1.0 / product }
}

/// Returns the shortest of the least-squares solutions of `a x = b`.
fn least_squares<T: Number>(a: MatRef<'_, T>, b: MatRef<'_, T>, class: Class) -> Vec<T> {
    let (n, columns) = (a.ncols(), b.ncols());
    let finite = (0..n).all(|j| (0..a.nrows()).all(|i| a[(i, j)].size().is_finite()));
    let Some(svd) = finite.then(|| a.thin_svd().ok()).flatten() else {
        return vec![T::real(f64::NAN); n * columns];
    };
    let (u, v, s) = (svd.U(), svd.V(), svd.S().column_vector());
    let values: Vec<f64> = (0..s.nrows()).map(|i| s[i].size()).collect();
    let least = values.first().copied().unwrap_or(0.0) * epsilon(class);
    let mut out = vec![T::real(0.0); n * columns];
    for (j, x) in out.chunks_exact_mut(n).enumerate() {
        for (p, &value) in values.iter().enumerate().take_while(|&(_, &value)| value > least) {
            let mut along = T::real(0.0);
            for i in 0..a.nrows() {
                along += u[(i, p)].conjugate() * b[(i, j)];
            }
            let along = along * T::real(1.0 / value);
            for (i, x) in x.iter_mut().enumerate() {
                *x += v[(i, p)] * along;
            }
        }
    }
    out
}

/// Returns the inverse of a square matrix, column-major. If there is none, it warns, and the elements are infinite.
pub(crate) fn inverse<T: Number>(env: &mut Env, a: &[T], n: usize, class: Class) -> Vec<T> {
    let matrix = MatRef::from_column_major_slice(a, n, n);
    let lu = matrix.partial_piv_lu();
    let pivots = lu.U();
    if (0..n).any(|i| pivots[(i, i)].size() == 0.0) || is_singular(matrix) {
        env.warn("Octave:singular-matrix", "inverse: matrix singular to machine precision, rcond = 0");
        return vec![T::real(f64::INFINITY); n * n];
    }
    let mut out = Mat::<T>::identity(n, n);
    lu.solve_in_place(out.as_mut());
    let rcond = 1.0 / (norm_1(matrix) * norm_1(out.as_ref()));
    if rcond < epsilon(class) {
        warn_singular(env, "inverse: ", rcond);
    }
    if class != Class::Single
        && let Some(small) = T::small_inverse(a, n)
    {
        return small;
    }
    column_major(out.as_ref())
}

//! Small real systems: elimination with partial pivoting, Cholesky factors, inverses and determinants.
//!
//! If Octave prints a whole number, Tidemill must print it, too. The last bits of a small inverse or solution depend on
//! the order of the additions. So this code follows the order of the kernels that Octave computes with: sums of
//! products along rows for factors, products of pairs and of fours when whole columns are subtracted, and columns from
//! left to right in triangular solutions. Larger systems are solved in `linear.rs`.

use multiversion::multiversion;

/// The most rows of systems that are solved here.
pub(crate) const ROWS_MAX: usize = 32;

/// The factors of a square matrix, column-major: the unit lower and the upper triangle in one matrix, and for each row
/// the row with which it was exchanged.
pub(crate) struct Lu {
    n: usize,
    a: Vec<f64>,
    exchanged: Vec<usize>,
}

/// Returns a sum of products, as two partial sums of every second product.
#[inline(always)]
fn dot(pairs: impl ExactSizeIterator<Item = (f64, f64)>) -> f64 {
    let whole = pairs.len() & !3;
    let (mut even, mut odd) = (0.0, 0.0);
    let mut four = [0.0; 4];
    for (i, (x, y)) in pairs.enumerate() {
        if i >= whole {
            even += x * y;
            continue;
        }
        four[i % 4] = x * y;
        if i % 4 == 3 {
            even += four[0] + four[2];
            odd += four[1] + four[3];
        }
    }
    even + odd
}

/// Subtracts sums of products from rows. Rows in groups of four are computed together, in fours and pairs of products
/// at a time. The last `y.len () % 4` rows subtract all products at once. Row `i` has the factors `columns[i + k * n]`,
/// and `x` holds the other factors. All rows take a step before the next step, so that one instruction handles several
/// rows.
#[inline(always)]
fn less(y: &mut [f64], columns: &[f64], n: usize, x: &[f64], whole: usize) {
    let column = |k: usize| &columns[k * n..];
    let (together, left) = y.split_at_mut(whole);
    let rows = together.len();
    let mut k = 0;
    while k + 4 <= x.len() {
        let (a, b, c, d) = (&column(k)[..rows], &column(k + 1)[..rows], &column(k + 2)[..rows], &column(k + 3)[..rows]);
        for i in 0..rows {
            together[i] -= c[i].mul_add(x[k + 2], a[i] * x[k]) + d[i].mul_add(x[k + 3], b[i] * x[k + 1]);
        }
        k += 4;
    }
    if k + 2 <= x.len() {
        let (a, b) = (&column(k)[..rows], &column(k + 1)[..rows]);
        for i in 0..rows {
            together[i] -= a[i] * x[k] + b[i] * x[k + 1];
        }
        k += 2;
    }
    if k < x.len() {
        let a = &column(k)[..rows];
        for i in 0..rows {
            together[i] -= a[i] * x[k];
        }
    }
    for (i, y) in left.iter_mut().enumerate() {
        *y -= x.iter().enumerate().fold(0.0, |sum, (k, x)| sum + columns[whole + i + k * n] * x);
    }
}

/// Solves a triangular system in which row `i` has the coefficients `at (k, i)`, from the first row on, in blocks of
/// four, two and one. The contributions of earlier blocks are subtracted in one sum. The diagonal is 1 if `unit`.
#[inline(always)]
fn forward(n: usize, x: &mut [f64], unit: bool, at: impl Fn(usize, usize) -> f64) {
    for i in 0..n {
        let block = if i < n & !3 {
            i & !3
        } else if i < n & !1 {
            i & !1
        } else {
            i
        };
        if block > 0 {
            x[i] -= (0..block).fold(0.0, |sum: f64, k| at(k, i).mul_add(x[k], sum));
        }
        for k in block..i {
            x[i] -= x[k] * at(k, i);
        }
        if !unit {
            x[i] *= 1.0 / at(i, i);
        }
    }
}

/// Does the same from the last row on; the incomplete block comes first.
#[inline(always)]
fn backward(n: usize, x: &mut [f64], at: impl Fn(usize, usize) -> f64) {
    for i in (0..n).rev() {
        let end = if i < n & !3 {
            (i & !3) + 4
        } else if i < n & !1 {
            (i & !1) + 2
        } else {
            i + 1
        };
        if end < n {
            x[i] -= (end..n).fold(0.0, |sum: f64, k| at(k, i).mul_add(x[k], sum));
        }
        for k in (i + 1..end).rev() {
            x[i] -= x[k] * at(k, i);
        }
        x[i] *= 1.0 / at(i, i);
    }
}

impl Lu {
    /// Factors a matrix of `n` rows.
    pub(crate) fn new(a: &[f64], n: usize) -> Lu {
        let mut a = a.to_vec();
        let mut exchanged = vec![0; n];
        factor(&mut a, n, &mut exchanged);
        Lu { n, a, exchanged }
    }

    /// Returns both factors in one matrix, column-major, and the order of the rows.
    pub(crate) fn into_parts(self) -> (Vec<f64>, Vec<usize>) {
        let mut order: Vec<usize> = (0..self.n).collect();
        self.exchanged.iter().enumerate().for_each(|(i, &p)| order.swap(i, p));
        (self.a, order)
    }

    /// Whether a pivot is zero or NaN.
    pub(crate) fn is_singular(&self) -> bool {
        (0..self.n).any(|i| self.a[i + i * self.n] == 0.0 || self.a[i + i * self.n].is_nan())
    }

    /// The determinant.
    pub(crate) fn determinant(&self) -> f64 {
        let signed = |i: usize| if self.exchanged[i] == i { self.a[i + i * self.n] } else { -self.a[i + i * self.n] };
        (0..self.n).fold(1.0, |product, i| product * signed(i))
    }

    /// Solves systems, column by column in place.
    pub(crate) fn solve(&self, columns: &mut [f64]) {
        let (n, a) = (self.n, &self.a);
        let several = columns.len() > n;
        for x in columns.chunks_exact_mut(n) {
            for (i, &p) in self.exchanged.iter().enumerate() {
                x.swap(i, p);
            }
            if several {
                both(a, n, x);
                continue;
            }
            for i in 0..n {
                for k in i + 1..n {
                    x[k] -= x[i] * a[k + i * n];
                }
            }
            for i in (0..n).rev() {
                x[i] /= a[i + i * n];
                for k in 0..i {
                    x[k] -= x[i] * a[k + i * n];
                }
            }
        }
    }

    /// Solves the transposed system in place.
    fn solve_transposed(&self, x: &mut [f64]) {
        let (n, a) = (self.n, &self.a);
        for i in 0..n {
            let sum = (0..i).fold(0.0, |sum, k| sum + a[k + i * n] * x[k]);
            x[i] = (x[i] - sum) / a[i + i * n];
        }
        for i in (0..n).rev() {
            x[i] -= (i + 1..n).fold(0.0, |sum, k| sum + a[k + i * n] * x[k]);
        }
        for (i, &p) in self.exchanged.iter().enumerate().rev() {
            x.swap(i, p);
        }
    }

    /// Returns the inverse: inverts the upper triangle, then applies the lower one column by column.
    pub(crate) fn inverse(&self) -> Vec<f64> {
        let n = self.n;
        let mut u = self.a.clone();
        invert_upper(&mut u, n);
        take_lower_off(&mut u, n);
        for j in (0..n).rev() {
            let p = self.exchanged[j];
            if p != j {
                (0..n).for_each(|i| u.swap(i + j * n, i + p * n));
            }
        }
        u
    }
}

/// Factors a matrix in place.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2+fma"))]
fn factor(a: &mut [f64], n: usize, exchanged: &mut [usize]) {
    for j in 0..n {
        for (i, &p) in exchanged.iter().enumerate().take(j) {
            a.swap(i + j * n, p + j * n);
        }
        for i in 1..j {
            a[i + j * n] -= dot((0..i).map(|k| (a[i + k * n], a[k + j * n])));
        }
        let (before, rest) = a.split_at_mut(j * n);
        let (x, y) = rest[..n].split_at_mut(j);
        less(y, before.get(j..).unwrap_or_default(), n, x, (n - j) & !3);
        let larger = |best: usize, i: usize| if a[i + j * n].abs() > a[best + j * n].abs() { i } else { best };
        let p = (j + 1..n).fold(j, larger);
        exchanged[j] = p;
        if p != j {
            (0..=j).for_each(|k| a.swap(j + k * n, p + k * n));
        }
        let pivot = a[j + j * n];
        if pivot != 0.0 {
            let factor = 1.0 / pivot;
            (j + 1..n).for_each(|i| a[i + j * n] *= factor);
        }
    }
}

/// Applies the lower triangle to the inverse of the upper one, column by column from the right.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2+fma"))]
fn take_lower_off(u: &mut [f64], n: usize) {
    let mut x = Vec::with_capacity(n);
    for j in (0..n.saturating_sub(1)).rev() {
        x.clear();
        x.extend((j + 1..n).map(|i| std::mem::take(&mut u[i + j * n])));
        let (before, after) = u.split_at_mut((j + 1) * n);
        less(&mut before[j * n..], after, n, &x, n & !3);
    }
}

/// Solves the lower and then the upper triangular system of the factors.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2+fma"))]
fn both(a: &[f64], n: usize, x: &mut [f64]) {
    forward(n, x, true, |k, i| a[i + k * n]);
    backward(n, x, |k, i| a[i + k * n]);
}

/// Does the same for the Cholesky factor and its transpose.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2+fma"))]
fn both_of_cholesky(u: &[f64], n: usize, x: &mut [f64]) {
    forward(n, x, false, |k, i| u[k + i * n]);
    backward(n, x, |k, i| u[i + k * n]);
}

/// Inverts the upper triangle in place.
fn invert_upper(u: &mut [f64], n: usize) {
    for j in 0..n {
        let diagonal = 1.0 / u[j + j * n];
        u[j + j * n] = diagonal;
        for i in 0..j {
            let x = u[i + j * n];
            for k in 0..i {
                u[k + j * n] += x * u[k + i * n];
            }
            u[i + j * n] *= u[i + i * n];
        }
        (0..j).for_each(|i| u[i + j * n] *= -diagonal);
    }
}

/// The upper Cholesky factor of a symmetric positive definite matrix.
pub(crate) struct Cholesky {
    n: usize,
    u: Vec<f64>,
}

impl Cholesky {
    /// Factors a matrix; `None` if it is not symmetric with a positive diagonal, or not positive definite.
    pub(crate) fn new(a: &[f64], n: usize) -> Option<Cholesky> {
        let symmetric = (0..n).all(|j| a[j + j * n] > 0.0 && (0..j).all(|i| a[i + j * n] == a[j + i * n]));
        if !symmetric {
            return None;
        }
        let mut u = a.to_vec();
        let products = |u: &[f64], j: usize, q: usize| (0..j).fold(0.0, |sum, k| sum + u[k + j * n] * u[k + q * n]);
        for j in 0..n {
            let left = u[j + j * n] - products(&u, j, j);
            if !(left > 0.0) {
                return None;
            }
            let root = left.sqrt();
            u[j + j * n] = root;
            let factor = 1.0 / root;
            for q in j + 1..n {
                u[j + q * n] = (u[j + q * n] - products(&u, j, q)) * factor;
            }
        }
        Some(Cholesky { n, u })
    }

    /// The determinant.
    pub(crate) fn determinant(&self) -> f64 {
        let root = (0..self.n).fold(1.0, |product, i| product * self.u[i + i * self.n]);
        root * root
    }

    /// Solves systems, column by column in place.
    pub(crate) fn solve(&self, columns: &mut [f64]) {
        let (n, u) = (self.n, &self.u);
        for x in columns.chunks_exact_mut(n) {
            both_of_cholesky(u, n, x);
        }
    }

    /// Returns the inverse: the inverse factor times its transpose.
    pub(crate) fn inverse(&self) -> Vec<f64> {
        let n = self.n;
        let mut u = self.u.clone();
        invert_upper(&mut u, n);
        for i in 0..n {
            let diagonal = u[i + i * n];
            (0..=i).for_each(|k| u[k + i * n] *= diagonal);
            u[i + i * n] += dot((i + 1..n).map(|k| (u[i + k * n], u[i + k * n])));
            // Subtracting the negated elements adds them.
            let x: Vec<f64> = (i + 1..n).map(|k| -u[i + k * n]).collect();
            let (before, after) = u.split_at_mut((i + 1) * n);
            less(&mut before[i * n..i * n + i], after, n, &x, i & !3);
        }
        for j in 0..n {
            (0..j).for_each(|i| u[j + i * n] = u[i + j * n]);
        }
        u
    }
}

/// Returns the inverse of a small matrix; `None` if there is none, or if the matrix is not small.
pub(crate) fn inverse(a: &[f64], n: usize) -> Option<Vec<f64>> {
    if n == 0 || n > ROWS_MAX || a.iter().any(|x| !x.is_finite()) {
        return None;
    }
    if let Some(factor) = Cholesky::new(a, n) {
        return Some(factor.inverse());
    }
    let factors = Lu::new(a, n);
    (!factors.is_singular()).then(|| factors.inverse())
}

/// Returns the solutions of small systems, one for each column of `b`; `None` if [`inverse`] gives none.
pub(crate) fn solve(a: &[f64], n: usize, b: &[f64]) -> Option<Vec<f64>> {
    if n == 0 || n > ROWS_MAX || a.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let mut x = b.to_vec();
    if let Some(factor) = Cholesky::new(a, n) {
        factor.solve(&mut x);
        return Some(x);
    }
    let factors = Lu::new(a, n);
    if factors.is_singular() {
        return None;
    }
    factors.solve(&mut x);
    Some(x)
}

/// The reciprocal condition number above which no further check is needed. It is far from the numbers that cause a
/// warning, even if the estimate is too good by some orders of magnitude.
const SOUND: f64 = 1e-10;

/// Does the same as [`solve`] for systems that are far from singular; `None` for systems that may be singular.
pub(crate) fn solve_sound(a: &[f64], n: usize, b: &[f64]) -> Option<Vec<f64>> {
    if n == 0 || n > ROWS_MAX || a.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let norm = a.chunks_exact(n).map(|c| c.iter().map(|x| x.abs()).sum()).fold(0.0, f64::max);
    let mut x = b.to_vec();
    if let Some(factor) = Cholesky::new(a, n) {
        let inverse = inverse_norm(n, |y| factor.solve(y), |y| factor.solve(y));
        (1.0 / (norm * inverse) > SOUND).then(|| factor.solve(&mut x))?;
        return Some(x);
    }
    let factors = Lu::new(a, n);
    if factors.is_singular() {
        return None;
    }
    let inverse = inverse_norm(n, |y| factors.solve(y), |y| factors.solve_transposed(y));
    (1.0 / (norm * inverse) > SOUND).then(|| factors.solve(&mut x))?;
    Some(x)
}

/// Estimates the 1-norm of the inverse from below, by a few solutions of the system and of its transpose (Hager,
/// "Condition estimates", 1984; Higham's last vector, 1988).
fn inverse_norm(n: usize, solve: impl Fn(&mut [f64]), solve_transposed: impl Fn(&mut [f64])) -> f64 {
    let sum = |x: &[f64]| x.iter().map(|x| x.abs()).sum::<f64>();
    let mut x = vec![1.0 / n as f64; n];
    let mut most = 0.0;
    let mut last = usize::MAX;
    for _ in 0..5 {
        solve(&mut x);
        let norm = sum(&x);
        if !(norm > most) {
            break;
        }
        most = norm;
        x.iter_mut().for_each(|x| *x = if *x < 0.0 { -1.0 } else { 1.0 });
        solve_transposed(&mut x);
        let steepest = (1..n).fold(0, |best, i| if x[i].abs() > x[best].abs() { i } else { best });
        if steepest == last {
            break;
        }
        last = steepest;
        x.fill(0.0);
        x[steepest] = 1.0;
    }
    let mut x: Vec<f64> =
        (0..n).map(|i| (1.0 + i as f64 / (n.max(2) - 1) as f64) * if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    solve(&mut x);
    let other = 2.0 * sum(&x) / (3.0 * n as f64);
    if other > most || other.is_nan() { other } else { most }
}

/// Returns the determinant of a small matrix; `None` if the matrix is not small.
pub(crate) fn determinant(a: &[f64], n: usize) -> Option<f64> {
    if n == 0 || n > ROWS_MAX || a.iter().any(|x| !x.is_finite()) {
        return None;
    }
    // The determinant of a triangular matrix is the product of its diagonal.
    let zero = |below: bool| (0..n * n).all(|k| (if below { k % n <= k / n } else { k % n >= k / n }) || a[k] == 0.0);
    if zero(true) || zero(false) {
        return Some((0..n).map(|i| a[i + i * n]).product());
    }
    Some(Cholesky::new(a, n).map_or_else(|| Lu::new(a, n).determinant(), |factor| factor.determinant()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_of_inverses_are_estimated_within_a_small_factor_and_unsound_systems_are_left_to_others() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) % 101) as f64 - 50.0
        };
        for n in 2..=ROWS_MAX {
            let a: Vec<f64> = (0..n * n).map(|_| random()).collect();
            let lu = Lu::new(&a, n);
            let estimate = inverse_norm(n, |y| lu.solve(y), |y| lu.solve_transposed(y));
            let exact = lu.inverse().chunks(n).map(|c| c.iter().map(|x| x.abs()).sum()).fold(0.0, f64::max);
            assert!(estimate <= exact * 1.000001 && estimate * 4.0 >= exact, "{n}: {estimate} of {exact}");
            let mut b: Vec<f64> = (0..n).map(|i| i as f64).collect();
            let sound = solve_sound(&a, n, &b).unwrap();
            lu.solve(&mut b);
            assert_eq!(sound, b);
        }
        assert!(solve_sound(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 3, &[1.0, 2.0, 3.0]).is_none());
        assert!(solve_sound(&[1.0, 1.0, 1.0, 1.0 + 1e-13], 2, &[1.0, 2.0]).is_none());
    }

    /// Compares with the bits of Octave 7.3 with OpenBLAS.
    #[test]
    fn small_inverses_and_solutions_have_the_bits_of_octaves() {
        let a = [2.0, 1.0, 1.0, 1.0, 3.0, 0.0, 1.0, 2.0, 0.0];
        let inverse = [
            0.0,
            -2.0000000000000004,
            3.0000000000000004,
            0.0,
            1.0000000000000002,
            -1.0000000000000002,
            1.0,
            3.0000000000000009,
            -5.0000000000000009,
        ];
        assert_eq!(Lu::new(&a, 3).inverse(), inverse);
        assert_eq!(Lu::new(&a, 3).determinant(), -0.99999999999999978);
        let mut x = [5.0, 6.0];
        Lu::new(&[1.0, 3.0, 2.0, 4.0], 2).solve(&mut x);
        assert_eq!(x, [-3.9999999999999987, 4.499999999999999]);
        let spd = Cholesky::new(&[4.0, 2.0, 2.0, 3.0], 2).unwrap();
        assert_eq!(spd.determinant(), 8.000000000000002);
        assert!(Cholesky::new(&[1.0, 2.0, 2.0, 1.0], 2).is_none());
        assert!(Lu::new(&[1.0, 2.0, 2.0, 4.0], 2).is_singular());
    }
}

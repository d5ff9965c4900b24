//! Eigenvalues and eigenvectors of a real symmetric matrix, with the signs that LAPACK's `dsyev` gives them.
//!
//! In: a finite symmetric matrix whose squares neither overflow nor vanish. Out: eigenvalues in rising order, and
//! orthonormal vectors. Must hold: reflections and rotations come in the order of `dsyev` (for an upper triangle),
//! which fixes the sign of every vector.

use super::reflections::{Arithmetic, Plain, reflect_rows};
use super::rotations::{Rotation, Sweep, reflector, rotation, swap_columns};
use faer::Mat;

/// The most passes for each eigenvalue.
const PASSES_MAX: usize = 30;
const EPSILON: f64 = f64::EPSILON / 2.0;

/// Returns eigenvalues in rising order, and their vectors if wanted; `None` if they do not converge.
pub(crate) fn decompose(a: &Mat<f64>, with_vectors: bool) -> Option<(Vec<f64>, Mat<f64>)> {
    let (d, e, z) = tridiagonal(a.clone(), with_vectors);
    let mut work = Work { d, e, z };
    work.diagonalize()?;
    for i in 0..work.d.len() {
        let mut least = i;
        for j in i + 1..work.d.len() {
            if work.d[j] < work.d[least] {
                least = j;
            }
        }
        if least != i {
            work.d.swap(i, least);
            swap_columns(&mut work.z, i, least);
        }
    }
    Some((work.d, work.z))
}

/// Reduces the matrix to tridiagonal form by reflections from the last column to the first. Returns the diagonal, the
/// one beside it, and the vectors.
fn tridiagonal(mut a: Mat<f64>, with_vectors: bool) -> (Vec<f64>, Vec<f64>, Mat<f64>) {
    let n = a.nrows();
    let mut e = vec![0.0; n.saturating_sub(1)];
    let mut kept = Vec::new();
    for i in (0..n.saturating_sub(1)).rev() {
        // The element beside the diagonal comes first, so the column is read upwards.
        let column: Vec<f64> = (0..=i).rev().map(|k| a[(k, i + 1)]).collect();
        let (mut v, tau, beta) = reflector(&column);
        v.reverse();
        e[i] = beta;
        if tau != 0.0 {
            let mut x = vec![Plain::START; i + 1];
            for (c, v) in v.iter().enumerate() {
                Plain::add(&mut x, *v, &a.col_as_slice(c)[..=i]);
            }
            x.iter_mut().for_each(|x| *x *= tau);
            let along = -0.5 * tau * x.iter().zip(&v).map(|(x, v)| x * v).sum::<f64>();
            x.iter_mut().zip(&v).for_each(|(x, v)| *x += along * v);
            for c in 0..=i {
                let column = a.col_as_slice_mut(c)[..=i].iter_mut();
                column.zip(&v).zip(&x).for_each(|((a, vr), xr)| *a -= vr * x[c] + xr * v[c]);
            }
        }
        kept.push((v, tau));
    }
    let d = (0..n).map(|i| a[(i, i)]).collect();
    // If vectors are not wanted, the iteration rotates empty columns.
    if !with_vectors {
        return (d, e, Mat::zeros(0, n));
    }
    let mut z = Mat::identity(n, n);
    for (v, tau) in kept.iter().rev() {
        reflect_rows::<Plain>(&mut z, 0, 0..n, v, *tau);
    }
    (d, e, z)
}

struct Work {
    d: Vec<f64>,
    e: Vec<f64>,
    z: Mat<f64>,
}

impl Work {
    /// Does the implicit QL or QR iteration block by block, each from its smaller end.
    fn diagonalize(&mut self) -> Option<()> {
        let n = self.d.len();
        let mut left = PASSES_MAX * n;
        let mut first = 0;
        while first < n {
            if first > 0 {
                self.e[first - 1] = 0.0;
            }
            let end = self.block_end(first);
            let (low, high) = (first, end);
            first = end + 1;
            if low == high {
                continue;
            }
            let done = match self.d[high].abs() < self.d[low].abs() {
                true => self.upwards(high, low, &mut left),
                false => self.downwards(low, high, &mut left),
            };
            done?;
            // A block that was split is gone through again.
            if (low..high).any(|i| self.e[i] != 0.0) {
                first = low;
            }
        }
        Some(())
    }

    fn block_end(&mut self, first: usize) -> usize {
        for m in first..self.d.len() - 1 {
            let size = self.e[m].abs();
            if size == 0.0 {
                return m;
            }
            if size <= self.d[m].abs().sqrt() * self.d[m + 1].abs().sqrt() * EPSILON {
                self.e[m] = 0.0;
                return m;
            }
        }
        self.d.len() - 1
    }

    fn is_small(&self, e: usize, p: usize, q: usize) -> bool {
        self.e[e].powi(2) <= (EPSILON * EPSILON * self.d[p].abs()) * self.d[q].abs() + f64::MIN_POSITIVE
    }

    /// Does QL steps, which find eigenvalues from `l` on.
    fn downwards(&mut self, mut l: usize, end: usize, left: &mut usize) -> Option<()> {
        while l <= end {
            let m = (l..end).find(|&m| self.is_small(m, m, m + 1)).unwrap_or(end);
            if m < end {
                self.e[m] = 0.0;
            }
            if m == l {
                l += 1;
                continue;
            }
            if m == l + 1 {
                let (large, small, turn) = symmetric_2x2(self.d[l], self.e[l], self.d[l + 1]);
                turn.columns(&mut self.z, l);
                (self.d[l], self.d[l + 1], self.e[l]) = (large, small, 0.0);
                l += 2;
                continue;
            }
            *left = left.checked_sub(1)?;
            let start = (self.d[l + 1] - self.d[l]) / (2.0 * self.e[l]);
            let r = start.hypot(1.0);
            let mut g = self.d[m] - self.d[l] + self.e[l] / (start + r.copysign(start));
            let (mut turn, mut p) = (Rotation { c: 1.0, s: 1.0 }, 0.0);
            let mut sweep = Sweep::new(l);
            for i in (l..m).rev() {
                let (f, b) = (turn.s * self.e[i], turn.c * self.e[i]);
                let r;
                (turn, r) = rotation(g, f);
                if i != m - 1 {
                    self.e[i + 1] = r;
                }
                g = self.d[i + 1] - p;
                let r = (self.d[i] - g) * turn.s + 2.0 * turn.c * b;
                p = turn.s * r;
                self.d[i + 1] = g + p;
                g = turn.c * r - b;
                sweep.push(turn.inverse());
            }
            sweep.backward(&mut self.z);
            self.d[l] -= p;
            self.e[l] = g;
        }
        Some(())
    }

    /// Does QR steps, which find eigenvalues from `l` back to `end`.
    fn upwards(&mut self, l: usize, end: usize, left: &mut usize) -> Option<()> {
        // This is the row's number plus one, so that the row before the first has a number.
        let mut above = l + 1;
        while above > end {
            let l = above - 1;
            let m = (end + 1..=l).rev().find(|&m| self.is_small(m - 1, m, m - 1)).unwrap_or(end);
            if m > end {
                self.e[m - 1] = 0.0;
            }
            if m == l {
                above -= 1;
                continue;
            }
            if m + 1 == l {
                let (large, small, turn) = symmetric_2x2(self.d[m], self.e[m], self.d[l]);
                turn.columns(&mut self.z, m);
                (self.d[m], self.d[l], self.e[m]) = (large, small, 0.0);
                above -= 2;
                continue;
            }
            *left = left.checked_sub(1)?;
            let start = (self.d[l - 1] - self.d[l]) / (2.0 * self.e[l - 1]);
            let r = start.hypot(1.0);
            let mut g = self.d[m] - self.d[l] + self.e[l - 1] / (start + r.copysign(start));
            let (mut turn, mut p) = (Rotation { c: 1.0, s: 1.0 }, 0.0);
            let mut sweep = Sweep::new(m);
            for i in m..l {
                let (f, b) = (turn.s * self.e[i], turn.c * self.e[i]);
                let r;
                (turn, r) = rotation(g, f);
                if i != m {
                    self.e[i - 1] = r;
                }
                g = self.d[i] - p;
                let r = (self.d[i + 1] - g) * turn.s + 2.0 * turn.c * b;
                p = turn.s * r;
                self.d[i] = g + p;
                g = turn.c * r - b;
                sweep.push(turn);
            }
            sweep.forward(&mut self.z);
            self.d[l] -= p;
            self.e[l - 1] = g;
        }
        Some(())
    }
}

/// Returns the eigenvalues of `[a b; b c]`, the one of larger magnitude first, and the rotation that makes it diagonal.
fn symmetric_2x2(a: f64, b: f64, c: f64) -> (f64, f64, Rotation) {
    let (sum, difference, twice) = (a + c, a - c, b + b);
    let (larger, smaller) = if a.abs() > c.abs() { (a, c) } else { (c, a) };
    let (adf, ab) = (difference.abs(), twice.abs());
    let root = match adf.total_cmp(&ab) {
        std::cmp::Ordering::Greater => adf * (1.0 + (ab / adf).powi(2)).sqrt(),
        std::cmp::Ordering::Less => ab * (1.0 + (adf / ab).powi(2)).sqrt(),
        std::cmp::Ordering::Equal => ab * 2f64.sqrt(),
    };
    let (first, second, negative) = if sum == 0.0 {
        (0.5 * root, -0.5 * root, false)
    } else {
        let first = 0.5 * (sum + root.copysign(sum));
        (first, (larger / first) * smaller - (b / first) * b, sum < 0.0)
    };
    let cs = if difference >= 0.0 { difference + root } else { difference - root };
    let mut turn = if cs.abs() > ab {
        let t = -twice / cs;
        let s = 1.0 / (1.0 + t * t).sqrt();
        Rotation { c: t * s, s }
    } else if ab == 0.0 {
        Rotation::NONE
    } else {
        let t = -cs / twice;
        let c = 1.0 / (1.0 + t * t).sqrt();
        Rotation { c, s: t * c }
    };
    if negative == (difference < 0.0) {
        turn = Rotation { c: -turn.s, s: turn.c };
    }
    (first, second, turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the matrix only scales each vector, that the vectors are orthonormal, and that the values rise.
    #[test]
    fn vectors_are_scaled_by_their_values() {
        for n in [1, 2, 3, 4, 7, 20] {
            let a = Mat::from_fn(n, n, |i, j| ((i + j) as f64).sin() + ((i * j) as f64).cos());
            let (values, z) = decompose(&a, true).unwrap();
            assert_eq!(decompose(&a, false).unwrap().0, values);
            assert!(values.windows(2).all(|w| w[0] <= w[1]));
            for j in 0..n {
                for i in 0..n {
                    let product: f64 = (0..n).map(|k| a[(i, k)] * z[(k, j)]).sum();
                    assert!((product - values[j] * z[(i, j)]).abs() < 1e-12 * n as f64, "{n}");
                    let along: f64 = (0..n).map(|k| z[(k, i)] * z[(k, j)]).sum();
                    assert!((along - f64::from(u8::from(i == j))).abs() < 1e-13 * n as f64, "{n}");
                }
            }
        }
    }

    #[test]
    fn signs_are_as_lapack_has_them() {
        let a =
            Mat::from_fn(4, 4, |i, j| [[5., 2., 1., 0.], [2., 6., 3., 1.], [1., 3., 7., 2.], [0., 1., 2., 8.]][i][j]);
        let (_, z) = decompose(&a, true).unwrap();
        let signs: Vec<bool> = (0..4).map(|j| z[(3, j)] > 0.0).collect();
        assert_eq!(signs, [false, false, false, true]);
    }
}

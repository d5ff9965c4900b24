//! Singular values and vectors of a real matrix, with the signs that LAPACK's `dgesvd` gives them.
//!
//! In: a finite matrix. Out: singular values in falling order, and the left and right vectors. Must hold: reflections
//! and rotations come in the order of `dgesvd`, which fixes the sign of every vector (Golub and Kahan, 1965; Demmel and
//! Kahan, 1990), so that scripts print the same as with LAPACK. Matrices beyond `SIGNED_MAX` are decomposed by a
//! library.

use super::reflections::{Fused, reflect_columns, reflect_rows};
use super::rotations::{Rotation, Sweep, reflector, rotation, singular_2x2, smallest_2x2, swap_columns};
use faer::Mat;
use std::cmp::Ordering;

/// If a matrix is longer in one direction by this factor, an orthogonal factorisation comes first.
const ELONGATED: f64 = 1.6;
/// The most passes for each singular value.
const PASSES_MAX: usize = 6;

/// `a = u diag(s) v'`; `u` and `v` are square, or have as many columns as `s`.
pub(crate) struct Singular {
    pub u: Mat<f64>,
    pub s: Vec<f64>,
    pub v: Mat<f64>,
}

/// Decomposes a finite, nonempty matrix whose squares neither overflow nor vanish (`tamed`); `None` if it does not
/// converge.
pub(crate) fn decompose(a: &Mat<f64>, thin: bool) -> Option<Singular> {
    let (m, n) = (a.nrows(), a.ncols());
    let long = (m.min(n) as f64 * ELONGATED) as usize;
    if m >= n && m >= long && m > n {
        let (q, r) = orthogonal(a.clone(), if thin { n } else { m });
        let core = bidiagonal(r.subrows(0, n).to_owned(), n, n)?;
        let u = Mat::from_fn(m, q.ncols(), |i, j| match j < n {
            true => (0..n).map(|k| q[(i, k)] * core.u[(k, j)]).sum(),
            false => q[(i, j)],
        });
        return Some(Singular { u, ..core });
    }
    if n > m && n >= long {
        let (q, r) = orthogonal(a.transpose().to_owned(), if thin { m } else { n });
        let core = bidiagonal(r.subrows(0, m).transpose().to_owned(), m, m)?;
        let v = Mat::from_fn(n, q.ncols(), |i, j| match j < m {
            true => (0..m).map(|k| q[(i, k)] * core.v[(k, j)]).sum(),
            false => q[(i, j)],
        });
        return Some(Singular { v, ..core });
    }
    let k = m.min(n);
    bidiagonal(a.clone(), if thin { k } else { m }, if thin { k } else { n })
}

/// Returns the singular values of [`decompose`], without the vectors.
pub(crate) fn values(a: &Mat<f64>) -> Option<Vec<f64>> {
    let (m, n) = (a.nrows(), a.ncols());
    let k = m.min(n);
    let long = (k as f64 * ELONGATED) as usize;
    let core = match m.cmp(&n) {
        Ordering::Greater if m >= long => orthogonal(a.clone(), 0).1.subrows(0, k).to_owned(),
        Ordering::Less if n >= long => orthogonal(a.transpose().to_owned(), 0).1.subrows(0, k).transpose().to_owned(),
        _ => a.clone(),
    };
    Some(bidiagonal(core, 0, 0)?.s)
}

/// Factors `a = q r` by reflections, and returns the first `columns` columns of q.
fn orthogonal(mut a: Mat<f64>, columns: usize) -> (Mat<f64>, Mat<f64>) {
    let (m, n) = (a.nrows(), a.ncols());
    let mut kept = Vec::new();
    for j in 0..n.min(m) {
        let column: Vec<f64> = (j..m).map(|i| a[(i, j)]).collect();
        let (v, tau, beta) = reflector(&column);
        reflect_rows::<Fused>(&mut a, j, j + 1..n, &v, tau);
        a[(j, j)] = beta;
        (j + 1..m).for_each(|i| a[(i, j)] = 0.0);
        kept.push((j, v, tau));
    }
    (accumulated(m, columns, &kept), a)
}

/// Multiplies reflections, each of which begins at its own row. Columns before that row are still zero there.
fn accumulated(rows: usize, columns: usize, kept: &[(usize, Vec<f64>, f64)]) -> Mat<f64> {
    let mut q = Mat::from_fn(rows, columns, |i, j| f64::from(u8::from(i == j)));
    for (at, v, tau) in kept.iter().rev() {
        reflect_rows::<Fused>(&mut q, *at, *at..columns, v, *tau);
    }
    q
}

/// Reduces the matrix to two diagonals by reflections from both sides, and then computes the singular values and as
/// many vectors as are wanted.
fn bidiagonal(mut a: Mat<f64>, left: usize, right: usize) -> Option<Singular> {
    let (m, n) = (a.nrows(), a.ncols());
    let k = m.min(n);
    let (mut d, mut e) = (vec![0.0; k], vec![0.0; k.saturating_sub(1)]);
    let (mut us, mut vs) = (Vec::new(), Vec::new());
    let upper = m >= n;
    for i in 0..k {
        let mut from_left = |a: &mut Mat<f64>, row: usize| {
            let (v, tau, beta) = reflector(&(row..m).map(|r| a[(r, i)]).collect::<Vec<_>>());
            reflect_rows::<Fused>(a, row, i + 1..n, &v, tau);
            us.push((row, v, tau));
            beta
        };
        let mut from_right = |a: &mut Mat<f64>, column: usize| {
            let (v, tau, beta) = reflector(&(column..n).map(|c| a[(i, c)]).collect::<Vec<_>>());
            reflect_columns::<Fused>(a, i + 1..m, column, &v, tau);
            vs.push((column, v, tau));
            beta
        };
        if upper {
            d[i] = from_left(&mut a, i);
            if i + 1 < n {
                e[i] = from_right(&mut a, i + 1);
            }
        } else {
            d[i] = from_right(&mut a, i);
            if i + 1 < m {
                e[i] = from_left(&mut a, i + 1);
            }
        }
    }
    // If vectors are not wanted, the iteration rotates empty columns.
    let vectors = |rows: usize, columns: usize, kept: &[_]| match columns {
        0 => Mat::zeros(0, k),
        _ => accumulated(rows, columns, kept),
    };
    let (mut u, mut v) = (vectors(m, left, &us), vectors(n, right, &vs));
    if !upper {
        raise(&mut d, &mut e, &mut u);
    }
    diagonalize(&mut d, &mut e, &mut u, &mut v)?;
    order(&mut d, &mut u, &mut v);
    Some(Singular { u, s: d, v })
}

/// Moves the diagonal below the main one to above it.
fn raise(d: &mut [f64], e: &mut [f64], u: &mut Mat<f64>) {
    for i in 0..e.len() {
        let (turn, r) = rotation(d[i], e[i]);
        d[i] = r;
        e[i] = turn.s * d[i + 1];
        d[i + 1] *= turn.c;
        turn.columns(u, i);
    }
}

/// The state of the implicit QR iteration.
struct Diagonals<'a> {
    d: &'a mut [f64],
    e: &'a mut [f64],
    u: &'a mut Mat<f64>,
    v: &'a mut Mat<f64>,
    /// Elements beside the diagonal count as zero up to this magnitude.
    least: f64,
    tolerance: f64,
}

/// Does the implicit QR iteration, without a shift where that is more accurate.
fn diagonalize(d: &mut [f64], e: &mut [f64], u: &mut Mat<f64>, v: &mut Mat<f64>) -> Option<()> {
    let n = d.len();
    let epsilon = f64::EPSILON / 2.0;
    let tolerance = epsilon.powf(-0.125).clamp(10.0, 100.0) * epsilon;
    let mut smallest = d[0].abs();
    let mut mu = smallest;
    for i in 1..n {
        if smallest == 0.0 {
            break;
        }
        mu = d[i].abs() * (mu / (mu + e[i - 1].abs()));
        smallest = smallest.min(mu);
    }
    let least =
        (tolerance * (smallest / (n as f64).sqrt())).max(PASSES_MAX as f64 * n as f64 * n as f64 * f64::MIN_POSITIVE);
    let mut work = Diagonals { d, e, u, v, least, tolerance };
    let mut left = PASSES_MAX * n * n;
    let mut end = n;
    let mut before: Option<(usize, usize)> = None;
    let mut down = true;
    while end > 1 {
        if left == 0 {
            return None;
        }
        let m = end - 1;
        let (start, largest) = work.block(m);
        if start == m {
            end -= 1;
            continue;
        }
        if start + 1 == m {
            work.pair(start);
            end -= 2;
            continue;
        }
        // A new block is gone through from its larger end to its smaller one.
        if before.is_none_or(|(l, h)| start > h || m < l) {
            down = work.d[start].abs() >= work.d[m].abs();
        }
        let Some(smallest) = work.converged(start, m, down) else { continue };
        before = Some((start, m));
        let shift = work.shift(start, m, down, smallest, largest, n);
        left = left.saturating_sub(m - start);
        if shift == 0.0 { work.unshifted(start, m, down) } else { work.shifted(start, m, down, shift) }
    }
    Some(())
}

impl Diagonals<'_> {
    /// Returns the beginning of the block that ends at `m`, and the largest of its elements.
    fn block(&mut self, m: usize) -> (usize, f64) {
        let mut largest = self.d[m].abs();
        for l in (0..m).rev() {
            let (diagonal, above) = (self.d[l].abs(), self.e[l].abs());
            if above <= self.least {
                self.e[l] = 0.0;
                return (l + 1, largest);
            }
            largest = largest.max(diagonal).max(above);
        }
        (0, largest)
    }

    /// Solves a block of two by two directly.
    fn pair(&mut self, l: usize) {
        let two = singular_2x2(self.d[l], self.e[l], self.d[l + 1]);
        (self.d[l], self.e[l], self.d[l + 1]) = (two.largest, 0.0, two.smallest);
        two.right.columns(self.v, l);
        two.left.columns(self.u, l);
    }

    /// Sets negligible elements to zero and then returns `None`; otherwise returns a bound of the smallest singular
    /// value.
    fn converged(&mut self, l: usize, m: usize, down: bool) -> Option<f64> {
        let last = if down { m - 1 } else { l };
        let corner = if down { m } else { l };
        if self.e[last].abs() <= self.tolerance * self.d[corner].abs() {
            self.e[last] = 0.0;
            return None;
        }
        let mut mu = self.d[if down { l } else { m }].abs();
        let mut smallest = mu;
        for k in 0..m - l {
            let (at, next) = if down { (l + k, l + k + 1) } else { (m - 1 - k, m - 1 - k) };
            if self.e[at].abs() <= self.tolerance * mu {
                self.e[at] = 0.0;
                return None;
            }
            mu = self.d[next].abs() * (mu / (mu + self.e[at].abs()));
            smallest = smallest.min(mu);
        }
        Some(smallest)
    }

    fn shift(&self, l: usize, m: usize, down: bool, smallest: f64, largest: f64, n: usize) -> f64 {
        let epsilon = f64::EPSILON / 2.0;
        if n as f64 * self.tolerance * (smallest / largest) <= epsilon.max(0.01 * self.tolerance) {
            return 0.0;
        }
        let (first, shift) = match down {
            true => (self.d[l].abs(), smallest_2x2(self.d[m - 1], self.e[m - 1], self.d[m])),
            false => (self.d[m].abs(), smallest_2x2(self.d[l], self.e[l], self.d[l + 1])),
        };
        if first > 0.0 && (shift / first).powi(2) < epsilon { 0.0 } else { shift }
    }

    fn unshifted(&mut self, l: usize, m: usize, down: bool) {
        let (mut first, mut second) = (Sweep::new(l), Sweep::new(l));
        let (mut now, mut old) = (Rotation::NONE, Rotation::NONE);
        if down {
            for i in l..m {
                let (turn, r) = rotation(self.d[i] * now.c, self.e[i]);
                now = turn;
                if i > l {
                    self.e[i - 1] = old.s * r;
                }
                (old, self.d[i]) = rotation(old.c * r, self.d[i + 1] * now.s);
                first.push(now);
                second.push(old);
            }
            let h = self.d[m] * now.c;
            (self.d[m], self.e[m - 1]) = (h * old.c, h * old.s);
            first.forward(self.v);
            second.forward(self.u);
            self.drop_small(m - 1);
        } else {
            for i in (l + 1..=m).rev() {
                let (turn, r) = rotation(self.d[i] * now.c, self.e[i - 1]);
                now = turn;
                if i < m {
                    self.e[i] = old.s * r;
                }
                (old, self.d[i]) = rotation(old.c * r, self.d[i - 1] * now.s);
                first.push(now.inverse());
                second.push(old.inverse());
            }
            let h = self.d[l] * now.c;
            (self.d[l], self.e[l]) = (h * old.c, h * old.s);
            second.backward(self.v);
            first.backward(self.u);
            self.drop_small(l);
        }
    }

    fn shifted(&mut self, l: usize, m: usize, down: bool, shift: f64) {
        let (mut first, mut second) = (Sweep::new(l), Sweep::new(l));
        let start = |d: f64| (d.abs() - shift) * (1f64.copysign(d) + shift / d);
        if down {
            let (mut f, mut g) = (start(self.d[l]), self.e[l]);
            for i in l..m {
                let (right, r) = rotation(f, g);
                if i > l {
                    self.e[i - 1] = r;
                }
                f = right.c * self.d[i] + right.s * self.e[i];
                self.e[i] = right.c * self.e[i] - right.s * self.d[i];
                g = right.s * self.d[i + 1];
                self.d[i + 1] *= right.c;
                let (left, r) = rotation(f, g);
                self.d[i] = r;
                f = left.c * self.e[i] + left.s * self.d[i + 1];
                self.d[i + 1] = left.c * self.d[i + 1] - left.s * self.e[i];
                if i + 1 < m {
                    g = left.s * self.e[i + 1];
                    self.e[i + 1] *= left.c;
                }
                first.push(right);
                second.push(left);
            }
            self.e[m - 1] = f;
            first.forward(self.v);
            second.forward(self.u);
            self.drop_small(m - 1);
        } else {
            let (mut f, mut g) = (start(self.d[m]), self.e[m - 1]);
            for i in (l + 1..=m).rev() {
                let (right, r) = rotation(f, g);
                if i < m {
                    self.e[i] = r;
                }
                f = right.c * self.d[i] + right.s * self.e[i - 1];
                self.e[i - 1] = right.c * self.e[i - 1] - right.s * self.d[i];
                g = right.s * self.d[i - 1];
                self.d[i - 1] *= right.c;
                let (left, r) = rotation(f, g);
                self.d[i] = r;
                f = left.c * self.e[i - 1] + left.s * self.d[i - 1];
                self.d[i - 1] = left.c * self.d[i - 1] - left.s * self.e[i - 1];
                if i > l + 1 {
                    g = left.s * self.e[i - 2];
                    self.e[i - 2] *= left.c;
                }
                first.push(right.inverse());
                second.push(left.inverse());
            }
            self.e[l] = f;
            self.drop_small(l);
            second.backward(self.v);
            first.backward(self.u);
        }
    }

    fn drop_small(&mut self, at: usize) {
        if self.e[at].abs() <= self.least {
            self.e[at] = 0.0;
        }
    }
}

/// Makes the singular values nonnegative, and sorts them in falling order.
fn order(d: &mut [f64], u: &mut Mat<f64>, v: &mut Mat<f64>) {
    for (j, d) in d.iter_mut().enumerate().filter(|(_, d)| d.is_sign_negative()) {
        *d = -*d;
        v.col_as_slice_mut(j).iter_mut().for_each(|x| *x = -*x);
    }
    for last in (1..d.len()).rev() {
        let mut at = 0;
        for j in 1..=last {
            if d[j] <= d[at] {
                at = j;
            }
        }
        if at != last {
            d.swap(at, last);
            swap_columns(u, at, last);
            swap_columns(v, at, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(p: &Singular, m: usize, n: usize) -> Mat<f64> {
        Mat::from_fn(m, n, |i, j| p.s.iter().enumerate().map(|(k, s)| p.u[(i, k)] * s * p.v[(j, k)]).sum())
    }

    /// Checks that matrices of every shape are the product of their parts, and that the vectors are orthonormal.
    #[test]
    fn the_parts_multiply_to_the_matrix() {
        for (m, n) in [(1, 1), (2, 2), (3, 1), (1, 3), (5, 4), (4, 5), (9, 3), (3, 9), (12, 12), (30, 25)] {
            let a = Mat::from_fn(m, n, |i, j| ((i * 7 + j * 3 + i * j) as f64).sin());
            for thin in [false, true] {
                let p = decompose(&a, thin).unwrap();
                let back = product(&p, m, n);
                let k = m.min(n);
                assert_eq!((p.u.ncols(), p.v.ncols()), if thin { (k, k) } else { (m, n) });
                for i in 0..m {
                    for j in 0..n {
                        assert!((back[(i, j)] - a[(i, j)]).abs() < 1e-13 * (m + n) as f64, "{m}x{n}");
                    }
                }
                for i in 0..p.u.ncols() {
                    for j in 0..p.u.ncols() {
                        let along: f64 = (0..m).map(|r| p.u[(r, i)] * p.u[(r, j)]).sum();
                        assert!((along - f64::from(u8::from(i == j))).abs() < 1e-13 * m as f64);
                    }
                }
                assert!(p.s.windows(2).all(|w| w[0] >= w[1]) && p.s[k - 1] >= 0.0);
                assert_eq!(values(&a).unwrap(), p.s);
            }
        }
    }

    #[test]
    fn signs_are_as_lapack_has_them() {
        let p = decompose(&Mat::from_fn(2, 2, |i, j| (2 * i + j + 1) as f64), false).unwrap();
        assert!(p.u[(0, 0)] < 0.0 && p.u[(0, 1)] < 0.0 && p.v[(0, 0)] < 0.0 && p.v[(0, 1)] > 0.0);
    }
}

//! Eigenvalues of real square matrices that are not symmetric, in the order in which LAPACK's routines return them.
//!
//! In: a finite matrix, column-major. Out: its eigenvalues in the order of the diagonal of its real Schur form, and the
//! unit eigenvectors. Must hold: the steps are those of dgebal, dgehd2, dlahqr, dlanv2 and dtrevc in double precision,
//! so that the eigenvalues deflate in the same places. Another method would be as accurate, but the eigenvalues would
//! be printed in another order.

mod forms;
mod vectors;

pub(crate) use forms::{Factored, hessenberg_form, schur_form};
pub(crate) use vectors::normalise;

use super::reflections::{Columns, Plain, reflect_columns, reflect_rows};
use num_complex::Complex64;

/// The most rows of matrices that are handled here. For larger ones LAPACK uses another algorithm, with another order.
pub(crate) const ROWS_MAX: usize = 75;

/// A square matrix with subscripts from 1, as in the published algorithms.
#[derive(Clone)]
struct Square {
    n: usize,
    data: Vec<f64>,
}

impl Square {
    fn identity(n: usize) -> Self {
        Self { n, data: (0..n * n).map(|k| if k % (n + 1) == 0 { 1.0 } else { 0.0 }).collect() }
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.data[(j - 1) * self.n + i - 1]
    }

    fn of(&mut self, i: usize, j: usize) -> &mut f64 {
        &mut self.data[(j - 1) * self.n + i - 1]
    }

    /// Makes an empty factor, for callers that need no orthogonal factor.
    fn none() -> Self {
        Self { n: 0, data: Vec::new() }
    }

    /// Returns `N` columns from column `j` on.
    fn columns<const N: usize>(&mut self, j: usize) -> [&mut [f64]; N] {
        let mut columns = self.data[(j - 1) * self.n..].chunks_exact_mut(self.n);
        std::array::from_fn(|_| columns.next().unwrap_or_default())
    }

    fn swap(&mut self, a: (usize, usize), b: (usize, usize)) {
        let n = self.n;
        self.data.swap((a.1 - 1) * n + a.0 - 1, (b.1 - 1) * n + b.0 - 1);
    }
}

impl Columns for Square {
    fn column(&self, j: usize) -> &[f64] {
        &self.data[j * self.n..][..self.n]
    }

    fn column_mut(&mut self, j: usize) -> &mut [f64] {
        &mut self.data[j * self.n..][..self.n]
    }
}

/// The real Schur form of a balanced matrix.
struct Form {
    t: Square,
    /// The orthogonal factor.
    z: Square,
    values: Vec<Complex64>,
    balance: Balance,
}

/// The scaling and the exchanges of a balanced matrix.
struct Balance {
    low: usize,
    high: usize,
    /// The factors of the rows from `low` to `high`, and for each other row the number of the row that it was exchanged
    /// with.
    scale: Vec<f64>,
}

/// Returns the eigenvalues and, column by column, the eigenvectors, as LAPACK gives them; `None` if they do not
/// converge.
pub(crate) fn eigen(a: &[f64], n: usize) -> Option<(Vec<Complex64>, Vec<Complex64>)> {
    let form = schur(a, n, Square::identity(n))?;
    let vectors = vectors::vectors(&form);
    Some((form.values, vectors))
}

/// Returns the eigenvalues only.
pub(crate) fn values(a: &[f64], n: usize) -> Option<Vec<Complex64>> {
    Some(schur(a, n, Square::none())?.values)
}

/// Returns the form, and its factor if `z` is the identity. Without the factor, only the eigenvalues are right.
fn schur(a: &[f64], n: usize, mut z: Square) -> Option<Form> {
    let mut t = Square { n, data: a.to_vec() };
    let balance = balanced(&mut t);
    hessenberg(&mut t, &mut z, balance.low, balance.high);
    let mut values: Vec<Complex64> = (1..=n).map(|i| Complex64::new(t.at(i, i), 0.0)).collect();
    triangular(&mut t, &mut z, balance.low, balance.high, &mut values)?;
    Some(Form { t, z, values, balance })
}

/// Exchanges rows and columns so that isolated eigenvalues come to the ends (dgebal, of job P).
fn isolated(a: &mut Square) -> Balance {
    let n = a.n;
    let mut scale = vec![1.0; n + 1];
    let (mut low, mut high) = (1, n);
    let exchange = |a: &mut Square, j: usize, m: usize, low: usize, high: usize| {
        if j != m {
            (1..=high).for_each(|i| a.swap((i, j), (i, m)));
            (low..=n).for_each(|i| a.swap((j, i), (m, i)));
        }
    };
    loop {
        let alone = (1..=high).rev().find(|&j| (1..=high).all(|i| i == j || a.at(j, i) == 0.0));
        let Some(j) = alone else { break };
        scale[high] = j as f64;
        exchange(a, j, high, low, high);
        if high == 1 {
            return Balance { low: 1, high: 1, scale };
        }
        high -= 1;
    }
    loop {
        let alone = (low..=high).find(|&j| (low..=high).all(|i| i == j || a.at(i, j) == 0.0));
        let Some(j) = alone else { break };
        scale[low] = j as f64;
        exchange(a, j, low, low, high);
        low += 1;
    }
    (low..=high).for_each(|i| scale[i] = 1.0);
    Balance { low, high, scale }
}

/// Does the same as [`isolated`], then scales the other rows and columns by powers of 2 until their norms are about
/// equal (dgebal).
fn balanced(a: &mut Square) -> Balance {
    let n = a.n;
    let Balance { low, high, mut scale } = isolated(a);
    let least = f64::MIN_POSITIVE / f64::EPSILON;
    let (small, large) = (least * 2.0, 1.0 / (least * 2.0));
    loop {
        let mut settled = true;
        for i in low..=high {
            let mut c = norm((low..=high).map(|k| a.at(k, i)));
            let mut r = norm((low..=high).map(|k| a.at(i, k)));
            let mut column = (1..=high).map(|k| a.at(k, i).abs()).fold(0.0, f64::max);
            let mut row = (low..=n).map(|k| a.at(i, k).abs()).fold(0.0, f64::max);
            if c == 0.0 || r == 0.0 {
                continue;
            }
            let (mut g, mut f, s) = (r / 2.0, 1.0f64, c + r);
            while c < g && f.max(c).max(column) < large && r.min(g).min(row) > small {
                f *= 2.0;
                c *= 2.0;
                column *= 2.0;
                r /= 2.0;
                g /= 2.0;
                row /= 2.0;
            }
            g = c / 2.0;
            while g >= r && r.max(row) < large && f.min(c).min(g).min(column) > small {
                f /= 2.0;
                c /= 2.0;
                g /= 2.0;
                column /= 2.0;
                r *= 2.0;
                row *= 2.0;
            }
            if c + r >= 0.95 * s
                || f < 1.0 && scale[i] < 1.0 && f * scale[i] <= least
                || f > 1.0 && scale[i] > 1.0 && scale[i] >= 1.0 / least / f
            {
                continue;
            }
            scale[i] *= f;
            settled = false;
            (low..=n).for_each(|k| *a.of(i, k) /= f);
            (1..=high).for_each(|k| *a.of(k, i) *= f);
        }
        if settled {
            return Balance { low, high, scale };
        }
    }
}

fn norm(x: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = x.clone().fold(0.0, |m: f64, v| m.max(v.abs()));
    if most == 0.0 { 0.0 } else { most * x.map(|v| (v / most) * (v / most)).sum::<f64>().sqrt() }
}

/// Makes the reflection that maps the vector to a multiple of the first unit vector (dlarfg). The vector is replaced by
/// that multiple and the rest of the reflection's direction. Returns the reflection's factor.
fn reflection(v: &mut [f64]) -> f64 {
    let rest = norm(v[1..].iter().copied());
    if rest == 0.0 {
        return 0.0;
    }
    let alpha = v[0];
    let beta = -alpha.hypot(rest).copysign(alpha);
    v[1..].iter_mut().for_each(|x| *x /= alpha - beta);
    v[0] = beta;
    (beta - alpha) / beta
}

/// Reduces to Hessenberg form (dgehd2), and collects the reflections.
fn hessenberg(a: &mut Square, z: &mut Square, low: usize, high: usize) {
    let n = a.n;
    for i in low..high {
        let mut v: Vec<f64> = (i + 1..=high).map(|k| a.at(k, i)).collect();
        let tau = reflection(&mut v);
        *a.of(i + 1, i) = v[0];
        (i + 2..=high).for_each(|k| *a.of(k, i) = 0.0);
        v[0] = 1.0;
        reflect_columns::<Plain>(a, 0..high, i, &v, tau);
        if z.n > 0 {
            reflect_columns::<Plain>(z, 0..n, i, &v, tau);
        }
        reflect_rows::<Plain>(a, i, i..n, &v, tau);
    }
}

/// Finds where the matrix between `low` and `high` splits above row `i`: returns the first row of the last part.
fn deflated(h: &Square, low: usize, i: usize, ihi: usize, ilo: usize) -> usize {
    let tiny = f64::MIN_POSITIVE * ((ihi - ilo + 1) as f64 / f64::EPSILON);
    for k in (low + 1..=i).rev() {
        let below = h.at(k, k - 1).abs();
        if below <= tiny {
            return k;
        }
        let mut test = h.at(k - 1, k - 1).abs() + h.at(k, k).abs();
        if test == 0.0 {
            if k >= ilo + 2 {
                test += h.at(k - 1, k - 2).abs();
            }
            if k < ihi {
                test += h.at(k + 1, k).abs();
            }
        }
        if below <= f64::EPSILON * test {
            let above = h.at(k - 1, k).abs();
            let (last, difference) = (h.at(k, k).abs(), (h.at(k - 1, k - 1) - h.at(k, k)).abs());
            let (ab, ba) = (below.max(above), below.min(above));
            let (aa, bb) = (last.max(difference), last.min(difference));
            let s = aa + ab;
            if ba * (ab / s) <= tiny.max(f64::EPSILON * (bb * (aa / s))) {
                return k;
            }
        }
    }
    low
}

/// Returns the two shifts of a step, as real and imaginary parts.
fn shifts(h: &Square, l: usize, i: usize, deflations: usize) -> [f64; 4] {
    let exceptional = |s: f64, corner: f64| (0.75 * s + corner, s, -0.4375 * s, 0.75 * s + corner);
    let (h11, h21, h12, h22) = if deflations.is_multiple_of(20) {
        exceptional(h.at(i, i - 1).abs() + h.at(i - 1, i - 2).abs(), h.at(i, i))
    } else if deflations.is_multiple_of(10) {
        exceptional(h.at(l + 1, l).abs() + h.at(l + 2, l + 1).abs(), h.at(l, l))
    } else {
        (h.at(i - 1, i - 1), h.at(i, i - 1), h.at(i - 1, i), h.at(i, i))
    };
    let s = h11.abs() + h12.abs() + h21.abs() + h22.abs();
    if s == 0.0 {
        return [0.0; 4];
    }
    let (h11, h21, h12, h22) = (h11 / s, h21 / s, h12 / s, h22 / s);
    let tr = (h11 + h22) / 2.0;
    let det = (h11 - tr) * (h22 - tr) - h12 * h21;
    let root = det.abs().sqrt();
    if det >= 0.0 {
        return [tr * s, root * s, tr * s, -root * s];
    }
    let (first, second) = (tr + root, tr - root);
    let near = if (first - h22).abs() <= (second - h22).abs() { first * s } else { second * s };
    [near, 0.0, near, 0.0]
}

/// Returns the first column of the double-shift step, and the row at which it can start.
fn start(h: &Square, l: usize, i: usize, [r1, i1, r2, i2]: [f64; 4]) -> (usize, [f64; 3]) {
    let mut m = i - 2;
    loop {
        let s = (h.at(m, m) - r2).abs() + i2.abs() + h.at(m + 1, m).abs();
        let h21 = h.at(m + 1, m) / s;
        let v = [
            h21 * h.at(m, m + 1) + (h.at(m, m) - r1) * ((h.at(m, m) - r2) / s) - i1 * (i2 / s),
            h21 * (h.at(m, m) + h.at(m + 1, m + 1) - r1 - r2),
            h21 * h.at(m + 2, m + 1),
        ];
        let s = v[0].abs() + v[1].abs() + v[2].abs();
        let v = v.map(|x| x / s);
        if m == l {
            return (m, v);
        }
        let around = h.at(m - 1, m - 1).abs() + h.at(m, m).abs() + h.at(m + 1, m + 1).abs();
        if h.at(m, m - 1).abs() * (v[1].abs() + v[2].abs()) <= f64::EPSILON * v[0].abs() * around {
            return (m, v);
        }
        m -= 1;
    }
}

/// Does the QR iteration with double shifts (dlahqr). Without a factor, only the part that has eigenvalues left is
/// rotated.
fn triangular(h: &mut Square, z: &mut Square, ilo: usize, ihi: usize, values: &mut [Complex64]) -> Option<()> {
    let n = h.n;
    let steps_max = 30 * (ihi - ilo + 1).max(10);
    let mut i = ihi;
    loop {
        let (mut l, mut deflations, mut converged) = (ilo, 0, false);
        for _ in 0..=steps_max {
            l = deflated(h, l, i, ihi, ilo);
            if l > ilo {
                *h.of(l, l - 1) = 0.0;
            }
            if l + 1 >= i {
                converged = true;
                break;
            }
            deflations += 1;
            let (m, v) = start(h, l, i, shifts(h, l, i, deflations));
            sweep(h, z, (l, m, i), v);
        }
        if !converged {
            return None;
        }
        if l == i {
            values[i - 1] = Complex64::new(h.at(i, i), 0.0);
        } else {
            let [c, s] = standard(h, i, values);
            let turn = |x: &mut f64, y: &mut f64| (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
            // Rows and columns outside of the block only matter to the factor.
            if z.n > 0 {
                for j in i + 1..=n {
                    let [x, y] = &mut h.column_mut(j - 1)[i - 2..i] else { continue };
                    turn(x, y);
                }
                for (square, rows) in [(&mut *h, i - 2), (&mut *z, n)] {
                    let [x, y] = square.columns::<2>(i - 1);
                    x[..rows].iter_mut().zip(&mut y[..rows]).for_each(|(x, y)| turn(x, y));
                }
            }
        }
        if l <= ilo {
            return Some(());
        }
        i = l - 1;
    }
}

/// Does one double-shift step on the rows from `l` to `i`, which begins at row `m` with this column.
fn sweep(h: &mut Square, z: &mut Square, (l, m, i): (usize, usize, usize), first: [f64; 3]) {
    for k in m..i {
        let count = 3.min(i - k + 1);
        let mut v = first;
        if k > m {
            (0..count).for_each(|d| v[d] = h.at(k + d, k - 1));
        }
        let t = reflection(&mut v[..count]);
        if k > m {
            *h.of(k, k - 1) = v[0];
            (1..count).for_each(|d| *h.of(k + d, k - 1) = 0.0);
        } else if m > l {
            *h.of(k, k - 1) *= 1.0 - t;
        }
        v[0] = 1.0;
        let [_, v1, v2] = v;
        // Without a factor, nothing outside of these rows and columns matters.
        let (top, last) = if z.n == 0 { (l, i) } else { (1, h.n) };
        match count {
            3 => reflect::<3>(h, z, (k, top, last, i), t, [1.0, v1, v2]),
            _ => reflect::<2>(h, z, (k, top, last, i), t, [1.0, v1]),
        }
    }
}

/// Reflects the rows from `k` on in the columns up to `last`, the columns from `k` on in the rows from `top` on that
/// affect the block ending at row `i`, and the columns of the factor.
fn reflect<const N: usize>(
    h: &mut Square,
    z: &mut Square,
    (k, top, last, i): (usize, usize, usize, usize),
    t: f64,
    v: [f64; N],
) {
    let along = |x: [f64; N]| (1..N).fold(v[0] * x[0], |sum, d| sum + v[d] * x[d]) * t;
    for j in k..=last {
        let Some(x) = h.column_mut(j - 1)[k - 1..].first_chunk_mut::<N>() else { continue };
        let by = along(*x);
        x.iter_mut().zip(v).for_each(|(x, v)| *x -= by * v);
    }
    let all = 0..z.n;
    for (square, rows) in [(&mut *h, top - 1..i.min(k + 3)), (&mut *z, all)] {
        if rows.is_empty() {
            continue;
        }
        let columns = square.columns::<N>(k).map(|column| &mut column[rows.clone()]);
        for row in 0..rows.len() {
            let by = along(std::array::from_fn(|d| columns[d][row]));
            (0..N).for_each(|d| columns[d][row] -= by * v[d]);
        }
    }
}

/// Brings the 2x2 block that ends at row `i` to its standard form (dlanv2): triangular, or with equal diagonal
/// elements. Stores the eigenvalues, and returns the rotation.
fn standard(h: &mut Square, i: usize, values: &mut [Complex64]) -> [f64; 2] {
    let (mut a, mut b, mut c, mut d) = (h.at(i - 1, i - 1), h.at(i - 1, i), h.at(i, i - 1), h.at(i, i));
    let (mut cs, mut sn) = (1.0, 0.0);
    let sign = |x: f64| 1.0f64.copysign(x);
    if c == 0.0 {
    } else if b == 0.0 {
        (cs, sn) = (0.0, 1.0);
        (a, b, c, d) = (d, -c, 0.0, a);
    } else if a - d != 0.0 || sign(b) == sign(c) {
        let difference = a - d;
        let mut p = 0.5 * difference;
        let (most, least) = (b.abs().max(c.abs()), b.abs().min(c.abs()) * sign(b) * sign(c));
        let scale = p.abs().max(most);
        let mut root = p / scale * p + most / scale * least;
        if root >= 4.0 * f64::EPSILON {
            root = p + (scale.sqrt() * root.sqrt()).copysign(p);
            a = d + root;
            d -= most / root * least;
            let tau = c.hypot(root);
            (cs, sn) = (root / tau, c / tau);
            (b, c) = (b - c, 0.0);
        } else {
            let sigma = b + c;
            let tau = sigma.hypot(difference);
            cs = (0.5 * (1.0 + sigma.abs() / tau)).sqrt();
            sn = -(p / (tau * cs)) * sign(sigma);
            let (aa, bb, cc, dd) = (a * cs + b * sn, -a * sn + b * cs, c * cs + d * sn, -c * sn + d * cs);
            (a, b, c, d) = (aa * cs + cc * sn, bb * cs + dd * sn, -aa * sn + cc * cs, -bb * sn + dd * cs);
            let middle = 0.5 * (a + d);
            (a, d) = (middle, middle);
            if c != 0.0 && b == 0.0 {
                (b, c) = (-c, 0.0);
                (cs, sn) = (-sn, cs);
            } else if c != 0.0 && sign(b) == sign(c) {
                let (sab, sac) = (b.abs().sqrt(), c.abs().sqrt());
                p = (sab * sac).copysign(c);
                let tau = 1.0 / (b + c).abs().sqrt();
                (a, d) = (middle + p, middle - p);
                (b, c) = (b - c, 0.0);
                (cs, sn) = (cs * (sab * tau) - sn * (sac * tau), cs * (sac * tau) + sn * (sab * tau));
            }
        }
    }
    (*h.of(i - 1, i - 1), *h.of(i - 1, i), *h.of(i, i - 1)) = (a, b, c);
    *h.of(i, i) = d;
    let imaginary = if c == 0.0 { 0.0 } else { b.abs().sqrt() * c.abs().sqrt() };
    values[i - 2] = Complex64::new(a, imaginary);
    values[i - 1] = Complex64::new(d, if c == 0.0 { 0.0 } else { -imaginary });
    [cs, sn]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the largest element of `A v - v λ` over all pairs.
    fn residual(a: &[f64], n: usize) -> f64 {
        let (values, vectors) = eigen(a, n).expect("it converges");
        let mut worst: f64 = 0.0;
        for (k, value) in values.iter().enumerate() {
            let v = &vectors[k * n..(k + 1) * n];
            for i in 0..n {
                let product: Complex64 = (0..n).map(|j| v[j] * a[j * n + i]).sum();
                worst = worst.max((product - value * v[i]).norm());
            }
        }
        worst
    }

    #[test]
    fn eigenvectors_of_many_matrices_are_eigenvectors() {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as f64 / (1u64 << 31) as f64 - 0.5
        };
        for n in 1..=40 {
            let mut a: Vec<f64> = (0..n * n).map(|_| next()).collect();
            assert!(residual(&a, n) < 1e-12, "{n} rows");
            // With many zeros, some rows and columns are isolated, and balancing moves them to the ends.
            a.iter_mut().enumerate().for_each(|(k, x)| *x = if k % 3 == 0 { *x } else { 0.0 });
            assert!(residual(&a, n) < 1e-12, "{n} rows with zeros");
        }
    }

    #[test]
    fn eigenvalues_stand_where_lapack_leaves_them() {
        let near = |a: &[f64], n: usize, expected: &[f64]| {
            let found = values(a, n).expect("it converges");
            let close = found.iter().zip(expected).all(|(z, x)| (z.re - x).abs() < 1e-9 && z.im == 0.0);
            assert!(close, "{found:?} is not {expected:?}");
        };
        near(&[4.0, 1.0, -2.0, 1.0], 2, &[3.0, 2.0]);
        near(&[8.0, 3.0, 4.0, 1.0, 5.0, 9.0, 6.0, 7.0, 2.0], 3, &[15.0, 24f64.sqrt(), -(24f64.sqrt())]);
        // The diagonal of a triangular matrix stays unchanged.
        near(&[3.0, 0.0, 5.0, 1.0], 2, &[3.0, 1.0]);
        assert_eq!(values(&[0.0; 9], 3).expect("it converges"), [Complex64::new(0.0, 0.0); 3]);
    }
}

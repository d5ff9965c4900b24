//! Computes eigenvectors from the real Schur form, by substitution from the last row up (dtrevc).

use super::{Balance, Form, Square};
use num_complex::Complex64;

/// Returns the unit eigenvectors: those of the Schur form (dtrevc), rotated and scaled back. The largest element of a
/// complex eigenvector is real.
pub(super) fn vectors(form: &Form) -> Vec<Complex64> {
    let (t, n) = (&form.t, form.t.n);
    let mut out = Vec::with_capacity(n * n);
    let mut k = 1;
    while k <= n {
        let value = form.values[k - 1];
        let pair = value.im != 0.0;
        let last = if pair { k + 1 } else { k };
        let mut x = vec![Complex64::new(0.0, 0.0); n + 1];
        if !pair {
            x[k] = Complex64::new(1.0, 0.0);
        } else if t.at(k, k + 1).abs() >= t.at(k + 1, k).abs() {
            x[k] = Complex64::new(1.0, 0.0);
            x[k + 1] = Complex64::new(0.0, value.im / t.at(k, k + 1));
        } else {
            x[k] = Complex64::new(-value.im / t.at(k + 1, k), 0.0);
            x[k + 1] = Complex64::new(0.0, 1.0);
        }
        substitute(t, value, k, last, &mut x);
        let mut vector: Vec<Complex64> = (1..=n).map(|i| (1..=last).map(|j| x[j] * form.z.at(i, j)).sum()).collect();
        form.balance.undo(&mut vector);
        normalise(&mut vector);
        out.extend(&vector);
        if pair {
            out.extend(vector.iter().map(|z| z.conj()));
        }
        k = last + 1;
    }
    out
}

/// Scales a vector to unit length, and makes its largest element real; the sign of that element's real part is kept.
pub(crate) fn normalise(vector: &mut [Complex64]) {
    let length = vector.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
    vector.iter_mut().for_each(|z| *z /= length);
    let at = (0..vector.len()).fold(0, |m, i| if vector[i].norm_sqr() > vector[m].norm_sqr() { i } else { m });
    let largest = vector[at];
    if largest.im != 0.0 {
        let turn = largest.conj() * (1f64.copysign(largest.re) / largest.norm());
        vector.iter_mut().for_each(|z| *z *= turn);
        vector[at].im = 0.0;
    }
}

/// Solves for the elements above row `first` of the vector, from the bottom up. The other elements are known.
fn substitute(t: &Square, value: Complex64, first: usize, last: usize, x: &mut [Complex64]) {
    let largest = t.data.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let least = (f64::EPSILON * (value.re.abs() + value.im.abs())).max(f64::MIN_POSITIVE * largest.max(1.0));
    let right = |x: &[Complex64], row: usize, from: usize| -> Complex64 {
        -(from..=last).map(|j| x[j] * t.at(row, j)).sum::<Complex64>()
    };
    let away = |z: Complex64| if z.norm() < least { Complex64::new(least, 0.0) } else { z };
    let mut j = first;
    while j > 1 {
        j -= 1;
        if j > 1 && t.at(j, j - 1) != 0.0 {
            let (r, s) = (right(x, j - 1, j + 1), right(x, j, j + 1));
            let (a, d) = (t.at(j - 1, j - 1) - value, t.at(j, j) - value);
            let (b, c) = (t.at(j - 1, j), t.at(j, j - 1));
            let determinant = away(a * d - b * c);
            x[j - 1] = (r * d - s * b) / determinant;
            x[j] = (s * a - r * c) / determinant;
            j -= 1;
        } else {
            x[j] = right(x, j, j + 1) / away(t.at(j, j) - value);
        }
        // Scaling avoids an overflow, since only the vector's direction counts.
        let most = x[1..=last].iter().fold(0.0, |m: f64, z| m.max(z.norm()));
        if most > 1e100 {
            x[1..=last].iter_mut().for_each(|z| *z /= most);
        }
    }
}

impl Balance {
    /// Turns the vector into the eigenvector of the matrix before balancing (dgebak).
    fn undo(&self, vector: &mut [Complex64]) {
        let n = vector.len();
        (self.low..=self.high).for_each(|i| vector[i - 1] *= self.scale[i]);
        (1..self.low).rev().for_each(|i| vector.swap(i - 1, self.scale[i] as usize - 1));
        (self.high + 1..=n).for_each(|i| vector.swap(i - 1, self.scale[i] as usize - 1));
    }
}

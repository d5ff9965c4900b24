//! Matrix norms that can only be found by a search: p-norms for p other than 1, 2 and infinity.
//!
//! In: a matrix and p above 1. Out: its norm. If the elements have mixed signs, the search may find a lower local
//! maximum.

use crate::builtins::reduce::norms::vector_norm;
use crate::value::Tensor;
use num_complex::Complex64;

/// Up to this many columns, each column is tried as a start of the search.
const STARTS_MAX: usize = 64;

/// Returns the greatest p-norm of the matrix times a vector of p-norm 1. The search climbs along the norm's gradient.
/// It starts from each single column, and from all columns together.
pub fn power_norm(t: &Tensor, p: f64) -> f64 {
    let (rows, columns) = (t.dims.rows(), t.dims.columns());
    let q = p / (p - 1.0);
    let norm = |v: &[Complex64], p: f64| vector_norm(&v.iter().map(|z| z.norm()).collect::<Vec<_>>(), p);
    let times = |x: &[Complex64]| -> Vec<Complex64> {
        (0..rows).map(|r| (0..columns).map(|c| t.data.c64_at(c * rows + r) * x[c]).sum()).collect()
    };
    let turned = |y: &[Complex64]| -> Vec<Complex64> {
        (0..columns).map(|c| (0..rows).map(|r| t.data.c64_at(c * rows + r).conj() * y[r]).sum()).collect()
    };
    let scaled = |v: Vec<Complex64>, by: f64| -> Vec<Complex64> { v.into_iter().map(|z| z / by).collect() };
    // This is the vector of dual norm 1 whose product with `v` is greatest.
    let dual = |v: &[Complex64], p: f64| -> Vec<Complex64> {
        let powers = v.iter().map(|z| if *z == Complex64::ZERO { *z } else { z * libm::pow(z.norm(), p - 2.0) });
        let powers: Vec<Complex64> = powers.collect();
        let size = norm(&powers, p / (p - 1.0));
        if size > 0.0 { scaled(powers, size) } else { powers }
    };
    let climbed = |mut x: Vec<Complex64>| {
        let mut best = 0.0;
        for _ in 0..200 {
            let y = times(&x);
            let size = norm(&y, p);
            if !size.is_finite() || size <= best * (1.0 + f64::EPSILON) {
                return size.max(best);
            }
            best = size;
            x = dual(&turned(&dual(&scaled(y, size), p)), q);
        }
        best
    };
    let one = |c: usize| (0..columns).map(|i| Complex64::from(if i == c { 1.0 } else { 0.0 })).collect();
    let all = vec![Complex64::from((columns as f64).powf(-1.0 / p)); columns];
    let starts = (0..columns.min(STARTS_MAX)).map(one).chain([all]);
    starts.map(climbed).fold(0.0, |a, b| if b.is_nan() { b } else { a.max(b) })
}

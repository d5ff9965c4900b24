//! Norms of matrices that only a search finds: those of p other than 1, 2 and infinity.
//!
//! In: a matrix and p above 1. Out: its norm; of matrices with elements of many signs it may be a lesser peak.

use crate::builtins::reduce::reductions::vector_norm;
use crate::value::Tensor;
use num_complex::Complex64;

/// Columns up to which each is tried as where the ascent to a matrix norm begins.
const STARTS_MAX: usize = 64;

/// The greatest p-norm of a matrix times a vector of p-norm 1: a vector climbs through the gradients of the norm from
/// where each column alone, and all columns together, put it.
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
    // The vector of the other norm 1 whose product with this one is greatest.
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

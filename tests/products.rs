//! Tests the bound on the error of products on every device: the error of an element is at most `(4 + log2 k) eps`
//! times the sum of the magnitudes of its `k` terms (`docs/accuracy.md`).

mod common;
#[path = "common/exact.rs"]
mod exact;

use common::{counted, runtimes, session, unfolded, values, wait};
use exact::Exact;
use tidemill::testing::rounds;
use tidemill::{Array, DType, Session};

/// A factor of a term, as a function of the line, the number of the term, and the dtype's epsilon.
type Factor = fn(usize, usize, f64) -> f64;

/// Inputs for which a running sum has large errors: the name, the left and the right factor of a term.
const KINDS: [(&str, Factor, Factor); 6] = [
    ("tenths", |_, _, _| 0.1, |_, _, _| 1.0),
    ("ones", |_, _, _| 1.0, |_, _, _| 1.0),
    ("a large one first", |_, p, eps| if p == 0 { 1.0 } else { eps / 2.0 }, |_, _, _| 1.0),
    ("falling", |line, p, _| (1 + line) as f64 / (1 + p) as f64, |_, _, _| 0.3),
    ("alternating", |line, p, _| if p % 2 == 0 { 0.7 + line as f64 } else { -0.3 }, |_, _, _| 1.0),
    ("offset", |line, p, _| 1000.3 + ((p * 7 + line) % 10) as f64, |_, _, _| 1.0 / 3.0),
];

fn rounded(x: f64, dtype: DType) -> f64 {
    if dtype == DType::F32 { x as f32 as f64 } else { x }
}

fn array(s: &Session, data: &[f64], shape: [usize; 2], dtype: DType) -> Array {
    s.from_slice(data, shape).unwrap().cast_to(dtype)
}

/// The exact sum of products, to about twice the precision of f64, and the sum of the terms' magnitudes.
fn exact(terms: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let (mut sum, mut magnitude) = (Exact::default(), 0.0);
    for (x, y) in terms {
        sum.add_product(x, y);
        magnitude += (x * y).abs();
    }
    (sum.value(), magnitude)
}

#[track_caller]
fn assert_bound(what: &str, got: f64, (sum, magnitude): (f64, f64), terms: usize, eps: f64) {
    let bound = (4.0 + (terms as f64).log2()) * eps * magnitude;
    assert!((got - sum).abs() <= bound, "{what}: {got} is {} bounds from {sum}", (got - sum).abs() / bound);
}

#[test]
fn products_dots_and_norms_of_long_lines_hold_their_bound_on_every_device() {
    let shapes = [(1, 1, 70_001), (2, 3, 50_000), (3, 1, 4097), (1, 8, 3000), (40, 2, 1500), (20, 20, 600), (2, 2, 33)];
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        for (dtype, eps) in [(DType::F32, f32::EPSILON as f64), (DType::F64, f64::EPSILON)] {
            for (number, (m, n, k)) in shapes.into_iter().enumerate() {
                // All kinds in the long form; in the short form two of them, different ones for each shape.
                let kinds = KINDS.into_iter().cycle().skip(number * 2).take(rounds(2, KINDS.len()));
                for (kind, left, right) in kinds {
                    let a: Vec<f64> = (0..m * k).map(|at| rounded(left(at % m, at / m, eps), dtype)).collect();
                    let b: Vec<f64> = (0..k * n).map(|at| rounded(right(at / k, at % k, eps), dtype)).collect();
                    let (x, y) = (array(&s, &a, [m, k], dtype), array(&s, &b, [k, n], dtype));
                    let sums = |i: usize, j: usize| exact((0..k).map(|p| (a[i + m * p], b[p + k * j])));
                    // The product of the factors as they are, and of transposes of their transposes, which are read in
                    // place.
                    let a_turned: Vec<f64> = (0..m * k).map(|at| a[at / k + m * (at % k)]).collect();
                    let b_turned: Vec<f64> = (0..k * n).map(|at| b[at / n + k * (at % n)]).collect();
                    let (u, v) = (array(&s, &a_turned, [k, m], dtype), array(&s, &b_turned, [n, k], dtype));
                    for (form, product) in [("", x.matmul(&y)), ("turned ", u.t().matmul(&v.t()))] {
                        for (at, got) in values(&product).into_iter().enumerate() {
                            let what = format!("{form}{dtype} {m} x {k} x {n}, {kind} on {device}");
                            assert_bound(&what, got, sums(at % m, at / m), k, eps);
                        }
                    }
                    let what = format!("the dot product of {k} {dtype}, {kind} on {device}");
                    let (line, column) = (x.slice((0, ..)).flatten(), y.slice((.., 0)).flatten());
                    assert_bound(&what, values(&line.dot(&column, ..))[0], sums(0, 0), k, eps);
                    let norm = values(&line.norm(..))[0];
                    let squares = exact((0..k).map(|p| (a[m * p], a[m * p])));
                    let (truth, bound) = (squares.0.sqrt(), (4.0 + (k as f64).log2()) * eps);
                    let what = format!("the norm of {k} {dtype}, {kind} on {device}");
                    assert!((norm - truth).abs() <= bound * truth, "{what}: {norm}, {truth}");
                }
            }
        }
    }
}

#[test]
fn ones_are_counted_beyond_the_integers_that_a_single_holds_one_by_one() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        let n = 20_000_000;
        let product = s.ones::<f32>([2, n]).matmul(&s.ones::<f32>([n, 1]));
        assert_eq!(values(&product), [20_000_000.0, 20_000_000.0], "on {device}");
        if device != "gpu" {
            let column = s.ones::<f32>([n, 1]);
            assert_eq!(values(&column.t().matmul(&column)), [20_000_000.0], "on {device}");
        }
    }
}

#[test]
fn a_gram_matrix_of_many_rows_and_pages_of_products_hold_their_bound() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        let (rows, eps) = (300_000, f32::EPSILON as f64);
        let data: Vec<f32> = (0..rows * 3).map(|i| 0.1 + ((i * 7919) % 1000) as f32 / 1000.0).collect();
        let x = s.from_slice(&data, [rows, 3]).unwrap();
        let column = |j: usize| data[j * rows..][..rows].iter().map(|&x| x as f64);
        for (at, got) in values(&x.t().matmul(&x)).into_iter().enumerate() {
            let what = format!("element {at} of a Gram matrix on {device}");
            assert_bound(&what, got, exact(column(at % 3).zip(column(at / 3))), rows, eps);
        }
        let (k, pages) = (900, 5);
        let data: Vec<f32> = (0..2 * k * pages).map(|i| 0.1 * (1 + i / (2 * k)) as f32).collect();
        let a = s.from_slice(&data, [2, k, pages]).unwrap();
        let b = s.ones::<f32>([k, 2, pages]);
        for (at, got) in values(&a.matmul(&b)).into_iter().enumerate() {
            let tenths = data[at / 4 * 2 * k] as f64;
            let what = format!("page {} on {device}", at / 4);
            assert_bound(&what, got, exact((0..k).map(|_| (tenths, 1.0))), k, eps);
        }
    }
}

#[test]
fn a_product_is_one_dispatch_for_all_its_pages_and_two_where_its_terms_are_cut() {
    for (device, runtime) in unfolded(|b| b) {
        let s = session(&runtime);
        for (m, n, k, pages, dispatches) in [(64, 64, 64, 200, 1), (70, 65, 33, 50, 1), (20, 20, 3000, 1, 2)] {
            let source = |shape: [usize; 3]| {
                let data: Vec<f32> = (0..shape.iter().product()).map(|at| (at % 13) as f32 - 6.0).collect();
                s.from_vec(data, shape).unwrap()
            };
            let (a, b) = (source([m, k, pages]), source([k, n, pages]));
            let (product, did) = counted(&runtime, || {
                let product = a.matmul(&b);
                wait(product.eval()).unwrap();
                product
            });
            let what = format!("{pages} of {m} x {k} x {n} on {device}");
            assert_eq!(did.kernels, 1, "{what}");
            let words = (pages * (m * k + k * n), pages * m * n);
            let moved = (did.bytes_kernel_read / 4, did.bytes_kernel_written / 4);
            assert_eq!(moved, (words.0 as u64, words.1 as u64), "{what}");
            if device == "gpu" {
                assert_eq!(did.dispatches, dispatches, "{what}");
            }
            let last: f64 = (0..k).map(|p| term(m, k, pages, m - 1, p) * factor(n, k, pages, p, n - 1)).sum();
            assert_eq!(values(&product).last(), Some(&last), "{what}");
        }
    }
}

/// An element of the last page of the left factor, small integers in storage order.
fn term(m: usize, k: usize, pages: usize, row: usize, p: usize) -> f64 {
    ((m * k * (pages - 1) + row + m * p) % 13) as f64 - 6.0
}

/// An element of the last page of the right factor.
fn factor(n: usize, k: usize, pages: usize, p: usize, column: usize) -> f64 {
    ((k * n * (pages - 1) + p + k * column) % 13) as f64 - 6.0
}

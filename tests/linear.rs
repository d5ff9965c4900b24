//! Linear algebra: residuals of random, graded, ill-conditioned and singular matrices on every device, faults, and on
//! which device ops run.

mod common;

use common::{counted, runtimes, session, unfolded, values, wait};
use futures::StreamExt;
use tidemill::testing::{Injection, rounds};
use tidemill::{Array, DType, ErrorKind, MatrixNorm, Session, Triangle};

const FLOATS: [(DType, f64); 2] = [(DType::F32, f32::EPSILON as f64), (DType::F64, f64::EPSILON)];

/// Pages of column-major matrices.
#[derive(Clone, Debug)]
struct Pages {
    rows: usize,
    columns: usize,
    pages: Vec<Vec<f64>>,
}

impl Pages {
    fn of(array: &Array) -> Pages {
        let shape = array.shape().unwrap_or_else(|error| panic!("{error}"));
        let (rows, columns) = (shape.dim(0), shape.dim(1));
        let all = values(array);
        Pages { rows, columns, pages: all.chunks((rows * columns).max(1)).map(<[f64]>::to_vec).collect() }
    }

    /// A page. If there is only one, it stands for every page.
    fn page(&self, page: usize) -> &[f64] {
        &self.pages[if self.pages.len() == 1 { 0 } else { page }]
    }

    fn at(&self, page: usize, i: usize, j: usize) -> f64 {
        self.page(page)[i + self.rows * j]
    }

    fn times(&self, other: &Pages) -> Pages {
        assert_eq!(self.columns, other.rows);
        let page = |page: usize| {
            let mut out = vec![0.0; self.rows * other.columns];
            let (left, right) = (self.page(page), other.page(page));
            for (out, by) in out.chunks_mut(self.rows.max(1)).zip(right.chunks(other.rows.max(1))) {
                for (column, &by) in left.chunks(self.rows.max(1)).zip(by) {
                    out.iter_mut().zip(column).for_each(|(out, &x)| *out += x * by);
                }
            }
            out
        };
        let count = self.pages.len().max(other.pages.len());
        Pages { rows: self.rows, columns: other.columns, pages: (0..count).map(page).collect() }
    }

    fn transposed(&self) -> Pages {
        let page = |page: usize| {
            (0..self.rows * self.columns).map(|e| self.at(page, e / self.columns, e % self.columns)).collect()
        };
        Pages { rows: self.columns, columns: self.rows, pages: (0..self.pages.len()).map(page).collect() }
    }

    fn map(&self, f: impl Fn(usize, usize, f64) -> f64) -> Pages {
        let page =
            |page: &Vec<f64>| page.iter().enumerate().map(|(e, &x)| f(e % self.rows, e / self.rows, x)).collect();
        Pages { pages: self.pages.iter().map(page).collect(), ..*self }
    }

    /// The greatest element of a difference, in units of the greatest norm of a page of `scale`.
    fn distance(&self, other: &Pages, scale: f64) -> f64 {
        assert_eq!((self.rows, self.columns, self.pages.len()), (other.rows, other.columns, other.pages.len()));
        let all = self.pages.iter().flatten().zip(other.pages.iter().flatten());
        all.map(|(x, y)| if x.is_finite() && y.is_finite() { (x - y).abs() } else { f64::INFINITY }).fold(0.0, f64::max)
            / scale.max(f64::MIN_POSITIVE)
    }

    fn norm(&self) -> f64 {
        let page = |page: &Vec<f64>| page.iter().map(|x| x * x).sum::<f64>().sqrt();
        self.pages.iter().map(page).fold(0.0, f64::max)
    }

    fn array(&self, s: &Session, dtype: DType) -> Array {
        let all: Vec<f64> = self.pages.concat();
        s.from_slice(&all, [self.rows, self.columns, self.pages.len()]).unwrap().cast_to(dtype)
    }

    fn rounded(self, dtype: DType) -> Pages {
        if dtype == DType::F32 { self.map(|_, _, x| x as f32 as f64) } else { self }
    }

    fn is_lower(&self) -> bool {
        (0..self.pages.len()).all(|p| (0..self.columns).all(|j| (0..j.min(self.rows)).all(|i| self.at(p, i, j) == 0.0)))
    }
}

/// A source of numbers in `-1..1`.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 30) as f64 - 1.0
    }
}

/// Matrices of a kind, with elements of at most about 1.
fn matrices(kind: &str, (rows, columns): (usize, usize), pages: usize, seed: u64) -> Pages {
    let mut dice = Dice(seed);
    let mut element = |i: usize, j: usize| match kind {
        "random" => dice.next(),
        // Rows and columns whose elements have very different magnitudes.
        "graded" => dice.next() * 2f64.powi(-((i % 24) as i32) / 2 - (j % 16) as i32),
        // The Hilbert matrix, which is nearly singular.
        "ill-conditioned" => 1.0 / (1 + i + j) as f64,
        "singular" => {
            if i == 0 {
                0.0
            } else {
                (j % 3) as f64 * ((i % 5) as f64 - 2.0)
            }
        }
        "zero" => 0.0,
        other => panic!("{other}"),
    };
    let page = |_| (0..rows * columns).map(|e| element(e % rows, e / rows)).collect();
    Pages { rows, columns, pages: (0..pages).map(page).collect() }
}

const KINDS: [&str; 5] = ["random", "graded", "ill-conditioned", "singular", "zero"];

/// All kinds in the long form; in the short form `few` of them, different ones for each shape.
fn kinds(shape: usize, few: usize) -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().cycle().skip(shape % KINDS.len()).take(rounds(few, KINDS.len()))
}

/// Extents: one element, odd numbers, and extents larger than a panel and a block of the GPU's algorithms.
const EXTENTS: [usize; 6] = [1, 2, 7, 33, 65, 150];

fn definite(n: usize, pages: usize, seed: u64, dtype: DType) -> Pages {
    let a = matrices("graded", (n, n), pages, seed);
    let sum = a.times(&a.transposed());
    sum.map(|i, j, x| if i == j { x + 0.5 } else { x }).rounded(dtype)
}

#[test]
fn cholesky_factors_give_the_matrix_back_and_take_the_lower_triangle_alone() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        for (dtype, eps) in FLOATS {
            for (n, pages) in EXTENTS.into_iter().map(|n| (n, 1)).chain([(5, 40), (70, 3)]) {
                let what = format!("{device}, {dtype}, {pages} of {n}");
                let a = definite(n, pages, n as u64, dtype);
                let lower = a.map(|i, j, x| if i >= j { x } else { f64::NAN });
                let l = Pages::of(&lower.array(&s, dtype).cholesky());
                assert!(l.is_lower(), "{what}");
                let distance = l.times(&l.transposed()).distance(&a, a.norm());
                assert!(distance <= 10.0 * n as f64 * eps, "{what}: {distance}");
            }
        }
    }
}

#[test]
fn elimination_gives_the_rows_of_the_matrix_back() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        for (dtype, eps) in FLOATS {
            let square = EXTENTS.into_iter().map(|n| (n, n, 1));
            for (m, n, pages) in square.chain([(9, 4, 30), (4, 9, 2), (100, 40, 2), (40, 100, 2)]) {
                for kind in kinds(m + n, 2) {
                    let what = format!("{device}, {dtype}, {pages} of {m} x {n}, {kind}");
                    let a = matrices(kind, (m, n), pages, 3).rounded(dtype);
                    let (l, u, rows) = a.array(&s, dtype).lu();
                    let (l, u, rows) = (Pages::of(&l), Pages::of(&u), Pages::of(&rows));
                    assert!(l.is_lower() && u.transposed().is_lower(), "{what}");
                    let is_bounded = l.pages.iter().flatten().all(|x| x.abs() <= 1.0 + 4.0 * eps);
                    assert!(is_bounded && (0..m.min(n)).all(|i| l.at(0, i, i) == 1.0), "{what}");
                    let moved = Pages {
                        pages: (0..pages)
                            .map(|p| (0..m * n).map(|e| a.at(p, rows.at(p, e % m, 0) as usize, e / m)).collect())
                            .collect(),
                        ..a.clone()
                    };
                    let distance = l.times(&u).distance(&moved, a.norm());
                    assert!(distance <= 10.0 * m.max(n) as f64 * eps, "{what}: {distance}");
                    for p in 0..pages {
                        let mut order: Vec<usize> = (0..m).map(|i| rows.at(p, i, 0) as usize).collect();
                        order.sort_unstable();
                        assert!(order.into_iter().eq(0..m), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn orthogonal_factors_are_orthogonal_and_give_the_matrix_back() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        for (dtype, eps) in FLOATS {
            let square = EXTENTS.into_iter().map(|n| (n, n, 1));
            for (m, n, pages) in square.chain([(9, 4, 30), (4, 9, 2), (100, 40, 2), (40, 100, 2), (300, 3, 1)]) {
                for kind in kinds(m + 2 * n, 1) {
                    let what = format!("{device}, {dtype}, {pages} of {m} x {n}, {kind}");
                    let a = matrices(kind, (m, n), pages, 5).rounded(dtype);
                    let array = a.array(&s, dtype);
                    for (full, (q, r)) in [(false, array.qr()), (true, array.qr_full())] {
                        let (q, r) = (Pages::of(&q), Pages::of(&r));
                        let k = if full { m } else { m.min(n) };
                        assert_eq!((q.rows, q.columns, r.rows, r.columns), (m, k, k, n), "{what}");
                        assert!(r.transposed().is_lower(), "{what}");
                        let distance = q.times(&r).distance(&a, a.norm());
                        assert!(distance <= 10.0 * m.max(n) as f64 * eps, "{what}: {distance}");
                        let eye = Pages { rows: k, columns: k, pages: vec![vec![0.0; k * k]; pages] };
                        let eye = eye.map(|i, j, _| (i == j) as u8 as f64);
                        let distance = q.transposed().times(&q).distance(&eye, 1.0);
                        assert!(distance <= 10.0 * m as f64 * eps, "{what}: {distance}");
                    }
                }
            }
        }
    }
}

#[test]
fn triangular_systems_read_the_triangle_that_is_asked_for() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        for (dtype, eps) in FLOATS {
            for (n, count, pages) in [(1, 1, 1), (7, 3, 20), (33, 1, 1), (65, 40, 2), (150, 6, 1)] {
                for number in 0..8 {
                    let mut triangle = if number & 1 == 0 { Triangle::LOWER } else { Triangle::UPPER };
                    if number & 2 != 0 {
                        triangle = triangle.transposed();
                    }
                    if number & 4 != 0 {
                        triangle = triangle.with_unit_diagonal();
                    }
                    let what = format!("{device}, {dtype}, {pages} of {n}, {count} sides, {triangle:?}");
                    let small = matrices("random", (n, n), pages, 11)
                        .map(|i, j, x| if i == j { 2.0 + x } else { x / n as f64 });
                    let a = small.rounded(dtype);
                    let b = matrices("random", (n, count), pages, 12).rounded(dtype);
                    let x = Pages::of(&a.array(&s, dtype).solve_triangular(&b.array(&s, dtype), triangle));
                    let read = a.map(|i, j, x| match i.cmp(&j) {
                        std::cmp::Ordering::Equal if number & 4 != 0 => 1.0,
                        std::cmp::Ordering::Less if number & 1 == 0 => 0.0,
                        std::cmp::Ordering::Greater if number & 1 == 1 => 0.0,
                        _ => x,
                    });
                    let read = if number & 2 != 0 { read.transposed() } else { read };
                    let distance = read.times(&x).distance(&b, read.norm() * x.norm());
                    assert!(distance <= 10.0 * n as f64 * eps, "{what}: {distance}");
                }
            }
        }
    }
}

#[test]
fn solutions_inverses_and_determinants_hold_their_bounds() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        for (dtype, eps) in FLOATS {
            for (n, count, pages) in [(1, 1, 1), (2, 3, 5), (7, 3, 20), (33, 1, 1), (65, 40, 2), (150, 6, 1)] {
                for kind in ["random", "graded"] {
                    let what = format!("{device}, {dtype}, {pages} of {n}, {count} sides, {kind}");
                    let bound = 10.0 * n as f64 * eps;
                    let a = matrices(kind, (n, n), pages, 21).rounded(dtype);
                    let b = matrices("random", (n, count), pages, 22).rounded(dtype);
                    let (array, sides) = (a.array(&s, dtype), b.array(&s, dtype));
                    let x = Pages::of(&array.solve(&sides));
                    let distance = a.times(&x).distance(&b, a.norm() * x.norm());
                    assert!(distance <= bound, "{what}: {distance}");
                    let inverse = Pages::of(&array.inv());
                    let eye = a.map(|i, j, _| (i == j) as u8 as f64);
                    let distance = a.times(&inverse).distance(&eye, a.norm() * inverse.norm());
                    assert!(distance <= bound, "{what}, inverse: {distance}");
                    // Compares `det` with the determinant that the sign and the logarithm give.
                    let (sign, log) = array.slogdet();
                    let (det, sign, log) = (values(&array.det()), values(&sign), values(&log));
                    // The determinants of larger matrices exceed the range of f32.
                    for p in 0..if n > 40 { 0 } else { pages } {
                        let other = sign[p] * log[p].exp();
                        let close =
                            (det[p] - other).abs() <= 1e3 * n as f64 * eps * other.abs() + f32::MIN_POSITIVE as f64;
                        assert!(close, "{what}: {} and {other}", det[p]);
                    }
                }
            }
        }
    }
}

#[test]
fn determinants_have_the_sign_of_the_order_of_rows() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        let a = s.from_row_major(&[0.0, 2.0, 0.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0], [3, 3]).unwrap();
        assert_eq!(values(&a.det()), [24.0], "{device}");
        let b = s.from_row_major(&[0.0, 2.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 4.0], [3, 3]).unwrap();
        assert_eq!(values(&b.det()), [-24.0], "{device}");
        let singular = s.from_row_major(&[1.0, 2.0, 2.0, 4.0], [2, 2]).unwrap();
        assert_eq!(values(&singular.det()), [0.0], "{device}");
        let (sign, log) = singular.slogdet();
        assert_eq!((values(&sign), values(&log)), (vec![0.0], vec![f64::NEG_INFINITY]), "{device}");
    }
}

#[test]
fn both_results_of_slogdet_read_one_factorisation() {
    for (device, runtime) in unfolded(|b| b) {
        let s = session(&runtime);
        let a = definite(20, 2, 43, DType::F64).array(&s, DType::F64);
        values(&a);
        let (_, stats) = counted(&runtime, || {
            let (sign, log) = a.slogdet();
            wait(tidemill::gather_all::<f64>(&[sign, log]).for_each(|_| std::future::ready(())));
        });
        // Ops: the factorisation (1). For the sign (8): pivots (2 views), their signs, the signs of exchanges (2
        // views), 2 products and their product. For the logarithm (5): pivots (2 views), magnitudes, logarithms and a
        // sum.
        assert_eq!(stats.ops_recorded, 1 + 8 + 5, "{device}: {stats}");
    }
}

#[test]
fn least_squares_leave_what_no_column_explains_and_are_shortest() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        for (dtype, eps) in FLOATS {
            for (m, n, pages) in [(5, 5, 2), (40, 7, 3), (7, 40, 2), (100, 66, 1)] {
                let what = format!("{device}, {dtype}, {pages} of {m} x {n}");
                let a = matrices("random", (m, n), pages, 31).rounded(dtype);
                let b = matrices("random", (m, 2), pages, 32).rounded(dtype);
                let x = Pages::of(&a.array(&s, dtype).lstsq(&b.array(&s, dtype)));
                let made = a.times(&x);
                let left = Pages {
                    pages: made
                        .pages
                        .iter()
                        .zip(&b.pages)
                        .map(|(x, y)| x.iter().zip(y).map(|(x, y)| y - x).collect())
                        .collect(),
                    ..made.clone()
                };
                let bound = 100.0 * m.max(n) as f64 * eps * a.norm() * (a.norm() * x.norm() + b.norm());
                let along = a.transposed().times(&left);
                assert!(along.pages.iter().flatten().all(|x| x.abs() <= bound), "{what}");
                if m < n {
                    // The shortest solution is the one that the pseudoinverse gives.
                    let other = Pages::of(&a.array(&s, dtype).pinv().matmul(&b.array(&s, dtype)));
                    assert!(x.distance(&other, 1.0) <= 1e4 * eps, "{what}");
                }
            }
        }
    }
}

#[test]
fn eigenvalues_and_singular_values_give_the_matrix_back() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        for (dtype, eps) in FLOATS {
            for (n, pages) in [(1, 1), (6, 10), (41, 1)] {
                let what = format!("{device}, {dtype}, {pages} of {n}");
                let bound = 30.0 * n as f64 * eps;
                let a = definite(n, pages, 41, dtype);
                let (w, v) = a.array(&s, dtype).eigh();
                let (w, v) = (Pages::of(&w), Pages::of(&v));
                let scaled = Pages {
                    pages: (0..pages)
                        .map(|p| (0..n * n).map(|e| v.at(p, e % n, e / n) * w.at(p, e / n, 0)).collect())
                        .collect(),
                    ..v.clone()
                };
                assert!(scaled.times(&v.transposed()).distance(&a, a.norm()) <= bound, "{what}");
                let alone = Pages::of(&a.array(&s, dtype).eigvalsh());
                assert!(alone.distance(&w, a.norm()) <= bound, "{what}");
                for (m, n) in [(n, n), (n + 3, n), (n, n + 5)] {
                    let k = m.min(n);
                    let a = matrices("random", (m, n), pages, 42).rounded(dtype);
                    let (u, w, v) = a.array(&s, dtype).svd();
                    let (u, w, v) = (Pages::of(&u), Pages::of(&w), Pages::of(&v));
                    assert!((0..pages).all(|p| (1..k).all(|i| w.at(p, i, 0) <= w.at(p, i - 1, 0))), "{what}");
                    let scaled = Pages {
                        pages: (0..pages)
                            .map(|p| (0..m * k).map(|e| u.at(p, e % m, e / m) * w.at(p, e / m, 0)).collect())
                            .collect(),
                        ..u
                    };
                    assert!(scaled.times(&v.transposed()).distance(&a, a.norm()) <= bound, "{what}");
                    let alone = Pages::of(&a.array(&s, dtype).singular_values());
                    assert!(alone.distance(&w, a.norm()) <= bound, "{what}");
                }
                let a = matrices("random", (n, n), pages, 43).rounded(dtype);
                let ((wr, wi), (vr, vi)) = a.array(&s, dtype).eig();
                let [wr, wi, vr, vi] = [wr, wi, vr, vi].map(|array| Pages::of(&array));
                let (left_re, left_im) = (a.times(&vr), a.times(&vi));
                let of = |f: &dyn Fn(usize, usize, usize) -> f64| Pages {
                    rows: n,
                    columns: n,
                    pages: (0..pages).map(|p| (0..n * n).map(|e| f(p, e % n, e / n)).collect()).collect(),
                };
                let re = of(&|p, i, j| vr.at(p, i, j) * wr.at(p, j, 0) - vi.at(p, i, j) * wi.at(p, j, 0));
                let im = of(&|p, i, j| vr.at(p, i, j) * wi.at(p, j, 0) + vi.at(p, i, j) * wr.at(p, j, 0));
                assert!(left_re.distance(&re, a.norm()) <= bound && left_im.distance(&im, a.norm()) <= bound, "{what}");
            }
        }
    }
}

#[test]
fn ranks_norms_conditions_and_pseudoinverses_are_those_of_the_singular_values() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        let a = s.from_row_major(&[3.0, 0.0, 0.0, -4.0, 0.0, 0.0], [3, 2]).unwrap();
        let norm = |norm| values(&a.matrix_norm(norm))[0];
        assert_eq!(
            [norm(MatrixNorm::One), norm(MatrixNorm::Infinity), norm(MatrixNorm::Frobenius)],
            [4.0, 4.0, 5.0],
            "{device}"
        );
        assert!(
            (norm(MatrixNorm::Two) - 4.0).abs() < 1e-14 && (norm(MatrixNorm::Nuclear) - 7.0).abs() < 1e-14,
            "{device}"
        );
        assert!((values(&a.cond())[0] - 4.0 / 3.0).abs() < 1e-14, "{device}");
        let expected = [1.0 / 3.0, 0.0, 0.0, -0.25, 0.0, 0.0];
        assert!(values(&a.pinv()).iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-15), "{device}");
        let low = matrices("singular", (9, 7), 2, 0);
        assert_eq!(values(&low.array(&s, DType::F64).rank()), [1.0, 1.0], "{device}");
        assert_eq!(a.rank().dtype().unwrap(), DType::U32);
        assert_eq!(values(&a.rank()), [2.0], "{device}");
        assert_eq!(values(&s.zeros::<f32>([4, 4]).rank()), [0.0], "{device}");
    }
}

#[test]
fn what_has_no_factor_or_no_solution_fails_with_the_gather_and_names_the_op() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        for n in [2usize, 33, 100] {
            let fault = |array: Array| wait(array.gather_any()).unwrap_err();
            let eye: Array = s.eye::<f64>(n);
            for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
                let error = fault(eye.assign((n - 1, n - 1), bad).cholesky());
                assert_eq!((error.kind(), error.op()), (ErrorKind::Domain, Some("cholesky")), "{device}, {n}, {bad}");
            }
            let singular = eye.assign((n - 1, n - 1), 0.0);
            for array in [singular.solve(&s.ones::<f64>(n)), singular.inv(), singular.lstsq(&s.ones::<f64>(n))] {
                assert_eq!(fault(array).kind(), ErrorKind::Domain, "{device}, {n}");
            }
            let error = fault(singular.solve_triangular(&s.ones::<f64>(n), Triangle::UPPER));
            assert_eq!(error.kind(), ErrorKind::Domain, "{device}, {n}");
            // Values that do not depend on the factor have no fault.
            assert_eq!(values(&(singular.sum(..) + 1.0)), [n as f64]);
        }
    }
}

#[test]
fn errors_name_the_line_that_called_a_method_of_several_ops() {
    let runtime = common::host();
    let here = |what: &str, error: tidemill::Error, line: u32| {
        let at = error.location().unwrap_or_else(|| panic!("{what}: {error}"));
        assert!(at.file().ends_with("linear.rs") && at.line() == line, "{what}: {error}");
    };
    let s = session(&runtime);
    let singular = s.from_slice(&[1.0, 1.0, 1.0, 1.0], [2, 2]).unwrap();
    let (power, line) = (singular.matrix_power(-1), line!());
    here("matrix_power", wait(power.gather_any()).unwrap_err(), line);

    // A closed session records nothing, so the first op of each method is a fault.
    let (a, b, x) = (s.randn::<f64>([4, 4]), s.randn::<f64>([4, 4]), s.randn::<f64>([3, 4]));
    s.close();
    let one = |array: Array| [array.error().unwrap().clone()];
    let pair = |(x, y): (Array, Array)| [x, y].map(|array| array.error().unwrap().clone());
    let three = |(x, y, z): (Array, Array, Array)| [x, y, z].map(|array| array.error().unwrap().clone());
    let mut errors: Vec<(&str, u32, tidemill::Error)> = Vec::new();
    macro_rules! note {
        ($name:literal, $errors:expr) => {
            errors.extend($errors.into_iter().map(|error| ($name, line!(), error)))
        };
    }
    note!("lu", three(a.lu()));
    note!("qr", pair(a.qr()));
    note!("svd", three(a.svd()));
    note!("slogdet", pair(a.slogdet()));
    note!("det", one(a.det()));
    note!("inv", one(a.inv()));
    note!("solve", one(a.solve(&b)));
    note!("lstsq", one(a.lstsq(&b)));
    note!("lstsq of few rows", one(x.lstsq(&x)));
    note!("pinv", one(a.pinv()));
    note!("rank", one(a.rank()));
    note!("cond", one(a.cond()));
    note!("norm 1", one(a.matrix_norm(MatrixNorm::One)));
    note!("norm inf", one(a.matrix_norm(MatrixNorm::Infinity)));
    note!("norm 2", one(a.matrix_norm(MatrixNorm::Two)));
    note!("Frobenius", one(a.matrix_norm(MatrixNorm::Frobenius)));
    note!("power", one(a.matrix_power(3)));
    note!("kron", one(a.kron(&b)));
    note!("cross", one(x.cross(&x, 0)));
    note!("expm", [wait(a.expm()).unwrap_err()]);
    note!("einsum", [tidemill::einsum("ij,jk->ik", &[&a, &b]).unwrap_err()]);
    note!("trace", [tidemill::einsum("ii->", &[&a]).unwrap_err()]);
    for (what, line, error) in errors {
        here(what, error, line);
    }
}

#[test]
fn shapes_that_do_not_fit_are_errors_when_they_are_recorded() {
    let runtime = common::host();
    let s = session(&runtime);
    let (tall, square) = (s.zeros::<f64>([3, 2]), s.zeros::<f64>([3, 3]));
    let kinds = [
        tall.cholesky(),
        tall.inv(),
        tall.det(),
        tall.eigvalsh(),
        tall.solve(&square),
        square.solve(&s.ones::<f64>(2)),
    ];
    for array in kinds {
        assert_eq!(array.error().map(|error| error.kind()), Some(ErrorKind::Shape));
    }
}

#[test]
fn matrices_without_elements_have_the_results_that_no_step_gives() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        let none = s.zeros::<f64>([0, 0]);
        assert_eq!(values(&none.cholesky()), [0.0; 0], "{device}");
        assert_eq!(values(&none.det()), [1.0], "{device}");
        let (sign, log) = none.slogdet();
        assert_eq!((values(&sign), values(&log)), (vec![1.0], vec![0.0]), "{device}");
        assert_eq!(none.inv().shape().unwrap().dims(), [0, 0]);
        let (l, u, rows) = s.zeros::<f32>([3, 0]).lu();
        assert_eq!((values(&l).len(), values(&u).len(), values(&rows)), (0, 0, vec![0.0, 1.0, 2.0]), "{device}");
        let (q, r) = s.zeros::<f32>([2, 0]).qr_full();
        assert_eq!((values(&q), values(&r).len()), (vec![1.0, 0.0, 0.0, 1.0], 0), "{device}");
        let x = s.zeros::<f64>([0, 3]).lstsq(&s.zeros::<f64>([0, 2]));
        assert_eq!((x.shape().unwrap().dims().to_vec(), values(&x)), (vec![3, 2], vec![0.0; 6]), "{device}");
        assert_eq!(values(&s.zeros::<f64>([0, 3]).rank()), [0.0], "{device}");
        assert_eq!(s.zeros::<f64>([0, 3]).pinv().shape().unwrap().dims(), [3, 0]);
        assert_eq!(values(&none.matrix_norm(MatrixNorm::Two)), [0.0], "{device}");
    }
}

#[test]
fn what_is_not_finite_ends_and_is_not_finite() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        for bad in [f64::NAN, f64::INFINITY] {
            for n in [3usize, 40] {
                let a = matrices("random", (n, n), 1, 51).array(&s, DType::F64).reshape([n, n]).assign((1, 1), bad);
                let b = s.ones::<f64>(n);
                let (q, _) = a.qr();
                let (_, u, _) = a.lu();
                let ((re, _), _) = a.eig();
                // An infinite pivot has a finite inverse, so the solution may be finite.
                let x = if bad.is_nan() { a.solve(&b) } else { u.clone() };
                for (name, array) in [("qr", q), ("lu", u), ("solve", x)] {
                    assert!(values(&array).iter().any(|x| !x.is_finite()), "{device}, {n}, {name} of {bad}");
                }
                for array in [a.eigvalsh(), a.singular_values(), re, a.svd().0, a.eigh().1] {
                    assert!(values(&array).iter().all(|x| x.is_nan()), "{device}, {n}");
                }
            }
        }
    }
}

#[test]
fn reflections_lose_no_nan() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        for dtype in [DType::F32, DType::F64] {
            for column in [[1.0, f64::NAN], [0.0, f64::NAN], [f64::NAN, 1.0], [f64::NAN, 0.0]] {
                let (q, r) = s.from_slice(&column, [2, 1]).unwrap().cast_to(dtype).qr();
                assert!(values(&r)[0].is_nan(), "{device}, {dtype}, {column:?}");
                assert!(values(&q).iter().any(|x| x.is_nan()) || column[1] == 0.0, "{device}, {dtype}, {column:?}");
            }
        }
    }
}

#[test]
fn matrices_of_many_rows_are_factored_without_a_loop_that_ends_early() {
    for (device, runtime) in unfolded(|b| b) {
        let s = session(&runtime);
        let a = s.randn::<f32>([200_000, 2]);
        let (q, r) = a.qr();
        let error = wait((q.matmul(&r) - &a).norm(..).item::<f32>()).unwrap();
        let size = wait(a.norm(..).item::<f32>()).unwrap();
        assert!(error <= 1e-4 * size, "{device}: {error} of {size}");
        let products = values(&q.t().matmul(&q));
        for (got, wanted) in products.iter().zip([1.0, 0.0, 0.0, 1.0]) {
            assert!((got - wanted).abs() < 1e-3, "{device}: {products:?}");
        }
    }
}

#[test]
fn pages_meet_as_in_products() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        let a = matrices("random", (6, 6), 4, 61);
        let b = matrices("random", (6, 2), 4, 62);
        let one = |pages: &Pages| Pages { pages: pages.pages[..1].to_vec(), ..*pages };
        for (a, b) in [(a.clone(), one(&b)), (one(&a), b.clone())] {
            let x = Pages::of(&a.array(&s, DType::F64).solve(&b.array(&s, DType::F64)));
            let wanted = Pages { pages: (0..4).map(|p| b.pages[p % b.pages.len()].clone()).collect(), ..b.clone() };
            assert!(a.times(&x).distance(&wanted, a.norm() * x.norm()) < 1e-13, "{device}");
        }
    }
}

#[test]
fn factorisations_and_systems_run_on_the_gpu_and_spectra_on_the_host() {
    for (device, runtime) in unfolded(|b| b) {
        if device != "gpu" {
            continue;
        }
        let s = session(&runtime);
        let a = definite(70, 2, 71, DType::F32).array(&s, DType::F32);
        let b = s.ones::<f32>([70, 3]);
        let ((), stats) = counted(&runtime, || {
            for array in [a.cholesky(), a.lu().1, a.qr().0, a.solve(&b), a.inv(), a.lstsq(&b), a.det()] {
                values(&array);
            }
        });
        assert_eq!((stats.host_kernels, stats.elsewhere.len()), (0, 0), "{stats}");
        let ((), stats) = counted(&runtime, || {
            values(&a.eigvalsh());
            values(&a.singular_values());
        });
        assert_eq!(stats.elsewhere.len(), 2, "{stats}");
    }
}

#[test]
fn powers_exponentials_and_products_are_those_of_their_definitions() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        for (dtype, eps) in FLOATS {
            let what = format!("{device}, {dtype}");
            let a = matrices("random", (5, 5), 3, 81).rounded(dtype);
            let array = a.array(&s, dtype);
            let fifth = a.times(&a).times(&a).times(&a).times(&a);
            let close = |got: &Array, wanted: &Pages| Pages::of(got).distance(wanted, wanted.norm()) <= 200.0 * eps;
            assert!(close(&array.matrix_power(5), &fifth), "{what}");
            let eye = a.map(|i, j, _| (i == j) as u8 as f64);
            assert!(close(&array.matrix_power(0), &eye), "{what}");
            let near = a.map(|i, j, x| x / 8.0 + (i == j) as u8 as f64).rounded(dtype).array(&s, dtype);
            assert!(close(&near.matrix_power(-5).matmul(&near.matrix_power(5)), &eye), "{what}");
            // Compares with the sum of the series, for matrices whose norms need no squaring and several squarings.
            for scale in [0.25, 3.0] {
                let scaled = a.map(|_, _, x| x * scale).rounded(dtype);
                let (mut sum, mut term) = (eye.clone(), eye.clone());
                for k in 1..120 {
                    term = term.times(&scaled).map(|_, _, x| x / k as f64);
                    sum = Pages {
                        pages: sum
                            .pages
                            .iter()
                            .zip(&term.pages)
                            .map(|(x, y)| x.iter().zip(y).map(|(x, y)| x + y).collect())
                            .collect(),
                        ..sum
                    };
                }
                let exponential = wait(scaled.array(&s, dtype).expm()).unwrap();
                assert!(Pages::of(&exponential).distance(&sum, sum.norm()) <= 1e3 * eps, "{what}, {scale}");
            }
            // The number of squarings of a page depends on its own norm, not on the other pages.
            let usual: Vec<f64> = a.pages[0].iter().map(|x| 8.0 * x).collect();
            let alone = Pages { pages: vec![usual.clone()], ..a };
            let wanted = Pages::of(&wait(alone.array(&s, dtype).expm()).unwrap());
            let large: Vec<f64> = usual.iter().map(|x| 1e6 * x).collect();
            let mut infinite = usual.clone();
            infinite[1] = f64::INFINITY;
            for (kind, other, is_finite) in
                [("large", large, false), ("infinite", infinite, false), ("usual", usual.clone(), true)]
            {
                let both = Pages { pages: vec![usual.clone(), other], ..a };
                let got = Pages::of(&wait(both.array(&s, dtype).expm()).unwrap());
                let first = Pages { pages: got.pages[..1].to_vec(), ..got };
                assert!(first.distance(&wanted, wanted.norm()) <= 10.0 * eps, "{what}, {kind}");
                assert_eq!(got.pages[1].iter().all(|x| x.is_finite()), is_finite, "{what}, {kind}");
            }
            let b = matrices("random", (2, 3), 3, 82).rounded(dtype);
            let kron = Pages {
                rows: 10,
                columns: 15,
                pages: (0..3)
                    .map(|p| (0..150).map(|e| a.at(p, e % 10 / 2, e / 10 / 3) * b.at(p, e % 2, e / 10 % 3)).collect())
                    .collect(),
            };
            assert!(close(&array.kron(&b.array(&s, dtype)), &kron), "{what}");
        }
        let x = s.from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2]).unwrap();
        let y = s.from_slice(&[4.0, 5.0, 6.0, 0.0, 0.0, 2.0], [3, 2]).unwrap();
        assert_eq!(values(&x.cross(&y, 0)), [-3.0, 6.0, -3.0, 10.0, -8.0, 0.0], "{device}");
        assert_eq!(x.cross(&y, 1).error().map(|error| error.kind()), Some(ErrorKind::Shape));
    }
}

#[test]
fn sums_of_products_follow_their_formula() {
    for (device, runtime) in runtimes() {
        let s = session(&runtime);
        let array = |dims: &[usize], seed| {
            let mut dice = Dice(seed);
            let count = dims.iter().product::<usize>();
            let all: Vec<f64> = (0..count).map(|_| (dice.next() * 8.0).round()).collect();
            (s.from_slice(&all, dims).unwrap(), all)
        };
        let extents = |c: char| match c {
            'i' => 3,
            'j' => 4,
            'k' => 2,
            'l' => 5,
            _ => 1,
        };
        for formula in [
            "ij,jk->ik",
            "ij,jk",
            "ij->ji",
            "ij->",
            "ii->i",
            "ii",
            "i,i->",
            "i,j->ij",
            "ijk,ijl->kl",
            "ij,ij->ij",
            "ikj,kjl->il",
            "ijk,jl,kl->i",
            "iji->j",
            "ij,kl->kjli",
            "lij,ljk->lik",
            "ijj,jk->ki",
        ] {
            let (left, right) = formula.split_once("->").unwrap_or((
                formula,
                match formula {
                    "ij,jk" => "ik",
                    _ => "",
                },
            ));
            let inputs: Vec<Vec<char>> = left.split(',').map(|labels| labels.chars().collect()).collect();
            let operands: Vec<(Array, Vec<f64>)> = inputs
                .iter()
                .enumerate()
                .map(|(n, labels)| {
                    let dims: Vec<usize> = labels.iter().map(|&c| extents(c)).collect();
                    array(&dims, n as u64 + 5)
                })
                .collect();
            // The reference is one loop over all letters.
            let mut letters: Vec<char> = inputs.concat();
            letters.sort_unstable();
            letters.dedup();
            let output: Vec<char> = right.chars().collect();
            let mut wanted = vec![0.0; output.iter().map(|&c| extents(c)).product()];
            let total: usize = letters.iter().map(|&c| extents(c)).product();
            for number in 0..total {
                let mut rest = number;
                let at: Vec<usize> = letters
                    .iter()
                    .map(|&c| {
                        let at = rest % extents(c);
                        rest /= extents(c);
                        at
                    })
                    .collect();
                let place = |labels: &[char]| {
                    labels
                        .iter()
                        .rev()
                        .fold(0, |place, c| place * extents(*c) + at[letters.iter().position(|l| l == c).unwrap()])
                };
                let product: f64 = inputs.iter().zip(&operands).map(|(labels, (_, all))| all[place(labels)]).product();
                wanted[place(&output)] += product;
            }
            let arrays: Vec<&Array> = operands.iter().map(|(array, _)| array).collect();
            let got = tidemill::einsum(formula, &arrays).unwrap_or_else(|error| panic!("{formula}: {error}"));
            assert_eq!(values(&got), wanted, "{device}, {formula}");
            let dims: Vec<usize> = output.iter().map(|&c| extents(c)).collect();
            assert!(
                (0..dims.len().max(2)).all(|d| got.shape().unwrap().dim(d) == dims.get(d).copied().unwrap_or(1)),
                "{formula}"
            );
        }
        let x = s.ones::<f64>([2, 3]);
        for (formula, kind) in [
            ("ij,jk->ik", ErrorKind::Argument),
            ("ij->ik", ErrorKind::Argument),
            ("i->i", ErrorKind::Shape),
            ("ii->i", ErrorKind::Shape),
            ("i1->i", ErrorKind::Argument),
        ] {
            assert_eq!(tidemill::einsum(formula, &[&x]).unwrap_err().kind(), kind, "{formula}");
        }
    }
}

#[test]
fn matrices_that_lie_in_pieces_are_factored_as_others_are() {
    let Some(runtime) = common::gpu(|b| {
        let injection = Injection { segment_shift: Some(12), ..Injection::default() };
        b.fold_elements_max(0).injection(injection)
    }) else {
        return;
    };
    let whole = common::gpu(|b| b.fold_elements_max(0));
    let (dtype, n) = (DType::F32, 100);
    let results = [Some(runtime), whole].into_iter().flatten().map(|runtime| {
        let s = session(&runtime);
        let a = definite(n, 1, 91, dtype).array(&s, dtype);
        let b = matrices("random", (n, 5), 1, 92).array(&s, dtype);
        let (all, stats) =
            counted(&runtime, || [a.cholesky(), a.lu().0, a.qr().0, a.solve(&b)].map(|array| values(&array)));
        assert_eq!(stats.elsewhere.len(), 0, "{stats}");
        all
    });
    let results: Vec<_> = results.collect();
    assert_eq!(results[0], results[1]);
}

/// The columns of each page in the order of a row of numbers.
fn in_order(a: &Pages, columns: &Pages) -> Pages {
    let page = |p: usize| -> Vec<f64> {
        (0..a.columns)
            .flat_map(|j| (0..a.rows).map(move |i| (i, j)))
            .map(|(i, j)| a.at(p, i, columns.at(p, 0, j) as usize))
            .collect()
    };
    Pages { pages: (0..a.pages.len()).map(page).collect(), ..a.clone() }
}

#[test]
fn factors_with_exchanged_columns_have_diagonals_that_descend() {
    for (device, runtime) in unfolded(|b| b) {
        let s = session(&runtime);
        for (dtype, eps) in FLOATS {
            let square = EXTENTS.into_iter().map(|n| (n, n, 1));
            for (m, n, pages) in square.chain([(9, 4, 30), (4, 9, 2), (100, 40, 2), (40, 100, 2), (300, 3, 1)]) {
                for kind in kinds(m + 2 * n, 2) {
                    let what = format!("{device}, {dtype}, {pages} of {m} x {n}, {kind}");
                    let a = matrices(kind, (m, n), pages, 5).rounded(dtype);
                    let (q, r, columns) = a.array(&s, dtype).qr_pivoted();
                    let (q, r, columns) = (Pages::of(&q), Pages::of(&r), Pages::of(&columns));
                    let k = m.min(n);
                    assert_eq!((q.rows, q.columns, r.rows, r.columns), (m, k, k, n), "{what}");
                    assert!(r.transposed().is_lower(), "{what}");
                    for p in 0..pages {
                        let mut order: Vec<usize> = (0..n).map(|j| columns.at(p, 0, j) as usize).collect();
                        order.sort_unstable();
                        assert!(order.into_iter().eq(0..n), "{what}");
                        // No column behind step `i` has a greater rest than the one that the step took.
                        for i in 0..k {
                            let rest = |j: usize| (i..k).map(|row| r.at(p, row, j).powi(2)).sum::<f64>().sqrt();
                            let greatest = (i..n).map(rest).fold(0.0, f64::max);
                            let own = r.at(p, i, i).abs();
                            let slack = 1e-3 * own + 10.0 * m.max(n) as f64 * eps * a.norm();
                            assert!(own + slack >= greatest, "{what}: {own} and {greatest} in row {i}");
                        }
                    }
                    let distance = q.times(&r).distance(&in_order(&a, &columns), a.norm());
                    assert!(distance <= 10.0 * m.max(n) as f64 * eps, "{what}: {distance}");
                    let eye = Pages { rows: k, columns: k, pages: vec![vec![0.0; k * k]; pages] };
                    let eye = eye.map(|i, j, _| (i == j) as u8 as f64);
                    let distance = q.transposed().times(&q).distance(&eye, 1.0);
                    assert!(distance <= 10.0 * m as f64 * eps, "{what}: {distance}");
                }
            }
        }
        let (q, r, columns) = s.full(f64::NAN, [2, 3]).qr_pivoted();
        assert!(values(&q).iter().chain(&values(&r)).all(|x| x.is_nan()), "{device}");
        assert_eq!(values(&columns), [0.0, 1.0, 2.0], "{device}");
        let (q, r, columns) = s.zeros::<f64>([0, 3, 2]).qr_pivoted();
        let shapes = [q, r, columns.clone()].map(|array| array.shape().unwrap().dims().to_vec());
        assert_eq!(shapes, [vec![0, 0, 2], vec![0, 3, 2], vec![1, 3, 2]], "{device}");
        assert_eq!(values(&columns), [0.0, 1.0, 2.0, 0.0, 1.0, 2.0], "{device}");
    }
}

#[test]
fn ranges_and_null_spaces_are_orthonormal_and_as_large_as_the_rank_says() {
    for (device, runtime) in unfolded(|b| b) {
        let s = session(&runtime);
        for (dtype, eps) in FLOATS {
            for (m, n, rank, pages) in
                [(1, 1, 1, 1), (1, 1, 0, 1), (5, 3, 2, 4), (3, 5, 3, 2), (4, 7, 2, 1), (30, 20, 20, 1)]
            {
                let what = format!("{device}, {dtype}, {pages} of {m} x {n} of rank {rank}");
                let left = matrices("random", (m, rank), pages, 3);
                let a = left.times(&matrices("random", (rank, n), pages, 4)).rounded(dtype);
                let array = a.array(&s, dtype);
                let both = wait(async { Ok::<_, tidemill::Error>((array.orth().await?, array.null_space().await?)) });
                let (range, null) = both.unwrap_or_else(|error| panic!("{what}: {error}"));
                let (range, null) = (Pages::of(&range), Pages::of(&null));
                assert_eq!((range.rows, range.columns, null.rows, null.columns), (m, rank, n, n - rank), "{what}");
                let bound = 20.0 * m.max(n) as f64 * eps;
                for basis in [&range, &null].into_iter().filter(|basis| basis.columns > 0) {
                    let eye = Pages {
                        rows: basis.columns,
                        columns: basis.columns,
                        pages: vec![vec![0.0; basis.columns.pow(2)]; pages],
                    };
                    let eye = eye.map(|i, j, _| (i == j) as u8 as f64);
                    let product = Pages { pages: basis.transposed().times(basis).pages, ..eye.clone() };
                    assert!(product.distance(&eye, 1.0) <= bound, "{what}");
                }
                if n > rank {
                    let zero = a.times(&null);
                    assert!(zero.norm() <= bound * a.norm().max(1.0), "{what}: {}", zero.norm());
                }
                if rank > 0 {
                    let projected = range.times(&range.transposed().times(&a));
                    assert!(projected.distance(&a, a.norm().max(1.0)) <= bound, "{what}");
                }
            }
        }
        let ranks = s.from_slice(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0], [2, 2, 2]).unwrap();
        assert_eq!(wait(ranks.orth()).unwrap_err().kind(), ErrorKind::Domain, "{device}");
        let shape = |array: tidemill::Result<Array>| array.unwrap().shape().unwrap().dims().to_vec();
        assert_eq!(shape(wait(s.zeros::<f64>([3, 0]).null_space())), [0, 0], "{device}");
        assert_eq!(values(&wait(s.zeros::<f64>([0, 2]).null_space()).unwrap()), [1.0, 0.0, 0.0, 1.0], "{device}");
        assert_eq!(shape(wait(s.zeros::<f64>([3, 2]).orth())), [3, 0], "{device}");
    }
}

//! Statistics along dimensions, compared with plain loops in f64 on random shapes, with NaN, infinities, empty and
//! short lines, on every device and dtype; errors and refused arguments.

#[path = "common/cases.rs"]
mod cases;
mod common;
#[path = "common/plain.rs"]
mod plain;
#[path = "common/programs.rs"]
mod programs;

use cases::{INF, NAN, each_case, order};
use common::{assert_array, counted, runtimes, session, unfolded, values, wait};
use tidemill::{Array, DType, ErrorKind, Promotion, Runtime, meshgrid};

fn sorted(line: &[f64]) -> Vec<f64> {
    let mut line = line.to_vec();
    line.sort_by(order);
    line
}

/// Asserts that errors are at most `bound` of the expected element, in units of the result dtype's epsilon.
fn assert_close(what: &str, got: &Array, shape: &[usize], expected: &[f64], bound: impl Fn(f64) -> f64) {
    let eps = if got.dtype().unwrap() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    assert_eq!(got.shape().unwrap().dims(), shape, "{what}");
    for (i, (g, e)) in values(got).iter().zip(expected).enumerate() {
        let close = g == e || g.is_nan() && e.is_nan() || (g - e).abs() <= bound(*e) * eps;
        assert!(close, "{what}: element {i} is {g}, expected {e}");
    }
}

#[test]
fn softmax_and_its_logarithm_agree_with_plain_loops() {
    each_case(1, true, |what, s, _, x, dim| {
        let n = x.shape[dim];
        let log2 = (n.max(1) as f64).log2();
        let sum = |line: &[f64]| {
            let greatest = line.iter().copied().fold(-INF, f64::max);
            (greatest, line.iter().map(|v| (v - greatest).exp()).sum::<f64>())
        };
        let (shape, expected) = x.each(dim, n, |line| {
            let (greatest, sum) = sum(line);
            line.iter().map(|v| (v - greatest).exp() / sum).collect()
        });
        let array = x.array(s);
        assert_close(what, &array.softmax(dim), &shape, &expected, |_| 12.0 + 2.0 * log2);
        let (shape, expected) = x.each(dim, n, |line| {
            let (greatest, sum) = sum(line);
            line.iter().map(|v| v - greatest - sum.ln()).collect()
        });
        assert_close(what, &array.log_softmax(dim), &shape, &expected, |y| 12.0 + 3.0 * log2 + y.abs());
    });
}

#[test]
fn softmax_of_large_and_far_numbers_keeps_its_bound() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let far: Vec<f64> = (0..5000).map(|i| 1e4 + f64::from(i % 97) * 0.75).collect();
        let sum: f64 = far.iter().map(|v| (v - 1.0072e4).exp()).sum();
        let soft: Vec<f64> = far.iter().map(|v| (v - 1.0072e4).exp() / sum).collect();
        let logs: Vec<f64> = far.iter().map(|v| v - 1.0072e4 - sum.ln()).collect();
        for dtype in [DType::F32, DType::F64] {
            let x = s.from_slice(&far, 5000).unwrap().cast_to(dtype);
            assert_close(&device, &x.softmax(0), &[5000, 1], &soft, |_| 12.0 + 2.0 * 5000f64.log2());
            assert_close(&device, &x.log_softmax(0), &[5000, 1], &logs, |y| 12.0 + 3.0 * 5000f64.log2() + y.abs());
        }
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn softmax_along_neighbours_is_one_kernel_that_reads_its_array_once() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = s.from_vec((0..64_000).map(|i| (i % 911) as f32 / 100.0).collect(), [1000, 64]).unwrap();
        let (_, plain) = counted(&rt, || values(&x.softmax(0)));
        assert_eq!(plain.kernels, if device == "gpu" { 1 } else { 3 }, "{device}");
        let watch = s.watch(&x).unwrap();
        let (soft, watched) = counted(&rt, || values(&x.softmax(0)));
        assert_eq!(
            (plain.kernels, values(&x.softmax(0))),
            (watched.kernels, soft),
            "{device}: watching changes nothing"
        );
        drop(watch);
        rt.shutdown_blocking().unwrap();
    }
}

/// A quantile by NumPy's default rule. Interpolation between a finite and an infinite number is infinite.
fn quantile(line: &[f64], q: f64) -> f64 {
    if line.is_empty() || line.iter().any(|v| v.is_nan()) {
        return NAN;
    }
    let line = sorted(line);
    let place = q * (line.len() - 1) as f64;
    let (low, share) = (line[place.floor() as usize], place.fract());
    if share == 0.0 {
        return low;
    }
    low * (1.0 - share) + line[place.floor() as usize + 1] * share
}

#[test]
fn medians_and_quantiles_agree_with_plain_loops() {
    for special in [false, true] {
        each_case(2, special, |what, s, dice, x, dim| {
            let array = x.array(s);
            let (shape, expected) = x.each(dim, 1, |line| vec![quantile(line, 0.5)]);
            assert_close(what, &array.median(dim), &shape, &expected, |y| 2.0 + y.abs());
            let q: Vec<f64> = (0..dice.below(6)).map(|_| dice.below(101) as f64 / 100.0).chain([0.0, 1.0]).collect();
            let (shape, expected) = x.each(dim, q.len(), |line| q.iter().map(|&q| quantile(line, q)).collect());
            assert_close(what, &array.quantiles(&q, dim), &shape, &expected, |y| 8.0 + y.abs());
            let (shape, expected) = x.each(dim, 1, |line| vec![quantile(line, q[0])]);
            assert_close(what, &array.quantile(q[0], dim), &shape, &expected, |y| 8.0 + y.abs());
        });
    }
}

#[test]
fn quantiles_between_the_ends_of_a_range_are_finite() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let x = s.from_slice(&[f64::MAX, -f64::MAX], 2).unwrap();
        assert_array(&device, &x.median(0), &[1, 1], &[0.0], 0.0);
        let x = s.from_slice(&[INF, -INF, INF, 1.0, -INF, 2.0], [2, 3]).unwrap();
        assert_array(&device, &x.median(0), &[1, 3], &[NAN, INF, -INF], 0.0);
        assert_array(&device, &x.quantiles(&[], 0), &[0, 3], &[], 0.0);
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn long_lines_agree_with_plain_loops() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let n = 9001usize;
        let data: Vec<f64> = (0..2 * n).map(|i| ((i * i + 3 * i) % 4001) as f64 / 8.0).collect();
        let x = s.from_slice(&data, [n, 2]).unwrap().cast::<f32>();
        let lines = [&data[..n], &data[n..]];
        let expected = lines.map(|line| quantile(line, 0.5));
        assert_array(device, &x.median(0), &[1, 2], &expected, 0.0);
        let expected = lines.map(|line| quantile(line, 0.99));
        assert_array(device, &x.quantile(0.99, 0), &[1, 2], &expected, 1e-6);
        assert_array(device, &x.t().mode(1), &[2, 1], &lines.map(mode), 0.0);
        let greatest = lines.map(|line| sorted(line).into_iter().rev().take(3).collect::<Vec<f64>>());
        assert_array(device, &x.top_k(3, 0, true).0, &[3, 2], &greatest.concat(), 0.0);
        rt.shutdown_blocking().unwrap();
    }
}

fn mode(line: &[f64]) -> f64 {
    let numbers: Vec<f64> = sorted(line).into_iter().filter(|v| !v.is_nan()).collect();
    let (mut best, mut most) = (NAN, 0);
    for &v in &numbers {
        let count = numbers.iter().filter(|&&w| w == v).count();
        if count > most {
            (best, most) = (v, count);
        }
    }
    best
}

#[test]
fn modes_agree_with_plain_loops() {
    each_case(3, true, |what, s, _, x, dim| {
        let got = x.array(s).mode(dim);
        if x.shape[dim] == 0 && !x.each(dim, 1, |_| vec![0.0]).1.is_empty() {
            assert_eq!(got.error().unwrap().kind(), ErrorKind::Argument, "{what}");
            return;
        }
        let (shape, expected) = x.each(dim, 1, |line| vec![mode(line)]);
        assert_eq!(got.dtype().unwrap(), x.dtype, "{what}");
        assert_array(what, &got, &shape, &expected, 0.0);
    });
}

#[test]
fn the_greatest_and_the_least_elements_are_those_of_a_stable_sort() {
    each_case(4, true, |what, s, dice, x, dim| {
        let k = dice.below(x.shape[dim] + 1);
        for largest in [false, true] {
            let first = |line: &[f64]| {
                let mut places: Vec<usize> = (0..line.len()).collect();
                places.sort_by(|&a, &b| if largest { order(&line[b], &line[a]) } else { order(&line[a], &line[b]) });
                places.truncate(k);
                places
            };
            let (got, places) = x.array(s).top_k(k, dim, largest);
            let (shape, expected) = x.each(dim, k, |line| first(line).into_iter().map(|i| line[i]).collect());
            assert_array(what, &got, &shape, &expected, 0.0);
            let (shape, expected) = x.each(dim, k, |line| first(line).into_iter().map(|i| i as f64).collect());
            assert_array(what, &places, &shape, &expected, 0.0);
        }
    });
}

/// For two columns of a page: the sum of the products of their deviations, and the norms of both deviations.
fn deviations(a: &[f64], b: &[f64]) -> (f64, f64, f64) {
    let mean = |line: &[f64]| line.iter().sum::<f64>() / line.len() as f64;
    let (p, q) = (mean(a), mean(b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(x, y)| f(x - p, y - q)).sum::<f64>();
    (sum(&|x, y| x * y), sum(&|x, _| x * x).sqrt(), sum(&|_, y| y * y).sqrt())
}

#[test]
fn covariances_and_correlations_agree_with_plain_loops() {
    for offset in [0.0, 3e3] {
        each_case(10, offset == 0.0, |what, s, _, x, _| {
            let mut x = x.clone();
            if x.dtype.is_float() {
                // The rounding errors of the reference's sums are negligible only beside those of f32.
                x.dtype = if offset == 0.0 { x.dtype } else { DType::F32 };
                x.data.iter_mut().for_each(|v| *v += offset);
            }
            let (n, p) = (x.shape[0], x.shape[1]);
            let (mut cov, mut corr, mut scale) = (Vec::new(), Vec::new(), Vec::new());
            for page in 0..x.shape[2] {
                let columns: Vec<&[f64]> = (0..p).map(|c| &x.data[n * (c + p * page)..][..n]).collect();
                for b in &columns {
                    for a in &columns {
                        let (sum, norm_a, norm_b) = deviations(a, b);
                        let is_constant = [a, b].iter().any(|line| line.iter().all(|v| *v == line[0]));
                        cov.push(if n == 0 { NAN } else { sum / (n.max(2) - 1) as f64 });
                        scale.push(norm_a * norm_b / (n.max(2) - 1) as f64);
                        corr.push(if is_constant { NAN } else { sum / (norm_a * norm_b) });
                    }
                }
            }
            let shape = if x.shape[2] == 1 { vec![p, p] } else { vec![p, p, x.shape[2]] };
            let array = x.array(s);
            let bound = 8.0 * (4.0 + (n.max(1) as f64).log2());
            assert_close(what, &array.corr(), &shape, &corr, |_| bound);
            let got = array.cov();
            let eps = if got.dtype().unwrap() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
            assert_eq!(got.shape().unwrap().dims(), shape, "{what}");
            for (i, (g, (e, scale))) in values(&got).iter().zip(cov.iter().zip(&scale)).enumerate() {
                let close = g.is_nan() && e.is_nan() || (g - e).abs() <= bound * eps * scale.max(1e-12);
                assert!(close, "{what}: covariance {i} is {g}, expected {e}");
            }
        });
    }
}

#[test]
fn running_integrals_agree_with_plain_loops() {
    each_case(11, false, |what, s, dice, x, dim| {
        let n = x.shape[dim];
        let mut points: Vec<f64> = vec![dice.below(5) as f64];
        (1..n).for_each(|k| points.push(points[k - 1] + dice.below(7) as f64 / 4.0));
        points.truncate(n);
        let integral = |line: &[f64], at: &dyn Fn(usize) -> f64| {
            let mut sum = 0.0;
            let step = |k: usize| if k == 0 { 0.0 } else { (line[k] + line[k - 1]) / 2.0 * (at(k) - at(k - 1)) };
            (0..line.len()).map(|k| (sum += step(k), sum).1).collect::<Vec<f64>>()
        };
        let array = x.array(s);
        // The arrays become f64, because halves and quarters are exact there and integers do not mix with f64 arrays.
        let array = if x.dtype.is_integer() { array.cast::<f64>() } else { array };
        let (shape, expected) = x.each(dim, n, |line| integral(line, &|k| k as f64));
        assert_array(what, &array.cumtrapz(dim), &shape, &expected, 0.0);
        let (shape, expected) = x.each(dim, n, |line| integral(line, &|k| points[k]));
        let at = s.from_slice(&points, [1, n]).unwrap();
        if at.shape().unwrap() != array.shape().unwrap() || dim == 1 {
            assert_array(what, &array.cumtrapz_at(&at, dim), &shape, &expected, 0.0);
        }
        let (_, whole) = x.each(dim, n, |_| points.clone());
        let at = s.from_slice(&whole, &x.shape[..]).unwrap();
        assert_array(what, &array.cumtrapz_at(&at, dim), &shape, &expected, 0.0);
    });
}

#[test]
fn polynomials_and_grids_agree_with_plain_loops() {
    each_case(12, true, |what, s, dice, x, _| {
        let p: Vec<f64> = (0..dice.below(5)).map(|_| dice.below(5) as f64 - 2.0).collect();
        let horner = |v: f64| p.iter().skip(1).fold(p.first().copied().unwrap_or(0.0), |sum, c| sum * v + c);
        let terms = |v: f64| p.iter().fold(0.0, |sum, c: &f64| sum * v.abs() + c.abs());
        let array = x.array(s);
        // Integers do not mix with f64 arrays.
        let array = if x.dtype.is_integer() { array.cast::<f64>() } else { array };
        let got = array.polyval(&s.from_slice(&p, p.len()).unwrap());
        assert_eq!(got.shape().unwrap(), array.shape().unwrap(), "{what}");
        for (g, &v) in values(&got).iter().zip(&x.data) {
            let (e, bound) = (horner(v), 2.0 * p.len() as f64 * f64::from(f32::EPSILON) * terms(v));
            assert!(
                *g == e || g.is_nan() && e.is_nan() || (g - e).abs() <= bound,
                "{what}: {p:?} of {v} is {g}, not {e}"
            );
        }
    });
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let axes = [(0..4).collect::<Vec<i32>>(), (10..13).collect(), (20..22).collect()];
        let arrays = axes.each_ref().map(|axis| s.from_slice(axis, [1, axis.len()]).unwrap());
        let grid = meshgrid(arrays.each_ref());
        for (axis, got) in grid.iter().enumerate() {
            let mut expected = Vec::new();
            for &z in &axes[2] {
                for &x in &axes[0] {
                    axes[1].iter().for_each(|&y| expected.push(f64::from([x, y, z][axis])));
                }
            }
            assert_array(&device, got, &[3, 4, 2], &expected, 0.0);
        }
        let [one] = meshgrid([&arrays[1]]);
        assert_array(&device, &one, &[3, 1], &[10.0, 11.0, 12.0], 0.0);
        let [x, y] = meshgrid([&arrays[0], &s.zeros::<f64>([0, 1])]);
        assert_eq!((x.shape().unwrap().dims(), y.shape().unwrap().dims()), (&[0, 4][..], &[0, 4][..]));
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn what_does_not_fit_is_an_error_that_names_method_and_line() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let x = s.from_slice(&[1.0, 2.0, 3.0, 4.0], [2, 2]).unwrap();
        let refused = |array: Array, op: &str, kind: ErrorKind| {
            let error = futures::executor::block_on(array.gather_any()).unwrap_err();
            assert_eq!((error.kind(), error.op()), (kind, Some(op)), "{device}: {error}");
            assert!(error.location().is_some_and(|at| at.file().ends_with("statistics.rs")), "{error}");
        };
        refused(x.softmax(2), "softmax", ErrorKind::Index);
        refused(x.log_softmax(2), "log_softmax", ErrorKind::Index);
        refused(x.median(2), "median", ErrorKind::Index);
        refused(x.quantile(1.5, 0), "quantile", ErrorKind::Argument);
        refused(x.quantiles(&[0.5, NAN], 0), "quantiles", ErrorKind::Argument);
        refused(x.mode(9), "mode", ErrorKind::Index);
        refused(x.top_k(3, 0, true).0, "top_k", ErrorKind::Index);
        refused(x.top_k(0, 2, true).1, "top_k", ErrorKind::Index);
        refused(x.search_sorted_dim(0, &s.zeros::<f64>([1, 3]), false), "search_sorted_dim", ErrorKind::Shape);
        refused(x.histogram(&s.zeros::<f64>([1, 1])), "histogram", ErrorKind::Argument);
        refused(x.histogram(&x.flip(0)), "histogram", ErrorKind::Domain);
        refused(x.histogram(&s.from_slice(&[0.0, NAN], 2).unwrap()), "histogram", ErrorKind::Domain);
        refused(x.bincount(5), "bincount", ErrorKind::DType);
        refused(s.from_slice(&[1u32], 1).unwrap().accumulate(&x, 5), "accumulate", ErrorKind::Shape);
        refused(x.cumtrapz(2), "cumtrapz", ErrorKind::Index);
        refused(x.cumtrapz_at(&s.zeros::<f64>([3, 1]), 0), "cumtrapz_at", ErrorKind::Shape);
        let fault = &x + s.zeros::<f64>([3, 1]);
        let [grid, _] = meshgrid([&x, &fault]);
        assert_eq!(grid.error().unwrap().kind(), ErrorKind::Shape);
        let error = wait(fault.unique()).unwrap_err();
        assert_eq!(error.op(), Some("add"), "{error}");
        let beyond = s.from_slice(&[1u32, 5], 2).unwrap().bincount(5);
        assert_eq!(beyond.gather_blocking::<u32>().unwrap_err().kind(), ErrorKind::Index, "{device}");
        rt.shutdown_blocking().unwrap();
    }
}

/// An array, and the source line that recorded it.
macro_rules! made {
    ($array:expr) => {
        (line!(), $array)
    };
}

#[test]
fn faults_name_the_line_that_called_the_method() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let (x, index) = (s.from_slice(&[3.0, 1.0], 2).unwrap(), s.from_slice(&[1i32, 7], 2).unwrap());
        let unknown = &index + s.full(0i32, [2, 1]);
        let faults = [
            made!(x.softmax(7)),
            made!(x.quantile(2.0, 0)),
            made!(x.mode(5)),
            made!(x.top_k(3, 0, true).0),
            made!(x.top_k(3, 0, true).1),
            made!(x.histogram(&x)),
            made!(unknown.bincount(5)),
            made!(unknown.accumulate(&x, 5)),
            made!(x.scatter_add(&unknown, 1)),
            made!(x.scatter_mul_dim(0, &unknown, &x)),
            made!(x.cumtrapz_at(&s.zeros::<f64>([5, 1]), 0)),
            made!(index.polyval(&x)),
            made!(index.search_sorted_dim(0, &s.zeros::<f64>([1, 2]), true)),
        ];
        for (line, array) in faults {
            let error = wait(array.gather_any()).unwrap_err();
            let named = error.location().is_some_and(|at| at.file().ends_with("statistics.rs") && at.line() == line);
            assert!(named, "{device}, line {line}: {error}");
        }
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn strict_promotion_takes_what_loses_nothing() {
    let builder = Runtime::builder().device("host").promotion(Promotion::Strict);
    let rt = builder.fold_elements_max(0).start_blocking().unwrap();
    let s = session(&rt);
    let (x, n) = (s.from_slice(&[3.0f32, 1.0, 2.0, 1.0], 4).unwrap(), s.from_slice(&[3i32, 1, 2, 1], 4).unwrap());
    let index = s.from_slice(&[1u8, 0, 1], 3).unwrap();
    for x in [&x, &n] {
        assert_array("softmax", &x.softmax(0).sum(0), &[1, 1], &[1.0], 1e-6);
        assert_array("median", &x.quantiles(&[0.25, 0.5], 0), &[2, 1], &[1.0, 1.5], 0.0);
        assert_array("mode", &x.mode(0), &[1, 1], &[1.0], 0.0);
        assert_array("top_k", &x.top_k(2, 0, true).1, &[2, 1], &[0.0, 2.0], 0.0);
        assert_array("search", &x.sort(0).0.search_sorted(x, true), &[4, 1], &[4.0, 2.0, 3.0, 2.0], 0.0);
        assert_array("histogram", &x.histogram(&x.sort(0).0), &[3, 1], &[0.0, 2.0, 2.0], 0.0);
        assert_array("member", &x.is_member(&x.slice(0..2)), &[4, 1], &[1.0, 1.0, 0.0, 1.0], 0.0);
        assert_array("unique", &wait(x.unique()).unwrap().values, &[3, 1], &[1.0, 2.0, 3.0], 0.0);
        assert_array("scatter", &x.scatter_add(&index, 2), &[4, 1], &[5.0, 5.0, 2.0, 1.0], 0.0);
        assert_array("scatter", &x.scatter_mul(&index, x.slice(0..3)), &[4, 1], &[3.0, 6.0, 2.0, 1.0], 0.0);
        assert_array("accumulate", &index.accumulate(&x.slice(0..3), 2), &[2, 1], &[1.0, 5.0], 0.0);
        assert_array("integral", &x.cumtrapz_at(x, 0), &[4, 1], &[0.0, -4.0, -2.5, -4.0], 0.0);
        assert_array("polynomial", &x.polyval(x), &[4, 1], &[97.0, 7.0, 33.0, 7.0], 0.0);
        assert_array("covariance", &x.cov(), &[1, 1], &[11.0 / 12.0], 1e-6);
    }
    let wide = s.from_slice(&[1i64 << 60, 1], 2).unwrap();
    assert_eq!(wide.median(0).error().unwrap().kind(), ErrorKind::DType);
    assert_eq!(x.scatter_add(&index, 1e300).error().unwrap().kind(), ErrorKind::DType);
    rt.shutdown_blocking().unwrap();
}

//! Sums, scans, means, norms and variances are within the bounds of `docs/accuracy.md`, for every length and layout, on
//! every device: one set of cases against references of twice the digits.

mod common;
#[path = "common/exact.rs"]
mod exact;

use common::{runtimes, session, values, wait};
use exact::Exact;
use tidemill::testing::rounds;
use tidemill::{Array, Element, Runtime, Session};

fn exact(x: impl Iterator<Item = f64>) -> Exact {
    let mut sum = Exact::default();
    x.for_each(|x| sum.add(x));
    sum
}

fn exact_dot(x: &[f64], y: &[f64]) -> f64 {
    let mut sum = Exact::default();
    x.iter().zip(y).for_each(|(&a, &b)| sum.add_product(a, b));
    sum.value()
}

/// The sample variance.
fn exact_variance(x: &[f64]) -> f64 {
    let n = x.len() as f64;
    let sum = exact(x.iter().copied());
    let mean = sum.value() / n;
    // The rounding error of the mean is the rest of the sum, divided by n.
    let mut rest = sum;
    (0..x.len()).for_each(|_| rest.add(-mean));
    let mean_low = rest.value() / n;
    let mut squares = Exact::default();
    x.iter().map(|x| (x - mean) - mean_low).for_each(|d| squares.add_product(d, d));
    squares.value() / (n - 1.0).max(1.0)
}

/// A line with its exact results, which the results of every device and layout must meet.
struct Line {
    /// The elements, as numbers that the dtype can hold.
    terms: Vec<f64>,
    sum: f64,
    /// The sum of the terms' magnitudes.
    size: f64,
    dot: f64,
    variance: f64,
    /// Running sums from the first term on, and from the last term on, each with its allowed error in units of the
    /// dtype's epsilon.
    scans: [Vec<(f64, f64)>; 2],
}

impl Line {
    fn new(terms: Vec<f64>) -> Line {
        let scan = |order: &mut dyn Iterator<Item = &f64>| -> Vec<(f64, f64)> {
            let (mut sum, mut size, mut count) = (Exact::default(), 0.0, 0.0f64);
            let step = |&x: &f64| {
                sum.add(x);
                size += x.abs();
                count += 1.0;
                (sum.value(), (4.0 + count.log2()) * size)
            };
            order.map(step).collect()
        };
        let forward = scan(&mut terms.iter());
        let mut reverse = scan(&mut terms.iter().rev());
        reverse.reverse();
        Line {
            sum: exact(terms.iter().copied()).value(),
            size: exact(terms.iter().map(|x| x.abs())).value(),
            dot: exact_dot(&terms, &terms),
            variance: exact_variance(&terms),
            scans: [forward, reverse],
            terms,
        }
    }
}

/// Lines that are hard to add up, by name.
fn lines(n: usize) -> Vec<(&'static str, Vec<f64>)> {
    let of = |f: &dyn Fn(usize) -> f64| (0..n).map(f).collect::<Vec<f64>>();
    vec![
        ("constant tenths", of(&|_| 0.1f32 as f64)),
        ("graded", of(&|i| 1.0 / (1.0 + i as f64))),
        ("graded upwards", of(&|i| ((i % 97) as f64 * 0.31).exp2() + i as f64)),
        ("alternating", of(&|i| if i % 2 == 0 { 1.0 + (i % 13) as f64 / 7.0 } else { -1.1 })),
        ("offset by 1e4 deviations", of(&|i| 28_700.0 + (i * 7919 % 10) as f64)),
        ("offset by 1e6 deviations", of(&|i| 4e6 + (i * 7919 % 10) as f64)),
        ("an outlier first", of(&|i| if i == 0 { 1e5 } else { (i * 31 % 17) as f64 / 3.0 })),
        ("a step", of(&|i| if i < n / 2 { -3.3 } else { 1e3 + (i % 5) as f64 })),
    ]
}

/// How three lines lie in an array, and along which dimension they are folded.
const LAYOUTS: [(&str, usize); 3] = [("one line", 0), ("columns", 0), ("rows", 1)];

struct Case<'a> {
    what: String,
    lines: &'a [Line],
    dim: usize,
    eps: f64,
}

impl Case<'_> {
    fn n(&self) -> f64 {
        self.lines[0].terms.len() as f64
    }

    /// Asserts that the errors of results, one for each line, are at most `scale (4 + log2 n) eps` times the line's
    /// size. `of` gives the expected result of a line, and its size.
    fn within(&self, name: &str, got: &[f64], scale: f64, of: impl Fn(&Line) -> (f64, f64)) {
        let bound = scale * (4.0 + self.n().log2()) * self.eps;
        assert_eq!(got.len(), self.lines.len(), "{name} of {}", self.what);
        for (got, line) in got.iter().zip(self.lines) {
            let (expected, size) = of(line);
            let off = (got - expected).abs();
            assert!(
                off <= bound * size,
                "{name} of {}: {got} instead of {expected}, off by {:.1} of what is allowed",
                self.what,
                off / (bound * size)
            );
        }
    }

    fn check(&self, x: &Array) {
        let (total, mean) = (x.sum(self.dim), x.mean(self.dim));
        let (dot, norm) = (x.dot(x, self.dim), x.norm(self.dim));
        let (var, std) = (x.var(self.dim), x.std(self.dim));
        self.within("sum", &values(&total), 1.0, |line| (line.sum, line.size));
        self.within("mean", &values(&mean), 1.0, |line| (line.sum / self.n(), line.size / self.n()));
        self.within("dot", &values(&dot), 1.0, |line| (line.dot, line.dot));
        self.within("norm", &values(&norm), 1.0, |line| (line.dot.sqrt(), line.dot.sqrt()));
        self.within("var", &values(&var), 8.0, |line| (line.variance, line.variance));
        self.within("std", &values(&std), 8.0, |line| (line.variance.sqrt(), line.variance.sqrt()));
        for reverse in [false, true] {
            let scan = if reverse { x.cumsum_reverse(self.dim) } else { x.cumsum(self.dim) };
            self.check_scan(&values(&scan), reverse);
        }
    }

    fn check_scan(&self, got: &[f64], reverse: bool) {
        let (n, lines) = (self.lines[0].terms.len(), self.lines.len());
        assert_eq!(got.len(), n * lines, "cumsum of {}", self.what);
        for (number, line) in self.lines.iter().enumerate() {
            let (first, step) = if self.dim == 0 { (number * n, 1) } else { (number, lines) };
            let got = got[first..].iter().step_by(step);
            for (i, (got, &(sum, bound))) in got.zip(&line.scans[reverse as usize]).enumerate() {
                let (off, bound) = ((got - sum).abs(), bound * self.eps);
                assert!(off <= bound, "cumsum of {} at {i} (reverse {reverse}): {}", self.what, off / bound);
            }
        }
    }
}

fn check_lines<T: Element>(
    runtimes: &[(String, Session)],
    n: usize,
    eps: f64,
    of: impl Fn(f64) -> T,
    back: impl Fn(T) -> f64,
) {
    for (kind, line) in lines(n) {
        let line: Vec<T> = line.into_iter().map(&of).collect();
        // The later lines are the first one, rotated by some places.
        let all: Vec<Vec<T>> = (0..3).map(|k| [&line[k * 5 % n..], &line[..k * 5 % n]].concat()).collect();
        let lines: Vec<Line> = all.iter().map(|line| Line::new(line.iter().map(|&x| back(x)).collect())).collect();
        for (layout, dim) in LAYOUTS {
            let count = if layout == "one line" { 1 } else { 3 };
            let (data, shape) = match dim {
                0 => (all[..count].concat(), [n, count]),
                _ => ((0..n * count).map(|at| all[at % count][at / count]).collect(), [count, n]),
            };
            for (device, s) in runtimes {
                // Only tiny arrays are folded when recorded. The short form runs larger ones on the device without
                // folding only.
                if rounds(n > 64 && device == "host, fold 64", false) {
                    continue;
                }
                let what = format!("{n} {:?} ({kind}, {layout}) on the {device}", T::DTYPE);
                let x = s.from_slice(&data, shape).unwrap();
                Case { what, lines: &lines[..count], dim, eps }.check(&x);
            }
        }
    }
}

/// Lengths around every limit at which devices cut lines, and some larger ones.
const LENGTHS: [usize; 22] =
    [1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 64, 65, 127, 129, 255, 257, 1000, 1025, 4095, 4096, 4097, 5000];

/// Every third of these lengths and a longer one, or with `TIDEMILL_TESTS=all` all of them and two longer ones.
fn lengths() -> impl Iterator<Item = usize> {
    let longer: &[usize] = rounds(&[16_385], &[16_385, 100_000]);
    LENGTHS.into_iter().step_by(rounds(3, 1)).chain(longer.iter().copied())
}

/// A session on every device, by the device's name.
fn sessions(runtimes: &[(String, Runtime)]) -> Vec<(String, Session)> {
    runtimes.iter().map(|(device, rt)| (device.clone(), session(rt))).collect()
}

#[test]
fn sums_scans_norms_and_variances_of_singles_are_within_their_bounds() {
    let runtimes = runtimes();
    let sessions = sessions(&runtimes);
    for n in lengths() {
        check_lines(&sessions, n, f32::EPSILON as f64, |x| x as f32, |x| x as f64);
    }
}

#[test]
fn sums_scans_norms_and_variances_of_doubles_are_within_their_bounds() {
    let runtimes = runtimes();
    let sessions = sessions(&runtimes);
    for n in lengths() {
        check_lines(&sessions, n, f64::EPSILON, |x| x, |x| x);
    }
}

#[test]
fn long_lines_are_within_their_bounds() {
    let runtimes: Vec<_> = runtimes().into_iter().skip(1).collect();
    let sessions = sessions(&runtimes);
    for (kind, line) in lines(rounds(100_000, 1_000_000)) {
        let line: Vec<f32> = line.into_iter().map(|x| x as f32).collect();
        let lines = [Line::new(line.iter().map(|&x| x as f64).collect())];
        for (device, s) in &sessions {
            let x = s.from_slice(&line, [line.len(), 1]).unwrap();
            let what = format!("{kind}, on the {device}");
            Case { what, lines: &lines, dim: 0, eps: f32::EPSILON as f64 }.check(&x);
        }
    }
    let n = rounds(1_000_000, 10_000_000);
    let tenths = vec![0.1f32; n];
    for (device, s) in &sessions {
        let x = s.from_slice(&tenths, [n]).unwrap();
        let expected = 0.1f32 as f64 * n as f64;
        let bound = (4.0 + (n as f64).log2()) * f32::EPSILON as f64 * expected;
        let last = x.cumsum(0).slice(n - 1..n);
        for (name, got) in [("sum", x.sum(..)), ("cumsum", last), ("norm", x.norm(..) * expected.sqrt())] {
            let off = (values(&got)[0] / if name == "norm" { 0.1f64.sqrt() } else { 1.0 } - expected).abs();
            // The square root of the f32 nearest to a tenth differs from that of a tenth, so the bound is doubled.
            let bound = if name == "norm" { bound * 2.0 } else { bound };
            assert!(off <= bound, "{name} of {n} tenths on the {device}: {}", off / bound);
        }
    }
}

/// Takes the deviation of a whole matrix over both dimensions, alone and in a kernel with the mean.
#[test]
fn the_deviation_of_an_offset_picture_is_exact_to_the_last_places() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let pixels: Vec<f32> = (0..3 * 160 * 200).map(|i| 1e6 + (i / 3 * 7919 % 10) as f32).collect();
        let x = s.from_slice(&pixels, [3, 160, 200]).unwrap();
        let (mean, std) = (x.mean([1, 2]), x.std([1, 2]));
        let (mean, std) = wait(async { futures::try_join!(mean.gather::<f32>(), std.gather::<f32>()) }).unwrap();
        let channel: Vec<f64> = pixels.iter().step_by(3).map(|&x| x as f64).collect();
        let expected = exact_variance(&channel).sqrt();
        for got in std.iter().map(|&x| x as f64) {
            assert!((got / expected - 1.0).abs() < 4e-7, "{device}: {got} instead of {expected}");
        }
        for got in mean.iter() {
            assert!((got - 1_000_004.5).abs() <= 1.0, "{device}: {got}");
        }
    }
}

#[test]
fn norms_neither_overflow_nor_vanish_and_pass_infinity_and_nan_on() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        let norm = |x: &[f32]| values(&s.from_slice(x, [x.len()]).unwrap().norm(..))[0];
        let near = |got: f64, expected: f64| assert!((got / expected - 1.0).abs() < 1e-6, "{device}: {got} {expected}");
        for n in [3usize, 5000] {
            let root = (n as f64).sqrt();
            for size in [1e-37f32, 3e-30, 1e-17, 1e-16, 1.0, 1e14, 2e14, 3e30, 1e36] {
                near(norm(&vec![size; n]), size as f64 * root);
                // Beside one element that is far greater or smaller than the others.
                let mut mixed = vec![size; n];
                mixed[n / 2] = 1.0;
                near(norm(&mixed), ((n as f64 - 1.0) * (size as f64).powi(2) + 1.0).sqrt());
            }
            let mut x = vec![1.0f32; n];
            x[n - 1] = f32::NEG_INFINITY;
            assert_eq!(norm(&x), f64::INFINITY, "{device}");
            x[0] = f32::NAN;
            assert!(norm(&x).is_nan(), "{device}");
            assert_eq!(norm(&vec![0.0; n]), 0.0, "{device}");
        }
        let norm64 = |x: &[f64]| values(&s.from_slice(x, [x.len()]).unwrap().norm(..))[0];
        for size in [1e-300, 1e-160, 1e-140, 1e140, 1e160, 1e300] {
            near(norm64(&vec![size; 5000]), size * 5000f64.sqrt());
        }
    }
}

#[test]
fn variances_of_infinity_and_nan_are_nan_and_of_equal_numbers_zero() {
    for (device, rt) in runtimes() {
        let s = session(&rt);
        for n in [2usize, 20, 5000] {
            for special in [f32::NAN, f32::INFINITY] {
                for at in [0, n / 2, n - 1] {
                    let mut x = vec![1.5f32; n];
                    x[at] = special;
                    let x = s.from_slice(&x, [n]).unwrap();
                    assert!(values(&x.var(..))[0].is_nan(), "{device}: {special} at {at} of {n}");
                    let rest = values(&x.nan_var(..))[0];
                    assert_eq!(special.is_nan(), rest == 0.0, "{device}: {special} at {at} of {n}: {rest}");
                }
            }
            let x = s.from_slice(&vec![0.1f32; n], [n]).unwrap();
            assert_eq!(values(&x.var(..)), [0.0], "{device}");
        }
        let none = s.from_slice(&[f32::NAN; 300], [300]).unwrap();
        assert!(values(&none.nan_var(..))[0].is_nan(), "{device}");
        assert!(values(&none.nan_mean(..))[0].is_nan(), "{device}");
    }
}

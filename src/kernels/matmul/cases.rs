//! Inputs for which a running sum has large errors, and the bound on the error of products on every device (MATMUL-1).

use crate::graph::DType;
use crate::kernels::library::Library;
use crate::rounds::rounds;

/// A product to check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub batch: usize,
    pub transpose_a: bool,
    pub transpose_b: bool,
}

impl Case {
    pub fn library(self, dtype: DType) -> Library {
        let Case { m, n, k, batch, transpose_a, transpose_b } = self;
        Library::MatMul {
            dtype,
            m: m as u32,
            n: n as u32,
            k: k as u32,
            batch: batch as u32,
            transpose_a,
            transpose_b,
            stride_a: (m * k) as u32,
            stride_b: (k * n) as u32,
        }
    }
}

/// Shapes that take all code paths: thin products, Gram matrices, outer products, lengths that are no multiples of
/// block sizes.
pub(crate) fn shapes(long: usize) -> Vec<Case> {
    let sizes = [
        (1, 1, 1),
        (1, 1, 17),
        (1, 1, 33),
        (1, 1, 100),
        (1, 1, 4095),
        (1, 1, long),
        (2, 2, long),
        (3, 3, long + 7),
        (8, 1, long / 2),
        (1, 8, long / 2),
        (3, 40, long / 8),
        (40, 3, long / 8),
        (70, 1, 1000),
        (1, 70, 1000),
        (90, 100, 300),
        (17, 18, 4000),
        (33, 9, 1025),
        (9, 33, 129),
        (65, 66, 1),
        (130, 2, 3),
        (5, 7, 16),
        (100, 70, 64),
    ];
    let mut cases = Vec::new();
    for (at, (m, n, k)) in sizes.into_iter().enumerate() {
        // Long products take two of the four layouts each, so that all layouts occur.
        let layouts = [(false, false), (true, false), (false, true), (true, true)];
        let some = if m * n * k > 20_000 { vec![layouts[at % 4], layouts[(at + 1) % 4]] } else { layouts.to_vec() };
        for (transpose_a, transpose_b) in some {
            let batch = if k < 200 { 3 } else { 1 };
            cases.push(Case { m, n, k, batch, transpose_a, transpose_b });
        }
    }
    cases
}

/// The kinds of terms of the sums.
pub(crate) const KINDS: [&str; 7] =
    ["tenths", "ones", "a large one first", "falling", "alternating", "offset", "mixed"];

/// The kinds that a test takes for a case, with their numbers: all with `TIDEMILL_TESTS=all`, otherwise two, different
/// ones for each case.
pub(crate) fn kinds(case: usize) -> impl Iterator<Item = (usize, &'static str)> {
    let taken = rounds(2, KINDS.len());
    KINDS.into_iter().enumerate().cycle().skip(case * 2 % KINDS.len()).take(taken)
}

/// The two factors of term `p` of the sum of row `i` and column `j`, which depend on `(i, p)` and `(p, j)` alone.
fn factors(kind: &str, line: usize, p: usize, left: bool, half_ulp: f64) -> f64 {
    let scale = 1.0 + line as f64 / 16.0;
    match (kind, left) {
        ("tenths", true) => 0.1 * scale,
        ("ones", _) => 1.0,
        ("a large one first", true) => {
            if p == 0 {
                1.0
            } else {
                half_ulp
            }
        }
        ("falling", true) => scale / (1.0 + p as f64),
        ("alternating", true) => {
            if p.is_multiple_of(2) {
                0.7 * scale
            } else {
                -0.3
            }
        }
        ("offset", true) => 1000.0 + (p * 7 % 10) as f64 + 0.3,
        ("mixed", _) => ((p * 7919 + line * 31) % 1013) as f64 / 1013.0 - 0.3,
        ("offset", false) => 1.0 / 3.0,
        _ => 1.0,
    }
}

/// The operands of a case, rounded by `round`, in storage order.
pub(crate) fn operands(case: Case, kind: &str, half_ulp: f64, round: impl Fn(f64) -> f64) -> (Vec<f64>, Vec<f64>) {
    let Case { m, n, k, batch, transpose_a, transpose_b } = case;
    let fill = |lines: usize, along_k: bool, left: bool| -> Vec<f64> {
        let page = (0..lines * k).map(|at| {
            let (line, p) = if along_k { (at / k, at % k) } else { (at % lines, at / lines) };
            round(factors(kind, line, p, left, half_ulp))
        });
        let page: Vec<f64> = page.collect();
        page.iter().copied().cycle().take(page.len() * batch).collect()
    };
    (fill(m, transpose_a, true), fill(n, !transpose_b, false))
}

/// The exact sum of products, to about twice the precision of f64, and the sum of the terms' magnitudes.
fn exact(terms: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let (mut high, mut low, mut magnitude) = (0.0f64, 0.0f64, 0.0f64);
    for (x, y) in terms {
        let product = x * y;
        let rest = x.mul_add(y, -product);
        let sum = high + product;
        let back = sum - high;
        low += (high - (sum - back)) + (product - back) + rest;
        high = sum;
        magnitude += product.abs();
    }
    (high + low, magnitude)
}

/// The largest error of a product, divided by the bound. It must be at most 1.
pub(crate) fn worst(case: Case, a: &[f64], b: &[f64], got: &[f64], eps: f64) -> f64 {
    let Case { m, n, k, batch, transpose_a, transpose_b } = case;
    let mut worst = 0.0f64;
    // Many elements with long sums take long, so only some elements are checked.
    let step = (m * n * batch * k / 400_000).max(1);
    for at in (0..m * n * batch).step_by(step) {
        let (i, j, page) = (at % m, at / m % n, at / (m * n));
        let left = |p: usize| a[page * m * k + if transpose_a { p + k * i } else { i + m * p }];
        let right = |p: usize| b[page * k * n + if transpose_b { j + n * p } else { p + k * j }];
        let (sum, magnitude) = exact((0..k).map(|p| (left(p), right(p))));
        let bound = (4.0 + (k as f64).log2()) * eps * magnitude;
        let error = (got[at] - sum).abs();
        assert!(error.is_finite(), "element {at} is {}", got[at]);
        worst = worst.max(if error == 0.0 { 0.0 } else { error / bound });
    }
    worst
}

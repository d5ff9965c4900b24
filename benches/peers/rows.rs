//! The rows of the table: the workloads, the sizes of their arrays, and Tidemill's goals.

use crate::programs::{self as p, Ends, Program};

/// One row. `inputs` are made before the measurement, and are not timed.
pub struct Row {
    pub name: &'static str,
    /// The description of the workload that the page prints.
    pub what: &'static str,
    /// The sizes on a GPU. A row without sizes is left out there. Likewise for `host`, a CPU.
    pub gpu: &'static [usize],
    pub host: &'static [usize],
    /// The size of a quick run.
    pub quick: usize,
    /// The goal for Tidemill's time divided by the best peer's.
    pub goal: f64,
    /// The largest relative difference between Tidemill's check value and a peer's with which the two agree. Rows have a
    /// large `tolerance` if the libraries draw other random numbers, or if all rounding errors of a sum have one sign.
    pub tolerance: f64,
    pub inputs: fn(usize) -> Vec<Input>,
    pub program: Program,
    pub ends: Ends,
}

/// One input: numbers that all peers make in the same way, by a formula of their index.
pub enum Input {
    /// `fract((i + 1) * 0.618…) - 0.5` in f32 or f64, of this shape (column-major).
    Even(Vec<usize>),
    EvenF64(Vec<usize>),
    /// `count` indices into an array of `of` elements.
    Places {
        count: usize,
        of: usize,
    },
    /// As `Even`, but in the program's own memory.
    Host(usize),
}
use Input::{Even, EvenF64, Host, Places};

/// A row without inputs.
fn none(_: usize) -> Vec<Input> {
    Vec::new()
}

fn line(n: usize) -> Vec<Input> {
    vec![Even(vec![n, 1])]
}

fn square(n: usize) -> Vec<Input> {
    vec![Even(vec![n, n])]
}

/// A square and a column.
fn system(n: usize) -> Vec<Input> {
    vec![Even(vec![n, n]), Even(vec![n, 1])]
}

/// Images and labels, and the parameters of a network.
fn network(n: usize) -> Vec<Input> {
    let parameters = [[512, 784], [512, 1], [10, 512], [10, 1]].map(|shape| Even(shape.to_vec()));
    [Even(vec![784, n]), Places { count: n, of: 10 }].into_iter().chain(parameters).collect()
}

macro_rules! row {
    ($name:literal, $what:literal, $gpu:expr, $host:expr, $quick:expr, $goal:expr, $tolerance:expr, $inputs:expr, $program:expr, $ends:ident) => {
        Row {
            name: $name,
            what: $what,
            gpu: &$gpu,
            host: &$host,
            quick: $quick,
            goal: $goal,
            tolerance: $tolerance,
            inputs: $inputs,
            program: $program,
            ends: Ends::$ends,
        }
    };
}

/// All rows, in the order of the page.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    row!("chain", "ten-op chain, f32", [1_000_000, 100_000_000], [5_000_000], 10_000, 1.0, 1e-4, line, p::chain, OnTheDevice),
    row!("chain_f64", "ten-op chain, f64", [50_000_000], [5_000_000], 10_000, 0.8, 1e-9, |n| vec![EvenF64(vec![n, 1])], p::chain, OnTheDevice),
    row!("add", "`x + 0.5`, f32", [100_000_000], [20_000_000], 10_000, 1.1, 1e-5, line, p::add, OnTheDevice),
    row!("randn", "normal random numbers, f32", [100_000_000], [5_000_000], 10_000, 1.0, 1e9, none, p::randn, OnTheDevice),
    row!("image4k", "images in 4K: random, normalise over two dimensions, gamma, mean square", [64], [2], 1, 0.6, 1e-2, none, p::image, WithANumber),
    row!("gbm256", "geometric Brownian motion, 256 steps, f32", [1_000_000, 5_000_000], [100_000], 1_000, 0.4, 0.2, none, p::brownian, WithANumber),
    row!("vol256", "stochastic volatility, 256 steps, f32", [1_000_000], [100_000], 1_000, 0.5, 0.05, none, p::volatility, WithANumber),
    row!("mandel100", "Mandelbrot set, 100 steps, f32, n x n", [4096], [1024], 64, 0.15, 2e-2, none, p::mandelbrot, WithANumber),
    row!("stencil100", "4-point stencil by circular shifts, 100 steps, f32, n x n", [4096], [1024], 64, 0.4, 1e-3, square, p::stencil, WithANumber),
    row!("blur9", "blur by nine slices of an f32 image, n x n", [8192], [2048], 64, 1.0, 1e-4, square, p::blur, OnTheDevice),
    row!("fdtd200", "Yee's scheme in f64, 200 steps, n x n", [1000, 4000], [500, 1000], 64, 1.0, 1e-6, none, p::fdtd, WithANumber),
    row!("pairs", "sum over all pairs of n points, f32", [32768], [4096], 100, 0.9, 1e-4, |n| vec![Even(vec![n, 1]), Even(vec![n, 1])], p::pairs, WithANumber),
    row!("logreg20", "logistic regression, n x 256, 20 steps, f32", [1_000_000], [50_000], 1_000, 1.0, 1e-3, |n| vec![Even(vec![n, 256])], p::regression, WithANumber),
    row!("chain_grad", "gradient of the sum of the ten-op chain, f32", [10_000_000], [5_000_000], 10_000, 1.0, 1e-4, line, p::chain_gradient, OnTheDevice),
    row!("gbm_grad", "delta and vega of the option on geometric Brownian motion, 256 steps, f32", [1_000_000, 5_000_000], [20_000], 1_000, 0.6, 0.2, none, p::greeks, WithANumber),
    row!("net_grad", "gradients of a 784-512-10 network by its parameters, a batch of n, f32", [1024], [1024], 64, 1.2, 1e-3, network, p::network, OnTheDevice),
    row!("logreg_grad", "gradient of a logistic regression's loss, n x 256, f32", [1_000_000], [50_000], 1_000, 1.1, 1e-3, |n| vec![Even(vec![n, 256]), Even(vec![256, 1])], p::regression_gradient, OnTheDevice),
    row!("sum_all", "sum of n x n, f32", [16384], [4096], 64, 1.0, 1e9, square, p::sum_all, WithANumber),
    row!("sum_fast", "sums along the dimension that is contiguous", [16384], [4096], 64, 1.0, 1e-3, square, p::sum_fast, OnTheDevice),
    row!("sum_slow", "sums along the other dimension", [16384], [4096], 64, 1.0, 1e-3, square, p::sum_slow, OnTheDevice),
    row!("var_fast", "variances along the contiguous dimension", [16384], [4096], 64, 1.0, 1e-4, square, p::var_fast, OnTheDevice),
    row!("var_slow", "variances along the other", [16384], [4096], 64, 1.0, 1e-4, square, p::var_slow, OnTheDevice),
    row!("argmax_slow", "places of the greatest along the other", [16384], [4096], 64, 1.0, 5e-2, square, p::argmax_slow, OnTheDevice),
    row!("softmax_fast", "softmax along the contiguous dimension", [16384], [4096], 64, 1.0, 1e-4, square, p::softmax_fast, OnTheDevice),
    row!("softmax_slow", "softmax along the other", [16384], [4096], 64, 1.0, 1e-4, square, p::softmax_slow, OnTheDevice),
    row!("transpose", "transpose, written out", [16384], [2048], 64, 0.45, 1e-4, square, p::transpose, OnTheDevice),
    row!("permute", "permutation of n x n/64 x 64 by (2, 0, 1), written out", [16384], [2048], 64, 0.45, 1e-4, square, p::permute, OnTheDevice),
    row!("cumsum", "running sum of one line, f32", [100_000_000], [5_000_000], 10_000, 1.0, 1e-2, line, p::cumsum_fast, OnTheDevice),
    row!("cumsum_fast", "running sums along the contiguous dimension", [16384], [4096], 64, 1.1, 1e-2, square, p::cumsum_fast, OnTheDevice),
    row!("cumsum_slow", "running sums along the other", [16384], [4096], 64, 0.2, 1e-2, square, p::cumsum_slow, OnTheDevice),
    row!("sort", "sort with indices, f32", [10_000_000], [1_000_000], 1_000, 1.5, 1e-3, line, p::sort, OnTheDevice),
    row!("sort_rows", "sort with indices of 1,000 lines, f32", [10_000], [1_000], 100, 1.5, 1e-3, |n| vec![Even(vec![n, 1000])], p::sort, OnTheDevice),
    row!("take", "`take` of n out of 10 n, f32", [10_000_000], [1_000_000], 1_000, 1.1, 1e-3, |n| vec![Even(vec![10 * n, 1]), Places { count: n, of: 10 * n }], p::take, OnTheDevice),
    row!("matmul", "matrix product, n x n, f32", [1024, 4096, 8192], [1024, 2048], 64, 1.3, 1e-2, |n| vec![Even(vec![n, n]), Even(vec![n, n])], p::product, OnTheDevice),
    row!("matmul_f64", "matrix product, n x n, f64", [4096], [1024], 64, 3.0, 1e-9, |n| vec![EvenF64(vec![n, n]), EvenF64(vec![n, n])], p::product, OnTheDevice),
    row!("matvec", "matrix times vector, n x n, f32", [16384], [4096], 64, 1.2, 1e-3, system, p::product, OnTheDevice),
    row!("matvec_t", "transposed matrix times vector, n x n, f32", [16384], [4096], 64, 1.2, 1e-3, system, p::product_transposed, OnTheDevice),
    row!("batched", "n products of 64 x 64, f32", [1024], [1024], 16, 1.5, 1e-3, |n| vec![Even(vec![64, 64, n])], p::square_of, OnTheDevice),
    row!("tiny1000", "n dependent additions to 1,000 elements, f32, beside peers that run op by op", [1_000], [1_000], 100, 0.1, 1e-6, none, p::tiny, WithANumber),
    row!("unfusable", "n running sums and products of 32 x 32, f32, beside the same", [500], [500], 10, 0.4, 1e-2, none, p::unfusable, WithANumber),
    row!("trip", "tiny op and its gather", [40_000], [40_000], 1_000, 1.67, 1e-6, line, p::trip, WithANumber),
    row!("upload", "n floats from the program's memory, then used", [1 << 26], [1 << 24], 1_000, 0.7, 1e-3, |n| vec![Host(n)], p::upload, OnTheDevice),
    row!("gather", "`x + 0.5`, then its n floats into fresh memory", [1 << 26], [1 << 24], 1_000, 0.36, 1e-3, line, p::add, WithTheWhole),
];

//! Distributions whose numbers are drawn by rejection: the candidate that a few random words give, and whether it is
//! taken. Whoever draws goes on to the next words until one is (`kernels::random`).
//!
//! In: parameters and random words. Out: a candidate and a truth value. Must hold: SEM-1 to SEM-4; a candidate of
//! parameters outside of their domain is anything, but no table is read beyond its end.
//!
//! The functions are written for f32 as much as for f64: what is small by cancellation is computed as a small number. So
//! the distance from the mean is carried beside the candidate, densities are Loader's ("Fast and accurate computation of
//! binomial probabilities", 2000), and the ratio of Marsaglia and Tsang is a series where it is nearly 1.

use super::exponential::exp;
use super::lanes::{Bits, Float, Lane, Poly, horner};
use super::logarithm::{log, log_of_normal, log1p};
use super::random::{normal_pair, open_uniform};

/// `log(1 + t) - t + t^2 / 2 - t^3 / 3`, over `t^4`, for `|t| < 0.1`.
const LOG_REST: Poly = Poly {
    narrow: &[
        -0.25,
        0.20000000298023224,
        -0.1666666716337204,
        0.1428571492433548,
        -0.125,
        0.1111111119389534,
        -0.10000000149011612,
        0.09090909361839294,
    ],
    wide: &[
        -0.25,
        0.2,
        -0.16666666666666666,
        0.14285714285714285,
        -0.125,
        0.1111111111111111,
        -0.1,
        0.09090909090909091,
        -0.08333333333333333,
        0.07692307692307693,
        -0.07142857142857142,
        0.06666666666666667,
        -0.0625,
        0.058823529411764705,
        -0.05555555555555555,
        0.05263157894736842,
        -0.05,
    ],
};

/// `1/3, 1/5, 1/7, …`: the inverse hyperbolic tangent of `v`, less `v`, over `v^3`, by `v^2 < 0.01`.
const DEVIANCE: Poly = Poly {
    narrow: &[0.3333333432674408, 0.20000000298023224, 0.1428571492433548, 0.1111111119389534, 0.09090909361839294],
    wide: &[
        0.3333333333333333,
        0.2,
        0.14285714285714285,
        0.1111111111111111,
        0.09090909090909091,
        0.07692307692307693,
        0.06666666666666667,
        0.058823529411764705,
        0.05263157894736842,
    ],
};

/// Stirling's series by `1 / k^2`, over `1 / k`.
const STIRLING: Poly = Poly {
    narrow: &[0.0833333358168602, -0.0027777778450399637, 0.0007936508045531809],
    wide: &[
        0.08333333333333333,
        -0.002777777777777778,
        0.0007936507936507937,
        -0.0005952380952380953,
        0.0008417508417508417,
    ],
};

/// `log(k!) - ((k + 1/2) log(k) - k + log(2 pi) / 2)` for k from 1 to 15: the bits of f32. That of 0 is not used.
const STIRLING_SMALL: &[u64] = &[
    0x0, 0x3da6038e, 0x3d2954dd, 0x3ce2bcd1, 0x3caa5133, 0x3c885a73, 0x3c6358b4, 0x3c42ea6b, 0x3c2a9403, 0x3c17a439,
    0x3c087cea, 0x3bf82c98, 0x3be380c4, 0x3bd2028a, 0x3bc303b6, 0x3bb6047b,
];
/// The bits of f64.
const STIRLING_SMALL_WIDE: &[u64] = &[
    0x0,
    0x3fb4c071bcda0a5b,
    0x3fa52a9b923ea649,
    0x3f9c579a268d80b3,
    0x3f954a2662fd78a9,
    0x3f910b4e513fcbed,
    0x3f8c6b167bebdf36,
    0x3f885d4d612e4a86,
    0x3f8552805e7b3076,
    0x3f82f4871b12ab64,
    0x3f810f9d4c0743a7,
    0x3f7f0593088014f8,
    0x3f7c7018733aa9c6,
    0x3f7a40514700f36c,
    0x3f786076c002d4a7,
    0x3f76c08f6f194a10,
];

/// From this mean on, numbers of the Poisson and binomial distributions are drawn by rejection from a table mountain
/// hat; below, as how many waiting times fit.
pub(crate) const COUNTED_BELOW: f64 = 10.0;

/// The logarithm of 2 pi, halved.
const HALF_LOG_TAU: f64 = 0.9189385332046728;

/// A candidate for the gamma distribution of a shape that is at least 1, or one more than `shape` where that is less
/// (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000). It is taken with a probability of more
/// than 0.95.
#[inline(always)]
pub(crate) fn gamma_candidate<F: Float>(shape: F, a: F::Bits, b: F::Bits, accept: F::Bits) -> (F, F::Mask) {
    let one = F::lit(1.0);
    let raised = F::select(shape.less(one), shape + one, shape);
    let d = raised - F::lit(1.0 / 3.0);
    let (x, _) = normal_pair::<F>(a, b);
    let t = x / (F::lit(9.0) * d).root();
    let s = one + t;
    // The logarithm of the ratio of the density to the hat is x^2 / 2 + d (1 - s^3 + 3 log(s)), and 9 d t^2 is x^2.
    let square = t * t;
    let near = square * square * horner(t, &LOG_REST);
    let far = log1p(t) - t + square * (F::lit(0.5) - t * F::lit(1.0 / 3.0));
    let rest = F::select(t.magnitude().less(F::lit(0.1)), near, far);
    let taken = log_of_normal(open_uniform::<F>(accept)).less(F::lit(3.0) * d * rest);
    (d * (s * s * s), taken & s.more(F::lit(0.0)))
}

/// The number of the gamma distribution that a taken candidate gives: below a shape of 1, times a power of a uniform
/// number.
#[inline(always)]
pub(crate) fn gamma_of<F: Float>(shape: F, candidate: F, boost: F::Bits) -> F {
    let power = exp(log_of_normal(open_uniform::<F>(boost)) / shape);
    F::select(shape.less(F::lit(1.0)), candidate * power, candidate)
}

/// The logarithm of the number of [`gamma_of`], also where that is too small for a float.
#[inline(always)]
pub(crate) fn log_gamma_of<F: Float>(shape: F, candidate: F, boost: F::Bits) -> F {
    let power = log_of_normal(open_uniform::<F>(boost)) / shape;
    let own = log(candidate);
    F::select(shape.less(F::lit(1.0)), own + power, own)
}

/// Uniform in (-1/2, 1/2), and its distance from the nearer end, which has all its digits.
#[inline(always)]
fn centred<F: Float>(bits: F::Bits) -> (F, F) {
    let from_end = F::lit(0.5) * open_uniform::<F>(bits.shift_left(1));
    let size = F::lit(0.5) - from_end;
    let is_negative = bits.shift_right(if F::WIDE { 63 } else { 31 }).same(F::Bits::word(1));
    (F::select(is_negative, -size, size), from_end)
}

/// `log(k!) - ((k + 1/2) log(k) - k + log(2 pi) / 2)` of an integer of at least 1.
#[inline(always)]
fn stirling_error<F: Float>(k: F) -> F {
    let inverse = F::lit(1.0) / k;
    let series = inverse * horner(inverse * inverse, &STIRLING);
    // In the table whatever `k` is.
    let index = k.lesser(F::lit(15.0)).small_to_bits() & F::Bits::word(15);
    let table = if F::WIDE { STIRLING_SMALL_WIDE } else { STIRLING_SMALL };
    F::select(k.less(F::lit(16.0)), F::from_bits(F::Bits::pick(table, index)), series)
}

/// `log(k!) - (k log(k) - k)`, less `log(2 pi) / 2`; of 0, too.
#[inline(always)]
fn end_term<F: Float>(k: F) -> F {
    let one = F::lit(1.0);
    let positive = F::select(k.less(one), one, k);
    let term = stirling_error(positive) + F::lit(0.5) * log(positive);
    F::select(k.less(one), F::lit(-HALF_LOG_TAU), term)
}

/// `k log(k / mean) + mean - k`, where `gap` is `k - mean` with all its digits.
#[inline(always)]
fn deviance<F: Float>(k: F, mean: F, gap: F) -> F {
    let one = F::lit(1.0);
    let v = gap / (k + mean);
    let square = v * v;
    let near = gap * v + F::lit(2.0) * k * v * square * horner(square, &DEVIANCE);
    let positive = F::select(k.less(one), one, k);
    let far = F::select(k.less(one), mean, positive * log(positive / mean) - gap);
    F::select(v.magnitude().less(F::lit(0.1)), near, far)
}

/// A candidate for the Poisson distribution of a mean of at least [`COUNTED_BELOW`]: Hörmann's transformed rejection
/// ("The transformed rejection method for generating Poisson random variables", 1993, PTRS). Where it is outside of its
/// squeeze, the exact density decides.
#[inline(always)]
pub(crate) fn poisson_candidate<F: Float>(mean: F, place: F::Bits, accept: F::Bits) -> (F, F::Mask) {
    let b = F::lit(0.931) + F::lit(2.53) * mean.root();
    let a = F::lit(-0.059) + F::lit(0.02483) * b;
    let inverse_alpha = F::lit(1.1239) + F::lit(1.1328) / (b - F::lit(3.4));
    let squeeze = F::lit(0.9277) - F::lit(3.6224) / (b - F::lit(2.0));
    let (u, from_end) = centred::<F>(place);
    let v = open_uniform::<F>(accept);
    let base = mean.round_down();
    let rest = mean - base;
    let step = ((F::lit(2.0) * a / from_end + b) * u + (rest + F::lit(0.43))).round_down();
    let k = base + step;
    let at_once = from_end.at_least(F::lit(0.07)) & v.at_most(squeeze);
    let outside = k.less(F::lit(0.0)) | (from_end.less(F::lit(0.013)) & v.more(from_end));
    let level = log(v * inverse_alpha / (a / (from_end * from_end) + b));
    let density = -(end_term(k) + F::lit(HALF_LOG_TAU) + deviance(k, mean, step - rest));
    (k, (at_once | level.at_most(density)) & !outside)
}

/// The product of `n` and `p` as a sum of its nearest float and what is left.
#[inline(always)]
fn exact_product<F: Float>(n: F, p: F) -> (F, F) {
    let product = n * p;
    let (n_high, p_high) = (n.high_half(), p.high_half());
    let (n_low, p_low) = (n - n_high, p - p_high);
    (product, ((n_high * p_high - product) + n_high * p_low + n_low * p_high) + n_low * p_low)
}

/// A candidate for the binomial distribution of `n` trials that succeed with probability `p <= 1/2`, where `n p` is at
/// least [`COUNTED_BELOW`]: Hörmann's transformed rejection ("The generation of binomial random variates", 1993, BTRS).
#[inline(always)]
pub(crate) fn binomial_candidate<F: Float>(n: F, p: F, place: F::Bits, accept: F::Bits) -> (F, F::Mask) {
    let q = F::lit(1.0) - p;
    let (mean, lost) = exact_product(n, p);
    let deviation = (mean * q).root();
    let b = F::lit(1.15) + F::lit(2.53) * deviation;
    let a = F::lit(-0.0873) + F::lit(0.0248) * b + F::lit(0.01) * p;
    let alpha = (F::lit(2.83) + F::lit(5.1) / b) * deviation;
    let squeeze = F::lit(0.92) - F::lit(4.2) / b;
    let (u, from_end) = centred::<F>(place);
    let v = open_uniform::<F>(accept);
    let base = mean.round_down();
    let rest = (mean - base) + lost;
    let step = ((F::lit(2.0) * a / from_end + b) * u + (rest + F::lit(0.5))).round_down();
    let k = base + step;
    let at_once = from_end.at_least(F::lit(0.07)) & v.at_most(squeeze);
    let outside = k.less(F::lit(0.0)) | k.more(n);
    let level = log(v * alpha / (a / (from_end * from_end) + b));
    // The logarithm of the density at k, less what it has in common with that at the mode.
    let density = |k: F, gap: F| {
        let others = n - k;
        -((end_term(k) + end_term(others)) + (deviance(k, mean, gap) + deviance(others, n * q, -gap)))
    };
    let mode_step = (rest + p).round_down();
    let ratio = density(k, step - rest) - density(base + mode_step, mode_step - rest);
    (k, (at_once | level.at_most(ratio)) & !outside)
}

/// One more waiting time of a Poisson process until the product of uniform numbers is not above `limit`, `exp(-mean)`:
/// the product and the count, gone on by one word.
#[inline(always)]
pub(crate) fn poisson_wait<F: Float>(limit: F, product: F, count: F, bits: F::Bits) -> (F, F) {
    let product = product * open_uniform::<F>(bits);
    (product, F::select(product.more(limit), count + F::lit(1.0), count))
}

/// The limit of [`poisson_wait`].
#[inline(always)]
pub(crate) fn poisson_limit<F: Float>(mean: F) -> F {
    exp(-mean)
}

/// One more waiting time, in trials, until a success of probability `p <= 1/2`: the sum of the times and the count of
/// those that end within `n` trials, gone on by one word. `scale` is [`binomial_scale`].
#[inline(always)]
pub(crate) fn binomial_wait<F: Float>(n: F, scale: F, sum: F, count: F, bits: F::Bits) -> (F, F) {
    let wait = (log_of_normal(open_uniform::<F>(bits)) / scale).round_down() + F::lit(1.0);
    let sum = sum + wait;
    (sum, F::select(sum.at_most(n), count + F::lit(1.0), count))
}

/// `log(1 - p)`, and never 0: what logarithms of uniform numbers are divided by to be waiting times.
#[inline(always)]
pub(crate) fn binomial_scale<F: Float>(p: F) -> F {
    let least = F::lit2(-1e-36, -1e-300);
    log1p(-p).lesser(least)
}

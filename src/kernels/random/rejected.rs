//! Distributions of parameters into host blocks: those drawn by rejection, and truth values.
//!
//! In: a stream's key, element numbers, parameters. Out: elements. The first candidates of [`LANES`] elements are
//! computed side by side, as vector code; those that are refused go on one by one.

use super::{TRIES, philox4x32_10, words_of_try};
use crate::graph::semantics::rejection::{
    COUNTED_BELOW, binomial_candidate, binomial_scale, binomial_wait, gamma_candidate, gamma_of, log_gamma_of,
    poisson_candidate, poisson_limit, poisson_wait,
};
use crate::graph::{DType, Dist, Scalar};
use crate::kernels::element::host::HostArg;
use multiversion::multiversion;

/// Elements that are worked on at a time.
const LANES: usize = 64;

/// The numbers of a block's elements.
#[derive(Clone, Copy, Debug)]
pub enum Numbers<'a> {
    /// From this one on.
    From(u32),
    /// These.
    List(&'a [u32]),
}

impl Numbers<'_> {
    fn write(self, first: usize, out: &mut [u32; LANES], n: usize) {
        match self {
            Numbers::From(start) => {
                out.iter_mut().zip(first as u32..).for_each(|(slot, at)| *slot = start.wrapping_add(at));
            }
            // One number for all.
            Numbers::List(list) if list.len() == 1 => out.fill(list[0]),
            Numbers::List(list) => out[..n].copy_from_slice(&list[first..first + n]),
        }
    }
}

/// Fills `out` with elements of a distribution of parameters, `out.len()` bytes of them. The parameters are floats of the
/// dtype `of`; truth values are bytes.
///
/// # Panics
/// IR-7, for another distribution, or parameters of another dtype.
pub fn draw(dist: Dist, of: DType, key: [u32; 5], numbers: Numbers<'_>, params: &[HostArg<'_>], out: &mut [u8]) {
    match (dist, of) {
        (Dist::Bernoulli, DType::F32) => truths(key, numbers, params[0], out, |scalar| scalar.as_f64() as f32),
        (Dist::Bernoulli, DType::F64) => truths(key, numbers, params[0], out, Scalar::as_f64),
        (Dist::Gamma, DType::F32) => gammas_f32(key, numbers, params, false, bytemuck::cast_slice_mut(out)),
        (Dist::Gamma, DType::F64) => gammas_f64(key, numbers, params, false, bytemuck::cast_slice_mut(out)),
        (Dist::LogGamma, DType::F32) => gammas_f32(key, numbers, params, true, bytemuck::cast_slice_mut(out)),
        (Dist::LogGamma, DType::F64) => gammas_f64(key, numbers, params, true, bytemuck::cast_slice_mut(out)),
        (Dist::Poisson, DType::F32) => poissons_f32(key, numbers, params, bytemuck::cast_slice_mut(out)),
        (Dist::Poisson, DType::F64) => poissons_f64(key, numbers, params, bytemuck::cast_slice_mut(out)),
        (Dist::Binomial, DType::F32) => binomials_f32(key, numbers, params, bytemuck::cast_slice_mut(out)),
        (Dist::Binomial, DType::F64) => binomials_f64(key, numbers, params, bytemuck::cast_slice_mut(out)),
        (dist, of) => panic!("IR-7: {dist:?} of {of}"),
    }
}

/// The parameter of `n` elements from `first` on.
fn write_param<T: bytemuck::Pod>(
    param: HostArg<'_>,
    first: usize,
    n: usize,
    out: &mut [T; LANES],
    number: impl Fn(Scalar) -> T,
) {
    match param {
        HostArg::Block(bytes) => out[..n].copy_from_slice(&bytemuck::cast_slice::<u8, T>(bytes)[first..first + n]),
        HostArg::Scalar(scalar) => out.fill(number(scalar)),
    }
}

/// Whether 64 bits, as a fraction, lie below a probability. All steps are exact, so that every device says the same.
fn truths<T: bytemuck::Pod + Into<f64> + Default>(
    key: [u32; 5],
    numbers: Numbers<'_>,
    param: HostArg<'_>,
    out: &mut [u8],
    number: impl Fn(Scalar) -> T + Copy,
) {
    let (mut elements, mut chances) = ([0u32; LANES], [T::default(); LANES]);
    for (chunk, out) in out.chunks_mut(LANES).enumerate() {
        numbers.write(chunk * LANES, &mut elements, out.len());
        write_param(param, chunk * LANES, out.len(), &mut chances, number);
        for ((slot, &element), &chance) in out.iter_mut().zip(&elements).zip(&chances) {
            let words = philox4x32_10([element / 2, key[4], key[2], key[3]], [key[0], key[1]]);
            let half = 2 * (element % 2) as usize;
            *slot = u8::from(is_below(words[half], words[half + 1], chance.into()));
        }
    }
}

fn is_below(high: u32, low: u32, chance: f64) -> bool {
    let scaled = chance * 4_294_967_296.0;
    let whole = scaled.floor();
    let rest = (scaled - whole) * 4_294_967_296.0;
    // Casts of what lies below 2^32; of 1 and above, the first condition is true.
    chance >= 1.0 || high < whole as u32 || (high == whole as u32 && low < rest as u32)
}

macro_rules! rejected {
    ($ty:ty, $bits:ty, $quad:ident, $first:ident, $gammas:ident, $poissons:ident, $binomials:ident, $gamma_firsts:ident,
     $poisson_firsts:ident, $binomial_firsts:ident) => {
        /// The words of the first try of each element, in four planes.
        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
        fn $first(key: [u32; 5], elements: &[u32; LANES], planes: &mut [[$bits; LANES]; 4]) {
            let [a, b, c, d] = planes;
            for i in 0..LANES {
                [a[i], b[i], c[i], d[i]] = $quad(key, elements[i], 1);
            }
        }

        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
        fn $gamma_firsts(
            shapes: &[$ty; LANES],
            planes: &[[$bits; LANES]; 4],
            log: bool,
            values: &mut [$ty; LANES],
            taken: &mut [bool; LANES],
        ) {
            for i in 0..LANES {
                (values[i], taken[i]) = gamma_candidate(shapes[i], planes[0][i], planes[1][i], planes[2][i]);
            }
            match log {
                true => (0..LANES).for_each(|i| values[i] = log_gamma_of(shapes[i], values[i], planes[3][i])),
                false => (0..LANES).for_each(|i| values[i] = gamma_of(shapes[i], values[i], planes[3][i])),
            }
        }

        fn $gammas(key: [u32; 5], numbers: Numbers<'_>, params: &[HostArg<'_>], log: bool, out: &mut [$ty]) {
            let (mut elements, mut shapes) = ([0; LANES], [1.0; LANES]);
            let (mut planes, mut values, mut taken) = ([[0; LANES]; 4], [0.0; LANES], [true; LANES]);
            for (chunk, out) in out.chunks_mut(LANES).enumerate() {
                numbers.write(chunk * LANES, &mut elements, out.len());
                write_param(params[0], chunk * LANES, out.len(), &mut shapes, |scalar| scalar.as_f64() as $ty);
                $first(key, &elements, &mut planes);
                $gamma_firsts(&shapes, &planes, log, &mut values, &mut taken);
                for i in (0..out.len()).filter(|&i| !taken[i]) {
                    for number in 2..=TRIES {
                        let [a, b, c, d] = $quad(key, elements[i], number);
                        let (candidate, is_taken) = gamma_candidate(shapes[i], a, b, c);
                        if is_taken || number == TRIES {
                            let of = if log { log_gamma_of::<$ty> } else { gamma_of::<$ty> };
                            values[i] = of(shapes[i], candidate, d);
                            break;
                        }
                    }
                }
                out.copy_from_slice(&values[..out.len()]);
            }
        }

        /// Returns, for a mean below the limit, the product and the count after the first words; otherwise the candidate.
        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
        fn $poisson_firsts(
            means: &[$ty; LANES],
            planes: &[[$bits; LANES]; 4],
            values: &mut [$ty; LANES],
            products: &mut [$ty; LANES],
            limits: &mut [$ty; LANES],
            taken: &mut [bool; LANES],
        ) {
            if means.iter().any(|&mean| mean >= COUNTED_BELOW as $ty) {
                for i in 0..LANES {
                    (values[i], taken[i]) = poisson_candidate(means[i], planes[0][i], planes[1][i]);
                }
            }
            if means.iter().any(|&mean| mean < COUNTED_BELOW as $ty) {
                for i in 0..LANES {
                    let limit = poisson_limit(means[i]);
                    let mut state = (1.0, 0.0);
                    for plane in planes {
                        state = poisson_wait(limit, state.0, state.1, plane[i]);
                    }
                    let counts = means[i] < COUNTED_BELOW as $ty;
                    values[i] = if counts { state.1 } else { values[i] };
                    taken[i] = if counts { state.0 <= limit } else { taken[i] };
                    (products[i], limits[i]) = (state.0, limit);
                }
            }
        }

        fn $poissons(key: [u32; 5], numbers: Numbers<'_>, params: &[HostArg<'_>], out: &mut [$ty]) {
            let (mut elements, mut means) = ([0; LANES], [0.0; LANES]);
            let (mut planes, mut values, mut taken) = ([[0; LANES]; 4], [0.0; LANES], [true; LANES]);
            let (mut products, mut limits) = ([0.0; LANES], [0.0; LANES]);
            for (chunk, out) in out.chunks_mut(LANES).enumerate() {
                numbers.write(chunk * LANES, &mut elements, out.len());
                write_param(params[0], chunk * LANES, out.len(), &mut means, |scalar| scalar.as_f64() as $ty);
                $first(key, &elements, &mut planes);
                $poisson_firsts(&means, &planes, &mut values, &mut products, &mut limits, &mut taken);
                for i in (0..out.len()).filter(|&i| !taken[i]) {
                    let mut state = (products[i], values[i]);
                    for number in 2..=TRIES {
                        let words: [$bits; 4] = $quad(key, elements[i], number);
                        let is_taken = if means[i] < COUNTED_BELOW as $ty {
                            words.iter().for_each(|&w| state = poisson_wait(limits[i], state.0, state.1, w));
                            values[i] = state.1;
                            state.0 <= limits[i]
                        } else {
                            let (candidate, is_taken) = poisson_candidate(means[i], words[0], words[1]);
                            values[i] = candidate;
                            is_taken
                        };
                        if is_taken {
                            break;
                        }
                    }
                }
                out.copy_from_slice(&values[..out.len()]);
            }
        }

        /// Returns, for a mean below the limit, the sum and the count after the first words; otherwise the candidate.
        #[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
        fn $binomial_firsts(
            trials: &[$ty; LANES],
            chances: &[$ty; LANES],
            planes: &[[$bits; LANES]; 4],
            values: &mut [$ty; LANES],
            sums: &mut [$ty; LANES],
            taken: &mut [bool; LANES],
        ) {
            let counts = |i: usize| trials[i] * chances[i] < COUNTED_BELOW as $ty;
            if !(0..LANES).all(counts) {
                for i in 0..LANES {
                    (values[i], taken[i]) = binomial_candidate(trials[i], chances[i], planes[0][i], planes[1][i]);
                }
            }
            if (0..LANES).any(counts) {
                for i in 0..LANES {
                    let scale = binomial_scale(chances[i]);
                    let mut state = (0.0, 0.0);
                    for plane in planes {
                        state = binomial_wait(trials[i], scale, state.0, state.1, plane[i]);
                    }
                    let counts = trials[i] * chances[i] < COUNTED_BELOW as $ty;
                    values[i] = if counts { state.1 } else { values[i] };
                    taken[i] = if counts { state.0 > trials[i] } else { taken[i] };
                    sums[i] = state.0;
                }
            }
        }

        fn $binomials(key: [u32; 5], numbers: Numbers<'_>, params: &[HostArg<'_>], out: &mut [$ty]) {
            let (mut elements, mut trials, mut given) = ([0; LANES], [0.0; LANES], [0.0; LANES]);
            let (mut planes, mut values, mut taken) = ([[0; LANES]; 4], [0.0; LANES], [true; LANES]);
            let mut sums = [0.0; LANES];
            for (chunk, out) in out.chunks_mut(LANES).enumerate() {
                numbers.write(chunk * LANES, &mut elements, out.len());
                write_param(params[0], chunk * LANES, out.len(), &mut trials, |scalar| scalar.as_f64() as $ty);
                write_param(params[1], chunk * LANES, out.len(), &mut given, |scalar| scalar.as_f64() as $ty);
                // Above one half, failures are drawn. The difference is exact.
                let chances = given.map(|p| if p > 0.5 { 1.0 - p } else { p });
                $first(key, &elements, &mut planes);
                $binomial_firsts(&trials, &chances, &planes, &mut values, &mut sums, &mut taken);
                for i in (0..out.len()).filter(|&i| !taken[i]) {
                    let (n, p) = (trials[i], chances[i]);
                    let mut state = (sums[i], values[i]);
                    for number in 2..=TRIES {
                        let words: [$bits; 4] = $quad(key, elements[i], number);
                        let is_taken = if n * p < COUNTED_BELOW as $ty {
                            let scale = binomial_scale(p);
                            words.iter().for_each(|&w| state = binomial_wait(n, scale, state.0, state.1, w));
                            values[i] = state.1;
                            state.0 > n
                        } else {
                            let (candidate, is_taken) = binomial_candidate(n, p, words[0], words[1]);
                            values[i] = candidate;
                            is_taken
                        };
                        if is_taken {
                            break;
                        }
                    }
                }
                for (i, slot) in out.iter_mut().enumerate() {
                    *slot = if given[i] > 0.5 { trials[i] - values[i] } else { values[i] };
                }
            }
        }
    };
}
rejected!(
    f32,
    u32,
    words_of_try,
    first_words,
    gammas_f32,
    poissons_f32,
    binomials_f32,
    gamma_firsts_f32,
    poisson_firsts_f32,
    binomial_firsts_f32
);
rejected!(
    f64,
    u64,
    wide_words_of_try,
    first_wide_words,
    gammas_f64,
    poissons_f64,
    binomials_f64,
    gamma_firsts_f64,
    poisson_firsts_f64,
    binomial_firsts_f64
);

/// The 64-bit words of an element's try `number`: two tries of 32-bit words.
#[inline(always)]
fn wide_words_of_try(key: [u32; 5], element: u32, number: u32) -> [u64; 4] {
    let joined = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let a = words_of_try(key, element, 2 * number - 1);
    let b = words_of_try(key, element, 2 * number);
    [joined(a[0], a[1]), joined(a[2], a[3]), joined(b[0], b[1]), joined(b[2], b[3])]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u32; 5] = [7, 8, 3, 4, 11];

    #[test]
    fn an_element_is_the_same_wherever_its_block_begins_and_whatever_stands_beside_it() {
        let n = 500;
        let params: [(Dist, &[f64]); 4] = [
            (Dist::Gamma, &[0.3, 4.0]),
            (Dist::Poisson, &[0.5, 9.0, 30.0]),
            (Dist::Binomial, &[4.0, 60.0, 5000.0]),
            (Dist::Bernoulli, &[0.2, 0.9]),
        ];
        for (dist, choices) in params {
            let first: Vec<f64> = (0..n).map(|i| choices[i % choices.len()]).collect();
            let second = vec![0.37; n];
            let draw_of = |numbers: Numbers<'_>, from: usize, count: usize| {
                let mut out = vec![0u64; count];
                let list =
                    [&first, &second].map(|list| HostArg::Block(bytemuck::cast_slice(&list[from..from + count])));
                let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut out);
                let width = if dist == Dist::Bernoulli { 1 } else { 8 };
                draw(dist, DType::F64, KEY, numbers, &list[..dist.parameters()], &mut bytes[..count * width]);
                bytes[..count * width].to_vec()
            };
            let whole = draw_of(Numbers::From(70), 0, n);
            let width = whole.len() / n;
            for (from, count) in [(0, 1), (3, 64), (63, 65), (100, 400)] {
                let part = draw_of(Numbers::From(70 + from as u32), from, count);
                assert_eq!(part, whole[from * width..(from + count) * width], "{dist:?}");
                let numbers: Vec<u32> = (0..count as u32).map(|i| 70 + from as u32 + i).collect();
                assert_eq!(draw_of(Numbers::List(&numbers), from, count), part, "{dist:?}");
            }
        }
    }

    #[test]
    fn truth_values_compare_all_sixty_four_bits() {
        assert!(is_below(0, 0, 2f64.powi(-64)) && !is_below(0, 1, 2f64.powi(-64)));
        assert!(!is_below(0, 0, 2f64.powi(-65)) && !is_below(0, 0, 0.0));
        assert!(is_below(u32::MAX, u32::MAX, 1.0) && !is_below(u32::MAX, u32::MAX, 1.0 - 2f64.powi(-53)));
        assert!(is_below(0x7fff_ffff, u32::MAX, 0.5) && !is_below(0x8000_0000, 0, 0.5));
    }
}

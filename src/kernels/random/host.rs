//! Writes random numbers to host blocks.
//!
//! In: a stream's key and element numbers. Out: elements. Calls of the generator are computed in batches of [`CALLS`],
//! with their words in four planes, so that every loop becomes vector code.

use super::{INTEGER_TRIES, elements_per_call, philox4x32_10, words_of_try};
use crate::graph::semantics::random::{exponential, normal_pair, uniform};
use crate::graph::{DType, Dist, Scalar};
use multiversion::multiversion;

/// Calls of the generator in a batch.
const CALLS: usize = 128;

/// The words of a batch: plane `n` has the `n`-th word of each call.
type Planes = [[u32; CALLS]; 4];

/// A batch of calls and their words.
struct Batch<'a> {
    key: [u32; 5],
    calls: &'a [u32; CALLS],
    planes: &'a Planes,
}

/// Fills `out` with elements `first..first + n` of a stream. `key` is seed low, seed high, stream low, stream high,
/// op; `range` is `low` and `span` of `Dist::Integer`, `low` and `last` of `Dist::Wide`. Blocks are aligned to their
/// elements.
///
/// # Panics
/// IR-7, for a dtype that the distribution does not have, for integers without a range, or for a distribution with
/// parameters.
pub fn fill(
    dist: Dist,
    dtype: DType,
    key: [u32; 5],
    first: u32,
    range: Option<(Scalar, Scalar)>,
    out: &mut [u8],
    n: usize,
) {
    let per_call = elements_per_call(dist, dtype) as usize;
    let width = dtype.bytes();
    let mut planes: Planes = [[0; CALLS]; 4];
    let mut scratch = [0u64; CALLS * 4];
    let mut calls = [0u32; CALLS];
    let mut done = 0;
    while done < n {
        let element = first as usize + done;
        let (call, skip) = (element / per_call, element % per_call);
        let take = (CALLS * per_call - skip).min(n - done);
        for (i, slot) in calls.iter_mut().enumerate() {
            *slot = (call as u32).wrapping_add(i as u32);
        }
        generate(&mut planes, key, &calls);
        let batch = Batch { key, calls: &calls, planes: &planes };
        let target = &mut out[done * width..(done + take) * width];
        if take == CALLS * per_call {
            elements(dist, dtype, &batch, range, target);
        } else {
            let all: &mut [u8] = bytemuck::cast_slice_mut(&mut scratch);
            elements(dist, dtype, &batch, range, &mut all[..CALLS * per_call * width]);
            target.copy_from_slice(&all[skip * width..(skip + take) * width]);
        }
        done += take;
    }
}

/// As [`fill`], but with the elements of a stream that have these numbers.
///
/// # Panics
/// As [`fill`].
pub fn at(dist: Dist, dtype: DType, key: [u32; 5], numbers: &[u32], range: Option<(Scalar, Scalar)>, out: &mut [u8]) {
    let per_call = elements_per_call(dist, dtype);
    let width = dtype.bytes();
    let mut planes: Planes = [[0; CALLS]; 4];
    let mut scratch = [0u64; CALLS * 4];
    for (numbers, out) in numbers.chunks(CALLS).zip(out.chunks_mut(CALLS * width)) {
        let mut calls = [0u32; CALLS];
        for (slot, number) in calls.iter_mut().zip(numbers) {
            *slot = number / per_call;
        }
        generate(&mut planes, key, &calls);
        let all: &mut [u8] = bytemuck::cast_slice_mut(&mut scratch);
        let all = &mut all[..CALLS * per_call as usize * width];
        elements(dist, dtype, &Batch { key, calls: &calls, planes: &planes }, range, all);
        for (i, (number, slot)) in numbers.iter().zip(out.chunks_mut(width)).enumerate() {
            let from = (i * per_call as usize + (number % per_call) as usize) * width;
            slot.copy_from_slice(&all[from..from + width]);
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn generate(planes: &mut Planes, key: [u32; 5], calls: &[u32; CALLS]) {
    let [a, b, c, d] = planes;
    for i in 0..CALLS {
        [a[i], b[i], c[i], d[i]] = philox4x32_10([calls[i], key[4], key[2], key[3]], [key[0], key[1]]);
    }
}

/// Makes the elements of a whole batch.
fn elements(dist: Dist, dtype: DType, batch: &Batch<'_>, range: Option<(Scalar, Scalar)>, out: &mut [u8]) {
    let planes = batch.planes;
    match (dist, dtype, range) {
        (Dist::Uniform, DType::F32, _) => uniform_f32(planes, bytemuck::cast_slice_mut(out)),
        (Dist::Uniform, DType::F64, _) => uniform_f64(planes, bytemuck::cast_slice_mut(out)),
        (Dist::Normal, DType::F32, _) => normal_f32(planes, bytemuck::cast_slice_mut(out)),
        (Dist::Normal, DType::F64, _) => normal_f64(planes, bytemuck::cast_slice_mut(out)),
        (Dist::Exponential, DType::F32, _) => exponential_f32(planes, bytemuck::cast_slice_mut(out)),
        (Dist::Exponential, DType::F64, _) => exponential_f64(planes, bytemuck::cast_slice_mut(out)),
        (Dist::Integer, dtype, Some((low, span))) => integers(dtype, batch, low, span.bits() as u32, out),
        (Dist::Wide, DType::I64, Some((low, last))) => {
            wide_integers(batch, low.bits(), last.bits(), bytemuck::cast_slice_mut(out));
        }
        (dist, dtype, range) => panic!("IR-7: {dist:?} of {dtype}, in the range {range:?}"),
    }
}

/// Interleaves planes: four elements of each call, in order.
#[inline(always)]
fn interleave<T: Copy>(planes: &[[T; CALLS]; 4], out: &mut [T]) {
    for (i, group) in out.as_chunks_mut::<4>().0.iter_mut().enumerate().take(CALLS) {
        *group = [planes[0][i], planes[1][i], planes[2][i], planes[3][i]];
    }
}

/// A number from each 32-bit word of each call, in order.
#[inline(always)]
fn of_words(planes: &Planes, out: &mut [f32], number: impl Fn(u32) -> f32) {
    let mut values = [[0f32; CALLS]; 4];
    for (plane, values) in planes.iter().zip(&mut values) {
        for (&word, value) in plane.iter().zip(values) {
            *value = number(word);
        }
    }
    interleave(&values, out);
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn uniform_f32(planes: &Planes, out: &mut [f32]) {
    of_words(planes, out, uniform);
}

/// The `n`-th 64-bit word of each call.
#[inline(always)]
fn wide_words(planes: &Planes, n: usize) -> [u64; CALLS] {
    let mut words = [0; CALLS];
    for (i, word) in words.iter_mut().enumerate() {
        *word = (planes[2 * n][i] as u64) << 32 | planes[2 * n + 1][i] as u64;
    }
    words
}

/// Two numbers from the two 64-bit words of each call, in order.
#[inline(always)]
fn of_wide_words(planes: &Planes, out: &mut [f64], numbers: impl Fn(u64, u64) -> [f64; 2]) {
    let (a, b) = (wide_words(planes, 0), wide_words(planes, 1));
    for ((pair, &a), &b) in out.as_chunks_mut::<2>().0.iter_mut().zip(&a).zip(&b) {
        *pair = numbers(a, b);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn uniform_f64(planes: &Planes, out: &mut [f64]) {
    of_wide_words(planes, out, |a, b| [uniform(a), uniform(b)]);
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn normal_f32(planes: &Planes, out: &mut [f32]) {
    let mut values = [[0f32; CALLS]; 4];
    for half in [0, 2] {
        for i in 0..CALLS {
            let (c, s) = normal_pair(planes[half][i], planes[half + 1][i]);
            values[half][i] = c;
            values[half + 1][i] = s;
        }
    }
    interleave(&values, out);
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn normal_f64(planes: &Planes, out: &mut [f64]) {
    of_wide_words(planes, out, |a, b| normal_pair(a, b).into());
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn exponential_f32(planes: &Planes, out: &mut [f32]) {
    of_words(planes, out, exponential);
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn exponential_f64(planes: &Planes, out: &mut [f64]) {
    of_wide_words(planes, out, |a, b| [exponential(a), exponential(b)]);
}

/// Integers from `low` on: all bits of a word up to those of `last`, drawn again where they are above it.
fn wide_integers(batch: &Batch<'_>, low: u64, last: u64, out: &mut [u64]) {
    let mask = u64::MAX.checked_shr(last.leading_zeros()).unwrap_or(0);
    let (a, b) = (wide_words(batch.planes, 0), wide_words(batch.planes, 1));
    for ((pair, at), &call) in out.as_chunks_mut::<2>().0.iter_mut().zip(0..).zip(batch.calls) {
        for (slot, word, half) in [(0, a[at], 0), (1, b[at], 1)] {
            let mut step = word & mask;
            let element = call.wrapping_mul(2).wrapping_add(half);
            for number in 1..=INTEGER_TRIES {
                if step <= last {
                    break;
                }
                let [high, low, ..] = words_of_try(batch.key, element, number);
                step = (u64::from(high) << 32 | u64::from(low)) & mask;
            }
            pair[slot] = low.wrapping_add(step.min(last));
        }
    }
}

/// `low + mulhi(word, span)`; in `low..low + span`, so that wrapping sums are right.
fn integers(dtype: DType, batch: &Batch<'_>, low: Scalar, span: u32, out: &mut [u8]) {
    let mut steps = [[0u32; CALLS]; 4];
    if span == 0 {
        steps = *batch.planes;
    } else if steps_of(batch.planes, span, &mut steps) {
        without_bias(batch, span, &mut steps);
    }
    let mut in_order = [0u32; CALLS * 4];
    interleave(&steps, &mut in_order);
    let low_bits = low.cast(dtype).bits();
    for (slot, &step) in out.chunks_exact_mut(dtype.bytes()).zip(&in_order) {
        match dtype {
            DType::F32 | DType::F64 => {
                let value = Scalar::F64(low.as_f64() + step as f64).cast(dtype);
                slot.copy_from_slice(&value.bits().to_le_bytes()[..slot.len()]);
            }
            DType::U32 | DType::I32 => slot.copy_from_slice(&(low_bits as u32).wrapping_add(step).to_le_bytes()),
            _ => slot.copy_from_slice(&low_bits.wrapping_add(step as u64).to_le_bytes()[..slot.len()]),
        }
    }
}

/// The high halves of the words' products with `span`; whether any low half is below it, so that a word may have to be
/// drawn again.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn steps_of(planes: &Planes, span: u32, steps: &mut Planes) -> bool {
    let mut least = u32::MAX;
    for (plane, steps) in planes.iter().zip(steps) {
        for (&word, step) in plane.iter().zip(steps) {
            let product = word as u64 * span as u64;
            *step = (product >> 32) as u32;
            least = least.min(product as u32);
        }
    }
    least < span
}

/// Draws again where the low half of a word's product with `span` is below `2^32 mod span`: each step has as many words
/// then.
fn without_bias(batch: &Batch<'_>, span: u32, steps: &mut Planes) {
    let threshold = span.wrapping_neg() % span;
    for (lane, (plane, steps)) in batch.planes.iter().zip(steps).enumerate() {
        for ((&word, step), &call) in plane.iter().zip(steps).zip(batch.calls) {
            let mut product = word as u64 * span as u64;
            if product as u32 >= threshold {
                continue;
            }
            let element = call.wrapping_mul(4).wrapping_add(lane as u32);
            let mut number = 1;
            while (product as u32) < threshold && number <= INTEGER_TRIES {
                product = words_of_try(batch.key, element, number)[0] as u64 * span as u64;
                number += 1;
            }
            *step = (product >> 32) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u32; 5] = [7, 8, 3, 4, 11];

    fn values(dist: Dist, dtype: DType, first: u32, n: usize, range: Option<(Scalar, Scalar)>) -> Vec<Scalar> {
        let mut out = crate::host_buffer::HostBuffer::zeroed(dtype, n);
        fill(dist, dtype, KEY, first, range, out.bytes_mut().expect("it is owned"), n);
        (0..n).map(|i| out.scalar(i)).collect()
    }

    fn bits(values: &[Scalar]) -> Vec<u64> {
        values.iter().map(|v| v.bits()).collect()
    }

    #[test]
    fn an_element_is_the_same_wherever_its_block_begins() {
        let kinds = [
            (Dist::Uniform, DType::F32, None),
            (Dist::Uniform, DType::F64, None),
            (Dist::Normal, DType::F32, None),
            (Dist::Normal, DType::F64, None),
            (Dist::Integer, DType::I32, Some((Scalar::I32(-5), Scalar::U32(11)))),
            (Dist::Integer, DType::I64, Some((Scalar::I64(1 << 40), Scalar::U32(11)))),
        ];
        for (dist, dtype, range) in kinds {
            let whole = bits(&values(dist, dtype, 0, 1500, range));
            for (first, n) in [(1, 3), (5, 900), (511, 13), (1023, 477)] {
                assert_eq!(
                    bits(&values(dist, dtype, first as u32, n, range)),
                    whole[first..first + n],
                    "{dist:?} {dtype}"
                );
            }
            let numbers: Vec<u32> = (0..300).map(|i| i * 7919 % 1500).collect();
            let mut out = crate::host_buffer::HostBuffer::zeroed(dtype, 300);
            at(dist, dtype, KEY, &numbers, range, out.bytes_mut().expect("it is owned"));
            for (i, number) in numbers.iter().enumerate() {
                assert_eq!(out.scalar(i).bits(), whole[*number as usize], "{dist:?} {dtype} {number}");
            }
        }
    }

    #[test]
    fn elements_are_the_words_of_their_counter() {
        let words = philox4x32_10([1, 11, 3, 4], [7, 8]);
        let uniform = values(Dist::Uniform, DType::F32, 6, 1, None)[0].as_f64();
        assert_eq!(uniform, (words[2] >> 8) as f64 / 16_777_216.0);
        let wide = values(Dist::Uniform, DType::F64, 3, 1, None)[0].as_f64();
        let joined = (words[2] as u64) << 32 | words[3] as u64;
        assert_eq!(wide, (joined >> 11) as f64 / 9_007_199_254_740_992.0);
        let integer = values(Dist::Integer, DType::I32, 6, 1, Some((Scalar::I32(-5), Scalar::U32(11))))[0];
        assert_eq!(integer.as_f64(), -5.0 + ((words[2] as u64 * 11) >> 32) as f64);
    }

    #[test]
    fn normal_numbers_are_box_and_mullers() {
        let words = philox4x32_10([1, 11, 3, 4], [7, 8]);
        let u = (words[2] | 1) as f64 / 4_294_967_296.0;
        let angle = words[3] as f64 / 4_294_967_296.0 * std::f64::consts::TAU;
        let radius = (-2.0 * u.ln()).sqrt();
        let pair = values(Dist::Normal, DType::F32, 6, 2, None);
        assert!((pair[0].as_f64() - radius * angle.cos()).abs() < 2e-6, "{} {}", pair[0], radius * angle.cos());
        assert!((pair[1].as_f64() - radius * angle.sin()).abs() < 2e-6, "{} {}", pair[1], radius * angle.sin());
    }

    #[test]
    fn normal_numbers_have_the_moments_and_tails_of_a_normal_distribution() {
        for dtype in [DType::F32, DType::F64] {
            let n = 1 << 20;
            let values: Vec<f64> = values(Dist::Normal, dtype, 0, n, None).iter().map(|v| v.as_f64()).collect();
            let mean_of = |f: &dyn Fn(f64) -> f64| values.iter().map(|&v| f(v)).sum::<f64>() / n as f64;
            // The tolerances are four standard errors, which are 1, sqrt(2), sqrt(15) and sqrt(96) over 1024.
            assert!(mean_of(&|v| v).abs() < 0.004, "{dtype}");
            assert!((mean_of(&|v| v * v) - 1.0).abs() < 0.006, "{dtype}");
            assert!(mean_of(&|v| v.powi(3)).abs() < 0.016, "{dtype}");
            assert!((mean_of(&|v| v.powi(4)) - 3.0).abs() < 0.04, "{dtype}");
            assert!((mean_of(&|v| (v.abs() > 2.0) as u8 as f64) - 0.0455).abs() < 0.001, "{dtype}");
            let neighbours = values.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / n as f64;
            assert!(neighbours.abs() < 0.004, "{dtype}: neighbours correlate by {neighbours}");
        }
    }

    #[test]
    fn the_extreme_words_give_finite_normals_and_uniforms_below_one() {
        for a in [0, 1, u32::MAX] {
            for b in [0, 1, 1 << 29, 1 << 30, 1 << 31, u32::MAX] {
                let (c, s) = normal_pair::<f32>(a, b);
                assert!(c.is_finite() && s.is_finite() && c.abs() < 6.7 && s.abs() < 6.7, "{a} {b}: {c} {s}");
                let (c, s) = normal_pair::<f64>((a as u64) << 32 | a as u64, (b as u64) << 32);
                assert!(c.is_finite() && s.is_finite() && c.abs() < 9.5 && s.abs() < 9.5, "{a} {b}: {c} {s}");
            }
        }
        assert!(uniform::<f32>(u32::MAX) < 1.0 && uniform::<f64>(u64::MAX) < 1.0);
    }

    #[test]
    fn integers_fill_their_range_to_its_ends() {
        let seen = values(Dist::Integer, DType::I32, 0, 10_000, Some((Scalar::I32(-3), Scalar::U32(7))));
        let mut counts = [0; 7];
        for value in seen {
            counts[(value.as_f64() + 3.0) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (1250..1610).contains(&c)), "{counts:?}");
        let whole = values(Dist::Integer, DType::I32, 0, 64, Some((Scalar::I32(i32::MIN), Scalar::U32(u32::MAX))));
        assert!(whole.iter().any(|v| v.as_f64() > 0.0) && whole.iter().any(|v| v.as_f64() < 0.0));
    }
}

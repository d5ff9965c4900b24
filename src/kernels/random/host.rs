//! Random numbers into host blocks.
//!
<<<<<<< HEAD
//! In: a stream's key and element numbers. Out: elements. Must hold: element `e` depends on the key and `e`
//! alone, so blocks may begin anywhere; the same bits on every instruction set (no fused multiply-add).

use super::philox::philox4x32_10;
use crate::graph::{DType, Dist, Scalar};
use multiversion::multiversion;

/// Philox calls made at a time.
const CALLS: usize = 128;

type Words = [[u32; CALLS]; 4];

/// Fills `out` with elements `first..first + n` of a stream. `key` is seed low, seed high, stream low, stream
/// high, op; `range` is `low` and `span` of `Dist::Integer`.
=======
//! In: a stream's key and element numbers. Out: elements. Counters are worked off in batches of [`CALLS`], words in
//! four planes, so that every loop becomes vector code.

use super::{elements_per_call, philox4x32_10};
use crate::graph::semantics::random::{normal_pair, uniform};
use crate::graph::{DType, Dist, Scalar};
use multiversion::multiversion;

/// Calls of the generator that are worked on at a time.
const CALLS: usize = 128;

/// Words of a batch: one plane for each of a call's four.
type Planes = [[u32; CALLS]; 4];

/// Fills `out` with elements `first..first + n` of a stream. `key` is seed low, seed high, stream low, stream high,
/// op; `range` is `low` and `span` of `Dist::Integer`. Blocks are aligned to their elements.
///
/// # Panics
/// IR-7, for a dtype that the distribution does not have, or integers without their range.
>>>>>>> elements
pub fn fill(
    dist: Dist,
    dtype: DType,
    key: [u32; 5],
    first: u32,
    range: Option<(Scalar, u32)>,
    out: &mut [u8],
    n: usize,
) {
<<<<<<< HEAD
    let per_call = if dtype == DType::F64 && dist != Dist::Integer { 2 } else { 4 };
    let width = dtype.bytes();
    let mut words: Words = [[0; CALLS]; 4];
    let mut done = 0;
    let mut scratch = vec![0u64; CALLS * 4];
=======
    let per_call = elements_per_call(dist, dtype) as usize;
    let width = dtype.bytes();
    let mut planes: Planes = [[0; CALLS]; 4];
    let mut scratch = [0u64; CALLS * 4];
    let mut calls = [0u32; CALLS];
    let mut done = 0;
>>>>>>> elements
    while done < n {
        let element = first as usize + done;
        let (call, skip) = (element / per_call, element % per_call);
        let take = (CALLS * per_call - skip).min(n - done);
<<<<<<< HEAD
        let calls = (skip + take).div_ceil(per_call);
        counters(&mut words, key, call as u32, calls);
        if skip == 0 && take == calls * per_call {
            let bytes = &mut out[done * width..(done + take) * width];
            elements(dist, dtype, &words, calls, range, bytes);
        } else {
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut scratch);
            elements(dist, dtype, &words, calls, range, &mut bytes[..calls * per_call * width]);
            out[done * width..(done + take) * width].copy_from_slice(&bytes[skip * width..(skip + take) * width]);
=======
        for (i, slot) in calls.iter_mut().enumerate() {
            *slot = (call as u32).wrapping_add(i as u32);
        }
        generate(&mut planes, key, &calls);
        let target = &mut out[done * width..(done + take) * width];
        if take == CALLS * per_call {
            elements(dist, dtype, &planes, range, target);
        } else {
            let all: &mut [u8] = bytemuck::cast_slice_mut(&mut scratch);
            elements(dist, dtype, &planes, range, &mut all[..CALLS * per_call * width]);
            target.copy_from_slice(&all[skip * width..(skip + take) * width]);
>>>>>>> elements
        }
        done += take;
    }
}

<<<<<<< HEAD
/// Fills `out` with the given elements of a stream.
pub fn at(dist: Dist, dtype: DType, key: [u32; 5], elements: &[u32], range: Option<(Scalar, u32)>, out: &mut [u8]) {
    let width = dtype.bytes();
    for (i, &element) in elements.iter().enumerate() {
        let mut one = [0u64; 1];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut one);
        fill_one(dist, dtype, key, element, range, &mut bytes[..width]);
        out[i * width..(i + 1) * width].copy_from_slice(&bytes[..width]);
    }
}

fn fill_one(dist: Dist, dtype: DType, key: [u32; 5], element: u32, range: Option<(Scalar, u32)>, out: &mut [u8]) {
    let per_call = if dtype == DType::F64 && dist != Dist::Integer { 2 } else { 4 };
    let words = philox4x32_10([element / per_call, key[4], key[2], key[3]], [key[0], key[1]]);
    let mut table: Words = [[0; CALLS]; 4];
    for (column, word) in table.iter_mut().zip(words) {
        column[0] = word;
    }
    let mut group = [0u64; 4];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut group);
    let width = dtype.bytes();
    elements(dist, dtype, &table, 1, range, &mut bytes[..per_call as usize * width]);
    let from = (element % per_call) as usize * width;
    out.copy_from_slice(&bytes[from..from + width]);
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512bw+avx512vl", "x86_64+avx2"))]
fn counters(words: &mut Words, key: [u32; 5], first: u32, calls: usize) {
    // The length is a constant, so that the loop becomes vector code; surplus calls cost less than a tail.
    let calls = calls.next_multiple_of(16).min(CALLS);
    let [w0, w1, w2, w3] = words;
    for i in 0..calls {
        let out = philox4x32_10([first.wrapping_add(i as u32), key[4], key[2], key[3]], [key[0], key[1]]);
        w0[i] = out[0];
        w1[i] = out[1];
        w2[i] = out[2];
        w3[i] = out[3];
    }
}

fn elements(dist: Dist, dtype: DType, words: &Words, calls: usize, range: Option<(Scalar, u32)>, out: &mut [u8]) {
    match (dist, dtype) {
        (Dist::Uniform, DType::F64) => uniform_f64(words, calls, bytemuck::cast_slice_mut(out)),
        (Dist::Normal, DType::F64) => normal_f64(words, calls, bytemuck::cast_slice_mut(out)),
        (Dist::Uniform, DType::F32) => uniform_f32(words, calls, bytemuck::cast_slice_mut(out)),
        (Dist::Normal, DType::F32) => normal_f32(words, calls, bytemuck::cast_slice_mut(out)),
        (Dist::Integer, _) => {
            let (low, span) = range.expect("IR-7: integers come with their range");
            integers(dtype, words, calls, low, span, out);
        }
        (dist, dtype) => unreachable!("IR-7: {dist:?} of {dtype}"),
    }
}

fn integers(dtype: DType, words: &Words, calls: usize, low: Scalar, span: u32, out: &mut [u8]) {
    let width = dtype.bytes();
    for i in 0..calls {
        for (lane, column) in words.iter().enumerate() {
            let step = ((column[i] as u64 * span as u64) >> 32) as i64;
            let value = match low {
                Scalar::F32(_) | Scalar::F64(_) => Scalar::F64(low.as_f64() + step as f64),
                Scalar::I64(low) => Scalar::I64(low.saturating_add(step)),
                other => Scalar::I64(other.as_f64() as i64 + step),
            };
            let bits = value.cast(dtype).bits().to_le_bytes();
            let from = (4 * i + lane) * width;
            out[from..from + width].copy_from_slice(&bits[..width]);
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512bw+avx512vl", "x86_64+avx2"))]
fn uniform_f32(words: &Words, calls: usize, out: &mut [f32]) {
    const SCALE: f32 = 1.0 / 16_777_216.0;
    for (i, group) in out.as_chunks_mut::<4>().0.iter_mut().enumerate().take(calls) {
        for (lane, slot) in group.iter_mut().enumerate() {
            *slot = (words[lane][i] >> 8) as i32 as f32 * SCALE;
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512bw+avx512vl", "x86_64+avx2"))]
fn uniform_f64(words: &Words, calls: usize, out: &mut [f64]) {
    for (i, pair) in out.as_chunks_mut::<2>().0.iter_mut().enumerate().take(calls) {
        pair[0] = unit_f64(words[0][i], words[1][i]);
        pair[1] = unit_f64(words[2][i], words[3][i]);
    }
}

/// 53 bits of two words as a number in [0, 1).
#[inline(always)]
fn unit_f64(high: u32, low: u32) -> f64 {
    ((high >> 5) as f64 * 67_108_864.0 + (low >> 6) as f64) * (1.0 / 9_007_199_254_740_992.0)
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512bw+avx512vl", "x86_64+avx2"))]
fn normal_f32(words: &Words, calls: usize, out: &mut [f32]) {
    let mut planes = [[0f32; CALLS]; 4];
    let padded = calls.next_multiple_of(16).min(CALLS);
    for half in 0..2 {
        for i in 0..padded {
            let (a, b) = box_muller_f32(words[2 * half][i], words[2 * half + 1][i]);
            planes[2 * half][i] = a;
            planes[2 * half + 1][i] = b;
        }
    }
    for (i, group) in out.as_chunks_mut::<4>().0.iter_mut().enumerate().take(calls) {
=======
/// Fills `out` with the elements of a stream that have these numbers; otherwise as [`fill`].
///
/// # Panics
/// As [`fill`].
pub fn at(dist: Dist, dtype: DType, key: [u32; 5], numbers: &[u32], range: Option<(Scalar, u32)>, out: &mut [u8]) {
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
        elements(dist, dtype, &planes, range, all);
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

/// A whole batch of elements.
fn elements(dist: Dist, dtype: DType, planes: &Planes, range: Option<(Scalar, u32)>, out: &mut [u8]) {
    match (dist, dtype) {
        (Dist::Uniform, DType::F32) => uniform_f32(planes, bytemuck::cast_slice_mut(out)),
        (Dist::Uniform, DType::F64) => uniform_f64(planes, bytemuck::cast_slice_mut(out)),
        (Dist::Normal, DType::F32) => normal_f32(planes, bytemuck::cast_slice_mut(out)),
        (Dist::Normal, DType::F64) => normal_f64(planes, bytemuck::cast_slice_mut(out)),
        (Dist::Integer, dtype) => {
            let Some((low, span)) = range else { panic!("IR-7: random integers without their range") };
            integers(dtype, planes, low, span, out);
        }
        (dist, dtype) => panic!("IR-7: {dist:?} of {dtype}"),
    }
}

/// Interleaves planes: four elements of each call, in order.
#[inline(always)]
fn interleave<T: Copy>(planes: &[[T; CALLS]; 4], out: &mut [T]) {
    for (i, group) in out.as_chunks_mut::<4>().0.iter_mut().enumerate().take(CALLS) {
>>>>>>> elements
        *group = [planes[0][i], planes[1][i], planes[2][i], planes[3][i]];
    }
}

<<<<<<< HEAD
/// Two normal numbers of two words: `sqrt(-2 ln u) (cos, sin)(2 pi t)`, `u` in (0, 1], `t` in [-1/2, 1/2).
#[inline(always)]
fn box_muller_f32(a: u32, b: u32) -> (f32, f32) {
    let u = (a as f64 + 1.0) as f32 * (1.0 / 4_294_967_296.0);
    let radius = (-2.0 * ln_f32(u)).sqrt();
    let turns = b as i32 as f32 * (1.0 / 4_294_967_296.0);
    let quarter = (turns * 4.0).round_ties_even();
    let x = (turns - quarter * 0.25) * std::f32::consts::TAU;
    let z = x * x;
    let sin = ((-1.951_529_6e-4 * z + 8.332_161e-3) * z - 1.666_665_5e-1) * z * x + x;
    let cos = ((2.443_315_7e-5 * z - 1.388_731_6e-3) * z + 4.166_664_6e-2) * z * z - 0.5 * z + 1.0;
    let q = quarter as i32;
    let (c, s) = if q & 1 == 1 { (sin, cos) } else { (cos, sin) };
    let c = if (q + 1) & 2 == 2 { -c } else { c };
    let s = if q & 2 == 2 { -s } else { s };
    (radius * c, radius * s)
}

/// Natural logarithm of a normal number in (0, 1].
#[inline(always)]
fn ln_f32(x: f32) -> f32 {
    let bits = x.to_bits().wrapping_sub(0x3F35_04F3);
    let exponent = (bits as i32 >> 23) as f32;
    let f = f32::from_bits((bits & 0x007F_FFFF).wrapping_add(0x3F35_04F3)) - 1.0;
    let z = f * f;
    let mut p = 7.037_683_6e-2f32;
    p = p * f - 1.151_461e-1;
    p = p * f + 1.167_699_9e-1;
    p = p * f - 1.242_014_1e-1;
    p = p * f + 1.424_932_3e-1;
    p = p * f - 1.666_805_8e-1;
    p = p * f + 2.000_071_5e-1;
    p = p * f - 2.499_999_4e-1;
    p = p * f + 3.333_333e-1;
    let mut y = f * z * p;
    y -= 2.121_944_4e-4 * exponent;
    y -= 0.5 * z;
    f + y + 0.693_359_4 * exponent
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512bw+avx512vl", "x86_64+avx2"))]
fn normal_f64(words: &Words, calls: usize, out: &mut [f64]) {
    let mut planes = [[0f64; CALLS]; 2];
    let padded = calls.next_multiple_of(16).min(CALLS);
    for i in 0..padded {
        let u = unit_f64(words[0][i], words[1][i]) + 1.0 / 9_007_199_254_740_992.0;
        let t = unit_f64(words[2][i], words[3][i]) - 0.5;
        let (a, b) = box_muller_f64(u, t);
        planes[0][i] = a;
        planes[1][i] = b;
    }
    for (i, pair) in out.as_chunks_mut::<2>().0.iter_mut().enumerate().take(calls) {
        *pair = [planes[0][i], planes[1][i]];
    }
}

/// As `box_muller_f32`, from `u` in (0, 1] and `turns` in [-1/2, 1/2).
#[inline(always)]
fn box_muller_f64(u: f64, turns: f64) -> (f64, f64) {
    let radius = (-2.0 * ln_f64(u)).sqrt();
    let quarter = (turns * 4.0).round_ties_even();
    let x = (turns - quarter * 0.25) * std::f64::consts::TAU;
    let z = x * x;
    // Minimax polynomials of FreeBSD's k_sin and k_cos on [-pi/4, pi/4].
    let mut s = 1.589_690_995_211_550_1e-10;
    for c in [
        -2.505_076_025_340_686_3e-8,
        2.755_731_370_707_006_8e-6,
        -1.984_126_982_985_795e-4,
        8.333_333_333_322_49e-3,
        -1.666_666_666_666_663_2e-1,
    ] {
        s = s * z + c;
    }
    let sin = x + x * z * s;
    let mut c = -1.135_964_755_778_819_5e-11;
    for k in [
        2.087_572_321_298_175e-9,
        -2.755_731_435_139_066_3e-7,
        2.480_158_728_947_673e-5,
        -1.388_888_888_887_411e-3,
        4.166_666_666_666_66e-2,
    ] {
        c = c * z + k;
    }
    let cos = 1.0 - (0.5 * z - z * z * c);
    let q = quarter as i32;
    let (a, b) = if q & 1 == 1 { (sin, cos) } else { (cos, sin) };
    let a = if (q + 1) & 2 == 2 { -a } else { a };
    let b = if q & 2 == 2 { -b } else { b };
    (radius * a, radius * b)
}

/// Natural logarithm of a normal number (the reduction and polynomial of FreeBSD's e_log).
#[inline(always)]
fn ln_f64(x: f64) -> f64 {
    const SQRT_HALF: u64 = 0x3FE6_A09E_667F_3BCD;
    let bits = x.to_bits().wrapping_sub(SQRT_HALF);
    let k = (bits as i64 >> 52) as f64;
    let f = f64::from_bits((bits & 0x000F_FFFF_FFFF_FFFF).wrapping_add(SQRT_HALF)) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let t1 = w * (3.999_999_999_940_942e-1 + w * (2.222_219_843_214_978_4e-1 + w * 1.531_383_769_920_937_3e-1));
    let t2 = z
        * (6.666_666_666_666_735e-1
            + w * (2.857_142_874_366_239e-1 + w * (1.818_357_216_161_805e-1 + w * 1.479_819_860_511_658_6e-1)));
    let half = 0.5 * f * f;
    k * 6.931_471_803_691_238e-1 - ((half - (s * (half + t1 + t2) + k * 1.908_214_929_270_587_7e-10)) - f)
=======
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn uniform_f32(planes: &Planes, out: &mut [f32]) {
    let mut values = [[0f32; CALLS]; 4];
    for (plane, values) in planes.iter().zip(&mut values) {
        for (&word, value) in plane.iter().zip(values) {
            *value = uniform(word);
        }
    }
    interleave(&values, out);
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

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn uniform_f64(planes: &Planes, out: &mut [f64]) {
    let (a, b) = (wide_words(planes, 0), wide_words(planes, 1));
    for ((pair, &a), &b) in out.as_chunks_mut::<2>().0.iter_mut().zip(&a).zip(&b) {
        *pair = [uniform(a), uniform(b)];
    }
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
    let (a, b) = (wide_words(planes, 0), wide_words(planes, 1));
    for ((pair, &a), &b) in out.as_chunks_mut::<2>().0.iter_mut().zip(&a).zip(&b) {
        let (c, s) = normal_pair(a, b);
        *pair = [c, s];
    }
}

/// `low + mulhi(word, span)`; in `low..low + span`, so that wrapping sums are right.
fn integers(dtype: DType, planes: &Planes, low: Scalar, span: u32, out: &mut [u8]) {
    let mut steps = [[0u32; CALLS]; 4];
    steps_of(planes, span, &mut steps);
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

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn steps_of(planes: &Planes, span: u32, steps: &mut Planes) {
    for (plane, steps) in planes.iter().zip(steps) {
        for (&word, step) in plane.iter().zip(steps) {
            *step = ((word as u64 * span as u64) >> 32) as u32;
        }
    }
>>>>>>> elements
}

#[cfg(test)]
mod tests {
    use super::*;

<<<<<<< HEAD
    const KEY: [u32; 5] = [7, 0, 3, 0, 11];

    fn all(dist: Dist, dtype: DType, first: u32, n: usize, range: Option<(Scalar, u32)>) -> Vec<u8> {
        let mut out = vec![0u64; n.max(1)];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut out);
        fill(dist, dtype, KEY, first, range, &mut bytes[..n * dtype.bytes()], n);
        bytes[..n * dtype.bytes()].to_vec()
=======
    const KEY: [u32; 5] = [7, 8, 3, 4, 11];

    fn values(dist: Dist, dtype: DType, first: u32, n: usize, range: Option<(Scalar, u32)>) -> Vec<Scalar> {
        let mut out = crate::host_buffer::HostBuffer::zeroed(dtype, n);
        fill(dist, dtype, KEY, first, range, out.bytes_mut().expect("it is owned"), n);
        (0..n).map(|i| out.scalar(i)).collect()
    }

    fn bits(values: &[Scalar]) -> Vec<u64> {
        values.iter().map(|v| v.bits()).collect()
>>>>>>> elements
    }

    #[test]
    fn an_element_is_the_same_wherever_its_block_begins() {
<<<<<<< HEAD
        for (dist, dtype) in [
            (Dist::Uniform, DType::F32),
            (Dist::Uniform, DType::F64),
            (Dist::Normal, DType::F32),
            (Dist::Normal, DType::F64),
            (Dist::Integer, DType::I32),
        ] {
            let range = (dist == Dist::Integer).then_some((Scalar::I32(-5), 11));
            let width = dtype.bytes();
            let whole = all(dist, dtype, 0, 1500, range);
            for (first, n) in [(1, 3), (5, 900), (511, 13), (1023, 477)] {
                let part = all(dist, dtype, first, n, range);
                assert_eq!(part, whole[first as usize * width..(first as usize + n) * width], "{dist:?} {dtype}");
            }
            let mut some = vec![0u8; 3 * width];
            at(dist, dtype, KEY, &[2, 700, 1499], range, &mut some);
            assert_eq!(&some[width..2 * width], &whole[700 * width..701 * width]);
=======
        let kinds = [
            (Dist::Uniform, DType::F32, None),
            (Dist::Uniform, DType::F64, None),
            (Dist::Normal, DType::F32, None),
            (Dist::Normal, DType::F64, None),
            (Dist::Integer, DType::I32, Some((Scalar::I32(-5), 11))),
            (Dist::Integer, DType::I64, Some((Scalar::I64(1 << 40), 11))),
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
>>>>>>> elements
        }
    }

    #[test]
<<<<<<< HEAD
    fn uniform_numbers_are_the_words_of_their_counter() {
        let bytes = all(Dist::Uniform, DType::F32, 6, 1, None);
        let value = f32::from_le_bytes(bytes.try_into().unwrap());
        let words = philox4x32_10([1, 11, 3, 0], [7, 0]);
        assert_eq!(value, (words[2] >> 8) as f32 / 16_777_216.0);
=======
    fn elements_are_the_words_of_their_counter() {
        let words = philox4x32_10([1, 11, 3, 4], [7, 8]);
        let uniform = values(Dist::Uniform, DType::F32, 6, 1, None)[0].as_f64();
        assert_eq!(uniform, (words[2] >> 8) as f64 / 16_777_216.0);
        let wide = values(Dist::Uniform, DType::F64, 3, 1, None)[0].as_f64();
        let joined = (words[2] as u64) << 32 | words[3] as u64;
        assert_eq!(wide, (joined >> 11) as f64 / 9_007_199_254_740_992.0);
        let integer = values(Dist::Integer, DType::I32, 6, 1, Some((Scalar::I32(-5), 11)))[0];
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
>>>>>>> elements
    }

    #[test]
    fn normal_numbers_have_the_moments_and_tails_of_a_normal_distribution() {
        for dtype in [DType::F32, DType::F64] {
            let n = 1 << 20;
<<<<<<< HEAD
            let bytes = all(Dist::Normal, dtype, 0, n, None);
            let values: Vec<f64> = match dtype {
                DType::F32 => bytes.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap()) as f64).collect(),
                _ => bytes.chunks(8).map(|c| f64::from_le_bytes(c.try_into().unwrap())).collect(),
            };
            let mean = values.iter().sum::<f64>() / n as f64;
            let var = values.iter().map(|v| v * v).sum::<f64>() / n as f64;
            let kurtosis = values.iter().map(|v| v.powi(4)).sum::<f64>() / n as f64;
            let beyond_2 = values.iter().filter(|v| v.abs() > 2.0).count() as f64 / n as f64;
            assert!(mean.abs() < 0.005 && (var - 1.0).abs() < 0.01, "{dtype}: mean {mean}, variance {var}");
            assert!((kurtosis - 3.0).abs() < 0.06, "{dtype}: fourth moment {kurtosis}");
            assert!((beyond_2 - 0.0455).abs() < 0.002, "{dtype}: {beyond_2} beyond two");
            let neighbours = values.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / n as f64;
            assert!(neighbours.abs() < 0.005, "{dtype}: neighbours correlate by {neighbours}");
=======
            let values: Vec<f64> = values(Dist::Normal, dtype, 0, n, None).iter().map(|v| v.as_f64()).collect();
            let mean_of = |f: &dyn Fn(f64) -> f64| values.iter().map(|&v| f(v)).sum::<f64>() / n as f64;
            // Four standard errors: 1, sqrt(2), sqrt(15) and sqrt(96) over 1024.
            assert!(mean_of(&|v| v).abs() < 0.004, "{dtype}");
            assert!((mean_of(&|v| v * v) - 1.0).abs() < 0.006, "{dtype}");
            assert!(mean_of(&|v| v.powi(3)).abs() < 0.016, "{dtype}");
            assert!((mean_of(&|v| v.powi(4)) - 3.0).abs() < 0.04, "{dtype}");
            assert!((mean_of(&|v| (v.abs() > 2.0) as u8 as f64) - 0.0455).abs() < 0.001, "{dtype}");
            let neighbours = values.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / n as f64;
            assert!(neighbours.abs() < 0.004, "{dtype}: neighbours correlate by {neighbours}");
>>>>>>> elements
        }
    }

    #[test]
<<<<<<< HEAD
    fn box_muller_agrees_with_the_standard_library() {
        for (a, b) in [(0u32, 0u32), (1, 1 << 31), (u32::MAX, 77), (123_456_789, 987_654_321), (1 << 31, 3 << 30)] {
            let (c, s) = box_muller_f32(a, b);
            let u = (a as f64 + 1.0) / 4_294_967_296.0;
            let t = b as i32 as f64 / 4_294_967_296.0 * std::f64::consts::TAU;
            let r = (-2.0 * u.ln()).sqrt();
            assert!((c as f64 - r * t.cos()).abs() < 2e-6 * (1.0 + r), "{a} {b}: {c} {}", r * t.cos());
            assert!((s as f64 - r * t.sin()).abs() < 2e-6 * (1.0 + r), "{a} {b}: {s} {}", r * t.sin());
        }
    }

    #[test]
    fn integers_stay_in_their_range_and_reach_its_ends() {
        let bytes = all(Dist::Integer, DType::I32, 0, 10_000, Some((Scalar::I32(-3), 7)));
        let values: Vec<i32> = bytes.chunks(4).map(|c| i32::from_le_bytes(c.try_into().unwrap())).collect();
        assert_eq!((*values.iter().min().unwrap(), *values.iter().max().unwrap()), (-3, 3));
=======
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
        let seen = values(Dist::Integer, DType::I32, 0, 10_000, Some((Scalar::I32(-3), 7)));
        let mut counts = [0; 7];
        for value in seen {
            counts[(value.as_f64() + 3.0) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (1250..1610).contains(&c)), "{counts:?}");
        let whole = values(Dist::Integer, DType::I32, 0, 64, Some((Scalar::I32(i32::MIN), u32::MAX)));
        assert!(whole.iter().any(|v| v.as_f64() > 0.0) && whole.iter().any(|v| v.as_f64() < 0.0));
>>>>>>> elements
    }
}

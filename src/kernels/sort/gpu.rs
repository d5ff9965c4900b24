//! Stable argsort on a GPU. Lines of up to `SORT_BLOCK` elements go through a bitonic network in workgroup memory, in
//! one pass, which compares pairs (key, position). Longer lines are sorted by digits: in one pass up to `SORT_TILE`
//! elements (`tile`), beyond in several (`radix`).
//!
//! In: sizes. Out: passes over `[keys, out]`, or over `[keys, out, scratch]` for the longest lines. Short lines are
//! padded to a power of two; padding has positions from `len` on and sorts last, and several lines share a block.
//! Parameters from `OWN_WORDS` on: before, len, lines, log2 of the padded length, 1 for descending.
//!
//! Must hold: keys become unsigned integers of the same order. NaN is the greatest, and -0 equals 0. In the network the
//! position breaks ties, so that no two elements are equal and the sort is stable.

use super::radix::{BEFORE, LEN, LINES, key_function};
use super::{radix, tile};
use crate::error::{Error, ErrorKind};
use crate::graph::DType;
use crate::kernels::library::{Library, Pass};
use crate::kernels::scratch::{SORT_BLOCK, SORT_TILE};
use crate::kernels::wgsl::pieces::{Module, OWN_WORDS, grid_of, segments_key};
use crate::kernels::wgsl::types::storage;

const PADDED_LOG2: usize = OWN_WORDS + 3;

/// The passes of an argsort.
///
/// # Errors
/// `ErrorKind::Unsupported` if a GPU cannot count the scratch or the places of the sort (`kernels/scratch.rs`).
pub fn passes(library: &Library, segments: &[u8], segment_shift: u32) -> Result<Vec<Pass>, Error> {
    let Library::ArgSort { dtype, before, len, after, descending } = *library else {
        panic!("LIB-1: {} is no sort", library.name());
    };
    let lines = before as u64 * after as u64;
    if lines == 0 || len == 0 {
        return Ok(vec![]);
    }
    let padded = (len as u64).next_power_of_two();
    if library.scratch_words().is_none() {
        return Err(Error::new(ErrorKind::Unsupported, format!("a sort of {lines} lines of {len} on a GPU")));
    }
    let lines = lines as u32;
    if len as u64 > SORT_TILE {
        let segments = [segments[0], segments[1], segments[2]];
        return radix::passes(dtype, [before, len, lines], descending, segments, segment_shift);
    }
    if len as u64 > SORT_BLOCK {
        return tile::passes(dtype, [before, len, lines], descending, [segments[0], segments[1]], segment_shift);
    }
    let groups = (lines as u64 * padded).div_ceil(SORT_BLOCK);
    Ok(vec![Pass {
        key: format!("argsort block {dtype}{}", segments_key(segments)),
        wgsl: block(dtype, [segments[0], segments[1]]),
        params: vec![0, segment_shift, before, len, lines, padded.trailing_zeros(), descending as u32],
        operands: vec![0, 1],
        faults: false,
        grid: grid_of(groups, "a sort")?,
    }])
}

/// The unsigned type in which keys are compared.
pub(super) fn key_type(dtype: DType) -> &'static str {
    if dtype.is_wide() { "u64" } else { "u32" }
}

/// Statements that declare `k`, the key of the element `x` as an unsigned integer of the same order.
pub(super) fn ordered(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::U8 | DType::U32 => "    let k = x;\n",
        DType::I32 => "    let k = bitcast<u32>(x) ^ 0x80000000u;\n",
        DType::I64 => "    let k = bitcast<u64>(x) ^ 0x8000000000000000lu;\n",
        DType::F32 => {
            "    let raw = bitcast<u32>(x);
    let bits = select(raw, 0u, (raw << 1u) == 0u);
    let ordered = select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
    let k = select(ordered, 0xffffffffu, (bits & 0x7fffffffu) > 0x7f800000u);
"
        }
        DType::F64 => {
            "    let raw = bitcast<u64>(x);
    let bits = select(raw, 0lu, (raw << 1u) == 0lu);
    let ordered = select(bits | 0x8000000000000000lu, ~bits, (bits >> 63u) == 1lu);
    let k = select(ordered, 0xfffffffffffffffflu, (bits & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu);
"
        }
    }
}

/// A module with the operands and the functions `padded_key(line, position)` and `in_order(..)`.
fn common(dtype: DType, segments: [u8; 2]) -> Module {
    let mut module = Module::new();
    module.operand("keys", storage(dtype), segments[0]);
    module.operand("result", "u32", segments[1]);
    let key = key_type(dtype);
    let zero = if dtype.is_wide() { "0lu" } else { "0u" };
    module.add(&key_function(dtype));
    module.add(&format!(
        "fn padded_key(line: u32, position: u32) -> {key} {{
    if (position >= params[{LEN}] || line >= params[{LINES}]) {{ return {zero}; }}
    return key(line, position);
}}
fn in_order(p: u32, p_key: {key}, q: u32, q_key: {key}) -> bool {{
    let p_pads = p >= params[{LEN}];
    let q_pads = q >= params[{LEN}];
    if (p_pads || q_pads) {{ return !p_pads || (q_pads && p < q); }}
    return p_key < q_key || (p_key == q_key && p < q);
}}
"
    ));
    module
}

/// Sorts blocks of `SORT_BLOCK` elements in workgroup memory.
fn block(dtype: DType, segments: [u8; 2]) -> String {
    let mut module = common(dtype, segments);
    module.add(&format!(
        "var<workgroup> places: array<u32, {SORT_BLOCK}>;\nvar<workgroup> sorted: array<{}, {SORT_BLOCK}>;\n",
        key_type(dtype)
    ));
    module.finish(&format!(
        "    let padded_log2 = params[{PADDED_LOG2}];
    let mask = (1u << padded_log2) - 1u;
    let start = index * {SORT_BLOCK}u;
    for (var part = 0u; part < 4u; part++) {{
        let slot = lid + part * 256u;
        let element = start + slot;
        let position = element & mask;
        places[slot] = position;
        sorted[slot] = padded_key(element >> padded_log2, position);
    }}
    for (var stage = 2u; stage <= mask + 1u; stage = stage << 1u) {{
        for (var step = stage >> 1u; step > 0u; step = step >> 1u) {{
            workgroupBarrier();
            for (var part = 0u; part < 2u; part++) {{
                let pair = lid + part * 256u;
                let low = ((pair & ~(step - 1u)) << 1u) | (pair & (step - 1u));
                let high = low | step;
                let ascending = ((start + low) & mask & stage) == 0u;
                let p = places[low];
                let q = places[high];
                let p_key = sorted[low];
                let q_key = sorted[high];
                if (in_order(p, p_key, q, q_key) != ascending) {{
                    places[low] = q;
                    places[high] = p;
                    sorted[low] = q_key;
                    sorted[high] = p_key;
                }}
            }}
        }}
    }}
    workgroupBarrier();
    for (var part = 0u; part < 4u; part++) {{
        let slot = lid + part * 256u;
        let element = start + slot;
        let line = element >> padded_log2;
        let i = element & mask;
        if (line < params[{LINES}] && i < params[{LEN}]) {{
            let before = params[{BEFORE}];
            store_result(line % before + before * (i + params[{LEN}] * (line / before)), places[slot]);
        }}
    }}
"
    ))
}

#[cfg(all(test, feature = "gpu"))]
mod tests {
    use super::*;
    use crate::kernels::wgsl::harness::{Gpu, gpu, sample, words, words64};

    fn run(dtype: DType, sizes: [u32; 3], descending: bool, keys: Vec<u32>) -> Option<Vec<u32>> {
        let gpu = gpu()?;
        let [before, len, after] = sizes;
        let library = Library::ArgSort { dtype, before, len, after, descending };
        let scratch = vec![7; library.scratch_words().unwrap() as usize];
        let count = (before * len * after) as usize;
        let passes = passes(&library, &[1; 3], 30).unwrap();
        Some(gpu.passes(&passes, &[1; 3], &[keys, vec![u32::MAX; count], scratch]).swap_remove(1))
    }

    /// The stable permutation of each line, by the host's own sort.
    fn naive(keys: &[f32], [before, len, after]: [usize; 3], descending: bool) -> Vec<u32> {
        let mut out = vec![0; keys.len()];
        for b in 0..after {
            for a in 0..before {
                let at = |i: usize| a + before * (i + len * b);
                let mut order: Vec<usize> = (0..len).collect();
                order.sort_by(|p, q| {
                    let (p, q) = (keys[at(*p)], keys[at(*q)]);
                    let up = p.partial_cmp(&q).unwrap_or_else(|| p.is_nan().cmp(&q.is_nan()));
                    if descending { up.reverse() } else { up }
                });
                for (i, p) in order.into_iter().enumerate() {
                    out[at(i)] = p as u32;
                }
            }
        }
        out
    }

    #[test]
    fn lines_of_every_length_sort_stably_both_ways() {
        if gpu().is_none() {
            return;
        }
        let shapes = [
            [1, 1, 1],
            [1, 2, 1],
            [3, 5, 2],
            [1, 1000, 1],
            [2, 1025, 1],
            [300, 7, 2],
            [3, 4095, 2],
            [1, 4096, 1],
            [2, 4097, 1],
            [1, 140_000, 1],
        ];
        for shape in shapes {
            let mut keys = sample((shape[0] * shape[1] * shape[2]) as usize);
            for (i, key) in keys.iter_mut().enumerate() {
                match i % 29 {
                    3 => *key = f32::NAN,
                    5 => *key = -0.0,
                    7 => *key = f32::NEG_INFINITY,
                    11 => *key = -f32::NAN,
                    _ => {}
                }
            }
            for descending in [false, true] {
                let got = run(DType::F32, shape, descending, words(&keys)).unwrap();
                assert_eq!(got, naive(&keys, shape.map(|v| v as usize), descending), "{shape:?} {descending}");
            }
        }
    }

    #[test]
    fn every_dtype_has_its_order() {
        let Some(gpu) = gpu() else { return };
        let line = |dtype, keys: Vec<u32>, len| run(dtype, [1, len, 1], false, keys).unwrap();
        assert_eq!(line(DType::Bool, vec![1, 0, 1, 0], 4), [1, 3, 0, 2]);
        assert_eq!(line(DType::U8, vec![200, 3, 255, 3], 4), [1, 3, 0, 2]);
        assert_eq!(line(DType::U32, vec![u32::MAX, 0, 1 << 31], 3), [1, 2, 0]);
        assert_eq!(line(DType::I32, vec![5, -1i32 as u32, i32::MIN as u32], 3), [2, 1, 0]);
        if !gpu.target.f64 || !gpu.target.i64 {
            return eprintln!("no 64-bit types: the rest of this test is skipped");
        }
        let wide = |values: &[i64]| values.iter().flat_map(|v| [*v as u32, (*v >> 32) as u32]).collect::<Vec<u32>>();
        assert_eq!(line(DType::I64, wide(&[1 << 40, -1, i64::MIN, (1 << 40) - 1]), 4), [2, 1, 3, 0]);
        let floats = words64(&[f64::NAN, 1e-300, -1e300, 0.0, -0.0, f64::INFINITY]);
        assert_eq!(line(DType::F64, floats, 6), [2, 3, 4, 1, 5, 0]);
    }

    #[test]
    fn long_lines_of_every_dtype_are_sorted_by_digits() {
        let Some(gpu) = gpu() else { return };
        for len in [3000, 4500] {
            check_dtypes(gpu, len);
        }
    }

    /// Sorts two lines of every dtype, which lie side by side.
    fn check_dtypes(gpu: &Gpu, len: u32) {
        let before = 2;
        let mixed: Vec<u64> = (0..2 * len as u64).map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let check = |dtype: DType, keys: Vec<u32>, less: &dyn Fn(usize, usize) -> std::cmp::Ordering| {
            for descending in [false, true] {
                let got = run(dtype, [before, len, 1], descending, keys.clone()).unwrap();
                for line in 0..2 {
                    let mut order: Vec<usize> = (0..len as usize).collect();
                    order.sort_by(|&p, &q| {
                        let up = less(line + 2 * p, line + 2 * q);
                        if descending { up.reverse() } else { up }
                    });
                    let got = got.iter().skip(line).step_by(2).map(|&i| i as usize);
                    assert!(got.eq(order), "{dtype} {descending}");
                }
            }
        };
        let narrow: Vec<u32> = mixed.iter().map(|&m| (m >> 32) as u32).collect();
        check(DType::I32, narrow.clone(), &|p, q| (narrow[p] as i32).cmp(&(narrow[q] as i32)));
        let bytes: Vec<u32> = narrow.iter().map(|n| n & 255).collect();
        check(DType::U8, bytes.clone(), &|p, q| bytes[p].cmp(&bytes[q]));
        if !gpu.target.f64 || !gpu.target.i64 {
            return eprintln!("no 64-bit types: the rest of this test is skipped");
        }
        let words = |of: &dyn Fn(u64) -> u64| -> Vec<u32> {
            mixed.iter().flat_map(|&m| [of(m) as u32, (of(m) >> 32) as u32]).collect()
        };
        let float = |m: u64| (m as i64 >> 20) as f64;
        check(DType::F64, words(&|m| float(m).to_bits()), &|p, q| float(mixed[p]).total_cmp(&float(mixed[q])));
    }

    #[test]
    fn keys_in_pieces_are_sorted_as_in_one() {
        let Some(gpu) = gpu() else { return };
        for len in [5000, 3000] {
            check_pieces(gpu, len, if len > 4096 { 12 } else { 10 });
        }
    }

    /// Sorts a line in segments of `1 << shift` elements.
    fn check_pieces(gpu: &Gpu, len: u32, shift: u32) {
        let keys: Vec<u32> = (0..len).map(|i| i * 7919 % 251).collect();
        let library = Library::ArgSort { dtype: DType::U8, before: 1, len, after: 1, descending: false };
        let apart = |words: &[u32]| words.chunks(1 << shift).map(<[u32]>::to_vec).collect::<Vec<_>>();
        let scratch = vec![7; library.scratch_words().unwrap() as usize];
        let buffers = [apart(&keys), apart(&vec![u32::MAX; len as usize]), apart(&scratch)];
        let segments = [0, 1, 2].map(|n: usize| buffers[n].len() as u8);
        let passes = passes(&library, &segments, shift).unwrap();
        let after = gpu.passes(&passes, &segments, &buffers.concat());
        let order = after[segments[0] as usize..][..segments[1] as usize].concat();
        assert_eq!(order, run(DType::U8, [1, len, 1], false, keys).unwrap());
    }

    #[test]
    fn nothing_to_sort_is_no_pass() {
        let library = Library::ArgSort { dtype: DType::F32, before: 3, len: 0, after: 1, descending: false };
        assert!(passes(&library, &[1; 3], 30).unwrap().is_empty());
    }
}

//! Stable argsort on a GPU: a bitonic network over positions, compared by (key, position).
//!
//! In: sizes. Out: passes over `[keys, out, scratch]`. Lines are padded to a power of two; element `i` of the
//! permutation of line `l` lies at `l * padded + i` of scratch, padding has positions from `len` on and sorts last.
//! Steps within a block of 1,024 run in workgroup memory, several short lines in one block; longer ones take a pass
//! each. Parameters from `OWN_WORDS` on: before, len, lines, log2 of the padded length, 1 for descending,
//! first and last stage (sizes of the merged runs), step, 1 for the first pass, 1 for the last.
//!
//! Must hold: keys become unsigned integers of the same order, NaN greatest, -0 as 0; the position breaks ties, so
//! that no two elements are equal and the network is stable.

use crate::error::{Error, ErrorKind};
use crate::graph::DType;
use crate::kernels::library::{Library, Pass};
use crate::kernels::wgsl::pieces::{Module, OWN_WORDS, grid_of, one_segment};
use crate::kernels::wgsl::types::storage;

/// Elements that a workgroup sorts in its memory.
const BLOCK: u64 = 1024;

const BEFORE: usize = OWN_WORDS;
const LEN: usize = OWN_WORDS + 1;
const LINES: usize = OWN_WORDS + 2;
const PADDED_LOG2: usize = OWN_WORDS + 3;
const DESCENDING: usize = OWN_WORDS + 4;
const STAGE_FIRST: usize = OWN_WORDS + 5;
const STAGE_LAST: usize = OWN_WORDS + 6;
const STEP: usize = OWN_WORDS + 7;
const IS_FIRST: usize = OWN_WORDS + 8;
const IS_LAST: usize = OWN_WORDS + 9;

/// The passes of an argsort.
///
/// # Errors
/// `ErrorKind::Unsupported` for operands in several segments and for more than 2^32 padded elements.
pub fn passes(library: &Library, segments: &[u8], segment_shift: u32) -> Result<Vec<Pass>, Error> {
    let Library::ArgSort { dtype, before, len, after, descending } = *library else {
        panic!("LIB-1: {} is no sort", library.name());
    };
    one_segment(segments, "a sort")?;
    let lines = before as u64 * after as u64;
    let padded = (len as u64).next_power_of_two();
    let total = lines * padded;
    if lines == 0 || len == 0 {
        return Ok(vec![]);
    }
    if total > u32::MAX as u64 {
        return Err(Error::new(ErrorKind::Unsupported, format!("a sort of {total} padded elements on a GPU")));
    }
    let pass = |local: bool, stages: (u64, u64), step: u64, first: bool, last: bool| -> Result<Pass, Error> {
        let groups = if local { total.div_ceil(BLOCK) } else { (total / 2).div_ceil(256) };
        let mut params = vec![0, segment_shift, before, len, lines as u32, padded.trailing_zeros()];
        params.extend([descending as u32, stages.0 as u32, stages.1 as u32, step as u32, first as u32, last as u32]);
        Ok(Pass {
            key: format!("argsort {} {dtype}", if local { "block" } else { "step" }),
            wgsl: if local { block(dtype) } else { step_across(dtype) },
            params,
            operands: vec![0, 1, 2],
            faults: false,
            grid: grid_of(groups, "a sort")?,
        })
    };
    let mut passes = vec![pass(true, (2, padded.min(BLOCK)), 0, true, padded <= BLOCK)?];
    let mut stage = 2 * BLOCK;
    while stage <= padded {
        let mut step = stage / 2;
        while step >= BLOCK {
            passes.push(pass(false, (stage, stage), step, false, false)?);
            step /= 2;
        }
        passes.push(pass(true, (stage, stage), 0, false, stage == padded)?);
        stage *= 2;
    }
    Ok(passes)
}

/// The unsigned type that keys are compared as.
fn key_type(dtype: DType) -> &'static str {
    if dtype.is_wide() { "u64" } else { "u32" }
}

/// Operands, and `key(line, position)` and `in_order(..)`.
fn common(dtype: DType) -> Module {
    let mut module = Module::new();
    module.operand("keys", storage(dtype), 1);
    module.operand("result", "u32", 1);
    module.operand("order", "u32", 1);
    let key = key_type(dtype);
    let ordered = match dtype {
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
    };
    let zero = if dtype.is_wide() { "0lu" } else { "0u" };
    module.add(&format!(
        "fn key(line: u32, position: u32) -> {key} {{
    if (position >= params[{LEN}] || line >= params[{LINES}]) {{ return {zero}; }}
    let before = params[{BEFORE}];
    let x = load_keys(line % before + before * (position + params[{LEN}] * (line / before)));
{ordered}    return select(k, ~k, params[{DESCENDING}] == 1u);
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

/// Sorts or merges blocks of `BLOCK` elements in workgroup memory.
fn block(dtype: DType) -> String {
    let mut module = common(dtype);
    module.add(&format!(
        "var<workgroup> places: array<u32, {BLOCK}>;\nvar<workgroup> sorted: array<{}, {BLOCK}>;\n",
        key_type(dtype)
    ));
    module.finish(&format!(
        "    let padded_log2 = params[{PADDED_LOG2}];
    let mask = (1u << padded_log2) - 1u;
    let start = index * {BLOCK}u;
    for (var part = 0u; part < 4u; part++) {{
        let slot = lid + part * 256u;
        let element = start + slot;
        var position = element & mask;
        if (params[{IS_FIRST}] == 0u) {{ position = load_order(element); }}
        places[slot] = position;
        sorted[slot] = key(element >> padded_log2, position);
    }}
    for (var stage = params[{STAGE_FIRST}]; stage <= params[{STAGE_LAST}]; stage = stage << 1u) {{
        for (var step = min(stage >> 1u, {half}u); step > 0u; step = step >> 1u) {{
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
        if (line < params[{LINES}]) {{
            let i = element & mask;
            if (params[{IS_LAST}] == 0u) {{
                store_order(element, places[slot]);
            }} else if (i < params[{LEN}]) {{
                let before = params[{BEFORE}];
                store_result(line % before + before * (i + params[{LEN}] * (line / before)), places[slot]);
            }}
        }}
    }}
",
        half = BLOCK / 2
    ))
}

/// One step of a stage between blocks, in scratch.
fn step_across(dtype: DType) -> String {
    common(dtype).finish(&format!(
        "    let pair = index * 256u + lid;
    let padded_log2 = params[{PADDED_LOG2}];
    if (pair >= params[{LINES}] << (padded_log2 - 1u)) {{ return; }}
    let step = params[{STEP}];
    let low = ((pair & ~(step - 1u)) << 1u) | (pair & (step - 1u));
    let high = low | step;
    let line = low >> padded_log2;
    let ascending = (low & ((1u << padded_log2) - 1u) & params[{STAGE_FIRST}]) == 0u;
    let p = load_order(low);
    let q = load_order(high);
    if (in_order(p, key(line, p), q, key(line, q)) != ascending) {{
        store_order(low, q);
        store_order(high, p);
    }}
"
    ))
}

#[cfg(all(test, feature = "gpu"))]
mod tests {
    use super::*;
    use crate::kernels::wgsl::harness::{gpu, sample, words, words64};

    fn run(dtype: DType, sizes: [u32; 3], descending: bool, keys: Vec<u32>) -> Option<Vec<u32>> {
        let gpu = gpu()?;
        let [before, len, after] = sizes;
        let library = Library::ArgSort { dtype, before, len, after, descending };
        let scratch = vec![7; library.scratch_words() as usize];
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
        let shapes =
            [[1, 1, 1], [1, 2, 1], [3, 5, 2], [1, 1000, 1], [2, 1025, 1], [1, 5000, 3], [300, 7, 2], [1, 20_000, 1]];
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
    fn nothing_to_sort_is_no_pass() {
        let library = Library::ArgSort { dtype: DType::F32, before: 3, len: 0, after: 1, descending: false };
        assert!(passes(&library, &[1; 3], 30).unwrap().is_empty());
    }
}

//! Stable argsort of lines that one workgroup holds, by digits of 8 bits from the lowest on.
//!
//! In: sizes. Out: a pass over `[keys, out]`, with a workgroup for each line. Workgroup memory holds the positions,
//! each with the current digit of its key. The keys are read again for every digit, and stay in the cache. Parameters
//! are those of `radix`.

use super::radix::{BEFORE, EACH, LANES, LEN, LINES, TILE, TILE_LOG2, key_function, memory, split};
use crate::error::Error;
use crate::graph::DType;
use crate::kernels::library::Pass;
use crate::kernels::scratch::sort_digits;
use crate::kernels::wgsl::pieces::{Module, grid_of, segments_key};
use crate::kernels::wgsl::types::storage;
use std::fmt::Write;

/// The pass that sorts `lines` lines of at most `TILE` elements.
///
/// # Errors
/// `ErrorKind::Unsupported` if the pass needs more workgroups than a grid holds.
pub(super) fn passes(
    dtype: DType,
    [before, len, lines]: [u32; 3],
    descending: bool,
    segments: [u8; 2],
    segment_shift: u32,
) -> Result<Vec<Pass>, Error> {
    Ok(vec![Pass {
        key: format!("argsort tile {dtype}{}", segments_key(&segments)),
        wgsl: text(dtype, segments),
        params: vec![0, segment_shift, before, len, lines, 1, descending as u32],
        operands: vec![0, 1],
        faults: false,
        grid: grid_of(lines as u64, "a sort")?,
    }])
}

fn text(dtype: DType, segments: [u8; 2]) -> String {
    let mut module = Module::new();
    module.operand("keys", storage(dtype), segments[0]);
    module.operand("result", "u32", segments[1]);
    module.add(&key_function(dtype));
    module.add(&memory());
    let mut text = format!(
        "    let line = index;
    if (line >= params[{LINES}]) {{ return; }}
    let count = params[{LEN}];
"
    );
    for k in 0..EACH {
        let at = k * LANES;
        let _ = writeln!(text, "    mem[slot({at}u + lid)] = {at}u + lid;");
    }
    let _ = writeln!(text, "    for (var shift = 0u; shift < {}u; shift = shift + 8u) {{", 8 * sort_digits(dtype));
    let mask = if dtype.is_wide() { "255lu" } else { "255u" };
    for k in 0..EACH {
        // Positions beyond the line's end get the greatest digit, so that they stay after all others.
        let _ = writeln!(
            text,
            "    let place{k} = mem[slot({}u + lid)] & {}u;
    let digit{k} = select(255u, u32((key(line, min(place{k}, count - 1u)) >> shift) & {mask}), place{k} < count);",
            k * LANES,
            TILE - 1
        );
    }
    for k in 0..EACH {
        let at = k * LANES;
        let _ = writeln!(text, "    mem[slot({at}u + lid)] = (digit{k} << {TILE_LOG2}u) | place{k};");
    }
    text.push_str("    workgroupBarrier();\n");
    split(&mut text);
    let _ = writeln!(text, "    }}\n    let before = params[{BEFORE}];");
    for k in 0..EACH {
        let at = k * LANES;
        let _ = writeln!(
            text,
            "    if ({at}u + lid < count) {{
        let place = line % before + before * ({at}u + lid + count * (line / before));
        store_result(place, mem[slot({at}u + lid)] & {}u);
    }}",
            TILE - 1
        );
    }
    module.finish(&text)
}

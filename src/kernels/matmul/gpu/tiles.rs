//! The WGSL of a product by tiles: a part of the result a workgroup, a block of it an invocation.
//!
//! In: a dtype, a [`Tiling`], and how the operands lie. Out: one module, whose parameters `gpu::PARAMS` names.
//!
//! Lines (rows of a, columns of b) are kept in workgroup memory as vectors of `lanes` lines of one term. Neighbouring
//! vectors, the slots, hold neighbouring lines, and the lanes of one are `slots` lines apart: so invocations load and
//! store neighbours in memory one by one, whatever the sizes divide by, and read 16 bytes of workgroup memory at a time.
//! While a stage of `depth` terms is multiplied, the next one is on its way from memory to registers, and then goes to
//! the other half of the workgroup memory.
//!
//! Must hold: MATMUL-1: an invocation adds `RUN` terms one after the other, then `BLOCK / RUN` such sums, then at most
//! `TERMS_MAX / BLOCK` of those. All three are in registers: sums in private memory take longer than the products. The
//! order of additions is the same for all tilings.

use super::super::split::{BLOCK, RUN, TERMS_MAX, Tiling};
use super::{PARAMS, ends};
use crate::graph::DType;
use crate::kernels::wgsl::pieces::{Module, OWN_WORDS};
use crate::kernels::wgsl::types::{storage, vector, zero};
use std::fmt::Write;

/// Tiles down that workgroups take before the next tile across.
const BAND: u32 = 8;

/// How an operand's tile is loaded.
struct Side {
    name: &'static str,
    /// The first line of the workgroup's part, and the number of lines.
    start: &'static str,
    lines: &'static str,
    /// Elements between neighbouring terms, or between neighbouring lines; the others are neighbours in memory.
    stride: &'static str,
    lines_are_neighbours: bool,
    slots: u32,
    /// Vectors between a slot's neighbouring terms in workgroup memory. Where an invocation's neighbours store
    /// neighbouring terms, it is odd if there is room, so that these lie in different banks.
    pitch: u32,
}

/// The module.
pub(super) fn text(dtype: DType, tiling: Tiling, transpose_a: bool, transpose_b: bool, segments: &[u8]) -> String {
    let ty = storage(dtype);
    let mut module = Module::new();
    for (name, segments) in ["a", "b", "result"].iter().zip(segments) {
        module.operand(name, ty, *segments);
    }
    let padding = tiling.has_padding(dtype) as u32;
    let sides = [
        Side {
            name: "a",
            start: "row0",
            lines: "m",
            stride: if transpose_a { "k" } else { "m" },
            lines_are_neighbours: !transpose_a,
            slots: tiling.slots_down(),
            pitch: tiling.slots_down() + padding * transpose_a as u32,
        },
        Side {
            name: "b",
            start: "column0",
            lines: "n",
            stride: if transpose_b { "n" } else { "k" },
            lines_are_neighbours: transpose_b,
            slots: tiling.slots_across(),
            pitch: tiling.slots_across() + padding * !transpose_b as u32,
        },
    ];
    let vec = vector(ty, tiling.lanes);
    for side in &sides {
        let vectors = 2 * tiling.depth * side.pitch;
        module.add(&format!("var<workgroup> tile_{}: array<{vec}, {vectors}>;\n", side.name));
    }
    let mut main = String::new();
    for (offset, name) in PARAMS.iter().enumerate() {
        let _ = writeln!(main, "    let {name} = params[{}];", OWN_WORDS + offset);
    }
    let (height, width, across) =
        (tiling.slots_down() * tiling.lanes, tiling.slots_across() * tiling.lanes, tiling.across);
    let _ = write!(
        main,
        "    let tiles = tiles_m * tiles_n;
    let slice = index / (tiles * batch);
    let page = index / tiles % batch;
    // Workgroups that run side by side share the rows of a band, and few columns: what they read stays in the cache.
    let band = index % tiles / ({BAND}u * tiles_n);
    let in_band = index % tiles % ({BAND}u * tiles_n);
    let band_tiles = min(tiles_m - {BAND}u * band, {BAND}u);
    let row0 = ({BAND}u * band + in_band % band_tiles) * {height}u;
    let column0 = in_band / band_tiles * {width}u;
    let pages = (slice * batch + page) * m * n;
    // Eight by four neighbours read few different vectors. Where the numbers of two differ in the second bit they read
    // the same vector of a, in the first bit of b: such reads of 16 bytes are served together.
    let x = (lid & 1u) + (lid / 2u & 6u) + 8u * (lid / 32u % {}u);
    let y = (lid / 2u & 1u) + (lid / 8u & 2u) + 4u * (lid / {}u);
{}",
        across / 8,
        4 * across,
        ends(TERMS_MAX)
    );
    for side in &sides {
        main.push_str(&places(side, tiling));
    }
    main.push_str(&variables(tiling, &vec));
    for side in &sides {
        main.push_str(&fetch(side, tiling, "first", &vec, zero(dtype)));
        main.push_str(&put(side, tiling, 0));
    }
    main.push_str(&main_loop(&sides, tiling, &vec, zero(dtype)));
    main.push_str(&results(tiling));
    module.finish_with(tiling.invocations(), &main)
}

/// Parts of a stage that an invocation loads of an operand.
fn parts(side: &Side, tiling: Tiling) -> u32 {
    (side.slots * tiling.depth).div_ceil(tiling.invocations())
}

/// The accumulators of an invocation: a vector of rows, and a column.
fn sums(tiling: Tiling) -> impl Iterator<Item = (u32, u32)> {
    (0..tiling.rows).flat_map(move |r| (0..tiling.columns * tiling.lanes).map(move |c| (r, c)))
}

/// Statements that name, for each vector that an invocation loads, its term, its slot, and the elements of its lanes.
/// Lines beyond the last are read as the last line; their results are not stored.
fn places(side: &Side, tiling: Tiling) -> String {
    let Side { name, start, lines, stride, lines_are_neighbours, slots, .. } = side;
    let mut text = String::new();
    for part in 0..parts(side, tiling) {
        let e = format!("(lid + {}u)", tiling.invocations() * part);
        let (slot, term) = if *lines_are_neighbours {
            (format!("{e} % {slots}u"), format!("{e} / {slots}u"))
        } else {
            // Neighbours load neighbouring terms, 32 bytes at least, of as many slots as a warp has left.
            let (depth, side) = (tiling.depth, (32 / tiling.depth).min(*slots));
            (format!("{e} % {side}u + {side}u * ({e} / {}u)", side * depth), format!("{e} / {side}u % {depth}u"))
        };
        let _ = writeln!(text, "    let slot_{name}{part} = {slot};\n    let term_{name}{part} = {term};");
        for lane in 0..tiling.lanes {
            let line = format!("min({start} + slot_{name}{part} + {}u, {lines} - 1u)", slots * lane);
            let line = if *lines_are_neighbours { line } else { format!("{stride} * {line}") };
            let _ = writeln!(text, "    let at_{name}{part}_{lane} = page * stride_{name} + {line};");
        }
    }
    text
}

/// Statements that declare the sums of a run (`c`), of a block (`s`), and of all blocks (`t`).
fn variables(tiling: Tiling, vec: &str) -> String {
    let mut text = String::new();
    for (r, c) in sums(tiling) {
        for sum in ["c", "s", "t"] {
            let _ = writeln!(text, "    var {sum}{r}_{c} = {vec}();");
        }
    }
    text
}

/// Loads a stage of an operand to registers. Terms beyond the last are zeros.
fn fetch(side: &Side, tiling: Tiling, base: &str, vec: &str, zero: &str) -> String {
    let Side { name, stride, lines_are_neighbours, .. } = side;
    let mut text = String::new();
    for part in 0..parts(side, tiling) {
        let place = if *lines_are_neighbours { format!("{stride} * term") } else { "term".to_string() };
        let loads: Vec<String> =
            (0..tiling.lanes).map(|lane| format!("load_{name}(at_{name}{part}_{lane} + {place})")).collect();
        let _ = write!(
            text,
            "    var next_{name}{part} = {vec}({zero});
    {{
        let term = {base} + term_{name}{part};
        if (term < last) {{ next_{name}{part} = {vec}({}); }}
    }}
",
            loads.join(", ")
        );
    }
    text
}

/// Stores a stage of an operand in a half of the workgroup memory.
fn put(side: &Side, tiling: Tiling, half: u32) -> String {
    let Side { name, slots, pitch, .. } = side;
    let mut text = String::new();
    let elements = slots * tiling.depth;
    for part in 0..parts(side, tiling) {
        let before = part * tiling.invocations();
        let whole = before + tiling.invocations() <= elements;
        let guard = if whole { String::new() } else { format!("if (lid < {}u) ", elements - before) };
        let _ = writeln!(
            text,
            "    {guard}{{ tile_{name}[{}u + term_{name}{part} * {pitch}u + slot_{name}{part}] = next_{name}{part}; }}",
            half * tiling.depth * pitch
        );
    }
    text
}

fn main_loop(sides: &[Side; 2], tiling: Tiling, vec: &str, zero: &str) -> String {
    let depth = tiling.depth;
    let step = RUN.max(2 * depth);
    let mut text = format!("    for (var base = first; base < last; base += {step}u) {{\n");
    for stage in 0..step / depth {
        text.push_str("    workgroupBarrier();\n    {\n");
        let next = format!("(base + {}u)", (stage + 1) * depth);
        for side in sides {
            text.push_str(&fetch(side, tiling, &next, vec, zero));
        }
        text.push_str(&multiply(sides, tiling, stage, vec));
        for side in sides {
            text.push_str(&put(side, tiling, (stage + 1) % 2));
        }
        text.push_str("    }\n");
    }
    text.push_str(&carry(tiling, vec, step));
    text.push_str("    }\n");
    text
}

/// Adds the products of a stage's terms to the runs. The first term of a run begins it, the last adds it to its block.
fn multiply(sides: &[Side; 2], tiling: Tiling, stage: u32, vec: &str) -> String {
    let (depth, half) = (tiling.depth, stage % 2);
    let mut text = String::new();
    for term in 0..depth {
        text.push_str("    {\n");
        for (side, count, at, apart) in
            [(&sides[0], tiling.rows, "x", tiling.across), (&sides[1], tiling.columns, "y", tiling.down)]
        {
            for block in 0..count {
                let (name, place) = (side.name, (half * depth + term) * side.pitch + block * apart);
                let _ = writeln!(text, "    let {name}{block} = tile_{name}[{at} + {place}u];");
            }
        }
        for (r, c) in sums(tiling) {
            let block = c / tiling.lanes;
            let factor = match tiling.lanes {
                1 => format!("b{block}"),
                lanes => format!("{vec}(b{block}.{})", component(c % lanes)),
            };
            let begins = (stage * depth + term).is_multiple_of(RUN);
            let sum = if begins { format!("a{r} * {factor}") } else { format!("fma(a{r}, {factor}, c{r}_{c})") };
            let _ = writeln!(text, "    c{r}_{c} = {sum};");
            if (stage * depth + term + 1).is_multiple_of(RUN) {
                let _ = writeln!(text, "    s{r}_{c} = s{r}_{c} + c{r}_{c};");
            }
        }
        text.push_str("    }\n");
    }
    text
}

/// The name of a component of a vector.
fn component(lane: u32) -> &'static str {
    ["x", "y", "z", "w"][lane as usize]
}

/// Adds the sums of a block that is complete to those of all blocks.
fn carry(tiling: Tiling, vec: &str, step: u32) -> String {
    let mut text = format!("    if ((base - first + {step}u) % {BLOCK}u == 0u) {{\n");
    for (r, c) in sums(tiling) {
        let _ = writeln!(text, "        t{r}_{c} = t{r}_{c} + s{r}_{c};\n        s{r}_{c} = {vec}();");
    }
    text.push_str("    }\n");
    text
}

/// Adds the sums of the last block, adds the result of the pass before, and stores it.
fn results(tiling: Tiling) -> String {
    let mut text = String::new();
    for (r, c) in sums(tiling) {
        let _ = writeln!(text, "    s{r}_{c} = t{r}_{c} + s{r}_{c};");
    }
    text.push_str("    let row = row0 + x;\n    let column = column0 + y;\n");
    text.push_str(&before(tiling));
    for (r, c) in sums(tiling) {
        let column = column_of(c, tiling);
        for lane in 0..tiling.lanes {
            let row = row_of(r, lane, tiling);
            let sum = if tiling.lanes == 1 { format!("s{r}_{c}") } else { format!("s{r}_{c}.{}", component(lane)) };
            let _ = write!(
                text,
                "    if (row + {row}u < rows && column + {column}u < columns) {{
        store_result(pages + row + {row}u + m * (column + {column}u), {sum});
    }}
"
            );
        }
    }
    text
}

/// Adds the results of the pass before. They are loaded together, and what lies beyond the last row or column is loaded
/// as that one: loads that each wait for a condition wait for one another, too.
fn before(tiling: Tiling) -> String {
    let vec_of = |loads: Vec<String>| match tiling.lanes {
        1 => loads[0].clone(),
        lanes => format!("vec{lanes}({})", loads.join(", ")),
    };
    let mut text = "    if (start > 0u && live) {\n".to_string();
    for (r, lane) in (0..tiling.rows).flat_map(|r| (0..tiling.lanes).map(move |lane| (r, lane))) {
        let row = row_of(r, lane, tiling);
        let _ = writeln!(text, "        let row{r}_{lane} = pages + min(row + {row}u, m - 1u);");
    }
    for c in 0..tiling.columns * tiling.lanes {
        let column = column_of(c, tiling);
        let _ = writeln!(text, "        let column{c} = m * min(column + {column}u, n - 1u);");
    }
    for (r, c) in sums(tiling) {
        let loads = (0..tiling.lanes).map(|lane| format!("load_result(row{r}_{lane} + column{c})")).collect();
        let _ = writeln!(text, "        s{r}_{c} = {} + s{r}_{c};", vec_of(loads));
    }
    text.push_str("    }\n");
    text
}

/// The row of a lane of a block, from the invocation's first one.
fn row_of(block: u32, lane: u32, tiling: Tiling) -> u32 {
    block * tiling.across + lane * tiling.slots_down()
}

/// The column of an accumulator, from the invocation's first one.
fn column_of(c: u32, tiling: Tiling) -> u32 {
    c / tiling.lanes * tiling.down + c % tiling.lanes * tiling.slots_across()
}

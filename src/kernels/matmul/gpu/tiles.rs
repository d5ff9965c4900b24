//! Writes the WGSL of a product by tiles: a workgroup computes a part of the result, and an invocation a block of that.
//!
//! In: a dtype, a [`Tiling`], and how the operands lie. Out: one module, whose parameters `gpu::PARAMS` names.
//!
//! Lines (rows of a, columns of b) are kept in workgroup memory as slots: vectors of `lanes` lines of one term. If
//! lines lie side by side and the sizes allow it ([`Vectors`]), invocations load and store 16 bytes at a time, and the
//! lanes of a slot are neighbouring lines. Otherwise neighbouring slots hold neighbouring lines, the lanes of a slot
//! are `slots` lines apart, and invocations load and store neighbours in memory one by one. While a stage of `depth`
//! terms is multiplied, the next stage is loaded from memory to registers, from which it then goes to the other half of
//! the workgroup memory.
//!
//! Must hold: MATMUL-1: an invocation adds `RUN` terms one after the other, then `BLOCK / RUN` such sums, then at most
//! `TERMS_MAX / BLOCK` of those. All three are in registers, because with sums in private memory the additions take
//! longer than the products. The sums of `TERMS_MAX` terms are added in the result's memory. The order of additions is
//! the same for all tilings.

mod results;
mod side;

pub(super) use side::Vectors;

use super::super::split::{BLOCK, RUN, TERMS_MAX, Tiling};
use super::{PARAMS, SLICE};
use crate::graph::DType;
use crate::kernels::wgsl::pieces::{Module, OWN_WORDS};
use crate::kernels::wgsl::types::{component, storage, vector, zero};
use results::Places;
use side::{Side, fetch, places, put};
use std::fmt::Write;

/// The height of a band, in tiles: workgroups take these tiles, which lie below each other, before the next tile
/// across.
const BAND: u32 = 8;

/// Writes the module.
pub(super) fn text(
    dtype: DType,
    tiling: Tiling,
    transpose_a: bool,
    transpose_b: bool,
    vectors: Vectors,
    segments: &[u8],
) -> String {
    let ty = storage(dtype);
    let mut module = Module::new();
    let operands = [("a", vectors.a), ("b", vectors.b), ("result", vectors.result)];
    for ((name, vectors), segments) in operands.into_iter().zip(segments) {
        module.vector_operand(name, ty, if vectors { tiling.lanes } else { 1 }, *segments);
    }
    let padding = tiling.has_padding(dtype) as u32;
    let sides = [
        Side {
            name: "a",
            start: "row0",
            lines: "m",
            stride: if transpose_a { "k" } else { "m" },
            lines_are_neighbours: !transpose_a,
            vectors: vectors.a,
            lanes_are_neighbours: vectors.result,
            slots: tiling.slots_down(),
            pitch: tiling.slots_down() + padding * transpose_a as u32,
        },
        Side {
            name: "b",
            start: "column0",
            lines: "n",
            stride: if transpose_b { "n" } else { "k" },
            lines_are_neighbours: transpose_b,
            vectors: vectors.b,
            lanes_are_neighbours: vectors.b,
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
{SLICE}",
        across / 8,
        4 * across
    );
    for side in &sides {
        main.push_str(&places(side, tiling));
    }
    main.push_str(&variables(tiling, &vec));
    for side in &sides {
        main.push_str(&fetch(side, tiling, "first", &vec, zero(dtype)));
        main.push_str(&put(side, tiling, 0));
    }
    main.push_str(&results_loop(&sides, tiling, vectors, &vec, zero(dtype)));
    module.finish_with(tiling.invocations(), &main)
}

/// The accumulators of an invocation, each by the number of its vector of rows and by its column.
fn sums(tiling: Tiling) -> impl Iterator<Item = (u32, u32)> {
    (0..tiling.rows).flat_map(move |r| (0..tiling.columns * tiling.lanes).map(move |c| (r, c)))
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

/// Writes the loop that adds the terms of a slice, `TERMS_MAX` at a time: those from `begin` to `end`.
fn results_loop(sides: &[Side; 2], tiling: Tiling, vectors: Vectors, vec: &str, zero: &str) -> String {
    let places = Places::of(sides, tiling, vectors);
    let mut text = places.declare();
    let _ = write!(
        text,
        "    var begin = first;
    loop {{
    let end = begin + min({TERMS_MAX}u, last - begin);
"
    );
    let early = tiling.is_large() && vectors.a && !vectors.b;
    text.push_str(&main_loop(sides, tiling, early, vec, zero));
    for (r, c) in sums(tiling) {
        let _ = writeln!(text, "    s{r}_{c} = t{r}_{c} + s{r}_{c};");
    }
    text.push_str(&places.add_before());
    text.push_str(&places.store());
    text.push_str("    begin = end;\n    if (begin >= last) { break; }\n");
    for (r, c) in sums(tiling) {
        let _ = writeln!(text, "    s{r}_{c} = {vec}();\n    t{r}_{c} = {vec}();");
    }
    text.push_str("    }\n");
    text
}

/// The loop over stages. With `early`, the next stage is loaded before the barrier at which this one begins. Behind
/// it, a driver's compiler may move loads to where they are used, and then nothing is multiplied while they are on
/// their way: on an H100, products of 4096 x 4096 singles take 3.8 ms instead of 4.3 so, of doubles by pairs 8.1
/// instead of 10.2. In other layouts, where more loads are single ones, large tiles take 4 to 19 % longer with it,
/// and small ones 1 or 2.
fn main_loop(sides: &[Side; 2], tiling: Tiling, early: bool, vec: &str, zero: &str) -> String {
    let depth = tiling.depth;
    let step = RUN.max(2 * depth);
    let mut text = format!("    for (var base = begin; base < end; base += {step}u) {{\n");
    for stage in 0..step / depth {
        let next = format!("(base + {}u)", (stage + 1) * depth);
        let loads: String = sides.iter().map(|side| fetch(side, tiling, &next, vec, zero)).collect();
        let barrier = "    workgroupBarrier();\n";
        let [first, second] = if early { [&*loads, barrier] } else { [barrier, &*loads] };
        let _ = write!(text, "    {{\n{first}{second}");
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

/// Adds the sums of a block that is complete to those of all blocks.
fn carry(tiling: Tiling, vec: &str, step: u32) -> String {
    let mut text = format!("    if ((base - begin + {step}u) % {BLOCK}u == 0u) {{\n");
    for (r, c) in sums(tiling) {
        let _ = writeln!(text, "        t{r}_{c} = t{r}_{c} + s{r}_{c};\n        s{r}_{c} = {vec}();");
    }
    text.push_str("    }\n");
    text
}

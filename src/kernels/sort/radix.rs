//! Stable argsort of lines that are longer than a tile on a GPU, by digits of 8 bits from the lowest on.
//!
//! In: sizes. Out: passes over `[keys, out, scratch]`. A line is cut into tiles of [`TILE`] elements. A workgroup takes
//! one tile.
//! For each digit: `count` counts the digits of each tile, `rank` sums these counts along each line's tiles, and `move`
//! sorts a tile by the digit in workgroup memory and writes its keys and positions where they belong.
//! Scratch holds, in this order: keys (low words, then high words), positions, a second copy of the keys, the counts
//! `[line][digit][tile]`, and their sums `[line][digit]`. Each digit moves the keys from one copy to the other, and the
//! positions from scratch to `out` or back.
//!
//! Must hold: a tile keeps the order of equal digits; places follow from integer sums alone, so that the permutation
//! does not depend on the order of invocations.

use super::gpu::{key_type, ordered};
use crate::error::Error;
use crate::graph::DType;
use crate::kernels::library::Pass;
use crate::kernels::scratch::{SORT_DIGITS, SORT_TILE, sort_digits};
use crate::kernels::wgsl::pieces::{Module, OWN_WORDS, grid_of, segments_key};
use crate::kernels::wgsl::types::storage;
use std::fmt::Write;

/// Elements that a workgroup counts and moves.
pub(super) const TILE: u32 = SORT_TILE as u32;
/// Invocations of a workgroup.
pub(super) const LANES: u32 = 256;
/// Elements of an invocation.
pub(super) const EACH: u32 = TILE / LANES;
/// log2 of `TILE`.
pub(super) const TILE_LOG2: u32 = TILE.ilog2();
/// Words with an invocation's counts while a tile is sorted by four bits of a digit.
const COUNTERS: u32 = 8;
/// The most tiles of a line whose counts one invocation sums for each digit. Longer lines take a workgroup for each
/// digit.
const FEW_TILES: u32 = 32;

pub(super) const BEFORE: usize = OWN_WORDS;
pub(super) const LEN: usize = OWN_WORDS + 1;
pub(super) const LINES: usize = OWN_WORDS + 2;
const TILES: usize = OWN_WORDS + 3;
const DESCENDING: usize = OWN_WORDS + 4;
/// Bits below the digit, in its word.
const SHIFT: usize = OWN_WORDS + 5;
/// The first word of scratch with the keys' words that hold the digit.
const DIGITS: usize = OWN_WORDS + 6;
/// The first word of scratch from which the digit reads the keys.
const KEYS: usize = OWN_WORDS + 7;
/// The first word of scratch to which it moves them.
const KEYS_TO: usize = OWN_WORDS + 8;
/// The first word of scratch with the positions. Odd digits read them there, even digits write them there.
const PLACES: usize = OWN_WORDS + 9;
/// The first word of scratch with the counts.
const COUNTS: usize = OWN_WORDS + 10;
/// The first word of scratch with the sums of the counts.
const SUMS: usize = OWN_WORDS + 11;

/// One digit of the sort, and the places of its keys and positions.
#[derive(Clone, Copy)]
struct Digit {
    dtype: DType,
    number: u32,
    digits: u32,
    /// The number of segments of the keys, of the result and of scratch.
    segments: [u8; 3],
}

impl Digit {
    fn is_first(self) -> bool {
        self.number == 0
    }

    fn is_last(self) -> bool {
        self.number + 1 == self.digits
    }

    /// 32-bit words of a key.
    fn words(self) -> u32 {
        if self.dtype.is_wide() { 2 } else { 1 }
    }

    /// Whether the digit lies in the high word.
    fn is_high(self) -> bool {
        self.number >= 4
    }

    /// Whether the digit lies in this word of the keys.
    fn lies_in(self, word: u32) -> bool {
        word == u32::from(self.is_high())
    }

    /// The part of the key of `count`'s text that names what the text depends on, except for the segments.
    fn count_key(self) -> String {
        if self.is_first() { self.dtype.to_string() } else { "words".to_string() }
    }

    /// The same part of the key of `move`'s text.
    fn move_key(self) -> String {
        let part = match (self.is_first(), self.is_last(), self.number % 2) {
            (true, true, _) => "only",
            (true, false, _) => "first",
            (false, true, _) => "last",
            (false, false, 0) => "even",
            (false, false, _) => "odd",
        };
        let from = if self.is_first() { self.dtype.to_string() } else { format!("{} words", self.words()) };
        format!("{part} {from}{}", if self.is_high() { " high" } else { "" })
    }

    /// The operands that `count` binds, and the operands that `move` binds.
    fn operands(self) -> [Vec<u16>; 2] {
        match (self.is_first(), self.is_last()) {
            (true, true) => [vec![0, 2], vec![0, 1, 2]],
            (true, false) => [vec![0, 2], vec![0, 2]],
            (false, _) => [vec![2], vec![1, 2]],
        }
    }

    /// A module that binds these operands. With the keys among them, it also has the function `key(line, i)`.
    fn module(self, operands: &[u16]) -> Module {
        let mut module = Module::new();
        for &operand in operands {
            let (name, ty) = [("keys", storage(self.dtype)), ("result", "u32"), ("scratch", "u32")][operand as usize];
            module.operand(name, ty, self.segments[operand as usize]);
        }
        if operands.contains(&0) {
            module.add(&key_function(self.dtype));
        }
        module
    }
}

/// The function `key(line, i)`, the key of an element as an unsigned integer that is sorted in ascending order.
pub(super) fn key_function(dtype: DType) -> String {
    format!(
        "fn key(line: u32, i: u32) -> {} {{
    let before = params[{BEFORE}];
    let x = load_keys(line % before + before * (i + params[{LEN}] * (line / before)));
{}    return select(k, ~k, params[{DESCENDING}] == 1u);
}}
",
        key_type(dtype),
        ordered(dtype)
    )
}

/// The workgroup memory of a tile. An invocation of `split` reads 16 neighbouring elements. `slot` puts the elements
/// that neighbouring invocations read at the same time into different banks.
pub(super) fn memory() -> String {
    format!(
        "var<workgroup> mem: array<u32, {TILE}>;
fn slot(i: u32) -> u32 {{ return i ^ ((i >> 5u) & 15u); }}
"
    )
}

/// The passes that sort `lines` lines.
///
/// # Errors
/// `ErrorKind::Unsupported` if a pass needs more workgroups than a grid holds.
pub(super) fn passes(
    dtype: DType,
    [before, len, lines]: [u32; 3],
    descending: bool,
    segments: [u8; 3],
    segment_shift: u32,
) -> Result<Vec<Pass>, Error> {
    let tiles = len.div_ceil(TILE);
    let digits = sort_digits(dtype);
    let total = len * lines;
    let words = if dtype.is_wide() { 2 } else { 1 };
    // Keys of one digit are sorted by a single move, which needs no copy of them.
    let copies = if digits > 1 { total * (2 * words + 1) } else { 0 };
    let sums = copies + lines * SORT_DIGITS as u32 * tiles;
    let mut passes = Vec::new();
    for number in 0..digits {
        let digit = Digit { dtype, number, digits, segments };
        let [here, there] = [0, total * (words + 1)];
        let (keys, keys_to) = if number % 2 == 1 { (here, there) } else { (there, here) };
        let high = if digit.is_high() { total } else { 0 };
        let mut params = vec![0, segment_shift, before, len, lines, tiles, descending as u32, number % 4 * 8];
        params.extend([keys + high, keys, keys_to, total * words, copies, sums]);
        let mut pass = |name: &str, wgsl: String, operands: &[u16], groups: u64| -> Result<(), Error> {
            let grid = grid_of(groups, "a sort")?;
            let (key, params) = (format!("radix {name}{}", segments_key(&segments)), params.clone());
            passes.push(Pass { key, wgsl, params, operands: operands.to_vec(), faults: false, grid });
            Ok(())
        };
        let groups = lines as u64 * tiles as u64;
        let [counts, moves] = digit.operands();
        pass(&format!("count {}", digit.count_key()), count(digit, &counts), &counts, groups)?;
        if tiles <= FEW_TILES {
            pass("rank few", rank_few(digit), &[2], lines as u64)?;
        } else {
            pass("rank", rank(digit), &[2], lines as u64 * SORT_DIGITS)?;
        }
        pass(&format!("move {}", digit.move_key()), move_tile(digit, &moves), &moves, groups)?;
    }
    Ok(passes)
}

/// Statements that name the line and the tile of a workgroup.
fn place() -> String {
    format!(
        "    let tiles = params[{TILES}];
    let line = index / tiles;
    let tile = index % tiles;
    if (line >= params[{LINES}]) {{ return; }}
    let start = tile * {TILE}u;
    let count = min({TILE}u, params[{LEN}] - start);
    let origin = line * params[{LEN}] + start;
"
    )
}

/// Statements that declare `word{k}`, the word with the digit of element `k * 256 + lid` of the tile. For the first
/// digit they also declare `key{k}`, the whole key.
fn load_words(digit: Digit) -> String {
    let mut text = String::new();
    for k in 0..EACH {
        let at = k * LANES;
        let _ = if digit.is_first() {
            let word = if digit.dtype.is_wide() { format!("u32(key{k} & 0xfffffffflu)") } else { format!("key{k}") };
            writeln!(
                text,
                "    let key{k} = key(line, start + min({at}u + lid, count - 1u));\n    let word{k} = {word};"
            )
        } else {
            writeln!(text, "    let word{k} = load_scratch(params[{DIGITS}] + origin + min({at}u + lid, count - 1u));")
        };
    }
    text
}

/// Statements that declare `position{k}` of the elements of `load_words`. For the first digit, positions are not stored.
fn load_positions(digit: Digit) -> String {
    let mut text = String::new();
    for at in (0..EACH).map(|k| k * LANES).filter(|_| !digit.is_first()) {
        let k = at / LANES;
        let from = format!("origin + min({at}u + lid, count - 1u)");
        let _ = if digit.number % 2 == 1 {
            writeln!(text, "    let position{k} = load_scratch(params[{PLACES}] + {from});")
        } else {
            writeln!(text, "    let position{k} = load_result({from});")
        };
    }
    text
}

/// The module that counts the digits of each tile.
fn count(digit: Digit, operands: &[u16]) -> String {
    let mut module = digit.module(operands);
    module.add(&format!("var<workgroup> counts: array<atomic<u32>, {SORT_DIGITS}>;\n"));
    let mut text = place();
    text.push_str("    atomicStore(&counts[lid], 0u);\n    workgroupBarrier();\n");
    text.push_str(&load_words(digit));
    for k in 0..EACH {
        let at = k * LANES;
        let _ = writeln!(
            text,
            "    if ({at}u + lid < count) {{ atomicAdd(&counts[(word{k} >> params[{SHIFT}]) & 255u], 1u); }}"
        );
    }
    let _ = writeln!(
        text,
        "    workgroupBarrier();
    store_scratch(params[{COUNTS}] + (line * 256u + lid) * tiles + tile, atomicLoad(&counts[lid]));"
    );
    module.finish(&text)
}

/// The module that sums the counts of each digit along lines of few tiles.
fn rank_few(digit: Digit) -> String {
    digit.module(&[2]).finish(&format!(
        "    if (index >= params[{LINES}]) {{ return; }}
    let row = index * 256u + lid;
    let tiles = params[{TILES}];
    var sum = 0u;
    for (var tile = 0u; tile < tiles; tile++) {{
        let at = params[{COUNTS}] + row * tiles + tile;
        let counted = load_scratch(at);
        store_scratch(at, sum);
        sum = sum + counted;
    }}
    store_scratch(params[{SUMS}] + row, sum);
"
    ))
}

/// Statements that add to `name` of each invocation the values of all invocations before it. They exchange values in
/// `mem` from `at` on. The caller has to place a barrier before them if `mem` is in use.
fn running_sum(name: &str, at: u32) -> String {
    let mut text = String::new();
    for step in 0..LANES.ilog2() {
        let (distance, at) = (1 << step, at + step % 2 * LANES);
        let _ = writeln!(
            text,
            "    mem[{at}u + lid] = {name};
    workgroupBarrier();
    if (lid >= {distance}u) {{ {name} = {name} + mem[{at}u + lid - {distance}u]; }}"
        );
    }
    text
}

/// The module that sums the counts of a digit along a line. An invocation takes four tiles at a time.
fn rank(digit: Digit) -> String {
    let mut module = digit.module(&[2]);
    module.add(&format!("var<workgroup> mem: array<u32, {}>;\n", 2 * LANES));
    let each = |line: &dyn Fn(u32) -> String| (0..4).map(line).collect::<String>();
    let load = each(&|k| {
        format!(
            "        var counted{k} = 0u;
        if (tile + {k}u < tiles) {{ counted{k} = load_scratch(first + tile + {k}u); }}\n"
        )
    });
    let store = each(&|k| {
        format!(
            "        if (tile + {k}u < tiles) {{ store_scratch(first + tile + {k}u, place); }}
        place = place + counted{k};\n"
        )
    });
    module.finish(&format!(
        "    if (index >= params[{LINES}] * 256u) {{ return; }}
    let tiles = params[{TILES}];
    let first = params[{COUNTS}] + index * tiles;
    let turns = (tiles + 1023u) / 1024u;
    var before = 0u;
    for (var turn = 0u; turn < turns; turn++) {{
        let tile = turn * 1024u + lid * 4u;
{load}        let own = counted0 + counted1 + counted2 + counted3;
        var sum = own;
{}        workgroupBarrier();
        mem[lid] = sum;
        workgroupBarrier();
        var place = before + sum - own;
{store}        before = before + mem[255];
        workgroupBarrier();
    }}
    if (lid == 0u) {{ store_scratch(params[{SUMS}] + index, before); }}
",
        running_sum("sum", 0)
    ))
}

/// The module that sorts a tile by the digit and moves it to its places.
fn move_tile(digit: Digit, operands: &[u16]) -> String {
    let mut module = digit.module(operands);
    module.add(&memory());
    let mut text = place();
    // All that the tile needs of memory is loaded before the first barrier: what is loaded behind it is waited for.
    text.push_str(&load_words(digit));
    text.push_str(&load_positions(digit));
    let _ = write!(
        text,
        "    let counted_before = load_scratch(params[{COUNTS}] + (line * 256u + lid) * tiles + tile);
    let own = load_scratch(params[{SUMS}] + line * 256u + lid);
    var sum = own;
{}    let base = line * params[{LEN}] + sum - own + counted_before;
    workgroupBarrier();
",
        running_sum("sum", 0)
    );
    for k in 0..EACH {
        let at = k * LANES;
        // Lanes beyond the line's end get the greatest digit and the greatest positions, so that they are sorted last.
        let _ = writeln!(
            text,
            "    mem[slot({at}u + lid)] = (select(255u, (word{k} >> params[{SHIFT}]) & 255u, {at}u + lid < count) << {TILE_LOG2}u) | ({at}u + lid);"
        );
    }
    text.push_str("    workgroupBarrier();\n");
    split(&mut text);
    for k in 0..EACH {
        let _ = writeln!(text, "    let v{k} = mem[slot({}u + lid)];", k * LANES);
    }
    places(&mut text);
    write_moved(digit, &mut text);
    module.finish(&text)
}

/// Sorts the tile in `mem` by its digits, four bits at a time. While the elements are in registers, `mem` holds the
/// counts: for each invocation a column of eight words, word `v` with the count of the value `v` in its low half and of
/// `v + 8` in its high half. Their running sums, by values and then by invocations, are the elements' places. On an H100
/// a sort of 1e7 singles takes 0.75 ms this way, and 0.83 ms two bits at a time, with 48 barriers instead of 28.
pub(super) fn split(text: &mut String) {
    let _ = writeln!(
        text,
        "    for (var bit = {TILE_LOG2}u; bit < {}u; bit = bit + 4u) {{",
        TILE_LOG2 + SORT_DIGITS.ilog2()
    );
    for j in 0..EACH {
        let _ = writeln!(text, "    let e{j} = mem[slot(lid * {EACH}u + {j}u)];");
    }
    // Eight neighbouring words, which an invocation sums, lie in different banks for neighbouring invocations.
    text.push_str("    let column = lid ^ ((lid >> 5u) & 7u);\n    workgroupBarrier();\n");
    for value in 0..COUNTERS {
        let _ = writeln!(text, "    mem[{}u + column] = 0u;", value * LANES);
    }
    for j in 0..EACH {
        let _ = writeln!(
            text,
            "    let value{j} = (e{j} >> bit) & 15u;
    let at{j} = (value{j} & 7u) * {LANES}u + column;
    let by{j} = (value{j} & 8u) << 1u;
    let count{j} = mem[at{j}];
    mem[at{j}] = count{j} + (1u << by{j});
    let rank{j} = (count{j} >> by{j}) & 65535u;"
        );
    }
    text.push_str("    let turn = (lid >> 2u) & 7u;\n    var counted = 0u;\n    workgroupBarrier();\n");
    for word in 0..COUNTERS {
        let _ = writeln!(
            text,
            "    let word{word} = mem[lid * {COUNTERS}u + ({word}u ^ turn)];\n    counted = counted + word{word};"
        );
    }
    let free = COUNTERS * LANES;
    let _ = write!(
        text,
        "    var before = counted;
{}    if (lid == {}u) {{ mem[{}] = before << 16u; }}
    workgroupBarrier();
    // Every value of a high half comes after all of the low halves.
    before = before - counted + mem[{}];
",
        running_sum("before", free),
        LANES - 1,
        free + 2 * LANES,
        free + 2 * LANES
    );
    for word in 0..COUNTERS {
        let _ = writeln!(
            text,
            "    mem[lid * {COUNTERS}u + ({word}u ^ turn)] = before;\n    before = before + word{word};"
        );
    }
    text.push_str("    workgroupBarrier();\n");
    for j in 0..EACH {
        let _ = writeln!(text, "    let moved{j} = ((mem[at{j}] >> by{j}) & 65535u) + rank{j};");
    }
    text.push_str("    workgroupBarrier();\n");
    for j in 0..EACH {
        let _ = writeln!(text, "    mem[slot(moved{j})] = e{j};");
    }
    text.push_str("    workgroupBarrier();\n    }\n");
}

/// Statements that declare `to{k}`: the place, counted over all lines, of the element that stands at `k * 256 + lid` of
/// the sorted tile.
fn places(text: &mut String) {
    for k in 0..EACH {
        let at = k * LANES;
        let _ = writeln!(
            text,
            "    let begins{k} = {at}u + lid == 0u || (mem[slot(max({at}u + lid, 1u) - 1u)] >> {TILE_LOG2}u) != (v{k} >> {TILE_LOG2}u);"
        );
    }
    text.push_str("    workgroupBarrier();\n");
    for k in 0..EACH {
        let _ = writeln!(text, "    if (begins{k}) {{ mem[v{k} >> {TILE_LOG2}u] = {}u + lid; }}", k * LANES);
    }
    let _ = writeln!(text, "    mem[{LANES}u + lid] = base;\n    workgroupBarrier();");
    for k in 0..EACH {
        let _ = writeln!(
            text,
            "    let to{k} = mem[{LANES}u + (v{k} >> {TILE_LOG2}u)] + {}u + lid - mem[v{k} >> {TILE_LOG2}u];",
            k * LANES
        );
    }
}

/// Statements that move the positions and, unless the digit is the last one, the keys.
fn write_moved(digit: Digit, text: &mut String) {
    let mask = TILE - 1;
    let exchange = |text: &mut String, name: &str, of: &dyn Fn(u32) -> String, store: &dyn Fn(u32) -> String| {
        text.push_str("    workgroupBarrier();\n");
        for k in 0..EACH {
            let _ = writeln!(text, "    mem[{}u + lid] = {};", k * LANES, of(k));
        }
        text.push_str("    workgroupBarrier();\n");
        for k in 0..EACH {
            let _ = writeln!(
                text,
                "    let {name}{k} = mem[v{k} & {mask}u];\n    if ({}u + lid < count) {{ {} }}",
                k * LANES,
                store(k)
            );
        }
    };
    if !digit.is_last() {
        for word in 0..digit.words() {
            let plane = |base: usize| {
                if word == 0 {
                    format!("params[{base}]")
                } else {
                    format!("params[{base}] + params[{LEN}] * params[{LINES}]")
                }
            };
            let of = |k: u32| match (digit.is_first(), digit.lies_in(word)) {
                (_, true) => format!("word{k}"),
                (true, false) => format!("u32(key{k} >> 32u)"),
                (false, false) => {
                    format!("load_scratch({} + origin + min({}u + lid, count - 1u))", plane(KEYS), k * LANES)
                }
            };
            let name = format!("moved{word}_");
            exchange(text, &name, &of, &|k| format!("store_scratch({} + to{k}, {name}{k});", plane(KEYS_TO)));
        }
    }
    let store = |k: u32, value: String| {
        if digit.is_last() {
            return format!(
                "let i{k} = to{k} - line * params[{LEN}]; store_result(line % params[{BEFORE}] + params[{BEFORE}] * (i{k} + params[{LEN}] * (line / params[{BEFORE}])), {value});"
            );
        }
        if digit.number % 2 == 1 {
            format!("store_result(to{k}, {value});")
        } else {
            format!("store_scratch(params[{PLACES}] + to{k}, {value});")
        }
    };
    if digit.is_first() {
        for k in 0..EACH {
            let stored = store(k, format!("start + (v{k} & {mask}u)"));
            let _ = writeln!(text, "    if ({}u + lid < count) {{ {stored} }}", k * LANES);
        }
        return;
    }
    exchange(text, "at", &|k| format!("position{k}"), &|k| store(k, format!("at{k}")));
}

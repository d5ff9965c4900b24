//! The tiles of an operand: how a workgroup loads them from memory and keeps them.

use super::component;
use crate::graph::DType;
use crate::kernels::library::Library;
use crate::kernels::matmul::split::Tiling;
use std::fmt::Write;

/// Which operands are arrays of vectors of `lanes` elements, 16 bytes. A vector never spans two lines, or the end of a
/// line, of an operand: the number of elements that are neighbours there is a multiple of `lanes`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Vectors {
    pub a: bool,
    pub b: bool,
    /// The result's rows, and so the rows of a slot.
    pub result: bool,
}

impl Vectors {
    /// The vectors of a product with these sizes.
    pub fn of(dtype: DType, tiling: Tiling, library: &Library) -> Vectors {
        let Library::MatMul { m, n, k, transpose_a, transpose_b, .. } = *library else {
            panic!("LIB-1: {} is no matrix product", library.name());
        };
        let are_wide = tiling.lanes * if dtype.is_wide() { 8 } else { 4 } == 16;
        // Operands without terms are empty, and no array of vectors.
        let fit = |neighbours: u32| are_wide && k > 0 && neighbours.is_multiple_of(tiling.lanes);
        Vectors { a: fit(if transpose_a { k } else { m }), b: fit(if transpose_b { n } else { k }), result: fit(m) }
    }
}

/// How an operand's tile is loaded.
pub(super) struct Side {
    pub name: &'static str,
    /// The first line of the workgroup's part, and the number of lines.
    pub start: &'static str,
    pub lines: &'static str,
    /// Elements between neighbouring terms, or between neighbouring lines; the others are neighbours in memory.
    pub stride: &'static str,
    pub lines_are_neighbours: bool,
    /// The operand is an array of vectors.
    pub vectors: bool,
    /// The lanes of a slot are neighbouring lines.
    pub lanes_are_neighbours: bool,
    pub slots: u32,
    /// Vectors between a slot's neighbouring terms in workgroup memory. Where an invocation's neighbours store
    /// neighbouring terms, it is odd if there is room, so that these lie in different banks.
    pub pitch: u32,
}

impl Side {
    /// Whether a part of the tile is a block of `lanes` lines by `lanes` terms, which is loaded along the terms and
    /// stored along the lines. Otherwise a part is a vector of lines of one term.
    fn takes_blocks(&self) -> bool {
        self.vectors && !self.lines_are_neighbours
    }

    /// Vectors of a part.
    fn vectors_a_part(&self, tiling: Tiling) -> u32 {
        if self.takes_blocks() { tiling.lanes } else { 1 }
    }

    /// Parts of a stage, and how many an invocation loads.
    fn parts(&self, tiling: Tiling) -> (u32, u32) {
        let all = self.slots * tiling.depth / self.vectors_a_part(tiling);
        (all, all.div_ceil(tiling.invocations()))
    }

    /// The condition under which an invocation has this part, if there is one.
    fn guard(&self, part: u32, tiling: Tiling) -> Option<String> {
        let (all, before) = (self.parts(tiling).0, part * tiling.invocations());
        (all < before + tiling.invocations()).then(|| format!("lid < {}u", all - before))
    }

    /// The line of a lane of a slot, from the slot's first one.
    pub fn line_of(&self, lane: u32) -> u32 {
        if self.lanes_are_neighbours { lane } else { lane * self.slots }
    }
}

/// Statements that name, for each part that an invocation loads, its first term, its slot, and the elements of its lanes.
/// Lines beyond the last are read as the last line, or the last lines; their results are not stored.
pub(super) fn places(side: &Side, tiling: Tiling) -> String {
    let Side { name, start, lines, stride, lines_are_neighbours, slots, .. } = side;
    let (depth, lanes) = (tiling.depth, tiling.lanes);
    let mut text = String::new();
    for part in 0..side.parts(tiling).1 {
        let e = format!("(lid + {}u)", tiling.invocations() * part);
        let (slot, term) = if side.takes_blocks() {
            (format!("{e} / {}u", depth / lanes), format!("{e} % {}u * {lanes}u", depth / lanes))
        } else if *lines_are_neighbours {
            (format!("{e} % {slots}u"), format!("{e} / {slots}u"))
        } else {
            // Neighbours load neighbouring terms, 32 bytes at least, of as many slots as a warp has left.
            let across = (32 / depth).min(*slots);
            (
                format!("{e} % {across}u + {across}u * ({e} / {}u)", across * depth),
                format!("{e} / {across}u % {depth}u"),
            )
        };
        let _ = writeln!(text, "    let slot_{name}{part} = {slot};\n    let term_{name}{part} = {term};");
        let at_slot = format!("{start} + slot_{name}{part} * {}u", if side.lanes_are_neighbours { lanes } else { 1 });
        if side.vectors && *lines_are_neighbours {
            let line = format!("min({at_slot}, {lines} - {lanes}u)");
            let _ = writeln!(text, "    let at_{name}{part} = page * stride_{name} + {line};");
            continue;
        }
        for lane in 0..lanes {
            let line = format!("min({at_slot} + {}u, {lines} - 1u)", side.line_of(lane));
            let line = if *lines_are_neighbours { line } else { format!("{stride} * {line}") };
            let _ = writeln!(text, "    let at_{name}{part}_{lane} = page * stride_{name} + {line};");
        }
    }
    text
}

/// Loads a stage of an operand to registers. Terms beyond the last are zeros.
pub(super) fn fetch(side: &Side, tiling: Tiling, base: &str, vec: &str, zero: &str) -> String {
    let Side { name, stride, lines_are_neighbours, .. } = side;
    let mut text = String::new();
    for part in 0..side.parts(tiling).1 {
        let vectors = side.vectors_a_part(tiling);
        let next = |number: u32| format!("next_{name}{part}_{number}");
        for number in 0..vectors {
            let _ = writeln!(text, "    var {} = {vec}({zero});", next(number));
        }
        let guard = side.guard(part, tiling).filter(|_| side.takes_blocks());
        let guard = guard.map_or(String::new(), |guard| format!(" && {guard}"));
        let _ = write!(
            text,
            "    {{
        let term = {base} + term_{name}{part};
        if (term < last{guard}) {{
"
        );
        let place = if *lines_are_neighbours { format!("{stride} * term") } else { "term".to_string() };
        let load = |lane: u32| format!("load_{name}(at_{name}{part}_{lane} + {place})");
        if side.takes_blocks() {
            for lane in 0..tiling.lanes {
                let _ = writeln!(text, "            {} = {};", next(lane), load(lane));
            }
        } else if side.vectors {
            let _ = writeln!(text, "            {} = load_{name}(at_{name}{part} + {place});", next(0));
        } else {
            let loads: Vec<String> = (0..tiling.lanes).map(load).collect();
            let _ = writeln!(text, "            {} = {vec}({});", next(0), loads.join(", "));
        }
        text.push_str("        }\n    }\n");
    }
    text
}

/// Stores a stage of an operand in a half of the workgroup memory.
pub(super) fn put(side: &Side, tiling: Tiling, half: u32, vec: &str) -> String {
    let Side { name, pitch, .. } = side;
    let mut text = String::new();
    for part in 0..side.parts(tiling).1 {
        let guard = side.guard(part, tiling).map_or(String::new(), |guard| format!("if ({guard}) "));
        let _ = writeln!(text, "    {guard}{{");
        for number in 0..side.vectors_a_part(tiling) {
            let value = if side.takes_blocks() {
                let of = |lane: u32| format!("next_{name}{part}_{lane}.{}", component(number));
                format!("{vec}({})", (0..tiling.lanes).map(of).collect::<Vec<_>>().join(", "))
            } else {
                format!("next_{name}{part}_0")
            };
            let place = (half * tiling.depth + number) * pitch;
            let _ = writeln!(
                text,
                "        tile_{name}[{place}u + term_{name}{part} * {pitch}u + slot_{name}{part}] = {value};"
            );
        }
        text.push_str("    }\n");
    }
    text
}

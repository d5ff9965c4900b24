//! The tiles of an operand: how a workgroup loads and stores them.

use crate::graph::DType;
use crate::kernels::library::Library;
use crate::kernels::matmul::split::Tiling;
use std::fmt::Write;

/// Which operands are arrays of vectors of 16 bytes: those whose lines are neighbours in memory, and whose number
/// of lines is a multiple of a vector's. Where terms are neighbours, vectors of them would have to be turned into
/// vectors of lines, which takes longer than single loads. Of doubles, large tiles of products of two operands that
/// are not transposed are loaded by pairs: on an H100, one of 4096 x 4096 takes 8.1 ms so, and 8.4 without; in
/// other layouts pairs gain nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Vectors {
    pub a: bool,
    pub b: bool,
    /// Whether the rows of the result are, so that the lanes of a slot are neighbouring rows.
    pub result: bool,
}

impl Vectors {
    /// The vectors of a product with these sizes.
    pub fn of(dtype: DType, tiling: Tiling, library: &Library) -> Vectors {
        let Library::MatMul { m, n, k, transpose_a, transpose_b, .. } = *library else {
            panic!("LIB-1: {} is no matrix product", library.name());
        };
        let are_wide = match dtype.is_wide() {
            true => tiling.is_large() && !transpose_a && !transpose_b,
            false => tiling.lanes == 4,
        };
        // Operands without terms are empty, and no array of vectors.
        let fit = |lines: u32| are_wide && k > 0 && lines.is_multiple_of(tiling.lanes);
        Vectors { a: !transpose_a && fit(m), b: transpose_b && fit(n), result: fit(m) }
    }
}

/// How an operand's tile is loaded.
pub(super) struct Side {
    pub name: &'static str,
    /// The first line of the workgroup's part, and the number of lines.
    pub start: &'static str,
    pub lines: &'static str,
    /// Elements between neighbouring terms if lines are neighbours in memory, otherwise between neighbouring lines.
    pub stride: &'static str,
    pub lines_are_neighbours: bool,
    /// Whether the operand is an array of vectors.
    pub vectors: bool,
    /// Whether the lanes of a slot are neighbouring lines.
    pub lanes_are_neighbours: bool,
    pub slots: u32,
    /// Vectors between a slot's neighbouring terms in workgroup memory. If neighbouring invocations store neighbouring
    /// terms, it is odd (if there is room), so that these lie in different banks.
    pub pitch: u32,
}

impl Side {
    /// The number of parts of a stage that an invocation loads.
    fn parts(&self, tiling: Tiling) -> u32 {
        (self.slots * tiling.depth).div_ceil(tiling.invocations())
    }

    /// The line of a lane of a slot, counted from the slot's first line.
    pub fn line_of(&self, lane: u32) -> u32 {
        if self.lanes_are_neighbours { lane } else { lane * self.slots }
    }
}

/// Statements that name, for each vector that an invocation loads, its term, its slot, and the elements of its lanes.
/// Lines beyond the last one read the last line, or the last lines, instead. Their results are not stored.
pub(super) fn places(side: &Side, tiling: Tiling) -> String {
    let Side { name, start, lines, stride, lines_are_neighbours, slots, .. } = side;
    let (depth, lanes) = (tiling.depth, tiling.lanes);
    let mut text = String::new();
    for part in 0..side.parts(tiling) {
        let e = format!("(lid + {}u)", tiling.invocations() * part);
        let (slot, term) = if *lines_are_neighbours {
            (format!("{e} % {slots}u"), format!("{e} / {slots}u"))
        } else {
            // Neighbouring invocations load neighbouring terms, at least 32 bytes, for as many slots as the rest of a
            // warp allows.
            let across = (32 / depth).min(*slots);
            (
                format!("{e} % {across}u + {across}u * ({e} / {}u)", across * depth),
                format!("{e} / {across}u % {depth}u"),
            )
        };
        let _ = writeln!(text, "    let slot_{name}{part} = {slot};\n    let term_{name}{part} = {term};");
        let at_slot = format!("{start} + slot_{name}{part} * {}u", if side.lanes_are_neighbours { lanes } else { 1 });
        if side.vectors {
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

/// Writes the loads of a stage of an operand to registers. Terms beyond the last one are zeros.
pub(super) fn fetch(side: &Side, tiling: Tiling, base: &str, vec: &str, zero: &str) -> String {
    let Side { name, stride, lines_are_neighbours, .. } = side;
    let mut text = String::new();
    for part in 0..side.parts(tiling) {
        let place = if *lines_are_neighbours { format!("{stride} * term") } else { "term".to_string() };
        let load = if side.vectors {
            format!("load_{name}(at_{name}{part} + {place})")
        } else {
            let one = |lane: u32| format!("load_{name}(at_{name}{part}_{lane} + {place})");
            format!("{vec}({})", (0..tiling.lanes).map(one).collect::<Vec<_>>().join(", "))
        };
        let _ = write!(
            text,
            "    var next_{name}{part} = {vec}({zero});
    {{
        let term = {base} + term_{name}{part};
        if (term < last) {{ next_{name}{part} = {load}; }}
    }}
"
        );
    }
    text
}

/// Writes the stores of a stage of an operand to a half of the workgroup memory.
pub(super) fn put(side: &Side, tiling: Tiling, half: u32) -> String {
    let Side { name, slots, pitch, .. } = side;
    let mut text = String::new();
    let elements = slots * tiling.depth;
    for part in 0..side.parts(tiling) {
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

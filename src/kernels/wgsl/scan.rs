//! Writes the entry point of form `Scan` around a kernel's body.
//!
//! A workgroup walks a line, or a chunk of one, in tiles of 256 elements. A step takes as many tiles as the kernel has
//! rounds (`Kernel::rounds`); these tiles share the barriers of workgroup memory. If many lines lie along a slow
//! dimension, each invocation walks a line, or a chunk of one, by itself. Neighbouring invocations then walk
//! neighbouring lines, so that they read neighbouring addresses (`ScanPlan::lanes_log2`).
//!
//! A kernel that scans in phases has scratch. If the lines alone do not fill a GPU, they are cut into chunks
//! (`scan_plan`). Phase 1 writes the total of each chunk to scratch. Phase 2 begins each chunk with the totals of the
//! chunks before it. Both phases evaluate the elements.
//!
//! Must hold: the values of a line do not depend on how many workgroups run. In a kernel with phases no scan depends on
//! another, and no instruction raises a fault (`Kernel::scans_in_phases`), because values after a scan are wrong in
//! phase 1.

use super::body::Body;
use super::forms::{Shared, no_fold};
use super::scan_part::{Levels, OF_ELEMENTS, OF_TILES, Scan};
use super::types::typed;
use crate::kernels::ir::{COLUMN_LANES_LOG2, Form, InstOp, Level, Val, header};

pub(super) fn scan(body: &mut Body, shared: &mut Shared) {
    let scans = Scan::all(body, shared);
    let in_phases = body.kernel.scratch.is_some();
    if in_phases && body.kernel.form == (Form::Scan { inner_fast: false }) {
        body.line(format!("if ({} == {COLUMN_LANES_LOG2}u) {{", body.memory.parameter(header::LANES_LOG2)));
        columns(body, &scans);
        body.line("} else {");
        lines(body, &scans, in_phases);
        body.line("}");
    } else {
        lines(body, &scans, in_phases);
    }
}

/// Writes the statements of a workgroup that walks a line, or a chunk of one.
fn lines(body: &mut Body, scans: &[Scan], in_phases: bool) {
    place(body, in_phases);
    begin(body, scans, OF_TILES);
    if in_phases {
        let chunks = body.memory.parameter(header::CHUNKS);
        body.line(format!("if ((phase == 2u) & ({chunks} > 1u)) {{"));
        scans.iter().fold(0, |word, scan| {
            scan.begin_after_chunks(body, word);
            word + scan.words()
        });
        body.line("}");
    }
    walk(body, 256, "lid", |body, val, arg| {
        if let Some(scan) = scans.iter().find(|scan| scan.val == val) {
            scan.tiles(body, arg);
        }
    });
    body.line(if in_phases { "if ((lid == 0u) & (phase == 2u) & (chunk == 0u)) {" } else { "if (lid == 0u) {" });
    body.outer_stores();
    body.line("}");
    if in_phases {
        body.line("if (phase == 1u) {");
        scans.iter().for_each(|scan| scan.sum_total(body, OF_TILES, true));
        body.line("if (lid == 0u) {");
        body.line("let chunk_of = chunk;");
        scans.iter().fold(0, |word, scan| scan.store_total(body, word));
        body.line("}");
        body.line("}");
    }
}

/// Writes the statements of an invocation that walks a line, or a chunk of one, by itself. The kernel has phases.
fn columns(body: &mut Body, scans: &[Scan]) {
    let parameter = |at: usize| body.memory.parameter(at);
    let (begins, end, inner) = (parameter(header::BEGIN), parameter(header::END), parameter(header::INNER));
    let (phase, size, chunks) = (parameter(header::PHASE), parameter(header::CHUNK), parameter(header::CHUNKS));
    body.line("let item = group.y * groups.x + group.x;");
    body.line(format!("let phase = {phase};"));
    body.line(format!("let chunk = item % {chunks};"));
    body.line(format!("let line = item / {chunks} * 256u + lid;"));
    body.line(format!("if (line >= {end} - {begins}) {{ return; }}"));
    body.line(format!("let outer = {begins} + line;"));
    body.line(format!("let start = chunk * {size};"));
    body.line(format!("let stop = start + min({size}, {inner} - start);"));
    begin(body, scans, OF_ELEMENTS);
    body.line("if (phase == 2u) {");
    scans.iter().fold(0, |word, scan| {
        scan.begin_column_after_chunks(body, word);
        word + scan.words()
    });
    body.line("}");
    walk(body, 1, "0u", |body, val, arg| {
        if let Some(scan) = scans.iter().find(|scan| scan.val == val) {
            scan.column(body, arg);
        }
    });
    body.line("if ((phase == 2u) & (chunk == 0u)) {");
    body.outer_stores();
    body.line("}");
    body.line("if (phase == 1u) {");
    scans.iter().for_each(|scan| scan.sum_total(body, OF_ELEMENTS, false));
    body.line("let chunk_of = chunk;");
    scans.iter().fold(0, |word, scan| scan.store_total(body, word));
    body.line("}");
}

/// Writes the instructions that do not vary with the element, and declares the variables of the scans.
fn begin(body: &mut Body, scans: &[Scan], levels: Levels) {
    body.instructions(Level::Uniform, |_, _| {});
    body.instructions(Level::Outer, |_, _| {});
    for scan in scans {
        let (ty, identity) = (typed(scan.dtype, 1), scan.running.identity());
        body.line(format!("var {}: {ty} = {identity};", scan.carry()));
        if scan.running.is_float_sum() {
            scan.declare_levels(body, levels);
        }
        if body.kernel.scratch.is_some() {
            scan.declare(body, &scan.names("total"), identity);
        }
    }
}

/// Writes the loop over the elements from `start` to `stop`. Each step takes one group of `lanes` elements for each
/// round; this invocation takes the element `lane` of each group.
fn walk(body: &mut Body, lanes: u32, lane: &str, mut scan: impl FnMut(&mut Body, Val, Val)) {
    let inner = body.memory.parameter(header::INNER);
    let step = lanes * body.kernel.rounds();
    body.line(format!("let reverse = {} == 1u;", body.memory.parameter(header::REVERSE)));
    body.line(format!("let tiles = (stop - start + {}u) / {step}u;", step - 1));
    body.line("for (var tile = 0u; tile < tiles; tile++) {");
    body.each_round(|body| {
        let [place, inside, near, at] = ["place", "inside", "near", "inner"].map(|name| body.local(name));
        body.line(format!("let {place} = start + tile * {step}u + {}u + {lane};", lanes * body.round));
        body.line(format!("let {inside} = {place} < stop;"));
        body.line(format!("let {near} = min({place}, {inner} - 1u);"));
        body.line(format!("let {at} = select({near}, {inner} - 1u - {near}, reverse);"));
    });
    body.instructions(Level::Element, |body, val| {
        let InstOp::Scan { arg, .. } = body.kernel.inst(val).op else { return no_fold(body, val) };
        scan(body, val, arg);
    });
    let in_phases = body.kernel.scratch.is_some();
    body.each_round(|body| {
        let inside = body.local("inside");
        body.line(if in_phases { format!("if ({inside} & (phase == 2u)) {{") } else { format!("if ({inside}) {{") });
        body.round_stores();
        body.line("}");
    });
    body.line("}");
}

/// Names the line, and the part of it, that this workgroup walks.
fn place(body: &mut Body, in_phases: bool) {
    let parameter = |at: usize| body.memory.parameter(at);
    let (begin, end, inner) = (parameter(header::BEGIN), parameter(header::END), parameter(header::INNER));
    let (phase, chunk, chunks) = (parameter(header::PHASE), parameter(header::CHUNK), parameter(header::CHUNKS));
    body.line("let item = group.y * groups.x + group.x;");
    if in_phases {
        body.line(format!("let phase = {phase};"));
        body.line(format!("let line = item / {chunks};"));
        body.line(format!("let chunk = item % {chunks};"));
        body.line(format!("let start = chunk * {chunk};"));
        body.line(format!("let stop = start + min({chunk}, {inner} - start);"));
    } else {
        body.line("let line = item;");
        body.line("let start = 0u;");
        body.line(format!("let stop = {inner};"));
    }
    body.line(format!("if (line >= {end} - {begin}) {{ return; }}"));
    body.line(format!("let outer = {begin} + line;"));
}

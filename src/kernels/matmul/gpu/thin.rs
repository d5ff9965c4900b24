//! The WGSL of a product with at most `THIN_MAX` lines on one side: the other factor, the matrix, is read once.
//!
//! In: a dtype, a [`Thin`], and how the operands lie. Out: one module, whose parameters `gpu::PARAMS` names.
//!
//! The terms of a sum are dealt to `lanes` lanes in turn. Where neighbouring terms are neighbours in memory, an
//! invocation is one lane of several lines of the matrix. Where neighbouring lines are, it is several lanes of one
//! line. Either way, neighbouring invocations read neighbours in memory, and an invocation has dozens of loads in
//! flight.
//!
//! Must hold: MATMUL-1: a lane adds eight terms one after the other, then eight such sums, then at most eight of those;
//! lanes are added in pairs. The order of additions is the same however the operands lie.

use super::super::split::Thin;
use super::{PARAMS, SLICE};
use crate::graph::DType;
use crate::kernels::wgsl::pieces::{Module, OWN_WORDS};
use crate::kernels::wgsl::types::{storage, zero};
use std::fmt::Write;

/// Terms that a lane adds one after the other to one run, and runs that it adds one after the other.
const RUN: u32 = 8;

/// How a module addresses the matrix and the thin factor.
struct Form {
    thin: Thin,
    terms_are_neighbours: bool,
    /// The matrix, and the thin factor.
    big: &'static str,
    small: &'static str,
    /// Elements of the matrix between neighbouring terms and between neighbouring lines, and of the thin factor.
    big_term: &'static str,
    big_line: &'static str,
    small_term: &'static str,
    small_line: &'static str,
}

impl Form {
    fn of(thin: Thin, transpose_a: bool, transpose_b: bool, lone: bool) -> Form {
        let strides = |lines: &'static str, lines_are_neighbours: bool| {
            if lines_are_neighbours { (lines, "1u") } else { ("1u", "k") }
        };
        let (a, b) = (strides("m", !transpose_a), strides("n", transpose_b));
        let ((big, of_big), (small, of_small)) = if thin.turned { (("b", b), ("a", a)) } else { (("a", a), ("b", b)) };
        Form {
            thin,
            terms_are_neighbours: of_big.0 == "1u" || lone,
            big,
            small,
            big_term: of_big.0,
            big_line: of_big.1,
            small_term: of_small.0,
            small_line: of_small.1,
        }
    }

    /// The sums of an invocation: its line or its lane among several, and the line of the thin factor.
    fn sums(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let Thin { count, .. } = self.thin;
        (0..self.thin.each()).flat_map(move |i| (0..count).map(move |j| (i, j)))
    }

    /// Lanes that are invocations of their own.
    fn lanes_apart(&self) -> u32 {
        if self.terms_are_neighbours { self.thin.lanes } else { 256 / self.thin.lines }
    }
}

/// The module.
pub(super) fn text(dtype: DType, thin: Thin, transpose_a: bool, transpose_b: bool, segments: &[u8]) -> String {
    let (ty, zero) = (storage(dtype), zero(dtype));
    let form = Form::of(thin, transpose_a, transpose_b, thin.lines == 1);
    let mut module = Module::new();
    for (name, segments) in ["a", "b", "result"].iter().zip(segments) {
        module.operand(name, ty, *segments);
    }
    module.add(&format!("var<workgroup> sums: array<{ty}, {}>;\n", 256 * thin.count));
    let mut main = String::new();
    for (offset, name) in PARAMS.iter().enumerate() {
        let _ = writeln!(main, "    let {name} = params[{}];", OWN_WORDS + offset);
    }
    let _ = write!(
        main,
        "    let tiles = tiles_m * tiles_n;
    let slice = index / (tiles * batch);
    let page = index / tiles % batch;
    let line0 = (index % tiles) * {}u;
    let pages = (slice * batch + page) * m * n;
{SLICE}",
        thin.lines
    );
    main.push_str(&places(&form));
    for (i, j) in form.sums() {
        let _ = writeln!(main, "    var s{i}_{j}: {ty} = {zero};\n    var t{i}_{j}: {ty} = {zero};");
    }
    let step = thin.lanes * RUN;
    let _ = writeln!(main, "    for (var base = first; base < last; base += {step}u) {{");
    for (i, j) in form.sums() {
        let _ = writeln!(main, "    var c{i}_{j}: {ty} = {zero};");
    }
    let _ = writeln!(main, "    if (base + {step}u <= last) {{");
    for run in 0..RUN {
        main.push_str(&add_term(&form, &format!("base + {}u", run * thin.lanes), false));
    }
    let _ = writeln!(main, "    }} else {{\n    for (var turn = base; turn < last; turn += {}u) {{", thin.lanes);
    main.push_str(&add_term(&form, "turn", true));
    main.push_str("    }\n    }\n");
    for (i, j) in form.sums() {
        let _ = writeln!(main, "    s{i}_{j} = s{i}_{j} + c{i}_{j};");
    }
    let _ = writeln!(main, "    if ((base - first + {step}u) % {}u == 0u) {{", step * RUN);
    for (i, j) in form.sums() {
        let _ = writeln!(main, "    t{i}_{j} = t{i}_{j} + s{i}_{j};\n    s{i}_{j} = {zero};");
    }
    main.push_str("    }\n    }\n");
    for (i, j) in form.sums() {
        let _ = writeln!(main, "    t{i}_{j} = t{i}_{j} + s{i}_{j};");
    }
    main.push_str(&results(&form));
    module.finish(&main)
}

/// The lane and the lines of an invocation, and where these begin. Lines beyond the last are read as the last one.
fn places(form: &Form) -> String {
    let Form { thin, big, small, .. } = form;
    let (lines, others) = if thin.turned { ("n", "m") } else { ("m", "n") };
    let mut text = String::new();
    let each = if form.terms_are_neighbours {
        let _ = writeln!(text, "    let lane = lid % {}u;\n    let own = lid / {}u;", thin.lanes, thin.lanes);
        thin.each()
    } else {
        let _ = writeln!(text, "    let lane = lid / {}u;\n    let own = lid % {}u;", thin.lines, thin.lines);
        1
    };
    let _ = writeln!(text, "    let line = line0 + own * {each}u;");
    for i in 0..each {
        let _ = writeln!(
            text,
            "    let big{i} = page * stride_{big} + {} * min(line + {i}u, {lines} - 1u);",
            form.big_line
        );
    }
    for j in 0..thin.count {
        let _ = writeln!(
            text,
            "    let small{j} = page * stride_{small} + {} * min({j}u, {others} - 1u);",
            form.small_line
        );
    }
    text
}

/// Adds a term of each lane to the runs.
fn add_term(form: &Form, turn: &str, guarded: bool) -> String {
    let Form { thin, big, small, big_term, small_term, .. } = form;
    let mut text = String::new();
    let lanes = if form.terms_are_neighbours { 1 } else { thin.each() };
    for lane in 0..lanes {
        let _ = writeln!(text, "    {{\n    let term = {turn} + lane + {}u;", lane * form.lanes_apart());
        if guarded {
            text.push_str("    if (term < last) {\n");
        }
        for j in 0..thin.count {
            let _ = writeln!(text, "    let y{j} = load_{small}(small{j} + {small_term} * term);");
        }
        let lines = if form.terms_are_neighbours { thin.each() } else { 1 };
        for line in 0..lines {
            let _ = writeln!(text, "    let x{line} = load_{big}(big{line} + {big_term} * term);");
            let i = if form.terms_are_neighbours { line } else { lane };
            for j in 0..thin.count {
                let _ = writeln!(text, "    c{i}_{j} = c{i}_{j} + x{line} * y{j};");
            }
        }
        text.push_str(if guarded { "    }\n    }\n" } else { "    }\n" });
    }
    text
}

/// Adds the lanes of each line in pairs, those that are furthest apart first, and stores the sums.
fn results(form: &Form) -> String {
    let Thin { count, lines, turned, .. } = form.thin;
    let mut text = String::new();
    let mut each = form.thin.each();
    while !form.terms_are_neighbours && each > 1 {
        each /= 2;
        for i in 0..each {
            for j in 0..count {
                let _ = writeln!(text, "    t{i}_{j} = t{i}_{j} + t{}_{j};", i + each);
            }
        }
    }
    let apart = if form.terms_are_neighbours { 1 } else { lines };
    for i in 0..each {
        if i > 0 {
            text.push_str("    workgroupBarrier();\n");
        }
        for j in 0..count {
            let _ = writeln!(text, "    sums[lid + {}u] = t{i}_{j};", 256 * j);
        }
        let mut half = form.lanes_apart() / 2;
        while half > 0 {
            let _ = writeln!(text, "    workgroupBarrier();\n    if (lane < {half}u) {{");
            for j in 0..count {
                let at = 256 * j;
                let _ =
                    writeln!(text, "    sums[lid + {at}u] = sums[lid + {at}u] + sums[lid + {}u];", at + half * apart);
            }
            text.push_str("    }\n");
            half /= 2;
        }
        let (limit, others) = if turned { ("columns", "rows") } else { ("rows", "columns") };
        for j in 0..count {
            let place = if turned { format!("{j}u + m * (line + {i}u)") } else { format!("line + {i}u + m * {j}u") };
            let _ = writeln!(
                text,
                "    if (lane == 0u && line + {i}u < {limit} && {j}u < {others}) {{ store_result(pages + {place}, sums[lid + {}u]); }}",
                256 * j
            );
        }
    }
    text
}

//! Writes the WGSL of a product with at most `THIN_MAX` lines on one side. The other factor, "the matrix", is read
//! once.
//!
//! In: a dtype, a [`Thin`], and how the operands lie. Out: one module, whose parameters `gpu::PARAMS` names.
//!
//! The terms of a sum are distributed to `lanes` lanes in turn, `dealt` neighbours at a time. If neighbouring terms are
//! neighbours in memory, an invocation is one lane of several lines of the matrix. If neighbouring lines are, it is
//! several lanes of one line, or of a vector of lines. In both cases, neighbouring invocations read neighbours in
//! memory, 16 bytes each if the sizes allow it, and an invocation has dozens of elements in flight.
//!
//! Must hold: MATMUL-1: a lane adds eight terms one after the other, then eight such sums, then at most eight of those;
//! lanes are added in pairs. The order of additions is the same however the operands lie.

use super::super::split::Thin;
use super::{PARAMS, SLICE};
use crate::graph::DType;
use crate::kernels::library::Library;
use crate::kernels::wgsl::pieces::{Module, OWN_WORDS};
use crate::kernels::wgsl::types::{component, storage, vector, zero};
use std::fmt::Write;

/// The number of terms that a lane adds one after the other to a run, and also the number of runs that it adds one
/// after the other.
const RUN: u32 = 8;
/// Words of the matrix that an invocation has on their way at once.
const WORDS_AT_ONCE: u32 = 64;

/// The matrix and the thin factor are bound as arrays of vectors with these numbers of elements, or of single elements
/// (1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Vectors {
    big: u32,
    small: u32,
}

impl Vectors {
    /// The vectors of a product with these sizes: a vector spans neighbours of one line or of one term.
    pub fn of(thin: Thin, library: &Library) -> Vectors {
        let Library::MatMul { m, n, k, transpose_a, transpose_b, .. } = *library else {
            panic!("LIB-1: {} is no matrix product", library.name());
        };
        // Operands without terms are empty, so they are no arrays of vectors.
        let fits = |neighbours: u32| k > 0 && neighbours.is_multiple_of(thin.dealt);
        let a = (transpose_a, if transpose_a { k } else { m });
        let b = (!transpose_b, if transpose_b { n } else { k });
        let ((big_by_terms, big), (small_by_terms, small)) = if thin.turned { (b, a) } else { (a, b) };
        let dealt = |fits| if fits { thin.dealt } else { 1 };
        let small_fits = big_by_terms && small_by_terms && fits(small);
        Vectors { big: dealt(fits(big)), small: dealt(small_fits) }
    }
}

/// Terms that an invocation loads at once: of all its lines, or of one of its lanes.
#[derive(Clone, Copy)]
struct Piece {
    lane: u32,
    /// The first term, from the invocation's first one of the turn.
    place: u32,
}

/// How a module addresses the matrix and the thin factor.
struct Form {
    thin: Thin,
    vectors: Vectors,
    terms_are_neighbours: bool,
    /// The names of the matrix, and of the thin factor.
    big: &'static str,
    small: &'static str,
    /// Elements of the matrix between neighbouring terms and between neighbouring lines, and of the thin factor.
    big_term: &'static str,
    big_line: &'static str,
    small_term: &'static str,
    small_line: &'static str,
}

impl Form {
    fn of(thin: Thin, transpose_a: bool, transpose_b: bool, vectors: Vectors) -> Form {
        let strides = |lines: &'static str, lines_are_neighbours: bool| {
            if lines_are_neighbours { (lines, "1u") } else { ("1u", "k") }
        };
        let (a, b) = (strides("m", !transpose_a), strides("n", transpose_b));
        let ((big, of_big), (small, of_small)) = if thin.turned { (("b", b), ("a", a)) } else { (("a", a), ("b", b)) };
        Form {
            thin,
            vectors,
            terms_are_neighbours: of_big.0 == "1u" || thin.lines == 1,
            big,
            small,
            big_term: of_big.0,
            big_line: of_big.1,
            small_term: of_small.0,
            small_line: of_small.1,
        }
    }

    /// The number of lines in a sum, which may be a vector.
    fn lines_a_sum(&self) -> u32 {
        if self.terms_are_neighbours { 1 } else { self.vectors.big }
    }

    /// The number of sums of an invocation for each line of the thin factor: one for each of its lines, or of its
    /// lanes.
    fn each(&self) -> u32 {
        self.thin.lines * self.thin.lanes / 256 / self.lines_a_sum()
    }

    /// The sums of an invocation, each by the number of its line or lane, and by the line of the thin factor.
    fn sums(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let (each, count) = (self.each(), self.thin.count);
        (0..each).flat_map(move |i| (0..count).map(move |j| (i, j)))
    }

    /// Terms that are loaded at once, which are inside together.
    fn together(&self) -> u32 {
        if self.terms_are_neighbours { self.vectors.big } else { 1 }
    }

    /// Lines, or vectors of lines, of which a piece has terms.
    fn lines_a_piece(&self) -> u32 {
        if self.terms_are_neighbours { self.each() } else { 1 }
    }

    /// The pieces of the `dealt` terms of each lane that begin `turn` terms after the first.
    fn pieces(&self, turn: u32) -> Vec<Piece> {
        let (dealt, together) = (self.thin.dealt, self.together());
        let lanes = if self.terms_are_neighbours { 1 } else { self.each() };
        let parts = |lane| (0..dealt).step_by(together as usize).map(move |part| (lane, part));
        let piece = |(lane, part)| Piece { lane, place: turn + lane * self.lanes_apart() * dealt + part };
        (0..lanes).flat_map(parts).map(piece).collect()
    }

    /// Pieces that are loaded before the first of them is added, where neighbouring terms are neighbours in memory: 64
    /// words. With half as many, an H100 reads a matrix of 16384 x 16384 singles in 395 us, and with 64 in 363.
    fn pieces_at_once(&self, dtype: DType) -> usize {
        let words = if dtype.is_wide() { 2 } else { 1 };
        let piece = self.lines_a_piece() * self.together() * words;
        if self.terms_are_neighbours { (WORDS_AT_ONCE / piece).max(1) as usize } else { 1 }
    }

    /// The number of invocations among which the lanes of a sum are divided.
    fn lanes_apart(&self) -> u32 {
        self.thin.lanes / if self.terms_are_neighbours { 1 } else { self.each() }
    }
}

/// Writes the module.
pub(super) fn text(
    dtype: DType,
    thin: Thin,
    transpose_a: bool,
    transpose_b: bool,
    vectors: Vectors,
    segments: &[u8],
) -> String {
    let ty = storage(dtype);
    let form = Form::of(thin, transpose_a, transpose_b, vectors);
    let (sum, zero) = (vector(ty, form.lines_a_sum()), format!("{}({})", vector(ty, form.lines_a_sum()), zero(dtype)));
    let mut module = Module::new();
    for (name, segments) in ["a", "b", "result"].iter().zip(segments) {
        let lanes = if *name == form.big {
            vectors.big
        } else if *name == form.small {
            vectors.small
        } else {
            1
        };
        module.vector_operand(name, ty, lanes, *segments);
    }
    module.add(&format!("var<workgroup> sums: array<{sum}, {}>;\n", 256 * thin.count));
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
        let _ = writeln!(main, "    var s{i}_{j} = {zero};\n    var t{i}_{j} = {zero};");
    }
    let step = thin.lanes * RUN;
    let _ = writeln!(main, "    for (var base = first; base < last; base += {step}u) {{");
    for (i, j) in form.sums() {
        let _ = writeln!(main, "    var c{i}_{j} = {zero};");
    }
    let _ = writeln!(main, "    if (base + {step}u <= last) {{");
    let turn = thin.lanes * thin.dealt;
    let run = (0..RUN).step_by(thin.dealt as usize).flat_map(|at| form.pieces(at * thin.lanes));
    for pieces in run.collect::<Vec<_>>().chunks(form.pieces_at_once(dtype)) {
        main.push_str(&add_terms(&form, "base", pieces, false));
    }
    let _ = writeln!(main, "    }} else {{\n    for (var turn = base; turn < last; turn += {turn}u) {{");
    for piece in form.pieces(0) {
        main.push_str(&add_terms(&form, "turn", &[piece], true));
    }
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

/// Writes the lane and the lines of an invocation, and where these begin. Lines beyond the last one read the last one
/// instead.
fn places(form: &Form) -> String {
    let Form { thin, big, small, .. } = form;
    let (lines, others) = if thin.turned { ("n", "m") } else { ("m", "n") };
    let wide = form.lines_a_sum();
    let mut text = String::new();
    let each = if form.terms_are_neighbours {
        let _ = writeln!(text, "    let lane = lid % {}u;\n    let own = lid / {}u;", thin.lanes, thin.lanes);
        form.each()
    } else {
        let own = thin.lines / wide;
        let _ = writeln!(text, "    let lane = lid / {own}u;\n    let own = lid % {own}u;");
        1
    };
    let _ = writeln!(text, "    let line = line0 + own * {}u;", each * wide);
    for i in 0..each {
        let _ = writeln!(
            text,
            "    let big{i} = page * stride_{big} + {} * min(line + {i}u, {lines} - {wide}u);",
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

/// Adds pieces of the terms to the runs. The operands of all pieces are loaded before the first piece is added.
fn add_terms(form: &Form, turn: &str, pieces: &[Piece], guarded: bool) -> String {
    let mut text = "    {\n".to_string();
    for (at, piece) in pieces.iter().enumerate() {
        let place = piece.place;
        let _ = writeln!(text, "    let term{at} = {turn} + lane * {}u + {place}u;", form.thin.dealt);
    }
    if guarded {
        // Terms of a piece are inside together.
        text.push_str("    if (term0 < last) {\n");
    }
    (0..pieces.len()).for_each(|at| text.push_str(&loads(form, at)));
    pieces.iter().enumerate().for_each(|(at, piece)| text.push_str(&products(form, at, piece.lane)));
    text.push_str(if guarded { "    }\n    }\n" } else { "    }\n" });
    text
}

/// Loads the terms of a piece, from `term{at}` on.
fn loads(form: &Form, at: usize) -> String {
    let Form { thin, vectors, big, small, big_term, small_term, .. } = form;
    let mut text = String::new();
    for j in 0..thin.count {
        if vectors.small > 1 {
            let _ = writeln!(text, "    let y{at}_{j} = load_{small}(small{j} + {small_term} * term{at});");
            continue;
        }
        for term in 0..form.together() {
            let place = format!("small{j} + {small_term} * (term{at} + {term}u)");
            let _ = writeln!(text, "    let y{at}_{j}_{term} = load_{small}({place});");
        }
    }
    for line in 0..form.lines_a_piece() {
        let _ = writeln!(text, "    let x{at}_{line} = load_{big}(big{line} + {big_term} * term{at});");
    }
    text
}

/// Adds the products of the terms of a piece to the runs.
fn products(form: &Form, at: usize, lane: u32) -> String {
    let mut text = String::new();
    let element = |name: &str, is_vector: bool, term: u32| {
        if is_vector { format!("{name}.{}", component(term)) } else { name.to_string() }
    };
    for line in 0..form.lines_a_piece() {
        for term in 0..form.together() {
            let i = if form.terms_are_neighbours { line } else { lane };
            let x = element(&format!("x{at}_{line}"), form.together() > 1, term);
            for j in 0..form.thin.count {
                let y = match form.vectors.small {
                    1 => format!("y{at}_{j}_{term}"),
                    _ => element(&format!("y{at}_{j}"), true, term),
                };
                let _ = writeln!(text, "    c{i}_{j} = c{i}_{j} + {x} * {y};");
            }
        }
    }
    text
}

/// Adds the lanes of each line in pairs, beginning with those that are farthest apart, and stores the sums.
fn results(form: &Form) -> String {
    let Thin { count, lines, turned, .. } = form.thin;
    let wide = form.lines_a_sum();
    let mut text = String::new();
    let mut each = form.each();
    while !form.terms_are_neighbours && each > 1 {
        each /= 2;
        for i in 0..each {
            for j in 0..count {
                let _ = writeln!(text, "    t{i}_{j} = t{i}_{j} + t{}_{j};", i + each);
            }
        }
    }
    let apart = if form.terms_are_neighbours { 1 } else { lines / wide };
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
        for (j, of) in (0..count).flat_map(|j| (0..wide).map(move |of| (j, of))) {
            let line = format!("line + {}u", i + of);
            let place = if turned { format!("{j}u + m * ({line})") } else { format!("{line} + m * {j}u") };
            let sum = format!("sums[lid + {}u]{}", 256 * j, if wide > 1 { format!("[{of}]") } else { String::new() });
            let _ = writeln!(
                text,
                "    if (lane == 0u && {line} < {limit} && {j}u < {others}) {{ store_result(pages + {place}, {sum}); }}"
            );
        }
    }
    text
}

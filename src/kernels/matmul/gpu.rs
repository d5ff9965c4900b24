//! The matrix product on a GPU: tiles of the result a workgroup, blocks of it an invocation.
//!
//! In: sizes and segment counts. Out: passes of one module; k beyond `TERMS_MAX` takes several, each of which
//! adds to the result of the one before. Parameters from `OWN_WORDS` on: m, n, k, stride_a, stride_b, first term,
//! one past the last term, tiles along m, tiles along n, batch.
//!
//! Must hold: the terms of an element are added in order of k, whatever the segments; edges load zeros.
//! An invocation makes at most `TERMS_MAX * 17 / 16` loop steps, below the 65,535 at which Mesa's software device
//! stops.

use crate::error::Error;
use crate::graph::DType;
use crate::kernels::library::{Library, Pass};
use crate::kernels::wgsl::pieces::{Module, OWN_WORDS, grid_of};
use crate::kernels::wgsl::types::{storage, zero};
use std::fmt::Write;

/// Terms of each sum that one pass adds.
const TERMS_MAX: u32 = 1 << 15;
/// Terms that a tile of the operands holds.
const DEPTH: u32 = 16;

/// Elements of a tile's edge: an invocation owns `edge / 16` squared.
fn edge(dtype: DType) -> u32 {
    if dtype.is_wide() { 32 } else { 64 }
}

/// The passes of a matrix product whose operands `[a, b, out]` have so many segments.
///
/// # Errors
/// `ErrorKind::Unsupported` where the result has more tiles than a grid.
pub fn passes(library: &Library, segments: &[u8], segment_shift: u32) -> Result<Vec<Pass>, Error> {
    let Library::MatMul { dtype, m, n, k, batch, transpose_a, transpose_b, stride_a, stride_b } = *library else {
        panic!("LIB-1: {} is no matrix product", library.name());
    };
    let (tiles_m, tiles_n) = (m.div_ceil(edge(dtype)), n.div_ceil(edge(dtype)));
    let groups = tiles_m as u64 * tiles_n as u64 * batch as u64;
    if groups == 0 {
        return Ok(vec![]);
    }
    let key = format!("matmul {dtype} {transpose_a} {transpose_b} {segments:?}");
    let wgsl = text(dtype, transpose_a, transpose_b, segments);
    let grid = grid_of(groups, "a matrix product")?;
    let starts = (0..k.max(1)).step_by(TERMS_MAX as usize);
    Ok(starts
        .map(|first| {
            let last = k.min(first.saturating_add(TERMS_MAX));
            Pass {
                key: key.clone(),
                wgsl: wgsl.clone(),
                params: vec![0, segment_shift, m, n, k, stride_a, stride_b, first, last, tiles_m, tiles_n, batch],
                operands: vec![0, 1, 2],
                faults: false,
                grid,
            }
        })
        .collect())
}

fn text(dtype: DType, transpose_a: bool, transpose_b: bool, segments: &[u8]) -> String {
    let (ty, zero, edge) = (storage(dtype), zero(dtype), edge(dtype));
    let block = edge / 16;
    let mut module = Module::new();
    for (name, segments) in ["a", "b", "result"].iter().zip(segments) {
        module.operand(name, ty, *segments);
    }
    module.add(&format!(
        "var<workgroup> tile_a: array<{ty}, {size}>;\nvar<workgroup> tile_b: array<{ty}, {size}>;\n",
        size = edge * DEPTH
    ));
    let mut main = String::new();
    for (offset, name) in
        ["m", "n", "k", "stride_a", "stride_b", "first", "last", "tiles_m", "tiles_n"].iter().enumerate()
    {
        let _ = writeln!(main, "    let {name} = params[{}];", OWN_WORDS + offset);
    }
    let _ = write!(
        main,
        "    let page = index / (tiles_m * tiles_n);
    let row0 = (index % tiles_m) * {edge}u;
    let column0 = (index / tiles_m % tiles_n) * {edge}u;
    let row = row0 + lid % 16u;
    let column = column0 + lid / 16u;
    let pages = page * m * n;
    // The last row of the grid may reach past the last tile: such workgroups load zeros and store nothing.
    let rows = select(0u, m, page < params[{batch}]);
    let columns = select(0u, n, page < params[{batch}]);
",
        batch = OWN_WORDS + 9
    );
    main.push_str(&accumulators(block, ty, zero));
    main.push_str(&format!("    for (var base = first; base < last; base += {DEPTH}u) {{\n"));
    main.push_str(&fill_tiles(edge, transpose_a, transpose_b, zero));
    main.push_str("        workgroupBarrier();\n");
    main.push_str(&multiply(block, edge));
    main.push_str("        workgroupBarrier();\n    }\n");
    for (r, s) in pairs(block) {
        let _ = writeln!(
            main,
            "    if (row + {di}u < rows && column + {dj}u < columns) {{ store_result(pages + row + {di}u + m * (column + {dj}u), c{r}_{s}); }}",
            di = 16 * r,
            dj = 16 * s
        );
    }
    module.finish(&main)
}

fn pairs(block: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..block).flat_map(move |r| (0..block).map(move |s| (r, s)))
}

/// The invocation's block of the result: zero, or what an earlier pass left.
fn accumulators(block: u32, ty: &str, zero: &str) -> String {
    let mut text = String::new();
    for (r, s) in pairs(block) {
        let _ = writeln!(text, "    var c{r}_{s}: {ty} = {zero};");
    }
    text.push_str("    if (first > 0u) {\n");
    for (r, s) in pairs(block) {
        let _ = writeln!(
            text,
            "        if (row + {di}u < rows && column + {dj}u < columns) {{ c{r}_{s} = load_result(pages + row + {di}u + m * (column + {dj}u)); }}",
            di = 16 * r,
            dj = 16 * s
        );
    }
    text.push_str("    }\n");
    text
}

/// Loads a tile of each operand; neighbouring invocations load neighbours in memory.
fn fill_tiles(edge: u32, transpose_a: bool, transpose_b: bool, zero: &str) -> String {
    let mut text = String::new();
    for part in 0..edge * DEPTH / 256 {
        let e = format!("(lid + {}u)", 256 * part);
        let across = (format!("{e} % {edge}u"), format!("{e} / {edge}u"));
        let along = (format!("{e} / {DEPTH}u"), format!("{e} % {DEPTH}u"));
        for (name, line_first, transposed) in [("a", true, transpose_a), ("b", false, transpose_b)] {
            // `line` counts rows of a or columns of b; `term` counts k.
            let line_is_fast = line_first != transposed;
            let (line, term) = if line_is_fast { &across } else { &along };
            let (start, limit) = if line_first { ("row0", "rows") } else { ("column0", "columns") };
            let stored = if line_first { "m" } else { "n" };
            let place = if line_is_fast { format!("at + {stored} * term") } else { "term + k * at".to_string() };
            let _ = write!(
                text,
                "        {{
            let line = {line};
            let depth = {term};
            let at = {start} + line;
            let term = base + depth;
            var value = {zero};
            if (at < {limit} && term < last) {{ value = load_{name}(page * stride_{name} + {place}); }}
            tile_{name}[depth * {edge}u + line] = value;
        }}
"
            );
        }
    }
    text
}

fn multiply(block: u32, edge: u32) -> String {
    let mut text = format!("        for (var depth = 0u; depth < {DEPTH}u; depth++) {{\n");
    for r in 0..block {
        let _ = writeln!(text, "            let a{r} = tile_a[depth * {edge}u + lid % 16u + {}u];", 16 * r);
        let _ = writeln!(text, "            let b{r} = tile_b[depth * {edge}u + lid / 16u + {}u];", 16 * r);
    }
    for (r, s) in pairs(block) {
        let _ = writeln!(text, "            c{r}_{s} = c{r}_{s} + a{r} * b{s};");
    }
    text.push_str("        }\n");
    text
}

#[cfg(all(test, feature = "gpu"))]
mod tests {
    use super::*;
    use crate::kernels::wgsl::harness::{floats, floats64, gpu, sample, words, words64};

    struct Case {
        m: usize,
        n: usize,
        k: usize,
        batch: usize,
        shared_b: bool,
        transpose: (bool, bool),
    }

    fn case(m: usize, n: usize, k: usize) -> Case {
        Case { m, n, k, batch: 1, shared_b: false, transpose: (false, false) }
    }

    fn library(case: &Case, dtype: DType) -> Library {
        Library::MatMul {
            dtype,
            m: case.m as u32,
            n: case.n as u32,
            k: case.k as u32,
            batch: case.batch as u32,
            transpose_a: case.transpose.0,
            transpose_b: case.transpose.1,
            stride_a: (case.m * case.k) as u32,
            stride_b: if case.shared_b { 0 } else { (case.k * case.n) as u32 },
        }
    }

    fn naive(case: &Case, a: &[f32], b: &[f32]) -> Vec<f32> {
        let Case { m, n, k, batch, shared_b, transpose } = *case;
        let mut out = vec![0.0; m * n * batch];
        for p in 0..batch {
            for j in 0..n {
                for i in 0..m {
                    out[i + m * j + m * n * p] = (0..k)
                        .map(|t| {
                            let a_at = if transpose.0 { t + k * i } else { i + m * t } + m * k * p;
                            let b_at =
                                if transpose.1 { j + n * t } else { t + k * j } + if shared_b { 0 } else { k * n * p };
                            a[a_at] * b[b_at]
                        })
                        .sum();
                }
            }
        }
        out
    }

    fn small(count: usize) -> Vec<f32> {
        sample(count).iter().map(|v| (v / 10.0).trunc()).collect()
    }

    #[test]
    fn products_of_every_edge_and_transpose_equal_the_naive_ones() {
        let Some(gpu) = gpu() else { return };
        let mut cases = vec![case(1, 1, 1), case(64, 64, 16), case(65, 63, 17), case(3, 130, 5), case(200, 1, 33)];
        for transpose in [(true, false), (false, true), (true, true)] {
            cases.push(Case { transpose, batch: 2, ..case(70, 20, 35) });
        }
        cases.push(Case { batch: 3, shared_b: true, ..case(5, 6, 7) });
        cases.push(case(4, 4, 0));
        cases.push(case(2, 3, TERMS_MAX as usize + 100));
        for case in &cases {
            let a = small(case.m * case.k * case.batch);
            let b = small(case.k * case.n * if case.shared_b { 1 } else { case.batch });
            let expected = naive(case, &a, &b);
            let outs = expected.len();
            let passes = passes(&library(case, DType::F32), &[1, 1, 1], 30).unwrap();
            let after = gpu.passes(&passes, &[1, 1, 1], &[words(&a), words(&b), vec![9; outs]]);
            assert_eq!(floats(&after[2]), expected, "{} {} {} {:?}", case.m, case.n, case.k, case.transpose);
            if !gpu.target.f64 {
                continue;
            }
            let wide = |v: &[f32]| words64(&v.iter().map(|v| *v as f64).collect::<Vec<_>>());
            let passes = super::passes(&library(case, DType::F64), &[1, 1, 1], 30).unwrap();
            let after = gpu.passes(&passes, &[1, 1, 1], &[wide(&a), wide(&b), vec![9; 2 * outs]]);
            let got: Vec<f32> = floats64(&after[2]).iter().map(|v| *v as f32).collect();
            assert_eq!(got, expected, "f64 {} {} {} {:?}", case.m, case.n, case.k, case.transpose);
        }
    }

    #[test]
    fn operands_may_lie_in_segments() {
        let Some(gpu) = gpu() else { return };
        let case = case(30, 20, 12);
        let (a, b) = (small(360), small(240));
        let segments = [6, 4, 10];
        let passes = passes(&library(&case, DType::F32), &segments, 6).unwrap();
        let mut buffers: Vec<Vec<u32>> = a.chunks(64).chain(b.chunks(64)).map(words).collect();
        buffers.extend((0..10).map(|_| vec![0; 64]));
        let after = gpu.passes(&passes, &segments, &buffers);
        assert_eq!(floats(&after[10..].concat())[..600], naive(&case, &a, &b));
    }

    #[test]
    fn nothing_to_compute_is_no_pass() {
        assert!(passes(&library(&case(0, 3, 4), DType::F32), &[1, 1, 1], 30).unwrap().is_empty());
    }
}

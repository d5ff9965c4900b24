//! The matrix product on a GPU: a part of the result a workgroup, a block of it an invocation.
//!
//! In: sizes and segment counts. Out: passes of one module, over slices of the terms (`Split`). A slice of more than
//! `TERMS_MAX` terms takes several passes, each of which adds its sum to the result of the one before. Of several
//! slices, the sums are partial results in the scratch operand, and a last pass of a second module adds them.
//! Parameters of the first from `OWN_WORDS` on: m, n, k, stride_a, stride_b, the pass's first term within a slice, terms
//! of a slice, tiles along m, tiles along n, batch, slices; of the second: outputs, slices, lanes of an output.
//!
//! Must hold: MATMUL-1: an invocation adds eight terms one after the other, then eight such sums, and so on for four
//! levels more. Nothing depends on the rounding of a difference, which a driver's compiler may rearrange. Edges load
//! zeros.

use super::split::{BLOCK, Split, TERMS_MAX, Tiling};
use crate::error::Error;
use crate::graph::DType;
use crate::kernels::library::{Library, Pass};
use crate::kernels::wgsl::pieces::{Module, OWN_WORDS, grid_of};
use crate::kernels::wgsl::types::{storage, zero};
use std::fmt::Write;

/// Terms that are added one after the other.
const RUN: u32 = 8;
/// The names of the sums on the levels above, with the terms that each takes before it goes to the next.
const LEVELS: [(&str, u32); 4] = [("s", BLOCK), ("t", BLOCK * 8), ("u", BLOCK * 64), ("v", BLOCK * 512)];
/// Partial results that a lane of the last pass adds one after the other.
const PARTIALS_A_LANE: u32 = 4;

/// The passes of a matrix product whose operands `[a, b, out]`, or `[a, b, out, partial]` where it has several slices,
/// have so many segments.
///
/// # Errors
/// `ErrorKind::Unsupported` where the result has more tiles than a grid.
pub fn passes(library: &Library, segments: &[u8], segment_shift: u32) -> Result<Vec<Pass>, Error> {
    let Library::MatMul { dtype, m, n, k, batch, transpose_a, transpose_b, stride_a, stride_b } = *library else {
        panic!("LIB-1: {} is no matrix product", library.name());
    };
    let (tiling, split) = (Tiling::of(dtype, m, n), Split::of(dtype, m, n, k, batch));
    let (tiles_m, tiles_n) = (m.div_ceil(tiling.height()), n.div_ceil(tiling.width()));
    let groups = tiles_m as u64 * tiles_n as u64 * batch as u64 * split.slices as u64;
    if groups == 0 {
        return Ok(vec![]);
    }
    let operands = [0, 1, if split.slices > 1 { 3 } else { 2 }];
    let bound = operands.map(|operand| segments[operand as usize]);
    let key = format!("matmul {dtype} {tiling:?} {transpose_a} {transpose_b} {bound:?}");
    let wgsl = text(dtype, tiling, transpose_a, transpose_b, &bound);
    let grid = grid_of(groups, "a matrix product")?;
    let starts = (0..split.terms.min(k).max(1)).step_by(TERMS_MAX as usize);
    let sizes = [m, n, k, stride_a, stride_b];
    let mut passes: Vec<Pass> = starts
        .map(|start| {
            let mut params = vec![0, segment_shift];
            params.extend(sizes);
            params.extend([start, split.terms, tiles_m, tiles_n, batch, split.slices]);
            let (key, wgsl) = (key.clone(), wgsl.clone());
            Pass { key, wgsl, params, operands: operands.to_vec(), faults: false, grid }
        })
        .collect();
    if split.slices > 1 {
        passes.push(sum_of_partials(dtype, m * n * batch, split.slices, segments, segment_shift)?);
    }
    Ok(passes)
}

fn text(dtype: DType, tiling: Tiling, transpose_a: bool, transpose_b: bool, segments: &[u8]) -> String {
    let (ty, zero, depth) = (storage(dtype), zero(dtype), tiling.depth);
    let (height, width) = (tiling.height(), tiling.width());
    let mut module = Module::new();
    for (name, segments) in ["a", "b", "result"].iter().zip(segments) {
        module.operand(name, ty, *segments);
    }
    for (name, edge) in [("a", height), ("b", width)] {
        module.add(&format!("var<workgroup> tile_{name}: array<{ty}, {}>;\n", edge * depth));
    }
    let mut main = String::new();
    let names = ["m", "n", "k", "stride_a", "stride_b", "start", "terms", "tiles_m", "tiles_n", "batch", "slices"];
    for (offset, name) in names.iter().enumerate() {
        let _ = writeln!(main, "    let {name} = params[{}];", OWN_WORDS + offset);
    }
    let _ = write!(
        main,
        "    let tiles = tiles_m * tiles_n;
    let slice = index / (tiles * batch);
    let page = index / tiles % batch;
    let row0 = (index % tiles_m) * {height}u;
    let column0 = (index / tiles_m % tiles_n) * {width}u;
    let row = row0 + lid % {across}u;
    let column = column0 + lid / {across}u;
    let pages = (slice * batch + page) * m * n;
    // The last row of the grid may reach past the last tile: such workgroups load zeros and store nothing.
    let live = slice < slices;
    let rows = select(0u, m, live);
    let columns = select(0u, n, live);
    let first = select(0u, min(slice * terms + start, k), live);
    let last = select(0u, min(min(start + {TERMS_MAX}u, terms) + slice * terms, k), live);
",
        across = tiling.across
    );
    main.push_str(&accumulators(tiling, ty, zero));
    main.push_str(&format!("    for (var base = first; base < last; base += {depth}u) {{\n"));
    for (name, line_first, transposed) in [("a", true, transpose_a), ("b", false, transpose_b)] {
        let edge = if line_first { height } else { width };
        main.push_str(&fill_tile(name, edge, depth, line_first, transposed, zero));
    }
    main.push_str("        workgroupBarrier();\n");
    main.push_str(&multiply(tiling, ty, zero));
    main.push_str("        workgroupBarrier();\n");
    main.push_str(&carry(tiling, zero));
    main.push_str("    }\n");
    main.push_str(&results(tiling));
    module.finish(&main)
}

/// The elements of an invocation's block.
fn pairs(tiling: Tiling) -> impl Iterator<Item = (u32, u32)> {
    (0..tiling.rows).flat_map(move |r| (0..tiling.columns).map(move |c| (r, c)))
}

/// The sums of an invocation's block, on each level above the lowest.
fn accumulators(tiling: Tiling, ty: &str, zero: &str) -> String {
    let mut text = String::new();
    for (level, _) in LEVELS {
        for (r, c) in pairs(tiling) {
            let _ = writeln!(text, "    var {level}{r}_{c}: {ty} = {zero};");
        }
    }
    text
}

/// Loads a tile of an operand; neighbouring invocations load neighbours in memory. `line` counts rows of a or columns
/// of b; `term` counts k.
fn fill_tile(name: &str, edge: u32, depth: u32, line_first: bool, transposed: bool, zero: &str) -> String {
    let line_is_fast = line_first != transposed;
    let (start, limit) = if line_first { ("row0", "rows") } else { ("column0", "columns") };
    let stored = if line_first { "m" } else { "n" };
    let place = if line_is_fast { format!("at + {stored} * term") } else { "term + k * at".to_string() };
    let elements = edge * depth;
    let mut text = String::new();
    for part in 0..elements.div_ceil(256) {
        let e = format!("(lid + {}u)", 256 * part);
        let (line, term) = if line_is_fast {
            (format!("{e} % {edge}u"), format!("{e} / {edge}u"))
        } else {
            (format!("{e} / {depth}u"), format!("{e} % {depth}u"))
        };
        let open = if elements < 256 { format!("if (lid < {elements}u) ") } else { String::new() };
        let _ = write!(
            text,
            "        {open}{{
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
    text
}

/// Adds the products of a tile's terms, `RUN` at a time, to the lowest of the levels.
fn multiply(tiling: Tiling, ty: &str, zero: &str) -> String {
    let (height, width, across) = (tiling.height(), tiling.width(), tiling.across);
    let lowest = LEVELS[0].0;
    let mut text = format!("        for (var run = 0u; run < {}u; run += {RUN}u) {{\n", tiling.depth);
    for (r, c) in pairs(tiling) {
        let _ = writeln!(text, "            var c{r}_{c}: {ty} = {zero};");
    }
    let _ = writeln!(text, "            for (var depth = run; depth < run + {RUN}u; depth++) {{");
    for r in 0..tiling.rows {
        let _ =
            writeln!(text, "                let a{r} = tile_a[depth * {height}u + lid % {across}u + {}u];", across * r);
    }
    for c in 0..tiling.columns {
        let _ = writeln!(
            text,
            "                let b{c} = tile_b[depth * {width}u + lid / {across}u + {}u];",
            256 / across * c
        );
    }
    for (r, c) in pairs(tiling) {
        let _ = writeln!(text, "                c{r}_{c} = c{r}_{c} + a{r} * b{c};");
    }
    text.push_str("            }\n");
    for (r, c) in pairs(tiling) {
        let _ = writeln!(text, "            {lowest}{r}_{c} = {lowest}{r}_{c} + c{r}_{c};");
    }
    text.push_str("        }\n");
    text
}

/// Sums that have taken their number of terms go to the next level.
fn carry(tiling: Tiling, zero: &str) -> String {
    let mut text = format!("        let done = base - first + {}u;\n", tiling.depth);
    for pair in LEVELS.windows(2) {
        let ((from, terms), (to, _)) = (pair[0], pair[1]);
        let _ = writeln!(text, "        if (done % {terms}u == 0u) {{");
        for (r, c) in pairs(tiling) {
            let _ = writeln!(text, "            {to}{r}_{c} = {to}{r}_{c} + {from}{r}_{c}; {from}{r}_{c} = {zero};");
        }
        text.push_str("        }\n");
    }
    text
}

/// Stores the sums, the least of them first added to one another; added to what an earlier pass left.
fn results(tiling: Tiling) -> String {
    let (rows, columns) = (tiling.across, 256 / tiling.across);
    let mut text = String::new();
    for (r, c) in pairs(tiling) {
        let sum = LEVELS
            .iter()
            .map(|(level, _)| format!("{level}{r}_{c}"))
            .reduce(|sum, level| format!("({level} + {sum})"))
            .unwrap_or_default();
        let (di, dj) = (rows * r, columns * c);
        let _ = write!(
            text,
            "    if (row + {di}u < rows && column + {dj}u < columns) {{
        let place = pages + row + {di}u + m * (column + {dj}u);
        var sum = {sum};
        if (start > 0u) {{ sum = load_result(place) + sum; }}
        store_result(place, sum);
    }}
"
        );
    }
    text
}

/// The pass that adds the partial results of each element: several lanes an element, whose sums are added as a tree.
fn sum_of_partials(
    dtype: DType,
    outputs: u32,
    slices: u32,
    segments: &[u8],
    segment_shift: u32,
) -> Result<Pass, Error> {
    let lanes = slices.div_ceil(PARTIALS_A_LANE).next_power_of_two().min(256);
    let operands = [3, 2];
    let bound = operands.map(|operand| segments[operand as usize]);
    let (ty, zero) = (storage(dtype), zero(dtype));
    let mut module = Module::new();
    module.operand("partial", ty, bound[0]);
    module.operand("result", ty, bound[1]);
    module.add(&format!("var<workgroup> sums: array<{ty}, 256>;\n"));
    let main = format!(
        "    let outputs = params[{OWN_WORDS}];
    let slices = params[{}];
    let lanes = params[{}];
    // Neighbouring invocations take neighbouring outputs, which are neighbours in memory.
    let stride = 256u / lanes;
    let lane = lid / stride;
    let at = index * stride + lid % stride;
    let live = at < outputs;
    var sum: {ty} = {zero};
    for (var slice = lane; slice < select(0u, slices, live); slice += lanes) {{
        sum = sum + load_partial(slice * outputs + at);
    }}
    sums[lid] = sum;
    for (var half = lanes >> 1u; half > 0u; half = half >> 1u) {{
        workgroupBarrier();
        if (lane < half) {{ sums[lid] = sums[lid] + sums[lid + half * stride]; }}
    }}
    if (live && lane == 0u) {{ store_result(at, sums[lid]); }}
",
        OWN_WORDS + 1,
        OWN_WORDS + 2
    );
    Ok(Pass {
        key: format!("sum of partial products {dtype} {bound:?}"),
        wgsl: module.finish(&main),
        params: vec![0, segment_shift, outputs, slices, lanes],
        operands: operands.to_vec(),
        faults: false,
        grid: grid_of(outputs.div_ceil(256 / lanes) as u64, "a matrix product")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::matmul::cases::{self, Case};
    use crate::kernels::wgsl::harness::{floats, floats64, gpu, sample, words, words64};
    use crate::rounds::rounds;

    fn case(m: usize, n: usize, k: usize) -> Case {
        Case { m, n, k, batch: 1, transpose_a: false, transpose_b: false }
    }

    /// A product of doubles, in storage order, as the GPU computes it of elements of a dtype.
    fn product(library: &Library, dtype: DType, a: &[f64], b: &[f64]) -> Option<Vec<f64>> {
        let gpu = gpu()?;
        let Library::MatMul { m, n, batch, .. } = *library else { return None };
        let wide = dtype.is_wide();
        if wide && !gpu.target.f64 {
            return None;
        }
        let encode =
            |v: &[f64]| if wide { words64(v) } else { words(&v.iter().map(|&x| x as f32).collect::<Vec<_>>()) };
        let outs = (m * n * batch) as usize * if wide { 2 } else { 1 };
        let scratch = library.scratch_words().max(1) as usize;
        let segments = [1, 1, 1, 1];
        let passes = passes(library, &segments, 30).unwrap();
        let after = gpu.passes(&passes, &segments, &[encode(a), encode(b), vec![9; outs], vec![7; scratch]]);
        Some(if wide { floats64(&after[2]) } else { floats(&after[2]).iter().map(|&x| x as f64).collect() })
    }

    fn naive(case: Case, shared_b: bool, a: &[f64], b: &[f64]) -> Vec<f64> {
        let Case { m, n, k, batch, transpose_a, transpose_b } = case;
        let element = |at: usize| {
            let (i, j, page) = (at % m, at / m % n, at / (m * n));
            let term = |p: usize| {
                let x = a[page * m * k + if transpose_a { p + k * i } else { i + m * p }];
                let y = b[if shared_b { 0 } else { page * k * n } + if transpose_b { j + n * p } else { p + k * j }];
                x * y
            };
            (0..k).map(term).sum()
        };
        (0..m * n * batch).map(element).collect()
    }

    fn small(count: usize) -> Vec<f64> {
        sample(count).iter().map(|v| (v / 10.0).trunc() as f64).collect()
    }

    #[test]
    fn products_of_every_edge_and_transpose_equal_the_naive_ones() {
        let mut all = vec![case(1, 1, 1), case(64, 64, 16), case(65, 63, 17), case(3, 130, 5), case(200, 1, 33)];
        for (transpose_a, transpose_b) in [(true, false), (false, true), (true, true)] {
            all.push(Case { transpose_a, transpose_b, batch: 2, ..case(70, 20, 35) });
        }
        all.push(case(4, 4, 0));
        all.push(case(2, 3, TERMS_MAX as usize + 100));
        all.push(Case { batch: 3, ..case(5, 6, 7) });
        for case in all {
            for shared_b in [false, true] {
                let a = small(case.m * case.k * case.batch);
                let b = small(case.k * case.n * if shared_b { 1 } else { case.batch });
                for dtype in [DType::F32, DType::F64] {
                    let mut library = case.library(dtype);
                    if let Library::MatMul { stride_b, .. } = &mut library
                        && shared_b
                    {
                        *stride_b = 0;
                    }
                    let Some(got) = product(&library, dtype, &a, &b) else { continue };
                    assert_eq!(got, naive(case, shared_b, &a, &b), "{dtype} {case:?}");
                }
            }
        }
    }

    #[test]
    fn products_of_any_length_and_shape_hold_their_bound() {
        for (number, case) in cases::shapes(20_000).into_iter().enumerate() {
            for (at, kind) in cases::kinds(number) {
                // Doubles take the same way, and longer on a software device.
                let dtypes = [(DType::F32, f32::EPSILON as f64), (DType::F64, f64::EPSILON)];
                for (dtype, eps) in dtypes.into_iter().take(1 + at % 2) {
                    let round = |x: f64| if dtype.is_wide() { x } else { x as f32 as f64 };
                    let (a, b) = cases::operands(case, kind, eps / 2.0, round);
                    let Some(got) = product(&case.library(dtype), dtype, &a, &b) else { continue };
                    let worst = cases::worst(case, &a, &b, &got, eps);
                    assert!(worst <= 1.0, "{dtype}, {kind}, {case:?}: {worst} of the bound");
                }
            }
        }
    }

    #[test]
    fn a_slice_of_several_passes_holds_the_bound() {
        if !rounds(false, true) {
            return;
        }
        // So many tiles that the terms are not cut for the sake of workgroups.
        let case = Case { transpose_a: true, ..case(3, 3, TERMS_MAX as usize + 70) };
        let mut library = case.library(DType::F32);
        if let Library::MatMul { batch, stride_a, stride_b, .. } = &mut library {
            (*batch, *stride_a, *stride_b) = (260, 0, 0);
        }
        let (a, b) = cases::operands(case, "tenths", 0.0, |x| x as f32 as f64);
        let Some(got) = product(&library, DType::F32, &a, &b) else { return };
        let page = 9;
        assert!(got.chunks(page).all(|other| other == &got[..page]));
        let worst = cases::worst(case, &a, &b, &got[..page], f32::EPSILON as f64);
        assert!(worst <= 1.0, "{worst} of the bound");
    }

    #[test]
    fn operands_and_partial_results_may_lie_in_segments() {
        let Some(gpu) = gpu() else { return };
        let case = case(30, 20, 12);
        let (a, b) = (small(360), small(240));
        let single = |v: &[f64]| v.iter().map(|&x| x as f32).collect::<Vec<_>>();
        let segments = [6, 4, 10, 1];
        let passes = passes(&case.library(DType::F32), &segments, 6).unwrap();
        let mut buffers: Vec<Vec<u32>> = single(&a).chunks(64).chain(single(&b).chunks(64)).map(words).collect();
        buffers.extend((0..11).map(|_| vec![0; 64]));
        let after = gpu.passes(&passes, &segments, &buffers);
        assert_eq!(floats(&after[10..20].concat())[..600], single(&naive(case, false, &a, &b)));

        let case = Case { m: 3, n: 2, k: 5000, batch: 1, transpose_a: false, transpose_b: false };
        let (a, b) = (small(15_000), small(10_000));
        let library = case.library(DType::F32);
        let scratch = library.scratch_words().div_ceil(16) as u8;
        let segments = [1, 1, 1, scratch];
        assert!(scratch > 1);
        let passes = super::passes(&library, &segments, 4).unwrap();
        let mut buffers = vec![words(&single(&a)), words(&single(&b)), vec![0; 6]];
        buffers.extend((0..scratch).map(|_| vec![0; 16]));
        let after = gpu.passes(&passes, &segments, &buffers);
        assert_eq!(floats(&after[2]), single(&naive(case, false, &a, &b)));
    }

    #[test]
    fn nothing_to_compute_is_no_pass() {
        assert!(passes(&case(0, 3, 4).library(DType::F32), &[1, 1, 1], 30).unwrap().is_empty());
    }
}

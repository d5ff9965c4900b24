//! The matrix product on a GPU: by tiles of both factors ([`tiles`]), or with one factor read once ([`thin`]).
//!
//! In: sizes and segment counts. Out: a pass over slices of the terms (`Split`). If there are several slices, their
//! sums are partial results in the scratch operand, and a second pass adds them. The parameters of the first pass, from
//! `OWN_WORDS` on, are `PARAMS`; those of the second are outputs, slices, and lanes of an output.
//!
//! Must hold: MATMUL-1. The bound does not depend on the rounding error of a difference (as compensated sums do),
//! because a driver's compiler may rearrange it. Terms beyond the last one are zeros, in both factors.

mod thin;
mod tiles;

use super::split::{RUN, Split, Way};
use crate::error::Error;
use crate::graph::DType;
use crate::kernels::library::{Library, Pass};
use crate::kernels::wgsl::pieces::{Module, OWN_WORDS, grid_of};
use crate::kernels::wgsl::types::{storage, zero};

/// Partial results that a lane of the last pass adds one after the other.
const PARTIALS_A_LANE: u32 = 4;
/// The parameters of the pass over terms, from `OWN_WORDS` on.
const PARAMS: [&str; 10] = ["m", "n", "k", "stride_a", "stride_b", "terms", "tiles_m", "tiles_n", "batch", "slices"];

/// The passes of a matrix product whose operands, `[a, b, out]` or, with several slices, `[a, b, out, partial]`, have
/// these numbers of segments.
///
/// # Errors
/// `ErrorKind::Unsupported` if the result has more tiles than a grid holds.
pub fn passes(library: &Library, segments: &[u8], segment_shift: u32) -> Result<Vec<Pass>, Error> {
    let Library::MatMul { dtype, m, n, k, batch, .. } = *library else {
        panic!("LIB-1: {} is no matrix product", library.name());
    };
    let (way, split) = (Way::of(dtype, m, n, batch), Split::of(dtype, m, n, k, batch));
    passes_of(library, way, split, segments, segment_shift)
}

fn passes_of(
    library: &Library,
    way: Way,
    split: Split,
    segments: &[u8],
    segment_shift: u32,
) -> Result<Vec<Pass>, Error> {
    let Library::MatMul { dtype, m, n, k, batch, transpose_a, transpose_b, stride_a, stride_b } = *library else {
        return Ok(vec![]);
    };
    let (tiles_m, tiles_n) = (m.div_ceil(way.height()), n.div_ceil(way.width()));
    let groups = tiles_m as u64 * tiles_n as u64 * batch as u64 * split.slices as u64;
    if groups == 0 {
        return Ok(vec![]);
    }
    let operands = [0, 1, if split.slices > 1 { 3 } else { 2 }];
    let bound = operands.map(|operand| segments[operand as usize]);
    let layout = format!("{dtype} {transpose_a} {transpose_b} {bound:?}");
    let (key, wgsl) = match way {
        Way::Tiles(tiling) => {
            let vectors = tiles::Vectors::of(dtype, tiling, library);
            let wgsl = tiles::text(dtype, tiling, transpose_a, transpose_b, vectors, &bound);
            (format!("matmul {tiling:?} {vectors:?} {layout}"), wgsl)
        }
        Way::Thin(thin) => {
            let vectors = thin::Vectors::of(thin, library);
            let wgsl = thin::text(dtype, thin, transpose_a, transpose_b, vectors, &bound);
            (format!("matmul {thin:?} {vectors:?} {layout}"), wgsl)
        }
    };
    let mut params = vec![0, segment_shift];
    params.extend([m, n, k, stride_a, stride_b, split.terms, tiles_m, tiles_n, batch, split.slices]);
    let grid = grid_of(groups, "a matrix product")?;
    let mut passes = vec![Pass { key, wgsl, params, operands: operands.to_vec(), faults: false, grid }];
    if split.slices > 1 {
        passes.push(sum_of_partials(dtype, m * n * batch, split.slices, segments, segment_shift)?);
    }
    Ok(passes)
}

/// Statements that name the terms of a slice, and the rows and columns that are stored.
const SLICE: &str =
    "    // The last row of the grid may reach past the last tile: such workgroups load zeros and store nothing.
    let live = slice < slices;
    let rows = select(0u, m, live);
    let columns = select(0u, n, live);
    // The last slice may reach past what 32 bits hold, the terms that it has do not.
    let first = select(0u, min(slice * terms, k), live);
    let last = select(0u, first + min(terms, k - first), live);
";

/// The pass that adds the partial results of each element. An element has several lanes, whose sums are added as a
/// tree.
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
    let end = select(0u, slices, live);
    var sum: {ty} = {zero};
    for (var start = lane; start < end; start += {RUN}u * lanes) {{
        var run: {ty} = {zero};
        for (var slice = start; slice < min(end, start + {RUN}u * lanes); slice += lanes) {{
            run = run + load_partial(slice * outputs + at);
        }}
        sum = sum + run;
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
    use crate::kernels::matmul::split::{TERMS_MAX, Tiling};
    use crate::kernels::wgsl::harness::{floats, floats64, gpu, sample, words, words64};

    fn case(m: usize, n: usize, k: usize) -> Case {
        Case { m, n, k, batch: 1, transpose_a: false, transpose_b: false }
    }

    /// A product that the GPU computes with elements of a dtype, as f64 in storage order.
    fn product(library: &Library, dtype: DType, a: &[f64], b: &[f64]) -> Option<Vec<f64>> {
        let Library::MatMul { m, n, batch, .. } = *library else { return None };
        product_by(Way::of(dtype, m, n, batch), library, dtype, a, b)
    }

    /// As `product`, computed in a given way.
    fn product_by(way: Way, library: &Library, dtype: DType, a: &[f64], b: &[f64]) -> Option<Vec<f64>> {
        let gpu = gpu()?;
        let Library::MatMul { m, n, k, batch, .. } = *library else { return None };
        let wide = dtype.is_wide();
        if wide && !gpu.target.f64 {
            return None;
        }
        let encode =
            |v: &[f64]| if wide { words64(v) } else { words(&v.iter().map(|&x| x as f32).collect::<Vec<_>>()) };
        let outs = (m * n * batch) as usize * if wide { 2 } else { 1 };
        let scratch = library.scratch_words().unwrap().max(1) as usize;
        let segments = [1, 1, 1, 1];
        let passes = passes_of(library, way, Split::of(dtype, m, n, k, batch), &segments, 30).unwrap();
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
        // This result has two bands of tiles.
        all.push(case(610, 70, 5));
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
                // Products of f64 take the same way, but are slower on a software device.
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
    fn a_slice_whose_sums_are_added_in_memory_holds_the_bound() {
        let Some(gpu) = gpu() else { return };
        let single = |v: &[f64]| words(&v.iter().map(|&x| x as f32).collect::<Vec<_>>());
        // As where so many tiles fill a GPU that the terms are not cut. The last sum has a term, or fills no run.
        for way in [Way::of(DType::F32, 5, 6, 1), Way::Tiles(Tiling::OF_16)] {
            for rest in [1, 70, TERMS_MAX as usize + 33] {
                let case = Case { transpose_a: true, ..case(5, 6, TERMS_MAX as usize + rest) };
                let (a, b) = cases::operands(case, "tenths", 0.0, |x| x as f32 as f64);
                let split = Split { slices: 1, terms: 2 * TERMS_MAX + 128 };
                let segments = [1, 1, 1, 1];
                let passes = passes_of(&case.library(DType::F32), way, split, &segments, 30).unwrap();
                assert_eq!(passes.len(), 1);
                let after = gpu.passes(&passes, &segments, &[single(&a), single(&b), vec![9; 30], vec![7]]);
                let got: Vec<f64> = floats(&after[2]).iter().map(|&x| x as f64).collect();
                let worst = cases::worst(case, &a, &b, &got, f32::EPSILON as f64);
                assert!(worst <= 1.0, "{way:?}, {rest} terms beside {TERMS_MAX}: {worst} of the bound");
            }
        }
    }

    #[test]
    fn the_bits_of_a_product_are_the_same_however_its_operands_lie() {
        for (m, n, k) in [(50, 1, 1500), (2, 90, 700), (3, 4, 5000), (1, 1, 900), (37, 29, 130), (150, 140, 40)] {
            for dtype in [DType::F32, DType::F64] {
                let of = |transpose_a: bool, transpose_b: bool| {
                    let case = Case { transpose_a, transpose_b, ..case(m, n, k) };
                    let (a, b) = cases::operands(case, "mixed", 0.0, |x| x as f32 as f64);
                    product(&case.library(dtype), dtype, &a, &b)
                };
                let Some(bits) = of(false, false) else { continue };
                for (transpose_a, transpose_b) in [(true, false), (false, true), (true, true)] {
                    assert_eq!(of(transpose_a, transpose_b).as_ref(), Some(&bits), "{dtype} {m} x {k} x {n}");
                }
            }
        }
    }

    #[test]
    fn all_tilings_add_in_the_same_order() {
        let layouts = [(false, false), (true, false), (false, true), (true, true)];
        for (at, (dtype, tiling)) in Tiling::all().into_iter().enumerate() {
            // The terms are not cut, so that several sums are added in memory, and the last run is not full. The sizes
            // are read with and without vectors. Large tiles of operands that are not transposed are loaded earlier.
            for (m, n, k, layout) in [(75, 70, 600 + at, at + 1), (76, 72, 600, at), (76, 72, 600, 0)] {
                let (transpose_a, transpose_b) = layouts[layout % 4];
                let case = Case { transpose_a, transpose_b, batch: 2, ..case(m, n, k) };
                let library = case.library(dtype);
                let (a, b) = cases::operands(case, "mixed", 0.0, |x| x as f32 as f64);
                let Some(expected) = product_by(Way::Tiles(Tiling::OF_16), &library, dtype, &a, &b) else { continue };
                let got = product_by(Way::Tiles(tiling), &library, dtype, &a, &b);
                assert_eq!(got.as_ref(), Some(&expected), "{dtype} {tiling:?} {case:?}");
            }
        }
    }

    #[test]
    fn nan_and_infinity_stay_in_their_row_and_column() {
        for (m, n, k) in [(70, 1, 300), (1, 70, 300), (3, 3, 50), (21, 18, 35), (130, 70, 9)] {
            let case = case(m, n, k);
            let (mut a, mut b) = (small(m * k), small(k * n));
            a[m * (k - 1) + m - 1] = f64::NAN;
            b[0] = f64::INFINITY;
            let Some(got) = product(&case.library(DType::F32), DType::F32, &a, &b) else { return };
            for (at, (got, expected)) in got.iter().zip(naive(case, false, &a, &b)).enumerate() {
                let same = *got == expected || got.is_nan() && expected.is_nan();
                assert!(same, "element {at} of {m} x {k} x {n}: {got}, {expected}");
            }
        }
    }

    #[test]
    fn operands_and_partial_results_may_lie_in_segments() {
        let Some(gpu) = gpu() else { return };
        let case = case(30, 20, 12);
        let (a, b) = (small(360), small(240));
        let single = |v: &[f64]| v.iter().map(|&x| x as f32).collect::<Vec<_>>();
        let segments = [6, 4, 10, 1];
        for (_, tiling) in Tiling::all().into_iter().filter(|(dtype, _)| *dtype == DType::F32) {
            let split = Split { slices: 1, terms: 64 };
            let passes = passes_of(&case.library(DType::F32), Way::Tiles(tiling), split, &segments, 6).unwrap();
            let mut buffers: Vec<Vec<u32>> = single(&a).chunks(64).chain(single(&b).chunks(64)).map(words).collect();
            buffers.extend((0..11).map(|_| vec![0; 64]));
            let after = gpu.passes(&passes, &segments, &buffers);
            let got = &floats(&after[10..20].concat())[..600];
            assert_eq!(got, single(&naive(case, false, &a, &b)), "{tiling:?}");
        }

        let case = Case { m: 3, n: 2, k: 20_000, batch: 1, transpose_a: false, transpose_b: false };
        let (a, b) = (small(60_000), small(40_000));
        let library = case.library(DType::F32);
        let scratch = library.scratch_words().unwrap().div_ceil(16) as u8;
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

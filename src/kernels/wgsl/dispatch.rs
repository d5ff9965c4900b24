//! A launch of a generated kernel over a tile, as dispatches: header words and grids.
//!
//! In: a kernel, its sizes, a tile. Out: for each dispatch, the words of `params[0..16]` and the number of workgroups.
//!
//! Must hold:
//! - GRID-1: a tile of a full reduction (one output) begins at a multiple of `CHUNK` and ends at one or at the end.
//! - GRID-3: a grid has at most 65,535 rows, which is enough for as many workgroups as a 32-bit number counts.
//! - GRID-2: how a reduction is cut depends on its sizes alone, never on tiles or segments.

use crate::kernels::ir::{
    Form, Geometry, HEADER_WORDS, Kernel, ReducePlan, ScanPlan, Tile, WORKGROUP, header, reduce_plan, scan_plan,
};

/// Workgroups along one axis of a grid.
const GRID_MAX: u32 = 65_535;

/// One dispatch of a generated kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelDispatch {
    /// The words of `params[0..16]`. The launch's own words follow them.
    pub header: [u32; HEADER_WORDS as usize],
    /// Workgroups along each axis, at least 1.
    pub grid: [u32; 3],
}

/// log2 of the lanes that fold a reduction's partial results, so that each lane gets about four.
fn finish_lanes_log2(chunks: u32) -> u32 {
    chunks.div_ceil(4).next_power_of_two().trailing_zeros().min(8)
}

/// How the reduction or scan of a launch is cut. For other forms, a plan with one chunk.
fn plan_of(kernel: &Kernel, geometry: &Geometry) -> ReducePlan {
    match (kernel.form, geometry) {
        (Form::Reduce { inner_fast }, &Geometry::Reduce { outer, inner }) => {
            let plan = reduce_plan(outer, inner, inner_fast);
            // A kernel without scratch has no place for partial results.
            if kernel.scratch.is_some() { plan } else { ReducePlan { chunk: inner, chunks: 1, ..plan } }
        }
        (Form::Scan { inner_fast }, &Geometry::Scan { outer, inner, .. }) if kernel.scratch.is_some() => {
            let ScanPlan { chunk, chunks, lanes_log2 } = scan_plan(outer, inner, inner_fast);
            ReducePlan { chunk, chunks, lanes_log2 }
        }
        (Form::Line(lines), &Geometry::Line { inner, .. }) => {
            let lanes = inner.div_ceil(kernel.width() * lines.rounds).next_power_of_two();
            ReducePlan { chunk: inner, chunks: 1, lanes_log2: lanes.ilog2() }
        }
        _ => ReducePlan { chunk: 0, chunks: 1, lanes_log2: 0 },
    }
}

/// The header words of a dispatch. `begin..end` are flat elements of a `Map`, outputs of a `Reduce`, lines of a
/// `Scan` or a `Line`; `chunks` are the chunks that phase 1 of a reduction folds.
pub fn header_words(
    kernel: &Kernel,
    geometry: &Geometry,
    (begin, end): (u32, u32),
    chunks: (u32, u32),
    phase: u32,
    bases: [u32; 2],
    segment_shift: u32,
) -> [u32; HEADER_WORDS as usize] {
    let plan = plan_of(kernel, geometry);
    let mut words = [0; HEADER_WORDS as usize];
    words[header::BEGIN] = begin;
    words[header::END] = end;
    [words[header::BASE], words[header::BASE_WIDE]] = bases;
    words[header::SEGMENT_SHIFT] = segment_shift;
    words[header::CHUNK] = plan.chunk;
    words[header::CHUNKS] = plan.chunks;
    words[header::PHASE] = phase;
    let finishes = phase == 2 && matches!(geometry, Geometry::Reduce { .. });
    words[header::LANES_LOG2] = if finishes { finish_lanes_log2(plan.chunks) } else { plan.lanes_log2 };
    words[header::CHUNK_BEGIN] = chunks.0;
    words[header::CHUNK_END] = chunks.1;
    match *geometry {
        Geometry::Map { .. } => {}
        Geometry::Reduce { outer, inner } | Geometry::Line { outer, inner } => {
            words[header::INNER] = inner;
            words[header::OUTER] = outer;
        }
        Geometry::Scan { outer, inner, reverse } => {
            words[header::INNER] = inner;
            words[header::OUTER] = outer;
            words[header::REVERSE] = reverse as u32;
        }
    }
    words
}

/// Workgroups of the dispatch with these header words.
pub fn grid(kernel: &Kernel, words: &[u32; HEADER_WORDS as usize]) -> [u32; 3] {
    let items = words[header::END] - words[header::BEGIN];
    let groups = match kernel.form {
        Form::Map => items.div_ceil(kernel.width()).div_ceil(WORKGROUP * kernel.rounds()),
        Form::Line(lines) => items.div_ceil(lines.workgroup >> words[header::LANES_LOG2]),
        Form::Scan { .. } => items.div_ceil(1 << words[header::LANES_LOG2]) * words[header::CHUNKS],
        Form::Reduce { .. } => {
            let chunks =
                if words[header::PHASE] == 1 { words[header::CHUNK_END] - words[header::CHUNK_BEGIN] } else { 1 };
            (items.div_ceil(kernel.outer_width()) * chunks).div_ceil(WORKGROUP >> words[header::LANES_LOG2])
        }
    };
    rows(groups).expect("GRID-3: fewer workgroups than elements of 32-bit indices fill")
}

/// The grid of so many workgroups, in rows of equal length: fewer idle ones than rows of 65,535 would leave. `None` if
/// there would be more than 65,535 rows.
pub(crate) fn rows(groups: u32) -> Option<[u32; 3]> {
    let rows = groups.div_ceil(GRID_MAX);
    (rows <= GRID_MAX).then(|| [groups.div_ceil(rows.max(1)), rows, 1])
}

/// The dispatches of a launch over a tile, in order. `tile.begin..tile.end` are flat elements of a `Map`, lines of
/// a `Scan` or a `Line`, outputs of a reduction to several, inner elements of a reduction to one.
pub fn dispatches(kernel: &Kernel, geometry: &Geometry, tile: Tile, segment_shift: u32) -> Vec<KernelDispatch> {
    let range = (tile.begin, tile.end);
    let dispatch = |range, chunks, phase| {
        let header = header_words(kernel, geometry, range, chunks, phase, [tile.base, tile.base_wide], segment_shift);
        KernelDispatch { header, grid: grid(kernel, &header) }
    };
    let empty = tile.begin >= tile.end;
    match *geometry {
        Geometry::Map { .. } | Geometry::Line { .. } => {
            if empty {
                vec![]
            } else {
                vec![dispatch(range, (0, 0), 0)]
            }
        }
        Geometry::Scan { inner, .. } => match plan_of(kernel, geometry).chunks {
            _ if empty || inner == 0 => vec![],
            1 if kernel.scratch.is_none() => vec![dispatch(range, (0, 0), 0)],
            1 => vec![dispatch(range, (0, 0), 2)],
            _ => vec![dispatch(range, (0, 0), 1), dispatch(range, (0, 0), 2)],
        },
        Geometry::Reduce { outer, inner } => {
            let plan = plan_of(kernel, geometry);
            if outer != 1 {
                return match (empty, plan.chunks) {
                    (true, _) => vec![],
                    (false, 1) => vec![dispatch(range, (0, 0), 0)],
                    (false, chunks) => vec![dispatch(range, (0, chunks), 1), dispatch(range, (0, 0), 2)],
                };
            }
            if plan.chunks == 1 {
                assert!(
                    tile.begin == 0 && tile.end >= inner,
                    "GRID-1: {tile:?} cuts the one chunk of {inner} elements"
                );
                return vec![dispatch((0, 1), (0, 0), 0)];
            }
            assert!(
                tile.begin.is_multiple_of(plan.chunk) && (tile.end == inner || tile.end.is_multiple_of(plan.chunk)),
                "GRID-1: {tile:?} cuts a chunk of {} elements",
                plan.chunk
            );
            let mut list = Vec::new();
            if !empty {
                list.push(dispatch((0, 1), (tile.begin / plan.chunk, tile.end.div_ceil(plan.chunk)), 1));
            }
            if tile.last {
                list.push(dispatch((0, 1), (0, 0), 2));
            }
            list
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::DType;
    use crate::kernels::ir::header::*;
    use crate::kernels::ir::{Access, Operand};

    fn kernel(form: Form) -> Kernel {
        let scratch = Operand { dtype: DType::U32, access: Access::Write, tiled: false, segments: 1 };
        let is_reduction = matches!(form, Form::Reduce { .. });
        Kernel {
            form,
            operands: if is_reduction { vec![scratch] } else { vec![] },
            scratch: is_reduction.then_some(0),
            faults: false,
            params: HEADER_WORDS,
            insts: vec![],
            stores: vec![],
            rolled: None,
        }
    }

    fn tile(begin: u32, end: u32, last: bool) -> Tile {
        Tile { begin, end, base: begin, base_wide: begin, last }
    }

    #[test]
    fn a_map_takes_one_dispatch_with_its_tile_in_the_header() {
        let all = dispatches(&kernel(Form::Map), &Geometry::Map { elements: 9000 }, tile(4096, 9000, true), 12);
        assert_eq!(all.len(), 1);
        let header = all[0].header;
        assert_eq!([header[BEGIN], header[END], header[BASE], header[SEGMENT_SHIFT]], [4096, 9000, 4096, 12]);
        // 1,226 groups of four elements, two for each invocation.
        assert_eq!(all[0].grid, [3, 1, 1]);
        assert!(dispatches(&kernel(Form::Map), &Geometry::Map { elements: 0 }, tile(0, 0, true), 12).is_empty());
    }

    #[test]
    fn a_grid_of_many_groups_has_equal_rows() {
        assert_eq!(rows(65_535), Some([65_535, 1, 1]));
        assert_eq!(rows(65_536), Some([32_768, 2, 1]));
        assert_eq!(rows(u32::MAX), None);
    }

    #[test]
    fn a_long_full_reduction_folds_chunks_and_finishes_with_the_last_tile() {
        let kernel = kernel(Form::Reduce { inner_fast: true });
        let geometry = Geometry::Reduce { outer: 1, inner: 20_000 };
        let plan = reduce_plan(1, 20_000, true);
        assert_eq!((plan.chunk, plan.chunks), (8192, 3));
        let first = dispatches(&kernel, &geometry, tile(0, 8192, false), 13);
        assert_eq!(first.len(), 1);
        let header = first[0].header;
        assert_eq!([header[PHASE], header[CHUNK_BEGIN], header[CHUNK_END], header[END]], [1, 0, 1, 1]);
        let last = dispatches(&kernel, &geometry, tile(8192, 20_000, true), 13);
        assert_eq!(last.len(), 2);
        let header = last[0].header;
        assert_eq!([header[PHASE], header[CHUNK_BEGIN], header[CHUNK_END], header[CHUNKS]], [1, 1, 3, 3]);
        assert_eq!([last[1].header[PHASE], last[1].header[LANES_LOG2]], [2, 0]);
        assert_eq!(last[1].grid, [1, 1, 1]);
    }

    #[test]
    fn lines_side_by_side_are_cut_until_a_large_gpu_is_busy_and_no_lane_is_long() {
        for (outer, inner) in [(64, 8_294_400), (16_384, 16_384), (2, 1 << 28), (700, 100_000), (1 << 27, 31)] {
            let ReducePlan { chunk, chunks, lanes_log2 } = reduce_plan(outer, inner, false);
            let invocations = (outer as u64).div_ceil(4) * chunks as u64 * (1 << lanes_log2);
            assert!(invocations >= 1 << 16, "{outer} by {inner}: {invocations}");
            assert!(chunk.min(inner) >> lanes_log2 <= 4096, "{outer} by {inner}: {chunk} over {lanes_log2}");
        }
        for (outer, inner) in [(2, 3), (5000, 3), (1000, 1000), (64, 4000), (1 << 20, 4000)] {
            assert_eq!(reduce_plan(outer, inner, false).chunks, 1, "{outer} by {inner}");
        }
    }

    #[test]
    fn nothing_reduced_still_yields_its_outputs_and_no_output_takes_no_dispatch() {
        let kernel = kernel(Form::Reduce { inner_fast: false });
        let all = dispatches(&kernel, &Geometry::Reduce { outer: 1, inner: 0 }, tile(0, 0, true), 30);
        assert_eq!((all.len(), all[0].header[PHASE], all[0].header[END]), (1, 0, 1));
        let all = dispatches(&kernel, &Geometry::Reduce { outer: 5, inner: 0 }, tile(0, 5, true), 30);
        assert_eq!((all.len(), all[0].header[END]), (1, 5));
        assert!(dispatches(&kernel, &Geometry::Reduce { outer: 0, inner: 7 }, tile(0, 0, true), 30).is_empty());
    }

    #[test]
    #[should_panic(expected = "GRID-1")]
    fn a_tile_that_cuts_a_chunk_is_a_bug() {
        let kernel = kernel(Form::Reduce { inner_fast: true });
        dispatches(&kernel, &Geometry::Reduce { outer: 1, inner: 20_000 }, tile(0, 4096, false), 12);
    }
}

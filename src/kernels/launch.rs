//! Launches of generated kernels: their sizes, the part that a dispatch covers, and how reductions and scans are cut
//! into chunks and lanes.
//!
//! In: extents. Out: [`ReducePlan`] and [`ScanPlan`]. Must hold: a cut is a function of the shape and of `inner_fast`
//! alone. So are, therefore, the order of additions and every bit of the result.

use super::ir::Lines;

/// The sizes of one launch of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Geometry {
    /// The sizes of a map.
    Map {
        /// Elements of the iteration space.
        elements: u32,
    },
    /// A reduction's sizes.
    Reduce {
        /// Kept elements.
        outer: u32,
        /// Reduced elements for each kept element.
        inner: u32,
    },
    /// A scan's sizes.
    Scan {
        /// Lines.
        outer: u32,
        /// Length of a line.
        inner: u32,
        /// Whether the scan runs from the end of a line.
        reverse: bool,
    },
    /// The sizes of a kernel that holds lines.
    Line {
        /// Lines.
        outer: u32,
        /// Length of a line, at least 1.
        inner: u32,
    },
}

/// The part of a launch's space that one dispatch covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// The first index of the tile: a flat element of a map, a line of a scan or of a kernel that holds lines, an
    /// output of a reduction to several, or an inner element of a reduction to one.
    pub begin: u32,
    /// One past the last index of the tile.
    pub end: u32,
    /// Flat index of the first element of the bound segment of tiled operands of 32 bits an element.
    pub base: u32,
    /// Flat index of the first element of the bound segment of tiled operands of 64 bits an element.
    pub base_wide: u32,
    /// Whether it is the last tile of its launch: a chunked reduction finishes here.
    pub last: bool,
}

/// How a reduction is cut. It is a function of the shape alone, and so are the bits of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReducePlan {
    /// Inner elements that a chunk folds: a power of two, at least 1,024.
    pub chunk: u32,
    /// Chunks of each output.
    pub chunks: u32,
    /// log2 of the invocations that share a chunk, at most 8 (one workgroup of 256).
    pub lanes_log2: u32,
}

/// Invocations of a workgroup of every generated kernel.
pub const WORKGROUP: u32 = 256;

/// How the lines of a scan are cut. It is a function of the shape alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanPlan {
    /// Elements of a chunk.
    pub chunk: u32,
    /// Chunks of a line.
    pub chunks: u32,
    /// [`COLUMN_LANES_LOG2`] if each invocation walks a line of its own, 0 if a workgroup walks a line together.
    pub lanes_log2: u32,
}

/// log2 of the lines that a workgroup of a scan walks if each of its invocations walks a line of its own.
pub const COLUMN_LANES_LOG2: u32 = WORKGROUP.ilog2();

/// How `outer` lines of `inner` elements each are cut. A line is cut into chunks if the lines alone don't fill a GPU.
/// Many lines along a slow dimension are walked by one invocation each.
pub fn scan_plan(outer: u32, inner: u32, inner_fast: bool) -> ScanPlan {
    const COLUMNS_MIN: u32 = 128;
    const COLUMN_CHUNK_MIN: u32 = 64;
    const COLUMN_CHUNKS_MAX: u32 = 256;
    const INVOCATIONS: u32 = 1 << 18;
    const LOOP_TURNS_MAX: u32 = 65_535;
    if !inner_fast && outer >= COLUMNS_MIN {
        let chunks = (INVOCATIONS / outer).min(COLUMN_CHUNKS_MAX).min(inner.div_ceil(COLUMN_CHUNK_MIN)).max(1);
        // Mesa's software device leaves a loop after `LOOP_TURNS_MAX` turns.
        let chunks = chunks.max(inner.div_ceil(LOOP_TURNS_MAX));
        let chunk = inner.div_ceil(chunks).max(1);
        return ScanPlan { chunk, chunks: inner.div_ceil(chunk).max(1), lanes_log2: COLUMN_LANES_LOG2 };
    }
    const CHUNK_MIN: u32 = 1 << 12;
    const CHUNKS_MAX: u32 = 4096;
    let chunks = inner.div_ceil(CHUNK_MIN).min(CHUNKS_MAX / outer.max(1)).max(1);
    let chunk = inner.div_ceil(chunks).max(1).next_multiple_of(WORKGROUP);
    ScanPlan { chunk, chunks: inner.div_ceil(chunk).max(1), lanes_log2: 0 }
}

/// Most elements of a line that each invocation of the largest workgroup holds, because their values take registers.
pub const LINE_SHARE_MAX: u32 = 16;

/// The most invocations that hold a line together.
pub const LINE_WORKGROUP_MAX: u32 = 1024;

/// How lines of `inner` elements are held by a kernel whose invocations take `width` elements at a time: workgroups
/// grow with the lines, so that a lane's share, and with it the kernel's text, stays short. If lines are short, an
/// invocation takes fewer elements, next to those of its neighbours. If lines are long, it takes more, because a
/// smaller workgroup waits less at its barriers (lines of 16,384 on an H100: softmax 1.04 ms with 32 elements an
/// invocation, 1.20 ms with 16).
pub fn line_plan(inner: u32, width: u32) -> Lines {
    const SHORT_MAX: u32 = 64;
    const SHARE_OF_SHORT: u32 = 4;
    const LONG_MIN: u32 = LINE_SHARE_MAX * WORKGROUP;
    const SHARE_OF_LONG: u32 = 32;
    let share = match inner {
        0..=SHORT_MAX => SHARE_OF_SHORT,
        _ if inner > LONG_MIN && width > 1 => SHARE_OF_LONG,
        _ => LINE_SHARE_MAX,
    };
    let workgroup = inner.div_ceil(share).next_power_of_two().max(WORKGROUP);
    Lines { workgroup, rounds: share / width, in_fours: width == 4 && inner.is_multiple_of(4) }
}

/// How a reduction of `outer` outputs over `inner` elements each is cut. A chunk gets enough lanes to have 16 elements
/// a lane. An output gets several chunks only if the outputs alone don't fill a GPU.
pub fn reduce_plan(outer: u32, inner: u32, inner_fast: bool) -> ReducePlan {
    const CHUNK_MIN: u32 = 1 << 13;
    const CHUNKS_MAX: u32 = 2048;
    const OUTPUTS_ENOUGH: u32 = 2048;
    if !inner_fast {
        return reduce_plan_side_by_side(outer, inner);
    }
    let mut chunks = 1;
    if inner > CHUNK_MIN && outer < OUTPUTS_ENOUGH {
        chunks = (inner.div_ceil(CHUNK_MIN)).min((CHUNKS_MAX / outer.max(1)).max(1));
    }
    // The chunk is a power of two, so that the segments of a long value hold whole chunks.
    let chunk = inner.div_ceil(chunks).max(1024).next_power_of_two();
    let chunks = inner.div_ceil(chunk).max(1);
    let work = chunk.min(inner.max(1));
    let lanes_log2 = (work.div_ceil(16)).next_power_of_two().trailing_zeros().min(8);
    ReducePlan { chunk, chunks, lanes_log2 }
}

/// The cut of a reduction whose neighbouring outputs are neighbours in memory. An invocation takes four outputs. A
/// workgroup takes 32 outputs side by side, or all if there are fewer, and its lanes lie along the reduced elements.
/// Lanes and chunks are added until [`INVOCATIONS_ENOUGH`] invocations share the work. A lane takes at most 512
/// elements, unless that would need more than `CHUNKS_MAX` chunks.
fn reduce_plan_side_by_side(outer: u32, inner: u32) -> ReducePlan {
    /// Enough invocations to keep the memory of a large GPU busy: a few times as many as are resident at a time.
    const INVOCATIONS_ENOUGH: u32 = 1 << 18;
    const GROUPS_SIDE_BY_SIDE: u32 = 8;
    const LANE_MIN: u32 = 8;
    const LANE_MAX: u32 = 512;
    const CHUNK_MIN: u32 = 1 << 12;
    const CHUNKS_MAX: u32 = 4096;
    let groups = outer.div_ceil(4).max(1);
    let lanes_max = WORKGROUP / groups.min(GROUPS_SIDE_BY_SIDE).next_power_of_two();
    let wanted = INVOCATIONS_ENOUGH.div_ceil(groups).max(inner.div_ceil(LANE_MAX));
    let lanes = wanted.min(inner.div_ceil(LANE_MIN)).clamp(1, lanes_max).next_power_of_two().min(lanes_max);
    let filled = INVOCATIONS_ENOUGH.div_ceil(groups.saturating_mul(lanes)).min(inner / CHUNK_MIN);
    let chunks = filled.max(inner.div_ceil(lanes * LANE_MAX)).clamp(1, CHUNKS_MAX);
    let chunk = inner.div_ceil(chunks).max(1024).next_power_of_two();
    ReducePlan { chunk, chunks: inner.div_ceil(chunk).max(1), lanes_log2: lanes.trailing_zeros() }
}

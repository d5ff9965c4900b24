//! Runs kernels of form `Map` whose loads run across the flat index: transposes, and the ops that are fused with them.
//!
//! In: planes of `extent` rows, each of which is `stride` neighbours in the flat index, and operands whose neighbours
//! in memory lie across the rows. A task takes tiles of a plane. It copies the elements that the loads read there,
//! whole cache lines at a time, into the rows of a buffer that stays in a core's cache. Then it evaluates the tile row
//! by row.
//!
//! Must hold: the indices of such loads depend on the flat index and on parameters alone, differ from lane to lane, and
//! grow by one from row to row.

use super::frame::{BLOCK, CacheLine, Frame, Place, Scene, Value, lines};
use super::operand::HostOperand;
use super::pool::Pool;
use super::stage::{NONE, Stage};
use super::transpose::{Word, transpose};
use crate::kernels::ir::{InstOp, Kernel, Run, Val};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most elements of a tile along the flat index. Each row of a tile is a block of its own.
const LANES: usize = 256;
/// The same limit for kernels that only copy elements.
const LANES_COPIED: usize = 64;
/// The most rows of a tile. The loads read this many neighbours in memory, which are a few cache lines.
const ROWS: usize = 64;
/// The least `stride` for which tiles are used. With shorter rows, the cost of a block for each row is too high.
const STRIDE_MIN: usize = 64;

/// The passes over a kernel with loads across.
#[derive(Debug)]
pub(super) struct Tiled {
    /// Evaluates the indices of the loads, over the lanes of a tile's first row.
    pub indices: Stage,
    /// Evaluates everything else, over the lanes of a row.
    pub rows: Stage,
}

/// A load that runs across: its instruction, its operand, its index.
#[derive(Clone, Copy)]
struct Load {
    at: u32,
    operand: u16,
    index: Val,
}

fn loads(kernel: &Kernel) -> SmallVec<[Load; 2]> {
    let load = |(at, inst): (usize, &crate::kernels::ir::Inst)| match inst.op {
        InstOp::Load { operand, index, run: Run::Across { .. }, .. } => Some(Load { at: at as u32, operand, index }),
        _ => None,
    };
    kernel.insts.iter().enumerate().filter_map(load).collect()
}

/// The sizes of a launch, and how it is cut into tiles.
struct Tiles {
    stride: usize,
    extent: usize,
    lanes: usize,
    tiles_fast: usize,
    tiles_slow: usize,
    count: usize,
}

impl Tiles {
    /// `None` if tiles would be slower.
    fn of(scene: &Scene<'_>, elements: usize, lanes: usize) -> Option<Tiles> {
        let (stride, extent) = scene.kernel.across()?;
        let [stride, extent] = [stride, extent].map(|slot| scene.params[slot as usize] as usize);
        if stride < STRIDE_MIN || extent < 2 {
            return None;
        }
        let (tiles_fast, tiles_slow) = (stride.div_ceil(lanes), extent.div_ceil(ROWS));
        let count = elements / (stride * extent) * tiles_fast * tiles_slow;
        Some(Tiles { stride, extent, lanes, tiles_fast, tiles_slow, count })
    }

    /// A tile's first flat index, its lanes and its rows. Tiles that read the same cache lines follow each other.
    fn tile(&self, number: usize) -> (usize, usize, usize) {
        let (fast, rest) = (number % self.tiles_fast * self.lanes, number / self.tiles_fast);
        let (slow, plane) = (rest % self.tiles_slow * ROWS, rest / self.tiles_slow);
        let first = (plane * self.extent + slow) * self.stride + fast;
        (first, self.lanes.min(self.stride - fast), ROWS.min(self.extent - slow))
    }
}

/// Runs over all elements. Returns the number of blocks, or `None` without running if tiles would be slower.
pub(super) fn run(scene: &Scene<'_>, tiled: &Tiled, elements: u32, pool: &Pool) -> Option<u64> {
    let loads = loads(scene.kernel);
    let copy = copy(tiled, &loads);
    let tiles = Tiles::of(scene, elements as usize, if copy.is_some() { LANES_COPIED } else { LANES })?;
    let group = (tiles.count / (pool.threads() * 8)).clamp(1, 16);
    let parallel = pool.is_worth_waking((elements as usize).saturating_mul(tiled.rows.order.len()));
    let evaluated = AtomicU64::new(0);
    pool.run(tiles.count.div_ceil(group), parallel, |tasks| {
        let mut worker = None;
        for task in tasks {
            let worker = worker.get_or_insert_with(|| Worker::new(scene, tiled, &loads, copy));
            for number in task * group..((task + 1) * group).min(tiles.count) {
                let (first, lanes, rows) = tiles.tile(number);
                worker.tile(first, lanes, rows, tiles.stride);
            }
        }
        evaluated.fetch_add(worker.map_or(0, |worker| worker.blocks), Relaxed);
    });
    Some(evaluated.into_inner())
}

/// The operand to which the load's elements are stored, if that is all that the kernel does.
fn copy(tiled: &Tiled, loads: &[Load]) -> Option<u16> {
    let [load] = loads else { return None };
    let to = tiled.rows.direct[load.at as usize];
    (tiled.rows.order == [load.at] && tiled.rows.stores.len() == 1 && to != NONE).then_some(to)
}

struct Worker<'a> {
    loads: &'a [Load],
    indices: Frame<'a>,
    rows: Frame<'a>,
    /// The operand to which the kernel only copies its one load, if it does.
    copy: Option<u16>,
    /// For each load, the elements that it reads for the current tile, row after row.
    transposed: Vec<Vec<CacheLine>>,
    /// The number of blocks that were evaluated.
    blocks: u64,
}

/// Bytes from row to row of `Worker::transposed`. This is no power of two, because all rows would then share one cache
/// set.
fn pitch(width: usize) -> usize {
    LANES * width + size_of::<CacheLine>()
}

impl<'a> Worker<'a> {
    fn new(scene: &'a Scene<'a>, tiled: &'a Tiled, loads: &'a [Load], copy: Option<u16>) -> Worker<'a> {
        const { assert!(LANES <= BLOCK && LANES_COPIED <= LANES) };
        let (indices, rows) = (Frame::new(scene, &tiled.indices), Frame::new(scene, &tiled.rows));
        let bytes = |load: &Load| ROWS * pitch(scene.kernel.insts[load.at as usize].dtype.bytes());
        let transposed =
            if copy.is_some() { Vec::new() } else { loads.iter().map(|load| lines(bytes(load))).collect() };
        Worker { loads, indices, rows, copy, transposed, blocks: 0 }
    }

    fn tile(&mut self, first: usize, lanes: usize, rows: usize, stride: usize) {
        self.indices.evaluate(&place(first, lanes));
        let scene = self.rows.scene;
        for number in 0..self.loads.len() {
            let load = self.loads[number];
            let starts = self.indices.indices(load.index, lanes, 0);
            assert_eq!(starts.len(), lanes, "EVAL-1: a load across reads an element a lane");
            let width = scene.kernel.insts[load.at as usize].dtype.bytes();
            let (to, pitch) = match self.copy {
                Some(operand) => {
                    let to = &scene.operands[operand as usize];
                    to.span(width, (first + (rows - 1) * stride) as u32, lanes);
                    (to.span(width, first as u32, lanes), stride * width)
                }
                None => (self.transposed[number].as_mut_ptr().cast(), pitch(width)),
            };
            let from = &scene.operands[load.operand as usize];
            // SAFETY: the buffer holds a tile. For an operand, `span` checked both ends, and no other task writes this
            // tile.
            unsafe {
                match width {
                    1 => transpose_tile::<u8>(from, starts, rows, to, pitch),
                    4 => transpose_tile::<u32>(from, starts, rows, to, pitch),
                    _ => transpose_tile::<u64>(from, starts, rows, to, pitch),
                }
            }
        }
        if self.copy.is_some() {
            self.blocks += 1;
            return;
        }
        for row in 0..rows {
            self.rows.staged.clear();
            for (load, transposed) in self.loads.iter().zip(&self.transposed) {
                let width = scene.kernel.insts[load.at as usize].dtype.bytes();
                // SAFETY: the buffer holds the tile's rows.
                let at = unsafe { transposed.as_ptr().cast::<u8>().add(row * pitch(width)) };
                self.rows.staged.push((load.at, at));
            }
            self.rows.evaluate(&place(first + row * stride, lanes));
        }
        self.blocks += rows as u64;
    }
}

/// Consecutive flat indices.
fn place(first: usize, lanes: usize) -> Place {
    let natural = first as u32;
    let flat = Value::Line { start: natural, step: 1 };
    Place { lanes, natural, flat, outer: Value::Absent, inner: Value::Absent }
}

/// Copies `rows` elements, beginning at each of `starts`, to a column of `to`, whose rows are `pitch` bytes apart.
///
/// # Safety
/// `to` points to `rows` rows of as many elements as there are starts, for writing.
unsafe fn transpose_tile<W: Word>(from: &HostOperand<'_>, starts: &[u32], rows: usize, to: *mut u8, pitch: usize) {
    let source = from.slice::<W>();
    let column = |&start: &u32| match source.get(start as usize..start as usize + rows) {
        Some(column) => column.as_ptr(),
        None => panic!("EVAL-1: elements {start}..{} of {}", start as usize + rows, source.len()),
    };
    let columns: SmallVec<[*const W; LANES]> = starts.iter().map(column).collect();
    // SAFETY: the caller's promise for `to`; each column lies in the operand.
    unsafe { transpose(&columns, rows, to, pitch) }
}

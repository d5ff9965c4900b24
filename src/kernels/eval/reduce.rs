//! Runs kernels of form `Reduce`: outer (kept) by inner (folded) elements.
//!
//! If a line of inner elements is long, lanes run along it and are folded together at the end of a chunk. If there are
//! many outer elements, lanes run along those, and each lane takes a unit of few elements at a time. Partial results of
//! units, lanes and chunks are merged in pairs, in order.
//!
//! Must hold:
//! - EVAL-4: `Cut` is a function of the sizes.
//! - EVAL-6: an element of a sum of n passes through at most `8 + 2 log2 n` additions (`docs/accuracy.md`): at most 15
//!   in its lane (the blocks of a chunk, or a unit), which is no more than `8 + 2 log2` of the lane's length, and one
//!   for each merge, which doubles the number of elements.

use super::frame::{BLOCK, CacheLine, Fold, FoldMode, Frame, Place, Scene, Value};
use super::moments;
use super::monoid::{self, Parts};
use super::pool::Pool;
use super::running;
use super::stage::{Passes, Stage};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::DType;
use crate::kernels::ir::{InstOp, Kernel, Monoid};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Inner elements that an accumulator takes before it is merged, if lanes run along outer elements. With more, moments
/// of f64 would lose digits if the first element, which is their base, is an outlier. The number is the same for all
/// folds, so that the bits of a fold do not depend on the other folds in its kernel.
const UNIT: usize = 8;
/// Outputs that are folded side by side in a kernel with moments. The accumulators of more would not fit a core's
/// first-level cache.
const SIDE_BY_SIDE_MOMENTS: usize = 256;

/// Inner elements that a task folds if lanes run along them: 16 for each lane.
const CHUNK_ALONG: usize = 16 * BLOCK;

/// Bytes between the arrays of accumulators. If equal lanes of two arrays were nearly a whole number of pages apart,
/// the CPU would assume that a load from one depends on a store to the other, and moments would take twice the time.
const ARRAYS_APART: usize = 1024 + 64;

/// How a reduction or scan is laid over lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Whether lanes run along inner elements. Otherwise they run along outer ones.
    pub along_inner: bool,
    /// Inner elements that a task folds.
    pub chunk: usize,
    /// Chunks of a line.
    pub chunks: usize,
}

/// The cut for these sizes.
pub(super) fn cut(outer: usize, inner: usize, inner_fast: bool) -> Cut {
    let along_inner = if inner_fast { inner >= 256 || outer < 64 } else { outer < 64 && inner > outer };
    let chunk = if along_inner {
        CHUNK_ALONG
    } else if outer.div_ceil(BLOCK) >= 16 {
        inner.max(1)
    } else {
        (128 * BLOCK / outer.min(BLOCK)).next_power_of_two().max(128)
    };
    Cut { along_inner, chunk, chunks: inner.div_ceil(chunk).max(1) }
}

/// One fold of a kernel.
#[derive(Clone, Debug)]
pub(super) struct FoldKind {
    inst: u32,
    monoid: Monoid,
    dtype: DType,
    components: SmallVec<[DType; 4]>,
}

/// The folds (or scans) of a kernel.
pub(super) fn folds(kernel: &Kernel) -> SmallVec<[FoldKind; 2]> {
    let mut all = SmallVec::new();
    for (at, inst) in kernel.insts.iter().enumerate() {
        let (monoid, dtype, components) = match &inst.op {
            InstOp::Reduce { monoid, args } => {
                let dtype = kernel.inst(args[0]).dtype;
                (*monoid, dtype, monoid::components(*monoid, dtype))
            }
            InstOp::Scan { monoid, arg } => {
                let dtype = kernel.inst(*arg).dtype;
                (*monoid, dtype, running::components(*monoid, dtype))
            }
            _ => continue,
        };
        all.push(FoldKind { inst: at as u32, monoid, dtype, components });
    }
    all
}

/// The accumulators of all folds, for `lanes` lanes.
pub(super) struct Accumulators<'k> {
    kinds: &'k [FoldKind],
    lanes: usize,
    memory: *mut u8,
    starts: SmallVec<[[usize; 4]; 2]>,
    _owner: Vec<CacheLine>,
}

// SAFETY: workers touch disjoint lanes.
unsafe impl Send for Accumulators<'_> {}
// SAFETY: as above.
unsafe impl Sync for Accumulators<'_> {}

impl<'k> Accumulators<'k> {
    /// Allocates the memory, which is not initialised.
    pub fn new(kinds: &'k [FoldKind], lanes: usize) -> Result<Accumulators<'k>> {
        let mut bytes = 0;
        let mut starts = SmallVec::new();
        for kind in kinds {
            let mut start = [0; 4];
            for (slot, dtype) in start.iter_mut().zip(&kind.components) {
                *slot = bytes;
                bytes += (lanes * dtype.bytes()).next_multiple_of(64) + ARRAYS_APART;
            }
            starts.push(start);
        }
        let mut owner: Vec<CacheLine> = Vec::new();
        if owner.try_reserve_exact(bytes.div_ceil(64)).is_err() {
            return Err(Error::new(
                ErrorKind::OutOfMemory,
                format!("no memory for {bytes} bytes of partial results of a reduction"),
            ));
        }
        Ok(Accumulators { kinds, lanes, memory: owner.as_mut_ptr().cast(), starts, _owner: owner })
    }

    /// The accumulators of a fold from a lane on.
    pub fn parts(&self, fold: usize, lane: usize) -> Parts {
        debug_assert!(lane < self.lanes);
        let mut at = [self.memory; 4];
        for ((slot, start), dtype) in at.iter_mut().zip(self.starts[fold]).zip(&self.kinds[fold].components) {
            // SAFETY: inside of the memory that was reserved.
            *slot = unsafe { self.memory.add(start + lane * dtype.bytes()) };
        }
        Parts(at)
    }

    /// Sets lanes to the neutral element.
    pub fn init(&self, lanes: usize) {
        for (fold, kind) in self.kinds.iter().enumerate() {
            // SAFETY: that many lanes are there.
            unsafe { monoid::init(kind.monoid, kind.dtype, self.parts(fold, 0), lanes) };
        }
    }

    /// Sets lanes to the values with which running folds begin.
    pub fn init_running(&self, lanes: usize) {
        for (fold, kind) in self.kinds.iter().enumerate() {
            // SAFETY: that many lanes are there.
            unsafe { running::init(kind.monoid, kind.dtype, self.parts(fold, 0), lanes) };
        }
    }

    /// Closes the accumulators of moments (EVAL-5) in lanes of which each is an output of its own.
    fn close(&self, lanes: usize) {
        for (fold, kind) in self.kinds.iter().enumerate() {
            if kind.monoid.is_moments() {
                // SAFETY: that many lanes are there.
                unsafe { moments::close(self.parts(fold, 0), lanes) };
            }
        }
    }

    /// Sets the lanes of one output to the neutral element. The blocks of its line have up to `width` elements.
    fn init_along(&self, width: usize) {
        for (fold, kind) in self.kinds.iter().enumerate() {
            let lanes = if kind.monoid.is_moments() { moments::lanes_along(kind.dtype) } else { width };
            // SAFETY: that many lanes are there.
            unsafe { monoid::init(kind.monoid, kind.dtype, self.parts(fold, 0), lanes) };
        }
    }

    /// Folds the lanes of one output into its first lane.
    fn collapse(&self, width: usize) {
        for (fold, kind) in self.kinds.iter().enumerate() {
            let parts = self.parts(fold, 0);
            // SAFETY: these lanes were initialised.
            unsafe {
                let mut lanes = width;
                if kind.monoid.is_moments() {
                    lanes = width.min(moments::ALONG);
                    if !moments::closes_blocks(kind.dtype) {
                        moments::close(parts, lanes);
                    }
                }
                monoid::collapse(kind.monoid, kind.dtype, parts, lanes);
            }
        }
    }

    /// Merges the accumulators of later elements into these.
    fn merge(&self, lane: usize, later: &Accumulators<'_>, later_lane: usize, lanes: usize) {
        for (fold, kind) in self.kinds.iter().enumerate() {
            let (into, from) = (self.parts(fold, lane), later.parts(fold, later_lane));
            // SAFETY: both hold the lanes, apart from each other.
            unsafe { monoid::merge(kind.monoid, kind.dtype, into, from, lanes) };
        }
    }

    /// Copies lanes of other accumulators here.
    fn copy(&self, lane: usize, from: &Accumulators<'_>, lanes: usize) {
        for (fold, kind) in self.kinds.iter().enumerate() {
            let (into, from) = (self.parts(fold, lane), from.parts(fold, 0));
            for (n, dtype) in kind.components.iter().enumerate() {
                // SAFETY: both hold the lanes, apart from each other.
                unsafe { std::ptr::copy_nonoverlapping(from.0[n], into.0[n], lanes * dtype.bytes()) };
            }
        }
    }

    /// Makes a frame use these accumulators, from lane `lane` on, for its folds.
    pub fn lend(&self, frame: &mut Frame<'_>, lane: usize) {
        frame.folds = self
            .kinds
            .iter()
            .enumerate()
            .map(|(n, k)| Fold { inst: k.inst, parts: self.parts(n, lane), rows: SmallVec::new() })
            .collect();
    }
}

/// A reduction's sizes and passes.
struct Job<'a> {
    scene: &'a Scene<'a>,
    fold: &'a Stage,
    finish: &'a Stage,
    kinds: SmallVec<[FoldKind; 2]>,
    outer: usize,
    inner: usize,
    cut: Cut,
    /// Outputs that are folded side by side.
    side_by_side: usize,
}

/// Runs a reduction. Returns the number of blocks.
///
/// # Errors
/// `ErrorKind::OutOfMemory` if there is no memory for partial results.
pub(super) fn run(
    scene: &Scene<'_>,
    passes: &Passes,
    outer: u32,
    inner: u32,
    inner_fast: bool,
    pool: &Pool,
) -> Result<u64> {
    let (outer, inner) = (outer as usize, inner as usize);
    let kinds = folds(scene.kernel);
    let job = Job {
        scene,
        fold: &passes.main,
        finish: &passes.finish,
        side_by_side: if kinds.iter().any(|kind| kind.monoid.is_moments()) { SIDE_BY_SIDE_MOMENTS } else { BLOCK },
        kinds,
        outer,
        inner,
        cut: cut(outer, inner, inner_fast),
    };
    let work = outer.saturating_mul(inner.max(1)).saturating_mul(job.fold.order.len() + 1);
    let parallel = pool.is_worth_waking(work);
    if job.cut.chunks == 1 { job.whole_lines(pool, parallel) } else { job.chunked_lines(pool, parallel) }
}

/// A worker's state in a reduction.
struct Worker<'a> {
    job: &'a Job<'a>,
    fold: Frame<'a>,
    finish: Frame<'a>,
    /// The accumulators into which elements are folded.
    current: Accumulators<'a>,
    /// The results for the outputs of a task.
    results: Accumulators<'a>,
    /// Merged units: entry `n` holds the result of `2^n` units, or nothing.
    stack: Vec<Option<Accumulators<'a>>>,
    /// Accumulators that are not in use.
    spare: Vec<Accumulators<'a>>,
}

impl<'a> Worker<'a> {
    fn new(job: &'a Job<'a>, results: usize) -> Result<Worker<'a>> {
        let mut finish = Frame::new(job.scene, job.finish);
        finish.mode = FoldMode::Present;
        Ok(Worker {
            job,
            fold: Frame::new(job.scene, job.fold),
            finish,
            current: Accumulators::new(&job.kinds, BLOCK)?,
            results: Accumulators::new(&job.kinds, results)?,
            stack: Vec::new(),
            spare: Vec::new(),
        })
    }

    fn blocks(&self) -> u64 {
        self.fold.blocks + self.finish.blocks
    }

    /// Folds inner elements `begin..end` of one output, into lane 0 of `current`.
    fn fold_line(&mut self, output: usize, begin: usize, end: usize) {
        debug_assert!(end - begin <= CHUNK_ALONG, "EVAL-6: a lane takes a chunk's blocks at the most");
        let width = (end - begin).clamp(1, BLOCK).next_power_of_two();
        self.current.init_along(width);
        self.current.lend(&mut self.fold, 0);
        self.fold.mode = FoldMode::Along;
        for start in (begin..end).step_by(BLOCK) {
            self.fold.evaluate(&Place {
                lanes: BLOCK.min(end - start),
                natural: 0,
                flat: Value::Absent,
                outer: Value::line(output as u32, 0),
                inner: Value::Line { start: start as u32, step: 1 },
            });
        }
        self.current.collapse(width);
    }

    /// Folds inner elements `begin..end` of `lanes` outputs side by side, into `current`.
    fn fold_side_by_side(&mut self, output: usize, lanes: usize, begin: usize, end: usize) -> Result<()> {
        let mut unit = 0usize;
        let mut start = begin;
        self.fold.mode = FoldMode::Accumulate;
        loop {
            self.current.init(lanes);
            self.current.lend(&mut self.fold, 0);
            let stop = (start + UNIT).min(end);
            for inner in start..stop {
                self.fold.evaluate(&Place {
                    lanes,
                    natural: 0,
                    flat: Value::Absent,
                    outer: Value::Line { start: output as u32, step: 1 },
                    inner: Value::line(inner as u32, 0),
                });
            }
            self.fold.fold_waiting(lanes);
            self.current.close(lanes);
            start = stop;
            if start >= end {
                break;
            }
            self.push_unit(unit, lanes)?;
            unit += 1;
        }
        for slot in &mut self.stack {
            if let Some(earlier) = slot.take() {
                earlier.merge(0, &self.current, 0, lanes);
                self.spare.push(std::mem::replace(&mut self.current, earlier));
            }
        }
        Ok(())
    }

    /// Puts a finished unit on the stack. As in binary counting, results of equal size are merged, the earlier one
    /// first.
    fn push_unit(&mut self, unit: usize, lanes: usize) -> Result<()> {
        let fresh = match self.spare.pop() {
            Some(spare) => spare,
            None => Accumulators::new(&self.job.kinds, BLOCK)?,
        };
        let mut carry = std::mem::replace(&mut self.current, fresh);
        let level = unit.trailing_ones() as usize;
        if self.stack.len() <= level {
            self.stack.resize_with(level + 1, || None);
        }
        for slot in &mut self.stack[..level] {
            let earlier = slot.take().expect("EVAL-6: a unit of every lower size is on the stack");
            earlier.merge(0, &carry, 0, lanes);
            self.spare.push(std::mem::replace(&mut carry, earlier));
        }
        self.stack[level] = Some(carry);
        Ok(())
    }
}

impl Job<'_> {
    /// Runs a reduction in which one task folds all of an output, and finishes it at once.
    fn whole_lines(&self, pool: &Pool, parallel: bool) -> Result<u64> {
        let group =
            if self.cut.along_inner { (self.outer / (pool.threads() * 8)).clamp(1, BLOCK) } else { self.side_by_side };
        self.in_parallel(pool, parallel, self.outer.div_ceil(group), group, |worker, task| {
            let output = task * group;
            let lanes = group.min(self.outer - output);
            if self.cut.along_inner {
                for lane in 0..lanes {
                    worker.fold_line(output + lane, 0, self.inner);
                    worker.results.copy(lane, &worker.current, 1);
                }
            } else {
                worker.fold_side_by_side(output, lanes, 0, self.inner)?;
                worker.results.copy(0, &worker.current, lanes);
            }
            self.finish_outputs(&mut worker.finish, &worker.results, 0, output, lanes);
            Ok(())
        })
    }

    /// Runs a reduction whose lines are cut into chunks. A second pass merges their partial results.
    fn chunked_lines(&self, pool: &Pool, parallel: bool) -> Result<u64> {
        let Cut { along_inner, chunk, chunks } = self.cut;
        let partials = Accumulators::new(&self.kinds, chunks * self.outer)?;
        let group = if along_inner { 1 } else { self.side_by_side };
        let groups = self.outer.div_ceil(group);
        let mut blocks = self.in_parallel(pool, parallel, groups * chunks, 0, |worker, task| {
            let (number, output) = (task / groups, task % groups * group);
            let (begin, end) = (number * chunk, ((number + 1) * chunk).min(self.inner));
            let lanes = group.min(self.outer - output);
            if along_inner {
                worker.fold_line(output, begin, end);
            } else {
                worker.fold_side_by_side(output, lanes, begin, end)?;
            }
            partials.copy(number * self.outer + output, &worker.current, lanes);
            Ok(())
        })?;
        blocks += self.in_parallel(pool, false, self.outer.div_ceil(BLOCK), 0, |worker, task| {
            let output = task * BLOCK;
            let lanes = BLOCK.min(self.outer - output);
            let mut stride = 1;
            while stride < chunks {
                for number in (0..chunks - stride).step_by(2 * stride) {
                    let (into, from) = (number * self.outer + output, (number + stride) * self.outer + output);
                    partials.merge(into, &partials, from, lanes);
                }
                stride *= 2;
            }
            self.finish_outputs(&mut worker.finish, &partials, output, output, lanes);
            Ok(())
        })?;
        Ok(blocks)
    }

    /// Evaluates `Part::Finish` for `lanes` outputs, whose accumulators are those of `from`, from `lane` on.
    fn finish_outputs(&self, frame: &mut Frame<'_>, from: &Accumulators<'_>, lane: usize, output: usize, lanes: usize) {
        for (fold, kind) in self.kinds.iter().enumerate() {
            // SAFETY: the lanes are there.
            unsafe { monoid::finish(kind.monoid, kind.dtype, from.parts(fold, lane), lanes) };
        }
        from.lend(frame, lane);
        frame.evaluate(&Place {
            lanes,
            natural: output as u32,
            flat: Value::Absent,
            outer: Value::Line { start: output as u32, step: 1 },
            inner: Value::Absent,
        });
    }

    /// Runs tasks on the pool. Each worker keeps the results of `results` outputs.
    fn in_parallel(
        &self,
        pool: &Pool,
        parallel: bool,
        tasks: usize,
        results: usize,
        work: impl Fn(&mut Worker<'_>, usize) -> Result<()> + Sync,
    ) -> Result<u64> {
        let blocks = AtomicU64::new(0);
        let failed = parking_lot::Mutex::new(None);
        pool.run(tasks, parallel, |tasks| {
            let mut worker = None;
            for task in tasks {
                let done = match &mut worker {
                    Some(worker) => work(worker, task),
                    None => Worker::new(self, results).and_then(|made| work(worker.insert(made), task)),
                };
                if let Err(error) = done {
                    *failed.lock() = Some(error);
                    break;
                }
            }
            blocks.fetch_add(worker.map_or(0, |w| w.blocks()), Relaxed);
        });
        match failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(blocks.into_inner()),
        }
    }
}

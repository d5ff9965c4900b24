//! Runs kernels of form `Scan`: running folds along lines.
//!
//! Long lines are walked block by block with a carry; many lines are walked side by side. Several lines run in
//! parallel. One line does not, because that would need a second pass over it, which costs what a second core gains.

use super::frame::{BLOCK, FoldMode, Frame, Place, Scene, Value};
use super::pool::Pool;
use super::reduce::{Accumulators, cut, folds};
use super::stage::Stage;
use crate::error::Result;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A scan's sizes.
struct Job<'a> {
    stage: &'a Stage,
    inner: usize,
    reverse: bool,
}

/// Runs a scan. Returns the number of blocks.
///
/// # Errors
/// `ErrorKind::OutOfMemory` if there is no memory for carries.
pub(super) fn run(
    scene: &Scene<'_>,
    stage: &Stage,
    outer: u32,
    inner: u32,
    inner_fast: bool,
    reverse: bool,
    pool: &Pool,
) -> Result<u64> {
    let (outer, inner) = (outer as usize, inner as usize);
    let kinds = folds(scene.kernel);
    let job = Job { stage, inner, reverse };
    let along_inner = cut(outer, inner, inner_fast).along_inner;
    let group = if along_inner { 1 } else { (outer / (pool.threads() * 4)).next_multiple_of(64).clamp(64, BLOCK) };
    let parallel = pool.is_worth_waking(outer.saturating_mul(inner).saturating_mul(job.stage.order.len()));
    let blocks = AtomicU64::new(0);
    let failed = parking_lot::Mutex::new(None);
    pool.run(outer.div_ceil(group), parallel, |tasks| {
        let carries = match Accumulators::new(&kinds, BLOCK) {
            Ok(carries) => carries,
            Err(error) => {
                *failed.lock() = Some(error);
                return;
            }
        };
        let mut frame = Frame::new(scene, job.stage);
        carries.lend(&mut frame, 0);
        for task in tasks {
            if along_inner {
                job.line(&mut frame, &carries, task);
            } else {
                job.side_by_side(&mut frame, &carries, task * group, group.min(outer - task * group));
            }
        }
        blocks.fetch_add(frame.blocks, Relaxed);
    });
    match failed.into_inner() {
        Some(error) => Err(error),
        None => Ok(blocks.into_inner()),
    }
}

impl Job<'_> {
    /// Scans one line, with lanes along it.
    fn line(&self, frame: &mut Frame<'_>, carries: &Accumulators<'_>, line: usize) {
        carries.init_running(1);
        frame.mode = FoldMode::Running { reverse: self.reverse };
        let blocks = self.inner.div_ceil(BLOCK);
        for step in 0..blocks {
            let start = BLOCK * if self.reverse { blocks - 1 - step } else { step };
            frame.evaluate(&Place {
                lanes: BLOCK.min(self.inner - start),
                natural: 0,
                flat: Value::Absent,
                outer: Value::line(line as u32, 0),
                inner: Value::Line { start: start as u32, step: 1 },
            });
        }
    }

    /// Scans `lanes` lines from `first` on, with a lane for each.
    fn side_by_side(&self, frame: &mut Frame<'_>, carries: &Accumulators<'_>, first: usize, lanes: usize) {
        carries.init_running(lanes);
        frame.mode = FoldMode::Accumulate;
        for step in 0..self.inner {
            let inner = if self.reverse { self.inner - 1 - step } else { step };
            frame.evaluate(&Place {
                lanes,
                natural: first as u32,
                flat: Value::Absent,
                outer: Value::Line { start: first as u32, step: 1 },
                inner: Value::line(inner as u32, 0),
            });
        }
    }
}

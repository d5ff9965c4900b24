//! Form `Map`: blocks of consecutive flat indices.

use super::frame::{BLOCK, Frame, Place, Scene, Value};
use super::pool::Pool;
use super::stage::Stage;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Runs over all elements. Returns the number of blocks.
pub(super) fn run(scene: &Scene<'_>, stage: &Stage, elements: u32, pool: &Pool) -> u64 {
    let elements = elements as usize;
    let blocks = elements.div_ceil(BLOCK);
    // Some blocks a task: neighbours share pages, and taking a task costs an atomic.
    let group = (blocks / (pool.threads() * 8)).clamp(1, 64);
    let parallel = pool.is_worth_waking(elements.saturating_mul(stage.order.len()));
    let evaluated = AtomicU64::new(0);
    pool.run(blocks.div_ceil(group), parallel, |tasks| {
        let mut frame = None;
        for task in tasks {
            let frame = frame.get_or_insert_with(|| Frame::new(scene, stage));
            for block in task * group..((task + 1) * group).min(blocks) {
                let start = block * BLOCK;
                let natural = start as u32;
                frame.evaluate(&Place {
                    lanes: BLOCK.min(elements - start),
                    natural,
                    flat: Value::Line { start: natural, step: 1 },
                    outer: Value::Absent,
                    inner: Value::Absent,
                });
            }
        }
        evaluated.fetch_add(frame.map_or(0, |f| f.blocks), Relaxed);
    });
    evaluated.into_inner()
}

//! Runs kernels of form `Map`, in blocks of consecutive flat indices. If index arithmetic divides by a column's height,
//! blocks are parts of columns, so that indices are lines in each block and views are read in place.

use super::columns::Columns;
use super::frame::{BLOCK, Frame, Place, Scene, Value};
use super::pool::Pool;
use super::stage::{Passes, Stage};
use crate::kernels::ir::{IndexOp, InstOp};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The least height of columns for which blocks are parts of columns. With fewer lanes, the fixed cost of an
/// instruction exceeds its computation, and runs (`index`) cost less.
const COLUMN_MIN: usize = 256;

/// How the elements are cut into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Blocks {
    elements: usize,
    /// Elements of a column, or all elements where there are no columns.
    column: usize,
    /// Blocks of a column.
    parts: usize,
    /// Lanes of each block but the last of a column.
    lanes: usize,
}

impl Blocks {
    fn new(elements: usize, column: Option<usize>) -> Blocks {
        match column {
            Some(column) => {
                let parts = column.div_ceil(BLOCK);
                Blocks { elements, column, parts, lanes: column.div_ceil(parts) }
            }
            None => Blocks { elements, column: elements, parts: elements.div_ceil(BLOCK), lanes: BLOCK },
        }
    }

    fn count(&self) -> usize {
        self.elements.div_ceil(self.column) * self.parts
    }

    /// First element and lanes of a block; some blocks of the last column may have none.
    fn block(&self, number: usize) -> (usize, usize) {
        let begin = number / self.parts * self.column;
        let start = begin + number % self.parts * self.lanes;
        let end = (start + self.lanes).min(begin + self.column).min(self.elements);
        (start, end.saturating_sub(start))
    }
}

/// The height of columns: the least number by which the kernel divides the flat index.
fn column(scene: &Scene<'_>, stage: &Stage) -> Option<usize> {
    let height = |&at: &u32| match scene.kernel.insts[at as usize].op {
        InstOp::Index(IndexOp::Div | IndexOp::Rem, of, by) if scene.kernel.inst(of).op == InstOp::Flat => {
            match scene.uniform[by.0 as usize] {
                Value::Scalar(height) => Some(height.bits() as usize),
                _ => None,
            }
        }
        _ => None,
    };
    stage.order.iter().filter_map(height).min()
}

/// Runs over all elements. Returns the number of blocks.
pub(super) fn run(scene: &Scene<'_>, passes: &Passes, elements: u32, pool: &Pool) -> u64 {
    let stage = &passes.main;
    let elements = elements as usize;
    let height = column(scene, stage);
    let one_line = height.filter(|&height| {
        let peeled = passes.peeled.as_ref();
        peeled.is_some_and(|peeled| Columns::are_one_line(scene, peeled, height))
    });
    // Blocks may span columns if all columns can be evaluated as one, or if columns are short.
    let in_columns = height.filter(|height| one_line.is_none() && (COLUMN_MIN..elements).contains(height));
    let cut = Blocks::new(elements, in_columns);
    let blocks = cut.count();
    // A task is several blocks: neighbours share pages, and taking a task costs an atomic operation.
    let group = (blocks / (pool.threads() * 8)).clamp(1, 64);
    let turns = scene.kernel.turns(scene.params) as usize;
    let parallel = pool.is_worth_waking(elements.saturating_mul(stage.order.len()).saturating_mul(turns));
    let evaluated = AtomicU64::new(0);
    pool.run(blocks.div_ceil(group), parallel, |tasks| {
        let mut worker = None;
        for task in tasks {
            let worker = worker.get_or_insert_with(|| Worker::new(scene, passes, one_line.unwrap_or(cut.column)));
            for block in task * group..((task + 1) * group).min(blocks) {
                worker.block(&cut, block);
            }
        }
        evaluated.fetch_add(worker.map_or(0, |worker| worker.frame.blocks), Relaxed);
    });
    evaluated.into_inner()
}

struct Worker<'a> {
    stage: &'a Stage,
    frame: Frame<'a>,
    columns: Option<Columns<'a>>,
}

impl<'a> Worker<'a> {
    fn new(scene: &'a Scene<'a>, passes: &'a Passes, column: usize) -> Worker<'a> {
        let columns = passes.peeled.as_ref().map(|peeled| Columns::new(scene, peeled, column));
        Worker { stage: &passes.main, frame: Frame::new(scene, &passes.main), columns }
    }

    fn block(&mut self, cut: &Blocks, number: usize) {
        let (start, lanes) = cut.block(number);
        if lanes == 0 {
            return;
        }
        let natural = start as u32;
        if let Some(columns) = &mut self.columns {
            let column = start / cut.column;
            let (begin, number) = (column * cut.column, column as u32);
            let height = cut.column.min(cut.elements - begin);
            if columns.evaluate(&mut self.frame, number, height, (start - begin) as u32, lanes) {
                return;
            }
            self.frame.enter(self.frame.scene.kernel, self.stage);
        }
        let flat = Value::line(natural, if lanes > 1 { 1 } else { 0 });
        self.frame.evaluate(&Place { lanes, natural, flat, outer: Value::Absent, inner: Value::Absent });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_take_each_element_once_and_stay_in_their_column() {
        for elements in [1, 5, 1024, 1025, 3000, 70_001] {
            for column in [None, Some(256), Some(300), Some(1024), Some(1025), Some(2500)] {
                let column = column.filter(|&height| height < elements);
                let cut = Blocks::new(elements, column);
                let mut next = 0;
                for number in 0..cut.count() {
                    let (start, lanes) = cut.block(number);
                    if lanes == 0 {
                        continue;
                    }
                    assert!(start == next && lanes <= BLOCK, "{cut:?}");
                    assert!(column.is_none_or(|height| start / height == (start + lanes - 1) / height), "{cut:?}");
                    next += lanes;
                }
                assert_eq!(next, elements, "{cut:?}");
            }
        }
    }
}

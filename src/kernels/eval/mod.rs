//! The host evaluator: runs a kernel of the IR over host memory, in blocks that stay in cache.
//!
//! In: a kernel, its sizes, parameters and operands. Out: elements in its writable operands, set fault words.
//!
//! A worker evaluates the kernel's instructions one after the other over a block of about a thousand lanes; indices
//! stay symbolic (runs) as long as possible, loads borrow operand memory if their lanes are neighbours, and a value
//! that is stored is computed directly in the operand's memory. Consecutive arithmetic on floats is evaluated as one
//! instruction (`chain`). The columns of a map are cut where conditions on indices change, and each segment has a pass
//! without conditions (`peel`). Reductions and scans choose whether lanes run along the reduced or the kept elements by
//! shape alone.
//!
//! Must hold:
//! - EVAL-1: every access is inside of its operand.
//! - EVAL-2: registers of live values are distinct.
//! - EVAL-3: unused lanes of a fold do not change its result.
//! - EVAL-4: how a launch is cut depends on its sizes only, so that its bits do not depend on the number of threads.
//! - EVAL-5 (stated in `monoid`): when accumulators are open and closed. EVAL-6 (stated in `reduce`): how many
//!   additions an element of a sum passes through.

mod across;
mod block;
mod chain;
mod check;
mod columns;
mod frame;
mod index;
mod library;
mod map;
mod moments;
mod monoid;
mod number;
mod operand;
mod peel;
mod pool;
mod reduce;
mod rolled;
mod running;
mod runs;
mod scan;
mod stage;
#[cfg(test)]
mod tests;
mod transpose;
mod value;

use crate::kernels::element::host::{self as element, HostArg};
use crate::kernels::random;

pub use library::run_library;
pub use operand::HostOperand;
pub use pool::Pool;

use crate::error::Result;
use crate::kernels::ir::{Form, Geometry, Kernel};
use crate::stats::Counters;
use frame::{Frame, Place, Scene, Value};
use stage::Stage;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// Runs a whole launch of a generated kernel on the host.
///
/// `params` are the launch's words. Those of the header are not read, because the sizes come from `geometry`. Operands
/// stand in the kernel's order, one each (segments do not exist on the host); scratch is not used. An operand without
/// elements reads as zero. If the kernel breaks an invariant, this panics with its ID.
///
/// # Errors
/// `ErrorKind::OutOfMemory` if there is no memory for the partial results of a reduction.
pub fn run(
    kernel: &Arc<Kernel>,
    geometry: &Geometry,
    params: &[u32],
    operands: &[HostOperand<'_>],
    faults: Option<&[AtomicU32]>,
    pool: &Pool,
    counters: &Counters,
) -> Result<()> {
    assert_eq!(kernel.operands.len(), operands.len(), "PLAN-3: operands of the kernel and of the launch");
    let mut scene = Scene { kernel, params, operands, faults, uniform: Vec::new() };
    if !is_empty(geometry) {
        let passes = pool.passes(kernel);
        scene.uniform = uniform(&scene, &passes.uniform);
        let blocks = match (kernel.form, *geometry) {
            (Form::Map, Geometry::Map { elements }) => {
                let in_tiles = passes.tiled.as_ref().and_then(|tiled| across::run(&scene, tiled, elements, pool));
                in_tiles.unwrap_or_else(|| map::run(&scene, &passes, elements, pool))
            }
            (Form::Reduce { inner_fast }, Geometry::Reduce { outer, inner }) => {
                reduce::run(&scene, &passes, outer, inner, inner_fast, pool)?
            }
            (Form::Scan { inner_fast }, Geometry::Scan { outer, inner, reverse }) => {
                scan::run(&scene, &passes.main, outer, inner, inner_fast, reverse, pool)?
            }
            (form, geometry) => panic!("IR-5: a kernel of form {form:?} with the sizes {geometry:?}"),
        };
        Counters::add(&counters.host_blocks, blocks);
    }
    Counters::add(&counters.host_kernels, 1);
    Ok(())
}

fn is_empty(geometry: &Geometry) -> bool {
    match *geometry {
        Geometry::Map { elements } => elements == 0,
        // A reduction of no elements still stores the neutral elements.
        Geometry::Reduce { outer, .. } => outer == 0,
        Geometry::Scan { outer, inner, .. } | Geometry::Line { outer, inner } => outer == 0 || inner == 0,
    }
}

/// Evaluates the instructions whose values are the same for the whole launch.
fn uniform(scene: &Scene<'_>, stage: &Stage) -> Vec<Value> {
    let mut frame = Frame::new(scene, stage);
    let place = Place { lanes: 1, natural: 0, flat: Value::Absent, outer: Value::Absent, inner: Value::Absent };
    frame.evaluate(&place);
    frame.values()
}

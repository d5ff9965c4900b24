//! The CPU as a device: the same plans on worker threads.
//!
//! In: batches. Out: completions and readbacks. One thread runs the batches as if in order; kernels spread over the
//! worker pool, and long ones run on a thread of their own, while short batches that share no memory with them go on.
//! A batch of a few microseconds may run on the thread of who sends it.
//! Host data enters and leaves without a copy.
//!
//! Must hold:
//! - HOST-1: what lies free is bounded.
//! - HOST-2: memory that anybody outside holds is never written.
//! - HOST-3: an allocation has memory only from its first write on.
//! - HOST-4: whatever a kernel does, a panic too, ends as an error that names its op.
//! - HOST-5: memory that a launch uses beside others is neither freed nor written to by anybody else until it has
//!   ended.
//! - HOST-6: batches that touch the same memory, and one of them changes it, run in the order in which they came.
//! - HOST-7: who takes from the mailbox holds the state.

mod blocks;
mod execute;
mod info;
mod lanes;
mod measure;
mod order;
mod run;
mod table;
#[cfg(test)]
mod tests;

use super::costs;
use super::handle::{Compiler, Context, DeviceHandle, Inline, Reach};
use crate::config::Config;
use crate::contract::device::{Costs, DeviceInfo};
use crate::contract::plan::Plan;
use crate::error::{Error, ErrorKind, Result};
use crate::kernels::eval::Pool;
use std::sync::Arc;

/// The host compiles nothing: kernels are evaluated as they are.
struct NoCompiler;

impl Compiler for NoCompiler {
    fn prepare(&self, _plan: &Plan) -> Result<()> {
        Ok(())
    }
}

/// Opens the host device (`DeviceId::HOST`). Its mailbox is not bounded itself: residency keeps at most
/// `batches_in_flight_max` batches in it.
///
/// # Errors
/// `ErrorKind::Device` where the system gives no threads.
pub fn open(context: Context) -> Result<DeviceHandle> {
    open_as(context, info::describe)
}

/// Opens host threads as another device (`DeviceId::GPU`), which tests put in a GPU's place: what it is told is what a
/// device is told that compiles in the host's memory, binds 8 arrays and lacks f64.
///
/// # Errors
/// As [`open`].
pub fn open_stand_in(context: Context) -> Result<DeviceHandle> {
    open_as(context, info::describe_stand_in)
}

fn open_as(context: Context, describe: impl FnOnce(&Config, usize, Costs) -> DeviceInfo) -> Result<DeviceHandle> {
    let pool = Pool::new(context.config.worker_threads)?;
    let costs = costs::of(&info::costs_name(pool.threads()), || Ok(measure::measure(&pool)))?;
    let info = describe(&context.config, pool.threads(), costs);
    let blocks = blocks::Blocks::new(info::kept_bytes_max(&info), context.counters.clone());
    let (instructions, mailbox) = crossbeam_channel::unbounded();
    context.timeline.name_device(info.id, &info.name);
    // A test that holds the device must hold its thread, and not the ring's.
    let inlines = !context.config.injection().holds_a_batch();
    let actor = run::Actor::new(context, pool, &info, blocks);
    let (ears, desk) = (actor.ears(), Arc::new(run::Desk::new(actor)));
    let inline = inlines.then(|| desk.clone() as Arc<dyn Inline>);
    let thread = std::thread::Builder::new()
        .name("tidemill-host".to_owned())
        .spawn(move || desk.run(&mailbox, ears))
        .map_err(|e| Error::new(ErrorKind::Device, format!("the host device's thread did not start: {e}")))?;
    let reach = Reach { instructions, inline };
    Ok(DeviceHandle { info, reach, compiler: Arc::new(NoCompiler), uploads: None, threads: vec![thread] })
}

/// Has the C library give back the pages that lie free between its allocations. It keeps what was freed in pieces of up
/// to 32 MiB, such as host copies of gathered arrays.
fn trim_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: glibc has this function; it may be called at any time, on any thread, whatever allocator is used.
        unsafe { malloc_trim(0) };
    }
}

//! The wgpu device and queue: encode, submit, stage, read back, time-stamp, recover.
//!
//! In: batches. Out: reports.
//!
//! Threads: the *queue* thread, the driver's (`queue.rs`), owns all tables, encodes and submits; the *completion*
//! thread (`completion.rs`) waits for submissions and delivers their readbacks; a pool of *copy* threads (`copy.rs`)
//! fills and drains mapped memory; compiling (`pipelines.rs`) happens on any thread. Queue and completion thread poll
//! for a moment before they sleep (`crate::eager`).
//!
//! Invariants:
//! - GPU-1: the queue thread waits for the completion thread only for events that need nothing from the queue thread
//!   (the return of a staging chunk, a loss). The completion thread never waits for the queue thread.
//! - GPU-2: a batch is reported exactly once, in order, after its readbacks.
//! - GPU-3: every wgpu call that can fail runs inside of `Gpu::checked`; its errors become `BatchFailed`, never a
//!   result of zeros.
//! - GPU-4: only buffers of rings are ever mapped, never allocations that values live in.
//! - GPU-5: a mapped staging chunk is unmapped before the submission that copies from it, and mapped again only
//!   after that submission has finished.
//! - GPU-6: nothing polls a device after it was marked lost (polling frees the memory to which mapped views point).
//! - GPU-7: a cached bind group names only allocations that are in the table.
//! - GPU-8: every buffer that a step binds or copies to was reserved when its batch was prepared.
//! - GPU-9: no thread waits inside of wgpu, and a callback that was lost by a panic counts as a failure (`finish.rs`).
//!
//! Must never decide what to compute or where, and never drop an allocation on its own.

mod adapter;
mod bind;
mod buffers;
mod clock;
mod completion;
mod copy;
mod driver_cache;
mod encode;
mod finish;
mod flight;
mod instance;
mod kept;
mod known;
mod pipelines;
mod prepare;
mod probe;
mod queue;
mod raw_device;
mod readback;
mod rescue;
mod shaders;
mod spare;
mod staging;
#[cfg(test)]
mod tests;
mod uploads;

pub use adapter::{AdapterSummary, adapters, find, has_hardware};

use super::backend::{Backend, Context};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::DeviceId;
use crate::stats::Counters;
use shaders::{Generated, Shaders};
use std::sync::Arc;

/// Opens an adapter (its index in [`adapters`], or the best one).
///
/// # Errors
/// `ErrorKind::Device` if there is no such adapter (the message says what to install) or it can't be opened.
pub(super) fn open(index: Option<usize>, id: DeviceId, context: Context) -> Result<impl Backend + use<>> {
    // Time-stamps around every dispatch can slow a GPU down. They are taken only on request, and only while the
    // timeline is on.
    let stamp_dispatches = std::env::var_os("TIDEMILL_TRACE_DISPATCHES").is_some_and(|v| v == "1");
    open_with(index, id, context, stamp_dispatches, |precision, info| Arc::new(Generated::new(precision, info)))
}

/// As [`open`], with another source of shaders, so that tests can use hand-written WGSL.
fn open_with(
    index: Option<usize>,
    id: DeviceId,
    context: Context,
    stamp_dispatches: bool,
    shaders: impl FnOnce(crate::kernels::target::Precision, &crate::contract::device::DeviceInfo) -> Arc<dyn Shaders>,
) -> Result<queue::Queue> {
    let _alone = adapter::OPENING.lock();
    let opened = adapter::open(index, &context.config)?;
    let (profile, costs) = probe::probe(&opened)?;
    // From now on the exit of the process has to wait, because the driver has compiled and run shaders.
    crate::leaving::wait_at_exit();
    let info = adapter::device_info(&opened, id, &context.config, profile, costs);
    let shaders = shaders(context.config.precision, &info);
    let counters = context.counters.clone();
    let queue = queue::start(opened, info, context, stamp_dispatches, shaders)?;
    Counters::add(&counters.gpus_opened, 1);
    Ok(queue)
}

/// The error of a thread that could not be started.
fn thread_error(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Device, format!("a device thread could not be started: {error}"))
}

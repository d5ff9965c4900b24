//! The CPU as a device: the same plans on worker threads.
//!
//! In: batches. Out: reports. The driver's thread runs the batches as if in order; kernels spread over the
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

use super::backend::{Backend, Context};
use super::costs;
use crate::error::Result;
use crate::kernels::eval::Pool;

/// Opens the host device (`DeviceId::HOST`).
///
/// # Errors
/// `ErrorKind::Device` where the system gives no threads.
pub(super) fn open(context: Context) -> Result<impl Backend + use<>> {
    let pool = Pool::new(context.config.worker_threads)?;
    let costs = costs::of(&info::costs_name(pool.threads()), || Ok(measure::measure(&pool)))?;
    let info = info::describe(&context.config, pool.threads(), costs);
    let blocks = blocks::Blocks::new(info::kept_bytes_max(&info), context.counters.clone());
    Ok(run::Host::new(context, pool, info, blocks))
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

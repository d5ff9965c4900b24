//! The CPU as a device: the same plans on worker threads.
//!
//! In: batches. Out: reports. The driver's thread runs the batches as if in order; kernels spread over the worker pool,
//! and long ones run on a thread of their own, while short batches that share no memory with them go on. A batch of a
//! few microseconds may run on the thread that sends it. Host data enters and leaves without a copy.
//!
//! Must hold:
//! - HOST-1: free memory that is kept is bounded.
//! - HOST-2: memory that a user or a gathered array refers to is never written.
//! - HOST-3: an allocation has memory only from its first write on.
//! - HOST-4: any failure of a kernel, a panic included, becomes an error that names its op.
//! - HOST-5: while a long launch runs on its own thread, no other batch frees or writes the memory that it uses.
//! - HOST-6: two batches run in the order in which they came if they use the same memory and one of them changes it.

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

/// Has the C library return the free pages between its allocations to the system. It keeps freed blocks of up to 32
/// MiB, such as host copies of gathered arrays.
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

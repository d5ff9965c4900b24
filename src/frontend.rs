//! For front ends: interpreters and languages on top of the runtime, such as the crate `tidemill-script`. Programs that
//! only compute need nothing of it.
//!
//! A front end runs a user's program step by step, records arrays meanwhile, and keeps small or finished arrays in its
//! own memory. For that it needs six things beside the rest of this crate:
//!
//! | to | see |
//! |---|---|
//! | record without an error, and without blocking a thread, where there is no room | [`unheld`], [`is_wait_due`], [`take_wait`], [`caught_up`] |
//! | refuse to wait where that would hold an executor | [`may_block`] |
//! | share the host's memory budget with the runtime | [`host_claims`] |
//! | spread its own work over as many threads as the runtime does | [`cores`] |
//! | multiply matrices in its own memory, to the same bits as the runtime | [`product`] |
//! | count what it computes itself though the program asked for a device | [`ran_elsewhere`] |

pub use crate::claims::HostClaims;
pub use crate::threads::{cores, is_wait_due, take_wait, unheld};

use crate::kernels::matmul;
use crate::{Result, Session};
use std::sync::Arc;

/// Waits until the runtime has nearly caught up with what this session has recorded. A program that runs step by step
/// gains nothing by being far ahead, and what it has recorded takes memory. The future is ready at once if little work
/// waits. It may be dropped at any time.
pub fn caught_up(session: &Session) -> impl Future<Output = ()> + Send + use<> {
    let session = session.clone();
    async move { session.caught_up().await }
}

/// Whether this thread may wait. `what` names what would be waited for, for the error's message.
///
/// # Errors
/// `ErrorKind::WouldBlock` where the thread is polling futures, and on the runtime's own threads.
pub fn may_block(what: &str) -> Result<()> {
    crate::array::may_block(what)
}

/// The bytes of host memory that all front ends of this session's runtime have claimed.
pub fn host_claims(session: &Session) -> Arc<HostClaims> {
    session.claims().clone()
}

/// Counts ops that ran, or arrays that stayed, elsewhere than the program asked for: they appear in
/// [`Stats::elsewhere`](crate::Stats::elsewhere) under `reason`.
pub fn ran_elsewhere(session: &Session, reason: &str, ops: u64) {
    session.ran_elsewhere(reason, ops);
}

/// The product of an `m` by `k` and a `k` by `n` matrix, each column-major, computed on the calling thread. Its bits are
/// those of [`Array::matmul`](crate::Array::matmul) on the host device.
///
/// # Panics
/// If the slices do not have the lengths that the sizes require.
pub fn product(a: &[f64], b: &[f64], (m, k, n): (usize, usize, usize)) -> Vec<f64> {
    matmul::host::product(a, b, (m, k, n))
}

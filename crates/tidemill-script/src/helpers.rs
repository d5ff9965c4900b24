//! A pool of threads that do parts of the work of a task. It starts threads when they are needed, and idle ones end.
//!
//! This is not a pool of rayon: a share of runs that waits must not keep other work from beginning, as it would in a
//! pool with one thread per core. Nor is it a tokio runtime whose blocking threads are used alone: code on such a
//! thread finds that runtime (`Handle::try_current`), so that tasks which it spawns would wait for ever, since nothing
//! drives the runtime; and where the system makes no further thread, `spawn_blocking` panics or queues the work behind
//! busy threads, where `begin` says so and the caller does the work itself. `cargo bench --bench scripts -- helpers`
//! measures two items of 20 us on two threads, of which the second is an idle helper, a new thread, or one of tokio's.
//!
//! In: work. Out: nothing; the work reports to its owner itself. Must hold:
//! - HELPERS-1: work that begins does not wait for other work to end, since it has a thread of its own. When
//!   [`POOL_MAX`] threads are busy, no further work begins.
//! - HELPERS-2: an idle thread waits for more work before it ends, since starting a thread takes as long as ten small
//!   scripts.

use super::{STACK_BYTES, threads};
use crossbeam_channel::{RecvTimeoutError, Sender};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The most threads at a time.
const POOL_MAX: usize = 256;
/// How long an idle thread waits for work before it ends.
const IDLE_MAX: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// The idle threads, by their numbers. The one that became idle last is at the end, and is used first.
static IDLE: Mutex<Vec<(usize, Sender<Job>)>> = Mutex::new(Vec::new());
/// The number of threads that are running.
static LIVING: AtomicUsize = AtomicUsize::new(0);

/// Starts work on a thread of its own. Returns `false`, and drops the work, if all threads are busy or none can be
/// made.
pub fn begin(job: impl FnOnce() + Send + 'static) -> bool {
    let job: Job = Box::new(job);
    let idle = IDLE.lock().pop();
    if let Some((_, thread)) = idle {
        // The thread was still listed as idle, so it has not ended and will receive this.
        return thread.send(job).is_ok();
    }
    static NUMBERS: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let one_more = |living| (living < POOL_MAX).then_some(living + 1);
    if LIVING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_err() {
        return false;
    }
    let thread = std::thread::Builder::new().name(format!("tidemill-runs-{number}")).stack_size(STACK_BYTES);
    let is_made = thread.spawn(move || serve(number, job)).is_ok();
    if !is_made {
        LIVING.fetch_sub(1, Ordering::Relaxed);
    }
    is_made
}

/// The loop of a thread: does a job, then waits for the next.
fn serve(number: usize, mut job: Job) {
    let (sender, mailbox) = crossbeam_channel::bounded(1);
    loop {
        threads::contain(job);
        IDLE.lock().push((number, sender.clone()));
        let next = mailbox.recv_timeout(IDLE_MAX).or_else(|error: RecvTimeoutError| {
            let mut idle = IDLE.lock();
            match idle.iter().position(|&(idle, _)| idle == number) {
                Some(at) => {
                    idle.remove(at);
                    Err(error)
                }
                // `begin` has just taken this thread from the list, so a job is about to arrive.
                None => {
                    drop(idle);
                    mailbox.recv().map_err(RecvTimeoutError::from)
                }
            }
        });
        match next {
            Ok(next) => job = next,
            Err(_) => break,
        }
    }
    LIVING.fetch_sub(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::begin;
    use std::sync::{Arc, Barrier};

    #[test]
    fn work_that_is_under_way_keeps_none_from_beginning() {
        for _ in 0..3 {
            // Twenty jobs wait for each other, and one panics.
            let all = Arc::new(Barrier::new(21));
            for _ in 0..20 {
                let all = all.clone();
                let wait = move || {
                    all.wait();
                };
                assert!(begin(wait));
            }
            assert!(begin(|| panic!("on purpose")));
            all.wait();
        }
    }
}

//! Threads that do parts of what a task awaits: a thread pool that is made as it is needed, and ends when it is not.
//!
//! Why not the blocking threads of tokio or a pool of rayon: a script may run where there is no tokio runtime, each
//! thread needs the stack that scripts do, and a share of runs that waits must keep no other work from beginning, as
//! it would in a pool of as many threads as cores. The figures are those of [`copies`](super::copies) and
//! [`crowd`](super::crowd), which this module serves.
//!
//! In: work. Out: nothing; the work tells its owner itself. Must hold:
//! - HELPERS-1: work that begins does not wait for other work to end: it has a thread of its own. Beyond
//!   [`POOL_MAX`] none begins.
//! - HELPERS-2: a thread that has nothing to do waits for more before it ends, since making one takes as long as ten
//!   small scripts do.

use super::{STACK_BYTES, threads};
use crossbeam_channel::{RecvTimeoutError, Sender};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The most threads at a time.
const POOL_MAX: usize = 256;
/// How long a thread waits for work.
const IDLE_MAX: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// The threads that wait for work, by their numbers; the one that ended some last is the last.
static IDLE: Mutex<Vec<(usize, Sender<Job>)>> = Mutex::new(Vec::new());
/// How many threads there are.
static LIVING: AtomicUsize = AtomicUsize::new(0);

/// Begins work on a thread of its own. `false`: there is none left, or no memory for one, and the work is gone.
pub fn begin(job: impl FnOnce() + Send + 'static) -> bool {
    let job: Job = Box::new(job);
    let idle = IDLE.lock().pop();
    if let Some((_, thread)) = idle {
        // It takes what it is sent: it was still there, so it has not ended.
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

/// A thread's life.
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
                // Somebody has chosen it just now.
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
            // Twenty that wait for each other, and one that panics.
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

//! Threads that do parts of what a task awaits.
//!
//! In: work. Out: nothing; the work tells its owner itself. Must hold: work never waits for other work to end, since
//! there are as many threads as work is under way; one that has nothing to do waits for more before it ends, since
//! making a thread takes as long as ten small scripts.

use super::STACK_BYTES;
use crate::threads;
use crossbeam_channel::{RecvTimeoutError, Sender};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long a thread waits for work.
const IDLE_MAX: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

/// The threads that wait for work, by their numbers; the one that ended some last is the last.
static IDLE: Mutex<Vec<(usize, Sender<Work>)>> = Mutex::new(Vec::new());

/// Begins work on a thread of its own. `false`: there is no memory for a thread, and the work is gone.
pub fn begin(work: impl FnOnce() + Send + 'static) -> bool {
    let work: Work = Box::new(work);
    let idle = IDLE.lock().pop();
    match idle {
        // It takes what it is sent: it has not ended, since it was still there.
        Some((_, thread)) => thread.send(work).is_ok(),
        None => {
            static NUMBERS: AtomicUsize = AtomicUsize::new(0);
            let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
            let thread = std::thread::Builder::new().name(format!("tidemill-runs-{number}")).stack_size(STACK_BYTES);
            thread.spawn(move || serve(number, work)).is_ok()
        }
    }
}

/// A thread's life.
fn serve(number: usize, mut work: Work) {
    let (sender, mailbox) = crossbeam_channel::bounded(1);
    loop {
        threads::contain("a thread of runs", work);
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
            Ok(next) => work = next,
            Err(_) => return,
        }
    }
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
                assert!(begin(move || drop(all.wait())));
            }
            assert!(begin(|| panic!("on purpose")));
            all.wait();
        }
    }
}

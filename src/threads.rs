//! Which threads are the runtime's own: those of the ring, of its workers and of its devices; and what of the program's
//! code runs on them; how many cores there are, and on which threads begin.
//!
//! In: each of them marks itself when it begins. Out: whether the current thread is one. Must hold: a name proves
//! nothing, since a program may name its threads as it likes; a panic of the program's code ends none of them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

thread_local! {
    static OWN: Cell<bool> = const { Cell::new(false) };
}

/// Marks the current thread as the runtime's own.
pub fn mark_own() {
    OWN.set(true);
}

/// Whether the current thread is the runtime's own: it must not wait for the ring, which may wait for it.
pub fn is_own() -> bool {
    OWN.get()
}

/// Runs what may be the program's own code on a thread of the runtime: a waker of its executor, the end of memory that it
/// lent. A panic in it is told to `tracing` and goes no further.
pub fn contain(what: &str, work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
        let words = crate::error::panic_words(&*panic);
        tracing::error!(target: "tidemill", "{what} panicked: {words}");
    }
}

/// How many threads the machine runs at once, as it was when somebody first asked: to find out, files are read.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The number of the core that the current thread is on; 0 where the system does not say (all but Linux).
pub fn core() -> usize {
    #[cfg(target_os = "linux")]
    return rustix::thread::sched_getcpu();
    #[cfg(not(target_os = "linux"))]
    0
}

/// Moves the current thread to the `nth` core after `from`, of those that it may use; where it may go afterwards stays
/// as it was. Linux puts a thread that is woken beside its waker at times, though another core is idle, and does not
/// look again for some milliseconds, which is longer than a thousand small scripts take. Elsewhere nothing is done.
pub fn move_apart(from: usize, nth: usize) {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        let Ok(allowed) = sched_getaffinity(None) else { return };
        let mut cores = (from..CpuSet::MAX_CPU).chain(0..from).filter(|&core| allowed.is_set(core)).cycle();
        let Some(wanted) = cores.nth(nth) else { return };
        if wanted != core() {
            let mut only = CpuSet::new();
            only.set(wanted);
            // What fails leaves the thread where it is.
            if sched_setaffinity(None, &only).is_ok() {
                let _ = sched_setaffinity(None, &allowed);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (from, nth);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    fn cores(set: &CpuSet) -> Vec<usize> {
        (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect()
    }

    #[test]
    fn a_thread_that_moves_may_go_wherever_it_could_before() {
        let own = std::thread::spawn(|| {
            let all = sched_getaffinity(None).unwrap();
            for nth in 0..5 {
                super::move_apart(super::core(), nth);
                assert_eq!(cores(&sched_getaffinity(None).unwrap()), cores(&all));
            }
            // With one core there is nowhere else.
            let mut only = CpuSet::new();
            only.set(*cores(&all).last().unwrap());
            sched_setaffinity(None, &only).unwrap();
            super::move_apart(super::core(), 1);
            assert_eq!(cores(&sched_getaffinity(None).unwrap()), cores(&only));
            assert_eq!(vec![super::core()], cores(&only));
        });
        own.join().unwrap();
    }
}

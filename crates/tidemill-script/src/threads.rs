//! Spreads the threads that run copies of scripts over the cores, and contains their panics.
//!
//! Must hold: a thread that was moved to another core may still run on every core that it could use before.

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use tidemill::frontend::cores;

/// Runs a job on a thread of copies. A panic in it is logged with `tracing`, and goes no further.
pub fn contain(job: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(job)) {
        let words =
            panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let words = words.unwrap_or("a panic without words");
        tracing::error!(target: "tidemill", "a thread of runs panicked, which is a bug in Tidemill: {words}");
    }
}

/// Returns the number of the core that the current thread is on; 0 if the system does not tell it (all but Linux).
pub fn core() -> usize {
    #[cfg(target_os = "linux")]
    return rustix::thread::sched_getcpu();
    #[cfg(not(target_os = "linux"))]
    0
}

/// Moves the current thread to the `nth` core after `from`, among those that it may use, and leaves the set of
/// permitted cores as it was. Linux sometimes puts a woken thread on the core of the thread that woke it, though
/// another core is idle, and moves it only some milliseconds later, which is longer than a thousand small scripts take.
/// Does nothing on other systems.
pub fn move_apart(from: usize, nth: usize) {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        let Ok(allowed) = sched_getaffinity(None) else { return };
        let Some(wanted) = nth_core((0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)), from, nth) else {
            return;
        };
        if wanted != core() {
            let mut only = CpuSet::new();
            only.set(wanted);
            // If this fails, the thread stays where it is.
            if sched_setaffinity(None, &only).is_ok() {
                let _ = sched_setaffinity(None, &allowed);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (from, nth);
}

/// Returns the `nth` of the allowed cores from `from` on. After the last core, counting goes on at the first.
#[cfg(target_os = "linux")]
fn nth_core(allowed: impl Iterator<Item = usize>, from: usize, nth: usize) -> Option<usize> {
    let allowed: Vec<usize> = allowed.collect();
    let first = allowed.iter().position(|&core| core >= from).unwrap_or(0);
    allowed.get((first + nth) % allowed.len().max(1)).copied()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn cores_are_counted_from_one_on_and_around() {
        let of = |allowed: &[usize], from, nth| super::nth_core(allowed.iter().copied(), from, nth);
        assert_eq!((0..5).map(|nth| of(&[0, 1, 2, 3], 2, nth).unwrap()).collect::<Vec<_>>(), [2, 3, 0, 1, 2]);
        // The allowed cores have gaps, and `from` is not one of them.
        assert_eq!((0..4).map(|nth| of(&[1, 4, 9], 3, nth).unwrap()).collect::<Vec<_>>(), [4, 9, 1, 4]);
        assert_eq!((of(&[1, 4, 9], 10, 0), of(&[7], 7, 3), of(&[], 0, 1)), (Some(1), Some(7), None));
    }

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
            // With one allowed core the thread stays there.
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

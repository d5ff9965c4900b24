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
    static HELD: Cell<Held> = const { Cell::new(Held::Here) };
}

/// What happens on a thread that records more than there is room for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// As the runtime's settings say.
    Here,
    /// It goes on, and is told.
    Later,
    /// It has gone on.
    Due,
}

/// Marks the current thread as the runtime's own.
pub fn mark_own() {
    OWN.set(true);
}

/// Whether the current thread is the runtime's own: it must not wait for the ring, which may wait for it.
pub fn is_own() -> bool {
    OWN.get()
}

/// Whether the current thread runs within [`unheld`].
pub fn is_unheld() -> bool {
    HELD.get() != Held::Here
}

/// Within [`unheld`]: more was recorded than there is room for.
pub fn ask_to_wait() {
    HELD.set(Held::Due);
}

/// Runs what records little by little: nothing that it records is refused, and its thread is not held. It asks whether
/// a wait is due, and awaits room by itself.
pub fn unheld<R>(work: impl FnOnce() -> R) -> R {
    struct Back(Held);
    impl Drop for Back {
        fn drop(&mut self) {
            HELD.set(self.0);
        }
    }
    let _back = Back(HELD.replace(Held::Later));
    work()
}

/// Whether what runs within [`unheld`] has recorded more than there was room for: it should come to an end soon.
pub fn is_hold_due() -> bool {
    HELD.get() == Held::Due
}

/// As [`is_hold_due`]; whoever asks waits.
pub fn take_hold() -> bool {
    let is_due = is_hold_due();
    if is_due {
        HELD.set(Held::Later);
    }
    is_due
}

/// Runs what may be the program's own code on a thread of the runtime: a waker of its executor, the end of memory that
/// it lent. A panic in it is told to `tracing`, as the program's, and goes no further.
pub fn contain(what: &str, work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
        let words = crate::error::panic_words(&*panic);
        tracing::error!(target: "tidemill", "the program's own code panicked, in {what}: {words}");
    }
}

/// Runs what the runtime does apart from its other work. A panic in it is told to `tracing`, and goes no further.
pub fn contain_own(what: &str, work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
        let words = crate::error::panic_words(&*panic);
        tracing::error!(target: "tidemill", "{what} panicked, which is a bug in Tidemill: {words}");
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
        let Some(wanted) = nth_core((0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)), from, nth) else {
            return;
        };
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

/// The `nth` of these cores from `from` on, where the first follows the last.
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
        // Holes, and a core that is not among them.
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

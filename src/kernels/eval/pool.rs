//! The worker threads of the host device, and caches for the kernels that ran lately.
//!
//! In: a number of tasks and a function that takes task after task; kernels. Out: every task is run once; the passes of
//! kernels, the plans of transforms. The calling thread works too, so that a small launch never waits for another core
//! to wake up. Must hold: results do not depend on which thread runs a task (EVAL-4).

use super::stage::Passes;
use crate::error::{Error, ErrorKind, Result};
use crate::kernels::fft::host::Plans;
use crate::kernels::ir::Kernel;
use crate::kernels::recent::Recent;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The least number of steps (one instruction for one element) for which a launch wakes another core. Library kernels
/// have limits of their own.
const WAKE_MIN: usize = 1 << 18;
/// The same limit if cores are few and other work waits for the pool. Then the other cores are busy with the program's
/// threads or the ring's, and to wake one would delay that work and the launch.
const WAKE_MIN_CROWDED: usize = 1 << 20;
/// With at least this many threads, some cores are assumed to be idle.
const CORES_MANY: usize = 4;

/// The number of kernels whose passes are cached.
const PASSES_MAX: usize = 32;

/// A private set of worker threads.
#[derive(Debug)]
pub struct Pool {
    threads: usize,
    workers: Option<rayon::ThreadPool>,
    /// Whether other work waits until the pool has finished its current work.
    crowded: AtomicBool,
    /// The passes of the kernels that ran lately.
    passes: Recent<Arc<Kernel>, Arc<Passes>, PASSES_MAX>,
    /// The plans of the Fourier transforms that ran lately.
    plans: Plans,
}

/// Hands out task numbers to one worker.
pub struct Tasks<'a> {
    next: &'a AtomicUsize,
    count: usize,
}

impl Iterator for Tasks<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let task = self.next.fetch_add(1, Relaxed);
        (task < self.count).then_some(task)
    }
}

impl Pool {
    /// A pool of `threads` workers, or of one for each core if `None`.
    ///
    /// # Errors
    /// `ErrorKind::Device` if the system can start no more threads.
    pub fn new(threads: Option<usize>) -> Result<Pool> {
        let threads = threads.unwrap_or_else(crate::threads::cores).max(1);
        let workers = if threads == 1 {
            None
        } else {
            let built = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .thread_name(|n| format!("tidemill-host-{n}"))
                .start_handler(|_| crate::threads::mark_own())
                .build()
                .map_err(|e| Error::new(ErrorKind::Device, format!("the host's worker threads did not start: {e}")))?;
            Some(built)
        };
        Ok(Pool {
            threads,
            workers,
            crowded: AtomicBool::new(false),
            passes: Recent::default(),
            plans: Plans::default(),
        })
    }

    /// The number of threads, the calling one included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Says whether other work waits for the launches that the pool gets from now on.
    pub fn set_crowded(&self, crowded: bool) {
        self.crowded.store(crowded, Relaxed);
    }

    /// Whether a launch of so many steps should wake other cores.
    pub(crate) fn is_worth_waking(&self, steps: usize) -> bool {
        let crowded = self.threads < CORES_MANY && self.crowded.load(Relaxed);
        steps >= if crowded { WAKE_MIN_CROWDED } else { WAKE_MIN }
    }

    /// The passes of a kernel. They are made once, and cached while the kernel is one of those that ran lately.
    pub(super) fn passes(&self, kernel: &Arc<Kernel>) -> Arc<Passes> {
        let make = || (kernel.clone(), Arc::new(Passes::of(kernel)));
        self.passes.get_or_make(|known| Arc::ptr_eq(known, kernel), make)
    }

    /// The plans of Fourier transforms.
    pub(crate) fn plans(&self) -> &Plans {
        &self.plans
    }

    /// Calls `work` on up to as many threads as there are tasks (on the calling thread only, unless `parallel`). Each
    /// call takes tasks until none is left. A panic in any call reaches the caller, after all calls have ended.
    pub fn run(&self, count: usize, parallel: bool, work: impl Fn(Tasks<'_>) + Sync) {
        let next = AtomicUsize::new(0);
        let tasks = || Tasks { next: &next, count };
        match &self.workers {
            Some(workers) if parallel && count > 1 => {
                let helpers = (self.threads - 1).min(count - 1);
                workers.in_place_scope(|scope| {
                    for _ in 0..helpers {
                        scope.spawn(|_| work(tasks()));
                    }
                    work(tasks());
                });
            }
            _ => work(tasks()),
        }
    }

    /// Runs `work` such that rayon's parallel iterators use the threads of this pool.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.workers {
            Some(workers) => workers.install(work),
            None => work(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn every_task_is_run_once_whatever_the_number_of_threads() {
        for threads in [1, 2, 5] {
            let pool = Pool::new(Some(threads)).unwrap();
            for count in [0, 1, 2, 1000] {
                let sum = AtomicU64::new(0);
                pool.run(count, true, |tasks| {
                    for task in tasks {
                        sum.fetch_add(task as u64 + 1, Relaxed);
                    }
                });
                assert_eq!(sum.into_inner(), (count * (count + 1) / 2) as u64);
            }
        }
    }

    #[test]
    fn a_panic_in_a_worker_reaches_the_caller_and_the_pool_goes_on() {
        let pool = Pool::new(Some(2)).unwrap();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.run(64, true, |tasks| {
                for task in tasks {
                    assert_ne!(task, 33, "here");
                }
            });
        }));
        assert!(caught.is_err());
        let ran = AtomicU64::new(0);
        pool.run(8, true, |tasks| {
            ran.fetch_add(tasks.count() as u64, Relaxed);
        });
        assert_eq!(ran.into_inner(), 8);
    }
}

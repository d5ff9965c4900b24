//! The small pool that compiles pipelines, so that the ring thread never waits for a shader compiler.
//!
//! In: plans whose kernels the device has not seen. Out: results, by region. Must hold: every plan is answered once,
//! also if the compiler panics, unless the ring has ended.

use crate::contract::plan::Plan;
use crate::device::backend::Compiler;
use crate::error::{Error, ErrorKind};
use crate::ids::RegionId;
use crate::injection::Latch;
use crate::leaving::Leaving;
use crate::mail::Post;
use crate::timeline::{Detail, Lane, Timeline};
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most threads that compile. Shader compilers take locks, so that more threads hardly help.
const THREADS_MAX: usize = 8;

/// The pool.
pub(super) struct Workers {
    pool: Option<rayon::ThreadPool>,
    compilers: Vec<Arc<dyn Compiler>>,
    results: Post<(RegionId, Result<(), Error>)>,
    timeline: Timeline,
    tail: Arc<Tail>,
    /// Used by tests to hold the first compilation.
    hold: Mutex<Latch>,
}

/// State that the pool and all compilations share.
#[derive(Default)]
struct Tail {
    /// The ring has ended: plans that wait for a thread are not compiled any more.
    ended: AtomicBool,
    /// Set when the ring has ended: the exit of the process may wait for compilations that are under way.
    leaving: Mutex<Option<Leaving>>,
}

impl Drop for Workers {
    /// Does not wait: a compilation that is under way ends by itself, and its result is thrown away.
    fn drop(&mut self) {
        self.tail.ended.store(true, Ordering::Release);
        *self.tail.leaving.lock() = Some(Leaving::begin());
    }
}

impl Workers {
    /// A pool of at most `threads` threads. If no thread can be started, plans are compiled on the caller's thread.
    pub(super) fn new(
        threads: usize,
        compilers: Vec<Arc<dyn Compiler>>,
        results: Post<(RegionId, Result<(), Error>)>,
        timeline: Timeline,
        hold: Latch,
    ) -> Workers {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.clamp(1, THREADS_MAX))
            .thread_name(|number| format!("tidemill-compile-{number}"))
            .start_handler(|_| crate::threads::mark_own())
            .build()
            .ok();
        Workers { pool, compilers, results, timeline, tail: Arc::default(), hold: Mutex::new(hold) }
    }

    /// The compiler of a device that was opened later; it has the next number.
    pub(super) fn add(&mut self, compiler: Arc<dyn Compiler>) {
        self.compilers.push(compiler);
    }

    /// Compiles the kernels of a plan. The result comes back as a message, at once if there is nothing to compile.
    pub(super) fn compile(&self, plan: Arc<Plan>) {
        let region = plan.region;
        let Some(compiler) = self.compilers.get(plan.device.0 as usize).cloned() else {
            let error = Error::new(ErrorKind::Internal, format!("device {} does not exist", plan.device));
            let _ = self.results.send((region, Err(error)));
            return;
        };
        let (results, timeline) = (self.results.clone(), self.timeline.clone());
        let (tail, hold) = (self.tail.clone(), self.hold.lock().take());
        let work = move || {
            hold.wait();
            if tail.ended.load(Ordering::Acquire) {
                return;
            }
            let start_ns = timeline.now_ns();
            let result = catch_unwind(AssertUnwindSafe(|| compiler.prepare(&plan))).unwrap_or_else(|panic| {
                let words = crate::error::panic_words(&*panic);
                Err(Error::new(ErrorKind::Internal, format!("compiling panicked, which is a bug in Tidemill: {words}")))
            });
            if timeline.is_on() {
                let lane = Lane::Worker(rayon::current_thread_index().unwrap_or(0) as u32);
                let end_ns = timeline.now_ns().max(start_ns + 1);
                timeline.span(lane, "compile", start_ns, end_ns, &[("region", Detail::Int(region.0 as i64))]);
            }
            // This fails only if the ring has ended, and then the result is not needed.
            let _ = results.send((region, result));
        };
        match &self.pool {
            Some(pool) => pool.spawn(work),
            None => work(),
        }
    }
}

//! Runs long launches on threads of their own, so that the device's thread can run short ones meanwhile.
//!
//! In: launches with the memory that they use. Out: their results. Threads are started when they are first needed. Each
//! has workers of its own, so that a short launch never waits for workers of a long one.
//!
//! Must hold: HOST-5: while a long launch runs, no other batch frees or writes the memory that it uses; the device's
//! thread ensures this (`order.rs`).

use super::execute::panicked;
use crate::contract::plan::{Launch, Program};
use crate::error::Result;
use crate::ids::BatchId;
use crate::injection::Latch;
use crate::kernels::eval::{self, HostOperand, Pool};
use crate::stats::Counters;
use crossbeam_channel::{Receiver, Sender};
use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A launch, and the memory that it uses.
pub(super) struct Job {
    pub launch: Arc<Launch>,
    pub operands: SmallVec<[HostOperand<'static>; 8]>,
    pub words: Option<&'static [AtomicU32]>,
    /// Used by tests to hold the launch.
    pub hold: Latch,
}

impl Job {
    /// Runs the launch on the calling thread.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn run(&self, pool: &Pool, counters: &Counters) -> Result<()> {
        let launch = &self.launch;
        match &launch.program {
            Program::Kernel(kernel, _) => {
                eval::run(kernel, &launch.geometry, &launch.params, &self.operands, self.words, pool, counters)
            }
            Program::Library(library) => {
                let site = launch.params.first().copied().unwrap_or(0) as usize;
                eval::run_library(library, &self.operands, self.words, site, pool, counters)
            }
        }
    }
}

/// The result of a long launch.
pub(super) struct Landed {
    pub batch: BatchId,
    pub launch: Arc<Launch>,
    pub result: Result<()>,
    pub took: Duration,
}

/// The threads for long launches.
pub(super) struct Lanes {
    jobs: Sender<(BatchId, Job)>,
    mailbox: Receiver<(BatchId, Job)>,
    reports: Sender<Landed>,
    /// Receives their results.
    pub landed: Receiver<Landed>,
    threads: Vec<JoinHandle<()>>,
    workers: usize,
    counters: Arc<Counters>,
    /// Used by tests to hold the first launch.
    hold: Latch,
}

impl Lanes {
    /// No threads yet. Each thread will have `workers` workers.
    pub fn new(workers: usize, counters: Arc<Counters>, hold: Latch) -> Lanes {
        let (jobs, mailbox) = crossbeam_channel::unbounded();
        let (reports, landed) = crossbeam_channel::unbounded();
        Lanes { jobs, mailbox, reports, landed, threads: Vec::new(), workers, counters, hold }
    }

    /// Starts a launch on an idle thread, while `busy` others run. Returns the launch if the system can start no thread
    /// for it.
    pub fn start(&mut self, batch: BatchId, mut job: Job, busy: usize) -> Option<Job> {
        while self.threads.len() <= busy {
            let number = self.threads.len();
            let (workers, counters) = (self.workers, self.counters.clone());
            let (mailbox, reports) = (self.mailbox.clone(), self.reports.clone());
            let Ok(pool) = Pool::new(Some(workers)) else { return Some(job) };
            let thread = std::thread::Builder::new().name(format!("tidemill-long-{number}"));
            let spawned = thread.spawn(move || work(&mailbox, &reports, &pool, &counters));
            match spawned {
                Ok(thread) => self.threads.push(thread),
                Err(_) => return Some(job),
            }
        }
        job.hold = self.hold.take();
        self.jobs.send((batch, job)).err().map(|back| back.into_inner().1)
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        // This drops the only sender, so the threads end.
        self.jobs = crossbeam_channel::unbounded().0;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn work(mailbox: &Receiver<(BatchId, Job)>, reports: &Sender<Landed>, pool: &Pool, counters: &Counters) {
    crate::threads::mark_own();
    while let Ok((batch, job)) = mailbox.recv() {
        job.hold.wait();
        let start = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| job.run(pool, counters)));
        let result = done.unwrap_or_else(|panic| Err(panicked(&*panic)));
        // From here on, only the table refers to the memory.
        let landed = Landed { batch, launch: job.launch, result, took: start.elapsed() };
        let _ = reports.send(landed);
    }
}

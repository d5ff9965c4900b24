//! The host as a backend: runs batches as if in order, and reports them.
//!
//! In: batches and releases. Out: reports. A long launch runs on a thread of its own (`lanes`), and its batch goes on
//! when it has ended. Meanwhile, later batches run, too, unless they conflict over memory (HOST-6). A batch of a few
//! microseconds may run on the thread that sends it ([`Backend::is_brief`]), since waking another thread takes longer.

use super::blocks::Blocks;
use super::execute::{Done, Executor, is_long};
use super::lanes::{Landed, Lanes};
use super::order::Touched;
use super::table::Table;
use crate::config::DeviceChoice;
use crate::contract::batch::{Batch, Command};
use crate::contract::costs::{COPY_US_PER_BYTE, FREE_US_PER_BYTE, INLINE_LAUNCH_US, LAUNCH_APART_US};
use crate::contract::device::DeviceInfo;
use crate::contract::plan::{Launch, Program};
use crate::device::backend::{Backend, Context, DeviceLoss, Driving, blame_from, blamed};
use crate::error::{Error, ErrorKind};
use crate::ids::{BatchId, BufferId, RegionId};
use crate::injection::{Injection, Wrong};
use crate::kernels::eval::Pool;
use crate::timeline::{Detail, Lane, flow};
use crossbeam_channel::Receiver;
use std::collections::VecDeque;
use std::sync::Arc;

/// The state of the host device.
pub(super) struct Host {
    /// Declared before the table, so that its threads end before the memory that they use is dropped.
    lanes: Lanes,
    context: Context,
    pool: Pool,
    info: DeviceInfo,
    table: Table,
    /// Batches whose long launch runs on its own thread.
    long_running: Vec<Running>,
    /// Work that conflicts with those batches, or with earlier work in this queue.
    waiting: VecDeque<(HostTask, Touched)>,
    /// Declared last, so that it is dropped after everything that uses memory.
    blocks: Emptied,
}

/// The blocks of a host device. When it is dropped, free blocks are returned to the system, and gathered arrays that
/// the program still holds keep only their own blocks.
struct Emptied(Arc<Blocks>);

impl Drop for Emptied {
    fn drop(&mut self) {
        self.0.drop_free();
    }
}

/// Work in the order in which it came.
enum HostTask {
    /// A batch, with the faults that a test injects.
    Batch(Batch, Wrong),
    Release(Vec<BufferId>),
}

impl HostTask {
    fn touched(&self) -> Touched {
        match self {
            HostTask::Batch(batch, _) => Touched::by(&batch.commands),
            HostTask::Release(buffers) => Touched::dropping(buffers),
        }
    }
}

/// The faults that a test injects, if this is the device under test.
fn injection(context: &Context) -> Option<&Injection> {
    (context.config.device == DeviceChoice::Host).then_some(context.config.injection())
}

/// A batch that has begun.
struct Running {
    id: BatchId,
    region: RegionId,
    rest: std::vec::IntoIter<Command>,
    touched: Touched,
    done: Done,
    start_ns: u64,
}

impl Backend for Host {
    type Signal = Landed;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn driving(&self) -> Driving {
        // Polling would take a core from the host's own workers.
        Driving { thread: "tidemill-host".to_owned(), lane: "host", look: None }
    }

    fn signals(&self) -> Receiver<Landed> {
        self.lanes.landed.clone()
    }

    fn submit(&mut self, batch: Batch, wrong: Wrong, more_waits: bool) -> Result<(), DeviceLoss> {
        self.pool.set_crowded(more_waits);
        if wrong.loses() {
            return Err(self.lose(&batch));
        }
        self.take(HostTask::Batch(batch, wrong));
        Ok(())
    }

    fn release(&mut self, buffers: Vec<BufferId>) {
        self.take(HostTask::Release(buffers));
    }

    fn trim(&mut self, all: bool) {
        self.blocks.0.trim(all);
        if all {
            super::trim_heap();
        }
    }

    /// A long launch has ended: continues its batch, and the work that waited for it.
    fn signalled(&mut self, landed: Landed) -> Result<(), DeviceLoss> {
        self.landed(landed);
        Ok(())
    }

    fn has_brief_work(&self) -> bool {
        true
    }

    /// Brief batches consist of small kernels and small copies.
    fn is_brief(&self, batch: &Batch, within_us: f64) -> bool {
        self.long_running.is_empty() && self.is_short(batch, within_us)
    }

    fn frees_briefly(&self, buffers: &[BufferId], within_us: f64) -> bool {
        self.long_running.is_empty() && buffers.iter().map(|&buffer| self.free_us(buffer)).sum::<f64>() < within_us
    }

    /// Waits for the long launches.
    fn finish(&mut self) {
        while !self.long_running.is_empty() {
            let Ok(landed) = self.lanes.landed.recv() else { break };
            self.landed(landed);
        }
    }
}

impl Host {
    /// A host device without allocations.
    pub fn new(context: Context, pool: Pool, info: DeviceInfo, blocks: Arc<Blocks>) -> Host {
        let hold = injection(&context).map(Injection::first_long).unwrap_or_default();
        Host {
            lanes: Lanes::new(pool.threads(), context.counters.clone(), hold),
            context,
            pool,
            info,
            table: Table::new(blocks.clone()),
            long_running: Vec::new(),
            waiting: VecDeque::new(),
            blocks: Emptied(blocks),
        }
    }

    fn free_us(&self, buffer: BufferId) -> f64 {
        self.table.bytes_of(buffer) as f64 * FREE_US_PER_BYTE
    }

    /// Whether a batch is estimated to take at most this many microseconds on one thread.
    fn is_short(&self, batch: &Batch, within_us: f64) -> bool {
        let mut left_us = within_us.min(self.long_us());
        // The cost model is for all threads together, but a small kernel runs on one thread.
        let alone_us = |launch: &Launch| {
            INLINE_LAUNCH_US
                + (launch.estimate_us(&self.info.costs) - self.info.costs.dispatch_us) * self.pool.threads() as f64
        };
        batch.commands.iter().all(|command| {
            left_us -= match command {
                Command::Dispatch { launch, bindings, .. } => {
                    let written = launch.uses.iter().zip(bindings).filter(|(usage, _)| usage.writes);
                    // Written memory that is shared with a user is copied first (HOST-2).
                    let bytes: u64 = written.flat_map(|(_, slots)| slots).map(|slot| slot.bytes).sum();
                    match launch.program {
                        Program::Kernel(..) => alone_us(launch) + bytes as f64 * COPY_US_PER_BYTE,
                        // Some library kernels use the worker pool.
                        Program::Library(_) => return false,
                    }
                }
                Command::Copy { to: slot, .. } | Command::Zero { slot } => slot.bytes as f64 * COPY_US_PER_BYTE,
                Command::Free { buffer } => self.free_us(*buffer),
                Command::Upload { .. } | Command::Allocate { .. } => 0.0,
                Command::Readback { .. } | Command::ReadFaults { .. } => 0.0,
            };
            left_us > 0.0
        })
    }

    /// Starts work, or queues it behind the work that it conflicts with (HOST-6). The set of allocations is computed
    /// only while a long launch runs.
    fn take(&mut self, work: HostTask) {
        let touched = (!self.long_running.is_empty()).then(|| work.touched());
        self.take_touching(work, touched);
    }

    fn take_touching(&mut self, work: HostTask, touched: Option<Touched>) {
        let waits = |touched: &Touched| {
            self.long_running.iter().any(|running| running.touched.conflicts(touched))
                || self.waiting.iter().any(|(_, earlier)| earlier.conflicts(touched))
        };
        match touched {
            Some(touched) if waits(&touched) => self.waiting.push_back((work, touched)),
            touched => self.begin(work, touched),
        }
    }

    fn begin(&mut self, work: HostTask, touched: Option<Touched>) {
        match work {
            HostTask::Release(buffers) => buffers.into_iter().for_each(|b| self.table.free(b)),
            HostTask::Batch(Batch { id, region, commands, .. }, wrong) => {
                let long_us = self.long_us();
                let takes_long = |command: &Command| match command {
                    Command::Dispatch { launch, .. } => is_long(launch, long_us, &self.info.costs),
                    _ => false,
                };
                let touched = match touched {
                    None if commands.iter().any(takes_long) => Touched::by(&commands),
                    touched => touched.unwrap_or_default(),
                };
                let (rest, start_ns) = (commands.into_iter(), self.context.timeline.now_ns());
                let running = Running { id, region, rest, touched, done: Done::default(), start_ns };
                match wrong.starve() {
                    Ok(()) => self.go_on(running, wrong),
                    Err(error) => self.end(running, Some(error)),
                }
            }
        }
    }

    fn long_us(&self) -> f64 {
        injection(&self.context).and_then(Injection::long_launch_us).unwrap_or(LAUNCH_APART_US)
    }

    /// Runs the rest of a batch, up to its end or its next long launch.
    fn go_on(&mut self, mut running: Running, mut wrong: Wrong) {
        loop {
            let (timeline, region) = (self.context.timeline.clone(), running.region);
            let make = |parent| tracing::debug_span!(parent: parent, "batch", region = region.0);
            let result = timeline.in_span(&timeline.callers().of(region), make, || {
                self.execute(&mut running, |executor, rest| {
                    executor.wrong = std::mem::take(&mut wrong);
                    executor.run(rest)
                })
            });
            let job = match result {
                Ok(Some(job)) => job,
                Ok(None) => return self.end(running, None),
                Err(error) => return self.end(running, Some(error)),
            };
            let (op, site) = job.launch.blame;
            let Some(job) = self.lanes.start(running.id, job, self.long_running.len()) else {
                self.long_running.push(running);
                return;
            };
            // The system can start no thread, so the launch runs here.
            if let Err(error) = self.execute(&mut running, |executor, _| executor.here(&job)) {
                return self.end(running, Some(error.with_op(op).with_site(site)));
            }
        }
    }

    /// Runs a function with the executor of a batch.
    fn execute<T>(
        &mut self,
        running: &mut Running,
        run: impl FnOnce(&mut Executor<'_>, &mut std::vec::IntoIter<Command>) -> T,
    ) -> T {
        let long_us = self.long_us();
        let mut executor = Executor {
            device: self.info.id,
            context: &self.context,
            table: &mut self.table,
            pool: &self.pool,
            costs: &self.info.costs,
            wrong: Wrong::default(),
            done: std::mem::take(&mut running.done),
            long_us,
        };
        let result = run(&mut executor, &mut running.rest);
        running.done = executor.done;
        result
    }

    /// A long launch has ended: continues its batch, and the work that waited for it.
    fn landed(&mut self, landed: Landed) {
        let Landed { batch, launch, result, took } = landed;
        let Some(at) = self.long_running.iter().position(|running| running.id == batch) else { return };
        let mut running = self.long_running.swap_remove(at);
        match result {
            Ok(()) => {
                self.execute(&mut running, |executor, _| executor.ran(&launch, took));
                self.go_on(running, Wrong::default());
            }
            Err(error) => {
                let (op, site) = launch.blame;
                self.end(running, Some(error.with_op(op).with_site(site)));
            }
        }
        for (work, touched) in std::mem::take(&mut self.waiting) {
            self.take_touching(work, Some(touched));
        }
    }

    /// Reports a batch.
    fn end(&mut self, running: Running, error: Option<Error>) {
        let Running { id, region, rest, done, start_ns, .. } = running;
        let blame = error.as_ref().and_then(|_| blame_from(rest.as_slice(), 0));
        self.table.allocations_of(rest);
        let timeline = &self.context.timeline;
        if timeline.is_on() {
            let details = [("region", Detail::Int(region.0 as i64))];
            let lane = Lane::DeviceQueue(self.info.id);
            timeline.flow_end(lane.clone(), flow::to_device(region), start_ns);
            timeline.span(lane, &format!("batch {id}"), start_ns, timeline.now_ns(), &details);
        }
        match error {
            None => self.context.reports.finished(id, done.faults, done.compute_ns),
            // A command that is no launch fails on behalf of the next launch, whose op is named.
            Some(error) if error.op().is_none() => self.fail(id, blamed(error, blame)),
            Some(error) => self.fail(id, error),
        }
    }

    /// Simulates a loss: drops all memory, and goes on with an empty device.
    fn lose(&mut self, batch: &Batch) -> DeviceLoss {
        let error = Error::new(ErrorKind::DeviceLost, "the device was lost").with_device(self.info.name.clone());
        // Batches with a long launch use memory from before the loss, so they fail, too.
        for running in std::mem::take(&mut self.long_running) {
            let _ = self.lanes.landed.recv();
            self.fail(running.id, error.clone());
        }
        for (work, _) in std::mem::take(&mut self.waiting) {
            if let HostTask::Batch(waiting, _) = work {
                self.fail(waiting.id, error.clone());
            }
        }
        self.table.lose_all();
        self.fail(batch.id, blamed(error.clone(), blame_from(&batch.commands, 0)));
        DeviceLoss { error, replaced: true }
    }

    fn fail(&self, batch: BatchId, error: Error) {
        self.context.reports.failed(batch, error.with_device(self.info.name.clone()));
    }
}

//! The host as a backend: batches as if in order, reports out.
//!
//! In: batches and releases. Out: reports. A launch that takes long runs beside others (`lanes`); its batch goes on when
//! it has ended. What comes after it meanwhile runs too, unless it touches the same memory (HOST-6). What takes a few
//! microseconds may run on the thread of who sends it ([`Backend::is_brief`]): waking another one takes longer.

use super::blocks::Blocks;
use super::execute::{Done, Executor, is_long};
use super::lanes::{Landed, Lanes};
use super::order::Touched;
use super::table::Table;
use crate::config::DeviceChoice;
use crate::contract::batch::{Batch, Command};
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

/// A launch that is estimated to take so many microseconds runs beside others.
const LAUNCH_APART_US: f64 = 3000.0;

// With the next three constants, `Host::is_brief` estimates how long one thread takes for a batch. The ring runs a brief
// batch itself. No result depends on them. They are chosen, from what current cores do; `Costs` describes all threads of the
// host together.

/// Estimated microseconds of a kernel there that has next to nothing to do.
const INLINE_LAUNCH_US: f64 = 0.5;
/// Estimated microseconds for a byte that a thread copies: 10 GB a second.
const COPY_US_PER_BYTE: f64 = 1e-4;
/// The same for one that is given back, which the system may take from the process: 4 KiB in some 40 ns.
const FREE_US_PER_BYTE: f64 = 1e-5;

/// The state of the host device.
pub(super) struct Host {
    /// Before the table: its threads end before the memory that they use does.
    lanes: Lanes,
    context: Context,
    pool: Pool,
    info: DeviceInfo,
    table: Table,
    /// Batches with a launch beside others.
    away: Vec<Running>,
    /// What touches memory that those, or others before it, touch.
    waiting: VecDeque<(Work, Touched)>,
    /// Behind all that uses memory.
    blocks: Emptied,
}

/// The blocks of a host device, which keep nothing free once it has ended: what the program still holds of them,
/// gathered arrays, keeps nothing else.
struct Emptied(Arc<Blocks>);

impl Drop for Emptied {
    fn drop(&mut self) {
        self.0.drop_free();
    }
}

/// What the host is given, in its order where that matters.
enum Work {
    /// With what a test makes go wrong.
    Batch(Batch, Wrong),
    Release(Vec<BufferId>),
}

impl Work {
    fn touched(&self) -> Touched {
        match self {
            Work::Batch(batch, _) => Touched::by(&batch.commands),
            Work::Release(buffers) => Touched::dropping(buffers),
        }
    }
}

/// What tests inject, where this is the device under test.
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
        // A wait of the host's thread takes a core from its own workers.
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
        self.take(Work::Batch(batch, wrong));
        Ok(())
    }

    fn release(&mut self, buffers: Vec<BufferId>) {
        self.take(Work::Release(buffers));
    }

    fn trim(&mut self, all: bool) {
        self.blocks.0.trim(all);
        if all {
            super::trim_heap();
        }
    }

    /// A launch beside others has ended: its batch goes on, and so does what waited for it.
    fn signalled(&mut self, landed: Landed) -> Result<(), DeviceLoss> {
        self.landed(landed);
        Ok(())
    }

    fn has_brief_work(&self) -> bool {
        true
    }

    /// Small kernels, small copies.
    fn is_brief(&self, batch: &Batch, within_us: f64) -> bool {
        self.away.is_empty() && self.is_short(batch, within_us)
    }

    fn frees_briefly(&self, buffers: &[BufferId], within_us: f64) -> bool {
        self.away.is_empty() && buffers.iter().map(|&buffer| self.free_us(buffer)).sum::<f64>() < within_us
    }

    /// Waits for what runs beside others.
    fn finish(&mut self) {
        while !self.away.is_empty() {
            let Ok(landed) = self.lanes.landed.recv() else { break };
            self.landed(landed);
        }
    }
}

impl Host {
    /// A device that holds nothing.
    pub fn new(context: Context, pool: Pool, info: DeviceInfo, blocks: Arc<Blocks>) -> Host {
        let hold = injection(&context).map(Injection::first_long).unwrap_or_default();
        Host {
            lanes: Lanes::new(pool.threads(), context.counters.clone(), hold),
            context,
            pool,
            info,
            table: Table::new(blocks.clone()),
            away: Vec::new(),
            waiting: VecDeque::new(),
            blocks: Emptied(blocks),
        }
    }

    fn free_us(&self, buffer: BufferId) -> f64 {
        self.table.bytes_of(buffer) as f64 * FREE_US_PER_BYTE
    }

    /// Whether a batch takes at most so many microseconds: small kernels, small copies.
    fn is_short(&self, batch: &Batch, within_us: f64) -> bool {
        let mut left_us = within_us.min(self.long_us());
        // The estimate is of all threads; what is small stays on one, and wakes no other.
        let alone_us = |launch: &Launch| {
            INLINE_LAUNCH_US
                + (launch.estimate_us(&self.info.costs) - self.info.costs.dispatch_us) * self.pool.threads() as f64
        };
        batch.commands.iter().all(|command| {
            left_us -= match command {
                Command::Dispatch { launch, bindings, .. } => {
                    let written = launch.uses.iter().zip(bindings).filter(|(usage, _)| usage.writes);
                    // Where somebody else holds what is written, it is copied first (HOST-2).
                    let bytes: u64 = written.flat_map(|(_, slots)| slots).map(|slot| slot.bytes).sum();
                    match launch.program {
                        Program::Kernel(..) => alone_us(launch) + bytes as f64 * COPY_US_PER_BYTE,
                        // Some have workers of their own.
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

    /// Begins work, or lets it wait for what it must come after (HOST-6). What it touches is found out only where that
    /// matters: while something runs beside others.
    fn take(&mut self, work: Work) {
        let touched = (!self.away.is_empty()).then(|| work.touched());
        self.take_touching(work, touched);
    }

    fn take_touching(&mut self, work: Work, touched: Option<Touched>) {
        let waits = |touched: &Touched| {
            self.away.iter().any(|running| running.touched.conflicts(touched))
                || self.waiting.iter().any(|(_, earlier)| earlier.conflicts(touched))
        };
        match touched {
            Some(touched) if waits(&touched) => self.waiting.push_back((work, touched)),
            touched => self.begin(work, touched),
        }
    }

    fn begin(&mut self, work: Work, touched: Option<Touched>) {
        match work {
            Work::Release(buffers) => buffers.into_iter().for_each(|b| self.table.free(b)),
            Work::Batch(Batch { id, region, commands, .. }, wrong) => {
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

    /// Runs what is left of a batch, up to its end or a launch that takes long.
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
            let Some(job) = self.lanes.start(running.id, job, self.away.len()) else {
                self.away.push(running);
                return;
            };
            // The system has no thread left: it runs here.
            if let Err(error) = self.execute(&mut running, |executor, _| executor.here(&job)) {
                return self.end(running, Some(error.with_op(op).with_site(site)));
            }
        }
    }

    /// Does something for a batch.
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

    /// A launch beside others has ended: its batch goes on, and so does what waited for it.
    fn landed(&mut self, landed: Landed) {
        let Landed { batch, launch, result, took } = landed;
        let Some(at) = self.away.iter().position(|running| running.id == batch) else { return };
        let mut running = self.away.swap_remove(at);
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
            // What is no launch fails for the sake of the next one.
            Some(error) if error.op().is_none() => self.fail(id, blamed(error, blame)),
            Some(error) => self.fail(id, error),
        }
    }

    /// The device is gone with all it held, and comes back empty.
    fn lose(&mut self, batch: &Batch) -> DeviceLoss {
        let error = Error::new(ErrorKind::DeviceLost, "the device was lost").with_device(self.info.name.clone());
        // What runs beside others uses memory of before, too.
        for running in std::mem::take(&mut self.away) {
            let _ = self.lanes.landed.recv();
            self.fail(running.id, error.clone());
        }
        for (work, _) in std::mem::take(&mut self.waiting) {
            if let Work::Batch(waiting, _) = work {
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

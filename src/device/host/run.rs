//! The host device's thread: batches as if in order, events out.
//!
//! In: instructions. Out: events. A launch that takes long runs beside others (`lanes`); its batch goes on when it has
//! ended. What comes after it meanwhile runs too, unless it touches the same memory (HOST-6).

use super::blocks::Blocks;
use super::execute::{Done, Executor, is_long};
use super::lanes::{Landed, Lanes};
use super::order::Touched;
use super::table::Table;
use crate::config::{DeviceChoice, Injection};
use crate::device::handle::Context;
use crate::device::info::Costs;
use crate::device::message::{Batch, Command, DeviceEvent, DeviceInstruction};
use crate::error::{Error, ErrorKind};
use crate::ids::{BatchId, BufferId, DeviceId, RegionId};
use crate::kernels::eval::Pool;
use crate::timeline::{Detail, Lane, flow};
use crossbeam_channel::{Receiver, select};
use std::collections::VecDeque;
use std::sync::Arc;

/// How errors name this device.
const NAME: &str = "host";
/// A launch that is estimated to take so many microseconds runs beside others.
const LAUNCH_APART_US: f64 = 3000.0;

/// The state of the host device.
pub(super) struct Actor {
    /// Before the table: its threads end before the memory that they use does.
    lanes: Lanes,
    context: Context,
    pool: Pool,
    costs: Costs,
    table: Table,
    /// Batches with a launch beside others.
    away: Vec<Running>,
    /// What touches memory that those, or others before it, touch.
    waiting: VecDeque<(Work, Touched)>,
    /// Batches begun.
    begun: u64,
    /// `Stop` was heard while the mailbox was drained.
    stopped: bool,
}

/// What the mailbox brings, in its order where that matters.
enum Work {
    /// With what a test makes go wrong.
    Batch(Batch, Option<Wrong>),
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

/// What a test makes go wrong in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// A panic in its first dispatch, or at its end.
    Panic,
    /// Memory is exhausted before its first command.
    Starve,
}

/// What tests inject, where this is the device under test.
fn injection(context: &Context) -> Option<&Injection> {
    (context.config.device == DeviceChoice::Host).then_some(&context.config.injection)
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

/// What the thread hears.
enum Heard {
    Told(DeviceInstruction),
    Landed(Landed),
    Nothing,
}

impl Actor {
    pub fn new(context: Context, pool: Pool, costs: Costs, blocks: Arc<Blocks>) -> Actor {
        let hold = injection(&context).and_then(|i| i.hold_first_long.clone());
        Actor {
            lanes: Lanes::new(pool.threads(), context.counters.clone(), hold),
            context,
            pool,
            costs,
            table: Table::new(blocks),
            away: Vec::new(),
            waiting: VecDeque::new(),
            begun: 0,
            stopped: false,
        }
    }

    /// Runs until told to stop, or until nobody can tell it anything.
    pub fn run(mut self, mailbox: &Receiver<DeviceInstruction>) {
        crate::threads::mark_own();
        let _guard = self.context.timeline.clone().enter_thread("host");
        while !self.stopped {
            match self.hear(mailbox) {
                Heard::Told(DeviceInstruction::Submit(batch)) => self.submit(batch, mailbox),
                Heard::Told(DeviceInstruction::Release(buffers)) => {
                    self.take(Work::Release(buffers));
                }
                Heard::Landed(landed) => self.landed(landed),
                Heard::Told(DeviceInstruction::Stop) | Heard::Nothing => break,
            }
        }
        while !self.away.is_empty() {
            let Ok(landed) = self.lanes.landed.recv() else { break };
            self.landed(landed);
        }
    }

    fn hear(&self, mailbox: &Receiver<DeviceInstruction>) -> Heard {
        if self.away.is_empty() {
            return mailbox.recv().map_or(Heard::Nothing, Heard::Told);
        }
        select! {
            recv(self.lanes.landed) -> landed => landed.map_or(Heard::Nothing, Heard::Landed),
            recv(mailbox) -> told => told.map_or(Heard::Nothing, Heard::Told),
        }
    }

    fn submit(&mut self, batch: Batch, mailbox: &Receiver<DeviceInstruction>) {
        let number = self.begun;
        self.begun += 1;
        let at = |wanted: Option<u64>| wanted == Some(number);
        let (mut wrong, mut lost) = (None, false);
        if let Some(injection) = injection(&self.context) {
            if let (0, Some(hold)) = (number, &injection.hold_first_batch) {
                hold.wait();
            }
            let starves = at(injection.out_of_memory_at_batch).then_some(Wrong::Starve);
            wrong = starves.or(at(injection.panic_at_batch).then_some(Wrong::Panic));
            lost = at(injection.lose_device_at_batch);
        }
        if lost {
            self.lose(batch.id, mailbox);
        } else {
            self.take(Work::Batch(batch, wrong));
        }
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
                    Command::Dispatch { launch, .. } => is_long(launch, long_us, &self.costs),
                    _ => false,
                };
                let touched = match touched {
                    None if commands.iter().any(takes_long) => Touched::by(&commands),
                    touched => touched.unwrap_or_default(),
                };
                let (rest, start_ns) = (commands.into_iter(), self.context.timeline.now_ns());
                let running = Running { id, region, rest, touched, done: Done::default(), start_ns };
                if wrong == Some(Wrong::Starve) {
                    let words = "the exhausted memory that a test asked for";
                    return self.end(running, Some(Error::new(ErrorKind::OutOfMemory, words)));
                }
                self.go_on(running, wrong == Some(Wrong::Panic));
            }
        }
    }

    fn long_us(&self) -> f64 {
        injection(&self.context).and_then(|i| i.long_launch_us).unwrap_or(LAUNCH_APART_US)
    }

    /// Runs what is left of a batch, up to its end or a launch that takes long.
    fn go_on(&mut self, mut running: Running, mut panics: bool) {
        loop {
            let span = tracing::debug_span!("batch", region = running.region.0);
            let result = span.in_scope(|| {
                self.execute(&mut running, |executor, rest| {
                    executor.panics = std::mem::take(&mut panics);
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
            context: &self.context,
            table: &mut self.table,
            pool: &self.pool,
            costs: &self.costs,
            panics: false,
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
                self.go_on(running, false);
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
        self.table.allocations_of(rest);
        let timeline = &self.context.timeline;
        if timeline.is_on() {
            let details = [("region", Detail::Int(region.0 as i64))];
            let lane = Lane::DeviceQueue(DeviceId::HOST);
            timeline.flow_end(lane.clone(), flow::to_device(region), start_ns);
            timeline.span(lane, &format!("batch {id}"), start_ns, timeline.now_ns(), &details);
        }
        match error {
            None => self.send(DeviceEvent::BatchFinished {
                device: DeviceId::HOST,
                batch: id,
                faults: done.faults,
                device_ns: done.compute_ns,
            }),
            Some(error) => self.fail(id, error),
        }
    }

    /// The device is gone with all it held, and comes back empty. Batches that wait in the mailbox name memory
    /// of before: they fail first.
    fn lose(&mut self, batch: BatchId, mailbox: &Receiver<DeviceInstruction>) {
        let error = Error::new(ErrorKind::DeviceLost, "the device was lost").with_device(NAME);
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
        self.fail(batch, error.clone());
        for instruction in mailbox.try_iter() {
            match instruction {
                DeviceInstruction::Submit(waiting) => self.fail(waiting.id, error.clone()),
                DeviceInstruction::Release(_) => {}
                DeviceInstruction::Stop => {
                    self.stopped = true;
                    break;
                }
            }
        }
        self.send(DeviceEvent::Lost { device: DeviceId::HOST, error, replaced: true });
    }

    fn fail(&self, batch: BatchId, error: Error) {
        let error = error.with_device(NAME);
        self.send(DeviceEvent::BatchFailed { device: DeviceId::HOST, batch, error });
    }

    fn send(&self, event: DeviceEvent) {
        // The ring may be gone; then nobody waits for this.
        let _ = self.context.events.send(event);
    }
}

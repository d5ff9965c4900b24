//! The host device's thread: batches as if in order, events out.
//!
//! In: instructions. Out: events. A launch that takes long runs beside others (`lanes`); its batch goes on when it has
//! ended. What comes after it meanwhile runs too, unless it touches the same memory (HOST-6). What takes a few
//! microseconds may run on the thread of who sends it ([`Desk`]): waking this one takes longer.

use super::blocks::Blocks;
use super::execute::{Done, Executor, is_long};
use super::lanes::{Landed, Lanes};
use super::order::Touched;
use super::table::Table;
use crate::config::DeviceChoice;
use crate::contract::batch::{Batch, Command};
use crate::contract::device::{Costs, DeviceInfo};
use crate::contract::messages::device::{DeviceEvent, DeviceInstruction};
use crate::contract::plan::{Launch, Program};
use crate::device::handle::{Context, Inline};
use crate::error::{Error, ErrorKind};
use crate::ids::{BatchId, BufferId, DeviceId, RegionId};
use crate::injection::{Injection, Wrong};
use crate::kernels::eval::Pool;
use crate::timeline::{Detail, Lane, Timeline, flow};
use crossbeam_channel::{Receiver, Select, TryRecvError};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// How errors name this device.
const NAME: &str = "host";
/// A launch that is estimated to take so many microseconds runs beside others.
const LAUNCH_APART_US: f64 = 3000.0;

/// Estimated microseconds of a kernel there that has next to nothing to do.
const INLINE_LAUNCH_US: f64 = 0.5;
/// Estimated microseconds for a byte that is copied.
const COPY_US_PER_BYTE: f64 = 1e-4;
/// The same for one that is given back, which the system may take from the process.
const FREE_US_PER_BYTE: f64 = 1e-5;

/// Where the state is met: by the device's thread, and by who sends what takes a moment.
///
/// Must hold: HOST-7: who takes from the mailbox holds the state. So where the mailbox is empty and the state is free,
/// all that came before has ended, but for what runs beside others.
pub(super) struct Desk {
    /// None once the device's thread has ended, whichever way.
    actor: Mutex<Option<Actor>>,
}

/// The state of the host device.
pub(super) struct Actor {
    /// Before the table: its threads end before the memory that they use does.
    lanes: Lanes,
    context: Context,
    pool: Pool,
    /// Its number.
    device: DeviceId,
    costs: Costs,
    table: Table,
    blocks: Arc<Blocks>,
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

impl Desk {
    pub fn new(actor: Actor) -> Desk {
        Desk { actor: Mutex::new(Some(actor)) }
    }

    /// The device's thread: runs until told to stop, or until nobody can tell it anything.
    pub fn run(&self, mailbox: &Receiver<DeviceInstruction>, (timeline, landed): (Timeline, Receiver<Landed>)) {
        crate::threads::mark_own();
        let _guard = timeline.enter_thread("host");
        let _end = Closes(self);
        let mut news = Select::new();
        news.recv(&landed);
        news.recv(mailbox);
        loop {
            // What there is to hear is taken under the lock (HOST-7).
            news.ready();
            let mut actor = self.actor.lock();
            let Some(actor) = actor.as_mut() else { return };
            while let Ok(landed) = landed.try_recv() {
                actor.landed(landed);
            }
            match mailbox.try_recv() {
                Ok(instruction) => actor.hear(instruction, Some(mailbox)),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => actor.stopped = true,
            }
            if actor.stopped {
                return actor.finish();
            }
        }
    }
}

/// Ends the device with its thread: nobody else does its work, and the ring hears of it.
struct Closes<'a>(&'a Desk);

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        let actor = self.0.actor.lock().take();
        let blocks = actor.as_ref().map(|actor| actor.blocks.clone());
        drop(actor);
        // What the program still holds of it, gathered arrays, keeps nothing else.
        blocks.into_iter().for_each(|blocks| blocks.drop_free());
    }
}

impl Inline for Desk {
    fn try_inline(&self, instruction: DeviceInstruction, within_us: f64) -> Result<(), DeviceInstruction> {
        let Some(mut actor) = self.actor.try_lock() else { return Err(instruction) };
        match actor.as_mut() {
            Some(actor) if actor.may_inline(&instruction, within_us) => actor.hear(instruction, None),
            _ => return Err(instruction),
        }
        Ok(())
    }
}

impl Actor {
    pub fn new(context: Context, pool: Pool, info: &DeviceInfo, blocks: Arc<Blocks>) -> Actor {
        let hold = injection(&context).map(Injection::first_long).unwrap_or_default();
        Actor {
            lanes: Lanes::new(pool.threads(), context.counters.clone(), hold),
            context,
            pool,
            device: info.id,
            costs: info.costs,
            table: Table::new(blocks.clone()),
            blocks,
            away: Vec::new(),
            waiting: VecDeque::new(),
            begun: 0,
            stopped: false,
        }
    }

    /// What the device's thread needs beside its mailbox: where it shows what it does, and how long launches end.
    pub fn ears(&self) -> (Timeline, Receiver<Landed>) {
        (self.context.timeline.clone(), self.lanes.landed.clone())
    }

    /// Takes in an instruction; who has the mailbox gives it along.
    fn hear(&mut self, instruction: DeviceInstruction, mailbox: Option<&Receiver<DeviceInstruction>>) {
        self.pool.set_crowded(mailbox.is_some_and(|mailbox| !mailbox.is_empty()));
        match instruction {
            DeviceInstruction::Submit(batch) => self.submit(batch, mailbox),
            DeviceInstruction::Release(buffers) => self.take(Work::Release(buffers)),
            DeviceInstruction::Trim { all } => {
                self.blocks.trim(all);
                if all {
                    super::trim_heap();
                }
            }
            DeviceInstruction::Stop => self.stopped = true,
        }
    }

    /// Waits for what runs beside others.
    fn finish(&mut self) {
        while !self.away.is_empty() {
            let Ok(landed) = self.lanes.landed.recv() else { break };
            self.landed(landed);
        }
    }

    /// Whether an instruction may be carried out on the thread of who gives it: it takes at most so many microseconds,
    /// and nothing before it is unfinished.
    fn may_inline(&self, instruction: &DeviceInstruction, within_us: f64) -> bool {
        let quiet = self.away.is_empty() && !self.stopped;
        quiet
            && match instruction {
                DeviceInstruction::Submit(batch) => self.is_short(batch, within_us),
                DeviceInstruction::Release(buffers) => {
                    buffers.iter().map(|&buffer| self.free_us(buffer)).sum::<f64>() < within_us
                }
                DeviceInstruction::Trim { .. } | DeviceInstruction::Stop => false,
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
            INLINE_LAUNCH_US + (launch.estimate_us(&self.costs) - self.costs.dispatch_us) * self.pool.threads() as f64
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

    fn submit(&mut self, batch: Batch, mailbox: Option<&Receiver<DeviceInstruction>>) {
        let number = self.begun;
        self.begun += 1;
        let (mut wrong, mut lost) = (Wrong::default(), false);
        if let Some(injection) = injection(&self.context) {
            injection.hold_batch(number);
            wrong = injection.wrong_at(number);
            lost = injection.loses_device_at(number);
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
            device: self.device,
            context: &self.context,
            table: &mut self.table,
            pool: &self.pool,
            costs: &self.costs,
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
        self.table.allocations_of(rest);
        let timeline = &self.context.timeline;
        if timeline.is_on() {
            let details = [("region", Detail::Int(region.0 as i64))];
            let lane = Lane::DeviceQueue(self.device);
            timeline.flow_end(lane.clone(), flow::to_device(region), start_ns);
            timeline.span(lane, &format!("batch {id}"), start_ns, timeline.now_ns(), &details);
        }
        match error {
            None => self.send(DeviceEvent::BatchFinished {
                device: self.device,
                batch: id,
                faults: done.faults,
                device_ns: done.compute_ns,
            }),
            Some(error) => self.fail(id, error),
        }
    }

    /// The device is gone with all it held, and comes back empty. Batches that wait in the mailbox name memory
    /// of before: they fail first.
    fn lose(&mut self, batch: BatchId, mailbox: Option<&Receiver<DeviceInstruction>>) {
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
        for instruction in mailbox.into_iter().flat_map(Receiver::try_iter) {
            match instruction {
                DeviceInstruction::Submit(waiting) => self.fail(waiting.id, error.clone()),
                DeviceInstruction::Release(_) | DeviceInstruction::Trim { .. } => {}
                DeviceInstruction::Stop => {
                    self.stopped = true;
                    break;
                }
            }
        }
        self.send(DeviceEvent::Lost { device: self.device, error, replaced: true });
    }

    fn fail(&self, batch: BatchId, error: Error) {
        let error = error.with_device(NAME);
        self.send(DeviceEvent::BatchFailed { device: self.device, batch, error });
    }

    fn send(&self, event: DeviceEvent) {
        // The ring may be gone; then nobody waits for this.
        let _ = self.context.events.send(event);
    }
}

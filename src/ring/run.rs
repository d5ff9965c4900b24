//! The ring thread's loop: takes events from the mailboxes, runs the three state machines until no message is left, and
//! carries out their effects.
//!
//! In: device events first, then workers' results, then shutdown and cancels, then a few of the users' events at a
//! time, as far as the scheduler has room for more (`backlog`). Out: resolved futures, credits, batches. Must hold:
//! RING-1; RING-2: nothing here waits for a user or for a device, and a device never waits for the ring; work of the
//! host device runs here only if it is estimated to take a few microseconds, fewer if other work waits for the ring;
//! RING-3: whichever way the loop ends, also by a panic, the table of gathers and the gates are closed behind it.

use super::answers::Answers;
use super::backlog::{Backlog, Discarded};
use super::devices::{Devices, Opened};
use super::idle::Idle;
use super::machines::{Effect, Machines};
use super::promise::Wakes;
use super::workers::Workers;
use super::{Gates, GatherTable};
use crate::config::Room;
use crate::contract::costs::{INLINE_BUSY_US, INLINE_US};
use crate::contract::messages::device::{DeviceEvent, DeviceInstruction};
use crate::contract::messages::scheduler::{Delivered, SchedulerEvent};
use crate::device::handle::Reach;
use crate::eager::{Eager, Look};
use crate::error::{Error, ErrorKind};
use crate::ids::{DeviceId, RegionId};
use crate::leaving::Leaving;
use crate::mail::Mail;
use crate::scheduler::session_closed;
use crate::stats::Counters;
use crate::timeline::Timeline;
use flume::TryRecvError;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A message of the runtime, or of its front ends, to the loop.
#[derive(Debug)]
pub(super) enum Control {
    /// Take no new work, finish work in flight until this deadline, fail the rest, and end.
    Shutdown(Instant),
    /// Fail everything and end. If there is a `Leaving`, the exit of the process may wait for that.
    StopNow(Option<Leaving>),
    /// Return unused memory, because front ends need host memory (CLAIMS-1).
    GiveBack,
    /// Report the number of entries of each table, by name.
    #[cfg(test)]
    Tables(flume::Sender<Vec<(&'static str, usize)>>),
}

/// The loop's mailboxes.
pub(super) struct Inbox {
    /// From sessions. It is emptied into the backlog in every turn; what both hold is bounded by the gates, of a
    /// session and of all together.
    pub users: Mail<SchedulerEvent>,
    /// From devices; bounded by the batches in flight.
    pub devices: Mail<DeviceEvent>,
    /// From compile workers; bounded by the regions downstream.
    pub workers: Mail<(RegionId, Result<(), Error>)>,
    /// From the thread that opens a device; one at most.
    pub opened: Mail<Opened>,
    /// From the runtime; and, once a turn at the most, from front ends whose claims need memory.
    pub control: Mail<Control>,
}

/// All that the loop acts on.
pub(super) struct Edges {
    pub gathers: Arc<GatherTable>,
    pub answers: Arc<Answers>,
    pub gates: Arc<Gates>,
    pub reaches: Vec<Reach>,
    pub devices: Arc<Devices>,
    pub workers: Workers,
    pub counters: Arc<Counters>,
    pub timeline: Timeline,
}

/// Most events of one kind that are taken in before the next kind has its turn.
const DRAIN_MAX: usize = 256;

/// Events from users that go through the machines together. Handling several in a row keeps each machine's code in the
/// CPU's caches.
pub(super) const TOLD_AT_ONCE: usize = 4;

/// How long the loop polls for the next event after it has resolved a gather, before it sleeps. Waking the task's
/// thread takes some 15 us, and recording a short program some more. Measured on the host of an H100: compared with
/// polling for 5 us, 60 us shorten the round trip of a tiny op by 15 us.
const LOOK_FOR_USERS: Duration = Duration::from_micros(60);

/// The loop.
pub(super) struct Loop {
    pub machines: Machines,
    pub inbox: Inbox,
    pub edges: Edges,
    /// Events from users that were received and wait for their turn.
    backlog: Backlog,
    /// The shutdown that was asked for, if one was.
    shutdown: Option<Shutdown>,
    /// Failures that the loop reports in place of a device whose thread has ended.
    own_failures: VecDeque<DeviceEvent>,
    effects: Vec<Effect>,
    /// Decides when unused memory is returned to the system.
    idle: Idle,
    /// Set where the program has dropped the runtime: the exit of the process waits until this loop is dropped.
    leaving: Option<Leaving>,
    stopped: bool,
    /// All senders of events from users are gone.
    users_gone: bool,
    /// All senders of device events are gone.
    devices_gone: bool,
    open_counted: usize,
    /// A gather was resolved since the loop last polled before sleeping.
    answered: bool,
    /// Wakers to call once the effects of this step are applied.
    wakes: Wakes,
    eager: Eager,
}

/// A shutdown that was asked for.
struct Shutdown {
    /// When the remaining work fails: the earliest deadline that was asked for.
    deadline: Instant,
    /// Events from users that were received since. The scheduler is told of them after the shutdown.
    late: VecDeque<SchedulerEvent>,
    /// The scheduler was told of the shutdown. That happens once the backlog is empty.
    is_told: bool,
}

impl Loop {
    pub(super) fn new(machines: Machines, inbox: Inbox, edges: Edges, room: Room, idle: Idle) -> Loop {
        Loop {
            machines,
            inbox,
            edges,
            backlog: Backlog::new(room),
            shutdown: None,
            own_failures: VecDeque::new(),
            effects: Vec::new(),
            idle,
            leaving: None,
            stopped: false,
            users_gone: false,
            devices_gone: false,
            open_counted: 0,
            answered: false,
            wakes: Wakes::default(),
            eager: Eager::new(LOOK_FOR_USERS, false),
        }
    }

    /// The deadline of the shutdown that was asked for, if one was.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.shutdown.as_ref().map(|shutdown| shutdown.deadline)
    }

    /// Calls the wakers that are still due.
    pub(super) fn call_wakes(&mut self) {
        self.wakes.call();
    }

    /// Runs until the scheduler says stop.
    pub(super) fn run(&mut self) {
        let own = std::thread::current();
        self.inbox.devices.wakes(own.clone());
        self.inbox.workers.wakes(own.clone());
        self.inbox.opened.wakes(own.clone());
        self.inbox.control.wakes(own.clone());
        self.inbox.users.wakes(own);
        while !self.stopped {
            let busy = self.turn();
            if !busy && !self.stopped {
                self.wait();
            }
        }
    }

    /// Handles what is in the mailboxes, the most urgent first. Returns whether there was anything.
    fn turn(&mut self) -> bool {
        let mut busy = false;
        for _ in 0..DRAIN_MAX {
            let Some(event) = self.own_failures.pop_front().or_else(|| self.device_event()) else { break };
            self.machines.device(event);
            busy = true;
            // Events are handled one by one, so that each sees the state that the previous ones have left.
            self.settle();
        }
        for _ in 0..DRAIN_MAX {
            let Ok((region, result)) = self.inbox.workers.try_recv() else { break };
            self.machines.compiled(region, result);
            busy = true;
        }
        while let Ok(opened) = self.inbox.opened.try_recv() {
            self.opening_ended(opened);
            busy = true;
        }
        if busy {
            // Finished work gives its credits back before new work asks for them.
            self.settle();
            // With few cores, a woken task may run at once: all of its results should be there by then.
            self.wakes.call();
        }
        loop {
            match self.inbox.control.try_recv() {
                Ok(control) => self.control(control),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.users_gone = true;
                    break;
                }
            }
            busy = true;
        }
        if self.deadline().is_some_and(|at| Instant::now() >= at) {
            // The scheduler answers with `Stop`, so this happens once.
            self.machines.tell(SchedulerEvent::DeadlinePassed);
            busy = true;
        }
        busy |= self.take_users();
        for _ in 0..TOLD_AT_ONCE {
            let Some(event) = self.next_event() else { break };
            self.hear(event);
            busy = true;
        }
        busy |= self.tell_shutdown();
        if busy {
            self.settle();
        }
        busy |= !self.own_failures.is_empty();
        self.return_idle_memory(busy);
        self.wakes.call();
        busy
    }

    /// Has machines and devices return unused memory, when that is due (`idle`).
    fn return_idle_memory(&mut self, busy: bool) {
        if let Some(all) = self.idle.look(busy, Instant::now) {
            self.give_back(all);
        }
    }

    /// Has machines and devices return unused memory; with `all`, all of it.
    fn give_back(&mut self, all: bool) {
        self.machines.idle_passed(all);
        self.settle();
        for reach in &self.edges.reaches {
            // Sending fails only if the device has ended, and then it holds no memory.
            let _ = reach.instructions.send(DeviceInstruction::Trim { all });
        }
    }

    fn device_event(&mut self) -> Option<DeviceEvent> {
        match self.inbox.devices.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.devices_gone = true;
                None
            }
        }
    }

    fn opening_ended(&mut self, opened: Opened) {
        let result = opened.map(|device| {
            device.map(|device| {
                self.edges.reaches.push(device.reach);
                self.edges.workers.add(device.compiler);
                device.info
            })
        });
        self.machines.opening_ended(result);
    }

    fn control(&mut self, control: Control) {
        match control {
            Control::Shutdown(deadline) => {
                // Segments that were sent before the shutdown come before it.
                self.take_users();
                let first = || Shutdown { deadline, late: VecDeque::new(), is_told: false };
                let shutdown = self.shutdown.get_or_insert_with(first);
                shutdown.deadline = shutdown.deadline.min(deadline);
            }
            Control::GiveBack => self.give_back(true),
            Control::StopNow(leaving) => {
                self.leaving = leaving;
                self.backlog = Backlog::new(Room::UNLIMITED);
                self.machines.tell(SchedulerEvent::DeadlinePassed);
            }
            #[cfg(test)]
            Control::Tables(answer) => {
                let mut tables = self.machines.tables();
                tables.push(("gathers open", self.edges.gathers.open_count()));
                tables.push(("gates", self.edges.gates.count()));
                tables.push(("answers", self.edges.answers.len()));
                tables.extend(self.backlog.tables());
                let _ = answer.send(tables);
            }
        }
    }

    /// Receives events from users. A cancel overtakes segments: the scheduler is told at once if it knows the gather.
    /// If it does not, the demand is still in the backlog, which checks for cancels when the demand leaves. Returns
    /// whether the scheduler was told anything.
    fn take_users(&mut self) -> bool {
        let mut told = false;
        loop {
            match self.inbox.users.try_recv() {
                Ok(SchedulerEvent::GatherCancelled(gather)) => {
                    // While the scheduler holds events back, the demand may be in one of these.
                    if self.machines.has_gather(gather) || self.machines.is_opening() {
                        self.machines.tell(SchedulerEvent::GatherCancelled(gather));
                        told = true;
                    }
                }
                Ok(other) => match &mut self.shutdown {
                    Some(shutdown) => shutdown.late.push_back(other),
                    None => {
                        let gathers = &self.edges.gathers;
                        let discarded = self.backlog.put(other, |gather| gathers.is_open(gather));
                        self.end_discarded(discarded);
                    }
                },
                Err(TryRecvError::Empty) => return told,
                // Every session is gone, and so is the runtime.
                Err(TryRecvError::Disconnected) => {
                    self.users_gone = true;
                    return told;
                }
            }
        }
    }

    /// The next event from users for which the scheduler has room.
    fn next_event(&mut self) -> Option<SchedulerEvent> {
        // A shortcut: the checks below cost more than this one.
        if self.backlog.is_empty() {
            return None;
        }
        let inside_max = self.backlog.sessions_inside_max();
        let has_room = !self.machines.is_opening() && self.machines.sessions_waiting() < inside_max;
        let gathers = &self.edges.gathers;
        self.backlog.next(has_room, |gather| gathers.is_open(gather))
    }

    /// Fails the gathers of events that were thrown away in the backlog, and forgets the session if the scheduler never
    /// knew it.
    fn end_discarded(&mut self, discarded: Discarded) {
        let Discarded { session, nodes, cuts, gathers, unheard } = discarded;
        Counters::add(&self.edges.counters.ops_dead, nodes);
        if let Some(session) = session {
            // The callers' spans are kept until their segment reaches the scheduler. These segments never will, so the
            // spans are ended here.
            let callers = self.edges.timeline.callers();
            cuts.into_iter().for_each(|at_ns| drop(callers.take_segment(session, at_ns)));
        }
        for gather in gathers {
            self.apply(Effect::Resolve { gather, result: Err(session_closed()) });
        }
        if let Some(session) = session.filter(|_| unheard) {
            self.edges.gates.forget(session);
        }
    }

    /// Once the backlog is empty, tells the scheduler of a shutdown, and then of the events that were sent after it,
    /// which it refuses. Returns whether the scheduler was told anything.
    fn tell_shutdown(&mut self) -> bool {
        let Some(shutdown) = self.shutdown.as_mut().filter(|_| self.backlog.is_empty()) else { return false };
        let late = std::mem::take(&mut shutdown.late);
        let is_new = !std::mem::replace(&mut shutdown.is_told, true);
        if is_new {
            self.machines.tell(SchedulerEvent::ShutdownAsked);
        }
        let told = is_new || !late.is_empty();
        late.into_iter().for_each(|event| self.hear(event));
        told
    }

    fn hear(&mut self, event: SchedulerEvent) {
        let closed = match &event {
            SchedulerEvent::SessionClosed(session) => Some(*session),
            _ => None,
        };
        self.machines.tell(event);
        if let Some(session) = closed {
            self.settle();
            self.edges.gates.forget(session);
        }
    }

    /// Sleeps until there is something to do (MAIL-1: the turn before found nothing).
    fn wait(&mut self) {
        assert!(!self.devices_gone, "RING-1: every device thread has ended, and nothing that is pending can finish");
        if self.users_gone {
            // No handle is left that could stop the ring in the usual way.
            self.control(Control::StopNow(None));
            self.settle();
            return;
        }
        let mut look = std::mem::take(&mut self.answered).then(|| self.eager.begin());
        while self.is_quiet() && look.as_mut().is_some_and(Look::again) {}
        if self.is_quiet() {
            match self.deadline().into_iter().chain(self.idle.next()).min() {
                Some(at) => std::thread::park_timeout(at.saturating_duration_since(Instant::now())),
                None => std::thread::park(),
            }
        }
        if let Some(look) = look {
            self.eager.end(&look);
        }
    }

    fn settle(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        self.machines.settle(&mut effects);
        for effect in effects.drain(..) {
            self.apply(effect);
        }
        self.effects = effects;
        if self.edges.timeline.is_on() {
            let open = self.edges.gathers.open_count();
            if open != self.open_counted {
                self.open_counted = open;
                self.edges.timeline.counter("gathers open", open as u64);
            }
        }
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Resolve { gather, result } => {
                let counters = &self.edges.counters;
                let counter = match &result {
                    Ok(Delivered::Text(_)) => None,
                    Ok(_) => Some(&counters.gathers),
                    Err(_) => Some(&counters.gathers_failed),
                };
                self.answered = true;
                // The gather is not counted here if a device's thread has resolved and counted it already.
                let count = || counter.into_iter().for_each(|counter| Counters::add(counter, 1));
                self.edges.gathers.resolve_with(gather, result, count, &mut self.wakes);
            }
            Effect::Charge { session, nodes, bytes } => {
                self.backlog.charge(session, nodes as u64, bytes);
                self.edges.gates.enter(session, nodes as u64, bytes);
            }
            Effect::Credit { session, nodes } => {
                self.backlog.credit(session, nodes as u64);
                self.edges.gates.leave(session, nodes as u64);
            }
            Effect::Submit { device, batch } => {
                let id = batch.id;
                // With a timeline, the arrow to the gather starts at the scheduler.
                if !self.edges.timeline.is_on()
                    && let Some(answer) = self.machines.answer_of(device, id)
                {
                    self.edges.answers.expect(answer);
                }
                if !self.give(device, DeviceInstruction::Submit(batch)) {
                    // A GPU's thread reports its device as lost when it ends, and by then its mailbox is closed.
                    let lost = !self.edges.devices.is_fallback(device);
                    let kind = if lost { ErrorKind::DeviceLost } else { ErrorKind::Internal };
                    let error = Error::new(kind, "the device's thread has ended");
                    let event = DeviceEvent::BatchFailed { device, batch: id, error };
                    self.edges.answers.see(&event);
                    self.own_failures.push_back(event);
                }
            }
            Effect::Release { device, buffers } => {
                self.give(device, DeviceInstruction::Release(buffers));
            }
            Effect::Compile(plan) => self.edges.workers.compile(plan),
            Effect::OpenDevices => self.edges.devices.ask(),
            Effect::Stop => self.stopped = true,
        }
    }

    /// Gives a device an instruction. A batch of the host that takes a few microseconds runs here (RING-2): otherwise
    /// its thread would have to be woken, and wake this one again. Returns false if the device's thread has ended.
    fn give(&self, device: DeviceId, instruction: DeviceInstruction) -> bool {
        let within_us = if self.backlog.is_empty() && self.is_quiet() { INLINE_US } else { INLINE_BUSY_US };
        self.edges.reaches.get(device.0 as usize).is_some_and(|reach| reach.give(instruction, within_us))
    }

    /// Whether the mailboxes of users, devices and control are empty.
    fn is_quiet(&self) -> bool {
        self.inbox.users.is_empty() && self.inbox.devices.is_empty() && self.inbox.control.is_empty()
    }
}

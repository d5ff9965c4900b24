//! The ring thread's loop: takes events from the edges, lets the three machines settle, carries out what they say.
//!
//! In: device events first, then workers' results, then shutdown and cancels, then a few of the users' events at a
//! time, as far as the scheduler has room for more (`backlog`). Out: resolved futures, credits, batches.
//! Must hold: RING-1; RING-2: nothing here waits for a user or for a device, and a device never waits for the ring; the
//! host's work is done here only where it is estimated to take a few microseconds, fewer where somebody else waits for
//! the ring; RING-3: whichever way the loop ends, also by a panic, the table of gathers and the gates are closed behind
//! it.

use super::answers::Answers;
use super::backlog::{Backlog, Discarded};
use super::devices::{Devices, Opened};
use super::idle::Idle;
use super::machines::{Effect, Machines};
use super::promise::Wakes;
use super::workers::Workers;
use super::{Gates, GatherTable};
use crate::config::Room;
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
    /// Take no new work, finish what is in flight until then, fail the rest, end.
    Shutdown(Instant),
    /// Fail everything and end; the exit of the process waits for it, if the program wants it so.
    StopNow(Option<Leaving>),
    /// Give back what nobody uses: front ends need host memory (CLAIMS-1).
    GiveBack,
    /// Say how many entries each table has, by its name.
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

/// The loop's ways out: all that it acts on.
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

/// Events of one kind that are taken in before the next kind has its turn.
const DRAIN_MAX: usize = 256;

/// Users' events that go through the machines together: what is worked through side by side finds its code in the
/// caches.
pub(super) const TOLD_AT_ONCE: usize = 4;

/// How long to look for what somebody who was just answered asks next, before sleeping: waking its thread takes some
/// 15 us, and recording a short program some more. Seen on an H100's host: 60 us shorten the trip of a tiny op by 15 us
/// beside 5 us.
const LOOK_FOR_USERS: Duration = Duration::from_micros(60);

/// Work that is estimated to take a device at most so many microseconds is done on the ring's thread, where no other
/// work waits for the ring: waking the device's thread, and being woken by it, take longer.
const MOMENT_US: f64 = 10.0;
/// The same where other work waits: waking another thread takes this one longer.
const BUSY_MOMENT_US: f64 = 3.0;

/// The loop.
pub(super) struct Loop {
    pub machines: Machines,
    pub inbox: Inbox,
    pub edges: Edges,
    /// Users' events that were received and wait for their turn.
    backlog: Backlog,
    /// The shutdown that was asked for, if one was.
    shutdown: Option<Shutdown>,
    /// Device events that the loop itself makes up, for a device whose thread has ended.
    made_up: VecDeque<DeviceEvent>,
    effects: Vec<Effect>,
    /// When free memory that nobody uses goes back to the system.
    idle: Idle,
    /// Set where the program has dropped the runtime: the exit of the process waits until this loop is dropped.
    leaving: Option<Leaving>,
    stopped: bool,
    /// Nobody can send from the users' side any more.
    orphaned: bool,
    /// No device can send any more.
    deserted: bool,
    open_counted: usize,
    /// Somebody was answered since it last looked around.
    answered: bool,
    /// Whom to wake once this step's effects are applied.
    wakes: Wakes,
    eager: Eager,
}

/// A shutdown that was asked for.
struct Shutdown {
    /// When what is left then fails: the earliest deadline that was asked for.
    deadline: Instant,
    /// Users' events that were received since; the scheduler hears of them behind the shutdown.
    late: VecDeque<SchedulerEvent>,
    /// The scheduler has heard of the shutdown: the backlog was empty.
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
            made_up: VecDeque::new(),
            effects: Vec::new(),
            idle,
            leaving: None,
            stopped: false,
            orphaned: false,
            deserted: false,
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

    /// Wakes whoever has a result and was not told yet.
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

    /// Takes in what is there, in order of urgency. True if anything was.
    fn turn(&mut self) -> bool {
        let mut busy = false;
        for _ in 0..DRAIN_MAX {
            let Some(event) = self.made_up.pop_front().or_else(|| self.device_event()) else { break };
            self.machines.device(event);
            busy = true;
            // One by one, so that an event is worked through on what those before it have left.
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
            // What has finished frees credits before anything new asks for them.
            self.settle();
            // A woken task runs at once where cores are few: it is to find all of its results.
            self.wakes.call();
        }
        loop {
            match self.inbox.control.try_recv() {
                Ok(control) => self.control(control),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.orphaned = true;
                    break;
                }
            }
            busy = true;
        }
        if self.deadline().is_some_and(|at| Instant::now() >= at) {
            // The scheduler answers this with `Stop`: it is said once.
            self.machines.tell(SchedulerEvent::DeadlinePassed);
            busy = true;
        }
        busy |= self.take_users();
        for _ in 0..TOLD_AT_ONCE {
            let Some(event) = self.next_event() else { break };
            self.hear(event);
            busy = true;
        }
        busy |= self.tell_late();
        if busy {
            self.settle();
        }
        busy |= !self.made_up.is_empty();
        self.see_to_idle_memory(busy);
        self.wakes.call();
        busy
    }

    /// Has machines and devices give back what nobody uses, when that is due. Where nothing happens, all of it is gone
    /// after some times, and the loop sleeps for good.
    fn see_to_idle_memory(&mut self, busy: bool) {
        if let Some(all) = self.idle.look(busy, Instant::now) {
            self.give_back(all);
        }
    }

    /// Has machines and devices give back what nobody uses.
    fn give_back(&mut self, all: bool) {
        self.machines.idle_passed(all);
        self.settle();
        for reach in &self.edges.reaches {
            // A device that has ended has nothing.
            let _ = reach.instructions.send(DeviceInstruction::Trim { all });
        }
    }

    fn device_event(&mut self) -> Option<DeviceEvent> {
        match self.inbox.devices.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.deserted = true;
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
                // In order with the segments that were sent before.
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

    /// Receives users' events. A cancel overtakes segments: the scheduler hears of it at once where it knows the
    /// gather. Where it does not, the demand waits in the backlog, and is looked at when it leaves. True if the
    /// scheduler was told anything.
    fn take_users(&mut self) -> bool {
        let mut told = false;
        loop {
            match self.inbox.users.try_recv() {
                Ok(SchedulerEvent::GatherCancelled(gather)) => {
                    // What waits within the scheduler may hold the demand.
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
                    self.orphaned = true;
                    return told;
                }
            }
        }
    }

    /// The next of the users' events that the scheduler has room for.
    fn next_event(&mut self) -> Option<SchedulerEvent> {
        // Looking at how much waits costs more than there being nothing.
        if self.backlog.is_empty() {
            return None;
        }
        let inside_max = self.backlog.sessions_inside_max();
        let has_room = !self.machines.is_opening() && self.machines.sessions_waiting() < inside_max;
        let gathers = &self.edges.gathers;
        self.backlog.next(has_room, |gather| gathers.is_open(gather))
    }

    /// Fails the gathers of events that were thrown away before the scheduler heard of them, and forgets the session.
    fn end_discarded(&mut self, discarded: Discarded) {
        let Discarded { session, nodes, cuts, gathers, unheard } = discarded;
        Counters::add(&self.edges.counters.ops_dead, nodes);
        if let Some(session) = session {
            // The scheduler, which takes the other segments' callers, never hears of these: the program's spans would
            // not end.
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

    /// Once all is taken in that was sent before a shutdown was asked for, the scheduler hears of it, and refuses what
    /// was sent later. True if it was told anything.
    fn tell_late(&mut self) -> bool {
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
        assert!(!self.deserted, "RING-1: every device thread has ended, and nothing that is pending can finish");
        if self.orphaned {
            // Nobody is left who could stop the ring properly.
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
                // A device may have been first, and counted it.
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
                    // A GPU's thread says, when it ends, that the device is lost; it has no mailbox any more by then.
                    let lost = !self.edges.devices.is_fallback(device);
                    let kind = if lost { ErrorKind::DeviceLost } else { ErrorKind::Internal };
                    let error = Error::new(kind, "the device's thread has ended");
                    let event = DeviceEvent::BatchFailed { device, batch: id, error };
                    self.edges.answers.see(&event);
                    self.made_up.push_back(event);
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

    /// Gives a device an instruction. What takes a few microseconds is done here (RING-2): the device's thread would
    /// have to be woken for it, and wake this one again.
    fn give(&self, device: DeviceId, instruction: DeviceInstruction) -> bool {
        let within_us = if self.backlog.is_empty() && self.is_quiet() { MOMENT_US } else { BUSY_MOMENT_US };
        self.edges.reaches.get(device.0 as usize).is_some_and(|reach| reach.give(instruction, within_us))
    }

    /// Whether nothing urgent is there to be taken in.
    fn is_quiet(&self) -> bool {
        self.inbox.users.is_empty() && self.inbox.devices.is_empty() && self.inbox.control.is_empty()
    }
}

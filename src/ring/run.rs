//! The ring thread's loop: takes events from the edges, lets the three machines settle, carries out what they say.
//!
//! In: device events first, then workers' results, then shutdown and cancels, then one of the users' events at a
//! time. Out: resolved futures, credits, batches. Must hold: RING-1; RING-2: nothing here waits for a user, and
//! for a device only where its mailbox is full, and a device never waits for the ring; RING-3: whichever way the
//! loop ends, also by a panic, the table of gathers and the gates are closed behind it.

use super::machines::{Effect, Machines};
use super::workers::Workers;
use super::{Gates, GatherTable};
use crate::device::message::{DeviceEvent, DeviceInstruction};
use crate::error::{Error, ErrorKind};
use crate::ids::{DeviceId, RegionId};
use crate::scheduler::message::{Delivered, SchedulerEvent};
use crate::stats::Counters;
use crate::timeline::Timeline;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// What the runtime tells the loop beside its work.
#[derive(Clone, Copy, Debug)]
pub(super) enum Control {
    /// Take no new work, finish what is in flight until then, fail the rest, end.
    Shutdown(Instant),
    /// Fail everything and end.
    StopNow,
}

/// The loop's mailboxes.
pub(super) struct Inbox {
    /// From sessions; bounded by their gates.
    pub users: flume::Receiver<SchedulerEvent>,
    /// From devices; bounded by the batches in flight.
    pub devices: flume::Receiver<DeviceEvent>,
    /// From compile workers; bounded by the regions downstream.
    pub workers: flume::Receiver<(RegionId, Result<(), Error>)>,
    /// From the runtime.
    pub control: flume::Receiver<Control>,
}

/// What the loop acts on.
pub(super) struct Edges {
    pub gathers: Arc<GatherTable>,
    pub gates: Arc<Gates>,
    pub devices: Vec<crossbeam_channel::Sender<DeviceInstruction>>,
    pub workers: Workers,
    pub counters: Arc<Counters>,
    pub timeline: Timeline,
}

/// Events of one kind that are taken in before the next kind has its turn.
const DRAIN_MAX: usize = 256;

/// The loop.
pub(super) struct Loop {
    pub machines: Machines,
    pub inbox: Inbox,
    pub edges: Edges,
    /// Users' events that were received and wait for their turn.
    backlog: VecDeque<SchedulerEvent>,
    /// Device events that the loop itself makes up, for a device whose thread has ended.
    made_up: VecDeque<DeviceEvent>,
    effects: Vec<Effect>,
    deadline: Option<Instant>,
    stopped: bool,
    open_counted: usize,
}

impl Loop {
    pub(super) fn new(machines: Machines, inbox: Inbox, edges: Edges) -> Loop {
        Loop {
            machines,
            inbox,
            edges,
            backlog: VecDeque::new(),
            made_up: VecDeque::new(),
            effects: Vec::new(),
            deadline: None,
            stopped: false,
            open_counted: 0,
        }
    }

    /// Runs until the scheduler says stop.
    pub(super) async fn run(&mut self) {
        while !self.stopped {
            let busy = self.turn();
            if !busy && !self.stopped {
                self.wait().await;
            }
        }
    }

    /// Takes in what is there, in order of urgency. True if anything was.
    fn turn(&mut self) -> bool {
        let mut busy = false;
        for _ in 0..DRAIN_MAX {
            let Some(event) = self.made_up.pop_front().or_else(|| self.inbox.devices.try_recv().ok()) else { break };
            self.machines.device(event);
            busy = true;
        }
        for _ in 0..DRAIN_MAX {
            let Ok((region, result)) = self.inbox.workers.try_recv() else { break };
            self.machines.compiled(region, result);
            busy = true;
        }
        if busy {
            // What has finished frees credits before anything new asks for them.
            self.settle();
        }
        while let Ok(control) = self.inbox.control.try_recv() {
            self.control(control);
            busy = true;
        }
        if self.deadline.is_some_and(|at| Instant::now() >= at) {
            self.deadline = None;
            self.machines.tell(SchedulerEvent::DeadlinePassed);
            busy = true;
        }
        self.take_users();
        if let Some(event) = self.backlog.pop_front() {
            self.hear(event);
            busy = true;
        }
        self.settle();
        busy || !self.made_up.is_empty()
    }

    fn control(&mut self, control: Control) {
        match control {
            Control::Shutdown(deadline) => {
                self.deadline = Some(self.deadline.map_or(deadline, |earlier| earlier.min(deadline)));
                // In order with the segments that were sent before.
                self.take_users();
                self.backlog.push_back(SchedulerEvent::ShutdownAsked);
            }
            Control::StopNow => {
                self.backlog.clear();
                self.machines.tell(SchedulerEvent::DeadlinePassed);
            }
        }
    }

    /// Receives users' events. A cancel of a gather that the scheduler knows overtakes segments; of one that it
    /// does not know yet, the demand stands before it in the mailbox.
    fn take_users(&mut self) {
        while let Ok(event) = self.inbox.users.try_recv() {
            match event {
                SchedulerEvent::GatherCancelled(gather) if self.machines.has_gather(gather) => {
                    self.machines.tell(event);
                }
                other => self.backlog.push_back(other),
            }
        }
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

    /// Sleeps until there is something to do.
    async fn wait(&mut self) {
        let deadline = self.deadline;
        let Loop { inbox, machines, backlog, made_up, .. } = self;
        let timer = async move {
            match deadline {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            event = inbox.devices.recv_async() => match event {
                Ok(event) => made_up.push_back(event),
                Err(_) => panic!("RING-1: every device thread has ended, and nothing that is pending can finish"),
            },
            result = inbox.workers.recv_async() => {
                if let Ok((region, result)) = result {
                    machines.compiled(region, result);
                }
            }
            control = inbox.control.recv_async() => {
                // Nobody is left who could stop the ring properly.
                let control = control.unwrap_or(Control::StopNow);
                self.control(control);
            }
            event = inbox.users.recv_async() => match event {
                Ok(event) => backlog.push_back(event),
                // Every session is gone, and so is the runtime.
                Err(_) => self.control(Control::StopNow),
            },
            () = timer => {}
        }
        self.settle();
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
                match &result {
                    Ok(Delivered::Text(_)) => {}
                    Ok(_) => Counters::add(&counters.gathers, 1),
                    Err(_) => Counters::add(&counters.gathers_failed, 1),
                }
                self.edges.gathers.resolve(gather, result);
            }
            Effect::Credit { session, nodes } => self.edges.gates.leave(session, nodes as u64),
            Effect::Submit { device, batch } => {
                let id = batch.id;
                if !self.send(device, DeviceInstruction::Submit(batch)) {
                    let error = Error::new(ErrorKind::Internal, "the device's thread has ended");
                    self.made_up.push_back(DeviceEvent::BatchFailed { device, batch: id, error });
                }
            }
            Effect::Release { device, buffers } => {
                self.send(device, DeviceInstruction::Release(buffers));
            }
            Effect::Compile(plan) => self.edges.workers.compile(plan),
            Effect::Stop => self.stopped = true,
        }
    }

    fn send(&self, device: DeviceId, instruction: DeviceInstruction) -> bool {
        self.edges.devices.get(device.0 as usize).is_some_and(|d| d.send(instruction).is_ok())
    }
}

//! Opens the GPU on demand: only when a cut has work that could be worth a GPU.
//!
//! In: cuts that need the device; the result of opening it. Out: `OpenDevices`, once. Must hold: SCHED-11; placement
//! does not depend on whether, when or by whom a device was opened (`placement` gives an open device only work for
//! which it would have been opened).

use super::ingest::Unfinished;
use super::state::{State, shutting_down};
use crate::config::DeviceChoice;
use crate::contract::device::DeviceInfo;
use crate::contract::messages::scheduler::{SchedulerEvent, SchedulerInstruction};
use crate::error::Error;
use crate::ids::{DeviceId, GatherId, ValueId};
use std::collections::VecDeque;

/// The work that waits for the device.
#[derive(Debug)]
pub(super) enum Waiting {
    /// A segment, a part of which may be cut already.
    Segment(Box<Unfinished>),
    /// An explanation of a value.
    Explanation(GatherId, ValueId),
}

/// The state of the opening.
#[derive(Debug, Default)]
pub(super) struct Opening {
    /// The number of a device that may be available and is not open.
    promised: Option<DeviceId>,
    /// The work that asked for it, while it is being opened.
    waiting: Option<Waiting>,
    /// Events from users that arrived while it was being opened.
    held: VecDeque<SchedulerEvent>,
    /// Why the device could not be opened, if the program asked for that device alone.
    refused: Option<Error>,
    /// Opening was tried and failed.
    failed: bool,
}

impl Opening {
    /// Whether a device may yet be opened.
    pub(super) fn is_promised(&self) -> bool {
        self.promised.is_some()
    }

    /// Whether this device may yet be opened.
    pub(super) fn promises(&self, device: DeviceId) -> bool {
        self.promised == Some(device)
    }

    /// Whether a cut or an explanation waits.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// The error of all work, if the device that the program asked for could not be opened.
    pub(super) fn refused(&self) -> Option<&Error> {
        self.refused.as_ref()
    }

    /// Whether opening the device failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Nodes of a waiting segment whose credit is not given back.
    #[cfg(test)]
    pub(super) fn credits(&self) -> u64 {
        match &self.waiting {
            Some(Waiting::Segment(segment)) => u64::from(segment.credits()),
            Some(Waiting::Explanation(..)) | None => 0,
        }
    }

    /// The event, unless it has to wait (SCHED-11).
    pub(super) fn hold_back(&mut self, event: SchedulerEvent) -> Option<SchedulerEvent> {
        if self.waiting.is_none() {
            return Some(event);
        }
        match event {
            SchedulerEvent::RegionFinished { .. }
            | SchedulerEvent::RegionFailed { .. }
            | SchedulerEvent::ValueArrived { .. }
            | SchedulerEvent::ValueLost { .. }
            | SchedulerEvent::DeviceStalled(_)
            | SchedulerEvent::DeviceLost { .. }
            | SchedulerEvent::OpeningEnded(_)
            | SchedulerEvent::Explained { .. }
            | SchedulerEvent::DeadlinePassed => Some(event),
            SchedulerEvent::SessionOpened { .. }
            | SchedulerEvent::SegmentCut { .. }
            | SchedulerEvent::GatherCancelled(_)
            | SchedulerEvent::SessionClosed(_)
            | SchedulerEvent::ExplainAsked { .. }
            | SchedulerEvent::ShutdownAsked => {
                self.held.push_back(event);
                None
            }
        }
    }

    /// Makes work wait for the device, and asks for its opening.
    pub(super) fn wait_for_device(&mut self, what: Waiting, out: &mut Vec<SchedulerInstruction>) {
        assert!(self.waiting.is_none(), "SCHED-11: users' events wait behind the first that needs a device");
        self.waiting = Some(what);
        out.push(SchedulerInstruction::OpenDevices);
    }

    /// Events from users that were held back while the device was being opened.
    pub(super) fn take_held(&mut self) -> VecDeque<SchedulerEvent> {
        std::mem::take(&mut self.held)
    }
}

impl State {
    /// The same scheduler, with a GPU that may be opened later as device 1 (see the module's header).
    pub fn with_promised_gpu(mut self) -> State {
        assert_eq!(self.fleet.len(), 1, "SCHED: a GPU that is still to come is device 1");
        self.opening.promised = Some(DeviceId(1));
        self
    }

    /// The device is open, or could not be opened. The waiting work goes on, then the events that were held back.
    pub(super) fn opening_ended(
        &mut self,
        result: Result<Option<DeviceInfo>, Error>,
        out: &mut Vec<SchedulerInstruction>,
    ) {
        if self.opening.promised.take().is_none() {
            return;
        }
        match result {
            Ok(Some(device)) => {
                self.kept.take_from_budget(device.host_share_bytes);
                self.fleet.add(device);
            }
            Ok(None) => {}
            Err(error) => {
                self.opening.failed = true;
                if let DeviceChoice::Gpu(_) = self.choice {
                    self.opening.refused = Some(error);
                }
            }
        }
        match self.opening.waiting.take() {
            Some(Waiting::Segment(segment)) => self.cut(*segment, out),
            Some(Waiting::Explanation(gather, value)) => self.explain(gather, value, out),
            None => {}
        }
        for event in self.opening.take_held() {
            self.handle(event, out);
        }
    }

    /// The runtime ends while a device is being opened: the waiting work is cancelled.
    pub(super) fn abandon_opening(&mut self, out: &mut Vec<SchedulerInstruction>) {
        self.opening.promised = None;
        match self.opening.waiting.take() {
            Some(Waiting::Segment(segment)) => self.ledger.credit(segment.session, segment.credits(), out),
            Some(Waiting::Explanation(gather, _)) => {
                out.push(SchedulerInstruction::Resolve { gather, result: Err(shutting_down()) });
            }
            None => {}
        }
    }
}

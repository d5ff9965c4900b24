//! What the users' side holds of the scheduler: its mailbox.
//!
//! In: segments, cancels, questions. Out: the same, in order. Must hold: sending never blocks; the mailbox is
//! bounded by the sessions' gates, which hold a recording thread while its nodes are in the ring.

use super::message::SchedulerEvent;

/// The scheduler's mailbox; cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    events: flume::Sender<SchedulerEvent>,
}

impl Handle {
    /// Wraps the sending side.
    pub fn new(events: flume::Sender<SchedulerEvent>) -> Handle {
        Handle { events }
    }

    /// Tells the scheduler. False if the ring has ended: the gather table then answers for it.
    pub fn tell(&self, event: SchedulerEvent) -> bool {
        self.events.send(event).is_ok()
    }
}

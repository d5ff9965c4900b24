//! Simulates the ring's use of the backlog: events are taken in at random times, in part, or thrown away.

use super::Simulator;
use crate::contract::messages::scheduler::SchedulerEvent;
use crate::contract::tape::Record;

impl Simulator {
    /// A user sends an event.
    pub(super) fn send(&mut self, event: SchedulerEvent) {
        if self.aloud {
            eprintln!("sent: {event:?}");
        }
        let open = &self.open;
        let discarded = self.backlog.put(event, |gather| open.contains_key(&gather));
        self.credited += discarded.nodes;
        self.seen.discarded += discarded.nodes as usize;
        for gather in discarded.gathers {
            // These gathers fail because their session was closed.
            assert!(self.open.remove(&gather).is_some(), "BACKLOG-3: {gather} is not awaited");
            self.seen.closed_on += 1;
        }
        if self.dice.one_in(2) {
            self.take_in_some();
        }
    }

    /// The scheduler takes in some waiting events.
    pub(super) fn take_in_some(&mut self) {
        for _ in 0..1 + self.dice.below(4) {
            let has_room = !self.state.is_opening() && !self.dice.one_in(3);
            self.take_in_one(has_room);
        }
    }

    /// The scheduler takes in all waiting events for which it has room.
    pub(super) fn take_in_all(&mut self) {
        while self.take_in_one(true) {}
    }

    fn take_in_one(&mut self, has_room: bool) -> bool {
        let open = &self.open;
        let Some(event) = self.backlog.next(has_room, |gather| open.contains_key(&gather)) else { return false };
        if let SchedulerEvent::SegmentCut { records, .. } = &event {
            for record in records.iter() {
                if let Record::Demanded { gather, .. } = record {
                    assert!(self.open.contains_key(gather), "BACKLOG-3: nobody awaits {gather}");
                }
            }
        }
        self.event(event);
        true
    }
}

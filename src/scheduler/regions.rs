//! The unfinished regions, and the life of each: one state, and a table of what may happen to it.
//!
//! In: regions that were cut; changes of single regions. Out: where each region is, and how many are downstream or
//! parked. Must hold: LIFE-1, a region's life changes only as this table says (`Life::change`); LIFE-2, no region is
//! `Returned` between two events; LIFE-3, `Regions` counts the regions that are downstream and those that are parked.
//! Only the methods of `Regions` (`regions/table.rs`) change a region, since the table hands out no record to be
//! changed.
//!
//! | from \ change | `Park` | `Unpark` | `Send` | `CallBack` | `GoStale` | `Finish` | `Return` | `Requeue` |
//! |---|---|---|---|---|---|---|---|---|
//! | Queued     | Parked | | Downstream | | Queued | | | |
//! | Parked     | | Queued | | | Parked | | | |
//! | Downstream | | | | CalledBack | Downstream | Ran | Returned | |
//! | CalledBack | | | | | CalledBack | Ran | Returned | |
//! | Ran        | | | | | Ran | | | |
//! | Returned   | | | | | Returned | | | Queued |
//!
//! An empty cell cannot happen: it panics. `Park` and `Unpark` are done by `parking`, `Send` by `fairness`, `CallBack` by
//! `parking` and `cancel`, `GoStale` by `lineage` and `completion`, the others by `completion`.
//!
//! | state | where the region is | what follows |
//! |---|---|---|
//! | Queued | in its session's queue (SCHED-6); it holds its nodes' credits | it is sent in its session's turn, or parked while no gather or other region waits for its outputs; a region that a limit asked for is never parked |
//! | Parked | in no queue; it holds no credits (SCHED-12) | it is queued when one of its outputs is asked for, or when a limit asks for it |
//! | Downstream | fusion, residency or a device has it (SCHED-4) | it runs, or it fails |
//! | CalledBack | the same, and residency was told that its outputs are not waited for | it runs, or it comes back as cancelled |
//! | Ran | a device ran it, and the fate of an input is not known | it ends with the region that makes the input |
//! | Returned | it failed downstream; the event that says so is being handled | it is queued again, taken apart, or closed |
//!
//! A region that ends has no record. It may end in each of these states but Downstream and CalledBack.

mod table;

use super::fairness::{elements_of, work_of};
use crate::contract::region::Region;
use crate::error::Error;
use crate::graph::costs::Operations;
use crate::ids::ValueId;
use std::sync::Arc;
pub(super) use table::{Regions, move_to};

/// What asked for a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A gather or eval, or a region that reads an output.
    Demand,
    /// A limit on what a session leaves lazy or parked: the region runs even if nothing waits for its outputs.
    Limit,
}

/// A region's stay downstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stay {
    /// What asked for the region.
    cause: Cause,
    /// How many regions were sent before it.
    turn: u64,
    /// A region that makes one of its inputs was sent again after this one: its failure is a consequence. This is no
    /// state of its own, since it changes nothing that may happen to the region: it is a fact about this attempt, which
    /// three of the states have.
    is_stale: bool,
}

/// Where an unfinished region is.
#[derive(Clone, Debug)]
pub(super) enum Life {
    Queued(Cause),
    Parked,
    Downstream(Stay),
    CalledBack(Stay),
    /// With the faults that the device found.
    Ran {
        turn: u64,
        faults: Vec<(ValueId, Error)>,
    },
    Returned(Stay),
}

/// What may happen to a region.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// Nothing waits for its outputs, but one may be asked for later.
    Park,
    /// It was asked for.
    Unpark(Cause),
    /// It goes downstream.
    Send { turn: u64 },
    /// Residency is told that nothing waits for its outputs.
    CallBack,
    /// A region that makes one of its inputs is queued again. This concerns only what was sent before.
    GoStale,
    /// A device ran it, with these faults.
    Finish(Vec<(ValueId, Error)>),
    /// It failed downstream, or was dropped there.
    Return,
    /// It waits for its turn once more.
    Requeue,
}

impl Life {
    /// The transition table (LIFE-1).
    fn change(self, change: Change) -> Life {
        match (self, change) {
            (Life::Queued(Cause::Demand), Change::Park) => Life::Parked,
            (Life::Parked, Change::Unpark(cause)) => Life::Queued(cause),
            (Life::Queued(cause), Change::Send { turn }) => Life::Downstream(Stay { cause, turn, is_stale: false }),
            (Life::Downstream(stay), Change::CallBack) => Life::CalledBack(stay),
            (Life::Downstream(stay), Change::GoStale) => Life::Downstream(Stay { is_stale: true, ..stay }),
            (Life::CalledBack(stay), Change::GoStale) => Life::CalledBack(Stay { is_stale: true, ..stay }),
            (life @ (Life::Queued(_) | Life::Parked | Life::Ran { .. } | Life::Returned(_)), Change::GoStale) => life,
            (Life::Downstream(stay) | Life::CalledBack(stay), Change::Finish(faults)) => {
                Life::Ran { turn: stay.turn, faults }
            }
            (Life::Downstream(stay) | Life::CalledBack(stay), Change::Return) => Life::Returned(stay),
            (Life::Returned(stay), Change::Requeue) => Life::Queued(stay.cause),
            (from, change) => panic!("LIFE-1: {change:?} of a region that is {from:?}"),
        }
    }
}

/// Which attempt at a region's nodes it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The first, as the region was cut.
    First,
    /// The first of a part of a region that was taken apart.
    Part,
    /// The region was sent this many times before, or it computes lost values again.
    Again(u8),
}

impl Attempt {
    /// How often the region was sent before.
    pub(super) fn number(self) -> u8 {
        match self {
            Attempt::First | Attempt::Part => 0,
            Attempt::Again(times) => times,
        }
    }

    /// The attempt after this one.
    pub(super) fn next(self) -> Attempt {
        Attempt::Again(self.number() + 1)
    }
}

/// An unfinished region. Its fields can be read everywhere in the scheduler; [`Regions`] changes them.
#[derive(Debug)]
pub(super) struct UnfinishedRegion {
    /// The region; host data that residency does not have yet is attached when it is sent.
    pub region: Arc<Region>,
    /// Elements that its nodes compute, a rough measure of its memory traffic.
    pub elements: u64,
    /// Arithmetic operations of its nodes.
    pub work: Operations,
    /// Its place in the order of cutting. A repeated region keeps it. The following `PARTS_MAX - 1` places are free for
    /// the parts of a split region.
    pub order: u64,
    life: Life,
    /// Nodes whose credit it holds.
    pub credits: u32,
    /// When its segment was cut.
    pub cut_at_ns: u64,
    /// Which attempt it is.
    pub attempt: Attempt,
    /// How often it was parked.
    pub parkings: u8,
}

impl UnfinishedRegion {
    fn new(region: Region, order: u64, cause: Cause) -> UnfinishedRegion {
        UnfinishedRegion {
            elements: elements_of(&region),
            work: work_of(&region),
            region: Arc::new(region),
            order,
            life: Life::Queued(cause),
            credits: 0,
            cut_at_ns: 0,
            attempt: Attempt::First,
            parkings: 0,
        }
    }

    /// Creates the record of a region that a cut made at this time, and that holds the credits of so many nodes.
    pub fn cut(region: Region, order: u64, cause: Cause, credits: u32, cut_at_ns: u64) -> UnfinishedRegion {
        UnfinishedRegion { credits, cut_at_ns, ..UnfinishedRegion::new(region, order, cause) }
    }

    /// Creates the record of a part of a region that was taken apart: the part has this place in the order of cutting,
    /// and holds so many of the whole region's credits.
    pub fn part(region: Region, whole: &UnfinishedRegion, order: u64, credits: u32) -> UnfinishedRegion {
        let record = UnfinishedRegion::cut(region, order, Cause::Demand, credits, whole.cut_at_ns);
        UnfinishedRegion { attempt: Attempt::Part, ..record }
    }

    /// Creates the record of a region that computes lost values again. It counts as a second attempt, and the last.
    pub fn again(region: Region, order: u64) -> UnfinishedRegion {
        UnfinishedRegion { attempt: Attempt::Again(1), ..UnfinishedRegion::new(region, order, Cause::Demand) }
    }

    /// Whether it stands in its session's queue.
    pub fn is_queued(&self) -> bool {
        matches!(self.life, Life::Queued(_))
    }

    /// Whether it is parked.
    pub fn is_parked(&self) -> bool {
        matches!(self.life, Life::Parked)
    }

    /// Whether it waits to be sent: queued or parked.
    pub fn waits(&self) -> bool {
        self.is_queued() || self.is_parked()
    }

    /// Whether fusion, residency or a device has it.
    pub fn is_downstream(&self) -> bool {
        matches!(self.life, Life::Downstream(_) | Life::CalledBack(_))
    }

    /// Whether it is downstream and residency was told that nothing waits for its outputs.
    pub fn is_called_back(&self) -> bool {
        matches!(self.life, Life::CalledBack(_))
    }

    /// Whether it failed downstream in the event that is being handled.
    #[cfg(test)]
    pub fn is_returned(&self) -> bool {
        matches!(self.life, Life::Returned(_))
    }

    /// Whether it was sent before an input of it was queued again.
    pub fn is_stale(&self) -> bool {
        matches!(self.life, Life::Downstream(stay) | Life::CalledBack(stay) | Life::Returned(stay) if stay.is_stale)
    }

    /// Whether it may run after regions that were cut later: it is parked, or called back from downstream.
    pub fn may_be_late(&self) -> bool {
        self.is_parked() || self.is_called_back()
    }

    /// Whether a limit asked for it.
    pub fn is_for_limit(&self) -> bool {
        match &self.life {
            Life::Queued(cause) => *cause == Cause::Limit,
            Life::Downstream(stay) | Life::CalledBack(stay) | Life::Returned(stay) => stay.cause == Cause::Limit,
            Life::Parked | Life::Ran { .. } => false,
        }
    }

    /// How many regions were sent before it, where it was sent.
    pub fn turn(&self) -> Option<u64> {
        match &self.life {
            Life::Queued(_) | Life::Parked => None,
            Life::Downstream(stay) | Life::CalledBack(stay) | Life::Returned(stay) => Some(stay.turn),
            Life::Ran { turn, .. } => Some(*turn),
        }
    }

    /// The faults with which it ran, where it ran before the fate of its inputs was known.
    pub fn faults(&self) -> Option<&[(ValueId, Error)]> {
        match &self.life {
            Life::Ran { faults, .. } => Some(faults),
            Life::Queued(_) | Life::Parked | Life::Downstream(_) | Life::CalledBack(_) | Life::Returned(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stay(cause: Cause) -> Stay {
        Stay { cause, turn: 3, is_stale: false }
    }

    fn lives() -> [Life; 7] {
        [
            Life::Queued(Cause::Demand),
            Life::Queued(Cause::Limit),
            Life::Parked,
            Life::Downstream(stay(Cause::Demand)),
            Life::CalledBack(stay(Cause::Demand)),
            Life::Ran { turn: 3, faults: Vec::new() },
            Life::Returned(stay(Cause::Limit)),
        ]
    }

    fn changes() -> [Change; 8] {
        [
            Change::Park,
            Change::Unpark(Cause::Demand),
            Change::Send { turn: 4 },
            Change::CallBack,
            Change::GoStale,
            Change::Finish(Vec::new()),
            Change::Return,
            Change::Requeue,
        ]
    }

    fn name(life: &Life) -> &'static str {
        match life {
            Life::Queued(_) => "Queued",
            Life::Parked => "Parked",
            Life::Downstream(_) => "Downstream",
            Life::CalledBack(_) => "CalledBack",
            Life::Ran { .. } => "Ran",
            Life::Returned(_) => "Returned",
        }
    }

    #[test]
    fn the_table_in_the_header_is_what_the_code_allows() {
        let rows: Vec<Vec<&str>> = include_str!("regions.rs")
            .lines()
            .filter_map(|line| line.strip_prefix("//! | "))
            .map(|line| line.trim_end_matches('|').split('|').map(str::trim).collect())
            .filter(|cells: &Vec<&str>| cells.len() == 9)
            .collect();
        assert_eq!(rows.len(), 1 + 6, "a row for each state, below the head");
        for life in lives() {
            let row = rows.iter().find(|row| row[0] == name(&life)).expect("each state has a row");
            for (number, change) in changes().into_iter().enumerate() {
                let is_forced = matches!((&life, &change), (Life::Queued(Cause::Limit), Change::Park));
                let expected = if is_forced { "" } else { row[number + 1] };
                let (from, what) = (life.clone(), change.clone());
                let found = std::panic::catch_unwind(|| name(&from.change(what))).unwrap_or("");
                assert_eq!(found, expected, "{change:?} of {life:?}");
            }
        }
    }

    #[test]
    fn what_asked_for_a_region_is_known_until_it_ran() {
        let mut life = Life::Queued(Cause::Limit).change(Change::Send { turn: 0 });
        for change in [Change::GoStale, Change::CallBack, Change::Return, Change::Requeue] {
            life = life.change(change);
        }
        assert!(matches!(life, Life::Queued(Cause::Limit)));
    }
}

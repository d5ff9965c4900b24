//! Records, for each value that ends, which region announces the end to residency, and whether it has been announced.
//!
//! In: values that became unreachable, regions that are sent or that leave downstream, values that are made again. Out:
//! the ends that a region announces when it is sent, and those that happen when it leaves. Must hold:
//! - ENDS-1: a value's end changes only as this table says.
//! - ENDS-2: a region that will announce a value's end has not been sent, and reads or makes the value.
//! - ENDS-3: each value that `Ends` lists for a region is `Scheduled` for that region, or was announced with it. A
//!   region that is not listed ends no value.
//! - ENDS-4: only a live value that no program can reach has an entry.
//!
//! | from \ change | `schedule` | `unschedule` | `send` of the region | `announce` | `leave` of the region | `made_again` |
//! |---|---|---|---|---|---|---|
//! | Undecided | Scheduled | Undecided | | Announced | Undecided | Undecided |
//! | Scheduled | | Undecided | Announced with the region | | | Scheduled |
//! | Announced | | Announced | | | Announced, and it has happened | Undecided |
//!
//! An end that was announced with a region happens when that region leaves downstream, whether it ran or failed. It
//! also happens if the value was made again, or sent again, in between, since residency does not know of that. So an
//! `Undecided` value may be listed for a region downstream: the end was announced for the value's former bytes, but it
//! frees the new ones (`EndedValue::is_former`). If the value is needed after that, it has to be made, or sent, once
//! more.

use crate::ids::{RegionId, ValueId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// How a region ends a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// As an input that dies: the region may reuse its memory in place (`RegionInput::dies`).
    InPlace,
    /// Behind the region (`Retire` with `after`).
    Behind,
}

/// The state of a value's end. A value without an entry is `Undecided`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// A region that has not been sent will announce the end when it is sent.
    Scheduled { by: RegionId, how: How },
    /// Residency was told of the end. It happens when the region `with` leaves downstream; if there is none, it has
    /// happened.
    Announced { with: Option<RegionId> },
}

/// A value whose end happened when a region left downstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndedValue {
    pub value: ValueId,
    /// The value was made or sent again after its end was announced, so the end freed its new bytes.
    pub is_former: bool,
}

/// The values that end, and the regions that end them.
#[derive(Debug, Default)]
pub(super) struct Ends {
    of: FxHashMap<ValueId, End>,
    /// For each region, the values that it will announce or that end with it, in the order in which that was decided.
    with: FxHashMap<RegionId, SmallVec<[ValueId; 4]>>,
}

impl Ends {
    /// Whether residency was not told of an end, and no region will announce one.
    pub fn is_undecided(&self, value: ValueId) -> bool {
        !self.of.contains_key(&value)
    }

    /// Whether residency was told of an end.
    pub fn is_announced(&self, value: ValueId) -> bool {
        matches!(self.of.get(&value), Some(End::Announced { .. }))
    }

    /// Whether a region that has not been sent will announce a value's end.
    pub fn is_scheduled(&self, value: ValueId) -> bool {
        matches!(self.of.get(&value), Some(End::Scheduled { .. }))
    }

    /// Whether a value is an input that dies in this region, which waits.
    pub fn dies_in(&self, value: ValueId, region: RegionId) -> bool {
        self.of.get(&value) == Some(&End::Scheduled { by: region, how: How::InPlace })
    }

    /// A region that waits will announce a value's end when it is sent.
    pub fn schedule(&mut self, value: ValueId, by: RegionId, how: How) {
        let before = self.of.insert(value, End::Scheduled { by, how });
        assert!(before.is_none(), "ENDS-1: {by} schedules the end of {value}, which is {before:?}");
        self.with.entry(by).or_default().push(value);
    }

    /// Residency is told that a value ends: when a region leaves downstream, or at once.
    pub fn announce(&mut self, value: ValueId, with: Option<RegionId>) {
        let before = self.of.insert(value, End::Announced { with });
        assert!(before.is_none(), "ENDS-1: the end of {value} is announced, which is {before:?}");
        if let Some(region) = with {
            self.with.entry(region).or_default().push(value);
        }
    }

    /// If this region would announce a value's end, it no longer does.
    pub fn unschedule(&mut self, value: ValueId, by: RegionId) {
        if matches!(self.of.get(&value), Some(End::Scheduled { by: region, .. }) if *region == by) {
            self.of.remove(&value);
            self.unlist(value, by);
        }
    }

    /// If a waiting region would announce a value's end, it no longer does.
    pub fn unschedule_any(&mut self, value: ValueId) {
        if let Some(End::Scheduled { by, .. }) = self.of.get(&value).copied() {
            self.unschedule(value, by);
        }
    }

    /// A region that waits announces no ends any more. Returns the values that it would have ended.
    pub fn unschedule_all(&mut self, by: RegionId) -> SmallVec<[ValueId; 4]> {
        let values = self.with.remove(&by).unwrap_or_default();
        for value in &values {
            self.of.remove(value);
        }
        values
    }

    /// A region is sent. Returns the values whose end has to be announced right after it; inputs that die are
    /// announced in the region itself.
    pub fn send(&mut self, region: RegionId) -> SmallVec<[ValueId; 4]> {
        let Some(values) = self.with.get(&region) else { return SmallVec::new() };
        let mut behind = SmallVec::new();
        for value in values {
            let before = self.of.insert(*value, End::Announced { with: Some(region) });
            match before {
                Some(End::Scheduled { by, how }) if by == region => {
                    behind.extend((how == How::Behind).then_some(*value))
                }
                _ => panic!("ENDS-1: {region} is sent, and the end of {value} is {before:?}"),
            }
        }
        behind
    }

    /// A region has left downstream: the values that ended with it.
    pub fn leave(&mut self, region: RegionId) -> SmallVec<[EndedValue; 4]> {
        let values = self.with.remove(&region).unwrap_or_default();
        let ended = values.into_iter().map(|value| match self.of.get_mut(&value) {
            Some(End::Announced { with }) if with.is_none_or(|with| with == region) => {
                *with = None;
                EndedValue { value, is_former: false }
            }
            _ => EndedValue { value, is_former: true },
        });
        ended.collect()
    }

    /// A value is made, or sent, once more. An end that was announced does not count for its new life; one
    /// that a region will announce does.
    pub fn made_again(&mut self, value: ValueId) {
        if self.is_announced(value) {
            self.of.remove(&value);
        }
    }

    /// A value is live no more.
    pub fn forget(&mut self, value: ValueId) {
        if let Some(End::Scheduled { by, .. }) = self.of.remove(&value) {
            self.unlist(value, by);
        }
    }

    fn unlist(&mut self, value: ValueId, region: RegionId) {
        if let Some(values) = self.with.get_mut(&region) {
            values.retain(|v| *v != value);
            if values.is_empty() {
                self.with.remove(&region);
            }
        }
    }

    /// Entries of its tables.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.of.len() + self.with.len()
    }

    /// The values that have an end, each with the region that will announce it, if one will.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (ValueId, Option<RegionId>)> + '_ {
        self.of.iter().map(|(value, end)| match end {
            End::Scheduled { by, .. } => (*value, Some(*by)),
            End::Announced { .. } => (*value, None),
        })
    }

    /// The regions that end something, and whether each value in their lists is scheduled for the region.
    #[cfg(test)]
    pub fn lists(&self) -> impl Iterator<Item = (RegionId, bool)> + '_ {
        let is_scheduled =
            |region, value| matches!(self.of.get(value), Some(End::Scheduled { by, .. }) if *by == region);
        self.with.iter().map(move |(region, values)| (*region, values.iter().all(|value| is_scheduled(*region, value))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SessionId;

    fn value(index: u64) -> ValueId {
        ValueId { session: SessionId(0), index }
    }

    const R: RegionId = RegionId(7);
    const LATER: RegionId = RegionId(8);

    fn ended(index: u64, is_former: bool) -> EndedValue {
        EndedValue { value: value(index), is_former }
    }

    #[test]
    fn what_is_scheduled_is_announced_when_the_region_is_sent_and_happens_when_it_leaves() {
        let mut ends = Ends::default();
        ends.schedule(value(1), R, How::InPlace);
        ends.schedule(value(2), R, How::Behind);
        assert!(ends.dies_in(value(1), R) && !ends.dies_in(value(2), R) && !ends.is_announced(value(1)));
        assert_eq!(ends.send(R)[..], [value(2)], "the other one is an input that dies");
        assert!(ends.is_announced(value(1)) && ends.is_announced(value(2)));
        assert_eq!(ends.leave(R)[..], [ended(1, false), ended(2, false)]);
        assert!(ends.is_announced(value(1)), "it has happened");
        assert!(ends.leave(R).is_empty());
    }

    #[test]
    fn a_region_that_is_not_sent_after_all_ends_nothing() {
        let mut ends = Ends::default();
        for index in 0..4 {
            ends.schedule(value(index), R, How::Behind);
        }
        ends.unschedule(value(0), LATER);
        assert!(!ends.is_undecided(value(0)), "another region has nothing to take back");
        ends.unschedule(value(0), R);
        ends.unschedule_any(value(1));
        ends.forget(value(2));
        assert_eq!(ends.unschedule_all(R)[..], [value(3)]);
        assert_eq!((ends.len(), ends.send(R).len()), (0, 0));
    }

    #[test]
    fn an_end_that_was_announced_happens_to_what_was_made_again_meanwhile() {
        let mut ends = Ends::default();
        ends.announce(value(1), Some(R));
        ends.made_again(value(1));
        assert!(ends.is_undecided(value(1)), "its new life has no end yet");
        assert_eq!(ends.leave(R)[..], [ended(1, true)]);
        ends.announce(value(1), Some(R));
        ends.made_again(value(1));
        ends.announce(value(1), Some(LATER));
        assert_eq!(ends.leave(R)[..], [ended(1, true)], "its new life ends later");
        assert_eq!(ends.leave(LATER)[..], [ended(1, false)]);
        ends.made_again(value(1));
        ends.announce(value(1), Some(R));
        ends.made_again(value(1));
        ends.announce(value(1), Some(R));
        assert!(ends.leave(R).iter().all(|ended| !ended.is_former), "both of its lives end with one region");
    }

    #[test]
    fn what_is_scheduled_stays_so_when_the_value_is_made_again() {
        let mut ends = Ends::default();
        ends.schedule(value(1), R, How::Behind);
        ends.made_again(value(1));
        assert_eq!(ends.send(R)[..], [value(1)]);
    }

    #[test]
    fn a_value_whose_end_was_announced_at_once_has_ended() {
        let mut ends = Ends::default();
        ends.announce(value(1), None);
        ends.unschedule_any(value(1));
        assert!(ends.is_announced(value(1)));
        ends.forget(value(1));
        assert_eq!(ends.len(), 0);
    }

    #[test]
    #[should_panic(expected = "ENDS-1")]
    fn an_end_is_decided_once() {
        let mut ends = Ends::default();
        ends.schedule(value(1), R, How::Behind);
        ends.announce(value(1), None);
    }
}

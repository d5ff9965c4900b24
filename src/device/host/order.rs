//! Decides which batches may run at the same time: those that share no memory, or only memory that both just read.
//!
//! In: commands. Out: the allocations that they use, and whether two such sets conflict. Must hold: HOST-5, HOST-6.

use crate::contract::batch::Command;
use crate::ids::BufferId;
use smallvec::SmallVec;

/// The allocations that a batch uses.
#[derive(Debug, Default)]
pub(super) struct Touched {
    reads: SmallVec<[BufferId; 8]>,
    /// Allocations that it makes, drops, fills or writes.
    changes: SmallVec<[BufferId; 8]>,
}

impl Touched {
    /// The allocations that these commands use.
    pub fn by(commands: &[Command]) -> Touched {
        let mut touched = Touched::default();
        for command in commands {
            touched.add(command);
        }
        for list in [&mut touched.reads, &mut touched.changes] {
            list.sort_unstable();
            list.dedup();
        }
        touched
    }

    /// The allocations of a `Release`.
    pub fn dropping(buffers: &[BufferId]) -> Touched {
        let mut changes = SmallVec::from_slice(buffers);
        changes.sort_unstable();
        Touched { reads: SmallVec::new(), changes }
    }

    /// Whether the two must run in order.
    pub fn conflicts(&self, other: &Touched) -> bool {
        let meet = |a: &[BufferId], b: &[BufferId]| a.iter().any(|buffer| b.binary_search(buffer).is_ok());
        meet(&self.changes, &other.changes) || meet(&self.changes, &other.reads) || meet(&other.changes, &self.reads)
    }

    fn add(&mut self, command: &Command) {
        match command {
            Command::Allocate { buffer, .. } | Command::Free { buffer } => self.changes.push(*buffer),
            Command::Upload { to, .. } => self.changes.push(to.buffer),
            Command::Zero { slot } => self.changes.push(slot.buffer),
            Command::Copy { from, to } => {
                self.reads.push(from.buffer);
                self.changes.push(to.buffer);
            }
            Command::Dispatch { launch, bindings, faults, .. } => {
                for (usage, slots) in launch.uses.iter().zip(bindings) {
                    let list = if usage.writes { &mut self.changes } else { &mut self.reads };
                    list.extend(slots.iter().map(|slot| slot.buffer));
                }
                self.changes.extend(faults.iter().map(|slot| slot.buffer));
            }
            Command::Readback { from, .. } => self.reads.push(from.buffer),
            Command::ReadFaults { slot, .. } => self.reads.push(slot.buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::batch::{Slot, Transfer};
    use crate::graph::DType;

    fn slot(buffer: u64) -> Slot {
        Slot { buffer: BufferId(buffer), offset: 0, bytes: 16 }
    }

    fn copy(from: u64, to: u64) -> Touched {
        Touched::by(&[Command::Copy { from: slot(from), to: slot(to) }])
    }

    #[test]
    fn who_only_reads_the_same_may_go_beside() {
        assert!(!copy(1, 2).conflicts(&copy(1, 3)));
        assert!(copy(1, 2).conflicts(&copy(3, 2)));
        assert!(copy(1, 2).conflicts(&copy(2, 3)));
        assert!(copy(2, 3).conflicts(&copy(1, 2)));
        let readback = Command::Readback { transfer: Transfer(1), from: slot(1), dtype: DType::F32, elements: 4 };
        let readback = Touched::by(&[readback]);
        assert!(!readback.conflicts(&copy(1, 2)));
        assert!(readback.conflicts(&copy(2, 1)));
    }

    #[test]
    fn what_is_dropped_is_changed() {
        let dropped = Touched::dropping(&[BufferId(5), BufferId(1)]);
        assert!(dropped.conflicts(&copy(1, 2)) && copy(1, 2).conflicts(&dropped));
        assert!(!dropped.conflicts(&copy(3, 2)));
        let made = Touched::by(&[Command::Allocate { buffer: BufferId(3), bytes: 16 }]);
        assert!(made.conflicts(&copy(3, 2)));
    }
}

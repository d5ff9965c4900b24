//! Finds the readbacks that can be saved of a batch that failed before any of it ran.
//!
//! In: its commands. Out: the readbacks of values that earlier batches made, whose bytes are still in their slots. Must
//! hold: no slot is read back that the batch itself was to write before.

use crate::contract::batch::{Command, Slot};
use crate::ids::BufferId;

/// Readbacks of what was in its slot before the commands began.
pub(super) fn older_readbacks(commands: &[Command]) -> Vec<Command> {
    let mut written: Vec<Slot> = Vec::new();
    let mut new: Vec<BufferId> = Vec::new();
    let mut kept = Vec::new();
    for command in commands {
        match command {
            Command::Allocate { buffer, .. } => new.push(*buffer),
            Command::Upload { to, .. } | Command::Copy { to, .. } => written.push(*to),
            Command::Zero { slot } => written.push(*slot),
            Command::Dispatch { launch, bindings, faults, .. } => {
                let outputs = launch.uses.iter().zip(bindings).filter(|(used, _)| used.writes);
                written.extend(outputs.flat_map(|(_, slots)| slots.iter().copied()).chain(*faults));
            }
            Command::Readback { from, .. } => {
                let overlaps = |slot: &Slot| {
                    let ends = (slot.offset + slot.bytes, from.offset + from.bytes);
                    slot.buffer == from.buffer && slot.offset < ends.1 && from.offset < ends.0
                };
                if !new.contains(&from.buffer) && !written.iter().any(overlaps) {
                    kept.push(command.clone());
                }
            }
            Command::Free { .. } | Command::ReadFaults { .. } => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::batch::Transfer;
    use crate::graph::DType;

    #[test]
    fn only_what_was_there_before_is_brought() {
        let slot = |buffer, offset| Slot { buffer: BufferId(buffer), offset, bytes: 64 };
        let readback =
            |transfer, from| Command::Readback { transfer: Transfer(transfer), from, dtype: DType::F32, elements: 16 };
        let commands = [
            Command::Allocate { buffer: BufferId(2), bytes: 256 },
            readback(0, slot(1, 0)),
            Command::Zero { slot: slot(1, 0) },
            Command::Copy { from: slot(1, 128), to: slot(1, 192) },
            readback(1, slot(1, 0)),
            readback(2, slot(1, 32)),
            readback(3, slot(1, 64)),
            readback(4, slot(1, 192)),
            readback(5, slot(2, 0)),
            readback(6, slot(1, 128)),
        ];
        let kept: Vec<u64> = older_readbacks(&commands)
            .iter()
            .map(|c| match c {
                Command::Readback { transfer, .. } => transfer.0,
                other => panic!("{other:?} is no readback"),
            })
            .collect();
        assert_eq!(kept, [0, 3, 6]);
    }
}

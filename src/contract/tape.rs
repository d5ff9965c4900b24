//! A session's tape: what it recorded, in program order.

use super::brief::Brief;
use crate::graph::Node;
use crate::ids::{DeviceId, GatherId, ValueId};

/// Where a gather wants its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The elements in host memory.
    Host,
    /// The value materialised on its device.
    Device,
}

/// The last handles of up to two values of a session that were dropped right after an op was recorded: nearly every
/// op drops a temporary, and an entry of its own for each would double the tape.
///
/// A value is stored as the distance from the op back to it, in 32 bits, since the size of a record is what recording
/// costs. A value that was recorded longer ago than that gets a `Dropped` record of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drops([u32; 2]);

impl Drops {
    /// Marks a free entry. Stored distances are smaller.
    const FREE: u32 = u32::MAX;
    /// No drops.
    pub const NONE: Drops = Drops([Drops::FREE; 2]);

    /// Adds the value with the number `index`, dropped after the op that makes value number `op`. False if it does not
    /// fit.
    #[inline]
    pub fn add(&mut self, op: u64, index: u64) -> bool {
        let distance = op.wrapping_sub(index);
        if distance >= u64::from(Drops::FREE) {
            return false;
        }
        match self.0.iter_mut().find(|slot| **slot == Drops::FREE) {
            Some(slot) => {
                *slot = distance as u32;
                true
            }
            None => false,
        }
    }

    /// The values that were dropped after the op that makes `op`, in the order of their drops.
    pub fn values(self, op: ValueId) -> impl Iterator<Item = ValueId> {
        let of = move |distance| ValueId { index: op.index - u64::from(distance), ..op };
        self.0.into_iter().filter(|distance| *distance != Drops::FREE).map(of)
    }
}

/// One entry of a session's tape, in program order.
#[derive(Debug)]
pub enum Record {
    /// An elementwise op was recorded, as most are, and then these handles were dropped.
    Brief(Brief, Drops),
    /// Another op was recorded, and then these handles were dropped.
    Op(Box<Node>, Drops),
    /// The last handle of a value was dropped.
    Dropped(ValueId),
    /// The program asked for a device to make this value, which was recorded before.
    Pinned(ValueId, DeviceId),
    /// A gather or eval was called.
    Demanded {
        /// The gather to resolve.
        gather: GatherId,
        /// The value.
        value: ValueId,
        /// Where it is wanted.
        want: Want,
    },
    /// A gather was dropped before the tape was cut.
    Cancelled(GatherId),
}

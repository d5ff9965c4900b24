//! A batch: work that is submitted to a device together. Residency writes it, a device carries it out.
//!
//! The same for the GPU and the host, so that residency is one machine: on the host an upload adopts the host buffer and
//! a readback shares it, without a copy.

use crate::contract::plan::Launch;
use crate::graph::DType;
use crate::host_buffer::HostBuffer;
use crate::ids::{BatchId, BufferId, RegionId, SessionId};
use crate::kernels::ir::Tile;
use smallvec::SmallVec;
use std::sync::Arc;

/// A byte range of an allocation. Offsets are multiples of 256; sizes are padded to 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The allocation.
    pub buffer: BufferId,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A readback, as residency numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Transfer(pub u64);

/// One thing to do, in order. Effects are as if each finished before the next began.
#[derive(Clone, Debug)]
pub enum Command {
    /// Make an allocation; one that is there already, in the same size, stays as it is.
    Allocate {
        /// Its name.
        buffer: BufferId,
        /// Its size.
        bytes: u64,
    },
    /// Drop an allocation; later commands don't name it.
    Free {
        /// Its name.
        buffer: BufferId,
    },
    /// Host elements to a slot.
    Upload {
        /// From this buffer,
        from: Arc<HostBuffer>,
        /// elements from here,
        first: u64,
        /// so many,
        elements: u64,
        /// to here.
        to: Slot,
    },
    /// Zero a slot.
    Zero {
        /// Which.
        slot: Slot,
    },
    /// Copy device memory.
    Copy {
        /// From.
        from: Slot,
        /// To, of the same size.
        to: Slot,
    },
    /// Run a launch over a tile.
    Dispatch {
        /// What.
        launch: Arc<Launch>,
        /// Which part of it.
        #[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "only GPUs run a launch in tiles"))]
        tile: Tile,
        /// For each of the launch's uses, the slots of its pieces (one if tiled).
        bindings: Vec<SmallVec<[Slot; 1]>>,
        /// The slot of fault words.
        faults: Option<Slot>,
        /// log2 of the 32-bit elements in a piece of what is not tiled.
        #[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "only GPUs bind pieces of an operand"))]
        span_shift: u32,
    },
    /// Bring elements of a slot to host memory; reported as `ReadbackDone`.
    Readback {
        /// Its number.
        transfer: Transfer,
        /// From here.
        from: Slot,
        /// Of this type,
        dtype: DType,
        /// so many.
        elements: u64,
    },
    /// Report which fault words of the slot are set with `BatchFinished`.
    ReadFaults {
        /// Which slot.
        slot: Slot,
        /// How many words.
        words: u32,
    },
}

/// Work submitted together.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Its number.
    pub id: BatchId,
    /// For which region.
    pub region: RegionId,
    /// For which session.
    #[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "only the lanes of GPUs name sessions"))]
    pub session: SessionId,
    /// What to do.
    pub commands: Vec<Command>,
}

//! A batch: work that is submitted to a device together. Residency writes it, a device carries it out.
//!
//! Batches are the same for the GPU and the host, so that residency needs no second case. On the host, an upload uses
//! the host buffer itself and a readback shares it, without a copy.

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

/// A command. The effects of a batch are as if each command finished before the next one began.
#[derive(Clone, Debug)]
pub enum Command {
    /// Make an allocation. If it exists already, with the same size, it stays as it is.
    Allocate {
        /// The name of the allocation.
        buffer: BufferId,
        /// Its size.
        bytes: u64,
    },
    /// Drop an allocation; later commands don't name it.
    Free {
        /// The name of the allocation.
        buffer: BufferId,
    },
    /// Copy elements of a host buffer to a slot.
    Upload {
        /// The host buffer.
        from: Arc<HostBuffer>,
        /// Its first element to copy.
        first: u64,
        /// The number of elements.
        elements: u64,
        /// The slot to fill.
        to: Slot,
    },
    /// Zero a slot.
    Zero {
        /// The slot.
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
        /// The launch.
        launch: Arc<Launch>,
        /// The tile.
        #[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "only GPUs run a launch in tiles"))]
        tile: Tile,
        /// For each of the launch's uses, the slots of its pieces (one if tiled).
        bindings: Vec<SmallVec<[Slot; 1]>>,
        /// The slot of fault words.
        faults: Option<Slot>,
        /// log2 of the 32-bit elements in a piece of an operand that is not tiled.
        #[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "only GPUs bind pieces of an operand"))]
        span_shift: u32,
    },
    /// Copy elements of a slot to host memory; reported as `ReadbackDone`.
    Readback {
        /// Its number.
        transfer: Transfer,
        /// The slot to read.
        from: Slot,
        /// The type of the elements.
        dtype: DType,
        /// The number of elements.
        elements: u64,
    },
    /// Report which fault words of the slot are set with `BatchFinished`.
    ReadFaults {
        /// The slot.
        slot: Slot,
        /// The number of fault words.
        words: u32,
    },
}

/// Work submitted together.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Its number.
    pub id: BatchId,
    /// The region.
    pub region: RegionId,
    /// The session.
    #[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "only the lanes of GPUs name sessions"))]
    pub session: SessionId,
    /// The commands, in order.
    pub commands: Vec<Command>,
}

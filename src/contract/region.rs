//! A region: a closed, placed piece of the graph, with liveness; what the scheduler hands to fusion.
//!
//! Invariants:
//! - REGION-1: nodes are in tape order, which is topological.
//! - REGION-2: every argument is a node before it, an input, or a scalar.
//! - REGION-3: an input is materialised somewhere, is made by an earlier region, or brings its host data.
//! - REGION-4: a region of several turns has the nodes of the first turn, then those of the second, and so on. Each
//!   node equals that of the first turn, except for parameters, random keys and the names of values. Its arguments are
//!   the same node of its own turn, the same input, or the same node of the turn before; in place of the latter, the
//!   first turn reads an input that has no other use in the loop. All ops are elementwise. Outputs belong to the last
//!   turn, and are values that a next turn would read.
//! - REGION-5: the nodes of a block are elementwise ops without checks, of one shape, or numbers.

use crate::error::{Error, ErrorKind, Site};
use crate::graph::{DType, Meta, Op, Scalar};
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, RegionId, SessionId, ValueId};
use smallvec::SmallVec;
use std::sync::Arc;

/// An argument of a region's node.
#[derive(Clone, Copy, Debug)]
pub enum RegionArg {
    /// A node of this region, by index.
    Node(u32),
    /// An input of this region, by index.
    Input(u32),
    /// A number.
    Scalar(Scalar),
}

/// A node of a region.
#[derive(Clone, Debug)]
pub struct RegionNode {
    /// The value it makes.
    pub value: ValueId,
    /// What it computes (never `Source`: sources are inputs).
    pub op: Op,
    /// From what.
    pub args: SmallVec<[RegionArg; 3]>,
    /// Dtype and shape.
    pub meta: Meta,
    /// Whether it is visible outside of the region, so that it must be written to memory.
    pub output: bool,
    /// Where it was recorded.
    pub at: Site,
}

/// A value that a region reads.
#[derive(Clone, Debug)]
pub struct RegionInput {
    /// The value.
    pub value: ValueId,
    /// Dtype and shape.
    pub meta: Meta,
    /// Host data, the first time the value enters a region.
    pub source: Option<Arc<HostBuffer>>,
    /// Nobody can reach it after this region: its memory may be reused in place.
    pub dies: bool,
    /// It is the program's own data, which the host device reads in place.
    pub is_source: bool,
}

/// Why a region ends where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CutReason {
    /// A gather or eval demanded a value.
    Demand,
    /// `flush()`, `share()`, `explain()` or `close()`, or its session ended.
    Flush,
    /// The tape reached its cap on undemanded nodes.
    NodeLimit,
    /// The tape reached its limit on pinned bytes, or lazy values reached the limit on the bytes that they keep.
    ByteLimit,
    /// Many handles were dropped while nothing was recorded.
    Drops,
    /// An upload writer of the session waits for memory, which values that are not computed yet may hold.
    Room,
    /// The next node runs on another device.
    DeviceChange,
    /// The region reached its limit on nodes, or on elements of independent parts.
    RegionLimit,
}

/// Why a device was chosen, with the numbers that decided.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// A text: "asked for", "cheaper", "this device lacks f64", …
    pub reason: &'static str,
    /// Estimated microseconds on each candidate, by device number.
    pub estimates_us: SmallVec<[(u8, f64); 2]>,
}

/// A closed, placed piece of the graph.
#[derive(Clone, Debug)]
pub struct Region {
    /// Its number, in the order of cutting.
    pub id: RegionId,
    /// The session that recorded it.
    pub session: SessionId,
    /// Its session's weight.
    pub weight: u32,
    /// Where it runs.
    pub device: DeviceId,
    /// The nodes that it computes, in tape order.
    pub nodes: Vec<RegionNode>,
    /// The values that it reads.
    pub inputs: Vec<RegionInput>,
    /// Values (node outputs or inputs) to bring to host memory when it is done.
    pub readbacks: Vec<ValueId>,
    /// Why it ends here.
    pub why: CutReason,
    /// Why it runs there.
    pub placement: Placement,
    /// The number of turns, if the region is a loop (REGION-4); else 1.
    pub turns: u32,
    /// Whether its nodes are one kernel if the device can bind what they read and write (REGION-5).
    pub is_block: bool,
    /// Not run, only planned: for `explain()`.
    pub preview: bool,
}

impl Region {
    /// The dtype of an argument.
    pub fn dtype_of(&self, arg: RegionArg) -> DType {
        match arg {
            RegionArg::Node(n) => self.nodes[n as usize].meta.dtype,
            RegionArg::Input(i) => self.inputs[i as usize].meta.dtype,
            RegionArg::Scalar(scalar) => scalar.dtype(),
        }
    }
}

/// The error of a value whose computation was cancelled because it was not needed any more.
pub fn cancelled_error() -> Error {
    Error::new(ErrorKind::Cancelled, "nothing waited for the value any more")
}

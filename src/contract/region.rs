//! A region: a closed, placed piece of the graph, with liveness; what the scheduler hands to fusion.
//!
//! Invariants:
//! - REGION-1: nodes are in tape order, which is topological.
//! - REGION-2: every argument is a node before it, an input, or a scalar.
//! - REGION-3: an input is materialised somewhere, is made by an earlier region, or brings its host data.
//! - REGION-4: the nodes of a region of several turns are those of the first turn, then those of the second, and so on.
//!   Each node is that of the first turn but for numbers that are parameters, random keys and the session's values: it reads
//!   the same node of its own turn, or of the turn before, in whose place the first turn reads an input that is nothing else
//!   to the loop, or the same input. All is elementwise; outputs are of the last turn, and read by a next one.

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
    /// Whether others will see it: it must be written out.
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
    /// It came from the user: the host device reads it where it lies.
    pub is_source: bool,
}

/// Why a region ends where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CutReason {
    /// Somebody awaits a value.
    Demand,
    /// `flush()`, `share()`, `explain()` or `close()`, or its session ended.
    Flush,
    /// The tape reached its cap on undemanded nodes.
    NodeLimit,
    /// The tape reached its cap on pinned bytes, or what is lazy the cap on what it keeps.
    ByteLimit,
    /// Much was let go of, and nothing recorded.
    Drops,
    /// A writer of the session waits for memory, which what the session has not computed yet may hold.
    Room,
    /// The next node runs on another device.
    DeviceChange,
    /// A region holds at most so many nodes, or elements of independent parts.
    RegionLimit,
}

/// Why a device was chosen, with the numbers that decided.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// In words: "asked for", "cheaper", "this device lacks f64", …
    pub reason: &'static str,
    /// Estimated microseconds on each candidate, by device number.
    pub estimates_us: SmallVec<[(u8, f64); 2]>,
}

/// A closed, placed piece of the graph.
#[derive(Clone, Debug)]
pub struct Region {
    /// Its number, in the order of cutting.
    pub id: RegionId,
    /// Whose it is.
    pub session: SessionId,
    /// Its session's weight.
    pub weight: u32,
    /// Where it runs.
    pub device: DeviceId,
    /// What it computes.
    pub nodes: Vec<RegionNode>,
    /// What it reads.
    pub inputs: Vec<RegionInput>,
    /// Values (node outputs or inputs) to bring to host memory when it is done.
    pub readbacks: Vec<ValueId>,
    /// Why it ends here.
    pub why: CutReason,
    /// Why it runs there.
    pub placement: Placement,
    /// The turns of the loop that it is, all alike but for numbers and random keys (REGION-4), or 1.
    pub turns: u32,
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

/// The error of a value that was dropped before it was made, since nobody waited for it any more.
pub fn cancelled_error() -> Error {
    Error::new(ErrorKind::Cancelled, "nobody waited for the value any more")
}

//! The live graph: a `petgraph` stable graph of the values that are still reachable.
//!
//! In: nodes as they were recorded. Out: entries with their home and who keeps them alive. Edges lead from an argument
//! to its lazy users and end when the user is cut. Must hold: SCHED-1, SCHED-2; entries can be read by all, and change
//! by the methods in `graph/events.rs` alone.

mod events;

use super::regions::UnfinishedRegion;
use super::whereabouts::{Passing, Places, Readback};
use crate::contract::region::Region;
use crate::error::Error;
use crate::graph::{Arg, Node, Op};
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, GatherId, RegionId, ValueId};
use petgraph::Direction::Incoming;
use petgraph::stable_graph::{NodeIndex, StableDiGraph};
use petgraph::visit::EdgeRef;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// A list of entries, usually short.
pub(super) type Entries = SmallVec<[NodeIndex; 16]>;

/// Where a value is.
#[derive(Clone, Debug)]
pub(super) enum Residence {
    /// Recorded, and not stored. A kernel may have computed it in passing, without writing it to memory.
    Lazy,
    /// An output of this unfinished region.
    Coming(RegionId),
    /// It exists: on a device, or as host data.
    Here,
    /// It will never exist.
    Failed(Error),
}

/// A live value: one that a program, a lazy value, a gather or a region can still reach. Its fields can be read
/// everywhere in the scheduler. No `&mut Live` leaves this module: `graph/events.rs` changes them.
#[derive(Debug)]
pub(super) struct Live {
    /// The node as it was recorded. Its arguments are meaningful while the value is lazy.
    pub node: Node,
    /// Where it is.
    pub home: Residence,
    /// The user has a handle.
    pub held: bool,
    /// Lazy nodes that read it: the edges that lead out of it.
    pub users: u32,
    /// How often, and at what cost, it was computed inside a kernel without being written to memory.
    pub passing: Passing,
    /// Set if the value's bytes were lost, or freed, before the scheduler handled the end of the region that makes it.
    /// The value counts as lost once that region has ended.
    pub pending_loss: Option<Error>,
    /// The value is dropped, and its bytes are counted among those that its session's lazy values keep.
    pub counted_as_kept: bool,
    /// Residency knows the value.
    pub known: bool,
    /// The segment that recorded it, until a cut computes it: its credit is open while that segment is ingested.
    pub segment: Option<u64>,
    /// Which devices have it.
    pub places: Places,
    /// Microseconds that earlier cuts of its own session would have saved if the value had been on a GPU
    /// (`placement.rs`, PLACE-1).
    pub missed_us: f64,
    /// Its elements, where the host has them.
    pub host: Option<Arc<HostBuffer>>,
    /// The fault word of something that it depends on is set.
    pub fault: Option<Error>,
    /// The state of its readback to host memory.
    pub readback: Readback,
    /// Open gathers of it.
    pub gathers: SmallVec<[GatherId; 1]>,
    /// Unfinished regions that read it, in order of cutting.
    pub regions: SmallVec<[RegionId; 2]>,
    /// The region that made it, if that can run again after a loss of the device.
    pub lineage: Option<Arc<Lineage>>,
}

/// How values were made: enough to make them again while the inputs exist.
#[derive(Debug)]
pub(super) struct Lineage {
    /// The region, as it was sent.
    pub region: Arc<Region>,
    /// Its place in the order of cutting.
    pub order: u64,
}

impl Lineage {
    /// How to compute a finished region's outputs again. `None` on the fallback device, which is never lost; if an
    /// input ended with the region; and if the region already was a second attempt.
    pub fn of(record: UnfinishedRegion, fallback: DeviceId) -> Option<Arc<Lineage>> {
        let UnfinishedRegion { mut region, order, attempt, .. } = record;
        let lasting = region.device != fallback && region.inputs.iter().all(|input| !input.dies);
        (lasting && attempt.number() == 0).then(|| {
            // Host data lives as long as its value does.
            if region.inputs.iter().any(|input| input.source.is_some()) {
                Arc::make_mut(&mut region).inputs.iter_mut().for_each(|input| input.source = None);
            }
            Arc::new(Lineage { region, order })
        })
    }
}

impl Live {
    fn new(node: Node, segment: u64) -> Live {
        let host = if let Op::Source(data) = &node.op { Some(data.clone()) } else { None };
        let home = if host.is_some() { Residence::Here } else { Residence::Lazy };
        Live {
            node,
            home,
            held: true,
            users: 0,
            passing: Passing::default(),
            pending_loss: None,
            counted_as_kept: false,
            known: false,
            segment: Some(segment),
            places: Places::made_on(DeviceId::HOST),
            missed_us: 0.0,
            host,
            fault: None,
            readback: Readback::default(),
            gathers: SmallVec::new(),
            regions: SmallVec::new(),
            lineage: None,
        }
    }

    /// Whether it was recorded and not computed.
    pub fn is_lazy(&self) -> bool {
        matches!(self.home, Residence::Lazy)
    }

    /// Whether it was not computed, and the program holds it.
    pub fn is_held_lazy(&self) -> bool {
        self.held && self.is_lazy()
    }

    /// Whether a program can still use it; open gathers are served by regions that are cut already.
    pub fn reachable(&self) -> bool {
        self.held || self.users > 0
    }

    /// The error with which a gather of the value fails, if it is known.
    pub fn error(&self) -> Option<&Error> {
        match &self.home {
            Residence::Failed(error) => Some(error),
            _ => self.fault.as_ref(),
        }
    }

    /// An error that names this value's op and source line.
    pub fn blame(&self, error: Error) -> Error {
        error.with_op(self.node.op.name()).with_site(self.node.at)
    }
}

/// The graph and its index.
#[derive(Debug, Default)]
pub(super) struct LiveGraph {
    /// Which values read which. The nodes carry no data, because the graph would copy an entry each time it is added or
    /// removed.
    graph: StableDiGraph<(), ()>,
    /// The values, by the number of their node in the graph.
    lives: Vec<Option<Live>>,
    index: FxHashMap<ValueId, NodeIndex>,
}

impl LiveGraph {
    /// The entry of a value.
    pub fn find(&self, value: ValueId) -> Option<NodeIndex> {
        self.index.get(&value).copied()
    }

    /// The entry itself.
    pub fn get(&self, value: ValueId) -> Option<&Live> {
        self.find(value).map(|at| &self[at])
    }

    /// An entry, to be changed here and in `events`.
    fn live(&mut self, at: NodeIndex) -> &mut Live {
        self.lives[at.index()].as_mut().expect("SCHED-1: a live value has an entry")
    }

    /// Adds a recorded node; `Err` names an argument that is not live.
    pub fn add(&mut self, node: Node, segment: u64) -> Result<NodeIndex, (NodeIndex, ValueId)> {
        let value = node.value;
        let mut arguments: SmallVec<[NodeIndex; 3]> = SmallVec::new();
        let mut missing = None;
        // Two scans of a short list are cheaper than a set; `cat` may have thousands of arguments.
        let mut seen = (node.args.len() > 16).then(FxHashSet::default);
        for arg in &node.args {
            let Arg::Value(argument) = arg else { continue };
            match self.find(*argument) {
                None => missing = missing.or(Some(*argument)),
                Some(at) => {
                    let fresh = match &mut seen {
                        Some(set) => set.insert(at),
                        None => !arguments.contains(&at),
                    };
                    if fresh {
                        arguments.push(at);
                    }
                }
            }
        }
        let at = self.graph.add_node(());
        match self.lives.get_mut(at.index()) {
            Some(place) => *place = Some(Live::new(node, segment)),
            None => self.lives.push(Some(Live::new(node, segment))),
        }
        let before = self.index.insert(value, at);
        assert!(before.is_none(), "SCHED-1: {value} was recorded twice");
        if let Some(argument) = missing {
            return Err((at, argument));
        }
        for argument in arguments {
            self.graph.add_edge(argument, at, ());
            self.live(argument).users += 1;
        }
        Ok(at)
    }

    /// The distinct arguments of a lazy value.
    pub fn arguments(&self, at: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        self.graph.neighbors_directed(at, Incoming)
    }

    /// Ends a value's reading of its arguments, and returns them. Called newest value first, so that each edge
    /// is at the head of its argument's list and goes in constant time.
    pub fn detach(&mut self, at: NodeIndex) -> SmallVec<[NodeIndex; 4]> {
        let edges: SmallVec<[_; 4]> = self.graph.edges_directed(at, Incoming).map(|e| (e.id(), e.source())).collect();
        let mut arguments = SmallVec::new();
        for (edge, argument) in edges {
            self.graph.remove_edge(edge);
            self.live(argument).users -= 1;
            arguments.push(argument);
        }
        arguments
    }

    /// Forgets a value that has no edges.
    pub fn remove(&mut self, at: NodeIndex) {
        self.graph.remove_node(at).expect("SCHED-1: a live value has an entry");
        let value = self[at].node.value;
        self.index.remove(&value);
        self.lives[at.index()] = None;
    }

    /// An entry, unless it has been removed.
    pub fn try_get(&self, at: NodeIndex) -> Option<&Live> {
        self.lives.get(at.index())?.as_ref()
    }

    /// The lazy values that read this one.
    pub fn users(&self, at: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        self.graph.neighbors(at)
    }

    /// Live values.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Upper bound of entry numbers, exclusive.
    pub fn bound(&self) -> usize {
        use petgraph::visit::NodeIndexable;
        self.graph.node_bound()
    }

    /// All entries, in no particular order.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (NodeIndex, &Live)> + '_ {
        let number = |(number, live): (usize, _)| Some((NodeIndex::new(number), Option::as_ref(live)?));
        self.lives.iter().enumerate().filter_map(number)
    }

    /// Edges that lead out of an entry, counted.
    #[cfg(test)]
    pub fn count_users(&self, at: NodeIndex) -> usize {
        self.graph.edges(at).count()
    }
}

impl std::ops::Index<NodeIndex> for LiveGraph {
    type Output = Live;
    fn index(&self, at: NodeIndex) -> &Live {
        self.lives[at.index()].as_ref().expect("SCHED-1: a live value has an entry")
    }
}

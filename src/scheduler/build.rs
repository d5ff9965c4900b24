//! From a cut to its regions: closed, placed, with liveness.
//!
//! In: a [`Cut`] and the graph that it was read from. Out: regions in order. Must hold: REGION-1 to REGION-3; an input
//! dies in the last region of the cut that reads it, and only if it is unreachable afterwards.

use super::cut::{Cut, Dep, Group};
use super::fates::Fate;
use super::graph::Live;
use super::state::State;
use crate::contract::region::{Placement, Region, RegionArg, RegionInput, RegionNode};
use crate::graph::{Arg, Op};
use crate::ids::{RegionId, ValueId};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

impl State {
    /// The regions of a cut, numbered from `first`; `wanted` says which outputs are brought to the host.
    pub(super) fn build_regions(
        &self,
        cut: &Cut,
        first: u64,
        preview: bool,
        wanted: impl Fn(ValueId, &Live) -> bool,
    ) -> Vec<Region> {
        // The last group that reads each value, for `dies`.
        let mut last_of_node: SmallVec<[Option<u32>; 32]> = smallvec![None; cut.nodes.len()];
        let mut last_of_input: SmallVec<[Option<u32>; 16]> = smallvec![None; cut.inputs.len()];
        for (number, group) in cut.groups.iter().enumerate() {
            for &position in &group.nodes {
                for dep in &cut.nodes[position as usize].deps {
                    match *dep {
                        Dep::Node(p) => last_of_node[p as usize] = Some(number as u32),
                        Dep::Input(i) => last_of_input[i as usize] = Some(number as u32),
                    }
                }
            }
        }
        let dies = |dep: Dep, number: u32| match dep {
            Dep::Node(p) => {
                let node = &cut.nodes[p as usize];
                last_of_node[p as usize] == Some(number) && node.remaining == 0 && !self.graph[node.at].held
            }
            Dep::Input(i) => {
                let input = &cut.inputs[i as usize];
                let live = &self.graph[input.at];
                // An input cannot die in this region if residency was told of its end, or another region will announce
                // it; nor if regions of other sessions, or regions that may run late, read it, too: then no reader is
                // known to be the last.
                last_of_input[i as usize] == Some(number)
                    && input.remaining == 0
                    && !live.held
                    && self.ends.is_undecided(live.node.value)
                    && self.read_only_by(live, cut.session)
            }
        };
        let mut regions = Vec::with_capacity(cut.groups.len());
        let mut places = Places::of(cut);
        for (number, group) in cut.groups.iter().enumerate() {
            let builder = GroupBuilder { state: self, cut, number: number as u32, group };
            let id = RegionId(first + number as u64);
            regions.push(builder.build(id, preview, &mut places, &dies, &wanted));
        }
        regions
    }
}

/// Maps positions in the cut to arguments of the region that is being built. An entry counts only if its first field is
/// the number of the current group. All groups share one table, because a cut may have thousands of groups.
struct Places {
    of_node: SmallVec<[(Option<u32>, RegionArg); 64]>,
    of_input: SmallVec<[(Option<u32>, RegionArg); 16]>,
}

impl Places {
    fn of(cut: &Cut) -> Places {
        let none = (None, RegionArg::Input(0));
        Places { of_node: smallvec![none; cut.nodes.len()], of_input: smallvec![none; cut.inputs.len()] }
    }
}

/// Turns one group into a region.
struct GroupBuilder<'a> {
    state: &'a State,
    cut: &'a Cut,
    number: u32,
    group: &'a Group,
}

impl GroupBuilder<'_> {
    fn build(
        &self,
        id: RegionId,
        preview: bool,
        places: &mut Places,
        dies: &dyn Fn(Dep, u32) -> bool,
        wanted: &dyn Fn(ValueId, &Live) -> bool,
    ) -> Region {
        let graph = &self.state.graph;
        let mut inputs: Vec<RegionInput> = Vec::new();
        let mut nodes: Vec<RegionNode> = Vec::with_capacity(self.group.nodes.len());
        let mut readbacks = Vec::new();
        let mut arguments: FxHashMap<ValueId, RegionArg> = FxHashMap::default();
        for (index, &position) in self.group.nodes.iter().enumerate() {
            let node = &self.cut.nodes[position as usize];
            let live = &graph[node.at];
            arguments.clear();
            // The graph names arguments from the last to the first; inputs stand in the order of arguments.
            for &dep in node.deps.iter().rev() {
                // Another group's node becomes an input, as a value from outside does.
                let (at, place) = match dep {
                    Dep::Node(p) => (self.cut.nodes[p as usize].at, &mut places.of_node[p as usize]),
                    Dep::Input(i) => (self.cut.inputs[i as usize].at, &mut places.of_input[i as usize]),
                };
                let from = &graph[at];
                if place.0 != Some(self.number) {
                    inputs.push(input_of(from, dies(dep, self.number), preview));
                    *place = (Some(self.number), RegionArg::Input(inputs.len() as u32 - 1));
                }
                arguments.insert(from.node.value, place.1);
            }
            let args = live
                .node
                .args
                .iter()
                .map(|arg| match arg {
                    Arg::Scalar(scalar) => RegionArg::Scalar(*scalar),
                    Arg::Value(value) => arguments[value],
                })
                .collect();
            let value = live.node.value;
            places.of_node[position as usize] = (Some(self.number), RegionArg::Node(index as u32));
            let output = matches!(node.fate, Fate::Output);
            if output && wanted(value, live) {
                readbacks.push(value);
            }
            nodes.push(RegionNode {
                value,
                op: live.node.op.clone(),
                args,
                meta: live.node.meta.clone(),
                output,
                at: live.node.at,
            });
        }
        Region {
            id,
            session: self.cut.session,
            weight: 1,
            device: self.group.device,
            nodes,
            inputs,
            readbacks,
            why: self.group.why,
            placement: self.placement(),
            turns: self.group.turns,
            is_block: self.group.is_block,
            preview,
        }
    }

    fn placement(&self) -> Placement {
        let places = || self.group.nodes.iter().map(|&p| &self.cut.nodes[p as usize].place);
        let elsewhere = places().find_map(|p| p.elsewhere);
        let first = places().next().expect("SCHED-10: a group has a node");
        Placement {
            reason: elsewhere.unwrap_or(first.reason),
            estimates_us: first.component.and_then(|n| self.cut.estimates.get(n as usize)).cloned().unwrap_or_default(),
        }
    }
}

/// A value that a region reads. Host data is added when the region is sent (`fairness.rs`); a preview never is.
fn input_of(from: &Live, dies: bool, preview: bool) -> RegionInput {
    RegionInput {
        value: from.node.value,
        meta: from.node.meta.clone(),
        source: from.host.clone().filter(|_| preview && !from.known),
        dies,
        is_source: matches!(from.node.op, Op::Source(_)),
    }
}

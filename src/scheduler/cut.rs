//! Region cutting: from demanded values to the nodes that must run, where each runs, and in which region. Which of them
//! are written out is decided by `fates`.
//!
//! In: roots, the live graph. Out: a [`Cut`]. Planning a cut changes nothing: `explain()` renders it and a demand
//! commits it, so both see the same. Must hold: a cut depends on the session's own program order alone (values of other
//! sessions are inputs), takes time linear in its nodes and edges, and does not recurse.

use super::bodies::{are_alike, parts};
use super::fates::Fate;
use super::graph::{Entries, Residence};
use super::loops::around;
use super::placement::Where;
use super::portions::{elements_max, portions};
use super::state::State;
use crate::contract::region::CutReason;
use crate::ids::{DeviceId, SessionId};
use petgraph::stable_graph::NodeIndex;
use smallvec::{SmallVec, smallvec};

/// The most nodes a region holds.
pub(super) const REGION_NODES_MAX: usize = 1024;

/// A distinct argument of a node of the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dep {
    /// Another node of the cut, by position.
    Node(u32),
    /// A value from outside, by position in [`Cut::inputs`].
    Input(u32),
}

/// A node of the cut.
#[derive(Debug)]
pub(super) struct CutNode {
    /// Its entry.
    pub at: NodeIndex,
    /// Its distinct arguments.
    pub deps: SmallVec<[Dep; 3]>,
    /// What becomes of it.
    pub fate: Fate,
    /// Where it runs, and why.
    pub place: Where,
    /// Which of [`Cut::groups`] holds it, if it runs.
    pub group: Option<u32>,
    /// A demand (a gather or an eval) or a limit asks for it.
    pub root: bool,
    /// Lazy users and handles that remain after the cut; filled by `fates`.
    pub remaining: u32,
    /// The cost of computing it without writing it, in elements, if its fate is `Passes`.
    pub passing_cost: u64,
}

/// A value from outside of the cut.
#[derive(Debug)]
pub(super) struct CutInput {
    /// Its entry.
    pub at: NodeIndex,
    /// Lazy users that remain after the cut.
    pub remaining: u32,
    /// Microseconds that this cut would save if the value were on a GPU already (`placement.rs`, PLACE-1).
    pub missed_us: f64,
}

/// Nodes that will be one region.
#[derive(Debug)]
pub(super) struct Group {
    /// Where.
    pub device: DeviceId,
    /// Positions of its nodes, in tape order.
    pub nodes: Vec<u32>,
    /// Why it ends.
    pub why: CutReason,
    /// Turns, if the group is a loop (`loops`); else 1.
    pub turns: u32,
    /// Whether it is a block of the tape (`blocks`).
    pub is_block: bool,
}

/// The nodes that a demand computes, with the decisions about them.
#[derive(Debug)]
pub(super) struct Cut {
    /// The session of its nodes.
    pub session: SessionId,
    /// Nodes, in tape order.
    pub nodes: Vec<CutNode>,
    /// Values from outside.
    pub inputs: Vec<CutInput>,
    /// Lazy values of other sessions, which are cut under their own session first.
    pub foreign: Vec<NodeIndex>,
    /// Regions, in order.
    pub groups: Vec<Group>,
    /// Estimates of the placement, by component.
    pub estimates: Vec<SmallVec<[(u8, f64); 2]>>,
    /// The cut cannot be placed before the device that is opened on demand is open.
    pub needs_device: bool,
}

/// Positions of nodes by stage and device, in that order.
type Members = SmallVec<[((u32, DeviceId), Vec<u32>); 1]>;

/// Reusable marks: a position for each entry that a cut has met.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    marks: Vec<Mark>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    None,
    Node(u32),
    Input(u32),
}

impl State {
    /// Plans the cut that computes `roots`, lazy values of `session`.
    pub(super) fn plan_cut(
        &self,
        scratch: &mut Scratch,
        session: SessionId,
        roots: &[NodeIndex],
        why: CutReason,
    ) -> Cut {
        let mut cut = self.collect(scratch, session, roots);
        self.find_failures(&mut cut);
        self.place(&mut cut);
        if cut.needs_device {
            return cut;
        }
        self.group(&mut cut, why);
        self.decide_fates(&mut cut);
        cut
    }

    /// The roots' lazy ancestors in tape order, with what they read.
    fn collect(&self, scratch: &mut Scratch, session: SessionId, roots: &[NodeIndex]) -> Cut {
        scratch.marks.resize(self.graph.bound(), Mark::None);
        let marks = &mut scratch.marks;
        let mut found = Entries::new();
        let mut inputs: Vec<CutInput> = Vec::new();
        let mut foreign = Vec::new();
        for &root in roots {
            if marks[root.index()] == Mark::None {
                marks[root.index()] = Mark::Node(0);
                found.push(root);
            }
        }
        let roots_end = found.len();
        let mut next = 0;
        // `found` is the work list as well: everything before `next` has had its arguments visited.
        while next < found.len() {
            for argument in self.graph.arguments(found[next]) {
                if marks[argument.index()] != Mark::None {
                    continue;
                }
                let live = &self.graph[argument];
                if live.is_lazy() && live.node.value.session == session {
                    marks[argument.index()] = Mark::Node(0);
                    found.push(argument);
                } else {
                    if live.is_lazy() {
                        foreign.push(argument);
                    }
                    marks[argument.index()] = Mark::Input(inputs.len() as u32);
                    inputs.push(CutInput { at: argument, remaining: live.users, missed_us: 0.0 });
                }
            }
            next += 1;
        }
        let mut nodes: Vec<CutNode> = found
            .iter()
            .enumerate()
            .map(|(number, &at)| CutNode {
                at,
                deps: SmallVec::new(),
                fate: Fate::FusedAway,
                place: Where::default(),
                group: None,
                // A gather of it may belong to another segment, which waits for a device.
                root: number < roots_end || !self.graph[at].gathers.is_empty(),
                remaining: self.graph[at].users,
                passing_cost: 0,
            })
            .collect();
        nodes.sort_unstable_by_key(|n| self.graph[n.at].node.value.index);
        for (position, node) in nodes.iter().enumerate() {
            marks[node.at.index()] = Mark::Node(position as u32);
        }
        for node in &mut nodes {
            node.deps = self
                .graph
                .arguments(node.at)
                .map(|argument| match marks[argument.index()] {
                    Mark::Node(position) => Dep::Node(position),
                    Mark::Input(position) => Dep::Input(position),
                    Mark::None => unreachable!("SCHED-1: every argument was visited"),
                })
                .collect();
        }
        for node in &nodes {
            marks[node.at.index()] = Mark::None;
        }
        for input in &inputs {
            marks[input.at.index()] = Mark::None;
        }
        Cut { session, nodes, inputs, foreign, groups: Vec::new(), estimates: Vec::new(), needs_device: false }
    }

    /// Marks the nodes that depend on failed values as failed, and those that only failed ones need as not needed.
    fn find_failures(&self, cut: &mut Cut) {
        let Cut { nodes, inputs, .. } = cut;
        if let Some(error) = self.opening.refused() {
            for node in nodes {
                node.fate = Fate::Failed(self.graph[node.at].blame(error.clone()));
            }
            return;
        }
        if !inputs.iter().any(|i| matches!(self.graph[i.at].home, Residence::Failed(_))) {
            return;
        }
        for position in 0..nodes.len() {
            // Arguments in the order of the op: the first operand's fault wins. Edges are listed newest first.
            let error = nodes[position].deps.iter().rev().find_map(|dep| match *dep {
                Dep::Node(p) => match &nodes[p as usize].fate {
                    Fate::Failed(error) => Some(error.clone()),
                    _ => None,
                },
                Dep::Input(i) => match &self.graph[inputs[i as usize].at].home {
                    Residence::Failed(error) => Some(error.clone()),
                    _ => None,
                },
            });
            if let Some(error) = error {
                nodes[position].fate = Fate::Failed(error);
            }
        }
        let mut needed = vec![false; nodes.len()];
        for position in (0..nodes.len()).rev() {
            if matches!(nodes[position].fate, Fate::Failed(_)) {
                continue;
            }
            needed[position] |= nodes[position].root;
            if !needed[position] {
                nodes[position].fate = Fate::NotNeeded;
                continue;
            }
            for dep in &nodes[position].deps {
                if let Dep::Node(p) = dep {
                    needed[*p as usize] = true;
                }
            }
        }
    }

    /// Puts the nodes that run into groups by stage and device: a stage ends where an edge changes device.
    fn group(&self, cut: &mut Cut, why: CutReason) {
        let mut stages: SmallVec<[u32; 32]> = smallvec![0; cut.nodes.len()];
        let mut members: Members = SmallVec::new();
        for (position, node) in cut.nodes.iter().enumerate() {
            if !node.runs() {
                continue;
            }
            let device = node.place.device;
            let mut stage = 0;
            for dep in &node.deps {
                if let Dep::Node(p) = *dep {
                    let crosses = cut.nodes[p as usize].place.device != device;
                    stage = stage.max(stages[p as usize] + crosses as u32);
                }
            }
            stages[position] = stage;
            let place = members.binary_search_by_key(&(stage, device), |(place, _)| *place).unwrap_or_else(|at| {
                members.insert(at, ((stage, device), Vec::with_capacity(cut.nodes.len().min(32))));
                at
            });
            members[place].1.push(position as u32);
        }
        let mut groups = Vec::with_capacity(members.len());
        for ((_, device), nodes) in members {
            let first = groups.len();
            let most = elements_max(&self.fleet[device]);
            for portion in portions(cut, nodes, |n| self.elements_of(cut, n), most) {
                for (part, is_block) in self.blocks(cut, &portion, &self.fleet[device]) {
                    let regions = match is_block {
                        true => smallvec![(part.to_vec(), 1)],
                        false => self.regions_of(cut, part, device),
                    };
                    for (nodes, turns) in regions {
                        for &position in &nodes {
                            cut.nodes[position as usize].group = Some(groups.len() as u32);
                        }
                        groups.push(Group { device, nodes, why: CutReason::RegionLimit, turns, is_block });
                    }
                }
            }
            if let Some(last) = groups[first..].last_mut() {
                last.why = why;
            }
        }
        for node in cut.nodes.iter().filter(|n| n.runs()) {
            for dep in &node.deps {
                if let Dep::Node(p) = *dep {
                    let from = cut.nodes[p as usize].region();
                    if groups[from].device != node.place.device {
                        groups[from].why = CutReason::DeviceChange;
                    }
                }
            }
        }
        cut.groups = groups;
    }

    /// The regions of a part of a portion, each with its turns: loops that are a kernel each, and the rest, of a bounded size.
    fn regions_of(&self, cut: &Cut, portion: &[u32], device: DeviceId) -> SmallVec<[(Vec<u32>, u32); 1]> {
        let loops = self.loops(cut, portion, &self.fleet[device]);
        if loops.is_empty() && portion.len() <= REGION_NODES_MAX {
            return smallvec![(portion.to_vec(), 1)];
        }
        let node = |position: u32| &self.graph[cut.nodes[position as usize].at].node;
        let alike = |&a: &u32, &b: &u32| are_alike(node(a), node(b));
        let mut regions = SmallVec::new();
        for (range, turns) in around(&loops, portion.len()) {
            let nodes = &portion[range];
            match turns {
                1 => regions.extend(parts(nodes, REGION_NODES_MAX, alike).into_iter().map(|part| (part.to_vec(), 1))),
                _ => regions.push((nodes.to_vec(), turns as u32)),
            }
        }
        regions
    }

    /// The larger of the elements that a node computes and those that it reads.
    fn elements_of(&self, cut: &Cut, position: u32) -> u64 {
        let node = &cut.nodes[position as usize];
        let read = node.deps.iter().map(|&dep| self.meta_of(cut, dep).elements());
        read.chain([self.graph[node.at].node.meta.elements()]).max().unwrap_or(0) as u64
    }
}

impl Cut {
    /// The entry of an argument.
    pub(super) fn entry(&self, dep: Dep) -> NodeIndex {
        match dep {
            Dep::Node(p) => self.nodes[p as usize].at,
            Dep::Input(i) => self.inputs[i as usize].at,
        }
    }
}

impl CutNode {
    /// The group, and so the region, of a node that runs: a position in [`Cut::groups`].
    pub(super) fn region(&self) -> usize {
        self.group.expect("SCHED-10: each node that runs is in a group") as usize
    }

    /// Whether the cut computes it.
    pub(super) fn runs(&self) -> bool {
        !matches!(self.fate, Fate::Failed(_) | Fate::NotNeeded)
    }
}

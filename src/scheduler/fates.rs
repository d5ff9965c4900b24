//! The fate of each node of a cut: whether it is written to memory.
//!
//! In: a cut whose nodes are placed and grouped. Out: a [`Fate`] for each node, and how many users each node and input
//! keeps. Must hold: roots, and nodes that another region of the cut reads, are written; linear in the cut's nodes and
//! edges.

use super::cut::{Cut, CutNode, Dep};
use super::state::State;
use crate::error::Error;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// What becomes of a node of the cut.
#[derive(Clone, Debug)]
pub(super) enum Fate {
    /// Written out.
    Output,
    /// Computed inside a kernel and not written to memory: it stays lazy for its next user.
    Recomputable,
    /// Computed inside a kernel and not written to memory. It is removed, since nothing can reach it afterwards.
    FusedAway,
    /// Depends on something that does not exist.
    Failed(Error),
    /// Needed only by nodes that fail: left as it is.
    NotNeeded,
}

/// The lazy node that alone would keep an input, or a node that is written out, in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeper {
    None,
    One(u32),
    Several,
}

impl Keeper {
    fn join(self, other: Keeper) -> Keeper {
        match (self, other) {
            (Keeper::None, x) | (x, Keeper::None) => x,
            (x, y) if x == y => x,
            (Keeper::One(_) | Keeper::Several, Keeper::One(_) | Keeper::Several) => Keeper::Several,
        }
    }
}

impl State {
    /// Decides which nodes are written to memory: roots; nodes that another region of this cut reads; nodes that have
    /// been recomputed often enough to be worth their memory; and nodes that would keep more bytes alive by staying
    /// lazy than they take.
    pub(super) fn decide_fates(&self, cut: &mut Cut) {
        let mut forced: SmallVec<[bool; 64]> =
            (0..cut.nodes.len()).map(|n| cut.nodes[n].root || self.is_worth_keeping(cut, n)).collect();
        let mut crosses: SmallVec<[bool; 64]> = smallvec![false; cut.nodes.len()];
        for node in cut.nodes.iter().filter(|n| n.runs()) {
            for dep in &node.deps {
                if let Dep::Node(p) = *dep {
                    crosses[p as usize] |= cut.nodes[p as usize].group != node.group;
                }
            }
        }
        self.fates_once(cut, &forced, &crosses);
        let passes = |n: &CutNode| matches!(n.fate, Fate::Recomputable);
        if !cut.nodes.iter().any(passes) {
            return;
        }
        if self.add_pinning(cut, &mut forced) {
            self.fates_once(cut, &forced, &crosses);
        }
        let costs = self.passing_costs(cut);
        for (node, cost) in cut.nodes.iter_mut().zip(costs).filter(|(node, _)| passes(node)) {
            node.passing_cost = cost;
        }
    }

    /// One pass from the last node to the first: every user is decided before its arguments.
    fn fates_once(&self, cut: &mut Cut, forced: &[bool], crosses: &[bool]) {
        let Cut { nodes, inputs, .. } = cut;
        for node in nodes.iter_mut() {
            node.remaining = self.graph[node.at].users;
        }
        for input in inputs.iter_mut() {
            input.remaining = self.graph[input.at].users;
        }
        for position in (0..nodes.len()).rev() {
            let live = self.graph[nodes[position].at].held || nodes[position].remaining > 0;
            let fate = match &nodes[position].fate {
                Fate::Failed(error) => Fate::Failed(error.clone()),
                Fate::NotNeeded => Fate::NotNeeded,
                _ if crosses[position] || nodes[position].root => Fate::Output,
                _ if live && forced[position] => Fate::Output,
                _ if live => Fate::Recomputable,
                _ => Fate::FusedAway,
            };
            let releases = matches!(fate, Fate::Output | Fate::FusedAway | Fate::Failed(_));
            nodes[position].fate = fate;
            if releases {
                for number in 0..nodes[position].deps.len() {
                    match nodes[position].deps[number] {
                        Dep::Node(p) => nodes[p as usize].remaining -= 1,
                        Dep::Input(i) => inputs[i as usize].remaining -= 1,
                    }
                }
            }
        }
    }

    /// Marks nodes in `forced` that would keep more bytes alive by staying lazy than they take themselves. A partial
    /// overwrite is marked at equal bytes, too, since it reuses its base's memory. Returns whether any node was marked.
    ///
    /// Each input, and each node that is written out, belongs to the one passed node that alone keeps it alive, if
    /// there is such a node: ownership flows from users to arguments in one pass, so this is linear.
    fn add_pinning(&self, cut: &Cut, forced: &mut [bool]) -> bool {
        let mut node_keepers = vec![Keeper::None; cut.nodes.len()];
        let mut node_users = vec![0u32; cut.nodes.len()];
        let mut input_keepers = vec![Keeper::None; cut.inputs.len()];
        let mut input_users = vec![0u32; cut.inputs.len()];
        let mut pinned: FxHashMap<u32, u64> = FxHashMap::default();
        for (position, node) in cut.nodes.iter().enumerate().rev() {
            let outside = node.remaining > node_users[position];
            if matches!(node.fate, Fate::Output) {
                let live = &self.graph[node.at];
                if let (Keeper::One(keeper), false, false) = (node_keepers[position], live.held, outside) {
                    *pinned.entry(keeper).or_default() += live.node.meta.bytes() as u64;
                }
                continue;
            }
            if !matches!(node.fate, Fate::Recomputable | Fate::NotNeeded) {
                continue;
            }
            let keeper = match node.fate {
                Fate::NotNeeded => Keeper::Several,
                _ if self.graph[node.at].held || outside => Keeper::One(position as u32),
                _ => node_keepers[position],
            };
            for dep in &node.deps {
                match *dep {
                    Dep::Node(p) => {
                        node_keepers[p as usize] = node_keepers[p as usize].join(keeper);
                        node_users[p as usize] += 1;
                    }
                    Dep::Input(i) => {
                        input_keepers[i as usize] = input_keepers[i as usize].join(keeper);
                        input_users[i as usize] += 1;
                    }
                }
            }
        }
        for (number, input) in cut.inputs.iter().enumerate() {
            let live = &self.graph[input.at];
            let outside = input.remaining > input_users[number];
            if let (Keeper::One(keeper), false, false) = (input_keepers[number], live.held, outside) {
                *pinned.entry(keeper).or_default() += live.node.meta.bytes() as u64;
            }
        }
        let mut any = false;
        for (position, bytes) in pinned {
            let node = &self.graph[cut.nodes[position as usize].at].node;
            let own = node.meta.bytes() as u64;
            // A partial overwrite reuses its base's memory now; computed later, it would copy the base.
            if bytes > own || bytes == own && self.overwrites(cut, position) {
                forced[position as usize] = true;
                any = true;
            }
        }
        any
    }

    /// Whether a node is a partial overwrite of an array, or a reshape of one.
    fn overwrites(&self, cut: &Cut, mut position: u32) -> bool {
        loop {
            let node = &cut.nodes[position as usize];
            let op = &self.graph[node.at].node.op;
            match &node.deps[..] {
                [Dep::Node(p)] if op.is_reshape() => position = *p,
                _ => return op.facts().overwrites(),
            }
        }
    }
}

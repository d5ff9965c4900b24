//! Decides which nodes are written to memory.
//!
//! In: working nodes and the device's budgets. Out: for every node, whether its value gets a buffer, and why a budget
//! asked for it. Must hold: every inline cone between two buffers stays within the budgets of ops and bindings; the
//! cuts are a function of structure alone (FUSE-3).

use super::anchors::anchored;
use super::bits::Bits;
use super::budget::{Budget, OPS_MAX, OPS_MAX_WORDS};
use super::cones::Cones;
use super::form::{Class, RegionGraph};
use super::in_step::in_step;
use super::pack;
use crate::contract::region::RegionArg;
use crate::graph::{Reads, Shape};
use smallvec::SmallVec;

/// What this pass decided.
#[derive(Clone, Debug)]
pub struct Cuts {
    /// Whether a node's value gets a buffer.
    pub written: Vec<bool>,
    /// The reason, where a budget asked for it.
    pub reason: Vec<Option<&'static str>>,
}

/// Decides which nodes are written out; `extra` are nodes that a later pass wants written.
pub fn cut(work: &RegionGraph<'_>, budget: Budget, extra: &[u32]) -> Cuts {
    let count = work.nodes.len();
    let mut cuts = Cuts { written: anchored(work), reason: vec![None; count] };
    for (index, node) in work.nodes.iter().enumerate() {
        if node.apart {
            cuts.reason[index] = Some("what it is made of is overwritten in place");
        }
    }
    for n in partly_checked(work, &cuts.written) {
        cuts.written[n as usize] = true;
        cuts.reason[n as usize] = Some("it is checked as a whole and read in part");
    }
    for &n in extra {
        cuts.written[n as usize] = true;
        cuts.reason[n as usize] = Some("several kernels need it and computing it again costs more");
    }
    let mut cones = Cones::new(work);
    let mut totals = vec![0; count];
    let mut index = 0;
    while index < count {
        cones.compute(work, &cuts.written, index);
        totals[index] = total_weight(work, &cuts, &totals, index);
        let is_heavy = match multiplied(work, index) {
            Times::Once => false,
            Times::Views { places } => totals[index].saturating_mul(places - 1) > budget.recompute_max,
            // The node and its arguments are computed twice, so the cost doubles with each node of a chain of these.
            Times::AndOne => totals[index] > OPS_MAX,
            Times::Expanded => cone_weight(work, &cones, index) > budget.expand_max,
        };
        if !cuts.written[index] && is_heavy {
            cuts.written[index] = true;
            cuts.reason[index] = Some("it is read at several places and computing it again costs more");
        }
        match over_budget(work, &cones, &cuts, budget, index) {
            None => index += 1,
            Some((victims, reason)) => {
                let first = *victims.iter().min().expect("FUSE-5: a cut has a victim");
                for n in victims {
                    cuts.written[n as usize] = true;
                    cuts.reason[n as usize] = Some(reason);
                }
                index = first as usize;
            }
        }
    }
    cuts
}

/// Checks of conditions and of indices that would be computed for some of their elements only, because only slices or
/// single elements of their values are read. The result of an array's check must not depend on which of its elements
/// are read, nor on fusion.
fn partly_checked(work: &RegionGraph<'_>, written: &[bool]) -> Vec<u32> {
    let mut found = Vec::new();
    if !work.nodes.iter().any(|node| node.op.facts().checks_inline()) {
        return found;
    }
    // Whether every element of a node is computed.
    let mut whole = written.to_vec();
    for index in (0..work.nodes.len()).rev() {
        let node = &work.nodes[index];
        let read = |c: &u32| {
            let consumer = &work.nodes[*c as usize];
            let here = |arg: &RegionArg| matches!(arg, RegionArg::Node(n) if *n as usize == index);
            let mut slots = (0..consumer.args.len()).filter(|&slot| here(&consumer.args[slot]));
            whole[*c as usize] && slots.any(|slot| reads_all(work, *c, slot))
        };
        whole[index] = written[index] || node.consumers.iter().any(read);
        let is_read = node.consumers.iter().any(|&c| work.nodes[c as usize].class != Class::Empty);
        if node.op.facts().checks_inline() && node.class == Class::Inline && is_read && !whole[index] {
            whole[index] = true;
            found.push(index as u32);
        }
    }
    found
}

/// Whether computing all of a node reads all of an argument.
fn reads_all(work: &RegionGraph<'_>, n: u32, slot: usize) -> bool {
    let node = &work.nodes[n as usize];
    let from = work.arg_shape(node.args[slot]);
    match node.op.facts().reads(slot) {
        Reads::Part => from == node.meta.shape || from.is_scalar(),
        Reads::AtIndex => from.is_scalar(),
        Reads::Number
        | Reads::Same
        | Reads::Expanded
        | Reads::Moved
        | Reads::Repeated
        | Reads::Joined
        | Reads::Spread
        | Reads::Index
        | Reads::Base
        | Reads::Folded
        | Reads::All => true,
    }
}

/// How often an element of a node is computed if the node is inlined into its consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Times {
    /// Once.
    Once,
    /// The node is read through several views, or at indices. Each element is computed at `places` places or more.
    Views {
        /// The number of places, at least 2.
        places: u32,
    },
    /// The node is read as a whole, and at one element: `x(i,j) = x(i,j) + 1`, in the kernel that computes `x`.
    AndOne,
    /// A consumer is larger than the node (broadcasting).
    Expanded,
}

fn multiplied(work: &RegionGraph<'_>, index: usize) -> Times {
    let node = &work.nodes[index];
    if node.class != Class::Inline || node.op.is_number() {
        return Times::Once;
    }
    let mut expanded = false;
    let (mut bent, mut points) = (0, 0);
    for &c in &node.consumers {
        let consumer = &work.nodes[c as usize];
        let here = |arg: &RegionArg| matches!(arg, RegionArg::Node(n) if *n as usize == index);
        let slot = consumer.args.iter().position(here).expect("FUSE-5: a consumer has what it uses as an argument");
        match consumer.op.facts().reads(slot) {
            Reads::Same | Reads::Folded | Reads::Joined => {}
            Reads::AtIndex | Reads::Index => return Times::Views { places: 2 },
            Reads::Repeated => expanded = true,
            Reads::Part if consumer.meta.elements() == 1 && node.meta.elements() > 1 => points += 1,
            Reads::Moved | Reads::Part => bent += 1,
            Reads::Number | Reads::Expanded | Reads::Spread | Reads::Base | Reads::All => {
                let (own, theirs) = (&node.meta.shape, &consumer.meta.shape);
                expanded |= (0..theirs.rank()).any(|d| own.dim(d) == 1 && theirs.dim(d) != 1);
            }
        }
    }
    // The read of a single element matters only if the node is computed once otherwise.
    if points > 1 || expanded || bent > 0 {
        bent += points;
        points = 0;
    }
    match bent > 1 || (bent == 1 && node.consumers.len() > 1) {
        // Consumers that read it at their own element share one computation.
        true => Times::Views { places: bent as u32 + ((bent as usize) < node.consumers.len()) as u32 },
        false if expanded => Times::Expanded,
        false if points > 0 && node.consumers.len() > 1 => Times::AndOne,
        false => Times::Once,
    }
}

/// Simple operations to compute one element of a node. Random numbers do not count, because they are drawn again at
/// each read.
fn cone_weight(work: &RegionGraph<'_>, cones: &Cones, index: usize) -> u32 {
    cones.nodes[index].iter().map(|n| work.nodes[n as usize].op.facts().cost.weight_again()).sum()
}

/// The same, with an argument that is read at several places counted once for each, as it will be computed. In nested
/// joins of parts, this doubles with every level.
fn total_weight(work: &RegionGraph<'_>, cuts: &Cuts, totals: &[u32], index: usize) -> u32 {
    let mut here: SmallVec<[u32; 16]> = SmallVec::from_slice(&[index as u32]);
    let mut sum: u32 = 0;
    let mut next = 0;
    while let Some(&n) = here.get(next) {
        next += 1;
        let node = &work.nodes[n as usize];
        sum = sum.saturating_add(node.op.facts().cost.weight_again());
        for (slot, &arg) in node.args.iter().enumerate() {
            let RegionArg::Node(m) = arg else { continue };
            if cuts.written[m as usize] {
                continue;
            }
            if !in_step(work, n, slot, m) {
                sum = sum.saturating_add(totals[m as usize]);
            } else if !here.contains(&m) {
                here.push(m);
            }
        }
    }
    sum
}

fn over_budget(
    work: &RegionGraph<'_>,
    cones: &Cones,
    cuts: &Cuts,
    budget: Budget,
    index: usize,
) -> Option<(Vec<u32>, &'static str)> {
    let cone = &cones.nodes[index];
    let reason = if cone.count() > OPS_MAX && ops(work, cone) > OPS_MAX {
        OPS_MAX_WORDS
    } else if pack::bound(work, cone, &cones.reads[index], &space_of(work, index), budget) > budget.reads_max {
        "a kernel would otherwise bind more buffers than it may"
    } else {
        return None;
    };
    // Nodes that are used outside of this cone are written first: they need a buffer anyway.
    let mut victims: Vec<u32> = cone
        .iter()
        .filter(|&n| {
            n as usize != index
                && worth_a_buffer(work, n)
                && work.nodes[n as usize].consumers.iter().any(|&c| !cone.contains(c))
                && cones.nodes[n as usize].count() > OPS_MAX / 4
        })
        .collect();
    if victims.is_empty() {
        let heaviest = work.nodes[index]
            .args
            .iter()
            .filter_map(|&arg| match arg {
                RegionArg::Node(n) if !cuts.written[n as usize] && worth_a_buffer(work, n) => Some(n),
                _ => None,
            })
            .max_by_key(|&n| (cones.nodes[n as usize].count() + cones.reads[n as usize].count(), n));
        victims.extend(heaviest);
    }
    if victims.is_empty() {
        // Only fills and views of inputs are left, and writing them does not help. A wide `cat` of inputs ends here,
        // and binds all of them.
        return None;
    }
    Some((victims, reason))
}

/// The number of ops among the nodes of a cone. Casts of operands with mixed dtypes, and fills, do not count.
fn ops(work: &RegionGraph<'_>, cone: &Bits) -> u32 {
    let counts = |n: &u32| {
        let op = &work.nodes[*n as usize].op;
        !op.is_cast() && !op.is_number()
    };
    cone.iter().filter(counts).count() as u32
}

/// The space of a kernel that ends with a node.
fn space_of(work: &RegionGraph<'_>, index: usize) -> Shape {
    let node = &work.nodes[index];
    match node.class {
        Class::Reduce => work.arg_shape(node.args[0]),
        Class::Inline | Class::Scan | Class::Patch | Class::Compact | Class::Library | Class::Empty => {
            node.meta.shape.clone()
        }
    }
}

fn worth_a_buffer(work: &RegionGraph<'_>, n: u32) -> bool {
    work.nodes[n as usize].class == Class::Inline && !work.nodes[n as usize].op.is_number()
}

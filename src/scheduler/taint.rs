//! How faults spread inside a region, and how a region is cut down to what does not depend on them.
//!
//! In: a region, the errors of its inputs, the fault words that are set. Out: an error for each node, or a
//! smaller region. Must hold: exactly the dependents are touched; the first operand's fault wins.

use crate::contract::region::{Region, RegionArg, RegionNode};
use crate::error::Error;
use crate::ids::ValueId;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// One entry for each node of a region.
pub(super) type Errors = SmallVec<[Option<Error>; 8]>;

/// The error of each node: of its first operand that has one, else its own.
pub(super) fn spread(region: &Region, inputs: &[Option<Error>], faults: &[(ValueId, Error)]) -> Errors {
    let mut errors = Errors::with_capacity(region.nodes.len());
    if faults.is_empty() && inputs.iter().all(|e| e.is_none()) {
        errors.resize(region.nodes.len(), None);
        return errors;
    }
    let mut own: FxHashMap<ValueId, &Error> = FxHashMap::default();
    for (value, error) in faults {
        own.entry(*value).or_insert(error);
    }
    for node in &region.nodes {
        let inherited = node.args.iter().find_map(|arg| match *arg {
            RegionArg::Node(position) => errors[position as usize].clone(),
            RegionArg::Input(position) => inputs[position as usize].clone(),
            RegionArg::Scalar(_) => None,
        });
        let error = inherited
            .or_else(|| own.get(&node.value).map(|error| (*error).clone().with_op(node.op.name()).with_site(node.at)));
        errors.push(error);
    }
    errors
}

/// Cuts a region down to the outputs and readbacks that have no error. Returns the inputs that it no longer reads.
pub(super) fn prune(region: &mut Region, inputs: &[Option<Error>], errors: &[Option<Error>]) -> Vec<ValueId> {
    let count = region.nodes.len();
    let mut needed = vec![false; count];
    let mut read = vec![false; region.inputs.len()];
    for position in (0..count).rev() {
        let node = &region.nodes[position];
        needed[position] |= node.output && errors[position].is_none();
        if !needed[position] {
            continue;
        }
        for arg in &node.args {
            match *arg {
                RegionArg::Node(p) => needed[p as usize] = true,
                RegionArg::Input(i) => read[i as usize] = true,
                RegionArg::Scalar(_) => {}
            }
        }
    }
    let failed: FxHashSet<ValueId> = region
        .nodes
        .iter()
        .zip(errors)
        .filter(|(_, e)| e.is_some())
        .map(|(n, _)| n.value)
        .chain(region.inputs.iter().zip(inputs).filter(|(_, e)| e.is_some()).map(|(i, _)| i.value))
        .collect();
    region.readbacks.retain(|v| !failed.contains(v));
    for (position, input) in region.inputs.iter().enumerate() {
        read[position] |= region.readbacks.contains(&input.value);
    }
    let node_places = renumber(&needed);
    let input_places = renumber(&read);
    let mut position = 0;
    region.nodes.retain(|_| {
        position += 1;
        needed[position - 1]
    });
    if position > region.nodes.len() {
        // The turns may differ now, so the region is not a loop any more.
        region.turns = 1;
    }
    for node in &mut region.nodes {
        remap(node, &node_places, &input_places);
    }
    let mut dropped = Vec::new();
    let mut position = 0;
    region.inputs.retain(|input| {
        position += 1;
        if !read[position - 1] {
            dropped.push(input.value);
        }
        read[position - 1]
    });
    dropped
}

fn renumber(kept: &[bool]) -> Vec<u32> {
    let mut next = 0;
    kept.iter()
        .map(|&keep| {
            let place = next;
            next += keep as u32;
            place
        })
        .collect()
}

fn remap(node: &mut RegionNode, nodes: &[u32], inputs: &[u32]) {
    for arg in &mut node.args {
        *arg = match *arg {
            RegionArg::Node(p) => RegionArg::Node(nodes[p as usize]),
            RegionArg::Input(i) => RegionArg::Input(inputs[i as usize]),
            scalar => scalar,
        };
    }
}

//! Checks the invariants between passes, in debug builds.
//!
//! In: the result of a pass. Out: nothing, or a panic that names the broken invariant, which fails the region.

use super::cut::Cuts;
use super::form::{Class, RegionGraph};
use super::grouping::Cluster;
use crate::contract::plan::{Plan, Program, Role, Step};
use crate::contract::region::RegionArg;

/// Arguments come before their node, a node's consumers are complete, and each output is named once.
pub fn work(work: &RegionGraph<'_>) {
    if !cfg!(debug_assertions) {
        return;
    }
    let mut uses = vec![0; work.nodes.len()];
    let mut seen = vec![false; work.region.nodes.len()];
    for (index, node) in work.nodes.iter().enumerate() {
        for &arg in &node.args {
            match arg {
                RegionArg::Node(n) => {
                    assert!((n as usize) < index, "node {index} has node {n} for an argument, which is behind it");
                    assert!(work.nodes[n as usize].consumers.contains(&(index as u32)), "node {n} lacks a consumer");
                    uses[n as usize] += 1;
                }
                RegionArg::Input(i) => assert!((i as usize) < work.region.inputs.len(), "there is no input {i}"),
                RegionArg::Scalar(_) => {}
            }
        }
        if let Some(output) = node.output {
            assert!(!std::mem::replace(&mut seen[output as usize], true), "output {output} has two buffers");
        }
    }
    for (node, uses) in work.nodes.iter().zip(uses) {
        assert_eq!(node.consumers.len(), uses, "a node has consumers that do not use it");
    }
    for (node, seen) in work.region.nodes.iter().zip(seen) {
        assert_eq!(node.output, seen, "{} has no buffer, or one that nobody wants", node.value);
    }
}

/// Only reductions have lines that a workgroup holds.
pub fn lines(work: &RegionGraph<'_>) {
    if !cfg!(debug_assertions) {
        return;
    }
    for (index, node) in work.nodes.iter().enumerate() {
        assert!(node.lines_held == 0 || node.class == Class::Reduce, "node {index} holds lines, and reduces none");
    }
}

/// Nodes that are written to memory in another round are not written yet: each round has fewer to share.
pub fn shared(written: &[bool], more: &[u32]) {
    if !cfg!(debug_assertions) {
        return;
    }
    for &n in more {
        assert!(!written[n as usize], "FUSE-1: node {n} is shared, and has a buffer already");
    }
}

/// Outputs, and nodes that no kernel can compute inline, are written to memory.
pub fn cuts(work: &RegionGraph<'_>, cuts: &Cuts) {
    if !cfg!(debug_assertions) {
        return;
    }
    for (index, node) in work.nodes.iter().enumerate() {
        let needs_buffer = node.output.is_some() || node.apart || node.class != Class::Inline;
        assert!(cuts.written[index] || !needs_buffer, "FUSE-1: node {index} needs a buffer");
        assert!(cuts.written[index] || cuts.reason[index].is_none(), "node {index} is not written, for a reason");
    }
}

/// FUSE-1: each written node is a root of one cluster; the other nodes that a cluster computes are not written to
/// memory; a cluster reads buffers only, and none that it makes itself.
pub fn clusters(work: &RegionGraph<'_>, written: &[bool], clusters: &[Cluster]) {
    if !cfg!(debug_assertions) {
        return;
    }
    let count = work.nodes.len();
    let mut made = vec![false; count];
    for cluster in clusters {
        for &(root, _) in &cluster.roots {
            assert!(!std::mem::replace(&mut made[root as usize], true), "FUSE-1: node {root} is made twice");
            assert!(cluster.members.contains(root), "FUSE-1: node {root} is no member of its cluster");
            assert!(!cluster.reads.contains(root), "FUSE-1: a cluster reads its root {root} from memory");
        }
        let is_root = |n: u32| cluster.roots.iter().any(|&(root, _)| root == n);
        for n in cluster.members.iter() {
            assert!(!written[n as usize] || is_root(n), "FUSE-1: node {n} is computed beside its buffer");
        }
        for read in cluster.reads.iter().filter(|&read| (read as usize) < count) {
            assert!(written[read as usize], "FUSE-1: node {read} is read, and has no buffer");
        }
    }
    for (index, node) in work.nodes.iter().enumerate() {
        let wants_cluster = written[index] && node.class != Class::Empty;
        assert_eq!(made[index], wants_cluster, "FUSE-1: node {index} has no cluster, or one for nothing");
    }
}

/// FUSE-1, and FUSE-2: a cluster's reads are made before it runs, and overwritten only after it.
pub fn ordered(work: &RegionGraph<'_>, written: &[bool], list: &[Cluster]) {
    if !cfg!(debug_assertions) {
        return;
    }
    clusters(work, written, list);
    let count = work.nodes.len();
    let mut made = vec![false; count];
    for cluster in list {
        for read in cluster.reads.iter().filter(|&read| (read as usize) < count) {
            let is_there = made[read as usize] || work.nodes[read as usize].class == Class::Empty;
            assert!(is_there, "FUSE-2: node {read} is read before it is made");
        }
        for &by in &cluster.before {
            assert!(!made[by as usize], "FUSE-7: node {by} overwrites what is read behind it");
        }
        cluster.roots.iter().for_each(|&(root, _)| made[root as usize] = true);
        let packs_reads = cluster.packed.iter().all(|read| cluster.reads.contains(read));
        assert!(packs_reads, "a cluster packs what it does not read");
    }
}

/// PLAN-1, and PLAN-3.
pub fn steps(plan: &Plan) {
    if !cfg!(debug_assertions) {
        return;
    }
    let mut written = vec![false; plan.buffers.len()];
    for (b, buffer) in plan.buffers.iter().enumerate() {
        written[b] = matches!(buffer.role, Role::Input(_))
            || buffer.zeroed
            || buffer.in_place_of.is_some()
            || buffer.elements == 0;
    }
    for step in &plan.steps {
        match step {
            Step::Copy { from, to } | Step::Pack { from, to, .. } => {
                assert!(written[*from as usize], "PLAN-1: a copy reads a buffer that nothing wrote");
                written[*to as usize] = true;
            }
            Step::Launch(launch) => {
                for used in &launch.uses {
                    let read_only = used.reads && !used.writes;
                    assert!(
                        !read_only || written[used.buffer as usize],
                        "PLAN-1: {} reads a buffer that nothing wrote",
                        launch.label
                    );
                }
                for used in launch.uses.iter().filter(|u| u.writes) {
                    written[used.buffer as usize] = true;
                }
                if let Program::Kernel(kernel, _) = &launch.program {
                    assert_eq!(kernel.operands.len(), launch.uses.len(), "PLAN-3");
                }
            }
        }
    }
}

/// Each step that uses a buffer lies within the buffer's life.
pub fn lives(plan: &Plan) {
    if !cfg!(debug_assertions) {
        return;
    }
    for (s, step) in plan.steps.iter().enumerate() {
        for buffer in step.buffers() {
            let (first, last) = plan.buffers[buffer as usize].live;
            assert!((first..=last).contains(&(s as u32)), "step {s} uses buffer {buffer} outside of its life");
        }
    }
}

/// The invariants of every kernel (`kernels::verify`).
pub fn kernels(plan: &Plan) {
    if !cfg!(debug_assertions) {
        return;
    }
    for launch in plan.launches() {
        if let Program::Kernel(kernel, _) = &launch.program
            && let Err(broken) = crate::kernels::verify::verify(kernel)
        {
            panic!("{broken}, in {}", launch.label);
        }
    }
}

//! Region → Plan: few kernels over virtual buffers, and the plan cache.
//!
//! In: regions from the scheduler. Out: plans to residency. Must never import `wgpu`, own memory or choose
//! a device.
//!
//! The passes, in order ([`passes`]), one file each:
//!
//! | pass | from → to |
//! |---|---|
//! | [`form`] | region → working nodes: synthetic nodes, transposes of matmul read as views |
//! | [`patches`] | → who overwrites a part of an array where it lies, and what is written out before that |
//! | [`lines`] | → of which reductions a workgroup holds whole lines |
//! | [`cut`] | working nodes → which are written out: outputs, anchors, operands of library kernels, budget cuts |
//! | [`cluster`] | → clusters: a kernel to be for each of these |
//! | [`merge`] | → fewer of them: merged where they share a space and data |
//! | [`share`] | → what several of them compute at too high a cost, for another round from `cut` on |
//! | [`order`] | → the same in an order in which they can run |
//! | [`pack`] | clusters that read more than the device binds → operands that are copied together first |
//! | [`assemble`] (with [`lower`], [`builder`], [`index`], [`fold`], [`library`]) | clusters → steps over virtual buffers, each with its kernel's IR, parameters and traffic |
//! | [`join`] | → the same, with copies around kernels that use all of what lies in segments |
//! | [`fits`] | → whether each launch finds bindings and memory; else all is done again, into smaller kernels |
//!
//! [`verify`] looks at what each pass made, in debug builds. Several passes use [`bits`] (sets of nodes), [`source`] (the
//! buffer of an operand), [`in_step`] (whether an argument is read at the element that is computed), [`cones`] (what a
//! kernel computes and reads), [`anchors`] (what has a buffer anyway), [`budget`] (how much a kernel may hold) and
//! [`grouping`] (clusters).
//!
//! A region that is a loop (`Region::turns`) has a plan of one kernel, which [`roll`] makes of one turn.
//!
//! `cut` to `pack` depend on structure, and on what the device binds, and are cached by the region's relative form
//! ([`key`], [`caches`]); lowering collects the parameters (sizes, scalars, seeds), and the kernel it yields is interned by
//! its structure. What comes again with the same sizes is not planned anew ([`repeat`]): only its scalars and seeds are
//! put in. [`explained`] remembers how long the regions took that a program asked about.
//!
//! Invariants:
//! - FUSE-1: a node is computed in every cluster that needs it, or written out by exactly one.
//! - FUSE-2: clusters form a DAG; steps are in an order of it (PLAN-1).
//! - FUSE-3: what is fused depends on the region and on its device's numbers alone: not on load, timing, the cache or
//!   the budget.
//! - FUSE-4: plans of one session leave in the order in which its regions came, and so do plans that share
//!   an input, whatever is compiling.
//! - FUSE-5: what one pass finds out about a node (class, numbers among its arguments, which runs are joined, who may
//!   fault) holds for all later ones.
//! - FUSE-6: a kernel holds no more ops than its budget, and lowering recurses no deeper.
//! - FUSE-7: who overwrites a part of an array where it lies runs after all others that read it, and itself reads of it
//!   no element that another element's store overwrites.
//! - FUSE-8: the plan of a region that comes again is the one that the passes would make.
//! - FUSE-9 (`roll`): what the kernel of a loop depends on, and what its results are.

pub mod anchors;
pub mod assemble;
pub mod bits;
pub mod bounded;
pub mod budget;
pub mod builder;
pub mod caches;
pub mod cluster;
pub mod cones;
pub mod cut;
pub mod dump;
pub mod explain;
mod explained;
pub mod fits;
pub mod fold;
pub mod form;
pub mod grouping;
pub mod in_step;
pub mod index;
pub mod join;
pub mod key;
pub mod library;
pub mod lines;
pub mod lower;
pub mod merge;
pub mod order;
pub mod pack;
pub mod passes;
pub mod patches;
mod paths;
pub mod repeat;
pub mod roll;
pub mod share;
pub mod source;
pub mod state;
#[cfg(test)]
mod tests;
pub mod verify;

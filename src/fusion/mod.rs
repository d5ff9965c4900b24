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
//! | [`patches`] | → which nodes overwrite a part of an array in place, and which nodes are written to memory before that |
//! | [`lines`] | → the reductions whose lines a workgroup can hold in registers |
//! | [`cut`] | working nodes → which of them are written to memory: outputs, anchors, operands of library kernels, nodes at which a budget cuts |
//! | [`cluster`] | → clusters: for each of these, a group of nodes that will be one kernel |
//! | [`merge`] | → fewer clusters: those that share a space and data are merged |
//! | [`share`] | → nodes that are too costly to compute in several clusters; they are written to memory in another round from `cut` on |
//! | [`order`] | → the clusters in an order in which they can run |
//! | [`pack`] | clusters that read more buffers than the device binds → operands that are copied into one buffer first |
//! | [`assemble`] (with [`lower`], [`builder`], [`index`], [`fold`], [`library`]) | clusters → steps over virtual buffers, each with its kernel's IR, parameters and traffic |
//! | [`join`] | → the same, with copies around kernels that use all of an array that is kept in segments |
//! | [`fits`] | → whether each launch has enough bindings and memory; if not, the region is planned again with smaller kernels |
//!
//! [`verify`] checks the result of each pass, in debug builds. Several passes use [`bits`] (sets of nodes), [`source`]
//! (the buffer of an operand), [`in_step`] (whether an argument is read at the element that is computed), [`cones`]
//! (the nodes that a kernel computes, and its reads), [`anchors`] (nodes that always get a buffer), [`budget`] (limits
//! on a kernel) and [`grouping`] (clusters).
//!
//! A region that is a loop (`Region::turns`), or a block (`Region::is_block`), is one kernel if it can be. Its list is
//! shorter: [`form`], the grouping with one cluster ([`single`]) of what [`roll`] or [`block`] names, [`assemble`],
//! [`join`] and [`fits`].
//!
//! `cut` to `pack` depend on structure, and on what the device binds, and are cached by the region's relative form
//! ([`key`], [`caches`]); lowering collects the parameters (sizes, scalars, seeds), and the kernel it yields is
//! interned by its structure. A region that comes again with the same sizes is not planned anew: the earlier plan gets
//! its scalars and seeds ([`repeat`]). [`explained`] remembers how long explained regions took.
//!
//! Invariants:
//! - FUSE-1: a node is computed in every cluster that needs it, or written out by exactly one.
//! - FUSE-2: clusters form a DAG; steps are in an order of it (PLAN-1).
//! - FUSE-3: what is fused depends on the region and on its device's numbers alone: not on load, timing, the cache or
//!   the budget.
//! - FUSE-4: plans of one session leave in the order in which its regions came, and so do plans that share
//!   an input, whatever is compiling.
//! - FUSE-5: a property of a node that one pass determines (its class, scalar arguments, joined runs of dimensions,
//!   whether it may fault) stays the same for all later passes.
//! - FUSE-6: a kernel holds no more ops than its budget, and lowering recurses no deeper.
//! - FUSE-7: a cluster that overwrites a part of an array in place runs after all other readers of the array. The
//!   computation of each element reads no element of the array that the store of another element overwrites.
//! - FUSE-8: the plan that is reused for a region equals the one that the passes would make.
//! - FUSE-9: the kernel of a loop depends on its body alone; on the host, its results are those of the turns computed
//!   one after the other, bit for bit (see `roll`).

pub mod anchors;
pub mod assemble;
pub mod bits;
pub mod block;
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
pub mod single;
pub mod source;
pub mod state;
#[cfg(test)]
mod tests;
pub mod verify;

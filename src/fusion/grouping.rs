//! The grouping of a region into clusters, which will be kernels: made by the passes from `cut` to `pack`, read by
//! lowering.
//!
//! Must hold: FUSE-1 and FUSE-2.

use super::bits::Bits;
use crate::graph::{DimSet, Shape};
use smallvec::SmallVec;

/// What a kernel reduces (folds) in its iteration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// No dimension.
    None,
    /// These dimensions.
    Reduce(DimSet),
    /// These dimensions, and the results are used again for the elements that were folded: a workgroup holds whole
    /// lines.
    Line(DimSet),
    /// A running fold along a dimension.
    Scan {
        /// The dimension.
        dim: u8,
        /// From the end.
        reverse: bool,
    },
    /// Not a generated kernel, or one that is never merged.
    Alone,
}

/// When a root of a cluster is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// For every element of the space.
    Element,
    /// After the fold.
    Reduced,
}

/// A group of nodes that will be one kernel.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The shape of the iteration space in the region for which the grouping was made. A cached grouping may serve
    /// other sizes, so lowering takes the shape from its own region.
    pub shape: Shape,
    /// What is folded.
    pub fold: Fold,
    /// Written nodes that it computes, ascending.
    pub roots: Vec<(u32, Phase)>,
    /// All nodes that it computes.
    pub members: Bits,
    /// Buffers that it reads: nodes, then inputs.
    pub reads: Bits,
    /// The reads that are copied into one buffer before the kernel runs, so that they take one binding (`pack`).
    pub packed: Bits,
    /// Nodes that overwrite a buffer that this cluster reads: the cluster runs before them (FUSE-7).
    pub before: SmallVec<[u32; 1]>,
    /// The budget that ended the kernel here, if one did.
    pub split: Option<&'static str>,
}

/// The decisions of the passes from `cut` to `pack`: a function of the region's structure and of the device's limit on
/// bindings.
#[derive(Clone, Debug)]
pub struct Grouping {
    /// Whether a node's value gets a buffer.
    pub written: Vec<bool>,
    /// The kernels, in order.
    pub clusters: Vec<Cluster>,
}

/// The shape that a reduction leaves.
pub fn reduced_shape(shape: &Shape, dims: DimSet) -> Shape {
    let kept: Vec<usize> =
        shape.dims().iter().enumerate().map(|(d, &n)| if dims >> d & 1 == 1 { 1 } else { n }).collect();
    Shape::new(&kept).expect("SHAPE-2: a reduced shape is no larger")
}

//! A region in kernels to be: what `cut` to `pack` make, and lowering takes.
//!
//! Must hold: FUSE-1 and FUSE-2.

use super::bits::Bits;
use crate::graph::{DimSet, Shape};
use smallvec::SmallVec;

/// What is folded in a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Nothing.
    None,
    /// These dimensions.
    Reduce(DimSet),
    /// These dimensions, and what is folded is used again for the elements of its line: a workgroup holds whole lines.
    Line(DimSet),
    /// A running fold along a dimension.
    Scan {
        /// The dimension.
        dim: u8,
        /// From the end.
        reverse: bool,
    },
    /// Not a generated kernel, or one that merges with nothing.
    Alone,
}

/// Where in its cluster a root becomes known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// For every element of the space.
    Element,
    /// After the fold.
    Reduced,
}

/// One kernel to be.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The iteration space's shape in the region that was grouped first; lowering asks its own region.
    pub shape: Shape,
    /// What is folded.
    pub fold: Fold,
    /// Written nodes that it computes, ascending.
    pub roots: Vec<(u32, Phase)>,
    /// All nodes that it computes.
    pub members: Bits,
    /// Buffers that it reads: nodes, then inputs.
    pub reads: Bits,
    /// Those of them that are copied together before it runs, so that one binding serves them (`pack`).
    pub packed: Bits,
    /// Nodes that overwrite what it reads: it runs before them (FUSE-7).
    pub before: SmallVec<[u32; 1]>,
    /// Why a budget ended it, if one did.
    pub split: Option<&'static str>,
}

/// What the passes from `cut` to `pack` decide: a function of the region's structure and of what its device binds.
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

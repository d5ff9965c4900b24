//! Which nodes of a block its one kernel writes.
//!
//! In: the working nodes of a region that is a block (REGION-5). Out: those with an output, from which `single` makes
//! the grouping. Must hold: FUSE-1; the plan depends on the region's structure and on the device's limits alone.

use super::form::RegionGraph;

/// The nodes that are written, ascending.
pub fn roots(work: &RegionGraph<'_>) -> Vec<u32> {
    (0..).zip(&work.nodes).filter(|(_, node)| node.output.is_some()).map(|(n, _)| n).collect()
}

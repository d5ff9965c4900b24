//! Names of the buffers that a kernel's operands use.

use crate::contract::region::RegionArg;
use crate::graph::DType;

/// A buffer that a kernel uses: a written node (by its working index) or an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A written working node.
    Node(u32),
    /// An input of the region.
    Input(u32),
    /// Scratch memory of this kernel for partial results, in 32-bit words.
    Scratch(u64),
    /// Buffers of this dtype that are copied together for this kernel.
    Pack(DType),
}

/// The buffer behind an argument.
pub fn source_of(arg: RegionArg) -> Source {
    match arg {
        RegionArg::Node(n) => Source::Node(n),
        RegionArg::Input(i) => Source::Input(i),
        RegionArg::Scalar(_) => unreachable!("FUSE-5: `form` made a node of it"),
    }
}

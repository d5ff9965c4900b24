//! The vocabulary of the task graph: element types, shapes, the op table and nodes.
//!
//! In: nothing. Out: types that every stage reads. Must never know what a kernel, a buffer or a device is.

pub mod costs;
mod op;
pub mod rules;
pub mod semantics;
mod shape;
pub mod table;

pub use crate::dtype::{DType, Element, Scalar};
pub use op::{Arg, DimSet, Dist, Meta, Nan, Node, Op, RandomKey, ReduceOp, ScanOp, SliceDim, View};
pub use shape::Shape;
pub use table::{ArgType, ElementOp, Signature};

//! The vocabulary of the task graph: element types, shapes, nodes; the op table (`table`) and the functions of its ops
//! (`semantics`); the facts of ops (`facts`); the layouts of factorisations (`linear`); the meaning of costs and
//! gradients (`costs`, `gradient`); rules of dtypes (`mixed`, `wide`, `refusals`); the words of scratch memory that ops
//! need (`scratch`); the search for repeated structure (`repeats`); the numbers among an op's attributes (`numbers`);
//! and structure as words (`words`).
//!
//! In: nothing. Out: types that every stage reads. Must hold: no file here imports a kernel, a device or an actor. An op
//! refers to memory in one way only: a source holds the program's elements.

pub mod costs;
mod facts;
pub mod gradient;
mod linear;
pub mod mixed;
pub mod numbers;
mod op;
#[cfg(test)]
mod ops_page;
pub mod refusals;
pub mod repeats;
pub mod rules;
pub mod semantics;
mod shape;
pub mod table;
pub mod wide;
pub mod words;

pub use crate::dtype::{DType, Element, Scalar};
pub use facts::{Check, LibraryOp, OpClass, Reads, Yields};
#[cfg(feature = "gpu")]
pub use linear::{ELIMINATED_ROWS_MAX, PANEL, REFLECTED_ROWS_MAX};
pub use linear::{LinearOp, Triangle};
pub use op::{
    Arg, DimSet, Dist, Fourier, Meta, Nan, Node, Op, Parts, RandomKey, ReduceOp, ScanOp, SliceDim, Spectrum, View,
};
pub use shape::Shape;
pub use table::{ArgType, ElementOp, Signature};

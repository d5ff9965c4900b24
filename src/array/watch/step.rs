//! A value that a watch follows, as its readers get it: [`Step`]. A watch holds steps in a shorter form (`packed`).

use super::custom::Custom;
use crate::array::handle::Array;
use crate::error::Site;
use crate::graph::{Meta, Op, Scalar};
use smallvec::SmallVec;
use std::sync::Arc;

/// A value that a watch follows.
pub(super) struct Step {
    /// How the value was computed.
    pub made: Made,
    /// Its arguments.
    pub args: SmallVec<[Argument; 2]>,
    /// Its dtype and shape.
    pub meta: Meta,
    /// The value's handle, if a rule reads it.
    pub value: Option<Array>,
    /// The place where it was recorded.
    pub at: Site,
    /// Whether it is no value that the watch follows, but one that can be recorded again without any array of the
    /// program: a random number, or what is computed from such and from numbers.
    pub is_aside: bool,
    /// Whether it was computed through a pinned handle: what is recorded again would not be pinned.
    pub is_pinned: bool,
}

/// How a followed value was computed.
pub(super) enum Made {
    /// It was not: the program watches it.
    Watched,
    /// By an op.
    Op(Op),
    /// By a function with a rule of its own.
    Custom(Arc<dyn Custom>),
}

/// `Made`, of a step that is about to be noted.
#[derive(Clone, Copy)]
pub(super) enum MadeBy<'a> {
    /// The program watches it.
    Watched,
    /// An op.
    Op(&'a Op),
    /// A function with a rule of its own.
    Custom(&'a Arc<dyn Custom>),
}

/// An argument of a step.
pub(super) struct Argument {
    /// What it is.
    pub source: Source,
    /// Its dtype and shape; `None` for a number.
    pub meta: Option<Meta>,
    /// Its handle, if the watch keeps it.
    pub array: Option<Array>,
}

/// What an argument of a step is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// A value that is followed.
    Step(u32),
    /// A value that is not followed and can be recorded again.
    Aside(u32),
    /// Another array, which a rule reads; the number is that of its handle in the log.
    Read(u32),
    /// Another array, which no rule reads.
    Unread,
    /// A number.
    Number(Scalar),
}

impl Source {
    /// The step of its value, followed or aside.
    pub fn step(self) -> Option<u32> {
        match self {
            Source::Step(step) | Source::Aside(step) => Some(step),
            Source::Read(_) | Source::Unread | Source::Number(_) => None,
        }
    }
}

impl Step {
    /// Whether an elementwise op made it.
    pub fn is_elementwise(&self) -> bool {
        matches!(&self.made, Made::Op(op) if op.is_elementwise())
    }
}

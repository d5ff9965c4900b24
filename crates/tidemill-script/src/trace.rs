//! Traces: the dlarrays that `dlfeval` follows, and what reads their elements meanwhile.
//!
//! In: the arrays that `dlfeval` is called with; arrays whose elements are about to be read on the host. Out: gradients; an
//! error where the host would compute with elements that have derivatives, since these would be lost.
//! Must hold: TRACE-1: a trace ends with the last holder of its `Arc`, which is the task of `dlfeval`: when the call returns,
//! fails or is interrupted. TRACE-2: no result that the host computed from the elements of a traced array counts as one
//! without derivatives, unless a function in [`READERS`] or the machine itself read them: in a condition, or to show them.

use super::error::{Flow, fail_id};
use super::value::Lazy;
use std::borrow::Cow;
use std::sync::{Arc, Weak};
use tidemill::{Array, Session, Watch};

/// Functions that read elements in order to show, compare or extract them.
const READERS: &[&str] = &[
    "any",
    "all",
    "assert",
    "char",
    "disp",
    "display",
    "error",
    "evalc",
    "extractdata",
    "fdisp",
    "find",
    "fprintf",
    "gather",
    "int2str",
    "isequal",
    "isequaln",
    "ismember",
    "issorted",
    "logical",
    "mat2str",
    "nnz",
    "num2str",
    "printf",
    "save",
    "sprintf",
    "wait",
    "warning",
];

/// One call of `dlfeval`.
#[derive(Debug)]
pub struct Trace(pub Watch<Vec<Array>>);

/// The calls of `dlfeval` that have not returned, and the present reader of elements.
#[derive(Debug, Default)]
pub struct Traces {
    open: Vec<Weak<Trace>>,
    /// The function or operator that runs, in the words of an error.
    asker: Cow<'static, str>,
    /// Whether it may read elements of traced arrays.
    may_read: bool,
}

impl Traces {
    /// Begins to follow what is computed from these arrays.
    ///
    /// # Errors
    /// The first array's fault.
    pub fn begin(&mut self, session: &Session, arrays: &[Array]) -> tidemill::Result<Arc<Trace>> {
        let trace = Arc::new(Trace(session.watch(arrays)?));
        self.open.retain(|open| open.strong_count() > 0);
        self.open.push(Arc::downgrade(&trace));
        Ok(trace)
    }

    /// Whether a call of `dlfeval` may be open.
    #[inline]
    pub fn are_any(&self) -> bool {
        !self.open.is_empty()
    }

    /// The open calls, the innermost one first.
    pub fn live(&self) -> impl Iterator<Item = Arc<Trace>> {
        self.open.iter().rev().filter_map(Weak::upgrade)
    }

    /// Whether an open call follows an array, so that it has derivatives.
    pub fn follow(&self, lazy: &Lazy) -> bool {
        lazy.pinned.is_dlarray && lazy.class.is_float() && self.live().any(|trace| trace.0.follows(&lazy.array))
    }

    /// Notes which function or operator runs from here on.
    pub fn runs(&mut self, asker: impl Into<Cow<'static, str>>) {
        self.asker = asker.into();
        self.may_read = READERS.contains(&&*self.asker);
    }

    /// Whether what runs may read elements of traced arrays.
    pub fn may_read(&self) -> bool {
        self.may_read
    }

    /// Sets whether elements may be read, and returns whether they could before.
    pub fn allow(&mut self, may_read: bool) -> bool {
        std::mem::replace(&mut self.may_read, may_read)
    }

    /// Returns an error if the elements of a traced array are about to be read by what computes with them (TRACE-2).
    ///
    /// # Errors
    /// Names the function.
    #[inline]
    pub fn check_read(&self, lazy: &Lazy) -> Flow<()> {
        if self.open.is_empty() || self.may_read || !self.follow(lazy) { Ok(()) } else { self.refuse() }
    }

    /// Returns the error of a function that has no derivative.
    ///
    /// # Errors
    /// Always.
    #[cold]
    pub fn refuse(&self) -> Flow<()> {
        let who = if self.asker.is_empty() { "this call" } else { &*self.asker };
        fail_id!(
            "Tidemill:no-derivative",
            "{who}: has no derivative for a traced dlarray; extractdata (x) gives its values as constants"
        )
    }
}

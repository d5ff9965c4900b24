//! Checks of data: values that are only good where a condition holds.
//!
//! Must hold: a check changes no value and awaits nothing; it is about the whole array, whatever is read of it later.

use super::handle::Array;
use super::record::{At, Input, derive, node};
use crate::error::{Error, ErrorKind};
use crate::graph::{DType, Op, rules};
use std::panic::Location;
use std::sync::Arc;

impl Array {
    /// This array, good only where all of `condition` (bool, of this shape or expanding to it) is true. If any element
    /// is false, the array carries a fault of `ErrorKind::Domain` that says `message`: gathers of it and of whatever is
    /// computed from it (and only those) fail, with this line as the place.
    ///
    /// Nothing waits for the answer: the kernel that computes the values checks the condition too. What nobody gathers
    /// is not checked. Reading a part of the array checks all of it.
    ///
    /// ```
    /// # use tidemill::{ErrorKind, Runtime};
    /// # let rt = Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("checks").open();
    /// let x = s.arange(-1.0f32, 1000.0, 1.0);
    /// let root = x.sqrt().ensure(&x.ge(0.0), "square root of a negative number");
    /// let error = futures::executor::block_on(root.sum(..).item::<f32>()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Domain);
    /// ```
    #[track_caller]
    pub fn ensure(&self, condition: &Array, message: impl Into<Arc<str>>) -> Array {
        ensure(self, "ensure", condition, message.into(), Location::caller())
    }

    /// As [`Array::ensure`], on behalf of an op that the fault names:
    /// `x.sqrt().ensure_for("sqrt", &x.ge(0.0), "a negative number")`.
    #[track_caller]
    pub fn ensure_for(&self, op: &'static str, condition: &Array, message: impl Into<Arc<str>>) -> Array {
        ensure(self, op, condition, message.into(), Location::caller())
    }
}

pub(super) fn ensure(array: &Array, op: &'static str, condition: &Array, message: Arc<str>, at: At) -> Array {
    derive(&[array, condition], op, at, |home, metas| {
        if metas[1].dtype != DType::Bool {
            let error = format!("a condition is bool, and this is {}", metas[1].dtype);
            return Err(Error::new(ErrorKind::DType, error));
        }
        rules::expands(&metas[1].shape, &metas[0].shape)?;
        if metas[0].elements() == 0 {
            return Ok(array.clone());
        }
        if let Some(holds) = known(condition) {
            return if holds { Ok(array.clone()) } else { Err(Error::new(ErrorKind::Domain, &*message)) };
        }
        let inputs = [Input::Array(array), Input::Array(condition)];
        Ok(node(home, Op::Ensure { op, message }, &inputs, metas[0].clone(), at))
    })
}

/// Whether a condition holds everywhere, where that is known already.
fn known(condition: &Array) -> Option<bool> {
    let data = condition.0.host.as_deref()?;
    Some((0..data.len()).all(|i| data.scalar(i).bits() != 0))
}

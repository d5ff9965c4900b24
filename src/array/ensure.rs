//! Checks of data: values that are valid only if a condition holds.
//!
//! Must hold: a check changes no value and awaits nothing. It concerns the whole array, even if only a part is read.

use super::handle::Array;
use super::record::{At, Input, derive, node};
use crate::error::{Error, ErrorKind};
use crate::graph::{DType, Op, rules};
use std::panic::Location;
use std::sync::Arc;

impl Array {
    /// This array, which is valid only if all elements of `condition` (bool, of this shape or one that expands to it)
    /// are true. If any element is false, the array carries a fault of `ErrorKind::Domain` with this message. Then
    /// gathers of this array and of values that are computed from it, and only these, fail. The error names this line
    /// as its place.
    ///
    /// No call waits for the result of the check: the kernel that computes the values also checks the condition. An
    /// array that is never gathered is not checked. Reading a part of the array checks all of it.
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

    /// As [`Array::ensure`], but the fault names another op:
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

/// Whether a condition holds everywhere; `None` if that is not known yet.
fn known(condition: &Array) -> Option<bool> {
    let data = condition.0.host.as_deref()?;
    Some((0..data.len()).all(|i| data.scalar(i).bits() != 0))
}

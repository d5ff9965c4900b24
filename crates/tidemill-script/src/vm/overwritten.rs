//! Remembers variables that the body of a `try` overwrote before the faults of the recorded arrays were known.
//!
//! In: stores of arrays that may be at fault, and errors that a `try` takes. Out: variables.
//!
//! Must hold:
//! - TRY-1: when a `try` has caught an error, a variable that holds an array at fault gets back its value from before
//!   the `try`, if the body assigned it such an array once. Octave leaves the same value. Other variables keep the
//!   array, and its fault becomes an error when it is read. So do variables of other frames and of evaluated texts, and
//!   arrays and containers of more than [`KEPT_MAX`] elements that were stored into, since giving those back would need
//!   a copy.

use super::Interp;
use super::frame::Activation;
use crate::compile::code::Slot;
use crate::error::{Need, Stop};
use crate::value::{Lazy, Value};
use futures::future::join_all;
use std::sync::Arc;

/// The most elements of a value that is copied so that it can be given back.
const KEPT_MAX: usize = 4096;

/// A variable that was given an array which may be at fault, and its value before. `before` is `None` if it cannot be
/// given back, for instance since the variable was given another such array later.
pub(super) struct Overwritten {
    frame: usize,
    slot: Slot,
    before: Option<Option<Value>>,
}

impl Interp {
    /// Whether a variable of this frame has to be remembered before it is given this value.
    pub(super) fn may_spoil(&self, value: &Value) -> bool {
        let Some(handler) = self.handlers.last() else { return false };
        handler.frame + 1 == self.frames.len()
            && match value {
                Value::Lazy(lazy) => lazy.is_suspect(),
                Value::Cell(_) | Value::Struct(_) => self.suspects.are_any(handler.since),
                _ => false,
            }
    }

    /// Remembers a variable that is about to be given this value.
    pub(super) fn overwrites(&mut self, slot: Slot, value: &Value) {
        if !self.handlers.is_empty() && self.may_spoil(value) {
            let before = self.slot_value(slot);
            self.overwrote(slot, Some(before));
        }
    }

    /// Returns a variable's value before something is stored into a part of it, if the value can be given back.
    pub(super) fn before_part(&self, slot: Slot) -> Option<Option<Value>> {
        Some(self.slot_value(slot)).filter(|before| before.as_ref().is_none_or(is_small))
    }

    /// Remembers that a variable was given a value that may be at fault. `before` is set if it can be given back.
    pub(super) fn overwrote(&mut self, slot: Slot, before: Option<Option<Value>>) {
        let Some(handler) = self.handlers.last() else { return };
        let (frame, from) = (handler.frame, handler.heights.overwritten.min(self.overwritten.len()));
        match self.overwritten[from..].iter_mut().find(|other| other.frame == frame && other.slot == slot) {
            Some(known) => known.before = None,
            None => self.overwritten.push(Overwritten { frame, slot, before }),
        }
    }

    /// An error was caught: the variables that its `try` overwrote will be checked before the next instruction.
    pub(super) fn doubt(&mut self, from: usize) {
        let own = self.overwritten.drain(from.min(self.overwritten.len())..);
        self.doubtful.extend(own.filter(|overwritten| overwritten.before.is_some()));
    }

    /// Takes the variables to check.
    pub(super) fn take_doubtful(&mut self) -> Vec<Overwritten> {
        std::mem::take(&mut self.doubtful)
    }

    /// Gives variables their previous values back, if their present ones are at fault.
    pub(super) async fn restore_spoiled(&mut self, doubtful: Vec<Overwritten>) {
        for Overwritten { frame, slot, before } in doubtful {
            let (Some(Activation::Code(of)), Some(before)) = (self.frames.get(frame), before) else { continue };
            let at = of.variables + slot as usize;
            let Some(value) = self.value_at(at) else { continue };
            let evals = join_all(self.unchecked(&value).iter().map(|lazy| lazy.array.eval())).await;
            if evals.iter().any(Result::is_err) {
                self.put_at(at, before);
            }
        }
    }

    /// Returns the arrays in a value whose faults are not known yet.
    fn unchecked(&self, value: &Value) -> Vec<Arc<Lazy>> {
        match value {
            Value::Lazy(lazy) if lazy.host.get().is_none() => vec![lazy.clone()],
            value => match self.env.host_all([value]) {
                Err(Stop::Need(Need::Host(arrays))) => arrays,
                _ => Vec::new(),
            },
        }
    }
}

/// Whether a copy of the value costs little more than a statement.
fn is_small(value: &Value) -> bool {
    match value {
        Value::Lazy(_) => true,
        Value::Struct(s) => {
            s.len() == 1 && s.fields.values().all(|values| values.iter().all(|value| value.len() <= KEPT_MAX))
        }
        value => value.len() <= KEPT_MAX,
    }
}

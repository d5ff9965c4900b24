//! What the body of a `try` gave variables before the faults of what it recorded were known.
//!
//! In: stores of arrays that may be at fault, and errors that a `try` takes. Out: variables. Must hold: where a `try`
//! has caught an error, a variable that its body gave an array at fault has the value again that it had before, as if
//! the statement had failed where it stands. Only the frame of the `try` is looked at: others have ended by then.

use super::Interp;
use super::frame::Activation;
use crate::script::compile::code::Slot;
use crate::script::error::{Need, Stop};
use crate::script::value::Value;
use futures::future::join_all;

/// A variable that was given an array which may be at fault, with what it had before.
pub(super) struct Overwritten {
    frame: usize,
    slot: Slot,
    before: Option<Value>,
}

impl Interp {
    /// Whether a variable of this frame that is given this value has to be remembered as it was.
    pub(super) fn may_spoil(&self, value: &Value) -> bool {
        let Some(handler) = self.handlers.last() else { return false };
        handler.frame + 1 == self.frames.len()
            && match value {
                Value::Lazy(lazy) => lazy.is_suspect(),
                Value::Cell(_) | Value::Struct(_) => self.suspects.are_any(handler.since),
                _ => false,
            }
    }

    /// Remembers what a variable had before, unless the `try` has overwritten it already.
    pub(super) fn remember(&mut self, slot: Slot, before: Option<Value>) {
        let Some(handler) = self.handlers.last() else { return };
        let (frame, own) = (handler.frame, handler.heights.overwritten);
        if !self.overwritten[own..].iter().any(|other| other.frame == frame && other.slot == slot) {
            self.overwritten.push(Overwritten { frame, slot, before });
        }
    }

    /// An error was caught: what its `try` overwrote is looked at before the next instruction.
    pub(super) fn doubt(&mut self, from: usize) {
        let own = self.overwritten.drain(from.min(self.overwritten.len())..);
        self.doubtful.extend(own);
    }

    /// Variables to look at, with the arrays in them that may be at fault.
    pub(super) fn take_doubtful(&mut self) -> Vec<Overwritten> {
        std::mem::take(&mut self.doubtful)
    }

    /// Gives variables back what they had, where what they have now is at fault.
    pub(super) async fn restore_spoiled(&mut self, doubtful: Vec<Overwritten>) {
        for Overwritten { frame, slot, before } in doubtful {
            let Some(Activation::Code(of)) = self.frames.get(frame) else { continue };
            let at = of.variables + slot as usize;
            let Some(value) = self.value_at(at) else { continue };
            let is_spoiled = match self.env.host_all([&value]) {
                Err(Stop::Need(Need::Host(arrays))) => {
                    let evals = join_all(arrays.iter().map(|lazy| lazy.array.eval())).await;
                    evals.iter().any(Result::is_err)
                }
                Err(Stop::Error(_)) => true,
                _ => false,
            };
            if is_spoiled {
                self.put_at(at, before);
            }
        }
    }
}

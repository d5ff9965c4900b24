//! Keeps the arrays that were recorded inside of a `try` and may turn out to be at fault, and finds the place where a
//! script recorded an array that failed.
//!
//! Must hold: the end of a `try` body awaits the checks of all arrays recorded in it and of no others, including arrays
//! that no variable holds any more. An array shows the faults of the arrays that it was computed from, so only the last
//! of a chain is kept and awaited, and the others fuse. Few arrays are kept that nothing else holds: when there are
//! [`DROPPED_MAX`] of them, or they take [`DROPPED_BYTES_MAX`], they are awaited between two instructions.

use super::Interp;
use super::frame::Activation;
use crate::compile::Code;
use crate::error::{Origin, ScriptError};
use crate::source::Place;
use crate::value::lazy::Provenance;
use crate::value::{Lazy, Value};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many suspects there may be before the list is swept.
const SUSPECTS_MIN: usize = 64;
/// The most suspects held by no variable that may await the end of their `try`.
const DROPPED_MAX: usize = 64;
/// The most bytes that such suspects may take.
const DROPPED_BYTES_MAX: usize = 256 << 20;
/// How many evaluated texts are remembered, to find the places of arrays that they recorded.
const TEXTS_MAX: usize = 256;

/// Arrays that may carry a fault, in the order in which they were made.
#[derive(Default)]
pub(super) struct Suspects {
    made: u64,
    each: Vec<(u64, Arc<Lazy>)>,
    /// The length of the list at which it is swept next.
    sweep_at: usize,
    /// The bytes of the suspects that were added since the last sweep.
    bytes_since: usize,
    /// The number of the first suspect that nothing else holds, if such suspects are to be awaited.
    due: Option<u64>,
}

impl Suspects {
    /// The number of the next suspect.
    pub fn next(&self) -> u64 {
        self.made
    }

    /// Adds a suspect. `since` is the number of the first that the innermost `try` made.
    fn add(&mut self, lazy: &Arc<Lazy>, since: u64) {
        self.each.push((self.made, lazy.clone()));
        self.made += 1;
        self.bytes_since += bytes(lazy);
        if self.each.len() >= self.sweep_at.max(SUSPECTS_MIN) || self.bytes_since >= DROPPED_BYTES_MAX {
            self.sweep(since);
        }
    }

    /// Removes arrays that are no suspects any more, and checks whether too many of a `try` are held only here.
    fn sweep(&mut self, since: u64) {
        self.each.retain(|(_, lazy)| lazy.is_suspect());
        let (mut count, mut size, mut first) = (0, 0, None);
        for (number, lazy) in self.each.iter().filter(|(number, lazy)| *number >= since && is_dropped(lazy)) {
            (count, size) = (count + 1, size + bytes(lazy));
            first.get_or_insert(*number);
        }
        self.due = first.filter(|_| count >= DROPPED_MAX || size >= DROPPED_BYTES_MAX);
        // The list may grow by as many as others hold, or by as many as may be held only here.
        self.sweep_at = self.each.len() + DROPPED_MAX.max(self.each.len() - count);
        self.bytes_since = 0;
    }

    /// Whether suspects from `number` on that nothing else holds are to be awaited. Those of an outer `try` wait until
    /// it is the innermost.
    pub fn is_due(&self, number: u64) -> bool {
        self.due.is_some_and(|first| first >= number)
    }

    /// Takes out the suspects that nothing else holds, if they are to be awaited.
    pub fn take_due(&mut self, number: u64) -> Vec<Arc<Lazy>> {
        if !self.is_due(number) {
            return Vec::new();
        }
        self.due = None;
        let dropped = self.each.extract_if(.., |(made, lazy)| *made >= number && is_dropped(lazy));
        let dropped = dropped.map(|(_, lazy)| lazy).filter(|lazy| lazy.is_suspect()).collect();
        self.sweep_at = self.each.len() + SUSPECTS_MIN;
        dropped
    }

    /// Returns the suspects from `number` on.
    pub fn since(&self, number: u64) -> Vec<Arc<Lazy>> {
        let recent = self.each.iter().filter(|(made, lazy)| *made >= number && lazy.is_suspect());
        recent.map(|(_, lazy)| lazy.clone()).collect()
    }

    /// Whether there may be suspects from `number` on.
    pub fn are_any(&self, number: u64) -> bool {
        self.each.last().is_some_and(|(made, _)| *made >= number)
    }

    /// Forgets the suspects from `number` on.
    pub fn forget(&mut self, number: u64) {
        self.each.retain(|(made, _)| *made < number);
        self.due = self.due.filter(|first| *first < number);
        self.sweep_at = self.sweep_at.min(self.each.len() + SUSPECTS_MIN);
        self.bytes_since = 0;
    }
}

impl Interp {
    /// Notes an instruction's result: the size of the arrays behind it and, inside of a `try`, that it may be a
    /// suspect.
    pub(super) fn note_result<'v>(&mut self, operands: impl IntoIterator<Item = &'v Value>, result: &Value) {
        let Value::Lazy(made) = result else { return };
        let near = self.env.options.near_elements_max;
        if self.handlers.is_empty() {
            made.set_provenance(Provenance::of(operands, near));
            return;
        }
        let operands: SmallVec<[&Value; 4]> = operands.into_iter().collect();
        made.set_provenance(Provenance::of(operands.iter().copied(), near));
        if note(operands, made) {
            self.suspects.add(made, self.handlers.last().map_or(0, |handler| handler.since));
        }
    }

    /// Does the same for operands on the stack from `at` on.
    pub(super) fn note_result_of(&mut self, at: usize, result: &Value) {
        let Value::Lazy(made) = result else { return };
        made.set_provenance(Provenance::of(&self.stack[at..], self.env.options.near_elements_max));
        if !self.handlers.is_empty() && note(&self.stack[at..], made) {
            self.suspects.add(made, self.handlers.last().map_or(0, |handler| handler.since));
        }
    }

    /// Whether suspects that no variable holds are to be awaited between two instructions.
    pub(super) fn has_due_suspects(&self) -> bool {
        let Some(handler) = self.handlers.last().filter(|handler| self.suspects.is_due(handler.since)) else {
            return false;
        };
        // A task that catches errors within its calls would catch an error that belongs to the `try` around it.
        let catches = |activation: &Activation| matches!(activation, Activation::Task(task) if task.task.catches());
        !self.frames[handler.frame..].iter().any(catches)
    }

    /// Takes those suspects. Awaiting them shows their faults.
    pub(super) fn take_due_suspects(&mut self) -> Vec<Arc<Lazy>> {
        let since = self.handlers.last().filter(|_| self.has_due_suspects()).map(|handler| handler.since);
        since.map_or(Vec::new(), |since| self.suspects.take_due(since))
    }

    /// Returns the place that a session's mark stands for.
    fn place_of_mark(&self, mark: u64) -> Option<Place> {
        let frames = self.frames.iter().filter_map(|a| match a {
            Activation::Code(frame) => Some(&frame.code),
            Activation::Task(_) => None,
        });
        let functions = self.functions.values().chain(self.locals.values().flat_map(|file| file.values()));
        place_among(frames.chain(functions).chain(&self.texts), mark)
    }

    /// Remembers an evaluated text.
    pub(super) fn remember_text(&mut self, code: Arc<Code>) {
        if self.texts.len() == TEXTS_MAX {
            self.texts.pop_front();
        }
        self.texts.push_back(code);
    }

    /// Makes an error of an array that failed name the place where it was recorded, beside the place where it was read.
    pub(super) fn blame_record(&self, error: &mut ScriptError) {
        let Some(Origin::Recorded(mark)) = error.origin.as_deref() else { return };
        let place = self.place_of_mark(*mark);
        error.origin = None;
        let Some(place) = place else { return };
        let read = error.place.take().or_else(|| self.here());
        let is_same = |read: &Place| Arc::ptr_eq(&read.source, &place.source) && read.span == place.span;
        if let Some(read) = read.filter(|read| !is_same(read)) {
            let at = place.source.position(place.span.start);
            let other = if Arc::ptr_eq(&read.source, &place.source) {
                String::new()
            } else {
                format!(" of {}", place.source.name)
            };
            error.message.push_str(&format!(" (recorded at line {}, column {}{other})", at.line, at.column));
            error.origin = Some(Box::new(Origin::Read(read)));
        }
        error.place = Some(place);
    }
}

/// Whether only the list of suspects holds the array.
fn is_dropped(lazy: &Arc<Lazy>) -> bool {
    Arc::strong_count(lazy) == 1
}

/// The bytes of its elements.
fn bytes(lazy: &Lazy) -> usize {
    lazy.dims.elements().saturating_mul(lazy.class.bytes())
}

/// Marks the operands' faults as passed on to `made`. Returns whether `made` may be at fault.
fn note<'v>(operands: impl IntoIterator<Item = &'v Value>, made: &Arc<Lazy>) -> bool {
    if !made.is_suspect() {
        return false;
    }
    for operand in operands {
        if let Value::Lazy(operand) = operand {
            if Arc::ptr_eq(operand, made) {
                return false;
            }
            operand.set_passed_on();
        }
    }
    true
}

/// Returns the place in one of these codes that a session's mark stands for.
pub fn place_among<'c>(codes: impl IntoIterator<Item = &'c Arc<Code>>, mark: u64) -> Option<Place> {
    let (id, pc) = ((mark >> 32) as u32, mark as u32 as usize);
    let code = codes.into_iter().find_map(|code| find(code, id))?;
    Some(Place { source: code.source.clone(), span: *code.spans.get(pc)? })
}

/// Finds the code of this number: `code` itself, or an anonymous or nested function in it.
fn find(code: &Arc<Code>, id: u32) -> Option<&Arc<Code>> {
    if code.id == id {
        return Some(code);
    }
    let closures = code.closures.iter().map(|closure| &closure.code);
    closures.chain(code.nested()).find_map(|inner| find(inner, id))
}

/// Evaluated texts, the newest last.
pub(super) type Texts = VecDeque<Arc<Code>>;

//! The record that a watch keeps while the session records: each op that reads a watched value, or a value computed
//! from one.
//!
//! In: ops, as they are recorded (casts and rewritten forms included), from any thread. Out: their [`Step`]s, in order.
//! Invariants:
//! - WATCH-1: recording a value that no watch follows costs one read of a counter.
//! - WATCH-2: a step names its arguments by earlier steps. A watch keeps only the values that rules read: the handle of
//!   each value that `Op::derivative_reads` names, and of values that are known on the host. In a loop of
//!   elementwise ops, it also keeps the handles of their arguments, from which a turn can be recorded again (`chunks`).
//! - WATCH-3: a watch holds no lock while it records or drops arrays.
//! - WATCH-4: while a loop goes on, a step takes at most 32 bytes of host memory, apart from what the handle keeps
//!   alive that it may have. What a log has once takes more: the statements of the program and the places in it.

use super::custom::Custom;
use super::index::{Index, Key, key};
use super::packed::{Given, Givens, Packed, Pending};
use super::pause::{is_paused, next_number};
use super::statements::Template;
use super::step::{MadeBy, Source, Step};
use super::turns::{self, Turns};
use crate::array::handle::Array;
use crate::array::record::{At, Input};
use crate::array::tape::Home;
use crate::error::{Error, ErrorKind, Result, Site};
use crate::graph::gradient::RuleReads;
use crate::graph::{DType, Meta, Op};
use crate::ids::SessionId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Steps that one place may have before it counts as a part of a loop: fewer are calls of one function.
const CALLS_MAX: u32 = 4;

/// The watches of a session.
#[derive(Default)]
pub(crate) struct Watches {
    count: AtomicUsize,
    logs: Mutex<Vec<Weak<Log>>>,
}

/// The record of one watch.
pub(super) struct Log {
    /// Its number: watches are numbered in the order in which they begin.
    pub id: u64,
    noted: Mutex<Noted>,
}

struct Noted {
    steps: Packed,
    /// The step of each value that is followed, or aside.
    of_value: Index,
    /// The places of elementwise ops, each with its op, and how many steps each has.
    places: FxHashMap<(usize, u64, &'static str), u32>,
    /// Steps of elementwise ops at places that had more than `CALLS_MAX` before: the turns of loops but the first ones.
    repeated: usize,
}

/// Whether derivatives pass to an array: only floats have any.
pub(super) fn has_derivatives(array: &Array) -> bool {
    array.dtype().is_ok_and(DType::is_float)
}

/// The steps of an op that is about to be recorded, one for each watch that follows an argument of it. It keeps the
/// arguments that rules read.
pub(crate) struct Note(SmallVec<[(Arc<Log>, Pending, bool); 1]>);

impl Watches {
    /// Whether the session has watches.
    #[inline]
    pub fn are_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Begins a watch of values, of what `session` records from them.
    pub(super) fn begin(&self, session: SessionId, arrays: &[Array], at: Site) -> Result<Arc<Log>> {
        let mut noted = Noted::new(session);
        for array in arrays {
            let meta = array.meta()?;
            if !meta.dtype.is_float() {
                let message = format!("only floats have derivatives, and this array is {}", meta.dtype);
                return Err(Error::new(ErrorKind::DType, message));
            }
            let Some(key) = key(array) else { continue };
            let step = noted.steps.pending(MadeBy::Watched, at, meta, Givens::default(), (false, false));
            noted.add(key, step, Some(array));
        }
        let log = Arc::new(Log { id: next_number(), noted: Mutex::new(noted) });
        self.logs.lock().push(Arc::downgrade(&log));
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(log)
    }

    /// Ends a watch.
    pub(super) fn end(&self, log: &Arc<Log>) {
        self.logs.lock().retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(log)));
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// The watches that note what this thread records.
    fn listening(&self) -> SmallVec<[Arc<Log>; 2]> {
        let logs = self.logs.lock();
        logs.iter().filter_map(Weak::upgrade).filter(|log| !is_paused(log.id)).collect()
    }

    /// The steps that watches note of an op that is about to be recorded; `None` if none follows an argument of it.
    #[cold]
    pub fn note(&self, op: &Op, inputs: &[Input<'_>], meta: &Meta, at: Site) -> Option<Note> {
        let mut steps = SmallVec::new();
        for log in self.listening() {
            let noted = log.noted.lock().note(op, inputs, meta, at);
            if let Some((step, keeps_value)) = noted {
                steps.push((log, step, keeps_value));
            }
        }
        (!steps.is_empty()).then_some(Note(steps))
    }

    /// Notes a function with a rule of its own, once its value is known.
    pub(super) fn note_custom(&self, custom: &Arc<dyn Custom>, args: &[Array], value: &Array, at: Site) -> Result<()> {
        let meta = value.meta()?;
        let Some(key) = key(value) else { return Ok(()) };
        for log in self.listening() {
            log.noted.lock().note_custom(custom, args, (key, value), meta, at);
        }
        Ok(())
    }
}

impl Note {
    /// Completes the steps once the op was recorded, with its value.
    pub fn done(self, value: &Array) {
        let Some(key) = key(value).filter(|_| value.error().is_none()) else { return };
        let is_known = value.0.host.is_some();
        for (log, step, keeps_value) in self.0 {
            if step.is_aside && is_known {
                continue;
            }
            log.noted.lock().add(key, step, (keeps_value || is_known).then_some(value));
        }
    }
}

impl Noted {
    fn new(session: SessionId) -> Noted {
        Noted { steps: Packed::default(), of_value: Index::new(session), places: FxHashMap::default(), repeated: 0 }
    }

    /// The step of an array that is followed.
    fn step_of(&self, array: &Array) -> Option<u32> {
        self.entry_of(array).filter(|&step| !self.is_aside(step))
    }

    /// The step of an array that is followed, or aside.
    fn entry_of(&self, array: &Array) -> Option<u32> {
        self.of_value.get(key(array)?)
    }

    fn is_aside(&self, step: u32) -> bool {
        self.steps.statement(step).is_aside
    }

    /// Adds a step whose value has a key. It keeps the value's handle, if that is given.
    fn add(&mut self, key: Key, step: Pending, value: Option<&Array>) {
        let is_aside = step.is_aside;
        let number = self.steps.add(step);
        if let Some(value) = value {
            self.steps.keep(number, value);
        }
        // A value that is watched twice has the same step both times. A constant that stands for the result of an op
        // (`noted_as`) was noted as an aside when it was recorded; the op's step takes that place.
        let known = self.of_value.get(key);
        if known.is_none_or(|known| !is_aside && self.is_aside(known)) {
            self.of_value.insert(key, number);
        }
    }

    /// The step of an op, without its value, and whether a rule reads that.
    fn note(&mut self, op: &Op, inputs: &[Input<'_>], meta: &Meta, at: Site) -> Option<(Pending, bool)> {
        assert!(inputs.len() <= RuleReads::ARGS_MAX, "GRAD-1: an op has at most {} arguments", RuleReads::ARGS_MAX);
        // The step of each argument that is followed, or aside, and whether it is that.
        let entries = inputs.iter().map(|input| {
            let entry = input.array().and_then(|array| self.entry_of(array));
            entry.map(|step| (step, self.is_aside(step)))
        });
        let entries: SmallVec<[Option<(u32, bool)>; 4]> = entries.collect();
        let followed = entries.iter().enumerate().filter(|(_, entry)| matches!(entry, Some((_, false))));
        let followed = followed.fold(0u8, |set, (n, _)| set | 1 << n);
        let is_elementwise = op.is_elementwise();
        if followed == 0 {
            return is_elementwise.then(|| self.note_aside(op, inputs, &entries, meta, at)).flatten();
        }
        let is_in_loop = is_elementwise && self.is_in_loop(op, at);
        let is_pinned = inputs.iter().any(|input| input.array().is_some_and(|array| array.1.is_some()));
        let reads = op.derivative_reads(followed);
        let mut given = Givens::default();
        for (slot, (input, entry)) in inputs.iter().zip(entries).enumerate() {
            match (input, entry) {
                (Input::Number(number), _) => given.push_number(*number),
                (Input::Array(array) | Input::Last(array), Some((step, is_aside))) => {
                    let is_repeated = is_in_loop && !is_aside && self.steps.statement(step).is_elementwise;
                    if reads.arg(slot) || is_repeated {
                        self.steps.keep(step, array);
                    }
                    given.push(if is_aside { Given::Aside(step) } else { Given::Step(step) });
                }
                (Input::Array(array) | Input::Last(array), None) => match &array.0.meta {
                    Ok(own) if !reads.arg(slot) && !is_in_loop => given.push_unread(own),
                    _ => given.push(Given::Read((*array).clone())),
                },
            }
        }
        Some((self.steps.pending(MadeBy::Op(op), at, meta, given, (false, is_pinned)), reads.value))
    }

    /// Counts a step of an elementwise op, and says whether it belongs to a turn of a loop.
    fn is_in_loop(&mut self, op: &Op, at: Site) -> bool {
        let earlier = self.places.entry((at.location as *const _ as usize, at.mark, op.name())).or_insert(0);
        *earlier = earlier.saturating_add(1);
        let is_in_loop = *earlier > CALLS_MAX;
        self.repeated += usize::from(is_in_loop);
        is_in_loop
    }

    /// The step of an elementwise op that reads no followed value, if it reads nothing but numbers, known arrays and asides.
    fn note_aside(
        &mut self,
        op: &Op,
        inputs: &[Input<'_>],
        entries: &[Option<(u32, bool)>],
        meta: &Meta,
        at: Site,
    ) -> Option<(Pending, bool)> {
        let mut given = Givens::default();
        for (input, entry) in inputs.iter().zip(entries) {
            match (input, entry) {
                (Input::Number(number), _) => given.push_number(*number),
                // What is pinned is no aside: it would be recorded again without the pin.
                (Input::Array(array) | Input::Last(array), _) if array.1.is_some() => return None,
                (_, Some((aside, _))) => given.push(Given::Aside(*aside)),
                (Input::Array(array) | Input::Last(array), None) => {
                    array.0.host.as_ref()?;
                    given.push(Given::Read((*array).clone()));
                }
            }
        }
        Some((self.steps.pending(MadeBy::Op(op), at, meta, given, (true, false)), false))
    }

    /// Notes a function with a rule of its own, if an argument of it is followed. It keeps all arguments and the value.
    fn note_custom(
        &mut self,
        custom: &Arc<dyn Custom>,
        args: &[Array],
        (key, value): (Key, &Array),
        meta: &Meta,
        at: Site,
    ) {
        let mut given = Givens::default();
        for array in args {
            given.args.push(match self.step_of(array).filter(|_| has_derivatives(array)) {
                Some(step) => Given::Step(step),
                None => Given::Read(array.clone()),
            });
        }
        let mut followed = args.iter().zip(&given.args).filter_map(|(array, given)| match given {
            Given::Step(step) => Some((*step, array)),
            Given::Aside(_) | Given::Read(_) => None,
        });
        let Some((first, array)) = followed.next() else { return };
        self.steps.keep(first, array);
        followed.for_each(|(step, array)| self.steps.keep(step, array));
        let step = self.steps.pending(MadeBy::Custom(custom), at, meta, given, (false, false));
        self.add(key, step, Some(value));
    }
}

impl Log {
    /// The step of an array, if the watch follows it.
    pub fn step_of(&self, array: &Array) -> Option<u32> {
        self.noted.lock().step_of(array)
    }

    /// The step with this number.
    pub fn step(&self, number: u32) -> Step {
        self.noted.lock().steps.step(number)
    }

    /// The value of a step, if the watch keeps it.
    pub fn value(&self, number: u32) -> Option<Array> {
        self.noted.lock().steps.value(number)
    }

    /// Whether the watch keeps the value of a step.
    pub fn keeps(&self, number: u32) -> bool {
        self.noted.lock().steps.keeps(number)
    }

    /// The loops among the steps, in order. It looks for them where enough steps belong to turns.
    pub fn loops(&self) -> Vec<Turns> {
        let noted = self.noted.lock();
        if noted.repeated < turns::STEPS_MIN { Vec::new() } else { turns::find(&noted.steps) }
    }

    /// Which steps up to step `end` derivatives pass through to it.
    pub fn leading_to(&self, end: u32) -> Vec<bool> {
        let noted = self.noted.lock();
        let mut leading = vec![false; end as usize + 1];
        leading[end as usize] = true;
        for number in (0..=end).rev() {
            if !leading[number as usize] {
                continue;
            }
            let (statement, parts) = noted.steps.parts(number);
            for (slot, source) in parts.args.iter().enumerate() {
                let Source::Step(argument) = *source else { continue };
                leading[argument as usize] |= match &statement.template {
                    Template::Op(op) => op.passes_to(slot),
                    Template::Watched | Template::Custom => true,
                };
            }
        }
        leading
    }
}

#[cfg(test)]
impl Log {
    /// The number of steps, the number of handles, and the bytes that the log takes, handles included, but not what
    /// these, ops and rules own.
    pub fn bytes(&self) -> (usize, usize, usize) {
        let noted = self.noted.lock();
        let buckets = (noted.places.capacity() * 8 / 7).next_power_of_two();
        let places = buckets * (size_of::<((usize, u64, &str), u32)>() + 1);
        (
            noted.steps.len(),
            noted.steps.handles(),
            size_of::<Log>() + noted.steps.bytes() + noted.of_value.bytes() + places,
        )
    }
}

/// A value that watches treat as the value of `op` on these inputs, although other ops, or none, computed it: because
/// `op` would have no element to read, or its inputs are known.
pub(crate) fn noted_as(home: &Arc<Home>, op: Op, inputs: &[&Array], value: Array, at: At) -> Array {
    if !home.watches.are_any() {
        return value;
    }
    let inputs: SmallVec<[Input<'_>; 2]> = inputs.iter().map(|array| Input::Array(array)).collect();
    let Ok(meta) = value.meta() else { return value };
    if let Some(note) = home.watches.note(&op, &inputs, meta, home.site(at)) {
        note.done(&value);
    }
    value
}

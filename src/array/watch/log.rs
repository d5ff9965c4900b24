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

use crate::array::handle::Array;
use crate::array::record::{At, Input};
use crate::array::tape::Home;
use crate::error::{Error, ErrorKind, Result, Site};
use crate::graph::gradient::RuleReads;
use crate::graph::{DType, Meta, Op, Scalar};
use crate::ids::ValueId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use super::custom::Custom;

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

#[derive(Default)]
struct Noted {
    steps: Vec<Step>,
    /// The step of each value that is followed, or aside.
    of_value: FxHashMap<Key, u32>,
    /// The places of elementwise ops, each with its op, and how many steps each has.
    places: FxHashMap<(usize, u64, &'static str), u32>,
    /// Steps of elementwise ops at places that had more than `CALLS_MAX` before: the turns of loops but the first ones.
    repeated: usize,
}

/// Identifies a value: by its number if it is on a tape, by the address of its `Value` if it is known on the host. The
/// step keeps a handle, so that the address is not used again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Recorded(ValueId),
    Known(usize),
}

/// A value that a watch follows.
#[derive(Clone)]
pub(super) struct Step {
    /// How the value was computed.
    pub made: Made,
    /// Its arguments.
    pub args: SmallVec<[Source; 2]>,
    /// Its dtype and shape.
    pub meta: Meta,
    /// The value's handle, if a rule reads it.
    pub value: Option<Array>,
    /// The place where it was recorded.
    pub at: Site,
    /// Whether it is no value that the watch follows, but one that can be recorded again without any array of the program: a
    /// random number, or what is computed from such and from numbers.
    pub is_aside: bool,
    /// Whether it was computed through a pinned handle: what is recorded again would not be pinned.
    pub is_pinned: bool,
}

/// A step on which a value depends.
pub(super) struct Leading {
    /// Its number.
    pub number: u32,
    /// The step.
    pub step: Step,
    /// Whether derivatives of the value pass through it.
    pub passes: bool,
}

/// How a followed value was computed.
#[derive(Clone)]
pub(super) enum Made {
    /// It was not: the program watches it.
    Watched,
    /// By an op.
    Op(Op),
    /// By a function with a rule of its own.
    Custom(Arc<dyn Custom>),
}

/// An argument of a step.
#[derive(Clone)]
pub(super) enum Source {
    /// A value that is followed.
    Step(u32),
    /// A value that is not followed and can be recorded again.
    Aside(u32),
    /// Another array, which a rule reads.
    Read(Array),
    /// Another array, which no rule reads.
    Unread(Meta),
    /// A number.
    Number(Scalar),
}

thread_local! {
    /// The watches that note nothing of what this thread records.
    static PAUSED: RefCell<Vec<Paused>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Paused {
    /// The watch with this number.
    Only(u64),
    /// All watches with numbers below this one.
    Below(u64),
}

/// While it lives, some watches note nothing of what this thread records.
pub(in crate::array) struct Pause(());

/// The number of the next watch of the process.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Pause {
    /// Pauses one watch on this thread.
    pub(super) fn only(log: &Log) -> Pause {
        Pause::begin(Paused::Only(log.id))
    }

    /// Pauses all watches that exist now on this thread.
    pub fn all() -> Pause {
        Pause::begin(Paused::Below(NEXT.load(Ordering::Relaxed)))
    }

    fn begin(paused: Paused) -> Pause {
        PAUSED.with_borrow_mut(|all| all.push(paused));
        Pause(())
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        // The guards of a thread end in the reverse order of their beginnings.
        PAUSED.with_borrow_mut(|all| _ = all.pop());
    }
}

fn is_paused(id: u64) -> bool {
    PAUSED.with_borrow(|all| {
        all.iter().any(|paused| match *paused {
            Paused::Only(only) => only == id,
            Paused::Below(next) => id < next,
        })
    })
}

fn key(array: &Array) -> Option<Key> {
    match &array.0.host {
        Some(_) => Some(Key::Known(Arc::as_ptr(&array.0) as usize)),
        None => array.id().map(Key::Recorded),
    }
}

/// Whether derivatives pass to an array: only floats have any.
pub(super) fn has_derivatives(array: &Array) -> bool {
    array.dtype().is_ok_and(DType::is_float)
}

/// Whether two arrays are one value.
pub(super) fn is_same(a: &Array, b: &Array) -> bool {
    key(a) == key(b)
}

/// The steps of an op that is about to be recorded, one for each watch that follows an argument of it. It keeps the
/// arguments that rules read.
pub(crate) struct Note(SmallVec<[(Arc<Log>, Step, bool); 1]>);

impl Watches {
    /// Whether the session has watches.
    #[inline]
    pub fn are_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Begins a watch of values.
    pub(super) fn begin(&self, arrays: &[Array], at: Site) -> Result<Arc<Log>> {
        let mut noted = Noted::default();
        for array in arrays {
            let meta = array.meta()?;
            if !meta.dtype.is_float() {
                let message = format!("only floats have derivatives, and this array is {}", meta.dtype);
                return Err(Error::new(ErrorKind::DType, message));
            }
            let (args, meta, value) = (SmallVec::new(), meta.clone(), Some(array.clone()));
            let step = Step { made: Made::Watched, args, meta, value, at, is_aside: false, is_pinned: false };
            noted.add(array, step);
        }
        let log = Arc::new(Log { id: NEXT.fetch_add(1, Ordering::Relaxed), noted: Mutex::new(noted) });
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
        for log in self.listening() {
            let mut noted = log.noted.lock();
            let sources: SmallVec<[Source; 2]> = args
                .iter()
                .map(|array| match noted.step_of(array).filter(|_| has_derivatives(array)) {
                    Some(step) => {
                        noted.steps[step as usize].value.get_or_insert_with(|| array.clone());
                        Source::Step(step)
                    }
                    None => Source::Read(array.clone()),
                })
                .collect();
            if sources.iter().any(|source| matches!(source, Source::Step(_))) {
                let made = Made::Custom(custom.clone());
                let (meta, value_kept) = (meta.clone(), Some(value.clone()));
                let step = Step { made, args: sources, meta, value: value_kept, at, is_aside: false, is_pinned: false };
                noted.add(value, step);
            }
        }
        Ok(())
    }
}

impl Note {
    /// Completes the steps once the op was recorded, with its value.
    pub fn done(self, value: &Array) {
        if value.error().is_some() {
            return;
        }
        let is_known = value.0.host.is_some();
        for (log, mut step, keeps_value) in self.0 {
            if step.is_aside && is_known {
                continue;
            }
            step.value = (keeps_value || is_known).then(|| value.clone());
            log.noted.lock().add(value, step);
        }
    }
}

impl Noted {
    /// The step of an array that is followed.
    fn step_of(&self, array: &Array) -> Option<u32> {
        self.entry_of(array).filter(|&step| !self.steps[step as usize].is_aside)
    }

    /// The step of an array that is followed, or aside.
    fn entry_of(&self, array: &Array) -> Option<u32> {
        self.of_value.get(&key(array)?).copied()
    }

    fn add(&mut self, array: &Array, step: Step) {
        let Some(key) = key(array) else { return };
        let number =
            u32::try_from(self.steps.len()).expect("WATCH-2: a tape has fewer values than a watch has numbers");
        // A value that is watched twice has the same step both times. A constant that stands for the result of an op
        // (`noted_as`) was noted as an aside when it was recorded; the op's step takes that place.
        let known = self.of_value.get(&key).map(|&known| self.steps[known as usize].is_aside);
        if known.is_none_or(|is_aside| is_aside && !step.is_aside) {
            self.of_value.insert(key, number);
        }
        self.steps.push(step);
    }

    /// The step of an op, without its value, and whether a rule reads that.
    fn note(&mut self, op: &Op, inputs: &[Input<'_>], meta: &Meta, at: Site) -> Option<(Step, bool)> {
        let entries: SmallVec<[Option<u32>; 4]> =
            inputs.iter().map(|i| i.array().and_then(|a| self.entry_of(a))).collect();
        assert!(inputs.len() <= RuleReads::ARGS_MAX, "GRAD-1: an op has at most {} arguments", RuleReads::ARGS_MAX);
        let is_followed = |entry: &Option<u32>| entry.is_some_and(|step| !self.steps[step as usize].is_aside);
        let followed = entries.iter().enumerate().filter(|(_, entry)| is_followed(entry));
        let followed = followed.fold(0u8, |set, (n, _)| set | 1 << n);
        let is_elementwise = op.is_elementwise();
        if followed == 0 {
            return is_elementwise.then(|| self.note_aside(op, inputs, &entries, meta, at)).flatten();
        }
        let is_in_loop = is_elementwise && {
            let earlier = self.places.entry((location_of(at), at.mark, op.name())).or_insert(0);
            *earlier += 1;
            *earlier > CALLS_MAX
        };
        let is_pinned = inputs.iter().any(|input| input.array().is_some_and(|array| array.1.is_some()));
        self.repeated += usize::from(is_in_loop);
        let reads = op.derivative_reads(followed);
        let args = inputs.iter().zip(entries).enumerate().map(|(slot, (input, entry))| match (input, entry) {
            (Input::Number(number), _) => Source::Number(*number),
            (Input::Array(array) | Input::Last(array), Some(entry)) => {
                let step = &mut self.steps[entry as usize];
                if reads.arg(slot) || (is_in_loop && !step.is_aside && step.is_elementwise()) {
                    step.value.get_or_insert_with(|| (*array).clone());
                }
                if step.is_aside { Source::Aside(entry) } else { Source::Step(entry) }
            }
            (Input::Array(array) | Input::Last(array), None) if reads.arg(slot) || is_in_loop => {
                Source::Read((*array).clone())
            }
            (Input::Array(array) | Input::Last(array), None) => {
                Source::Unread(array.0.meta.as_ref().map_or(meta, |own| own).clone())
            }
        });
        let args = args.collect();
        Some((
            Step { made: Made::Op(op.clone()), args, meta: meta.clone(), value: None, at, is_aside: false, is_pinned },
            reads.value,
        ))
    }

    /// The step of an elementwise op that reads no followed value, if it reads nothing but numbers, known arrays and asides.
    fn note_aside(
        &self,
        op: &Op,
        inputs: &[Input<'_>],
        entries: &[Option<u32>],
        meta: &Meta,
        at: Site,
    ) -> Option<(Step, bool)> {
        let args = inputs.iter().zip(entries).map(|(input, entry)| match (input, entry) {
            (Input::Number(number), _) => Some(Source::Number(*number)),
            // What is pinned is no aside: it would be recorded again without the pin.
            (Input::Array(array) | Input::Last(array), _) if array.1.is_some() => None,
            (_, Some(aside)) => Some(Source::Aside(*aside)),
            (Input::Array(array) | Input::Last(array), None) => {
                array.0.host.is_some().then(|| Source::Read((*array).clone()))
            }
        });
        let args = args.collect::<Option<SmallVec<[Source; 2]>>>()?;
        Some((
            Step {
                made: Made::Op(op.clone()),
                args,
                meta: meta.clone(),
                value: None,
                at,
                is_aside: true,
                is_pinned: false,
            },
            false,
        ))
    }
}

fn location_of(at: Site) -> usize {
    at.location as *const _ as usize
}

impl Step {
    /// Whether an elementwise op made it.
    pub fn is_elementwise(&self) -> bool {
        matches!(&self.made, Made::Op(op) if op.is_elementwise())
    }
}

impl Log {
    /// The step of an array, if the watch follows it.
    pub fn step_of(&self, array: &Array) -> Option<u32> {
        self.noted.lock().step_of(array)
    }

    /// All steps, where so many of them belong to turns of loops; else none.
    pub fn steps_with_loops(&self, repeated_min: usize) -> Vec<Step> {
        let noted = self.noted.lock();
        if noted.repeated < repeated_min { Vec::new() } else { noted.steps.clone() }
    }

    /// The steps through which derivatives pass to the steps `ends`, in the order in which they were recorded, and the
    /// steps of their arguments.
    pub fn leading_to(&self, ends: impl Iterator<Item = u32>) -> Vec<Leading> {
        let noted = self.noted.lock();
        let mut found = vec![None; noted.steps.len()];
        let mut open: Vec<u32> = ends.collect();
        while let Some(number) = open.pop() {
            if found[number as usize].replace(true) == Some(true) {
                continue;
            }
            let step = &noted.steps[number as usize];
            for (slot, source) in step.args.iter().enumerate() {
                let argument = match source {
                    Source::Step(argument) => argument,
                    Source::Aside(argument) => {
                        found[*argument as usize].get_or_insert(false);
                        continue;
                    }
                    Source::Read(_) | Source::Unread(_) | Source::Number(_) => continue,
                };
                let passes = match &step.made {
                    Made::Op(op) => op.passes_to(slot),
                    Made::Watched | Made::Custom(_) => true,
                };
                match passes {
                    true => open.push(*argument),
                    false => _ = found[*argument as usize].get_or_insert(false),
                }
            }
        }
        let leading = found.iter().enumerate().filter_map(|(number, passes)| {
            let step = noted.steps[number].clone();
            passes.map(|passes| Leading { number: number as u32, step, passes })
        });
        leading.collect()
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

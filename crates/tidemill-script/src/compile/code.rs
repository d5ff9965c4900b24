//! Compiled code: one [`Code`] a function, script or anonymous function, and its instructions.
//!
//! The machine keeps operands on a stack. An instruction that can wait leaves the stack as it was until it is sure to
//! finish (SCRIPT-2), so it can run again.
//!
//! Must hold: CODE-1: slots, constants, paths and jump targets in instructions are within the code's own tables.

use crate::source::{Source, Span};
use crate::syntax::ast::{BinaryOp, Name, UnaryOp};
use crate::value::Value;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// A variable's place in its frame.
pub type Slot = u32;

/// A compiled function, script or anonymous function.
#[derive(Debug)]
pub struct Code {
    /// Its own number among all code of the process.
    pub id: u32,
    /// Its name; empty for a script and for an anonymous function.
    pub name: Name,
    /// What kind of code it is.
    pub kind: Kind,
    /// Where it came from.
    pub source: Arc<Source>,
    /// Of an anonymous function, its text as it is printed.
    pub text: Arc<str>,
    /// The comment at its head, for `help`.
    pub doc: Option<String>,
    /// The instructions.
    pub insts: Vec<Inst>,
    /// The place of every instruction.
    pub spans: Vec<Span>,
    /// Constants.
    pub consts: Vec<Value>,
    /// The name of every slot.
    pub names: Vec<Name>,
    /// The slots that assignments keep subscripts in, whose names nobody can write.
    pub hidden: Vec<Slot>,
    /// The slots of the parameters, `varargin` apart; `None` for `~`.
    pub params: Vec<Option<Slot>>,
    /// The slot of `varargin`.
    pub varargin: Option<Slot>,
    /// The slots of the outputs, `varargout` apart.
    pub outputs: Vec<Slot>,
    /// Where the outputs are named, in the same order.
    pub output_spans: Vec<Span>,
    /// The slot of `varargout`.
    pub varargout: Option<Slot>,
    /// Ways into values that assignments take.
    pub paths: Vec<Vec<PathStep>>,
    /// Anonymous functions that it makes.
    pub closures: Vec<ClosureCode>,
    /// For every `end`: position and count in the index lists around it, innermost first.
    pub ends: Vec<SmallVec<[(u16, u16); 1]>>,
    /// The slots that it gives a value somewhere: of parameters, and those that an instruction sets.
    pub assigned: FxHashSet<Slot>,
    /// The variables that it shares with functions inside of it and around it, where there are such functions.
    pub sharing: Option<Box<Sharing>>,
}

/// What a function shares with the functions that are nested in it, and with those that it is nested in.
#[derive(Debug, Default)]
pub struct Sharing {
    /// The functions nested in it, by name.
    pub functions: FxHashMap<Name, Arc<Code>>,
    /// Its variables that functions nested in it see.
    pub owned: Vec<Slot>,
    /// Its names for variables of the functions around it.
    pub outer: Vec<Outer>,
}

/// A name for a variable of a function further out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// The name's slot.
    pub slot: Slot,
    /// How many functions stand between this one and the variable's.
    pub between: usize,
    /// The variable's place among those that its function owns.
    pub place: usize,
}

impl Sharing {
    /// The slots of all variables that other functions see, too.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.owned.iter().copied().chain(self.outer.iter().map(|outer| outer.slot))
    }
}

/// Kinds of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file's statements.
    Script,
    /// A function.
    Function,
    /// An anonymous function: its one expression gives its outputs.
    Anonymous,
    /// A text that `eval` runs in its caller's variables.
    Eval,
}

/// An anonymous function's code and what it captures.
#[derive(Debug)]
pub struct ClosureCode {
    /// The code.
    pub code: Arc<Code>,
    /// Slots here, beside slots there.
    pub captures: Vec<(Slot, Slot)>,
    /// Whether it names functions that are nested in the one it is made in, or in one around that.
    pub calls_nested: bool,
}

/// How many values an instruction takes from the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// So many.
    Fixed(u16),
    /// All above the last mark.
    Marked,
}

/// A step of an assignment's way.
#[derive(Clone, Debug, PartialEq)]
pub enum PathStep {
    /// `(…)` with so many subscripts.
    Paren(Count),
    /// `{…}` with so many subscripts.
    Brace(Count),
    /// `.name`.
    Field(Name),
    /// `.(expr)`: the name is on the stack.
    DynamicField,
}

/// How many values of an access are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Exactly one, as an operand.
    One,
    /// The first there is, as the value of an assignment: `y = c{:}`.
    First,
    /// Exactly one, to be indexed further.
    Further,
    /// All there are, for a list; functions are asked for this many outputs.
    Many(u16),
    /// The same, asked for as many as the targets of the assignment have places.
    Targets,
}

impl Code {
    /// The functions nested in it.
    pub fn nested(&self) -> impl Iterator<Item = &Arc<Code>> {
        self.sharing.iter().flat_map(|sharing| sharing.functions.values())
    }

    /// Fills [`Code::assigned`] from the parameters and the instructions.
    pub(super) fn find_assigned(&mut self) {
        let by_inst = |inst: &Inst| match inst {
            Inst::Store(slot) | Inst::ForNext { slot, .. } | Inst::Caught(Some(slot)) => Some(*slot),
            Inst::StoreAt { slot, .. } | Inst::StoreTarget { slot, .. } => Some(*slot),
            Inst::Global(slot) | Inst::Persistent(slot) => Some(*slot),
            _ => None,
        };
        let params = self.params.iter().copied().flatten().chain(self.varargin);
        self.assigned = params.chain(self.insts.iter().filter_map(by_inst)).collect();
    }
}

/// An instruction. "Pops" and "pushes" are of the operand stack. Fields are what the variants' sentences name.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Inst {
    /// Pushes a double.
    Num(f64),
    /// Pushes a constant.
    Const(u32),
    /// `|` and `&` in a condition: where one element decides, the top becomes what it decides, and the jump is taken.
    JumpIfDecided { to: u32, or: bool },
    /// Pushes the colon.
    Colon,
    /// Pushes a variable; where it is undefined, calls the function of its name. `last`: the variable ends here.
    Load { slot: Slot, last: bool, want: Want },
    /// Pops a value into a variable.
    Store(Slot),
    /// Pops and drops.
    Pop,
    /// Pushes the top again.
    Duplicate,
    /// Pops one, pushes the result.
    Unary(UnaryOp),
    /// Pops one, pushes its transpose.
    Transpose { conjugate: bool },
    /// Pops two, pushes the result.
    Binary(BinaryOp),
    /// Pops start, (step,) stop; pushes the row.
    Range { step: bool },
    /// Goes on elsewhere.
    Jump(u32),
    /// Pops one, goes elsewhere if its truth is `when`.
    JumpIf { to: u32, when: bool },
    /// Goes elsewhere if a variable has a value.
    JumpIfDefined { slot: Slot, to: u32 },
    /// Remembers the stack's height for a [`Count::Marked`].
    Mark,
    /// Makes a variable (or nothing, if it is undefined) what `end` means.
    BaseSlot(Slot),
    /// Makes the top of the stack what `end` means.
    BaseTop,
    /// Makes what lies at a path, whose subscripts stay on the stack, what `end` means; 0×0 if nothing does.
    BasePath { slot: Slot, path: u32 },
    /// `end` means again what it meant before.
    BaseEnd,
    /// Pushes what `end` is; the number is of [`Code::ends`].
    End(u32),
    /// Pops arguments; indexes a variable or calls the function of its name. `last` as in `Load`.
    Apply { slot: Slot, count: Count, want: Want, last: bool },
    /// Pops arguments and the value below them; indexes it, or calls it if it is a handle.
    Paren { count: Count, want: Want },
    /// Pops subscripts and the cell array below them, pushes what they name.
    Brace { count: Count, want: Want },
    /// Pops a struct, pushes the field of the constant's name.
    Field { name: u32, called: bool, want: Want },
    /// Pops a name and the struct below it, pushes the field.
    DynamicField { want: Want },
    /// Pops arguments, calls the function whose name is the constant.
    Call { name: u32, count: Count, want: Want },
    /// Pops the subscripts of a path and the value below them, and assigns it there.
    StoreAt { slot: Slot, path: u32 },
    /// Pops the subscripts of a path and deletes what lies there.
    DeleteAt { slot: Slot, path: u32 },
    /// Pops all above the last mark, pushes the first `n`, in reverse order. Fails where a function did not set one of
    /// them, unless its bit of `ignored` says that nobody wants it.
    Spread { n: u16, ignored: u32 },
    /// Begins the targets of an assignment of which some take as many values as they have places.
    TargetsBegin,
    /// Pops the subscripts of a path and keeps them, with the number of places that lie there now, as the next target.
    Target { slot: Slot, path: u32 },
    /// The next target takes one value and is stored, or dropped (`ignored`), by instructions of its own.
    TargetPlain { ignored: bool },
    /// `Spread` of as many values as the targets have places.
    SpreadTargets,
    /// Pops the values of a target that was kept, by its number, and assigns them to its places.
    StoreTarget { slot: Slot, target: u16 },
    /// Fails unless the top is a value; `target` is the number of the target that it is for.
    TargetDefined { target: u16 },
    /// The targets have served.
    TargetsEnd,
    /// Fails unless the top is a value; `n` is its number in the list that was spread.
    Defined(u16),
    /// Pops parts, pushes them beside each other.
    Row(Count),
    /// As `Row`, of a matrix that has other rows, too.
    RowOfRows(Count),
    /// Pops rows, pushes them above each other.
    Rows(u32),
    /// Pops values, pushes a row of cells of them.
    CellRow(Count),
    /// Pops rows of cells, pushes them above each other.
    CellRows(u32),
    /// Pushes a handle of an anonymous function.
    Closure(u32),
    /// Pushes a handle of the nested function whose name is the constant.
    NestedHandle(u32),
    /// Shows a variable.
    Show(Slot),
    /// Pops all above the last mark: each becomes `ans`, and is shown if `print`. A statement that is a variable's
    /// name shows that variable (`name`) instead.
    Answer { print: bool, name: Option<Slot> },
    /// Pops a range or array, begins a loop over its columns.
    ForBegin,
    /// Pops a struct, begins a loop over its fields, of which every turn pushes the name and then the value.
    ForFields,
    /// Pops start, (step,) stop, begins a loop over the row that they make.
    ForRange { step: bool },
    /// The next column into a variable, or the end of the loop.
    ForNext { slot: Slot, exit: u32 },
    /// The next column onto the stack, or the end of the loop.
    ForNextTop { exit: u32 },
    /// Ends the innermost loop early.
    ForEnd,
    /// Pops a case's value and looks at the subject below it; pushes whether it fits.
    CaseMatches,
    /// Errors from here to `TryEnd` go on at `handler`.
    TryBegin { handler: u32 },
    /// The end of what is tried; `check` awaits what was recorded in it.
    TryEnd { check: bool },
    /// The error that was caught becomes a variable's value, or is dropped.
    Caught(Option<Slot>),
    /// The error that was caught is kept for `Rethrow`.
    HoldError,
    /// The error that was kept goes on.
    Rethrow,
    /// A variable becomes the global of its name.
    Global(Slot),
    /// A variable becomes the function's own that lasts between calls.
    Persistent(Slot),
    /// Ends the function.
    Return,
}

/// Whether a number's bit is set; those beyond the last are not.
pub fn is_in(bits: u32, number: u32) -> bool {
    bits.checked_shr(number).is_some_and(|bits| bits & 1 == 1)
}

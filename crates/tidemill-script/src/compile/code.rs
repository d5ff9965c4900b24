//! Compiled code: one [`Code`] a function, script or anonymous function, and its instructions.
//!
//! The machine keeps operands on a stack. An instruction that can wait leaves the stack unchanged until it is sure to
//! finish (SCRIPT-2), so that it can run again.
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
    /// A number that no other code of the process has.
    pub id: u32,
    /// Its name; empty for a script and for an anonymous function.
    pub name: Name,
    /// The kind of code.
    pub kind: Kind,
    /// The source that it was compiled from.
    pub source: Arc<Source>,
    /// For an anonymous function: its text as it is printed.
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
    /// The slots in which assignments keep subscripts. Scripts cannot write their names.
    pub hidden: Vec<Slot>,
    /// The slots of the parameters, without `varargin`; `None` for `~`.
    pub params: Vec<Option<Slot>>,
    /// The slot of `varargin`.
    pub varargin: Option<Slot>,
    /// The slots of the outputs, without `varargout`.
    pub outputs: Vec<Slot>,
    /// The places that name the outputs, in the same order.
    pub output_spans: Vec<Span>,
    /// The slot of `varargout`.
    pub varargout: Option<Slot>,
    /// The paths into values that assignments take.
    pub paths: Vec<Vec<PathStep>>,
    /// The anonymous functions that it makes.
    pub closures: Vec<ClosureCode>,
    /// For every `end`: its position in, and the length of, the index lists around it, innermost first.
    pub ends: Vec<SmallVec<[(u16, u16); 1]>>,
    /// The slots that it assigns: those of parameters, and those that an instruction sets.
    pub assigned: FxHashSet<Slot>,
    /// The variables that it shares with functions inside of it and around it, if there are such functions.
    pub sharing: Option<Box<Sharing>>,
}

/// The variables that a function shares with the functions nested in it, and with those that it is nested in.
#[derive(Debug, Default)]
pub struct Sharing {
    /// The functions nested in it, by name.
    pub functions: FxHashMap<Name, Arc<Code>>,
    /// Its own variables that functions nested in it use.
    pub owned: Vec<Slot>,
    /// The variables of functions around it that it uses.
    pub outer: Vec<Outer>,
}

/// A name in a nested function that stands for a variable of a function around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// The name's slot.
    pub slot: Slot,
    /// How many functions lie between this one and the variable's owner.
    pub between: usize,
    /// The variable's index among those that its owner shares.
    pub place: usize,
}

impl Sharing {
    /// Returns the slots of all shared variables.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.owned.iter().copied().chain(self.outer.iter().map(|outer| outer.slot))
    }
}

/// Kinds of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The statements of a file.
    Script,
    /// A function.
    Function,
    /// An anonymous function, whose one expression gives its outputs.
    Anonymous,
    /// A text that `eval` runs in its caller's variables.
    Eval,
}

/// The code of an anonymous function, and its captured variables.
#[derive(Debug)]
pub struct ClosureCode {
    /// The code.
    pub code: Arc<Code>,
    /// Pairs of slots: of the variable here, and of the captured one there.
    pub captures: Vec<(Slot, Slot)>,
    /// Whether it uses functions that are nested in the function that makes it, or in one around that.
    pub calls_nested: bool,
}

/// The number of values that an instruction takes from the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// This many.
    Fixed(u16),
    /// All values above the last mark.
    Marked,
}

/// A step of an assignment's path.
#[derive(Clone, Debug, PartialEq)]
pub enum PathStep {
    /// `(…)` with this many subscripts.
    Paren(Count),
    /// `{…}` with this many subscripts.
    Brace(Count),
    /// `.name`.
    Field(Name),
    /// `.(expr)`: the name is on the stack.
    DynamicField,
}

/// The number of values that are wanted from an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Exactly one, as an operand.
    One,
    /// The first, as the value of an assignment: `y = c{:}`.
    First,
    /// Exactly one, to be indexed further.
    Further,
    /// All, for a list. Functions are asked for this many outputs.
    Many(u16),
    /// All, for targets. Functions are asked for as many outputs as the targets have places.
    Targets,
}

impl Code {
    /// Returns the functions nested in it.
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

/// An instruction. "Pops" and "pushes" refer to the operand stack; the fields have the names used in the variants'
/// docs.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Inst {
    /// Pushes a double.
    Num(f64),
    /// Pushes a constant.
    Const(u32),
    /// `|` and `&` in a condition: if the element on the stack decides the result, the result replaces it and the jump
    /// is taken.
    JumpIfDecided { to: u32, or: bool },
    /// Pushes the colon.
    Colon,
    /// Pushes a variable. If it is undefined, calls the function of its name. `last`: the variable ends here.
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
    /// Jumps.
    Jump(u32),
    /// Pops one value, and jumps if its truth is `when`.
    JumpIf { to: u32, when: bool },
    /// Jumps if a variable has a value.
    JumpIfDefined { slot: Slot, to: u32 },
    /// Remembers the stack's height for a [`Count::Marked`].
    Mark,
    /// Makes `end` refer to a variable, or to nothing if the variable is undefined.
    BaseSlot(Slot),
    /// Makes `end` refer to the top of the stack.
    BaseTop,
    /// Makes `end` refer to the value at a path, whose subscripts stay on the stack; to a 0×0 value if there is none.
    BasePath { slot: Slot, path: u32 },
    /// Restores the former meaning of `end`.
    BaseEnd,
    /// Pushes the value of `end`. The number is an index into [`Code::ends`].
    End(u32),
    /// Pops arguments; indexes a variable or calls the function of its name. `last` as in `Load`.
    Apply { slot: Slot, count: Count, want: Want, last: bool },
    /// Pops arguments and the value below them. Indexes the value, or calls it if it is a handle.
    Paren { count: Count, want: Want },
    /// Pops subscripts and the cell array below them, and pushes the cells' contents.
    Brace { count: Count, want: Want },
    /// Pops a struct, and pushes the field with the constant's name. `called`: parentheses follow.
    Field { name: u32, called: bool, want: Want },
    /// Pops a name and the struct below it, pushes the field.
    DynamicField { want: Want },
    /// Pops arguments, and calls the function whose name is the constant.
    Call { name: u32, count: Count, want: Want },
    /// Pops the subscripts of a path and the value below them, and assigns the value at the path.
    StoreAt { slot: Slot, path: u32 },
    /// Pops the subscripts of a path, and deletes the part at the path.
    DeleteAt { slot: Slot, path: u32 },
    /// Pops all above the last mark, and pushes the first `n` in reverse order. Fails if a function did not set one of
    /// them, unless its bit in `ignored` is set since it goes to a `~`.
    Spread { n: u16, ignored: u32 },
    /// Begins the list of targets of an assignment in which some targets take as many values as they have places.
    TargetsBegin,
    /// Pops the subscripts of a path, and adds a target to the list: the path, with the number of places that it has
    /// now.
    Target { slot: Slot, path: u32 },
    /// Adds a target that takes one value and is stored, or dropped (`ignored`), by other instructions.
    TargetPlain { ignored: bool },
    /// Does `Spread` with as many values as the targets have places.
    SpreadTargets,
    /// Pops the values of the target with this number, and assigns them to its places.
    StoreTarget { slot: Slot, target: u16 },
    /// Fails unless the top is a value; `target` is the number of the target that it is for.
    TargetDefined { target: u16 },
    /// Drops the list of targets.
    TargetsEnd,
    /// Fails unless the top is a value; `n` is its number in the list that was spread.
    Defined(u16),
    /// Pops parts, pushes them beside each other.
    Row(Count),
    /// Does the same as `Row`, for a row of a matrix that has several.
    RowOfRows(Count),
    /// Pops rows, and pushes them stacked vertically.
    Rows(u32),
    /// Pops values, and pushes a row of cells with these contents.
    CellRow(Count),
    /// Pops rows of cells, and pushes them stacked vertically.
    CellRows(u32),
    /// Pushes a handle of an anonymous function.
    Closure(u32),
    /// Pushes a handle of the nested function whose name is the constant.
    NestedHandle(u32),
    /// Prints a variable.
    Show(Slot),
    /// Pops all above the last mark. Each value becomes `ans`, and is printed if `print`. If the statement is a
    /// variable's name (`name`), that variable is printed instead.
    Answer { print: bool, name: Option<Slot> },
    /// Pops a range or array, and begins a loop over its columns.
    ForBegin,
    /// Pops a struct, and begins a loop over its fields. Every iteration pushes the field's name, then its value.
    ForFields,
    /// Pops start, (step,) stop, and begins a loop over that range.
    ForRange { step: bool },
    /// Stores the next column in a variable, or jumps to `exit` at the end of the loop.
    ForNext { slot: Slot, exit: u32 },
    /// Pushes the next column, or jumps to `exit` at the end of the loop.
    ForNextTop { exit: u32 },
    /// Ends the innermost loop early.
    ForEnd,
    /// Pops a case's value, and pushes whether it matches the subject below it.
    CaseMatches,
    /// From here to `TryEnd`, errors jump to `handler`.
    TryBegin { handler: u32 },
    /// Ends the body of a try. `check` awaits the arrays that were recorded in it.
    TryEnd { check: bool },
    /// Stores the caught error in a variable, or drops it.
    Caught(Option<Slot>),
    /// Keeps the caught error for `Rethrow`.
    HoldError,
    /// Raises the kept error again.
    Rethrow,
    /// Turns a variable into the global of its name.
    Global(Slot),
    /// Turns a variable into a persistent one, which keeps its value between calls.
    Persistent(Slot),
    /// Ends the function.
    Return,
}

/// Whether the bit of this number is set; bits beyond the last are not.
pub fn is_in(bits: u32, number: u32) -> bool {
    bits.checked_shr(number).is_some_and(|bits| bits & 1 == 1)
}

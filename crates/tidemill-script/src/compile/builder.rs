//! Builds the code of one function: its tables, its labels, and the loops and tries around the present statement.

use super::Known;
use super::code::{ClosureCode, Code, Inst, Kind, PathStep, Sharing, Slot};
use super::liveness;
use crate::error::ScriptError;
use crate::source::{Place, Source, Span};
use crate::syntax::ast::{Block, Ident, Name, Param};
use crate::value::Value;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The code of a function while it is being built.
pub(super) struct Builder {
    pub source: Arc<Source>,
    pub kind: Kind,
    pub name: Name,
    pub text: Arc<str>,
    pub doc: Option<String>,
    insts: Vec<Inst>,
    spans: Vec<Span>,
    consts: Vec<Value>,
    names: Vec<Name>,
    /// How many of `names` the frame had before. An evaluated text uses few of them, so they are looked up by a search.
    known: usize,
    /// The slots of the names that were used so far.
    slot_of: FxHashMap<Name, Slot>,
    /// Variables that were assigned so far, including parameters.
    assigned: FxHashSet<Slot>,
    /// Assigned variables that are global or persistent.
    statics: FxHashSet<Slot>,
    /// The hidden variables in which assignments keep subscripts.
    pub hidden: Vec<Slot>,
    /// Names of hidden variables that are free for reuse.
    pub spare: Vec<Name>,
    /// Assigned variables that were given a handle in the text.
    handles: FxHashSet<Slot>,
    params: Vec<Option<Slot>>,
    varargin: Option<Slot>,
    outputs: Vec<Slot>,
    output_spans: Vec<Span>,
    varargout: Option<Slot>,
    paths: Vec<Vec<PathStep>>,
    pub closures: Vec<ClosureCode>,
    pub ends: Vec<SmallVec<[(u16, u16); 1]>>,
    /// Targets of labels; patched into jumps at the end.
    labels: Vec<u32>,
    /// Position in, and length of, the index lists around the present expression, outermost first.
    pub lists: Vec<(u16, u16)>,
    /// Whether the present expression is an argument of `struct`, or an element of a cell that is one. Then empty
    /// literals are marked as such.
    pub marks_empty: bool,
    /// The names of the nested functions that can be called here.
    pub nested_functions: Arc<FxHashSet<Name>>,
    /// Whether an anonymous function uses one of them.
    pub calls_nested: bool,
    /// The variables that the function shares with functions inside of it and around it.
    pub sharing: Option<Box<Sharing>>,
    /// Loops, tries and cleanups around the present statement, outermost first.
    pub around: Vec<Around>,
    /// The place of the present statement.
    pub at: Span,
}

/// A target of jumps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(u32);

/// Returns the number of the next code. The numbers repeat after 2^32 codes; then a mark of old code could name a line
/// of new code.
fn next_id() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A construct around a statement, which a jump out of it must leave properly.
#[derive(Clone)]
pub(super) enum Around {
    /// A loop: the targets of `continue` and `break`, and whether it keeps a state on the machine.
    Loop { again: Label, out: Label, is_for: bool },
    /// The body of a `try`.
    Try,
    /// The body of an `unwind_protect`, with its cleanup.
    Cleanup(Block),
    /// The cleanup of an `unwind_protect` after an error, which is held meanwhile.
    Held,
}

impl Builder {
    pub fn new(source: Arc<Source>, kind: Kind, name: Name) -> Builder {
        Builder {
            source,
            kind,
            name,
            text: "".into(),
            doc: None,
            insts: Vec::new(),
            spans: Vec::new(),
            consts: Vec::new(),
            names: Vec::new(),
            known: 0,
            slot_of: FxHashMap::default(),
            assigned: FxHashSet::default(),
            statics: FxHashSet::default(),
            hidden: Vec::new(),
            spare: Vec::new(),
            handles: FxHashSet::default(),
            params: Vec::new(),
            varargin: None,
            outputs: Vec::new(),
            output_spans: Vec::new(),
            varargout: None,
            paths: Vec::new(),
            closures: Vec::new(),
            ends: Vec::new(),
            labels: Vec::new(),
            lists: Vec::new(),
            marks_empty: false,
            nested_functions: Arc::default(),
            calls_nested: false,
            sharing: None,
            around: Vec::new(),
            at: Span::default(),
        }
    }

    /// Declares parameters and outputs. Defaults of parameters are compiled as code.
    pub fn head(&mut self, params: &[Param], outputs: &[Ident]) -> Result<(), ScriptError> {
        for (i, param) in params.iter().enumerate() {
            match param {
                Param::Named(ident, _) if &*ident.name == "varargin" && i + 1 == params.len() => {
                    let slot = self.slot(&ident.name);
                    self.assigns(slot);
                    self.varargin = Some(slot);
                }
                Param::Named(ident, _) => {
                    if self.slot_of.contains_key(&ident.name) {
                        return Err(self.error(ident.span, format!("parameter '{}' appears twice", ident.name)));
                    }
                    let slot = self.slot(&ident.name);
                    self.assigns(slot);
                    self.params.push(Some(slot));
                }
                Param::Ignored(_) => self.params.push(None),
            }
        }
        for (i, output) in outputs.iter().enumerate() {
            let slot = self.slot(&output.name);
            if &*output.name == "varargout" && i + 1 == outputs.len() {
                self.varargout = Some(slot);
            } else {
                self.outputs.push(slot);
                self.output_spans.push(output.span);
            }
        }
        for param in params {
            if let Param::Named(ident, Some(default)) = param {
                let slot = self.slot(&ident.name);
                let there = self.label();
                self.jump_if_defined(slot, there);
                self.expr(default)?;
                self.emit(Inst::Store(slot), default.span);
                self.bind(there);
            }
        }
        Ok(())
    }

    /// Declares the variables of the frame in which the text will run.
    pub fn knows(&mut self, known: Known) {
        self.known = known.names.len();
        self.names = known.names;
        self.spare = known.spare;
        self.nested_functions = known.nested_functions;
    }

    /// Declares the variables shared with other functions. Calls may change them, as they may change globals.
    pub fn shares(&mut self, sharing: Sharing) {
        for slot in sharing.slots() {
            self.assigned.insert(slot);
            self.statics.insert(slot);
        }
        self.sharing = Some(Box::new(sharing));
    }

    /// Returns the names that the code mentions, whether it assigns to each, and whether each is global or persistent.
    pub fn mentioned(&self) -> impl Iterator<Item = (&Name, bool, bool)> {
        let facts = |slot: Slot| (self.assigned.contains(&slot), self.statics.contains(&slot));
        self.slot_of.iter().map(move |(name, &slot)| {
            let (is_assigned, is_static) = facts(slot);
            (name, is_assigned, is_static)
        })
    }

    /// Notes that a variable has a value from here on.
    pub fn assigns(&mut self, slot: Slot) {
        self.assigned.insert(slot);
    }

    /// Whether a name was assigned to so far.
    pub fn is_assigned(&self, name: &str) -> bool {
        self.slot_of.get(name).is_some_and(|slot| self.assigned.contains(slot))
    }

    /// Notes that a variable was given a handle.
    pub fn holds_handle(&mut self, slot: Slot) {
        self.handles.insert(slot);
    }

    /// Whether a name's variable was given a handle in the text.
    pub fn is_handle(&self, name: &str) -> bool {
        self.slot_of.get(name).is_some_and(|slot| self.handles.contains(slot))
    }

    /// Whether a name is a global or persistent variable.
    pub fn is_static(&self, name: &str) -> bool {
        self.slot_of.get(name).is_some_and(|slot| self.statics.contains(slot))
    }

    /// Returns the slot of a name, which is added if it is new.
    pub fn slot(&mut self, name: &Name) -> Slot {
        if let Some(&slot) = self.slot_of.get(name) {
            return slot;
        }
        let known = self.names[..self.known].iter().position(|known| known == name);
        let slot = known.unwrap_or(self.names.len()) as Slot;
        if known.is_none() {
            self.names.push(name.clone());
        }
        self.slot_of.insert(name.clone(), slot);
        slot
    }

    pub fn constant(&mut self, value: Value) -> u32 {
        self.consts.push(value);
        self.consts.len() as u32 - 1
    }

    pub fn path(&mut self, path: Vec<PathStep>) -> u32 {
        self.paths.push(path);
        self.paths.len() as u32 - 1
    }

    pub fn emit(&mut self, inst: Inst, span: Span) {
        match inst {
            Inst::Store(slot) | Inst::StoreAt { slot, .. } | Inst::StoreTarget { slot, .. } => self.assigns(slot),
            Inst::ForNext { slot, .. } | Inst::Caught(Some(slot)) => self.assigns(slot),
            Inst::Global(slot) | Inst::Persistent(slot) => {
                self.assigns(slot);
                self.statics.insert(slot);
            }
            _ => {}
        }
        self.insts.push(inst);
        self.spans.push(span);
    }

    pub fn label(&mut self) -> Label {
        self.labels.push(u32::MAX);
        Label(self.labels.len() as u32 - 1)
    }

    /// Sets the label's target to the next instruction.
    pub fn bind(&mut self, label: Label) {
        self.labels[label.0 as usize] = self.insts.len() as u32;
    }

    pub fn jump(&mut self, to: Label) {
        self.emit(Inst::Jump(to.0), self.at);
    }
    pub fn jump_if(&mut self, to: Label, when: bool, span: Span) {
        self.emit(Inst::JumpIf { to: to.0, when }, span);
    }
    pub fn jump_if_decided(&mut self, to: Label, or: bool, span: Span) {
        self.emit(Inst::JumpIfDecided { to: to.0, or }, span);
    }
    pub fn jump_if_defined(&mut self, slot: Slot, to: Label) {
        self.emit(Inst::JumpIfDefined { slot, to: to.0 }, self.at);
    }
    pub fn try_begin(&mut self, handler: Label) {
        self.emit(Inst::TryBegin { handler: handler.0 }, self.at);
    }
    pub fn for_next(&mut self, slot: Option<Slot>, exit: Label, span: Span) {
        match slot {
            Some(slot) => self.emit(Inst::ForNext { slot, exit: exit.0 }, span),
            None => self.emit(Inst::ForNextTop { exit: exit.0 }, span),
        }
    }

    /// Makes an error at a place.
    pub fn error(&self, span: Span, message: String) -> ScriptError {
        let mut error = ScriptError::with_id("Octave:parse-error", message);
        error.place = Some(Place { source: self.source.clone(), span });
        error
    }

    /// Finishes the code. With `release`, variables end at their last use.
    pub fn finish(mut self, release: bool) -> Code {
        self.emit(Inst::Return, Span::default());
        let labels = &self.labels;
        for inst in &mut self.insts {
            match inst {
                Inst::Jump(to)
                | Inst::JumpIf { to, .. }
                | Inst::JumpIfDefined { to, .. }
                | Inst::JumpIfDecided { to, .. }
                | Inst::ForNext { exit: to, .. }
                | Inst::ForNextTop { exit: to }
                | Inst::TryBegin { handler: to } => *to = labels[*to as usize],
                _ => {}
            }
        }
        let mut code = Code {
            id: next_id(),
            name: self.name,
            kind: self.kind,
            source: self.source,
            text: self.text,
            doc: self.doc,
            insts: self.insts,
            spans: self.spans,
            consts: self.consts,
            names: self.names,
            hidden: self.hidden,
            params: self.params,
            varargin: self.varargin,
            outputs: self.outputs,
            output_spans: self.output_spans,
            varargout: self.varargout,
            paths: self.paths,
            closures: self.closures,
            ends: self.ends,
            assigned: FxHashSet::default(),
            sharing: self.sharing,
        };
        code.find_assigned();
        // Another function may access this one's variables by name, or a variable's end may call a function. Then no
        // variable ends early.
        let is_seen = ["evalin", "assignin", "onCleanup"].iter().any(|word| code.source.text.contains(word));
        match (release, code.kind) {
            _ if is_seen => {}
            (true, _) => liveness::mark_last_uses(&mut code, false),
            // If a text of a session stops half-way, its variables must still be there.
            (false, Kind::Eval) => {}
            (false, _) => liveness::mark_last_uses(&mut code, true),
        }
        code
    }
}

impl Builder {
    /// Returns the names of all slots, in order.
    pub fn names(&self) -> &[Name] {
        &self.names
    }
}

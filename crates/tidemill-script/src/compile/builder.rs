//! The code of one function while it is written: its tables, its labels, and the loops and tries around a statement.

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

/// A function's code, being written.
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
    /// How many of them were there before: a text that is evaluated asks for few of many.
    known: usize,
    /// Of the names that have been asked for.
    slot_of: FxHashMap<Name, Slot>,
    /// Variables that something has been assigned to so far, parameters included.
    assigned: FxHashSet<Slot>,
    /// Those of them that are global or persistent.
    statics: FxHashSet<Slot>,
    /// The variables that assignments keep subscripts in.
    pub hidden: Vec<Slot>,
    /// Variables for the same that nothing is kept in here.
    pub spare: Vec<Name>,
    /// Those of them that a handle has been written out for.
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
    /// Position and count of the index lists around the expression being written, outermost first.
    pub lists: Vec<(u16, u16)>,
    /// Whether the expression being written is an argument of `struct`, or in a cell that is one: what is empty as it
    /// is written out is marked then.
    pub marks_nothing: bool,
    /// The names of the nested functions that may be called here.
    pub nested_functions: Arc<FxHashSet<Name>>,
    /// Whether an anonymous function names one of them.
    pub calls_nested: bool,
    /// What the function shares with those inside of it and around it.
    pub sharing: Option<Box<Sharing>>,
    /// Loops, tries and cleanups around the statement being written, outermost first.
    pub around: Vec<Around>,
    /// Where the statement being written stands.
    pub at: Span,
}

/// A place that jumps go to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(u32);

/// The number of the next code. After four thousand million, marks of old code might name new code's lines.
fn next_id() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What stands around a statement, and must be left in order by a jump out of it.
#[derive(Clone)]
pub(super) enum Around {
    /// A loop: where `continue` and `break` go, and whether it keeps a state.
    Loop { again: Label, out: Label, is_for: bool },
    /// A try's body.
    Try,
    /// The body of an `unwind_protect`, with what cleans up.
    Cleanup(Block),
    /// What cleans up after an error, which is held meanwhile.
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
            marks_nothing: false,
            nested_functions: Arc::default(),
            calls_nested: false,
            sharing: None,
            around: Vec::new(),
            at: Span::default(),
        }
    }

    /// Parameters and outputs; defaults are written as code.
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

    /// The variables of the frame that the text will run in.
    pub fn knows(&mut self, known: Known) {
        self.known = known.names.len();
        self.names = known.names;
        self.spare = known.spare;
        self.nested_functions = known.nested_functions;
    }

    /// What the function shares with others: calls may change these variables, as they change globals.
    pub fn shares(&mut self, sharing: Sharing) {
        for slot in sharing.slots() {
            self.assigned.insert(slot);
            self.statics.insert(slot);
        }
        self.sharing = Some(Box::new(sharing));
    }

    /// The names that the code mentions, and those that it assigns to.
    pub fn mentioned(&self) -> impl Iterator<Item = (&Name, bool, bool)> {
        let facts = |slot: Slot| (self.assigned.contains(&slot), self.statics.contains(&slot));
        self.slot_of.iter().map(move |(name, &slot)| {
            let (is_assigned, is_static) = facts(slot);
            (name, is_assigned, is_static)
        })
    }

    /// A variable has a value from here on.
    pub fn assigns(&mut self, slot: Slot) {
        self.assigned.insert(slot);
    }

    /// Whether a name has been assigned to so far.
    pub fn is_assigned(&self, name: &str) -> bool {
        self.slot_of.get(name).is_some_and(|slot| self.assigned.contains(slot))
    }

    /// A variable has been given a handle.
    pub fn holds_handle(&mut self, slot: Slot) {
        self.handles.insert(slot);
    }

    /// Whether a handle has been written out for a name's variable.
    pub fn is_handle(&self, name: &str) -> bool {
        self.slot_of.get(name).is_some_and(|slot| self.handles.contains(slot))
    }

    /// Whether a name is a global or persistent variable.
    pub fn is_static(&self, name: &str) -> bool {
        self.slot_of.get(name).is_some_and(|slot| self.statics.contains(slot))
    }

    /// The slot of a name.
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

    /// The label is here.
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

    /// An error at a place.
    pub fn error(&self, span: Span, message: String) -> ScriptError {
        let mut error = ScriptError::with_id("Octave:parse-error", message);
        error.place = Some(Place { source: self.source.clone(), span });
        error
    }

    /// The finished code. `release`: variables end at their last use.
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
        // Another function may name this one's variables from afar, or their end does something: then none of them ends
        // early.
        let is_seen = ["evalin", "assignin", "onCleanup"].iter().any(|word| code.source.text.contains(word));
        match (release, code.kind) {
            _ if is_seen => {}
            (true, _) => liveness::mark_last_uses(&mut code, false),
            // What a text of a session leaves half done must still be there.
            (false, Kind::Eval) => {}
            (false, _) => liveness::mark_last_uses(&mut code, true),
        }
        code
    }
}

impl Builder {
    /// The names that have slots, in their order.
    pub fn names(&self) -> &[Name] {
        &self.names
    }
}

//! What outlives a step that does not end: a session's variables, noted before every step that may take long.
//!
//! In: the machine, where such a step begins. Out: another machine, with the session as it stood there. Must hold: a
//! note ends with its step, since a store into an array that a note holds, too, would have to copy it.

use super::frame::{Activation, Variable};
use super::{Code, Interp};
use crate::display::Format;
use crate::env::{Env, FunctionFiles, Options};
use crate::output::Output;
use crate::syntax::ast::Name;
use crate::value::Value;
use crate::value::cleanup::Due;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidemill::Session;

/// A session that is kept while a text of it runs: what was known when the text began, and the note.
pub struct Kept {
    session: Session,
    options: Options,
    format: Format,
    folder: Option<PathBuf>,
    added: Vec<PathBuf>,
    warnings_off: Vec<String>,
    warnings_as_errors: Vec<String>,
    functions: FxHashMap<Name, Arc<Code>>,
    files: Arc<FunctionFiles>,
    locals: FxHashMap<usize, FxHashMap<Name, Arc<Code>>>,
    /// Of objects that the text makes, too.
    due: Arc<Due>,
    guards: Arc<AtomicUsize>,
    noted: Arc<Mutex<Option<Noted>>>,
}

/// A session's variables where a step began.
pub(super) struct Noted {
    names: Vec<Name>,
    variables: Vec<Variable>,
    statics: Vec<Option<Value>>,
    globals: FxHashMap<Name, u32>,
    persistents: FxHashMap<(u32, u32), u32>,
}

impl Interp {
    /// Keeps the session while its next text runs, which may be left behind in a step that does not end.
    pub fn keep(&mut self) -> Kept {
        let noted = Arc::new(Mutex::new(None));
        self.noted = Some(noted.clone());
        Kept {
            session: self.env.session.clone(),
            options: self.env.options.clone(),
            format: self.env.format,
            folder: self.env.folder.clone(),
            added: self.env.added.clone(),
            warnings_off: self.env.warnings_off.clone(),
            warnings_as_errors: self.env.warnings_as_errors.clone(),
            functions: self.functions.clone(),
            files: self.files.clone(),
            locals: self.locals.clone(),
            due: self.env.due.get_or_insert_default().clone(),
            guards: self.guards.clone(),
            noted,
        }
    }

    /// A step that may take long, with a note of the session as it begins.
    pub(super) fn noted<T>(&mut self, step: impl FnOnce(&mut Interp) -> T) -> T {
        self.note();
        let made = step(self);
        if let Some(place) = &self.noted {
            *place.lock() = None;
        }
        made
    }

    fn note(&self) {
        let Some(place) = &self.noted else { return };
        let Some(Activation::Code(frame)) = self.frames.first() else { return };
        let names: Vec<Name> = frame.code.names.iter().chain(&frame.extra).cloned().collect();
        let at = frame.variables;
        let noted = Noted {
            variables: self.variables[at..at + names.len()].to_vec(),
            names,
            statics: self.statics.clone(),
            globals: self.globals.clone(),
            persistents: self.persistents.clone(),
        };
        *place.lock() = Some(noted);
    }
}

impl Kept {
    /// Another machine with the session as it stood when the step began that runs now; `None` where none runs that may
    /// take long. Open files and what else builtins keep stay with the step; functions of objects of `onCleanup` that
    /// ended with it are due.
    pub fn revive(&self, output: Box<dyn Output>) -> Option<Interp> {
        let noted = self.noted.lock().take()?;
        let mut env = Env::new(self.session.clone(), output, self.options.clone());
        env.format = self.format;
        env.folder = self.folder.clone();
        env.added = self.added.clone();
        env.warnings_off = self.warnings_off.clone();
        env.warnings_as_errors = self.warnings_as_errors.clone();
        let mut interp = Interp::new(env);
        interp.functions = self.functions.clone();
        interp.files = self.files.clone();
        interp.locals = self.locals.clone();
        interp.heed_interrupts();
        interp.begin_session();
        if let Some(Activation::Code(frame)) = interp.frames.first_mut() {
            frame.extra = noted.names;
        }
        interp.variables = noted.variables;
        interp.statics = noted.statics;
        interp.globals = noted.globals;
        interp.persistents = noted.persistents;
        let due = interp.env.due.get_or_insert_default().clone();
        due.take_over(&self.due, &interp.held_duties(), &interp.interrupt);
        Some(interp)
    }

    /// Whether what runs is, or is followed by, cleanup that goes with it where it is left behind. Objects of
    /// `onCleanup` do not: the machine in its place calls their functions.
    pub fn is_guarded(&self) -> bool {
        self.guards.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use crate::rig;
    use crate::source::{SESSION, Source};
    use crate::vm::{Interp, drive};
    use futures::executor::block_on;

    fn runs(interp: &mut Interp, text: &str) {
        interp.begin_text(&Source::given(SESSION, text)).unwrap();
        block_on(drive(interp));
    }

    #[test]
    fn a_session_goes_on_where_a_step_began_and_no_step_leaves_a_note() {
        let (env, _) = rig::env_with(Default::default());
        let mut interp = Interp::new(env);
        interp.begin_session();
        runs(&mut interp, "x = [1 2 3]; global g, g = 7;\nfunction y = twice (x), y = 2 * x; end");
        let kept = interp.keep();
        runs(&mut interp, "x(2) = 5; y = max (x) + sum (x); z = [x, 1]");
        let (env, printed) = rig::env_with(Default::default());
        assert!(kept.revive(env.output).is_none(), "the steps have ended");
        interp.note();
        let mut other = kept.revive(rig::env_with(Default::default()).0.output).expect("a note was taken");
        other.env.output = Box::new(printed.clone());
        runs(&mut other, "printf ('%d ', x, y, g, twice (4)), g = 8; x(1) = 0;");
        assert_eq!(String::from_utf8_lossy(&printed.lock().out), "1 5 3 14 7 8 ");
    }
}

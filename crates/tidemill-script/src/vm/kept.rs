//! Keeps a session's variables in case one of its steps does not end: a snapshot is taken before every step that may
//! take long.
//!
//! In: the machine, when such a step begins. Out: another machine, with the session as it was then. Must hold: a
//! snapshot ends with its step. Otherwise a store into an array that the snapshot holds, too, would have to copy the
//! array.

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

/// A session that is kept while one of its texts runs: its state when the text began, and the snapshot.
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
    /// The cleanup objects of the session, including those that the text makes.
    due: Arc<Due>,
    guards: Arc<AtomicUsize>,
    snapshot: Arc<Mutex<Option<Snapshot>>>,
}

/// A session's variables at the beginning of a step.
pub(super) struct Snapshot {
    names: Vec<Name>,
    variables: Vec<Variable>,
    statics: Vec<Option<Value>>,
    globals: FxHashMap<Name, u32>,
    persistents: FxHashMap<(u32, u32), u32>,
}

impl Interp {
    /// Keeps the session while its next text runs, so that it can go on without the text if a step does not end.
    pub fn keep(&mut self) -> Kept {
        let snapshot = Arc::new(Mutex::new(None));
        self.snapshot = Some(snapshot.clone());
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
            snapshot,
        }
    }

    /// Takes a step that may take long, and holds a snapshot of the session meanwhile.
    pub(super) fn with_snapshot<T>(&mut self, step: impl FnOnce(&mut Interp) -> T) -> T {
        self.take_snapshot();
        let made = step(self);
        if let Some(place) = &self.snapshot {
            *place.lock() = None;
        }
        made
    }

    fn take_snapshot(&self) {
        let Some(place) = &self.snapshot else { return };
        let Some(Activation::Code(frame)) = self.frames.first() else { return };
        let names: Vec<Name> = frame.code.names.iter().chain(&frame.extra).cloned().collect();
        let at = frame.variables;
        let snapshot = Snapshot {
            variables: self.variables[at..at + names.len()].to_vec(),
            names,
            statics: self.statics.clone(),
            globals: self.globals.clone(),
            persistents: self.persistents.clone(),
        };
        *place.lock() = Some(snapshot);
    }
}

impl Kept {
    /// Makes another machine with the session as it was when the present step began. `None`: no step runs that may take
    /// long. Open files and other state of builtins stay with the step. The functions of `onCleanup` objects that ended
    /// within the step will be called.
    pub fn revive(&self, output: Box<dyn Output>) -> Option<Interp> {
        let snapshot = self.snapshot.lock().take()?;
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
            frame.extra = snapshot.names;
        }
        interp.variables = snapshot.variables;
        interp.statics = snapshot.statics;
        interp.globals = snapshot.globals;
        interp.persistents = snapshot.persistents;
        let due = interp.env.due.get_or_insert_default().clone();
        due.take_over(&self.due, &interp.held_duties(), &interp.interrupt);
        Some(interp)
    }

    /// Whether cleanup is running or pending that is lost if the running text is left behind. `onCleanup` objects do
    /// not count, since the new machine calls their functions.
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
        interp.take_snapshot();
        let mut other = kept.revive(rig::env_with(Default::default()).0.output).expect("a note was taken");
        other.env.output = Box::new(printed.clone());
        runs(&mut other, "printf ('%d ', x, y, g, twice (4)), g = 8; x(1) = 0;");
        assert_eq!(String::from_utf8_lossy(&printed.lock().out), "1 5 3 14 7 8 ");
    }
}

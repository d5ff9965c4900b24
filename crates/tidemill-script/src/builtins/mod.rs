//! The functions of the language: one table a family, each row with its name, its arguments, its help and its code.
//!
//! `help`, `docs/matlab.md`, argument counts and suggestions for unknown names all read the same rows.

pub mod args;
mod arrays;
mod calls;
mod containers;
pub mod counts;
mod files;
pub mod language;
mod linear;
mod numeric;
mod reach;
pub mod record;
mod reduce;
mod signals;
pub mod system;
pub mod text;

pub use counts::{check_call, invalid_call};
pub use reach::Reach;

use super::error::{Flow, ScriptError};
use super::index::Values;
use super::value::{Function, Value};
use super::vm::Interp;
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};

/// A function of the language.
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// The fewest arguments it takes.
    pub args_min: u8,
    /// The most; [`ANY`] for no limit.
    pub args_max: u8,
    /// The most outputs.
    pub outputs_max: u8,
    /// What of the world around the script it touches.
    pub reach: Reach,
    /// How it is called: `[m, i] = max (x, [], dim)`.
    pub usage: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Its code. Arguments are counted already. Calls go through [`Builtin::call`], which asks what it may reach.
    run: Run,
}

/// A row of a table: name, fewest and most arguments, most outputs, usage, summary, code.
const fn row(
    name: &'static str,
    args_min: u8,
    args_max: u8,
    outputs_max: u8,
    usage: &'static str,
    summary: &'static str,
    run: Run,
) -> Builtin {
    Builtin { name, args_min, args_max, outputs_max, reach: Reach::Script, usage, summary, run }
}

impl Builtin {
    /// The same row of a function that touches files, folders, the environment, the process or standard input.
    const fn outside(self) -> Builtin {
        Builtin { reach: Reach::Outside, ..self }
    }

    /// The same row of a function of which some calls touch these. Its code asks [`Env::check_outside`] for those.
    ///
    /// [`Env::check_outside`]: super::env::Env::check_outside
    const fn partly_outside(self) -> Builtin {
        Builtin { reach: Reach::Partly, ..self }
    }

    /// Runs it on counted arguments.
    ///
    /// # Errors
    /// What its code finds wrong, and the refusal of a sandbox.
    pub fn call(&self, interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
        if self.reach == Reach::Outside {
            interp.check_outside(self.name)?;
        }
        (self.run)(interp, args, nargout)
    }
}

/// No limit on arguments or outputs.
pub const ANY: u8 = u8::MAX;

/// The code of a builtin: the machine, the arguments, how many outputs are asked for (0: as a statement).
/// SCRIPT-2: it reads the host values of all its arguments before it changes or prints anything.
pub type Run = fn(&mut Interp, &[Value], usize) -> Flow<Outcome>;

/// What a builtin gives.
pub enum Outcome {
    /// Its outputs; may be none.
    Values(Values),
    /// Work that calls functions of the script, carried on by the machine.
    Task(Box<dyn Task>),
    /// The outputs of this call, in the builtin's place (`feval`).
    Call {
        /// What is called.
        function: Arc<Function>,
        /// With these.
        args: Vec<Value>,
    },
    /// The text, run in the caller's variables; what it prints becomes the output if `capture`.
    Eval {
        /// The text.
        text: String,
        /// What runs instead where it fails.
        handler: Option<String>,
        /// Whether its output is kept (`evalc`).
        capture: bool,
        /// Whose variables it runs in.
        scope: Scope,
    },
    /// The statements of a file, run in the caller's variables.
    File {
        /// The file.
        name: String,
        /// What it says.
        text: String,
    },
    /// A variable of another frame set (`assignin`).
    Assign {
        /// Its name.
        name: String,
        /// Its value.
        value: Value,
        /// Whose variable it is.
        scope: Scope,
    },
}

/// Whose variables a text sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The code's that runs the builtin.
    Here,
    /// That of the code that called it.
    Caller,
    /// The script's.
    Base,
}

impl Outcome {
    /// Its first value; the empty matrix where there is none.
    pub fn first(self) -> Value {
        match self {
            Outcome::Values(values) => values.into_iter().next().unwrap_or_else(Value::empty),
            _ => Value::empty(),
        }
    }

    /// A text that runs in the caller's variables.
    pub fn text(text: impl Into<String>) -> Outcome {
        Outcome::Eval { text: text.into(), handler: None, capture: false, scope: Scope::Here }
    }
}

impl From<Value> for Outcome {
    fn from(value: Value) -> Outcome {
        Outcome::Values(smallvec::smallvec![value])
    }
}
impl From<Values> for Outcome {
    fn from(values: Values) -> Outcome {
        Outcome::Values(values)
    }
}
impl From<Vec<Value>> for Outcome {
    fn from(values: Vec<Value>) -> Outcome {
        Outcome::Values(values.into())
    }
}

/// No output.
pub fn nothing() -> Outcome {
    Outcome::Values(Values::new())
}

/// A builtin that calls functions of the script (`cellfun`, `arrayfun`, `feval`): a small state machine, so that a
/// call may wait and the machine's own stack stays flat.
pub trait Task: Send {
    /// The next step. `last` is what the last call gave; `None` at the first step. An error arrives here only if
    /// [`Task::catches`] says so.
    ///
    /// # Errors
    /// What ends the task.
    fn step(&mut self, interp: &mut Interp, last: Option<Result<Values, ScriptError>>) -> Flow<TaskStep>;

    /// Whether errors of its calls come to [`Task::step`].
    fn catches(&self) -> bool {
        false
    }
}

/// What a task does next.
pub enum TaskStep {
    /// Call a function.
    Call {
        /// Which.
        function: Arc<Function>,
        /// With these.
        args: Vec<Value>,
        /// For so many outputs.
        nargout: usize,
    },
    /// Give these outputs and end.
    Done(Values),
}

/// All families, in the order of the documentation: a title and its rows.
pub fn families() -> &'static [(&'static str, &'static [Builtin])] {
    static FAMILIES: &[(&str, &[Builtin])] = &[
        ("Creation", arrays::creation::ROWS),
        ("Random numbers", numeric::random::ROWS),
        ("Special matrices", arrays::matrices::ROWS),
        ("Shapes", arrays::shape::ROWS),
        ("Repeated elements", arrays::repeats::ROWS),
        ("Functions of elements", numeric::elementwise::ROWS),
        ("Functions of two arrays", numeric::remainders::ROWS),
        ("Bessel functions", numeric::bessel::ROWS),
        ("Incomplete gamma and beta functions", numeric::incomplete::ROWS),
        ("Bits", numeric::bits::ROWS),
        ("Operators as functions", numeric::operators::ROWS),
        ("Conversions", numeric::conversions::ROWS),
        ("Reductions", reduce::reductions::ROWS),
        ("Least and greatest", reduce::extrema::ROWS),
        ("Statistics", reduce::statistics::ROWS),
        ("Scans", reduce::scans::ROWS),
        ("Sorting and finding", arrays::sorting::ROWS),
        ("Questions", arrays::queries::ROWS),
        ("The device", system::device::ROWS),
        ("Linear algebra", linear::factors::ROWS),
        ("Polynomials, interpolation, filters", signals::polynomials::ROWS),
        ("Convolution", signals::convolution::ROWS),
        ("Fourier transforms", signals::fourier::ROWS),
        ("Whole numbers and counting", numeric::integers::ROWS),
        ("Sets", arrays::sets::ROWS),
        ("Calls and handles", calls::functions::ROWS),
        ("Strings", text::strings::ROWS),
        ("Questions about text", text::comparisons::ROWS),
        ("Regular expressions", text::regexp::ROWS),
        ("Numbers as text", text::convert_text::ROWS),
        ("Numbers as readers want them", text::number_text::ROWS),
        ("Printing", text::output::ROWS),
        ("Reading by a template", text::scan::ROWS),
        ("Cells", containers::cells::ROWS),
        ("Structs", containers::structs::ROWS),
        ("Maps", containers::maps::ROWS),
        ("Parsers of arguments", calls::parsers::ROWS),
        ("Files", files::streams::ROWS),
        ("Numbers in files", files::binary::ROWS),
        ("Names of files and folders", files::folders::ROWS),
        ("Variables in files", files::matfile::ROWS),
        ("Tables in files", files::tables::ROWS),
        ("JSON", text::json::ROWS),
        #[cfg(feature = "image")]
        ("Pictures", files::pictures::ROWS),
        ("Errors", language::errors::ROWS),
        ("Calls and evaluated text", calls::environment::ROWS),
        ("What names stand for", language::found::ROWS),
        ("Help", language::documentation::ROWS),
        ("Variables", language::variables::ROWS),
        ("Time", system::clocks::ROWS),
        ("The process and its surroundings", system::process::ROWS),
        ("Accepted without an effect", language::accepted::IGNORED),
        ("Accepted with a warning: plots, windows, sound", language::accepted::WARNED),
    ];
    FAMILIES
}

/// The builtin of this name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    static BY_NAME: OnceLock<FxHashMap<&'static str, &'static Builtin>> = OnceLock::new();
    BY_NAME
        .get_or_init(|| families().iter().flat_map(|(_, rows)| rows.iter()).map(|b| (b.name, b)).collect())
        .get(name)
        .copied()
}

#[cfg(test)]
mod array_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_one_row() {
        let mut seen = FxHashMap::default();
        for (family, rows) in families() {
            for row in *rows {
                if let Some(other) = seen.insert(row.name, family) {
                    panic!("'{}' stands in '{other}' and in '{family}'", row.name);
                }
                assert!(row.args_min <= row.args_max, "'{}' takes fewer arguments than it needs", row.name);
            }
        }
    }
}

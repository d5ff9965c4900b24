//! The builtin functions of the language: a table for each family. Each row has a function's name, its arguments, its
//! help and its code.
//!
//! `help`, `docs/matlab.md`, argument counts and suggestions for unknown names all read these rows.

pub mod args;
mod arrays;
mod calls;
mod containers;
pub mod counts;
pub mod derivatives;
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

/// A builtin function of the language.
pub struct Builtin {
    /// The function's name.
    pub name: &'static str,
    /// The fewest arguments that it takes.
    pub args_min: u8,
    /// The most arguments that it takes; [`ANY`] for no limit.
    pub args_max: u8,
    /// The most outputs that it gives.
    pub outputs_max: u8,
    /// Whether it touches files, the environment and the like.
    pub reach: Reach,
    /// Its usage: `[m, i] = max (x, [], dim)`.
    pub usage: &'static str,
    /// A sentence that describes it.
    pub summary: &'static str,
    /// Its code, for a checked number of arguments. Calls go through [`Builtin::call`], which checks its reach.
    run: Run,
}

/// Makes a row of a table: name, fewest and most arguments, most outputs, usage, summary, code.
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
    /// Marks a function that touches files, folders, the environment, the process or standard input.
    const fn outside(self) -> Builtin {
        Builtin { reach: Reach::Outside, ..self }
    }

    /// Marks a function that touches these by some of its calls. Its code asks [`Env::check_outside`] in those calls.
    ///
    /// [`Env::check_outside`]: super::env::Env::check_outside
    const fn partly_outside(self) -> Builtin {
        Builtin { reach: Reach::Partly, ..self }
    }

    /// Runs it on a checked number of arguments.
    ///
    /// # Errors
    /// Errors of its code, and the refusal of a sandbox.
    pub fn call(&self, interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
        if self.reach == Reach::Outside {
            interp.check_outside(self.name)?;
        }
        (self.run)(interp, args, nargout)
    }
}

/// No limit on arguments or outputs.
pub const ANY: u8 = u8::MAX;

/// The code of a builtin. It gets the machine, the arguments, and the number of outputs (0: called as a statement).
/// SCRIPT-2: it reads the host values of all its arguments before it changes or prints anything.
pub type Run = fn(&mut Interp, &[Value], usize) -> Flow<Outcome>;

/// The result of a builtin.
pub enum Outcome {
    /// Its outputs; there may be none.
    Values(Values),
    /// Work that calls functions of the script. The machine carries it out.
    Task(Box<dyn Task>),
    /// A call that takes the builtin's place and gives its outputs (`feval`).
    Call {
        /// The called function.
        function: Arc<Function>,
        /// Its arguments.
        args: Vec<Value>,
    },
    /// A text, which runs in the caller's variables. Its printed text becomes the output if `capture`.
    Eval {
        /// The text.
        text: String,
        /// The text that runs if the first one fails.
        handler: Option<String>,
        /// Whether the printed text is captured (`evalc`).
        capture: bool,
        /// The variables that the text sees.
        scope: Scope,
    },
    /// The statements of a file, which run in the caller's variables.
    File {
        /// The file's name.
        name: String,
        /// The file's text.
        text: String,
    },
    /// An assignment to a variable of another frame (`assignin`).
    Assign {
        /// The variable's name.
        name: String,
        /// Its value.
        value: Value,
        /// The frame of the variable.
        scope: Scope,
    },
}

/// The frame whose variables a text sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The frame of the code that calls the builtin.
    Here,
    /// The frame of that code's caller.
    Caller,
    /// The frame of the script.
    Base,
}

impl Outcome {
    /// Returns its first value; the empty matrix if there is none.
    pub fn first(self) -> Value {
        match self {
            Outcome::Values(values) => values.into_iter().next().unwrap_or_else(Value::empty),
            _ => Value::empty(),
        }
    }

    /// Makes a text that runs in the caller's variables.
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

/// Returns no output.
pub fn nothing() -> Outcome {
    Outcome::Values(Values::new())
}

/// A builtin that calls functions of the script (`cellfun`, `arrayfun`, `feval`). It is a small state machine, so that
/// a call may wait and the machine's own stack stays flat.
pub trait Task: Send {
    /// Takes the next step. `last` is the result of the last call; `None` at the first step. An error is passed only if
    /// [`Task::catches`].
    ///
    /// # Errors
    /// Errors that end the task.
    fn step(&mut self, interp: &mut Interp, last: Option<Result<Values, ScriptError>>) -> Flow<TaskStep>;

    /// Whether errors of its calls are passed to [`Task::step`].
    fn catches(&self) -> bool {
        false
    }
}

/// The next action of a task.
pub enum TaskStep {
    /// It calls a function.
    Call {
        /// The called function.
        function: Arc<Function>,
        /// The function's arguments.
        args: Vec<Value>,
        /// The number of outputs.
        nargout: usize,
    },
    /// It ends with these outputs.
    Done(Values),
}

/// Returns all families in the order of the documentation: titles, each with its rows.
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
        ("Derivatives", derivatives::ROWS),
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
        ("Accepted with a warning: plots, sound, tools", language::accepted::WARNED),
    ];
    FAMILIES
}

/// Finds the builtin of this name.
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

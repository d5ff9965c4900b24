//! `inputParser` and its functions: a script defines the arguments of a function, and then checks a list of arguments.
//!
//! In: names, defaults, checks; a list of arguments. Out: a parser that holds the results. Must hold: results of a
//! parsing are stored only once all arguments fit; checks are functions of the script, and run as the machine's own
//! calls.

use crate::builtins::{ANY, Builtin, Outcome, Task, TaskStep, nothing, row};
use crate::env::Env;
use crate::error::{Flow, ScriptError, fail};
use crate::index::Values;
use crate::ops;
use crate::value::parser::{Argument, ArgumentKind, Parsed, Settings};
use crate::value::{Function, Parser, StructArray, Value};
use crate::vm::Interp;
use std::collections::VecDeque;
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("inputParser", 0, 0, 1, "p = inputParser ()", "A parser of a function's arguments.", |_, _, _| {
        Ok(Value::Parser(Arc::new(Parser::default())).into())
    }),
    row(
        "addRequired",
        2,
        3,
        0,
        "addRequired (p, name, check)",
        "Defines an argument that must be given.",
        |i, a, _| define(&mut i.env, ArgumentKind::Required, "addRequired", a),
    ),
    row(
        "addOptional",
        3,
        4,
        0,
        "addOptional (p, name, default, check)",
        "Defines an argument that may be given behind the required ones.",
        |i, a, _| define(&mut i.env, ArgumentKind::Optional, "addOptional", a),
    ),
    row(
        "addParameter",
        3,
        6,
        0,
        "addParameter (p, name, default, check)",
        "Defines an argument that is given as its name and its value.",
        |i, a, _| define(&mut i.env, ArgumentKind::Parameter, "addParameter", a),
    ),
    row(
        "addParamValue",
        3,
        4,
        0,
        "addParamValue (p, name, default, check)",
        "Defines an argument that is given as its name and its value.",
        |i, a, _| define(&mut i.env, ArgumentKind::Parameter, "addParameter", a),
    ),
    row(
        "addSwitch",
        2,
        2,
        0,
        "addSwitch (p, name)",
        "Defines an argument that is true where its name is given.",
        |i, a, _| define(&mut i.env, ArgumentKind::Switch, "addSwitch", a),
    ),
    row(
        "parse",
        1,
        ANY,
        0,
        "parse (p, arguments...)",
        "Checks arguments against what was defined; p.Results has their values.",
        parse,
    ),
];

fn parser_of<'v>(name: &str, value: &'v Value) -> Flow<&'v Arc<Parser>> {
    match value {
        Value::Parser(parser) => Ok(parser),
        other => fail!("{name}: P must be an inputParser, not a {}", other.class_name()),
    }
}

fn define(env: &mut Env, kind: ArgumentKind, function: &str, args: &[Value]) -> Flow<Outcome> {
    env.host_all(args)?;
    let parser = parser_of(function, &args[0])?;
    let Some(name) = args[1].as_text() else {
        return fail!("inputParser.{function}: argname must be a string");
    };
    let (default, check) = match kind {
        ArgumentKind::Required => (Value::empty(), args.get(2)),
        ArgumentKind::Switch => (Value::Bool(false), None),
        _ => (args[2].clone(), args.get(3)),
    };
    let check = match check {
        None => None,
        Some(Value::Function(check)) => Some(check.clone()),
        Some(text) if text.is_string() && !text.is_empty() => {
            Some(Arc::new(Function::Named(text.as_text().unwrap_or_default().into(), None)))
        }
        Some(other) => return fail!("inputParser.{function}: a check is a function, not a {}", other.class_name()),
    };
    let defined = parser.arguments();
    let latest = defined.iter().map(|a| a.kind).max();
    match kind {
        ArgumentKind::Required if latest > Some(ArgumentKind::Required) => {
            return fail!(
                "inputParser.addRequired: can't have a Required argument after Optional, Parameter, or Switch"
            );
        }
        ArgumentKind::Optional if latest > Some(ArgumentKind::Optional) => {
            return fail!("inputParser.Optional: can't have Optional arguments after Parameter or Switch");
        }
        _ => {}
    }
    if defined.iter().any(|a| *a.name == *name) {
        return fail!("inputParser.{function}: argname '{name}' has already been specified");
    }
    parser.define(Argument { kind, name: name.into(), default, check });
    Ok(nothing())
}

fn parse(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let parser = parser_of("parse", &args[0])?;
    // The arguments contain names, which have to be known. Arrays are not needed here.
    interp.env.host_all(args[1..].iter().filter(|v| v.is_char() || matches!(v, Value::Struct(_))))?;
    let defined = parser.arguments();
    let positional = |kind| defined.iter().filter(|a| a.kind == kind).cloned().collect::<VecDeque<_>>();
    let parsing = Parsing {
        parser: parser.clone(),
        settings: parser.settings(),
        required: positional(ArgumentKind::Required),
        optional: positional(ArgumentKind::Optional),
        given: args[1..].iter().cloned().collect(),
        parsed: Parsed::default(),
        checking: None,
        defined,
    };
    if parsing.given.len() < parsing.required.len() {
        let who = match parsing.settings.function_name.is_empty() {
            true => "inputParser.parse: ",
            false => "",
        };
        return parsing.refuse(format_args!("{who}not enough input arguments"));
    }
    Ok(Outcome::Task(Box::new(parsing)))
}

/// A parsing in progress.
struct Parsing {
    parser: Arc<Parser>,
    settings: Settings,
    defined: Vec<Argument>,
    /// The arguments that must be given next.
    required: VecDeque<Argument>,
    optional: VecDeque<Argument>,
    /// The rest of the list.
    given: VecDeque<Value>,
    parsed: Parsed,
    /// The present check: the argument, its value, and whether the check was called without an output.
    checking: Option<(Argument, Value, bool)>,
}

/// The result of a check.
enum Verdict {
    Fits,
    Refused,
    Failed(ScriptError),
}

impl Task for Parsing {
    fn step(&mut self, interp: &mut Interp, last: Option<Result<Values, ScriptError>>) -> Flow<TaskStep> {
        if let Some((argument, value, silent)) = self.checking.take() {
            let verdict = match last {
                Some(Ok(values)) if !silent => match values.first() {
                    Some(answer) => match ops::truth(&mut interp.env, answer)? {
                        true => Verdict::Fits,
                        false => Verdict::Refused,
                    },
                    None => Verdict::Fits,
                },
                // A check without an output (validateattributes) refuses by an error, so it is called again without
                // outputs.
                Some(Err(error)) if !silent && gives_nothing(&error) => {
                    return Ok(self.ask(argument, value, true));
                }
                Some(Err(error)) => Verdict::Failed(error),
                _ => Verdict::Fits,
            };
            self.judged(argument, value, verdict)?;
        }
        while !self.given.is_empty() || !self.required.is_empty() {
            if let Some((argument, value)) = self.next()? {
                match argument.check {
                    Some(_) => return Ok(self.ask(argument, value, false)),
                    None => self.take(&argument, value),
                }
            }
        }
        self.fill();
        self.parser.finish(std::mem::take(&mut self.parsed));
        Ok(TaskStep::Done(Values::new()))
    }

    fn catches(&self) -> bool {
        self.checking.is_some()
    }
}

/// Whether an error tells that a function has no output to give.
fn gives_nothing(error: &ScriptError) -> bool {
    ["Octave:invalid-fun-call", "Octave:undefined-function"].contains(&&*error.identifier)
}

impl Parsing {
    fn refuse<T>(&self, message: impl std::fmt::Display) -> Flow<T> {
        match self.settings.function_name.is_empty() {
            true => fail!("{message}"),
            false => fail!("{}: {message}", self.settings.function_name),
        }
    }

    fn ask(&mut self, argument: Argument, value: Value, silent: bool) -> TaskStep {
        let Some(function) = argument.check.clone() else { return TaskStep::Done(Values::new()) };
        let args = vec![value.clone()];
        self.checking = Some((argument, value, silent));
        TaskStep::Call { function, args, nargout: !silent as usize }
    }

    /// Returns the next argument with its value; `None` if it took something that needs no check.
    fn next(&mut self) -> Flow<Option<(Argument, Value)>> {
        if let Some(argument) = self.required.pop_front() {
            return Ok(self.given.pop_front().map(|value| (argument, value)));
        }
        let names_one = |value: &Value| value.as_text().is_some_and(|name| self.named(&name).is_some());
        if let Some(first) = self.given.front()
            && !self.optional.is_empty()
        {
            if names_one(first) {
                self.optional.clear();
                return Ok(None);
            }
            let value = self.given.pop_front();
            return Ok(self.optional.pop_front().zip(value));
        }
        let Some(first) = self.given.pop_front() else { return Ok(None) };
        if let (Value::Struct(fields), true) = (&first, self.settings.struct_expand)
            && fields.len() == 1
        {
            for (name, values) in fields.fields.iter().rev() {
                self.given.push_front(values[0].clone());
                self.given.push_front(Value::string(name.as_bytes()));
            }
            return Ok(None);
        }
        let Some(name) = first.as_text() else { return self.refuse("non-string for Parameter name or Switch") };
        match self.named(&name) {
            Some(argument) if argument.kind == ArgumentKind::Switch => {
                self.take(&argument, Value::Bool(true));
                Ok(None)
            }
            Some(argument) => match self.given.pop_front() {
                Some(value) => Ok(Some((argument, value))),
                None => self.refuse(format_args!("no value for parameter '{}'", argument.name)),
            },
            None => match (self.settings.keep_unmatched, self.given.pop_front()) {
                (true, Some(value)) => {
                    self.parsed.unmatched.set(name, value);
                    Ok(None)
                }
                _ => self.refuse(format_args!("argument '{}' is not a valid parameter", name.to_uppercase())),
            },
        }
    }

    /// Finds the parameter or switch of this name.
    fn named(&self, name: &str) -> Option<Argument> {
        let is = |a: &&Argument| match self.settings.case_sensitive {
            true => *a.name == *name,
            false => a.name.eq_ignore_ascii_case(name),
        };
        self.defined.iter().filter(|a| a.kind >= ArgumentKind::Parameter).find(is).cloned()
    }

    fn take(&mut self, argument: &Argument, value: Value) {
        self.parsed.results.set(argument.name.clone(), value);
    }

    fn judged(&mut self, argument: Argument, value: Value, verdict: Verdict) -> Flow<()> {
        let name = argument.name.to_uppercase();
        let check = argument.check.as_ref().map_or(String::new(), |f| match &**f {
            Function::Named(name, _) => format!("@{name}"),
            other => other.text(),
        });
        match verdict {
            Verdict::Fits => self.take(&argument, value),
            // A text that is no valid value of an optional argument is a name, and a struct contains names.
            _ if argument.kind == ArgumentKind::Optional && self.may_hold_names(&value) => {
                self.optional.clear();
                self.given.push_front(value);
            }
            _ if argument.kind == ArgumentKind::Optional => {
                return self.refuse(format_args!("failed validation of {name}\nValidation function: {check}"));
            }
            Verdict::Failed(error) => {
                return self.refuse(format_args!("failed validation of {name}. {}", error.message));
            }
            Verdict::Refused => {
                let check = check.strip_prefix('@').filter(|c| !c.starts_with('(')).unwrap_or(&check);
                return self.refuse(format_args!("failed validation of {name}. Checked with \"{check}\""));
            }
        }
        Ok(())
    }

    fn may_hold_names(&self, value: &Value) -> bool {
        value.is_string() || self.settings.struct_expand && matches!(value, Value::Struct(s) if s.len() == 1)
    }

    fn defaulted(&mut self, argument: Argument) {
        self.parsed.defaults.push(argument.name.clone());
        self.take(&argument, argument.default.clone());
    }

    /// Sets arguments that were not given to their defaults: optional ones in the order of definition, named ones by
    /// name.
    fn fill(&mut self) {
        let mut missing = self.defined.clone();
        missing.sort_by(|a, b| match a.kind.cmp(&b.kind) {
            std::cmp::Ordering::Equal if a.kind >= ArgumentKind::Parameter => a.name.cmp(&b.name),
            order => order,
        });
        let mut positions = StructArray::scalar();
        for argument in missing.iter().filter(|a| a.kind <= ArgumentKind::Optional) {
            let given = self.parsed.results.get(&argument.name).cloned();
            if given.is_none() {
                self.parsed.defaults.push(argument.name.clone());
            }
            positions.set(argument.name.clone(), given.unwrap_or_else(|| argument.default.clone()));
        }
        // Arguments that are given by position come first.
        for (name, values) in &self.parsed.results.fields {
            positions.set(name.clone(), values[0].clone());
        }
        self.parsed.results = positions;
        for argument in missing.into_iter().filter(|a| a.kind >= ArgumentKind::Parameter) {
            if self.parsed.results.get(&argument.name).is_none() {
                self.defaulted(argument);
            }
        }
    }
}

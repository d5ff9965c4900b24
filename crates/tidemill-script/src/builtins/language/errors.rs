//! Errors, warnings and assertions.

use crate::builtins::{ANY, Builtin, Outcome, Reach, Task, TaskStep, nothing};
use crate::env::Env;
use crate::error::{Flow, ScriptError, fail, fail_id};
use crate::index::Values;
use crate::interrupt::Guard;
use crate::value::cleanup::{Cleanup, Due, Ended};
use crate::value::{Class, Dims, StructArray, Tensor, Value};
use crate::vm::{Interp, error_value};
use std::collections::VecDeque;
use std::sync::Arc;

/// The family.
pub static ROWS: &[Builtin] = &[
    Builtin {
        name: "error",
        args_min: 1,
        args_max: ANY,
        outputs_max: 0,
        reach: Reach::Script,
        usage: "error (id, template, …)",
        summary: "Raise an error.",
        run: error,
    },
    Builtin {
        name: "warning",
        args_min: 0,
        args_max: ANY,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "warning (id, template, …); warning (\"off\", id)",
        summary: "Print a warning, or switch warnings on and off.",
        run: warning,
    },
    Builtin {
        name: "lasterr",
        args_min: 0,
        args_max: 2,
        outputs_max: 2,
        reach: Reach::Script,
        usage: "[message, id] = lasterr ()",
        summary: "The last error's message.",
        run: lasterr,
    },
    Builtin {
        name: "lastwarn",
        args_min: 0,
        args_max: 2,
        outputs_max: 2,
        reach: Reach::Script,
        usage: "[message, id] = lastwarn ()",
        summary: "The last warning's message.",
        run: lastwarn,
    },
    Builtin {
        name: "lasterror",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "err = lasterror ()",
        summary: "The last error as a struct.",
        run: lasterror,
    },
    Builtin {
        name: "rethrow",
        args_min: 1,
        args_max: 1,
        outputs_max: 0,
        reach: Reach::Script,
        usage: "rethrow (err)",
        summary: "Raise an error that was caught, again.",
        run: rethrow,
    },
    Builtin {
        name: "throw",
        args_min: 1,
        args_max: 1,
        outputs_max: 0,
        reach: Reach::Script,
        usage: "throw (err)",
        summary: "Raise an error object.",
        run: rethrow,
    },
    Builtin {
        name: "MException",
        args_min: 2,
        args_max: ANY,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "err = MException (id, template, …)",
        summary: "An error object.",
        run: exception,
    },
    Builtin {
        name: "getReport",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "text = getReport (err)",
        summary: "An error object as text.",
        run: get_report,
    },
    Builtin {
        name: "onCleanup",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "obj = onCleanup (function)",
        summary: "An object whose end, by `clear` or with the variable that holds it, calls a function.",
        run: on_cleanup,
    },
    Builtin {
        name: "print_usage",
        args_min: 0,
        args_max: 1,
        outputs_max: 0,
        reach: Reach::Script,
        usage: "print_usage ()",
        summary: "Raise an error about how a function was called.",
        run: print_usage,
    },
    Builtin {
        name: "assert",
        args_min: 1,
        args_max: ANY,
        outputs_max: 0,
        reach: Reach::Script,
        usage: "assert (cond, template, …); assert (observed, expected, tolerance)",
        summary: "Raise an error unless a condition holds, or two values are equal.",
        run: super::assertion::assert,
    },
    Builtin {
        name: "nargchk",
        args_min: 3,
        args_max: 4,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "message = nargchk (least, most, n, \"struct\")",
        summary: "A message about a number of arguments, empty if it fits; or a struct with it.",
        run: nargchk,
    },
    Builtin {
        name: "narginchk",
        args_min: 2,
        args_max: 2,
        outputs_max: 0,
        reach: Reach::Script,
        usage: "narginchk (least, most)",
        summary: "Raise an error unless the function was called with a fitting number of arguments.",
        run: narginchk,
    },
    Builtin {
        name: "nargoutchk",
        args_min: 2,
        args_max: 4,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "nargoutchk (least, most)",
        summary: "Raise an error unless the function was asked for a fitting number of outputs; of a number, a message.",
        run: nargoutchk,
    },
];

/// Whether a text is an identifier, such as `package:reason`.
fn is_identifier(text: &str) -> bool {
    text.contains(':')
        && !text.starts_with(':')
        && !text.contains(char::is_whitespace)
        && !text.ends_with(':')
        && !text.contains('%')
}

/// Returns the identifier and the message that a template's arguments give.
fn message_of(env: &mut Env, args: &[Value], who: &str) -> Flow<(String, String)> {
    env.host_all(args)?;
    let Some(first) = args.first().and_then(Value::as_text) else {
        return fail!("{who}: format TEMPLATE must be a string");
    };
    if args.len() == 1 {
        if is_identifier(&first) {
            return Ok((String::new(), format!("call to {who} with message identifier '{first}' requires message")));
        }
        // A text without arguments is no template: its escapes and its `%` are kept.
        return Ok((String::new(), first));
    }
    let (identifier, template) = if is_identifier(&first) { (first, &args[1..]) } else { (String::new(), args) };
    let text = format_template(env, template)?;
    Ok((identifier, String::from_utf8_lossy(&text).into_owned()))
}

/// Returns the error that `error (args…)` raises, without the line end at its end.
pub(super) fn raised(env: &mut Env, args: &[Value]) -> Flow<ScriptError> {
    let (identifier, mut message) = message_of(env, args, "error")?;
    if message.ends_with('\n') {
        message.pop();
    }
    Ok(ScriptError::with_id(&identifier, message))
}

fn error(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    // An empty message raises no error.
    let silent = match args {
        [Value::Struct(s)] => s.get("message").is_some_and(Value::is_empty),
        [one] => !one.is_char() || one.is_empty(),
        [_, message] => message.is_char() && message.is_empty(),
        _ => false,
    };
    if silent {
        return Ok(nothing());
    }
    match &args[0] {
        Value::Struct(_) => rethrow(interp, args, 0),
        _ => Err(raised(&mut interp.env, args)?.into()),
    }
}

/// Returns the error that an error object or struct describes.
fn error_of(env: &mut Env, value: &Value) -> Flow<ScriptError> {
    let Value::Struct(s) = value else { return fail!("rethrow: ERR must be a struct") };
    env.host_all([value])?;
    let text = |name: &str| s.get(name).and_then(Value::as_text).unwrap_or_default();
    if s.get("message").is_none() {
        return fail!("rethrow: ERR must contain the fields 'message' and 'identifier'");
    }
    Ok(ScriptError::with_id(&text("identifier"), text("message")))
}

fn rethrow(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let error = error_of(&mut interp.env, &args[0])?;
    // An error that is raised again keeps its origin.
    if let Some(last) = &interp.env.last_error
        && last.message == error.message
        && last.identifier == error.identifier
    {
        return Err(last.clone().into());
    }
    Err(error.into())
}

fn exception(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let Some(identifier) = args[0].as_text() else { return fail!("MException: ID must be a string") };
    let text = format_template(&mut interp.env, &args[1..])?;
    let error = ScriptError::with_id(&identifier, String::from_utf8_lossy(&text));
    Ok(error_value(&error).into())
}

fn on_cleanup(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let Value::Function(function) = &args[0] else { return fail!("onCleanup: argument must be a function handle") };
    let due = interp.env.due.get_or_insert_default().clone();
    let mut object = StructArray::scalar().with_class(Some("onCleanup"));
    object.cleanup = Some(Arc::new(Cleanup::new(function.clone(), due, &interp.interrupt)));
    Ok(Value::Struct(Arc::new(object)).into())
}

/// A task that calls the functions of ended `onCleanup` objects. Their errors become warnings. If the task is dropped
/// early, the remaining functions are due again.
pub(crate) struct CleansUp {
    functions: VecDeque<Ended>,
    due: Arc<Due>,
    /// The guard of the running function.
    guard: Option<Guard>,
}

impl CleansUp {
    /// Takes all functions that are due.
    pub fn all(due: &Arc<Due>) -> CleansUp {
        CleansUp { functions: due.take(), due: due.clone(), guard: None }
    }
}

impl Drop for CleansUp {
    fn drop(&mut self) {
        self.due.give_back(std::mem::take(&mut self.functions));
    }
}

impl Task for CleansUp {
    fn step(&mut self, interp: &mut Interp, last: Option<Result<Values, ScriptError>>) -> Flow<TaskStep> {
        if let Some(Err(error)) = last {
            let words = "onCleanup: error caught while executing cleanup function:";
            interp.env.warn("", &format!("{words}\n{}\n", error.message));
        }
        while let Some(Ended { duty, guard }) = self.functions.pop_front() {
            if duty.take() {
                self.guard = Some(guard);
                return Ok(TaskStep::Call { function: duty.function.clone(), args: Vec::new(), nargout: 0 });
            }
        }
        Ok(TaskStep::Done(Values::new()))
    }

    fn catches(&self) -> bool {
        true
    }
}

fn get_report(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let error = error_of(&mut interp.env, &args[0])?;
    Ok(Value::string(format!("error: {}", error.message)).into())
}

fn print_usage(interp: &mut Interp, _: &[Value], _: usize) -> Flow<Outcome> {
    let name = interp.function_name();
    if name.is_empty() {
        return fail!("print_usage: only valid inside a function");
    }
    match crate::library::find(&name) {
        Some(written) => crate::builtins::invalid_call(written.name, written.usage),
        None if interp.is_in_function_file() => fail_id!("Octave:invalid-fun-call", "Invalid call to {name}"),
        None => fail!("print_usage: '{name}' not found"),
    }
}

/// Returns a struct array that tells which warnings are off; its first element is about all warnings.
fn warning_states(env: &Env) -> Value {
    let off = env.warnings_off.iter().filter(|id| *id != "all").map(|id| (id.as_str(), "off"));
    let all = ("all", if env.warnings_off.iter().any(|id| id == "all") { "off" } else { "on" });
    let (identifiers, states): (Vec<Value>, Vec<Value>) =
        std::iter::once(all).chain(off).map(|(id, state)| (Value::from(id), Value::from(state))).unzip();
    let mut array = StructArray::empty(Dims::new(&[1, identifiers.len()]));
    array.fields.insert("identifier".into(), identifiers);
    array.fields.insert("state".into(), states);
    Value::Struct(Arc::new(array))
}

/// Sets the state of warnings of an identifier: `on`, `off` or `error`.
fn set_warning(env: &mut Env, id: &str, state: &str) {
    for list in [&mut env.warnings_off, &mut env.warnings_as_errors] {
        list.retain(|known| known != id && id != "all");
    }
    match state {
        "off" => env.warnings_off.push(id.into()),
        "error" => env.warnings_as_errors.push(id.into()),
        _ => {}
    }
}

fn warning(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    env.host_all(args)?;
    let first = args.first().and_then(Value::as_text).unwrap_or_default();
    match first.to_ascii_lowercase().as_str() {
        _ if args.is_empty() && nargout == 0 => return Ok(nothing()),
        _ if args.is_empty() => {
            return Ok(warning_states(env).into());
        }
        word @ ("on" | "off" | "error" | "query") => {
            let id = match args.get(1) {
                Some(id) if !id.is_string() => return Ok(nothing()),
                Some(id) => id.as_text().unwrap_or_default(),
                None => "all".into(),
            };
            let was = match () {
                () if env.warnings_off.contains(&id) => "off",
                () if env.warnings_as_errors.contains(&id) => "error",
                () => "on",
            };
            if word != "query" {
                set_warning(env, &id, word);
            }
            let mut state = StructArray::scalar();
            state.set("identifier", id);
            state.set("state", was);
            let wanted = nargout > 0 || word == "query";
            return Ok(if wanted { Value::Struct(Arc::new(state)).into() } else { nothing() });
        }
        _ => {}
    }
    if let Value::Struct(states) = &args[0] {
        let before = if nargout > 0 { warning_states(env).into() } else { nothing() };
        for i in 0..states.len() {
            let state = states.element(i);
            let text = |name: &str| state.get(name).and_then(Value::as_text).unwrap_or_default();
            let id = text("identifier");
            if !["on", "off", "error"].contains(&text("state").as_str()) {
                return fail!("invalid warning state: {}", text("state"));
            }
            set_warning(env, &id, &text("state"));
        }
        return Ok(before);
    }
    let (identifier, message) = message_of(env, args, "warning")?;
    env.warn(&identifier, &message);
    Ok(nothing())
}

fn lasterr(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let last = interp.env.last_error.clone();
    if args.iter().any(|arg| !arg.is_string()) {
        return fail!("lasterr: all arguments must be strings");
    }
    if let Some(message) = args.first().and_then(Value::as_text) {
        let id = args.get(1).and_then(Value::as_text).unwrap_or_default();
        interp.env.last_error = Some(ScriptError::with_id(&id, message));
        if nargout == 0 {
            return Ok(nothing());
        }
    }
    let (message, identifier) = last.map_or_else(Default::default, |e| (e.message, e.identifier));
    Ok(vec![Value::string(message), Value::string(identifier)].into())
}

fn lastwarn(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let (message, identifier) = interp.env.last_warning.clone();
    if let Some(text) = args.first().and_then(Value::as_text) {
        interp.env.last_warning = (text, args.get(1).and_then(Value::as_text).unwrap_or_default());
        if nargout == 0 {
            return Ok(nothing());
        }
    }
    Ok(vec![Value::string(message), Value::string(identifier)].into())
}

fn lasterror(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if args.first().and_then(Value::as_text).as_deref() == Some("reset") {
        interp.env.last_error = None;
    }
    let error = interp.env.last_error.clone().unwrap_or_else(|| ScriptError::new(""));
    // It returns a struct, as it did before there were exceptions.
    Ok(match error_value(&error) {
        Value::Struct(exception) => {
            let mut plain = Arc::unwrap_or_clone(exception);
            plain.class = None;
            Value::Struct(Arc::new(plain))
        }
        other => other,
    }
    .into())
}

fn nargchk(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    Ok(count_message(&mut interp.env, "nargchk", "input", args)?.into())
}

/// Returns the message, as a text or a struct, if the third of three numbers does not lie between the other two.
fn count_message(env: &mut Env, who: &str, what: &str, args: &[Value]) -> Flow<Value> {
    let numbers = numbers(env, &args[..3])?;
    let as_struct = match args.get(3) {
        None => false,
        Some(kind) if crate::builtins::args::is_word(kind, "string") => false,
        Some(kind) if crate::builtins::args::is_word(kind, "struct") => true,
        Some(_) => return fail!("{who}: output type must be either \"string\" or \"struct\""),
    };
    if numbers[0] > numbers[1] {
        return fail!("{who}: MINARGS must be <= MAXARGS");
    }
    let how = if numbers[2] < numbers[0] {
        Some(("not enough", "not-enough"))
    } else if numbers[2] > numbers[1] {
        Some(("too many", "too-many"))
    } else {
        None
    };
    Ok(match how {
        None if as_struct => {
            let mut none = StructArray::empty(Dims::new(&[0, 1]));
            none.fields = [("message".into(), Vec::new()), ("identifier".into(), Vec::new())].into_iter().collect();
            Value::Struct(Arc::new(none))
        }
        None => Value::tensor(Tensor::zeros(Class::Char, Dims::zero())),
        Some((words, _)) if !as_struct => Value::string(format!("{words} {what} arguments")),
        Some((words, id)) => {
            let mut said = StructArray::scalar();
            said.set("message", Value::string(format!("{words} {what} arguments")));
            said.set("identifier", Value::string(format!("Octave:{who}:{id}-{what}s")));
            Value::Struct(Arc::new(said))
        }
    })
}

fn numbers(env: &mut Env, args: &[Value]) -> Flow<Vec<f64>> {
    env.host_all(args)?;
    args.iter().map(|a| env.host(a).map(|t| if t.is_empty() { 0.0 } else { t.data.f64_at(0) })).collect()
}

fn narginchk(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let bounds = numbers(&mut interp.env, args)?;
    let n = interp.nargin().unwrap_or(0) as f64;
    if n < bounds[0] {
        return fail!("narginchk: not enough input arguments");
    }
    if n > bounds[1] {
        return fail!("narginchk: too many input arguments");
    }
    Ok(nothing())
}

fn nargoutchk(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if args.len() > 2 {
        return Ok(count_message(&mut interp.env, "nargoutchk", "output", args)?.into());
    }
    let bounds = numbers(&mut interp.env, args)?;
    let n = interp.nargout().unwrap_or(0) as f64;
    if n < bounds[0] {
        return fail!("nargoutchk: Not enough output arguments");
    }
    if n > bounds[1] {
        return fail!("nargoutchk: Too many output arguments");
    }
    Ok(nothing())
}

fn format_template(env: &mut Env, args: &[Value]) -> Flow<Vec<u8>> {
    crate::display::template::format(env, "error", &args[0], &args[1..])
}

//! Errors, warnings and assertions.

use super::{ANY, Builtin, Outcome, nothing};
use crate::script::env::Env;
use crate::script::error::{Flow, ScriptError, Stop, fail, fail_id};
use crate::script::value::{Data, StructArray, Tensor, Value};
use crate::script::vm::{Interp, error_value};
use std::sync::Arc;

/// The family.
pub static ROWS: &[Builtin] = &[
    Builtin {
        name: "error",
        args_min: 1,
        args_max: ANY,
        outputs_max: 0,
        usage: "error (id, template, …)",
        summary: "Raise an error.",
        run: error,
    },
    Builtin {
        name: "warning",
        args_min: 0,
        args_max: ANY,
        outputs_max: 1,
        usage: "warning (id, template, …); warning (\"off\", id)",
        summary: "Print a warning, or switch warnings on and off.",
        run: warning,
    },
    Builtin {
        name: "lasterr",
        args_min: 0,
        args_max: 2,
        outputs_max: 2,
        usage: "[message, id] = lasterr ()",
        summary: "The last error's message.",
        run: lasterr,
    },
    Builtin {
        name: "lastwarn",
        args_min: 0,
        args_max: 2,
        outputs_max: 2,
        usage: "[message, id] = lastwarn ()",
        summary: "The last warning's message.",
        run: lastwarn,
    },
    Builtin {
        name: "lasterror",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        usage: "err = lasterror ()",
        summary: "The last error as a struct.",
        run: lasterror,
    },
    Builtin {
        name: "rethrow",
        args_min: 1,
        args_max: 1,
        outputs_max: 0,
        usage: "rethrow (err)",
        summary: "Raise an error that was caught, again.",
        run: rethrow,
    },
    Builtin {
        name: "throw",
        args_min: 1,
        args_max: 1,
        outputs_max: 0,
        usage: "throw (err)",
        summary: "Raise an error object.",
        run: rethrow,
    },
    Builtin {
        name: "MException",
        args_min: 2,
        args_max: ANY,
        outputs_max: 1,
        usage: "err = MException (id, template, …)",
        summary: "An error object.",
        run: exception,
    },
    Builtin {
        name: "getReport",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        usage: "text = getReport (err)",
        summary: "An error object as text.",
        run: get_report,
    },
    Builtin {
        name: "print_usage",
        args_min: 0,
        args_max: 1,
        outputs_max: 0,
        usage: "print_usage ()",
        summary: "Raise an error about how a function was called.",
        run: print_usage,
    },
    Builtin {
        name: "assert",
        args_min: 1,
        args_max: ANY,
        outputs_max: 0,
        usage: "assert (cond, template, …); assert (observed, expected, tolerance)",
        summary: "Raise an error unless a condition holds, or two values are equal.",
        run: assert,
    },
    Builtin {
        name: "nargchk",
        args_min: 3,
        args_max: 4,
        outputs_max: 1,
        usage: "message = nargchk (least, most, n)",
        summary: "A message about a number of arguments, empty if it fits.",
        run: nargchk,
    },
    Builtin {
        name: "narginchk",
        args_min: 2,
        args_max: 2,
        outputs_max: 0,
        usage: "narginchk (least, most)",
        summary: "Raise an error unless the function was called with a fitting number of arguments.",
        run: narginchk,
    },
    Builtin {
        name: "nargoutchk",
        args_min: 2,
        args_max: 3,
        outputs_max: 1,
        usage: "nargoutchk (least, most)",
        summary: "Raise an error unless the function was asked for a fitting number of outputs.",
        run: nargoutchk,
    },
];

/// Whether a text is an identifier, as `package:reason`.
fn is_identifier(text: &str) -> bool {
    text.contains(':') && !text.contains(char::is_whitespace) && !text.ends_with(':') && !text.contains('%')
}

/// Identifier and message from a template's arguments.
fn message_of(env: &mut Env, args: &[Value], who: &str) -> Flow<(String, String)> {
    env.host_all(args)?;
    let Some(first) = args.first().and_then(Value::as_text) else {
        return fail!("{who}: format TEMPLATE must be a string");
    };
    if args.len() > 1 && is_identifier(&first) {
        let text = format_template(env, &args[1..])?;
        return Ok((first, String::from_utf8_lossy(&text).into_owned()));
    }
    if args.len() == 1 && is_identifier(&first) && !first.contains("\\") {
        return Ok((first, format!("unspecified {who}")));
    }
    let text = format_template(env, args)?;
    Ok((String::new(), String::from_utf8_lossy(&text).into_owned()))
}

fn error(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if let Value::Struct(_) = &args[0] {
        return rethrow(interp, args, 0);
    }
    let (identifier, message) = message_of(&mut interp.env, args, "error")?;
    Err(ScriptError::with_id(&identifier, message).into())
}

/// The error that an error object or struct describes.
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
    // An error that is raised again keeps where it came from.
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

fn get_report(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let error = error_of(&mut interp.env, &args[0])?;
    Ok(Value::string(format!("error: {}", error.message)).into())
}

fn print_usage(interp: &mut Interp, _: &[Value], _: usize) -> Flow<Outcome> {
    let name = interp.function_name();
    if name.is_empty() {
        return fail!("print_usage: only valid inside a function");
    }
    fail_id!("Octave:invalid-fun-call", "Invalid call to {name}")
}

fn warning(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    env.host_all(args)?;
    let first = args.first().and_then(Value::as_text).unwrap_or_default();
    match first.as_str() {
        _ if args.is_empty() => return Ok(nothing()),
        "on" | "off" | "error" | "query" => {
            let id = args.get(1).and_then(Value::as_text).unwrap_or_else(|| "all".into());
            let was = if env.warnings_off.contains(&id) { "off" } else { "on" };
            match first.as_str() {
                "on" => env.warnings_off.retain(|w| *w != id && id != "all"),
                "off" => env.warnings_off.push(id.clone()),
                _ => {}
            }
            let mut state = StructArray::scalar();
            state.set("identifier", id);
            state.set("state", was);
            let wanted = nargout > 0 || first == "query";
            return Ok(if wanted { Value::Struct(Arc::new(state)).into() } else { nothing() });
        }
        _ => {}
    }
    if let Value::Struct(states) = &args[0] {
        for i in 0..states.len() {
            let state = states.element(i);
            let text = |name: &str| state.get(name).and_then(Value::as_text).unwrap_or_default();
            let id = text("identifier");
            env.warnings_off.retain(|w| *w != id);
            if text("state") == "off" {
                env.warnings_off.push(id);
            }
        }
        return Ok(nothing());
    }
    let (identifier, message) = message_of(env, args, "warning")?;
    env.warn(&identifier, &message);
    Ok(nothing())
}

fn lasterr(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let last = interp.env.last_error.clone();
    if let Some(message) = args.first().and_then(Value::as_text) {
        let id = args.get(1).and_then(Value::as_text).unwrap_or_default();
        interp.env.last_error = Some(ScriptError::with_id(&id, message));
        if nargout == 0 {
            return Ok(nothing());
        }
    }
    let (message, identifier) = last.map_or_else(Default::default, |e| (format!("error: {}", e.message), e.identifier));
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
    Ok(error_value(&error).into())
}

fn nargchk(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let numbers = numbers(&mut interp.env, &args[..3])?;
    let message = if numbers[2] < numbers[0] {
        "not enough input arguments"
    } else if numbers[2] > numbers[1] {
        "too many input arguments"
    } else {
        return Ok(Value::empty().into());
    };
    Ok(Value::string(message).into())
}

fn numbers(env: &mut Env, args: &[Value]) -> Flow<Vec<f64>> {
    env.host_all(args)?;
    args.iter().map(|a| env.host(a).map(|t| if t.is_empty() { 0.0 } else { t.data.f64_at(0) })).collect()
}

fn narginchk(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let bounds = numbers(&mut interp.env, args)?;
    let n = interp.nargin().unwrap_or(0) as f64;
    if n < bounds[0] {
        return fail_id!("Octave:invalid-fun-call", "narginchk: not enough input arguments");
    }
    if n > bounds[1] {
        return fail_id!("Octave:invalid-fun-call", "narginchk: too many input arguments");
    }
    Ok(nothing())
}

fn nargoutchk(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let bounds = numbers(&mut interp.env, args)?;
    let n = interp.nargout().unwrap_or(0) as f64;
    if n < bounds[0] {
        return fail_id!("Octave:invalid-fun-call", "nargoutchk: Not enough output arguments.");
    }
    if n > bounds[1] {
        return fail_id!("Octave:invalid-fun-call", "nargoutchk: Too many output arguments.");
    }
    Ok(nothing())
}

/// `assert` in MATLAB's form (a condition and a message) and in Octave's (observed, expected, tolerance).
fn assert(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let is_condition = match args {
        [_] => true,
        [first, second, ..] => {
            second.is_string() && !first.is_char() && !matches!(first, Value::Cell(_) | Value::Struct(_))
        }
        [] => true,
    };
    if is_condition {
        if holds(&mut interp.env, &args[0])? {
            return Ok(nothing());
        }
        if args.len() > 1 {
            let (identifier, message) = message_of(&mut interp.env, &args[1..], "error")?;
            return Err(ScriptError::with_id(&identifier, message).into());
        }
        return fail!("assert ({}) failed", written_arguments(interp));
    }
    let tolerance = match args.get(2) {
        Some(t) => interp.env.host(t)?.data.f64_at(0),
        None => 0.0,
    };
    match difference(&mut interp.env, &args[0], &args[1], tolerance, "()")? {
        None => Ok(nothing()),
        Some((place, observed, expected, reason)) => fail!(
            "ASSERT errors for:  assert ({})\n\n  Location | Observed | Expected | Reason\n    {place}          {observed}          {expected}          {reason}",
            written_arguments(interp)
        ),
    }
}

fn holds(env: &mut Env, value: &Value) -> Flow<bool> {
    if value.is_empty() {
        return Ok(false);
    }
    match crate::script::ops::truth(env, value) {
        Err(Stop::Error(_)) => Ok(false),
        other => other,
    }
}

/// The arguments of the call that runs, as they are written.
fn written_arguments(interp: &Interp) -> String {
    let Some(place) = interp.here() else { return "cond".into() };
    let text = place.source.text.get(place.span.range()).unwrap_or_default();
    match (text.find('('), text.rfind(')')) {
        (Some(open), Some(close)) if open < close => text[open + 1..close].trim().replace(", ", ","),
        _ => "cond".into(),
    }
}

type Difference = Option<(String, String, String, String)>;

/// The first difference of two values, if they differ by more than the tolerance (negative: relative).
fn difference(env: &mut Env, a: &Value, b: &Value, tolerance: f64, place: &str) -> Flow<Difference> {
    let differ = |o: String, e: String, reason: &str| Ok(Some((place.to_string(), o, e, reason.to_string())));
    match (a, b) {
        (Value::Cell(x), Value::Cell(y)) => {
            if x.dims != y.dims {
                return differ(format!("O({})", x.dims), format!("E({})", y.dims), "Dimensions don't match");
            }
            for (i, (x, y)) in x.items.iter().zip(&y.items).enumerate() {
                if let Some(found) = difference(env, x, y, tolerance, &format!("{{{}}}", i + 1))? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        }
        (Value::Struct(x), Value::Struct(y)) => {
            if x.dims != y.dims || x.fields.len() != y.fields.len() {
                return differ("O".into(), "E".into(), "Structure sizes don't match");
            }
            for (name, values) in &x.fields {
                let Some(others) = y.fields.get(name) else {
                    return differ("O".into(), "E".into(), "Structure fields don't match");
                };
                for (v, w) in values.iter().zip(others) {
                    if let Some(found) = difference(env, v, w, tolerance, &format!(".{name}"))? {
                        return Ok(Some(found));
                    }
                }
            }
            Ok(None)
        }
        (Value::Function(x), Value::Function(y)) => {
            if x.text() == y.text() {
                Ok(None)
            } else {
                differ(x.text(), y.text(), "Functions don't match")
            }
        }
        (Value::Cell(_) | Value::Struct(_) | Value::Function(_), _)
        | (_, Value::Cell(_) | Value::Struct(_) | Value::Function(_)) => {
            differ("O".into(), "E".into(), "Class mismatch")
        }
        (a, b) => {
            let (class_a, class_b) = (a.class(), b.class());
            let (x, y) = (env.host(a)?, env.host(b)?);
            let scalar_expected = tolerance != 0.0 && y.len() == 1 && x.len() != 1;
            if x.dims != y.dims && !scalar_expected {
                return differ(format!("O({})", x.dims), format!("E({})", y.dims), "Dimensions don't match");
            }
            if tolerance == 0.0 && class_a != class_b {
                return differ("O".into(), "E".into(), &format!("Class {} != {}", class_a.name(), class_b.name()));
            }
            Ok(elements_differ(&x, &y, tolerance))
        }
    }
}

fn elements_differ(x: &Tensor, y: &Tensor, tolerance: f64) -> Difference {
    for i in 0..x.len() {
        let (a, b) = (x.data.c64_at(i), y.data.c64_at(if y.len() == 1 { 0 } else { i }));
        let same = a == b || (a.re.is_nan() && b.re.is_nan() && (a.im == b.im || a.im.is_nan() && b.im.is_nan()));
        let exact = match (&x.data, &y.data) {
            (Data::I64(p), Data::I64(q)) => p[i] == q[if q.len() == 1 { 0 } else { i }],
            (Data::U64(p), Data::U64(q)) => p[i] == q[if q.len() == 1 { 0 } else { i }],
            _ => same,
        };
        if exact {
            continue;
        }
        let error = (a - b).norm();
        let allowed = if tolerance < 0.0 { -tolerance * b.norm() } else { tolerance };
        if tolerance != 0.0 && error <= allowed {
            continue;
        }
        let reason = if tolerance < 0.0 {
            format!(
                "Rel err {:.5e} exceeds tol {:.5e} by {:.1e}",
                error / b.norm(),
                -tolerance,
                error / b.norm() + tolerance
            )
        } else {
            format!("Abs err {error:.5e} exceeds tol {tolerance:.5e} by {:.1e}", error - tolerance)
        };
        let place = if x.len() == 1 { "()".to_string() } else { format!("({})", i + 1) };
        return Some((place, format!("{}", a.re), format!("{}", b.re), reason));
    }
    None
}

fn format_template(env: &mut Env, args: &[Value]) -> Flow<Vec<u8>> {
    crate::script::display::template::format(env, "error", &args[0], &args[1..])
}

//! Functions with which a script asks about its calls: evaluated text, existing names, numbers of arguments.

use super::functions;
use crate::builtins::{ANY, Builtin, Outcome, Reach, Scope};
use crate::error::{Flow, fail};
use crate::memory;
use crate::value::{Class, Data, Tensor, Value};
use crate::vm::{Callee, Interp};
use std::path::PathBuf;

/// The family.
pub static ROWS: &[Builtin] = &[
    Builtin {
        name: "eval",
        args_min: 1,
        args_max: 2,
        outputs_max: ANY,
        reach: Reach::Script,
        usage: "eval (try, catch)",
        summary: "Run a text in the caller's variables.",
        run: eval,
    },
    Builtin {
        name: "evalc",
        args_min: 1,
        args_max: 2,
        outputs_max: ANY,
        reach: Reach::Script,
        usage: "[text, ...] = evalc (try, catch)",
        summary: "Run a text and give what it prints, and the values that it gives.",
        run: evalc,
    },
    Builtin {
        name: "evalin",
        args_min: 2,
        args_max: 3,
        outputs_max: ANY,
        reach: Reach::Script,
        usage: "evalin (\"caller\", try, catch)",
        summary: "Run a text in the caller's or the script's variables.",
        run: evalin,
    },
    Builtin {
        name: "source",
        args_min: 1,
        args_max: 1,
        outputs_max: 0,
        reach: Reach::Outside,
        usage: "source (file)",
        summary: "Run a script file in the caller's variables.",
        run: source,
    },
    Builtin {
        name: "exist",
        args_min: 1,
        args_max: 2,
        outputs_max: 1,
        reach: Reach::Partly,
        usage: "exist (name, kind)",
        summary: "What a name stands for: 1 a variable, 2 a file, 5 a builtin, 7 a folder, 103 a function of the script, 0 nothing.",
        run: exist,
    },
    Builtin {
        name: "nargin",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "nargin",
        summary: "How many arguments the function was called with, or takes.",
        run: nargin,
    },
    Builtin {
        name: "nargout",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "nargout",
        summary: "How many outputs the function was asked for, or gives.",
        run: nargout,
    },
    Builtin {
        name: "isargout",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "isargout (k)",
        summary: "Whether the function's k-th output was asked for.",
        run: isargout,
    },
    Builtin {
        name: "mfilename",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Partly,
        usage: "mfilename ()",
        summary: "The name of the file that runs.",
        run: mfilename,
    },
    Builtin {
        name: "inputname",
        args_min: 1,
        args_max: 2,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "name = inputname (n, ids_only)",
        summary: "The name of the variable that was given as an argument.",
        run: inputname,
    },
];

/// Reads an argument as text.
///
/// # Errors
/// A value that is no text.
pub fn text(value: &Value, who: &str, what: &str) -> Flow<String> {
    match value.as_text() {
        Some(text) => Ok(text),
        None => fail!("{who}: {what} must be a string"),
    }
}

fn eval(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    tried("eval", args, false, Scope::Here)
}

fn evalc(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    tried("evalc", args, true, Scope::Here)
}

fn evalin(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let scope = scope(&args[0], "evalin")?;
    tried("evalin", &args[1..], false, scope)
}

/// Evaluates a text, and another one if the first fails.
fn tried(who: &str, args: &[Value], capture: bool, scope: Scope) -> Flow<Outcome> {
    let handler = args.get(1).map(|handler| text(handler, who, "CATCH")).transpose()?;
    Ok(Outcome::Eval { text: text(&args[0], who, "TRY")?, handler, capture, scope })
}

/// Returns the frame that an argument names.
///
/// # Errors
/// A word that names no frame.
pub fn scope(value: &Value, who: &str) -> Flow<Scope> {
    match value.as_text().as_deref() {
        Some("caller") => Ok(Scope::Caller),
        Some("base") => Ok(Scope::Base),
        _ => fail!("{who}: CONTEXT must be \"caller\" or \"base\""),
    }
}

fn source(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let mut path = interp.env.at(&text(&args[0], "source", "FILE")?);
    if !path.exists() {
        path.set_extension("m");
    }
    match memory::read(&path) {
        Ok(bytes) => {
            let (name, text) = (path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned());
            Ok(Outcome::File { name, text })
        }
        Err(_) => fail!("source: error sourcing file '{}'", path.display()),
    }
}

fn exist(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    // An empty argument, of any class, names nothing.
    if args.iter().any(|arg| arg.is_empty() && !matches!(arg, Value::Map(_))) {
        return Ok(Value::Num(0.0).into());
    }
    let name = text(&args[0], "exist", "NAME")?;
    let kind = args.get(1).map_or(Ok(String::new()), |kind| text(kind, "exist", "TYPE"))?;
    if !["", "var", "builtin", "file", "dir", "class"].contains(&kind.as_str()) {
        return fail!("exist: unrecognized type argument \"{kind}\"");
    }
    let any = kind.is_empty();
    let mut code = 0;
    if (any || kind == "var") && interp.variable(&name).is_some() {
        code = 1;
    }
    if code == 0 && (any || kind == "builtin" || kind == "file") {
        code = match interp.lookup(&name) {
            Ok(Some(Callee::User(_) | Callee::Script(_))) if interp.files.contains_key(name.as_str()) => 2,
            Ok(Some(Callee::User(code))) if crate::library::holds(&code) => 2,
            Ok(Some(Callee::User(_) | Callee::Nested(..))) if any => 103,
            Ok(Some(Callee::Builtin(_))) if kind != "file" => 5,
            Ok(Some(Callee::Builtin(_))) => 2,
            _ => 0,
        };
    }
    let asks_for_files = kind == "file" || kind == "dir";
    // In a sandbox, a question about files only is refused. A question about names of all kinds is answered as if there
    // were no files.
    if code == 0 && asks_for_files {
        interp.check_outside("exist")?;
    }
    if code == 0 && (any || asks_for_files) {
        match std::fs::metadata(interp.env.found(&name)) {
            Ok(meta) if meta.is_dir() => code = 7,
            Ok(_) if kind != "dir" => code = 2,
            _ => {}
        }
    }
    Ok(Value::Num(code as f64).into())
}

fn nargin(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let n = match args.first() {
        None => interp.nargin().unwrap_or(interp.env.options.arguments.len()) as f64,
        Some(value) => arity(interp, value, true)?,
    };
    Ok(Value::Num(n).into())
}

fn nargout(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let n = match args.first() {
        None => interp.nargout().unwrap_or(0) as f64,
        Some(value) => arity(interp, value, false)?,
    };
    Ok(Value::Num(n).into())
}

/// Returns how many arguments or outputs a function takes; negative if the number is variable.
fn arity(interp: &mut Interp, value: &Value, inputs: bool) -> Flow<f64> {
    use crate::value::Function;
    let function = functions::function_of(value, "nargin")?;
    let code = match &*function {
        Function::Anonymous(closure) => closure.code.clone(),
        Function::Method(name, _) => return fail!("nargin: invalid function name: {name}"),
        Function::Named(name, source) => match interp.lookup_named(name, source.as_ref())? {
            Some(Callee::User(code) | Callee::Nested(code, _)) => code,
            Some(Callee::Builtin(b)) => {
                let n = if inputs { b.args_max } else { b.outputs_max };
                return Ok(if n == ANY { -1.0 } else { n as f64 });
            }
            _ => return fail!("nargin: invalid function name: {name}"),
        },
    };
    let (fixed, variable) = if inputs {
        (code.params.len(), code.varargin.is_some())
    } else {
        (code.outputs.len(), code.varargout.is_some() || !code.text.is_empty())
    };
    Ok(if variable { -(fixed as f64) - 1.0 } else { fixed as f64 })
}

fn isargout(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let host = match &args[0] {
        value if !(value.is_numeric() || value.class() == Class::Logical) => {
            return fail!("isargout: wrong type argument '{}'", value.type_name());
        }
        value => interp.env.host(value)?,
    };
    let numbers = host.data.to_f64();
    if numbers.iter().any(|k| !(*k >= 1.0 && *k == k.trunc())) {
        return fail!("isargout: K must be a positive integer");
    }
    let (wanted, ignored) = (interp.nargout().unwrap_or(0).max(1) as f64, interp.ignored_outputs());
    let asked = |&k: &f64| k <= wanted && !ignored.get(k as usize - 1).copied().unwrap_or(false);
    Ok(Value::tensor(Tensor::new(host.dims.clone(), Data::Bool(numbers.iter().map(asked).collect()))).into())
}

fn mfilename(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let name = interp.here().map(|p| p.source.name.clone()).unwrap_or_default();
    let path = PathBuf::from(name);
    let option = args.first().and_then(Value::as_text).unwrap_or_default();
    let out = match option.as_str() {
        "fullpath" | "fullpathext" => {
            interp.check_outside("mfilename")?;
            let full = std::path::absolute(&path).unwrap_or(path);
            if option == "fullpath" { full.with_extension("") } else { full }
        }
        _ => PathBuf::from(path.file_stem().unwrap_or_default()),
    };
    Ok(Value::string(out.display().to_string()).into())
}

/// Returns the name of the variable that was given as an argument, as it is written in the call.
fn inputname(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let n = crate::builtins::args::number(&interp.env, "inputname", &args[0])?;
    if n < 1.0 || n != n.trunc() {
        return fail!("inputname: N must be a positive integer");
    }
    let Some(given) = interp.nargin() else {
        return fail!("inputname: must be used from within a function");
    };
    if n > given as f64 {
        return Ok(Value::string("").into());
    }
    let names_only = match args.get(1) {
        Some(only) => crate::ops::truth(&mut interp.env, only)?,
        None => true,
    };
    let call = interp.calling_place();
    let written = call
        .and_then(|place| crate::builtins::language::assertion::arguments(place.source.text.get(place.span.range())?));
    let name = written.and_then(|list| list.into_iter().nth(n as usize - 1)).unwrap_or_default();
    // A variable that was used for the last time has no value left, but it is a variable if no function has its name.
    let is_variable = crate::builtins::language::variables::is_name(&name)
        && (interp.caller_has(&name) || !names_only || interp.lookup(&name)?.is_none());
    Ok(Value::string(if names_only && !is_variable { "" } else { &name }).into())
}

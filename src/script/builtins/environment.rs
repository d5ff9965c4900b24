//! What a script asks about itself and its surroundings: variables, arguments, evaluated text, time, the process.

use super::{ANY, Builtin, Outcome, Scope, calls, nothing};
use crate::script::error::{Flow, Stop, fail};
use crate::script::value::{CellArray, Class, Data, Dims, Tensor, Value};
use crate::script::vm::{Callee, Interp};
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The family.
pub static ROWS: &[Builtin] = &[
    Builtin {
        name: "eval",
        args_min: 1,
        args_max: 2,
        outputs_max: ANY,
        usage: "eval (try, catch)",
        summary: "Run a text in the caller's variables.",
        run: eval,
    },
    Builtin {
        name: "evalc",
        args_min: 1,
        args_max: 2,
        outputs_max: 1,
        usage: "text = evalc (try, catch)",
        summary: "Run a text and give what it prints.",
        run: evalc,
    },
    Builtin {
        name: "run",
        args_min: 1,
        args_max: 1,
        outputs_max: 0,
        usage: "run (file)",
        summary: "Run a script file in the caller's variables.",
        run: run_file,
    },
    Builtin {
        name: "source",
        args_min: 1,
        args_max: 1,
        outputs_max: 0,
        usage: "source (file)",
        summary: "Run a script file in the caller's variables.",
        run: run_file,
    },
    Builtin {
        name: "exist",
        args_min: 1,
        args_max: 2,
        outputs_max: 1,
        usage: "exist (name, kind)",
        summary: "What a name stands for: 1 a variable, 2 a file, 5 a builtin, 7 a folder, 103 a function of the script, 0 nothing.",
        run: exist,
    },
    Builtin {
        name: "isvarname",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        usage: "isvarname (text)",
        summary: "Whether a text may name a variable.",
        run: isvarname,
    },
    Builtin {
        name: "iskeyword",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        usage: "iskeyword (text)",
        summary: "Whether a text is a word of the language.",
        run: iskeyword,
    },
    Builtin {
        name: "isglobal",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        usage: "isglobal (name)",
        summary: "Whether a variable is global.",
        run: isglobal,
    },
    Builtin {
        name: "clear",
        args_min: 0,
        args_max: ANY,
        outputs_max: 0,
        usage: "clear name…",
        summary: "Remove variables.",
        run: clear,
    },
    Builtin {
        name: "clearvars",
        args_min: 0,
        args_max: ANY,
        outputs_max: 0,
        usage: "clearvars name…",
        summary: "Remove variables.",
        run: clear,
    },
    Builtin {
        name: "who",
        args_min: 0,
        args_max: ANY,
        outputs_max: 1,
        usage: "who",
        summary: "The names of variables.",
        run: who,
    },
    Builtin {
        name: "assignin",
        args_min: 3,
        args_max: 3,
        outputs_max: 0,
        usage: "assignin (\"caller\", name, value)",
        summary: "Set a variable by its name.",
        run: assignin,
    },
    Builtin {
        name: "evalin",
        args_min: 2,
        args_max: 3,
        outputs_max: ANY,
        usage: "evalin (\"caller\", try, catch)",
        summary: "Run a text in the caller's or the script's variables.",
        run: evalin,
    },
    Builtin {
        name: "inputname",
        args_min: 1,
        args_max: 2,
        outputs_max: 1,
        usage: "name = inputname (n, ids_only)",
        summary: "The name of the variable that was given as an argument.",
        run: inputname,
    },
    Builtin {
        name: "nargin",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        usage: "nargin",
        summary: "How many arguments the function was called with, or takes.",
        run: nargin,
    },
    Builtin {
        name: "nargout",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        usage: "nargout",
        summary: "How many outputs the function was asked for, or gives.",
        run: nargout,
    },
    Builtin {
        name: "isargout",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        usage: "isargout (k)",
        summary: "Whether the function's k-th output was asked for.",
        run: isargout,
    },
    Builtin {
        name: "mfilename",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        usage: "mfilename ()",
        summary: "The name of the file that runs.",
        run: mfilename,
    },
    Builtin {
        name: "exit",
        args_min: 0,
        args_max: 2,
        outputs_max: 0,
        usage: "exit (status)",
        summary: "End the script.",
        run: exit,
    },
    Builtin {
        name: "quit",
        args_min: 0,
        args_max: 2,
        outputs_max: 0,
        usage: "quit (status)",
        summary: "End the script.",
        run: exit,
    },
    Builtin {
        name: "argv",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "argv ()",
        summary: "The arguments after `--`, as a cell array.",
        run: argv,
    },
    Builtin {
        name: "program_name",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "program_name ()",
        summary: "The program's name.",
        run: |_, _, _| Ok(Value::string("tidemill").into()),
    },
    Builtin {
        name: "getenv",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        usage: "getenv (name)",
        summary: "A variable of the environment; empty if it is not set.",
        run: getenv,
    },
    Builtin {
        name: "setenv",
        args_min: 1,
        args_max: 2,
        outputs_max: 0,
        usage: "setenv (name, value)",
        summary: "Set a variable of the environment, for this script.",
        run: setenv,
    },
    Builtin {
        name: "putenv",
        args_min: 1,
        args_max: 2,
        outputs_max: 0,
        usage: "putenv (name, value)",
        summary: "Set a variable of the environment, for this script.",
        run: setenv,
    },
    Builtin {
        name: "unsetenv",
        args_min: 1,
        args_max: 1,
        outputs_max: 0,
        usage: "unsetenv (name)",
        summary: "Remove a variable of the environment, for this script.",
        run: unsetenv,
    },
    Builtin {
        name: "tic",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "id = tic",
        summary: "Start a stopwatch.",
        run: tic,
    },
    Builtin {
        name: "toc",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        usage: "seconds = toc (id)",
        summary: "Seconds since tic.",
        run: toc,
    },
    Builtin {
        name: "clock",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "clock ()",
        summary: "Year, month, day, hour, minute and second (UTC).",
        run: clock,
    },
    Builtin {
        name: "time",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "time ()",
        summary: "Seconds since 1970.",
        run: time,
    },
    Builtin {
        name: "now",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "now ()",
        summary: "Days since the year 0 (UTC).",
        run: now,
    },
    Builtin {
        name: "cputime",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "cputime ()",
        summary: "Seconds since the script started.",
        run: cputime,
    },
    Builtin {
        name: "pause",
        args_min: 0,
        args_max: 1,
        outputs_max: 0,
        usage: "pause (seconds)",
        summary: "Wait.",
        run: pause,
    },
    Builtin {
        name: "addpath",
        args_min: 1,
        args_max: ANY,
        outputs_max: 1,
        usage: "addpath (folder, …)",
        summary: "Look for function files in a folder.",
        run: addpath,
    },
    Builtin {
        name: "rmpath",
        args_min: 1,
        args_max: ANY,
        outputs_max: 1,
        usage: "rmpath (folder, …)",
        summary: "No longer look for function files in a folder.",
        run: rmpath,
    },
    Builtin {
        name: "genpath",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        usage: "genpath (folder)",
        summary: "A folder and those below it, as a path.",
        run: genpath,
    },
    Builtin {
        name: "pwd",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "pwd ()",
        summary: "The folder that the process runs in.",
        run: pwd,
    },
    Builtin {
        name: "ispc",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "ispc ()",
        summary: "Whether this is Windows.",
        run: |_, _, _| Ok(Value::Bool(cfg!(windows)).into()),
    },
    Builtin {
        name: "isunix",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "isunix ()",
        summary: "Whether this is Unix.",
        run: |_, _, _| Ok(Value::Bool(cfg!(unix)).into()),
    },
    Builtin {
        name: "ismac",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "ismac ()",
        summary: "Whether this is macOS.",
        run: |_, _, _| Ok(Value::Bool(cfg!(target_os = "macos")).into()),
    },
    Builtin {
        name: "isdeployed",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "isdeployed ()",
        summary: "False.",
        run: |_, _, _| Ok(Value::Bool(false).into()),
    },
    Builtin {
        name: "usejava",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        usage: "usejava (feature)",
        summary: "False.",
        run: |_, _, _| Ok(Value::Bool(false).into()),
    },
    Builtin {
        name: "OCTAVE_VERSION",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "OCTAVE_VERSION ()",
        summary: "The version of GNU Octave whose output is followed.",
        run: |_, _, _| Ok(Value::string("7.3.0").into()),
    },
    Builtin {
        name: "version",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        usage: "version ()",
        summary: "The version of GNU Octave whose output is followed.",
        run: |_, _, _| Ok(Value::string("7.3.0").into()),
    },
    Builtin {
        name: "nproc",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        usage: "nproc ()",
        summary: "How many threads the machine runs at once.",
        run: |_, _, _| Ok(Value::Num(std::thread::available_parallelism().map_or(1, |n| n.get()) as f64).into()),
    },
    Builtin {
        name: "getpid",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "getpid ()",
        summary: "The number of the process.",
        run: |_, _, _| Ok(Value::Num(std::process::id() as f64).into()),
    },
    Builtin {
        name: "fflush",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        usage: "fflush (stdout)",
        summary: "Pass on what was printed.",
        run: fflush,
    },
    Builtin {
        name: "stdout",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "stdout",
        summary: "The number of standard output: 1.",
        run: |_, _, _| Ok(Value::Num(1.0).into()),
    },
    Builtin {
        name: "stderr",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        usage: "stderr",
        summary: "The number of standard error: 2.",
        run: |_, _, _| Ok(Value::Num(2.0).into()),
    },
];

/// Functions that do nothing here, and say nothing: settings of a terminal or of packages.
const SILENT: &[&str] = &[
    "clc",
    "more",
    "close",
    "pkg",
    "beep",
    "graphics_toolkit",
    "page_screen_output",
    "page_output_immediately",
    "crash_dumps_octave_core",
    "diary",
    "dbstop",
    "profile",
    "opengl",
    "maxNumCompThreads",
    "feature",
];
/// Functions that would draw. The first that is called warns; all go on.
const PLOTS: &[&str] = &[
    "figure",
    "plot",
    "plot3",
    "hold",
    "axis",
    "xlabel",
    "ylabel",
    "zlabel",
    "title",
    "legend",
    "grid",
    "subplot",
    "surf",
    "mesh",
    "contour",
    "contourf",
    "imagesc",
    "imshow",
    "image",
    "bar",
    "histogram",
    "scatter",
    "line",
    "text",
    "colorbar",
    "colormap",
    "drawnow",
    "print",
    "saveas",
    "semilogx",
    "semilogy",
    "loglog",
    "errorbar",
    "area",
    "pie",
    "quiver",
    "fill",
    "patch",
    "set",
    "gca",
    "gcf",
    "xlim",
    "ylim",
    "zlim",
    "view",
    "shading",
    "clf",
    "cla",
    "refresh",
    "waitbar",
    "sgtitle",
    "exportgraphics",
];

const fn row(name: &'static str, run: super::Run, summary: &'static str) -> Builtin {
    Builtin { name, args_min: 0, args_max: ANY, outputs_max: ANY, usage: name, summary, run }
}

/// Commands without an effect, and plots.
pub static IGNORED: &[Builtin] = &{
    const N: usize = SILENT.len() + PLOTS.len();
    let mut rows = [const { row("", silent, "") }; N];
    let mut i = 0;
    while i < N {
        rows[i] = if i < SILENT.len() {
            row(SILENT[i], silent, "Accepted, without an effect.")
        } else {
            row(PLOTS[i - SILENT.len()], plot, "Accepted; nothing is drawn, and the first such call warns.")
        };
        i += 1;
    }
    rows
};

fn silent(_: &mut Interp, _: &[Value], nargout: usize) -> Flow<Outcome> {
    Ok(vec![Value::empty(); nargout].into())
}

#[derive(Default)]
struct Plots {
    warned: bool,
}

fn plot(interp: &mut Interp, _: &[Value], nargout: usize) -> Flow<Outcome> {
    let plots = interp.env.keep.of::<Plots>();
    if !std::mem::replace(&mut plots.warned, true) {
        interp.env.warn("Tidemill:no-plots", "plots are not drawn; plot commands are ignored");
    }
    Ok(vec![Value::empty(); nargout].into())
}

fn text(value: &Value, who: &str, what: &str) -> Flow<String> {
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

/// A text, and what runs where it fails.
fn tried(who: &str, args: &[Value], capture: bool, scope: Scope) -> Flow<Outcome> {
    let handler = args.get(1).map(|handler| text(handler, who, "CATCH")).transpose()?;
    Ok(Outcome::Eval { text: text(&args[0], who, "TRY")?, handler, capture, scope })
}

fn scope(value: &Value, who: &str) -> Flow<Scope> {
    match value.as_text().as_deref() {
        Some("caller") => Ok(Scope::Caller),
        Some("base") => Ok(Scope::Base),
        _ => fail!("{who}: CONTEXT must be \"caller\" or \"base\""),
    }
}

fn run_file(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let mut path = PathBuf::from(text(&args[0], "run", "FILE")?);
    if !path.exists() {
        path.set_extension("m");
    }
    match std::fs::read(&path) {
        Ok(bytes) => Ok(Outcome::text(String::from_utf8_lossy(&bytes))),
        Err(error) => fail!("run: could not read {}: {error}", path.display()),
    }
}

fn exist(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let name = text(&args[0], "exist", "NAME")?;
    let kind = args.get(1).and_then(Value::as_text).unwrap_or_default();
    let any = kind.is_empty();
    let mut code = 0;
    if (any || kind == "var") && interp.variable(&name).is_some() {
        code = 1;
    }
    if code == 0 && (any || kind == "builtin" || kind == "file") {
        code = match interp.lookup(&name) {
            Ok(Some(Callee::User(_) | Callee::Script(_))) if interp.files.contains_key(name.as_str()) => 2,
            Ok(Some(Callee::User(code))) if crate::script::library::holds(&code) => 2,
            Ok(Some(Callee::User(_))) if any => 103,
            Ok(Some(Callee::Builtin(_))) if kind != "file" => 5,
            Ok(Some(Callee::Builtin(_))) => 2,
            _ => 0,
        };
    }
    if code == 0 && (any || kind == "file" || kind == "dir") {
        match std::fs::metadata(&name) {
            Ok(meta) if meta.is_dir() => code = 7,
            Ok(_) if kind != "dir" => code = 2,
            _ => {}
        }
    }
    Ok(Value::Num(code as f64).into())
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !KEYWORDS.contains(&text)
}

/// Words that no variable may have.
const KEYWORDS: &[&str] = &[
    "break",
    "case",
    "catch",
    "continue",
    "do",
    "else",
    "elseif",
    "end",
    "end_try_catch",
    "end_unwind_protect",
    "endfor",
    "endfunction",
    "endif",
    "endparfor",
    "endswitch",
    "endwhile",
    "for",
    "function",
    "global",
    "if",
    "otherwise",
    "parfor",
    "persistent",
    "return",
    "switch",
    "try",
    "until",
    "unwind_protect",
    "unwind_protect_cleanup",
    "while",
    "__FILE__",
    "__LINE__",
    "classdef",
];

fn isvarname(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    Ok(Value::Bool(args[0].as_text().is_some_and(|t| is_name(&t))).into())
}

fn iskeyword(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    Ok(Value::Bool(args[0].as_text().is_some_and(|t| KEYWORDS.contains(&t.as_str()))).into())
}

fn isglobal(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let name = text(&args[0], "isglobal", "NAME")?;
    Ok(Value::Bool(interp.is_global(&name)).into())
}

/// Whether a name fits a pattern with `*` and `?`.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => fits(rest, name) || name.split_first().is_some_and(|(_, n)| fits(pattern, n)),
        (Some((b'?', p)), Some((_, n))) => fits(p, n),
        (Some((a, p)), Some((b, n))) => a == b && fits(p, n),
        _ => false,
    }
}

fn clear(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let words: Vec<String> = args.iter().map(|a| text(a, "clear", "NAME")).collect::<Flow<_>>()?;
    let is_flag = |w: &String| {
        w.starts_with('-') || matches!(w.as_str(), "all" | "variables" | "functions" | "global" | "classes")
    };
    let flags: Vec<&str> = words.iter().filter(|w| is_flag(w)).map(|w| w.trim_start_matches('-')).collect();
    let names: Vec<&String> = words.iter().filter(|w| !is_flag(w)).collect();
    if flags.iter().any(|f| matches!(*f, "f" | "functions")) {
        return Ok(nothing());
    }
    let exclusive = flags.iter().any(|f| matches!(*f, "x" | "exclusive" | "except"));
    let chosen = |name: &str| {
        let named = names.iter().any(|p| fits(p.as_bytes(), name.as_bytes()));
        if exclusive { !named } else { names.is_empty() || named }
    };
    if flags.iter().any(|f| matches!(*f, "g" | "global" | "all" | "a")) {
        interp.clear_globals(chosen);
    }
    interp.clear_variables(chosen);
    Ok(nothing())
}

fn who(interp: &mut Interp, _: &[Value], nargout: usize) -> Flow<Outcome> {
    let mut names: Vec<String> = interp.variables().into_iter().map(|(n, _)| n.to_string()).collect();
    names.sort();
    if nargout > 0 {
        let n = names.len();
        return Ok(Value::cell(Dims::new(&[n, 1]), names.into_iter().map(Value::from).collect()).into());
    }
    if !names.is_empty() {
        interp.env.print(format!("Variables visible from the current scope:\n\n{}\n\n", names.join("  ")));
    }
    Ok(nothing())
}

fn assignin(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let name = text(&args[1], "assignin", "VARNAME")?;
    if !is_name(&name) {
        return fail!("assignin: invalid variable name '{name}'");
    }
    let scope = scope(&args[0], "assignin")?;
    Ok(Outcome::Assign { name, value: args[2].clone(), scope })
}

/// The name of the variable that was given as an argument, as the call is written.
fn inputname(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let n = super::args::number(&interp.env, "inputname", &args[0])?;
    if n < 1.0 || n != n.trunc() {
        return fail!("inputname: N must be a positive integer");
    }
    let Some(given) = interp.nargin() else {
        return fail!("inputname: must be used from within a function");
    };
    if n > given as f64 {
        return fail!("inputname: N out of range");
    }
    let names_only = match args.get(1) {
        Some(only) => crate::script::ops::truth(&mut interp.env, only)?,
        None => true,
    };
    let call = interp.calling_place();
    let written = call.and_then(|place| super::assertion::arguments(place.source.text.get(place.span.range())?));
    let name = written.and_then(|list| list.into_iter().nth(n as usize - 1)).unwrap_or_default();
    Ok(Value::string(if names_only && !is_name(&name) { "" } else { &name }).into())
}

fn nargin(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let n = match args.first() {
        None => interp.nargin().unwrap_or(0) as f64,
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

/// How many arguments or outputs a function takes; negative with a variable number.
fn arity(interp: &mut Interp, value: &Value, inputs: bool) -> Flow<f64> {
    use crate::script::value::Function;
    let function = calls::function_of(value, "nargin")?;
    let code = match &*function {
        Function::Anonymous(closure) => closure.code.clone(),
        Function::Named(name) => match interp.lookup(name)? {
            Some(Callee::User(code)) => code,
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
    let k = interp.env.host(&args[0])?;
    let wanted = interp.nargout().unwrap_or(0).max(1) as f64;
    Ok(Value::Bool(!k.is_empty() && k.data.f64_at(0) <= wanted && k.data.f64_at(0) >= 1.0).into())
}

fn mfilename(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let name = interp.here().map(|p| p.source.name.clone()).unwrap_or_default();
    let path = PathBuf::from(name);
    let option = args.first().and_then(Value::as_text).unwrap_or_default();
    let out = match option.as_str() {
        "fullpath" | "fullpathext" => {
            let full = std::path::absolute(&path).unwrap_or(path);
            if option == "fullpath" { full.with_extension("") } else { full }
        }
        _ => PathBuf::from(path.file_stem().unwrap_or_default()),
    };
    Ok(Value::string(out.display().to_string()).into())
}

fn exit(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let status = match args.first() {
        Some(value) if !value.is_string() && !value.is_empty() => interp.env.host(value)?.data.f64_at(0) as i32,
        _ => 0,
    };
    Err(Stop::Exit(status))
}

fn argv(interp: &mut Interp, _: &[Value], _: usize) -> Flow<Outcome> {
    let items: Vec<Value> = interp.env.options.arguments.iter().map(|a| Value::string(a.as_bytes())).collect();
    Ok(Value::cell(Dims::new(&[items.len(), if items.is_empty() { 0 } else { 1 }]), items).into())
}

/// Variables of the environment that this script has set; `None` for those that it has removed.
#[derive(Default)]
struct Environment(FxHashMap<String, Option<String>>);

fn getenv(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let name = text(&args[0], "getenv", "VAR")?;
    let own = interp.env.keep.of::<Environment>().0.get(&name).cloned();
    let value = own.unwrap_or_else(|| std::env::var_os(&name).map(|v| v.to_string_lossy().into_owned()));
    Ok(Value::string(value.unwrap_or_default()).into())
}

fn setenv(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let name = text(&args[0], "setenv", "VAR")?;
    let value = args.get(1).map_or(Ok(String::new()), |v| text(v, "setenv", "VALUE"))?;
    interp.env.keep.of::<Environment>().0.insert(name, Some(value));
    Ok(nothing())
}

fn unsetenv(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let name = text(&args[0], "unsetenv", "VAR")?;
    interp.env.keep.of::<Environment>().0.insert(name, None);
    Ok(nothing())
}

fn tic(interp: &mut Interp, _: &[Value], nargout: usize) -> Flow<Outcome> {
    let now = Instant::now();
    if nargout == 0 {
        interp.env.tic = Some(now);
        return Ok(nothing());
    }
    let id = now.duration_since(interp.env.started).as_micros() as u64 + 1;
    Ok(Value::tensor(Tensor::scalar(Data::U64(vec![id]))).into())
}

fn toc(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let since = match args.first() {
        Some(id) => {
            let id = interp.env.host(id)?;
            let micros = match &id.data {
                Data::U64(v) => v.first().copied().unwrap_or(1),
                data if !data.is_empty() => data.f64_at(0) as u64,
                _ => 1,
            };
            interp.env.started + Duration::from_micros(micros.saturating_sub(1).min(1 << 52))
        }
        None => match interp.env.tic {
            Some(tic) => tic,
            None => return fail!("toc: function called before timer initialization()"),
        },
    };
    let seconds = Instant::now().saturating_duration_since(since).as_secs_f64();
    if nargout > 0 {
        return Ok(Value::Num(seconds).into());
    }
    let text = crate::script::display::template::format(
        &mut interp.env,
        "toc",
        &Value::string("Elapsed time is %g seconds\n"),
        &[Value::Num(seconds)],
    )?;
    interp.env.print(text);
    Ok(nothing())
}

fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

fn time(_: &mut Interp, _: &[Value], _: usize) -> Flow<Outcome> {
    Ok(Value::Num(seconds_since_1970()).into())
}

fn now(_: &mut Interp, _: &[Value], _: usize) -> Flow<Outcome> {
    Ok(Value::Num(719_529.0 + seconds_since_1970() / 86_400.0).into())
}

fn clock(_: &mut Interp, _: &[Value], _: usize) -> Flow<Outcome> {
    let seconds = seconds_since_1970();
    let (days, of_day) = ((seconds / 86_400.0).floor(), seconds.rem_euclid(86_400.0));
    let (year, month, day) = civil(days as i64);
    let hour = (of_day / 3600.0).floor();
    let minute = ((of_day - hour * 3600.0) / 60.0).floor();
    let second = of_day - hour * 3600.0 - minute * 60.0;
    Ok(Value::row(vec![year as f64, month as f64, day as f64, hour, minute, second]).into())
}

/// Year, month and day of a day since 1970-01-01 (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn cputime(interp: &mut Interp, _: &[Value], _: usize) -> Flow<Outcome> {
    Ok(Value::Num(interp.env.started.elapsed().as_secs_f64()).into())
}

fn pause(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if interp.env.take_awaited().is_some() {
        return Ok(nothing());
    }
    let seconds = match args.first() {
        Some(value) if value.is_empty() => 0.0,
        Some(value) => interp.env.host(value)?.data.f64_at(0).clamp(0.0, 1e6),
        None => 0.0,
    };
    if seconds.is_nan() || seconds == 0.0 {
        return Ok(nothing());
    }
    // A thread of its own wakes the task: the wait needs no executor's timer.
    let (done, wait) = futures::channel::oneshot::channel();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs_f64(seconds));
        let _ = done.send(());
    });
    Err(Stop::Need(crate::script::error::Need::Future(Box::pin(async move {
        let _ = wait.await;
        Ok(Value::Bool(true))
    }))))
}

fn folders(args: &[Value], who: &str) -> Flow<Vec<PathBuf>> {
    let mut all = Vec::new();
    for arg in args.iter().filter(|a| a.is_string()) {
        let path = text(arg, who, "DIR")?;
        if !path.starts_with('-') {
            all.extend(std::env::split_paths(&path));
        }
    }
    Ok(all)
}

fn addpath(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    for folder in folders(args, "addpath")? {
        if !folder.is_dir() {
            interp.env.warn("", &format!("addpath: {}: No such file or directory", folder.display()));
        }
        interp.add_folder(&folder);
    }
    Ok(if nargout > 0 { Value::string("").into() } else { nothing() })
}

fn rmpath(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    for folder in folders(args, "rmpath")? {
        interp.files.retain(|_, file| file.parent() != Some(folder.as_path()));
    }
    Ok(nothing())
}

fn genpath(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let mut open = vec![PathBuf::from(text(&args[0], "genpath", "DIR")?)];
    let mut all: Vec<String> = Vec::new();
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        all.push(folder.display().to_string());
        let mut below: Vec<PathBuf> =
            entries.flatten().map(|e| e.path()).filter(|p| p.is_dir() && !p.is_symlink()).collect();
        below.sort();
        open.extend(below.into_iter().rev());
        if all.len() > 10_000 {
            break;
        }
    }
    Ok(Value::string(all.join(if cfg!(windows) { ";" } else { ":" })).into())
}

fn pwd(_: &mut Interp, _: &[Value], _: usize) -> Flow<Outcome> {
    match std::env::current_dir() {
        Ok(path) => Ok(Value::string(path.display().to_string()).into()),
        Err(error) => fail!("pwd: {error}"),
    }
}

fn fflush(interp: &mut Interp, _: &[Value], nargout: usize) -> Flow<Outcome> {
    interp.env.output.flush();
    Ok(if nargout > 0 { Value::Num(0.0).into() } else { nothing() })
}

/// A column of texts as a cell array.
pub fn texts(items: impl IntoIterator<Item = String>) -> Value {
    let items: Vec<Value> = items.into_iter().map(Value::from).collect();
    Value::Cell(Arc::new(CellArray::new(Dims::new(&[items.len(), 1]), items)))
}

/// An empty array of a class.
pub fn empty_of(class: Class) -> Value {
    Value::tensor(Tensor::zeros(class, Dims::zero()))
}

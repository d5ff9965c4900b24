//! The process around a script: arguments, exit, environment variables, the path, standard streams.

use crate::builtins::args::is_word;
use crate::builtins::calls::environment::text;
use crate::builtins::files::streams::{Files, system};
use crate::builtins::{ANY, Builtin, Outcome, Reach, nothing};
use crate::env::Env;
use crate::error::{Flow, Stop, fail};
use crate::value::{Dims, Value};
use crate::vm::Interp;
use rustc_hash::FxHashMap;
use std::path::PathBuf;

/// The family.
pub static ROWS: &[Builtin] = &[
    Builtin {
        name: "exit",
        args_min: 0,
        args_max: 2,
        outputs_max: 0,
        reach: Reach::Script,
        usage: "exit (status)",
        summary: "End the script.",
        run: exit,
    },
    Builtin {
        name: "quit",
        args_min: 0,
        args_max: 2,
        outputs_max: 0,
        reach: Reach::Script,
        usage: "quit (status)",
        summary: "End the script.",
        run: exit,
    },
    Builtin {
        name: "argv",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "argv ()",
        summary: "The arguments after `--`, as a cell array.",
        run: argv,
    },
    Builtin {
        name: "program_name",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "program_name ()",
        summary: "The program's name.",
        run: |_, _, _| Ok(Value::string("tidemill").into()),
    },
    Builtin {
        name: "getenv",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Outside,
        usage: "getenv (name)",
        summary: "A variable of the environment; empty if it is not set.",
        run: getenv,
    },
    Builtin {
        name: "setenv",
        args_min: 1,
        args_max: 2,
        outputs_max: 0,
        reach: Reach::Outside,
        usage: "setenv (name, value)",
        summary: "Set a variable of the environment, for this script.",
        run: setenv,
    },
    Builtin {
        name: "putenv",
        args_min: 1,
        args_max: 2,
        outputs_max: 0,
        reach: Reach::Outside,
        usage: "putenv (name, value)",
        summary: "Set a variable of the environment, for this script.",
        run: setenv,
    },
    Builtin {
        name: "unsetenv",
        args_min: 1,
        args_max: 1,
        outputs_max: 0,
        reach: Reach::Outside,
        usage: "unsetenv (name)",
        summary: "Remove a variable of the environment, for this script.",
        run: unsetenv,
    },
    Builtin {
        name: "addpath",
        args_min: 1,
        args_max: ANY,
        outputs_max: 1,
        reach: Reach::Outside,
        usage: "addpath (folder, …)",
        summary: "Look for function files in a folder.",
        run: addpath,
    },
    Builtin {
        name: "rmpath",
        args_min: 1,
        args_max: ANY,
        outputs_max: 1,
        reach: Reach::Outside,
        usage: "rmpath (folder, …)",
        summary: "No longer look for function files in a folder.",
        run: rmpath,
    },
    Builtin {
        name: "path",
        args_min: 0,
        args_max: ANY,
        outputs_max: 1,
        reach: Reach::Outside,
        usage: "path (folders, ...)",
        summary: "The folders where function files are looked for, or which they are from now on.",
        run: path,
    },
    Builtin {
        name: "genpath",
        args_min: 1,
        args_max: ANY,
        outputs_max: 1,
        reach: Reach::Outside,
        usage: "genpath (folder, skipped, ...)",
        summary: "A folder and those below it, as a path.",
        run: genpath,
    },
    Builtin {
        name: "cd",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Outside,
        usage: "cd (folder)",
        summary: "Goes to another folder, for this script.",
        run: cd,
    },
    Builtin {
        name: "chdir",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Outside,
        usage: "chdir (folder)",
        summary: "Goes to another folder, for this script.",
        run: cd,
    },
    Builtin {
        name: "pwd",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Outside,
        usage: "pwd ()",
        summary: "The folder that names of files are relative to.",
        run: pwd,
    },
    Builtin {
        name: "ispc",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "ispc ()",
        summary: "Whether this is Windows.",
        run: |_, _, _| Ok(Value::Bool(cfg!(windows)).into()),
    },
    Builtin {
        name: "isunix",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "isunix ()",
        summary: "Whether this is Unix.",
        run: |_, _, _| Ok(Value::Bool(cfg!(unix)).into()),
    },
    Builtin {
        name: "ismac",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "ismac ()",
        summary: "Whether this is macOS.",
        run: |_, _, _| Ok(Value::Bool(cfg!(target_os = "macos")).into()),
    },
    Builtin {
        name: "isdeployed",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "isdeployed ()",
        summary: "False.",
        run: |_, _, _| Ok(Value::Bool(false).into()),
    },
    Builtin {
        name: "usejava",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "usejava (feature)",
        summary: "False.",
        run: |_, _, _| Ok(Value::Bool(false).into()),
    },
    Builtin {
        name: "OCTAVE_VERSION",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "OCTAVE_VERSION ()",
        summary: "The version of GNU Octave whose output is followed.",
        run: |_, _, _| Ok(Value::string("7.3.0").into()),
    },
    Builtin {
        name: "version",
        args_min: 0,
        args_max: 1,
        outputs_max: 2,
        reach: Reach::Script,
        usage: "[version, date] = version (feature)",
        summary: "The version of GNU Octave whose output is followed.",
        run: version,
    },
    Builtin {
        name: "nproc",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "nproc ()",
        summary: "How many threads the machine runs at once.",
        run: |_, _, _| Ok(Value::Num(crate::threads::cores() as f64).into()),
    },
    Builtin {
        name: "maxNumCompThreads",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "maxNumCompThreads ()",
        summary: "How many threads the machine runs at once; setting their number has no effect.",
        run: |_, _, _| Ok(Value::Num(crate::threads::cores() as f64).into()),
    },
    Builtin {
        name: "getpid",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Outside,
        usage: "getpid ()",
        summary: "The number of the process.",
        run: |_, _, _| Ok(Value::Num(std::process::id() as f64).into()),
    },
    Builtin {
        name: "fflush",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "fflush (fid)",
        summary: "Passes on what was printed, or writes what waits to be written to a file.",
        run: fflush,
    },
    Builtin {
        name: "stdout",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "stdout",
        summary: "The number of standard output: 1.",
        run: |_, _, _| Ok(Value::Num(1.0).into()),
    },
    Builtin {
        name: "stderr",
        args_min: 0,
        args_max: 0,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "stderr",
        summary: "The number of standard error: 2.",
        run: |_, _, _| Ok(Value::Num(2.0).into()),
    },
];

fn exit(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let word = |value: &Value| value.as_text().filter(|_| value.is_char());
    let status = match args {
        [] => 0,
        [only] if only.is_char() => match word(only).as_deref() {
            Some("force") => 0,
            Some("cancel") => return Ok(nothing()),
            _ => return fail!("quit: option must be string \"cancel\" or \"force\""),
        },
        [status, rest @ ..] => {
            if rest.iter().any(|option| word(option).as_deref() != Some("force")) {
                return fail!("quit: second argument must be string \"force\"");
            }
            match number_of(&interp.env, status)? {
                Some(status) => status as i32,
                None => return fail!("quit: STATUS must be an integer"),
            }
        }
    };
    Err(Stop::Exit(status))
}

/// Returns the first element of a numeric array, if it is a number.
fn number_of(env: &Env, value: &Value) -> Flow<Option<f64>> {
    if !matches!(value, Value::Num(_) | Value::Bool(_) | Value::Tensor(_) | Value::Lazy(_)) || value.is_empty() {
        return Ok(None);
    }
    Ok(Some(env.host(value)?.data.f64_at(0)).filter(|x| !x.is_nan()))
}

fn argv(interp: &mut Interp, _: &[Value], _: usize) -> Flow<Outcome> {
    let items: Vec<Value> = interp.env.options.arguments.iter().map(|a| Value::string(a.as_bytes())).collect();
    Ok(Value::cell(Dims::new(&[items.len(), if items.is_empty() { 0 } else { 1 }]), items).into())
}

/// The environment variables that this script has set; `None` for those that it has removed.
#[derive(Default)]
struct Environment(FxHashMap<String, Option<String>>);

fn version(_: &mut Interp, args: &[Value], outputs: usize) -> Flow<Outcome> {
    let date = "2022-11-02";
    let Some(feature) = args.first() else {
        return Ok(vec![Value::string("7.3.0"), Value::string(date)].into());
    };
    let word = feature.as_text().unwrap_or_default().to_lowercase();
    if outputs > 1 {
        return fail!("version: nargout > 1 requires no arguments");
    }
    match word.as_str() {
        "-date" => Ok(Value::string(date).into()),
        "-description" | "-release" => Ok(Value::string("").into()),
        _ => fail!("version: invalid FEATURE"),
    }
}

fn getenv(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let name = text(&args[0], "getenv", "VAR")?;
    Ok(Value::string(variable(&mut interp.env, &name).unwrap_or_default()).into())
}

/// Returns an environment variable as the script sees it.
pub fn variable(env: &mut Env, name: &str) -> Option<String> {
    let own = env.keep.of::<Environment>().0.get(name).cloned();
    own.unwrap_or_else(|| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned()))
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

fn folders(interp: &Interp, args: &[Value], who: &str) -> Flow<Vec<PathBuf>> {
    let mut all = Vec::new();
    for arg in args.iter().filter(|a| a.is_string()) {
        let path = text(arg, who, "DIR")?;
        if !path.starts_with('-') {
            all.extend(std::env::split_paths(&path).map(|folder| interp.env.at(folder)));
        }
    }
    Ok(all)
}

fn addpath(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    // Added folders come before the present ones, unless `-end` is given. Several folders keep their order.
    let last = args.iter().any(|a| is_word(a, "-end")) || matches!(args.last(), Some(Value::Num(n)) if *n == 1.0);
    let mut added = folders(interp, args, "addpath")?;
    if !last {
        added.reverse();
    }
    for folder in added {
        if !folder.is_dir() {
            interp.env.warn("", &format!("addpath: {}: No such file or directory", folder.display()));
        }
        interp.add_folder(folder, !last);
    }
    Ok(if nargout > 0 { Value::string("").into() } else { nothing() })
}

fn rmpath(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    for folder in folders(interp, args, "rmpath")? {
        interp.remove_folder(&folder);
    }
    Ok(nothing())
}

/// The separator of folders in a path.
const SEPARATOR: &str = if cfg!(windows) { ";" } else { ":" };

fn path(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    if !args.is_empty() {
        if let Some(other) = args.iter().find(|arg| !arg.is_string()) {
            text(other, "path", "PATH")?;
        }
        let here = interp.env.at(".");
        let named = folders(interp, args, "path")?.into_iter().filter(|f| *f != here && !f.as_os_str().is_empty());
        interp.set_folders(named.map(|folder| folder.canonicalize().unwrap_or(folder)).collect());
    }
    let folders: Vec<String> =
        std::iter::once(".".to_string()).chain(interp.env.added.iter().map(|f| f.display().to_string())).collect();
    if nargout > 0 {
        return Ok(Value::string(folders.join(SEPARATOR)).into());
    }
    if args.is_empty() {
        interp.env.print(format!("Functions are looked for in:\n\n{}\n", folders.join("\n")));
    }
    Ok(nothing())
}

/// Returns a folder and those below it, except folders such as `private`, whose files are found in other ways.
fn genpath(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let skipped = args[1..].iter().map(|arg| text(arg, "genpath", "SKIP")).collect::<Flow<Vec<String>>>()?;
    let mut open = vec![PathBuf::from(text(&args[0], "genpath", "DIR")?)];
    let mut all: Vec<String> = Vec::new();
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(interp.env.at(&folder)) else { continue };
        all.push(folder.display().to_string());
        let is_own = |name: &str| name == "private" || name.starts_with(['@', '+', '.']);
        let mut below: Vec<PathBuf> = (entries.flatten())
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| !is_own(name) && !skipped.contains(name))
            .map(|name| folder.join(name))
            .collect();
        below.sort();
        open.extend(below.into_iter().rev());
        if all.len() > 10_000 {
            break;
        }
    }
    Ok(Value::string(all.join(SEPARATOR)).into())
}

fn pwd(interp: &mut Interp, _: &[Value], _: usize) -> Flow<Outcome> {
    match interp.env.folder.clone().map_or_else(std::env::current_dir, Ok) {
        Ok(path) => Ok(Value::string(path.display().to_string()).into()),
        Err(error) => fail!("pwd: {error}"),
    }
}

fn cd(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let before = pwd(interp, &[], 1)?;
    let home = std::env::var_os("HOME").map_or("/".into(), |home| home.to_string_lossy().into_owned());
    let name = match args.first() {
        None if nargout > 0 => return Ok(before),
        None => home,
        Some(value) => match text(value, "cd", "DIR")? {
            name if name == "~" || name.starts_with("~/") => home + &name[1..],
            name => name,
        },
    };
    let gone = interp.env.at(&name).canonicalize().and_then(|folder| match folder.is_dir() {
        true => Ok(folder),
        false => Err(std::io::Error::from_raw_os_error(20)),
    });
    match gone {
        Ok(folder) => interp.go_to(folder),
        Err(error) => return fail!("{name}: {}", system(&error)),
    }
    Ok(if nargout > 0 { before } else { nothing() })
}

fn fflush(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.output.flush();
    let flushed = match &args[0] {
        Value::Num(0.0 | 1.0 | 2.0) => true,
        file => interp.env.keep.of::<Files>().flush("fflush", file)?,
    };
    Ok(Value::Num(if flushed { 0.0 } else { -1.0 }).into())
}

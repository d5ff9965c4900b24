//! File names and folders: parts of names, temporary names, making and removing.

use super::streams::{names, path, system};
use crate::builtins::text::chars;
use crate::builtins::{ANY, Builtin, Outcome, nothing, row};
use crate::error::{Flow, fail};
use crate::value::{Data, Dims, StructArray, Tensor, Value};
use crate::vm::Interp;
use indexmap::IndexMap;
use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("fullfile", 0, ANY, 1, "fullfile (folder, ..., name)", "Joins parts of a path.", fullfile),
    row("fileparts", 1, 1, 3, "[folder, name, ext] = fileparts (path)", "The parts of a path.", fileparts),
    row("filesep", 0, 1, 1, "filesep ()", "What separates folders in a path.", |_, _, _| Ok(Value::string("/").into())),
    row("pathsep", 0, 1, 1, "pathsep ()", "What separates paths in a list.", |_, _, _| Ok(Value::string(":").into())),
    row("tempdir", 0, 0, 1, "tempdir ()", "The folder for temporary files.", |i, _, _| {
        let folder = crate::builtins::system::process::variable(&mut i.env, "TMPDIR").filter(|f| !f.is_empty());
        let folder = folder.unwrap_or_else(|| std::env::temp_dir().to_string_lossy().into_owned());
        Ok(Value::string(format!("{}/", folder.trim_end_matches('/'))).into())
    })
    .outside(),
    row("tempname", 0, 2, 1, "tempname (folder, prefix)", "A name that no file has.", tempname).outside(),
    row("isfile", 1, 1, 1, "isfile (name)", "Whether files of these names are there.", |i, a, _| {
        are(i, "isfile", a, Path::is_file)
    })
    .outside(),
    row("isfolder", 1, 1, 1, "isfolder (name)", "Whether folders of these names are there.", |i, a, _| {
        are(i, "isfolder", a, Path::is_dir)
    })
    .outside(),
    row("isdir", 1, 1, 1, "isdir (name)", "Whether folders of these names are there.", |i, a, _| {
        are(i, "isdir", a, Path::is_dir)
    })
    .outside(),
    row("mkdir", 1, 2, 3, "[ok, message] = mkdir (parent, name)", "Makes a folder.", mkdir).outside(),
    row("rmdir", 1, 2, 3, "[ok, message] = rmdir (name, \"s\")", "Removes a folder.", rmdir).outside(),
    row("unlink", 1, 1, 2, "[error, message] = unlink (name)", "Removes a file.", |i, a, n| {
        let removed = std::fs::remove_file(i.env.at(&path("unlink", &a[0])?));
        status("unlink", removed, n)
    })
    .outside(),
    row("delete", 1, 1, 0, "delete (name)", "Removes a file; of handles of plots, nothing.", delete).partly_outside(),
    row("rename", 2, 2, 2, "[error, message] = rename (old, new)", "Gives a file another name.", |i, a, n| {
        let renamed = std::fs::rename(i.env.at(&path("rename", &a[0])?), i.env.at(&path("rename", &a[1])?));
        status("rename", renamed, n)
    })
    .outside(),
    row("copyfile", 2, 3, 3, "[ok, message] = copyfile (from, to)", "Copies a file.", |i, a, n| {
        moved(i, "copyfile", a, n, |from, to| std::fs::copy(from, to).map(|_| ()))
    })
    .outside(),
    row("movefile", 2, 3, 3, "[ok, message] = movefile (from, to)", "Moves a file.", |i, a, n| {
        moved(i, "movefile", a, n, |from, to| std::fs::rename(from, to))
    })
    .outside(),
    row(
        "canonicalize_file_name",
        1,
        1,
        3,
        "[path, error, message] = canonicalize_file_name (name)",
        "The path from the root to a file, without links.",
        canonicalize_file_name,
    )
    .outside(),
    row("file_in_loadpath", 1, 1, 1, "file_in_loadpath (name)", "The whole path of a file on the path.", |i, a, _| {
        let found = std::fs::canonicalize(i.env.found(path("file_in_loadpath", &a[0])?));
        Ok(found.map_or_else(|_| Value::empty(), |found| Value::string(found.display().to_string())).into())
    })
    .outside(),
    row("readdir", 1, 1, 1, "readdir (folder)", "The names in a folder.", readdir).outside(),
    row("stat", 1, 1, 3, "[info, error, message] = stat (name)", "What the system knows of a file.", |i, a, _| {
        info_of(i, "stat", |path| std::fs::metadata(path), a)
    })
    .outside(),
    row("lstat", 1, 1, 3, "[info, error, message] = lstat (name)", "The same of a link itself.", |i, a, _| {
        info_of(i, "lstat", |path| std::fs::symlink_metadata(path), a)
    })
    .outside(),
];

/// Returns whether something was done, in the form that `answer` makes. Without outputs, returns nothing, or the error.
fn answered(
    who: &str,
    done: io::Result<()>,
    nargout: usize,
    answer: impl Fn(Option<String>) -> Vec<Value>,
) -> Flow<Outcome> {
    match done {
        Ok(()) if nargout == 0 => Ok(nothing()),
        Err(error) if nargout == 0 => fail!("{who}: operation failed: {}", system(&error)),
        done => Ok(answer(done.err().as_ref().map(system)).into()),
    }
}

/// Returns 0 and no message, or -1 and the system's message.
fn status(who: &str, done: io::Result<()>, nargout: usize) -> Flow<Outcome> {
    answered(who, done, nargout, |error| {
        vec![Value::Num(if error.is_some() { -1.0 } else { 0.0 }), Value::string(error.unwrap_or_default())]
    })
}

fn canonicalize_file_name(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if args[0].as_text().is_none() {
        return fail!("canonicalize_file_name: NAME must be a string");
    }
    let found = std::fs::canonicalize(interp.env.at(&path("canonicalize_file_name", &args[0])?));
    let (name, error, message) = match found {
        Ok(found) => (found.display().to_string(), 0.0, String::new()),
        Err(error) => (String::new(), -1.0, system(&error)),
    };
    Ok(vec![Value::string(name), Value::Num(error), Value::string(message)].into())
}

fn fullfile(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let refused = "fullfile: input is not a string or cell array of strings";
    let join = |parts: &[&[u8]]| {
        let mut out: Vec<u8> = Vec::new();
        for part in parts.iter().filter(|p| !p.is_empty()) {
            match (out.is_empty(), out.ends_with(b"/"), part.starts_with(b"/")) {
                (true, ..) => out.extend(*part),
                (_, true, true) => out.extend(&part[1..]),
                (_, false, false) => {
                    out.push(b'/');
                    out.extend(*part);
                }
                _ => out.extend(*part),
            }
        }
        Value::string(out)
    };
    let mut lists = Vec::with_capacity(args.len());
    let mut dims = None;
    for arg in args {
        let list = chars::list(arg, refused)?;
        if let Value::Cell(c) = arg
            && (dims.is_none() || list.len() != 1)
        {
            dims = Some(c.dims.clone());
        }
        lists.push(list);
    }
    let Some(dims) = dims else {
        return Ok(join(&lists.iter().filter_map(|l| l.first().copied()).collect::<Vec<_>>()).into());
    };
    let n = dims.elements();
    if lists.iter().any(|l| l.len() != 1 && l.len() != n) {
        return fail!("fullfile: cell arrays must have the same dimensions");
    }
    let items =
        (0..n).map(|i| join(&lists.iter().map(|l| l[if l.len() == 1 { 0 } else { i }]).collect::<Vec<_>>())).collect();
    Ok(Value::cell(dims, items).into())
}

fn fileparts(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let name = chars::string(&args[0], "fileparts: FILENAME must be a single string")?;
    let slash = name.iter().rposition(|&b| b == b'/');
    let (folder, rest) = match slash {
        Some(0) => (&name[..1], &name[1..]),
        Some(at) => (&name[..at], &name[at + 1..]),
        None => (&name[..0], name),
    };
    let dot = rest.iter().rposition(|&b| b == b'.').unwrap_or(rest.len());
    Ok(vec![Value::string(folder), Value::string(&rest[..dot]), Value::string(&rest[dot..])].into())
}

fn tempname(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for (arg, what) in args.iter().zip(["DIR", "PREFIX"]) {
        if !arg.is_char() && !arg.is_empty() {
            return fail!("tempname: {what} must be a string");
        }
    }
    let folder = match args.first().and_then(Value::as_text) {
        Some(folder) if !folder.is_empty() => folder,
        _ => std::env::temp_dir().to_string_lossy().trim_end_matches('/').to_string(),
    };
    let prefix = args.get(1).and_then(Value::as_text).unwrap_or_else(|| "oct-".into());
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{folder}/{prefix}{:x}{n:03x}", std::process::id());
        if !Path::new(&name).exists() {
            return Ok(Value::string(name).into());
        }
    }
}

fn are(interp: &Interp, name: &str, args: &[Value], is: fn(&Path) -> bool) -> Flow<Outcome> {
    if !args[0].is_char() && !matches!(args[0], Value::Cell(_)) {
        return fail!("{name}: F must be a string or cell array of strings");
    }
    let there = |v: &Value| v.as_text().is_some_and(|name| is(&interp.env.at(&name)));
    Ok(match &args[0] {
        Value::Cell(c) => {
            let answers = Data::Bool(c.items.iter().map(there).collect());
            Value::tensor(Tensor::new(c.dims.clone(), answers)).into()
        }
        value => Value::Bool(there(value)).into(),
    })
}

/// Returns true and no message, or false, the system's message and the function's name.
fn told(who: &str, done: io::Result<()>, nargout: usize) -> Flow<Outcome> {
    answered(who, done, nargout, |error| {
        let speaker = if error.is_some() { who } else { "" };
        vec![Value::Bool(error.is_none()), Value::string(error.unwrap_or_default()), Value::string(speaker)]
    })
}

fn mkdir(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let mut name = path("mkdir", &args[0])?;
    if let Some(below) = args.get(1) {
        name = format!("{name}/{}", path("mkdir", below)?);
    }
    let name = interp.env.at(&name);
    if name.is_dir() {
        return Ok(match nargout {
            0 => nothing(),
            _ => vec![Value::Bool(true), Value::string("directory exists"), Value::string("mkdir")].into(),
        });
    }
    told("mkdir", std::fs::create_dir_all(&name), nargout)
}

fn rmdir(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let name = interp.env.at(&path("rmdir", &args[0])?);
    let all = args.get(1).is_some_and(|v| crate::builtins::args::is_word(v, "s"));
    told("rmdir", if all { std::fs::remove_dir_all(&name) } else { std::fs::remove_dir(&name) }, nargout)
}

fn delete(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    // A plot command returns a struct in place of a handle: there is no object to delete.
    if matches!(args[0], Value::Struct(_)) {
        return Ok(nothing());
    }
    let name = path("delete", &args[0])?;
    interp.check_outside("delete")?;
    let file = interp.env.at(&name);
    if std::fs::remove_file(&file).is_err() {
        let what = if file.exists() { "could not delete file" } else { "no such file" };
        interp.env.warn("Octave:delete:no-such-file", &format!("delete: {what}: {name}"));
    }
    Ok(nothing())
}

fn moved(
    interp: &Interp,
    who: &str,
    args: &[Value],
    nargout: usize,
    run: fn(&Path, &Path) -> io::Result<()>,
) -> Flow<Outcome> {
    let from = interp.env.at(&path(who, &args[0])?);
    let mut to = interp.env.at(&path(who, &args[1])?);
    if nargout == 0 && !from.exists() {
        return fail!("{who}: no files to move");
    }
    if to.is_dir()
        && let Some(name) = from.file_name()
    {
        to.push(name);
    }
    told(who, run(&from, &to), nargout)
}

fn listed(interp: &Interp, who: &str, folder: &str) -> Flow<Vec<String>> {
    match std::fs::read_dir(interp.env.at(folder)) {
        Ok(entries) => {
            let mut list: Vec<String> =
                entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
            list.extend([".".to_string(), "..".to_string()]);
            list.sort();
            Ok(list)
        }
        Err(error) => fail!("{who}: {}: {}", folder, system(&error)),
    }
}

fn readdir(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    Ok(names(listed(interp, "readdir", &path("readdir", &args[0])?)?).into())
}

/// Returns the result of `stat` and `lstat`: a struct, 0 and no message; or nothing, -1 and the system's message.
fn info_of(interp: &Interp, who: &str, ask: fn(&Path) -> io::Result<Metadata>, args: &[Value]) -> Flow<Outcome> {
    if args[0].as_text().is_none() {
        return fail!("{who}: NAME must be a string");
    }
    Ok(match ask(&interp.env.at(&path(who, &args[0])?)) {
        Ok(metadata) => vec![info(&metadata), Value::Num(0.0), Value::string("")],
        Err(error) => vec![Value::empty(), Value::Num(-1.0), Value::string(system(&error))],
    }
    .into())
}

/// Returns the fields of `stat`: `st_mode` and the others of POSIX's `sys/stat.h`; times are in seconds since 1970.
#[cfg(unix)]
fn info(metadata: &Metadata) -> Value {
    use std::os::unix::fs::MetadataExt;
    let number = |name: &str, value: f64| (name.into(), vec![Value::Num(value)]);
    fields([
        number("dev", metadata.dev() as f64),
        number("ino", metadata.ino() as f64),
        number("mode", metadata.mode() as f64),
        ("modestr".into(), vec![Value::string(permissions(metadata.mode()))]),
        number("nlink", metadata.nlink() as f64),
        number("uid", metadata.uid() as f64),
        number("gid", metadata.gid() as f64),
        number("rdev", metadata.rdev() as f64),
        number("size", metadata.size() as f64),
        number("atime", metadata.atime() as f64),
        number("mtime", metadata.mtime() as f64),
        number("ctime", metadata.ctime() as f64),
        number("blksize", metadata.blksize() as f64),
        number("blocks", metadata.blocks() as f64),
    ])
}

/// Returns the fields of `stat` that every system has.
#[cfg(not(unix))]
fn info(metadata: &Metadata) -> Value {
    let time = |name: &str, value: io::Result<std::time::SystemTime>| {
        let since = value.ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
        (name.into(), vec![Value::Num(since.map_or(0.0, |t| t.as_secs() as f64))])
    };
    let kind = if metadata.is_dir() { 0o040_000 } else { 0o100_000 };
    let mode = kind | if metadata.permissions().readonly() { 0o444 } else { 0o644 };
    fields([
        ("mode".into(), vec![Value::Num(f64::from(mode))]),
        ("modestr".into(), vec![Value::string(permissions(mode))]),
        ("size".into(), vec![Value::Num(metadata.len() as f64)]),
        time("atime", metadata.accessed()),
        time("mtime", metadata.modified()),
        time("ctime", metadata.created()),
    ])
}

fn fields<const N: usize>(fields: [(Arc<str>, Vec<Value>); N]) -> Value {
    Value::Struct(Arc::new(StructArray {
        fields: IndexMap::from(fields),
        dims: Dims::scalar(),
        class: None,
        cleanup: None,
    }))
}

/// Formats a mode as `ls -l` does: the kind, then the permissions to read, write and run.
fn permissions(mode: u32) -> String {
    let kind = match mode & 0o170_000 {
        0o040_000 => 'd',
        0o120_000 => 'l',
        0o020_000 => 'c',
        0o060_000 => 'b',
        0o010_000 => 'p',
        0o140_000 => 's',
        _ => '-',
    };
    let may = (0..9).map(|k| if mode & (0o400 >> k) != 0 { ['r', 'w', 'x'][k % 3] } else { '-' });
    let mut text: Vec<char> = std::iter::once(kind).chain(may).collect();
    // The set-user-ID and set-group-ID bits, and the sticky bit of a folder.
    for (bit, at, letter) in [(0o4000, 3, 's'), (0o2000, 6, 's'), (0o1000, 9, 't')] {
        if mode & bit != 0 {
            text[at] = if text[at] == 'x' { letter } else { letter.to_ascii_uppercase() };
        }
    }
    text.push(' ');
    text.into_iter().collect()
}

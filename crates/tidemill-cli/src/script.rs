//! `tidemill run`, `tidemill eval`: run scripts on one runtime, alone or many at once.
//!
//! In: files, `-`, or a text. Out: the scripts' output on the standard output; errors with their place and their call
//! stack on the standard error; an exit status. Must hold: lines of different scripts never mix.

use super::sink::{Console, Shared, say};
use super::{INTERRUPTED, Interrupts};
use crate::shared::parse_device;
use ariadne::{Config, IndexType, Label, Report, ReportKind};
use clap::Args;
use futures::FutureExt;
use std::any::Any;
use std::borrow::Cow;
use std::io::{IsTerminal, Read};
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidemill::{DEVICE_VARIABLE, DeviceChoice, Error, ErrorKind, Result, Runtime};
use tidemill_script::Script;
use tidemill_script::env::Options as ScriptOptions;
use tidemill_script::error::{Call, ScriptError};
use tidemill_script::machine::parallel_map;
use tidemill_script::output::Output;
use tidemill_script::source::{EVALUATED, Place, Source};

/// Options of `tidemill run`.
#[derive(Args)]
pub struct RunOptions {
    /// Script files; `-` is the standard input
    #[arg(required = true, value_name = "FILE.m")]
    files: Vec<PathBuf>,
    /// Run every file this many times at once
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    copies: u32,
    /// Begin every line with the name of its script
    #[arg(long)]
    prefix: bool,
    /// Print the plan of everything that is computed on the runtime, before it runs
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    place: PlaceOptions,
    /// The arguments that `argv()` returns
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<String>,
}

/// Options of `tidemill eval`.
#[derive(Args)]
pub struct EvalOptions {
    /// Statements
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    text: String,
    #[command(flatten)]
    place: PlaceOptions,
}

/// The device and the surroundings of scripts, and what is recorded of their runs.
#[derive(Args)]
pub struct PlaceOptions {
    /// Where to compute: auto, host, gpu or gpu:N; auto if neither is given
    #[arg(long, value_name = "DEVICE", env = DEVICE_VARIABLE, hide_env_values = true, value_parser = parse_device)]
    pub device: Option<DeviceChoice>,
    /// The seed of the random numbers
    #[arg(long, default_value_t = 0, value_name = "SEED")]
    pub seed: u64,
    /// Write a timeline
    #[arg(long, value_name = "OUT.json")]
    pub trace: Option<PathBuf>,
    /// Print counters at the end
    #[arg(long)]
    pub stats: bool,
    /// For scripts that are not trusted: no access to files, folders, the environment, processes or the standard input
    #[arg(long)]
    pub sandbox: bool,
}

/// How long the end of the process waits for results that are still being computed. Nothing reads them any more.
const DRAIN: Duration = Duration::from_secs(1);

impl PlaceOptions {
    /// Starts the runtime.
    ///
    /// # Errors
    /// A device that does not exist; a timeline that cannot be written.
    pub async fn start(&self) -> Result<Runtime> {
        // With this, a script that computes little never loads a driver.
        let mut builder = Runtime::builder().open_on_demand(true).drain(DRAIN);
        if let Some(device) = self.device {
            builder = builder.device(device);
        }
        if let Some(path) = &self.trace {
            builder = builder.timeline(path);
        }
        builder.start().await
    }
}

/// A script, and the number of its runs.
struct Task {
    script: Script,
    name: String,
    options: ScriptOptions,
    copies: u32,
}

/// Runs files, and returns the exit status.
///
/// # Errors
/// Errors of starting or ending the runtime.
pub async fn run(options: RunOptions, interrupts: &Interrupts) -> Result<u8> {
    let mut status = 0;
    let mut tasks = Vec::new();
    for file in &options.files {
        match read(file) {
            Ok((source, path)) => match Script::from_source(&source) {
                Ok(script) => {
                    let stem = file.file_stem().map_or("-".into(), |s| s.to_string_lossy().into_owned());
                    let (arguments, explain) = (options.arguments.clone(), options.explain);
                    let interrupt = Some(interrupts.scripts.clone());
                    let sandbox = options.place.sandbox;
                    let script_options =
                        ScriptOptions { arguments, explain, path, interrupt, sandbox, ..ScriptOptions::default() };
                    tasks.push(Task { script, name: stem, options: script_options, copies: options.copies });
                }
                Err(error) => {
                    report(&error);
                    status = 1;
                }
            },
            Err(error) => {
                say(format_args!("error: {}: {}\n", file.display(), error.message()));
                status = 1;
            }
        }
    }
    if tasks.is_empty() {
        return Ok(status);
    }
    Ok(run_tasks(tasks, &options.place, options.prefix).await?.max(status))
}

/// Runs a text, and returns the exit status.
///
/// # Errors
/// Those of [`run`].
pub async fn eval(options: EvalOptions, interrupts: &Interrupts) -> Result<u8> {
    match Script::from_source(&Source::given(EVALUATED, options.text)) {
        Ok(script) => {
            let (path, interrupt) = (vec![PathBuf::from(".")], Some(interrupts.scripts.clone()));
            let sandbox = options.place.sandbox;
            let script_options = ScriptOptions { path, interrupt, sandbox, ..ScriptOptions::default() };
            let task = Task { script, name: "eval".into(), options: script_options, copies: 1 };
            run_tasks(vec![task], &options.place, false).await
        }
        Err(error) => {
            report(&error);
            Ok(1)
        }
    }
}

/// The most bytes of a script's text. Some files, such as devices, have no end.
const TEXT_BYTES_MAX: u64 = 1 << 28;

/// Reads everything from a reader.
fn whole(reader: impl Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::Io,
            format!("is longer than the {TEXT_BYTES_MAX} bytes that a script may have"),
        ));
    }
    Ok(bytes)
}

/// Returns a file's text, and the folders in which its functions are looked for.
fn read(file: &Path) -> Result<(Arc<Source>, Vec<PathBuf>)> {
    if file == Path::new("-") {
        let bytes = whole(std::io::stdin().lock())?;
        return Ok((Source::new("-", decoded(&bytes)), vec![PathBuf::from(".")]));
    }
    let opened = std::fs::File::open(file)?;
    if opened.metadata()?.is_dir() {
        return Err(Error::new(ErrorKind::Io, "is a folder"));
    }
    let bytes = whole(opened)?;
    // The folder is absolute, so that functions beside the script are found even after `cd`.
    let folder = std::path::absolute(file)?.parent().unwrap_or(Path::new(".")).to_path_buf();
    let path = vec![folder, PathBuf::from(".")];
    Ok((Source::file(file, decoded(&bytes)), path))
}

/// Decodes the text of a file: UTF-8, or UTF-16 if its first two bytes are a byte order mark, as in files from Windows.
fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    let units = |unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|two| unit([two[0], two[1]])).collect();
        Cow::Owned(String::from_utf16_lossy(&units))
    };
    match bytes {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes),
    }
}

/// How scripts share the console.
#[derive(Clone, Copy)]
struct Form {
    /// Whether every line begins with its script's name.
    prefix: bool,
    /// Whether only whole lines are printed, so that lines of different scripts do not mix.
    whole_lines: bool,
}

/// All runs, and the state that they share.
struct Work {
    tasks: Vec<Task>,
    runtime: Runtime,
    console: Arc<Console>,
    seed: u64,
    form: Form,
}

impl Work {
    /// Does the run with this number among all runs, and returns its exit status.
    async fn run(&self, number: usize) -> i32 {
        let (mut copy, mut task) = (number, 0);
        while copy >= self.tasks[task].copies as usize {
            copy -= self.tasks[task].copies as usize;
            task += 1;
        }
        let Task { script, name, options, .. } = &self.tasks[task];
        // Runs with the same name are numbered, even if they come from different files.
        let runs = |tasks: &[Task]| tasks.iter().filter(|t| t.name == *name).map(|t| t.copies as usize).sum::<usize>();
        let name = match runs(&self.tasks) {
            1 => name.clone(),
            _ => format!("{name}#{}", runs(&self.tasks[..task]) + copy + 1),
        };
        let session = self.runtime.session(&name).seed(self.seed).stream(number as u64).open();
        let label = self.form.prefix.then(|| format!("{name}: "));
        let output: Box<dyn Output> = Box::new(Shared::new(self.console.clone(), self.form.whole_lines, label));
        match script.run_with(&session, output, options.clone()).await {
            Ok(workspace) => {
                if let Some(error) = &workspace.error {
                    self.tell(&name, error);
                }
                workspace.exit.unwrap_or(if workspace.is_interrupted { i32::from(INTERRUPTED) } else { 0 })
            }
            Err(error) => {
                self.tell(&name, &error);
                1
            }
        }
    }

    /// Prints the error that ended a run.
    fn tell(&self, name: &str, error: &ScriptError) {
        self.console.flush();
        report_of(self.form.whole_lines.then_some(name), error);
    }
}

/// The exit status of a run, or its panic.
type Ended = Result<i32, Box<dyn Any + Send>>;

fn status_of(ended: Ended) -> u8 {
    match ended {
        Ok(code) => code.rem_euclid(256) as u8,
        Err(panic) => {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it does not say why");
            say(format_args!("error: a script stopped on a broken invariant, a bug in Tidemill: {words}\n"));
            1
        }
    }
}

async fn run_tasks(tasks: Vec<Task>, place: &PlaceOptions, prefix: bool) -> Result<u8> {
    let total: usize = tasks.iter().map(|task| task.copies as usize).sum();
    let work = Arc::new(Work {
        tasks,
        runtime: place.start().await?,
        console: Console::new(),
        seed: place.seed,
        form: Form { prefix, whole_lines: total > 1 || prefix },
    });
    let all = work.clone();
    let run = async move |number| status_of(AssertUnwindSafe(all.run(number)).catch_unwind().await);
    let status = work.console.end(parallel_map(total, run).await.into_iter().max().unwrap_or(0));
    if place.stats {
        say(work.runtime.stats());
    }
    // The scripts have dropped their references.
    if let Some(work) = Arc::into_inner(work) {
        work.runtime.shutdown().await?;
    }
    Ok(status)
}

/// Prints an error with its place, a caret under it, and the calls that were open.
pub fn report(error: &ScriptError) {
    report_of(None, error);
}

/// Does the same as [`report`], with the name of the script that the error ended.
fn report_of(script: Option<&str>, error: &ScriptError) {
    let mut text = Vec::new();
    match &error.place {
        Some(place) if is_long_line(place) => text = beside_the_place(error, place).into_bytes(),
        Some(place) => {
            let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            let name = place.source.name.clone();
            let range = place.span.range();
            // A place at the very end has no character to point at.
            let end = range.end.min(place.source.text.len()).max(range.start.min(place.source.text.len()));
            let span = (name.clone(), range.start.min(end)..end);
            let mut report = Report::build(ReportKind::Custom("error", ariadne::Color::Red), span.clone())
                .with_config(Config::default().with_color(colour).with_index_type(IndexType::Byte).with_compact(true))
                .with_message(&error.message)
                .with_label(Label::new(span).with_message(match error.read() {
                    Some(_) => "recorded here",
                    None => error.identifier.as_str(),
                }));
            if let Some(read) = error.read() {
                if Arc::ptr_eq(&read.source, &place.source) {
                    let label = Label::new((name.clone(), read.span.range())).with_order(1);
                    report = report.with_label(label.with_message("read here"));
                } else {
                    let at = read.source.position(read.span.start);
                    report = report.with_note(format!("read at {}:{}:{}", read.source.name, at.line, at.column));
                }
            }
            if let Some(help) = &error.help {
                report = report.with_help(help);
            }
            let source = (name, ariadne::Source::from(place.source.text.as_str()));
            let _ = report.finish().write(source, &mut text);
            if !colour {
                text = without_colours(&text);
            }
        }
        None => text = format!("error: {}\n", error.message).into_bytes(),
    }
    // The place tells the script's own line, unless the error is elsewhere.
    let place = error.place.as_ref();
    let is_elsewhere = |call: &Call| place.is_some_and(|p| !Arc::ptr_eq(&p.source, &call.place.source));
    let calls = &error.stack;
    if calls.iter().any(|call| !call.function.is_empty() || is_elsewhere(call)) {
        let mut lines: Vec<(String, usize)> = Vec::new();
        for call in calls {
            let at = call.place.source.position(call.place.span.start);
            let (source, function) = (&call.place.source.name, call.function.as_str());
            let function = match function {
                "" if call.place.source.is_given() => continue,
                "" => "the script",
                function => function,
            };
            let line = format!("    {function} at line {} column {} of {source}", at.line, at.column);
            match lines.last_mut() {
                Some((last, times)) if *last == line => *times += 1,
                _ => lines.push((line, 1)),
            }
        }
        let heading = if lines.is_empty() { "" } else { "error: called from\n" };
        text.extend_from_slice(heading.as_bytes());
        for (line, times) in lines {
            // A recursion calls from the same place again and again.
            let again = if times > 1 { format!(", {times} times") } else { String::new() };
            text.extend_from_slice(format!("{line}{again}\n").as_bytes());
        }
    }
    if let Some(script) = script {
        text.extend_from_slice(format!("error: in {script}\n").as_bytes());
    }
    use std::io::Write;
    let _ = std::io::stderr().lock().write_all(&text);
}

/// The longest line that is shown completely. Of a longer line, this much is shown before a place and behind its
/// beginning.
const LINE_BYTES_MAX: usize = 1000;
const BEFORE_CHARS: usize = 60;
const AFTER_CHARS: usize = 100;

/// Returns the range of the line in which a place begins.
fn line_of(place: &Place) -> Range<usize> {
    let text = &place.source.text;
    let at = place.source.floor_char_boundary(place.span.start as usize);
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    start..text[at..].find('\n').map_or(text.len(), |end| at + end)
}

/// Whether a place's line is too long to read, as in generated or binary files.
fn is_long_line(place: &Place) -> bool {
    line_of(place).len() > LINE_BYTES_MAX
}

/// Returns the same report with only a part of the line.
fn beside_the_place(error: &ScriptError, place: &Place) -> String {
    let (source, line) = (&place.source, line_of(place));
    let at = source.floor_char_boundary(place.span.start as usize);
    let before = source.text[line.start..at].char_indices().rev().nth(BEFORE_CHARS - 1).map_or(0, |(i, _)| i);
    let after = source.text[at..line.end].char_indices().nth(AFTER_CHARS).map_or(line.end, |(i, _)| at + i);
    // Control characters have no width.
    let shown = |part: &str| part.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    let position = source.position(place.span.start);
    let left = format!("{}{}", if before > 0 { "…" } else { "" }, shown(&source.text[line.start + before..at]));
    let right = format!("{}{}", shown(&source.text[at..after]), if after < line.end { "…" } else { "" });
    let number = position.line.to_string();
    let (margin, blank) = (" ".repeat(number.len()), " ".repeat(left.chars().count()));
    let mut text = format!("error: {}\n {margin} ╭─[ {}:{number}:{} ]\n", error.message, source.name, position.column);
    text.push_str(&format!(" {number} │{left}{right}\n {margin} │{blank}╰─ {}\n", error.identifier));
    if let Some(help) = &error.help {
        text.push_str(&format!(" {margin} │Help: {help}\n"));
    }
    text
}

/// Removes colours from a text, since the heading of a report is always coloured.
fn without_colours(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut inside = false;
    for &byte in text {
        match (inside, byte) {
            (false, 0x1b) => inside = true,
            (true, b'm') => inside = false,
            (true, _) => {}
            (false, byte) => plain.push(byte),
        }
    }
    plain
}

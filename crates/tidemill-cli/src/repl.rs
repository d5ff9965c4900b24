//! `tidemill repl`: statements as they are typed.
//!
//! In: lines, edited and remembered by a library. Out: what they print. Must hold: an interrupt ends what runs, or the
//! line that is typed, and leaves the variables alone; only `exit` or the end of the input ends the session.

use super::script::{PlaceOptions, report};
use super::sink::{Console, Shared, say};
use super::{Interrupts, LOOK_UP};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidemill::{Error, ErrorKind, Result};
use tidemill_script::env::{Env, Options};
use tidemill_script::error::ScriptError;
use tidemill_script::machine::{self, End, Interp};
use tidemill_script::source::{Source, TYPED};
use tokio::sync::oneshot;

/// The stack of what runs a text.
const STACK_BYTES: usize = 32 << 20;

/// Reads and runs until the input ends; the exit status.
///
/// # Errors
/// What keeps the runtime from starting or ending, and a terminal that cannot be read.
pub async fn run(options: PlaceOptions, interrupts: Arc<Interrupts>) -> Result<u8> {
    let runtime = options.start().await?;
    let session = runtime.session("repl").seed(options.seed).open();
    let console = Console::new();
    let output = Shared::new(console.clone(), false, None);
    let left = output.left();
    let (path, interrupt) = (vec![PathBuf::from(".")], Some(interrupts.scripts.clone()));
    let script_options = Options { path, interrupt, sandbox: options.sandbox, ..Options::default() };
    let interp = Interp::new(Env::new(session, Box::new(output), script_options));
    let mut machine = Machine { interp, left };
    machine.interp.begin_session();
    let mut lines = Lines::new()?;
    let mut status = 0;
    while let Some(text) = lines.statement().await? {
        // Of a program or a file that was cut off; who types sees what is said of it.
        if lines.is_cut_off {
            status = 1;
        }
        if let Some(topic) = help_topic(&text) {
            help(&mut machine.interp, topic);
            console.flush();
            continue;
        }
        let ended;
        let source = Source::given(TYPED, text);
        let begin = |interp: &mut Interp| interp.begin_text(&source);
        (machine, ended) = run_begun(machine, begin, &console, &interrupts).await?;
        if let Some(code) = ended {
            status = code.rem_euclid(256) as u8;
            break;
        }
        if console.is_closed() {
            break;
        }
    }
    // What a variable's end runs.
    let begin = |interp: &mut Interp| {
        interp.drop_variables();
        Ok(())
    };
    (machine, _) = run_begun(machine, begin, &console, &interrupts).await?;
    lines.remember();
    status = console.end(status);
    if options.stats {
        say(runtime.stats());
    }
    drop(machine);
    runtime.shutdown().await?;
    Ok(status)
}

/// What runs texts.
struct Machine {
    interp: Interp,
    /// Set where it is left behind: it is no longer heard.
    left: Arc<AtomicBool>,
}

/// Runs what `begin` begins in the session's variables, and what is due behind it; a status if that asks to end.
async fn run_begun(
    mut machine: Machine,
    begin: impl FnOnce(&mut Interp) -> std::result::Result<(), ScriptError>,
    console: &Arc<Console>,
    interrupts: &Interrupts,
) -> Result<(Machine, Option<i32>)> {
    // What was meant for the line that was typed is not for what runs now.
    interrupts.heed();
    machine.interp.heed_interrupts();
    if let Err(error) = begin(&mut machine.interp) {
        report(&error);
        machine.interp.abandon();
        return Ok((machine, None));
    }
    loop {
        let end;
        (machine, end) = drive(machine, console, interrupts).await?;
        console.flush();
        interrupts.heed();
        machine.interp.abandon();
        match end {
            Some(End::Done) => return Ok((machine, None)),
            Some(End::Interrupted) => {
                say("interrupted\n");
                return Ok((machine, None));
            }
            Some(End::Exit { status, after }) => {
                after.iter().for_each(|error| report(error));
                return Ok((machine, Some(status)));
            }
            Some(End::Failed(error)) => {
                report(&error);
                return Ok((machine, None));
            }
            None => {
                say("interrupted\n");
                // Objects of `onCleanup` that were left behind with the step that did not end.
                if !machine.interp.is_due() {
                    return Ok((machine, None));
                }
            }
        }
    }
}

/// Runs what has begun, on a thread of its own: a step that computes for hours does not look up, and is left behind
/// when an interrupt comes, with another machine in its place that has the variables as they stood when the step began.
async fn drive(
    mut machine: Machine,
    console: &Arc<Console>,
    interrupts: &Interrupts,
) -> Result<(Machine, Option<End>)> {
    let kept = machine.interp.keep();
    let left = machine.left.clone();
    let (tell, mut told) = oneshot::channel();
    let run = move || {
        let end = futures::executor::block_on(machine::drive(&mut machine.interp));
        // Where nobody waits any more, it has been left behind.
        let _ = tell.send((machine, Some(end)));
    };
    std::thread::Builder::new().name("text".into()).stack_size(STACK_BYTES).spawn(run)?;
    // Another machine in this one's place, which is no longer heard.
    let revived = || {
        let output = Shared::new(console.clone(), false, None);
        let heard = output.left();
        let interp = kept.revive(Box::new(output))?;
        left.store(true, Ordering::Relaxed);
        Some(Machine { interp, left: heard })
    };
    let mut asked = 0;
    let ended = loop {
        tokio::select! {
            ended = &mut told => break ended,
            () = interrupts.asked() => {
                asked += 1;
                interrupts.heed();
            }
            () = tokio::time::sleep(LOOK_UP), if asked > 0 => {
                // What cleans up is waited for, until it is interrupted, too. Between two steps it sees that in a
                // moment.
                if (asked > 1 || !kept.is_guarded())
                    && let Some(machine) = revived()
                {
                    return Ok((machine, None));
                }
            }
        }
    };
    if let Ok(ended) = ended {
        return Ok(ended);
    }
    // The thread has panicked, and said so.
    let machine = revived().ok_or_else(|| Error::new(ErrorKind::Internal, "a text stopped on a broken invariant"))?;
    say("error: a text stopped on a broken invariant, a bug in Tidemill\n");
    Ok((machine, None))
}

/// The name after `help`, which may be a variable as well (`help = 3`).
fn help_topic(text: &str) -> Option<&str> {
    let rest = text.trim().strip_prefix("help")?;
    let topic = rest.trim_end_matches([';', ',']).trim().trim_matches(['"', '\'']);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let is_apart = rest.is_empty() || rest.starts_with([' ', '\t', ';', ',']);
    (is_apart && topic.chars().all(is_name)).then_some(topic)
}

fn help(interp: &mut Interp, topic: &str) {
    let text = machine::help(interp, topic).unwrap_or_else(|| format!("help: '{topic}' not found\n"));
    interp.env.print(text);
}

/// Where statements come from: a terminal with editing and history, or plain lines.
struct Lines {
    editor: Option<DefaultEditor>,
    history: Option<PathBuf>,
    /// Whether the input, no terminal, ended within a statement.
    is_cut_off: bool,
}

impl Lines {
    fn new() -> Result<Lines> {
        if !std::io::stdin().is_terminal() {
            return Ok(Lines { editor: None, history: None, is_cut_off: false });
        }
        let mut editor = DefaultEditor::new().map_err(terminal)?;
        let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
        let history = home.map(|h| PathBuf::from(h).join(".tidemill_history"));
        if let Some(path) = &history {
            // The first session has no history yet.
            let _ = editor.load_history(path);
        }
        Ok(Lines { editor: Some(editor), history, is_cut_off: false })
    }

    /// The next whole statement, over several lines if need be; `None` at the end of the input.
    async fn statement(&mut self) -> Result<Option<String>> {
        let mut text = String::new();
        loop {
            let prompt = if text.is_empty() { ">> " } else { ".. " };
            let line = match self.line(prompt)? {
                Line::Text(line) => line,
                Line::Cancelled => {
                    text.clear();
                    continue;
                }
                Line::End if text.trim().is_empty() => return Ok(None),
                Line::End => {
                    let parses = machine::check_syntax(&Source::given(TYPED, text.as_str())).is_ok();
                    self.is_cut_off = self.editor.is_none() && !parses;
                    return Ok(Some(text));
                }
            };
            text.push_str(&line);
            text.push('\n');
            if !machine::is_incomplete(&text) {
                if text.trim().is_empty() {
                    text.clear();
                    continue;
                }
                if let Some(editor) = &mut self.editor {
                    let _ = editor.add_history_entry(text.trim_end());
                }
                return Ok(Some(text));
            }
        }
    }

    fn line(&mut self, prompt: &str) -> Result<Line> {
        match &mut self.editor {
            Some(editor) => match editor.readline(prompt) {
                Ok(line) => Ok(Line::Text(line)),
                Err(ReadlineError::Interrupted) => Ok(Line::Cancelled),
                Err(ReadlineError::Eof) => Ok(Line::End),
                Err(error) => Err(terminal(error)),
            },
            None => {
                let mut line = Vec::new();
                use std::io::BufRead;
                let n = std::io::stdin().lock().read_until(b'\n', &mut line)?;
                if n == 0 {
                    return Ok(Line::End);
                }
                while matches!(line.last(), Some(b'\n' | b'\r')) {
                    line.pop();
                }
                Ok(Line::Text(String::from_utf8_lossy(&line).into_owned()))
            }
        }
    }

    fn remember(&mut self) {
        if let (Some(editor), Some(path)) = (&mut self.editor, &self.history) {
            // A home that cannot be written has no history.
            let _ = editor.save_history(path);
        }
    }
}

enum Line {
    Text(String),
    Cancelled,
    End,
}

fn terminal(error: ReadlineError) -> Error {
    Error::new(ErrorKind::Io, format!("the terminal cannot be read: {error}"))
}

//! `tidemill repl`: runs statements as they are typed.
//!
//! In: lines, which a library lets users edit and keeps as a history. Out: what the statements print. Must hold: an
//! interrupt ends the running text, or the line being typed, and leaves the variables alone. Only `exit` or the end of
//! the input ends the session.

use super::script::{PlaceOptions, report};
use super::sink::{Console, Shared, say};
use super::{Interrupts, NOTICE_TIME};
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

/// The stack size of the thread that runs a text.
const STACK_BYTES: usize = 32 << 20;

/// Reads and runs statements until the input ends, and returns the exit status.
///
/// # Errors
/// Errors of starting or ending the runtime, and a terminal that cannot be read.
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
        // The input was a program or a file that was cut off. On a terminal, users see the message.
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
    // The end of a variable may run cleanup functions.
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

/// A machine that runs texts.
struct Machine {
    interp: Interp,
    /// Set when the machine is left behind, so that its output is dropped.
    left: Arc<AtomicBool>,
}

/// Runs the text that `begin` begins in the session's variables, and the cleanup functions that become due. Returns a
/// status if the text asks to exit.
async fn run_begun(
    mut machine: Machine,
    begin: impl FnOnce(&mut Interp) -> std::result::Result<(), ScriptError>,
    console: &Arc<Console>,
    interrupts: &Interrupts,
) -> Result<(Machine, Option<i32>)> {
    // Interrupts that were meant for the typed line do not apply to the text that runs now.
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
                // These are `onCleanup` objects that were left behind with the step that did not end.
                if !machine.interp.is_due() {
                    return Ok((machine, None));
                }
            }
        }
    }
}

/// Runs the begun text on a thread of its own. A step that computes for hours does not notice interrupts, so at an
/// interrupt it is left behind. Another machine takes its place, with the variables as they were when the step began.
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
        // If nothing receives this, the machine was left behind.
        let _ = tell.send((machine, Some(end)));
    };
    std::thread::Builder::new().name("text".into()).stack_size(STACK_BYTES).spawn(run)?;
    // Starts another machine with the variables that `kept` holds. From then on, the old machine's output is dropped.
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
            () = tokio::time::sleep(NOTICE_TIME), if asked > 0 => {
                // Cleanup is waited for, until it is interrupted, too. Between two steps, the machine notices the
                // interrupt within a moment.
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
    // The thread has panicked, and has reported it.
    let machine = revived().ok_or_else(|| Error::new(ErrorKind::Internal, "a text stopped on a broken invariant"))?;
    say("error: a text stopped on a broken invariant, a bug in Tidemill\n");
    Ok((machine, None))
}

/// Returns the name after `help`. A variable may be called `help`, too (`help = 3`).
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

/// The source of statements: a terminal with editing and history, or plain lines.
struct Lines {
    editor: Option<DefaultEditor>,
    history: Option<PathBuf>,
    /// Whether the input was no terminal, and ended within a statement.
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
            // At the first session there is no history yet.
            let _ = editor.load_history(path);
        }
        Ok(Lines { editor: Some(editor), history, is_cut_off: false })
    }

    /// Returns the next complete statement, which may take several lines; `None` at the end of the input.
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
            // If the home folder cannot be written, no history is kept.
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

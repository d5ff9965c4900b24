//! `tidemill repl`: statements as they are typed.
//!
//! In: lines, edited and remembered by a library. Out: what they print. Must hold: an interrupt ends what runs, or the
//! line that is typed, and leaves the variables alone; only `exit` or the end of the input ends the session.

use super::Interrupts;
use super::script::{PlaceOptions, report};
use super::sink::{Console, Shared};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use tidemill::script::env::{Env, Options};
use tidemill::script::source::Source;
use tidemill::script::vm::{End, Interp};
use tidemill::script::{builtins, library, syntax};
use tidemill::{Error, ErrorKind, Result};

/// Reads and runs until the input ends; the exit status.
///
/// # Errors
/// What keeps the runtime from starting or ending, and a terminal that cannot be read.
pub async fn run(options: PlaceOptions, interrupts: Arc<Interrupts>) -> Result<u8> {
    let runtime = options.start().await?;
    let session = runtime.session("repl").seed(options.seed).open();
    let console = Arc::new(Console::new());
    let output = Box::new(Shared::new(console.clone(), false, None));
    let script_options = Options { path: vec![PathBuf::from(".")], ..Options::default() };
    let mut interp = Interp::new(Env::new(session, output, script_options));
    interp.begin_session();
    let mut lines = Lines::new()?;
    let mut status = 0;
    while let Some(text) = lines.statement().await? {
        if let Some(topic) = help_topic(&text) {
            help(&mut interp, topic);
            console.flush();
            continue;
        }
        if let Some(code) = run_text(&mut interp, text, &console, &interrupts).await {
            status = code.rem_euclid(256) as u8;
            break;
        }
    }
    lines.remember();
    if options.stats {
        eprint!("{}", runtime.stats());
    }
    drop(interp);
    runtime.shutdown().await?;
    Ok(status)
}

/// Runs a text in the session's variables; a status if it asks to end.
async fn run_text(interp: &mut Interp, text: String, console: &Console, interrupts: &Interrupts) -> Option<i32> {
    // What was meant for the line that was typed is not for what runs now.
    interrupts.heed();
    let source = Source::new("repl", text);
    let end = match interp.begin_text(&source) {
        Ok(()) => tokio::select! {
            end = tidemill::script::vm::drive(interp) => Some(end),
            () = interrupts.asked() => None,
        },
        Err(error) => Some(End::Failed(Box::new(error))),
    };
    console.flush();
    match end {
        Some(End::Done) => None,
        Some(End::Exit(130)) | None => {
            interp.abandon();
            eprintln!("interrupted");
            None
        }
        Some(End::Exit(status)) => Some(status),
        Some(End::Failed(error)) => {
            report(&error);
            interp.abandon();
            None
        }
    }
}

/// The name after `help`.
fn help_topic(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    (words.next()? == "help").then(|| words.next().unwrap_or("").trim_end_matches(';'))
}

fn help(interp: &mut Interp, topic: &str) {
    let text = if topic.is_empty() {
        let mut text = String::from("help NAME explains a function. The functions:\n");
        for (title, rows) in builtins::families() {
            let names: Vec<&str> = rows.iter().map(|b| b.name).collect();
            text.push_str(&format!("\n{title}:\n  {}\n", names.join(" ")));
        }
        for (title, rows) in library::families() {
            let names: Vec<&str> = rows.iter().map(|w| w.name).collect();
            text.push_str(&format!("\n{title}:\n  {}\n", names.join(" ")));
        }
        text
    } else {
        match builtins::find(topic) {
            Some(builtin) => format!("{}\n\n  {}\n", builtin.usage, builtin.summary),
            None => match (library::find(topic), interp.documentation(topic)) {
                (Some(written), _) => format!("{}\n\n  {}\n", written.usage, written.summary),
                (None, Some(doc)) => format!("{doc}\n"),
                (None, None) => format!("help: '{topic}' not found\n"),
            },
        }
    };
    interp.env.print(text);
}

/// Where statements come from: a terminal with editing and history, or plain lines.
struct Lines {
    editor: Option<DefaultEditor>,
    history: Option<PathBuf>,
}

impl Lines {
    fn new() -> Result<Lines> {
        if !std::io::stdin().is_terminal() {
            return Ok(Lines { editor: None, history: None });
        }
        let mut editor = DefaultEditor::new().map_err(terminal)?;
        let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
        let history = home.map(|h| PathBuf::from(h).join(".tidemill_history"));
        if let Some(path) = &history {
            // The first session has no history yet.
            let _ = editor.load_history(path);
        }
        Ok(Lines { editor: Some(editor), history })
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
                Line::End => return Ok(Some(text)),
            };
            text.push_str(&line);
            text.push('\n');
            if !syntax::is_incomplete(&text) {
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

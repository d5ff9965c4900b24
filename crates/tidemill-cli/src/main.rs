//! The `tidemill` command.
//!
//! In: arguments. Out: a report on the standard output, errors on the standard error, and an exit code: 0 done,
//! 1 failed, 2 wrong usage, 130 interrupted. The programs themselves are those of `examples/` beside it.
//! Must hold: an interrupt ends scripts behind their cleanup and the runtime in order, so that its timeline opens; a
//! second one ends at once.

#[path = "../examples/concurrent/program.rs"]
mod concurrent;
mod estimates;
mod info;
#[path = "../examples/monte_carlo/program.rs"]
mod monte_carlo;
#[cfg(feature = "image")]
#[path = "../examples/photo/program.rs"]
mod photo;
mod repl;
mod script;
#[path = "../examples/shared/mod.rs"]
mod shared;
mod sink;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use shared::{Outcome, failure, print};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidemill::{Error, ErrorKind, Result};
use tokio::sync::Notify;

/// What a shell expects of a program that was ended by Ctrl-C.
const INTERRUPTED: u8 = 130;

/// So long the last words of an interrupted program may take.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_millis(300);
/// So long an interrupted program may take to notice: a step that computes for minutes does not look up meanwhile.
const LOOK_UP: std::time::Duration = std::time::Duration::from_millis(500);

/// So long it may then take to end: what runs on a device ends with its batch.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// An asynchronous GPU array runtime
#[derive(Parser)]
#[command(name = "tidemill", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run MATLAB-syntax scripts, one or many at once
    Run(script::RunOptions),
    /// Run statements of MATLAB syntax
    Eval(script::EvalOptions),
    /// Type statements of MATLAB syntax and see what they give
    Repl(script::PlaceOptions),
    /// Show devices, features, limits, float profiles and measured constants
    Info(info::Options),
    /// Work with recorded timelines
    #[command(subcommand)]
    Trace(Trace),
    /// Develop pictures: linear light, normalisation, tone, blur, sharpening
    #[cfg(feature = "image")]
    Photo(photo::Options),
    /// Price a call option by simulating its underlying
    MonteCarlo(monte_carlo::Options),
    /// Run a thousand small array programs at once and check their results
    Concurrent(concurrent::Options),
    /// Print a shell's completions
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Subcommand)]
enum Trace {
    /// Print busy times, overlap, the longest kernels and the largest gaps of a timeline
    Summary {
        /// A timeline
        file: PathBuf,
    },
}

/// Interrupts: the first one asks, a second one before that was heeded does not wait for an answer.
#[derive(Default)]
pub struct Interrupts {
    asked: AtomicBool,
    /// Whether the program is ending for it.
    noticed: Arc<AtomicBool>,
    notify: Notify,
    /// What the scripts that run are told.
    scripts: Arc<tidemill_script::interrupt::Interrupt>,
}

impl Interrupts {
    /// Waits for one.
    pub async fn asked(&self) {
        self.notify.notified().await;
    }

    /// Waits for one, and for a while beyond it, in which scripts clean up and end by themselves.
    async fn given_up(&self) {
        self.asked().await;
        self.noticed.store(true, Ordering::Relaxed);
        tokio::time::sleep(LOOK_UP).await;
        while self.is_cleaning() {
            tokio::time::sleep(LOOK_UP).await;
        }
    }

    /// Whether scripts clean up, or will do so when they look up.
    fn is_cleaning(&self) -> bool {
        self.scripts.is_guarded()
    }

    /// Forgets those that came.
    pub fn heed(&self) {
        // A permit may be left of one that nobody waited for.
        let _ = futures::FutureExt::now_or_never(self.notify.notified());
        self.asked.store(false, Ordering::Relaxed);
    }

    /// `outlived`: the command goes on after an interrupt.
    fn ask(self: &Arc<Self>, outlived: bool) {
        if self.asked.swap(true, Ordering::Relaxed) {
            end_at_once();
        }
        self.scripts.raise();
        self.notify.notify_one();
        if !outlived {
            let (interrupts, noticed) = (self.clone(), self.noticed.clone());
            std::thread::spawn(move || {
                std::thread::sleep(LOOK_UP);
                while interrupts.is_cleaning() {
                    std::thread::sleep(LOOK_UP);
                }
                if noticed.load(Ordering::Relaxed) {
                    std::thread::sleep(PATIENCE);
                }
                end_at_once();
            });
        }
    }
}

/// Ends the process as it stands. A timeline opens after every write to it.
fn end_at_once() -> ! {
    // Nobody may be reading, so that a write never ends.
    let (told, is_told) = std::sync::mpsc::channel();
    let last_words = move || {
        sink::flush_in_a_hurry();
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "interrupted");
        let _ = told.send(());
    };
    if std::thread::Builder::new().spawn(last_words).is_ok() {
        let _ = is_told.recv_timeout(LAST_WORDS);
    }
    std::process::exit(i32::from(INTERRUPTED));
}

/// Prints help, the version, or what is wrong with the arguments, and says how that ends.
fn told(answer: &clap::Error) -> ExitCode {
    match answer.print() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe && answer.exit_code() == 0 => {
            failure(&error.into())
        }
        _ => ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2)),
    }
}

fn main() -> ExitCode {
    let Arguments { command } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(answer) => return told(&answer),
    };
    let interrupts = Arc::new(Interrupts::default());
    let heeds_itself = command.heeds_interrupts();
    if let Err(error) = on_interrupt(interrupts.clone(), heeds_itself) {
        return failure(&error);
    }
    let executor = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(executor) => executor,
        Err(error) => return failure(&error.into()),
    };
    // A program that is interrupted is dropped here, and its runtime with it, which completes its timeline.
    let result = executor.block_on(async {
        tokio::select! {
            result = run(command, &interrupts) => Some(result),
            () = interrupts.given_up(), if !heeds_itself => None,
        }
    });
    match result {
        // A script that has cleaned up and ended.
        Some(result) if !heeds_itself && interrupts.asked.load(Ordering::Relaxed) => {
            if let Err(error) = result {
                failure(&error);
            }
            end_at_once()
        }
        Some(Ok(status)) => ExitCode::from(status),
        Some(Err(error)) => failure(&error),
        None => {
            // Tasks that were spawned hold the runtime, too, and so do threads of copies. What does not look up is left
            // behind.
            executor.shutdown_timeout(LOOK_UP);
            end_at_once();
        }
    }
}

impl Command {
    /// Whether an interrupt does not end it.
    fn heeds_interrupts(&self) -> bool {
        matches!(self, Command::Repl(_))
    }
}

/// Runs a command; its exit status: 0 if all that it was asked for was done.
async fn run(command: Command, interrupts: &Arc<Interrupts>) -> Result<u8> {
    match command {
        Command::Run(options) => script::run(options, interrupts).await,
        Command::Eval(options) => script::eval(options, interrupts).await,
        Command::Repl(options) => repl::run(options, interrupts.clone()).await,
        Command::Info(options) => tell(info::run(&options).await?),
        Command::Trace(Trace::Summary { file }) => {
            print(&tidemill::timeline::summary::summarise(file)?)?;
            Ok(0)
        }
        #[cfg(feature = "image")]
        Command::Photo(options) => tell(photo::run(&options).await?),
        Command::MonteCarlo(options) => tell(monte_carlo::run(&options).await?),
        Command::Concurrent(options) => tell(concurrent::run(&options).await?),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "tidemill", &mut text);
            print(&String::from_utf8_lossy(&text))?;
            Ok(0)
        }
    }
}

fn tell(report: impl Outcome) -> Result<u8> {
    shared::tell(&report).map(|succeeded| u8::from(!succeeded))
}

/// `outlived`: the command goes on after an interrupt, though not after a signal to end.
#[cfg(unix)]
fn on_interrupt(interrupts: Arc<Interrupts>, outlived: bool) -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    // One that is ignored (`nohup`) stays so.
    let heeded = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| signal != SIGHUP || !is_ignored(signal));
    let mut signals = signal_hook::iterator::Signals::new(heeded).map_err(uncaught)?;
    let asks = move || signals.forever().for_each(|signal| interrupts.ask(outlived && signal == SIGINT));
    std::thread::Builder::new().name("interrupts".into()).spawn(asks).map(drop).map_err(uncaught)
}

/// Whether whoever began the process had it ignore a signal, as far as the system tells.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(not(unix))]
fn on_interrupt(interrupts: Arc<Interrupts>, outlived: bool) -> Result<()> {
    ctrlc::set_handler(move || interrupts.ask(outlived)).map_err(uncaught)
}

fn uncaught(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("interrupts cannot be caught: {error}"))
}

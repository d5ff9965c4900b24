//! The `tidemill` command.
//!
//! In: arguments. Out: a report on the standard output, errors on the standard error, and an exit code: 0 done, 1
//! failed, 2 wrong usage, 130 interrupted. The programs are those in `examples/`.
//! Must hold: an interrupt lets scripts do their cleanup and ends the runtime in order, so that its timeline is
//! complete. A second interrupt ends the process at once.

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

/// The exit code that a shell expects of a program that was ended by Ctrl-C.
const INTERRUPTED: u8 = 130;

/// How long the last output of an interrupted program may take.
const LAST_OUTPUT_TIME: std::time::Duration = std::time::Duration::from_millis(300);
/// How long an interrupted program may take to notice the interrupt. A step that computes for minutes does not notice
/// it.
const NOTICE_TIME: std::time::Duration = std::time::Duration::from_millis(500);

/// How long it may then take to end. Work on a device ends with its batch.
const END_TIME: std::time::Duration = std::time::Duration::from_secs(5);

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

/// Counts interrupts. The first one asks the program to end. A second one, before the first was handled, ends it at
/// once.
#[derive(Default)]
pub struct Interrupts {
    asked: AtomicBool,
    /// Whether the program is ending because of an interrupt.
    noticed: Arc<AtomicBool>,
    notify: Notify,
    /// The interrupt of the running scripts.
    scripts: Arc<tidemill_script::interrupt::Interrupt>,
}

impl Interrupts {
    /// Waits for an interrupt.
    pub async fn asked(&self) {
        self.notify.notified().await;
    }

    /// Waits for an interrupt, and then for a while in which scripts clean up and end by themselves.
    async fn given_up(&self) {
        self.asked().await;
        self.noticed.store(true, Ordering::Relaxed);
        tokio::time::sleep(NOTICE_TIME).await;
        while self.is_cleaning() {
            tokio::time::sleep(NOTICE_TIME).await;
        }
    }

    /// Whether scripts are cleaning up, or will do so when they notice the interrupt.
    fn is_cleaning(&self) -> bool {
        self.scripts.is_guarded()
    }

    /// Marks all interrupts so far as handled.
    pub fn heed(&self) {
        // There may be a permit left of an interrupt for which nothing waited.
        let _ = futures::FutureExt::now_or_never(self.notify.notified());
        self.asked.store(false, Ordering::Relaxed);
    }

    /// Handles an interrupt. `outlived`: the command goes on after it.
    fn ask(self: &Arc<Self>, outlived: bool) {
        if self.asked.swap(true, Ordering::Relaxed) {
            end_at_once();
        }
        self.scripts.raise();
        self.notify.notify_one();
        if !outlived {
            let (interrupts, noticed) = (self.clone(), self.noticed.clone());
            std::thread::spawn(move || {
                std::thread::sleep(NOTICE_TIME);
                while interrupts.is_cleaning() {
                    std::thread::sleep(NOTICE_TIME);
                }
                if noticed.load(Ordering::Relaxed) {
                    std::thread::sleep(END_TIME);
                }
                end_at_once();
            });
        }
    }
}

/// Ends the process at once. A timeline is complete after every write to it.
fn end_at_once() -> ! {
    // A write may block for ever if its reader does not read, so another thread writes.
    let (told, is_told) = std::sync::mpsc::channel();
    let last_output = move || {
        sink::flush_at_once();
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "interrupted");
        let _ = told.send(());
    };
    if std::thread::Builder::new().spawn(last_output).is_ok() {
        let _ = is_told.recv_timeout(LAST_OUTPUT_TIME);
    }
    std::process::exit(i32::from(INTERRUPTED));
}

/// Prints help, the version, or the usage error, and returns the exit code.
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
    // If the program is interrupted, it is dropped here together with its runtime, which completes the timeline.
    let result = executor.block_on(async {
        tokio::select! {
            result = run(command, &interrupts) => Some(result),
            () = interrupts.given_up(), if !heeds_itself => None,
        }
    });
    match result {
        // The script has cleaned up and ended.
        Some(result) if !heeds_itself && interrupts.asked.load(Ordering::Relaxed) => {
            if let Err(error) = result {
                failure(&error);
            }
            end_at_once()
        }
        Some(Ok(status)) => ExitCode::from(status),
        Some(Err(error)) => failure(&error),
        None => {
            // Spawned tasks and threads of copies hold the runtime, too. Those that do not notice the interrupt are
            // left behind.
            executor.shutdown_timeout(NOTICE_TIME);
            end_at_once();
        }
    }
}

impl Command {
    /// Whether the command handles interrupts and goes on.
    fn heeds_interrupts(&self) -> bool {
        matches!(self, Command::Repl(_))
    }
}

/// Runs a command, and returns its exit status: 0 if everything was done.
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

/// Installs the handlers of signals. `outlived`: the command goes on after an interrupt, though not after a signal to
/// end.
#[cfg(unix)]
fn on_interrupt(interrupts: Arc<Interrupts>, outlived: bool) -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    // A signal that was ignored when the process began (`nohup`) stays ignored.
    let heeded = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| signal != SIGHUP || !is_ignored(signal));
    let mut signals = signal_hook::iterator::Signals::new(heeded).map_err(uncaught)?;
    let asks = move || signals.forever().for_each(|signal| interrupts.ask(outlived && signal == SIGINT));
    std::thread::Builder::new().name("interrupts".into()).spawn(asks).map(drop).map_err(uncaught)
}

/// Whether the process was started with this signal ignored, as far as the system reports it.
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

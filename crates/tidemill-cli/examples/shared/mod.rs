//! What the programs share: the options of a runtime, the way a program ends, and files that are written whole.
//!
//! Each program is a module with `Options`, `run(&Options) -> Result<Report>` and nothing global, so that an example,
//! the `tidemill` command and a test call the same code.

// Every program uses its part of this.
#![allow(dead_code)]

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tidemill::{DEVICE_VARIABLE, DeviceChoice, Error, ErrorKind, IntoDevice, Result, Runtime, Stats};

/// Where to compute, and what to tell of it.
#[derive(Clone, Debug, clap::Args)]
pub struct RuntimeOptions {
    /// Where to compute: auto, host, gpu or gpu:N; auto if neither is given
    #[arg(long, value_name = "DEVICE", env = DEVICE_VARIABLE, hide_env_values = true, value_parser = parse_device)]
    pub device: Option<DeviceChoice>,
    /// Write a timeline to this file; it opens in https://ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Print the runtime's counters at the end
    #[arg(long)]
    pub stats: bool,
    /// Batches that a device may hold at a time
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub batches_in_flight: u32,
}

/// A parser of counts that refuses, as a usage error, those that are too small.
pub fn at_least(least: u64) -> clap::builder::RangedU64ValueParser<usize> {
    clap::builder::RangedU64ValueParser::new().range(least..)
}

/// A parser of numbers that refuses, as a usage error, NaN and what is infinite in single precision, in which the
/// programs compute.
pub fn finite(text: &str) -> std::result::Result<f64, String> {
    let number = text.parse::<f64>().map_err(|error| error.to_string())?;
    if (number as f32).is_finite() { Ok(number) } else { Err("it has to be a finite number (of f32)".to_owned()) }
}

/// As [`finite`]; it refuses zero and what is below it, too.
pub fn positive(text: &str) -> std::result::Result<f64, String> {
    finite(text)
        .and_then(|n| if n as f32 > 0.0 { Ok(n) } else { Err("it has to be a finite number above 0".to_owned()) })
}

impl Default for RuntimeOptions {
    fn default() -> RuntimeOptions {
        RuntimeOptions { device: None, trace: None, stats: false, batches_in_flight: 3 }
    }
}

impl RuntimeOptions {
    /// On a device, with nothing told.
    pub fn on(device: DeviceChoice) -> RuntimeOptions {
        RuntimeOptions { device: Some(device), ..RuntimeOptions::default() }
    }

    /// Starts a runtime.
    ///
    /// # Errors
    /// What `RuntimeBuilder::start` refuses: no such device, a timeline that cannot be written.
    pub async fn start(&self) -> Result<Runtime> {
        let mut builder = Runtime::builder().batches_in_flight(self.batches_in_flight);
        if let Some(device) = self.device {
            builder = builder.device(device);
        }
        if let Some(trace) = &self.trace {
            builder = builder.timeline(trace);
        }
        builder.start().await
    }

    /// Ends a runtime; its counters, if they were asked for.
    ///
    /// # Errors
    /// What `Runtime::shutdown` reports.
    pub async fn finish(&self, runtime: Runtime) -> Result<Option<Stats>> {
        let stats = self.stats.then(|| runtime.stats());
        runtime.shutdown().await?;
        Ok(stats)
    }
}

/// Reads a device's name as the command line and the environment give it; a variable that is set to nothing chooses
/// nothing. A name that could be no device's is an error of use, a device that is missing is not.
///
/// # Errors
/// What may be given, in words.
pub fn parse_device(text: &str) -> std::result::Result<DeviceChoice, String> {
    if text.trim().is_empty() {
        return Ok(DeviceChoice::Auto);
    }
    text.into_device().map_err(|error| error.message().to_owned())
}

/// Counters as the end of a report, or nothing.
pub fn stats_text(stats: &Option<Stats>) -> String {
    stats.as_ref().map(|s| format!("\n{s}")).unwrap_or_default()
}

/// What a program printed and whether it succeeded.
pub trait Outcome: Display {
    /// Whether everything that was asked for was done.
    fn succeeded(&self) -> bool;

    /// Why something was not done, for the standard error.
    fn failures(&self) -> Vec<&Error> {
        Vec::new()
    }
}

/// Prints a report, and on the standard error what it could not do; whether all was done.
///
/// # Errors
/// As [`print`].
pub fn tell(report: &impl Outcome) -> Result<bool> {
    print(report)?;
    for error in report.failures() {
        failure(error);
    }
    Ok(report.succeeded())
}

/// Runs a program to its end and says how it went; the `main` of an example.
pub fn conclude<R: Outcome>(program: impl Future<Output = Result<R>>) -> ExitCode {
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let told = executor.map_err(Error::from).and_then(|executor| executor.block_on(program)).and_then(|r| tell(&r));
    match told {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => failure(&error),
    }
}

/// Prints to the standard output; a reader that has gone away is no error.
///
/// # Errors
/// `ErrorKind::Io` where it cannot be written.
pub fn print(what: &impl Display) -> Result<()> {
    let mut out = io::stdout().lock();
    match write!(out, "{what}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Error::new(ErrorKind::Io, format!("the output cannot be written: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Says what failed.
pub fn failure(error: &Error) -> ExitCode {
    // Nothing is left to be done where even this cannot be written.
    drop(writeln!(io::stderr(), "error: {error}"));
    ExitCode::FAILURE
}

/// Writes a file so that it is there as a whole or not at all: beside its place first, then renamed.
///
/// # Errors
/// `ErrorKind::Io` with the path.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| {
        // It may not even exist.
        drop(std::fs::remove_file(&beside));
        Error::new(ErrorKind::Io, format!("cannot write {}: {error}", path.display()))
    })
}

//! Shared parts of the programs: the options of a runtime, the end of a program, and files that are written as a whole.
//!
//! Each program is a module with `Options`, `run(&Options) -> Result<Report>` and nothing global, so that an example,
//! the `tidemill` command and a test call the same code.

// Each program uses only a part of this.
#![allow(dead_code)]

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tidemill::{DEVICE_VARIABLE, DeviceChoice, Error, ErrorKind, IntoDevice, Result, Runtime, Stats};

/// The options of the runtime, and what is reported about it.
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

/// Makes a parser of counts. Counts that are too small are usage errors.
pub fn at_least(least: u64) -> clap::builder::RangedU64ValueParser<usize> {
    clap::builder::RangedU64ValueParser::new().range(least..)
}

/// Parses a number. NaN, and numbers that are infinite in single precision, in which the programs compute, are usage
/// errors.
pub fn finite(text: &str) -> std::result::Result<f64, String> {
    let number = text.parse::<f64>().map_err(|error| error.to_string())?;
    if (number as f32).is_finite() { Ok(number) } else { Err("it has to be a finite number (of f32)".to_owned()) }
}

/// Does the same as [`finite`]; zero and negative numbers are usage errors, too.
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
    /// Makes options for a device, with nothing reported.
    pub fn on(device: DeviceChoice) -> RuntimeOptions {
        RuntimeOptions { device: Some(device), ..RuntimeOptions::default() }
    }

    /// Starts a runtime.
    ///
    /// # Errors
    /// Errors of `RuntimeBuilder::start`: no such device, or a timeline that cannot be written.
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

    /// Shuts a runtime down, and returns its counters if they were asked for.
    ///
    /// # Errors
    /// Errors of `Runtime::shutdown`.
    pub async fn finish(&self, runtime: Runtime) -> Result<Option<Stats>> {
        let stats = self.stats.then(|| runtime.stats());
        runtime.shutdown().await?;
        Ok(stats)
    }
}

/// Parses a device's name from the command line or the environment. An empty variable chooses nothing. An invalid name
/// is a usage error, but a missing device is not.
///
/// # Errors
/// A description of the valid names.
pub fn parse_device(text: &str) -> std::result::Result<DeviceChoice, String> {
    if text.trim().is_empty() {
        return Ok(DeviceChoice::Auto);
    }
    text.into_device().map_err(|error| error.message().to_owned())
}

/// Returns the counters as the end of a report, or nothing.
pub fn stats_text(stats: &Option<Stats>) -> String {
    stats.as_ref().map(|s| format!("\n{s}")).unwrap_or_default()
}

/// The printed report of a program.
pub trait Outcome: Display {
    /// Whether everything was done.
    fn succeeded(&self) -> bool;

    /// Returns the errors of the parts that were not done, for the standard error.
    fn failures(&self) -> Vec<&Error> {
        Vec::new()
    }
}

/// Prints a report, and its failures on the standard error. Returns whether everything was done.
///
/// # Errors
/// Those of [`print`].
pub fn tell(report: &impl Outcome) -> Result<bool> {
    print(report)?;
    for error in report.failures() {
        failure(error);
    }
    Ok(report.succeeded())
}

/// Runs a program to its end, and reports the outcome; the `main` of an example.
pub fn conclude<R: Outcome>(program: impl Future<Output = Result<R>>) -> ExitCode {
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let told = executor.map_err(Error::from).and_then(|executor| executor.block_on(program)).and_then(|r| tell(&r));
    match told {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => failure(&error),
    }
}

/// Prints to the standard output. A reader that has closed it is no error.
///
/// # Errors
/// `ErrorKind::Io` if it cannot be written.
pub fn print(what: &impl Display) -> Result<()> {
    let mut out = io::stdout().lock();
    match write!(out, "{what}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Error::new(ErrorKind::Io, format!("the output cannot be written: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Prints an error, and returns the exit code of a failure.
pub fn failure(error: &Error) -> ExitCode {
    // If even this cannot be written, nothing more can be done.
    drop(writeln!(io::stderr(), "error: {error}"));
    ExitCode::FAILURE
}

/// Writes a file completely or not at all: first under another name beside it, which is then renamed.
///
/// # Errors
/// `ErrorKind::Io` with the path.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| {
        // The file may not exist.
        drop(std::fs::remove_file(&beside));
        Error::new(ErrorKind::Io, format!("cannot write {}: {error}", path.display()))
    })
}

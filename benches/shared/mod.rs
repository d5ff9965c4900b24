//! Functions that several benches call: they read options of the command line, end the program, and compute quantiles
//! and the memory of the process.

// Every bench uses some of these functions.
#![allow(dead_code)]

use std::fmt::Display;
use std::process::ExitCode;
use std::str::FromStr;

/// Calls `set` with the name and the value of each option of the command line, except the `--bench` that Cargo adds.
///
/// # Errors
/// Exit status 2 if an option is wrong. The function has then written the mistake and `usage` to standard error.
pub fn parsed<O>(
    usage: &str,
    mut options: O,
    set: impl Fn(&mut O, &str, &str) -> Result<(), String>,
) -> Result<O, ExitCode> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(name) = arguments.next() {
        let is_set = match arguments.next() {
            Some(value) => set(&mut options, &name, &value),
            None => Err(format!("{name} needs a value, or is unknown")),
        };
        if let Err(words) = is_set {
            eprintln!("error: {words}\nusage: {usage}");
            return Err(ExitCode::from(2));
        }
    }
    Ok(options)
}

/// Parses the value of an option as a number.
///
/// # Errors
/// A text that names the option and the value, if that is not a number.
pub fn number<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{name}: '{value}' is no number"))
}

/// Parses the value of an option as numbers that are separated by commas.
///
/// # Errors
/// As [`number`].
pub fn numbers<T: FromStr>(name: &str, value: &str) -> Result<Vec<T>, String> {
    value.split(',').map(|part| number(name, part)).collect()
}

/// The exit status for a result. An error is written to standard error.
pub fn ended(result: Result<(), impl Display>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The value that this share of ordered values does not exceed; `None` if there are no values.
pub fn quantile<T: Copy>(ordered: &[T], share: f64) -> Option<T> {
    let place = (ordered.len() as f64 * share) as usize;
    ordered.get(place.min(ordered.len().saturating_sub(1))).copied()
}

/// Bytes of this process that are in memory; 0 if the system does not say.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) << 10
}

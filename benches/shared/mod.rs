//! Functions that several benches call: they read options of the command line, end the program, and compute quantiles
//! and the memory of the process.

// Every bench uses its part of this.
#![allow(dead_code)]

use std::fmt::Display;
use std::process::ExitCode;
use std::str::FromStr;

/// Gives the name and the value of each option of the command line to `set`, but for the `--bench` that Cargo adds.
///
/// # Errors
/// Exit status 2 where an option is wrong. The function has then written the mistake and `usage` to standard error.
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

/// The number that an option has for a value.
///
/// # Errors
/// A text that says so, where the value is none.
pub fn number<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{name}: '{value}' is no number"))
}

/// The numbers, parted by commas, that an option has for a value.
///
/// # Errors
/// As [`number`].
pub fn numbers<T: FromStr>(name: &str, value: &str) -> Result<Vec<T>, String> {
    value.split(',').map(|part| number(name, part)).collect()
}

/// The status of a program that ends so. The standard error says what failed.
pub fn ended(result: Result<(), impl Display>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The value that this share of ordered values does not exceed; `None` of no values.
pub fn quantile<T: Copy>(ordered: &[T], share: f64) -> Option<T> {
    let place = (ordered.len() as f64 * share) as usize;
    ordered.get(place.min(ordered.len().saturating_sub(1))).copied()
}

/// Bytes of this process in memory; 0 where the system does not say.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) << 10
}

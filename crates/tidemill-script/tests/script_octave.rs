//! Tests that thousands of small scripts print the same as GNU Octave 7.3 (`tests/script/record.m` recorded its
//! output). With `TIDEMILL_TESTS=all`, all of them run on the host, every third one with all arrays on the host's
//! runtime, and every 23rd on a GPU, where a case takes a second to compile shaders. Without it, only some of these
//! run. With `TIDEMILL_EVERY_CASE=1`, all of them run everywhere. Known deviations of Octave from MATLAB are in
//! `deviations.txt` with MATLAB's value. Cases that Tidemill does not pass yet are in `not_yet.txt`, and must leave
//! that list once they pass.

#[path = "../../../tests/common/mod.rs"]
mod common;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::sync::Arc;
use tidemill::Runtime;
use tidemill::testing::rounds;
use tidemill_script::Script;
use tidemill_script::env::Options;
use tidemill_script::output::Captured;

/// A line of code and its output.
#[derive(Clone)]
struct Case {
    code: String,
    printed: String,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/script/octave")
}

/// Reads `>>> code` lines and the output that follows each.
fn read(name: &str) -> Vec<Case> {
    let text = std::fs::read(folder().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut cases: Vec<Case> = Vec::new();
    for line in text.split_inclusive('\n') {
        match line.strip_prefix(">>> ") {
            Some(code) => cases.push(Case { code: code.trim_end_matches('\n').to_string(), printed: String::new() }),
            None => {
                if let Some(case) = cases.last_mut() {
                    case.printed.push_str(line);
                }
            }
        }
    }
    cases
}

const FILES: [&str; 23] = [
    "display.txt",
    "elementwise.txt",
    "operators.txt",
    "reductions.txt",
    "indexing.txt",
    "concatenation.txt",
    "printf.txt",
    "extra.txt",
    "forms.txt",
    "shown.txt",
    "text.txt",
    "drawn.txt",
    "language.txt",
    "calls.txt",
    "bounds.txt",
    "numerics.txt",
    "odd.txt",
    "functions.txt",
    "matlab.txt",
    "edges.txt",
    "refused.txt",
    "settled.txt",
    "library_forms.txt",
];

/// Returns the output of a case here; `error: …` if it fails.
fn print_of(rt: &Runtime, code: &str, host_elements_max: usize) -> String {
    let session = rt.session("case").seed(1).open();
    let captured = Arc::new(Mutex::new(Captured::default()));
    let script = match Script::parse(code) {
        Ok(script) => script,
        Err(error) => return format!("error: {}\n", error.message),
    };
    let options = Options { host_elements_max, ..Options::default() };
    let result = futures::executor::block_on(script.run_with(&session, Box::new(captured.clone()), options));
    match result {
        Ok(_) => {
            let mut out = String::from_utf8_lossy(&captured.lock().out).into_owned();
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            out
        }
        Err(error) => format!("error: {}\n", error.message),
    }
}

/// Errors count as equal if both sides fail; their words may differ, except in these files. But `undefined` must not
/// stand for another error, since the function must exist here, too.
fn agrees(file: &str, expected: &str, actual: &str) -> bool {
    let are_errors = expected.starts_with("error: ") && actual.starts_with("error: ");
    let is_undefined = |text: &str| text.contains("' undefined");
    expected == actual
        || are_errors && !WORD_FOR_WORD.contains(&file) && (is_undefined(expected) || !is_undefined(actual))
}

/// Files whose errors must have Octave's words.
const WORD_FOR_WORD: &[&str] = &["bounds.txt", "refused.txt"];

/// Does the same as [`agrees`] for runs in which every array is recorded. There a value outside of a function's real
/// domain is an error that suggests `complex (x)`. A row does not know that it was a range, which Octave lays out by
/// its limits, and a matrix does not know that it is diagonal or a permutation.
fn agrees_recorded(file: &str, expected: &str, actual: &str) -> bool {
    let words = |text: &str| {
        let heading = |line: &str| ["Diagonal Matrix", "Permutation Matrix"].contains(&line);
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("Column") && !heading(line));
        lines.flat_map(|line| line.split_whitespace().map(str::to_owned)).collect::<Vec<_>>()
    };
    agrees(file, expected, actual) || actual.contains("use complex (x) instead") || words(expected) == words(actual)
}

/// Runs every `stride`-th case, and returns a report of those with wrong output.
fn compare(rt: &Runtime, host_elements_max: usize, stride: usize) -> String {
    let deviations: FxHashMap<String, String> =
        read("deviations.txt").into_iter().map(|c| (c.code, c.printed)).collect();
    let not_yet: rustc_hash::FxHashSet<String> = read("not_yet.txt").into_iter().map(|c| c.code).collect();
    // With `TIDEMILL_UPDATE=1`, differences are written to a file, to be sorted into the two lists by hand.
    let update = std::env::var_os("TIDEMILL_UPDATE").is_some() && stride == 1;
    let mut differing = String::new();
    let mut report = String::new();
    let (mut ran, mut late) = (0, 0);
    for file in FILES {
        for case in read(file).into_iter().step_by(stride) {
            let expected = deviations.get(&case.code).unwrap_or(&case.printed);
            let actual = print_of(rt, &case.code, host_elements_max);
            ran += 1;
            let right = if host_elements_max > 0 {
                agrees(file, expected, &actual)
            } else {
                agrees_recorded(file, expected, &actual)
            };
            match (right, not_yet.contains(&case.code)) {
                (true, false) => {}
                (false, true) => late += 1,
                (false, false) if update => {
                    differing.push_str(&format!(">>> {}\n{actual}", case.code));
                }
                (false, false) => {
                    report.push_str(&format!("{file}: {}\nOctave:\n{expected}here:\n{actual}\n", case.code))
                }
                // The list of missing features is only right if cases leave it once they pass.
                (true, true) if stride == 1 && host_elements_max > 0 => {
                    report.push_str(&format!("{file}: {}: is right now: take it off not_yet.txt\n", case.code));
                }
                (true, true) => {}
            }
        }
    }
    if update {
        std::fs::write(folder().join("differing.txt"), differing).unwrap();
    }
    println!("{ran} cases ran, {late} of them known not to agree yet");
    report
}

/// Returns 1 if every case is asked for.
fn stride(short: usize, long: usize) -> usize {
    if std::env::var_os("TIDEMILL_EVERY_CASE").is_some() { 1 } else { rounds(short, long) }
}

fn check(report: String) {
    let wrong = report.matches("\nhere:\n").count();
    assert!(report.is_empty(), "{wrong} cases differ:\n{}", report.chars().take(6000).collect::<String>());
}

#[test]
fn scripts_print_what_octave_prints_on_the_host() {
    let rt = Runtime::builder().device("host").start_blocking().unwrap();
    check(compare(&rt, Options::default().host_elements_max, stride(3, 1)));
}

#[test]
fn scripts_print_the_same_where_every_array_is_recorded_on_the_runtime() {
    let rt = Runtime::builder().device("host").start_blocking().unwrap();
    check(compare(&rt, 0, stride(11, 3)));
}

#[test]
fn scripts_print_the_same_on_a_gpu() {
    let Some(rt) = common::gpu(|b| b) else { return };
    check(compare(&rt, 0, stride(97, 23)));
}

//! Tests that realistic programs print, on the host and on a GPU, the same as GNU Octave 7.3: each
//! `tests/script/programs/NAME.m` that has a `NAME.out` beside it. `octave-cli -q NAME.m > NAME.out` records one.

#[path = "../../../tests/common/mod.rs"]
mod common;

use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use tidemill::Runtime;
use tidemill_script::Script;
use tidemill_script::env::Options;
use tidemill_script::output::Captured;

/// A program and Octave's output.
struct Program {
    name: String,
    text: String,
    printed: String,
}

fn programs() -> Vec<Program> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/script/programs");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "out"));
    paths.sort();
    let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    (paths.iter())
        .map(|path| Program {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            text: read(&path.with_extension("m")),
            printed: read(path),
        })
        .collect()
}

/// Returns a program's output, and the error that ended it, if any.
async fn run(rt: &Runtime, text: &str) -> (String, Option<String>) {
    let session = rt.session("program").seed(1).open();
    let captured = Arc::new(Mutex::new(Captured::default()));
    let script = match Script::parse(text) {
        Ok(script) => script,
        Err(error) => return (String::new(), Some(error.message)),
    };
    let ended = script.run_with(&session, Box::new(captured.clone()), Options::default()).await;
    let out = String::from_utf8_lossy(&captured.lock().out).into_owned();
    (out, ended.err().map(|error| error.message))
}

/// Returns the first line in which two texts differ.
fn difference(expected: &str, found: &str) -> String {
    let mut lines = expected.lines();
    for (n, line) in found.lines().enumerate() {
        match lines.next() {
            Some(other) if other == line => {}
            other => return format!("line {}: {line:?}, not {:?}", n + 1, other.unwrap_or("the end")),
        }
    }
    format!("the end, not {:?}", lines.next().unwrap_or("the end of a line"))
}

fn all_print_as_octave(device: &str, rt: &Runtime) {
    let programs = programs();
    assert!(programs.len() >= 25, "only {} programs", programs.len());
    let mut wrong = Vec::new();
    for program in &programs {
        let (found, error) = futures::executor::block_on(run(rt, &program.text));
        if let Some(error) = error {
            wrong.push(format!("{}: error: {error}", program.name));
        } else if found != program.printed {
            wrong.push(format!("{}: {}", program.name, difference(&program.printed, &found)));
        }
    }
    assert!(wrong.is_empty(), "{} programs differ on {device}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn programs_print_on_the_host_what_octave_printed() {
    all_print_as_octave("the host", &Runtime::builder().device("host").start_blocking().unwrap());
}

#[test]
fn programs_print_on_a_gpu_what_octave_printed() {
    if let Some(rt) = common::gpu(|b| b) {
        all_print_as_octave("the GPU", &rt);
    }
}

#[test]
fn programs_that_run_at_the_same_time_print_the_same() {
    let rt = Runtime::builder().device("host").start_blocking().unwrap();
    let programs = programs();
    let runs = futures::future::join_all(programs.iter().map(|program| run(&rt, &program.text)));
    for (program, (found, error)) in programs.iter().zip(futures::executor::block_on(runs)) {
        assert_eq!(error, None, "{}", program.name);
        assert!(found == program.printed, "{}: {}", program.name, difference(&program.printed, &found));
    }
}

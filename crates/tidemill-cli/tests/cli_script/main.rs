//! Tests `tidemill run`, `eval` and `repl` from outside: their output and their exit codes.

#![cfg(unix)]

mod errors;
mod files;
mod interrupts;
mod repl;
mod runs;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Far longer than anything takes here, even if the machine has other work.
const PATIENCE: Duration = Duration::from_secs(300);

fn tidemill(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemill"));
    command.args(arguments).env("TIDEMILL_DEVICE", "host").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns a process's exit code, standard output and standard error.
fn told(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("what is printed is UTF-8");
    (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
}

fn run(arguments: &[&str]) -> (i32, String, String) {
    told(tidemill(arguments).output().unwrap())
}

/// Does the same with a text on its standard input.
fn fed(arguments: &[&str], text: &str) -> (i32, String, String) {
    let mut child = tidemill(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = text.to_string();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    // The process may end before it has read everything.
    let _ = writer.join().unwrap();
    told(output)
}

/// A folder with scripts.
struct Scripts(tempfile::TempDir);

impl Scripts {
    fn new(files: &[(&str, &str)]) -> Scripts {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Scripts(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_string()
    }
}

fn interrupt(child: &Child) {
    signal(child, "INT");
}

fn signal(child: &Child, name: &str) {
    // This uses the shell's own `kill`, since a bare machine has no program of that name.
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", child.id())]).status().unwrap();
    assert!(sent.success());
}

/// Waits for a process that has to end soon.
fn ended(mut child: Child) -> (i32, String, String) {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    told(child.wait_with_output().unwrap())
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn is_timeline(path: &Path) {
    let events: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(!events.is_empty());
}

/// The output of a process, as it arrives.
struct Told {
    chunks: std::sync::mpsc::Receiver<Vec<u8>>,
    text: String,
}

impl Told {
    fn by(mut from: impl Read + Send + 'static) -> Told {
        let (sender, chunks) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut chunk) {
                if sender.send(chunk[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        Told { chunks, text: String::new() }
    }

    /// Returns the output until its end.
    fn rest(mut self) -> String {
        while let Ok(chunk) = self.chunks.recv_timeout(PATIENCE) {
            self.text.push_str(&String::from_utf8_lossy(&chunk));
        }
        self.text
    }

    /// Waits until these words have arrived, and drops everything up to their end.
    fn wait(&mut self, words: &str) {
        loop {
            if let Some(at) = self.text.find(words) {
                self.text.drain(..at + words.len());
                return;
            }
            match self.chunks.recv_timeout(PATIENCE) {
                Ok(chunk) => self.text.push_str(&String::from_utf8_lossy(&chunk)),
                Err(_) => panic!("{words:?} does not come after {:?}", self.text),
            }
        }
    }
}

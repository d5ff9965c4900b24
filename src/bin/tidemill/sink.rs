//! The standard output of scripts: one console, and a sink a script.
//!
//! Must hold: with several scripts only whole lines reach the console; a reader that has gone is remembered, not
//! panicked about.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemill::script::output::Output;

/// Bytes that are kept back where the output is no terminal.
const BUFFER_BYTES: usize = 1 << 16;

/// The process's standard output.
pub struct Console {
    buffer: Mutex<Vec<u8>>,
    closed: AtomicBool,
    is_terminal: bool,
}

impl Console {
    /// The console of this process.
    pub fn new() -> Console {
        Console {
            buffer: Mutex::default(),
            closed: AtomicBool::new(false),
            is_terminal: std::io::stdout().is_terminal(),
        }
    }

    fn buffer(&self) -> MutexGuard<'_, Vec<u8>> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, bytes: &[u8]) {
        let mut buffer = self.buffer();
        buffer.extend_from_slice(bytes);
        if buffer.len() >= BUFFER_BYTES || self.is_terminal && bytes.contains(&b'\n') {
            self.pass_on(&mut buffer);
        }
    }

    fn pass_on(&self, buffer: &mut Vec<u8>) {
        let mut out = std::io::stdout().lock();
        if !self.is_closed() && out.write_all(buffer).and_then(|()| out.flush()).is_err() {
            self.closed.store(true, Ordering::Relaxed);
        }
        buffer.clear();
    }

    /// Passes on what is kept back.
    pub fn flush(&self) {
        self.pass_on(&mut self.buffer());
    }

    /// Whether nobody reads any more.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}

/// A script's way to the console.
pub struct Shared {
    console: Arc<Console>,
    /// Only whole lines pass.
    whole_lines: bool,
    label: Option<String>,
    line: Vec<u8>,
}

impl Shared {
    /// A sink; `label` begins every line.
    pub fn new(console: Arc<Console>, whole_lines: bool, label: Option<String>) -> Shared {
        Shared { console, whole_lines, label, line: Vec::new() }
    }

    fn pass(&mut self, lines: &[u8]) {
        match &self.label {
            None => self.console.write(lines),
            Some(label) => {
                let mut labelled = Vec::with_capacity(lines.len() + 64);
                for line in lines.split_inclusive(|&b| b == b'\n') {
                    labelled.extend_from_slice(label.as_bytes());
                    labelled.extend_from_slice(line);
                }
                self.console.write(&labelled);
            }
        }
    }
}

impl Output for Shared {
    fn out(&mut self, bytes: &[u8]) {
        if !self.whole_lines {
            return self.console.write(bytes);
        }
        self.line.extend_from_slice(bytes);
        if let Some(end) = self.line.iter().rposition(|&b| b == b'\n') {
            let lines: Vec<u8> = self.line.drain(..=end).collect();
            self.pass(&lines);
        }
    }

    fn err(&mut self, bytes: &[u8]) {
        // What was printed before stands before.
        self.console.flush();
        let _ = std::io::stderr().lock().write_all(bytes);
    }

    fn flush(&mut self) {
        self.console.flush();
    }

    fn closed(&self) -> bool {
        self.console.is_closed()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            // The script's last line had no end; another script's must not go on in it.
            self.line.push(b'\n');
            let line = std::mem::take(&mut self.line);
            self.pass(&line);
        }
    }
}

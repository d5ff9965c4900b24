//! The standard output of scripts: one console, and a sink for each script.
//!
//! Must hold: with several scripts, only whole lines reach the console. A reader that has closed the pipe is noted, and
//! causes no panic.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};
use tidemill_script::output::Output;

/// The bytes that are buffered if the output is no terminal.
const BUFFER_BYTES: usize = 1 << 16;

/// The longest line that is buffered until it ends. A longer line is broken here.
const LINE_BYTES_MAX: usize = 1 << 24;
/// The bytes that each of several scripts buffers for itself, so that it seldom locks the console.
const LINES_BYTES: usize = 1 << 12;
/// The least time between two flushes of the lines of several scripts.
const PASS_ON_EVERY: Duration = Duration::from_millis(20);

/// The consoles of this process, which are flushed if the process ends at once.
static CONSOLES: Mutex<Vec<Weak<Console>>> = Mutex::new(Vec::new());

/// Prints to the standard error, if it can be written.
pub fn say(words: impl Display) {
    let _ = write!(std::io::stderr().lock(), "{words}");
}

/// Flushes the consoles that are not being written, since the process is about to end without dropping them.
pub fn flush_at_once() {
    let Ok(consoles) = CONSOLES.try_lock() else { return };
    for console in consoles.iter().filter_map(Weak::upgrade) {
        match console.buffer.try_lock() {
            Ok(mut buffer) => console.pass_on(&mut buffer),
            Err(TryLockError::Poisoned(buffer)) => console.pass_on(&mut buffer.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
    }
}

/// The process's standard output.
pub struct Console {
    buffer: Mutex<Buffer>,
    closed: AtomicBool,
    is_terminal: bool,
}

impl Console {
    /// Makes the console of this process.
    pub fn new() -> Arc<Console> {
        let console = Arc::new(Console {
            buffer: Mutex::new(Buffer { bytes: Vec::new(), passed_at: Instant::now(), is_due: false }),
            closed: AtomicBool::new(false),
            is_terminal: std::io::stdout().is_terminal(),
        });
        CONSOLES.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&console));
        console
    }

    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, bytes: &[u8]) {
        let mut buffer = self.buffer();
        buffer.bytes.extend_from_slice(bytes);
        if buffer.bytes.len() >= BUFFER_BYTES || self.is_terminal && bytes.contains(&b'\n') {
            self.pass_on(&mut buffer);
        }
    }

    fn pass_on(&self, buffer: &mut Buffer) {
        let mut out = std::io::stdout().lock();
        buffer.passed_at = Instant::now();
        buffer.is_due = false;
        if !self.is_closed() && out.write_all(&buffer.bytes).and_then(|()| out.flush()).is_err() {
            self.closed.store(true, Ordering::Relaxed);
        }
        buffer.bytes.clear();
    }

    /// Passes on the buffered bytes.
    pub fn flush(&self) {
        self.pass_on(&mut self.buffer());
    }

    /// Passes on the buffered bytes: at once, or a moment later if that was done a moment ago.
    fn flush_soon(self: &Arc<Console>) {
        let mut buffer = self.buffer();
        let wait = PASS_ON_EVERY.saturating_sub(buffer.passed_at.elapsed());
        if self.is_terminal || wait.is_zero() {
            return self.pass_on(&mut buffer);
        }
        if !std::mem::replace(&mut buffer.is_due, true) {
            let console = Arc::downgrade(self);
            let later = std::thread::Builder::new().spawn(move || {
                std::thread::sleep(wait);
                if let Some(console) = console.upgrade() {
                    console.flush();
                }
            });
            if later.is_err() {
                self.pass_on(&mut buffer);
            }
        }
    }

    /// Ends the output, and returns the exit status, which tells of a reader that has closed the pipe.
    pub fn end(&self, status: u8) -> u8 {
        self.flush();
        if !self.is_closed() {
            return status;
        }
        say("error: the standard output was closed\n");
        status.max(1)
    }

    /// Whether the reader has closed the pipe.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // This is the output of scripts that were interrupted.
        self.flush();
    }
}

/// Whether the standard output and error go to the same reader, as far as that is known. If that reader has gone, it
/// reads neither.
fn are_one_pipe() -> bool {
    let target = |fd: u32| std::fs::read_link(format!("/proc/self/fd/{fd}")).ok();
    target(1).is_some_and(|out| target(2) == Some(out))
}

/// The buffered bytes.
struct Buffer {
    bytes: Vec<u8>,
    /// When bytes were last passed on.
    passed_at: Instant,
    /// Whether a thread is about to pass on the bytes.
    is_due: bool,
}

/// A script's sink on the console.
pub struct Shared {
    console: Arc<Console>,
    /// Whether only whole lines are passed on.
    whole_lines: bool,
    label: Option<String>,
    out: Lines,
    /// The lines of the standard error.
    err: Lines,
    /// Set when further output of the script is to be dropped.
    left: Arc<AtomicBool>,
}

impl Shared {
    /// Makes a sink; `label` begins every line.
    pub fn new(console: Arc<Console>, whole_lines: bool, label: Option<String>) -> Shared {
        let (out, err) = (Lines::default(), Lines::default());
        Shared { console, whole_lines, label, out, err, left: Arc::default() }
    }

    /// Returns the flag. Once it is set, further output is dropped.
    pub fn left(&self) -> Arc<AtomicBool> {
        self.left.clone()
    }

    /// Passes on these lines of the standard output.
    fn pass(&self, lines: &[u8]) {
        if !lines.is_empty() {
            self.console.write(&self.labelled(lines));
        }
    }

    /// Passes on these lines of the standard error in one write, behind earlier output.
    fn pass_err(&self, lines: &[u8]) {
        if !lines.is_empty() {
            self.console.flush();
            let written = std::io::stderr().lock().write_all(&self.labelled(lines));
            if written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) && are_one_pipe() {
                self.console.closed.store(true, Ordering::Relaxed);
            }
        }
    }

    fn labelled<'a>(&self, lines: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(label) = &self.label else { return lines.into() };
        let mut labelled = Vec::with_capacity(lines.len() + 64);
        for line in lines.split_inclusive(|&b| b == b'\n') {
            labelled.extend_from_slice(label.as_bytes());
            labelled.extend_from_slice(line);
        }
        labelled.into()
    }
}

/// Output that was not passed on: whole lines, and the beginning of one.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    /// The end of the whole lines.
    whole: usize,
}

impl Lines {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(end) = bytes.iter().rposition(|&b| b == b'\n') {
            self.whole = self.bytes.len() + end + 1;
        }
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() - self.whole > LINE_BYTES_MAX {
            self.bytes.push(b'\n');
            self.whole = self.bytes.len();
        }
    }

    /// Takes the whole lines.
    fn take_whole(&mut self) -> Vec<u8> {
        if self.whole == 0 {
            return Vec::new();
        }
        let rest = self.bytes.split_off(std::mem::take(&mut self.whole));
        std::mem::replace(&mut self.bytes, rest)
    }

    /// Takes everything, as whole lines, so that another script's output does not continue the last line.
    fn take_all(&mut self) -> Vec<u8> {
        if self.whole < self.bytes.len() {
            self.bytes.push(b'\n');
        }
        self.whole = 0;
        std::mem::take(&mut self.bytes)
    }
}

impl Output for Shared {
    fn out(&mut self, bytes: &[u8]) {
        if self.left.load(Ordering::Relaxed) {
            return;
        }
        if !self.whole_lines {
            return self.console.write(bytes);
        }
        self.out.put(bytes);
        if self.out.whole >= LINES_BYTES || self.console.is_terminal {
            let lines = self.out.take_whole();
            self.pass(&lines);
        }
    }

    fn err(&mut self, bytes: &[u8]) {
        if self.left.load(Ordering::Relaxed) {
            return;
        }
        if !self.whole_lines {
            return self.pass_err(bytes);
        }
        self.err.put(bytes);
        // Earlier standard output comes first.
        let (lines, of_err) = (self.out.take_whole(), self.err.take_whole());
        self.pass(&lines);
        self.pass_err(&of_err);
    }

    fn flush(&mut self) {
        let lines = self.out.take_whole();
        self.pass(&lines);
        if self.whole_lines { self.console.flush_soon() } else { self.console.flush() }
    }

    fn closed(&self) -> bool {
        self.console.is_closed()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let (lines, of_err) = (self.out.take_all(), self.err.take_all());
        self.pass(&lines);
        self.pass_err(&of_err);
    }
}

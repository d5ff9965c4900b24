//! Counts the results of a soak, and decides whether memory has grown.

use super::shared::quantile;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The bytes by which the process may grow after the first third of the run, beside a tenth. The memory that an
/// allocator keeps varies by this much.
const SLACK_BYTES: u64 = 32 << 20;

/// The kinds of jobs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Program,
    Book,
    Script,
}

#[derive(Default)]
pub struct Tally {
    counts: [AtomicU64; 3],
    faults: AtomicU64,
    cancels: AtomicU64,
    losses: AtomicU64,
    runtimes: AtomicU64,
    sessions: AtomicU64,
    /// The milliseconds of the jobs since the last line that ran to their end on the runtime that keeps its device.
    latencies: Mutex<Vec<f32>>,
}

/// A line of the report.
pub struct Line {
    pub text: String,
    pub p99_ms: f64,
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Tally {
    pub fn finished(&self, kind: Kind, took: Option<Duration>) {
        add(&self.counts[kind as usize]);
        if let Some(took) = took {
            self.latencies.lock().push(took.as_secs_f32() * 1e3);
        }
    }

    pub fn session(&self) {
        add(&self.sessions);
    }

    pub fn fault(&self) {
        add(&self.faults);
    }

    pub fn cancel(&self) {
        add(&self.cancels);
    }

    pub fn loss(&self) {
        add(&self.losses);
    }

    pub fn runtime(&self) {
        add(&self.runtimes);
    }

    pub fn sessions(&self) -> u64 {
        self.sessions.load(Ordering::Relaxed)
    }

    /// Returns the number of jobs that ended.
    pub fn ended(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    pub fn total(&self) -> String {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let [programs, books, scripts] = self.counts.each_ref().map(of);
        format!(
            "{programs} programs, {books} books, {scripts} scripts; {} made to fail, {} dropped, {} lost with their device \
             in {} runtimes",
            of(&self.faults),
            of(&self.cancels),
            of(&self.losses),
            of(&self.runtimes)
        )
    }

    pub fn line(&self, since: Duration, resident: u64) -> Line {
        let mut latencies = std::mem::take(&mut *self.latencies.lock());
        latencies.sort_unstable_by(f32::total_cmp);
        let at = |share: f64| quantile(&latencies, share).unwrap_or_default();
        let (p50, p99) = (at(0.5), at(0.99));
        let text = format!(
            "{:6.2} min: {}; p50 {p50:.1} ms, p99 {p99:.1} ms, memory {:.1} MiB",
            since.as_secs_f64() / 60.0,
            self.total(),
            resident as f64 / f64::from(1 << 20)
        );
        Line { text, p99_ms: p99.into() }
    }
}

/// Checks the memory at the quiet points, `(sessions so far, bytes)`. It may grow in the first third of a run, while
/// caches and pools fill, but not after that.
///
/// # Errors
/// A description of the growth.
pub fn grown(quiet: &[(u64, u64)]) -> Result<String, String> {
    let (Some(&(then, settled)), Some(&(now, last))) = (quiet.get(quiet.len() / 3), quiet.last()) else {
        return Ok("memory was not looked at".into());
    };
    let (more, sessions) = (last.saturating_sub(settled), now - then);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let said = format!("memory {:.1} MiB, {:.1} more after {sessions} more sessions", mib(last), mib(more));
    // A short run cannot show leaks, since its caches are still filling.
    if quiet.len() < 6 || more <= SLACK_BYTES + settled / 10 { Ok(said) } else { Err(format!("a leak: {said}")) }
}

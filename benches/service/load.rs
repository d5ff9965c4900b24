//! Load generators. In a closed loop each caller waits for its answer. In an open loop requests come at a fixed rate,
//! answered or not.

use super::shared::{quantile, resident_bytes};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The right answer came.
    Answered,
    /// The expected error came.
    Refused,
    /// The request was cancelled, by its time-out or on purpose.
    Dropped,
    /// A wrong answer or another error came.
    Wrong,
}

/// The counts and latencies that one run of a load generator measured.
#[derive(Clone, Default)]
pub struct Measured {
    /// One entry for each answered request, ordered by time: when the answer came, counted from the start of the run,
    /// and the request's latency.
    pub answers: Vec<(Duration, Duration)>,
    pub refused: u64,
    pub dropped: u64,
    pub wrong: u64,
    pub took: Duration,
}

impl Measured {
    fn add(&mut self, ended: Ended, at: Duration, took: Duration) {
        match ended {
            Ended::Answered => self.answers.push((at, took)),
            Ended::Refused => self.refused += 1,
            Ended::Dropped => self.dropped += 1,
            Ended::Wrong => self.wrong += 1,
        }
    }

    fn merge(&mut self, other: Measured) {
        self.answers.extend(other.answers);
        self.refused += other.refused;
        self.dropped += other.dropped;
        self.wrong += other.wrong;
    }

    /// Answers in a second, on average.
    pub fn throughput(&self) -> f64 {
        self.answers.len() as f64 / self.took.as_secs_f64().max(1e-9)
    }

    /// The fewest answers in a whole second (or in the whole run, if that was shorter).
    pub fn worst_second(&self) -> f64 {
        let seconds = self.took.as_secs();
        if seconds == 0 {
            return self.throughput();
        }
        let of = |second: u64| self.answers.iter().filter(|(at, _)| at.as_secs() == second).count();
        (0..seconds).map(of).min().unwrap_or(0) as f64
    }

    /// The latency in milliseconds that this share of answers did not exceed.
    pub fn latency_ms(&self, share: f64) -> f64 {
        let mut latencies: Vec<Duration> = self.answers.iter().map(|&(_, took)| took).collect();
        latencies.sort_unstable();
        quantile(&latencies, share).map_or(f64::NAN, |took| took.as_secs_f64() * 1e3)
    }
}

/// Runs a closed loop of `callers` callers, each with one request at a time, for this time.
pub async fn closed<F>(callers: usize, time: Duration, request: impl Fn(u64) -> F + Send + Sync + 'static) -> Measured
where
    F: Future<Output = Ended> + Send,
{
    let (request, numbers) = (Arc::new(request), Arc::new(AtomicU64::new(0)));
    let begun = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (request, numbers) = (request.clone(), numbers.clone());
            tokio::spawn(async move {
                let mut own = Measured::default();
                while begun.elapsed() < time {
                    let asked = Instant::now();
                    let ended = request(numbers.fetch_add(1, Ordering::Relaxed)).await;
                    own.add(ended, begun.elapsed(), asked.elapsed());
                }
                own
            })
        })
        .collect();
    let mut all = Measured::default();
    for task in tasks {
        all.merge(task.await.unwrap_or_else(|_| Measured { wrong: 1, ..Measured::default() }));
    }
    all.took = begun.elapsed();
    all
}

/// Runs an open loop: sends requests at a rate, and cancels each after `limit`.
pub async fn open<F>(
    per_second: f64,
    time: Duration,
    limit: Duration,
    request: impl Fn(u64) -> F + Send + Sync + 'static,
) -> Measured
where
    F: Future<Output = Ended> + Send + 'static,
{
    let begun = Instant::now();
    let (sender, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let mut sent = 0u64;
    while begun.elapsed() < time {
        let due = (begun.elapsed().as_secs_f64() * per_second) as u64;
        while sent < due {
            let (asked, sender) = (Instant::now(), sender.clone());
            let request = request(sent);
            tokio::spawn(async move {
                let ended = tokio::time::timeout(limit, request).await.unwrap_or(Ended::Dropped);
                let _ = sender.send((ended, begun.elapsed(), asked.elapsed()));
            });
            sent += 1;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = begun.elapsed();
    drop(sender);
    let mut all = Measured::default();
    while let Some((ended, at, latency)) = ends.recv().await {
        all.add(ended, at, latency);
    }
    all.took = took;
    all
}

/// Watches the memory of the process, and keeps the greatest value in bytes.
pub struct Peak {
    most: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Peak {
    pub fn watch() -> Peak {
        let peak = Peak { most: Arc::new(AtomicU64::new(resident_bytes())), stop: Arc::default() };
        let (most, stop) = (peak.most.clone(), peak.stop.clone());
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                most.fetch_max(resident_bytes(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        peak
    }

    pub fn end(self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
}

impl Drop for Peak {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

//! Measures a service under more requests than it can answer. Each request opens a session, uploads some ten thousand
//! numbers, records about twenty ops on them, gathers a sum, and is dropped after 250 ms.
//!
//! `cargo bench --bench overload -- [--device DEVICE] [--seconds S] [--factor F] [--elements N] [--timeout-ms N]
//! [--pending-ops N] [--sessions N]`
//!
//! The runtime has a limit on the ops that may wait (`RuntimeBuilder::ops_pending_max`), as that of a service should.
//! Requests beyond it fail at once with `Overloaded`. `--pending-ops 0` keeps the runtime's default limit. The bench
//! prints how many requests a closed loop answers in a second. Then it sends `factor` times as many, and prints how
//! many are answered in time in each second, the memory, and the latency of a lone request before and after. With
//! `--sessions` it opens that many sessions one after the other instead, and prints how much memory they leave behind.

mod shared;

use shared::{number, resident_bytes};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidemill::{ErrorKind, Result, Runtime};

struct Options {
    device: String,
    seconds: u64,
    factor: f64,
    elements: usize,
    timeout: Duration,
    pending_ops: u64,
    sessions: u64,
}

const USAGE: &str = "overload [--device DEVICE] [--seconds S] [--factor F] [--elements N] [--timeout-ms N] \
                     [--pending-ops N] [--sessions N]";

impl Default for Options {
    fn default() -> Options {
        Options {
            device: "host".to_owned(),
            seconds: 10,
            factor: 2.0,
            elements: 40_000,
            timeout: Duration::from_millis(250),
            pending_ops: 1 << 14,
            sessions: 0,
        }
    }
}

impl Options {
    fn set(&mut self, name: &str, value: &str) -> std::result::Result<(), String> {
        let number = || number::<f64>(name, value);
        match name {
            "--device" => self.device = value.to_owned(),
            "--seconds" => self.seconds = number()? as u64,
            "--factor" => self.factor = number()?,
            "--elements" => self.elements = number()? as usize,
            "--timeout-ms" => self.timeout = Duration::from_micros((number()? * 1e3) as u64),
            "--pending-ops" => self.pending_ops = number()? as u64,
            "--sessions" => self.sessions = number()? as u64,
            _ => return Err(format!("{name} is unknown")),
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let options = match shared::parsed(USAGE, Options::default(), Options::set) {
        Ok(options) => options,
        Err(status) => return status,
    };
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    shared::ended(match executor {
        Ok(executor) => executor.block_on(async move {
            let mut builder = Runtime::builder().device(options.device.as_str());
            if options.pending_ops > 0 {
                builder = builder.ops_pending_max(options.pending_ops);
            }
            let runtime = Arc::new(builder.start().await?);
            if options.sessions > 0 { leak(&runtime, &options).await } else { load(&runtime, &options).await }
        }),
        Err(error) => Err(error.into()),
    })
}

/// Sends one request, and checks the answer.
async fn request(runtime: &Runtime, data: &[f32]) -> Result<()> {
    let session = runtime.session("request").open();
    let x = session.from_slice(data, [data.len(), 1])?;
    let mut y = &x * 1.5f32 + 1.0f32;
    for step in 0..9 {
        y = (&y * 0.5f32 + &x) * (1.0 / (step + 1) as f32);
    }
    let sum = y.sum(..).gather::<f32>().await?[0];
    // All elements are equal.
    let one = data.first().map_or(0.0, |&x| (0..9).fold(x * 1.5 + 1.0, |y, k| (y * 0.5 + x) / (k + 1) as f32));
    let expected = one * data.len() as f32;
    assert!((sum - expected).abs() <= 1e-3 * expected.abs(), "{sum} is not {expected}");
    Ok(())
}

#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    late: AtomicU64,
    overloaded: AtomicU64,
    failed: AtomicU64,
    open: AtomicU64,
}

async fn load(runtime: &Arc<Runtime>, options: &Options) -> Result<()> {
    let data: Arc<[f32]> = vec![0.25f32; options.elements].into();
    closed(runtime, &data, 64, Duration::from_secs(1)).await;
    println!("{} elements, a closed loop:", options.elements);
    let mut full = 0.0;
    for at_once in [1, 16, 64, 256] {
        full = f64::max(full, closed(runtime, &data, at_once, Duration::from_secs(3)).await);
    }
    let full_bytes = resident_bytes();
    let idle = rested(runtime, &data, 5).await?;
    println!("a lone request after a second of rest takes {idle:.0} us; memory at full load {} MB", full_bytes >> 20);

    let rate = full * options.factor;
    println!("{rate:.0} requests a second, {} times the closed loop's, for {} s:", options.factor, options.seconds);
    let counts = Arc::new(Counts::default());
    let generator =
        tokio::spawn(generate(runtime.clone(), data.clone(), rate, options.timeout, options.seconds, counts.clone()));
    let (mut worst, mut peak_bytes, mut before) = (f64::MAX, full_bytes, [0; 4]);
    for second in 0..options.seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = [&counts.answered, &counts.late, &counts.overloaded, &counts.failed].map(|count| count.load(Relaxed));
        let [answered, late, overloaded, failed] = std::array::from_fn(|i| now[i] - before[i]);
        before = now;
        let bytes = resident_bytes();
        peak_bytes = peak_bytes.max(bytes);
        worst = worst.min(answered as f64);
        let open = counts.open.load(Relaxed);
        println!(
            "  {second:>3} s: {answered:>6} in time ({:.2}), {late:>6} late, {overloaded} overloaded, {failed} failed, {open} open, {} MB",
            answered as f64 / full,
            bytes >> 20
        );
    }
    let _ = generator.await;
    let all = counts.answered.load(Relaxed) as f64 / options.seconds as f64;
    println!("in time: {:.2} of the closed loop's, {:.2} in the worst second", all / full, worst / full);
    println!("memory: {:.2} times that at full load", peak_bytes as f64 / full_bytes as f64);
    let after = rested(runtime, &data, 1).await?;
    println!("a lone request a second later takes {after:.0} us: {:.2} of that before", after / idle);
    Ok(())
}

/// Keeps `at_once` requests in progress, each followed by the next. Returns the answers in a second.
async fn closed(runtime: &Arc<Runtime>, data: &Arc<[f32]>, at_once: usize, time: Duration) -> f64 {
    let (start, answered) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let tasks: Vec<_> = (0..at_once)
        .map(|_| {
            let (runtime, data, answered) = (runtime.clone(), data.clone(), answered.clone());
            tokio::spawn(async move {
                while start.elapsed() < time {
                    if request(&runtime, &data).await.is_ok() {
                        answered.fetch_add(1, Relaxed);
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        let _ = task.await;
    }
    let rate = answered.load(Relaxed) as f64 / start.elapsed().as_secs_f64();
    println!("  {at_once:>4} at once: {rate:.0} a second");
    rate
}

/// The median time of `count` requests, each after a second of rest, in microseconds.
async fn rested(runtime: &Arc<Runtime>, data: &Arc<[f32]>, count: usize) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..count {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let start = Instant::now();
        request(runtime, data).await?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(shared::quantile(&times, 0.5).unwrap_or(f64::NAN))
}

/// Sends requests at a rate, whether or not they are answered.
async fn generate(
    runtime: Arc<Runtime>,
    data: Arc<[f32]>,
    rate: f64,
    timeout: Duration,
    seconds: u64,
    counts: Arc<Counts>,
) {
    let (start, mut sent) = (Instant::now(), 0u64);
    while start.elapsed() < Duration::from_secs(seconds) {
        let due = (start.elapsed().as_secs_f64() * rate) as u64;
        for _ in sent..due {
            let (runtime, data, counts) = (runtime.clone(), data.clone(), counts.clone());
            let deadline = tokio::time::Instant::now() + timeout;
            counts.open.fetch_add(1, Relaxed);
            tokio::spawn(async move {
                let count = match tokio::time::timeout_at(deadline, request(&runtime, &data)).await {
                    Ok(Ok(())) if tokio::time::Instant::now() <= deadline => &counts.answered,
                    Ok(Ok(())) | Err(_) => &counts.late,
                    Ok(Err(error)) if error.kind() == ErrorKind::Overloaded => &counts.overloaded,
                    Ok(Err(_)) => &counts.failed,
                };
                count.fetch_add(1, Relaxed);
                counts.open.fetch_sub(1, Relaxed);
            });
        }
        sent = due;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Opens sessions one after the other, each with a gather of a computed op, and prints the growth of the memory.
async fn leak(runtime: &Arc<Runtime>, options: &Options) -> Result<()> {
    let data: Arc<[f32]> = vec![0.25f32; 100].into();
    let mut early_bytes = 0;
    let start = Instant::now();
    for n in 1..=options.sessions {
        request(runtime, &data).await?;
        if n == 10_000 {
            early_bytes = resident_bytes();
        }
        if n % (options.sessions / 10).max(1) == 0 {
            println!(
                "{n} sessions: {} kB, {:.0} a second",
                resident_bytes() >> 10,
                n as f64 / start.elapsed().as_secs_f64()
            );
        }
    }
    let more_kb = (resident_bytes() as i64 - early_bytes as i64) >> 10;
    println!("{more_kb} kB more after {} sessions than after 10000", options.sessions);
    Ok(())
}

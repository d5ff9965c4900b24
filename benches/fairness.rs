//! Measures the share of work of a session that stays, beside sessions that live for one request each.
//!
//! `cargo bench --bench fairness -- [--device host|gpu|auto] [--seconds S] [--elements N,N,...] [--ops N]
//! [--weight W,W,...] [--tasks N] [--outstanding N] [--think US]`
//!
//! Each of `--tasks` tasks opens a session for a request, uploads, computes a chain and a sum, awaits it and closes the
//! session. Beside them, one session with a weight keeps `--outstanding` such jobs in progress. All run on a tokio
//! executor of two threads. A row gives the share of all jobs that the long session got, the share that its weight
//! entitles it to, and the waiting times of both kinds.

mod shared;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tidemill::{IntoDevice, Result, Runtime, Session};

#[derive(Clone)]
struct Options {
    device: String,
    seconds: f64,
    elements: Vec<usize>,
    ops: usize,
    weights: Vec<u32>,
    tasks: usize,
    outstanding: usize,
    think: Duration,
}

fn main() -> ExitCode {
    let options = match shared::parsed(USAGE, Options::default(), Options::set) {
        Ok(options) => options,
        Err(status) => return status,
    };
    println!(
        "device {}, {} tasks of a session a request, {} outstanding in the session that stays, {} ops, {} s a row",
        options.device, options.tasks, options.outstanding, options.ops, options.seconds
    );
    println!(
        "{:>9} {:>6} {:>9} {:>9} {:>7} {:>7} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "elements",
        "weight",
        "stays",
        "others",
        "share",
        "due",
        "ratio",
        "p50 ms",
        "p99 ms",
        "max ms",
        "o.p50",
        "o.p99",
        "o.max"
    );
    let rows =
        options.elements.iter().flat_map(|&elements| options.weights.iter().map(move |&weight| (elements, weight)));
    shared::ended(rows.into_iter().try_for_each(|(elements, weight)| row(&options, elements, weight)))
}

const USAGE: &str = "fairness [--device DEVICE] [--seconds S] [--elements N,N,...] [--ops N] [--weight W,W,...] \
                     [--tasks N] [--outstanding N] [--think US]";

impl Default for Options {
    fn default() -> Options {
        Options {
            device: "host".to_owned(),
            seconds: 3.0,
            elements: vec![1_000, 10_000, 100_000, 1_000_000],
            ops: 30,
            weights: vec![1, 8],
            tasks: 16,
            outstanding: 4,
            think: Duration::ZERO,
        }
    }
}

impl Options {
    fn set(&mut self, name: &str, value: &str) -> std::result::Result<(), String> {
        let number = || shared::number::<f64>(name, value);
        match name {
            "--device" => self.device = value.to_owned(),
            "--seconds" => self.seconds = number()?,
            "--elements" => self.elements = shared::numbers(name, value)?,
            "--ops" => self.ops = number()? as usize,
            "--weight" => self.weights = shared::numbers(name, value)?,
            "--tasks" => self.tasks = number()? as usize,
            "--outstanding" => self.outstanding = (number()? as usize).max(1),
            "--think" => self.think = Duration::from_micros(number()? as u64),
            _ => return Err(format!("{name} is unknown")),
        }
        Ok(())
    }
}

/// Runs a request: an upload, a chain of elementwise ops, and a sum that is gathered.
async fn job(session: &Session, data: &Arc<Vec<f32>>, ops: usize) -> Result<f32> {
    let x = session.from_vec(data.to_vec(), [data.len()])?;
    let mut y = &x * 1.0;
    for k in 0..ops {
        y = if k % 2 == 0 { &y * 0.999 } else { &y + &x };
    }
    y.sum(0).item::<f32>().await
}

struct Seen {
    waits: Vec<Duration>,
}

impl Seen {
    fn at(&mut self, share: f64) -> f64 {
        self.waits.sort_unstable();
        shared::quantile(&self.waits, share).map_or(f64::NAN, |wait| wait.as_secs_f64() * 1e3)
    }
}

fn row(options: &Options, elements: usize, weight: u32) -> Result<()> {
    let runtime = Arc::new(Runtime::builder().device(options.device.as_str().into_device()?).start_blocking()?);
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let stop = Arc::new(AtomicBool::new(false));
    let data = Arc::new((0..elements).map(|n| n as f32 * 1e-3).collect::<Vec<f32>>());
    let (mut stays, mut others) = executor.block_on(async {
        let long = runtime.session("stays").weight(weight).open();
        // The first job compiles the kernels.
        job(&long, &data, options.ops).await?;
        let mut tasks = Vec::new();
        for _ in 0..options.outstanding {
            let (long, stop, data, ops) = (long.clone(), stop.clone(), data.clone(), options.ops);
            tasks.push((
                true,
                tokio::spawn(async move {
                    let mut waits = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let start = Instant::now();
                        job(&long, &data, ops).await?;
                        waits.push(start.elapsed());
                    }
                    Ok::<_, tidemill::Error>(waits)
                }),
            ));
        }
        for _ in 0..options.tasks {
            let (runtime, stop, data, options) = (runtime.clone(), stop.clone(), data.clone(), options.clone());
            tasks.push((
                false,
                tokio::spawn(async move {
                    let mut waits = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let start = Instant::now();
                        let session = runtime.session("request").open();
                        job(&session, &data, options.ops).await?;
                        drop(session);
                        waits.push(start.elapsed());
                        if !options.think.is_zero() {
                            tokio::time::sleep(options.think).await;
                        }
                    }
                    Ok(waits)
                }),
            ));
        }
        tokio::time::sleep(Duration::from_secs_f64(options.seconds)).await;
        stop.store(true, Ordering::Relaxed);
        let (mut stays, mut others) = (Seen { waits: Vec::new() }, Seen { waits: Vec::new() });
        for (is_long, task) in tasks {
            let waits = task.await.map_err(|error| std::io::Error::other(error.to_string()))??;
            if is_long { stays.waits.extend(waits) } else { others.waits.extend(waits) }
        }
        Ok::<_, tidemill::Error>((stays, others))
    })?;
    let (a, b) = (stays.waits.len(), others.waits.len());
    let share = a as f64 / (a + b).max(1) as f64;
    let due = f64::from(weight) / (f64::from(weight) + options.tasks as f64);
    println!(
        "{elements:>9} {weight:>6} {a:>9} {b:>9} {share:>7.3} {due:>7.3} {:>6.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2}",
        share / due,
        stays.at(0.5),
        stays.at(0.99),
        stays.at(1.0),
        others.at(0.5),
        others.at(0.99),
        others.at(1.0)
    );
    Ok(())
}

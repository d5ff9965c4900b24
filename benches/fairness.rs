//! Sessions that stay, beside sessions that live for one request each: what share each kind gets.
//!
//! `cargo bench --bench fairness -- [--device host|gpu|auto] [--seconds S] [--elements N,N,...] [--ops N] [--weight W]
//! [--tasks N] [--outstanding N] [--think US]`
//!
//! So many tasks open a session for a request, upload, compute a chain and a sum, await it and close; beside them one
//! session of a weight keeps a number of such jobs outstanding. All run on a tokio executor of two threads. A row
//! gives what the session that stays got of all jobs, what its weight earns it, and both kinds' waiting times.

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

fn main() -> std::process::ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(words) => {
            eprintln!("error: {words}");
            return std::process::ExitCode::from(2);
        }
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
    for &elements in &options.elements {
        for &weight in &options.weights {
            if let Err(error) = row(&options, elements, weight) {
                eprintln!("error: {error}");
                return std::process::ExitCode::FAILURE;
            }
        }
    }
    std::process::ExitCode::SUCCESS
}

fn parse(mut arguments: impl Iterator<Item = String>) -> std::result::Result<Options, String> {
    let mut options = Options {
        device: "host".to_owned(),
        seconds: 3.0,
        elements: vec![1_000, 10_000, 100_000, 1_000_000],
        ops: 30,
        weights: vec![1, 8],
        tasks: 16,
        outstanding: 4,
        think: Duration::ZERO,
    };
    fn list<T: std::str::FromStr>(text: &str) -> std::result::Result<Vec<T>, String> {
        text.split(',').map(|part| part.parse().map_err(|_| format!("{part} is no number"))).collect()
    }
    while let Some(argument) = arguments.next() {
        if argument == "--bench" {
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{argument} needs a value, or is unknown"))?;
        let number = || value.parse::<f64>().map_err(|_| format!("{value} is no number"));
        match &*argument {
            "--device" => options.device = value,
            "--seconds" => options.seconds = number()?,
            "--elements" => options.elements = list(&value)?,
            "--ops" => options.ops = number()? as usize,
            "--weight" => options.weights = list(&value)?,
            "--tasks" => options.tasks = number()? as usize,
            "--outstanding" => options.outstanding = (number()? as usize).max(1),
            "--think" => options.think = Duration::from_micros(number()? as u64),
            other => return Err(format!("{other} is unknown")),
        }
    }
    Ok(options)
}

/// A request: an upload, a chain of elementwise ops, a sum that is gathered.
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
        let place = ((self.waits.len() as f64 * share) as usize).min(self.waits.len().saturating_sub(1));
        self.waits.get(place).map_or(f64::NAN, |wait| wait.as_secs_f64() * 1e3)
    }
}

fn row(options: &Options, elements: usize, weight: u32) -> Result<()> {
    let runtime = Arc::new(Runtime::builder().device(options.device.as_str().into_device()?).start_blocking()?);
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let stop = Arc::new(AtomicBool::new(false));
    let data = Arc::new((0..elements).map(|n| n as f32 * 1e-3).collect::<Vec<f32>>());
    let (mut stays, mut others) = executor.block_on(async {
        let long = runtime.session("stays").weight(weight).open();
        // Kernels are compiled first.
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

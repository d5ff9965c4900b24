//! A soak: runs Rust sessions and scripts on one runtime for any length of time, with faults, cancels and lost devices.
//!
//! `cargo bench --bench soak -- [--minutes N] [--seed S] [--device host|gpu|auto] [--jobs N] [--p99-ms N]`
//!
//! A number of jobs run at a time: random array programs, compared with plain f64 loops (`tests/common/programs.rs`);
//! books of options, compared with a formula in f64; and scripts, compared with results in Rust. A tenth of them is
//! made to fail, and a tenth is dropped half-way. Beside them, other runtimes lose their devices again and again. The
//! soak prints its seed and a line for each minute. It ends with 1 if a result was wrong, a job hung, memory grew, or
//! the p99 of a minute exceeded its bound.

mod jobs;
#[path = "../../../../tests/common/plain.rs"]
mod plain;
#[path = "../../../../examples/service/pricing.rs"]
#[allow(dead_code)]
mod pricing;
#[path = "../../../../tests/common/programs.rs"]
mod programs;
mod scripts;
#[path = "../../../../benches/shared/mod.rs"]
mod shared;
mod tally;

use jobs::Jobs;
use programs::Dice;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally::Tally;
use tidemill::Runtime;
use tokio::sync::RwLock;

/// The soak reports a hang, and ends, if no job ends for this long.
const HANG: Duration = Duration::from_secs(120);

/// The options that the command line set.
struct Options {
    time: Duration,
    seed: u64,
    device: String,
    jobs: usize,
    p99_ms: f64,
}

const MINUTE: Duration = Duration::from_secs(60);

impl Default for Options {
    fn default() -> Options {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |t| t.as_nanos() as u64);
        Options { time: MINUTE, seed: now, device: "host".into(), jobs: 32, p99_ms: 2000.0 }
    }
}

impl Options {
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let positive = || value.parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
        match name {
            "--minutes" => {
                let minutes = positive().filter(|n| *n < 1e5).ok_or("--minutes needs a positive number")?;
                self.time = MINUTE.mul_f64(minutes);
            }
            "--seed" => self.seed = value.parse().map_err(|_| "--seed needs a whole number")?,
            "--device" => self.device = value.to_owned(),
            "--jobs" => self.jobs = value.parse().ok().filter(|n| *n > 0).ok_or("--jobs needs a positive number")?,
            "--p99-ms" => self.p99_ms = positive().ok_or("--p99-ms needs a positive number")?,
            _ => return Err(format!("{name} is unknown")),
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let usage = "soak [--minutes N] [--seed S] [--device host|gpu|auto] [--jobs N] [--p99-ms N]";
    let options = match shared::parsed(usage, Options::default(), Options::set) {
        Ok(options) => options,
        Err(status) => return status,
    };
    let executor = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(executor) => executor,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    match executor.block_on(soak(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            eprintln!("FAILED (seed {}): {words}", options.seed);
            ExitCode::FAILURE
        }
    }
}

async fn soak(options: &Options) -> Result<(), String> {
    let words = |error: tidemill::Error| error.to_string();
    let runtime =
        Runtime::builder().device(&options.device).drain(Duration::from_secs(10)).start().await.map_err(words)?;
    let has_gpu = options.device != "host" && runtime.devices().len() > 1;
    println!(
        "soak: seed {}, {:.1} minutes, {} jobs at a time on {runtime:?}, {} cores, process {}",
        options.seed,
        options.time.as_secs_f64() / 60.0,
        options.jobs,
        std::thread::available_parallelism().map_or(1, usize::from),
        std::process::id()
    );
    let tally = Arc::new(Tally::default());
    watch(tally.clone(), options.seed);
    let (runtime, pause) = (Arc::new(runtime), Arc::new(RwLock::new(())));
    let until = Instant::now() + options.time;
    let jobs = Arc::new(Jobs::new(runtime.clone(), tally.clone(), has_gpu));
    let mut dice = Dice::new(options.seed);
    let mut tasks = Vec::new();
    for _ in 0..options.jobs {
        let (jobs, pause, mut dice) = (jobs.clone(), pause.clone(), Dice::new(dice.next()));
        tasks.push(tokio::spawn(async move {
            while Instant::now() < until {
                let _running = pause.read().await;
                jobs.one(&mut dice).await?;
            }
            Ok::<(), String>(())
        }));
    }
    for _ in 0..2 {
        let (jobs, mut dice, device) = (jobs.clone(), Dice::new(dice.next()), options.device.clone());
        tasks.push(tokio::spawn(async move {
            while Instant::now() < until {
                jobs.with_losses(&device, &mut dice).await?;
            }
            Ok(())
        }));
    }
    let sampled = tokio::spawn(sample(tally.clone(), pause, options.time, options.p99_ms, has_gpu));
    let mut all = futures::future::select_all(tasks);
    loop {
        let (ended, _, rest) = all.await;
        ended.map_err(|error| format!("a job panicked: {error}"))??;
        if rest.is_empty() {
            break;
        }
        all = futures::future::select_all(rest);
    }
    let said = sampled.await.map_err(|error| error.to_string())??;
    drop(jobs);
    let runtime = Arc::try_unwrap(runtime).map_err(|_| "a job still holds the runtime".to_owned())?;
    let shutdown = tokio::time::timeout(HANG, runtime.shutdown()).await;
    shutdown.map_err(|_| "the shutdown hangs".to_owned())?.map_err(words)?;
    println!("passed (seed {}): {said}", options.seed);
    Ok(())
}

/// Ends the process if no job ends any more, since jobs that hang may hold every thread of the executor.
fn watch(tally: Arc<Tally>, seed: u64) {
    std::thread::spawn(move || {
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let ended = tally.ended();
            if ended != seen {
                (seen, since) = (ended, Instant::now());
            }
            if since.elapsed() > HANG {
                eprintln!("FAILED (seed {seed}): no job ended for {HANG:?}; {ended} had");
                std::process::exit(1);
            }
        }
    });
}

/// Pauses the jobs at even intervals, so that memory is read while nothing runs, and prints a line for each.
async fn sample(
    tally: Arc<Tally>,
    pause: Arc<RwLock<()>>,
    time: Duration,
    p99_ms: f64,
    has_gpu: bool,
) -> Result<String, String> {
    // It prints a line for each minute, or six lines if the run is shorter than six minutes.
    let lines = (time.as_secs_f64() / 60.0).round().max(6.0) as u32;
    let (begun, step) = (Instant::now(), time / lines);
    let mut quiet = Vec::new();
    let mut worst = 0f64;
    for number in 1..=lines {
        tokio::time::sleep_until((begun + step * number).into()).await;
        let resident = {
            let _paused = pause.write().await;
            // The ring still frees the arrays that the last jobs dropped: give it time before memory is sampled.
            tokio::time::sleep(Duration::from_millis(200)).await;
            shared::resident_bytes()
        };
        quiet.push((tally.sessions(), resident));
        let line = tally.line(begun.elapsed(), resident);
        println!("{}", line.text);
        // In the first interval, a GPU compiles its pipelines.
        if number > 1 || !has_gpu {
            worst = worst.max(line.p99_ms);
        }
    }
    let grown = tally::grown(&quiet)?;
    match worst <= p99_ms {
        true => Ok(format!("{}, worst p99 {worst:.1} ms, {grown}", tally.total())),
        false => Err(format!("the worst p99 is {worst:.1} ms, beyond the bound of {p99_ms} ms")),
    }
}

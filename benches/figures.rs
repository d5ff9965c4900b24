//! The figures that the project promises, measured through the public API, with check values.
//!
//! `cargo bench --bench figures -- [--device auto|host|gpu|gpu:N] [--quick] [--only recording|tiny|region|trip|chain|numpy]`
//!
//! Some figures are measured beside a peer in the same run: elementwise chains beside a plain copy kernel on the same
//! GPU, and beside NumPy on the same CPU. Times are printed, not asserted. Check values are asserted, so that no wrong
//! computation is reported as fast.

#[cfg(feature = "gpu")]
mod raw_wgpu;
mod shared;

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Instant;
use tidemill::DeviceKind;
use tidemill::{Array, DeviceChoice, Error, IntoDevice, Precision, Result, Runtime, Session};

/// The options of the command line.
struct Options {
    device: DeviceChoice,
    quick: bool,
    /// The one part that is measured; all if none is named.
    only: Option<String>,
}

/// The parts of a run, in their order.
const PARTS: [&str; 6] = ["recording", "tiny", "region", "trip", "chain", "numpy"];

impl Options {
    fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(words) => {
            eprintln!("error: {words}\nusage: figures [--device DEVICE] [--quick] [--only PART]");
            return ExitCode::from(2);
        }
    };
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build();
    shared::ended(match executor {
        Ok(executor) => executor.block_on(figures(&options)),
        Err(error) => Err(error.into()),
    })
}

fn parse(mut arguments: impl Iterator<Item = String>) -> std::result::Result<Options, String> {
    let mut options = Options { device: DeviceChoice::Auto, quick: false, only: None };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Cargo adds this option.
            "--bench" => {}
            "--quick" => options.quick = true,
            "--only" => {
                let part = arguments.next().filter(|part| PARTS.contains(&part.as_str()));
                options.only = Some(part.ok_or_else(|| format!("--only needs one of {}", PARTS.join(", ")))?);
            }
            "--device" => {
                let name = arguments.next().ok_or("--device needs a name")?;
                options.device = name.into_device().map_err(|error| error.message().to_owned())?;
            }
            other => return Err(format!("{other} is unknown")),
        }
    }
    Ok(options)
}

async fn figures(options: &Options) -> Result<()> {
    let runtime = start(options.device, Precision::Accurate).await?;
    for device in runtime.devices() {
        println!("device {}: {} ({})", device.id, device.name, device.driver);
    }
    let gpu = runtime.devices().iter().any(|d| d.kind == DeviceKind::Gpu);
    let software = runtime.devices().iter().any(|d| d.kind == DeviceKind::Gpu && d.software);
    if options.wants("recording") {
        recording(&runtime, "recording", options).await?;
    }
    if options.wants("tiny") {
        tiny_host_op(&runtime, options).await?;
    }
    if options.wants("region") {
        cached_region(&runtime, options).await?;
    }
    if options.wants("trip") {
        round_trip(&runtime, options).await?;
    }
    runtime.shutdown().await?;
    if options.wants("recording") {
        recording_with_timeline(options).await?;
    }
    if gpu && options.wants("chain") {
        let elements = if software || options.quick { 10_000_000 } else { 100_000_000 };
        chain_beside_copy(options, elements).await?;
    }
    if options.wants("numpy") {
        beside_numpy(options).await?;
    }
    Ok(())
}

async fn start(device: DeviceChoice, precision: Precision) -> Result<Runtime> {
    Runtime::builder().device(device).precision(precision).start().await
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn report(name: &str, value: f64, unit: &str, goal: &str) {
    println!("{name:<44} {value:>12.2} {unit:<10} {goal}");
}

fn check(what: &str, computed: f64, expected: f64, tolerance: f64) {
    assert!(
        (computed - expected).abs() <= tolerance * expected.abs().max(1.0),
        "{what} is {computed} and should be {expected}"
    );
}

/// Measures recording: an op on arrays that are not gathered.
async fn recording(runtime: &Runtime, name: &str, options: &Options) -> Result<()> {
    const OPS: usize = 2_000;
    let mut times = Vec::new();
    for round in 0..if options.quick { 20 } else { 200 } {
        let session = runtime.session("recording").seed(round).open();
        let x = session.rand::<f32>([1000, 1]);
        let mut y = x.clone();
        let begin = Instant::now();
        for _ in 0..OPS / 2 {
            y = y * 0.99 + &x;
        }
        times.push(begin.elapsed().as_secs_f64() * 1e9 / OPS as f64);
        black_box(&y);
    }
    report(name, median(times), "ns/op", "goal 200");
    Ok(())
}

/// Measures recording while a timeline is written.
async fn recording_with_timeline(options: &Options) -> Result<()> {
    let path = std::env::temp_dir().join(format!("tidemill-figures-{}.json", std::process::id()));
    let runtime = Runtime::builder().device(options.device).timeline(&path).start().await?;
    let result = recording(&runtime, "recording, with a timeline", options).await;
    let ended = runtime.shutdown().await;
    // If nothing was recorded, there is no file.
    drop(std::fs::remove_file(&path));
    result.and(ended)
}

/// Measures an op on a value that is known on the host, and its gather.
async fn tiny_host_op(runtime: &Runtime, options: &Options) -> Result<()> {
    let rounds = if options.quick { 10_000 } else { 100_000 };
    let session = runtime.session("tiny").open();
    let one = session.scalar(1.0f64);
    let mut total = 0.0;
    let begin = Instant::now();
    for i in 0..rounds {
        total += (&one + i as f64).item::<f64>().await?;
    }
    let each_us = begin.elapsed().as_secs_f64() * 1e6 / rounds as f64;
    check("the sum of tiny ops", total, (1..=rounds).map(|i| i as f64).sum(), 0.0);
    report("tiny host op and its gather", each_us, "us", "goal 2");
    Ok(())
}

/// Measures the CPU time that the ring's thread spends on a region whose plan is cached. The first figure is for a thread
/// that several sessions keep busy. The second is for a thread that each region wakes: it includes the time in which the
/// thread falls asleep, wakes up and fills its caches again.
async fn cached_region(runtime: &Runtime, options: &Options) -> Result<()> {
    let rounds = if options.quick { 200 } else { 2_000 };
    ring_time(runtime, SESSIONS, rounds / SESSIONS * 4, "ring, CPU time of a cached region", "goal 30").await?;
    ring_time(runtime, 1, rounds, "  the same, asleep before each", "").await
}

/// Sessions that keep the ring busy.
const SESSIONS: usize = 16;

/// Measures the CPU time for each region while every one of `sessions` sessions has one region in progress.
async fn ring_time(runtime: &Runtime, sessions: usize, rounds: usize, name: &str, goal: &str) -> Result<()> {
    let xs = (0..sessions).map(|_| {
        let session = runtime.session("regions").open();
        session.from_slice(&vec![0.5f32; 1000], [1000, 1])
    });
    let xs: Vec<_> = xs.collect::<Result<_>>()?;
    let region = |x: &Array, i: usize| ((x * 2.0 + i as f64) * 0.5).slice((0..1, ..)).gather::<f32>();
    for x in &xs {
        x.eval().await?;
        region(x, 0).await?;
    }
    let (before, ring_before, all_before) = (runtime.stats(), cpu_ns(Some("tidemill-ring")), cpu_ns(None));
    let run = |x: &Array| {
        let x = x.clone();
        async move {
            let mut last = 0.0;
            for i in 0..rounds {
                last = region(&x, i).await?[0];
            }
            Ok::<_, tidemill::Error>(last)
        }
    };
    let lasts = futures::future::try_join_all(xs.iter().map(run)).await?;
    let (ring, all) = (cpu_ns(Some("tidemill-ring")) - ring_before, cpu_ns(None) - all_before);
    let stats = runtime.stats().since(&before);
    for last in lasts {
        check("the last region", f64::from(last), (1.0 + (rounds - 1) as f64) * 0.5, 1e-6);
    }
    assert_eq!(stats.plan_cache_misses, 0, "the plan was to be cached");
    let regions = stats.regions.max(1) as f64;
    report(name, ring / regions / 1e3, "us", goal);
    report("  all threads, caller and device included", all / regions / 1e3, "us", "");
    Ok(())
}

/// Returns the CPU time, in nanoseconds, that the threads of this process have taken. With `name`, only threads count
/// whose name begins with it. Returns 0 if the system does not report CPU times.
fn cpu_ns(name: Option<&str>) -> f64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    let of_task = |path: std::path::PathBuf| -> Option<f64> {
        let comm = std::fs::read_to_string(path.join("comm")).ok()?;
        // The system keeps 15 bytes of a thread's name.
        if name.is_some_and(|name| !comm.starts_with(&name[..name.len().min(15)])) {
            return None;
        }
        std::fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    tasks.flatten().filter_map(|task| of_task(task.path())).sum()
}

/// Measures a small op on a value that is on the device, and its gather.
async fn round_trip(runtime: &Runtime, options: &Options) -> Result<()> {
    let rounds = if options.quick { 100 } else { 1_000 };
    let session = runtime.session("round trip").open();
    let mut x = session.from_slice(&vec![0.0f32; 1000], [1000, 1])?;
    x.eval().await?;
    let mut times = Vec::new();
    for i in 0..rounds {
        let begin = Instant::now();
        x += 1.0;
        let value = x.slice((0..1, ..)).gather::<f32>().await?[0];
        times.push(begin.elapsed().as_secs_f64() * 1e6);
        assert_eq!(value, (i + 1) as f32);
    }
    let ours = median(times);
    report("tiny op and its gather, on the device", ours, "us", "goal 110 (H200)");
    let on_gpu = runtime.devices().iter().any(|d| d.kind == DeviceKind::Gpu);
    if let Some(raw) = on_gpu.then(|| raw_trip_us(options, rounds)).flatten() {
        report("  the same by wgpu alone", raw, "us", "");
        report("  our time over its", ours / raw, "", "");
    }
    Ok(())
}

/// The time of the same round trip without Tidemill, on the same GPU.
#[cfg(feature = "gpu")]
fn raw_trip_us(options: &Options, rounds: usize) -> Option<f64> {
    raw_wgpu::Raw::open(gpu_index(options).unwrap_or(0))?.trip_us(rounds)
}

#[cfg(not(feature = "gpu"))]
fn raw_trip_us(_: &Options, _: usize) -> Option<f64> {
    None
}

/// The number of the GPU that the options name.
#[cfg(feature = "gpu")]
fn gpu_index(options: &Options) -> Option<usize> {
    match options.device {
        DeviceChoice::Gpu(index) => index,
        _ => None,
    }
}

/// `tanh(y) + 0.1 y`, where `y = y0 cos(x/4) + 0.25 y0²` and `y0 = sin(x) exp(-x/10)`.
fn chain(x: &Array) -> Array {
    let y0 = x.sin() * (x * -0.1).exp();
    let y1 = &y0 * (x * 0.25).cos() + y0.square() * 0.25;
    y1.tanh() + y1 * 0.1
}

fn chain_of(x: f64) -> f64 {
    let y0 = x.sin() * (-x / 10.0).exp();
    let y1 = y0 * (x / 4.0).cos() + 0.25 * y0 * y0;
    y1.tanh() + 0.1 * y1
}

/// Measures the chain over a large array beside a copy kernel, both in bytes that are read and written in a second.
#[cfg(feature = "gpu")]
async fn chain_beside_copy(options: &Options, elements: usize) -> Result<()> {
    let index = gpu_index(options);
    let raw = raw_wgpu::Raw::open(index.unwrap_or(0));
    let Some(copy) = raw.and_then(|raw| raw.copy_gb_per_s(elements as u64 * 4)) else {
        println!("no copy kernel could be run on this GPU");
        return Ok(());
    };
    report(&format!("copy kernel, {elements} f32"), copy, "GB/s", "");
    for (precision, name, goal) in
        [(Precision::Accurate, "accurate", "goal 0.5 of the copy"), (Precision::Fast, "fast", "goal 0.8 of the copy")]
    {
        let runtime = start(DeviceChoice::Gpu(index), precision).await?;
        let chain = chain_gb_per_s(&runtime, elements, precision).await?;
        runtime.shutdown().await?;
        report(&format!("chain, {name}"), chain, "GB/s", "");
        report("  of the copy", chain / copy, "", goal);
    }
    Ok(())
}

#[cfg(not(feature = "gpu"))]
async fn chain_beside_copy(_: &Options, _: usize) -> Result<()> {
    Ok(())
}

#[cfg(feature = "gpu")]
async fn chain_gb_per_s(runtime: &Runtime, elements: usize, precision: Precision) -> Result<f64> {
    /// Consecutive regions, so that the device never waits for the host.
    const RUNS: usize = 10;
    let session = runtime.session("chain").open();
    let x = session.linspace::<f32>(0.0, 12.566, elements);
    x.eval().await?;
    let at = elements / 3;
    let value = chain(&x).slice((.., at..at + 1)).gather::<f32>().await?[0];
    let tolerance = if precision == Precision::Fast { 2e-3 } else { 1e-5 };
    check("the chain", f64::from(value), chain_of(12.566 * at as f64 / (elements - 1) as f64), tolerance);
    let one_round = || async {
        let begin = Instant::now();
        let evals: Vec<_> = (0..RUNS)
            .map(|_| {
                let eval = chain(&x).eval();
                // Each run has a tape of its own. On one tape, all runs would be one kernel that reads `x` once.
                session.flush();
                eval
            })
            .collect();
        futures::future::try_join_all(evals).await?;
        Ok::<f64, Error>(begin.elapsed().as_secs_f64())
    };
    one_round().await?;
    let before = runtime.stats();
    let mut times = Vec::new();
    for _ in 0..5 {
        times.push(one_round().await?);
    }
    let stats = runtime.stats().since(&before);
    let bytes = (stats.bytes_kernel_read + stats.bytes_kernel_written) as f64 / 5.0;
    assert_eq!(bytes, (RUNS * elements * 8) as f64, "the chain reads its input once and writes its output once");
    Ok(bytes / median(times) / 1e9)
}

/// Measures the host device beside NumPy.
async fn beside_numpy(options: &Options) -> Result<()> {
    let repeats = if options.quick { 3 } else { 7 };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/numpy_peer.py");
    let peer = Command::new("python3").args([script, &repeats.to_string()]).output();
    let peer = match peer {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => {
            println!("NumPy is not here (python3 with numpy): no ratios");
            String::new()
        }
    };
    let numpy = |name: &str| -> Option<(f64, f64)> {
        let line = peer.lines().find(|line| line.split(' ').next() == Some(name))?;
        let mut fields = line.split(' ').skip(1).map(|field| field.parse().ok());
        Some((fields.next()??, fields.next()??))
    };
    let runtime = start(DeviceChoice::Host, Precision::Accurate).await?;
    let session = runtime.session("beside NumPy").seed(1).open();
    let works: [(&str, HostWork, f64); 3] =
        [("chain_f32", chain_f32, 1e-4), ("chain_f64", chain_f64, 1e-9), ("normalise_4k", normalise, 2e-3)];
    for (name, work, tolerance) in works {
        let input = work(&session, None).await?.0;
        let mut times = Vec::new();
        for _ in 0..repeats {
            let begin = Instant::now();
            let (_, value) = work(&session, Some(&input)).await?;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
            if let Some((_, expected)) = numpy(name) {
                check(name, value, expected, tolerance);
            }
        }
        let ours = median(times);
        report(&format!("host, {name}"), ours, "ms", "");
        if let Some((theirs, _)) = numpy(name) {
            report("  NumPy", theirs, "ms", "");
            report("  NumPy's time over ours", theirs / ours, "", "goal 1");
        }
    }
    runtime.shutdown().await
}

/// A workload. The first call makes the input; later calls get it. Returns the input and the check value.
type HostWork = for<'a> fn(&'a Session, Option<&'a Array>) -> futures::future::LocalBoxFuture<'a, Result<(Array, f64)>>;

fn chain_f32<'a>(
    session: &'a Session,
    input: Option<&'a Array>,
) -> futures::future::LocalBoxFuture<'a, Result<(Array, f64)>> {
    Box::pin(async move {
        let x = match input {
            Some(x) => x.clone(),
            None => session.linspace::<f32>(0.0, 12.566, 5_000_000),
        };
        x.eval().await?;
        let sum = chain(&x).sum(..).item::<f32>().await?;
        Ok((x, f64::from(sum)))
    })
}

fn chain_f64<'a>(
    session: &'a Session,
    input: Option<&'a Array>,
) -> futures::future::LocalBoxFuture<'a, Result<(Array, f64)>> {
    Box::pin(async move {
        let x = match input {
            Some(x) => x.clone(),
            None => session.linspace::<f64>(0.0, 12.566, 5_000_000),
        };
        x.eval().await?;
        let sum = chain(&x).sum(..).item::<f64>().await?;
        Ok((x, sum))
    })
}

fn normalise<'a>(
    session: &'a Session,
    _: Option<&'a Array>,
) -> futures::future::LocalBoxFuture<'a, Result<(Array, f64)>> {
    Box::pin(async move {
        let pictures = session.rand::<f32>([2160, 3840, 2]);
        let centred = &pictures - pictures.mean([0, 1]);
        let spread = (centred.square().mean([0, 1]) + 1e-6).sqrt();
        let out = (centred / spread * 1.0123 - 0.02).max(0.0).pow(1.8);
        let error = (out - &pictures).square().mean(..).item::<f32>().await?;
        Ok((pictures, f64::from(error)))
    })
}

//! Measures the pricing of `examples/service` under load, beside the same program on ndarray.
//!
//! `cargo bench --bench service -- [--seconds N] [--device host|gpu|both] [--only PART]`
//!
//! Parts: `closed` (1, 16 and 256 callers that each wait for their answer), `open` (requests at half and at four fifths
//! of that rate), `mixed` (10 % cancelled, 5 % with a price that the device finds to be wrong), `overload` (twice that
//! rate, each request dropped after 250 ms), `weight` (a session of weight 8 beside 16 tasks that open a session for
//! each request), `http` (16 callers over the loopback). Answers are checked; figures are printed, not asserted.
//!
//! Both programs run in one process, one after the other, on one executor, and each may use all cores. That of ndarray
//! runs each request in `spawn_blocking`, with as many requests at a time as there are cores, because more would only
//! wait for each other.

mod http;
mod load;
mod parts;
mod peer;
#[path = "../../examples/service/pricing.rs"]
mod pricing;
#[path = "../../examples/service/server.rs"]
mod server;
#[path = "../shared/mod.rs"]
mod shared;

use std::process::ExitCode;
use std::time::Duration;
use tidemill::DeviceKind;
use tidemill::{Error, Runtime};

/// The value of `RuntimeBuilder::ops_pending_max`: as many ops as some 320 requests record, which two cores compute in
/// about 40 ms. The gather of a request beyond it fails at once with `ErrorKind::Overloaded`. The callers here wait for
/// 250 ms, and this limit lets the runtime answer each request that it accepts before its caller gives up.
const PENDING_OPS_MAX: u64 = 20 << 10;

const PARTS: [&str; 6] = ["closed", "open", "mixed", "overload", "weight", "http"];

/// The options that the command line set.
struct Options {
    seconds: f64,
    devices: Vec<&'static str>,
    only: Option<String>,
}

impl Options {
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--seconds" => {
                let seconds = value.parse().ok().filter(|s| (0.1..=3600.0).contains(s));
                self.seconds = seconds.ok_or("--seconds needs a number from 0.1 to 3600")?;
            }
            "--device" => {
                self.devices = match value {
                    "host" => vec!["host"],
                    "gpu" => vec!["gpu"],
                    "both" => vec!["host", "gpu"],
                    other => return Err(format!("'{other}' is no device: choose host, gpu or both")),
                }
            }
            "--only" => {
                if !PARTS.contains(&value) {
                    return Err(format!("--only needs one of {}", PARTS.join(", ")));
                }
                self.only = Some(value.to_owned());
            }
            _ => return Err(format!("{name} is unknown")),
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let usage = "service [--seconds N] [--device host|gpu|both] [--only PART]";
    let defaults = Options { seconds: 2.0, devices: vec!["host", "gpu"], only: None };
    match shared::parsed(usage, defaults, Options::set) {
        Ok(options) => shared::ended(service(&options)),
        Err(status) => status,
    }
}

fn service(options: &Options) -> Result<(), Error> {
    let executor = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("service: {} cores, {}", cores, cpu());
    println!("command: cargo bench --bench service -- {}", std::env::args().skip(1).collect::<Vec<_>>().join(" "));
    options.devices.iter().try_for_each(|device| executor.block_on(on_device(device, options)))
}

fn cpu() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name"));
    name.map_or_else(|| "an unknown CPU".into(), |name| name.trim_start_matches(['\t', ' ', ':']).into())
}

async fn on_device(device: &str, options: &Options) -> Result<(), Error> {
    let builder = Runtime::builder().device(device).drain(Duration::from_secs(5)).ops_pending_max(PENDING_OPS_MAX);
    let runtime = match builder.start().await {
        Ok(runtime) => runtime,
        Err(error) if device == "gpu" => {
            println!("\ngpu: none here ({})", error.message());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let gpu = runtime.devices().iter().find(|info| info.kind != DeviceKind::Host);
    println!("\ndevice: {}", gpu.map_or("host", |info| info.name.as_str()));
    let wants = |part: &str| options.only.as_deref().is_none_or(|only| only == part);
    let seconds = Duration::from_secs_f64(options.seconds);
    let bench = parts::Bench::new(runtime, seconds).await?;
    if wants("closed") {
        bench.closed().await?;
    }
    if wants("open") {
        bench.open().await?;
    }
    if wants("mixed") {
        bench.mixed().await?;
    }
    if wants("overload") {
        bench.overload().await?;
    }
    if wants("weight") {
        bench.weight().await?;
    }
    match wants("http") {
        true => bench.http().await,
        false => bench.end().await,
    }
}

//! `tidemill info`: the devices of this machine, and how a runtime uses them.
//!
//! In: a choice of device. Out: the adapters that wgpu sees; the devices of a runtime opened on them, with their probed
//! arithmetic and measured constants; and the errors of estimates made from them.

use crate::estimates::{self, Line};
use crate::shared::{Outcome, RuntimeOptions};
use std::fmt;
use tidemill::{Costs, DeviceInfo, DeviceKind, Features, FloatProfile, Result};

/// The environment variables that a runtime reads, with a description; docs/configuration.md has more.
const VARIABLES: [(&str, &str); 5] = [
    ("TIDEMILL_DEVICE", "the device, where the program names none"),
    ("TIDEMILL_CACHE", "the folder of what is measured and compiled"),
    ("TIDEMILL_WARMUP", "shaders of earlier runs that are compiled at the start"),
    ("TIDEMILL_DUMP", "a folder that planning writes to"),
    ("TIDEMILL_TRACE_DISPATCHES", "1: the timeline shows every dispatch"),
];

/// The options of the command.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    runtime: RuntimeOptions,
}

/// The adapters and devices.
pub struct Report {
    adapters: Vec<String>,
    devices: Vec<DeviceInfo>,
    estimates: Vec<Line>,
}

/// Lists the adapters and opens a runtime.
///
/// # Errors
/// No such device, or one that cannot be opened.
pub async fn run(options: &Options) -> Result<Report> {
    let adapters = adapters();
    let runtime = options.runtime.start().await?;
    let devices = runtime.devices().to_vec();
    let estimates = estimates::measure(&runtime).await?;
    options.runtime.finish(runtime).await?;
    Ok(Report { adapters, devices, estimates })
}

#[cfg(feature = "gpu")]
fn adapters() -> Vec<String> {
    let line = |a: tidemill::AdapterSummary| {
        let memory = Bytes(a.memory_bytes);
        format!("gpu:{}  {} ({}, {}, {memory})", a.index, a.name, a.kind, a.driver)
    };
    tidemill::adapters().into_iter().map(line).collect()
}

#[cfg(not(feature = "gpu"))]
fn adapters() -> Vec<String> {
    Vec::new()
}

/// Shows bytes in the largest unit of which there is at least one.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        match units.iter().find(|(shift, _)| self.0 >> shift > 0) {
            Some((shift, unit)) => write!(f, "{:.1} {unit}", self.0 as f64 / (1u64 << shift) as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

impl Outcome for Report {
    fn succeeded(&self) -> bool {
        true
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tidemill {}\n\nAdapters", env!("CARGO_PKG_VERSION"))?;
        if self.adapters.is_empty() {
            writeln!(f, "  none: work runs on the CPU (install a Vulkan driver, for example mesa-vulkan-drivers)")?;
        }
        for adapter in &self.adapters {
            writeln!(f, "  {adapter}")?;
        }
        for device in &self.devices {
            show(device, f)?;
        }
        writeln!(f, "\nEnvironment")?;
        for (name, what) in VARIABLES {
            let value = std::env::var(name).unwrap_or_else(|_| "not set".to_owned());
            writeln!(f, "  {name:<26} {value:<10} {what}")?;
        }
        writeln!(f, "\nEstimates beside what then was measured")?;
        self.estimates.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

fn show(device: &DeviceInfo, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let kind = match device.kind {
        DeviceKind::Host => "CPU threads",
        DeviceKind::Gpu if device.software => "a GPU in software",
        DeviceKind::Gpu => "a GPU",
    };
    writeln!(f, "\nDevice {}: {} ({kind})", device.id, device.name)?;
    let mut line = |name: &str, value: String| writeln!(f, "  {name:<22} {value}");
    line("driver", device.driver.clone())?;
    line("features", features(device.features))?;
    line("float profile", profile(device.profile))?;
    line("precision", format!("{:?}", device.precision).to_lowercase())?;
    line("binding at most", Bytes(device.binding_bytes_max).to_string())?;
    line("buffer at most", Bytes(device.buffer_bytes_max).to_string())?;
    line("bindings at most", device.bindings_max.to_string())?;
    line("budget", Bytes(device.budget_bytes).to_string())?;
    line("elements a segment", (1u64 << device.segment_shift.min(63)).to_string())?;
    line("batches in flight", device.batches_in_flight_max.to_string())?;
    let Costs { launch_us, dispatch_us, memory_gb_per_s, .. } = device.costs;
    let Costs { f32_gop_per_s, f64_gop_per_s, upload_gb_per_s, readback_gb_per_s, .. } = device.costs;
    line("launch", format!("{launch_us:.1} us, each further dispatch {dispatch_us:.1} us"))?;
    line("memory", format!("{memory_gb_per_s:.1} GB/s"))?;
    line("arithmetic", format!("{f32_gop_per_s:.1} billion f32 operations/s, {f64_gop_per_s:.1} of f64"))?;
    line("upload, readback", format!("{upload_gb_per_s:.1} and {readback_gb_per_s:.1} GB/s"))
}

fn features(features: Features) -> String {
    let Features { f64, i64, subgroups, timestamps, mappable, pipeline_cache, .. } = features;
    words(&[
        (f64, "f64"),
        (i64, "i64"),
        (subgroups, "subgroups"),
        (timestamps, "timestamps"),
        (mappable, "mappable memory"),
        (pipeline_cache, "pipeline cache"),
    ])
}

fn profile(profile: FloatProfile) -> String {
    let FloatProfile { fma_fused, keeps_subnormals, exact_division, exact_sqrt, keeps_negative_zero, .. } = profile;
    words(&[
        (fma_fused, "fused fma"),
        (keeps_subnormals, "subnormals"),
        (exact_division, "exact division"),
        (exact_sqrt, "exact square root"),
        (keeps_negative_zero, "negative zero"),
    ])
}

fn words(pairs: &[(bool, &str)]) -> String {
    let join = |wanted: bool| {
        let list: Vec<&str> = pairs.iter().filter(|(has, _)| *has == wanted).map(|(_, word)| *word).collect();
        list.join(", ")
    };
    match (join(true), join(false)) {
        (has, lacks) if lacks.is_empty() => has,
        (has, lacks) if has.is_empty() => format!("none (lacks {lacks})"),
        (has, lacks) => format!("{has} (lacks {lacks})"),
    }
}

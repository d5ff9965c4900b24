//! Stores measured costs in a file for each device, and finds the folder for these files.
//!
//! In: measured costs. Out: the same costs at the next start. A file that cannot be read or written is no error: the
//! device is measured again.
//!
//! Must hold: COST-1: a process measures a device at most once, so placement does not vary between its runtimes. If the
//! file can be written, it does not vary between processes either.

use crate::contract::device::Costs;
use crate::error::Result;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Names the environment variable with the folder in which measured constants are kept.
pub const CACHE_VARIABLE: &str = "TIDEMILL_CACHE";

/// The version of the file format. Files of another version are ignored.
const VERSION: u64 = 3;

/// The costs stored under this name (device, driver, threads), or else the result of `measure`, which is then stored.
///
/// # Errors
/// The error of `measure`.
pub(super) fn of(name: &str, measure: impl FnOnce() -> Result<Costs>) -> Result<Costs> {
    kept_in(folder().as_deref(), name, measure)
}

/// COST-1: within a process, the first answer for a folder and a name is every later one.
fn kept_in(folder: Option<&Path>, name: &str, measure: impl FnOnce() -> Result<Costs>) -> Result<Costs> {
    static KNOWN: Mutex<BTreeMap<PathBuf, Costs>> = Mutex::new(BTreeMap::new());
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let file = folder.unwrap_or(Path::new("")).join(format!("costs-{plain}.json"));
    // The lock is held while measuring, so that runtimes that start at the same time share one result and do not
    // disturb each other's measurement.
    let mut known = KNOWN.lock();
    if let Some(costs) = known.get(&file) {
        return Ok(*costs);
    }
    let costs = match folder.and_then(|_| read(&file)) {
        Some(costs) => costs,
        None => {
            let costs = measure()?;
            if folder.is_some() {
                keep(&file, &costs);
            }
            costs
        }
    };
    known.insert(file, costs);
    Ok(costs)
}

/// The folder for costs and for compiled pipelines: `$TIDEMILL_CACHE`, or the user's cache folder.
pub(super) fn folder() -> Option<PathBuf> {
    let home = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    home(CACHE_VARIABLE)
        .or_else(|| home("XDG_CACHE_HOME").map(|p| p.join("tidemill")))
        .or_else(|| home("HOME").map(|p| p.join(".cache").join("tidemill")))
}

/// The costs in a file; `None` if it cannot be read or is not valid.
fn read(file: &Path) -> Option<Costs> {
    from_json(&std::fs::read_to_string(file).ok()?)
}

fn to_json(costs: &Costs) -> String {
    let json = serde_json::json!({
        "version": VERSION,
        "launch_us": costs.launch_us,
        "dispatch_us": costs.dispatch_us,
        "memory_gb_per_s": costs.memory_gb_per_s,
        "f32_gop_per_s": costs.f32_gop_per_s,
        "f64_gop_per_s": costs.f64_gop_per_s,
        "upload_gb_per_s": costs.upload_gb_per_s,
        "readback_gb_per_s": costs.readback_gb_per_s,
    });
    format!("{json:#}\n")
}

/// Parses costs; `None` unless all are there, finite and positive.
fn from_json(text: &str) -> Option<Costs> {
    let json: serde_json::Value = serde_json::from_str(text).ok()?;
    let number = |name: &str| json.get(name)?.as_f64().filter(|n| n.is_finite() && *n > 0.0);
    if json.get("version")?.as_u64()? != VERSION {
        return None;
    }
    Some(Costs {
        launch_us: number("launch_us")?,
        dispatch_us: number("dispatch_us")?,
        memory_gb_per_s: number("memory_gb_per_s")?,
        f32_gop_per_s: number("f32_gop_per_s")?,
        f64_gop_per_s: number("f64_gop_per_s")?,
        upload_gb_per_s: number("upload_gb_per_s")?,
        readback_gb_per_s: number("readback_gb_per_s")?,
    })
}

/// Stores costs. A failure only means that the next start measures again.
fn keep(file: &Path, costs: &Costs) {
    if let Err(error) = write_whole(file, to_json(costs).as_bytes()) {
        tracing::debug!(target: "tidemill::device", "the measured costs were not kept: {error}");
    }
}

/// Writes a temporary file and renames it, so that a reader never sees a partial file.
pub(super) fn write_whole(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let beside = file.with_extension(format!("{}-{}.new", std::process::id(), COUNT.fetch_add(1, Relaxed)));
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let written = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, file));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::device::{DeviceInfo, DeviceKind};
    use crate::ids::DeviceId;

    #[test]
    fn a_device_is_measured_once_whether_or_not_the_file_can_be_written() {
        let toy = DeviceInfo::toy(DeviceId::HOST, DeviceKind::Host);
        let costs = |n: f64| Costs { launch_us: n, ..toy.costs };
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("new");
        let nowhere = dir.path().join("file");
        std::fs::write(&nowhere, "not a folder").unwrap();
        for place in [Some(folder.as_path()), Some(nowhere.as_path()), None] {
            let first = kept_in(place, "a test/of costs", || Ok(costs(7.0))).unwrap();
            let second = kept_in(place, "a test/of costs", || panic!("measured twice")).unwrap();
            assert_eq!((first, second), (costs(7.0), costs(7.0)), "{place:?}");
        }
        assert_eq!(read(&folder.join("costs-a-test-of-costs.json")), Some(costs(7.0)));
        // Costs that another process has stored are used.
        keep(&folder.join("costs-other.json"), &costs(9.0));
        assert_eq!(kept_in(Some(&folder), "other", || panic!("measured")).unwrap(), costs(9.0));
    }

    #[test]
    fn kept_costs_read_back_and_broken_ones_do_not() {
        let costs = Costs {
            launch_us: 90.5,
            dispatch_us: 2.0,
            memory_gb_per_s: 4000.0,
            f32_gop_per_s: 30000.0,
            f64_gop_per_s: 15000.0,
            upload_gb_per_s: 20.0,
            readback_gb_per_s: 10.0,
        };
        let text = to_json(&costs);
        assert_eq!(from_json(&text), Some(costs));
        assert_eq!(from_json(&text.replace("\"version\": 3", "\"version\": 0")), None);
        assert_eq!(from_json(&text.replace("90.5", "-1")), None);
        assert_eq!(from_json(&text[..20]), None);
    }
}

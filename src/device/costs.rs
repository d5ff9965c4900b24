//! Measured costs, kept in a file for each device, and the folder in which they are kept.
//!
//! In: what was measured. Out: the same at the next start. A file that can't be read or written is no error: it
//! costs another measurement.
//!
//! Must hold: COST-1: a process measures a device once at most, and placement therefore never varies between its
//! runtimes; between processes it does not either, where the file could be written.

use crate::contract::device::Costs;
use crate::error::Result;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Names the environment variable with the folder in which measured constants are kept.
pub const CACHE_VARIABLE: &str = "TIDEMILL_CACHE";

/// Kept measurements of another version are not read.
const VERSION: u64 = 3;

/// The costs of what goes by this name (device, driver, threads): as they were kept, else as `measure` finds them.
///
/// # Errors
/// What `measure` fails with.
pub(super) fn of(name: &str, measure: impl FnOnce() -> Result<Costs>) -> Result<Costs> {
    kept_in(folder().as_deref(), name, measure)
}

/// COST-1: within a process, the first answer for a folder and a name is every later one.
fn kept_in(folder: Option<&Path>, name: &str, measure: impl FnOnce() -> Result<Costs>) -> Result<Costs> {
    static KNOWN: Mutex<BTreeMap<PathBuf, Costs>> = Mutex::new(BTreeMap::new());
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let file = folder.unwrap_or(Path::new("")).join(format!("costs-{plain}.json"));
    // Held while measuring: runtimes that start at once must neither disagree nor disturb each other.
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

/// Where costs, and what drivers compiled, are kept: `$TIDEMILL_CACHE`, or the user's cache folder.
pub(super) fn folder() -> Option<PathBuf> {
    let home = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    home(CACHE_VARIABLE)
        .or_else(|| home("XDG_CACHE_HOME").map(|p| p.join("tidemill")))
        .or_else(|| home("HOME").map(|p| p.join(".cache").join("tidemill")))
}

/// The costs that a file holds, if it does.
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

/// Costs as they were kept; `None` unless all of them are there and make sense.
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

/// Failures cost a measurement at the next start, no more.
fn keep(file: &Path, costs: &Costs) {
    if let Err(error) = write_whole(file, to_json(costs).as_bytes()) {
        tracing::debug!(target: "tidemill::device", "the measured costs were not kept: {error}");
    }
}

/// Writes beside the file and renames, so that a reader never sees half of it.
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
        // What another process kept is taken.
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

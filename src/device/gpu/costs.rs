//! Measured costs, kept in a file for each adapter and driver.
//!
//! In: what was measured. Out: the same at the next start. A file that can't be read or written is no error: it
//! costs another measurement.

use crate::device::info::Costs;
use std::path::{Path, PathBuf};

/// Kept measurements of another version are not read.
const VERSION: u64 = 1;

/// The costs that a file holds, if it does.
pub(super) fn read(file: &Path) -> Option<Costs> {
    from_json(&std::fs::read_to_string(file).ok()?)
}

/// Where an adapter's costs are kept: `$TIDEMILL_CACHE`, or the user's cache folder.
pub(super) fn file(about: &wgpu::AdapterInfo) -> Option<PathBuf> {
    let home = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let folder = home("TIDEMILL_CACHE")
        .or_else(|| home("XDG_CACHE_HOME").map(|p| p.join("tidemill")))
        .or_else(|| home("HOME").map(|p| p.join(".cache").join("tidemill")))?;
    let name = format!("{}-{}-{}-{:?}", about.name, about.driver, about.driver_info, about.backend);
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    Some(folder.join(format!("costs-{plain}.json")))
}

fn to_json(costs: &Costs) -> String {
    let json = serde_json::json!({
        "version": VERSION,
        "launch_us": costs.launch_us,
        "dispatch_us": costs.dispatch_us,
        "memory_gb_per_s": costs.memory_gb_per_s,
        "f32_gop_per_s": costs.f32_gop_per_s,
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
        upload_gb_per_s: number("upload_gb_per_s")?,
        readback_gb_per_s: number("readback_gb_per_s")?,
    })
}

/// Writes beside the file and renames, so that a reader never sees half of it. Failures cost a measurement at
/// the next start, no more.
pub(super) fn keep(file: &Path, costs: &Costs) {
    let Some(folder) = file.parent() else { return };
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&beside, to_json(costs)))
        .and_then(|()| std::fs::rename(&beside, file));
    if let Err(error) = written {
        tracing::debug!(target: "tidemill::gpu", "the measured costs were not kept: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_costs_read_back_and_broken_ones_do_not() {
        let costs = Costs {
            launch_us: 90.5,
            dispatch_us: 2.0,
            memory_gb_per_s: 4000.0,
            f32_gop_per_s: 30000.0,
            upload_gb_per_s: 20.0,
            readback_gb_per_s: 10.0,
        };
        let text = to_json(&costs);
        assert_eq!(from_json(&text), Some(costs));
        assert_eq!(from_json(&text.replace("\"version\": 1", "\"version\": 0")), None);
        assert_eq!(from_json(&text.replace("90.5", "-1")), None);
        assert_eq!(from_json(&text[..20]), None);
    }
}

//! The description of the host device.
//!
//! In: settings, threads, measured costs. Out: the host's [`DeviceInfo`].

use crate::config::Config;
use crate::contract::device::{Capabilities, Costs, DeviceInfo, DeviceKind, Features, ONE_PIECE_SHIFT};
use crate::ids::DeviceId;
use crate::kernels::target::FloatProfile;

/// The memory that is assumed if the system does not report it.
const MEMORY_BYTES_ASSUMED: u64 = 4 << 30;
/// Largest size of a single allocation.
const BUFFER_BYTES_MAX: u64 = 1 << 40;

/// Describes the host device.
pub(super) fn describe(config: &Config, threads: usize, costs: Costs) -> DeviceInfo {
    let budget_bytes = config
        .host_budget
        .unwrap_or_else(|| memory_available(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default()) / 10 * 8);
    DeviceInfo {
        id: DeviceId::HOST,
        kind: DeviceKind::Host,
        capabilities: Capabilities::of(DeviceKind::Host),
        name: "host".to_owned(),
        driver: format!("{}, {threads} threads", processor()),
        software: false,
        features: Features {
            f64: true,
            i64: true,
            subgroups: false,
            timestamps: true,
            mappable: true,
            pipeline_cache: false,
        },
        profile: FloatProfile::UNFUSED,
        precision: config.precision,
        costs,
        binding_bytes_max: BUFFER_BYTES_MAX,
        buffer_bytes_max: BUFFER_BYTES_MAX,
        bindings_max: 256,
        line_invocations_max: 0,
        immediate_words_max: 0,
        budget_bytes,
        memory_bytes: budget_bytes,
        budget_is_set: config.host_budget.is_some(),
        host_share_bytes: 0,
        segment_shift: ONE_PIECE_SHIFT,
        span_shift: ONE_PIECE_SHIFT,
        slab_slot_bytes_max: 0,
        batches_in_flight_max: config.batches_in_flight.max(1),
    }
}

/// The name under which its measured costs are stored. It includes the number of threads and whether the build is
/// optimised, since both change the rates.
pub(super) fn costs_name(threads: usize) -> String {
    let build = if cfg!(debug_assertions) { "-debug" } else { "" };
    format!("host-{}-{threads}-threads{build}", processor())
}

/// Bytes of blocks that are kept for reuse.
pub(super) fn kept_bytes_max(info: &DeviceInfo) -> usize {
    (info.budget_bytes / 4).min(2 << 30) as usize
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn memory_available(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()).and_then(|word| word.parse::<u64>().ok());
    kilobytes.map_or(MEMORY_BYTES_ASSUMED, |k| k << 10)
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")).and_then(|rest| rest.split(": ").nth(1));
    name.unwrap_or(std::env::consts::ARCH).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_or_assumed() {
        assert_eq!(memory_available("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"), 2 << 20);
        assert_eq!(memory_available(""), MEMORY_BYTES_ASSUMED);
    }

    #[test]
    fn the_budget_and_the_batches_are_what_was_asked_for() {
        let config = Config { host_budget: Some(1000), batches_in_flight: 0, ..Config::default() };
        let costs = crate::contract::fixtures::device(0, DeviceKind::Host).costs;
        let info = describe(&config, 3, costs);
        assert_eq!((info.budget_bytes, info.batches_in_flight_max, info.segment_shift), (1000, 1, ONE_PIECE_SHIFT));
        assert!(info.has(crate::graph::DType::F64) && info.has(crate::graph::DType::I64));
    }
}

//! Device descriptions that unit tests of several actors share.

use super::device::{Capabilities, Costs, DeviceInfo, DeviceKind, Features};
use crate::ids::DeviceId;

/// A device with round numbers: the GPU has 10 times the host's bandwidth and 100 us of latency.
pub(crate) fn device(id: u8, kind: DeviceKind) -> DeviceInfo {
    let toy = DeviceInfo::toy(DeviceId(id), kind);
    let gpu = !toy.capabilities.owns_host_budget;
    DeviceInfo {
        name: if gpu { "test gpu".to_owned() } else { "test host".to_owned() },
        features: Features { f64: !gpu, i64: !gpu, ..toy.features },
        costs: Costs {
            launch_us: if gpu { 100.0 } else { 1.0 },
            dispatch_us: 1.0,
            memory_gb_per_s: if gpu { 1000.0 } else { 10.0 },
            f32_gop_per_s: if gpu { 10_000.0 } else { 10.0 },
            f64_gop_per_s: if gpu { 5_000.0 } else { 5.0 },
            upload_gb_per_s: 10.0,
            readback_gb_per_s: 10.0,
        },
        ..toy
    }
}

/// A device unlike those that this package opens: it compiles as a GPU does, in the host's memory, keeps narrow types
/// narrow, binds 8 arrays, and lacks f64. Behaviour that follows from the kind of a device fails on it (DEV-1).
pub(crate) fn unified(id: u8) -> DeviceInfo {
    let gpu = device(id, DeviceKind::Gpu);
    DeviceInfo {
        name: "test unified".to_owned(),
        capabilities: Capabilities { shares_host_memory: true, pads_narrow_types: false, ..gpu.capabilities },
        features: Features { i64: true, ..gpu.features },
        bindings_max: 8,
        ..gpu
    }
}

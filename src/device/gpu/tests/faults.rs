//! Failures of a GPU only: shaders, calls that wgpu rejects, the completion thread. Failures of every backend are in
//! `device/conformance/`.

use super::rig::{SCALE_WGSL, allocate, dispatch, launch, readback, rig, rig_with, slot, upload};
use crate::config::Config;
use crate::contract::batch::Command;
use crate::contract::messages::device::DeviceEvent;
use crate::device::Opening;
use crate::device::gpu::adapters;
use crate::error::{Error, ErrorKind};
use crate::graph::DType;
use crate::injection::Injection;
use crate::timeline::Timeline;
use std::sync::Arc;

fn injected(injection: Injection) -> Config {
    Config { injection, ..Config::default() }
}

/// Commands that allocate, run the kernel at this line and read four floats back.
#[track_caller]
fn scale(first: u64) -> Vec<Command> {
    let (a, b, f) = (slot(first, 0, 16), slot(first, 256, 16), slot(first, 512, 16));
    vec![
        allocate(first, 1024),
        upload(&[1.0f32, 2.0, 3.0, 4.0], a),
        dispatch(&launch(2.0, 0.0, 1e9, 0), a, b, f, 4),
        readback(0, b, DType::F32, 4),
    ]
}

fn assert_blamed(error: &Error, kind: ErrorKind, device: &str, line: u32) {
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.op(), Some("scale"), "{error}");
    assert_eq!(error.device(), Some(device), "{error}");
    assert_eq!(error.location().unwrap().line(), line, "{error}");
    assert!(error.location().unwrap().file().ends_with("faults.rs"));
}

#[test]
fn an_allocation_that_cannot_be_made_fails_its_batch_and_names_the_op() {
    let Some(mut rig) = rig() else { return };
    let name = rig.handle.info.name.clone();
    let mut commands = scale(1);
    let line = line!() - 1;
    commands[0] = allocate(1, u64::MAX / 2);
    let error = rig.run(commands).unwrap_err();
    assert_blamed(&error, ErrorKind::OutOfMemory, &name, line);
    let done = rig.run(scale(2)).unwrap();
    assert_eq!(done.data[0].1.as_slice::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
    rig.end();
}

#[test]
fn who_names_an_allocation_that_could_not_be_made_runs_out_of_memory_too() {
    let Some(mut rig) = rig() else { return };
    let name = rig.handle.info.name.clone();
    assert_eq!(rig.run(vec![allocate(1, u64::MAX / 2)]).unwrap_err().kind(), ErrorKind::OutOfMemory);
    let error = rig.run(scale(1).split_off(1)).unwrap_err();
    let line = line!() - 1;
    assert_blamed(&error, ErrorKind::OutOfMemory, &name, line);
    assert!(rig.run(scale(1)).is_ok());
    rig.end();
}

#[test]
fn a_shader_that_does_not_compile_fails_its_batch_with_the_compilers_words() {
    let Some(mut rig) = rig_with(Config::default(), "fn main() { let x = nonsense; }") else { return };
    let name = rig.handle.info.name.clone();
    let error = rig.run(scale(1)).unwrap_err();
    let line = line!() - 1;
    assert_blamed(&error, ErrorKind::Internal, &name, line);
    assert!(error.message().contains("nonsense"), "{error}");
    assert_eq!(rig.stats().pipelines_compiled, 0);
    rig.end();
}

#[test]
fn a_shader_whose_bindings_do_not_fit_fails_its_batch() {
    let wgsl = "
        @group(0) @binding(0) var<storage, read> params: array<u32>;
        @group(0) @binding(9) var<storage, read_write> a: array<f32>;
        @compute @workgroup_size(1) fn main() { a[0] = f32(params[0]); }";
    let Some(mut rig) = rig_with(Config::default(), wgsl) else { return };
    assert_eq!(rig.run(scale(1)).unwrap_err().kind(), ErrorKind::Internal);
    rig.end();
}

#[test]
fn what_wgpu_rejects_while_encoding_fails_the_batch_and_not_the_next() {
    let Some(mut rig) = rig() else { return };
    // An offset that no binding may have.
    let mut commands = scale(1);
    if let Command::Dispatch { bindings, .. } = &mut commands[2] {
        bindings[0][0].offset = 2;
    }
    assert_eq!(rig.run(commands).unwrap_err().kind(), ErrorKind::Internal);
    // A copy that is not a multiple of four bytes, found out only when the encoder is finished.
    let odd = Command::Copy { from: slot(2, 0, 6), to: slot(9, 0, 6) };
    let mut commands = scale(2);
    commands.splice(1..1, [allocate(9, 64), odd]);
    assert_eq!(rig.run(commands).unwrap_err().kind(), ErrorKind::Internal);
    assert!(rig.run(scale(3)).is_ok());
    rig.end();
}

#[test]
fn a_panic_over_a_submitted_batch_fails_that_batch_and_no_other() {
    let config = injected(Injection { panic_in_completion_at_batch: Some(1), ..Injection::default() });
    let Some(mut rig) = rig_with(config, SCALE_WGSL) else { return };
    assert!(rig.run(scale(1)).is_ok());
    let error = rig.run(scale(2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.message().contains("completing a batch panicked"), "{error}");
    assert!(rig.run(scale(3)).is_ok());
    rig.end();
}

#[test]
fn a_panic_in_a_poll_of_a_healthy_device_costs_nothing_that_has_finished() {
    let config = injected(Injection { panic_in_poll_at_batch: Some(1), ..Injection::default() });
    let Some(mut rig) = rig_with(config, SCALE_WGSL) else { return };
    for first in 1..5 {
        let done = rig.run(scale(first)).unwrap();
        assert_eq!(done.data[0].1.as_slice::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
    }
    rig.end();
}

#[test]
fn a_loss_that_the_completion_thread_finds_fails_what_flies_and_is_told() {
    let config = injected(Injection { lose_device_in_completion_at_batch: Some(1), ..Injection::default() });
    let Some(mut rig) = rig_with(config, SCALE_WGSL) else { return };
    assert!(rig.run(scale(1)).is_ok());
    assert_eq!(rig.run(scale(2)).unwrap_err().kind(), ErrorKind::DeviceLost);
    assert!(matches!(rig.event(), DeviceEvent::Lost { replaced: true, .. }));
    let done = rig.run(scale(3)).unwrap();
    assert_eq!(done.data[0].1.as_slice::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
    rig.end();
}

fn opening() -> Opening {
    let (events, _) = crate::mail::mail();
    Opening { config: Arc::default(), counters: Arc::default(), timeline: Timeline::off(), events }
}

#[test]
fn an_adapter_that_does_not_exist_is_an_error_that_tells_what_there_is() {
    let all = adapters();
    let error = opening().gpu(Some(99)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Device);
    match all.first() {
        Some(first) => assert!(error.message().contains(&first.name), "{error}"),
        None => assert!(error.message().contains("mesa-vulkan-drivers"), "{error}"),
    }
}

#[test]
fn features_that_are_left_out_and_forced_segments_show_in_the_devices_numbers() {
    let injection = Injection {
        without_features: vec!["f64", "timestamps", "subgroups"],
        segment_shift: Some(13),
        ..Injection::default()
    };
    let config = Config { device_budget: Some(64 << 20), batches_in_flight: 3, injection, ..Config::default() };
    let Some(rig) = rig_with(config, SCALE_WGSL) else { return };
    let info = &rig.handle.info;
    assert!(!info.features.f64 && !info.features.timestamps && !info.features.subgroups);
    assert_eq!((info.segment_shift, info.budget_bytes, info.batches_in_flight_max), (13, 64 << 20, 3));
    assert!(info.bindings_max >= 8 && info.costs.launch_us > 0.0 && info.costs.memory_gb_per_s > 0.0);
    rig.end();
}

//! Tests of pins: which arrays carry one, which pins reach the tape, which ops no longer fold.

use crate::array::fake::FakeRing;
use crate::array::*;
use crate::config::Config;
use crate::error::ErrorKind;
use crate::ids::DeviceId;
use std::sync::atomic::Ordering::Relaxed;

const GPU: Option<DeviceId> = Some(DeviceId(1));

#[test]
fn results_of_every_op_on_a_pinned_array_are_pinned() {
    let ring = FakeRing::unfolded();
    let s = ring.session("pins");
    let free = s.rand::<f32>([4, 4]);
    let x = free.pin("gpu");
    let index = s.from_slice(&[1u32, 0], [2, 1]).unwrap();
    let all = [
        &x + &free,
        &free * &x,
        1.0 - &x,
        x.sin(),
        x.sum(..),
        x.cumsum(0),
        x.transpose(),
        x.reshape([2, 8]),
        x.reshape([4, 4]),
        x.slice((0..2, ..)),
        x.cast::<f64>(),
        x.cast::<f32>(),
        x.sort(0).0,
        x.reshape([4, 4, 1]).sort(2).1,
        x.argsort(1),
        x.matmul(&free),
        cat(0, &[&free, &x]).unwrap(),
        free.take(&index.pin("gpu")),
        free.assign((0..2, 0..2), x.slice((0..2, 0..2))),
        x.reshape([4, 4, 1]).sum(2),
        x.slice((0..0, ..)),
        x.slice((0..0, ..)).matmul(&free),
        x.gt(0.5).select(1.0, &free),
        x.clone(),
    ];
    for y in &all {
        assert!(y.error().is_none() && y.is_on_gpu(), "{y:?}");
    }
    assert!(!free.is_on_gpu() && free.pinned_to().is_none());
    assert_eq!(format!("{:?}", &x + 1.0), "Array(4x4 f32, lazy, add, pinned to test gpu)");
    s.flush();
    let nodes = ring.nodes();
    assert_eq!((nodes[0].pin, nodes[2].op.name(), nodes[2].pin), (None, "add", GPU));
}

#[test]
fn a_gpu_goes_before_the_host_and_auto_takes_a_pin_away() {
    let ring = FakeRing::unfolded();
    let s = ring.session("pins");
    let x = s.rand::<f32>([4, 1]);
    let (host, gpu) = (x.pin("host"), x.pin("gpu"));
    assert_eq!(host.pinned_to().unwrap().id, DeviceId::HOST);
    assert!((&host + &gpu).is_on_gpu() && (&gpu + &host).is_on_gpu());
    assert!(!gpu.pin("host").is_on_gpu());
    assert!(gpu.pin("auto").pinned_to().is_none() && (gpu.pin("auto") + 1.0).pinned_to().is_none());
}

#[test]
fn a_pin_of_a_lazy_value_is_on_the_tape_once_and_one_of_host_data_is_not() {
    let ring = FakeRing::unfolded();
    let s = ring.session("pins");
    let x = s.rand::<f32>([4, 1]);
    let data = s.from_vec(vec![1.0f32; 4], [4, 1]).unwrap();
    let (_x, _again, _data) = (x.pin("gpu"), x.pin("gpu").pin("gpu"), data.pin("gpu"));
    let shared = x.share().unwrap();
    let _shared = shared.pin("gpu");
    s.flush();
    let pins = ring.story().iter().filter(|line| line.starts_with("pin ")).cloned().collect::<Vec<_>>();
    assert_eq!(pins, ["pin v0.0 1", "pin v0.0 1"]);
}

#[test]
fn a_tiny_value_that_is_pinned_to_a_gpu_no_longer_folds() {
    let ring = FakeRing::new(Config::default());
    let s = ring.session("pins");
    let x = s.from_slice(&[1.0f32, 2.0], [2, 1]).unwrap();
    let folded = (&x.pin("host") * 2.0).sum(..);
    assert_eq!(super::folded::<f32>(&folded), [6.0]);
    let before = ring.link.counters.ops_folded.load(Relaxed);
    let pinned = x.pin("gpu");
    assert_eq!(super::folded::<f32>(&pinned), [1.0, 2.0], "it is known, and gathered at once");
    let y = (&pinned * 2.0).sum(..);
    assert_eq!((y.state(), ring.link.counters.ops_folded.load(Relaxed)), (ArrayState::Lazy, before));
    // With two numbers, one of which is pinned, the op still runs on the GPU.
    let z = s.scalar(1.0f32).pin("gpu") + s.scalar(2.0f32);
    assert_eq!(z.state(), ArrayState::Lazy);
}

#[test]
fn a_device_that_is_not_there_is_a_carried_fault_and_an_unknown_one_too() {
    let ring = FakeRing::unfolded();
    let s = ring.session("pins");
    let x = s.rand::<f32>([4, 1]);
    for (name, part) in
        [("gpu:3", "has no gpu:3, only: test host, test gpu"), ("tpu", "choose auto, host, gpu or gpu:N")]
    {
        let error = x.try_pin(name).unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::Device, Some("pin")));
        assert!(error.message().contains(part), "{error}");
        assert!(x.pin(name).error().is_some());
    }
    assert!(x.pin("gpu:0").is_on_gpu());
    let bad = x.pin("tpu");
    assert_eq!(bad.pin("gpu").error().unwrap().message(), bad.error().unwrap().message());
}

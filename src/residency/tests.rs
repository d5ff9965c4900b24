//! Residency, rule by rule, on toy devices.

use super::message::ResidencyEvent;
use super::simulate::{Builder, World, device, numbers, value};
use crate::device::info::DeviceKind;
use crate::error::{Error, ErrorKind};
use crate::graph::DType;
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, RegionId};
use crate::kernels::ir::Geometry;

/// Value 1 from host data, value 2 = value 1 + 1.
fn double(region: u64, device: u8, source: u32, result: u32, dies: bool) -> Builder {
    let mut plan = Builder::new(region, device);
    let input = plan.input(source, 4, Some(numbers(10, 4)), dies);
    let output = plan.output(result, 4);
    plan.map(4, &[input], &[output]);
    plan
}

#[test]
fn a_plan_becomes_one_batch_of_upload_dispatch_and_readback() {
    let mut world = World::with_gpu(1 << 20, 20);
    let mut plan = double(1, 1, 1, 2, false);
    plan.read_back(2);
    world.feed(plan.done());
    assert_eq!(
        world.log,
        [
            "1: allocate b3 16",
            "1: upload 0..4 to b3+0",
            "1: allocate b4 16",
            "1: dispatch 0..4 base 0 last over b3+0, b4+0",
            "1: readback 4 of b4+0",
        ]
    );
    world.settle();
    assert_eq!(world.data(2), [11, 12, 13, 14]);
    assert!(world.finished.contains_key(&RegionId(1)));
}

#[test]
fn an_output_takes_over_the_memory_of_an_input_that_dies() {
    let mut world = World::with_gpu(1 << 20, 20);
    let mut plan = Builder::new(1, 1);
    let input = plan.input(1, 4, Some(numbers(10, 4)), true);
    let output = plan.output(2, 4);
    plan.in_place(output, input);
    plan.launch(Geometry::Map { elements: 4 }, &[(output, true, true, true)], None);
    plan.read_back(1);
    plan.read_back(2);
    world.feed(plan.done());
    world.settle();
    assert_eq!(
        world.log,
        [
            "1: allocate b3 16",
            "1: upload 0..4 to b3+0",
            "1: dispatch 0..4 base 0 last over b3+0",
            "1: readback 4 of b3+0",
        ]
    );
    assert_eq!((world.data(1), world.data(2)), (vec![10, 11, 12, 13], vec![11, 12, 13, 14]));
    assert_eq!(world.state.totals().reused_in_place, 1);
}

#[test]
fn the_old_contents_are_read_back_before_they_are_overwritten() {
    let mut world = World::with_gpu(1 << 20, 20);
    world.feed(double(1, 1, 1, 2, true).done());
    let mut plan = Builder::new(2, 1);
    let input = plan.input(2, 4, None, true);
    let output = plan.output(3, 4);
    plan.in_place(output, input);
    plan.launch(Geometry::Map { elements: 4 }, &[(output, true, true, true)], None);
    plan.read_back(2);
    world.feed(plan.done());
    world.settle();
    assert_eq!(world.log[4..], ["1: readback 4 of b4+0", "1: dispatch 0..4 base 0 last over b4+0"]);
    assert_eq!(world.data(2), [11, 12, 13, 14]);
}

#[test]
fn an_input_that_another_plan_still_needs_is_copied_instead_of_taken_over() {
    let mut world = World::with_gpu(1 << 20, 20);
    world.feed(double(1, 1, 1, 2, false).done());
    let mut plan = Builder::new(2, 1);
    let input = plan.input(2, 4, None, false);
    let output = plan.output(3, 4);
    plan.in_place(output, input);
    plan.launch(Geometry::Map { elements: 4 }, &[(output, true, true, true)], None);
    plan.read_back(2);
    plan.read_back(3);
    world.feed(plan.done());
    world.settle();
    assert_eq!((world.data(2), world.data(3)), (vec![11, 12, 13, 14], vec![12, 13, 14, 15]));
    assert!(world.log.iter().any(|l| l.starts_with("1: copy b4+0 to")), "{:?}", world.log);
    assert_eq!(world.state.totals().reused_in_place, 0);
}

#[test]
fn a_copy_step_onto_a_dying_input_is_a_renaming() {
    for (dies, copies) in [(true, 0), (false, 1)] {
        let mut world = World::with_gpu(1 << 20, 20);
        let mut plan = Builder::new(1, 1);
        let input = plan.input(1, 4, Some(numbers(10, 4)), dies);
        let output = plan.output(2, 4);
        plan.in_place(output, input);
        plan.copy(input, output);
        plan.launch(Geometry::Map { elements: 4 }, &[(output, true, true, true)], None);
        plan.read_back(2);
        world.feed(plan.done());
        world.settle();
        assert_eq!(world.log.iter().filter(|l| l.contains("copy")).count(), copies);
        assert_eq!(world.data(2), [11, 12, 13, 14]);
    }
}

#[test]
fn segments_are_dispatched_tile_by_tile_and_a_reduction_ends_with_the_last() {
    let mut world = World::with_gpu(1 << 20, 4);
    let mut plan = Builder::new(1, 1);
    let input = plan.input(1, 40, Some(numbers(0, 40)), true);
    let scratch = plan.scratch(40, false);
    let output = plan.output(2, 1);
    plan.map(40, &[input], &[scratch]);
    plan.sum(40, scratch, output);
    plan.read_back(2);
    world.feed(plan.done());
    let dispatches: Vec<&str> =
        world.log.iter().filter_map(|l| l.split(" over").next()?.strip_prefix("1: dispatch ")).collect();
    assert_eq!(
        dispatches,
        [
            "0..16 base 0",
            "16..32 base 16",
            "32..40 base 32 last",
            "0..16 base 0",
            "16..32 base 16",
            "32..40 base 32 last"
        ]
    );
    world.settle();
    assert_eq!(world.data(2), [(1..=40).sum::<u32>()]);
}

#[test]
fn operands_that_are_not_tiled_bind_all_their_segments() {
    let mut world = World::with_gpu(1 << 20, 4);
    let mut plan = Builder::new(1, 1);
    let input = plan.input(1, 40, Some(numbers(0, 40)), true);
    let output = plan.output(2, 40);
    plan.launch(Geometry::Map { elements: 40 }, &[(input, false, true, false), (output, true, false, true)], None);
    plan.read_back(2);
    world.feed(plan.done());
    let first = world.log.iter().find(|l| l.contains("dispatch")).expect("a dispatch");
    assert_eq!(first.matches('|').count(), 2, "{first}");
    world.settle();
    assert_eq!(world.data(2), (1..=40).collect::<Vec<_>>());
}

#[test]
fn a_value_crosses_devices_through_host_memory_while_others_go_on() {
    let devices = vec![
        device(0, DeviceKind::Host, 1 << 30, 31),
        device(1, DeviceKind::Gpu, 1 << 20, 4),
        device(2, DeviceKind::Gpu, 1 << 20, 3),
    ];
    let mut world = World::new(devices);
    let mut plan = Builder::new(1, 1);
    let input = plan.input(1, 40, Some(numbers(0, 40)), true);
    let output = plan.output(2, 40);
    plan.map(40, &[input], &[output]);
    world.feed(plan.done());
    let mut plan = Builder::new(2, 2);
    let input = plan.input(2, 40, None, true);
    let output = plan.output(3, 40);
    plan.map(40, &[input], &[output]);
    plan.read_back(3);
    world.feed(plan.done());
    assert!(!world.log.iter().any(|l| l.starts_with("2:")), "device 2 waits");
    world.feed(double(3, 1, 10, 11, true).done());
    world.settle();
    assert_eq!(world.data(3), (2..42).collect::<Vec<_>>());
    assert_eq!(world.finished.len(), 3);
}

#[test]
fn bytes_widen_on_a_gpu_and_come_back_narrow() {
    let mut world = World::with_gpu(1 << 20, 20);
    let mut plan = Builder::new(1, 1);
    let bytes = HostBuffer::from_vec(vec![1u8, 2, 3]).shared();
    let input = plan.input_of(DType::U8, 1, 3, Some(bytes), true);
    let output = plan.output_of(DType::U8, 2, 3);
    plan.map(3, &[input], &[output]);
    plan.read_back(2);
    world.feed(plan.done());
    world.settle();
    let data = world.arrived[&value(2)].as_ref().expect("it arrived");
    assert_eq!(data.as_slice::<u8>(), Some(&[2u8, 3, 4][..]));
}

#[test]
fn a_plan_waits_for_an_input_that_arrives_later() {
    let mut world = World::with_gpu(1 << 20, 20);
    let mut plan = Builder::new(2, 1);
    let input = plan.input(2, 4, None, true);
    let output = plan.output(3, 4);
    plan.map(4, &[input], &[output]);
    plan.read_back(3);
    world.feed(plan.done());
    assert!(world.log.is_empty());
    world.feed(double(1, 1, 1, 2, true).done());
    world.settle();
    assert_eq!(world.data(3), [12, 13, 14, 15]);
}

#[test]
fn batches_beyond_the_credit_are_held_back() {
    let mut world = World::with_gpu(1 << 20, 20);
    for n in 0..6 {
        world.feed(double(n as u64, 1, 10 + n, 20 + n, true).done());
    }
    assert_eq!(world.devices[1].queue.len(), 2);
    world.settle();
    assert_eq!(world.finished.len(), 6);
}

#[test]
fn a_retired_value_is_freed_once_its_last_region_is_placed() {
    let mut world = World::with_gpu(1 << 20, 20);
    world.feed(ResidencyEvent::ValueRetired { value: value(2), after: Some(RegionId(1)) });
    world.feed(double(1, 1, 1, 2, true).done());
    assert_eq!(world.state.values_held(), 0);
    world.settle();
    world.feed(double(2, 1, 3, 4, true).done());
    world.settle();
    assert_eq!(world.state.values_held(), 1);
    world.feed(ResidencyEvent::ValueRetired { value: value(4), after: None });
    assert_eq!(world.state.values_held(), 0);
    assert_eq!(world.state.totals().pool_misses, 2, "the second plan ran in the first one's memory");
}

#[test]
fn a_value_that_is_gathered_and_retired_still_arrives() {
    let mut world = World::with_gpu(1 << 20, 20);
    world.feed(ResidencyEvent::ValueRetired { value: value(2), after: Some(RegionId(1)) });
    let mut plan = double(1, 1, 1, 2, true);
    plan.read_back(2);
    world.feed(plan.done());
    world.settle();
    assert_eq!(world.data(2), [11, 12, 13, 14]);
    assert_eq!(world.state.values_held(), 0);
}

#[test]
fn a_chain_over_sixteen_times_the_budget_completes_by_eviction() {
    // 64 KiB, segments of an eighth: 16 arrays of 64 KiB are made from one another, then summed.
    let mut world = World::with_gpu(64 << 10, 11);
    let elements = 16 << 10;
    let mut plan = Builder::new(0, 1);
    let input = plan.input(0, elements, Some(numbers(0, elements as usize)), false);
    let output = plan.output(1, elements);
    plan.map(elements, &[input], &[output]);
    world.feed(plan.done());
    for n in 1..16 {
        let mut plan = Builder::new(n as u64, 1);
        let input = plan.input(n, elements, None, false);
        let output = plan.output(n + 1, elements);
        plan.map(elements, &[input], &[output]);
        world.feed(plan.done());
    }
    world.settle();
    for n in [16u32, 3, 9] {
        let mut plan = Builder::new(100 + n as u64, 1);
        let input = plan.input(n, elements, None, false);
        let output = plan.output(200 + n, 1);
        plan.sum(elements, input, output);
        plan.read_back(200 + n);
        world.feed(plan.done());
        world.settle();
        let sum = (0..elements as u32).fold(0u32, |s, i| s.wrapping_add(i + n));
        assert_eq!(world.data(200 + n), [sum]);
    }
    assert!(world.devices[1].bytes_peak <= 64 << 10);
    assert!(world.state.totals().evictions > 100, "{:?}", world.state.totals());
    assert_eq!(world.failed.len(), 0);
}

#[test]
fn one_gigabyte_of_arrays_passes_through_a_budget_of_64_megabytes() {
    let mut world = World::with_gpu(64 << 20, 20);
    world.devices[1].dry = true;
    let elements = 8 << 20;
    for n in 0..16 {
        let mut plan = Builder::new(n as u64, 1);
        let reads = if n == 0 { vec![] } else { vec![plan.input_of(DType::F64, n - 1, elements, None, false)] };
        let output = plan.output_of(DType::F64, n, elements);
        plan.map(elements, &reads, &[output]);
        world.feed(plan.done());
    }
    world.settle();
    assert_eq!((world.finished.len(), world.failed.len()), (16, 0));
    let (totals, peak) = (world.state.totals(), world.devices[1].bytes_peak);
    assert!(peak <= 64 << 20 && peak > 48 << 20, "{peak}");
    assert!(totals.bytes_evicted > 900 << 20, "{totals:?}");
}

#[test]
fn what_a_step_needs_is_not_evicted_for_the_same_step() {
    // Input and output take 896 of 1,024 bytes: eviction goes on to its low mark, but not into the step itself.
    let mut world = World::with_gpu(1 << 10, 20);
    let mut plan = Builder::new(1, 1);
    let output = plan.output(1, 50);
    plan.map(50, &[], &[output]);
    world.feed(plan.done());
    let mut plan = Builder::new(2, 1);
    let input = plan.input(3, 112, Some(numbers(0, 112)), false);
    let output = plan.output(4, 112);
    plan.map(112, &[input], &[output]);
    plan.read_back(4);
    world.feed(plan.done());
    world.settle();
    assert_eq!(world.data(4), (1..113).collect::<Vec<_>>());
    let dispatch = world.log.iter().rfind(|l| l.contains("dispatch")).expect("a dispatch");
    let (_, bound) = dispatch.split_once("over ").expect("operands");
    let (from, to) = bound.split_once(", ").expect("two of them");
    assert_ne!(from, to, "the input gave way to the output");
}

#[test]
fn a_segment_that_is_written_again_after_its_eviction_is_evicted_anew() {
    let mut world = World::with_gpu(8 << 10, 8);
    let elements = 16 << 10;
    let mut plan = Builder::new(0, 1);
    let output = plan.output(1, elements);
    plan.map(elements, &[], &[output]);
    for _ in 0..2 {
        plan.launch(Geometry::Map { elements: elements as u32 }, &[(output, true, true, true)], None);
    }
    plan.read_back(1);
    world.feed(plan.done());
    world.settle();
    assert_eq!(world.data(1), vec![3; elements as usize]);
}

#[test]
fn a_region_fails_with_a_later_batch_of_the_region_that_made_its_input() {
    let devices = vec![
        device(0, DeviceKind::Host, 1 << 30, 31),
        device(1, DeviceKind::Gpu, 1 << 20, 20),
        device(2, DeviceKind::Gpu, 1 << 20, 20),
    ];
    let mut world = World::new(devices);
    world.feed(double(1, 2, 1, 2, false).done());
    // Region 2 makes value 3, then pauses for value 2 from the other device.
    let mut plan = Builder::new(2, 1);
    let source = plan.input(4, 4, Some(numbers(0, 4)), true);
    let other = plan.input(2, 4, None, true);
    let first = plan.output(3, 4);
    let second = plan.output(5, 4);
    plan.map(4, &[source], &[first]);
    plan.map(4, &[other], &[second]);
    world.feed(plan.done());
    let mut plan = Builder::new(3, 1);
    let input = plan.input(3, 4, None, false);
    let output = plan.output(6, 4);
    plan.map(4, &[input], &[output]);
    plan.read_back(6);
    world.feed(plan.done());
    world.devices[1].step();
    let report = world.devices[1].reports.pop_front().expect("the first batch is done");
    world.feed(report);
    for _ in 0..2 {
        world.devices[2].step();
    }
    while let Some(report) = world.devices[2].reports.pop_front() {
        world.feed(report);
    }
    assert_eq!(world.devices[1].queue.len(), 2);
    world.devices[1].fail_next();
    world.settle();
    assert_eq!(world.failed.keys().map(|r| r.0).collect::<Vec<_>>(), [2, 3]);
    assert!(world.arrived[&value(6)].is_err());
}

#[test]
fn plans_in_the_queue_go_on_when_a_lost_device_is_replaced() {
    let mut world = World::with_gpu(1 << 20, 20);
    for n in 0..6 {
        let mut plan = double(n as u64, 1, 10 + n, 20 + n, true);
        plan.read_back(20 + n);
        world.feed(plan.done());
    }
    world.devices[1].lose(true);
    world.settle();
    // Two were in flight and two prepared; the others never reached the device that was lost.
    let failed: Vec<u64> = world.failed.keys().map(|r| r.0).collect();
    assert_eq!((failed, world.finished.len()), (vec![0, 1, 2, 3], 2));
    assert_eq!(world.data(25), [11, 12, 13, 14]);
}

#[test]
fn scratch_larger_than_the_budget_is_evicted_too() {
    let mut world = World::with_gpu(8 << 10, 8);
    let elements = 16 << 10;
    let mut plan = Builder::new(0, 1);
    let input = plan.input(0, elements, Some(numbers(0, elements as usize)), true);
    let scratch = plan.scratch(elements, false);
    let output = plan.output(1, elements);
    plan.map(elements, &[input], &[scratch]);
    plan.map(elements, &[input, scratch], &[output]);
    plan.read_back(1);
    world.feed(plan.done());
    world.settle();
    assert_eq!(world.data(1), (0..elements as u32).map(|i| 2 * i + 2).collect::<Vec<_>>());
}

#[test]
fn a_step_that_cannot_fit_is_refused_by_name_and_harms_nothing_else() {
    let mut world = World::with_gpu(1 << 10, 20);
    world.feed(double(1, 1, 1, 2, false).done());
    let mut plan = Builder::new(2, 1);
    let input = plan.input(3, 300, Some(numbers(0, 300)), true);
    let output = plan.output(4, 300);
    plan.map(300, &[input], &[output]);
    plan.read_back(4);
    world.feed(plan.done());
    let error = &world.failed[&RegionId(2)];
    assert_eq!((error.kind(), error.op(), error.device()), (ErrorKind::OutOfMemory, Some("toy"), Some("toy 1")));
    assert_eq!(error.message(), "it needs 2560 bytes at once, and the budget is 1024 bytes");
    assert!(error.location().is_some());
    assert!(world.arrived[&value(4)].is_err());
    let mut plan = Builder::new(3, 1);
    let input = plan.input(2, 4, None, true);
    let output = plan.output(5, 4);
    plan.map(4, &[input], &[output]);
    plan.read_back(5);
    world.feed(plan.done());
    world.settle();
    assert_eq!(world.data(5), [12, 13, 14, 15]);
}

#[test]
fn eviction_is_refused_where_host_memory_is_full() {
    let devices = vec![device(0, DeviceKind::Host, 1 << 10, 31), device(1, DeviceKind::Gpu, 1 << 10, 20)];
    let mut world = World::new(devices);
    for n in 0..6u32 {
        let mut plan = Builder::new(n as u64, 1);
        let output = plan.output(n, 100);
        plan.map(100, &[], &[output]);
        world.feed(plan.done());
        world.settle();
    }
    let kinds: Vec<ErrorKind> = world.failed.values().map(Error::kind).collect();
    // Two values on the device and two in host memory take 400 to 416 bytes each.
    assert_eq!(kinds, [ErrorKind::OutOfMemory, ErrorKind::OutOfMemory]);
}

#[test]
fn empty_values_are_inputs_outputs_and_readbacks_without_any_work() {
    let mut world = World::with_gpu(1 << 20, 20);
    let mut plan = Builder::new(1, 1);
    plan.input(1, 0, Some(numbers(0, 0)), true);
    plan.output(2, 0);
    plan.read_back(2);
    world.feed(plan.done());
    assert_eq!((world.data(2), world.log.len()), (vec![], 0));
    assert!(world.finished.contains_key(&RegionId(1)));
    let mut plan = Builder::new(2, 1);
    let input = plan.input(2, 0, None, true);
    let output = plan.output(3, 1);
    plan.sum(0, input, output);
    plan.read_back(3);
    world.feed(plan.done());
    world.settle();
    assert_eq!(world.data(3), [0]);
}

#[test]
fn faults_are_reported_by_value() {
    let mut world = World::with_gpu(1 << 20, 20);
    let mut plan = Builder::new(1, 1);
    let input = plan.input(1, 4, Some(numbers(0, 4)), true);
    let output = plan.output(2, 4);
    let fault = Error::new(ErrorKind::Index, "an index is outside");
    let faults = plan.faults(&[(2, fault.clone()), (7, fault)]);
    let uses = [(input, true, true, false), (output, true, false, true)];
    plan.launch(Geometry::Map { elements: 4 }, &uses, Some(faults));
    world.feed(plan.done());
    world.settle();
    let found: Vec<_> = world.finished[&RegionId(1)].iter().map(|(v, e)| (*v, e.kind())).collect();
    assert_eq!(found, [(value(2), ErrorKind::Index)]);
}

#[test]
fn two_outputs_of_one_buffer_have_lives_of_their_own() {
    let mut world = World::with_gpu(1 << 20, 20);
    let mut plan = double(1, 1, 1, 2, true);
    plan.alias(3, 1);
    plan.read_back(3);
    world.feed(ResidencyEvent::ValueRetired { value: value(2), after: Some(RegionId(1)) });
    world.feed(plan.done());
    world.settle();
    assert_eq!(world.data(3), [11, 12, 13, 14]);
}

#[test]
fn a_failed_batch_fails_what_was_computed_from_it_and_nothing_else() {
    let mut world = World::with_gpu(1 << 20, 20);
    world.feed(double(1, 1, 1, 2, false).done());
    let mut plan = Builder::new(2, 1);
    let input = plan.input(2, 4, None, false);
    let output = plan.output(3, 4);
    plan.map(4, &[input], &[output]);
    plan.read_back(3);
    world.feed(plan.done());
    let mut plan = double(3, 1, 10, 11, true);
    plan.read_back(11);
    world.feed(plan.done());
    world.devices[1].fail_next();
    world.settle();
    let failed: Vec<u64> = world.failed.keys().map(|r| r.0).collect();
    assert_eq!(failed, [1, 2]);
    assert!(world.arrived[&value(3)].is_err());
    assert_eq!(world.data(11), [11, 12, 13, 14], "its buffers were allocated again");
    // A plan that comes later hears the same error; the source, whose upload failed, is uploaded again.
    let mut plan = Builder::new(4, 1);
    plan.input(2, 4, None, true);
    plan.output(12, 0);
    world.feed(plan.done());
    assert_eq!(world.failed[&RegionId(4)].message(), "injected");
    let mut plan = Builder::new(5, 1);
    let input = plan.input(1, 4, None, true);
    let output = plan.output(13, 4);
    plan.map(4, &[input], &[output]);
    plan.read_back(13);
    world.feed(plan.done());
    world.settle();
    assert_eq!(world.data(13), [11, 12, 13, 14]);
}

#[test]
fn a_lost_device_takes_what_was_only_there_and_serves_again_if_replaced() {
    for replaced in [true, false] {
        let mut world = World::with_gpu(1 << 20, 20);
        world.feed(double(1, 1, 1, 2, false).done());
        world.settle();
        world.devices[1].clear();
        let error = Error::new(ErrorKind::DeviceLost, "gone");
        world.feed(ResidencyEvent::DeviceLost { device: DeviceId(1), error, replaced });
        assert_eq!(world.lost, [value(2)]);
        let mut plan = Builder::new(2, 1);
        let input = plan.input(1, 4, None, true);
        let output = plan.output(3, 4);
        plan.map(4, &[input], &[output]);
        plan.read_back(3);
        world.feed(plan.done());
        world.settle();
        if replaced {
            assert_eq!(world.data(3), [11, 12, 13, 14]);
        } else {
            assert_eq!(world.failed[&RegionId(2)].kind(), ErrorKind::DeviceLost);
        }
        assert_eq!(world.state.regions_open(), 0);
    }
}

#[test]
fn a_plan_whose_input_was_abandoned_fails_instead_of_waiting_for_ever() {
    let error = Error::new(ErrorKind::Internal, "the shader does not compile");
    for told in [true, false] {
        let mut world = World::with_gpu(1 << 20, 20);
        world.feed(double(1, 1, 1, 2, false).done());
        let mut plan = Builder::new(3, 1);
        plan.input(9, 4, None, true);
        world.feed(plan.done());
        if told {
            world.feed(ResidencyEvent::ValuesFailed { values: vec![value(9)], error: error.clone() });
        }
        world.feed(ResidencyEvent::RegionAbandoned { region: RegionId(2), error: error.clone() });
        assert_eq!(world.failed[&RegionId(3)].message(), error.message());
        world.settle();
        assert_eq!(world.state.regions_open(), 0);
    }
}

#[test]
fn small_values_share_slabs() {
    let mut gpu = device(1, DeviceKind::Gpu, 1 << 20, 20);
    gpu.slab_slot_bytes_max = 1 << 12;
    let mut world = World::new(vec![device(0, DeviceKind::Host, 1 << 30, 31), gpu]);
    for n in 0..8 {
        let mut plan = double(n as u64, 1, 10 + n, 20 + n, false);
        plan.read_back(20 + n);
        world.feed(plan.done());
        world.settle();
        assert_eq!(world.data(20 + n), [11, 12, 13, 14]);
    }
    let totals = world.state.totals();
    assert_eq!((totals.pool_misses, totals.pool_hits, totals.bytes_resident), (1, 15, 16 << 10));
    assert!(world.log.iter().any(|l| l.contains("b3+256")), "{:?}", world.log);
}

#[test]
fn the_story_of_a_value_says_where_it_was() {
    let mut world = World::with_gpu(1 << 20, 20);
    let mut plan = double(1, 1, 1, 2, false);
    plan.read_back(2);
    world.feed(plan.done());
    world.settle();
    assert_eq!(
        world.state.story(value(2)),
        [
            "device 1 segment 0: filled by batch 2",
            "device 1 segment 0: readback, transfer 5",
            "device 1 segment 0: arrived, transfer 5",
            "device 1 segment 0: whole in host memory, bytes 16",
            "made, in host memory, 1 of 1 segments on device 1",
        ]
    );
}

//! Failures of regions and batches, and of the regions that read their values.

use super::double;
use crate::contract::device::DeviceKind;
use crate::contract::messages::residency::ResidencyEvent;
use crate::contract::region::RegionInput;
use crate::error::{Error, ErrorKind};
use crate::graph::{DType, Meta, Shape};
use crate::ids::{DeviceId, RegionId};
use crate::kernels::ir::Geometry;
use crate::residency::simulate::{Builder, World, device, numbers, value};

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
fn a_plan_whose_input_could_not_be_planned_fails_instead_of_waiting_for_ever() {
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
        world.feed(ResidencyEvent::RegionPlanFailed { region: RegionId(2), inputs: Vec::new(), error: error.clone() });
        assert_eq!(world.failed[&RegionId(3)].message(), error.message());
        world.settle();
        assert_eq!(world.state.regions_open(), 0);
    }
}

#[test]
fn what_a_region_without_a_plan_was_to_bring_is_there_for_others() {
    let error = Error::new(ErrorKind::Internal, "it cannot be planned");
    for early in [true, false] {
        let mut world = World::with_gpu(1 << 20, 20);
        let mut plan = Builder::new(3, 1);
        // Region 2 was to bring it: this one has no host data.
        let input = plan.input(9, 4, None, true);
        let output = plan.output(6, 4);
        plan.map(4, &[input], &[output]);
        plan.read_back(6);
        let meta = Meta { dtype: DType::U32, shape: Shape::new(&[4]).unwrap() };
        let input =
            |value, dies| RegionInput { value, meta: meta.clone(), source: Some(numbers(0, 4)), dies, is_source: true };
        let inputs = vec![input(value(9), false), input(value(8), true)];
        let plan_failed = ResidencyEvent::RegionPlanFailed { region: RegionId(2), inputs, error: error.clone() };
        world.feed(ResidencyEvent::RegionCancelled(RegionId(1)));
        if early {
            world.feed(plan_failed);
            world.feed(plan.done());
        } else {
            world.feed(plan.done());
            world.feed(plan_failed);
        }
        world.settle();
        assert_eq!(world.data(6), [1, 2, 3, 4]);
        assert_eq!(world.state.values_held(), 1, "what ended with the region is not kept");
    }
}

#[test]
fn a_cancelled_region_is_not_placed_and_what_it_brought_is_there_for_others() {
    for early in [true, false] {
        let mut world = World::with_gpu(1 << 20, 20);
        // Region 2 waits for region 1, which has not come.
        let mut cancelled = Builder::new(2, 1);
        let missing = cancelled.input(1, 4, None, false);
        let brought = cancelled.input(9, 4, Some(numbers(0, 4)), false);
        let output = cancelled.output(3, 4);
        cancelled.map(4, &[missing, brought], &[output]);
        cancelled.read_back(3);
        if early {
            world.feed(ResidencyEvent::RegionCancelled(RegionId(2)));
            world.feed(cancelled.done());
        } else {
            world.feed(cancelled.done());
            world.feed(ResidencyEvent::RegionCancelled(RegionId(2)));
        }
        assert_eq!(world.failed[&RegionId(2)].kind(), ErrorKind::Cancelled);
        world.feed(ResidencyEvent::RegionCancelled(RegionId(2)));
        let mut plan = Builder::new(3, 1);
        let input = plan.input(9, 4, None, true);
        let output = plan.output(6, 4);
        plan.map(4, &[input], &[output]);
        plan.read_back(6);
        world.feed(plan.done());
        // Too late: it is placed.
        world.feed(ResidencyEvent::RegionCancelled(RegionId(3)));
        world.settle();
        assert!(world.finished.contains_key(&RegionId(3)) && world.arrived[&value(6)].is_ok());
        assert_eq!(world.state.regions_open(), 0);
    }
}

//! Sessions take turns on a device: long plans are placed slice by slice, whatever else there is to do.

use crate::contract::device::DeviceKind;
use crate::contract::messages::residency::ResidencyEvent;
use crate::error::ErrorKind;
use crate::ids::RegionId;
use crate::residency::simulate::{Builder, World, device, numbers, slow, value};

/// A host and a GPU, for which 100 elements of a launch are a slice; a batch at a time on each.
fn world(host_bytes: u64, gpu_bytes: u64) -> World {
    let mut infos = vec![slow(device(0, DeviceKind::Host, host_bytes, 31))];
    infos.push(slow(device(1, DeviceKind::Gpu, gpu_bytes, 20)));
    infos.iter_mut().for_each(|info| info.batches_in_flight_max = 1);
    let mut world = World::new(infos);
    // It does not know that the host reads where they lie what plans bring.
    world.devices[0].info.memory_bytes = 1 << 20;
    world
}

/// `steps` launches over `elements`, one after the other: `result` = `source` + `steps`.
fn chain(region: u64, on: u8, steps: u32, elements: u64, source: u32, result: u32) -> Builder {
    let mut plan = Builder::new(region, on);
    let mut from = plan.input(source, elements, Some(numbers(0, elements as usize)), true);
    for step in 1..=steps {
        let to = if step == steps { plan.output(result, elements) } else { plan.scratch(elements, false) };
        plan.map(elements, &[from], &[to]);
        from = to;
    }
    plan.read_back(result);
    plan
}

fn plus(steps: u32, elements: u32) -> Vec<u32> {
    (steps..steps + elements).collect()
}

/// The device runs its next batch, and residency hears of it.
fn work(world: &mut World, d: usize) {
    world.devices[d].step();
    while let Some(report) = world.devices[d].reports.pop_front() {
        world.feed(report);
    }
}

#[test]
fn the_steps_of_two_sessions_alternate() {
    for on in [0, 1] {
        let mut world = world(1 << 20, 1 << 20);
        world.feed(chain(1, on, 6, 100, 1, 11).of_session(1, 1).done());
        world.feed(chain(2, on, 6, 100, 2, 12).of_session(2, 1).done());
        world.settle();
        let turns: Vec<u64> = world.dispatched.iter().map(|r| r.0).collect();
        assert_eq!(turns, [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2], "device {on}");
        assert_eq!((world.data(11), world.data(12)), (plus(6, 100), plus(6, 100)));
        assert_eq!(world.state.regions_open(), 0);
    }
}

#[test]
fn a_heavier_session_has_more_turns() {
    let mut world = world(1 << 20, 1 << 20);
    world.feed(chain(1, 1, 12, 100, 1, 11).of_session(1, 1).done());
    world.feed(chain(2, 1, 12, 100, 2, 12).of_session(2, 3).done());
    world.settle();
    let turns: Vec<u64> = world.dispatched.iter().map(|r| r.0).collect();
    let first: Vec<u64> = turns[..16].to_vec();
    assert_eq!(first.iter().filter(|&&r| r == 2).count(), 12, "{turns:?}");
    assert_eq!((world.data(11), world.data(12)), (plus(12, 100), plus(12, 100)));
}

#[test]
fn a_small_plan_goes_before_the_rest_of_a_long_one() {
    for on in [0, 1] {
        let mut world = world(1 << 20, 1 << 20);
        world.feed(chain(1, on, 50, 100, 1, 11).of_session(1, 1).done());
        work(&mut world, on as usize);
        work(&mut world, on as usize);
        world.feed(chain(2, on, 1, 4, 2, 12).of_session(2, 1).done());
        work(&mut world, on as usize);
        work(&mut world, on as usize);
        assert_eq!(world.data(12), plus(1, 4), "device {on}: {:?}", world.dispatched);
        assert!(!world.finished.contains_key(&RegionId(1)));
        world.settle();
        assert_eq!(world.data(11), plus(50, 100));
        // The long plan is cut where its steps end, and only the order differs from what it is alone.
        assert_eq!(world.dispatched.iter().filter(|r| r.0 == 1).count(), 50);
    }
}

#[test]
fn a_long_plan_is_cut_between_the_tiles_of_a_step() {
    let infos = vec![device(0, DeviceKind::Host, 1 << 20, 31), slow(device(1, DeviceKind::Gpu, 1 << 20, 6))];
    let mut world = World::new(infos);
    let mut plan = Builder::new(1, 1).of_session(1, 1);
    let input = plan.input(1, 640, Some(numbers(0, 640)), true);
    let output = plan.output(11, 640);
    plan.map(640, &[input], &[output]);
    plan.read_back(11);
    world.feed(plan.done());
    world.feed(chain(2, 1, 1, 4, 2, 12).of_session(2, 1).done());
    world.settle();
    let turns: Vec<u64> = world.dispatched.iter().map(|r| r.0).collect();
    assert_eq!(turns.iter().position(|&r| r == 2), Some(2), "{turns:?}");
    assert_eq!(turns.len(), 11, "{turns:?}");
    assert_eq!((world.data(11), world.data(12)), (plus(1, 640), plus(1, 4)));
}

#[test]
fn what_nobody_needs_any_more_stops_between_its_steps() {
    for on in [0, 1] {
        let mut world = world(1 << 20, 1 << 20);
        world.feed(chain(1, on, 50, 100, 1, 11).of_session(1, 1).done());
        work(&mut world, on as usize);
        world.feed(ResidencyEvent::RegionCancelled(RegionId(1)));
        assert_eq!(world.failed[&RegionId(1)].kind(), ErrorKind::Cancelled);
        world.settle();
        assert!(world.dispatched.len() <= 3, "{:?}", world.dispatched);
        // Its memory is free for others.
        world.feed(chain(2, on, 3, 100, 2, 12).of_session(2, 1).done());
        world.settle();
        assert_eq!(world.data(12), plus(3, 100));
        assert_eq!(world.state.regions_open(), 0);
        for id in [1, 2, 11, 12] {
            world.feed(ResidencyEvent::ValueRetired { value: value(id), after: None });
        }
        assert_eq!(world.state.values_held(), 0);
    }
}

#[test]
fn what_fits_alone_gets_through_beside_others() {
    // Each takes two arrays of 400 bytes, and there is room for three.
    for (on, host, gpu) in [(0, 1300, 1 << 20), (1, 1 << 20, 1300)] {
        let mut world = world(host, gpu);
        for n in 1..=4 {
            world.feed(chain(n as u64, on, 8, 100, n, 10 + n).of_session(n as u64, 1).done());
        }
        world.feed(chain(5, on, 1, 4, 5, 15).of_session(5, 1).done());
        world.settle();
        assert!(world.failed.is_empty(), "device {on}: {:?}", world.failed);
        for n in 1..=4 {
            assert_eq!(world.data(10 + n), plus(8, 100));
        }
        assert_eq!(world.data(15), plus(1, 4));
        assert_eq!(world.state.regions_open(), 0);
    }
}

#[test]
fn plans_that_wait_for_each_others_memory_end() {
    let mut world = world(4000, 1 << 20);
    // Values that only the GPU holds.
    for n in 1..=4 {
        let mut plan = Builder::new(n as u64, 1).of_session(9, 1);
        let input = plan.input(n, 150, Some(numbers(0, 150)), true);
        let output = plan.output(20 + n, 150);
        plan.map(150, &[input], &[output]);
        world.feed(plan.done());
    }
    world.settle();
    // Two that hold two arrays each, then three.
    for n in [5, 6] {
        let mut plan = Builder::new(n, 0).of_session(n, 1);
        let input = plan.input(n as u32, 100, Some(numbers(0, 100)), true);
        let kept = plan.scratch(100, false);
        let mut from = plan.scratch(100, false);
        plan.map(100, &[input], &[kept]);
        plan.map(100, &[kept], &[from]);
        for _ in 0..3 {
            let to = plan.scratch(100, false);
            plan.map(100, &[kept, from], &[to]);
            from = to;
        }
        let output = plan.output(30 + n as u32, 100);
        plan.map(100, &[kept, from], &[output]);
        plan.read_back(30 + n as u32);
        world.feed(plan.done());
    }
    work(&mut world, 0);
    work(&mut world, 0);
    // Meanwhile host memory goes to what the GPU brings.
    for n in 1..=4 {
        let mut plan = Builder::new(6 + n as u64, 1).of_session(9, 1);
        plan.input(20 + n, 150, None, false);
        plan.read_back(20 + n);
        world.feed(plan.done());
        work(&mut world, 1);
    }
    world.settle();
    assert_eq!(world.state.regions_open(), 0);
    assert!(world.failed.values().all(|e| e.kind() == ErrorKind::OutOfMemory), "{:?}", world.failed);
    let through = |n: u64| world.finished.contains_key(&RegionId(n));
    assert!(through(5), "the elder gets the memory of the younger: {:?}", world.failed);
}

/// A plan that a device with two batches in flight takes as one long batch: `result` = `source` + 1, and a scalar that
/// nobody keeps.
fn long(region: u64, source: u32, result: u32, total: u32) -> Builder {
    let mut plan = Builder::new(region, 0).of_session(region, 1);
    let input = plan.input(source, 300, Some(numbers(0, 300)), true);
    let output = plan.output(result, 300);
    plan.map(300, &[input], &[output]);
    let sum = plan.output(total, 1);
    plan.sum(300, input, sum);
    plan.read_back(total);
    plan
}

#[test]
fn what_waits_for_a_long_plan_leaves_a_place_to_others() {
    let mut info = slow(device(0, DeviceKind::Host, 1 << 20, 31));
    info.batches_in_flight_max = 3;
    let mut world = World::new(vec![info]);
    let mut first = Builder::new(1, 0).of_session(1, 1);
    let input = first.input(1, 300, Some(numbers(0, 300)), true);
    let output = first.output(11, 300);
    first.map(300, &[input], &[output]);
    world.feed(first.done());
    // These read what it makes, and the device has not even begun.
    for n in 2..6 {
        let mut plan = Builder::new(n, 0).of_session(1, 1);
        let input = plan.input(11, 300, None, false);
        let output = plan.output(10 + n as u32, 1);
        plan.sum(1, input, output);
        plan.read_back(10 + n as u32);
        world.feed(plan.done());
    }
    let out = |world: &World| -> Vec<u64> { world.dispatched.iter().map(|r| r.0).collect() };
    assert_eq!(out(&world), [1, 2]);
    world.feed(chain(9, 0, 1, 4, 9, 19).of_session(9, 1).done());
    assert_eq!(out(&world), [1, 2, 9]);
    world.settle();
    assert_eq!(world.data(19), plus(1, 4));
    assert_eq!(world.state.regions_open(), 0);
}

#[test]
fn a_small_plan_takes_no_memory_that_a_long_batch_still_uses() {
    let mut info = slow(device(0, DeviceKind::Host, 1 << 20, 31));
    info.batches_in_flight_max = 8;
    let mut world = World::new(vec![info]);
    world.feed(long(1, 1, 11, 12).done());
    // The scalar is read back and gone, as far as the books tell.
    world.feed(ResidencyEvent::ValueRetired { value: value(12), after: None });
    // What its launches are bound to, as they were sent.
    let named = |lines: &[String]| -> Vec<String> {
        let bound = lines.iter().filter_map(|line| line.split_once(" over ")).map(|(_, bound)| bound);
        bound.flat_map(|bound| bound.split(", ").map(str::to_owned)).collect()
    };
    let sent = world.log.len();
    let before = named(&world.log);
    let mut plan = Builder::new(2, 0).of_session(2, 1);
    let input = plan.input(2, 4, Some(numbers(5, 4)), true);
    let total = plan.output(22, 1);
    plan.sum(4, input, total);
    plan.read_back(22);
    world.feed(plan.done());
    let beside = named(&world.log[sent..]);
    assert!(!beside.is_empty(), "it is out beside the long one");
    assert!(beside.iter().all(|buffer| !before.contains(buffer)), "{before:?} {beside:?}");
    world.settle();
    assert_eq!(world.data(22), [5 + 6 + 7 + 8]);
    assert_eq!(world.state.regions_open(), 0);
}

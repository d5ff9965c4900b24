//! Memory that is short and links that are busy: eviction, refusals, credit.

use super::double;
use crate::contract::device::{DeviceInfo, DeviceKind};
use crate::contract::messages::residency::{Eviction, ResidencyEvent};
use crate::error::{Error, ErrorKind};
use crate::graph::DType;
use crate::ids::RegionId;
use crate::kernels::ir::Geometry;
use crate::residency::simulate::{Builder, ToyDevice, World, device, numbers, value};

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
fn batches_that_move_many_bytes_fly_one_at_a_time() {
    // A quarter of the budget is 256 KiB: one upload of 200 kB fits it, two do not, and one of 400 kB goes alone.
    for elements in [50_000, 100_000] {
        let mut world = World::with_gpu(1 << 20, 20);
        for n in 0..4 {
            let mut plan = Builder::new(n as u64, 1);
            let input = plan.input(10 + n, elements, Some(numbers(n, elements as usize)), true);
            let output = plan.output(20 + n, 1);
            plan.sum(elements, input, output);
            world.feed(plan.done());
        }
        assert_eq!(world.devices[1].queue.len(), 1, "{elements}");
        world.settle();
        assert_eq!(world.finished.len(), 4, "{elements}");
        let totals = world.state.totals();
        assert_eq!((totals.bytes_in_flight, totals.batches_in_flight), (0, 0), "{elements}");
        assert_eq!(totals.bytes_in_flight_peak, elements * 4, "{elements}");
    }
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
fn an_input_that_was_there_before_its_step_is_not_evicted_for_the_output() {
    // Input and output take 768 bytes each of 1,024: nothing else is there that could leave.
    let mut gpu = device(1, DeviceKind::Gpu, 1 << 10, 20);
    gpu.memory_bytes = 4 << 10;
    let mut world = World::new(vec![device(0, DeviceKind::Host, 1 << 30, 31), gpu]);
    let mut plan = Builder::new(1, 1);
    let output = plan.output(1, 150);
    plan.map(150, &[], &[output]);
    world.feed(plan.done());
    world.settle();
    let mut plan = Builder::new(2, 1);
    let input = plan.input(1, 150, None, false);
    let output = plan.output(2, 150);
    plan.map(150, &[input], &[output]);
    plan.read_back(2);
    world.feed(plan.done());
    world.settle();
    assert_eq!(world.data(2), vec![2; 150]);
    let totals = world.state.totals();
    assert_eq!((totals.evictions, totals.beyond_budget), (0, 1), "{totals:?}");
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
    assert_eq!(error.message(), "it needs 2560 bytes at once, and the device has 1024 bytes");
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
fn a_step_that_needs_more_than_the_budget_takes_it_from_the_memory_and_gives_it_back() {
    let mut gpu = device(1, DeviceKind::Gpu, 1 << 10, 20);
    gpu.memory_bytes = 4 << 10;
    let mut world = World::new(vec![device(0, DeviceKind::Host, 1 << 30, 31), gpu]);
    let mut plan = Builder::new(1, 1);
    let kept = plan.output(1, 100);
    plan.map(100, &[], &[kept]);
    world.feed(plan.done());
    world.settle();
    let mut plan = Builder::new(2, 1);
    let input = plan.input(3, 300, Some(numbers(0, 300)), true);
    let output = plan.output(4, 300);
    plan.map(300, &[input], &[output]);
    plan.read_back(4);
    world.feed(plan.done());
    world.settle();
    assert_eq!(world.data(4), (1..301).collect::<Vec<_>>());
    // What others keep had to leave first; what the step took alone is more than the budget, and counted.
    let totals = world.state.totals();
    assert_eq!((totals.evictions, totals.beyond_budget), (1, 2), "{totals:?}");
    assert_eq!(world.devices[1].bytes_peak, 2 * 1280);
    // The next allocation finds the device within its budget.
    let mut plan = Builder::new(3, 1);
    let input = plan.input(1, 100, None, true);
    let output = plan.output(5, 100);
    plan.map(100, &[input], &[output]);
    plan.read_back(5);
    world.feed(plan.done());
    world.settle();
    assert_eq!(world.data(5), vec![2; 100]);
    assert!(world.state.totals().bytes_resident <= 1 << 10);
}

#[test]
fn what_is_used_all_over_is_joined_from_short_segments_and_goes_back_to_them() {
    // Segments of 64 bytes in a budget of 1 KiB: 100 elements lie in 7 of them.
    let mut gpu = device(1, DeviceKind::Gpu, 1 << 10, 4);
    (gpu.memory_bytes, gpu.span_shift) = (4 << 10, 20);
    let mut world = World::new(vec![device(0, DeviceKind::Host, 1 << 30, 31), gpu.clone()]);
    let mut plan = Builder::new(1, 1);
    let input = plan.input(1, 100, Some(numbers(0, 100)), true);
    let output = plan.output(2, 100);
    plan.launch(Geometry::Map { elements: 100 }, &[(input, false, true, false), (output, false, false, true)], None);
    plan.join(&gpu);
    world.feed(plan.done());
    world.settle();
    let mut plan = Builder::new(2, 1);
    let input = plan.input(2, 100, None, true);
    let output = plan.output(3, 100);
    // In place, and all over.
    plan.in_place(output, input);
    plan.launch(Geometry::Map { elements: 100 }, &[(output, false, true, true)], None);
    plan.read_back(3);
    plan.join(&gpu);
    world.feed(plan.done());
    world.settle();
    assert_eq!(world.data(3), (2..102).collect::<Vec<_>>());
    let dispatches: Vec<_> = world.log.iter().filter(|l| l.contains("dispatch")).collect();
    assert!(dispatches.len() == 2 && dispatches.iter().all(|l| !l.contains('|')), "{dispatches:?}");
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
    // Each that left is told of, with the numbers of the decision.
    assert_eq!(world.evicted.len() as u64, world.state.totals().evictions);
    let whole = |e: &Eviction| e.budget == 1 << 10 && e.live <= e.budget && e.bytes >= 400 && !e.known;
    assert!(world.evicted.len() == 2 && world.evicted.iter().all(whole), "{:?}", world.evicted);
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
fn a_value_that_device_and_host_do_not_hold_together_is_refused_before_anything_is_made() {
    let devices = || vec![device(0, DeviceKind::Host, 1 << 10, 31), device(1, DeviceKind::Gpu, 1 << 10, 6)];
    // 512 words take the 2048 bytes that device and host hold together; of these the device keeps a segment in use.
    for (elements, fits) in [(400, true), (448, true), (513, false), (600, false)] {
        let mut world = World::new(devices());
        let mut plan = Builder::new(0, 1);
        let output = plan.output(1, elements);
        plan.map(elements, &[], &[output]);
        world.feed(plan.done());
        world.settle();
        assert_eq!((world.failed.is_empty(), !world.log.is_empty()), (fits, fits), "{elements}: {:?}", world.log);
        for error in world.failed.values() {
            assert_eq!(error.kind(), ErrorKind::OutOfMemory);
            let result = format!("its result has {} bytes", elements * 4);
            assert!(error.message().contains(&result) && error.op().is_some(), "{error}");
        }
    }
}

/// A value of so many words, made on the host.
fn on_host(region: u64, result: u32, words: u64) -> Builder {
    let mut plan = Builder::new(region, 0);
    let output = plan.output(result, words);
    plan.map(words, &[], &[output]);
    plan
}

#[test]
fn a_device_that_is_opened_in_the_hosts_memory_takes_half_of_what_is_free_of_it_until_it_is_lost() {
    // Of 1 MiB the host holds a half, or nothing; the device would take all, and the host keeps a quarter more, or a
    // half.
    for (held_words, left_words) in [(1 << 17, 1 << 16), (0, 1 << 17)] {
        let mut world = World::new(vec![device(0, DeviceKind::Host, 1 << 20, 31)]);
        if held_words > 0 {
            world.feed(on_host(0, 0, held_words).done());
            world.settle();
        }
        let mut gpu = DeviceInfo { host_share_bytes: 1 << 20, ..device(1, DeviceKind::Gpu, 1 << 20, 20) };
        device(0, DeviceKind::Host, 1 << 20, 31).leave_to(&mut gpu, held_words * 4);
        assert_eq!((gpu.budget_bytes, gpu.host_share_bytes), (left_words * 4, left_words * 4));
        world.devices.push(ToyDevice::new(gpu.clone()));
        world.feed(ResidencyEvent::DeviceOpened(gpu));
        world.feed(on_host(1, 1, left_words + 4).done());
        world.feed(on_host(2, 2, left_words).done());
        world.settle();
        assert_eq!(world.failed.keys().map(|r| r.0).collect::<Vec<_>>(), [1], "beside {held_words} words");
        assert_eq!(world.failed[&RegionId(1)].kind(), ErrorKind::OutOfMemory);
        world.devices[1].lose(false);
        world.settle();
        world.feed(on_host(3, 3, left_words).done());
        world.settle();
        assert!(world.finished.contains_key(&RegionId(3)), "the host has all of its budget again");
    }
}

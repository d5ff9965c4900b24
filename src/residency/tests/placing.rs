//! How plans become batches: uploads, dispatches, moves between devices, memory taken over, readbacks.

use super::double;
use crate::contract::device::DeviceKind;
use crate::contract::messages::residency::ResidencyEvent;
use crate::graph::DType;
use crate::host_buffer::HostBuffer;
use crate::ids::RegionId;
use crate::kernels::ir::Geometry;
use crate::residency::simulate::{Builder, World, device, numbers, value};

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

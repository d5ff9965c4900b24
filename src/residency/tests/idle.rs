//! Memory that nobody uses goes back, in steps.

use super::double;
use crate::contract::messages::residency::ResidencyEvent;
use crate::ids::RegionId;
use crate::residency::simulate::{Builder, World, numbers, value};

/// Values of 20 buffers of 128 KiB each, and one that lives on; all of the buffers are free then.
fn burst() -> World {
    let mut world = World::with_gpu(1 << 30, 24);
    let elements = 1 << 15;
    for region in 1..=20u32 {
        let mut plan = Builder::new(u64::from(region), 1);
        let input = plan.input(100 + region, elements, Some(numbers(1, elements as usize)), false);
        let output = plan.output(region, elements);
        plan.map(elements, &[input], &[output]);
        world.feed(plan.done());
    }
    world.settle();
    for region in 1..=20u32 {
        world.feed(ResidencyEvent::ValueRetired { value: value(region), after: None });
        world.feed(ResidencyEvent::ValueRetired { value: value(100 + region), after: None });
    }
    world.feed(double(50, 1, 300, 301, true).done());
    world.settle();
    assert!(world.finished.contains_key(&RegionId(50)));
    world
}

#[test]
fn what_was_not_used_for_a_while_goes_by_halves_and_what_is_in_use_stays() {
    let mut world = burst();
    let mut pooled = vec![world.state.totals().bytes_pooled];
    for _ in 0..6 {
        world.feed(ResidencyEvent::IdlePassed { all: false });
        pooled.push(world.state.totals().bytes_pooled);
    }
    assert_eq!(pooled[0], pooled[1], "at the first word all of it was in use a moment ago");
    let steps: Vec<u64> = pooled.windows(2).map(|pair| pair[0] - pair[1]).filter(|step| *step > 0).collect();
    assert!(steps.len() > 1, "{pooled:?}");
    let totals = world.state.totals();
    assert_eq!(totals.bytes_returned, steps.iter().sum::<u64>());
    assert!(totals.bytes_returned >= 4 << 20, "{totals:?}");
    // The value that lives can still be used.
    let mut plan = double(60, 1, 301, 302, false);
    plan.read_back(302);
    world.feed(plan.done());
    world.settle();
    assert_eq!(world.data(302), [12, 13, 14, 15]);
}

#[test]
fn all_of_it_goes_at_once_where_nothing_happens() {
    let mut world = burst();
    world.feed(ResidencyEvent::ValueRetired { value: value(301), after: None });
    world.feed(ResidencyEvent::IdlePassed { all: true });
    let totals = world.state.totals();
    assert_eq!((totals.bytes_pooled, totals.bytes_resident), (0, 0), "slabs, too");
}

#[test]
fn a_buffer_that_is_used_between_two_words_stays() {
    let mut world = burst();
    world.feed(ResidencyEvent::IdlePassed { all: true });
    let hits = world.state.totals().pool_hits;
    let elements = 1 << 15;
    for round in 0..10u32 {
        let mut plan = Builder::new(u64::from(70 + round), 1);
        let input = plan.input(400 + round, elements, Some(numbers(1, elements as usize)), true);
        let output = plan.output(500 + round, elements);
        plan.map(elements, &[input], &[output]);
        world.feed(plan.done());
        world.settle();
        world.feed(ResidencyEvent::ValueRetired { value: value(500 + round), after: None });
        world.feed(ResidencyEvent::IdlePassed { all: false });
    }
    let totals = world.state.totals();
    assert_eq!(totals.pool_hits - hits, 18, "all but the first two: {totals:?}");
}

#[test]
fn a_device_that_is_never_without_a_prepared_batch_drops_what_programs_lent() {
    let mut world = World::with_gpu(1 << 30, 24);
    for round in 1..=200u32 {
        world.feed(double(u64::from(round), 0, 1000 + round, 2000 + round, true).done());
        let (value, after) = (value(2000 + round), Some(RegionId(round.into())));
        world.feed(ResidencyEvent::ValueRetired { value, after });
        if round <= 12 {
            continue;
        }
        let tables = world.state.tables();
        let prepared = tables.iter().find(|(name, _)| *name == "residency prepared");
        assert!(prepared.is_some_and(|(_, count)| *count > 0), "round {round}");
        // One batch ends.
        if world.devices[0].reports.is_empty() {
            world.devices[0].step();
        }
        let report = world.devices[0].reports.pop_front().unwrap();
        world.feed(report);
    }
    let buffers = world.devices[0].buffers.len();
    assert!(buffers < 40, "{buffers} buffers of 200 lent arrays are there");
    world.settle();
}

//! Faults, failures, lost devices.

use super::*;

#[test]
fn a_fault_poisons_exactly_what_depends_on_it() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    let faulty = b.scale(x, 8);
    let child = b.scale(faulty, 8);
    let sibling = b.scale(x, 8);
    let bad = b.gather(child);
    let good = b.gather(sibling);
    let first = b.cut();
    let grandchild = b.sum(child);
    let later = b.gather(grandchild);
    let fine = b.sum(sibling);
    let also_good = b.gather(fine);
    let second = b.cut();
    b.finish_with(&first[0], vec![(faulty, Error::new(ErrorKind::Index, "index 9 is out of range"))]);
    let error = b.error(bad);
    assert_eq!((error.kind(), error.op()), (ErrorKind::Index, Some("mul")));
    assert!(b.delivered(good));
    b.finish(&second[0]);
    assert_eq!(b.error(later).kind(), ErrorKind::Index);
    assert!(b.delivered(also_good));
    let again = b.gather(child);
    b.cut();
    assert_eq!(b.error(again).kind(), ErrorKind::Index, "known at once");
}

#[test]
fn a_fault_reaches_a_region_that_finished_before_its_producer() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    b.demand(x, Want::Device);
    let first = b.cut();
    let y = b.scale(x, 8);
    let g = b.gather(y);
    let second = b.cut();
    b.finish(&second[0]);
    assert!(b.result(g).is_none(), "what it read is not known to be good");
    b.finish_with(&first[0], vec![(x, Error::new(ErrorKind::Index, "out of range"))]);
    assert_eq!(b.error(g).kind(), ErrorKind::Index);
}

#[test]
fn a_failed_region_fails_its_outputs_and_their_dependents_and_nobody_else() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    b.demand(x, Want::Device);
    let first = b.cut();
    let other = b.source(8);
    let from_x = b.scale(x, 8);
    let from_other = b.scale(other, 8);
    let bad = b.gather(from_x);
    let good = b.gather(from_other);
    let second = b.cut();
    b.fail(first[0].id, ErrorKind::OutOfMemory);
    // A region that was downstream already fails as a whole. Its nodes that do not depend on x are sent again.
    b.fail(second[0].id, ErrorKind::Internal);
    let error = b.error(bad);
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert_eq!((error.op(), error.device()), (Some("rand"), Some("test host")));
    assert!(error.location().is_some());
    let third = b.sent();
    assert_eq!(values(&third[0]), [from_other]);
    assert!(third[0].id > second[0].id);
    b.finish(&third[0]);
    assert!(b.delivered(good));
    assert_eq!(b.credits(), 4);
}

#[test]
fn a_region_without_memory_is_taken_apart_and_only_what_needs_it_fails() {
    for kind in [ErrorKind::OutOfMemory, ErrorKind::Internal] {
        let mut b = Bench::new(DeviceChoice::Host);
        let shared = b.source(8);
        let (one, two) = (b.scale(shared, 8), b.scale(shared, 8));
        let (bad, good) = (b.gather(one), b.gather(two));
        // It ends with the region.
        b.release(shared);
        let first = b.cut();
        assert_eq!(first.len(), 1);
        assert!(first[0].inputs[0].dies);
        b.fail(first[0].id, kind);
        let parts = b.sent();
        assert_eq!(parts.iter().map(values).collect::<Vec<_>>(), [vec![one], vec![two]]);
        assert!(parts.iter().all(|p| !p.inputs[0].dies));
        assert!(parts[0].inputs[0].source.is_some(), "residency has forgotten it");
        b.fail(parts[0].id, kind);
        assert_eq!(b.error(bad).kind(), kind);
        assert!(b.sent().is_empty(), "a part is not repeated");
        b.finish(&parts[1]);
        assert!(b.delivered(good));
        assert_eq!(b.credits(), 3);
    }
}

/// An input of a region may be dropped while the region is downstream: by its session, or with a later region.
#[test]
fn parts_bring_what_residency_was_told_to_forget() {
    for closed in [false, true] {
        let mut b = Bench::new(DeviceChoice::Host);
        let shared = b.source(8);
        let (one, two) = (b.scale(shared, 8), b.scale(shared, 8));
        b.demand(one, Want::Device);
        b.demand(two, Want::Device);
        let first = b.cut();
        assert!(!first[0].inputs[0].dies);
        if closed {
            b.event(SchedulerEvent::SessionClosed(SessionId(0)));
        } else {
            let behind = b.sum(shared);
            b.demand(behind, Want::Device);
            b.release(shared);
            let second = b.cut();
            assert!(second[0].inputs[0].dies);
            b.fail(first[0].id, ErrorKind::OutOfMemory);
            b.finish(&second[0]);
        }
        if closed {
            b.fail(first[0].id, ErrorKind::OutOfMemory);
        }
        let parts = b.sent();
        assert_eq!(parts.len(), 2, "what is under way is delivered");
        for part in &parts {
            assert!(part.inputs.iter().all(|input| input.source.is_some()), "whoever comes first, and again");
            b.finish(part);
        }
    }
}

/// An input of a region behind a failed one may be dropped meanwhile: then it does not exist for the second attempt.
#[test]
fn a_repeated_region_does_not_wait_for_what_was_let_go_of_while_it_ran() {
    for released in [false, true] {
        let mut b = Bench::new(DeviceChoice::Host);
        let x = b.rand(8);
        b.demand(x, Want::Device);
        let made = b.cut();
        b.finish(&made[0]);
        let bad = b.rand(8);
        b.demand(bad, Want::Device);
        let first = b.cut();
        let (both, alone) = (b.add(bad, x, 8), b.scale(x, 8));
        let gathers = [b.gather(both), b.gather(alone)];
        let second = b.cut();
        assert!(!second[0].inputs.iter().any(|input| input.dies));
        if released {
            b.release(x);
            b.cut();
        }
        b.fail(first[0].id, ErrorKind::OutOfMemory);
        b.fail(second[0].id, ErrorKind::Internal);
        assert_eq!(b.error(gathers[0]).kind(), ErrorKind::OutOfMemory);
        let again = b.sent();
        if released {
            assert!(again.is_empty());
            assert!(b.error(gathers[1]).kind() == ErrorKind::Internal);
        } else {
            b.finish(&again[0]);
            assert!(b.delivered(gathers[1]));
        }
    }
}

/// If an input that only a device had has ended meanwhile, the parts could not read it: the region fails as a whole.
#[test]
fn a_region_whose_operand_ended_on_its_device_is_not_taken_apart() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    b.demand(x, Want::Device);
    let made = b.cut();
    b.finish(&made[0]);
    let (one, two) = (b.scale(x, 8), b.scale(x, 8));
    let gathers = [b.gather(one), b.gather(two)];
    b.release(x);
    let first = b.cut();
    b.fail(first[0].id, ErrorKind::OutOfMemory);
    assert!(b.sent().is_empty());
    for gather in gathers {
        assert_eq!(b.error(gather).kind(), ErrorKind::OutOfMemory);
    }
}

/// An output that is not held any more when its region is sent again ends with that attempt, too.
#[test]
fn what_was_let_go_of_while_its_region_ran_is_retired_after_the_part_that_makes_it() {
    let mut b = Bench::new(DeviceChoice::Host);
    let shared = b.source(8);
    let (one, two) = (b.scale(shared, 8), b.scale(shared, 8));
    let (bad, good) = (b.gather(one), b.gather(two));
    let first = b.cut();
    b.release(two);
    b.cut();
    b.fail(first[0].id, ErrorKind::OutOfMemory);
    let parts = b.sent();
    b.fail(parts[0].id, ErrorKind::OutOfMemory);
    b.out.retain(|i| !matches!(i, SchedulerInstruction::Retire { .. }));
    b.finish(&parts[1]);
    assert!(b.delivered(good) && b.error(bad).kind() == ErrorKind::OutOfMemory);
    let is_retired =
        |i: &SchedulerInstruction| matches!(i, SchedulerInstruction::Retire { value, .. } if *value == two);
    assert!(b.out.iter().any(is_retired));
}

#[test]
fn parts_that_nobody_needs_any_more_are_not_made() {
    let mut b = Bench::new(DeviceChoice::Host);
    let shared = b.source(8);
    let (one, two) = (b.scale(shared, 8), b.scale(shared, 8));
    let (unwanted, good) = (b.gather(one), b.gather(two));
    let first = b.cut();
    b.release(one);
    b.withdraw(unwanted);
    b.cut();
    b.fail(first[0].id, ErrorKind::OutOfMemory);
    let parts = b.sent();
    assert_eq!(parts.iter().map(values).collect::<Vec<_>>(), [vec![two]]);
    b.finish(&parts[0]);
    assert!(b.delivered(good));
    assert_eq!(b.credits(), 3);
}

/// A part is repeated once where its device is lost, as any region is.
#[test]
fn a_part_outlives_its_device() {
    let mut b = Bench::new(DeviceChoice::Gpu(None));
    let shared = b.source(8);
    let gathers = [b.scale(shared, 8), b.scale(shared, 8)].map(|x| b.gather(x));
    let first = b.cut();
    b.fail(first[0].id, ErrorKind::OutOfMemory);
    let parts = b.sent();
    b.event(SchedulerEvent::DeviceStalled(parts[0].device));
    b.fail(parts[0].id, ErrorKind::DeviceLost);
    b.finish(&parts[1]);
    assert!(b.sent().is_empty(), "nobody knows yet whether it serves again");
    let lost = Error::new(ErrorKind::DeviceLost, "injected");
    b.event(SchedulerEvent::DeviceLost { device: parts[0].device, error: lost, replaced: true });
    let again = b.sent();
    assert_eq!(again.len(), 1);
    b.finish(&again[0]);
    assert!(gathers.into_iter().all(|gather| b.delivered(gather)));
}

#[test]
fn parts_of_a_region_that_share_a_node_stay_together() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    let (one, two) = (b.scale(x, 8), b.sum(x));
    let gathers = [b.gather(one), b.gather(two)];
    let first = b.cut();
    b.fail(first[0].id, ErrorKind::OutOfMemory);
    assert!(b.sent().is_empty());
    for gather in gathers {
        assert_eq!(b.error(gather).kind(), ErrorKind::OutOfMemory);
    }
}

#[test]
fn a_waiting_region_is_cut_down_to_what_does_not_depend_on_a_failure() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    b.demand(x, Want::Device);
    let first = b.cut();
    for _ in 0..5 {
        let filler = b.rand(8);
        b.demand(filler, Want::Device);
        b.cut();
    }
    let y = b.rand(8);
    let from_x = b.scale(x, 8);
    let bad = b.gather(from_x);
    let from_y = b.scale(y, 8);
    let good = b.gather(from_y);
    assert!(b.cut().is_empty(), "no credit is left");
    b.fail(first[0].id, ErrorKind::OutOfMemory);
    assert_eq!(b.error(bad).kind(), ErrorKind::OutOfMemory);
    let sent = b.sent();
    assert_eq!(values(&sent[0]), [y, from_y]);
    assert_eq!(sent[0].readbacks, [from_y]);
    b.finish(&sent[0]);
    assert!(b.delivered(good));
}

#[test]
fn what_depends_on_a_failed_value_fails_at_the_cut_and_the_rest_is_computed() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    b.demand(x, Want::Device);
    let first = b.cut();
    b.fail(first[0].id, ErrorKind::OutOfMemory);
    let y = b.rand(8);
    let both = b.add(x, y, 8);
    let bad = b.gather(both);
    let good = b.gather(y);
    let regions = b.cut();
    assert_eq!(b.error(bad).kind(), ErrorKind::OutOfMemory);
    assert_eq!(values(&regions[0]), [y]);
    b.finish(&regions[0]);
    assert!(b.delivered(good));
}

#[test]
fn work_on_a_lost_device_goes_to_the_host_where_its_inputs_still_exist() {
    let mut b = Bench::new(DeviceChoice::Gpu(None));
    let x = b.source(8);
    let y = b.scale(x, 8);
    let g = b.gather(y);
    let first = b.cut();
    assert_eq!(first[0].device, DeviceId(1));
    let z = b.scale(y, 8);
    let h = b.gather(z);
    let second = b.cut();
    // The device reports its batches before its end.
    b.event(SchedulerEvent::DeviceStalled(DeviceId(1)));
    b.fail(first[0].id, ErrorKind::DeviceLost);
    b.fail(second[0].id, ErrorKind::DeviceLost);
    assert!(b.sent().is_empty(), "nobody knows yet whether it serves again");
    let error = Error::new(ErrorKind::DeviceLost, "gone");
    b.event(SchedulerEvent::ValueLost { value: x, error: error.clone() });
    b.event(SchedulerEvent::DeviceLost { device: DeviceId(1), error, replaced: false });
    let again = b.sent();
    assert_eq!(again.iter().map(|r| r.device).collect::<Vec<_>>(), [DeviceId::HOST, DeviceId::HOST]);
    assert_eq!(values(&again[0]), [y]);
    assert!(again[0].inputs[0].source.is_some(), "the data enters again");
    b.finish(&again[0]);
    b.finish(&again[1]);
    assert!(b.delivered(g) && b.delivered(h));
}

#[test]
fn a_replaced_device_runs_what_failed_with_it_again_once() {
    let mut b = Bench::new(DeviceChoice::Gpu(None));
    let x = b.rand(8);
    let g = b.gather(x);
    let first = b.cut();
    let error = Error::new(ErrorKind::DeviceLost, "gone");
    b.event(SchedulerEvent::DeviceLost { device: DeviceId(1), error, replaced: true });
    b.fail(first[0].id, ErrorKind::DeviceLost);
    let second = b.sent();
    assert_eq!(second[0].device, DeviceId(1));
    b.fail(second[0].id, ErrorKind::DeviceLost);
    assert_eq!(b.error(g).kind(), ErrorKind::DeviceLost);
}

#[test]
fn a_value_that_lived_only_on_a_lost_device_fails_with_its_op_and_place() {
    let mut b = Bench::new(DeviceChoice::Gpu(None));
    let data = b.source(8);
    let x = b.scale(data, 8);
    b.release(data);
    b.demand(x, Want::Device);
    let first = b.cut();
    assert!(first[0].inputs[0].dies);
    b.finish(&first[0]);
    let error = Error::new(ErrorKind::DeviceLost, "the device is gone");
    b.event(SchedulerEvent::ValueLost { value: x, error: error.clone() });
    b.event(SchedulerEvent::DeviceLost { device: DeviceId(1), error, replaced: true });
    let y = b.sum(x);
    let g = b.gather(y);
    assert!(b.cut().is_empty());
    let error = b.error(g);
    assert_eq!((error.kind(), error.op(), error.device()), (ErrorKind::DeviceLost, Some("mul"), Some("test gpu")));
}

/// A value that cannot be made again, what reads it, and the region of that, which was sent.
fn reader_of_a_value_that_the_gpu_alone_has() -> (Bench, ValueId, ValueId, Vec<Region>) {
    let mut b = Bench::new(DeviceChoice::Gpu(None));
    let data = b.source(8);
    let x = b.scale(data, 8);
    b.release(data);
    b.demand(x, Want::Device);
    let first = b.cut();
    b.finish(&first[0]);
    let y = b.scale(x, 8);
    b.demand(y, Want::Device);
    let second = b.cut();
    (b, x, y, second)
}

/// A lost GPU: its values, then its end.
fn lose(b: &mut Bench, values: &[ValueId], replaced: bool) {
    let error = Error::new(ErrorKind::DeviceLost, "the device is gone");
    b.event(SchedulerEvent::DeviceStalled(DeviceId(1)));
    for &value in values {
        b.event(SchedulerEvent::ValueLost { value, error: error.clone() });
    }
    assert!(b.sent().is_empty(), "nobody knows yet whether it serves again");
    b.event(SchedulerEvent::DeviceLost { device: DeviceId(1), error, replaced });
}

#[test]
fn a_lost_value_is_made_again_where_what_it_was_made_from_exists() {
    for replaced in [true, false] {
        let mut b = Bench::new(DeviceChoice::Gpu(None));
        let data = b.source(8);
        let x = b.scale(data, 8);
        let y = b.add(x, data, 8);
        b.release(x);
        b.demand(y, Want::Device);
        let first = b.cut();
        b.finish(&first[0]);
        lose(&mut b, &[data, y], replaced);
        let again = b.sent();
        assert_eq!((again.len(), values(&again[0]), outputs(&again[0])), (1, vec![x, y], vec![y]));
        assert_eq!(again[0].device, if replaced { DeviceId(1) } else { DeviceId::HOST });
        assert!(again[0].inputs[0].source.is_some(), "the data enters again");
        let z = b.sum(y);
        let g = b.gather(z);
        let next = b.cut();
        b.finish(&again[0]);
        b.finish(&next[0]);
        assert!(b.delivered(g));
        assert_eq!(b.state.totals().values_made_again, 1);
    }
}

#[test]
fn lost_values_are_made_again_in_their_order_and_together() {
    let mut b = Bench::new(DeviceChoice::Gpu(None));
    let x = b.rand(8);
    let y = b.scale(x, 8);
    b.demand(x, Want::Device);
    b.demand(y, Want::Device);
    let first = b.cut();
    b.finish(&first[0]);
    let z = b.add(x, y, 8);
    b.demand(z, Want::Device);
    let second = b.cut();
    b.finish(&second[0]);
    // Reported in any order.
    lose(&mut b, &[z, y, x], true);
    let again = b.sent();
    assert_eq!(again.iter().map(outputs).collect::<Vec<_>>(), [vec![x, y], vec![z]]);
    again.iter().for_each(|region| b.finish(region));
    let g = b.gather(z);
    let back = b.cut();
    b.finish(&back[0]);
    assert!(b.delivered(g));
    assert_eq!(b.state.totals().values_made_again, 3);
    // Once: a device that is lost again and again is no place to compute on.
    lose(&mut b, &[x], true);
    let h = b.gather(x);
    assert!(b.cut().is_empty());
    assert_eq!(b.error(h).kind(), ErrorKind::DeviceLost);
}

/// After a device was replaced, no second `DeviceLost` comes for the same loss: work that still fails because of it
/// must not wait for one.
#[test]
fn work_that_fails_by_an_earlier_loss_keeps_nobody_waiting() {
    let (mut b, x, y, second) = reader_of_a_value_that_the_gpu_alone_has();
    // The reader of what is lost was not placed: it had pipelines to wait for.
    lose(&mut b, &[x], true);
    let z = b.scale(y, 8);
    let g = b.gather(z);
    let third = b.cut();
    assert_eq!(third.len(), 1, "the device serves");
    b.fail(second[0].id, ErrorKind::DeviceLost);
    b.fail(third[0].id, ErrorKind::DeviceLost);
    assert_eq!(b.error(g).kind(), ErrorKind::DeviceLost);
    let other = b.rand(8);
    let h = b.gather(other);
    let next = b.cut();
    assert_eq!(next.len(), 1, "the device serves");
    b.finish(&next[0]);
    assert!(b.delivered(h));
}

#[test]
fn a_lost_value_fails_with_an_input_that_cannot_be_made_again() {
    let (mut b, x, y, second) = reader_of_a_value_that_the_gpu_alone_has();
    b.finish(&second[0]);
    lose(&mut b, &[y, x], true);
    assert!(b.sent().is_empty());
    for value in [x, y] {
        let g = b.gather(value);
        assert!(b.cut().is_empty());
        assert_eq!(b.error(g).kind(), ErrorKind::DeviceLost);
    }
}

#[test]
fn a_gather_whose_readback_was_lost_waits_for_the_value_that_is_made_again() {
    let mut b = Bench::new(DeviceChoice::Gpu(None));
    let x = b.rand(8);
    let g = b.gather(x);
    let first = b.cut();
    // The region was done, the elements were on their way.
    b.event(SchedulerEvent::RegionFinished { region: first[0].id, faults: vec![] });
    let error = Error::new(ErrorKind::DeviceLost, "the device is gone");
    b.event(SchedulerEvent::DeviceStalled(DeviceId(1)));
    b.event(SchedulerEvent::ValueLost { value: x, error: error.clone() });
    b.event(SchedulerEvent::ValueArrived { value: x, data: Err(error.clone()) });
    b.event(SchedulerEvent::DeviceLost { device: DeviceId(1), error, replaced: true });
    assert!(b.result(g).is_none());
    let again = b.sent();
    assert_eq!(again[0].readbacks, [x]);
    b.finish(&again[0]);
    assert!(b.delivered(g));
}

/// Reports of a region that finished wait for those of the region that it reads.
#[test]
fn a_value_that_is_lost_before_its_regions_end_is_taken_in_is_made_again() {
    let mut b = Bench::new(DeviceChoice::Gpu(None));
    let x = b.rand(8);
    let e = b.demand(x, Want::Device);
    let first = b.cut();
    let y = b.scale(x, 8);
    let g = b.gather(y);
    let second = b.cut();
    b.event(SchedulerEvent::RegionFinished { region: second[0].id, faults: vec![] });
    // Its elements were on their way.
    b.event(SchedulerEvent::DeviceStalled(DeviceId(1)));
    let error = Error::new(ErrorKind::DeviceLost, "the device is gone");
    b.event(SchedulerEvent::ValueLost { value: y, error: error.clone() });
    b.fail(first[0].id, ErrorKind::DeviceLost);
    b.event(SchedulerEvent::DeviceLost { device: DeviceId(1), error, replaced: true });
    let sent = b.sent();
    assert_eq!(sent.iter().map(outputs).collect::<Vec<_>>(), [[x]]);
    b.run(sent);
    assert!(b.delivered(e) && b.delivered(g));
}

#[test]
fn a_readback_that_fails_fails_its_gather_and_not_the_value() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    b.demand(x, Want::Device);
    let made = b.cut();
    b.finish(&made[0]);
    let g = b.gather(x);
    let back = b.cut();
    b.fail(back[0].id, ErrorKind::OutOfMemory);
    assert_eq!(b.error(g).kind(), ErrorKind::OutOfMemory);
    let again = b.gather(x);
    let back = b.cut();
    b.finish(&back[0]);
    assert!(b.delivered(again));
}

#[test]
fn a_readback_that_is_lost_after_its_region_finished_fails_its_gather() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    let g = b.gather(x);
    let regions = b.cut();
    b.event(SchedulerEvent::RegionFinished { region: regions[0].id, faults: vec![] });
    assert!(b.result(g).is_none());
    b.event(SchedulerEvent::ValueArrived { value: x, data: Err(Error::new(ErrorKind::OutOfMemory, "no room")) });
    assert_eq!(b.error(g).kind(), ErrorKind::OutOfMemory);
}

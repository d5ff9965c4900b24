//! Parked regions: they wait until one of their outputs is asked for again, and then run unchanged.

use super::{Bench, outputs, values};
use crate::config::{Config, DeviceChoice};
use crate::contract::messages::scheduler::{SchedulerEvent, SchedulerInstruction};
use crate::contract::region::{CutReason, Region};
use crate::contract::tape::Want;
use crate::error::ErrorKind;
use crate::ids::{GatherId, RegionId, ValueId};

/// Regions that were to be cancelled since the last call.
fn called_back(b: &mut Bench) -> Vec<RegionId> {
    let all = b.out.extract_if(.., |i| matches!(i, SchedulerInstruction::CancelRegion { .. }));
    all.map(|i| if let SchedulerInstruction::CancelRegion { region } = i { region } else { unreachable!() }).collect()
}

fn said(region: &Region) -> String {
    format!("{:?} {:?} {:?} {:?}", region.nodes, region.inputs, region.readbacks, region.device)
}

/// A bench whose credits are taken, as session 0.
fn busy() -> (Bench, Vec<Region>) {
    let mut b = Bench::new(DeviceChoice::Host);
    let busy = b.fill();
    b.open(0, 1);
    (b, busy)
}

#[test]
fn a_held_value_whose_gather_is_dropped_is_made_when_it_is_asked_for_again() {
    // The region that runs if the gather is not cancelled.
    let expected = {
        let (mut b, busy) = busy();
        let x = b.source(8);
        let y = b.scale(x, 8);
        b.gather(y);
        b.cut();
        b.finish(&busy[0]);
        said(&b.sent()[0])
    };
    for want in [Want::Host, Want::Device] {
        let (mut b, busy) = busy();
        let x = b.source(8);
        let y = b.scale(x, 8);
        let g = b.gather(y);
        b.cut();
        assert_eq!(b.credits(), 1, "the source's");
        b.event(SchedulerEvent::GatherCancelled(g));
        assert_eq!((b.state.parked(), b.credits()), (1, 1));
        busy.iter().for_each(|region| b.finish(region));
        b.credits();
        assert!(b.sent().is_empty() && called_back(&mut b).is_empty(), "nobody waits for it");
        let again = b.demand(y, want);
        let sent = b.cut();
        assert_eq!((sent.len(), b.state.parked()), (1, 0));
        if want == Want::Host {
            assert_eq!(said(&sent[0]), expected);
        } else {
            assert!(sent[0].readbacks.is_empty(), "nobody wants its elements");
        }
        b.finish(&sent[0]);
        assert!(b.delivered(again) && b.result(g).is_none());
        assert_eq!((b.charges(), b.credits()), (1, 1), "it was in the ring again");
    }
}

#[test]
fn what_only_a_parked_region_reads_is_parked_with_it_and_runs_before_it() {
    let (mut b, busy) = busy();
    let x = b.rand(8);
    let e = b.demand(x, Want::Device);
    b.cut();
    let y = b.scale(x, 8);
    let g = b.gather(y);
    b.cut();
    b.event(SchedulerEvent::GatherCancelled(e));
    assert_eq!(b.state.parked(), 0, "y is made of it");
    b.event(SchedulerEvent::GatherCancelled(g));
    assert_eq!(b.state.parked(), 2);
    busy.iter().for_each(|region| b.finish(region));
    assert!(b.sent().is_empty());
    // By a gather of the last value; by a region that reads it; by a gather of the first alone.
    let z = b.scale(y, 8);
    let other = b.gather(z);
    let sent = b.cut();
    assert_eq!(sent.iter().map(outputs).collect::<Vec<_>>(), [[x], [y], [z]]);
    sent.iter().for_each(|region| b.finish(region));
    assert!(b.delivered(other));
}

#[test]
fn a_part_that_is_asked_for_leaves_the_rest_parked() {
    let (mut b, busy) = busy();
    let x = b.rand(8);
    let e = b.demand(x, Want::Device);
    b.cut();
    let y = b.scale(x, 8);
    let g = b.gather(y);
    b.cut();
    b.event(SchedulerEvent::GatherCancelled(g));
    b.event(SchedulerEvent::GatherCancelled(e));
    assert_eq!(b.state.parked(), 2);
    busy.iter().for_each(|region| b.finish(region));
    let again = b.gather(x);
    let sent = b.cut();
    assert_eq!(sent.iter().map(outputs).collect::<Vec<_>>(), [[x]]);
    b.finish(&sent[0]);
    assert!(b.delivered(again));
    assert_eq!(b.state.parked(), 1);
    b.release(y);
    b.release(x);
    assert!(b.cut().is_empty());
    assert_eq!(b.state.parked(), 0);
    assert_eq!(b.retired(), [(x, None)], "nobody can ask for y any more, and x is read no more");
}

#[test]
fn what_a_parked_region_reads_stays_until_it_ran() {
    let (mut b, busy) = busy();
    let x = b.rand(8);
    let e = b.demand(x, Want::Device);
    b.cut();
    busy.iter().for_each(|region| b.finish(region));
    let sent = b.sent();
    b.finish(&sent[0]);
    assert!(b.delivered(e));
    let busy = b.fill();
    b.open(0, 1);
    // Two regions read it, and it was to end with the second.
    let y = b.scale(x, 8);
    let g = b.gather(y);
    b.cut();
    let z = b.scale(x, 8);
    let h = b.gather(z);
    b.release(x);
    b.cut();
    b.event(SchedulerEvent::GatherCancelled(g));
    assert_eq!(b.state.parked(), 1);
    busy.iter().for_each(|region| b.finish(region));
    let sent = b.sent();
    assert_eq!(sent.len(), 1);
    assert!(!sent[0].inputs[0].dies, "the parked region reads it, too");
    b.finish(&sent[0]);
    assert!(b.delivered(h) && b.retired().iter().all(|(value, _)| *value != x));
    let again = b.gather(y);
    let sent = b.cut();
    assert_eq!(sent.iter().map(outputs).collect::<Vec<_>>(), [[y]]);
    b.finish(&sent[0]);
    assert!(b.delivered(again));
    assert_eq!(b.retired(), [(x, None)]);
}

#[test]
fn a_region_downstream_is_called_back_and_comes_again_when_it_is_asked_for() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.source(8);
    let y = b.scale(x, 8);
    let g = b.gather(y);
    let sent = b.cut();
    b.event(SchedulerEvent::GatherCancelled(g));
    assert_eq!(called_back(&mut b), [sent[0].id]);
    // Meanwhile the program drops the region's input.
    b.release(x);
    assert!(b.cut().is_empty());
    b.fail(sent[0].id, ErrorKind::Cancelled);
    assert!(b.sent().is_empty() && b.retired().is_empty());
    assert_eq!(b.state.parked(), 1);
    for _ in 0..5 {
        // Any number of times: it never failed.
        let again = b.gather(y);
        let sent = b.cut();
        assert_eq!(sent.iter().map(values).collect::<Vec<_>>(), [[y]]);
        b.event(SchedulerEvent::GatherCancelled(again));
        assert_eq!(called_back(&mut b), [sent[0].id]);
        b.fail(sent[0].id, ErrorKind::Cancelled);
        assert_eq!(b.state.parked(), 1);
    }
    let again = b.gather(y);
    let sent = b.cut();
    b.finish(&sent[0]);
    assert!(b.delivered(again));
    assert_eq!(b.retired(), [(x, None)]);
}

#[test]
fn a_gather_that_comes_before_the_region_does_is_served() {
    for want in [Want::Host, Want::Device] {
        for comes_back in [true, false] {
            let mut b = Bench::new(DeviceChoice::Host);
            let x = b.source(8);
            let y = b.scale(x, 8);
            let g = b.demand(y, want);
            let sent = b.cut();
            b.event(SchedulerEvent::GatherCancelled(g));
            assert_eq!(called_back(&mut b), [sent[0].id]);
            let (host, device) = (b.gather(y), b.demand(y, Want::Device));
            assert!(b.cut().is_empty(), "it may come, or have run");
            if comes_back {
                b.fail(sent[0].id, ErrorKind::Cancelled);
            } else {
                b.finish(&sent[0]);
            }
            let sent = b.sent();
            b.run(sent);
            assert!(b.delivered(host) && b.delivered(device), "{want:?}, {comes_back}");
        }
    }
}

#[test]
fn a_region_with_which_something_ends_is_not_called_back() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    b.demand(x, Want::Device);
    let first = b.cut();
    b.finish(&first[0]);
    let y = b.scale(x, 8);
    let g = b.gather(y);
    b.release(x);
    let sent = b.cut();
    assert!(sent[0].inputs[0].dies);
    b.event(SchedulerEvent::GatherCancelled(g));
    assert!(called_back(&mut b).is_empty(), "its memory may have been taken already");
    b.finish(&sent[0]);
    let again = b.gather(y);
    assert!(b.cut().is_empty());
    assert!(b.delivered(again));
}

#[test]
fn a_failure_that_comes_instead_is_a_failure() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.source(8);
    let y = b.scale(x, 8);
    let g = b.gather(y);
    let sent = b.cut();
    b.event(SchedulerEvent::GatherCancelled(g));
    b.fail(sent[0].id, ErrorKind::OutOfMemory);
    assert_eq!(b.state.parked(), 0);
    let again = b.gather(y);
    b.cut();
    assert_eq!(b.error(again).kind(), ErrorKind::OutOfMemory);
}

#[test]
fn limits_have_what_is_parked_computed() {
    for why in [CutReason::Room, CutReason::NodeLimit, CutReason::ByteLimit] {
        let (mut b, busy) = busy();
        let x = b.rand(8);
        let g = b.gather(x);
        b.cut();
        b.event(SchedulerEvent::GatherCancelled(g));
        busy.iter().for_each(|region| b.finish(region));
        assert!(b.sent().is_empty());
        assert_eq!(b.cut_for(why).iter().map(outputs).collect::<Vec<_>>(), [[x]], "{why:?}");
    }
}

#[test]
fn a_session_that_parks_too_much_has_it_computed() {
    let mut b = Bench::with(Config {
        device: DeviceChoice::Host,
        batches_in_flight: 2,
        tape_nodes_max: 20,
        ..Config::default()
    });
    let busy = b.fill();
    b.open(0, 1);
    let mut most = 0;
    let mut held = vec![];
    for _ in 0..200 {
        let x = b.rand(8);
        let g = b.gather(x);
        b.cut();
        b.event(SchedulerEvent::GatherCancelled(g));
        most = most.max(b.state.parked());
        held.push(x);
    }
    assert!((10..=20).contains(&most), "{most}");
    // Some are dropped before there are too many.
    for value in held.drain(180..) {
        b.release(value);
    }
    b.cut();
    assert!(b.state.parked() < 10);
    let mut sent: Vec<Region> = busy;
    let mut ran = 0;
    while let Some(region) = sent.pop() {
        b.finish(&region);
        sent.extend(b.sent());
        ran += 1;
    }
    assert!(ran > 150, "{ran}");
}

/// Else each step would put all those before it into the queue and out of it again.
#[test]
fn a_chain_that_is_given_up_at_each_step_is_put_aside_once() {
    let (mut b, busy) = busy();
    let mut state = b.rand(8);
    for _ in 0..100 {
        state = b.scale(state, 8);
        let g = b.gather(state);
        b.cut();
        b.event(SchedulerEvent::GatherCancelled(g));
    }
    assert_eq!(b.state.parked(), 100);
    assert!(b.state.regions.iter().all(|(_, record)| record.parkings <= 1));
    busy.iter().for_each(|region| b.finish(region));
    assert!(b.sent().is_empty(), "nobody waits for it");
    let g = b.gather(state);
    let sent = b.cut();
    b.run(sent);
    assert!(b.delivered(g));
}

#[test]
fn what_is_given_up_again_and_again_is_computed_in_the_end() {
    let (mut b, busy) = busy();
    let x = b.rand(8);
    for _ in 0..100 {
        let g = b.gather(x);
        b.cut();
        b.event(SchedulerEvent::GatherCancelled(g));
    }
    busy.iter().for_each(|region| b.finish(region));
    assert_eq!(b.sent().iter().map(outputs).collect::<Vec<_>>(), [[x]]);
}

#[test]
fn what_a_limit_asked_for_runs_whoever_cancels() {
    let (mut b, busy) = busy();
    let (x, y) = (b.rand(8), b.rand(8));
    let g = b.gather(x);
    b.cut_for(CutReason::NodeLimit);
    b.event(SchedulerEvent::GatherCancelled(g));
    assert_eq!(b.state.parked(), 0);
    busy.iter().for_each(|region| b.finish(region));
    let made: Vec<ValueId> = b.sent().iter().flat_map(outputs).collect();
    assert!(made.contains(&x) && made.contains(&y));
}

#[test]
fn a_region_is_cut_down_before_it_is_parked() {
    let (mut b, busy) = busy();
    let (x, y) = (b.source(8), b.source(8));
    let parts = [b.scale(x, 8), b.scale(y, 8)];
    let gathers = parts.map(|part| b.gather(part));
    b.release(parts[1]);
    b.cut();
    gathers.into_iter().for_each(|gather| b.event(SchedulerEvent::GatherCancelled(gather)));
    assert_eq!(b.state.parked(), 1);
    assert!(b.state.story(parts[1]).contains("not live"));
    busy.iter().for_each(|region| b.finish(region));
    let again = b.gather(parts[0]);
    let sent = b.cut();
    assert_eq!(values(&sent[0]), [parts[0]]);
    b.finish(&sent[0]);
    assert!(b.delivered(again));
}

#[test]
fn an_explanation_of_what_is_parked_is_what_then_runs() {
    let (mut b, busy) = busy();
    let x = b.source(8);
    let y = b.scale(x, 8);
    let g = b.gather(y);
    b.cut();
    b.event(SchedulerEvent::GatherCancelled(g));
    busy.iter().for_each(|region| b.finish(region));
    let z = b.sum(y);
    b.cut_for(CutReason::Flush);
    let mut explained = |value| {
        b.event(SchedulerEvent::ExplainAsked { gather: GatherId(77), value });
        let Some(SchedulerInstruction::Explain { regions, .. }) = b.out.pop() else { panic!("explained") };
        b.event(SchedulerEvent::Explained { gather: GatherId(77), text: String::new() });
        assert!(regions.iter().all(|region| region.preview));
        regions
    };
    let (of_it, of_more) = (explained(y), explained(z));
    assert_eq!(b.state.parked(), 1, "it is only rendered");
    b.gather(z);
    let sent = b.cut();
    assert_eq!(of_more.iter().map(said).collect::<Vec<_>>(), sent.iter().map(said).collect::<Vec<_>>());
    assert_eq!(of_it.len(), 1);
    assert_eq!((values(&of_it[0]), &of_it[0].readbacks[..]), (vec![y], &[y][..]));
}

#[test]
fn a_shutdown_does_not_wait_for_what_is_parked() {
    let (mut b, busy) = busy();
    let x = b.rand(8);
    let e = b.demand(x, Want::Device);
    b.cut();
    let y = b.scale(x, 8);
    let g = b.gather(y);
    b.cut();
    b.event(SchedulerEvent::GatherCancelled(e));
    b.event(SchedulerEvent::GatherCancelled(g));
    assert_eq!(b.state.parked(), 2);
    b.event(SchedulerEvent::ShutdownAsked);
    assert_eq!(b.state.parked(), 0);
    busy.iter().for_each(|region| b.finish(region));
    assert!(b.sent().is_empty() && b.has_stopped());
}

#[test]
fn what_a_parked_region_reads_ends_with_the_region_that_was_sent_last() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.source(8);
    let y = b.scale(x, 8);
    let g = b.gather(y);
    let first = b.cut();
    b.event(SchedulerEvent::GatherCancelled(g));
    b.fail(first[0].id, ErrorKind::Cancelled);
    assert_eq!(b.state.parked(), 1);
    let z = b.sum(x);
    let h = b.gather(z);
    let later = b.cut();
    // Sent after a region that was cut later.
    let again = b.gather(y);
    let parked = b.cut();
    b.release(x);
    assert!(b.cut().is_empty());
    assert_eq!(b.retired(), [(x, Some(parked[0].id))], "its plan arrives last");
    later.iter().chain(&parked).for_each(|region| b.finish(region));
    assert!(b.delivered(h) && b.delivered(again));
}

#[test]
fn an_end_that_was_told_takes_host_data_that_was_sent_again_meanwhile() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.source(8);
    let (y, z) = (b.scale(x, 8), b.scale(x, 8));
    b.gather(y);
    let first = b.cut();
    let cancelled = b.gather(z);
    let second = b.cut();
    assert!(second[0].inputs[0].source.is_none(), "residency has it");
    b.release(x);
    assert!(b.cut().is_empty());
    assert_eq!(b.retired(), [(x, Some(second[0].id))]);
    b.fail(first[0].id, ErrorKind::DeviceLost);
    assert!(b.sent()[0].inputs[0].source.is_some(), "an end was told: it is sent again");
    b.event(SchedulerEvent::GatherCancelled(cancelled));
    assert_eq!(called_back(&mut b), [second[0].id]);
    b.fail(second[0].id, ErrorKind::Cancelled);
    b.gather(z);
    assert!(b.cut()[0].inputs[0].source.is_some(), "what was sent again ended with the region that was called back");
}

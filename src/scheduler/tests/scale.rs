//! Linear time, bounded memory, no recursion.

use super::*;
use crate::rounds::rounds;

/// Runs whatever is sent until nothing is.
fn drain(b: &mut Bench) -> usize {
    let mut regions = 0;
    loop {
        let sent = b.sent();
        if sent.is_empty() {
            return regions;
        }
        regions += sent.len();
        for region in &sent {
            b.finish(region);
        }
    }
}

#[test]
fn very_many_nodes_in_segments_pass_through_with_bounded_memory() {
    let mut b = Bench::new(DeviceChoice::Host);
    b.validates = false;
    let x = b.source(4);
    let mut s = b.scale(x, 4);
    let mut live_max = 0;
    for step in 0..rounds(50_000, 500_000) {
        let t = b.scale(s, 4);
        let next = b.add(t, x, 4);
        b.release(t);
        b.release(s);
        s = next;
        if step % 2048 == 2047 {
            b.out.clear();
            let records = std::mem::take(&mut b.tape).into();
            let why = CutReason::NodeLimit;
            b.event(SchedulerEvent::SegmentCut { session: SessionId(0), records, why, at_ns: 0 });
            drain(&mut b);
            live_max = live_max.max(b.state.graph.len());
        }
    }
    let g = b.gather(s);
    let records = std::mem::take(&mut b.tape).into();
    b.event(SchedulerEvent::SegmentCut { session: SessionId(0), records, why: CutReason::Demand, at_ns: 0 });
    drain(&mut b);
    assert!(b.delivered(g));
    assert!(live_max <= 4, "{live_max} values are live between segments");
    b.state.validate();
}

#[test]
fn one_segment_of_many_nodes_is_cut_without_recursion() {
    let mut b = Bench::new(DeviceChoice::Host);
    b.validates = false;
    let mut s = b.rand(4);
    for _ in 0..300_000 {
        let next = b.scale(s, 4);
        b.release(s);
        s = next;
    }
    let g = b.gather(s);
    b.release(s);
    let records = std::mem::take(&mut b.tape).into();
    b.event(SchedulerEvent::SegmentCut { session: SessionId(0), records, why: CutReason::Demand, at_ns: 0 });
    // The random numbers, and turns of a loop.
    assert_eq!(drain(&mut b), 1 + 300_000usize.div_ceil(16_384));
    assert!(b.delivered(g));
    b.state.validate();
    assert_eq!(b.state.graph.len(), 0);
}

#[test]
fn a_long_dead_chain_is_let_go_without_recursion() {
    let mut b = Bench::new(DeviceChoice::Host);
    b.validates = false;
    let mut s = b.rand(4);
    for _ in 0..300_000 {
        let next = b.scale(s, 4);
        b.release(s);
        s = next;
    }
    b.release(s);
    assert!(b.cut_for(CutReason::Flush).is_empty());
    assert_eq!(b.state.totals().ops_dead, 300_001);
    assert_eq!(b.state.graph.len(), 0);
}

#[test]
fn ten_thousand_sessions_come_and_go() {
    let mut b = Bench::new(DeviceChoice::Host);
    b.validates = false;
    let mut gathers = vec![];
    for session in 0..10_000 {
        b.open(session, 1);
        let x = b.source(4);
        let y = b.scale(x, 4);
        gathers.push(b.gather(y));
        b.release(y);
        b.release(x);
        let records = std::mem::take(&mut b.tape).into();
        b.event(SchedulerEvent::SegmentCut { session: SessionId(session), records, why: CutReason::Demand, at_ns: 0 });
    }
    assert_eq!(drain(&mut b), 10_000);
    let resolved = b.out.iter().filter(|i| matches!(i, SchedulerInstruction::Resolve { result: Ok(_), .. })).count();
    assert_eq!(resolved, gathers.len());
    for session in 0..10_000 {
        b.event(SchedulerEvent::SessionClosed(SessionId(session)));
    }
    b.state.validate();
    assert_eq!((b.state.graph.len(), b.state.sessions.room().0), (0, 0));
}

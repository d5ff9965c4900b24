//! Gathers, cancels, closed sessions, explanations, shutdown.

use super::*;

#[test]
fn host_data_that_is_known_resolves_at_once() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.source(8);
    let g = b.gather(x);
    assert!(b.cut().is_empty());
    assert!(matches!(b.result(g), Some(Ok(Delivered::Host(data))) if data.len() == 8));
}

#[test]
fn a_second_gather_of_a_computed_value_is_a_readback_only_and_a_third_needs_nothing() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    let e = b.demand(x, Want::Device);
    let made = b.cut();
    assert!(b.result(e).is_none());
    b.finish(&made[0]);
    assert!(matches!(b.result(e), Some(Ok(Delivered::Device))));
    let g = b.gather(x);
    let back = b.cut();
    assert!(back[0].nodes.is_empty());
    assert_eq!(back[0].readbacks, [x]);
    let also = b.gather(x);
    assert!(b.cut().is_empty(), "one readback serves both");
    b.finish(&back[0]);
    assert!(b.delivered(g) && b.delivered(also));
    let again = b.gather(x);
    assert!(b.cut().is_empty());
    assert!(b.delivered(again));
}

#[test]
fn data_that_arrives_before_its_region_is_finished_waits_for_the_faults() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    let g = b.gather(x);
    let regions = b.cut();
    let data = Ok(HostBuffer::from_vec(vec![1.0f32; 8]).shared());
    b.event(SchedulerEvent::ValueArrived { value: x, data });
    assert!(b.result(g).is_none());
    let fault = Error::new(ErrorKind::Index, "out of range");
    b.event(SchedulerEvent::RegionFinished { region: regions[0].id, faults: vec![(x, fault)] });
    assert_eq!(b.error(g).kind(), ErrorKind::Index);
}

#[test]
fn a_gather_cancelled_on_the_tape_computes_nothing() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    let g = b.gather(x);
    b.withdraw(g);
    b.release(x);
    assert!(b.cut().is_empty());
    assert_eq!(b.credits(), 1);
    assert!(b.result(g).is_none());
    assert_eq!(b.state.totals().ops_dead, 1);
}

#[test]
fn a_cancelled_gather_drops_the_regions_that_only_it_needed() {
    let mut b = Bench::new(DeviceChoice::Host);
    let busy = b.fill();
    b.open(0, 1);
    let x = b.source(8);
    let y = b.scale(x, 8);
    let g = b.gather(y);
    b.release(y);
    let z = b.scale(x, 8);
    let other = b.gather(z);
    b.release(z);
    b.release(x);
    assert!(b.cut().is_empty());
    b.event(SchedulerEvent::GatherCancelled(g));
    b.event(SchedulerEvent::GatherCancelled(other));
    assert_eq!(b.credits(), 3);
    b.finish(&busy[0]);
    assert!(b.sent().is_empty(), "nothing of it runs");
    assert!(b.state.story(x).contains("not live"));
    assert!(b.retired().is_empty(), "residency never heard of any of it");
}

#[test]
fn what_is_let_go_of_after_its_gather_is_dropped_likewise() {
    // By its handle, as locals end; by the end of what would have read it; with its session.
    for way in 0..3 {
        let mut b = Bench::new(DeviceChoice::Host);
        let busy = b.fill();
        b.open(0, 1);
        let x = b.source(8);
        let y = b.scale(x, 8);
        let g = b.gather(y);
        b.release(x);
        assert!(b.cut().is_empty());
        b.event(SchedulerEvent::GatherCancelled(g));
        assert!(b.state.story(y).contains("coming"), "its handle is there: {}", b.state.story(y));
        match way {
            0 => b.release(y),
            1 => {
                let z = b.scale(y, 8);
                b.release(y);
                assert!(b.cut().is_empty());
                assert!(!b.state.story(y).contains("not live"), "z is made of it");
                b.release(z);
            }
            _ => b.event(SchedulerEvent::SessionClosed(SessionId(0))),
        }
        assert!(b.cut().is_empty());
        b.finish(&busy[0]);
        assert!(b.sent().is_empty(), "way {way}: nothing of it runs");
        assert!(b.state.story(x).contains("not live") && b.state.story(y).contains("not live"), "way {way}");
        assert!(b.retired().is_empty(), "residency never heard of any of it");
    }
}

#[test]
fn a_region_downstream_is_cancelled_when_what_it_makes_is_let_go_of_after_its_gather() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    let g = b.gather(x);
    let sent = b.cut();
    b.event(SchedulerEvent::GatherCancelled(g));
    b.release(x);
    assert!(b.cut().is_empty());
    let cancelled =
        |i: &SchedulerInstruction| matches!(i, SchedulerInstruction::CancelRegion { region } if *region == sent[0].id);
    assert_eq!(b.out.iter().filter(|i| cancelled(i)).count(), 1);
    b.fail(sent[0].id, ErrorKind::Cancelled);
    assert!(b.state.story(x).contains("not live"));
}

#[test]
fn a_shutdown_waits_for_gathers_and_not_for_what_only_handles_name() {
    let mut b = Bench::new(DeviceChoice::Host);
    let (from, y) = (b.source(8), b.rand(8));
    let x = b.scale(from, 8);
    let g = b.gather(x);
    b.release(from);
    let sent = b.cut();
    let h = b.gather(y);
    let awaited = b.cut();
    b.event(SchedulerEvent::GatherCancelled(g));
    assert!(!b.out.iter().any(|i| matches!(i, SchedulerInstruction::CancelRegion { .. })), "its handle may ask again");
    b.event(SchedulerEvent::ShutdownAsked);
    let cancelled: Vec<RegionId> = b
        .out
        .iter()
        .filter_map(|i| if let SchedulerInstruction::CancelRegion { region } = i { Some(*region) } else { None })
        .collect();
    assert_eq!(cancelled, [sent[0].id]);
    b.fail(sent[0].id, ErrorKind::Cancelled);
    assert!(!b.has_stopped());
    b.finish(&awaited[0]);
    assert!(b.delivered(h) && b.has_stopped());
}

#[test]
fn a_region_that_waits_is_cut_down_to_what_is_still_wanted() {
    let mut b = Bench::new(DeviceChoice::Host);
    let busy = b.fill();
    b.open(0, 1);
    let (x, y) = (b.source(8), b.source(8));
    let parts: Vec<ValueId> = [x, x, y].into_iter().map(|from| b.scale(from, 8)).collect();
    let gathers: Vec<GatherId> = parts.iter().map(|&part| b.gather(part)).collect();
    parts.iter().chain([&x, &y]).for_each(|&value| b.release(value));
    assert!(b.cut().is_empty());
    b.event(SchedulerEvent::GatherCancelled(gathers[2]));
    b.event(SchedulerEvent::GatherCancelled(gathers[0]));
    assert!(b.state.story(y).contains("not live"), "only the cancelled gather read it");
    b.finish(&busy[0]);
    let sent = b.sent();
    // A part that shares an input with a wanted part stays in the region, so that the kernel does not change.
    assert_eq!(sent.iter().map(outputs).collect::<Vec<_>>(), [parts[..2].to_vec()]);
    assert_eq!(sent[0].inputs.iter().map(|i| i.value).collect::<Vec<_>>(), [x]);
    b.finish(&sent[0]);
    assert!(b.delivered(gathers[1]));
    assert!(b.result(gathers[0]).is_none() && b.result(gathers[2]).is_none());
}

#[test]
fn what_has_nothing_in_common_is_cut_into_regions_of_a_bounded_size() {
    for (n, expected) in [(1000, 1), (1 << 18, 3), (1 << 19, 4), (1 << 22, 4)] {
        let mut b = Bench::new(DeviceChoice::Host);
        let shared = b.rand(n);
        for from in [Some(shared), None, Some(shared), None, None] {
            let from = from.unwrap_or_else(|| b.rand(n));
            let y = b.scale(from, n);
            b.gather(y);
            b.release(y);
        }
        let mut regions = b.cut();
        let mut seen = 0;
        while let Some(region) = regions.pop() {
            seen += 1;
            let made = values(&region);
            assert!(made.is_sorted(), "REGION-1");
            b.finish(&region);
            regions.extend(b.sent());
        }
        assert_eq!(seen, expected, "{n}");
    }
}

#[test]
fn a_region_downstream_that_nobody_needs_is_cancelled_and_what_it_read_is_let_go() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    let e = b.demand(x, Want::Device);
    let first = b.cut();
    let y = b.scale(x, 8);
    let g = b.gather(y);
    b.release(x);
    b.release(y);
    let second = b.cut();
    b.event(SchedulerEvent::GatherCancelled(g));
    let cancelled = |b: &mut Bench| -> Vec<RegionId> {
        let all = b.out.extract_if(.., |i| matches!(i, SchedulerInstruction::CancelRegion { .. }));
        all.map(|i| if let SchedulerInstruction::CancelRegion { region } = i { region } else { unreachable!() })
            .collect()
    };
    assert_eq!(cancelled(&mut b), [second[0].id], "the other one makes what is still wanted");
    b.event(SchedulerEvent::GatherCancelled(e));
    assert!(cancelled(&mut b).is_empty(), "the region that reads it is still there");
    b.fail(second[0].id, ErrorKind::Cancelled);
    assert_eq!(cancelled(&mut b), [first[0].id]);
    assert!(b.sent().is_empty(), "it is not repeated");
    b.fail(first[0].id, ErrorKind::Cancelled);
    assert!(b.state.story(x).contains("not live") && b.state.story(y).contains("not live"));
    assert_eq!(b.credits(), 2);
}

#[test]
fn a_cancelled_gather_leaves_what_another_waits_for() {
    let mut b = Bench::new(DeviceChoice::Host);
    let busy = b.fill();
    b.open(0, 1);
    let x = b.rand(8);
    let g = b.gather(x);
    let other = b.gather(x);
    b.release(x);
    b.cut();
    b.event(SchedulerEvent::GatherCancelled(g));
    b.finish(&busy[0]);
    let sent = b.sent();
    assert_eq!(sent.len(), 1);
    b.finish(&sent[0]);
    assert!(b.delivered(other));
    assert!(b.result(g).is_none());
}

#[test]
fn a_closed_session_lets_go_of_everything_and_fails_what_has_not_been_sent() {
    let mut b = Bench::new(DeviceChoice::Host);
    let sent = b.rand(8);
    let first = b.gather(sent);
    let under_way = b.cut();
    let mut busy = b.fill();
    busy.truncate(0);
    b.open(0, 1);
    let x = b.scale(sent, 8);
    let second = b.gather(x);
    assert!(b.cut().is_empty());
    b.event(SchedulerEvent::SessionClosed(SessionId(0)));
    assert_eq!(b.error(second).kind(), ErrorKind::Cancelled);
    assert!(b.result(first).is_none(), "it is under way");
    b.finish(&under_way[0]);
    assert!(b.delivered(first));
    assert!(b.state.story(sent).contains("not live"));
}

#[test]
fn an_explanation_is_what_then_runs() {
    let mut b = Bench::new(DeviceChoice::Gpu(None));
    let x = b.source(8);
    let mut y = b.scale(x, 8);
    for _ in 0..5 {
        let next = b.add(y, x, 8);
        b.release(y);
        y = next;
    }
    b.cut_for(CutReason::Flush);
    b.event(SchedulerEvent::ExplainAsked { gather: GatherId(77), value: y });
    let Some(SchedulerInstruction::Explain { regions: preview, .. }) = b.out.pop() else { panic!("explained") };
    b.event(SchedulerEvent::Explained { gather: GatherId(77), text: "the plan".to_owned() });
    assert!(matches!(b.result(GatherId(77)), Some(Ok(Delivered::Text(text))) if text == "the plan"));
    b.gather(y);
    let real = b.cut();
    assert_eq!(preview.len(), 1);
    assert!(preview[0].preview && !real[0].preview);
    assert_eq!(preview[0].id, real[0].id);
    assert_eq!(format!("{:?}", preview[0].nodes), format!("{:?}", real[0].nodes));
    assert_eq!(format!("{:?}", preview[0].inputs), format!("{:?}", real[0].inputs));
    assert_eq!(preview[0].device, real[0].device);
    assert_eq!(preview[0].readbacks, real[0].readbacks);
}

#[test]
fn after_shutdown_was_asked_new_demands_fail_and_the_ring_stops_when_it_has_drained() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    let g = b.gather(x);
    let regions = b.cut();
    b.event(SchedulerEvent::ShutdownAsked);
    let y = b.rand(8);
    let late = b.gather(y);
    b.cut();
    assert_eq!(b.error(late).kind(), ErrorKind::Shutdown);
    assert!(!b.has_stopped());
    b.finish(&regions[0]);
    assert!(b.delivered(g));
    assert!(b.has_stopped());
    assert_eq!(b.credits(), 2);
}

#[test]
fn after_the_deadline_everything_open_fails_and_the_ring_stops() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    let g = b.gather(x);
    b.cut();
    b.event(SchedulerEvent::ShutdownAsked);
    b.event(SchedulerEvent::DeadlinePassed);
    let error = b.error(g);
    assert_eq!((error.kind(), error.op()), (ErrorKind::Shutdown, Some("rand")));
    assert!(b.has_stopped());
    assert_eq!(b.credits(), 1);
    let y = b.rand(8);
    let late = b.gather(y);
    b.cut();
    assert_eq!(b.error(late).kind(), ErrorKind::Shutdown);
    assert_eq!(b.credits(), 1);
}

#[test]
fn a_value_that_is_not_live_is_a_typed_error() {
    let mut b = Bench::new(DeviceChoice::Host);
    let ghost = ValueId { session: SessionId(5), index: 3 };
    let y = b.scale(ghost, 8);
    let g = b.gather(y);
    let direct = b.gather(ghost);
    b.cut();
    assert_eq!(b.error(g).kind(), ErrorKind::Ownership);
    assert_eq!(b.error(direct).kind(), ErrorKind::Ownership);
}

#[test]
fn a_lazy_value_of_another_session_is_cut_under_its_own_session() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    b.cut_for(CutReason::Flush);
    b.open(1, 1);
    b.next_index = 100;
    let y = b.scale(x, 8);
    let g = b.gather(y);
    let regions = b.cut();
    assert_eq!(regions.len(), 2);
    assert_eq!((regions[0].session, values(&regions[0])), (SessionId(0), vec![x]));
    assert_eq!((regions[1].session, values(&regions[1])), (SessionId(1), vec![y]));
    b.finish(&regions[0]);
    b.finish(&regions[1]);
    assert!(b.delivered(g));
}

#[test]
fn the_story_of_a_value_names_what_happened_to_it() {
    let mut b = Bench::new(DeviceChoice::Host);
    let x = b.rand(8);
    let g = b.gather(x);
    let regions = b.cut();
    b.finish(&regions[0]);
    assert!(b.delivered(g));
    expect_test::expect![[r#"
        v0.0: rand of 8x1, here, made on device 0; held true, users 0, gathers 0, regions 0
          recorded
          demanded by gather 0
          cut into region 0
          made by region 0
          arrived in host memory"#]]
    .assert_eq(&b.state.story(x));
}

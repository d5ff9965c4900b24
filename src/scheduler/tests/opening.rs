//! A GPU that is opened on demand: what asks for it, what waits, what happens when it cannot be had.

use super::*;

/// A scheduler that knows the host only, with a GPU to come.
fn later(choice: DeviceChoice) -> Bench {
    let config = Config { device: choice, batches_in_flight: 2, ..Config::default() };
    let state = State::new(vec![device(0, DeviceKind::Host)], &config).with_promised_gpu();
    Bench { state, ..Bench::new(choice) }
}

/// How often the GPU was asked for since the last call.
fn asked(b: &mut Bench) -> usize {
    let before = b.out.len();
    b.out.retain(|i| !matches!(i, SchedulerInstruction::OpenDevices));
    before - b.out.len()
}

fn opened(b: &mut Bench) {
    b.event(SchedulerEvent::OpeningEnded(Ok(Some(device(1, DeviceKind::Gpu)))));
}

#[test]
fn small_work_asks_for_no_gpu_and_large_work_waits_for_it() {
    let mut b = later(DeviceChoice::Auto);
    let small = b.rand(1000);
    b.gather(small);
    let regions = b.cut();
    assert_eq!((regions[0].device, asked(&mut b)), (DeviceId::HOST, 0));
    assert_eq!(regions[0].placement.reason, "cheaper on the host");
    let large = b.rand(1 << 24);
    let total = b.sum(large);
    let g = b.gather(total);
    assert!(b.cut().is_empty());
    assert_eq!(asked(&mut b), 1);
    // Events from downstream are handled while the opening is pending.
    b.finish(&regions[0]);
    opened(&mut b);
    let regions = b.sent();
    assert_eq!((regions.len(), regions[0].device), (1, DeviceId::GPU));
    b.finish(&regions[0]);
    assert!(b.delivered(g));
    assert_eq!(asked(&mut b), 0);
}

#[test]
fn what_users_say_meanwhile_waits_in_order() {
    let mut b = later(DeviceChoice::Auto);
    let large = b.rand(1 << 24);
    let g = b.gather(large);
    b.cut();
    let twice = b.scale(large, 1 << 24);
    let h = b.gather(twice);
    assert!(b.cut().is_empty());
    b.open(1, 1);
    let other = b.rand(4);
    let i = b.gather(other);
    assert!(b.cut().is_empty(), "the order of all sessions is kept");
    b.event(SchedulerEvent::ShutdownAsked);
    assert!(!b.has_stopped());
    assert_eq!(asked(&mut b), 1);
    opened(&mut b);
    let mut sent = b.sent();
    while !sent.is_empty() {
        sent.iter().for_each(|region| b.finish(region));
        sent = b.sent();
    }
    assert!(b.delivered(g) && b.delivered(h) && b.delivered(i));
    assert!(b.has_stopped());
}

#[test]
fn placement_is_what_it_is_with_a_gpu_that_was_open_from_the_start() {
    // Sizes around what pays, as rounds of one program.
    let program = |b: &mut Bench| {
        let mut places = vec![];
        for n in [1, 1000, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 20, 1 << 22, 1000, 1 << 24] {
            let x = b.rand(n);
            let y = b.scale(x, n);
            let total = b.sum(y);
            b.gather(total);
            for region in b.cut_for(CutReason::Demand) {
                b.out.push(SchedulerInstruction::PlanRegion(region.into()));
            }
            if asked(b) > 0 {
                opened(b);
            }
            for region in b.sent() {
                places.push((n, region.device));
                b.finish(&region);
            }
        }
        places
    };
    let places = program(&mut later(DeviceChoice::Auto));
    assert_eq!(places, program(&mut Bench::new(DeviceChoice::Auto)));
    assert!(places.iter().any(|p| p.1 == DeviceId::GPU) && places.iter().any(|p| p.1 == DeviceId::HOST));
}

#[test]
fn auto_goes_on_with_the_host_where_no_gpu_is_there_or_opens() {
    for result in [Ok(None), Err(Error::new(ErrorKind::Device, "the driver said no"))] {
        let failed = result.is_err();
        let mut b = later(DeviceChoice::Auto);
        let large = b.rand(1 << 24);
        b.gather(large);
        b.cut();
        b.event(SchedulerEvent::OpeningEnded(result));
        let regions = b.sent();
        let reason = if failed { "the GPU could not be opened" } else { "the only device" };
        assert_eq!((regions[0].device, regions[0].placement.reason), (DeviceId::HOST, reason));
        let again = b.rand(1 << 24);
        b.gather(again);
        b.cut();
        assert_eq!(asked(&mut b), 1, "it is tried once");
    }
}

#[test]
fn a_named_gpu_is_asked_for_by_the_first_op_and_its_failure_is_that_of_every_op() {
    let mut b = later(DeviceChoice::Gpu(None));
    let data = b.source(8);
    let known = b.gather(data);
    b.cut();
    assert_eq!(asked(&mut b), 0, "host data that comes back as it is needs no GPU");
    let x = b.rand(8);
    let g = b.gather(x);
    assert!(b.cut().is_empty());
    assert_eq!(asked(&mut b), 1);
    b.event(SchedulerEvent::OpeningEnded(Err(Error::new(ErrorKind::Device, "the driver said no"))));
    let error = b.error(g);
    assert_eq!((error.kind(), error.message(), error.op()), (ErrorKind::Device, "the driver said no", Some("rand")));
    let y = b.rand(8);
    let h = b.gather(y);
    assert!(b.cut().is_empty());
    assert_eq!(b.error(h).kind(), ErrorKind::Device);
    assert!(b.delivered(known));
}

#[test]
fn a_pin_to_a_gpu_that_is_still_to_come_asks_for_it() {
    let mut b = later(DeviceChoice::Auto);
    let x = b.rand(8);
    b.pin(x, DeviceId::GPU);
    b.gather(x);
    assert!(b.cut().is_empty());
    assert_eq!(asked(&mut b), 1);
    opened(&mut b);
    assert_eq!(b.sent()[0].device, DeviceId::GPU);
}

#[test]
fn an_explanation_waits_for_the_gpu_as_the_work_would() {
    let mut b = later(DeviceChoice::Auto);
    let x = b.rand(1 << 24);
    b.cut_for(CutReason::Flush);
    b.event(SchedulerEvent::ExplainAsked { gather: GatherId(77), value: x });
    assert_eq!(asked(&mut b), 1);
    opened(&mut b);
    let explained = b.out.iter().find_map(|i| match i {
        SchedulerInstruction::Explain { regions, .. } => Some(regions[0].device),
        _ => None,
    });
    assert_eq!(explained, Some(DeviceId::GPU));
}

#[test]
fn a_deadline_that_passes_while_the_gpu_is_being_opened_fails_what_waits_for_it() {
    let mut b = later(DeviceChoice::Auto);
    let x = b.rand(1 << 24);
    let y = b.rand(3);
    let g = b.gather(x);
    b.cut();
    let h = b.gather(y);
    b.cut();
    b.event(SchedulerEvent::ShutdownAsked);
    b.event(SchedulerEvent::DeadlinePassed);
    assert_eq!((b.error(g).kind(), b.error(h).kind()), (ErrorKind::Shutdown, ErrorKind::Shutdown));
    assert!(b.has_stopped());
    assert_eq!(b.credits(), 2);
    opened(&mut b);
    assert!(b.sent().is_empty());
}

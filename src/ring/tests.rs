//! The real ring over a device that a test stands in for.

use super::{Gate, Ring, start_with};
use crate::config::{Config, DeviceChoice, Room};
use crate::contract::batch::Command;
use crate::contract::device::{DeviceInfo, DeviceKind};
use crate::contract::fixtures::device;
use crate::contract::messages::device::{DeviceEvent, DeviceInstruction};
use crate::contract::messages::scheduler::{Delivered, SchedulerEvent};
use crate::contract::region::CutReason;
use crate::contract::tape::{Drops, Record, Want};
use crate::device::backend::NothingToCompile;
use crate::device::handle::{DeviceHandle, Reach};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, Dist, Meta, Node, Op, RandomKey, Shape};
use crate::host_buffer::HostBuffer;
use crate::ids::{BatchId, DeviceId, SessionId, ValueId};
use crate::injection::Hold;
use crate::mail::{Post, mail};
use crate::ring::Promise;
use crate::stats::Counters;
use crate::timeline::Timeline;
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// What the test's device does with a batch.
#[derive(Clone)]
enum Behaviour {
    /// Reports it as done; readbacks bring zeros.
    Works,
    /// Waits for the latch first.
    Holds(Arc<Hold>),
    /// Ends its thread.
    Dies,
    /// Reports it as failed.
    Fails,
}

fn start(behaviour: Behaviour) -> (Ring, Arc<Counters>) {
    let (sender, device_events) = mail();
    let handle = stand_in(behaviour, device(0, DeviceKind::Host), sender);
    let counters = Arc::new(Counters::default());
    let config = Arc::new(Config { device: DeviceChoice::Host, ..Config::default() });
    let ring = start_with(vec![handle], None, device_events, config, Timeline::off(), counters.clone()).unwrap();
    let opened = SchedulerEvent::SessionOpened { session: SessionId(0), name: Arc::from("test"), weight: 1 };
    ring.events.send(opened).unwrap();
    (ring, counters)
}

/// A device that is none.
fn stand_in(behaviour: Behaviour, info: DeviceInfo, sender: Post<DeviceEvent>) -> DeviceHandle {
    let (instructions, mailbox) = crossbeam_channel::bounded(64);
    let device = info.id;
    let thread = std::thread::spawn(move || {
        for instruction in mailbox {
            let batch = match instruction {
                DeviceInstruction::Submit(batch) => batch,
                DeviceInstruction::Release(_) | DeviceInstruction::Trim { .. } => continue,
                DeviceInstruction::Stop => return,
            };
            match &behaviour {
                Behaviour::Works => {}
                Behaviour::Holds(hold) => hold.wait(),
                Behaviour::Dies => return,
                Behaviour::Fails => {
                    let error = Error::new(ErrorKind::OutOfMemory, "injected");
                    let _ = sender.send(DeviceEvent::BatchFailed { device, batch: batch.id, error });
                    continue;
                }
            }
            finish(&sender, device, batch.id, &batch.commands);
        }
    });
    DeviceHandle {
        info,
        reach: Reach::by(instructions),
        compiler: Arc::new(NothingToCompile),
        uploads: None,
        threads: vec![thread],
    }
}

fn finish(sender: &Post<DeviceEvent>, device: DeviceId, batch: BatchId, commands: &[Command]) {
    for command in commands {
        if let Command::Readback { transfer, dtype, elements, .. } = command {
            let data = Ok(HostBuffer::zeroed(*dtype, *elements as usize).shared());
            let _ = sender.send(DeviceEvent::ReadbackDone { device, transfer: *transfer, data });
        }
    }
    let _ = sender.send(DeviceEvent::BatchFinished { device, batch, faults: vec![], device_ns: 1 });
}

/// A ring whose GPU is opened by the first that needs it, as soon as the latch allows; how often that was, and which
/// devices were told to end.
fn start_with_late_gpu(latch: Arc<Hold>) -> (Ring, Arc<AtomicUsize>) {
    let (sender, device_events) = mail();
    let host = stand_in(Behaviour::Works, device(0, DeviceKind::Host), sender.clone());
    let opened = Arc::new(AtomicUsize::new(0));
    let count = opened.clone();
    let opener = Box::new(move || {
        count.fetch_add(1, Relaxed);
        latch.wait();
        Ok(Some(stand_in(Behaviour::Works, device(1, DeviceKind::Gpu), sender)))
    });
    let config = Arc::new(Config::default());
    let counters = Arc::new(Counters::default());
    let ring = start_with(vec![host], Some(opener), device_events, config, Timeline::off(), counters).unwrap();
    for session in 0..20 {
        let name = Arc::from("test");
        ring.events.send(SchedulerEvent::SessionOpened { session: SessionId(session), name, weight: 1 }).unwrap();
    }
    (ring, opened)
}

/// Records `rand(8)` as value `index` and gathers it.
fn gather(ring: &Ring, index: u64) -> Promise {
    gather_of(ring, SessionId(0), index, 8)
}

/// Records `rand(n)` as value `index` of a session and gathers it.
fn gather_of(ring: &Ring, session: SessionId, index: u64, n: usize) -> Promise {
    demand_of(ring, session, index, n, Want::Host)
}

/// Records `rand(n)` as value `index` of a session and asks for it.
fn demand_of(ring: &Ring, session: SessionId, index: u64, n: usize, want: Want) -> Promise {
    let value = ValueId { session, index };
    let (gather, promise) = ring.gathers.open();
    let node = Node {
        value,
        op: Op::Random { dist: Dist::Uniform, key: RandomKey { seed: 1, stream: 0, op: index as u32 } },
        args: SmallVec::new(),
        meta: Meta { dtype: DType::F32, shape: Shape::new(&[n]).unwrap() },
        pin: None,
        at: Location::caller().into(),
        block: 0,
    };
    let records = vec![Record::Op(Box::new(node), Drops::NONE), Record::Demanded { gather, value, want }].into();
    let _ = ring.events.send(SchedulerEvent::SegmentCut { session, records, why: CutReason::Demand, at_ns: 0 });
    promise
}

fn wait(promise: Promise) -> Result<Delivered> {
    futures::executor::block_on(promise)
}

#[test]
fn a_gather_goes_once_around_the_ring() {
    let (ring, counters) = start(Behaviour::Works);
    let gate = Arc::new(Gate::default());
    ring.gates.register(SessionId(0), gate.clone());
    gate.enter(1, 0);
    let result = wait(gather(&ring, 0));
    assert!(matches!(result, Ok(Delivered::Host(data)) if data.len() == 8));
    gate.wait_below(Room { nodes: 0, bytes: 0 });
    futures::executor::block_on(ring.shutdown(Duration::from_secs(5))).unwrap();
    assert!(ring.has_ended());
    let stats = counters.read();
    assert_eq!((stats.regions, stats.gathers, stats.kernels, stats.gathers_failed), (1, 1, 1, 0));
    assert_eq!(stats.device_ns, 1, "what the device says of its only batch");
    let late = wait(gather(&ring, 1));
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Shutdown);
}

#[test]
fn a_hundred_gathers_in_flight_all_resolve() {
    let (ring, _) = start(Behaviour::Works);
    let promises: Vec<Promise> = (0..100).map(|i| gather(&ring, i)).collect();
    for promise in promises {
        assert!(wait(promise).is_ok());
    }
}

#[test]
fn a_shutdown_that_outlives_its_deadline_fails_what_is_left() {
    let hold = Arc::new(Hold::default());
    let (ring, counters) = start(Behaviour::Holds(hold.clone()));
    let promise = gather(&ring, 0);
    let ended = ring.shutdown(Duration::from_millis(20));
    let error = wait(promise).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Shutdown, Some("rand")));
    hold.release();
    futures::executor::block_on(ended).unwrap();
    assert_eq!(counters.read().gathers_failed, 1);
}

/// The name of the thread that wakes whoever waits; the promise is polled first, then `go` lets it be kept.
fn woken_by(mut promise: Promise, go: impl FnOnce()) -> String {
    struct Woken(flume::Sender<String>);
    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            let name = std::thread::current().name().unwrap_or("a device's").to_owned();
            let _ = self.0.send(name);
        }
    }
    let (woken, heard) = flume::unbounded();
    let waker = Arc::new(Woken(woken)).into();
    let mut context = std::task::Context::from_waker(&waker);
    assert!(futures::FutureExt::poll_unpin(&mut promise, &mut context).is_pending());
    go();
    let name = heard.recv_timeout(Duration::from_secs(20)).expect("RING-1");
    assert!(wait(promise).is_ok());
    name
}

#[test]
fn who_waits_for_what_one_batch_alone_decides_is_woken_by_its_device_and_others_by_the_ring() {
    let hold = Arc::new(Hold::default());
    let (ring, counters) = start(Behaviour::Holds(hold.clone()));
    let promise = gather(&ring, 0);
    assert_eq!(woken_by(promise, || hold.release()), "a device's");
    let hold = Arc::new(Hold::default());
    let (ring_of_value, _) = start(Behaviour::Holds(hold.clone()));
    let promise = demand_of(&ring_of_value, SessionId(0), 0, 8, Want::Device);
    assert_eq!(woken_by(promise, || hold.release()), "a device's");

    let hold = Arc::new(Hold::default());
    let (ring_of_two, counters_of_two) = start(Behaviour::Holds(hold.clone()));
    let first = gather(&ring_of_two, 0);
    // Read by a second region, while the first, which makes it, is unfinished.
    let (session, value) = (SessionId(0), ValueId { session: SessionId(0), index: 1 });
    let (gather, second) = ring_of_two.gathers.open();
    let node = Node {
        value,
        op: Op::Apply(crate::graph::ElementOp::Neg),
        args: SmallVec::from_slice(&[crate::graph::Arg::Value(ValueId { session, index: 0 })]),
        meta: Meta { dtype: DType::F32, shape: Shape::new(&[8]).unwrap() },
        pin: None,
        at: Location::caller().into(),
        block: 0,
    };
    let records =
        vec![Record::Op(Box::new(node), Drops::NONE), Record::Demanded { gather, value, want: Want::Host }].into();
    let segment = SchedulerEvent::SegmentCut { session, records, why: CutReason::Demand, at_ns: 0 };
    ring_of_two.events.send(segment).unwrap();
    // Time for the ring to send it; were it late, the test would still be right.
    while counters_of_two.read().regions < 2 {
        std::thread::yield_now();
    }
    let name = woken_by(second, || hold.release());
    assert_eq!(name, "tidemill-ring");
    assert!(wait(first).is_ok());
    assert_eq!(counters.read().gathers, 1, "counted once, by whoever was first");
}

#[test]
fn a_shutdown_drains_what_is_in_flight() {
    let hold = Arc::new(Hold::default());
    let (ring, _) = start(Behaviour::Holds(hold.clone()));
    let promise = gather(&ring, 0);
    let ended = ring.shutdown(Duration::from_secs(20));
    hold.release();
    assert!(wait(promise).is_ok());
    futures::executor::block_on(ended).unwrap();
}

#[test]
fn dropping_the_ring_resolves_what_is_pending_and_does_not_wait_for_ever() {
    let hold = Arc::new(Hold::default());
    let (ring, _) = start(Behaviour::Holds(hold.clone()));
    let promise = gather(&ring, 0);
    let releaser = std::thread::spawn(move || {
        let error = wait(promise).unwrap_err();
        hold.release();
        error
    });
    // It comes back although nothing but the failing gather lets the device go on.
    drop(ring);
    assert_eq!(releaser.join().unwrap().kind(), ErrorKind::Shutdown);
}

#[test]
fn a_broken_invariant_fails_every_gather_with_its_name_and_hangs_nothing() {
    let hold = Arc::new(Hold::default());
    let (ring, _) = start(Behaviour::Holds(hold.clone()));
    let gate = Arc::new(Gate::default());
    ring.gates.register(SessionId(0), gate.clone());
    gate.enter(100, 0);
    let first = gather(&ring, 0);
    let twice = gather(&ring, 0);
    hold.release();
    for promise in [first, twice] {
        if let Err(error) = wait(promise) {
            assert_eq!(error.kind(), ErrorKind::Internal);
            assert!(error.message().contains("SCHED-1"), "{error}");
        }
    }
    gate.wait_below(Room { nodes: 0, bytes: 0 });
    assert_eq!(wait(gather(&ring, 1)).unwrap_err().kind(), ErrorKind::Internal);
    futures::executor::block_on(ring.shutdown(Duration::from_secs(1))).unwrap();
}

#[test]
fn a_device_whose_threads_have_ended_fails_what_waits_for_it() {
    let (ring, _) = start(Behaviour::Dies);
    assert_eq!(wait(gather(&ring, 0)).unwrap_err().kind(), ErrorKind::Internal);
}

#[test]
fn a_batch_that_fails_fails_its_gather_with_op_device_and_line() {
    let (ring, _) = start(Behaviour::Fails);
    let error = wait(gather(&ring, 0)).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::OutOfMemory, Some("rand")));
    assert_eq!(error.device(), Some("test host"));
    assert!(error.location().is_some());
    assert_eq!(wait(gather(&ring, 1)).unwrap_err().kind(), ErrorKind::OutOfMemory, "the ring goes on");
}

#[test]
fn the_real_host_device_computes_what_was_recorded() {
    let config = Arc::new(Config { device: DeviceChoice::Host, ..Config::default() });
    let counters = Arc::new(Counters::default());
    let ring = super::start(config, Timeline::off(), counters.clone()).unwrap();
    let value = |index| ValueId { session: SessionId(0), index };
    let meta = Meta { dtype: DType::F32, shape: Shape::new(&[3]).unwrap() };
    let node = |index, op, args: &[crate::graph::Arg]| {
        let args = SmallVec::from_slice(args);
        Record::Op(
            Box::new(Node {
                value: value(index),
                op,
                args,
                meta: meta.clone(),
                pin: None,
                at: Location::caller().into(),
                block: 0,
            }),
            Drops::NONE,
        )
    };
    let data = HostBuffer::from_slice(&[1.0f32, 2.0, 3.0]).shared();
    let half = crate::graph::Arg::Scalar(crate::graph::Scalar::F32(0.5));
    let (gather, promise) = ring.gathers.open();
    let records = vec![
        node(0, Op::Source(data), &[]),
        node(1, Op::Apply(crate::graph::ElementOp::Mul), &[crate::graph::Arg::Value(value(0)), half]),
        Record::Demanded { gather, value: value(1), want: Want::Host },
    ]
    .into();
    let cut = SchedulerEvent::SegmentCut { session: SessionId(0), records, why: CutReason::Demand, at_ns: 0 };
    ring.events.send(cut).unwrap();
    let Ok(Delivered::Host(result)) = wait(promise) else { panic!("it is delivered") };
    assert_eq!(result.as_slice::<f32>(), Some(&[0.5, 1.0, 1.5][..]));
    futures::executor::block_on(ring.shutdown(Duration::from_secs(5))).unwrap();
    assert_eq!(counters.read().host_kernels, 1);
}

/// Large enough for any GPU.
const LARGE: usize = 1 << 24;

#[test]
fn a_gpu_is_opened_by_the_first_work_that_is_worth_it_and_only_once() {
    let latch = Arc::new(Hold::default());
    latch.release();
    let (ring, opened) = start_with_late_gpu(latch);
    assert!(wait(gather(&ring, 0)).is_ok());
    assert_eq!((opened.load(Relaxed), ring.devices.open().len()), (0, 1));
    assert!(wait(gather_of(&ring, SessionId(1), 0, LARGE)).is_ok());
    assert!(wait(gather_of(&ring, SessionId(2), 0, LARGE)).is_ok());
    assert_eq!((opened.load(Relaxed), ring.devices.open().len()), (1, 2));
    assert_eq!(ring.devices.all().len(), 2);
    futures::executor::block_on(ring.shutdown(Duration::from_secs(5))).unwrap();
}

#[test]
fn many_sessions_and_threads_at_the_moment_of_opening_get_one_gpu() {
    let latch = Arc::new(Hold::default());
    let (ring, opened) = start_with_late_gpu(latch.clone());
    let promises: Vec<Promise> =
        (0..20).map(|s| gather_of(&ring, SessionId(s), 0, if s % 3 == 0 { LARGE } else { 8 })).collect();
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..4).map(|_| scope.spawn(|| ring.devices.all().len())).collect();
        // Whoever comes first asks; nobody gets an answer before it is there.
        while opened.load(Relaxed) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(ring.devices.open().len(), 1);
        latch.release();
        assert!(asking.into_iter().all(|a| a.join().unwrap() == 2));
    });
    for promise in promises {
        assert!(wait(promise).is_ok());
    }
    assert_eq!(opened.load(Relaxed), 1);
}

#[test]
fn a_shutdown_during_the_opening_fails_what_waits_and_stops_what_is_opened() {
    let latch = Arc::new(Hold::default());
    let (ring, opened) = start_with_late_gpu(latch.clone());
    let large = gather_of(&ring, SessionId(0), 0, LARGE);
    let behind = gather_of(&ring, SessionId(1), 0, 8);
    while opened.load(Relaxed) == 0 {
        std::thread::yield_now();
    }
    let ended = ring.shutdown(Duration::from_millis(20));
    for promise in [large, behind] {
        assert_eq!(wait(promise).unwrap_err().kind(), ErrorKind::Shutdown);
    }
    let devices = ring.devices.clone();
    let asks = std::thread::spawn(move || devices.all().len());
    latch.release();
    futures::executor::block_on(ended).unwrap();
    // Told of what was opened last, or of none: in any case told.
    assert!((1..=2).contains(&asks.join().unwrap()));
    assert_eq!(wait(gather(&ring, 1)).unwrap_err().kind(), ErrorKind::Shutdown);
}

#[test]
fn a_shutdown_drains_what_waits_for_a_gpu_that_opens_in_time() {
    let latch = Arc::new(Hold::default());
    let (ring, _) = start_with_late_gpu(latch.clone());
    let large = gather_of(&ring, SessionId(0), 0, LARGE);
    let ended = ring.shutdown(Duration::from_secs(20));
    latch.release();
    assert!(wait(large).is_ok());
    futures::executor::block_on(ended).unwrap();
}

#[test]
fn a_ring_that_never_needed_its_gpu_ends_without_opening_it() {
    let (ring, opened) = start_with_late_gpu(Arc::new(Hold::default()));
    assert!(wait(gather(&ring, 0)).is_ok());
    futures::executor::block_on(ring.shutdown(Duration::from_secs(5))).unwrap();
    assert_eq!((ring.devices.all().len(), opened.load(Relaxed)), (1, 0));
}

#[test]
fn a_ring_without_work_has_devices_give_memory_back_some_times_and_then_sleeps_for_good() {
    let (sender, device_events) = mail();
    let (told, trims) = flume::unbounded();
    let mut handle = stand_in(Behaviour::Works, device(0, DeviceKind::Host), sender);
    let behind = std::mem::replace(&mut handle.reach, Reach::by(crossbeam_channel::unbounded().0));
    let (instructions, mailbox) = crossbeam_channel::unbounded();
    handle.reach = Reach::by(instructions);
    let relay = std::thread::spawn(move || {
        for instruction in mailbox {
            if let DeviceInstruction::Trim { all } = instruction {
                told.send(all).unwrap();
            }
            if behind.instructions.send(instruction).is_err() {
                return;
            }
        }
    });
    let idle_release = Some(Duration::from_millis(4));
    let config = Arc::new(Config { device: DeviceChoice::Host, idle_release, ..Config::default() });
    let ring = start_with(vec![handle], None, device_events, config, Timeline::off(), Arc::default()).unwrap();
    let opened = SchedulerEvent::SessionOpened { session: SessionId(0), name: Arc::from("test"), weight: 1 };
    ring.events.send(opened).unwrap();
    for index in 0..2 {
        assert!(wait(gather(&ring, index)).is_ok());
        let mut times = 0;
        // Words while the gather was under way count, too.
        while !trims.recv_timeout(Duration::from_secs(60)).unwrap() {
            times += 1;
        }
        assert!(times >= 5, "{times} before all of it goes");
        assert!(trims.recv_timeout(Duration::from_millis(100)).is_err(), "it sleeps");
    }
    drop(ring);
    relay.join().unwrap();
}

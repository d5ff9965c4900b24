//! Behaviour of the host beyond that of every backend (`device/conformance/`): uploads and readbacks without copies,
//! long launches on threads of their own, and brief batches on the sender's thread.

use super::order::Touched;
use crate::config::{Config, DeviceChoice};
use crate::contract::batch::*;
use crate::contract::messages::device::{DeviceEvent, DeviceInstruction};
use crate::contract::plan::{Launch, Program, Use};
use crate::device::Opening;
use crate::device::handle::DeviceHandle;
use crate::error::{Error, ErrorKind};
use crate::graph::{DType, ElementOp};
use crate::host_buffer::HostBuffer;
use crate::ids::{BatchId, BufferId, RegionId, SessionId};
use crate::injection::{Hold, Injection};
use crate::kernels::ir::*;
use crate::kernels::library::Library;
use crate::stats::Counters;
use crate::timeline::Timeline;
use smallvec::{SmallVec, smallvec};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

struct Bench {
    handle: DeviceHandle,
    events: flume::Receiver<DeviceEvent>,
    counters: Arc<Counters>,
    next: u64,
}

impl Bench {
    fn new(config: Config) -> Bench {
        let (sender, events) = flume::unbounded();
        let counters = Arc::new(Counters::default());
        let opening = Opening {
            config: Arc::new(config),
            counters: counters.clone(),
            timeline: Timeline::off(),
            events: sender.into(),
        };
        Bench { handle: opening.host().unwrap(), events, counters, next: 0 }
    }

    fn plain() -> Bench {
        Bench::new(Config { worker_threads: Some(2), ..Config::default() })
    }

    fn injected(injection: Injection) -> Bench {
        Bench::new(Config { device: DeviceChoice::Host, injection, worker_threads: Some(1), ..Config::default() })
    }

    fn submit(&mut self, commands: Vec<Command>) -> BatchId {
        let id = BatchId(self.next);
        self.next += 1;
        let batch = Batch { id, region: RegionId(0), session: SessionId(0), commands };
        self.handle.reach.instructions.send(DeviceInstruction::Submit(batch)).unwrap();
        id
    }

    fn event(&self) -> DeviceEvent {
        self.events.recv_timeout(Duration::from_secs(20)).expect("an event")
    }

    fn finished(&self) -> (BatchId, Vec<u32>) {
        match self.event() {
            DeviceEvent::BatchFinished { batch, faults, .. } => (batch, faults),
            other => panic!("{other:?}"),
        }
    }

    fn failed(&self) -> (BatchId, Error) {
        match self.event() {
            DeviceEvent::BatchFailed { batch, error, .. } => (batch, error),
            other => panic!("{other:?}"),
        }
    }

    fn read(&self) -> Arc<HostBuffer> {
        match self.event() {
            DeviceEvent::ReadbackDone { data, .. } => data.unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

fn slot(buffer: u64, elements: u64) -> Slot {
    Slot { buffer: BufferId(buffer), offset: 0, bytes: (elements * 4).next_multiple_of(16) }
}

fn allocate(buffer: u64, elements: u64) -> Command {
    Command::Allocate { buffer: BufferId(buffer), bytes: (elements * 4).next_multiple_of(256) }
}

fn upload(buffer: u64, from: &Arc<HostBuffer>) -> Command {
    let elements = from.len() as u64;
    Command::Upload { from: from.clone(), first: 0, elements, to: slot(buffer, elements) }
}

fn readback(buffer: u64, elements: u64) -> Command {
    Command::Readback { transfer: Transfer(buffer), from: slot(buffer, elements), dtype: DType::F32, elements }
}

/// `x + x`, into another operand or in place.
fn doubling(in_place: bool) -> Kernel {
    let access = if in_place { Access::ReadWrite } else { Access::Read };
    let mut operands = vec![Operand { dtype: DType::F32, access, tiled: true, segments: 1 }];
    if !in_place {
        operands.push(Operand { dtype: DType::F32, access: Access::Write, tiled: true, segments: 1 });
    }
    let element = |op, dtype| Inst { op, dtype, level: Level::Element };
    Kernel {
        form: Form::Map,
        operands,
        scratch: None,
        faults: false,
        params: HEADER_WORDS,
        insts: vec![
            element(InstOp::Flat, DType::U32),
            element(InstOp::Load { operand: 0, index: Val(0), run: Run::Flat, guard: None }, DType::F32),
            element(InstOp::Apply(ElementOp::Add, smallvec![Val(1), Val(1)]), DType::F32),
        ],
        stores: vec![Store { operand: u16::from(!in_place), index: None, value: Val(2), guard: None }],
        rolled: None,
    }
}

fn launch(program: Program, elements: u32, uses: &[(bool, bool)]) -> Arc<Launch> {
    Arc::new(Launch {
        program,
        geometry: Geometry::Map { elements },
        params: vec![0; HEADER_WORDS as usize],
        uses: uses
            .iter()
            .enumerate()
            .map(|(n, &(reads, writes))| Use { buffer: n as u32, tiled: true, writes, reads })
            .collect(),
        faults: None,
        label: "add".into(),
        ops: 1,
        bytes_read: elements as u64 * 4,
        bytes_written: elements as u64 * 4,
        split: None,
        blame: ("add", Location::caller().into()),
        provenance: Default::default(),
    })
}

fn dispatch(launch: Arc<Launch>, slots: &[Slot], faults: Option<Slot>) -> Command {
    let Geometry::Map { elements } = launch.geometry else { panic!("a map") };
    Command::Dispatch {
        launch,
        tile: Tile { begin: 0, end: elements, base: 0, base_wide: 0, last: true },
        bindings: slots.iter().map(|&s| -> SmallVec<[Slot; 1]> { smallvec![s] }).collect(),
        faults,
        span_shift: 32,
    }
}

fn double(elements: u32, from: u64, to: u64) -> Command {
    let n = elements as u64;
    let launch = launch(Program::Kernel(Arc::new(doubling(false)), 1), elements, &[(true, false), (false, true)]);
    dispatch(launch, &[slot(from, n), slot(to, n)], None)
}

#[test]
fn a_batch_that_may_raise_faults_does_not_run_beside_one_that_uses_their_memory() {
    let program = Program::Kernel(Arc::new(doubling(false)), 1);
    let launch = launch(program, 4, &[(true, false), (false, true)]);
    let raises = Touched::by(&[dispatch(launch, &[slot(0, 4), slot(1, 4)], Some(slot(2, 1)))]);
    let [reads, others] = [2, 3].map(|buffer| Touched::by(&[readback(buffer, 1)]));
    assert!(raises.conflicts(&reads) && reads.conflicts(&raises) && !raises.conflicts(&others));
}

#[test]
fn an_array_goes_in_and_its_double_comes_out_without_a_copy() {
    let mut bench = Bench::plain();
    let x = HostBuffer::from_slice(&[1.0f32, 2.0, 3.5]).shared();
    let commands = vec![allocate(0, 3), upload(0, &x), allocate(1, 3), double(3, 0, 1), readback(1, 3), readback(0, 3)];
    let batch = bench.submit(commands);
    assert_eq!(bench.read().as_slice::<f32>().unwrap(), [2.0, 4.0, 7.0]);
    assert!(Arc::ptr_eq(&bench.read(), &x));
    assert_eq!(bench.finished(), (batch, vec![]));
    let stats = bench.counters.read();
    assert_eq!((stats.bytes_uploaded, stats.bytes_read_back), (0, 0));
    assert_eq!((stats.host_kernels, stats.host_blocks), (1, 1));
    assert_eq!((stats.bytes_kernel_read, stats.bytes_kernel_written), (12, 12));
}

#[test]
fn what_a_user_holds_does_not_change_under_a_kernel_in_place() {
    let mut bench = Bench::plain();
    let x = HostBuffer::from_slice(&[1.0f32, 2.0]).shared();
    let in_place = || {
        let launch = launch(Program::Kernel(Arc::new(doubling(true)), 2), 2, &[(true, true)]);
        dispatch(launch, &[slot(0, 2)], None)
    };
    bench.submit(vec![allocate(0, 2), upload(0, &x), in_place(), readback(0, 2)]);
    let once = bench.read();
    bench.finished();
    bench.submit(vec![in_place(), readback(0, 2)]);
    let twice = bench.read();
    bench.finished();
    assert_eq!(x.as_slice::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(once.as_slice::<f32>().unwrap(), [2.0, 4.0]);
    assert_eq!(twice.as_slice::<f32>().unwrap(), [4.0, 8.0]);
}

#[test]
fn a_panicking_kernel_fails_its_batch_with_op_place_and_device_and_the_next_one_runs() {
    let mut bench = Bench::plain();
    let x = HostBuffer::from_slice(&[1.0f32, 2.0]).shared();
    // 9 elements of an operand that has 4.
    let batch = bench.submit(vec![allocate(0, 2), upload(0, &x), allocate(1, 9), double(9, 0, 1)]);
    let (failed, error) = bench.failed();
    assert_eq!(
        (failed, error.kind(), error.op(), error.device()),
        (batch, ErrorKind::Internal, Some("add"), Some("host"))
    );
    assert!(error.location().unwrap().file().ends_with("tests.rs"));
    assert!(error.message().contains("EVAL-1"), "{error}");
    bench.submit(vec![allocate(2, 2), double(2, 0, 2), readback(2, 2)]);
    assert_eq!(bench.read().as_slice::<f32>().unwrap(), [2.0, 4.0]);
    bench.finished();
}

#[test]
fn injection_is_for_the_device_under_test() {
    let injection = Injection { panic_at_batch: Some(0), ..Injection::default() };
    let mut bench = Bench::new(Config { device: DeviceChoice::Gpu(None), injection, ..Config::default() });
    bench.submit(vec![]);
    assert_eq!(bench.finished().0, BatchId(0));
}

#[test]
fn stop_ends_the_thread_after_what_was_submitted_and_large_memory_is_used_again() {
    let mut bench = Bench::plain();
    let n = 100_000u64;
    let x = HostBuffer::from_vec(vec![1.0f32; n as usize]).shared();
    bench.submit(vec![allocate(0, n), upload(0, &x)]);
    for _ in 0..3 {
        let free = Command::Free { buffer: BufferId(1) };
        bench.submit(vec![allocate(1, n), double(n as u32, 0, 1), readback(1, n), free]);
    }
    bench.handle.reach.instructions.send(DeviceInstruction::Stop).unwrap();
    bench.handle.threads.drain(..).for_each(|t| t.join().unwrap());
    let events: Vec<DeviceEvent> = bench.events.drain().collect();
    assert_eq!(events.len(), 7);
    drop(events);
    let stats = bench.counters.read();
    assert_eq!(stats.pool_hits + stats.pool_misses, 3);
}

/// A device of one worker for which every launch is long, and which holds the first one.
fn held(lose_device_at_batch: Option<u64>) -> (Bench, Arc<Hold>) {
    let hold = Arc::new(Hold::default());
    let hold_first_long = Some(hold.clone());
    let injection =
        Injection { long_launch_us: Some(0.0), hold_first_long, lose_device_at_batch, ..Injection::default() };
    (Bench::injected(injection), hold)
}

#[test]
fn what_shares_nothing_with_a_long_launch_goes_on_beside_it_and_the_rest_keeps_its_order() {
    let (mut bench, hold) = held(None);
    let x = HostBuffer::from_slice(&[1.0f32, 2.0]).shared();
    bench.submit(vec![allocate(0, 2), upload(0, &x)]);
    assert_eq!(bench.finished().0, BatchId(0));
    let long = bench.submit(vec![allocate(1, 2), double(2, 0, 1)]);
    // Reads what is written.
    let after = bench.submit(vec![allocate(2, 2), double(2, 1, 2), readback(2, 2)]);
    // Writes over what is read.
    let over = HostBuffer::from_slice(&[9.0f32, 9.0]).shared();
    let over = bench.submit(vec![upload(0, &over), readback(0, 2)]);
    bench.handle.reach.instructions.send(DeviceInstruction::Release(vec![BufferId(1)])).unwrap();
    // Reads what others only read, once more beside the launch, and computes.
    let beside = bench.submit(vec![allocate(3, 2), upload(3, &x), allocate(4, 2), double(2, 3, 4), readback(4, 2)]);
    assert_eq!(bench.read().as_slice::<f32>().unwrap(), [2.0, 4.0]);
    assert_eq!(bench.finished().0, beside);
    assert!(bench.events.try_recv().is_err(), "the others wait");
    hold.release();
    assert_eq!(bench.finished().0, long);
    let mut ended = vec![];
    let mut read = vec![];
    for _ in 0..4 {
        match bench.event() {
            DeviceEvent::ReadbackDone { data, .. } => read.push(data.unwrap().as_slice::<f32>().unwrap().to_vec()),
            DeviceEvent::BatchFinished { batch, .. } => ended.push(batch),
            other => panic!("{other:?}"),
        }
    }
    ended.sort_unstable();
    read.sort_by(|a, b| a[0].total_cmp(&b[0]));
    assert_eq!((ended, read), (vec![after, over], vec![vec![4.0, 8.0], vec![9.0, 9.0]]));
    assert_eq!(bench.counters.read().host_kernels, 3);
}

#[test]
fn a_panic_in_a_long_launch_fails_its_batch_alone() {
    let (mut bench, hold) = held(None);
    let x = HostBuffer::from_slice(&[1.0f32, 2.0]).shared();
    let mut wrong =
        (*launch(Program::Kernel(Arc::new(doubling(false)), 1), 2, &[(true, false), (false, true)])).clone();
    wrong.geometry = Geometry::Scan { outer: 1, inner: 2, reverse: false };
    let tile = Tile { begin: 0, end: 2, base: 0, base_wide: 0, last: true };
    let bindings = [slot(0, 2), slot(1, 2)].iter().map(|&s| -> SmallVec<[Slot; 1]> { smallvec![s] }).collect();
    let broken = Command::Dispatch { launch: Arc::new(wrong), tile, bindings, faults: None, span_shift: 32 };
    bench.submit(vec![allocate(0, 2), upload(0, &x), allocate(1, 2), broken]);
    bench.submit(vec![double(2, 0, 1), readback(1, 2)]);
    hold.release();
    let (batch, error) = bench.failed();
    assert_eq!((batch, error.kind(), error.op()), (BatchId(0), ErrorKind::Internal, Some("add")));
    assert_eq!(bench.read().as_slice::<f32>().unwrap(), [2.0, 4.0]);
    assert_eq!(bench.finished().0, BatchId(1));
}

#[test]
fn a_device_that_is_lost_or_stopped_ends_its_long_launches_first() {
    let (mut bench, hold) = held(Some(2));
    let x = HostBuffer::from_slice(&[1.0f32, 2.0]).shared();
    let doubled = || vec![allocate(0, 2), upload(0, &x), allocate(1, 2), double(2, 0, 1), readback(1, 2)];
    bench.submit(doubled());
    bench.submit(vec![readback(1, 2)]);
    bench.submit(vec![]);
    hold.release();
    let mut failed: Vec<BatchId> = vec![];
    loop {
        match bench.event() {
            DeviceEvent::BatchFailed { batch, error, .. } => {
                assert_eq!(error.kind(), ErrorKind::DeviceLost);
                failed.push(batch);
            }
            DeviceEvent::Lost { .. } => break,
            // The launch may have ended before.
            DeviceEvent::BatchFinished { .. } | DeviceEvent::ReadbackDone { .. } => {}
        }
    }
    assert!(failed.contains(&BatchId(2)), "{failed:?}");
    bench.submit(doubled());
    bench.handle.reach.instructions.send(DeviceInstruction::Stop).unwrap();
    bench.handle.threads.drain(..).for_each(|t| t.join().unwrap());
    let events: Vec<DeviceEvent> = bench.events.drain().collect();
    assert!(matches!(events.last(), Some(DeviceEvent::BatchFinished { batch: BatchId(3), .. })), "{events:?}");
}

/// A batch that doubles so many elements of a fresh source.
fn doubled(elements: u32, at: u64) -> DeviceInstruction {
    let n = elements as u64;
    let x = HostBuffer::from_vec(vec![1.5f32; elements as usize]).shared();
    let commands =
        vec![allocate(at, n), upload(at, &x), allocate(at + 1, n), double(elements, at, at + 1), readback(at + 1, n)];
    DeviceInstruction::Submit(Batch { id: BatchId(at), region: RegionId(0), session: SessionId(0), commands })
}

/// Carries an instruction out here; whether that was done.
fn try_inline(bench: &Bench, instruction: DeviceInstruction) -> bool {
    bench.handle.reach.inline.as_ref().expect("the host has one").try_inline(instruction, 10.0).is_ok()
}

#[test]
fn a_moment_of_work_is_done_by_who_asks_for_it() {
    let bench = Bench::plain();
    assert!(try_inline(&bench, doubled(8, 0)));
    let here: Vec<DeviceEvent> = bench.events.drain().collect();
    assert!(
        matches!(&here[..], [
            DeviceEvent::ReadbackDone { data: Ok(data), .. },
            DeviceEvent::BatchFinished { batch: BatchId(0), .. },
        ] if data.as_slice::<f32>().unwrap() == [3.0; 8]),
        "{here:?}"
    );
    assert!(try_inline(&bench, DeviceInstruction::Release(vec![BufferId(0)])));
    // A batch that goes through the mailbox reads memory that an inline batch has written.
    let next = vec![allocate(2, 8), double(8, 1, 2), readback(2, 8)];
    let next = Batch { id: BatchId(2), region: RegionId(0), session: SessionId(0), commands: next };
    assert!(bench.handle.reach.give(DeviceInstruction::Submit(next), 0.0));
    assert_eq!(bench.read().as_slice::<f32>().unwrap(), [6.0; 8]);
    assert_eq!(bench.finished().0, BatchId(2));
}

#[test]
fn what_takes_longer_is_left_to_the_devices_thread() {
    let mut bench = Bench::plain();
    assert!(!try_inline(&bench, doubled(4 << 20, 0)));
    let sorts =
        Program::Library(Library::ArgSort { dtype: DType::F32, before: 1, len: 4, after: 1, descending: false });
    let sort = launch(sorts, 4, &[(true, false), (false, true), (false, true)]);
    let sort = vec![dispatch(sort, &[slot(0, 4), slot(1, 4), slot(2, 4)], None)];
    let sort = Batch { id: BatchId(9), region: RegionId(0), session: SessionId(0), commands: sort };
    assert!(!try_inline(&bench, DeviceInstruction::Submit(sort)));
    let large = bench.submit(vec![allocate(20, 4 << 20)]);
    assert_eq!(bench.finished().0, large);
    assert!(
        !try_inline(&bench, DeviceInstruction::Release(vec![BufferId(20)])),
        "16 MiB are not given back in a moment"
    );
    assert!(!try_inline(&bench, DeviceInstruction::Stop));
    assert!(bench.events.is_empty());
    bench.handle.reach.instructions.send(DeviceInstruction::Stop).unwrap();
    bench.handle.threads.drain(..).for_each(|t| t.join().unwrap());
    assert!(!try_inline(&bench, doubled(100, 0)), "the device has ended");
    assert!(!bench.handle.reach.give(doubled(100, 0), 10.0), "and says so");
}

#[test]
fn nothing_is_done_before_what_came_earlier() {
    let hold = Arc::new(Hold::default());
    let injection =
        Injection { long_launch_us: Some(100.0), hold_first_long: Some(hold.clone()), ..Injection::default() };
    let bench = Bench::injected(injection);
    assert!(bench.handle.reach.give(doubled(16 << 20, 0), 10.0));
    // It uses other memory, but a long launch is running, so the device's thread has to order the work behind it.
    while try_inline(&bench, DeviceInstruction::Release(vec![BufferId(77)])) {
        std::thread::yield_now();
    }
    assert!(bench.handle.reach.give(doubled(100, 4), 10.0));
    assert_eq!(bench.read().len(), 100);
    assert_eq!(bench.finished().0, BatchId(4));
    hold.release();
    assert_eq!(bench.read().len(), 16 << 20);
    assert_eq!(bench.finished().0, BatchId(0));
}

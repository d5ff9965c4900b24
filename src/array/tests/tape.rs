//! Tests of the tape: which records reach the scheduler, in which order, and where the tape is cut.

use super::poll_once;
use crate::array::Session;
use crate::array::fake::FakeRing;
use crate::config::Config;
use crate::contract::region::CutReason;
use crate::contract::tape::Record;
use crate::graph::DType;
use crate::host_buffer::HostBuffer;
use futures::executor::block_on;
use std::sync::atomic::Ordering::Relaxed;

#[test]
fn a_tape_keeps_program_order_with_its_drops_and_demands() {
    let ring = FakeRing::unfolded();
    let s = ring.session("order");
    let x = s.full(2.0f32, [100, 1]);
    let mut y = {
        let doubled = &x * 2.0;
        (doubled + 1).gather::<f32>()
    };
    assert!(ring.story().is_empty(), "nothing is sent before the gather is polled");
    assert!(!poll_once(&mut y));
    assert_eq!(
        ring.story(),
        [
            "open 0",
            "cut 0 Demand",
            "v0.0 = full(2:f32) 100x1 f32",
            "v0.1 = mul(v0.0, 2:f32) 100x1 f32",
            "v0.2 = add(v0.1, 1:f32) 100x1 f32",
            "drop v0.1",
            "demand 0 v0.2 Host",
            "drop v0.2",
        ]
    );
    drop(x);
    drop(y);
    drop(s);
    assert_eq!(ring.story(), ["cancelled 0", "cut 0 Flush", "drop v0.0", "close 0"]);
}

#[test]
fn gathers_that_are_joined_share_a_segment() {
    let ring = FakeRing::unfolded();
    let s = ring.session("join");
    let x = s.rand::<f32>([1000, 1]);
    let (mut a, mut b) = ((&x + 1.0).gather::<f32>(), (&x * 2.0).gather::<f32>());
    assert!(!poll_once(&mut a) && !poll_once(&mut b));
    let segments = ring.segments();
    assert_eq!(segments.len(), 1);
    assert_eq!(segments[0].1.iter().filter(|r| matches!(r, Record::Demanded { .. })).count(), 2);
}

#[test]
fn a_dropped_gather_is_cancelled_on_the_tape_or_behind_it() {
    let ring = FakeRing::unfolded();
    let s = ring.session("cancel");
    let x = s.zeros::<f32>([8, 1]);
    drop(x.gather::<f32>());
    s.flush();
    let story = ring.story();
    assert_eq!(story[3..], ["demand 0 v0.0 Host", "cancel 0"]);
    let mut late = x.gather::<f32>();
    assert!(!poll_once(&mut late));
    drop(late);
    assert_eq!(ring.story().last().unwrap(), "cancelled 1");
    assert_eq!(ring.link.gathers.open_count(), 0);
    let resolved = x.gather::<f32>();
    s.flush();
    ring.deliver(2, HostBuffer::zeroed(DType::F32, 8));
    drop(resolved);
    assert!(!ring.story().iter().any(|l| l.starts_with("cancel")), "what is resolved is not cancelled");
}

#[test]
fn a_tape_is_cut_at_its_limit_on_nodes() {
    let ring = FakeRing::new(Config { fold_elements_max: 0, tape_nodes_max: 10, ..Config::default() });
    let s = ring.session("limit");
    let mut x = s.rand::<f32>([100, 1]);
    for _ in 0..24 {
        x *= 0.5;
    }
    let segments = ring.segments();
    assert_eq!(segments.iter().map(|s| s.0).collect::<Vec<_>>(), [CutReason::NodeLimit; 2]);
    for (_, records) in &segments {
        assert_eq!(records.iter().filter(|r| matches!(r, Record::Op(..))).count(), 10);
    }
    assert_eq!(ring.link.counters.ops_recorded.load(Relaxed), 20);
}

#[test]
fn a_tape_is_cut_when_drops_pin_too_many_bytes() {
    let ring = FakeRing::new(Config { tape_bytes_max: 1 << 20, ..Config::default() });
    let s = ring.session("bytes");
    let acc = s.zeros::<f32>([1000, 1]);
    for _ in 0..3 {
        // Each array has 400 kB, and only the tape keeps it once it was added.
        let x = s.from_vec(vec![1.0f32; 100_000], [1000, 100]).unwrap();
        let _ = &acc + &x;
    }
    let segments = ring.segments();
    assert_eq!(segments.len(), 1);
    assert_eq!(segments[0].0, CutReason::ByteLimit);
    let lazy = s.rand::<f32>([10_000_000, 1]);
    for _ in 0..100 {
        let _ = &lazy * 2.0;
    }
    assert!(ring.segments().is_empty(), "lazy values pin nothing");
}

#[test]
fn drops_alone_are_sent_once_they_hold_enough() {
    let ring = FakeRing::unfolded();
    let s = ring.session("drops");
    let large = s.rand::<f32>([1_000_000, 1]);
    let small = s.rand::<f32>([10, 1]);
    s.flush();
    ring.story();
    drop(small);
    assert!(ring.story().is_empty());
    drop(large);
    assert_eq!(ring.story(), ["cut 0 Drops", "drop v0.1", "drop v0.0"]);
}

/// The number of nodes that arrive, with a limit of 4 for each tape, before the recording thread is blocked.
fn nodes_until_held(ring: &FakeRing) -> usize {
    let mut nodes = 0;
    for _ in 0..10_000 {
        std::thread::sleep(std::time::Duration::from_millis(1));
        nodes += ring.nodes().len();
        if nodes >= 32 {
            break;
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    nodes += ring.nodes().len();
    assert!((32..=40).contains(&nodes), "8 times the limit and one segment, not {nodes}");
    nodes
}

#[test]
fn a_thread_that_asked_for_it_is_held_while_too_much_is_in_the_ring() {
    let ring =
        FakeRing::new(Config { fold_elements_max: 0, tape_nodes_max: 4, hold_recording: true, ..Config::default() });
    let s = ring.session("held");
    let recorder = std::thread::spawn(move || {
        let mut x = s.rand::<f32>([100, 1]);
        for _ in 0..1000 {
            x += 1.0;
        }
    });
    let first = nodes_until_held(&ring);
    ring.gates.lock()[0].leave(first as u64);
    let mut taken = first;
    while !recorder.is_finished() {
        let nodes = ring.nodes().len();
        ring.gates.lock()[0].leave(nodes as u64);
        taken += nodes;
        std::thread::yield_now();
    }
    recorder.join().unwrap();
    assert_eq!(taken + ring.nodes().len(), 1001);
}

#[test]
fn a_thread_that_asked_for_it_is_held_where_it_demands_at_each_step_and_never_waits() {
    let ring =
        FakeRing::new(Config { fold_elements_max: 0, tape_nodes_max: 4, hold_recording: true, ..Config::default() });
    let s = ring.session("held");
    let recorder = std::thread::spawn(move || {
        let mut x = s.rand::<f32>([100, 1]);
        let mut pending = Vec::new();
        for _ in 0..1000 {
            x += 1.0;
            let mut gather = x.gather::<f32>();
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(std::pin::Pin::new(&mut gather).poll(&mut context).is_pending());
            pending.push(gather);
        }
    });
    let mut nodes = nodes_until_held(&ring);
    while !recorder.is_finished() {
        ring.gates.lock()[0].leave(nodes as u64);
        std::thread::yield_now();
        nodes = ring.nodes().len();
    }
    recorder.join().unwrap();
}

#[test]
fn a_thread_that_asked_for_it_is_held_while_too_many_bytes_are_in_the_ring() {
    let ring = FakeRing::new(Config { tape_bytes_max: 1 << 20, hold_recording: true, ..Config::default() });
    let s = ring.session("held");
    let recorder = std::thread::spawn(move || {
        let mut acc = s.zeros::<f32>([1000, 100]);
        let source = |s: &Session| s.from_vec(vec![1.0f32; 100_000], [1000, 100]).unwrap();
        for _ in 0..50 {
            acc = acc * 0.5 + source(&s);
            // The second drop must not forget that the first one reached the limit.
            let (x, y) = (source(&s), source(&s));
            acc += &x + &y;
        }
    });
    let ops = |ring: &FakeRing| ring.nodes().len();
    let mut first = 0;
    for _ in 0..10_000 {
        std::thread::sleep(std::time::Duration::from_millis(1));
        first += ops(&ring);
        if first >= 10 {
            break;
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    first += ops(&ring);
    assert!((10..=40).contains(&first), "two segments or so of seven ops a step, not {first}");
    ring.gates.lock()[0].leave(first as u64);
    while !recorder.is_finished() {
        ring.gates.lock()[0].leave(ops(&ring) as u64);
        std::thread::yield_now();
    }
    recorder.join().unwrap();
}

#[test]
fn a_million_ops_can_be_recorded_before_the_first_gather() {
    let ring = FakeRing::unfolded();
    let server = ring.answer_with_zeros();
    let s = ring.session("million");
    let x = s.rand::<f32>([10, 1]);
    let mut y = s.zeros::<f32>([10, 1]);
    for _ in 0..500_000 {
        y = y * 0.99 + &x;
    }
    assert_eq!(block_on(y.gather::<f32>()).unwrap().len(), 10);
    drop((x, y, s));
    drop(ring);
    // The server's own receiver keeps the channel; the link's sender is gone with the last session.
    server.join().unwrap();
}

#[test]
fn a_tiny_value_enters_the_tape_once_when_a_large_op_needs_it() {
    let ring = FakeRing::new(Config::default());
    let s = ring.session("enter");
    let large = s.rand::<f32>([1000, 3]);
    let row = s.from_slice(&[1.0f32, 2.0, 3.0], [1, 3]).unwrap();
    let one = s.scalar(5.0f32);
    let (_a, _b, _c) = (&large * &row, &large + &row, &large - &one);
    s.flush();
    assert_eq!(
        ring.story()[2..],
        [
            "v0.0 = rand() 1000x3 f32",
            "v0.1 = from() 1x3 f32",
            "v0.2 = mul(v0.0, v0.1) 1000x3 f32",
            "v0.3 = add(v0.0, v0.1) 1000x3 f32",
            "v0.4 = sub(v0.0, 5:f32) 1000x3 f32",
        ]
    );
}

#[test]
fn explaining_cuts_the_tape_and_asks() {
    let ring = FakeRing::unfolded();
    let s = ring.session("explain");
    let x = s.rand::<f32>([4, 1]) + 1.0;
    let text = x.explain();
    assert_eq!(ring.story().last().unwrap(), "explain 0 v0.1");
    let said = crate::contract::messages::scheduler::Delivered::Text("one kernel".into());
    ring.link.gathers.resolve(crate::ids::GatherId(0), Ok(said));
    assert_eq!(block_on(text).unwrap(), "one kernel");
}

/// To run it: `cargo test --release what_recording_costs -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn the_time_that_recording_takes_for_each_op() {
    let ring = FakeRing::unfolded();
    let _server = ring.answer_with_zeros();
    let s = ring.session("cost");
    let x = s.rand::<f32>([1000, 1]);
    for _ in 0..3 {
        let start = std::time::Instant::now();
        let mut y = s.rand::<f32>([1000, 1]);
        let n = 100_000;
        for _ in 0..n / 2 {
            y = y * 0.99 + &x;
        }
        println!("{:.0} ns an op", start.elapsed().as_nanos() as f64 / n as f64);
    }
    let ring = FakeRing::new(Config::default());
    let s = ring.session("fold");
    let one = s.scalar(1.0f64);
    let start = std::time::Instant::now();
    for _ in 0..100_000 {
        block_on((&one + 1.0).gather::<f64>()).unwrap();
    }
    println!("{:.0} ns a folded op and its gather", start.elapsed().as_nanos() as f64 / 1e5);
}

#[test]
fn an_owned_operand_ends_with_its_op_unless_another_handle_exists() {
    let ring = FakeRing::unfolded();
    let s = ring.session("handed over");
    let x = s.full(2.0f32, [100, 1]);
    let kept = &x + 1.0;
    let mut awaited = (&x + 2.0).gather::<f32>();
    let asked = &x + 3.0;
    let gather = asked.gather::<f32>();
    let sum = (kept.clone() * 2.0 + &kept) * asked;
    s.flush();
    assert_eq!(
        ring.story()[2..],
        [
            "v0.0 = full(2:f32) 100x1 f32",
            "v0.1 = add(v0.0, 1:f32) 100x1 f32",
            "v0.2 = add(v0.0, 2:f32) 100x1 f32",
            "demand 0 v0.2 Host",
            "drop v0.2",
            "v0.3 = add(v0.0, 3:f32) 100x1 f32",
            "demand 1 v0.3 Host",
            "v0.4 = mul(v0.1, 2:f32) 100x1 f32",
            "v0.5 = add(v0.4, v0.1) 100x1 f32",
            "drop v0.4",
            "v0.6 = mul(v0.5, v0.3) 100x1 f32",
            "drop v0.5",
            "drop v0.3",
        ]
    );
    // The new value uses the handle of an old one, and keeps nothing of the old value.
    assert_eq!(format!("{sum:?}"), "Array(100x1 f32, lazy, mul)");
    assert!(!poll_once(&mut awaited));
    drop(gather);
    let mut y = sum.clone();
    y += &kept;
    let mut z = y;
    z += 1.0;
    drop(s);
    drop((sum, kept, x));
    z.0.home.flush();
    assert_eq!(
        ring.story(),
        [
            "cancelled 1",
            "cut 0 Flush",
            "v0.7 = add(v0.6, v0.1) 100x1 f32",
            "v0.8 = add(v0.7, 1:f32) 100x1 f32",
            "drop v0.7",
            "drop v0.6",
            "drop v0.1",
            "drop v0.0",
        ]
    );
}

#[test]
fn arrays_of_other_sessions_end_on_their_own_tapes() {
    let ring = FakeRing::unfolded();
    let (a, b) = (ring.session("a"), ring.session("b"));
    let x = a.full(2.0f32, [100, 1]).share().unwrap();
    let y = b.full(3.0f32, [100, 1]);
    let sum = y + x;
    b.flush();
    a.flush();
    assert_eq!(
        ring.story()[4..],
        [
            "cut 1 Flush",
            "v1.0 = full(3:f32) 100x1 f32",
            "v1.1 = add(v1.0, v0.0) 100x1 f32",
            "drop v1.0",
            "cut 0 Flush",
            "drop v0.0",
        ]
    );
    drop(sum);
}

#[test]
fn a_full_tape_also_ends_the_owned_operands_of_its_last_op() {
    let ring = FakeRing::new(Config { fold_elements_max: 0, tape_nodes_max: 3, ..Config::default() });
    let s = ring.session("full");
    let x = s.full(2.0f32, [100, 1]);
    let mut y = (&x + 1.0) * 2.0;
    // The handle is dropped when the tape is full but not cut; the next op cuts it.
    drop(x);
    assert!(ring.story().is_empty());
    y += 1.0;
    let drops: Vec<_> = ring.story().into_iter().filter(|line| line.starts_with("drop")).collect();
    assert_eq!(drops, ["drop v0.1", "drop v0.0"], "no handle holds them when the tape is cut");
    drop(y);
}

//! The users' side against a ring that computes nothing: what reaches the scheduler, in which order, and what
//! never does.

use super::fake::FakeRing;
use super::*;
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::graph::{Arg, DType, Nan, Op, ReduceOp, Scalar};
use crate::host_buffer::HostBuffer;
use crate::scheduler::message::Record;
use crate::scheduler::region::CutReason;
use futures::executor::block_on;
use futures::task::noop_waker;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;

/// Polls once, without caring when it is ready.
fn poll_once<F: Future + Unpin>(future: &mut F) -> bool {
    Pin::new(future).poll(&mut Context::from_waker(&noop_waker())).is_ready()
}

fn folded<T: crate::graph::Element>(array: &Array) -> Vec<T> {
    block_on(array.gather::<T>()).unwrap().into_vec()
}

#[test]
fn handles_and_gathers_can_move_between_threads() {
    fn send_sync<T: Send + Sync + 'static>() {}
    fn send<T: Send + 'static>() {}
    send_sync::<Array>();
    send_sync::<Session>();
    send_sync::<Runtime>();
    send_sync::<HostArray<f32>>();
    send::<Gather<f32>>();
    send::<GatherAll<f32>>();
    send::<Item<u8>>();
}

#[test]
fn a_tape_keeps_program_order_with_its_drops_and_demands() {
    let ring = FakeRing::unfolded();
    let s = ring.session("order");
    let x = s.full(2.0f32, [100, 1]);
    let mut y = {
        let doubled = &x * 2.0;
        (doubled + 1).gather::<f32>()
    };
    assert_eq!(ring.story(), ["open 0"], "nothing is sent before the gather is polled");
    assert!(!poll_once(&mut y));
    assert_eq!(
        ring.story(),
        [
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
fn a_gather_yields_what_the_ring_delivers_and_names_op_and_line_of_failures() {
    let ring = FakeRing::unfolded();
    let s = ring.session("yield");
    let x = s.full(1.5f32, [2, 2]);
    let gather = x.gather::<f32>();
    ring.deliver(0, HostBuffer::from_slice(&[1.0f32, 2.0, 3.0, 4.0]));
    let host = block_on(gather).unwrap();
    assert_eq!((host[[1, 0]], host.shape().dims()), (2.0, &[2, 2][..]));
    let doubled = &x + &x;
    let line = line!() - 1;
    let gather = doubled.gather::<f32>();
    ring.fail(1, Error::new(ErrorKind::DeviceLost, "the device is gone"));
    let error = block_on(gather).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::DeviceLost, Some("add")));
    assert_eq!(error.location().unwrap().line(), line);
    assert!(error.location().unwrap().file().ends_with("tests.rs"));
}

#[test]
fn a_tape_is_cut_at_its_limit_on_nodes() {
    let ring = FakeRing::new(Config { fold_elements_max: 0, tape_nodes_max: 10, ..Config::default() });
    let s = ring.session("limit");
    let mut x = s.rand::<f32>([100, 1]);
    for _ in 0..24 {
        x = x * 0.5;
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
        // 400 kB each, held only by the tape once it is added.
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
    assert_eq!(ring.story(), ["cut 0 ByteLimit", "drop v0.1", "drop v0.0"]);
}

#[test]
fn the_recording_thread_is_held_while_too_much_is_in_the_ring() {
    let ring = FakeRing::new(Config { fold_elements_max: 0, tape_nodes_max: 4, ..Config::default() });
    let s = ring.session("held");
    let recorder = std::thread::spawn(move || {
        let mut x = s.rand::<f32>([100, 1]);
        for _ in 0..1000 {
            x = x + 1.0;
        }
    });
    let mut taken = 0;
    std::thread::sleep(std::time::Duration::from_millis(50));
    let first: usize = ring.nodes().len();
    assert!((32..=40).contains(&first), "8 times the limit and one segment, not {first}");
    ring.gates.lock()[0].leave(first as u64);
    taken += first;
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
fn operators_take_every_ownership_and_numbers_stay_weak() {
    let ring = FakeRing::unfolded();
    let s = ring.session("operators");
    let x = s.full(1.0f32, [4, 1]);
    let i = s.full(1i32, [4, 1]);
    let results = [
        &x + &x,
        x.clone() - &x,
        &x * x.clone(),
        x.clone() / x.clone(),
        &x % 3,
        &x + 1.0,
        1.0 - &x,
        2 * x.clone(),
        &x + 1.0f32,
        &x - 100i64,
        -&x,
        x.max(0.0),
        x.pow(2),
        x.clamp(0, 1.0),
    ];
    for result in &results {
        assert_eq!(result.dtype().unwrap(), DType::F32, "{result:?}");
    }
    for result in [&i + 1, &i * 0.5, 2.0 * &i, i.max(7)] {
        assert_eq!(result.dtype().unwrap(), DType::I32, "{result:?}");
    }
    for result in [x.lt(1.0), !&x, &x & &i, &x | 1, x.eq_to(&i), x.isnan()] {
        assert_eq!(result.dtype().unwrap(), DType::Bool, "{result:?}");
    }
    let mut y = x.clone();
    y += 1.0;
    y *= &x;
    assert_eq!(y.dtype().unwrap(), DType::F32);
    assert_eq!(s.full(true, [2, 1]).sqrt().dtype().unwrap(), DType::F64);
}

#[test]
fn an_integer_beside_a_fraction_computes_in_f64_and_comes_back() {
    let ring = FakeRing::unfolded();
    let s = ring.session("casts");
    let i = s.full(7i32, [4, 1]);
    ring.nodes();
    let _ = &i * 0.5;
    s.flush();
    let nodes = ring.nodes();
    let names: Vec<String> = nodes.iter().map(|n| format!("{} {}", n.op.name(), n.meta.dtype)).collect();
    assert_eq!(names, ["full i32", "cast f64", "mul f64", "cast i32"]);
}

#[test]
fn whole_numbers_that_do_not_fit_an_integer_are_compared_in_f64() {
    let ring = FakeRing::unfolded();
    let s = ring.session("fit");
    let bytes = s.full(200u8, [4, 1]);
    let _ = bytes.lt(300);
    let large = s.full(i64::MAX - 1, [4, 1]);
    let _ = &large + 1.0;
    s.flush();
    let of = |n: &crate::graph::Node| match n.args.last() {
        Some(Arg::Scalar(scalar)) => format!("{} {scalar} {}", n.op.name(), scalar.dtype()),
        _ => n.op.name().to_owned(),
    };
    let nodes: Vec<String> = ring.nodes().iter().map(of).collect();
    assert!(nodes.contains(&"lt 300 f64".to_owned()), "{nodes:?}");
    assert!(nodes.contains(&"add 1 i64".to_owned()), "{nodes:?}");
}

#[test]
fn faults_are_carried_the_first_operands_wins_and_nothing_is_recorded() {
    let ring = FakeRing::unfolded();
    let s = ring.session("faults");
    let (a, b) = (s.rand::<f32>([2, 3]), s.rand::<f32>([4, 3]));
    s.flush();
    ring.story();
    let bad = &a + &b;
    let line = line!() - 1;
    let error = bad.error().unwrap().clone();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Shape, Some("add")));
    assert_eq!(error.location().unwrap().line(), line);
    let other = a.reshape([7, 1]);
    let poisoned = (&a * (&bad - &other)).exp().sum(..);
    assert_eq!(poisoned.error().unwrap().op(), Some("add"), "the first operand's fault wins");
    assert_eq!(block_on(poisoned.gather::<f32>()).unwrap_err().to_string(), error.to_string());
    assert_eq!(a.try_add(&b).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(bad.shape().unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(s.randn::<f32>(bad.shape()).error().unwrap().op(), Some("add"));
    s.flush();
    assert!(ring.story().is_empty());
    assert!(format!("{bad:?}").starts_with("Array(faulty: add: 2x3 and 4x3 do not expand to one shape"));
}

#[test]
fn bad_arguments_are_typed_errors() {
    let ring = FakeRing::new(Config::default());
    let s = ring.session("bad");
    let x = s.zeros::<f32>([3, 3]);
    let kind = |a: &Array| a.error().map(Error::kind);
    assert_eq!(s.from_vec(vec![1.0f32; 5], [2, 3]).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(kind(&s.zeros::<f32>([1 << 20, 1 << 20])), Some(ErrorKind::Shape));
    assert_eq!(kind(&x.take(&s.full(1.0f32, [2, 1]))), Some(ErrorKind::DType));
    assert_eq!(
        x.take(&s.zeros::<f32>([2, 1])).error().unwrap().message(),
        "indices must be integers, and these are f32"
    );
    assert_eq!(kind(&x.take(&s.full(9i32, [2, 1]))), Some(ErrorKind::Index));
    assert_eq!(kind(&x.take(&s.full(-1i64, [2, 1]))), Some(ErrorKind::Index));
    assert_eq!(kind(&x.slice((0..4, 0))), Some(ErrorKind::Index));
    assert_eq!(kind(&x.slice((3, 0))), Some(ErrorKind::Index));
    assert_eq!(kind(&(&s.full(1i32, [2, 1]) + &s.full(1u8, [2, 1]))), Some(ErrorKind::DType));
    assert_eq!(kind(&x.matmul(&s.zeros::<f32>([2, 3]))), Some(ErrorKind::Shape));
    assert_eq!(kind(&s.rand::<i32>([2, 2])), Some(ErrorKind::DType));
    assert_eq!(kind(&s.randi::<i32>(5..5, [2, 2])), Some(ErrorKind::Argument));
    assert_eq!(kind(&s.arange(0.0, 1.0, 0.0)), Some(ErrorKind::Argument));
    assert_eq!(cat(0, &[]).unwrap_err().kind(), ErrorKind::Argument);
    assert_eq!(block_on(x.gather::<f64>()).unwrap_err().kind(), ErrorKind::DType);
    assert_eq!(block_on(x.item::<f32>()).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(kind(&s.zeros::<f32>([0, 1]).argmax(0)), Some(ErrorKind::Argument));
}

#[test]
fn tiny_host_values_fold_and_their_gathers_are_ready() {
    let ring = FakeRing::new(Config::default());
    let s = ring.session("fold");
    let table = s.from_row_major(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap();
    let centred = &table - table.mean(1);
    assert_eq!(folded::<f32>(&centred), [-1.0, -1.0, 0.0, 0.0, 1.0, 1.0]);
    assert_eq!(folded::<f32>(&table.slice((1, step(.., -1)))), [6.0, 5.0, 4.0]);
    assert_eq!(folded::<f32>(&table.t().slice((0..2,))), [1.0, 2.0, 4.0, 5.0]);
    assert_eq!(folded::<f32>(&table.slice(1..3)), [4.0, 2.0], "a lone range counts elements");
    assert_eq!(table.slice(step(.., -2)).shape().unwrap().dims(), [3, 1]);
    assert_eq!(block_on(table.sum(..).item::<f32>()).unwrap(), 21.0);
    assert_eq!(folded::<f64>(&s.linspace(0.0, 1.0, 3)), [0.0, 0.5, 1.0]);
    assert_eq!(folded::<i32>(&s.arange(1, 8, 3)), [1, 4, 7]);
    assert_eq!(folded::<u8>(&s.eye::<u8>(2)), [1, 0, 0, 1]);
    assert_eq!(folded::<f32>(&cat(0, &[&table, &table.slice((0,))]).unwrap().slice((.., 0))), [1.0, 4.0, 1.0]);
    let (x, mask) = (s.from_slice(&[3, 1, 2], 3).unwrap(), s.from_slice(&[true, false, true], 3).unwrap());
    assert_eq!(folded::<i32>(&mask.select(&x, -1)), [3, -1, 2]);
    assert_eq!(folded::<i32>(&x.take(&s.from_slice(&[2u32, 0], 2).unwrap())), [2, 3]);
    assert_eq!(ring.story(), ["open 0"], "nothing travels");
    assert!(ring.link.counters.ops_folded.load(Relaxed) > 10);
    assert_eq!(format!("{centred:?}"), "Array(2x3 f32, host, sub)");
}

#[test]
fn folding_can_be_turned_off() {
    let ring = FakeRing::unfolded();
    let s = ring.session("unfolded");
    let x = s.from_slice(&[1.0f32], 1).unwrap() + 1.0;
    assert_eq!(x.state(), ArrayState::Lazy);
    assert_eq!(format!("{x:?}"), "Array(1x1 f32, lazy, add)");
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
fn empty_arrays_need_no_ring_and_reduce_to_identities() {
    let ring = FakeRing::unfolded();
    let s = ring.session("empty");
    let e = s.zeros::<f32>([0, 3]);
    assert_eq!(folded::<f32>(&(&e + 1.0)), [] as [f32; 0]);
    assert_eq!((&e * s.rand::<f32>([1, 3])).shape().unwrap().dims(), [0, 3]);
    assert_eq!(e.t().matmul(&s.rand::<f32>([0, 2])).shape().unwrap().dims(), [3, 2]);
    assert_eq!(e.cumsum(0).shape().unwrap().dims(), [0, 3]);
    assert_eq!(e.sort(0).0.shape().unwrap().dims(), [0, 3]);
    assert_eq!(e.repmat(&[2, 2]).shape().unwrap().dims(), [0, 6]);
    assert_eq!(e.diff(0).shape().unwrap().dims(), [0, 3]);
    assert_eq!(s.zeros::<f32>([1, 1]).diff(0).shape().unwrap().dims(), [0, 1]);
    s.flush();
    ring.nodes();
    let (_sum, _prod, _all) = (e.sum(0), e.prod(0), e.all(0));
    s.flush();
    let fills: Vec<f64> = ring
        .nodes()
        .iter()
        .map(|n| match n.args[0] {
            Arg::Scalar(s) => s.as_f64(),
            Arg::Value(_) => f64::NAN,
        })
        .collect();
    assert_eq!(fills, [0.0, 1.0, 1.0]);
    let joined = cat(0, &[&e, &s.rand::<f32>([2, 3]), &e]).unwrap();
    assert_eq!(joined.shape().unwrap().dims(), [2, 3]);
}

#[test]
fn shapes_and_dtypes_of_reductions_follow_the_table() {
    let ring = FakeRing::unfolded();
    let s = ring.session("reduce");
    let (f, i, b) = (s.rand::<f32>([4, 3, 2]), s.full(1i32, [4, 3]), s.full(true, [4, 3]));
    let of = |a: &Array| (a.shape().unwrap().dims().to_vec(), a.dtype().unwrap());
    assert_eq!(of(&f.sum(1)), (vec![4, 1, 2], DType::F32));
    assert_eq!(of(&f.mean([0, 2])), (vec![1, 3], DType::F32));
    assert_eq!(of(&f.max_over(..)), (vec![1, 1], DType::F32));
    assert_eq!(of(&f.argmin(())), (vec![1, 3, 2], DType::U32));
    assert_eq!(of(&i.sum(0)), (vec![1, 3], DType::F64));
    assert_eq!(of(&i.sum_native(0)), (vec![1, 3], DType::I32));
    assert_eq!(of(&i.min_over(0)), (vec![1, 3], DType::I32));
    assert_eq!(of(&b.mean(1)), (vec![4, 1], DType::F64));
    assert_eq!(of(&b.any(..)), (vec![1, 1], DType::Bool));
    assert_eq!(of(&b.count_nonzero(0)), (vec![1, 3], DType::U32));
    assert_eq!(of(&f.dot(&f, 0)), (vec![1, 3, 2], DType::F32));
    assert_eq!(of(&f.cumsum(1)), (vec![4, 3, 2], DType::F32));
    assert_eq!(of(&i.cumsum(1)), (vec![4, 3], DType::I32));
    assert_eq!(of(&f.diff(0)), (vec![3, 3, 2], DType::F32));
    assert_eq!(of(&f.reduce(ReduceOp::Max, 0, Nan::Include)), (vec![1, 3, 2], DType::F32));
}

#[test]
fn a_reduction_over_one_element_is_no_reduction() {
    let ring = FakeRing::unfolded();
    let s = ring.session("one");
    let x = s.rand::<f32>([4, 3]);
    let kept = [x.sum(2), x.sum(7), x.mean(16), x.max_over(usize::MAX), x.var(5), x.any(3)];
    assert_eq!(kept[0].shape().unwrap().dims(), [4, 3]);
    s.flush();
    assert!(ring.nodes().iter().all(|n| !matches!(n.op, Op::Reduce { .. })));
    drop(kept);
    let ring = FakeRing::new(Config::default());
    let y = ring.session("values").from_slice(&[f64::NAN, 2.0], [1, 2]).unwrap();
    assert_eq!(folded::<f64>(&y.nan_sum(0)), [0.0, 2.0]);
    assert!(folded::<f64>(&y.sum(0))[0].is_nan());
    assert_eq!(folded::<f64>(&y.var(0))[1], 0.0);
    assert_eq!(folded::<u32>(&y.argmax(0)), [0, 0]);
    assert_eq!(folded::<bool>(&y.any(0)), [true, true]);
}

#[test]
fn arrays_of_another_session_must_be_shared_first() {
    let ring = FakeRing::unfolded();
    let (a, b) = (ring.session("a"), ring.session("b"));
    let (x, y) = (a.rand::<f32>([9, 1]), b.rand::<f32>([9, 1]));
    let mixed = &x + &y;
    assert_eq!(mixed.error().unwrap().kind(), ErrorKind::Ownership);
    drop(mixed);
    let shared = x.share().unwrap();
    ring.story();
    let sum = &shared + &y;
    assert!(sum.error().is_none());
    drop((x, shared, a));
    b.flush();
    // `a` lives on in the tape of `b` until that is cut; its drop reaches the scheduler behind the use.
    assert_eq!(
        ring.story(),
        [
            "cut 1 Flush",
            "v1.0 = rand() 9x1 f32",
            "v1.1 = add(v0.0, v1.0) 9x1 f32",
            "cut 0 Flush",
            "drop v0.0",
            "close 0",
        ]
    );
    let other = FakeRing::unfolded();
    let far = other.session("far").rand::<f32>([9, 1]);
    far.share().unwrap();
    assert_eq!((&sum + &far).error().unwrap().message(), "arrays of two runtimes do not mix");
}

#[test]
fn an_evaluated_array_may_be_used_by_another_session() {
    let ring = FakeRing::unfolded();
    let (a, b) = (ring.session("a"), ring.session("b"));
    let (x, y) = (a.rand::<f32>([9, 1]), b.rand::<f32>([9, 1]));
    let eval = x.eval();
    assert_eq!(x.state(), ArrayState::Demanded);
    ring.link.gathers.resolve(crate::ids::GatherId(0), Ok(crate::scheduler::message::Delivered::Device));
    block_on(eval).unwrap();
    assert_eq!(x.state(), ArrayState::Evaluated);
    assert!((&y + &x).error().is_none());
    assert!((&x + &y).error().is_none());
}

#[test]
fn two_sessions_do_not_keep_each_other_alive() {
    let ring = FakeRing::unfolded();
    let (a, b) = (ring.session("a"), ring.session("b"));
    let (x, y) = (a.rand::<f32>([9, 1]).share().unwrap(), b.rand::<f32>([9, 1]).share().unwrap());
    let (p, q) = (a.rand::<f32>([9, 1]), b.rand::<f32>([9, 1]));
    drop((&p + &y, &q + &x));
    drop((x, y, p, q, a, b));
    let story = ring.story();
    assert!(story.contains(&"close 0".to_owned()) && story.contains(&"close 1".to_owned()), "{story:?}");
}

#[test]
fn the_same_seed_gives_the_same_keys_and_sessions_differ_otherwise() {
    let ring = FakeRing::unfolded();
    let key = |s: &Session| {
        let _ = (s.rand::<f32>([9, 1]), s.randn::<f32>([9, 1]));
        s.flush();
        ring.nodes()
            .into_iter()
            .filter_map(|n| match n.op {
                Op::Random { key, .. } => Some((key.seed, key.stream, key.op)),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    let open = |name: &str| SessionBuilder::new(ring.link.clone(), name);
    assert_eq!(key(&open("a").seed(7).open()), [(7, 0, 0), (7, 0, 1)]);
    assert_eq!(key(&open("b").seed(7).open()), [(7, 0, 0), (7, 0, 1)]);
    assert_ne!(open("c").open().seed(), open("d").open().seed());
    let again = FakeRing::unfolded();
    assert_eq!(again.session("x").seed(), FakeRing::unfolded().session("y").seed());
}

#[test]
fn blocking_inside_of_an_async_context_is_a_typed_error() {
    let ring = FakeRing::new(Config::default());
    let s = ring.session("block");
    let x = s.ones::<f32>([2, 2]);
    assert_eq!(x.gather_blocking::<f32>().unwrap().as_slice(), [1.0; 4]);
    let inside = || x.gather_blocking::<f32>().unwrap_err().kind();
    assert_eq!(block_on(async { inside() }), ErrorKind::WouldBlock);
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(tokio.block_on(async { inside() }), ErrorKind::WouldBlock);
    assert_eq!(
        tokio.block_on(async { Runtime::builder().device("host").start_blocking().unwrap_err().kind() }),
        ErrorKind::WouldBlock
    );
    assert_eq!(x.gather_blocking::<f32>().unwrap().len(), 4, "outside again");
}

#[tokio::test]
async fn a_current_thread_executor_drives_joined_gathers() {
    let ring = FakeRing::unfolded();
    let server = ring.answer_with_zeros();
    let s = ring.session("tokio");
    let x = s.rand::<f32>([100, 1]);
    let head = x.slice((0..10, 0)).gather::<f32>();
    let mean = x.mean(..).item::<f32>();
    let (head, mean) = tokio::try_join!(head, mean).unwrap();
    assert_eq!((head.len(), mean), (10, 0.0));
    let any = (&x).into_future().await.unwrap();
    assert_eq!((any.dtype(), any.shape().dims()), (DType::F32, &[100, 1][..]));
    let reused = x.gather_into(Vec::<f32>::with_capacity(100)).await.unwrap();
    assert_eq!(reused.len(), 100);
    assert_eq!(x.gather_view::<f32>().await.unwrap().len(), 100);
    assert_eq!(x.gather_as::<f64>().await.unwrap().len(), 100);
    s.ready().await;
    drop((x, s, ring));
    server.join().unwrap();
}

#[tokio::test]
async fn a_stream_yields_each_gather_with_its_place() {
    use futures::StreamExt;
    let ring = FakeRing::unfolded();
    let s = ring.session("stream");
    let arrays: Vec<Array> = (0..3).map(|i| s.full(i as f32, [2, 1])).collect();
    let mut stream = gather_all::<f32>(&arrays);
    for gather in [2, 0, 1] {
        ring.deliver(gather, HostBuffer::from_slice(&[gather as f32; 2]));
    }
    let mut seen = Vec::new();
    while let Some((i, result)) = stream.next().await {
        assert_eq!(result.unwrap()[0], i as f32);
        seen.push(i);
    }
    seen.sort();
    assert_eq!(seen, [0, 1, 2]);
}

#[tokio::test]
async fn nonzero_awaits_its_count() {
    let ring = FakeRing::unfolded();
    let s = ring.session("nonzero");
    let x = s.rand::<f32>([10, 10]);
    let found = x.nonzero();
    drop(x);
    s.flush();
    ring.deliver(0, HostBuffer::from_slice(&[7u32]));
    let found = found.await.unwrap();
    assert_eq!((found.shape().unwrap().dims(), found.dtype().unwrap()), (&[7, 1][..], DType::U32));
    s.flush();
    let names: Vec<&str> = ring.nodes().iter().map(|n| n.op.name()).collect();
    assert_eq!(names, ["rand", "ne", "reshape", "cast", "cumsum", "slice", "nonzero"]);
    let tiny = FakeRing::new(Config::default());
    let s = tiny.session("tiny");
    let none = s.zeros::<f32>([3, 1]).nonzero().await.unwrap();
    assert_eq!(none.shape().unwrap().dims(), [0, 1]);
}

#[test]
fn assignments_take_the_bases_dtype_and_check_their_shapes() {
    let ring = FakeRing::unfolded();
    let s = ring.session("assign");
    let x = s.rand::<f32>([4, 3]);
    let y = x.assign((1..3, 0), 5);
    assert_eq!((y.dtype().unwrap(), y.shape().unwrap().dims()), (DType::F32, &[4, 3][..]));
    let index = s.from_slice(&[0u32, 0, 2], 3).unwrap();
    assert!(x.assign_at(&index, 1.0).error().is_none());
    assert!(x.assign_dim(1, &index, &s.rand::<f32>([4, 3])).error().is_none());
    assert_eq!(x.assign((1..3, 0), &s.rand::<f32>([3, 1])).error().unwrap().kind(), ErrorKind::Shape);
    assert_eq!(x.assign_at(&index, &s.rand::<f32>([2, 1])).error().unwrap().kind(), ErrorKind::Shape);
    s.flush();
    for node in ring.nodes() {
        let values = node.args.iter().all(|a| matches!(a, Arg::Value(_)));
        assert!(values || !matches!(node.op, Op::AssignSlice(_) | Op::AssignIndex { .. }), "RECORD-3");
    }
}

#[test]
fn a_closed_session_refuses_and_a_gone_runtime_answers() {
    let ring = FakeRing::unfolded();
    let s = ring.session("closed");
    let x = s.rand::<f32>([4, 1]);
    s.close();
    assert_eq!((&x + 1.0).error().unwrap().kind(), ErrorKind::Cancelled);
    assert_eq!(block_on(x.gather::<f32>()).unwrap_err().kind(), ErrorKind::Cancelled);
    let s = ring.session("open");
    let y = s.rand::<f32>([4, 1]);
    let before = y.gather::<f32>();
    ring.link.gathers.close(Error::new(ErrorKind::Shutdown, "the runtime is gone"));
    let after = y.gather::<f32>();
    for gather in [before, after] {
        let error = block_on(gather).unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::Shutdown, Some("rand")));
        assert!(error.location().is_some());
    }
}

#[test]
fn an_upload_hands_its_memory_over_without_a_copy() {
    let ring = FakeRing::unfolded();
    let s = ring.session("upload");
    let mut upload = s.upload::<f32>([100, 1]).unwrap();
    upload.write(&[1.0; 60]).unwrap();
    assert_eq!(upload.write(&[1.0; 60]).unwrap_err().kind(), ErrorKind::Shape);
    upload.as_mut_slice()[99] = 9.0;
    let memory = upload.as_mut_slice().as_ptr();
    let x = upload.finish();
    s.flush();
    let nodes = ring.nodes();
    let Op::Source(data) = &nodes[0].op else { panic!("a source") };
    let data = data.as_slice::<f32>().unwrap();
    assert_eq!((data.as_ptr(), data[59], data[60], data[99]), (memory, 1.0, 0.0, 9.0));
    drop(x);
}

#[test]
fn explaining_cuts_the_tape_and_asks() {
    let ring = FakeRing::unfolded();
    let s = ring.session("explain");
    let x = s.rand::<f32>([4, 1]) + 1.0;
    let text = x.explain();
    assert_eq!(ring.story().last().unwrap(), "explain 0 v0.1");
    let said = crate::scheduler::message::Delivered::Text("one kernel".into());
    ring.link.gathers.resolve(crate::ids::GatherId(0), Ok(said));
    assert_eq!(block_on(text).unwrap(), "one kernel");
}

#[test]
fn fills_and_points_carry_their_numbers_as_parameters() {
    let ring = FakeRing::unfolded();
    let s = ring.session("parameters");
    let _ = (s.full(3.0f64, [4, 1]), s.linspace(0.0f32, 1.0, 5), s.arange(0i32, 10, 2), s.randi::<i32>(-2..3, [9, 1]));
    s.flush();
    let args: Vec<Vec<String>> = ring
        .nodes()
        .iter()
        .map(|n| {
            n.args
                .iter()
                .map(|a| match a {
                    Arg::Scalar(s) => format!("{s} {}", s.dtype()),
                    Arg::Value(v) => v.to_string(),
                })
                .collect()
        })
        .collect();
    assert_eq!(args[0], ["3 f64"]);
    assert_eq!(args[1], ["0 f32", "1 f32"]);
    assert_eq!(args[2], ["0 i32", "2 i32"]);
    assert_eq!(args[3], ["-2 i32", "5 u32"]);
    assert!(matches!(Scalar::U32(5), Scalar::U32(5)));
}

/// Run by hand: `cargo test --release recording_costs -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn recording_costs_at_most_200_ns_an_op() {
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

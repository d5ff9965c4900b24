//! Tests of recording while too much work waits.

use super::poll_once;
use crate::array::fake::FakeRing;
use crate::array::{Array, Session};
use crate::config::Config;
use crate::error::ErrorKind;
use crate::threads;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

fn ring(config: Config) -> FakeRing {
    FakeRing::new(Config { fold_elements_max: 0, tape_nodes_max: 10, ..config })
}

/// The number of ops that are recorded until one is refused; at most a thousand are tried.
fn until_refused(x: &Array) -> usize {
    let kind = |y: &Array| y.error().map(|error| error.kind());
    let refused = (0..1000).position(|_| match kind(&(x + 1.0)) {
        None => false,
        Some(ErrorKind::Overloaded) => true,
        Some(other) => panic!("{other:?}"),
    });
    refused.unwrap_or(1000)
}

fn start(s: &Session) -> Array {
    s.rand::<f32>([100, 1])
}

#[test]
fn beyond_its_bound_a_session_records_nothing_and_its_arrays_say_why() {
    let ring = ring(Config { session_ops_pending_max: Some(35), ..Config::default() });
    let (s, other) = (ring.session("much"), ring.session("other"));
    let x = start(&s);
    assert_eq!(until_refused(&x), 34, "with the first op it has 35");
    // The results of ops on a refused array carry the same fault, whatever else is recorded.
    let refused = &x * 2.0;
    assert_eq!((&refused + &x).error().unwrap().kind(), ErrorKind::Overloaded);
    assert!(refused.error().unwrap().to_string().contains("Session::ready"), "{}", refused.error().unwrap());
    assert!(poll_once(&mut refused.gather::<f32>()), "its gather is ready at once");
    // The other session has its own room.
    assert_eq!(until_refused(&start(&other)), 34);
    assert_eq!(ring.nodes().len(), 60, "the last five of each are on their tapes");
    // Ops that have run make room.
    ring.gates.lock()[0].leave(12);
    assert_eq!(until_refused(&x), 12);
    assert!((&x + 1.0).error().is_some() && (&start(&other) + 1.0).error().is_some());
}

#[test]
fn all_sessions_together_have_a_bound() {
    let ring = ring(Config { ops_pending_max: Some(100), session_ops_pending_max: Some(100), ..Config::default() });
    let sessions: Vec<Session> = (0..20).map(|n| ring.session(&format!("s{n}"))).collect();
    let xs: Vec<Array> = sessions.iter().map(start).collect();
    let mut recorded = 0;
    for x in &xs {
        recorded += until_refused(x);
    }
    // Ops on tapes that were not sent count for their own session alone.
    assert!((100..=300).contains(&recorded), "{recorded}");
    assert!((100..=300).contains(&ring.link.total.waiting().0), "{:?}", ring.link.total.waiting());
    // Sessions that end take their waiting work with them.
    drop((xs, sessions));
    ring.gates.lock().clear();
    assert_eq!(ring.link.total.waiting(), (0, 0));
    assert_eq!(until_refused(&start(&ring.session("next"))), 99);
}

#[test]
fn a_session_that_has_begun_records_on_where_a_new_one_is_refused() {
    let ring = ring(Config { ops_pending_max: Some(80), session_ops_pending_max: Some(80), ..Config::default() });
    let (first, begun) = (ring.session("first"), ring.session("begun"));
    let (x, y) = (start(&first), start(&begun));
    // 70 of 80 ops wait: the rest of the room is for sessions that have begun.
    let waits = (0..69).fold(x, |x, _| x + 1.0);
    assert!(!poll_once(&mut waits.gather::<f32>()));
    assert_eq!(ring.link.total.waiting().0, 70);
    let newcomer = start(&ring.session("new"));
    assert_eq!(newcomer.error().map(|error| error.kind()), Some(ErrorKind::Overloaded));
    assert_eq!(until_refused(&y), 9, "with the first op these are ten");
    // Once an eighth is free, other sessions may begin.
    let waiting = ring.link.total.waiting().0;
    ring.gates.lock()[0].leave(waiting - 70);
    assert!(start(&ring.session("next")).error().is_some());
    ring.gates.lock()[0].leave(1);
    assert!(start(&ring.session("next")).error().is_none());
}

#[test]
fn data_that_the_program_has_let_go_of_counts_until_the_work_that_reads_it_has_run() {
    let ring = ring(Config { session_bytes_pending_max: Some(1 << 20), ..Config::default() });
    let s = ring.session("bytes");
    let source = || s.from_vec(vec![1.0f32; 100_000], [100_000, 1]).unwrap();
    let held = source();
    let mut sums = Vec::new();
    let count = (0..100).position(|_| {
        let sum = (source() + &held).sum(..);
        let refused = sum.error().is_some_and(|error| error.kind() == ErrorKind::Overloaded);
        sums.push(sum);
        refused
    });
    // Each array has 400 kB, and data that the program still holds does not count. Three arrays reach the limit, and
    // about one more tape is recorded before that is noticed.
    assert!(count.is_some_and(|count| (3..=10).contains(&count)), "{count:?}");
    ring.gates.lock()[0].leave(ring.nodes().len() as u64);
    assert!((source() + &held).error().is_none());
}

#[test]
fn a_future_that_awaits_room_is_woken_when_there_is_some() {
    let ring = ring(Config { session_ops_pending_max: Some(30), ..Config::default() });
    let s = ring.session("patient");
    let x = start(&s);
    assert!(poll_once(&mut Box::pin(s.ready())));
    until_refused(&x);
    let mut ready = Box::pin(s.ready());
    assert!(!poll_once(&mut ready));
    ring.gates.lock()[0].leave(5);
    assert!(!poll_once(&mut ready), "a full tape does not fit");
    ring.gates.lock()[0].leave(5);
    futures::executor::block_on(ready);
    assert_eq!(until_refused(&x), 10);
    // A tape that is full by itself is sent, and waits, too.
    let tight = ring_of_one();
    let s = tight.session("one");
    let x = start(&s);
    assert!(!poll_once(&mut Box::pin(s.ready())) && (&x + 1.0).error().is_some());
    tight.gates.lock()[0].leave(1);
    futures::executor::block_on(s.ready());
    assert!((&x + 1.0).error().is_none());
}

fn ring_of_one() -> FakeRing {
    ring(Config { ops_pending_max: Some(1), ..Config::default() })
}

#[test]
fn a_wait_for_room_ends_with_its_session_and_with_its_gate() {
    let ring = ring_of_one();
    let s = ring.session("ends");
    let _x = start(&s);
    let mut ready = Box::pin(s.ready());
    assert!(!poll_once(&mut ready));
    ring.gates.lock()[0].close();
    futures::executor::block_on(ready);
}

#[test]
fn async_code_is_refused_where_threads_are_held() {
    let ring = ring(Config { hold_recording: true, session_ops_pending_max: Some(20), ..Config::default() });
    let s = ring.session("held");
    let x = start(&s);
    let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(executor.block_on(async { until_refused(&x) }), 19);
    // A thread of the program's own is blocked until there is room.
    let goes_on = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!((&x + 1.0).error().is_none());
            goes_on.store(true, SeqCst);
        });
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!goes_on.load(SeqCst));
        ring.gates.lock()[0].leave(1);
    });
    assert!(goes_on.load(SeqCst));
}

#[test]
fn unheld_recording_is_not_refused_and_a_wait_becomes_due() {
    let ring = ring(Config { session_ops_pending_max: Some(30), ..Config::default() });
    let s = ring.session("script");
    let x = start(&s);
    threads::unheld(|| {
        assert_eq!(until_refused(&x), 1000);
        assert!(threads::is_wait_due() && threads::take_wait() && !threads::is_wait_due());
    });
    assert!(!poll_once(&mut Box::pin(s.caught_up())));
    ring.gates.lock()[0].leave(1000);
    assert!(poll_once(&mut Box::pin(s.caught_up())));
}

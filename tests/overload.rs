//! More requests than a device can answer: a request that is dropped before its work begins is never planned, and its
//! memory is freed at once, whatever the device does. The tests look at no clock: they hold the device, and read
//! counters.

mod common;

use common::{until, wait};
use futures::FutureExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tidemill::testing::{Hold, Injection};
use tidemill::{Array, ErrorKind, Gather, Runtime, RuntimeBuilder, Session};

/// The data of a request. Its drop is counted.
struct Lent(Vec<f32>, Arc<AtomicUsize>);

impl AsRef<[f32]> for Lent {
    fn as_ref(&self) -> &[f32] {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.1.fetch_add(1, SeqCst);
    }
}

/// A runtime whose device holds its first batch, the hold, and that batch's gather.
fn held(set: impl Fn(RuntimeBuilder) -> RuntimeBuilder) -> (Runtime, Arc<Hold>, Gather<f32>) {
    let hold = Arc::new(Hold::default());
    let injection = Injection { hold_first_batch: Some(hold.clone()), ..Injection::default() };
    let rt = set(Runtime::builder().device("host").injection(injection)).start_blocking().unwrap();
    let mut first = rt.session("first").open().full(1.0f32, [1000, 1]).exp().gather::<f32>();
    assert!((&mut first).now_or_never().is_none());
    until("the first batch is placed", || rt.stats().kernels == 1);
    (rt, hold, first)
}

/// A request in progress: its gather, its data and its session, in the order in which a dropped future drops them.
type Request = (Gather<f32>, Array, Session);

fn request(rt: &Runtime, ended: &Arc<AtomicUsize>) -> Request {
    let s = rt.session("request").open();
    let x = s.from_shared::<f32>(Lent(vec![1.0; 1000], ended.clone()), [1000, 1]).unwrap();
    let mut gather = (&x * 2.0).sum(..).gather::<f32>();
    assert!((&mut gather).now_or_never().is_none());
    (gather, x, s)
}

#[test]
fn requests_that_are_given_up_while_they_wait_are_never_planned_and_their_data_is_freed() {
    let (rt, hold, first) = held(|b| b);
    let ended = Arc::new(AtomicUsize::new(0));
    let requests: Vec<Request> = (0..3000).map(|_| request(&rt, &ended)).collect();
    assert_eq!(ended.load(SeqCst), 0);
    drop(requests);
    // The device does nothing meanwhile. Only batches that it was sent keep their data.
    until("the data is freed", || ended.load(SeqCst) >= 2950);
    let regions = rt.stats().regions;
    assert!(regions < 1000, "{regions} of 3001 were planned or would have been");
    hold.release();
    wait(first).unwrap();
    let (gather, ..) = request(&rt, &ended);
    assert_eq!(wait(gather).unwrap()[0], 2000.0);
    let stats = rt.stats();
    assert!(stats.kernels < 40, "{}", stats.kernels);
    // The device may hold the data of its latest batches until it gets others.
    until("all data is freed", || ended.load(SeqCst) >= 2990);
}

#[test]
fn those_that_are_still_awaited_are_answered_however_many_others_give_up() {
    let (rt, hold, first) = held(|b| b);
    let ended = Arc::new(AtomicUsize::new(0));
    let mut kept = Vec::new();
    for n in 0..3000 {
        let request = request(&rt, &ended);
        if n % 10 == 3 {
            kept.push(request);
        }
    }
    hold.release();
    wait(first).unwrap();
    for (gather, ..) in kept {
        assert_eq!(wait(gather).unwrap()[0], 2000.0);
    }
    // The pool may hold data that was read in place until it reuses the entry.
    until("the data of those that were given up is freed", || ended.load(SeqCst) >= 2700);
}

#[test]
fn a_session_that_is_closed_fails_what_waits_at_once() {
    let (rt, hold, first) = held(|b| b);
    let ended = Arc::new(AtomicUsize::new(0));
    let mut requests: Vec<Request> = (0..2000).map(|_| request(&rt, &ended)).collect();
    for (_, _, session) in &requests {
        session.close();
    }
    // The last of the requests are still in the ring's backlog.
    for (gather, ..) in requests.drain(1000..) {
        assert_eq!(wait(gather).unwrap_err().kind(), ErrorKind::Cancelled);
    }
    hold.release();
    wait(first).unwrap();
    for (gather, ..) in requests {
        let _ = wait(gather);
    }
}

#[test]
fn requests_that_read_what_another_session_shares_are_answered_or_given_up_like_others() {
    let (rt, hold, first) = held(|b| b);
    let model = rt.session("model").open();
    let weights = model.full(0.0f32, [1000, 1]).share().unwrap();
    let mut kept = Vec::new();
    for n in 0..2000 {
        let s = rt.session("request").open();
        let mut gather = (s.full(n as f32, [1000, 1]) + &weights).sum(..).gather::<f32>();
        assert!((&mut gather).now_or_never().is_none());
        if n % 100 == 7 {
            kept.push((n, gather, s));
        }
    }
    // The drop of the weights reaches the scheduler after the requests that read them, which are waiting.
    drop(weights);
    drop(model);
    hold.release();
    wait(first).unwrap();
    for (n, gather, _) in kept {
        assert_eq!(wait(gather).unwrap()[0], n as f32 * 1000.0);
    }
}

#[tokio::test]
async fn async_code_is_refused_beyond_the_bound_and_awaits_room() {
    let builder = |b: RuntimeBuilder| b.ops_pending_max(20_000).tape_nodes_max(1000).fold_elements_max(0);
    let (rt, hold, first) = tokio::task::spawn_blocking(move || held(builder)).await.unwrap();
    let s = rt.session("loop").open();
    let mut x = s.rand::<f32>([100, 1]);
    let before = x.clone();
    let mut recorded = 0;
    while x.error().is_none() && recorded < 100_000 {
        x *= 0.5;
        recorded += 1;
    }
    // A session may have half of the total limit on recorded ops.
    assert!((9_000..=11_000).contains(&recorded), "{recorded}");
    assert_eq!(x.error().unwrap().kind(), ErrorKind::Overloaded);
    assert_eq!(x.sum(..).item::<f32>().await.unwrap_err().kind(), ErrorKind::Overloaded);
    hold.release();
    first.await.unwrap();
    s.ready().await;
    let again = (before * 0.0 + 1.0).sum(..).item::<f32>().await;
    assert_eq!(again.unwrap(), 100.0);
    // A program that awaits room can record any number of ops.
    let mut y = s.full(1.0f32, [100, 1]);
    for n in 0..100_000 {
        if n % 500 == 0 {
            s.ready().await;
        }
        y += 1.0;
    }
    assert_eq!(y.max_over(..).item::<f32>().await.unwrap(), 100_001.0);
}

#[tokio::test]
async fn a_long_loop_is_recorded_far_ahead_of_the_devices_by_default() {
    let rt = Runtime::builder().device("host").start().await.unwrap();
    let s = rt.session("loop").open();
    let mut x = s.full(0.0f32, [100, 1]);
    for _ in 0..if cfg!(debug_assertions) { 200_000 } else { 1_000_000 } {
        x += 1.0;
    }
    assert!(x.max_over(..).item::<f32>().await.unwrap() >= 200_000.0);
}

#[test]
fn a_shutdown_answers_what_waits_before_the_scheduler() {
    let (rt, hold, first) = held(|b| b);
    let ended = Arc::new(AtomicUsize::new(0));
    let requests: Vec<Request> = (0..1500).map(|_| request(&rt, &ended)).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| hold.release());
        rt.shutdown_blocking().unwrap();
    });
    wait(first).unwrap();
    for (gather, ..) in requests {
        assert_eq!(wait(gather).unwrap()[0], 2000.0);
    }
}

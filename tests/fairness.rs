//! Fairness: the work of one session, however large, does not delay the others. The tests look at no clock: they hold
//! devices, and read counters and the order of events.

mod common;

use common::{counted, wait};
use std::sync::Arc;
use tidemill::testing::{Hold, Injection};
use tidemill::{Array, Gather, Runtime, Session};

/// More elements than an array that is folded when it is recorded.
const N: usize = 1000;
/// Elements of a long chain's kernels.
const LONG: usize = 1 << 16;
/// The number of kernels of a long chain.
const CHAIN: u64 = 60;

fn ramp(s: &Session, elements: usize) -> Array {
    s.arange(0.0f32, elements as f32, 1.0).reshape([elements, 1])
}

/// A chain of kernels that don't fuse.
fn chain(s: &Session) -> Array {
    (0..CHAIN).fold(ramp(s, LONG) + 1.0, |x, _| x.cummax(0))
}

/// A runtime on a host that holds its first batch. A kernel of a chain fills a slice of work, a tiny kernel does not.
fn held() -> (Runtime, Arc<Hold>) {
    let hold = Arc::new(Hold::default());
    let costs = Runtime::builder().device("host").start_blocking().unwrap().devices()[0].costs;
    let injection = Injection {
        hold_first_batch: Some(hold.clone()),
        slice_us: Some(costs.dispatch_us + 60.0 / costs.f32_gop_per_s),
        long_launch_us: Some(f64::INFINITY),
        ..Injection::default()
    };
    let rt = Runtime::builder().device("host").batches_in_flight(3).injection(injection).start_blocking().unwrap();
    (rt, hold)
}

/// Demands a gather by polling it once.
fn ask(gather: &mut Gather<f32>) {
    let mut context = futures::task::Context::from_waker(futures::task::noop_waker_ref());
    assert!(std::pin::Pin::new(gather).poll(&mut context).is_pending(), "the gather cannot be ready yet");
}

/// Waits until this many kernels were placed.
#[track_caller]
fn placed(rt: &Runtime, kernels: u64) {
    for _ in 0..30_000 {
        if rt.stats().kernels >= kernels {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("{} of {kernels} kernels were placed", rt.stats().kernels);
}

#[test]
fn a_tiny_gather_goes_before_the_rest_of_a_long_chain_of_kernels() {
    let (rt, hold) = held();
    let (long, tiny) = (rt.session("long").open(), rt.session("tiny").open());
    let x = chain(&long);
    let mut all = x.gather::<f32>();
    ask(&mut all);
    placed(&rt, 1);
    assert_eq!(rt.stats().kernels, 2, "one place in flight is left to others");
    let mut small = (ramp(&tiny, N) * 2.0).gather::<f32>();
    ask(&mut small);
    // The device has not finished any of the chain's kernels, but it already has the tiny gather's kernel.
    placed(&rt, 3);
    assert_eq!(rt.stats().host_kernels, 0);
    hold.release();
    assert_eq!(wait(small).unwrap()[3], 6.0);
    assert_eq!(wait(all).unwrap().as_slice()[LONG - 1], LONG as f32);
    assert!(rt.stats().kernels > CHAIN);
}

#[test]
fn many_sessions_get_through_while_two_have_long_chains() {
    let (rt, hold) = held();
    let long: Vec<Session> = (0..2).map(|_| rt.session("long").open()).collect();
    let chains: Vec<Array> = long.iter().map(chain).collect();
    let mut all: Vec<Gather<f32>> = chains.iter().map(|x| x.gather::<f32>()).collect();
    all.iter_mut().for_each(ask);
    placed(&rt, 2);
    let tiny: Vec<Session> = (0..40).map(|_| rt.session("tiny").open()).collect();
    let mut small: Vec<Gather<f32>> = tiny.iter().map(|s| (ramp(s, N) * 2.0).gather::<f32>()).collect();
    small.iter_mut().for_each(ask);
    placed(&rt, 3);
    hold.release();
    for gather in small {
        assert_eq!(wait(gather).unwrap()[3], 6.0);
    }
    for gather in all {
        assert_eq!(wait(gather).unwrap().as_slice()[LONG - 1], LONG as f32);
    }
}

#[test]
fn a_gather_that_is_dropped_stops_its_chain_between_two_kernels() {
    let (rt, hold) = held();
    let s = rt.session("long").open();
    let mut all = chain(&s).gather::<f32>();
    ask(&mut all);
    placed(&rt, 2);
    drop(all);
    let other = rt.session("other").open();
    let mut small = (ramp(&other, N) * 2.0).gather::<f32>();
    ask(&mut small);
    hold.release();
    assert_eq!(wait(small).unwrap()[3], 6.0);
    // If the chain were still running, one of its kernels would run before each of these.
    for _ in 0..CHAIN {
        assert_eq!(wait((ramp(&other, N) * 2.0).gather::<f32>()).unwrap()[3], 6.0);
    }
    let kernels = rt.stats().host_kernels - (CHAIN + 1);
    assert!(kernels < 10, "{kernels} kernels of the chain ran");
}

#[test]
fn a_tiny_gather_ends_while_a_long_kernel_of_another_session_runs() {
    const ELEMENTS: usize = 1 << 18;
    let gathers = |s: &Session| -> Vec<Gather<f32>> {
        let x = ramp(s, ELEMENTS) * 1e-3;
        (0..30).map(|k| (&x * (k as f32)).sin().gather::<f32>()).collect()
    };
    let bits = |gathers: Vec<Gather<f32>>| -> Vec<Vec<u32>> {
        let bits = |gather: Gather<f32>| wait(gather).unwrap().iter().map(|x: &f32| x.to_bits()).collect();
        gathers.into_iter().map(bits).collect()
    };
    let hold = Arc::new(Hold::default());
    let costs = Runtime::builder().device("host").start_blocking().unwrap().devices()[0].costs;
    let injection = Injection {
        hold_first_long: Some(hold.clone()),
        long_launch_us: Some(20.0),
        slice_us: Some(costs.dispatch_us + 60.0 / costs.f32_gop_per_s),
        ..Injection::default()
    };
    let rt = Runtime::builder().device("host").injection(injection).start_blocking().unwrap();
    let long = rt.session("long").open();
    let mut large = gathers(&long);
    // A gather that reads the value in progress waits, and does not delay the others.
    let y = ramp(&long, ELEMENTS).cos();
    let mut waits: Vec<Gather<f32>> = vec![y.gather::<f32>()];
    large.iter_mut().for_each(ask);
    waits.iter_mut().for_each(ask);
    placed(&rt, 1);
    for k in 0..4 {
        let mut next = (&y + k as f32).slice((0..1, 0)).gather::<f32>();
        ask(&mut next);
        waits.push(next);
    }
    for n in 0..20 {
        let s = rt.session("tiny").open();
        let y = ramp(&s, N + n) * 2.0;
        assert_eq!(wait(y.gather::<f32>()).unwrap()[3], 6.0);
        assert_eq!(wait((y + 1.0).sum(..).item::<f32>()).unwrap(), ((N + n) * (N + n)) as f32);
    }
    large.iter_mut().for_each(ask);
    drop(waits);
    hold.release();
    let beside = bits(large);
    // The bits are those of a run without other sessions, in whole batches.
    let alone = Runtime::builder().device("host").start_blocking().unwrap();
    let s = alone.session("alone").open();
    let (alone, stats) = counted(&alone, || bits(gathers(&s)));
    assert!(beside == alone);
    assert!(stats.host_kernels >= 1);
}

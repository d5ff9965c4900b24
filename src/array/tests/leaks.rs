//! Tests that no table keeps entries of sessions that have ended.

use crate::array::{Runtime, Session};
use crate::rounds::rounds;
use futures::FutureExt;

/// The number of sessions of the test; a million if `TIDEMILL_MANY` is set, which takes minutes in a debug build.
fn sessions() -> u64 {
    if std::env::var_os("TIDEMILL_MANY").is_some() { 1_000_000 } else { rounds(2_000, 5_000) }
}

/// A request: an op that does not fold, and its sum.
fn request(session: &Session, n: u64) -> crate::array::Array {
    let x = session.full(n as f64, [100, 1]);
    (&x * 2.0 + 1.0).sum(..)
}

/// The most entries of a table that work in progress may have.
const FEW: usize = 600;

fn assert_few(runtime: &Runtime, when: &str) {
    let tables = runtime.tables();
    assert!(tables.len() > 20, "{tables:?}");
    let large: Vec<_> = tables.iter().filter(|(_, entries)| *entries > FEW).collect();
    assert!(large.is_empty(), "{when}: {large:?}");
}

#[test]
fn nothing_of_a_session_that_has_ended_is_in_any_table() {
    let runtime = Runtime::builder().device("host").start_blocking().unwrap();
    // A session that stays open, such as a service's own.
    let stays = runtime.session("stays").open();
    let held = stays.full(1.0f64, [100, 1]);
    for n in 0..sessions() {
        let session = runtime.session("request").open();
        let sum = request(&session, n).gather_blocking::<f64>().unwrap();
        assert_eq!(sum[0], 200.0 * n as f64 + 100.0);
        if n % 100 == 0 {
            assert!((&held + n as f64).sum(..).gather_blocking::<f64>().is_ok());
        }
    }
    assert_few(&runtime, "answered");
}

#[test]
fn nothing_of_requests_that_were_given_up_is_in_any_table() {
    let runtime = Runtime::builder().device("host").start_blocking().unwrap();
    for n in 0..sessions() {
        let session = runtime.session("request").open();
        let mut gather = request(&session, n).gather::<f64>();
        // Two of three gathers are sent, and dropped at once, mostly before the ring knows of them.
        if n % 3 > 0 {
            let _ = (&mut gather).now_or_never();
        }
        drop(gather);
        if n % 1000 == 999 {
            let other = runtime.session("another").open();
            assert!(request(&other, n).gather_blocking::<f64>().is_ok());
        }
    }
    let last = runtime.session("last").open();
    assert!(request(&last, 1).gather_blocking::<f64>().is_ok());
    assert_few(&runtime, "given up");
}

#[test]
fn parked_regions_and_those_dropped_in_the_queue_leave_no_gap_behind() {
    let runtime = Runtime::builder().device("host").batches_in_flight(1).start_blocking().unwrap();
    let session = runtime.session("one").open();
    let x = session.full(1.0f64, [100_000, 1]);
    for n in 0..2000 {
        // There are several at a time, so that some wait in the queue when they are cancelled.
        let mut gathers: Vec<_> = (0..8).map(|k| (&x * (n * 8 + k) as f64).sum(..).gather::<f64>()).collect();
        gathers.iter_mut().for_each(|gather| drop(gather.now_or_never()));
        drop(gathers);
    }
    assert!(x.sum(..).gather_blocking::<f64>().is_ok());
    drop(x);
    session.close();
    drop(session);
    let last = runtime.session("last").open();
    assert!(request(&last, 1).gather_blocking::<f64>().is_ok());
    assert_few(&runtime, "dropped");
}

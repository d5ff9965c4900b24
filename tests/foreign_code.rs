//! The program's own code on the runtime's threads: wakers of its executor, and destructors of memory that it lent.
//! Whatever this code does, it must not disturb other sessions.

mod common;
use common::{until, wait};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use tidemill::{Array, ErrorKind, Gather, Session};

const N: usize = 1000;

/// A waker that calls a function, on the thread that wakes it.
struct Runs<F: Fn() + Send + Sync + 'static>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Runs<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// A gather that was polled once with a waker and is not ready. If the device was faster, another gather is tried.
fn pending(mut gather: impl FnMut() -> Gather<f32>, wake: impl Fn() + Send + Sync + 'static) -> Gather<f32> {
    let waker = Waker::from(Arc::new(Runs(wake)));
    loop {
        let mut gather = gather();
        if Pin::new(&mut gather).poll(&mut Context::from_waker(&waker)).is_pending() {
            return gather;
        }
    }
}

fn slow(s: &Session) -> Array {
    s.rand::<f32>([N, 50]).sort(0).0
}

fn assert_works(what: &str, s: &Session) {
    assert_eq!(
        wait((s.zeros::<f32>([N, 1]) + 1.0).sum(..).item::<f32>()).unwrap_or_else(|e| panic!("{what}: {e}")),
        N as f32
    );
}

/// Elements whose owner panics when it is dropped.
struct Fragile(Vec<f32>, Arc<AtomicUsize>);

impl AsRef<[f32]> for Fragile {
    fn as_ref(&self) -> &[f32] {
        &self.0
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
        panic!("the owner's end panics, as this test wants it");
    }
}

#[test]
fn the_end_of_lent_memory_may_panic() {
    for (device, rt) in common::unfolded(|b| b) {
        let (s, other) = (rt.session("lends").open(), rt.session("other").open());
        let ended = Arc::new(AtomicUsize::new(0));
        for i in 0..20 {
            let a = s.from_shared::<f32>(Fragile(vec![1.0; 100_000], ended.clone()), [100_000, 1]).unwrap();
            let sum = (&a + f64::from(i)).sum(..).item::<f32>();
            drop(a);
            assert_eq!(wait(sum).unwrap_or_else(|e| panic!("{device}: {e}")), 100_000.0 * (i + 1) as f32);
            assert_works(device, &other);
        }
        until("all owners end", || ended.load(Ordering::SeqCst) == 20);
        assert_works(device, &s);
    }
}

#[test]
fn a_waker_may_panic() {
    for (device, rt) in common::unfolded(|b| b) {
        let s = rt.session("wakes").open();
        let woken = Arc::new(AtomicUsize::new(0));
        let told = woken.clone();
        let gather = pending(
            || slow(&s).gather::<f32>(),
            move || {
                told.fetch_add(1, Ordering::SeqCst);
                panic!("a waker panics, as this test wants it");
            },
        );
        until("it is woken", || woken.load(Ordering::SeqCst) == 1);
        assert_works(device, &rt.session("other").open());
        assert_eq!(wait(gather).unwrap_or_else(|e| panic!("{device}: {e}")).len(), N * 50);
    }
}

#[test]
fn a_waker_may_record_more_than_the_ring_takes_and_is_told_not_to_block() {
    for (device, rt) in common::unfolded(|b| b) {
        let s = rt.session("records").open();
        let (recorded, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (session, ops, kinds) = (s.clone(), recorded.clone(), refused.clone());
        let gather = pending(
            || slow(&s).gather::<f32>(),
            move || {
                let mut x = session.zeros::<f32>([2, 1]);
                for _ in 0..300_000 {
                    x += 1.0;
                    ops.fetch_add(1, Ordering::Relaxed);
                }
                let blocked = x.sum(..).item::<f32>().wait();
                let would_block = blocked.is_err_and(|e| e.kind() == ErrorKind::WouldBlock);
                kinds.fetch_add(if would_block { 1 } else { 100 }, Ordering::SeqCst);
            },
        );
        until("it has recorded", || refused.load(Ordering::SeqCst) > 0);
        assert_eq!((recorded.load(Ordering::SeqCst), refused.load(Ordering::SeqCst)), (300_000, 1), "{device}");
        drop(gather);
        assert_works(device, &s);
    }
}

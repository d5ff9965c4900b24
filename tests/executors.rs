//! Gathers under every executor; and recording, planning and cancelling while a device is held.

mod common;
use common::{session, unfolded, wait};
use futures::FutureExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemill::testing::{Hold, Injection};
use tidemill::{ArrayState, ErrorKind, Runtime, Session};

/// A small program with several awaits.
async fn program(s: Session) -> f32 {
    let x = s.full(2.0f32, [64, 4]);
    // The mean is of 256 elements. A GPU's division may be off by an ulp or two, but not by a power of two.
    let mean = x.mean(..);
    let first = mean.item::<f32>().await.unwrap();
    let y = &x + s.rand::<f32>([64, 4]) * 0.0;
    y.eval().await.unwrap();
    first + (y - mean).sum(..).item::<f32>().await.unwrap()
}

#[tokio::test]
async fn a_current_thread_executor_serves() {
    for device in ["host", "gpu"] {
        let Ok(rt) = Runtime::builder().device(device).fold_elements_max(0).start().await else { continue };
        let all = futures::future::join_all((0..20).map(|_| program(session(&rt)))).await;
        assert_eq!(all, [2.0; 20], "{device}");
        rt.shutdown().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_multi_thread_executor_serves_spawned_tasks() {
    for device in ["host", "gpu"] {
        let Ok(rt) = Runtime::builder().device(device).fold_elements_max(0).start().await else { continue };
        let tasks: Vec<_> = (0..50).map(|_| tokio::spawn(program(session(&rt)))).collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), 2.0, "{device}");
        }
        rt.shutdown().await.unwrap();
    }
}

#[test]
fn executors_of_futures_and_plain_threads_serve() {
    for (device, rt) in unfolded(|b| b) {
        assert_eq!(futures::executor::block_on(program(session(&rt))), 2.0, "{device}");
        let mut pool = futures::executor::LocalPool::new();
        assert_eq!(pool.run_until(program(session(&rt))), 2.0, "{device}");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let x = session(&rt).full(3.0f32, [100, 1]);
                    assert_eq!(x.sum(..).gather_blocking::<f32>().unwrap()[0], 300.0, "{device}");
                });
            }
        });
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn blocking_inside_of_an_async_context_is_a_typed_error_and_the_gather_can_be_awaited_still() {
    for (device, rt) in unfolded(|b| b) {
        let x = session(&rt).full(3.0f32, [100, 1]) + 1.0;
        let inside = async {
            let error = x.gather_blocking::<f32>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{device}");
            assert_eq!(x.sum(..).item::<f32>().wait().unwrap_err().kind(), ErrorKind::WouldBlock, "{device}");
            let start = Runtime::builder().device("host").start_blocking().unwrap_err();
            assert_eq!(start.kind(), ErrorKind::WouldBlock, "{device}");
            assert_eq!(x.gather::<f32>().await.unwrap()[0], 4.0, "{device}");
        };
        futures::executor::block_on(inside);
        let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let error = tokio.block_on(async { x.gather_blocking::<f32>().unwrap_err() });
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{device}");
        assert_eq!(x.gather_blocking::<f32>().unwrap()[0], 4.0, "{device}: outside it blocks");
    }
}

#[tokio::test]
async fn at_the_cap_recording_goes_on_under_a_current_thread_executor() {
    let rt = Runtime::builder().device("host").fold_elements_max(0).tape_nodes_max(16).start().await.unwrap();
    let s = session(&rt);
    let x = s.ones::<f32>([100, 1]);
    let mut y = s.zeros::<f32>([100, 1]);
    for step in 0..2000 {
        y = y * 0.5 + &x;
        if step % 100 == 0 {
            s.ready().await;
        }
    }
    assert_eq!(y.gather::<f32>().await.unwrap()[0], 2.0);
}

/// Runtimes whose device holds its first batch, with the hold of each.
fn held() -> Vec<(&'static str, Runtime, Arc<Hold>)> {
    let holds = std::cell::RefCell::new(Vec::new());
    let all = unfolded(|b| {
        let hold = Arc::new(Hold::default());
        holds.borrow_mut().push(hold.clone());
        b.injection(Injection { hold_first_batch: Some(hold), ..Injection::default() })
    });
    all.into_iter().zip(holds.into_inner()).map(|((device, rt), hold)| (device, rt, hold)).collect()
}

/// Waits until the ring has handled everything that was sent before. Runs no kernel.
fn sync(rt: &Runtime) {
    wait(rt.session("sync").open().zeros::<f32>([100, 1]).explain()).unwrap();
}

/// Calls [`sync`] until `done`. The limit only ends a test that would hang.
fn until(rt: &Runtime, what: &str, done: impl Fn(&Runtime) -> bool) {
    let limit = Instant::now() + Duration::from_secs(300);
    while !done(rt) {
        assert!(Instant::now() < limit, "never: {what}; {}", rt.stats());
        sync(rt);
        std::thread::yield_now();
    }
}

#[test]
fn while_a_device_holds_its_first_batch_the_ring_plans_two_further_regions() {
    for (device, rt, hold) in held() {
        let sessions: Vec<Session> = (0..3).map(|_| session(&rt)).collect();
        let mut first = sessions[0].full(1.0f32, [1000, 1]).exp().gather::<f32>();
        assert!((&mut first).now_or_never().is_none(), "{device}");
        until(&rt, "the first batch is placed", |rt| rt.stats().kernels == 1);
        // Two further gathers have other structures. Their regions are cut, planned, compiled and placed while the
        // batch is held.
        let mut second = sessions[1].full(2.0f32, [1000, 1]).sqrt().sum(..).item::<f32>();
        let mut third = (sessions[2].full(3.0f32, [10, 100]) * 2.0).cumsum(1).gather::<f32>();
        assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none(), "{device}");
        until(&rt, "two further regions are planned", |rt| rt.stats().kernels == 3);
        let stats = rt.stats();
        assert_eq!((stats.regions, stats.plan_cache_misses, stats.gathers), (3, 3, 0), "{device}: {stats}");
        assert_eq!((stats.host_kernels, stats.dispatches), (0, 0), "{device}: the device has run nothing yet");
        for gather in [(&mut first).now_or_never().map(|_| ()), (&mut second).now_or_never().map(|_| ())] {
            assert_eq!(gather, None, "{device}: all gathers wait for the device");
        }
        hold.release();
        let (first, second, third) = wait(async { futures::try_join!(first, second, third) }).unwrap();
        assert_eq!((first.len(), third[999]), (1000, 60.0 * 10.0), "{device}");
        assert!((second - 1414.2135).abs() < 0.01, "{device}: {second}");
    }
}

#[test]
fn recording_waits_for_no_device() {
    for (device, rt, hold) in held() {
        let mut stuck = session(&rt).full(1.0f32, [1000, 1]).exp().gather::<f32>();
        assert!((&mut stuck).now_or_never().is_none());
        until(&rt, "the batch is placed", |rt| rt.stats().kernels == 1);
        let s = session(&rt);
        let x = s.rand::<f32>([1000, 1000]);
        let mut y = x.clone();
        // These are fewer nodes than the limit on nodes without a demand. The test is that the loop ends.
        for _ in 0..2000 {
            y = y * 0.99 + &x;
        }
        assert_eq!((y.state(), y.shape().unwrap().dims()), (ArrayState::Lazy, &[1000, 1000][..]), "{device}");
        assert_eq!((rt.stats().regions, rt.stats().gathers), (1, 0), "{device}");
        drop(y);
        hold.release();
        assert_eq!(wait(stuck).unwrap().len(), 1000, "{device}");
    }
}

#[test]
fn a_gather_dropped_before_its_tape_is_cut_computes_nothing() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = s.rand::<f32>([1000, 1]);
        drop(x.exp().gather::<f32>());
        drop(x.sum(..).item::<f32>());
        s.flush();
        sync(&rt);
        assert_eq!((rt.stats().regions, rt.stats().kernels), (0, 0), "{device}");
        assert!(wait(x.max_over(..).item::<f32>()).unwrap() < 1.0, "{device}");
    }
}

#[test]
fn gathers_dropped_while_they_wait_are_never_run_and_others_are() {
    for (device, rt, hold) in held() {
        let mut stuck = session(&rt).full(1.0f32, [1000, 1]).exp().gather::<f32>();
        assert!((&mut stuck).now_or_never().is_none());
        until(&rt, "the batch is placed", |rt| rt.stats().kernels == 1);
        let sessions: Vec<Session> = (0..200).map(|_| session(&rt)).collect();
        let mut gathers: Vec<_> =
            sessions.iter().map(|s| (s.rand::<f32>([1000, 1]) * 2.0).sum(..).item::<f32>()).collect();
        for gather in &mut gathers {
            assert!(gather.now_or_never().is_none(), "{device}");
        }
        // The other gathers wait for their turn.
        until(&rt, "some are cut", |rt| rt.stats().regions > 30);
        let kept = gathers.split_off(195);
        drop(gathers);
        sync(&rt);
        hold.release();
        wait(stuck).unwrap();
        let kept = wait(futures::future::try_join_all(kept)).unwrap();
        assert!(kept.iter().all(|sum| sum.to_bits() == kept[0].to_bits()), "{device}: {kept:?}");
        let stats = rt.stats();
        assert_eq!((stats.gathers, stats.gathers_failed), (6, 0), "{device}");
        assert!((31..=201).contains(&stats.regions), "{device}: {} regions", stats.regions);
        // Regions that had had their turn ran; those that waited did not.
        assert!((6..100).contains(&stats.kernels), "{device}: {} kernels", stats.kernels);
    }
}

#[test]
fn gathers_that_were_demanded_together_and_are_dropped_together_do_not_run() {
    let sums =
        |s: &Session| -> Vec<_> { (0..300).map(|_| s.rand::<f32>([300, 300]).sin().sum(..).item::<f32>()).collect() };
    // Only the sum that is compared below is computed here.
    let expected = wait(sums(&session(&common::host())).swap_remove(200)).unwrap();
    for (device, rt, hold) in held() {
        let mut stuck = rt.session("first").open().full(1.0f32, [1000, 1]).exp().gather::<f32>();
        assert!((&mut stuck).now_or_never().is_none());
        until(&rt, "the batch is placed", |rt| rt.stats().kernels == 1);
        let s = session(&rt);
        let mut all = futures::future::try_join_all(sums(&s));
        assert!((&mut all).now_or_never().is_none(), "{device}");
        sync(&rt);
        drop(all);
        // Sums of the same kind, of which only one is still awaited.
        let mut some = sums(&session(&rt));
        for gather in &mut some {
            assert!(gather.now_or_never().is_none(), "{device}");
        }
        sync(&rt);
        let kept = some.swap_remove(200);
        drop(some);
        sync(&rt);
        hold.release();
        wait(stuck).unwrap();
        assert!((wait(kept).unwrap() - expected).abs() < 1.0, "{device}");
        sync(&rt);
        let stats = rt.stats();
        assert_eq!((stats.gathers, stats.gathers_failed), (2, 0), "{device}");
        // Regions that had had their turn ran; those that waited did not.
        assert!((2..160).contains(&stats.kernels), "{device}: {} kernels of 601", stats.kernels);
    }
}

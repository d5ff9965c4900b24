//! Faults and their consequences: every gather resolves, with an error that names the op, the device and the source
//! line. Other sessions are not disturbed, except by a lost device.

mod common;
use common::gpu;
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tidemill::testing::{Hold, Injection, rounds};
use tidemill::{Array, Error, ErrorKind, Runtime, RuntimeBuilder, Session, cat, step};

/// More elements than an array that is folded when it is recorded.
const N: usize = 1000;

/// Waits for a future. If it hangs, the test fails.
#[track_caller]
fn done<T>(what: &str, future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let result = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(300), future).await });
    result.unwrap_or_else(|_| panic!("{what}: hangs"))
}

/// A runtime on the host, and one on the GPU, if there is one.
fn runtimes(set: impl Fn(RuntimeBuilder) -> RuntimeBuilder) -> Vec<(&'static str, Runtime)> {
    let host = set(Runtime::builder().device("host")).start_blocking().expect("the host device always opens");
    let mut all = vec![("host", host)];
    all.extend(gpu(set).map(|runtime| ("gpu", runtime)));
    all
}

fn injected(set: impl Fn(&mut Injection)) -> impl Fn(RuntimeBuilder) -> RuntimeBuilder {
    move |builder| {
        let mut injection = Injection::default();
        set(&mut injection);
        builder.injection(injection)
    }
}

/// Asserts that an error names the op, the line of this file that recorded it, and the device if `on_device`.
#[track_caller]
fn assert_blame(what: &str, error: &Error, kind: ErrorKind, op: &str, line: u32, on_device: bool) {
    assert_eq!(error.kind(), kind, "{what}: {error}");
    assert_eq!(error.op(), Some(op), "{what}: {error}");
    let at = error.location().unwrap_or_else(|| panic!("{what}: no location in {error}"));
    assert_eq!((Path::new(at.file()).file_name().unwrap().to_str(), at.line()), (Some("faults.rs"), line), "{what}");
    assert_eq!(error.device().is_some(), on_device, "{what}: {error:?}");
    assert!(error.message().len() > 10, "{what}: {error}");
}

/// An array of elements 0, 1, 2, …, which has to be computed.
fn ramp(s: &Session) -> Array {
    s.arange(0.0f32, N as f32, 1.0).reshape([N, 1])
}

/// Asserts that a session computes a right result.
#[track_caller]
fn assert_works(what: &str, s: &Session) {
    let sum = done(what, (ramp(s) * 2.0).sum(..).item::<f32>());
    assert_eq!(sum.unwrap_or_else(|e| panic!("{what}: {e}")), (N * (N - 1)) as f32, "{what}");
}

#[test]
fn shapes_that_do_not_fit_fault_one_array_and_its_dependents_only() {
    for (device, rt) in runtimes(|b| b) {
        let s = rt.session("shapes").open();
        let (a, b) = (ramp(&s), s.ones::<f32>([N + 1, 1]));
        let (bad, line) = (&a + &b, line!());
        let dependent = (&bad * 2.0).sum(..);
        for array in [&bad, &dependent] {
            let error = done(device, array.gather::<f32>()).unwrap_err();
            assert_blame(device, &error, ErrorKind::Shape, "add", line, false);
            assert!(error.message().contains("1000x1") && error.message().contains("1001x1"), "{error}");
        }
        assert_eq!(bad.error().map(Error::kind), Some(ErrorKind::Shape));
        assert_works(device, &s);
    }
}

#[test]
fn the_first_operands_fault_wins() {
    let rt = common::host();
    let s = rt.session("first").open();
    let (first, line) = (ramp(&s).matmul(&ramp(&s)), line!());
    let second = ramp(&s).reshape([7, 7]);
    let error = done("first", (&first + &second).gather::<f32>()).unwrap_err();
    assert_blame("first", &error, ErrorKind::Shape, "matmul", line, false);
}

#[test]
fn a_value_beyond_the_budget_is_refused_by_name_and_the_session_goes_on() {
    for (device, rt) in runtimes(|b| b.device_budget(8 << 20).host_budget(8 << 20)) {
        let (s, other) = (rt.session("greedy").seed(1).open(), rt.session("modest").open());
        let before = done(device, ramp(&other).eval());
        before.unwrap_or_else(|e| panic!("{device}: {e}"));
        let (big, line) = (s.rand::<f32>([4 << 20, 1]), line!());
        let error = done(device, big.gather::<f32>()).unwrap_err();
        assert_blame(device, &error, ErrorKind::OutOfMemory, "rand", line, true);
        drop(big);
        assert_works(device, &s);
        assert_works(device, &other);
    }
}

#[test]
fn memory_that_the_device_refuses_fails_one_batch() {
    for (device, rt) in runtimes(injected(|i| i.out_of_memory_at_batch = Some(1))) {
        let (s, other) = (rt.session("starved").open(), rt.session("other").open());
        assert_works(device, &other);
        let (x, line) = (ramp(&s).exp(), line!());
        let error = done(device, x.gather::<f32>()).unwrap_err();
        assert_blame(device, &error, ErrorKind::OutOfMemory, "exp", line, true);
        assert_works(device, &s);
        assert_works(device, &other);
    }
}

#[test]
fn a_lost_device_takes_what_it_alone_held_and_the_runtime_goes_on() {
    for (device, rt) in runtimes(injected(|i| i.lose_device_at_batch = Some(2))) {
        let sessions: Vec<Session> = (0..4).map(|_| rt.session("one of four").open()).collect();
        let uploaded = sessions[0].from_vec((0..N).map(|i| i as f32).collect(), [N, 1]).unwrap();
        // Batches 0 and 1 compute values that are only on the device. The operand of the second is dropped.
        let held = uploaded.sqrt();
        let data = sessions[1].from_vec((0..N).map(|i| i as f32).collect(), [N, 1]).unwrap();
        let (other, line) = (data.sqrt(), line!());
        drop(data);
        for array in [&held, &other] {
            done(device, array.eval()).unwrap_or_else(|e| panic!("{device}: {e}"));
        }
        // The device is lost in batch 2. Values that depend on the host's data are recomputed, or fail with the name of
        // their op.
        let pending = sessions.iter().map(|s| (ramp(s) + 1.0).gather::<f32>());
        for result in done(device, futures::future::join_all(pending)) {
            match result {
                Ok(values) => assert_eq!(values[4], 5.0),
                Err(error) => assert_blame(device, &error, ErrorKind::DeviceLost, "add", line + 7, true),
            }
        }
        // Values that were only on the device are recomputed from operands that still exist. The host loses no values.
        let result = done(device, (&held * 2.0).gather::<f32>());
        match device {
            "host" => assert_eq!(result.unwrap_err().kind(), ErrorKind::DeviceLost),
            _ => {
                assert_eq!(result.unwrap()[9], 6.0, "{device}");
                assert_eq!(done(device, held.gather::<f32>()).unwrap()[4], 2.0, "{device}");
                assert_eq!(rt.stats().values_made_again, 1, "{device}");
            }
        }
        for dependent in [&other, &(&other * 2.0)] {
            let error = done(device, dependent.gather::<f32>()).unwrap_err();
            assert_blame(device, &error, ErrorKind::DeviceLost, "sqrt", line, true);
        }
        let again = done(device, (&uploaded * 2.0).gather::<f32>()).unwrap_or_else(|e| panic!("{device}: {e}"));
        assert_eq!(again[N - 1], 2.0 * (N - 1) as f32, "{device}");
        for s in &sessions {
            assert_works(device, s);
        }
    }
}

#[test]
fn work_whose_operands_end_with_it_is_repeated_after_a_loss_or_fails_by_name() {
    for (device, rt) in runtimes(injected(|i| i.lose_device_at_batch = Some(0))) {
        let s = rt.session("uploaded").open();
        let x = s.from_vec((0..N).map(|i| i as f32).collect(), [N, 1]).unwrap();
        let y = &x * 2.0;
        drop(x);
        // The uploaded data is still in host memory, although only this op can reach it.
        assert_eq!(done(device, y.gather::<f32>()).unwrap_or_else(|e| panic!("{device}: {e}"))[9], 18.0);
        assert_works(device, &s);
    }
    for (device, rt) in runtimes(injected(|i| i.lose_device_at_batch = Some(1))) {
        let s = rt.session("evaluated").open();
        let data = s.from_vec((0..N).map(|i| i as f32).collect(), [N, 1]).unwrap();
        let (held, gone) = (&data + 1.0, data.sqrt());
        done(device, gone.eval()).unwrap_or_else(|e| panic!("{device}: {e}"));
        let y = &gone * 2.0;
        drop(gone);
        // The value is recomputed from the array that is held, or the gather fails, but it ends.
        match done(device, y.gather::<f32>()) {
            Ok(values) => assert_eq!(values[9], 6.0, "{device}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::DeviceLost, "{device}: {error}"),
        }
        if device != "host" {
            assert_eq!(done(device, held.gather::<f32>()).unwrap()[9], 10.0);
        }
        assert_works(device, &s);
    }
    for (device, rt) in runtimes(injected(|i| i.lose_device_at_batch = Some(1))) {
        let s = rt.session("nowhere else").open();
        let data = s.from_vec((0..N).map(|i| i as f32).collect(), [N, 1]).unwrap();
        let gone = data.sqrt();
        drop(data);
        done(device, gone.eval()).unwrap_or_else(|e| panic!("{device}: {e}"));
        let y = &gone * 2.0;
        drop(gone);
        let error = done(device, y.gather::<f32>()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DeviceLost, "{device}: {error}");
        assert!(error.op().is_some() && error.location().is_some(), "{device}: {error}");
        assert_works(device, &s);
    }
}

#[test]
fn work_that_was_being_compiled_while_its_operand_was_lost_fails_and_keeps_nobody_waiting() {
    let Some(rt) = gpu(injected(|i| i.lose_device_at_batch = Some(2))) else { return };
    let (s, other) = (rt.session("unlucky").open(), rt.session("other").open());
    let work = || (ramp(&other) + 1.0).gather::<f32>();
    assert_eq!(done("before", work()).unwrap()[0], 1.0);
    let v = s.from_vec((0..N).map(|i| i as f32).collect(), [N, 1]).unwrap().sqrt();
    done("the operand", v.eval()).unwrap();
    // Compiling this chain should take longer than the device needs to recover. If it does not, the test checks less.
    let y = (0..300).fold(v.clone(), |y, i| (y.sin() + f64::from(i)).cos());
    let mut first = y.gather::<f32>();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::pin::Pin::new(&mut first).poll(&mut context).is_pending());
    // The device is lost in this op's batch, which is repeated.
    assert_eq!(done("the loss", work()).unwrap()[0], 1.0);
    let mut second = (&y * 2.0).gather::<f32>();
    // Its demand is under way with this poll; if the loss of `y` is known already, the poll yields the result.
    let told = match std::pin::Pin::new(&mut second).poll(&mut context) {
        std::task::Poll::Ready(result) => result,
        std::task::Poll::Pending => done("what reads it", second),
    };
    for (what, result) in [("what was compiled", done("what was compiled", first)), ("what reads it", told)] {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DeviceLost, "{what}: {error}");
    }
    assert_eq!(done("after", work()).unwrap()[0], 1.0);
    assert_works("after", &s);
}

#[test]
fn a_panic_in_a_worker_fails_its_own_work_only() {
    for (device, rt) in runtimes(injected(|i| i.panic_at_batch = Some(1))) {
        let (s, other) = (rt.session("unlucky").open(), rt.session("other").open());
        assert_works(device, &other);
        let (x, line) = (ramp(&s).cos(), line!());
        let error = done(device, x.gather::<f32>()).unwrap_err();
        let kinds = [ErrorKind::Internal, ErrorKind::DeviceLost];
        assert!(kinds.contains(&error.kind()), "{device}: {error:?}");
        assert_blame(device, &error, error.kind(), "cos", line, true);
        assert_works(device, &other);
        assert_works(device, &s);
    }
}

#[test]
fn a_batch_that_fails_leaves_those_in_flight_behind_it_the_memory_they_share() {
    type Fault = (ErrorKind, fn(&mut Injection, u64));
    let faults: [Fault; 2] = [
        (ErrorKind::OutOfMemory, |i, n| i.out_of_memory_at_batch = Some(n)),
        (ErrorKind::Internal, |i, n| i.panic_at_batch = Some(n)),
    ];
    for ((kind, set), batch) in faults.into_iter().flat_map(|fault| [0, 1, 2, 5].map(|batch| (fault, batch))) {
        for device in ["host", "gpu"] {
            let hold = Arc::new(Hold::default());
            let injecting = |b: RuntimeBuilder| {
                injected(|i| {
                    i.hold_first_batch = Some(hold.clone());
                    set(i, batch);
                })(b)
            };
            let rt = match device {
                "host" => Some(injecting(Runtime::builder().device("host")).start_blocking().unwrap()),
                _ => gpu(injecting),
            };
            let Some(rt) = rt else { continue };
            let what = format!("{kind:?} in batch {batch} on {device}");
            let sessions: Vec<Session> = (0..6).map(|_| rt.session("one of six").open()).collect();
            // Their values share one slab of memory, which the first batch allocates.
            let line = line!() + 1;
            let gathers: Vec<_> = sessions.iter().map(|s| (ramp(s) * 2.0).gather::<f32>()).collect();
            let mut all = futures::future::join_all(gathers);
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(std::pin::Pin::new(&mut all).poll(&mut context).is_pending(), "{what}");
            // This should be long enough for several batches to be in flight. With fewer, the test checks less.
            std::thread::sleep(Duration::from_millis(100));
            hold.release();
            let results = done(&what, all);
            let errors: Vec<&Error> = results.iter().filter_map(|result| result.as_ref().err()).collect();
            assert_eq!(errors.len(), 1, "{what}: {errors:?}");
            assert_blame(&what, errors[0], kind, "mul", line, true);
            for values in results.iter().flatten() {
                assert!((0..N).all(|i| values[i] == 2.0 * i as f32), "{what}");
            }
            for s in &sessions {
                assert_works(&what, s);
            }
        }
    }
}

#[test]
fn a_gather_outlives_its_array_its_session_and_its_clones() {
    for (device, rt) in runtimes(|b| b) {
        let gather = {
            let s = rt.session("short").open();
            (ramp(&s) + 1.0).gather::<f32>()
        };
        assert_eq!(done(device, gather).unwrap_or_else(|e| panic!("{device}: {e}"))[0], 1.0);
    }
}

#[test]
fn closing_a_session_fails_what_waits_and_nobody_elses() {
    for device in ["host", "gpu"] {
        let Some((rt, hold, others, _)) = in_flight(device, 20, Duration::from_secs(60)) else { continue };
        // The device has as many batches as it takes, so this session's work waits for its turn.
        let s = rt.session("closed").open();
        let (x, line) = (ramp(&s).cos(), line!());
        let pending = x.gather::<f32>();
        s.flush();
        s.close();
        let error = done(device, pending).unwrap_err();
        assert_blame(device, &error, ErrorKind::Cancelled, "cos", line, false);
        hold.release();
        for result in done(device, futures::future::join_all(others)) {
            assert_eq!(result.unwrap_or_else(|e| panic!("{device}: {e}"))[0], 1.0);
        }
        let (late, line) = (&x + 1.0, line!());
        let error = done(device, late.gather::<f32>()).unwrap_err();
        assert_blame(device, &error, ErrorKind::Cancelled, "add", line, false);
        // Ops that consist of several nodes give the same error, not one that names an inner node.
        let (counted, line) = (x.nonzero(), line!());
        let error = done(device, counted).unwrap_err();
        assert_blame(device, &error, ErrorKind::Cancelled, "nonzero", line, false);
        for many in [x.sort(0).0, x.diff(0), &x.cast::<i32>() + 0.5, x.norm(..)] {
            let error = done(device, many.gather_any()).unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Cancelled, "the session was closed"), "{device}");
        }
        assert_works(device, &rt.session("other").open());
    }
}

#[test]
fn a_cancelled_gather_takes_nothing_from_others_that_want_the_same_value() {
    for device in ["host", "gpu"] {
        let hold = Arc::new(Hold::default());
        let all = runtimes(injected(|i| i.hold_first_batch = Some(hold.clone())));
        let Some((_, rt)) = all.into_iter().find(|(name, _)| *name == device) else { continue };
        let s = rt.session("two").open();
        let x = ramp(&s).exp();
        let (mut first, second) = (x.gather::<f32>(), x.gather::<f32>());
        let alone = (ramp(&s) * 3.0).sum(..);
        let third = alone.gather::<f32>();
        let mut poll = futures::task::Context::from_waker(futures::task::noop_waker_ref());
        assert!(std::pin::Pin::new(&mut first).poll(&mut poll).is_pending(), "{device}: the device is held");
        drop(first);
        drop(third);
        hold.release();
        assert_eq!(done(device, second).unwrap_or_else(|e| panic!("{device}: {e}"))[0], 1.0);
        // A cancelled value can be gathered again.
        let sum = done(device, alone.item::<f32>()).unwrap_or_else(|e| panic!("{device}: {e}"));
        assert_eq!(sum, 3.0 * (N * (N - 1) / 2) as f32);
    }
}

/// A runtime, the hold of its device's first batch, gathers in flight, and the line that recorded them.
type InFlight = (Runtime, Arc<Hold>, Vec<tidemill::Gather<f32>>, u32);

/// A runtime whose device holds its first batch, and gathers that are in flight on it.
fn in_flight(device: &str, count: usize, drain: Duration) -> Option<InFlight> {
    let hold = Arc::new(Hold::default());
    let injection = Injection { hold_first_batch: Some(hold.clone()), ..Default::default() };
    let set = |b: RuntimeBuilder| b.injection(injection).drain(drain);
    let rt = match device {
        "gpu" => gpu(set)?,
        _ => set(Runtime::builder().device("host")).start_blocking().unwrap(),
    };
    let mut gathers = Vec::new();
    let mut line = 0;
    for _ in 0..count {
        let s = rt.session("in flight").open();
        (line, gathers) = (line!(), gathers.into_iter().chain([ramp(&s).exp().gather::<f32>()]).collect());
        s.flush();
    }
    Some((rt, hold, gathers, line))
}

#[test]
fn a_shutdown_lets_work_in_flight_finish() {
    for device in ["host", "gpu"] {
        let Some((rt, hold, gathers, _)) = in_flight(device, 5, Duration::from_secs(60)) else { continue };
        let all = done(device, async {
            let (ended, all, ()) =
                futures::join!(rt.shutdown(), futures::future::join_all(gathers), async { hold.release() });
            ended.unwrap();
            all
        });
        for result in all {
            assert_eq!(result.unwrap_or_else(|e| panic!("{device}: {e}"))[0], 1.0, "{device}");
        }
    }
}

#[test]
fn a_shutdown_past_its_deadline_fails_what_is_left() {
    for device in ["host", "gpu"] {
        let Some((rt, hold, gathers, line)) = in_flight(device, 5, Duration::ZERO) else { continue };
        done(device, async {
            let failing = async {
                let all = futures::future::join_all(gathers).await;
                hold.release();
                all
            };
            let (ended, all) = futures::join!(rt.shutdown(), failing);
            ended.unwrap();
            for result in all {
                let error = result.unwrap_err();
                assert_blame(device, &error, ErrorKind::Shutdown, "exp", line, error.device().is_some());
            }
        });
    }
}

#[test]
fn dropping_the_runtime_fails_what_is_pending_and_what_comes_later() {
    for device in ["host", "gpu"] {
        let Some((rt, hold, gathers, line)) = in_flight(device, 5, Duration::from_secs(60)) else { continue };
        let s = rt.session("survivor").open();
        // A GPU opens on demand. After this loop it has a batch.
        let limit = std::time::Instant::now() + Duration::from_secs(300);
        while rt.stats().kernels == 0 && std::time::Instant::now() < limit {
            std::thread::yield_now();
        }
        let dropping = std::thread::spawn(move || drop(rt));
        let mut on_a_device = 0;
        for result in done(device, futures::future::join_all(gathers)) {
            let error = result.unwrap_err();
            assert_blame(device, &error, ErrorKind::Shutdown, "exp", line, error.device().is_some());
            on_a_device += usize::from(error.device().is_some());
        }
        assert!(on_a_device > 0, "{device}: it holds a batch, but no error names the device");
        hold.release();
        dropping.join().unwrap();
        let (x, line) = (ramp(&s).exp(), line!());
        let error = done(device, x.gather::<f32>()).unwrap_err();
        assert_blame(device, &error, ErrorKind::Shutdown, "exp", line, false);
    }
}

#[test]
fn indices_that_are_out_of_range_on_the_device_are_found_when_they_are_gathered() {
    for (device, rt) in runtimes(|b| b) {
        let (s, other) = (rt.session("indices").open(), rt.session("other").open());
        let x = ramp(&s);
        let index = s.arange(0i32, N as i32, 1).reshape([N, 1]) + 1i64;
        let (taken, line) = (x.take(&index), line!());
        let dependent = (&taken * 2.0).sum(..);
        let (fine, neighbour) = (&x + 1.0, ramp(&other).exp());
        let (a, b, c, d) = done(device, async {
            futures::join!(
                taken.gather::<f32>(),
                dependent.gather::<f32>(),
                fine.gather::<f32>(),
                neighbour.gather::<f32>()
            )
        });
        for error in [a.unwrap_err(), b.unwrap_err()] {
            assert_blame(device, &error, ErrorKind::Index, "take", line, true);
        }
        assert_eq!(c.unwrap_or_else(|e| panic!("{device}: {e}"))[0], 1.0);
        assert_eq!(d.unwrap_or_else(|e| panic!("{device}: {e}"))[0], 1.0);
        // The value keeps its fault, in later regions too.
        let later = done(device, (&taken + 1.0).gather::<f32>()).unwrap_err();
        assert_eq!(later.kind(), ErrorKind::Index, "{later}");
        let (assigned, line) = (x.assign_at(&index, 5.0), line!());
        let error = done(device, assigned.gather::<f32>()).unwrap_err();
        assert_blame(device, &error, ErrorKind::Index, error.op().unwrap(), line, true);
        assert_works(device, &s);
    }
}

#[test]
fn two_runtimes_of_one_process_do_not_touch_each_other() {
    let failing = injected(|i| i.out_of_memory_at_batch = Some(0));
    for ((device, broken), (_, sound)) in runtimes(failing).into_iter().zip(runtimes(|b| b)) {
        let (b, s) = (broken.session("broken").open(), sound.session("sound").open());
        let (x, y, made) = (ramp(&b).exp(), ramp(&s), line!());
        let (mixed, line) = (&x + &y, line!());
        let error = done(device, mixed.gather::<f32>()).unwrap_err();
        assert_blame(device, &error, ErrorKind::Ownership, "add", line, false);
        let error = done(device, x.gather::<f32>()).unwrap_err();
        assert_blame(device, &error, ErrorKind::OutOfMemory, "exp", made, true);
        assert_works(device, &s);
        let stats = sound.stats();
        assert_eq!((stats.gathers, stats.gathers_failed), (1, 0), "{device}");
        assert_eq!((broken.stats().gathers, broken.stats().gathers_failed), (0, 1), "{device}");
        drop(broken);
        assert_works(device, &s);
    }
}

#[test]
fn an_array_of_another_session_must_be_shared_first() {
    let rt = common::host();
    let (a, b) = (rt.session("a").open(), rt.session("b").open());
    let x = ramp(&a);
    let (early, line) = (ramp(&b) + &x, line!());
    assert_blame("early", early.error().unwrap(), ErrorKind::Ownership, "add", line, false);
    let shared = x.share().unwrap();
    let sum = (ramp(&b) + &shared).sum(..);
    assert_eq!(done("shared", sum.item::<f32>()).unwrap(), (N * (N - 1)) as f32);
    // An op on a shared array alone belongs to that array's session, unless another session adopts the array.
    let theirs = (shared.slice((1..3, 0)).sum(..) + &ramp(&b)).error().map(Error::kind);
    assert_eq!(theirs, Some(ErrorKind::Ownership));
    let adopted = b.adopt(&shared).unwrap();
    let ours = adopted.slice((1..3, 0)).sum(..) + ramp(&b).slice((4, 0));
    assert_eq!(done("adopted", ours.item::<f32>()).unwrap(), 7.0);
    assert_eq!(done("whole", adopted.gather::<f32>()).unwrap()[N - 1], (N - 1) as f32);
    assert_eq!(b.adopt(&ramp(&a)).unwrap_err().kind(), ErrorKind::Ownership, "neither evaluated nor shared");
    assert_eq!(common::host().session("c").open().adopt(&shared).unwrap_err().kind(), ErrorKind::Ownership);
    let tiny = a.scalar(2.0f32);
    assert_eq!(done("tiny", (b.adopt(&tiny).unwrap() + 1.0).item::<f32>()).unwrap(), 3.0);
    // Closing a session ends its arrays for all sessions.
    a.close();
    let error = done("closed", (ramp(&b) + &shared).gather::<f32>()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ownership);
    assert!(error.message().contains("its session has ended or was closed"), "{error}");
}

#[test]
fn blocking_calls_in_an_async_context_are_typed_errors() {
    let rt = common::host();
    let s = rt.session("blocking").open();
    let x = ramp(&s);
    done("blocking", async {
        assert_eq!(x.gather_blocking::<f32>().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(Runtime::builder().device("host").start_blocking().unwrap_err().kind(), ErrorKind::WouldBlock);
    });
    assert_eq!(x.gather_blocking::<f32>().unwrap()[3], 3.0);
    // Blocking calls are allowed where tokio lets code block.
    for threads in [None, Some(2)] {
        let mut builder = match threads {
            None => tokio::runtime::Builder::new_current_thread(),
            Some(_) => tokio::runtime::Builder::new_multi_thread(),
        };
        let tokio = builder.worker_threads(2).build().unwrap();
        let blocking = x.clone();
        let lent = async { tokio::task::spawn_blocking(move || blocking.gather_blocking::<f32>()).await };
        assert_eq!(tokio.block_on(lent).unwrap().unwrap()[3], 3.0);
        let (inside, in_place) = (x.clone(), x.clone());
        let task = async move {
            let refused = inside.gather_blocking::<f32>().unwrap_err();
            let allowed = threads.map(|_| tokio::task::block_in_place(|| in_place.gather_blocking::<f32>()));
            (refused, allowed)
        };
        let (refused, allowed) = tokio.block_on(async { tokio::spawn(task).await }).unwrap();
        assert_eq!(refused.kind(), ErrorKind::WouldBlock);
        assert_eq!(allowed.map(|values| values.unwrap()[3]), threads.map(|_| 3.0));
    }
}

#[test]
fn wrong_lengths_and_overflowing_shapes_are_typed_errors() {
    let rt = common::host();
    let s = rt.session("bad").open();
    let error = |result: tidemill::Result<Array>| result.expect_err("it must fail");
    let huge = [usize::MAX, 2];
    let first = line!();
    let cases = [
        ("too few", error(s.from_slice(&[1.0f32; 5], [2, 3])), ErrorKind::Shape),
        ("too many", error(s.from_vec(vec![1.0f32; 7], [2, 3])), ErrorKind::Shape),
        ("row-major", error(s.from_row_major(&[1.0f32; 7], [2, 3])), ErrorKind::Shape),
        ("nothing", error(s.from_slice::<f32>(&[], [1, 1])), ErrorKind::Shape),
        ("overflow", error(s.from_slice(&[1.0f32], huge)), ErrorKind::TooLarge),
        ("zeros", error(s.zeros::<f32>(huge).checked()), ErrorKind::TooLarge),
        ("rand", error(s.rand::<f32>([1 << 20, 1 << 20, 1 << 20]).checked()), ErrorKind::TooLarge),
        ("eye", error(s.eye::<f32>(usize::MAX).checked()), ErrorKind::TooLarge),
        (
            "expansion",
            error((s.zeros::<f32>([1 << 20, 1]) + s.zeros::<f32>([1, 1 << 20])).checked()),
            ErrorKind::TooLarge,
        ),
        (
            "outer product",
            error(s.zeros::<f32>([1 << 20, 1]).matmul(&s.zeros::<f32>([1, 1 << 20])).checked()),
            ErrorKind::TooLarge,
        ),
        ("repmat", error(ramp(&s).repmat(&[usize::MAX, 1]).checked()), ErrorKind::TooLarge),
        ("broadcast_to", error(ramp(&s).broadcast_to([N, usize::MAX]).checked()), ErrorKind::TooLarge),
        ("reshape", error(ramp(&s).reshape([N, 2]).checked()), ErrorKind::Shape),
        ("matmul", error(ramp(&s).matmul(&ramp(&s)).checked()), ErrorKind::Shape),
        ("cat", error(cat(1, &[&ramp(&s), &s.zeros::<f32>([3, 1])])), ErrorKind::Shape),
        ("slice", error(ramp(&s).slice((0..N as i64 + 1, 0)).checked()), ErrorKind::Index),
        ("integer in a slice", error(ramp(&s).slice((N as i64, 0)).checked()), ErrorKind::Index),
        ("step of zero", error(ramp(&s).slice((step(.., 0), 0)).checked()), ErrorKind::Argument),
        ("permutation", error(ramp(&s).permute(&[0, 0]).checked()), ErrorKind::Argument),
        ("integers as float", error(s.randn::<i32>([N, 1]).checked()), ErrorKind::DType),
        ("range of nothing", error(s.randi::<i32>(5..5, [N, 1]).checked()), ErrorKind::Argument),
        (
            "range to the least",
            error(s.randi::<i32>(std::ops::Range { start: 0, end: i64::MIN }, [N, 1]).checked()),
            ErrorKind::Argument,
        ),
        ("integers drawn", s.draw::<i32>(false, 3).expect_err("it must fail"), ErrorKind::DType),
        ("infinite range", error(s.arange(0.0f32, 1.0, 0.0).checked()), ErrorKind::Argument),
        ("fractions as index", error(ramp(&s).take(&(ramp(&s) * 0.5)).checked()), ErrorKind::DType),
        ("bools as index", error(ramp(&s).take_dim(0, &ramp(&s).gt(1.0)).checked()), ErrorKind::DType),
        ("mixed integers", error((s.zeros::<i32>([N, 1]) + s.zeros::<u8>([N, 1])).checked()), ErrorKind::DType),
        ("assignment", error(ramp(&s).assign((0..3, 0), s.zeros::<f32>([4, 1])).checked()), ErrorKind::Shape),
    ];
    let last = line!();
    for (what, error, kind) in cases {
        assert_eq!(error.kind(), kind, "{what}: {error}");
        assert!(error.op().is_some(), "{what}: {error}");
        let at = error.location().unwrap_or_else(|| panic!("{what}: {error}"));
        assert!(at.file().ends_with("faults.rs") && (first..last).contains(&at.line()), "{what}: {error}");
    }
    let mut writer = s.upload::<f32>([2, 2]).unwrap();
    writer.write(&[1.0, 2.0, 3.0]).unwrap();
    assert_eq!(writer.write(&[4.0, 5.0]).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(done("writer", writer.finish().gather::<f32>()).unwrap().as_slice(), [1.0, 2.0, 3.0, 0.0]);
    assert!(s.upload::<f32>(huge).is_err());
    assert_eq!(done("dtype", ramp(&s).gather::<f64>()).unwrap_err().kind(), ErrorKind::DType);
    assert_eq!(done("item", ramp(&s).item::<f32>()).unwrap_err().kind(), ErrorKind::Shape);
}

#[test]
fn unknown_devices_and_unwritable_timelines_are_errors_before_anything_starts() {
    for name in ["tpu", "gpu:one", ""] {
        let error = Runtime::builder().device(name).start_blocking().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device, "{name}: {error}");
    }
    let error = Runtime::builder().device("gpu:4711").start_blocking().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device, "{error}");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "kept").unwrap();
    for path in [dir.path().to_owned(), dir.path().join("none/t.json"), dir.path().join("file/t.json")] {
        let error = Runtime::builder().device("host").timeline(&path).start_blocking().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.message().contains(path.to_str().unwrap()), "{error} must name the path");
    }
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["file"], "nothing partial is left");
    assert_eq!(std::fs::read(dir.path().join("file")).unwrap(), b"kept");
}

#[test]
fn a_runtime_that_does_not_start_leaves_no_timeline() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.json");
    assert!(Runtime::builder().device("gpu:4711").timeline(&path).start_blocking().is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing partial is left");
}

/// The bits of f32, which can be compared in one call, not element by element.
fn bits(values: &[f32]) -> &[u32] {
    bytemuck::cast_slice(values)
}

/// Runs a program of three sessions whose values are on the device and, under the budget, are evicted again. Each
/// gather must resolve, to the right elements if it does not fail. Returns the number of failed gathers.
fn under_fire(what: &str, rt: &Runtime) -> usize {
    let sessions: Vec<Session> = (0..3).map(|_| rt.session("under fire").open()).collect();
    let mut expected = Vec::new();
    let mut arrays = Vec::new();
    for (i, s) in sessions.iter().enumerate() {
        let base = s.from_vec(vec![1.0f32; 50_000], [50_000, 1]).unwrap();
        for j in 0..8 {
            let array = (&base + (10 * i + j) as f64).sqrt().square().round();
            drop(done(what, array.eval()));
            arrays.push(array);
            expected.push((10 * i + j + 1) as f32);
        }
    }
    let (mut failed, mut gathers) = (0, tidemill::gather_all::<f32>(&arrays));
    while let Some((i, result)) = done(what, futures::StreamExt::next(&mut gathers)) {
        match result {
            Ok(values) => {
                let same = [expected[i]; 1000];
                let all = values.as_slice().chunks(same.len()).all(|part| bits(part) == bits(&same));
                assert!(values.len() == 50_000 && all, "{what}: {i} is wrong");
            }
            Err(error) => {
                assert!(error.op().is_some() && error.device().is_some(), "{what}: {error:?}");
                assert!(error.location().is_some_and(|at| at.file().ends_with("faults.rs")), "{what}: {error:?}");
                failed += 1;
            }
        }
    }
    for s in &sessions {
        assert_works(what, s);
    }
    failed
}

#[test]
fn a_fault_in_any_batch_resolves_every_gather_and_leaves_a_runtime_that_works() {
    type Fault = (&'static str, fn(&mut Injection, u64));
    let faults: [Fault; 6] = [
        ("lost", |i, n| i.lose_device_at_batch = Some(n)),
        ("found lost", |i, n| i.lose_device_in_completion_at_batch = Some(n)),
        ("panic over its end", |i, n| i.panic_in_completion_at_batch = Some(n)),
        ("panic in a poll", |i, n| i.panic_in_poll_at_batch = Some(n)),
        ("panic", |i, n| i.panic_at_batch = Some(n)),
        ("out of memory", |i, n| i.out_of_memory_at_batch = Some(n)),
    ];
    // The short form injects two of the faults in each batch.
    let every = rounds(3, 1);
    for (number, (fault, set)) in faults.into_iter().enumerate() {
        let (mut all, mut gpu) = (0, false);
        for batch in [0, 1, 2, 5, 9, 14, 20, 23, 24, 25, 26, 30].into_iter().skip(number % every).step_by(every) {
            let tight = |b: RuntimeBuilder| injected(|i| set(i, batch))(b).device_budget(2 << 20);
            for (device, rt) in runtimes(tight) {
                let failed = under_fire(&format!("{fault} in batch {batch} on {device}"), &rt);
                // A batch has one region, and evicted values of others, which are rescued. Some faults also lose
                // evicted values that were on their way to host memory.
                let most = match fault {
                    "lost" | "found lost" | "panic over its end" => 24,
                    "panic in a poll" => 0,
                    _ => 1,
                };
                assert!(failed <= most, "{failed} gathers failed by {fault} in batch {batch} on {device}");
                all += failed;
                gpu |= device == "gpu";
            }
        }
        let fails = match fault {
            "panic in a poll" => false,
            // The host has no separate thread that could fail in this way.
            "found lost" | "panic over its end" => gpu,
            _ => true,
        };
        assert_eq!(all > 0, fails, "{fault}: {all} gathers failed");
    }
}

#[test]
fn a_completion_thread_that_ends_takes_the_device_along_and_nothing_hangs() {
    let Some(rt) = gpu(injected(|i| i.end_completion_at_batch = Some(2))) else { return };
    let sessions: Vec<Session> = (0..6).map(|_| rt.session("one of six").open()).collect();
    let pending = sessions.iter().map(|s| ramp(s).exp().gather::<f32>());
    let mut failed = 0;
    for result in done("six", futures::future::join_all(pending)) {
        match result {
            Ok(values) => assert_eq!(values[0], 1.0),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::DeviceLost, "{error}");
                failed += 1;
            }
        }
    }
    assert!(failed <= 6);
    // The runtime goes on with the host.
    for s in &sessions {
        assert_works("after", s);
    }
}

#[test]
fn recording_that_is_held_by_a_full_ring_goes_on_when_the_runtime_ends() {
    for device in ["host", "gpu"] {
        let Some((rt, hold, gathers, _)) = in_flight(device, 5, Duration::ZERO) else { continue };
        let s = rt.session("endless").open();
        let recording = std::thread::spawn(move || {
            let mut state = ramp(&s);
            while state.error().is_none() {
                state = state * 0.5 + 1.0;
                // A runtime that has ended refuses gathers, not recording.
                if let Some(Err(error)) = futures::FutureExt::now_or_never(state.gather::<f32>()) {
                    return error;
                }
            }
            state.error().cloned().expect("it was refused")
        });
        let shutdown = done(device, async {
            let release = async {
                let all = futures::future::join_all(gathers).await;
                hold.release();
                all
            };
            futures::join!(rt.shutdown(), release).0
        });
        shutdown.unwrap();
        let error = recording.join().unwrap();
        assert_eq!(error.kind(), ErrorKind::Shutdown, "{device}: {error}");
    }
}

#[test]
fn many_cancelled_gathers_leave_nothing_behind() {
    for (device, rt) in runtimes(|b| b) {
        let s = rt.session("fickle").open();
        for i in 0..2000 {
            let x = ramp(&s) * i as f64;
            let mut gather = x.gather::<f32>();
            let mut polled = Poll::Pending;
            if i % 3 > 0 {
                let mut context = futures::task::Context::from_waker(futures::task::noop_waker_ref());
                polled = std::pin::Pin::new(&mut gather).poll(&mut context);
            }
            if i % 3 == 2 {
                // If the device is fast, or this thread is slow, the first poll may yield the result.
                let result = match polled {
                    Poll::Ready(result) => result,
                    Poll::Pending => done(device, gather),
                };
                assert_eq!(result.unwrap_or_else(|e| panic!("{device}: {e}"))[1], i as f32);
            }
        }
        assert_works(device, &s);
        done(device, rt.shutdown()).unwrap();
    }
}

#[test]
fn what_is_let_go_of_is_not_run_whichever_ends_first_its_gather_or_its_handle() {
    for gather_first in [true, false] {
        let holds = std::cell::RefCell::new(Vec::new());
        let all = runtimes(|b| {
            let hold = Arc::new(Hold::default());
            holds.borrow_mut().push(hold.clone());
            let injection = Injection { hold_first_batch: Some(hold), ..Injection::default() };
            b.injection(injection).fold_elements_max(0)
        });
        for ((device, rt), hold) in all.into_iter().zip(holds.into_inner()) {
            let s = rt.session("fickle").open();
            let products = 100;
            let mut context = futures::task::Context::from_waker(futures::task::noop_waker_ref());
            for i in 0..products {
                let x = s.full(i as f32, [64, 64]);
                let y = x.matmul(&x);
                let mut gather = y.gather::<f32>();
                assert!(std::pin::Pin::new(&mut gather).poll(&mut context).is_pending(), "{device}: it is held");
                if gather_first {
                    drop(gather);
                    drop(y);
                } else {
                    drop(y);
                    drop(gather);
                }
            }
            s.flush();
            // Waits until the ring has handled everything that was sent before. Runs no kernel.
            done(device, rt.session("behind").open().zeros::<f32>([100, 1]).explain()).unwrap();
            hold.release();
            assert_works(device, &s);
            let ran = rt.stats().kernels;
            assert!(
                ran < products / 4,
                "{device}, {gather_first}: {ran} kernels of {products} products that are not demanded any more; {}",
                rt.stats()
            );
        }
    }
}

#[test]
fn a_dropped_gather_stops_what_its_array_names_until_somebody_asks_again() {
    let holds = std::cell::RefCell::new(Vec::new());
    let all = runtimes(|b| {
        let hold = Arc::new(Hold::default());
        holds.borrow_mut().push(hold.clone());
        let injection = Injection { hold_first_batch: Some(hold), ..Injection::default() };
        b.injection(injection).fold_elements_max(0)
    });
    for ((device, rt), hold) in all.into_iter().zip(holds.into_inner()) {
        let s = rt.session("fickle").open();
        let table = s.from_row_major(&[0.5f32; 64 * 64], [64, 64]).unwrap();
        let products = 100;
        let mut context = futures::task::Context::from_waker(futures::task::noop_waker_ref());
        // Each product is computed from an array that lives on, from one that is dropped, and from the product before.
        let mut held: Vec<Array> = Vec::new();
        for i in 0..products {
            let x = s.full(i as f32, [64, 64]);
            let y = x.matmul(&table) + held.last().unwrap_or(&table);
            let mut gather = y.gather::<f32>();
            assert!(std::pin::Pin::new(&mut gather).poll(&mut context).is_pending(), "{device}: it is held");
            drop(gather);
            held.push(y);
        }
        s.flush();
        // Waits until the ring has handled everything that was sent before. Runs no kernel.
        done(device, rt.session("behind").open().zeros::<f32>([100, 1]).explain()).unwrap();
        hold.release();
        assert_works(device, &s);
        let ran = rt.stats().kernels;
        assert!(ran < products / 4, "{device}: {ran} kernels of {products} products; {}", rt.stats());
        // Drops the second half of the products, which the first half does not need.
        held.truncate(products as usize / 2);
        let (first, last) = (held[0].gather::<f32>(), held[held.len() - 1].gather::<f32>());
        let (first, last) = done(device, async { futures::join!(first, last) });
        assert!(first.unwrap().iter().all(|v| *v == 0.5), "{device}");
        let expected = 0.5 + (0..products / 2).map(|i| i as f32 * 32.0).sum::<f32>();
        assert!(last.unwrap().iter().all(|v| *v == expected), "{device}");
        let now = rt.stats().kernels;
        assert!(now < 2 * products, "{device}: {now} kernels; {}", rt.stats());
        drop(held);
        done(device, rt.shutdown()).unwrap();
    }
}

#[test]
fn arrays_without_elements_go_through_every_op() {
    for (device, rt) in runtimes(|b| b.fold_elements_max(0)) {
        let s = rt.session("empty").open();
        for dims in [[0usize, 3], [3, 0], [0, 0]] {
            let x = s.zeros::<f32>(dims);
            let index = s.zeros::<u32>([0, 1]);
            let [rows, columns] = dims;
            let cases: Vec<(&str, Array, Vec<usize>)> = vec![
                ("exp", x.exp(), vec![rows, columns]),
                ("add", &x + &x, vec![rows, columns]),
                ("compare", x.gt(1.0), vec![rows, columns]),
                ("cast", x.cast::<i64>(), vec![rows, columns]),
                ("cumsum", x.cumsum(0), vec![rows, columns]),
                ("cummax", x.cummax(1), vec![rows, columns]),
                ("diff", x.diff(0), vec![rows.saturating_sub(1), columns]),
                ("sort", x.sort(0).0, vec![rows, columns]),
                ("argsort", x.argsort(1), vec![rows, columns]),
                ("transpose", x.t(), vec![columns, rows]),
                ("reshape", x.reshape([0, 7]), vec![0, 7]),
                ("flatten", x.flatten(), vec![0, 1]),
                ("permute", x.permute(&[1, 0]), vec![columns, rows]),
                ("slice", x.slice((.., ..)), vec![rows, columns]),
                ("flip", x.flip(0), vec![rows, columns]),
                ("repmat", x.repmat(&[2, 2]), vec![rows * 2, columns * 2]),
                ("repmat by nothing", s.ones::<f32>([2, 2]).repmat(&[0, 1]), vec![0, 2]),
                ("circshift", x.circshift(&[1, 1]), vec![rows, columns]),
                ("tril", x.tril(0), vec![rows, columns]),
                ("cat", cat(0, &[&x, &x]).unwrap(), vec![rows * 2, columns]),
                ("matmul", x.matmul(&x.t()), vec![rows, rows]),
                ("take", x.take(&index), vec![0, 1]),
                ("take from many", ramp(&s).take(&index), vec![0, 1]),
                ("take no rows", ramp(&s).take_dim(0, &index), vec![0, 1]),
                ("assign nothing", ramp(&s).assign_at(&index, 5.0), vec![N, 1]),
                ("assign to no rows", ramp(&s).assign((0..0, ..), 5.0), vec![N, 1]),
                ("sum", x.sum(..), vec![1, 1]),
                ("mean", x.mean(0), vec![1, columns]),
                ("std", x.std(1), vec![rows, 1]),
                ("norm", x.norm(..), vec![1, 1]),
                ("prod", x.prod(..), vec![1, 1]),
                ("all", x.all(..), vec![1, 1]),
                ("rand", s.rand::<f32>(dims), vec![rows, columns]),
                ("randi", s.randi::<i32>(0..5, dims), vec![rows, columns]),
                ("eye", s.eye::<f32>(0), vec![0, 0]),
                ("linspace", s.linspace(0.0f32, 1.0, 0), vec![1, 0]),
                ("arange", s.arange(5.0f32, 1.0, 1.0), vec![1, 0]),
                ("from nothing", s.from_vec(Vec::<f32>::new(), dims).unwrap(), vec![rows, columns]),
            ];
            for (op, array, shape) in cases {
                let what = format!("{op} of {dims:?} on {device}");
                let values = done(&what, array.gather_any()).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(values.shape().dims(), shape, "{what}");
                assert_eq!(values.to_f64().len(), shape.iter().product::<usize>(), "{what}");
            }
            let what = format!("argmax of {dims:?} on {device}");
            let error = done(&what, x.flatten().argmax(0).gather_any()).unwrap_err();
            assert_eq!((error.kind(), error.op()), (ErrorKind::Argument, Some("argmax")), "{what}: {error}");
            assert!(done(device, x.nonzero()).unwrap().elements().unwrap() == 0);
            let error = done(device, x.take(&s.zeros::<u32>([2, 1])).gather::<f32>()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Index, "{error}");
        }
    }
}

/// The first element of an array, whose gather must not fail.
#[track_caller]
fn first(what: &str, array: &Array) -> f32 {
    done(what, array.gather::<f32>()).unwrap_or_else(|e| panic!("{what}: {e}"))[0]
}

#[test]
fn checks_of_data_fail_what_they_check_and_its_dependents_only() {
    for (device, rt) in runtimes(|b| b) {
        let (s, other) = (rt.session("checks").open(), rt.session("other").open());
        let x = ramp(&s);
        // Only the last element is outside of the domain.
        let last = (N - 1) as f64;
        let (checked, line) = (x.sqrt().ensure_for("sqrt", &x.lt(last), "a number that is too large"), line!());
        let dependents = [
            checked.clone(),
            (&checked * 2.0).sum(..),
            checked.reshape([10, N / 10]).t().max_over(1),
            checked.slice((0..10, ..)) + 1.0,
            checked.take(&s.arange(0i32, 5, 1)),
            (&x + &checked).cumsum(0),
            checked.sort(0).0,
            cat(0, &[&x, &checked]).unwrap(),
            x.assign((0..5, ..), checked.slice((7..12, ..))),
            s.ones::<f32>([1, N]).matmul(&checked),
            checked.ensure(&x.lt(0.0), "the operand's fault wins"),
        ];
        let fine = x.ensure(&x.ge(0.0), "a negative number");
        let neighbour = ramp(&other).ensure(&s.full(true, [1, 1]), "no").exp();
        let (bad, a, b, c) = done(device, async {
            futures::join!(
                futures::future::join_all(dependents.iter().map(Array::gather_any)),
                fine.gather::<f32>(),
                (&x + 1.0).gather::<f32>(),
                neighbour.gather::<f32>()
            )
        });
        for (number, result) in bad.into_iter().enumerate() {
            let what = format!("dependent {number} on {device}");
            let error = result.err().unwrap_or_else(|| panic!("{what}: no fault"));
            assert_blame(&what, &error, ErrorKind::Domain, "sqrt", line, true);
            assert_eq!(error.message(), "a number that is too large", "{what}");
        }
        for (result, first) in [(a, 0.0), (b, 1.0), (c, 1.0)] {
            assert_eq!(result.unwrap_or_else(|e| panic!("{device}: {e}"))[0], first, "{device}");
        }
        // The value keeps its fault, in later regions too.
        let later = done(device, (&checked + 1.0).gather::<f32>()).unwrap_err();
        assert_blame(device, &later, ErrorKind::Domain, "sqrt", line, true);
        assert_works(device, &s);
        assert_works(device, &other);
    }
}

#[test]
fn a_part_of_a_checked_array_carries_the_fault_of_elements_that_it_leaves_out() {
    for (device, rt) in runtimes(|b| b) {
        let s = rt.session("parts").open();
        let x = ramp(&s);
        type Part = fn(&Array, &Session) -> Array;
        let parts: [(&str, Part); 5] = [
            ("slice", |y, _| y.slice((0..10, ..))),
            ("doubled and sliced", |y, _| (y * 2.0).slice((3, 0))),
            ("diagonal", |y, _| y.reshape([10, 100]).diag(1)),
            ("taken", |y, s| y.take(&s.arange(0u32, 40, 1).reshape([4, 10]))),
            ("taken along", |y, s| y.reshape([10, 100]).take_along(1, &s.zeros::<u32>([10, 1]))),
        ];
        for (name, part) in parts {
            let what = format!("{name} on {device}");
            let last = (N - 1) as f64;
            let (y, line) = (x.ensure(&x.lt(last), "not the last one"), line!());
            let error = done(&what, part(&y, &s).gather_any()).err().unwrap_or_else(|| panic!("{what}: no fault"));
            assert_blame(&what, &error, ErrorKind::Domain, "ensure", line, true);
            // A check of a slice sees only the elements of the slice.
            let z = part(&x, &s);
            let z = z.ensure(&z.lt(last), "not the last one");
            done(&what, z.gather_any()).unwrap_or_else(|e| panic!("{what}: {e}"));
        }
    }
}

#[test]
fn a_check_that_several_regions_make_again_reports_alike_and_one_that_nobody_reads_not_at_all() {
    for (device, rt) in runtimes(|b| b) {
        let s = rt.session("again").open();
        let x = ramp(&s);
        let line = line!() + 1;
        let checked = x.sqrt().ensure_for("log", &x.gt(0.0), String::from("zero has no logarithm"));
        let mut told = Vec::new();
        for _ in 0..3 {
            told.push(done(device, (&checked + 1.0).sum(..).item::<f32>()).unwrap_err());
        }
        told.push(done(device, checked.gather::<f32>()).unwrap_err());
        for error in &told {
            assert_blame(device, error, ErrorKind::Domain, "log", line, true);
            assert_eq!(error.to_string(), told[0].to_string(), "{device}");
        }
        // Checks of values that are not gathered report nothing, even if the handle is alive or other values of the
        // same operand are gathered.
        let unread = x.ensure(&x.gt(0.0), "unread");
        let _dropped = (&unread * 2.0).exp();
        assert_eq!(first(device, &(&x + 1.0)), 1.0);
        let everything = async { futures::join!(x.nonzero(), unread.nonzero()) };
        let (fine, error) = done(device, everything);
        assert_eq!(fine.unwrap().elements().unwrap(), N - 1, "{device}");
        assert_eq!(error.unwrap_err().message(), "unread", "{device}");
        assert_works(device, &s);
    }
}

#[test]
fn conditions_expand_to_what_they_check_and_those_that_do_not_fit_fault_at_once() {
    for (device, rt) in runtimes(|b| b) {
        let s = rt.session("conditions").open();
        let x = ramp(&s).reshape([10, N / 10]);
        for (bad, condition) in [
            (false, x.lt(1e6).all(0)),
            (true, x.max_over(0).lt(500.0)),
            (false, x.max_over(1).lt(1e6)),
            (true, x.min_over(1).lt(9.0)),
            (false, x.lt(1e6).all(..)),
            (true, x.lt(500.0).all(..)),
            (true, s.full(f32::NAN, [10, 100]).ge(0.0)),
        ] {
            let checked = x.ensure(&condition, "out of its domain");
            let result = done(device, checked.sum(1).gather::<f32>());
            assert_eq!(result.err().map(|e| e.kind()), bad.then_some(ErrorKind::Domain), "{device}");
        }
        // Checks of a sum, and of an array without elements.
        let (total, line) = (x.sum(..).ensure(&x.sum(..).lt(0.0), "a sum that is not negative"), line!());
        let error = done(device, (&total + 1.0).gather::<f32>()).unwrap_err();
        assert_blame(device, &error, ErrorKind::Domain, "ensure", line, true);
        let nothing = s.zeros::<f32>([0, 3]);
        let nothing = nothing.ensure(&nothing.gt(0.0), "nothing").sum(0);
        assert_eq!(first(device, &nothing), 0.0);
        let kind = |array: Array| array.error().map(Error::kind);
        assert_eq!(kind(x.ensure(&x, "no bool")), Some(ErrorKind::DType));
        assert_eq!(kind(x.ensure(&x.t().lt(0.0), "another shape")), Some(ErrorKind::Shape));
        assert_eq!(
            kind(x.sum(0).ensure(&x.lt(0.0), "a condition that is larger than the array")),
            Some(ErrorKind::Shape)
        );
        assert_works(device, &s);
    }
}

#[test]
fn a_check_of_known_values_is_made_when_it_is_recorded() {
    let rt = common::host();
    let s = rt.session("known").open();
    let x = s.from_slice(&[4.0f32, -1.0], [1, 2]).unwrap();
    let before = rt.stats().ops_recorded;
    let (bad, line) = (x.sqrt().ensure_for("sqrt", &x.ge(0.0), "a negative number"), line!());
    assert_blame("known", bad.error().unwrap(), ErrorKind::Domain, "sqrt", line, false);
    let good = x.abs().sqrt().ensure_for("sqrt", &x.abs().ge(0.0), "a negative number");
    assert_eq!(done("known", good.gather::<f32>()).unwrap().as_slice(), [2.0, 1.0]);
    // The condition is known when it is recorded, the checked value is not.
    let large = ramp(&s);
    assert_eq!(large.ensure(&x.ge(0.0).all(..), "no").error().map(Error::kind), Some(ErrorKind::Domain));
    let sum = large.ensure(&s.full(true, [1, 1]), "yes").sum(..);
    assert_eq!(done("known", sum.item::<f32>()).unwrap(), (N * (N - 1) / 2) as f32);
    assert_eq!(rt.stats().ops_recorded - before, 3, "a ramp, its shape and its sum");
}

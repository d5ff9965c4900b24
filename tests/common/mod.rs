//! What integration tests share: runtimes over every device that is there, and comparison by value.
#![allow(dead_code)]

use futures::FutureExt;
use std::time::{Duration, Instant};
use tidemill::{Array, Runtime, Session, Stats};

/// Runtimes to run a case on: the host and, where there is an adapter, the GPU; tiny values go through the ring
/// (`folding` false) or are computed when they are recorded.
pub fn runtimes() -> Vec<(String, Runtime)> {
    let mut all = Vec::new();
    for fold in [0, 64] {
        let host = Runtime::builder().device("host").fold_elements_max(fold).start_blocking();
        all.push((format!("host, fold {fold}"), host.expect("the host device always opens")));
    }
    if let Some(gpu) = gpu(|b| b.fold_elements_max(0)) {
        all.push(("gpu".to_owned(), gpu));
    }
    all
}

/// A runtime on a device of other capabilities than the host and GPUs have: it compiles, shares the host's memory, binds
/// 8 arrays and lacks f64.
pub fn stand_in() -> Runtime {
    let injection = tidemill::testing::Injection { stands_in: true, ..Default::default() };
    let builder = Runtime::builder().device("gpu").fold_elements_max(0).injection(injection);
    builder.start_blocking().expect("host threads always start")
}

/// Whether a missing adapter fails a test.
pub fn requires_gpu() -> bool {
    std::env::var_os("TIDEMILL_REQUIRE_GPU").is_some_and(|v| v == "1")
}

/// A runtime on the GPU, or `None` with a message where there is no adapter. With `TIDEMILL_REQUIRE_GPU=1`, a missing
/// adapter fails the test.
pub fn gpu(set: impl FnOnce(tidemill::RuntimeBuilder) -> tidemill::RuntimeBuilder) -> Option<Runtime> {
    match set(Runtime::builder().device("gpu")).start_blocking() {
        Ok(runtime) => Some(runtime),
        Err(error) if requires_gpu() => panic!("a GPU is required: {error}"),
        Err(error) => {
            eprintln!("skipped on the GPU: {error}");
            None
        }
    }
}

/// One runtime a device, on which nothing folds, so that small programs go round the ring.
pub fn unfolded(set: impl Fn(tidemill::RuntimeBuilder) -> tidemill::RuntimeBuilder) -> Vec<(&'static str, Runtime)> {
    let host = set(Runtime::builder().device("host").fold_elements_max(0)).start_blocking();
    let mut all = vec![("host", host.expect("the host device always opens"))];
    all.extend(gpu(|b| set(b.fold_elements_max(0))).map(|rt| ("gpu", rt)));
    all
}

/// What was done from before `run` until all that it awaits was there.
pub fn counted<T>(runtime: &Runtime, run: impl FnOnce() -> T) -> (T, Stats) {
    let before = runtime.stats();
    let out = run();
    (out, runtime.stats().since(&before))
}

/// A runtime on the host.
pub fn host() -> Runtime {
    Runtime::builder().device("host").start_blocking().expect("the host device always opens")
}

/// Runs a future on the calling thread.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    futures::executor::block_on(future)
}

/// How long a test waits for what it polls for, before it fails: it only ends a test that would hang.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Looks again and again until something holds.
#[track_caller]
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The elements as doubles, column-major.
pub fn values(array: &Array) -> Vec<f64> {
    wait(array.gather_any()).unwrap_or_else(|e| panic!("gather failed: {e}")).to_f64()
}

/// Asserts shape and elements, to a relative tolerance; NaN equals NaN, and zeros' signs are not looked at.
#[track_caller]
pub fn assert_array(what: &str, array: &Array, shape: &[usize], expected: &[f64], tolerance: f64) {
    let own = array.shape().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(own.dims(), shape, "{what}: shape");
    let got = values(array);
    assert_eq!(got.len(), expected.len(), "{what}: length");
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        let close = g == e || (g.is_nan() && e.is_nan()) || (g - e).abs() <= tolerance * e.abs().max(1e-30);
        assert!(close, "{what}: element {i} is {g}, expected {e} (all: {got:?})");
    }
}

/// A session with a fixed seed.
pub fn session(runtime: &Runtime) -> Session {
    runtime.session("test").seed(7).open()
}

/// Polls once; whether it was ready.
pub fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    future.now_or_never()
}

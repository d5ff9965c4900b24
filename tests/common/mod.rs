//! Functions that integration tests share: runtimes on every available device, and comparison by value.
#![allow(dead_code)]

use futures::FutureExt;
use std::time::{Duration, Instant};
use tidemill::{Array, Runtime, Session, Stats};

/// Runtimes on which to run a case: on the host, with tiny values folded when recorded and not folded, and on the GPU,
/// if there is an adapter.
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

/// A runtime on a fake device with other capabilities than the host and GPUs: it compiles, shares the host's memory,
/// binds 8 arrays and lacks f64.
pub fn stand_in() -> Runtime {
    let injection = tidemill::testing::Injection { stands_in: true, ..Default::default() };
    let builder = Runtime::builder().device("gpu").fold_elements_max(0).injection(injection);
    builder.start_blocking().expect("host threads always start")
}

/// Whether a missing adapter fails a test.
pub fn requires_gpu() -> bool {
    std::env::var_os("TIDEMILL_REQUIRE_GPU").is_some_and(|v| v == "1")
}

/// A runtime on the GPU. Without an adapter, prints a message and returns `None`. With `TIDEMILL_REQUIRE_GPU=1`, a
/// missing adapter fails the test.
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

/// One runtime for each device, on which no values are folded when recorded, so that small programs reach the device.
pub fn unfolded(set: impl Fn(tidemill::RuntimeBuilder) -> tidemill::RuntimeBuilder) -> Vec<(&'static str, Runtime)> {
    let host = set(Runtime::builder().device("host").fold_elements_max(0)).start_blocking();
    let mut all = vec![("host", host.expect("the host device always opens"))];
    all.extend(gpu(|b| set(b.fold_elements_max(0))).map(|rt| ("gpu", rt)));
    all
}

/// Runs `run`, and returns its result and the difference that it made to the counters.
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

/// How long a test polls for a condition before it fails. It only ends tests that would hang.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Polls until a condition holds.
#[track_caller]
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The elements as f64, in column-major order.
pub fn values(array: &Array) -> Vec<f64> {
    wait(array.gather_any()).unwrap_or_else(|e| panic!("gather failed: {e}")).to_f64()
}

/// Asserts shape and elements, within a relative tolerance. NaN equals NaN, and the signs of zeros are ignored.
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

/// Polls a future once. Returns its output if it was ready.
pub fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    future.now_or_never()
}

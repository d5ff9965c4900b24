//! Scale: a hundred thousand ops before the first gather, or with `TIDEMILL_TESTS=all` a million; thousands of sessions
//! at the same time. The process stays within 4 GB, and the work grows linearly with the ops.

mod common;
use common::{gpu, host, wait};
use futures::StreamExt;
use tidemill::testing::rounds;
use tidemill::{Array, Runtime, Stats};

/// The greatest amount of memory that this process has used, in bytes; 0 if the system does not say.
fn peak_memory() -> u64 {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("VmHWM: 0 kB");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// The number of ops of a long program.
fn many() -> usize {
    rounds(100_000, 1_000_000)
}

fn assert_memory() {
    assert!(peak_memory() < 4 << 30, "{} MiB", peak_memory() >> 20);
}

/// Records `ops` ops that each need the one before, and gathers only the last.
async fn chain(rt: &Runtime, ops: usize) -> Stats {
    let s = rt.session("chain").open();
    let x = s.full(1.0f32, [100, 1]);
    let mut state = s.zeros::<f32>([100, 1]);
    for _ in 0..ops / 2 {
        state = (&state + &x) * 0.5;
    }
    let last = state.gather::<f32>().await.unwrap_or_else(|e| panic!("{ops} ops: {e}"));
    assert!(last.iter().all(|&v| v == 1.0), "{:?}", last[0]);
    assert_memory();
    rt.stats()
}

#[test]
fn very_many_ops_before_the_first_gather_on_a_current_thread_runtime() {
    let rt = host();
    let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let small = executor.block_on(chain(&rt, many() / 10));
    let large = executor.block_on(chain(&rt, many())).since(&small);
    assert!(large.ops_recorded >= many() as u64, "{large}");
    // Ten times the ops must cause no more than ten times the work.
    for (what, few, many) in [
        ("regions", small.regions, large.regions),
        ("kernels", small.host_kernels, large.host_kernels),
        ("bytes", small.bytes_kernel_read, large.bytes_kernel_read),
    ] {
        assert!(many <= few * 11, "{what}: {few} for a tenth of the ops, {many} for all");
    }
}

#[test]
fn very_many_ops_before_the_first_gather_on_the_gpu() {
    let Some(rt) = gpu(|b| b) else { return };
    wait(chain(&rt, many()));
}

#[test]
fn very_many_values_that_are_all_held_and_of_which_one_is_gathered() {
    let rt = Runtime::builder().device("host").fold_elements_max(0).start_blocking().unwrap();
    let s = rt.session("held").open();
    let x = s.from_vec(vec![1.0f32; 16], [16, 1]).unwrap();
    let mut held: Vec<Array> = vec![x];
    for _ in 0..many() {
        held.push(&held[held.len() - 1] + 1.0);
    }
    let values = |i: usize| wait(held[i].gather::<f32>()).unwrap_or_else(|e| panic!("{i}: {e}"));
    assert_eq!(values(many())[3], many() as f32 + 1.0);
    assert_eq!(values(many() / 2)[3], (many() / 2) as f32 + 1.0);
    assert_memory();
}

#[test]
fn very_many_ops_that_nobody_wants_are_not_computed() {
    let rt = host();
    let s = rt.session("dead").open();
    let x = s.full(1.0f32, [100, 1]);
    for _ in 0..many() {
        let _ = &x + 1.0;
    }
    assert_eq!(wait((&x * 3.0).gather::<f32>()).unwrap()[0], 3.0);
    let stats = rt.stats();
    // A value that is still held while a full tape is cut may be computed.
    assert!(stats.ops_dead >= many() as u64 - 1000, "{stats}");
    assert!(stats.host_kernels <= many() as u64 / 4096 + 3, "{stats}");
    assert_memory();
}

/// Opens `count` sessions at the same time, each with a small program and a gather.
fn sessions(rt: &Runtime, count: usize) {
    let sessions: Vec<_> = (0..count).map(|i| rt.session("one of many").seed(i as u64).open()).collect();
    let mut arrays = Vec::new();
    for (i, s) in sessions.iter().enumerate() {
        arrays.push((s.arange(0.0f32, 100.0, 1.0) + i as f64).sum(..));
    }
    let mut seen = 0;
    let mut gathers = tidemill::gather_all::<f32>(&arrays);
    while let Some((i, sum)) = wait(gathers.next()) {
        assert_eq!(sum.unwrap_or_else(|e| panic!("session {i}: {e}"))[0], 4950.0 + 100.0 * i as f32, "session {i}");
        seen += 1;
    }
    assert_eq!(seen, count);
    assert_memory();
}

#[test]
fn thousands_of_sessions_at_once_on_the_host() {
    let rt = host();
    let count = rounds(2_000, 10_000);
    sessions(&rt, count);
    assert_eq!(rt.stats().gathers, count as u64);
    assert!(rt.stats().plan_cache_misses <= 4, "they are all alike: {}", rt.stats());
}

#[test]
fn thousands_of_sessions_at_once_on_the_gpu() {
    let Some(rt) = gpu(|b| b) else { return };
    let count = rounds(2_000, 10_000);
    sessions(&rt, count);
    assert_eq!(rt.stats().gathers, count as u64);
    assert!(rt.stats().pipelines_compiled <= 8, "they are all alike: {}", rt.stats());
}

/// A step of a chain: its name, and a function of the value so far and of an index array.
type Step = (&'static str, fn(&Array, &Array) -> Array);

#[test]
fn a_thousand_kernels_of_one_region_are_found_in_moderate_time() {
    let steps: [Step; 3] = [
        ("written on the way", |x, _| x + 1.0),
        ("looked up, all at the same places", |x, index| x.take(index)),
        ("written, and folded", |x, _| (x * 0.5).max(x.mean(..))),
    ];
    let rt = Runtime::builder().device("host").fold_elements_max(0).start_blocking().unwrap();
    for (name, step) in steps {
        let s = rt.session("wide").open();
        let index = s.from_vec((0..100).rev().collect::<Vec<i32>>(), [100, 1]).unwrap();
        let first = s.from_vec(vec![1.0f32; 100], [100, 1]).unwrap();
        let mut chain = vec![first];
        for i in 0..1000 {
            chain.push(step(&chain[i], &index));
        }
        let began = std::time::Instant::now();
        let gathers = wait(futures::future::join_all(chain.iter().map(Array::gather::<f32>)));
        assert!(gathers.into_iter().all(|values| values.is_ok()), "{name}");
        // This takes a second or two. A cubic algorithm would take more than a minute.
        assert!(began.elapsed().as_secs() < 30, "{name}: {:?}", began.elapsed());
    }
}

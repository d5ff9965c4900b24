//! A device is lost again and again under many sessions that run random programs, share and keep values, cancel and
//! close. No gather hangs, and each gives the right numbers or an error that says that the device was lost.
//! `TIDEMILL_STORM_FIRST` and `TIDEMILL_STORM_ROUNDS` in the environment make a longer run of other rounds.

mod common;
#[path = "common/plain.rs"]
mod plain;
#[path = "common/programs.rs"]
mod programs;

use common::gpu;
use programs::{Dice, Twist, decode, run};
use std::time::Duration;
use tidemill::testing::{Injection, rounds};
use tidemill::{Array, Error, ErrorKind, Runtime, RuntimeBuilder, Session};

/// A gather that takes longer counts as hanging.
const HANG: Duration = Duration::from_secs(60);
/// Elements of kept and shared arrays: more than those of arrays that are folded when recorded.
const N: usize = 1000;
/// The number of different random programs. It is small, so that a GPU compiles few pipelines.
const STRUCTURES: usize = 5;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Runs one task of a round, on a session of its own (`owns`) or on a shared one.
async fn task(s: Session, seed: u64, shared: Array, owns: bool) -> Result<(), String> {
    let mut dice = Dice::new(seed);
    let structure = dice.below(STRUCTURES) as u64;
    let mut steps = Dice::new(structure);
    let steps: Vec<u64> = (0..14).map(|_| steps.below(usize::MAX) as u64).collect();
    let program = decode(structure, &steps);
    let twist = match dice.below(4) {
        0 => Twist::Cancel,
        1 => Twist::Poison(dice.below(99)),
        _ => Twist::None,
    };
    // These arrays are kept during the whole task. One is on the device only, the other depends on another session's
    // array.
    let mine = s.from_vec((0..N).map(|i| i as f32).collect(), [N, 1]).map_err(|e| e.to_string())? + 1.0;
    let theirs = s.adopt(&shared).map_err(|e| e.to_string())? * 2.0;
    if dice.one_in(2) {
        ended("an eval", mine.eval().await.map(|()| true))?;
    }
    if owns && dice.one_in(3) {
        let closed = theirs.gather::<f32>();
        s.close();
        return match closed.await {
            Err(e) if e.kind() != ErrorKind::Cancelled => ended("of a closed session", Err(e)),
            _ => Ok(()),
        };
    }
    match run(&s, &program, twist).await {
        Err(said) if !said.contains("lost") => return Err(format!("{said}\n{program:?}")),
        _ => {}
    }
    let (mine, theirs) = futures::join!((&mine * 2.0).gather::<f32>(), theirs.gather::<f32>());
    let right = |array: tidemill::HostArray<f32>| (0..N).all(|i| array[i] == 2.0 * (i + 1) as f32);
    ended("what was kept", mine.map(right))?;
    ended("what was shared", theirs.map(right))
}

/// Checks that a result is right, or an error that says that the device was lost.
fn ended(what: &str, result: Result<bool, Error>) -> Result<(), String> {
    match result {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("{what}: wrong elements")),
        Err(error) if error.kind() == ErrorKind::DeviceLost => Ok(()),
        Err(error) => Err(format!("{what}: {error:?}")),
    }
}

/// Runs one round. Returns the number of gathers that failed and of values that were recomputed.
fn round(what: &str, rt: &Runtime, seed: u64) -> [u64; 2] {
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let home = rt.session("shares").open();
    let ramp = home.from_vec((0..N).map(|i| i as f32).collect(), [N, 1]).unwrap();
    let shared = (&ramp + 1.0).share().unwrap();
    let tape = rt.session("several tasks").seed(1).open();
    let tasks = (0..12).map(|i| {
        let owns = i % 4 > 0;
        let s = if owns { rt.session("one task").seed(i).open() } else { tape.clone() };
        let task = task(s, seed << 8 | i, shared.clone(), owns);
        async move { (i, tokio::time::timeout(HANG, task).await) }
    });
    for (i, result) in executor.block_on(futures::future::join_all(tasks)) {
        match result {
            Ok(Ok(())) => {}
            Ok(Err(said)) => panic!("{what}, task {i}: {said}"),
            Err(_) => panic!("{what}, task {i}: it hangs; {}", rt.stats()),
        }
    }
    drop(shared);
    // Between two losses, the runtime must complete some work.
    let works = async {
        for _ in 0..20 {
            match (&ramp * 2.0).sum(..).item::<f32>().await {
                Ok(sum) => return assert_eq!(sum, (N * (N - 1)) as f32, "{what}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::DeviceLost, "{what}: {error}"),
            }
        }
        panic!("{what}: nothing is computed any more");
    };
    executor.block_on(async { tokio::time::timeout(HANG, works).await }).unwrap_or_else(|_| panic!("{what}: hangs"));
    let stats = rt.stats();
    [stats.gathers_failed, stats.values_made_again]
}

/// Runs the rounds for a device, each with other losses, budgets, segments and batches in flight.
fn storm(device: &str, open: impl Fn(&dyn Fn(RuntimeBuilder) -> RuntimeBuilder) -> Option<Runtime>, rounds: u64) {
    let (first, rounds) = (number("TIDEMILL_STORM_FIRST", 0), number("TIDEMILL_STORM_ROUNDS", rounds));
    let mut seen = [0, 0];
    for seed in first..first + rounds {
        let mut dice = Dice::new(seed);
        let mut injection = Injection::default();
        match dice.below(8) {
            0 => injection.lose_device_in_completion_at_batch = Some(dice.below(20) as u64),
            1 => injection.lose_device_at_batch = Some(dice.below(20) as u64),
            _ => injection.lose_device_every = Some(3 + dice.below(12) as u64),
        }
        if dice.one_in(4) {
            (injection.segment_shift, injection.span_shift) = (Some(8), Some(20));
        }
        if dice.one_in(3) {
            injection.slice_us = Some(5.0);
            // Losses are farther apart, so that work of several batches can complete between two of them.
            injection.lose_device_every = injection.lose_device_every.map(|every| every + 10);
        }
        let (batches, tight) = (1 + dice.below(4) as u32, dice.one_in(3));
        let what = format!("{device}, round {seed} ({injection:?}, {batches} batches, tight: {tight})");
        let set = |b: RuntimeBuilder| {
            let b = b.fold_elements_max(0).batches_in_flight(batches).injection(injection.clone());
            if tight { b.device_budget(64 << 10) } else { b }
        };
        let Some(rt) = open(&set) else { return };
        let [failed, again] = round(&what, &rt, seed);
        seen = [seen[0] + failed, seen[1] + again];
    }
    eprintln!("{device}: {} gathers failed, {} values were made again", seen[0], seen[1]);
    assert!(rounds < 12 || device == "host" || seen[1] > 0, "{device}: no storm");
}

#[test]
fn a_gpu_that_is_lost_again_and_again_leaves_right_numbers_or_an_error() {
    storm("gpu", |set| gpu(set), rounds(3, 12));
}

#[test]
fn a_host_that_fails_again_and_again_leaves_right_numbers_or_an_error() {
    storm(
        "host",
        |set| Some(set(Runtime::builder().device("host")).start_blocking().expect("the host device always opens")),
        rounds(8, 30),
    );
}

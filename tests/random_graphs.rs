//! Random programs through the public API, compared with plain loops over f64.

mod common;
#[path = "common/plain.rs"]
mod plain;
#[path = "common/programs.rs"]
mod programs;

use common::{gpu, stand_in, wait};
use programs::{Dice, Twist, decode, run};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use proptest::{arbitrary::any, collection::vec, strategy::Strategy};
use std::time::Duration;
use tidemill::Runtime;
use tidemill::testing::{Injection, rounds};

/// Runs `cases` random programs. A failing one is shrunk and printed.
fn programs_agree(what: &str, rt: &Runtime, seed: u8, cases: u32) {
    programs_agree_with(what, rt, seed, cases, |_| Twist::None);
}

/// As `programs_agree`, with a disturbance that depends on a program's seed.
fn programs_agree_with(what: &str, rt: &Runtime, seed: u8, cases: u32, twist: fn(u64) -> Twist) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let numbers = (any::<u64>().no_shrink(), vec(any::<u64>().no_shrink(), 5..40));
    let result = TestRunner::new_with_rng(config, rng).run(&numbers, |(first, steps)| {
        let s = rt.session("random").seed(1).open();
        wait(run(&s, &decode(first, &steps), twist(first))).map_err(TestCaseError::fail)
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(reason, (first, steps))) => {
            panic!("{what}, seed {seed}, numbers ({first}, {steps:?}): {reason}\n{:?}", decode(first, &steps))
        }
        Err(error) => panic!("{what}, seed {seed}: {error}"),
    }
}

/// The number of cases: `TIDEMILL_CASES` if set, for long runs; otherwise `usual`, or a quarter of it without
/// `TIDEMILL_TESTS=all`.
fn cases(usual: u32) -> u32 {
    let asked = std::env::var("TIDEMILL_CASES").ok().and_then(|n| n.parse().ok());
    asked.unwrap_or(rounds(usual.div_ceil(4), usual))
}

fn host(fold: usize) -> Runtime {
    let host = Runtime::builder().device("host").fold_elements_max(fold).start_blocking();
    host.expect("the host device always opens")
}

#[test]
fn random_programs_agree_with_plain_loops_on_the_host() {
    programs_agree("host", &host(0), 1, cases(300));
}

#[test]
fn random_programs_agree_with_plain_loops_where_tiny_values_fold() {
    programs_agree("host, folding", &host(64), 2, cases(400));
}

#[test]
fn random_programs_agree_with_plain_loops_on_the_gpu() {
    let Some(rt) = gpu(|b| b.fold_elements_max(0)) else { return };
    programs_agree("gpu", &rt, 3, cases(24));
}

#[test]
fn random_programs_agree_with_plain_loops_where_arrays_lie_in_short_segments() {
    let injection = Injection { segment_shift: Some(4), span_shift: Some(20), ..Injection::default() };
    let Some(rt) = gpu(|b| b.fold_elements_max(0).injection(injection)) else { return };
    programs_agree("gpu, short segments", &rt, 7, cases(24));
}

#[test]
fn random_programs_agree_with_plain_loops_on_a_device_of_other_capabilities() {
    let rt = stand_in();
    programs_agree("stand-in", &rt, 9, cases(100));
    let x = rt.session("wide").open().from_slice(&[1.0f64, 2.0], [2]).unwrap() + 1.0;
    assert_eq!(wait(x.gather::<f64>()).unwrap()[1], 3.0);
    assert!(rt.stats().elsewhere.contains_key("this device lacks f64"), "{}", rt.stats());
}

/// One check of a program fails. A third of the other values have a check that holds.
fn poison(first: u64) -> Twist {
    Twist::Poison((first >> 32) as usize)
}

#[test]
fn what_depends_on_a_check_that_fails_and_nothing_else_fails_with_it() {
    programs_agree_with("host, poisoned", &host(0), 4, cases(200), poison);
    programs_agree_with("host, folding, poisoned", &host(64), 5, cases(100), poison);
    let Some(rt) = gpu(|b| b.fold_elements_max(0)) else { return };
    programs_agree_with("gpu, poisoned", &rt, 6, cases(16), poison);
}

#[test]
fn where_a_device_is_lost_random_programs_end_with_the_right_numbers_or_say_so() {
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for at in (0..12).step_by(rounds(2, 1)) {
        let injection = Injection { lose_device_at_batch: Some(at), ..Injection::default() };
        let Some(rt) = gpu(|b| b.fold_elements_max(0).injection(injection)) else { return };
        for case in 0..u64::from(cases(6)) {
            let mut dice = Dice::new(at << 32 | case);
            let steps: Vec<u64> = (0..25).map(|_| dice.below(usize::MAX) as u64).collect();
            let program = decode(case, &steps);
            let s = rt.session("random").seed(1).open();
            let ended = async { tokio::time::timeout(Duration::from_secs(300), run(&s, &program, Twist::None)).await };
            match executor.block_on(ended) {
                Ok(Ok(())) => {}
                Ok(Err(said)) => assert!(said.contains("lost"), "lost at {at}, case {case}: {said}\n{program:?}"),
                Err(_) => panic!("lost at {at}, case {case}: it hangs; {}\n{program:?}", rt.stats()),
            }
        }
    }
}

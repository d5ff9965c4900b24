//! Tests when free memory is returned to the system: after work has ended, but not while it goes on.

mod common;

use common::{PATIENCE, unfolded, until, wait};
use std::time::{Duration, Instant};
use tidemill::testing::rounds;

/// Makes large and small values, uploads and readbacks, and drops all of them.
fn burst(s: &tidemill::Session) {
    let data = vec![1.0f32; 1 << 20];
    let large: Vec<_> =
        (0..12).map(|_| s.from_slice(&data, [1 << 20, 1]).unwrap() + s.rand::<f32>([1 << 20, 1])).collect();
    let small: Vec<_> = (0..200).map(|i| s.rand::<f32>([100 + i, 1])).collect();
    for x in large.iter().chain(&small) {
        wait(x.eval()).unwrap();
    }
    let all: Vec<_> = large.iter().map(|x| wait(x.gather::<f32>()).unwrap()).collect();
    assert!(all.iter().all(|values| values.len() == 1 << 20));
}

#[test]
fn after_a_burst_the_memory_goes_back_in_steps_and_comes_again_when_it_is_needed() {
    for (device, rt) in unfolded(|b| b.idle_release(Duration::from_millis(200))) {
        let s = rt.session("burst").open();
        for round in 0..2 {
            let before = rt.stats();
            burst(&s);
            s.flush();
            let (begin, mut levels) = (Instant::now(), Vec::new());
            loop {
                let now = rt.stats();
                if levels.last() != Some(&now.bytes_returned) {
                    levels.push(now.bytes_returned);
                }
                if now.bytes_pooled_now == 0 && now.bytes_resident_now == 0 {
                    break;
                }
                assert!(begin.elapsed() < PATIENCE, "{device}, {round}: {now}");
                std::thread::sleep(Duration::from_millis(1));
            }
            let did = rt.stats().since(&before);
            assert!(did.bytes_returned > 32 << 20, "{device}, {round}: {did}");
            assert!(levels.len() > 3, "{device}, {round}: {levels:?}");
        }
        assert_eq!(wait(s.ones::<f32>([1 << 20, 1]).sum(..).item::<f32>()).unwrap(), (1 << 20) as f32, "{device}");
    }
}

#[test]
fn what_is_let_go_of_while_the_runtime_sleeps_is_not_kept() {
    for (device, rt) in unfolded(|b| b.idle_release(Duration::from_millis(20))) {
        let s = rt.session("sleeper").open();
        let all: Vec<_> = (0..4).map(|_| wait(s.rand::<f32>([1 << 20, 1]).gather::<f32>()).unwrap()).collect();
        s.flush();
        let begin = Instant::now();
        let mut seen = (rt.stats(), Instant::now());
        // Waits until the counters have not changed for half a second.
        while seen.1.elapsed() < Duration::from_millis(500) {
            assert!(begin.elapsed() < PATIENCE, "{device}: {}", seen.0);
            let now = rt.stats();
            if now != seen.0 {
                seen = (now, Instant::now());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(all);
        until(&format!("{device}: nothing is pooled"), || rt.stats().bytes_pooled_now == 0);
    }
}

#[test]
fn work_that_goes_on_keeps_what_it_uses() {
    for (device, rt) in unfolded(|b| b.idle_release(Duration::from_millis(200))) {
        let s = rt.session("steady").open();
        let step = || wait((s.rand::<f32>([1 << 18, 1]) * 2.0).exp().gather::<f32>()).map(drop).unwrap();
        (0..10).for_each(|_| step());
        let warm = rt.stats();
        let begin = Instant::now();
        let pause = rounds(Duration::from_millis(20), Duration::ZERO);
        // Works for many times as long as free memory is kept.
        while begin.elapsed() < Duration::from_secs(2) {
            step();
            std::thread::sleep(pause);
        }
        let did = rt.stats().since(&warm);
        assert!(did.pool_misses * 20 <= did.pool_hits, "{device}: {did}");
    }
}

#[test]
fn a_runtime_that_is_to_keep_its_memory_keeps_it() {
    let rt = tidemill::Runtime::builder().device("host").fold_elements_max(0).idle_release(Duration::MAX);
    let rt = rt.start_blocking().unwrap();
    let s = rt.session("keeps").open();
    burst(&s);
    s.flush();
    std::thread::sleep(Duration::from_millis(300));
    let now = rt.stats();
    assert!(now.bytes_pooled_now > 16 << 20 && now.bytes_returned == 0, "{now}");
}

//! What runs, and when: one test for each rule, through the public API, on the host and, if there is one, on the GPU.

mod common;
use common::{counted, host, poll_once, session, unfolded, values, wait};
use tidemill::testing::rounds;
use tidemill::{Array, ArrayState, ErrorKind, Runtime, Session};

/// Waits, in a session of its own, until the ring has handled everything that was sent before. Runs no kernel.
fn sync(rt: &Runtime) {
    let s = rt.session("sync").open();
    wait(s.zeros::<f32>([100, 1]).explain()).unwrap();
}

fn source(s: &Session, n: usize) -> Array {
    s.from_vec((0..n).map(|i| (i % 13) as f32 * 0.125).collect::<Vec<f32>>(), [n, 1]).unwrap()
}

#[test]
fn a_demand_waits_on_the_tape_until_the_first_poll_and_then_all_demands_run_as_one_region() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = source(&s, 1000);
        let mut one = (&x + 1.0).gather::<f32>();
        let two = (&x * 2.0).gather::<f32>();
        let three = (&x * 3.0).sum(..).eval();
        sync(&rt);
        assert_eq!((rt.stats().ops_recorded, rt.stats().regions), (1, 0), "{device}: only sync's own op was sent");
        let polled = poll_once(&mut one);
        // The first gather is not polled again until the others are ready.
        let (two, three) = wait(async { futures::join!(two, three) });
        three.unwrap();
        assert_eq!(two.unwrap()[1], 0.25, "{device}");
        let one = polled.unwrap_or_else(|| wait(one)).unwrap();
        assert_eq!(one[1], 1.125, "{device}");
        assert_eq!((rt.stats().regions, rt.stats().gathers), (1, 3), "{device}");
    }
}

#[test]
fn a_flush_starts_what_is_demanded_and_computes_nothing_else() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = source(&s, 1000);
        let lazy = x.exp();
        s.flush();
        sync(&rt);
        assert_eq!(rt.stats().regions, 0, "{device}: nothing was demanded");
        let gather = (&x + 1.0).gather::<f32>();
        s.flush();
        sync(&rt);
        assert_eq!(rt.stats().regions, 1, "{device}: in progress without a poll");
        assert_eq!(wait(gather).unwrap()[0], 1.0);
        assert_eq!(lazy.state(), ArrayState::Lazy, "{device}");
    }
}

#[test]
fn an_eval_keeps_the_value_on_its_device_and_its_users_read_it() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = s.rand::<f32>([1000, 1]).exp();
        let (_, made) = counted(&rt, || wait(x.eval()).unwrap());
        assert_eq!((made.bytes_kernel_written, made.bytes_read_back), (4000, 0), "{device}");
        assert_eq!(x.state(), ArrayState::Evaluated);
        let (_, used) = counted(&rt, || wait((&x + 1.0).eval()).unwrap());
        assert_eq!((used.bytes_kernel_read, used.bytes_kernel_written), (4000, 4000), "{device}");
        let (_, again) = counted(&rt, || wait(x.eval()).unwrap());
        assert_eq!((again.regions, again.kernels), (0, 0), "{device}: it is there");
    }
}

#[test]
fn at_its_limit_on_nodes_a_tape_is_cut_without_a_demand() {
    for (device, rt) in unfolded(|b| b.tape_nodes_max(10)) {
        let s = session(&rt);
        let mut y = s.rand::<f32>([100, 1]);
        for _ in 0..24 {
            y += 1.0;
        }
        // The 25 ops are two full tapes, and five ops on the third.
        assert_eq!(rt.stats().ops_recorded, 20, "{device}");
        let last = wait((y - 24.0).gather::<f32>()).unwrap();
        assert!(last.iter().all(|v| (-1e-5..=1.0).contains(v)), "{device}");
        assert_eq!(rt.stats().ops_recorded, 26, "{device}");
    }
}

#[test]
fn at_its_limit_on_bytes_a_tape_is_cut_without_a_demand() {
    for (device, rt) in unfolded(|b| b.tape_bytes_max(1 << 20)) {
        let s = session(&rt);
        let n = 1 << 16;
        let mut total = s.zeros::<f32>([n, 1]);
        for step in 0..8 {
            assert_eq!(rt.stats().ops_recorded > 0, step > 4, "{device}, step {step}: 256 KiB more a step");
            total += s.from_vec(vec![1.0f32; n], [n, 1]).unwrap();
        }
        assert_eq!(wait(total.gather::<f32>()).unwrap()[n - 1], 8.0, "{device}");
    }
}

/// Runs a program with demands, evals, drops and limits. Returns its last result.
async fn some_program(s: Session) -> f32 {
    let x = source(&s, 500);
    let mut y = s.rand::<f32>([500, 1]);
    for step in 0..60 {
        y = (&y * 0.9 + &x).min(3.0);
        if step % 20 == 10 {
            y.eval().await.unwrap();
        }
        drop(&y - 1.0);
    }
    let (low, high) = (y.min_over(..), y.max_over(..));
    let (low, high) = futures::try_join!(low.item::<f32>(), high.item::<f32>()).unwrap();
    low + high
}

#[test]
fn the_same_program_is_cut_and_planned_the_same_alone_and_beside_fifty_others() {
    for (device, rt) in unfolded(|b| b.tape_nodes_max(32)) {
        let alone = wait(some_program(session(&rt)));
        let first = rt.stats();
        assert!(first.regions >= 4 && first.kernels >= 4, "{device}: {first}");
        let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(3).build().unwrap();
        let (all, did) = counted(&rt, || {
            let tasks: Vec<_> = (0..50).map(|_| executor.spawn(some_program(session(&rt)))).collect();
            tasks.into_iter().map(|t| wait(t).unwrap()).collect::<Vec<f32>>()
        });
        assert!(all.iter().all(|v| v.to_bits() == alone.to_bits()), "{device}: {alone} and {all:?}");
        assert_eq!((did.regions, did.kernels), (50 * first.regions, 50 * first.kernels), "{device}");
        assert_eq!(did.plan_cache_misses, 0, "{device}");
        assert_eq!(did.plan_cache_hits, 50 * (first.plan_cache_hits + first.plan_cache_misses), "{device}");
        assert_eq!((did.ops_dead, did.pipelines_compiled), (50 * first.ops_dead, 0), "{device}");
    }
}

#[test]
fn a_value_that_nobody_can_reach_at_the_cut_is_never_computed() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = source(&s, 1000);
        let kept = &x + 1.0;
        drop((&x * 3.0).exp());
        let (_, did) = counted(&rt, || wait(kept.gather::<f32>()).unwrap());
        assert_eq!((did.ops_recorded, did.ops_dead), (4, 2), "{device}");
        assert_eq!((did.kernels, did.bytes_kernel_written), (1, 4000), "{device}");
    }
}

#[test]
fn a_live_value_passed_through_is_not_written_the_first_time_and_is_the_second() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = source(&s, 1000);
        let y = x.exp();
        let pass = |by: f64| counted(&rt, || wait((&y * by).eval()).unwrap()).1;
        let first = pass(2.0);
        assert_eq!((first.bytes_kernel_read, first.bytes_kernel_written), (4000, 4000), "{device}: only the product");
        let second = pass(3.0);
        assert_eq!((second.kernels, second.bytes_kernel_written), (1, 8000), "{device}: the value beside its product");
        let third = pass(4.0);
        assert_eq!((third.bytes_kernel_read, third.bytes_kernel_written), (4000, 4000), "{device}");
        drop(x);
        let plan = wait((&y * 5.0).explain()).unwrap();
        assert!(plan.contains("1 op(s): mul"), "{device}: it is not computed again: {plan}");
    }
}

#[test]
fn a_live_value_that_would_pin_more_than_its_own_bytes_is_written_the_first_time() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = s.from_vec(vec![0.5f32; 64_000], [1000, 64]).unwrap();
        let sums = x.sum(1);
        drop(x);
        let (out, did) = counted(&rt, || wait((&sums + 1.0).gather::<f32>()).unwrap());
        assert_eq!(out[999], 33.0, "{device}");
        assert_eq!(did.bytes_kernel_written, 8000, "{device}: the sums, so that 256 kB can go, and the result");
    }
}

#[test]
fn tiny_host_values_never_travel_and_their_gathers_are_ready_at_once() {
    let mut runtimes = vec![("host", host())];
    runtimes.extend(common::gpu(|b| b).map(|rt| ("gpu", rt)));
    for (device, rt) in runtimes {
        let s = session(&rt);
        let x = s.from_slice(&[1.0f32, 2.0, 2.0], [3, 1]).unwrap();
        let norm = (&x * &x).sum(..).sqrt();
        assert_eq!(norm.state(), ArrayState::Host, "{device}");
        let ready = poll_once(&mut norm.item::<f32>()).expect("ready at its first poll");
        assert_eq!(ready.unwrap(), 3.0, "{device}");
        let did = rt.stats();
        assert_eq!((did.ops_recorded, did.regions, did.gathers, did.ops_folded), (0, 0, 0, 3), "{device}");
        // Beside a large array, tiny values are parameters, not inputs.
        let (_, did) = counted(&rt, || wait((s.ones::<f32>([1000, 1]) * &norm).eval()).unwrap());
        assert_eq!((did.bytes_kernel_read, did.bytes_kernel_written), (0, 4000), "{device}");
    }
}

#[test]
fn a_length_that_lies_in_the_data_is_awaited_and_every_other_shape_is_known() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = source(&s, 130);
        assert_eq!(x.sum(0).shape().unwrap().dims(), [1, 1]);
        assert_eq!(rt.stats().regions, 0, "{device}: a shape costs nothing");
        let zeros = wait(x.eq_to(0.0).nonzero()).unwrap();
        assert_eq!(zeros.elements().unwrap(), 10, "{device}");
        assert_eq!(values(&zeros), (0..10).map(|i| 13.0 * i as f64).collect::<Vec<_>>(), "{device}");
    }
}

#[test]
fn a_fault_is_carried_to_its_dependents_alone_and_the_first_operands_wins() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let (x, y) = (s.ones::<f32>([3, 5]), s.ones::<f32>([4, 5]));
        let bad = &x + &y; // the first fault
        let line = line!() - 1;
        let worse = x.matmul(&y);
        let both = (&bad * &worse).exp();
        let error = both.error().expect("told at once");
        assert_eq!((error.kind(), error.op()), (ErrorKind::Shape, Some("add")), "{device}");
        let at = error.location().unwrap();
        assert!(at.file().ends_with("laziness.rs") && at.line() == line, "{at}");
        assert_eq!(wait(both.gather::<f32>()).unwrap_err().op(), Some("add"), "{device}");
        assert_eq!(wait((&x + 1.0).gather::<f32>()).unwrap()[14], 2.0, "{device}: others notice nothing");
        assert_eq!(rt.stats().ops_recorded, 2 + 1, "{device}: nothing is recorded for a faulty array");
    }
}

#[test]
fn a_fault_in_the_data_poisons_its_dependents_in_this_region_and_in_later_ones() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = source(&s, 100);
        let index = s.from_slice(&[5i32, 1_000_000, -7], [3, 1]).unwrap();
        let taken = x.take(&index);
        assert!(taken.error().is_none(), "{device}: an error before the data was computed");
        let sibling = &x + 1.0;
        let (eval, fine) = wait(async { futures::join!(taken.eval(), sibling.gather::<f32>()) });
        assert_eq!(fine.unwrap()[5], 1.625, "{device}");
        let later = wait((&taken * 2.0).sum(..).item::<f32>()).unwrap_err();
        for error in [eval.unwrap_err(), later] {
            assert_eq!((error.kind(), error.op()), (ErrorKind::Index, Some("take")), "{device}");
            assert!(error.location().unwrap().file().ends_with("laziness.rs"));
        }
        assert_eq!(wait((&x + 2.0).gather::<f32>()).unwrap()[0], 2.0, "{device}");
    }
}

#[test]
fn another_session_may_use_an_array_once_it_is_shared_or_evaluated() {
    for (device, rt) in unfolded(|b| b) {
        let (a, b) = (rt.session("a").seed(1).open(), rt.session("b").seed(2).open());
        let x = a.rand::<f32>([1000, 1]).exp();
        let y = b.ones::<f32>([1000, 1]);
        let early = &y + &x;
        assert_eq!(early.error().expect("not shared").kind(), ErrorKind::Ownership, "{device}");
        // An array that is shared while it is lazy is cut in its own session, and both sessions get the same numbers.
        let foreign = x.share().unwrap();
        let (mine, theirs) = wait(async { futures::join!(x.gather::<f32>(), (&y * &foreign).gather::<f32>()) });
        assert_eq!(mine.unwrap(), theirs.unwrap(), "{device}");
        let z = &x * 2.0;
        wait(z.eval()).unwrap();
        let difference = (&y * &z) - &z;
        drop((x, z, a));
        assert_eq!(values(&difference), vec![0.0; 1000], "{device}: an evaluated array outlives its session");
    }
    let mut two = unfolded(|b| b);
    two.extend(unfolded(|b| b));
    let (first, last) = (&two[0].1, &two[two.len() - 1].1);
    let (x, y) = (session(first).ones::<f32>([100, 1]), session(last).ones::<f32>([100, 1]));
    wait(x.eval()).unwrap();
    let mixed = &y + &x.share().unwrap();
    assert_eq!(mixed.error().expect("arrays of two runtimes").kind(), ErrorKind::Ownership);
}

#[test]
fn thousands_of_steps_with_only_the_last_gathered_hold_little_memory_and_little_stack() {
    let steps = |rt: &Runtime, random: bool| {
        let s = session(rt);
        let n = 8192;
        let x = source(&s, n);
        let mut y = s.zeros::<f32>([n, 1]);
        for _ in 0..rounds(3_000, 10_000) {
            y = if random { y * 0.99 + s.rand::<f32>([n, 1]) } else { y * 0.99 + &x };
        }
        y.gather_blocking::<f32>().unwrap()
    };
    for (device, rt) in unfolded(|b| b) {
        let (sums, randoms) = std::thread::scope(|scope| {
            let run = || (steps(&rt, false), steps(&rt, true));
            let thread = std::thread::Builder::new().stack_size(256 << 10);
            thread.spawn_scoped(scope, run).unwrap().join().unwrap()
        });
        for (i, sum) in sums.iter().enumerate() {
            // The sum of 0.99^k is 100.
            let expected = 100.0 * (i % 13) as f32 * 0.125;
            assert!((sum - expected).abs() <= 2e-3 * expected, "{device}: {i} is {sum}, not {expected}");
        }
        let mean = randoms.iter().sum::<f32>() / randoms.len() as f32;
        assert!((mean - 50.0).abs() < 1.0, "{device}: {mean}");
        // The values of all steps would take 98 MB, or 320 MB in the long form.
        let peak = rt.stats().bytes_resident_peak;
        assert!(peak <= 16 << 20, "{device}: {peak} bytes were resident");
    }
}

#[test]
fn one_tape_of_twenty_thousand_ops_needs_no_deep_stack() {
    for (device, rt) in unfolded(|b| b.tape_nodes_max(1 << 20)) {
        let s = session(&rt);
        let x = source(&s, 100);
        let mut y = s.zeros::<f32>([100, 1]);
        for _ in 0..10_000 {
            y = y * 0.5 + &x;
        }
        assert_eq!(rt.stats().ops_recorded, 0, "{device}: all is on one tape");
        assert_eq!(wait(y.gather::<f32>()).unwrap()[1], 0.25, "{device}");
    }
}

#[test]
fn what_was_asked_for_and_never_polled_is_computed_by_a_shutdown() {
    for (device, rt) in common::unfolded(|b| b) {
        let gathers: Vec<_> = (0..3)
            .map(|n| {
                let s = rt.session("asks").open();
                let x = s.full(f64::from(n), [100, 1]) * 2.0;
                // These ops are recorded before or after, and are not demanded.
                drop(&x + 1.0);
                x.sum(..).item::<f64>()
            })
            .collect();
        common::wait(rt.shutdown()).unwrap();
        for (n, gather) in gathers.into_iter().enumerate() {
            assert_eq!(common::wait(gather).unwrap_or_else(|e| panic!("{device}: {e}")), 200.0 * n as f64, "{device}");
        }
    }
}

//! The public API on a real runtime: executors, laziness, faults, sessions, the end of a runtime.

mod common;
use common::{host, session, wait};
use futures::StreamExt;
use std::time::Duration;
use tidemill::testing::rounds;
use tidemill::{ArrayState, ErrorKind, Runtime, gather_all};

/// A runtime on which no values are folded when recorded, so that small programs reach the device.
fn unfolded() -> Runtime {
    Runtime::builder().device("host").fold_elements_max(0).start_blocking().unwrap()
}

#[tokio::test]
async fn the_sketch_of_the_readme_runs_on_a_current_thread_executor() {
    let rt = Runtime::builder().device("host").start().await.unwrap();
    let s = rt.session("pricing").seed(7).open();
    let table = s.from_row_major(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap();
    let centred = &table - table.mean(1);
    let mut price = s.full(100.0f32, [10_000, 1]);
    for _ in 0..16 {
        let z = s.randn::<f32>(price.shape());
        price *= (0.0001 + 0.0126 * z).exp();
    }
    let payoff = (&price - 100).max(0.0);
    let head = payoff.slice((0..10, 0)).gather::<f32>();
    let mean = payoff.mean(..).item::<f32>();
    let (head, mean) = tokio::try_join!(head, mean).unwrap();
    assert_eq!(head.shape().dims(), [10, 1]);
    assert!(mean > 1.0 && mean < 4.0, "{mean}");
    let bad = &centred + &price;
    let error = bad.gather::<f32>().await.unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Shape, Some("add")));
    rt.shutdown().await.unwrap();
}

#[test]
fn a_blocking_program_needs_no_executor() {
    let rt = unfolded();
    let s = session(&rt);
    let x = s.arange(0.0f64, 1000.0, 1.0);
    assert_eq!((&x * 2.0).sum(..).gather_blocking::<f64>().unwrap()[0], 999_000.0);
    assert_eq!(x.slice((0, 5..8)).gather_blocking::<f64>().unwrap().as_slice(), [5.0, 6.0, 7.0]);
    rt.shutdown_blocking().unwrap();
}

#[test]
fn every_way_to_gather_yields_the_same_elements() {
    let rt = unfolded();
    let s = session(&rt);
    let x = s.from_row_major(&[1.5f32, 2.5, 3.5, 4.5], [2, 2]).unwrap() * 2.0;
    let column_major = [3.0f32, 7.0, 5.0, 9.0];
    assert_eq!(wait(x.gather::<f32>()).unwrap().as_slice(), column_major);
    assert_eq!(wait(x.gather_as::<i32>()).unwrap().as_slice(), [3, 7, 5, 9]);
    assert_eq!(wait(x.gather_any()).unwrap().to_f64(), [3.0, 7.0, 5.0, 9.0]);
    assert_eq!(&*wait(x.gather_view::<f32>()).unwrap(), column_major);
    let memory = Vec::with_capacity(100);
    let at: *const f32 = memory.as_ptr();
    let filled = wait(x.gather_into(memory)).unwrap();
    assert_eq!((filled.as_slice(), filled.as_ptr()), (&column_major[..], at));
    assert_eq!(wait(x.max_over(..).item::<f32>()).unwrap(), 9.0);
    assert_eq!(wait(async { (&x).await }).unwrap().shape().dims(), [2, 2]);
    let wrong = wait(x.gather::<f64>()).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::DType);
    assert_eq!(wait(x.gather::<f32>()).unwrap().to_string(), "   3   5\n   7   9");
}

#[test]
fn a_stream_yields_gathers_as_they_finish() {
    let rt = unfolded();
    let s = session(&rt);
    let arrays: Vec<_> = (0..20).map(|i| s.full(i as f32, [100, 1]) + 1.0).collect();
    let all: Vec<_> = wait(gather_all::<f32>(&arrays).collect());
    assert_eq!(all.len(), 20);
    for (i, result) in all {
        assert_eq!(result.unwrap()[99], i as f32 + 1.0);
    }
}

#[test]
fn what_nobody_can_reach_is_never_computed() {
    let rt = unfolded();
    let s = session(&rt);
    let before = rt.stats();
    let x = s.rand::<f32>([1000, 1]);
    let kept = &x + 1.0;
    drop(&x * 3.0);
    drop((&x * 4.0).exp());
    wait(kept.gather::<f32>()).unwrap();
    let done = rt.stats().since(&before);
    assert_eq!((done.ops_recorded, done.ops_dead), (5, 3));
}

#[test]
fn gathers_that_are_joined_share_one_region() {
    let rt = unfolded();
    let s = session(&rt);
    let x = s.rand::<f32>([10_000, 1]);
    let before = rt.stats();
    let joined = wait(async { futures::try_join!((&x + 1.0).sum(..).item::<f32>(), (&x * 2.0).sum(..).item::<f32>()) });
    let (plus, twice) = joined.unwrap();
    assert!((plus - 10_000.0 - twice / 2.0).abs() < 1.0);
    assert_eq!(rt.stats().since(&before).regions, 1);
}

#[test]
fn an_evaluated_value_is_not_computed_again() {
    let rt = unfolded();
    let s = session(&rt);
    let x = s.rand::<f32>([1000, 1]).exp();
    wait(x.eval()).unwrap();
    assert_eq!(x.state(), ArrayState::Evaluated);
    let first = wait(x.gather::<f32>()).unwrap();
    assert_eq!(first, wait((&x * 1.0).gather::<f32>()).unwrap());
}

#[test]
fn ten_thousand_steps_with_only_the_last_gathered_end() {
    let rt = unfolded();
    let s = session(&rt);
    let x = s.ones::<f64>([100, 1]);
    let mut y = s.zeros::<f64>([100, 1]);
    for _ in 0..10_000 {
        y = y * 0.99 + &x;
    }
    let y = wait(y.gather::<f64>()).unwrap();
    assert!((y[0] - 100.0).abs() < 1e-6, "{}", y[0]);
}

#[test]
fn tiny_host_values_never_travel() {
    let rt = host();
    let s = session(&rt);
    let x = s.from_slice(&[1.0f64, 2.0, 3.0], 3).unwrap();
    assert_eq!(wait((x.square().sum(0).sqrt() * 2).item::<f64>()).unwrap(), 14f64.sqrt() * 2.0);
    let done = rt.stats();
    assert_eq!((done.ops_recorded, done.regions), (0, 0));
    assert!(done.ops_folded >= 4);
}

#[test]
fn sessions_share_arrays_by_eval_or_share_and_not_otherwise() {
    let rt = unfolded();
    let (a, b) = (rt.session("a").open(), rt.session("b").open());
    let x = a.full(2.0f32, [100, 1]) + 1.0;
    let y = b.full(5.0f32, [100, 1]);
    assert_eq!((&x * &y).error().unwrap().kind(), ErrorKind::Ownership);
    let shared = x.share().unwrap();
    let product = &shared * &y;
    drop((x, shared, a));
    assert_eq!(wait(product.gather::<f32>()).unwrap()[99], 15.0);
    let other = unfolded();
    let far = session(&other).full(1.0f32, [100, 1]);
    wait(far.eval()).unwrap();
    assert_eq!((&y + &far).error().unwrap().kind(), ErrorKind::Ownership);
}

#[test]
fn a_session_whose_handles_are_gone_still_answers_its_gathers() {
    let rt = unfolded();
    let gather = {
        let s = session(&rt);
        (s.full(20.0f32, [10, 1]) + 1.0).gather::<f32>()
    };
    assert_eq!(wait(gather).unwrap()[0], 21.0);
}

#[test]
fn closing_a_session_fails_its_gathers_and_no_others() {
    let rt = unfolded();
    let (a, b) = (rt.session("a").open(), rt.session("b").open());
    let (x, y) = (a.rand::<f32>([100, 1]), b.rand::<f32>([100, 1]));
    let kept = y.gather::<f32>();
    a.close();
    assert_eq!(wait(x.gather::<f32>()).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!((&x + 1.0).error().unwrap().kind(), ErrorKind::Cancelled);
    assert_eq!(wait(kept).unwrap().len(), 100);
}

#[test]
fn dropping_or_ending_a_runtime_resolves_everything() {
    let rt = unfolded();
    let s = session(&rt);
    let x = s.rand::<f32>([1000, 1]);
    let pending = (&x + 1.0).gather::<f32>();
    drop(rt);
    let late = (&x + 2.0).gather::<f32>();
    for gather in [pending, late] {
        let error = wait(gather).unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::Shutdown, Some("add")));
        assert!(error.location().unwrap().file().ends_with("api.rs"));
    }
}

#[test]
fn what_is_known_on_the_host_outlives_its_runtime_and_nothing_else_does() {
    let rt = host();
    let s = session(&rt);
    let x = s.from_slice(&[1.0f32, 2.0], [2, 1]).unwrap();
    drop(rt);
    assert_eq!(wait((&x * 2.0).sum(..).item::<f32>()).unwrap(), 6.0, "tiny, and computed when it was recorded");
    let large = wait(s.zeros::<f32>([1000, 1]).gather::<f32>()).unwrap_err();
    assert_eq!(large.kind(), ErrorKind::Shutdown);
    assert_eq!(wait(s.rand::<f32>([2, 1]).gather::<f32>()).unwrap_err().kind(), ErrorKind::Shutdown);
}

#[test]
fn ops_that_may_not_fit_have_forms_that_say_so_at_once() {
    let rt = host();
    let s = session(&rt);
    let x = s.from_row_major(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap();
    let values = |array: tidemill::Array| common::values(&array);
    assert_eq!(values(x.try_pow(2).unwrap()), [1.0, 16.0, 4.0, 25.0, 9.0, 36.0]);
    assert_eq!(values(x.try_matmul(&x.t()).unwrap()), [14.0, 32.0, 32.0, 77.0]);
    assert_eq!(x.try_reshape([3, 2]).unwrap().shape().unwrap().dims(), [3, 2]);
    assert_eq!(values(x.try_slice((1, 0..2)).unwrap()), [4.0, 5.0]);
    let fails = [
        ("pow", x.try_pow(x.t()), ErrorKind::Shape),
        ("matmul", x.try_matmul(&x), ErrorKind::Shape),
        ("reshape", x.try_reshape([4, 2]), ErrorKind::Shape),
        ("slice", x.try_slice((0..3, ..)), ErrorKind::Index),
    ];
    for (op, result, kind) in fails {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.op()), (kind, Some(op)), "{error}");
        assert!(error.location().unwrap().file().ends_with("api.rs"), "{error}");
    }
    // An op on an array that carries a fault fails with that fault, whatever its arguments are.
    let bad = &x + &x.t();
    assert_eq!(bad.try_reshape([3, 2]).unwrap_err().op(), Some("add"));
}

#[test]
fn a_permutation_names_every_dimension_and_taking_along_reads_extents_of_one_beyond_the_rank() {
    let rt = host();
    let s = session(&rt);
    let x = s.from_row_major(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap();
    for perm in [&[0][..], &[], &[1], &[0, 0], &[0, 2], &[1, 0, 3], &[0, 1, 1]] {
        assert_eq!(x.permute(perm).error().unwrap().kind(), ErrorKind::Argument, "{perm:?}");
    }
    assert_eq!(x.permute(&[1, 0]).shape().unwrap().dims(), [3, 2]);
    assert_eq!(x.permute(&[2, 0, 1]).shape().unwrap().dims(), [1, 2, 3]);
    // In a dimension beyond the rank, 0 is the only index.
    let zeros = s.zeros::<i32>([2, 3, 2]);
    let along = x.take_along(2, &zeros);
    assert_eq!(along.shape().unwrap().dims(), [2, 3, 2]);
    assert_eq!(common::values(&along), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0, 1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let fault = wait(x.take_along(2, &(s.zeros::<i32>([2, 3, 20]) + 1)).gather::<f32>()).unwrap_err();
    assert_eq!(fault.kind(), ErrorKind::Index);
    assert_eq!(x.take_along(99, &s.zeros::<i32>([2, 3])).error().unwrap().kind(), ErrorKind::Argument);
}

#[tokio::test]
async fn a_shutdown_drains_what_is_in_flight() {
    let rt =
        Runtime::builder().device("host").fold_elements_max(0).drain(Duration::from_secs(20)).start().await.unwrap();
    let s = session(&rt);
    let gather = s.rand::<f32>([1_000_000, 1]).exp().sum(..).item::<f32>();
    s.flush();
    rt.shutdown().await.unwrap();
    let sum = gather.await.unwrap();
    assert!((sum / 1e6 - 1.718).abs() < 0.01, "{sum}");
}

#[test]
fn unknown_devices_and_unwritable_timelines_are_typed_errors() {
    let error = Runtime::builder().device("abacus").start_blocking().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device);
    let error = Runtime::builder().device("host").timeline("/nowhere/at/all.json").start_blocking().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn indices_in_data_that_lie_outside_fault_at_the_gather() {
    let rt = unfolded();
    let s = session(&rt);
    let x = s.arange(0.0f32, 10.0, 1.0);
    let index = s.from_slice(&[3i32, 99], [2, 1]).unwrap();
    let taken = x.take(&index);
    assert!(taken.error().is_none(), "indices in data are not known when the op is recorded");
    let error = wait((taken + 1.0).gather::<f32>()).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Index, Some("take")));
    assert_eq!(wait((&x + 1.0).gather::<f32>()).unwrap()[9], 10.0, "others notice nothing");
}

#[test]
fn the_same_seed_gives_the_same_numbers_in_any_session() {
    let rt = unfolded();
    let draw = |name: &str| {
        let s = rt.session(name).seed(11).open();
        wait((s.rand::<f32>([1000, 1]) + s.randn::<f32>([1000, 1])).gather::<f32>()).unwrap()
    };
    assert_eq!(draw("one"), draw("two"));
}

#[test]
fn very_many_ops_before_the_first_gather_end() {
    let rt = unfolded();
    let s = session(&rt);
    let x = s.ones::<f32>([4, 1]);
    let mut y = s.zeros::<f32>([4, 1]);
    for _ in 0..rounds(50_000, 500_000) {
        y = y * 0.5 + &x;
    }
    assert_eq!(wait(y.gather::<f32>()).unwrap()[0], 2.0);
}

#[test]
fn many_live_lazy_values_do_not_hold_their_program() {
    let rt = Runtime::builder().device("host").fold_elements_max(0).tape_nodes_max(100).start_blocking().unwrap();
    let s = session(&rt);
    let kept: Vec<_> = (0..20_000).map(|i| s.full(i as f32, [4, 1]) + 1.0).collect();
    assert_eq!(wait(kept[19_999].gather::<f32>()).unwrap()[3], 20_000.0);
    assert_eq!(wait(kept[0].gather::<f32>()).unwrap()[3], 1.0);
}

#[test]
fn a_pinned_array_is_worked_on_where_it_was_pinned_however_small() {
    let host_only = host();
    let error = host_only.device("gpu").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device);
    assert!(error.message().contains("this runtime has no GPU, only: host"), "{error}");
    assert_eq!(host_only.device("host").unwrap().name, "host");
    assert_eq!(host_only.device("auto").unwrap_err().kind(), ErrorKind::Device);
    let refused = session(&host_only).scalar(1.0f32).pin("gpu");
    assert_eq!(wait(refused.gather::<f32>()).unwrap_err().kind(), ErrorKind::Device);

    let Some(rt) = common::gpu(|b| b) else { return };
    let s = session(&rt);
    let x = s.from_slice(&[1.0f32, 2.0, 3.0], [3, 1]).unwrap();
    let (sum, stats) = common::counted(&rt, || wait((&x.pin("gpu") + 1.0).sum(..).item::<f32>()).unwrap());
    assert_eq!((sum, stats.ops_folded, stats.host_kernels), (9.0, 0, 0));
    assert!(stats.dispatches > 0);
    // Scalars are pinned to the GPU, and an array to the CPU although the runtime is on the GPU.
    let two = s.scalar(1.0f32).pin("gpu") + s.scalar(1.0f32);
    assert_eq!(wait(two.item::<f32>()).unwrap(), 2.0);
    let large = s.rand::<f32>([1000, 1]);
    let there = wait((&large * 2.0).gather::<f32>()).unwrap();
    let (here, stats) = common::counted(&rt, || wait((&large.pin("host") * 2.0).gather::<f32>()).unwrap());
    assert_eq!(here.as_slice(), there.as_slice());
    assert!(stats.host_kernels > 0 && stats.dispatches == 0 && stats.elsewhere.is_empty(), "{stats}");
    let plan = wait((large.pin("host") + 1.0).explain()).unwrap();
    assert!(plan.contains("pinned to it by the program"), "{plan}");
}

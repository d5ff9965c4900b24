//! Tests that a GPU compiles the pipelines of earlier runs before the program needs them. This is a test binary of its
//! own, because it sets the folder of the process's cache.

mod common;

use common::{gpu, until, wait};
use tidemill::{Result, Runtime};

/// Runs a program. Returns its results, and how many pipelines were compiled while it ran.
fn run(rt: &Runtime) -> Result<(Vec<f32>, u64)> {
    let before = rt.stats();
    let s = rt.session("warm").seed(7).open();
    let x = s.rand::<f32>([300, 20]);
    let y = (&x * 3.0 + 1.0).sin().matmul(&x.t()).sort(0).0.sum(1);
    let sums = wait(y.gather::<f32>())?.into_vec();
    Ok((sums, rt.stats().since(&before).pipelines_compiled))
}

#[test]
fn a_second_run_finds_its_pipelines_compiled() {
    let folder = tempfile::tempdir().unwrap();
    // SAFETY: the only test of its process, before it starts a thread.
    unsafe { std::env::set_var("TIDEMILL_CACHE", folder.path()) };
    let start = |shaders: usize| gpu(|builder| builder.warm_up(shaders));
    let Some(rt) = start(100) else { return };
    let (first, compiled) = run(&rt).unwrap();
    assert!(compiled >= 3, "a map, a product and a sort at the least: {compiled}");
    assert_eq!(rt.stats().pipelines_warmed, 0, "the first run of a machine knows nothing");
    wait(rt.shutdown()).unwrap();

    let rt = start(0).unwrap();
    assert_eq!(
        run(&rt).unwrap(),
        (first.clone(), compiled),
        "with warm_up(0), nothing is compiled before the program runs"
    );
    assert_eq!(rt.stats().pipelines_warmed, 0);
    wait(rt.shutdown()).unwrap();

    let rt = start(100).unwrap();
    until("all shaders are compiled", || rt.stats().pipelines_warmed == compiled);
    assert_eq!(run(&rt).unwrap(), (first.clone(), 0));
    wait(rt.shutdown()).unwrap();

    let rt = start(2).unwrap();
    until("two shaders are compiled", || rt.stats().pipelines_warmed == 2);
    assert_eq!(run(&rt).unwrap(), (first, compiled - 2));
    assert_eq!(rt.stats().pipelines_warmed, 2);
}

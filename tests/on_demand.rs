//! The GPU is opened when work for which it pays off is placed there, and not before.

mod common;

use common::wait;
use std::sync::Arc;
use tidemill::ErrorKind;
use tidemill::testing::{Hold, Injection};
use tidemill::{Runtime, RuntimeBuilder};

/// Elements of work that is large enough for any GPU.
const LARGE: usize = 4_000_000;

/// A builder with the device `auto`, which also accepts a software adapter.
fn auto(set: impl FnOnce(&mut Injection)) -> RuntimeBuilder {
    let mut injection = Injection { software_serves: true, ..Injection::default() };
    set(&mut injection);
    Runtime::builder().device("auto").fold_elements_max(0).injection(injection)
}

/// Whether there is an adapter. Without one, and with `TIDEMILL_REQUIRE_GPU=1`, the test fails.
fn has_gpu() -> bool {
    common::gpu(|b| b).is_some()
}

#[test]
fn a_small_program_opens_no_gpu_and_a_large_one_does() {
    if !has_gpu() {
        return;
    }
    let rt = auto(|_| {}).start_blocking().unwrap();
    assert_eq!(rt.stats().gpus_opened, 0);
    let s = rt.session("small").seed(1).open();
    // This is so little work that the host takes it even if its measured speed is that of an unoptimised build on a
    // busy machine.
    let small = (s.ones::<f32>([100, 1]) * 2.0).sum(..).gather_blocking::<f32>().unwrap();
    assert_eq!(small[0], 200.0);
    assert_eq!((rt.stats().gpus_opened, format!("{rt:?}").as_str()), (0, "Runtime(host)"));
    let large = s.rand::<f32>([LARGE, 1]).mean(..).gather_blocking::<f32>().unwrap();
    assert!((large[0] - 0.5).abs() < 0.01);
    assert_eq!((rt.stats().gpus_opened, rt.devices().len()), (1, 2));
    rt.shutdown_blocking().unwrap();
}

#[test]
fn a_named_gpu_is_opened_at_the_start_unless_it_is_left_for_later() {
    if !has_gpu() {
        return;
    }
    let early = Runtime::builder().device("gpu").start_blocking().unwrap();
    assert_eq!(early.stats().gpus_opened, 1);
    let late = Runtime::builder().device("gpu").open_on_demand(true).start_blocking().unwrap();
    let s = late.session("late").seed(3).open();
    let tiny = s.full(2.0f32, [2, 1]) + 1.0;
    assert_eq!(tiny.gather_blocking::<f32>().unwrap()[0], 3.0);
    assert_eq!(late.stats().gpus_opened, 0, "a folded value needs no device");
    let bits = |rt: &Runtime| {
        let s = rt.session("bits").seed(7).open();
        let x = s.randn::<f32>([5000, 1]);
        wait((&x * 0.5).exp().sum(..).item::<f32>()).unwrap().to_bits()
    };
    assert_eq!(bits(&late), bits(&early));
    assert_eq!(late.stats().gpus_opened, 1);
    assert!(late.stats().elsewhere.is_empty(), "{}", late.stats());
    drop(s);
}

#[test]
fn a_gpu_that_is_not_there_is_an_error_at_the_start() {
    for on_demand in [false, true] {
        let error = Runtime::builder().device("gpu:99").open_on_demand(on_demand).start_blocking().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device);
        assert!(error.message().contains("adapter"), "{error}");
    }
}

#[test]
fn a_named_gpu_that_does_not_open_fails_what_was_to_run_on_it() {
    if !has_gpu() {
        return;
    }
    let injection = Injection { fail_opening: true, ..Injection::default() };
    let builder = Runtime::builder().device("gpu").fold_elements_max(0).injection(injection);
    assert_eq!(builder.clone().start_blocking().unwrap_err().kind(), ErrorKind::Device);
    let rt = builder.open_on_demand(true).start_blocking().unwrap();
    let s = rt.session("refused").open();
    for _ in 0..2 {
        let error = wait(s.rand::<f32>([8, 1]).gather::<f32>()).unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::Device, Some("rand")));
        assert!(error.message().contains("could not be opened"), "{error}");
        assert!(error.location().is_some());
    }
    let x = s.from_slice(&[1.0f32, 2.0], [2, 1]).unwrap();
    assert_eq!(x.gather_blocking::<f32>().unwrap()[1], 2.0, "host data needs no GPU");
    assert_eq!(rt.device("gpu").unwrap_err().kind(), ErrorKind::Device);
}

#[test]
fn auto_computes_on_the_host_where_the_gpu_does_not_open() {
    let rt = auto(|i| i.fail_opening = true).start_blocking().unwrap();
    let s = rt.session("host").seed(5).open();
    let mean = s.rand::<f32>([LARGE, 1]).mean(..);
    assert!((wait(mean.item::<f32>()).unwrap() - 0.5).abs() < 0.01);
    assert_eq!((rt.stats().gpus_opened, rt.devices().len()), (0, 1));
    let error = s.full(1.0f32, [2, 1]).pin("gpu").error().cloned().unwrap();
    assert_eq!(error.kind(), ErrorKind::Device);
}

#[test]
fn asking_for_the_devices_or_pinning_to_the_gpu_opens_it() {
    if !has_gpu() {
        return;
    }
    let asks: [fn(&Runtime); 4] = [
        |rt| assert_eq!(rt.devices().len(), 2),
        |rt| assert_eq!(rt.session("s").open().devices().len(), 2),
        |rt| assert!(rt.device("gpu").is_ok()),
        |rt| {
            let x = rt.session("pin").open().rand::<f32>([16, 1]).pin("gpu");
            assert!(x.is_on_gpu());
            assert!(x.sum(..).gather_blocking::<f32>().unwrap()[0] > 0.0);
            assert_eq!(rt.stats().dispatches, 1);
        },
    ];
    for ask in asks {
        let rt = auto(|_| {}).start_blocking().unwrap();
        assert!(rt.device("host").is_ok());
        assert_eq!(rt.stats().gpus_opened, 0);
        ask(&rt);
        assert_eq!(rt.stats().gpus_opened, 1);
    }
}

#[test]
fn sessions_at_the_moment_of_opening_wait_for_one_device() {
    if !has_gpu() {
        return;
    }
    let hold = Arc::new(Hold::default());
    let rt = auto(|i| i.hold_opening = Some(hold.clone())).start_blocking().unwrap();
    let run = |number: u64| {
        let s = rt.session("many").seed(number).open();
        let n = if number.is_multiple_of(4) { LARGE / 4 } else { 100 };
        let mean = s.rand::<f32>([n, 1]).mean(..).gather_blocking::<f32>().unwrap();
        assert!((mean[0] - 0.5).abs() < 0.2, "{number}: {mean:?}");
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|number| scope.spawn(move || run(number))).collect();
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(rt.stats().gpus_opened, 0);
        hold.release();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!(rt.stats().gpus_opened, 1);
}

#[test]
fn a_shutdown_during_the_opening_resolves_what_waits() {
    let hold = Arc::new(Hold::default());
    let rt = auto(|i| i.hold_opening = Some(hold.clone())).drain(std::time::Duration::from_millis(50));
    let rt = rt.start_blocking().unwrap();
    let s = rt.session("late").open();
    let pending = s.rand::<f32>([LARGE, 1]).mean(..).item::<f32>();
    let releaser = std::thread::spawn(move || {
        let error = wait(pending).unwrap_err();
        hold.release();
        error
    });
    std::thread::sleep(std::time::Duration::from_millis(20));
    rt.shutdown_blocking().unwrap();
    assert_eq!(releaser.join().unwrap().kind(), ErrorKind::Shutdown);
}

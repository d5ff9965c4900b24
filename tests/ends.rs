//! The end of a runtime: `drop` waits for nothing, `shutdown` waits at most for its drain, and no thread is left.

mod common;

use common::{unfolded, until, wait};
use futures::FutureExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use tidemill::testing::{Hold, Injection};
use tidemill::{ErrorKind, Runtime, RuntimeBuilder};

/// The number of threads of this process whose names begin with `prefix`.
fn threads(prefix: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with(prefix)).count()
}

/// Makes tests run one after the other, because they count the threads of the process.
fn alone() -> parking_lot::MutexGuard<'static, ()> {
    static ALONE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
    ALONE.lock()
}

fn held(hold: &Arc<Hold>) -> impl Fn(RuntimeBuilder) -> RuntimeBuilder {
    let injection = Injection { hold_first_batch: Some(hold.clone()), ..Injection::default() };
    move |b| b.injection(injection.clone()).drain(Duration::from_millis(50))
}

#[test]
fn a_drop_waits_for_no_device_and_all_that_was_asked_for_ends() {
    let _alone = alone();
    let hold = Arc::new(Hold::default());
    for (device, rt) in unfolded(held(&hold)) {
        let sessions: Vec<_> = (0..500).map(|i| rt.session(&format!("request {i}")).open()).collect();
        let gathers: Vec<_> = sessions
            .iter()
            .flat_map(|s| (0..10).map(|_| (s.rand::<f32>([1000, 1]) * 2.0).gather::<f32>()).collect::<Vec<_>>())
            .collect();
        rt.session("first").open().rand::<f32>([10, 1]).eval().now_or_never();
        sessions.iter().for_each(|s| s.flush());
        // The device holds its first batch until `hold` is released, which is after the drop.
        drop(rt);
        for gather in gathers {
            let error = wait(gather).unwrap_err();
            assert_eq!((error.kind(), error.op()), (ErrorKind::Shutdown, Some("mul")), "{device}: {error}");
        }
        hold.release();
    }
    until("all threads have ended", || {
        threads("tidemill-ring") + threads("tidemill-gpu") + threads("tidemill-host") == 0
    });
}

#[test]
fn a_shutdown_returns_when_its_drain_has_ended_though_a_device_is_busy() {
    let _alone = alone();
    for device in ["host", "gpu"] {
        let hold = Arc::new(Hold::default());
        let Some((_, rt)) = unfolded(held(&hold)).into_iter().find(|(name, _)| *name == device) else { continue };
        let s = rt.session("late").open();
        let gather = s.rand::<f32>([1000, 1]).gather::<f32>();
        // This gather is never polled, but it is in flight.
        wait(rt.shutdown()).unwrap();
        let error = wait(gather).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shutdown, "{device}: {error}");
        // The device is still held; another runtime starts and works beside it.
        let again = Runtime::builder().device(device).fold_elements_max(0).start_blocking().unwrap();
        let x = again.session("next").open().rand::<f32>([1000, 1]);
        assert!(wait((x.lt(1.0)).all(..).item::<bool>()).unwrap(), "{device}");
        hold.release();
        wait(again.shutdown()).unwrap();
    }
    until("all threads have ended", || {
        threads("tidemill-ring") + threads("tidemill-gpu") + threads("tidemill-host") == 0
    });
}

#[test]
fn a_shutdown_leaves_a_compilation_behind() {
    let _alone = alone();
    let hold = Arc::new(Hold::default());
    let injection = Injection { hold_first_compile: Some(hold.clone()), ..Injection::default() };
    let start = |b: RuntimeBuilder| b.fold_elements_max(0).injection(injection).drain(Duration::from_millis(50));
    let Some(rt) = common::gpu(start) else { return };
    let s = rt.session("slow").open();
    let gathers: Vec<_> = (1..20).map(|i| (s.rand::<f32>([100, 1]) * i as f64).exp().gather::<f32>()).collect();
    // The compilation is held until `hold` is released, below.
    wait(rt.shutdown()).unwrap();
    for gather in gathers {
        assert_eq!(wait(gather).unwrap_err().kind(), ErrorKind::Shutdown);
    }
    drop(rt);
    until("the threads of the ring and of the device have ended", || {
        threads("tidemill-ring") + threads("tidemill-gpu") + threads("tidemill-host") == 0
    });
    let again = Runtime::builder().device("gpu").fold_elements_max(0).start_blocking().unwrap();
    assert_eq!(wait(again.session("next").open().ones::<f32>([10, 1]).sum(..).item::<f32>()).unwrap(), 10.0);
    wait(again.shutdown()).unwrap();
    assert!(threads("tidemill-compil") > 0, "it is held");
    hold.release();
    until("all compile threads have ended", || threads("tidemill-compil") == 0);
}

#[test]
fn a_shutdown_may_be_asked_for_by_many_and_again() {
    let _alone = alone();
    for (device, rt) in unfolded(|b| b) {
        let rt = Arc::new(rt);
        let s = rt.session("asked").open();
        let gather = s.rand::<f32>([1000, 1]).gather::<f32>();
        let many: Vec<_> = (0..8)
            .map(|_| {
                let rt = rt.clone();
                std::thread::spawn(move || rt.shutdown_blocking())
            })
            .collect();
        // A shutdown that has begun goes on although its future is dropped.
        drop(rt.shutdown().now_or_never());
        for one in many {
            one.join().unwrap().unwrap();
        }
        assert_eq!(wait(gather).unwrap().len(), 1000, "{device}: it was demanded before the shutdown");
        wait(rt.shutdown()).unwrap();
        wait(rt.shutdown()).unwrap();
    }
    until("all threads have ended", || threads("tidemill-ring") + threads("tidemill-host") == 0);
}

#[test]
fn a_drop_from_a_waker_and_from_a_task_is_no_wait_for_itself() {
    let _alone = alone();
    let rt = Runtime::builder().device("host").fold_elements_max(0).start_blocking().unwrap();
    let s = rt.session("inside").open();
    let gather = s.rand::<f32>([100, 1]).gather::<f32>();
    let ended = Arc::new(AtomicBool::new(false));
    let task_ended = ended.clone();
    let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    executor.block_on(async move {
        gather.await.unwrap();
        drop(rt);
        task_ended.store(true, SeqCst);
    });
    assert!(ended.load(SeqCst));
    assert_eq!(wait(s.rand::<f32>([100, 1]).gather::<f32>()).unwrap_err().kind(), ErrorKind::Shutdown);
}

#[test]
fn many_runtimes_come_and_go_without_a_pause_and_leave_no_thread() {
    let _alone = alone();
    for round in 0..20 {
        for (device, rt) in unfolded(|b| b) {
            let s = rt.session("short").open();
            let gathers: Vec<_> = (0..20).map(|_| s.rand::<f32>([5000, 1]).sum(..).item::<f32>()).collect();
            s.flush();
            match round % 3 {
                0 => drop(rt),
                1 => wait(rt.shutdown()).unwrap(),
                _ => drop(rt.shutdown().now_or_never()),
            }
            for gather in gathers {
                if let Err(error) = wait(gather) {
                    assert_eq!(error.kind(), ErrorKind::Shutdown, "{device}: {error}");
                }
            }
        }
    }
    until("all threads have ended", || {
        let names = ["tidemill-ring", "tidemill-gpu", "tidemill-host", "tidemill-long", "tidemill-compil"];
        names.iter().map(|name| threads(name)).sum::<usize>() == 0
    });
}

#[test]
fn data_of_the_program_is_refused_once_its_session_or_its_runtime_has_ended() {
    let check = |s: &tidemill::Session, kind: ErrorKind| {
        let is = |what: &str, error: Option<tidemill::Error>| {
            let error = error.unwrap_or_else(|| panic!("{what} succeeds"));
            assert_eq!(error.kind(), kind, "{what}: {error}");
            assert!(error.location().is_none_or(|at| at.file().ends_with("ends.rs")), "{what}: {error}");
        };
        is("upload", s.upload::<f32>([1000, 1]).err());
        is("upload, tiny", s.upload::<f32>([1, 1]).err());
        is("upload_to", s.upload_to::<f32>("host", [4, 1]).err());
        is("upload_async", wait(s.upload_async::<f32>([1000, 1])).err());
        is("upload_async_to", wait(s.upload_async_to::<f32>("host", [4, 1])).err());
        is("from_slice", s.from_slice(&[1.0f32, 2.0], [2, 1]).err());
        is("from_vec", s.from_vec(vec![1.0f32; 1000], [1000, 1]).err());
        is("from_row_major", s.from_row_major(&[1.0f32, 2.0], [2, 1]).err());
        is("from_shared", s.from_shared::<f32>(Arc::<[f32]>::from([1.0f32, 2.0]), [2, 1]).err());
        is("gather of what is recorded", wait(s.rand::<f32>([100, 1]).gather::<f32>()).err());
        is("eval of what is recorded", wait(s.zeros::<f32>([1000, 1]).eval()).err());
    };
    let rt = common::host();
    let (closed, s) = (rt.session("closed").open(), rt.session("open").open());
    let writer = s.upload::<f32>([1000, 1]).unwrap();
    closed.close();
    check(&closed, ErrorKind::Cancelled);
    wait(rt.shutdown()).unwrap();
    check(&s, ErrorKind::Shutdown);
    check(&rt.session("late").open(), ErrorKind::Shutdown);
    assert_eq!(wait(writer.finish().gather::<f32>()).unwrap_err().kind(), ErrorKind::Shutdown);
    let dropped = common::host();
    let s = dropped.session("left").open();
    drop(dropped);
    check(&s, ErrorKind::Shutdown);
}

/// An owner of lent memory that panics if it is told to, or returns a different slice every time.
struct Lender {
    data: Vec<f32>,
    asked: std::sync::atomic::AtomicUsize,
    panics_when_asked: bool,
    panics_at_its_end: bool,
}

impl AsRef<[f32]> for Lender {
    fn as_ref(&self) -> &[f32] {
        assert!(!self.panics_when_asked, "the lender panics in as_ref");
        let asked = self.asked.fetch_add(1, SeqCst);
        // The first answer is the whole slice. Later answers are shorter and in the end empty.
        &self.data[..self.data.len() / (1 + asked * asked)]
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        assert!(!self.panics_at_its_end, "the lender panics in drop");
    }
}

#[test]
fn a_lender_that_panics_or_lies_is_the_programs_and_harms_nobody() {
    for (device, rt) in unfolded(|b| b) {
        let s = rt.session("borrows").open();
        let lender = |panics_when_asked, panics_at_its_end| Lender {
            data: (0..10_000).map(|i| i as f32).collect(),
            asked: Default::default(),
            panics_when_asked,
            panics_at_its_end,
        };
        let error = s.from_shared::<f32>(lender(true, false), [10_000, 1]).unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::Argument, Some("from_shared")), "{device}: {error}");
        assert!(error.message().contains("the program's lender of memory"), "{error}");
        assert!(error.message().contains("Lender") && error.message().contains("panics in as_ref"), "{error}");
        for panics_at_its_end in [false, true] {
            let x = s.from_shared::<f32>(lender(false, panics_at_its_end), [10_000, 1]).unwrap();
            let last = (&x * 1.0).max_over(..).item::<f32>();
            let all = x.gather::<f32>();
            drop(x);
            assert_eq!(wait(last).unwrap(), 9_999.0, "{device}: the first slice counts");
            assert_eq!(wait(all).unwrap()[9_999], 9_999.0, "{device}");
        }
        assert_eq!(
            wait(s.ones::<f32>([100, 1]).sum(..).item::<f32>()).unwrap(),
            100.0,
            "{device}: the runtime goes on"
        );
        wait(rt.shutdown()).unwrap();
    }
}

/// The variable that is set in a process which a test starts to run a part of it.
const PART: &str = "TIDEMILL_TEST_PART";

/// Runs a test of this file again, in a process of its own that runs the named part, without a display or a runtime
/// directory.
fn part(test: &str, part: &str) -> std::process::Output {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(PART, part);
    for variable in ["XDG_RUNTIME_DIR", "NODEVICE_SELECT", "WAYLAND_DISPLAY", "DISPLAY", "RUST_BACKTRACE"] {
        command.env_remove(variable);
    }
    command.output().unwrap()
}

#[test]
fn a_program_that_looks_for_gpus_prints_nothing() {
    if std::env::var_os(PART).is_some() {
        for device in ["auto", "gpu"] {
            let Ok(rt) = Runtime::builder().device(device).fold_elements_max(0).start_blocking() else { continue };
            assert!(!rt.devices().is_empty());
            let x = rt.session("quiet").open().ones::<f32>([1000, 1]);
            assert_eq!(wait(x.sum(..).item::<f32>()).unwrap(), 1000.0);
        }
        return;
    }
    let output = part("a_program_that_looks_for_gpus_prints_nothing", "look");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_process_that_exits_at_once_after_a_drop_exits_well() {
    if let Some(device) = std::env::var_os(PART).and_then(|part| part.into_string().ok()) {
        let Ok(rt) = Runtime::builder().device(device.as_str()).fold_elements_max(0).start_blocking() else { return };
        let s = rt.session("hasty").open();
        let gathers: Vec<_> =
            (1..8).map(|i| (s.rand::<f32>([100_000, i]) * i as f64).exp().sum(..).item::<f32>()).collect();
        s.flush();
        std::thread::sleep(Duration::from_millis(std::process::id() as u64 % 20));
        drop(rt);
        drop(gathers);
        std::process::exit(7);
    }
    for device in ["host", "gpu"] {
        for round in 0..10 {
            let output = part("a_process_that_exits_at_once_after_a_drop_exits_well", device);
            let is_there = output.status.code() != Some(0);
            assert!(!is_there || output.status.code() == Some(7), "{device}, {round}: {output:?}");
        }
    }
}

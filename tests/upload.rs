//! Uploads: users fill memory from which the GPU copies, and the elements are not copied on the host.

mod common;

use common::{counted, gpu, host, wait};
use std::sync::Arc;
use std::time::Duration;
use tidemill::ErrorKind;
use tidemill::testing::{Hold, Injection};
use tidemill::{Array, Element, Runtime, Session};

const N: usize = 1 << 20;

fn value(i: usize) -> f32 {
    (i % 1013) as f32 * 0.25
}

/// An array that several threads fill.
fn filled(s: &Session) -> Array {
    let mut writer = s.upload::<f32>([N, 1]).unwrap();
    std::thread::scope(|scope| {
        for (part, piece) in writer.as_mut_slice().chunks_mut(N / 4).enumerate() {
            scope.spawn(move || {
                for (i, x) in piece.iter_mut().enumerate() {
                    *x = value(part * (N / 4) + i);
                }
            });
        }
    });
    writer.finish()
}

fn bits(array: &Array) -> Vec<u32> {
    wait(array.gather::<f32>()).unwrap().iter().map(|x| x.to_bits()).collect()
}

#[test]
fn what_threads_write_is_copied_by_the_gpu_alone() {
    let Some(rt) = gpu(|b| b) else { return };
    let s = rt.session("direct").open();
    let ((direct, whole), stats) = counted(&rt, || {
        let x = filled(&s);
        (bits(&(&x * 2.0 + 1.0)), bits(&x))
    });
    assert_eq!((stats.bytes_uploaded, stats.bytes_staged), (4 * N as u64, 0));
    assert!(
        whole.iter().enumerate().all(|(i, x)| *x == value(i).to_bits()),
        "the host data equals the written elements"
    );
    let (copied, stats) = counted(&rt, || {
        let x = s.from_vec((0..N).map(value).collect(), [N, 1]).unwrap();
        bits(&(&x * 2.0 + 1.0))
    });
    assert_eq!((stats.bytes_uploaded, stats.bytes_staged), (4 * N as u64, 4 * N as u64));
    assert_eq!(direct, copied);
}

#[test]
fn every_type_goes_up_whether_or_not_the_gpu_has_it_in_that_width() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(rt: &Runtime, of: impl Fn(usize) -> T) {
        let s = rt.session("types").open();
        let mut writer = s.upload::<T>([300, 300]).unwrap();
        let elements: Vec<T> = (0..300 * 300).map(of).collect();
        for piece in elements.chunks(7777) {
            writer.write(piece).unwrap();
        }
        assert_eq!(writer.write(&elements[..1]).unwrap_err().kind(), ErrorKind::Shape);
        let x = writer.finish();
        let again =
            wait(x.transpose().transpose().reshape([300 * 300, 1]).slice((10..89_000, ..)).gather::<T>()).unwrap();
        assert!(again.iter().eq(elements[10..89_000].iter()), "{}", T::DTYPE);
    }
    for rt in [Some(host()), gpu(|b| b)].into_iter().flatten() {
        check(&rt, value);
        check(&rt, |i| i as f64 / 7.0);
        check(&rt, |i| i as i64 - 5);
        check(&rt, |i| i as i32 - 5);
        check(&rt, |i| i as u32);
        check(&rt, |i| i as u8);
        check(&rt, |i| i % 3 == 0);
    }
}

#[test]
fn what_was_not_written_is_zero_also_in_memory_that_was_in_use_before() {
    let Some(rt) = gpu(|b| b) else { return };
    let s = rt.session("zeros").open();
    for round in 0..3 {
        let sum = |x: &Array| wait(x.sum(..).item::<f32>()).unwrap();
        let mut all = s.upload::<f32>([N, 1]).unwrap();
        all.as_mut_slice().fill(1.0);
        assert_eq!(sum(&all.finish()), N as f32, "{round}");
        let mut some = s.upload::<f32>([N, 1]).unwrap();
        some.write(&[1.0; 1000]).unwrap();
        assert_eq!(sum(&some.finish()), 1000.0, "{round}");
        let mut few = s.upload::<f32>([N, 1]).unwrap();
        few.write(&[1.0; 10]).unwrap();
        few.as_mut_slice()[N - 1] = 1.0;
        assert_eq!(sum(&few.finish()), 11.0, "{round}");
    }
    assert_eq!(rt.stats().bytes_staged, 0);
}

#[test]
fn memory_is_not_filled_again_before_its_copy_is_done() {
    let Some(rt) = gpu(|b| b) else { return };
    let s = rt.session("reuse").open();
    let (sums, stats) = counted(&rt, || {
        let sums: Vec<_> = (1..=60)
            .map(|k| {
                let mut writer = s.upload::<f32>([N / 4, 1]).unwrap();
                writer.as_mut_slice().fill(k as f32);
                // The array is dropped before its batch runs.
                let sum = writer.finish().sum(..).item::<f32>();
                s.flush();
                sum
            })
            .collect();
        wait(futures::future::try_join_all(sums)).unwrap()
    });
    let expected: Vec<f32> = (1..=60).map(|k| (k * (N / 4)) as f32).collect();
    assert_eq!(sums, expected);
    assert_eq!(stats.bytes_staged, 0);
}

#[test]
fn a_full_ring_leaves_host_memory_and_the_same_values() {
    let Some(rt) = gpu(|b| b) else { return };
    let s = rt.session("full").open();
    // These writers take more memory than the upload ring has. They are never written.
    let hoard: Vec<_> = (0..40).map(|_| s.upload::<f32>([16 << 20, 1]).unwrap()).collect();
    let ((), stats) = counted(&rt, || {
        let mut writer = s.upload::<f32>([16 << 20, 1]).unwrap();
        writer.as_mut_slice()[5] = 2.0;
        assert_eq!(wait(writer.finish().sum(..).item::<f32>()).unwrap(), 2.0);
    });
    assert_eq!((stats.bytes_uploaded, stats.bytes_staged), (64 << 20, 64 << 20));
    drop(hoard);
    let ((), stats) = counted(&rt, || assert!(wait(filled(&s).sum(..).item::<f32>()).unwrap() > 0.0));
    assert_eq!(stats.bytes_staged, 0, "the dropped memory is free again");
}

#[test]
fn arrays_in_several_segments_go_up_from_where_they_lie() {
    let injection = Injection { segment_shift: Some(16), ..Injection::default() };
    let Some(rt) = gpu(|b| b.injection(injection)) else { return };
    let s = rt.session("segments").open();
    let (out, stats) = counted(&rt, || bits(&(filled(&s) * 3.0)));
    assert!(out.iter().enumerate().all(|(i, x)| *x == (value(i) * 3.0).to_bits()));
    assert_eq!((stats.bytes_uploaded, stats.bytes_staged), (4 * N as u64, 0));
}

#[test]
fn a_device_can_be_asked_for() {
    if gpu(|b| b).is_none() {
        return;
    }
    let injection = Injection { software_serves: true, ..Injection::default() };
    let rt = Runtime::builder().device("auto").injection(injection).start_blocking().unwrap();
    let s = rt.session("asked").open();
    let (x, stats) = counted(&rt, || {
        let mut writer = s.upload_to::<f32>("gpu", [N, 1]).unwrap();
        writer.as_mut_slice().fill(0.5);
        let x = writer.finish();
        assert_eq!(wait(x.sum(..).item::<f32>()).unwrap(), N as f32 / 2.0);
        x
    });
    assert!(x.is_on_gpu());
    assert_eq!((stats.gpus_opened, stats.bytes_uploaded, stats.bytes_staged), (1, 4 * N as u64, 0));
    let on_host = s.upload_to::<f32>("host", [N, 1]).unwrap().finish();
    assert!(on_host.pinned_to().is_some() && !on_host.is_on_gpu());
    assert_eq!(s.upload_to::<f32>("gpu:7", [N, 1]).err().map(|e| e.kind()), Some(ErrorKind::Device));
    let none = host();
    assert_eq!(
        none.session("s").open().upload_to::<f32>("gpu", [4, 1]).err().map(|e| e.kind()),
        Some(ErrorKind::Device)
    );
}

#[test]
fn a_lost_device_leaves_what_was_written() {
    let injection = Injection { lose_device_at_batch: Some(1), ..Injection::default() };
    let Some(rt) = gpu(|b| b.injection(injection)) else { return };
    let s = rt.session("lost").open();
    let x = filled(&s);
    let first = wait(x.sum(..).item::<f32>()).unwrap();
    // The batch during which the device is lost gives the right sum, and so does the device that takes its place.
    assert_eq!(wait((&x * 1.0).sum(..).item::<f32>()).unwrap(), first);
    assert_eq!(bits(&x)[9], value(9).to_bits());
}

#[test]
fn what_users_fill_counts_against_the_budget_until_they_let_go_of_it() {
    const MIB: usize = 1 << 20;
    let tight = |b: tidemill::RuntimeBuilder| b.device_budget(64 << 20).host_budget(64 << 20);
    let host = tight(Runtime::builder().device("host")).start_blocking().unwrap();
    for rt in [Some(host), gpu(tight)].into_iter().flatten() {
        let s = rt.session("budget").open();
        let refused = |elements: usize| {
            let error = s.upload::<f32>([elements, 1]).err().expect("it does not fit");
            assert_eq!((error.kind(), error.op()), (ErrorKind::OutOfMemory, Some("upload")), "{error}");
            assert!(error.location().is_some() && error.message().contains("budget"), "{error}");
        };
        // This could never fit.
        refused(256 * MIB);
        for _ in 0..3 {
            let mut writer = s.upload::<f32>([10 * MIB, 1]).unwrap();
            writer.as_mut_slice().fill(0.5);
            refused(10 * MIB);
            let x = writer.finish();
            // Ops on the array fit the same budget, because its memory is not counted twice.
            assert_eq!(wait((&x * 2.0).slice((0..MIB as i64, ..)).sum(..).item::<f32>()).unwrap(), MIB as f32);
            assert_eq!(wait(x.slice((5..7, ..)).gather::<f32>()).unwrap().as_slice(), [0.5, 0.5]);
            refused(10 * MIB);
            drop(x);
        }
        drop(s.upload::<f32>([15 * MIB, 1]).unwrap());
        drop(s.upload::<f32>([15 * MIB, 1]).unwrap());
    }
}

#[test]
fn what_writers_hold_leaves_others_room_to_compute() {
    const MIB: usize = 1 << 20;
    let rt = Runtime::builder().device("host").host_budget(8 << 20).start_blocking().unwrap();
    let (a, b) = (rt.session("fills").open(), rt.session("computes").open());
    let writers: Vec<_> = (0..4).map(|_| a.upload::<f32>([MIB / 2, 1]).unwrap()).collect();
    assert!(a.upload::<f32>([1, 1]).is_err(), "all is given out");
    assert_eq!(wait((b.full(2.0f32, [MIB / 2, 1]) * 0.5).gather::<f32>()).unwrap()[MIB / 4], 1.0);
    drop(writers);
    let gathers = (0..12).map(|k| {
        let mut writer = a.upload::<f32>([MIB / 2, 1]).unwrap();
        writer.as_mut_slice().fill(k as f32);
        (writer.finish() + 1.0).gather::<f32>()
    });
    for (k, gathered) in gathers.map(wait).enumerate() {
        assert_eq!(gathered.unwrap()[9], k as f32 + 1.0);
    }
}

#[test]
fn what_the_program_brought_takes_nothing_of_the_hosts_budget() {
    let rt = Runtime::builder().device("host").host_budget(8 << 20).start_blocking().unwrap();
    let s = rt.session("brought").open();
    // These take 16 MiB each, and the host reads them in place.
    let n = 4 << 20;
    let (a, b) = (vec![1.5f32; n], (0..n).map(|i| (i % 7) as f32).collect::<Vec<f32>>());
    let (x, y) = (s.from_vec(a, [n, 1]).unwrap(), s.from_vec(b, [n, 1]).unwrap());
    for _ in 0..3 {
        assert_eq!(wait((&x - &y).max_over(..).item::<f32>()).unwrap(), 1.5);
        assert_eq!(wait((&x * &y).slice((6..8, ..)).gather::<f32>()).unwrap().as_slice(), [9.0, 0.0]);
    }
    // The result needs memory of its own, which must fit, because the program's memory is never overwritten.
    let error = wait((&x * 2.0).eval()).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::OutOfMemory, Some("mul")), "{error}");
    let small = s.from_vec(vec![1.0f32; 1 << 20], [1 << 20, 1]).unwrap();
    let kept = wait(small.gather_view::<f32>()).unwrap();
    assert_eq!(wait((small + 1.0).sum(..).item::<f32>()).unwrap(), (2 << 20) as f32);
    assert!(kept.iter().all(|x| *x == 1.0));
    assert!(rt.stats().bytes_resident_peak <= 8 << 20, "{}", rt.stats());
}

/// A part of a shared vector.
struct Part<T>(Arc<Vec<T>>, std::ops::Range<usize>);

impl<T> AsRef<[T]> for Part<T> {
    fn as_ref(&self) -> &[T] {
        &self.0[self.1.clone()]
    }
}

#[test]
fn an_owners_elements_are_read_where_they_lie_whatever_their_type_and_alignment() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(rt: &Runtime, of: impl Fn(usize) -> T) {
        let s = rt.session("shared").open();
        let all: Arc<Vec<T>> = Arc::new((0..300 * 300 + 2).map(of).collect());
        // The part begins at the second element, so it has the alignment of an element only.
        let x = s.from_shared::<T>(Part(all.clone(), 1..300 * 300 + 1), [300, 300]).unwrap();
        let again = wait(x.t().t().reshape([300 * 300, 1]).slice((10..89_000, ..)).gather::<T>()).unwrap();
        assert!(again.iter().eq(all[11..89_001].iter()), "{}", T::DTYPE);
        let view = wait(x.gather_view::<T>()).unwrap();
        assert_eq!(view[..], all[1..300 * 300 + 1], "{}", T::DTYPE);
    }
    for rt in [Some(host()), gpu(|b| b)].into_iter().flatten() {
        check(&rt, value);
        check(&rt, |i| i as f64 / 7.0);
        check(&rt, |i| i as i64 - 5);
        check(&rt, |i| i as i32 - 5);
        check(&rt, |i| i as u32);
        check(&rt, |i| i as u8);
        check(&rt, |i| i % 3 == 0);
    }
}

#[test]
fn what_an_owner_shares_takes_nothing_of_the_hosts_budget_and_is_never_written() {
    let rt = Runtime::builder().device("host").host_budget(8 << 20).start_blocking().unwrap();
    let s = rt.session("shared").open();
    // This takes 16 MiB, twice the budget.
    let all: Arc<[f32]> = (0..4 << 20).map(|i| (i % 7) as f32).collect();
    let x = s.from_shared(all.clone(), [4 << 20, 1]).unwrap();
    assert_eq!(wait(x.max_over(..).item::<f32>()).unwrap(), 6.0);
    // The elements were not copied.
    assert_eq!(wait(x.gather_view::<f32>()).unwrap().as_ptr(), all.as_ptr());
    // An array with one handle is changed in place, but not if its memory belongs to an owner outside of the runtime.
    let part: Arc<[f32]> = Arc::from(&all[..1 << 19]);
    let mut y = s.from_shared(part.clone(), [1 << 19, 1]).unwrap();
    for k in 0..3 {
        y = y.assign((k..k + 1, ..), 100.0f32) + 1.0;
    }
    assert_eq!(wait(y.slice((0..4, ..)).gather::<f32>()).unwrap().as_slice(), [103.0, 102.0, 101.0, 6.0]);
    assert!(part.iter().eq(&all[..1 << 19]));
}

#[test]
fn an_owner_is_let_go_of_when_nothing_reads_it_any_more() {
    for rt in [Some(host()), gpu(|b| b)].into_iter().flatten() {
        let s = rt.session("shared").open();
        let all: Arc<[f32]> = (0..N).map(value).collect();
        assert_eq!(s.from_shared(all.clone(), [N, 2]).unwrap_err().kind(), ErrorKind::Shape);
        assert_eq!(Arc::strong_count(&all), 1, "elements that do not fit the shape are given back");
        let doubled = s.from_shared(all.clone(), [N, 1]).unwrap() * 2.0;
        assert_eq!(Arc::strong_count(&all), 2, "it is still to be read");
        assert_eq!(wait(doubled.slice((9..10, ..)).item::<f32>()).unwrap(), value(9) * 2.0);
        drop(doubled);
        // The runtime learns of dropped handles when the session awaits its next result.
        let gone = (0..10_000).any(|_| {
            wait(s.full(1.0f32, [100, 100]).eval()).unwrap();
            Arc::strong_count(&all) == 1
        });
        assert!(gone);
    }
}

/// The elements of a writer of 4 MiB, half of the budget.
const HALF: usize = 1 << 20;

fn half_full() -> (Runtime, Session) {
    let rt = Runtime::builder().device("host").host_budget(8 << 20).start_blocking().unwrap();
    let s = rt.session("waits").open();
    (rt, s)
}

fn is_pending<T>(future: &mut (impl Future<Output = T> + Unpin)) -> bool {
    let mut context = futures::task::Context::from_waker(futures::task::noop_waker_ref());
    std::pin::Pin::new(future).poll(&mut context).is_pending()
}

#[test]
fn who_awaits_a_writer_gets_it_when_others_have_let_go() {
    let (_rt, s) = half_full();
    let mut writers: Vec<_> = (0..2).map(|_| wait(s.upload_async::<f32>([HALF, 1])).unwrap()).collect();
    let mut third = Box::pin(s.upload_async::<f32>([HALF, 1]));
    let mut fourth = Box::pin(s.upload_async::<f32>([1, 1]));
    assert!(is_pending(&mut third) && is_pending(&mut fourth));
    let mut writer = writers.pop().unwrap();
    writer.as_mut_slice().fill(2.0);
    let x = writer.finish();
    assert!(is_pending(&mut third), "the array is its memory");
    let sum = (&x * 0.5).sum(..).item::<f32>();
    drop(x);
    assert_eq!(wait(sum).unwrap(), HALF as f32);
    // The last op that read the array is done, and the tape with the drop of its handle was cut.
    let mut third = wait(third).unwrap();
    assert!(is_pending(&mut fourth), "first come, first served");
    third.write(&[7.0]).unwrap();
    drop(writers);
    wait(fourth).unwrap();
    assert_eq!(wait(third.finish().sum(..).item::<f32>()).unwrap(), 7.0);
}

#[test]
fn tasks_of_one_thread_share_what_writers_may_hold() {
    let (_rt, s) = half_full();
    // All tasks run on one thread, so a task that waits must not block those that will free memory.
    let frame = async |k: usize| {
        let mut writer = s.upload_async::<f32>([HALF, 1]).await.unwrap();
        writer.as_mut_slice().fill(k as f32);
        writer.finish().max_over(..).item::<f32>().await.unwrap()
    };
    let all = wait(futures::future::join_all((0..12).map(frame)));
    assert_eq!(all, (0..12).map(|k| k as f32).collect::<Vec<_>>());
}

#[test]
fn a_writer_that_can_never_come_is_an_error() {
    let (rt, s) = half_full();
    let kind = |result: tidemill::Result<tidemill::UploadWriter<f32>>| {
        let error = result.err().expect("it does not come");
        assert_eq!(error.op(), Some("upload"), "{error}");
        assert!(error.location().is_some_and(|at| at.file().ends_with("upload.rs")), "{error:?}");
        error.kind()
    };
    assert_eq!(kind(wait(s.upload_async::<f32>([3 * HALF, 1]))), ErrorKind::OutOfMemory);
    assert_eq!(kind(wait(s.upload_async::<f32>([usize::MAX, 2]))), ErrorKind::TooLarge);
    let held: Vec<_> = (0..2).map(|_| s.upload::<f32>([HALF, 1]).unwrap()).collect();
    // A dropped request takes no memory, and does not delay other requests.
    let mut dropped = Box::pin(s.upload_async::<f32>([2 * HALF, 1]));
    assert!(is_pending(&mut dropped));
    let other = rt.session("closes").open();
    let mut closed = Box::pin(other.upload_async::<f32>([1, 1]));
    let mut ends = Box::pin(s.upload_async::<f32>([1, 1]));
    assert!(is_pending(&mut closed) && is_pending(&mut ends));
    drop(dropped);
    other.close();
    assert_eq!(kind(wait(closed)), ErrorKind::Cancelled);
    assert_eq!(kind(wait(other.upload_async::<f32>([1, 1]))), ErrorKind::Cancelled);
    assert_eq!(kind(other.upload::<f32>([1, 1])), ErrorKind::Cancelled);
    assert!(is_pending(&mut ends));
    wait(rt.shutdown()).unwrap();
    assert_eq!(kind(wait(ends)), ErrorKind::Shutdown);
    assert_eq!(kind(wait(s.upload_async::<f32>([1, 1]))), ErrorKind::Shutdown);
    drop(held);
}

#[test]
fn what_a_session_has_not_computed_yet_gives_way_to_a_writer_that_waits() {
    const LEN: usize = 1 << 18;
    let rt = Runtime::builder().device("host").host_budget(8 << 20).start_blocking().unwrap();
    let s = rt.session("accumulates").open();
    let mut sum = s.zeros::<f32>([LEN, 1]);
    for k in 0..40 {
        // No value is demanded: the earlier uploads are held by the sum, which is not computed yet.
        let mut writer = if k % 2 == 0 {
            s.upload::<f32>([LEN, 1]).unwrap()
        } else {
            wait(s.upload_async::<f32>([LEN, 1])).unwrap()
        };
        writer.as_mut_slice().fill(1.0);
        sum += writer.finish();
    }
    assert_eq!(wait(sum.slice((7, 0)).item::<f32>()).unwrap(), 40.0);
}

/// A blocked writer does not give up after some time, however slow the device is.
#[test]
fn a_writer_that_blocks_waits_while_its_sessions_work_is_under_way() {
    let hold = Arc::new(Hold::default());
    let injection = Injection { hold_first_batch: Some(hold.clone()), ..Injection::default() };
    let rt = Runtime::builder().device("host").host_budget(8 << 20).injection(injection).start_blocking().unwrap();
    let s = rt.session("slow").open();
    let sum = |_| {
        let mut writer = s.upload::<f32>([N, 1]).unwrap();
        writer.as_mut_slice().fill(1.0);
        writer.finish().sum(..).item::<f32>()
    };
    // The two sums together use all memory that writers may have.
    let sums: Vec<_> = (0..2).map(sum).collect();
    std::thread::scope(|scope| {
        let third = scope.spawn(|| s.upload::<f32>([N, 1]).map(drop));
        std::thread::sleep(Duration::from_millis(700));
        assert!(!third.is_finished(), "the writer waits for the work in progress");
        hold.release();
        third.join().unwrap().unwrap();
    });
    sums.into_iter().for_each(|sum| assert_eq!(wait(sum).unwrap(), N as f32));
}

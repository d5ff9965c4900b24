//! Runs many async computations at the same time over the machine's cores: a parallel map whose items may wait.
//!
//! A task of an executor takes about as long as fifty statements on numbers, including the wake at its end. Here a
//! thread begins one run after the other in its own loop. It keeps only the runs that have to wait, and polls those
//! together.
//!
//! This does not use tasks of tokio, for speed. `cargo bench --bench scripts -- copies` (docs/benchmarks.md,
//! 2026-11-26) runs 1,000 copies of 50 statements on numbers, 5 us a copy, on two cores. The speedup over running them
//! one after the other, on EPYC / Xeon cores: 1.6 to 1.8 / 1.4 to 1.6 here, 1.5 to 1.6 / 0.8 to 1.4 in tasks. While
//! other work ran on the EPYC cores it was 1.2 to 1.4 here and 0.6 to 1.4 in tasks. Copies of 0.4 ms gain the same
//! either way.
//!
//! In: the number of runs, and a function that makes each of them. Out: their outputs, in order. Must hold:
//! - COPIES-1: a thread begins no further run while a run that it has begun could go on. If such runs never let the
//!   others begin, the thread begins one more run every [`TURN`].
//! - COPIES-2: once the future is dropped no run begins, and runs in progress end when they next let others run.
//! - COPIES-3: a panic of a run is passed on to the caller that awaits the runs, and ends the other runs.
//! - COPIES-4: when the runs have ended, no other thread holds anything of `work`.

use super::polling::{Flag, placed};
use super::{helpers, threads};
use futures::StreamExt;
use futures::channel::oneshot;
use futures::future::{AbortHandle, Abortable, FutureExt, poll_fn};
use futures::stream::FuturesUnordered;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// The most runs that a thread takes from [`Work`] at a time.
const TAKEN_MAX: usize = 32;
/// A thread takes this fraction of its equal share of the runs that are left. So the portions get smaller towards the
/// end, and the threads end at about the same time.
const PARTS: usize = 4;
/// How long a thread goes on with the runs that it has begun before it begins another.
const TURN: Duration = Duration::from_millis(20);
/// How long the owner spins for the other threads' shares to end before it sleeps.
const SPIN_MAX: Duration = Duration::from_micros(50);
/// With fewer cores than this, the owner sleeps at once, since the other threads need its core.
const SPIN_CORES_MIN: usize = 4;

/// The state that the threads of one `parallel_map` share.
struct Work<W> {
    work: W,
    count: usize,
    threads: usize,
    /// How long a thread goes on with the runs that it has begun before it begins another; [`TURN`] outside of tests.
    turn: Duration,
    /// The number of the next run to begin.
    next: AtomicUsize,
    /// Set when the future was dropped, so that nothing awaits the runs any more.
    is_given_up: AtomicBool,
}

impl<W> Work<W> {
    /// Takes the numbers of the next runs for a thread to begin (guided self-scheduling, Polychronopoulos and Kuck
    /// 1987).
    fn take(&self) -> Option<std::ops::Range<usize>> {
        let taken = |next: usize| ((self.count - next) / (self.threads * PARTS)).clamp(1, TAKEN_MAX);
        let more = |next: usize| (next < self.count).then(|| next + taken(next));
        let first = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(first..first + taken(first))
    }

    fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }
}

/// The shares of the other threads. Dropping this aborts them.
struct OtherShares<W> {
    work: Arc<Work<W>>,
    shares: Vec<AbortHandle>,
}

impl<W> Drop for OtherShares<W> {
    fn drop(&mut self) {
        self.work.is_given_up.store(true, Ordering::Relaxed);
        self.shares.iter().for_each(AbortHandle::abort);
    }
}

/// Calls `work` with each number below `count`, on all cores including the calling task's thread, and returns the
/// outputs in the order of the numbers.
///
/// It is meant for work that mostly computes. Items that wait do so together on their thread. All its threads enter the
/// tokio runtime, if any, in which it is called.
///
/// ```
/// # futures::executor::block_on(async {
/// let squares = tidemill_script::machine::parallel_map(1000, async |number| number * number).await;
/// assert_eq!(squares[999], 998_001);
/// # });
/// ```
///
/// The other threads have stacks of 8 MiB and poll their shares as [`futures::executor::block_on`] does.
///
/// # Panics
/// With the panic of `work`, if it panics. `work` panics if it calls `block_on` of `futures`.
pub async fn parallel_map<T: Send + 'static>(
    count: usize,
    work: impl AsyncFn(usize) -> T + Send + Sync + 'static,
) -> Vec<T> {
    mapped(count, TURN, work).await
}

async fn mapped<T: Send + 'static>(
    count: usize,
    turn: Duration,
    work: impl AsyncFn(usize) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let threads = threads::cores().min(count).max(1);
    let (next, is_given_up) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = Arc::new(Work { work, count, threads, turn, next, is_given_up });
    // COPIES-4: this keeps `work` alive to the end, so that it is dropped on this thread, which allocated most of it.
    let mut others = OtherShares { work: work.clone(), shares: Vec::new() };
    let mut answers = FuturesUnordered::new();
    let (core, executor) = (threads::core(), tokio::runtime::Handle::try_current().ok());
    for number in 1..threads {
        let (abort, aborted) = AbortHandle::new_pair();
        let (answer, answered) = oneshot::channel();
        let (work, executor) = (work.clone(), executor.clone());
        let begin = move || {
            threads::move_apart(core, number);
            let _entered = executor.as_ref().map(|executor| executor.enter());
            let share = Abortable::new(share(work), aborted);
            let ended = catch_unwind(AssertUnwindSafe(|| futures::executor::block_on(share)));
            // If the future was dropped, there is no receiver.
            let _ = answer.send(ended);
        };
        // If there is no thread for it, the other threads do its share.
        if helpers::begin(begin) {
            others.shares.push(abort);
            answers.push(answered);
        }
    }
    let mut gathered = Vec::new();
    let mut gather = |answer| match answer {
        Ok(Ok(Ok(outputs))) => gathered.extend::<Vec<Outputs<T>>>(outputs),
        Ok(Err(panic)) => resume_unwind(panic),
        Ok(Ok(Err(_))) | Err(_) => unreachable!("COPIES-2: a share is given up while it is awaited"),
    };
    let mut own = pin!(share(work));
    let own = poll_fn(|context| {
        // A panic of another share is passed on at once, before the runs on this thread have ended.
        while let Poll::Ready(Some(answer)) = answers.poll_next_unpin(context) {
            gather(answer);
        }
        own.as_mut().poll(context)
    });
    let own = own.await;
    let spin_until = (threads::cores() >= SPIN_CORES_MIN).then(|| Instant::now() + SPIN_MAX);
    while !answers.is_empty() && spin_until.is_some_and(|until| Instant::now() < until) {
        std::hint::spin_loop();
        if let Some(Some(answer)) = answers.next().now_or_never() {
            gather(answer);
        }
    }
    while let Some(answer) = answers.next().await {
        gather(answer);
    }
    gathered.extend(own);
    drop(others);
    gathered.sort_unstable_by_key(|part| part.first);
    let mut outputs = Vec::with_capacity(count);
    gathered.into_iter().for_each(|part| outputs.extend(part.outputs.into_iter().flatten()));
    debug_assert_eq!(outputs.len(), count);
    outputs
}

/// The outputs of runs with consecutive numbers, from `first` on. `None` stands for a run that has not ended.
struct Outputs<T> {
    first: usize,
    outputs: Vec<Option<T>>,
}

/// Does one thread's share of the runs, and returns their outputs. It returns early when the runs are given up.
async fn share<T>(work: Arc<Work<impl AsyncFn(usize) -> T>>) -> Vec<Outputs<T>> {
    let mut parts: Vec<Outputs<T>> = Vec::new();
    let mut waiting = FuturesUnordered::new();
    // The allocation of a run that has ended, reused by the next run.
    let mut room = None;
    let flag = Arc::new(Flag::default());
    let waker = Waker::from(flag.clone());
    while let Some(numbers) = work.take() {
        let at = parts.len();
        parts.push(Outputs { first: numbers.start, outputs: Vec::with_capacity(numbers.len()) });
        for number in numbers {
            if work.is_given_up() {
                return parts;
            }
            let mut run = placed(&mut room, (work.work)(number));
            match run.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(output) => {
                    parts[at].outputs.push(Some(output));
                    room = Some(run);
                    if !flag.is_raised() {
                        continue;
                    }
                }
                Poll::Pending => {
                    let place = (at, parts[at].outputs.len());
                    parts[at].outputs.push(None);
                    waiting.push(run.map(move |output| (place, output)));
                }
            }
            // COPIES-1: runs that only let others run, and runs whose wait is over, go on.
            let begun = Instant::now();
            loop {
                flag.lower();
                take_ended(&mut waiting, &waker, &mut parts);
                if !flag.is_raised() || begun.elapsed() > work.turn {
                    break;
                }
                tokio::task::yield_now().await;
                if work.is_given_up() {
                    return parts;
                }
            }
        }
        take_ended(&mut waiting, &waker, &mut parts);
        // This lets the executor's other tasks run, and lets the share be aborted.
        tokio::task::yield_now().await;
    }
    while let Some(((part, at), output)) = waiting.next().await {
        parts[part].outputs[at] = Some(output);
    }
    parts
}

/// Polls the waiting runs that can go on, and stores the outputs of those that end.
fn take_ended<T, F>(waiting: &mut FuturesUnordered<F>, waker: &Waker, parts: &mut [Outputs<T>])
where
    F: Future<Output = ((usize, usize), T)>,
{
    while let Poll::Ready(Some(((part, at), output))) = waiting.poll_next_unpin(&mut Context::from_waker(waker)) {
        parts[part].outputs[at] = Some(output);
    }
}

#[cfg(test)]
mod tests {
    use super::{mapped, parallel_map};
    use crate::{Script, rig, threads};
    use futures::FutureExt;
    use futures::executor::block_on;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn what_the_copies_give_comes_in_their_order() {
        for count in [0, 1, 2, 7, 1000] {
            let given = block_on(parallel_map(count, async |number| {
                // Some wait once, some several times, most never.
                for _ in 0..number % 7 % 3 {
                    tokio::task::yield_now().await;
                }
                number
            }));
            assert_eq!(given, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_thousand_copies_print_what_each_prints_alone_and_errors_stay_where_they_are() {
        let text = "k = randi (1000); x = ones (100, 100) * 2; s = sum (x(:));
                    printf ('%d %d\\n', s, k); if mod (k, 10) == 3, error ('mine:id', 'on purpose'); end";
        let script = Script::parse(text).unwrap();
        let open = |copy| rig::session(copy);
        let alone: Vec<_> = (0..1000).map(|copy| block_on(script.run(&open(copy)))).collect();
        let together = block_on(script.run_copies((0..1000).map(open)));
        let failed = together.iter().filter(|ended| ended.is_err()).count();
        assert!((50..200).contains(&failed), "{failed} of 1000");
        for (alone, together) in alone.into_iter().zip(together) {
            match (alone, together) {
                (Ok(alone), Ok(together)) => assert_eq!(alone.printed(), together.printed()),
                (Err(alone), Err(together)) => assert_eq!(alone.message, together.message),
                (alone, together) => panic!("alone it gave {alone:?}, among others {together:?}"),
            }
        }
    }

    #[test]
    fn copies_that_never_end_end_with_their_future() {
        let running = Arc::new(AtomicUsize::new(0));
        struct Counted(Arc<AtomicUsize>);
        impl Drop for Counted {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let endless = Script::parse("while true, x = 1; end").unwrap();
        let counter = running.clone();
        let mut copies = Box::pin(parallel_map(50, async move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            let _counted = Counted(counter.clone());
            endless.run(&rig::session(0)).await.map(drop)
        }));
        for _ in 0..3 {
            assert!(copies.as_mut().now_or_never().is_none());
        }
        assert!(running.load(Ordering::Relaxed) > 0);
        drop(copies);
        for _ in 0..1000 {
            if running.load(Ordering::Relaxed) == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{} copies outlive their future", running.load(Ordering::Relaxed));
    }

    #[test]
    fn copies_run_in_a_task_too() {
        let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let script = Script::parse("x = 3;").unwrap();
        let task = async move { script.run_copies((0..20).map(rig::session)).await };
        let ended = executor.block_on(executor.spawn(task)).unwrap();
        assert_eq!(ended.iter().filter(|copy| copy.as_ref().unwrap().number("x") == Some(3.0)).count(), 20);
    }

    #[test]
    fn work_may_wait_for_what_the_executor_offers() {
        let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let given = executor.block_on(parallel_map(100, async |number| {
            tokio::time::sleep(Duration::from_millis(1 + number as u64 % 3)).await;
            number
        }));
        assert_eq!(given, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn what_runs_long_is_shared_by_the_threads() {
        if threads::cores() == 1 {
            return;
        }
        // The first run lets others run until the second has begun, so the second must begin on another thread.
        let begun = Arc::new(AtomicUsize::new(0));
        let threads = block_on(mapped(2, Duration::from_secs(60), async move |_| {
            begun.fetch_add(1, Ordering::Relaxed);
            while begun.load(Ordering::Relaxed) < 2 {
                tokio::task::yield_now().await;
            }
            std::thread::current().id()
        }));
        assert_ne!(threads[0], threads[1]);
    }

    #[test]
    fn a_run_whose_wait_is_over_goes_on_before_others_begin() {
        if threads::cores() == 1 {
            return;
        }
        // These runs never wait. This many begin on a thread after the first one's message is there and before the
        // first goes on.
        let owner = std::thread::current().id();
        let (send, receive) = futures::channel::oneshot::channel();
        let (send, receive) = (std::sync::Mutex::new(Some(send)), std::sync::Mutex::new(Some(receive)));
        let begun = Arc::new(AtomicUsize::new(0));
        let behind = Arc::new(AtomicUsize::new(0));
        let counted = behind.clone();
        block_on(parallel_map(10_000, async move |number| {
            if number == 0 {
                let receive = receive.lock().unwrap().take().unwrap();
                let at = receive.await.unwrap_or(0);
                counted.store(begun.load(Ordering::SeqCst) - at, Ordering::SeqCst);
            } else if std::thread::current().id() == owner {
                let at = begun.fetch_add(1, Ordering::SeqCst) + 1;
                if at == 5
                    && let Some(send) = send.lock().unwrap().take()
                {
                    let _ = send.send(at);
                }
            }
        }));
        assert!(behind.load(Ordering::SeqCst) <= 1, "{behind:?} began before it");
    }

    #[test]
    fn runs_that_wait_for_those_behind_them_starve_nobody() {
        let begun = Arc::new(AtomicUsize::new(0));
        let together = parallel_map(8, async move |_| {
            begun.fetch_add(1, Ordering::Relaxed);
            while begun.load(Ordering::Relaxed) < 8 {
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(block_on(together).len(), 8);
    }

    #[test]
    fn a_panic_ends_runs_that_would_not_end() {
        if threads::cores() == 1 {
            // On one core the first run never lets the second begin.
            return;
        }
        let owner = std::thread::current().id();
        let endless = parallel_map(50, async move |_| {
            assert_eq!(std::thread::current().id(), owner, "on purpose");
            loop {
                tokio::task::yield_now().await;
            }
        });
        assert!(block_on(std::panic::AssertUnwindSafe(endless).catch_unwind()).is_err());
    }

    #[test]
    fn a_panic_reaches_whoever_awaits() {
        for count in [1, 100] {
            let copies = parallel_map(count, async move |number| assert_ne!(number, count - 1, "on purpose"));
            let panic = block_on(std::panic::AssertUnwindSafe(copies).catch_unwind()).unwrap_err();
            assert!(panic.downcast_ref::<String>().unwrap().contains("on purpose"));
        }
    }
}

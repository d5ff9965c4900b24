//! Many runs at the same time, spread over the machine's cores.
//!
//! A task of an executor, with the wake that its end costs, takes about as long as fifty statements on numbers. Here a
//! thread begins one run after the other; only those that have to wait are kept, and wait together.
//!
//! In: how many runs, and how each of them is made. Out: what they give, in order. Must hold:
//! - COPIES-1: a run is made, polled and dropped by one thread.
//! - COPIES-2: once the future is dropped no run begins, and those in progress end when they next let others run.
//! - COPIES-3: a panic of a run reaches whoever awaits them.
//! - COPIES-4: when they have ended, nothing that the work holds is left on another thread.

use super::helpers;
use crate::threads;
use futures::StreamExt;
use futures::channel::oneshot;
use futures::future::{AbortHandle, Abortable, FutureExt};
use futures::stream::FuturesUnordered;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

/// The most runs that a thread takes at a time.
const TAKEN_MAX: usize = 32;
/// Into so many parts a thread divides what would be its share of the runs that are left: the parts get smaller, so that
/// the threads end together.
const PARTS: usize = 4;
/// How long the end of another thread's share is waited for before its owner sleeps.
const SPIN: Duration = Duration::from_micros(50);

/// What the threads share.
struct Work<W> {
    work: W,
    count: usize,
    threads: usize,
    /// The next run that nobody has begun.
    next: AtomicUsize,
}

impl<W> Work<W> {
    /// The next runs for a thread to begin (guided self-scheduling, Polychronopoulos and Kuck 1987).
    fn take(&self) -> Option<std::ops::Range<usize>> {
        let taken = |next: usize| ((self.count - next) / (self.threads * PARTS)).clamp(1, TAKEN_MAX);
        let more = |next: usize| (next < self.count).then(|| next + taken(next));
        let first = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(first..first + taken(first))
    }
}

/// Runs that other threads are at end with the future that wants them.
struct Others(Vec<AbortHandle>);

impl Drop for Others {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

/// Does `work` with each number below `count`, over the machine's cores, the calling task's thread among them, and gives
/// what it gives, in the order of the numbers.
///
/// It is for work that computes most of the time. What waits does so together.
///
/// ```
/// # futures::executor::block_on(async {
/// let squares = tidemill::script::copies::spread(1000, async |number| number * number).await;
/// assert_eq!(squares[999], 998_001);
/// # });
/// ```
///
/// # Panics
/// With what the work panics with.
pub async fn spread<T: Send + 'static>(count: usize, work: impl AsyncFn(usize) -> T + Send + Sync + 'static) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(count).max(1);
    let work = Arc::new(Work { work, count, threads, next: AtomicUsize::new(0) });
    let core = threads::core();
    let (mut others, mut answers) = (Others(Vec::new()), Vec::new());
    for number in 1..threads {
        let (abort, aborted) = AbortHandle::new_pair();
        let (answer, answered) = oneshot::channel();
        let work = work.clone();
        let begin = move || {
            threads::move_apart(core, number);
            let share = Abortable::new(share(work), aborted);
            let ended = catch_unwind(AssertUnwindSafe(|| futures::executor::block_on(share)));
            // Nobody waits for it where the future was dropped.
            let _ = answer.send(ended);
        };
        // Without a thread the others do its share.
        if helpers::begin(begin) {
            others.0.push(abort);
            answers.push(answered);
        }
    }
    // What the work holds goes in the end, on this thread, whose memory it mostly is.
    let mut parts = share(work.clone()).await;
    for answer in answers {
        match soon(answer).await {
            Ok(Ok(Ok(others))) => parts.extend(others),
            Ok(Err(panic)) => resume_unwind(panic),
            // Neither happens while this future is awaited.
            Ok(Ok(Err(_))) | Err(_) => {}
        }
    }
    drop(work);
    parts.sort_unstable_by_key(|part| part.first);
    let mut outputs = Vec::with_capacity(count);
    parts.into_iter().for_each(|part| outputs.extend(part.outputs.into_iter().flatten()));
    outputs
}

/// An answer of a thread that is at its last run. To be woken takes longer than a small one does.
async fn soon<T>(mut answer: oneshot::Receiver<T>) -> Result<T, oneshot::Canceled> {
    let begin = Instant::now();
    while begin.elapsed() < SPIN {
        if let Some(answer) = answer.try_recv()? {
            return Ok(answer);
        }
        std::hint::spin_loop();
    }
    answer.await
}

/// What runs of consecutive numbers gave.
struct Part<T> {
    first: usize,
    outputs: Vec<Option<T>>,
}

/// A thread's share of the runs: what they gave.
async fn share<T>(work: Arc<Work<impl AsyncFn(usize) -> T>>) -> Vec<Part<T>> {
    let mut parts: Vec<Part<T>> = Vec::new();
    let mut waiting = FuturesUnordered::new();
    // Memory of a run that has ended, for the next.
    let mut room = None;
    while let Some(numbers) = work.take() {
        let at = parts.len();
        let mut part = Part { first: numbers.start, outputs: Vec::with_capacity(numbers.len()) };
        for number in numbers {
            let mut run = placed(&mut room, (work.work)(number));
            match futures::poll!(run.as_mut()) {
                Poll::Ready(output) => {
                    part.outputs.push(Some(output));
                    room = Some(run);
                }
                Poll::Pending => {
                    let place = (at, part.outputs.len());
                    part.outputs.push(None);
                    waiting.push(run.map(move |output| (place, output)));
                }
            }
        }
        parts.push(part);
        while let Some(Some(((part, at), output))) = waiting.next().now_or_never() {
            parts[part].outputs[at] = Some(output);
        }
        // The executor's other tasks, and an end from outside.
        tokio::task::yield_now().await;
    }
    while let Some(((part, at), output)) = waiting.next().await {
        parts[part].outputs[at] = Some(output);
    }
    parts
}

/// A future, in memory that another has left or in its own.
pub(super) fn placed<F: Future>(room: &mut Option<Pin<Box<F>>>, future: F) -> Pin<Box<F>> {
    match room.take() {
        Some(mut room) => {
            room.as_mut().set(future);
            room
        }
        None => Box::pin(future),
    }
}

#[cfg(test)]
mod tests {
    use super::spread;
    use crate::script::{Script, testing};
    use futures::FutureExt;
    use futures::executor::block_on;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn what_the_copies_give_comes_in_their_order() {
        for count in [0, 1, 2, 7, 1000] {
            let given = block_on(spread(count, async |number| {
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
        let open = |copy| testing::session(copy);
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
        let mut copies = Box::pin(spread(50, async move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            let _counted = Counted(counter.clone());
            endless.run(&testing::session(0)).await.map(drop)
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
        let task = async move { script.run_copies((0..20).map(testing::session)).await };
        let ended = executor.block_on(executor.spawn(task)).unwrap();
        assert_eq!(ended.iter().filter(|copy| copy.as_ref().unwrap().number("x") == Some(3.0)).count(), 20);
    }

    #[test]
    fn a_panic_reaches_whoever_awaits() {
        for count in [1, 100] {
            let copies = spread(count, async move |number| assert_ne!(number, count - 1, "on purpose"));
            let panic = block_on(std::panic::AssertUnwindSafe(copies).catch_unwind()).unwrap_err();
            assert!(panic.downcast_ref::<String>().unwrap().contains("on purpose"));
        }
    }
}

//! Lets idle cores take over some of the runs that one task awaits at the same time (`join_all`). This is work stealing
//! from the newest run backwards.
//!
//! A task polls its futures on one thread. If it has made many runs before it polls the first, helpers begin the runs
//! that were made last, while the task's own thread begins them from the first on. They meet in the middle, so the task
//! hardly ever waits for a helper. If a run has to wait for the runtime, its helper hands it back to the task.
//!
//! No library does this: every executor polls the futures that one task joins on that task's thread, so that without
//! this module a program that joins its runs gains nothing from further cores. `cargo bench --bench scripts -- copies`
//! (docs/benchmarks.md) joins 1,000 runs on two cores. On 2026-11-26 the speedup over running them one after the other
//! was, on EPYC / Xeon cores: 2.2 to 2.4 / 2.4 to 2.6 for runs of 0.4 ms on arrays of the runtime, and 1.5 to 1.6 /
//! 1.3 to 1.5 for runs of 5 us. Programs that put each run into a task of its own do not need this module; such runs of
//! 5 us gain 1.5 to 1.6 / 0.8 to 1.4, since an executor's task costs as much as a small script.
//!
//! In: runs, as they are made. Out: futures of their results. Must hold:
//! - CROWD-1: this module costs a run that is made alone, or in a task of its own, two atomic counts: no lock, no
//!   allocation.
//! - CROWD-2: a run is polled by one thread at a time, and its owner is woken whenever a helper lets go of it.
//! - CROWD-3: dropping the future cancels the run, at the latest when it next lets others run.

use super::error::ScriptError;
use super::polling::{Flag, placed};
use super::{Script, Workspace};
use super::{helpers, threads};
use parking_lot::{Mutex, MutexGuard};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use tidemill::Session;

/// Runs can be taken over if the thread has at least this many others that wait for their first poll.
const ALONE_MAX: usize = 2;
/// A helper is called if at least this many runs wait for their first poll.
const CALL_MIN: usize = 8;
/// The number of runs in a [`Block`].
const BLOCK: usize = 32;

type Ended = Result<Workspace, ScriptError>;
/// A run that any thread may poll.
pub(super) type Run = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// The runs that a thread has made and has not polled yet.
#[derive(Default)]
struct Crowd {
    waiting: AtomicUsize,
    /// Blocks with runs that no helper has looked at, the newest last.
    open: Mutex<Vec<Part>>,
    /// Whether `open` may hold runs. It is read without the lock.
    is_open: AtomicBool,
    /// The number of helpers that are at work.
    helpers: AtomicUsize,
    /// Set when there was no thread for a helper.
    is_refused: AtomicBool,
}

/// The members of a block that no helper has looked at: the first `left` of the `made` ones.
struct Part {
    block: Arc<Block>,
    left: usize,
    made: usize,
}

/// Runs that were made one after the other. They share one allocation, so that a helper does not free memory of the
/// owner's thread for each run: if two threads want an allocator's lock, one of them goes to sleep.
#[derive(Default)]
struct Block([Mutex<State>; BLOCK]);

/// A run that helpers may take over: its block, and its number there.
#[derive(Clone)]
struct Member {
    block: Arc<Block>,
    number: usize,
}

#[derive(Default)]
enum State {
    /// The run has not begun. It holds the script and the session that it runs on.
    New(Script, Session),
    /// A helper polls the run. The waker, if any, is the owner's, and is woken when the helper lets go of the run.
    AtHelper(Option<Waker>),
    /// A helper has begun the run and handed it back, since it waits for something.
    HandedBack(Run),
    /// The run has ended, or panicked.
    Done(std::thread::Result<Ended>),
    /// The owner has taken the run, or has dropped its future.
    #[default]
    Taken,
}

impl Crowd {
    /// Adds a run that may be taken over.
    fn push(&self, state: State) -> Member {
        let mut open = self.open.lock();
        // A block that helpers have begun to empty gets no new members, since its numbers are not given again.
        if open.last().is_none_or(|part| part.made == BLOCK || part.left < part.made) {
            // Blocks whose runs have all been dropped are removed.
            open.retain(|part| Arc::strong_count(&part.block) > 1);
            open.push(Part { block: Arc::default(), left: 0, made: 0 });
        }
        let Some(part) = open.last_mut() else { unreachable!("there is one") };
        let member = Member { block: part.block.clone(), number: part.made };
        *member.state() = state;
        part.made += 1;
        part.left += 1;
        self.is_open.store(true, Ordering::Relaxed);
        member
    }

    /// Takes the newest run that no helper has looked at.
    fn pop(&self) -> Option<Member> {
        let mut open = self.open.lock();
        let Some(part) = open.last_mut() else {
            self.is_open.store(false, Ordering::Relaxed);
            return None;
        };
        part.left -= 1;
        let member = Member { block: part.block.clone(), number: part.left };
        if part.left == 0 {
            open.pop();
        }
        Some(member)
    }

    /// Leaves no runs to helpers.
    fn close(&self) {
        if !self.is_open.load(Ordering::Relaxed) {
            return;
        }
        self.is_refused.store(false, Ordering::Relaxed);
        let ended = {
            let mut open = self.open.lock();
            self.is_open.store(false, Ordering::Relaxed);
            std::mem::take(&mut *open)
        };
        // Dropping blocks may drop runs, which must not happen under the lock.
        drop(ended);
    }
}

thread_local!(static CROWD: Arc<Crowd> = Arc::default());

async fn begun(script: Script, session: Session) -> Ended {
    script.run_captured(&session).await
}

/// A run's entry in the count of runs that its thread has made and not polled. Dropping it removes the entry.
pub(super) struct Place {
    crowd: Arc<Crowd>,
    has_begun: bool,
}

impl Place {
    /// Notes that the run is polled for the first time, and calls helpers if many runs wait.
    pub fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            let waiting = self.crowd.waiting.fetch_sub(1, Ordering::Relaxed) - 1;
            if waiting == 0 {
                self.crowd.close();
            } else if waiting >= CALL_MIN
                && self.crowd.is_open.load(Ordering::Relaxed)
                && !self.crowd.is_refused.load(Ordering::Relaxed)
                && self.crowd.helpers.load(Ordering::Relaxed) + 1 < threads::cores()
            {
                call_helpers(&self.crowd);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.has_begun && self.crowd.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.crowd.close();
        }
    }
}

/// How a new run will be polled.
pub(super) enum Made {
    /// Only by its owner.
    Alone(Place),
    /// By its owner or by a helper.
    Shared(Shared),
}

/// Registers a new run, which helpers may take over if the thread has made several.
pub(super) fn made(script: &Script, session: &Session) -> Made {
    let crowd = CROWD.with(Arc::clone);
    let before = crowd.waiting.fetch_add(1, Ordering::Relaxed);
    let place = Place { crowd, has_begun: false };
    if before < ALONE_MAX || threads::cores() == 1 {
        return Made::Alone(place);
    }
    let member = place.crowd.push(State::New(script.clone(), session.clone()));
    Made::Shared(Shared { member, place, own: None })
}

/// The owner's side of a run that helpers may take over: a future of the run's result.
pub(super) struct Shared {
    member: Member,
    place: Place,
    /// The run, once its owner polls it.
    own: Option<Run>,
}

impl Future for Shared {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ended> {
        let this = &mut *self;
        this.place.begin();
        if this.own.is_none() {
            let mut state = this.member.state();
            match std::mem::replace(&mut *state, State::Taken) {
                State::New(script, session) => this.own = Some(Box::pin(begun(script, session))),
                State::HandedBack(run) => this.own = Some(run),
                State::AtHelper(_) => {
                    *state = State::AtHelper(Some(context.waker().clone()));
                    return Poll::Pending;
                }
                State::Done(ended) => {
                    drop(state);
                    return Poll::Ready(ended.unwrap_or_else(|panic| resume_unwind(panic)));
                }
                State::Taken => unreachable!("a future is polled after it has ended"),
            }
        }
        let Some(run) = &mut this.own else { return Poll::Pending };
        run.as_mut().poll(context)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut *self.member.state(), State::Taken);
        // Dropping the state may drop a run, which must not happen under the lock.
        drop(state);
    }
}

impl Member {
    fn state(&self) -> MutexGuard<'_, State> {
        self.block.0[self.number].lock()
    }

    fn is_taken(&self) -> bool {
        matches!(*self.state(), State::Taken)
    }

    /// Stores the state in which a helper leaves the run, and wakes the owner.
    fn let_go(&self, left: State) {
        let mut state = self.state();
        match &mut *state {
            State::AtHelper(waker) => {
                let waker = waker.take();
                *state = left;
                drop(state);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            // CROWD-3: the owner has dropped its future.
            _ => {
                drop(state);
                drop(left);
            }
        }
    }
}

/// A helper's work: begins the runs of a crowd from the newest on, until all have begun.
fn help(crowd: &Crowd) {
    let flag = Arc::new(Flag::default());
    let waker = Waker::from(flag.clone());
    // The allocation of a run that has ended, reused by the next run.
    let mut room = None;
    while let Some(member) = crowd.pop() {
        let mut run = {
            let mut state = member.state();
            match std::mem::replace(&mut *state, State::AtHelper(None)) {
                State::New(script, session) => placed(&mut room, begun(script, session)),
                other => {
                    *state = other;
                    continue;
                }
            }
        };
        let left = loop {
            flag.lower();
            match catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(&mut Context::from_waker(&waker)))) {
                Ok(Poll::Pending) if flag.is_raised() && !member.is_taken() => {}
                Ok(Poll::Pending) => break State::HandedBack(run),
                Ok(Poll::Ready(ended)) => {
                    room = Some(run);
                    break State::Done(Ok(ended));
                }
                Err(panic) => break State::Done(Err(panic)),
            }
        };
        member.let_go(left);
    }
}

/// Calls the missing helpers, so that there is one for each core beside the owner's.
fn call_helpers(crowd: &Arc<Crowd>) {
    let core = threads::core();
    let one_more = |helpers| (helpers + 1 < threads::cores()).then_some(helpers + 1);
    while let Ok(before) = crowd.helpers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
        let called = Called(crowd.clone());
        let is_there = helpers::begin(move || {
            threads::move_apart(core, before + 1);
            help(&called.0);
        });
        if !is_there {
            // The owner does all runs itself, and asks for no helper until its next crowd.
            crowd.is_refused.store(true, Ordering::Relaxed);
            break;
        }
    }
}

/// Counts a helper that was called. Dropping it, when the helper has ended or could not start, lets another be called.
struct Called(Arc<Crowd>);

impl Drop for Called {
    fn drop(&mut self) {
        self.0.helpers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use crate::Script;
    use crate::rig;
    use futures::FutureExt;
    use futures::executor::block_on;
    use futures::future::{join_all, select_all};

    const LOOP: &str = "s = 0; for k = 1:200, s = s + k; end
                        x = ones (100, 100) * 2; printf ('%d %d\\n', s, sum (x(:)));";

    #[test]
    fn a_thousand_runs_that_one_task_joins_print_what_each_prints_alone() {
        let session = rig::env().session.clone();
        let good = Script::parse(LOOP).unwrap();
        let bad = Script::parse("x = 1;\nerror ('mine:id', 'on purpose');").unwrap();
        let runs = (0..1000).map(|n| if n % 10 == 3 { bad.run(&session) } else { good.run(&session) });
        let ended = block_on(join_all(runs.collect::<Vec<_>>()));
        for (n, ended) in ended.into_iter().enumerate() {
            match (n % 10 == 3, ended) {
                (true, Err(error)) => assert_eq!(error.message, "on purpose"),
                (false, Ok(workspace)) => assert_eq!(workspace.printed(), "20100 20000\n"),
                (_, other) => panic!("run {n} ended so: {other:?}"),
            }
        }
    }

    #[test]
    fn runs_that_never_end_end_with_their_futures() {
        let session = rig::env().session.clone();
        let endless = Script::parse("while true, x = 1; end").unwrap();
        let short = Script::parse("x = 1;").unwrap();
        for _ in 0..20 {
            let mut runs: Vec<_> = (0..30).map(|_| endless.run(&session).boxed()).collect();
            runs.insert(12, short.run(&session).boxed());
            let (ended, at, _others) = block_on(select_all(runs));
            assert_eq!((ended.unwrap().number("x"), at), (Some(1.0), 12));
        }
        // CROWD-3: helpers stop their endless runs.
        let crowd = super::CROWD.with(std::sync::Arc::clone);
        let helpers = || crowd.helpers.load(std::sync::atomic::Ordering::Relaxed);
        for _ in 0..1000 {
            if helpers() == 0 {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{} helpers are still at runs whose futures are gone", helpers());
    }

    #[test]
    fn futures_that_nobody_polls_leave_nothing_behind() {
        let session = rig::env().session.clone();
        let script = Script::parse("x = 2;").unwrap();
        drop((0..50).map(|_| script.run(&session)).collect::<Vec<_>>());
        let crowd = super::CROWD.with(std::sync::Arc::clone);
        assert_eq!(crowd.waiting.load(std::sync::atomic::Ordering::Relaxed), 0);
        assert!(crowd.open.lock().is_empty());
    }
}

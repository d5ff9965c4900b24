//! The future of a run: it lets the machine run, awaits what it needs, and lets it run again.

use super::run::Slice;
use super::{End, Interp};
use crate::env::out_of_memory;
use crate::error::{Need, ScriptError};
use crate::value::account::{COUNTED_BYTES_MIN, counted_on};
use crate::value::made::{self, Known};
use crate::value::{Lazy, Value, lazy};
use futures::future::{Either, join_all, select};
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tidemill::frontend;

/// The place of the machine when it asked for something.
#[derive(Clone, Copy, PartialEq)]
struct Standing {
    frames: usize,
    code: u32,
    pc: usize,
}

/// The answers that an instruction was given while it asked again and again (VM-4).
#[derive(Default)]
struct Asked {
    /// Where the machine was when it last asked, and how many steps it had taken.
    last: Option<(Standing, u64)>,
    /// Known values of the arrays that the instruction itself makes, by their numbers in the order of making.
    known: Vec<(u64, Known)>,
    /// The results of the instruction's futures, in order.
    answers: VecDeque<Value>,
    /// How often the instruction has asked without making progress.
    times: u32,
}

/// After this many requests, an instruction counts as one that never ends.
const ASKS_MAX: u32 = 1 << 16;

impl Asked {
    /// Returns those of the needed arrays that the instruction made itself, by their numbers, if the instruction has
    /// just run again.
    fn own(
        &mut self,
        standing: Standing,
        steps: u64,
        need: &Need,
        made: std::ops::Range<u64>,
    ) -> Vec<(u64, Arc<Lazy>)> {
        // If only one step was taken since the last request, at the same place, then nothing else has run.
        let again = self.last.is_some_and(|(place, before)| place == standing && before + 1 == steps);
        if !again {
            *self = Asked::default();
        }
        self.times += 1;
        self.last = Some((standing, steps));
        match need {
            Need::Host(arrays) | Need::Materialised(arrays) if again => {
                let own = arrays.iter().filter(|l| made.contains(&l.made));
                own.map(|l| (l.made - made.start, l.clone())).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Runs the code that [`Interp::begin`] set up to its end. If it records more than the ring has room for, it awaits
/// room.
pub async fn drive(interp: &mut Interp) -> End {
    let account = interp.env.account.clone();
    let mut run = pin!(driven(interp));
    // Awaiting records, too: the gathers. The host arrays that it brings count as the script's memory.
    let poll = |context: &mut Context<'_>| frontend::unheld(|| counted_on(&account, || run.as_mut().poll(context)));
    std::future::poll_fn(poll).await
}

async fn driven(interp: &mut Interp) -> End {
    let mut asked = Asked::default();
    loop {
        let begin = made::upcoming();
        // The instruction gets all earlier answers again, so it runs as before, and then further.
        interp.env.awaited = asked.answers.clone();
        interp.steps_at_resume = interp.steps;
        let (need, is_between) = match made::with_known(&asked.known, || interp.slice()) {
            Slice::End(end) => return end,
            Slice::Need(Need::Yield) => {
                asked = Asked::default();
                if frontend::take_wait() {
                    let interrupted = interp.interrupted(false);
                    select(pin!(frontend::caught_up(&interp.env.session)), pin!(interrupted)).await;
                } else {
                    yield_once().await;
                }
                let doubtful = interp.take_doubtful();
                interp.restore_spoiled(doubtful).await;
                let suspects = interp.take_due_suspects();
                if suspects.is_empty() {
                    continue;
                }
                (Need::Materialised(suspects), true)
            }
            Slice::Need(need) => (need, false),
        };
        // An answer that was awaited between two instructions belongs to neither.
        let own = match is_between {
            true => Vec::new(),
            false => asked.own(interp.standing(), interp.steps, &need, begin..made::upcoming()),
        };
        if interp.env.options.explain
            && let Need::Host(arrays) | Need::Materialised(arrays) = &need
        {
            explain(interp, arrays).await;
        }
        match &need {
            Need::Host(arrays) => interp.env.waited_for(arrays),
            // The size of what a future waits for is not known here: it may be a pause, or something large.
            Need::Future(_) | Need::Materialised(_) | Need::Yield => {}
        }
        let is_stuck = asked.times > ASKS_MAX;
        // Arrays that are gathered take host memory.
        let fits = match &need {
            Need::Host(arrays) => interp.env.account.holds(bytes_missing(arrays)),
            _ => true,
        };
        let interrupted = interp.interrupted(matches!(need, Need::Future(_)));
        let answer = async {
            match need {
                _ if is_stuck => Err(ScriptError::new(
                    "VM-4: an instruction asks for values again and again without making progress",
                )),
                Need::Yield => Ok(None),
                Need::Host(_) if !fits => Err(out_of_memory()),
                Need::Host(arrays) => lazy::fetch(&arrays).await.map(|()| None),
                Need::Materialised(arrays) => materialise(&arrays).await.map(|()| Some(Value::Bool(true))),
                Need::Future(future) => future.await.map(Some),
            }
        };
        let result = match select(pin!(answer), pin!(interrupted)).await {
            Either::Left((result, _)) => Some(result),
            Either::Right(_) => None,
        };
        let Some(result) = result else {
            interp.loses_session();
            asked = Asked::default();
            if let Err(end) = interp.unwind_interrupted() {
                interp.ends_with(end);
            }
            continue;
        };
        match result {
            Ok(_) if is_between => {}
            Ok(answer) => {
                asked.answers.extend(answer);
                asked.known.extend(own.into_iter().map(|(place, lazy)| match lazy.host.get() {
                    Some(host) => (place, Known::Host(host.clone())),
                    None => (place, Known::Checked),
                }));
            }
            Err(error) => {
                asked = Asked::default();
                if let Err(end) = interp.raise(error) {
                    interp.ends_with(end);
                }
            }
        }
    }
}

impl Interp {
    fn standing(&self) -> Standing {
        let (code, pc) = self.frame().map_or((0, 0), |f| (f.code.id, f.pc));
        Standing { frames: self.frames.len(), code, pc }
    }
}

/// Prints the execution plans of arrays that are about to be awaited.
async fn explain(interp: &mut Interp, arrays: &[Arc<Lazy>]) {
    for lazy in arrays {
        if let Ok(text) = lazy.array.explain().await {
            interp.env.output.err(text.as_bytes());
        }
    }
}

/// Lets other tasks run, on any executor.
async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Returns the bytes that these arrays will take on the host. Small arrays do not count.
fn bytes_missing(arrays: &[Arc<Lazy>]) -> usize {
    let missing = arrays.iter().filter(|lazy| lazy.host.get().is_none());
    let bytes = missing.map(|lazy| lazy.dims.elements().saturating_mul(lazy.class.bytes()));
    bytes.filter(|&bytes| bytes >= COUNTED_BYTES_MIN).fold(0, usize::saturating_add)
}

async fn materialise(arrays: &[Arc<Lazy>]) -> Result<(), ScriptError> {
    let evals: Vec<_> = arrays.iter().map(|l| l.array.eval()).collect();
    for (lazy, result) in arrays.iter().zip(join_all(evals).await) {
        result?;
        lazy.set_checked();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::{Task, TaskStep};
    use crate::error::{Flow, Stop};
    use crate::index::Values;
    use crate::rig;
    use crate::value::{Class, Pinned};
    use crate::vm::frame::{Activation, Return, TaskFrame};
    use futures::executor::block_on;

    /// Records three arrays and reads each of them before the next, which no real instruction should do.
    struct RecordsAndReads {
        runs: u32,
    }

    impl Task for RecordsAndReads {
        fn step(&mut self, interp: &mut Interp, _: Option<Result<Values, ScriptError>>) -> Flow<TaskStep> {
            self.runs += 1;
            assert!(self.runs < 20, "it is begun again and again");
            let env = &mut interp.env;
            let mut sum = 0.0;
            for k in 1..=3 {
                let array = env.session.full(k as f64, [100, 100]);
                // The values depend on what was read before, so mixing up two places would show.
                let lazy = Lazy::new(array + sum, Class::Double, Pinned::default(), false)?.value();
                sum = env.host(&lazy)?.data.f64_at(7);
            }
            env.print(format!("{sum} after {} runs", self.runs));
            Ok(TaskStep::Done(Values::new()))
        }
    }

    /// Asks for a value that it just made, then for an array that it records, then again.
    struct AsksInTurn;

    impl Task for AsksInTurn {
        fn step(&mut self, interp: &mut Interp, _: Option<Result<Values, ScriptError>>) -> Flow<TaskStep> {
            let env = &mut interp.env;
            let mut told = Vec::new();
            for k in 1..=3 {
                let Some(answer) = env.take_awaited() else {
                    let answer = async move { Ok(Value::Num(f64::from(10 * k))) };
                    return Err(Stop::Need(Need::Future(Box::pin(answer))));
                };
                let array = env.session.full(f64::from(k), [100, 100]);
                let lazy = Lazy::new(array, Class::Double, Pinned::default(), false)?.value();
                told.push((env.host(&answer)?.data.f64_at(0), env.host(&lazy)?.data.f64_at(3)));
            }
            env.print(format!("{told:?}"));
            Ok(TaskStep::Done(Values::new()))
        }
    }

    fn told_by(task: Box<dyn Task>) -> String {
        let (env, printed) = rig::env_with(Default::default());
        let mut interp = Interp::new(env);
        interp.begin_session();
        let heights = interp.heights();
        let returns = Return::Discard;
        interp.frames.push(Activation::Task(TaskFrame { task, last: None, heights, returns, nargout: 0 }));
        assert!(matches!(block_on(drive(&mut interp)), End::Done));
        let out = printed.lock().out.clone();
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_step_that_records_and_reads_gets_on() {
        assert_eq!(told_by(Box::new(RecordsAndReads { runs: 0 })), "6 after 5 runs");
    }

    #[test]
    fn a_step_is_told_again_what_it_was_told() {
        assert_eq!(told_by(Box::new(AsksInTurn)), "[(10.0, 1.0), (20.0, 2.0), (30.0, 3.0)]");
    }
}

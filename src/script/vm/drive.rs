//! The future of a run: it lets the machine run, awaits what it needs, and lets it run again.

use super::Interp;
use super::run::Slice;
use crate::script::error::{Need, ScriptError};
use crate::script::value::{Lazy, Value, lazy};
use futures::future::join_all;
use std::sync::Arc;
use std::task::Poll;

/// How a script ended.
#[derive(Debug)]
pub enum End {
    /// By its last statement.
    Done,
    /// By `exit(status)`, or an interrupt (130).
    Exit(i32),
    /// By an error that it did not catch.
    Failed(Box<ScriptError>),
}

/// Runs what [`Interp::begin`] set up to its end.
pub async fn drive(interp: &mut Interp) -> End {
    loop {
        let need = match interp.run_slice() {
            Slice::Done => return End::Done,
            Slice::Exit(status) => return End::Exit(status),
            Slice::Failed(error) => return End::Failed(error),
            Slice::Need(need) => need,
        };
        if interp.env.options.explain
            && let Need::Host(arrays) | Need::Materialised(arrays) = &need
        {
            explain(interp, arrays).await;
        }
        let result = match need {
            Need::Yield => {
                yield_once().await;
                Ok(None)
            }
            Need::Host(arrays) => lazy::fetch(&arrays).await.map(|()| None),
            Need::Materialised(arrays) => materialise(&arrays).await.map(|()| Some(Value::Bool(true))),
            Need::Future(future) => future.await.map(Some),
        };
        match result {
            Ok(awaited) => interp.env.awaited = awaited,
            Err(error) => {
                if let Err(error) = interp.raise(error) {
                    return End::Failed(error);
                }
            }
        }
    }
}

/// Prints the plans of what is about to be awaited.
async fn explain(interp: &mut Interp, arrays: &[Arc<Lazy>]) {
    for lazy in arrays {
        if let Ok(text) = lazy.array.explain().await {
            interp.env.output.err(text.as_bytes());
        }
    }
}

/// Lets other tasks of the executor run, whichever it is.
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

async fn materialise(arrays: &[Arc<Lazy>]) -> Result<(), ScriptError> {
    let evals: Vec<_> = arrays.iter().map(|l| l.array.eval()).collect();
    for (lazy, result) in arrays.iter().zip(join_all(evals).await) {
        result.map_err(runtime_error)?;
        lazy.set_checked();
    }
    Ok(())
}

fn runtime_error(error: crate::Error) -> ScriptError {
    error.into()
}

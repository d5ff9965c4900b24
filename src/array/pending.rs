//! A demand that the ring has not answered yet. Gathers, evals and explanations wait with it.
//!
//! In: an array. Out: the result that the ring delivers, or an error that names the op and its source line. Invariants:
//! - GATHER-1: every gather resolves, under any executor: its future waits for a one-shot only.
//! - GATHER-2: dropping an unresolved gather cancels it: on the tape if the tape is not cut yet, else by an event.
//! - GATHER-3: a gather holds its session, not its array, so that the array's memory can be reused.

use super::handle::{Array, Value};
use super::tape::Home;
use crate::contract::messages::scheduler::{Delivered, SchedulerEvent};
use crate::contract::region::CutReason;
use crate::contract::tape::Want;
use crate::error::{Error, ErrorKind, Result, Site};
use crate::ids::GatherId;
use crate::ring::Promise;
use crate::timeline::{Lane, flow};
use futures::FutureExt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

/// A demand whose result was not yielded yet.
pub(crate) enum Pending {
    /// The result was known when the demand was made.
    Ready(Result<Delivered>),
    /// The ring has the demand.
    Waiting(Box<Waiting>),
    /// The result was yielded.
    Done,
}

pub(crate) struct Waiting {
    home: Arc<Home>,
    value: Weak<Value>,
    gather: GatherId,
    promise: Promise,
    /// The tape's segment that holds the demand; `None` once it is known to be cut.
    uncut: Option<u64>,
    blame: (&'static str, Site),
    started_ns: u64,
    /// The span from the demand to the answer, inside the program's span.
    span: tracing::Span,
    yielded: bool,
}

impl Pending {
    /// A demand that failed when it was made.
    pub fn failed(error: Error) -> Pending {
        Pending::Ready(Err(error))
    }

    /// Marks demand for an array's value.
    pub fn demand(array: &Array, want: Want) -> Pending {
        let v = &array.0;
        if let Err(error) = &v.meta {
            return Pending::failed(error.clone());
        }
        if let Some(data) = &v.host {
            return Pending::Ready(Ok(match want {
                Want::Host => Delivered::Host(data.clone()),
                Want::Device => Delivered::Device,
            }));
        }
        let Some(id) = array.id() else {
            return Pending::failed(Error::new(ErrorKind::Internal, "RECORD-1: a value without data or number"));
        };
        v.demanded.store(true, Ordering::Relaxed);
        match v.home.demand(id, want) {
            Err(error) => Pending::failed(error.with_op(v.op).with_site(v.at)),
            Ok(demand) => Pending::Waiting(Box::new(Waiting {
                home: v.home.clone(),
                value: Arc::downgrade(v),
                gather: demand.gather,
                promise: demand.promise,
                uncut: Some(demand.segment),
                blame: (v.op, v.at),
                started_ns: v.home.link.timeline.now_ns(),
                span: tracing::debug_span!("gather", op = v.op, session = v.home.id.0),
                yielded: false,
            })),
        }
    }

    /// Asks for an explanation. The tape is cut, since the scheduler must know the value.
    pub fn explain(array: &Array) -> Pending {
        let v = &array.0;
        if let Err(error) = &v.meta {
            return Pending::failed(error.clone());
        }
        let Some(value) = array.id().filter(|_| v.host.is_none()) else {
            let text = format!("{array:?}: computed on the host when it was recorded; nothing runs\n");
            return Pending::Ready(Ok(Delivered::Text(text)));
        };
        v.home.flush();
        let link = &v.home.link;
        let (gather, promise) = link.gathers.open();
        link.send(SchedulerEvent::ExplainAsked { gather, value });
        Pending::Waiting(Box::new(Waiting {
            home: v.home.clone(),
            value: Weak::new(),
            gather,
            promise,
            uncut: None,
            blame: (v.op, v.at),
            started_ns: link.timeline.now_ns(),
            span: tracing::debug_span!("gather", op = "explain", session = v.home.id.0),
            yielded: false,
        }))
    }

    /// As a future's `poll`. It yields the result once.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Delivered>> {
        let result = match self {
            Pending::Done => {
                return Poll::Ready(Err(Error::new(ErrorKind::Argument, "this gather has yielded its result already")));
            }
            Pending::Ready(_) => match std::mem::replace(self, Pending::Done) {
                Pending::Ready(result) => return Poll::Ready(result),
                _ => unreachable!("GATHER-1: matched above"),
            },
            Pending::Waiting(waiting) => match waiting.poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(result) => result,
            },
        };
        *self = Pending::Done;
        Poll::Ready(result)
    }
}

impl Waiting {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Delivered>> {
        if let Some(segment) = self.uncut.take() {
            self.home.cut_segment(segment, CutReason::Demand);
        }
        let result = match self.promise.poll_unpin(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(result) => result,
        };
        self.yielded = true;
        self.span = tracing::Span::none();
        let timeline = &self.home.link.timeline;
        if timeline.is_on() {
            let now_ns = timeline.now_ns().max(self.started_ns + 1);
            timeline.span(Lane::Session(self.home.id), "gather", self.started_ns, now_ns, &[]);
            timeline.flow_end(Lane::Session(self.home.id), flow::to_gather(self.gather), now_ns - 1);
        }
        if result.is_ok()
            && let Some(value) = self.value.upgrade()
        {
            value.exported.store(true, Ordering::Release);
        }
        Poll::Ready(result.map_err(|e| e.with_op(self.blame.0).with_site(self.blame.1)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // The result of a resolved gather may not have been read, but there is nothing to cancel.
        if !self.yielded && !self.promise.is_resolved() {
            self.home.cancel(self.gather, self.uncut);
        }
    }
}

/// Checks that this thread may block; `what` is the call that would block.
///
/// # Errors
/// `ErrorKind::WouldBlock` inside of an async context: in a task of a tokio runtime, except in its `spawn_blocking` and
/// `block_in_place`, or in a `futures` executor; and on the runtime's own threads, on which wakers run.
pub(crate) fn may_block(what: &str) -> Result<()> {
    let tokio = tokio::runtime::Handle::try_current().is_ok() && in_a_tokio_task();
    let inside = tokio || futures::executor::enter().is_err() || crate::threads::is_own();
    match inside {
        false => Ok(()),
        true => Err(Error::new(
            ErrorKind::WouldBlock,
            format!("{what} would block an async context: await it, or call it from a thread of its own"),
        )),
    }
}

/// The most polls that a tokio task may make before it must yield.
const TOKIO_BUDGET: usize = 1024;

/// Whether this thread polls a task of tokio. A thread that tokio lends out for blocking work also has a handle to its
/// runtime, but only a task has a budget of polls. So this uses the whole budget up: a task is then told to yield. The
/// task yields at its next await, which does no harm, because its caller gets an error.
fn in_a_tokio_task() -> bool {
    (0..TOKIO_BUDGET).any(|_| tokio::task::coop::consume_budget().now_or_never().is_none())
}

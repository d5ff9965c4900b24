//! Ends a machine for good: at its deadline, or at the end of its session.
//!
//! In: an instant, and a session that may be closed. Out: a machine that unwinds as if interrupted, and then the error
//! that its run ends with. Must hold: STOP-1: whatever its cleanups, tries and `onCleanup` objects do, a machine ends
//! at most [`GRACE`] after that, except for the instruction that it is carrying out.

use super::Interp;
use crate::error::ScriptError;
use crate::source::Place;
use futures::future::{Either, select};
use futures_timer::Delay;
use std::pin::pin;
use std::time::{Duration, Instant};

/// How long cleanup may run after a deadline, or after the end of the script's session. Then the script ends wherever
/// it is.
pub const GRACE: Duration = Duration::from_millis(100);

/// How often a waiting script checks whether its session is still open.
const SESSION_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Whether a machine is ending for good, and why.
#[derive(Debug, Default)]
pub(super) struct Stop {
    /// Why it ends; `None` while it runs.
    why: Option<Why>,
    /// The place at which it began to end.
    place: Option<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Deadline,
    SessionClosed,
}

impl Interp {
    fn begin_stop(&mut self, why: Why) {
        let place = self.here();
        (self.stop.why, self.stop.place) = (Some(why), place);
        (self.env.halt.at, self.env.halt.is_stopping) = (Some(Instant::now() + GRACE), true);
    }

    /// Handles an interrupt: one by the deadline begins the end. Returns whether the cleanup's time has passed.
    pub(super) fn stops_for_good(&mut self) -> bool {
        if !self.env.halt.is_late() {
            return false;
        }
        if self.stop.why.is_some() {
            return true;
        }
        self.begin_stop(Why::Deadline);
        false
    }

    /// Whether the session was found closed for the first time, so that the machine is to be interrupted.
    pub(super) fn loses_session(&mut self) -> bool {
        if self.stop.why.is_some() || !self.env.session.is_closed() {
            return false;
        }
        self.begin_stop(Why::SessionClosed);
        true
    }

    /// Waits until the machine is to be interrupted. With `long`, closing its session counts, too; a gather from the
    /// runtime learns of that by itself.
    pub(super) fn interrupted(&self, long: bool) -> impl Future<Output = ()> + Send + use<> {
        let (interrupt, heeded) = (self.interrupt.clone(), self.env.halt.heeded);
        let (at, is_stopping, session) = (self.env.halt.at, self.stop.why.is_some(), self.env.session.clone());
        async move {
            let raised = pin!(interrupt.beyond(heeded));
            if at.is_none() && !long {
                return raised.await;
            }
            let stopped = pin!(async {
                loop {
                    let left = at.map(|at| at.saturating_duration_since(Instant::now()));
                    match left {
                        Some(left) if left.is_zero() => return,
                        Some(left) if is_stopping => Delay::new(left).await,
                        left => {
                            Delay::new(left.map_or(SESSION_CHECK_INTERVAL, |left| left.min(SESSION_CHECK_INTERVAL)))
                                .await;
                            if session.is_closed() {
                                return;
                            }
                        }
                    }
                }
            });
            match select(raised, stopped).await {
                Either::Left(_) | Either::Right(_) => {}
            }
        }
    }

    /// Drops all that runs, and all cleanup.
    pub(super) fn abandon_all(&mut self) {
        // No function of an `onCleanup` object is called from here on.
        self.env.due = None;
        self.drop_frames();
    }

    /// Returns the error of a run that ended so; `None` if an interrupt ended it.
    pub(crate) fn stopped_by(&mut self) -> Option<ScriptError> {
        let mut error = match self.stop.why? {
            Why::Deadline => ScriptError::with_id("Tidemill:deadline", "the deadline of the script has passed"),
            Why::SessionClosed => ScriptError::with_id("Tidemill:closed", "the session of the script was closed"),
        };
        error.place = self.stop.place.take();
        Some(error)
    }
}

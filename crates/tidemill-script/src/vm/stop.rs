//! What ends a machine for good: its deadline, or the end of its session.
//!
//! In: an instant, and a session that somebody may close. Out: a machine that unwinds as by an interrupt, and then the
//! error that its run ends with. Must hold: STOP-1: a machine ends at most [`GRACE`] after that, but for the
//! instruction that it carries out, whatever its cleanups, tries and `onCleanup` objects do.

use super::Interp;
use crate::error::ScriptError;
use crate::source::Place;
use futures::future::{Either, select};
use futures_timer::Delay;
use std::pin::pin;
use std::time::{Duration, Instant};

/// How long what cleans up may take after a deadline, or after the end of the script's session. Then the script ends
/// where it stands.
pub const GRACE: Duration = Duration::from_millis(100);

/// How often a script that waits looks whether its session is still open.
const LOOK_UP: Duration = Duration::from_millis(20);

/// Whether, and when, a machine ends for good.
#[derive(Debug, Default)]
pub(super) struct Stop {
    /// Why it ends, once it does.
    why: Option<Why>,
    /// Where it stood.
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

    /// Takes an interrupt in: one by the deadline begins the end. Whether what cleans up has had its time.
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

    /// Whether the session was closed, for the first time that this is seen: the machine is to be interrupted.
    pub(super) fn loses_session(&mut self) -> bool {
        if self.stop.why.is_some() || !self.env.session.is_closed() {
            return false;
        }
        self.begin_stop(Why::SessionClosed);
        true
    }

    /// Waits until the machine is to be interrupted. `long`: also where its session is closed, which whatever is gathered
    /// from the runtime learns by itself.
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
                            Delay::new(left.map_or(LOOK_UP, |left| left.min(LOOK_UP))).await;
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

    /// Drops all that runs, and what would clean up after it.
    pub(super) fn abandon_all(&mut self) {
        // Whatever becomes due from here on is nobody's.
        self.env.due = None;
        self.drop_frames();
    }

    /// The error of a run that ended so; `None` where an interrupt ended it.
    pub(crate) fn stopped_by(&mut self) -> Option<ScriptError> {
        let mut error = match self.stop.why? {
            Why::Deadline => ScriptError::with_id("Tidemill:deadline", "the deadline of the script has passed"),
            Why::SessionClosed => ScriptError::with_id("Tidemill:closed", "the session of the script was closed"),
        };
        error.place = self.stop.place.take();
        Some(error)
    }
}

//! Remembers the caller of each piece of work: the `tracing` span in which a program cut its tape or asked for a value.
//!
//! In: the program's current span at each cut; the regions that were cut from the segment. Out: that span, as the
//! parent of the spans of the runtime's threads for these regions. Must hold: CALLER-1: a span is made by the
//! subscriber that made its parent, whichever subscriber is current on the thread, because an id is valid for its own
//! subscriber only. CALLER-2: no entry is kept for a region that has ended.

use crate::ids::{RegionId, SessionId};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tracing::{Dispatch, Span, dispatcher, span};

/// Most segments that the ring has not taken in. There are more only if the ring has ended.
const SEGMENTS_MAX: usize = 1 << 16;

/// Regions beyond twice those in progress that may be in the table before it is cleaned up.
const SURPLUS_MAX: usize = 64;

/// The program's current span, if there is one.
#[derive(Clone, Default)]
pub struct Caller(Option<Arc<Held>>);

/// A span whose drop runs under the subscriber that made it, because `tracing-subscriber` closes the span's parent
/// under whichever subscriber is current (CALLER-1).
struct Held(Span);

impl Drop for Held {
    fn drop(&mut self) {
        let span = std::mem::replace(&mut self.0, Span::none());
        if let Some(subscriber) = span.with_subscriber(|(_, subscriber)| subscriber.clone()) {
            dispatcher::with_default(&subscriber, || drop(span));
        }
    }
}

impl Caller {
    /// The current thread's span.
    pub fn current() -> Caller {
        let span = Span::current();
        Caller(span.id().map(|_| Arc::new(Held(span))))
    }

    /// Replaces this caller by a newer one, if there is one. Returns the caller that is not kept. It has to be dropped
    /// while no lock is held, since that may end the program's span.
    #[must_use]
    pub fn replace(&mut self, newer: Caller) -> Caller {
        if newer.is_none() { newer } else { std::mem::replace(self, newer) }
    }

    /// Whether the program was in no span.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Runs `work` in a span that `make` creates from its parent's id. If the parent is a span of the program, the
    /// program's subscriber creates the span (CALLER-1), and `recorder` another one for itself; otherwise the thread's
    /// subscriber creates it.
    pub(super) fn enter<R>(
        &self,
        recorder: Option<&Dispatch>,
        make: impl Fn(Option<span::Id>) -> Span,
        work: impl FnOnce() -> R,
    ) -> R {
        let Some(parent) = &self.0 else { return make(None).in_scope(work) };
        let theirs = parent.0.with_subscriber(|(id, subscriber)| {
            // That subscriber is current only while the span is created.
            dispatcher::with_default(subscriber, || make(Some(id.clone())))
        });
        let theirs = Held(theirs.unwrap_or_else(Span::none));
        let own = recorder.map_or_else(Span::none, |recorder| dispatcher::with_default(recorder, || make(None)));
        let own = Held(own);
        own.0.in_scope(|| theirs.0.in_scope(work))
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_none() { "Caller(none)" } else { "Caller(a span)" })
    }
}

/// The callers of segments and regions that are in progress.
#[derive(Debug, Default)]
pub struct Callers {
    /// The number of entries, so that a program without spans takes no lock.
    known: AtomicUsize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The callers of segments, by session and time of the cut.
    segments: FxHashMap<(SessionId, u64), Caller>,
    regions: FxHashMap<RegionId, Caller>,
}

impl Callers {
    /// Notes the caller of a segment. To be called before the segment is sent.
    pub fn cut(&self, session: SessionId, at_ns: u64, caller: Caller) {
        if caller.is_none() {
            return;
        }
        let gone = self.change(|inner| {
            let gone = (inner.segments.len() >= SEGMENTS_MAX).then(|| std::mem::take(&mut inner.segments));
            inner.segments.insert((session, at_ns), caller);
            gone
        });
        // Dropped after the lock is released, since that may end the program's spans.
        drop(gone);
    }

    /// Takes the caller of a segment that the ring has received.
    pub fn take_segment(&self, session: SessionId, at_ns: u64) -> Caller {
        self.change_known(|inner| inner.segments.remove(&(session, at_ns)).unwrap_or_default()).unwrap_or_default()
    }

    /// Notes the caller of regions that were cut.
    pub fn regions(&self, regions: impl Iterator<Item = RegionId>, caller: &Caller) {
        if !caller.is_none() {
            self.change(|inner| inner.regions.extend(regions.map(|region| (region, caller.clone()))));
        }
    }

    /// The caller of a region that has not ended.
    pub fn of(&self, region: RegionId) -> Caller {
        if self.known.load(Relaxed) == 0 {
            return Caller::default();
        }
        self.inner.lock().regions.get(&region).cloned().unwrap_or_default()
    }

    /// A region has ended.
    pub fn ended(&self, region: RegionId) {
        let gone = self.change_known(|inner| inner.regions.remove(&region));
        // Dropped after the lock is released, since that may end the program's span.
        drop(gone);
    }

    /// Removes regions that ended without a call of `ended`, such as cancelled ones, once there are many. `count`
    /// regions are in progress, and `is_open` tells which (CALLER-2).
    pub fn limit(&self, count: usize, is_open: impl Fn(RegionId) -> bool) {
        if self.known.load(Relaxed) <= SURPLUS_MAX + 2 * count {
            return;
        }
        let gone: Vec<_> = self.change(|inner| inner.regions.extract_if(|region, _| !is_open(*region)).collect());
        drop(gone);
    }

    fn change_known<R>(&self, change: impl FnOnce(&mut Inner) -> R) -> Option<R> {
        (self.known.load(Relaxed) > 0).then(|| self.change(change))
    }

    fn change<R>(&self, change: impl FnOnce(&mut Inner) -> R) -> R {
        let mut inner = self.inner.lock();
        let result = change(&mut inner);
        self.known.store(inner.segments.len() + inner.regions.len(), Relaxed);
        result
    }
}

//! Whose work it is: the `tracing` span in which a program cut its tape or asked for a value.
//!
//! In: the program's current span, with each segment that is cut within one; the regions that were cut of it. Out: that
//! span as the parent of what the runtime's threads do for these regions.
//! Must hold: CALLER-1: a span is made by the subscriber that made its parent, whichever is current on the thread: an
//! id of one subscriber means nothing to another. CALLER-2: nothing is kept here of a region that has ended.

use crate::ids::{RegionId, SessionId};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tracing::{Dispatch, Span, dispatcher, span};

/// Segments that the ring has not taken in, at most. They are more only where the ring has ended.
const SEGMENTS_MAX: usize = 1 << 16;

/// Regions that are remembered beside those under way, and as many again.
const SURPLUS_MAX: usize = 64;

/// A span of the program's, if it was in one.
#[derive(Clone, Default)]
pub struct Caller(Option<Arc<Held>>);

/// A span that ends under the subscriber that made it: `tracing-subscriber` has whichever is current on the thread give
/// up the span's parent (CALLER-1).
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

    /// A newer one, if there is one, takes the place of this one. Returns the one that is not kept, to be dropped
    /// where no lock is held: that may end the program's span.
    #[must_use]
    pub fn replace(&mut self, newer: Caller) -> Caller {
        if newer.is_none() { newer } else { std::mem::replace(self, newer) }
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Runs `work` in a span that `make` makes of its parent's id. Where that is the program's, its subscriber makes
    /// the span (CALLER-1), and `recorder` another one for itself; else the thread's subscriber makes it.
    pub(super) fn enter<R>(
        &self,
        recorder: Option<&Dispatch>,
        make: impl Fn(Option<span::Id>) -> Span,
        work: impl FnOnce() -> R,
    ) -> R {
        let Some(parent) = &self.0 else { return make(None).in_scope(work) };
        let theirs = parent.0.with_subscriber(|(id, subscriber)| {
            // Only the making happens under that subscriber.
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

/// The callers of what is under way.
#[derive(Debug, Default)]
pub struct Callers {
    /// How many are known, so that a program without spans takes no lock.
    known: AtomicUsize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// By session and time of the cut.
    segments: FxHashMap<(SessionId, u64), Caller>,
    regions: FxHashMap<RegionId, Caller>,
}

impl Callers {
    /// A segment is about to be sent; to be called before that.
    pub fn cut(&self, session: SessionId, at_ns: u64, caller: Caller) {
        if caller.is_none() {
            return;
        }
        let gone = self.change(|inner| {
            let gone = (inner.segments.len() >= SEGMENTS_MAX).then(|| std::mem::take(&mut inner.segments));
            inner.segments.insert((session, at_ns), caller);
            gone
        });
        // Not under the lock: it may end the program's spans.
        drop(gone);
    }

    /// The caller of a segment that has come.
    pub fn take_segment(&self, session: SessionId, at_ns: u64) -> Caller {
        self.change_known(|inner| inner.segments.remove(&(session, at_ns)).unwrap_or_default()).unwrap_or_default()
    }

    /// Regions were cut for a caller.
    pub fn regions(&self, regions: impl Iterator<Item = RegionId>, caller: &Caller) {
        if !caller.is_none() {
            self.change(|inner| inner.regions.extend(regions.map(|region| (region, caller.clone()))));
        }
    }

    /// The caller of a region, as long as that is under way.
    pub fn of(&self, region: RegionId) -> Caller {
        if self.known.load(Relaxed) == 0 {
            return Caller::default();
        }
        self.inner.lock().regions.get(&region).cloned().unwrap_or_default()
    }

    /// A region has ended.
    pub fn ended(&self, region: RegionId) {
        let gone = self.change_known(|inner| inner.regions.remove(&region));
        // Not under the lock: it may end the program's span.
        drop(gone);
    }

    /// Forgets regions that ended without a word, as those that nobody wants any more, once they are many: `count` are
    /// under way, and `is_open` tells which (CALLER-2).
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

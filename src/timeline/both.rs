//! A subscriber for the runtime's own threads that passes everything to both the recorder and the program's subscriber,
//! so that recording a timeline takes no span or log line away from the program.
//!
//! In: `tracing` callbacks on threads that the runtime owns. Out: calls of the program's subscriber, for everything
//! that it enables, with its own ids; calls of the recorder, for this crate's spans and events. Must hold: BOTH-1: if
//! the program's subscriber made an id for a span, that id is the span's; the recorder's id is looked up by it.

use super::chrome::{MARK, is_own};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Metadata, Subscriber, dispatcher};

/// Marks ids of spans that the program's subscriber has not enabled.
const RECORDED_ONLY: u64 = 1 << 63;

pub(super) struct Both {
    recorder: Dispatch,
    program: Dispatch,
    /// This crate's spans that are open.
    spans: Mutex<FxHashMap<u64, Span>>,
    next: AtomicU64,
}

/// A span that is recorded.
#[derive(Clone)]
struct Span {
    /// The recorder's id.
    recorded: Id,
    /// Whether the program's subscriber has it, too.
    shared: bool,
}

impl Both {
    pub(super) fn new(recorder: Dispatch, program: Dispatch) -> Both {
        Both { recorder, program, spans: Mutex::default(), next: AtomicU64::new(0) }
    }

    /// Calls the subscribers that have a span: first the program's, with this id, then the recorder, with its own id.
    fn tell(&self, id: &Id, program: impl FnOnce(&Dispatch), recorder: impl FnOnce(&Dispatch, &Id)) {
        let span = self.spans.lock().get(&id.into_u64()).cloned();
        if span.as_ref().is_none_or(|span| span.shared) {
            program(&self.program);
        }
        if let Some(span) = span {
            recorder(&self.recorder, &span.recorded);
        }
    }

    fn program_wants(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() != MARK && self.program.enabled(metadata)
    }
}

impl Subscriber for Both {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_own(metadata) { Interest::always() } else { self.program.register_callsite(metadata) }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_own(metadata) || self.program_wants(metadata)
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let metadata = attributes.metadata();
        let theirs = self.program_wants(metadata).then(|| self.program.new_span(attributes));
        let shared = theirs.is_some();
        let id = theirs.unwrap_or_else(|| Id::from_u64(RECORDED_ONLY | (self.next.fetch_add(1, Relaxed) + 1)));
        if is_own(metadata) {
            // The parent may be a span of the program that the recorder does not know.
            let recorded = self.recorder.new_span(&Attributes::new(metadata, attributes.values()));
            self.spans.lock().insert(id.into_u64(), Span { recorded, shared });
        }
        id
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        self.tell(id, |program| program.record(id, values), |recorder, own| recorder.record(own, values));
    }

    fn record_follows_from(&self, id: &Id, follows: &Id) {
        self.tell(id, |program| program.record_follows_from(id, follows), |_, _| ());
    }

    fn event(&self, event: &Event<'_>) {
        if is_own(event.metadata()) {
            self.recorder.event(event);
        }
        if self.program_wants(event.metadata()) {
            self.program.event(event);
        }
    }

    fn enter(&self, id: &Id) {
        self.tell(id, |program| program.enter(id), |recorder, own| recorder.enter(own));
    }

    fn exit(&self, id: &Id) {
        self.tell(id, |program| program.exit(id), |recorder, own| recorder.exit(own));
    }

    fn clone_span(&self, id: &Id) -> Id {
        let clone = |subscriber: &Dispatch, span: &Id| {
            let _ = subscriber.clone_span(span);
        };
        self.tell(id, |program| clone(program, id), |recorder, own| clone(recorder, own));
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        // Each subscriber is made current for its own call, because closing a span closes its parent under the current
        // one.
        let (theirs, own) = (Cell::new(false), Cell::new(false));
        self.tell(
            &id,
            |program| dispatcher::with_default(program, || theirs.set(program.try_close(id.clone()))),
            |recorder, recorded| {
                dispatcher::with_default(recorder, || own.set(recorder.try_close(recorded.clone())));
            },
        );
        if own.get() {
            // The recorder always counts references; not every subscriber does.
            self.spans.lock().remove(&id.into_u64());
        }
        theirs.get() || own.get()
    }
}

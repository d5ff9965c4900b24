//! The recorder as a `tracing` layer: the embedding program's spans and events on the runtime's timeline.
//!
//! In: `tracing` callbacks on any thread. Out: records on one row a thread, in the group `program`.

use super::lanes::Row;
use super::queue::CallerRecord;
use super::{Detail, Timeline, chrome};
use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::ThreadId;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber, span};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// See [`Timeline::layer`].
#[derive(Clone, Debug)]
pub struct TimelineLayer {
    timeline: Timeline,
}

/// The layer's data of a span.
#[derive(Default)]
struct Kept {
    details: Vec<(&'static str, Detail)>,
    /// The threads that are in the span, each with the time of entry. Several threads may enter the same span.
    entered: Vec<(ThreadId, u64)>,
}

impl TimelineLayer {
    pub(super) fn new(timeline: Timeline) -> TimelineLayer {
        TimelineLayer { timeline }
    }

    /// Whether to record on this thread. The runtime's own threads are recorded in another way.
    fn records(&self) -> bool {
        self.timeline.is_on() && !chrome::is_owned_thread()
    }
}

impl<S> Layer<S> for TimelineLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        if !self.records() {
            return;
        }
        let mut kept = Kept::default();
        attributes.record(&mut Details(&mut kept.details));
        if let Some(span) = context.span(id) {
            span.extensions_mut().replace(kept);
        }
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(kept) = span.extensions_mut().get_mut::<Kept>() {
            values.record(&mut Details(&mut kept.details));
        }
    }

    fn on_enter(&self, id: &span::Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(kept) = span.extensions_mut().get_mut::<Kept>() {
            kept.entered.push((std::thread::current().id(), self.timeline.now_ns()));
        }
    }

    fn on_exit(&self, id: &span::Id, context: Context<'_, S>) {
        let end_ns = self.timeline.now_ns();
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        let Some(kept) = extensions.get_mut::<Kept>() else { return };
        let here = std::thread::current().id();
        let Some(at) = kept.entered.iter().rposition(|(thread, _)| *thread == here) else { return };
        let (_, start_ns) = kept.entered.remove(at);
        let details = kept.details.clone();
        self.timeline.record(|| CallerRecord::Span { row: row(), name: span.name().into(), start_ns, end_ns, details });
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !self.records() {
            return;
        }
        let mut details = Vec::new();
        event.record(&mut Details(&mut details));
        let said = details.iter().position(|(key, _)| *key == "message").map(|at| details.remove(at).1);
        let name = match said {
            Some(Detail::Text(said)) => said,
            _ => event.metadata().name().to_owned(),
        };
        let at_ns = self.timeline.now_ns();
        self.timeline.record(|| CallerRecord::Instant { row: row(), name: name.into(), at_ns, details });
    }
}

/// The current thread's row. Thread names need not be unique, so a number is added.
fn row() -> Row {
    thread_local! {
        static NAME: OnceCell<Arc<str>> = const { OnceCell::new() };
    }
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let name = NAME.try_with(|name| {
        let name = name.get_or_init(|| {
            let number = NEXT.fetch_add(1, Relaxed);
            format!("{} #{number}", std::thread::current().name().unwrap_or("thread")).into()
        });
        name.clone()
    });
    Row::Program(name.unwrap_or_else(|_| "ending threads".into()))
}

/// Collects fields.
struct Details<'a>(&'a mut Vec<(&'static str, Detail)>);

impl Details<'_> {
    fn set(&mut self, field: &Field, detail: Detail) {
        match self.0.iter_mut().find(|(key, _)| *key == field.name()) {
            Some(known) => known.1 = detail,
            None => self.0.push((field.name(), detail)),
        }
    }
}

impl Visit for Details<'_> {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, Detail::Int(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.set(field, Detail::Int(value)),
            Err(_) => self.set(field, Detail::Text(value.to_string())),
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, Detail::Float(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, Detail::Text(value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, Detail::Text(format!("{value:?}")));
    }
}

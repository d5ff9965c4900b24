//! The host lanes that come from `tracing` spans, through `tracing-chrome`.
//!
//! In: this crate's spans and events on the threads that the runtime owns. Out: spans and instants on our clock.
//!
//! `tracing-chrome` writes its own stream: one process, B and E events, its own clock, and a sender in a thread-local
//! that is never reset. So its layer is built on a thread of the recorder (which leaves the caller's thread-local
//! alone), and entered on threads of one runtime only. Its stream is parsed here: marks that carry the timeline's clock
//! give the offset of its clock, and pairs of B and E events become spans on the lane `tracing: <thread>`.

use super::both::Both;
use super::lanes::Row;
use super::queue::Queue;
use super::{Timeline, json};
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::cell::Cell;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;
use tracing::dispatcher::{self, Dispatch};
use tracing::{Event, Metadata, Subscriber, span};
use tracing_chrome::{ChromeLayer, ChromeLayerBuilder, FlushGuard};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// The target of the events that carry the timeline's clock and the threads' names. They are not forwarded.
pub(super) const MARK: &str = "tidemill::timeline::mark";
/// Marks at the start. The mark with the least delay gives the offset of the clocks.
const MARKS: u32 = 4;

thread_local! {
    static OWNED: Cell<bool> = const { Cell::new(false) };
}

/// Whether the current thread's spans come in through this module.
pub(super) fn is_owned_thread() -> bool {
    OWNED.try_with(Cell::get).unwrap_or(false)
}

/// The subscriber that the runtime's threads enter.
pub(super) struct HostDispatch {
    /// `tracing-chrome` alone.
    recorder: Dispatch,
    /// The recorder together with the program's subscriber, if there is one.
    all: Dispatch,
}

impl HostDispatch {
    /// Makes this the current thread's subscriber and names the thread in the stream.
    pub(super) fn enter(&self, name: &str, timeline: &Timeline) -> dispatcher::DefaultGuard {
        let guard = dispatcher::set_default(&self.all);
        OWNED.set(true);
        mark(name, timeline.now_ns());
        guard
    }

    /// The subscriber that only records.
    pub(super) fn recorder(&self) -> &Dispatch {
        &self.recorder
    }
}

/// Builds the layer; to be called on a thread of the recorder. `FlushGuard` ends the stream when it is dropped.
/// `program` is the program's subscriber, which gets the spans and events, too.
pub(super) fn build(queue: Arc<Queue>, epoch: Instant, program: Option<Dispatch>) -> (HostDispatch, FlushGuard) {
    let (inner, guard) =
        ChromeLayerBuilder::new().writer(Sink(queue)).include_args(true).include_locations(false).build();
    let recorder = Dispatch::new(Registry::default().with(OwnSpans { inner }));
    dispatcher::with_default(&recorder, || {
        for _ in 0..MARKS {
            mark("", epoch.elapsed().as_nanos() as u64);
        }
    });
    let all = match program {
        Some(program) => Dispatch::new(Both::new(recorder.clone(), program)),
        None => recorder.clone(),
    };
    (HostDispatch { recorder, all }, guard)
}

fn mark(thread: &str, now_ns: u64) {
    tracing::info!(target: MARK, ns = now_ns, thread = tracing::field::display(thread));
}

/// The writer for `tracing-chrome`'s thread.
struct Sink(Arc<Queue>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push_chrome(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Hands this crate's spans and events to `tracing-chrome`.
struct OwnSpans<S>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    inner: ChromeLayer<S>,
}

pub(super) fn is_own(metadata: &Metadata<'_>) -> bool {
    metadata.target() == "tidemill" || metadata.target().starts_with("tidemill::")
}

fn is_own_span<S: Subscriber + for<'a> LookupSpan<'a>>(id: &span::Id, context: &Context<'_, S>) -> bool {
    context.metadata(id).is_some_and(is_own)
}

impl<S> Layer<S> for OwnSpans<S>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        if is_own(attributes.metadata()) {
            self.inner.on_new_span(attributes, id, context);
        }
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        if is_own_span(id, &context) {
            self.inner.on_record(id, values, context);
        }
    }

    fn on_enter(&self, id: &span::Id, context: Context<'_, S>) {
        if is_own_span(id, &context) {
            self.inner.on_enter(id, context);
        }
    }

    fn on_exit(&self, id: &span::Id, context: Context<'_, S>) {
        if is_own_span(id, &context) {
            self.inner.on_exit(id, context);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if is_own(event.metadata()) {
            self.inner.on_event(event, context);
        }
    }
}

/// A span or event of the stream, on the timeline's clock. Arguments are a JSON object, or empty.
#[derive(Debug, PartialEq)]
pub(super) enum HostEvent {
    /// A span of a thread.
    Span { row: Row, name: String, start_ns: u64, end_ns: u64, arguments: String },
    /// An event of a thread.
    Instant { row: Row, name: String, at_ns: u64, arguments: String },
}

/// Parses `tracing-chrome`'s stream.
#[derive(Debug, Default)]
pub(super) struct ChromeStream {
    /// The beginning of a line that is not complete yet.
    partial: Vec<u8>,
    /// Its clock minus ours, in nanoseconds.
    offset_ns: Option<i64>,
    threads: FxHashMap<u64, Thread>,
}

#[derive(Debug)]
struct Thread {
    row: Row,
    /// Begins of spans that are open.
    open: Vec<u64>,
}

impl ChromeStream {
    /// Takes a piece of the stream, of any length.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<HostEvent> {
        let mut events = Vec::new();
        let mut text = std::mem::take(&mut self.partial);
        text.extend_from_slice(bytes);
        let mut rest = &text[..];
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            events.extend(self.line(&rest[..end]));
            rest = &rest[end + 1..];
        }
        self.partial = rest.to_vec();
        // The last event has no line end until the next one comes. It is complete if it parses.
        if serde_json::from_slice::<Value>(&self.partial).is_ok_and(|v| v.is_object()) {
            let last = std::mem::take(&mut self.partial);
            events.extend(self.line(&last));
        }
        events
    }

    fn line(&mut self, line: &[u8]) -> Option<HostEvent> {
        let event: Value = serde_json::from_slice(line.strip_suffix(b",").unwrap_or(line)).ok()?;
        let phase = event.get("ph")?.as_str()?;
        let tid = event.get("tid")?.as_u64()?;
        let theirs_ns = (event.get("ts")?.as_f64()? * 1000.0).round() as i64;
        if event.get("cat").and_then(Value::as_str) == Some(MARK) {
            self.mark(tid, theirs_ns, event.get("args")?);
            return None;
        }
        let at_ns = u64::try_from(theirs_ns - self.offset_ns?).unwrap_or(0);
        let thread = self.threads.get_mut(&tid)?;
        let name = || Some(event.get("name")?.as_str()?.to_owned());
        match phase {
            "B" => {
                thread.open.push(at_ns);
                None
            }
            "E" => {
                let start_ns = thread.open.pop()?;
                let end_ns = at_ns.max(start_ns);
                Some(HostEvent::Span {
                    row: thread.row.clone(),
                    name: name()?,
                    start_ns,
                    end_ns,
                    arguments: arguments(&event, ""),
                })
            }
            // The name of an event in the stream is its source line. Its message is used instead.
            "i" => {
                let said = event.pointer("/args/message").and_then(Value::as_str).map(str::to_owned);
                let arguments = arguments(&event, "message");
                Some(HostEvent::Instant { row: thread.row.clone(), name: said.or_else(name)?, at_ns, arguments })
            }
            _ => None,
        }
    }

    fn mark(&mut self, tid: u64, theirs_ns: i64, fields: &Value) {
        let text = |key| fields.get(key).and_then(Value::as_str);
        let (Some(thread), Some(ours_ns)) = (text("thread"), text("ns").and_then(|ns| ns.parse::<i64>().ok())) else {
            return;
        };
        if thread.is_empty() {
            // A mark is written some time after its clock was read, so the least difference is the best estimate.
            let offset_ns = theirs_ns - ours_ns;
            self.offset_ns = Some(self.offset_ns.map_or(offset_ns, |known| known.min(offset_ns)));
        } else {
            self.threads.insert(tid, Thread { row: Row::Host(thread.into()), open: Vec::new() });
        }
    }
}

/// An event's arguments as a JSON object without one key; `tracing-chrome` has written all of them as text.
fn arguments(event: &Value, without: &str) -> String {
    let Some(fields) = event.get("args").and_then(Value::as_object) else { return String::new() };
    let pairs: Vec<String> = fields
        .iter()
        .filter(|(key, _)| *key != without)
        .map(|(key, value)| format!("{}:{value}", json::quoted(key)))
        .collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_moved_to_our_clock_whatever_pieces_it_comes_in() {
        let stream = br#"[
{"ph":"i","pid":1,"ts":50.0,"name":"event","cat":"tidemill::timeline::mark","tid":0,"s":"t","args":{"ns":"41000","thread":""}},
{"ph":"i","pid":1,"ts":51.0,"name":"event","cat":"tidemill::timeline::mark","tid":0,"s":"t","args":{"ns":"44000","thread":""}},
{"ph":"i","pid":1,"ts":60.0,"name":"event","cat":"tidemill::timeline::mark","tid":1,"s":"t","args":{"ns":"53500","thread":"ring"}},
{"ph":"B","pid":1,"ts":70.0,"name":"plan","cat":"tidemill::fusion","tid":1},
{"ph":"i","pid":1,"ts":71.0,"name":"event x","cat":"tidemill::fusion","tid":1,"s":"t","args":{"message":"a miss"}},
{"ph":"E","pid":1,"ts":72.5,"name":"plan","cat":"tidemill::fusion","tid":1,"args":{"region":"7"}}
]"#;
        let row = Row::Host("ring".into());
        let expected = [
            HostEvent::Instant { row: row.clone(), name: "a miss".into(), at_ns: 64_000, arguments: String::new() },
            HostEvent::Span {
                row,
                name: "plan".into(),
                start_ns: 63_000,
                end_ns: 65_500,
                arguments: "{\"region\":\"7\"}".into(),
            },
        ];
        for size in [1, 7, 100, 10_000] {
            let mut reader = ChromeStream::default();
            let events: Vec<HostEvent> = stream.chunks(size).flat_map(|piece| reader.take(piece)).collect();
            assert_eq!(events, expected, "in pieces of {size}");
        }
    }
}

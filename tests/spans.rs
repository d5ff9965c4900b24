//! Spans of `tracing`: the runtime's work for a program is within the program's span, and reaches the program's
//! subscriber, with a timeline and without.

mod common;

use common::{until, wait};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// The spans that were seen, with their parents' names, and the events.
#[derive(Default)]
struct Seen {
    spans: Vec<(&'static str, Option<&'static str>)>,
    open: HashMap<&'static str, i64>,
    events: Vec<String>,
}

#[derive(Clone, Default)]
struct Capture(Arc<Mutex<Seen>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Capture {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let parent = context.span(id).and_then(|span| span.parent()).map(|parent| parent.name());
        let mut seen = self.0.lock().unwrap();
        seen.spans.push((attributes.metadata().name(), parent));
        *seen.open.entry(attributes.metadata().name()).or_default() += 1;
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if let Some(span) = context.span(&id) {
            *self.0.lock().unwrap().open.entry(span.name()).or_default() -= 1;
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.0.lock().unwrap().events.push(event.metadata().name().to_owned());
    }
}

#[test]
fn work_is_within_the_span_that_asked_for_it_with_a_timeline_and_without() {
    for device in ["host", "gpu"] {
        for with_timeline in [false, true] {
            let what = format!("{device}, timeline {with_timeline}");
            let capture = Capture::default();
            let subscriber = Registry::default().with(capture.clone());
            let path = std::env::temp_dir().join(format!("tidemill-spans-{}-{device}.json", std::process::id()));
            tracing::subscriber::with_default(subscriber, || {
                let mut builder = tidemill::Runtime::builder().device(device).fold_elements_max(0);
                if with_timeline {
                    builder = builder.timeline(&path);
                }
                // The runtime opens on another thread.
                let rt = match wait(builder.start()) {
                    Ok(rt) => rt,
                    Err(error) if device == "gpu" && !common::requires_gpu() => return eprintln!("skipped: {error}"),
                    Err(error) => panic!("{what}: {error}"),
                };
                let s = rt.session("traced").open();
                let gather = {
                    let _request = tracing::info_span!("request").entered();
                    (s.rand::<f32>([1000, 1]) * 2.0).gather::<f32>()
                };
                // The gather is polled outside of the span in which it was created.
                wait(gather).unwrap();
                tracing::info_span!("second").in_scope(|| wait((s.rand::<f32>([2000, 1]) + 1.0).eval()).unwrap());
                wait(s.rand::<f32>([3000, 1]).eval()).unwrap();
                wait(rt.shutdown()).unwrap();
                drop((s, rt));
                let spans = || capture.0.lock().unwrap().spans.clone();
                for parent in ["request", "second"] {
                    for name in ["gather", "segment", "region", "batch"] {
                        let has = || spans().contains(&(name, Some(parent)));
                        until(&format!("{what}: {name} is within {parent}"), has);
                    }
                }
                assert!(spans().contains(&("segment", None)), "{what}: the last is in no span");
                let is_closed = || capture.0.lock().unwrap().open.values().all(|open| *open == 0);
                until(&format!("{what}: all spans are closed"), is_closed);
                let residency = spans().iter().filter(|(name, _)| *name == "residency").count();
                assert!(residency > 0, "{what}: spans of the ring's thread reach the program's subscriber");
            });
            if with_timeline && path.exists() {
                let text = std::fs::read_to_string(&path).unwrap();
                for name in ["\"region\"", "\"batch\"", "\"segment\"", "\"residency\"", "\"fusion\""] {
                    assert!(text.contains(&format!("\"name\":{name}")), "{what}: no {name} on the timeline");
                }
                std::fs::remove_file(path).unwrap();
            }
        }
    }
}

/// A subscriber that keeps no spans, as some programs write.
struct Plain(Arc<Mutex<Vec<&'static str>>>);

impl Subscriber for Plain {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut seen = self.0.lock().unwrap();
        seen.push(attributes.metadata().name());
        Id::from_u64(seen.len() as u64)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_subscriber_of_another_kind_than_the_runtimes_is_served_beside_it() {
    let path = std::env::temp_dir().join(format!("tidemill-spans-{}-plain.json", std::process::id()));
    let (first, second) = (Arc::new(Mutex::new(Vec::new())), Capture::default());
    let rt = tracing::subscriber::with_default(Plain(first.clone()), || {
        let builder = tidemill::Runtime::builder().device("host").fold_elements_max(0).timeline(&path);
        builder.start_blocking().unwrap()
    });
    let s = rt.session("elsewhere").open();
    // The program's task has a subscriber of its own, whose ids the runtime's does not know.
    tracing::subscriber::with_default(Registry::default().with(second.clone()), || {
        let _request = tracing::info_span!("request").entered();
        wait(s.rand::<f32>([1000, 1]).gather::<f32>()).unwrap();
    });
    wait(s.rand::<f32>([1000, 1]).gather::<f32>()).unwrap();
    wait(rt.shutdown()).unwrap();
    assert!(second.0.lock().unwrap().spans.contains(&("region", Some("request"))));
    assert!(first.lock().unwrap().contains(&"residency"));
    std::fs::remove_file(path).unwrap();
}

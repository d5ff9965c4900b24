//! The file that a recorder writes: its JSON, lanes, arrows, limits and ends.

use super::*;
use serde_json::Value;
use std::path::PathBuf;
use tracing_subscriber::layer::SubscriberExt;

const GPU: DeviceId = DeviceId(1);

fn file() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.json");
    (dir, path)
}

/// The file's events, by a strict JSON parser.
fn events(path: &Path) -> Vec<Value> {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn of_phase<'a>(events: &'a [Value], phase: &str) -> Vec<&'a Value> {
    events.iter().filter(|e| e["ph"] == phase).collect()
}

/// The name of the row on which an event stands.
fn row_of(events: &[Value], event: &Value) -> String {
    let named = |e: &&Value| e["ph"] == "M" && e["name"] == "thread_name" && e["tid"] == event["tid"];
    events.iter().rfind(named).map(|e| e["args"]["name"].as_str().unwrap().to_owned()).unwrap()
}

#[test]
fn a_timeline_that_is_off_records_nothing_but_has_a_clock() {
    let timeline = Timeline::off();
    let before = timeline.now_ns();
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert!(timeline.now_ns() - before >= 2_000_000);
    assert!(!timeline.is_on());
    timeline.span(Lane::Scheduler, "x", 0, 1, &[]);
    timeline.flush();
    timeline.finish().unwrap();
}

#[test]
fn every_kind_of_event_is_in_the_file() {
    let (_dir, path) = file();
    let timeline = Timeline::to_file(&path).unwrap();
    timeline.name_session(SessionId(3), "pricing");
    timeline.name_device(GPU, "llvmpipe");
    timeline.span(Lane::Session(SessionId(3)), "record", 1_000, 3_500, &[("ops", Detail::Int(7))]);
    timeline.span(Lane::DeviceCompute(GPU), "k1", 5_000, 9_000, &[]);
    timeline.counter("bytes resident", 42);
    timeline.why(Lane::Scheduler, "region cut", &[("because", Detail::Text("gather".into()))]);
    timeline.finish().unwrap();
    let events = events(&path);
    let spans = of_phase(&events, "X");
    assert_eq!(spans.len(), 2);
    assert_eq!((spans[0]["ts"].as_f64(), spans[0]["dur"].as_f64()), (Some(1.0), Some(2.5)));
    assert_eq!(spans[0]["args"]["ops"], 7);
    assert_eq!(row_of(&events, spans[0]), "session 3: pricing");
    assert_eq!(row_of(&events, spans[1]), "compute");
    assert_eq!(of_phase(&events, "C")[0]["args"]["value"], 42);
    let why = of_phase(&events, "i")[0];
    assert_eq!((&why["name"], &why["args"]["because"]), (&"region cut".into(), &"gather".into()));
    let groups: Vec<&str> =
        events.iter().filter(|e| e["name"] == "process_name").map(|e| e["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(groups, ["sessions", "device 1: llvmpipe", "actors"]);
}

#[test]
fn spans_on_one_row_never_cross_whatever_is_recorded() {
    let (_dir, path) = file();
    let timeline = Timeline::to_file(&path).unwrap();
    let mut state = 1u64;
    for i in 0..5_000u64 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (start, length) = (i * 100 + (state >> 54), (state >> 40) % 700);
        timeline.span(Lane::DeviceUpload(GPU), "up", start, start + length, &[]);
        timeline.span(Lane::Fusion, "plan", start, start + length, &[]);
    }
    timeline.finish().unwrap();
    let events = events(&path);
    let mut rows: std::collections::BTreeMap<u64, Vec<(u64, u64, bool)>> = Default::default();
    for e in of_phase(&events, "X") {
        let ns = |key: &str| (e[key].as_f64().unwrap() * 1000.0).round() as u64;
        let row = rows.entry(e["tid"].as_u64().unwrap()).or_default();
        row.push((ns("ts"), ns("ts") + ns("dur"), e["cat"] == "upload"));
    }
    assert_eq!(rows.values().map(Vec::len).sum::<usize>(), 10_000);
    assert!(rows.len() > 2);
    for spans in rows.values_mut() {
        spans.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end)));
        let mut open: Vec<u64> = Vec::new();
        for (start, end, apart) in spans {
            open.retain(|e| *e > *start);
            assert!(open.iter().all(|e| *e >= *end), "a span crosses another");
            assert!(!*apart || open.is_empty(), "a transfer lies within another");
            open.push(*end);
        }
    }
}

#[test]
fn arrows_are_written_in_pairs_inside_of_spans_whichever_end_or_span_comes_first() {
    let (_dir, path) = file();
    let timeline = Timeline::to_file(&path).unwrap();
    let session = Lane::Session(SessionId(0));
    let compute = Lane::DeviceCompute(GPU);
    timeline.flow_start(session.clone(), 9, 1_500);
    timeline.flow_end(compute.clone(), 9, 6_000);
    timeline.flow_end(compute.clone(), 10, 7_000);
    timeline.flow_start(session.clone(), 11, 1_600);
    timeline.flush();
    timeline.span(session.clone(), "record", 1_000, 2_000, &[]);
    timeline.span(compute.clone(), "other kernel", 4_000, 6_500, &[]);
    timeline.flush();
    timeline.span(compute, "kernel", 6_000, 7_000, &[]);
    timeline.flow_start(session, 10, 2_000);
    timeline.finish().unwrap();
    let events = events(&path);
    let (starts, ends) = (of_phase(&events, "s"), of_phase(&events, "f"));
    assert_eq!((starts.len(), ends.len()), (2, 2), "the arrow without an end is left out");
    for (s, f) in starts.iter().zip(&ends) {
        assert_eq!((&s["id"], &s["cat"], &s["name"]), (&f["id"], &f["cat"], &f["name"]));
        assert_eq!(f["bp"], "e");
        for end in [s, f] {
            let at = end["ts"].as_f64().unwrap();
            let holds = |x: &&Value| {
                let start = x["ts"].as_f64().unwrap();
                x["tid"] == end["tid"] && start <= at && at < start + x["dur"].as_f64().unwrap()
            };
            assert!(of_phase(&events, "X").iter().any(holds), "{end} hangs in the air");
        }
    }
    assert_ne!(starts[0]["id"], starts[1]["id"]);
}

#[test]
fn the_file_parses_strictly_at_any_moment_of_a_run() {
    let (_dir, path) = file();
    let timeline = Timeline::to_file(&path).unwrap();
    assert_eq!(events(&path).len(), 0);
    for i in 0..20u64 {
        for k in 0..500 {
            timeline.span(Lane::Scheduler, "handle", i * 10_000 + k * 10, i * 10_000 + k * 10 + 5, &[]);
        }
        timeline.flush();
        assert_eq!(of_phase(&events(&path), "X").len() as u64, (i + 1) * 500);
    }
}

#[test]
fn two_runtimes_do_not_mix_also_where_their_threads_are_traced() {
    let (_dir, path) = file();
    let other = path.with_file_name("u.json");
    let timelines = [Timeline::to_file(&path).unwrap(), Timeline::to_file(&other).unwrap()];
    let threads: Vec<_> = timelines
        .iter()
        .zip(["one", "two"])
        .map(|(timeline, name)| {
            let timeline = timeline.clone();
            std::thread::spawn(move || {
                let _guard = timeline.enter_thread(name);
                for _ in 0..100 {
                    tracing::debug_span!("step", runtime = name).in_scope(|| tracing::debug!("inside of {name}"));
                }
                tracing::debug_span!(target: "another_crate", "foreign").in_scope(|| ());
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    for (timeline, (path, name)) in timelines.iter().zip([(&path, "one"), (&other, "two")]) {
        timeline.finish().unwrap();
        let events = events(path);
        let spans = of_phase(&events, "X");
        assert_eq!(spans.len(), 100);
        for span in spans {
            assert_eq!((&span["name"], row_of(&events, span)), (&"step".into(), format!("tracing: {name}")));
            assert!(span["args"]["runtime"].as_str().unwrap().contains(name));
        }
        let said = of_phase(&events, "i");
        assert_eq!((said.len(), &said[0]["name"]), (100, &format!("inside of {name}").into()));
    }
}

#[test]
fn tracing_spans_of_a_thread_are_on_the_clock_of_the_timeline() {
    let (_dir, path) = file();
    let timeline = Timeline::to_file(&path).unwrap();
    // Long enough that a clock of its own would be told from ours.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let inner = timeline.clone();
    let (before, after) = std::thread::spawn(move || {
        let _guard = inner.enter_thread("ring");
        let before = inner.now_ns();
        tracing::info_span!("hop").in_scope(|| std::thread::sleep(std::time::Duration::from_millis(3)));
        (before, inner.now_ns())
    })
    .join()
    .unwrap();
    timeline.finish().unwrap();
    let events = events(&path);
    let hop = of_phase(&events, "X")[0];
    let start_ns = (hop["ts"].as_f64().unwrap() * 1000.0) as u64;
    let end_ns = start_ns + (hop["dur"].as_f64().unwrap() * 1000.0) as u64;
    // The offset of the clocks is known to within the delay of the best of a few marks, on a machine that may be busy.
    let slack_ns = 100_000_000;
    assert!(start_ns + slack_ns >= before && end_ns <= after + slack_ns, "{before} {start_ns} {end_ns} {after}");
    assert!(end_ns - start_ns >= 3_000_000);
}

#[test]
fn a_program_can_record_its_own_spans_beside_the_runtimes() {
    let (_dir, path) = file();
    let timeline = Timeline::to_file(&path).unwrap();
    let subscriber = tracing_subscriber::registry().with(timeline.layer());
    tracing::subscriber::with_default(subscriber, || {
        let span = tracing::info_span!(target: "my_program", "load", files = 3, late = tracing::field::Empty);
        span.record("late", true);
        span.in_scope(|| tracing::warn!(target: "my_program", "half of it"));
    });
    timeline.finish().unwrap();
    let events = events(&path);
    let load = of_phase(&events, "X")[0];
    assert_eq!((&load["name"], &load["args"]["files"]), (&"load".into(), &3.into()));
    assert_eq!(load["args"]["late"], "true");
    assert_eq!(of_phase(&events, "i")[0]["name"], "half of it");
}

#[test]
fn a_full_file_is_followed_by_numbered_ones_and_then_by_a_note() {
    let (dir, path) = file();
    let limits = file::Limits { file_bytes_max: 100_000, files_max: 2 };
    let timeline = Timeline::with_limits(&path, limits).unwrap();
    for i in 0..20_000 {
        timeline.span(Lane::Scheduler, "handle", i * 10, i * 10 + 5, &[]);
    }
    timeline.finish().unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    let (first, second) = (events(&path), events(&dir.path().join("t.1.json")));
    assert_eq!(row_of(&first, of_phase(&first, "X")[0]), "scheduler");
    assert_eq!(row_of(&second, of_phase(&second, "X")[0]), "scheduler");
    assert!(of_phase(&second, "i")[0]["name"].as_str().unwrap().contains("files are full"));
    assert!(second.len() < 5_000);
}

#[test]
fn the_last_clone_that_is_dropped_finishes_the_file() {
    let (_dir, path) = file();
    let timeline = Timeline::to_file(&path).unwrap();
    let clone = timeline.clone();
    drop(timeline);
    clone.span(Lane::Residency, "place", 1, 2, &[]);
    drop(clone);
    assert_eq!(of_phase(&events(&path), "X").len(), 1);
}

#[test]
fn what_is_recorded_after_the_end_is_ignored() {
    let (_dir, path) = file();
    let timeline = Timeline::to_file(&path).unwrap();
    timeline.span(Lane::Residency, "place", 1, 2, &[]);
    timeline.finish().unwrap();
    timeline.span(Lane::Residency, "place", 2, 3, &[]);
    timeline.flush();
    timeline.finish().unwrap();
    assert_eq!(of_phase(&events(&path), "X").len(), 1);
}

#[test]
fn a_run_that_records_nothing_leaves_nothing() {
    let (dir, path) = file();
    drop(Timeline::to_file(path).unwrap());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let error = Timeline::to_file(dir.path().join("no/such/folder.json")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn ten_threads_that_record_at_once_lose_nothing() {
    let (_dir, path) = file();
    let timeline = Timeline::to_file(&path).unwrap();
    std::thread::scope(|scope| {
        for n in 0..10 {
            let timeline = &timeline;
            scope.spawn(move || {
                for i in 0..2_000 {
                    timeline.span(Lane::Worker(n), "plan", i * 10, i * 10 + 5, &[]);
                }
            });
        }
    });
    timeline.finish().unwrap();
    assert_eq!(of_phase(&events(&path), "X").len(), 20_000);
}

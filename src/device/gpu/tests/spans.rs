//! The spans and arrows of a device on the timeline.

use super::rig::{SCALE_WGSL, Written, allocate, dispatch, launch, readback, rig_of, slot, upload};
use crate::config::Config;
use crate::contract::batch::Command;
use crate::graph::DType;
use crate::timeline::Timeline;
use serde_json::Value;
use std::sync::Arc;

/// Commands that keep a software device busy for a while.
fn work() -> Vec<Command> {
    let bytes = 1 << 20;
    let (a, b, f) = (slot(1, 0, bytes), slot(2, 0, bytes), slot(3, 0, 16));
    let elements = (bytes / 4) as u32;
    vec![
        upload(&vec![1.0f32; elements as usize], a),
        dispatch(&launch(2.0, 0.0, 1e9, 0), a, b, f, elements),
        dispatch(&launch(3.0, 0.0, 1e9, 0), a, b, f, elements),
        readback(0, b, DType::F32, u64::from(elements)),
    ]
}

/// Spans with this name: start and end in nanoseconds, and arguments.
fn spans(events: &[Value], name: &str) -> Vec<(u64, u64, Value)> {
    let ns = |v: &Value| (v.as_f64().unwrap() * 1e3).round() as u64;
    let named = events.iter().filter(|e| e["name"] == name && e["ph"] == "X");
    named.map(|e| (ns(&e["ts"]), ns(&e["ts"]) + ns(&e["dur"]), e["args"].clone())).collect()
}

fn check(without: Vec<&'static str>, stamped: bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let timeline = Timeline::to_file(&path).unwrap();
    let mut config = Config::default();
    config.injection.without_features = without;
    let shaders = |_, _: &_| Arc::new(Written(SCALE_WGSL)) as _;
    let Some(mut rig) = rig_of(config, timeline.clone(), shaders) else { return };
    rig.run(vec![allocate(1, 1 << 20), allocate(2, 1 << 20), allocate(3, 16)]).unwrap();
    for _ in 0..3 {
        rig.run(work()).unwrap();
    }
    rig.end();
    timeline.finish().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let events = json.as_array().or_else(|| json["traceEvents"].as_array()).unwrap();
    let submitted = spans(events, "encode and submit");
    let batches: Vec<_> = spans(events, "scale").into_iter().filter(|s| s.2.get("batch").is_some()).collect();
    assert_eq!(submitted.iter().filter(|s| s.2["batch"] != 0).count(), 3);
    assert_eq!(batches.len(), 3);
    for (start, end, args) in &batches {
        let submit = submitted.iter().find(|s| s.2["batch"] == args["batch"]).unwrap();
        assert!(*start >= submit.1, "batch {} starts at {start}, submitted at {}", args["batch"], submit.1);
        assert!(end > start);
    }
    assert!(batches.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    assert_eq!((spans(events, "upload").len(), spans(events, "readback").len()), (3, 3));
    // Three arrows to kernels and three to readbacks; a batch that only allocates is not drawn.
    assert_eq!(events.iter().filter(|e| e["ph"] == "s").count(), 6);
    assert!(spans(events, "copies").is_empty());
    let dispatches = spans(events, "scale").len() - batches.len();
    assert_eq!(dispatches, if stamped { 6 } else { 0 });
}

#[test]
fn batches_and_dispatches_are_drawn_after_their_submission_and_do_not_overlap() {
    check(Vec::new(), true);
}

#[test]
fn without_time_stamps_a_batch_lasts_from_its_submission_to_its_completion() {
    check(vec!["timestamps"], false);
}

#[test]
fn a_batch_of_several_submissions_is_stamped_in_its_last() {
    let folder = tempfile::tempdir().unwrap();
    let timeline = Timeline::to_file(folder.path().join("trace.json")).unwrap();
    let shaders = |_, _: &_| Arc::new(Written(SCALE_WGSL)) as _;
    let Some(mut rig) = rig_of(Config::default(), timeline.clone(), shaders) else { return };
    let bytes: u64 = if rig.handle.info.software { 72 << 20 } else { 264 << 20 };
    let (a, b, f) = (slot(1, 0, 1024), slot(2, 0, 1024), slot(3, 0, 16));
    let run = dispatch(&launch(2.0, 0.0, 1e9, 0), a, b, f, 256);
    let commands = vec![
        allocate(1, bytes),
        allocate(2, 1024),
        allocate(3, 16),
        run.clone(),
        upload(&vec![1.5f32; (bytes / 4) as usize], slot(1, 0, bytes)),
        run,
        readback(0, b, DType::F32, 256),
    ];
    let done = rig.run(commands).unwrap();
    assert_eq!(done.data[0].1.as_slice::<f32>().unwrap(), [3.0; 256]);
    assert!(rig.stats().submissions > 1);
    rig.end();
    timeline.finish().unwrap();
    let json: Value = serde_json::from_slice(&std::fs::read(folder.path().join("trace.json")).unwrap()).unwrap();
    let events = json.as_array().or_else(|| json["traceEvents"].as_array()).unwrap();
    // The batch, and the dispatch after the upload.
    assert_eq!(spans(events, "scale").len(), 2);
}

//! Numbers of timelines that are written out by hand.

use super::*;
use crate::error::ErrorKind;

/// One device: compute 0-10, 12-20 and (on a second row) 15-30 µs; an upload 5-15, a readback 28-38.
const TRACE: &str = r#"[
{"ph":"M","pid":10,"tid":0,"name":"process_name","args":{"name":"device 0"}},
{"ph":"M","pid":10,"tid":1,"name":"thread_name","args":{"name":"compute"}},
{"ph":"M","pid":10,"tid":2,"name":"thread_name","args":{"name":"compute (2)"}},
{"ph":"M","pid":10,"tid":3,"name":"thread_name","args":{"name":"upload"}},
{"ph":"M","pid":10,"tid":4,"name":"thread_name","args":{"name":"readback"}},
{"ph":"X","pid":10,"tid":1,"ts":0,"dur":10.0,"name":"chain","cat":"compute"},
{"ph":"X","pid":10,"tid":1,"ts":12,"dur":8,"name":"sum","cat":"compute"},
{"ph":"X","pid":10,"tid":2,"ts":15,"dur":15,"name":"chain","cat":"compute"},
{"ph":"X","pid":10,"tid":3,"ts":5,"dur":10,"name":"8 bytes","cat":"upload"},
{"ph":"b","pid":10,"tid":4,"ts":28,"name":"8 bytes","cat":"readback","id":1},
{"ph":"e","pid":10,"tid":4,"ts":38,"name":"8 bytes","cat":"readback","id":1},
{"ph":"C","pid":2,"tid":0,"ts":1,"name":"bytes","args":{"value":7}},
{"ph":"C","pid":2,"tid":0,"ts":2,"name":"bytes","args":{"value":5}},
{"ph":"i","pid":2,"tid":0,"ts":2,"s":"t","name":"region cut"},
{"ph":"i","pid":2,"tid":0,"ts":3,"s":"t","name":"region cut"}
]"#;

fn summary_of(text: &str) -> Result<Summary> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.json");
    std::fs::write(&path, text).unwrap();
    summarise(&path)
}

fn lane(lane: &str, spans: u64, busy_ns: u64) -> LaneSummary {
    LaneSummary { group: "device 0".into(), lane: lane.into(), spans, busy_ns }
}

#[test]
fn a_known_timeline_has_the_numbers_that_it_was_written_with() {
    let summary = summary_of(TRACE).unwrap();
    assert_eq!((summary.events, summary.duration_ns), (15, 38_000));
    assert_eq!(summary.lanes, [lane("compute", 3, 28_000), lane("upload", 1, 10_000), lane("readback", 1, 10_000)]);
    let device = &summary.devices[0];
    // The upload is beside compute but for 10-12, the readback for its first 2.
    assert_eq!((device.compute_ns, device.transfer_ns, device.overlapped_ns), (28_000, 20_000, 10_000));
    assert_eq!(device.overlap(), 0.5);
    let kernels: Vec<_> =
        summary.kernels.iter().map(|k| (k.kernel.as_str(), k.runs, k.total_ns, k.longest_ns)).collect();
    assert_eq!(kernels, [("chain", 2, 25_000, 15_000), ("sum", 1, 8_000, 8_000)]);
    assert_eq!(summary.gaps, [GapSummary { device: "device 0".into(), start_ns: 10_000, length_ns: 2_000 }]);
    assert_eq!(summary.counter_peaks, [("bytes".to_owned(), 7.0)]);
    assert_eq!(summary.reasons, [("region cut".to_owned(), 2)]);
    let text = summary.to_string();
    assert!(text.contains("   50.0 % of       0.020 ms beside       0.028 ms of compute  device 0"), "{text}");
}

#[test]
fn names_from_a_file_stay_on_their_lines() {
    let trace = TRACE.replace("\"compute (2)\"", "\"two\\nlines\\u001b[31m\"");
    let text = summary_of(&trace).unwrap().to_string();
    assert!(text.contains("  two\\nlines\\u{1b}[31m\n"), "{text}");
}

#[test]
fn the_object_form_reads_like_the_array_form() {
    let object = format!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":{TRACE}}}");
    assert_eq!(summary_of(&object).unwrap(), summary_of(TRACE).unwrap());
    assert_eq!(summary_of("[]").unwrap(), Summary::default());
}

#[test]
fn files_that_are_no_timelines_are_refused_in_plain_words() {
    let cases = [
        ("", "is empty, so it is no timeline"),
        ("PNG...", "is no timeline: a timeline is a JSON array of events"),
        ("{\"a\":1}", "is JSON but holds no `traceEvents`, so it is no timeline"),
        ("[{\"ph\":\"X\"},\n{\"ph\":", "is cut short after 1 events"),
        ("[{\"ph\":\"X\"}", "is cut short after 1 events"),
        ("[{\"ph\":\"X\"} {}]", "is damaged behind event 1: a comma was expected"),
        ("[{\"ph\":\"X\",\"ts\":-5,\"dur\":1}]", "`ts` of event 1 is no time from 0 on: -5"),
        ("[{},{\"ph\":\"X\",\"ts\":5,\"dur\":\"x\"}]", "`dur` of event 2 is no time from 0 on: \"x\""),
        ("{\"traceEvents\":[7]}", "is no timeline: entry 1 is not an event"),
        ("[3]", "is no timeline: entry 1 is not an event"),
        ("[]]", "is damaged: it goes on behind its end"),
    ];
    for (text, words) in cases {
        let error = summary_of(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.message().ends_with(words), "{text:?} gave {error}");
    }
    let error = summarise("/nowhere/t.json").unwrap_err();
    assert!(error.message().starts_with("/nowhere/t.json: cannot be read"), "{error}");
}

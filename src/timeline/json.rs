//! The Chrome-trace events as text, one JSON object a call.
//!
//! In: placed events. Out: bytes appended to a buffer, without separators. Times are written as microseconds with
//! three decimals, that is, in whole nanoseconds.

use super::Detail;
use std::io::Write;

/// Where an event stands in the file: Chrome's process and thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The group of lanes.
    pub(super) pid: u32,
    /// The row.
    pub(super) tid: u32,
}

/// Details as a JSON object, or an empty text for none.
pub(super) fn arguments(details: &[(&'static str, Detail)]) -> String {
    if details.is_empty() {
        return String::new();
    }
    let mut text = String::from("{");
    for (i, (key, detail)) in details.iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        text.push_str(&quoted(key));
        text.push(':');
        match detail {
            Detail::Int(v) => text.push_str(&v.to_string()),
            Detail::Float(v) if v.is_finite() => text.push_str(&format!("{v:?}")),
            Detail::Float(v) => text.push_str(&quoted(&v.to_string())),
            Detail::Text(v) => text.push_str(&quoted(v)),
        }
    }
    text.push('}');
    text
}

/// A complete event (`X`).
pub(super) fn span(
    out: &mut Vec<u8>,
    place: Place,
    category: &str,
    name: &str,
    (start_ns, end_ns): (u64, u64),
    arguments: &str,
) {
    head(out, "X", place, name, start_ns);
    put(out, format_args!(",\"dur\":{},\"cat\":\"{category}\"", Micros(end_ns - start_ns)));
    tail(out, arguments);
}

/// An asynchronous span (`b` and `e`, two events): drawn apart from the rows, may overlap others.
pub(super) fn asynchronous(
    out: &mut Vec<u8>,
    place: Place,
    category: &str,
    name: &str,
    (start_ns, end_ns): (u64, u64),
    (id, arguments): (u64, &str),
) {
    head(out, "b", place, name, start_ns);
    put(out, format_args!(",\"cat\":\"{category}\",\"id\":{id}"));
    tail(out, arguments);
    out.extend_from_slice(super::file::SEPARATOR);
    head(out, "e", place, name, end_ns);
    put(out, format_args!(",\"cat\":\"{category}\",\"id\":{id}"));
    tail(out, "");
}

/// An instant (`i`).
pub(super) fn instant(out: &mut Vec<u8>, place: Place, category: &str, name: &str, at_ns: u64, arguments: &str) {
    head(out, "i", place, name, at_ns);
    put(out, format_args!(",\"s\":\"t\",\"cat\":\"{category}\""));
    tail(out, arguments);
}

/// A counter (`C`) with one series.
pub(super) fn counter(out: &mut Vec<u8>, pid: u32, name: &str, at_ns: u64, value: u64) {
    head(out, "C", Place { pid, tid: 0 }, name, at_ns);
    tail(out, &format!("{{\"value\":{value}}}"));
}

/// One end of an arrow (`s` or `f`): both have the same category, name and id.
pub(super) fn flow(out: &mut Vec<u8>, place: Place, id: u64, at_ns: u64, is_end: bool) {
    head(out, if is_end { "f" } else { "s" }, place, "flow", at_ns);
    put(out, format_args!(",\"cat\":\"flow\",\"id\":{id}"));
    if is_end {
        out.extend_from_slice(b",\"bp\":\"e\"");
    }
    tail(out, "");
}

/// A name or an order (`M`): `what` is Chrome's `process_name`, `thread_name` and so on, `arguments` their object.
pub(super) fn metadata(out: &mut Vec<u8>, place: Place, what: &str, arguments: &str) {
    put(out, format_args!("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{what}\"", place.pid, place.tid));
    tail(out, arguments);
}

/// A JSON string, with its quotes.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Nanoseconds, written as microseconds.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

fn head(out: &mut Vec<u8>, phase: &str, place: Place, name: &str, at_ns: u64) {
    let Place { pid, tid } = place;
    put(out, format_args!("{{\"ph\":\"{phase}\",\"pid\":{pid},\"tid\":{tid},\"ts\":{}", Micros(at_ns)));
    put(out, format_args!(",\"name\":{}", quoted(name)));
}

fn tail(out: &mut Vec<u8>, arguments: &str) {
    if !arguments.is_empty() {
        put(out, format_args!(",\"args\":{arguments}"));
    }
    out.push(b'}');
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("TIME-2: writing to a vector cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_written_in_microseconds_with_whole_nanoseconds() {
        let mut out = Vec::new();
        let details = arguments(&[("bytes", Detail::Int(8)), ("why", Detail::Text("a \"b\"".into()))]);
        span(&mut out, Place { pid: 1, tid: 2 }, "compute", "k", (1_234_567, 1_234_569), &details);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"ph":"X","pid":1,"tid":2,"ts":1234.567,"name":"k","dur":0.002,"cat":"compute","args":{"bytes":8,"why":"a \"b\""}}"#
        );
    }

    #[test]
    fn numbers_that_json_lacks_are_written_as_words() {
        let text = arguments(&[("a", Detail::Float(f64::NAN)), ("b", Detail::Float(f64::INFINITY))]);
        assert_eq!(text, r#"{"a":"NaN","b":"inf"}"#);
    }
}

//! Reads Chrome-trace files, event by event.
//!
//! In: the text of a file, in the array form or the object form (`traceEvents`). Out: events, or what is wrong with the
//! text in plain words.

use crate::error::{Error, ErrorKind, Result};
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// A file is accepted as a timeline only if its format shows within this many bytes.
const HEAD_BYTES: u64 = 64 << 10;

/// One event, as far as a summary needs it. Times are nanoseconds.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) phase: String,
    pub(super) pid: i64,
    pub(super) tid: i64,
    pub(super) at_ns: i64,
    pub(super) duration_ns: i64,
    pub(super) name: String,
    pub(super) category: String,
    pub(super) id: String,
    pub(super) arguments: Value,
}

/// Hands every event of a file to `each`.
pub(super) fn read(path: &Path, mut each: impl FnMut(Event)) -> Result<()> {
    let fail = |what: String| Error::new(ErrorKind::Io, format!("{}: {what}", path.display()));
    let bytes = contents(path).map_err(|e| fail(format!("cannot be read: {e}")))?;
    let start = skip_space(&bytes, 0);
    match bytes.get(start) {
        None => Err(fail("is empty, so it is no timeline".into())),
        Some(b'[') => array(&bytes, start + 1, &mut each).map_err(fail),
        Some(b'{') => {
            let mut whole: Value = serde_json::from_slice(&bytes).map_err(|e| fail(broken(0, &e)))?;
            let Some(Value::Array(events)) = whole.get_mut("traceEvents").map(Value::take) else {
                return Err(fail("is JSON but holds no `traceEvents`, so it is no timeline".into()));
            };
            let each = |(i, value): (usize, &Value)| event(i + 1, value).map(&mut each);
            events.iter().enumerate().try_for_each(each).map_err(fail)
        }
        Some(_) => Err(fail("is no timeline: a timeline is a JSON array of events".into())),
    }
}

/// The contents of a file. If its head is not that of a timeline, only the head is read, since a device file may be
/// endless.
fn contents(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    Read::by_ref(&mut file).take(HEAD_BYTES).read_to_end(&mut bytes)?;
    if matches!(bytes.get(skip_space(&bytes, 0)), Some(b'[' | b'{')) {
        file.read_to_end(&mut bytes)?;
    } else if bytes.len() as u64 == HEAD_BYTES && skip_space(&bytes, 0) == bytes.len() {
        return Err(std::io::Error::other("it begins with blanks only"));
    }
    Ok(bytes)
}

/// The values of an array, one after the other, so that a large file is never in memory as a tree.
fn array(bytes: &[u8], mut at: usize, each: &mut impl FnMut(Event)) -> Result<(), String> {
    let cut_short = |events: usize| format!("is cut short after {events} events");
    let mut events = 0;
    at = skip_space(bytes, at);
    if bytes.get(at) == Some(&b']') {
        return behind(bytes, at + 1);
    }
    loop {
        let mut values = serde_json::Deserializer::from_slice(&bytes[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => each(event(events + 1, &value)?),
            Some(Err(error)) if !error.is_eof() => return Err(broken(events, &error)),
            Some(Err(_)) | None => return Err(cut_short(events)),
        }
        events += 1;
        at = skip_space(bytes, at + values.byte_offset());
        match bytes.get(at) {
            Some(b',') => at = skip_space(bytes, at + 1),
            Some(b']') => return behind(bytes, at + 1),
            Some(_) => return Err(format!("is damaged behind event {events}: a comma was expected")),
            None => return Err(cut_short(events)),
        }
    }
}

fn behind(bytes: &[u8], at: usize) -> Result<(), String> {
    if skip_space(bytes, at) == bytes.len() { Ok(()) } else { Err("is damaged: it goes on behind its end".into()) }
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

fn broken(events: usize, error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "is cut short".into();
    }
    format!("is damaged behind event {events}: {error}")
}

/// Parses event `number` of the file. Missing fields are empty or 0; those that are present must have the right type.
fn event(number: usize, value: &Value) -> Result<Event, String> {
    if !value.is_object() {
        return Err(format!("is no timeline: entry {number} is not an event"));
    }
    let text = |key| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let whole = |key| value.get(key).and_then(Value::as_i64).unwrap_or_default();
    let nanos = |key| match value.get(key).map(|time| time.as_f64().filter(|us| *us >= 0.0)) {
        None => Ok(0),
        Some(Some(us)) => Ok((us * 1000.0).round() as i64),
        Some(None) => Err(format!("is damaged: `{key}` of event {number} is no time from 0 on: {}", value[key])),
    };
    Ok(Event {
        phase: text("ph"),
        pid: whole("pid"),
        tid: whole("tid"),
        at_ns: nanos("ts")?,
        duration_ns: nanos("dur")?,
        name: text("name"),
        category: text("cat"),
        id: value.get("id").map(Value::to_string).unwrap_or_default(),
        arguments: value.get("args").cloned().unwrap_or_default(),
    })
}

//! Assigns rows of the file to lanes, with their groups, names and order, and splits lanes whose spans overlap.
//!
//! In: lanes and spans. Out: Chrome's process and thread numbers, and the metadata that names them. Must hold (TIME-4):
//! two spans on one row never cross. On the rows of actors and threads one may lie within another, as calls do; spans
//! of sessions and devices are concurrent, so on their rows no span lies within another.

use super::Lane;
use super::json::{self, Place};
use crate::ids::{DeviceId, SessionId};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most rows of a lane. Spans that still overlap are written as asynchronous spans.
const ROWS_MAX: usize = 64;
/// Spans a row remembers; later spans that begin before the remembered time go to another row.
const SPANS_REMEMBERED: usize = 4096;
/// The same where spans may lie within each other, which is slower to check.
const NESTED_SPANS_REMEMBERED: usize = 256;

const SESSIONS_PID: u32 = 1;
/// The group of the actors, of the counters and of the runtime's threads.
pub(super) const ACTORS_PID: u32 = 2;
const PROGRAM_PID: u32 = 3;
const DEVICE_PID: u32 = 10;

/// A lane, or a thread's row of `tracing` spans.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Row {
    /// A lane of the runtime.
    Lane(Lane),
    /// `tracing` spans of a thread of the runtime.
    Host(Arc<str>),
    /// `tracing` spans of a thread of the embedding program.
    Program(Arc<str>),
}

impl Row {
    /// The category of its events, by which a summary tells lanes apart.
    pub(super) fn category(&self) -> &'static str {
        match self {
            Row::Lane(Lane::Session(_)) => "session",
            Row::Lane(Lane::Scheduler) => "scheduler",
            Row::Lane(Lane::Fusion) => "fusion",
            Row::Lane(Lane::Residency) => "residency",
            Row::Lane(Lane::Worker(_)) => "worker",
            Row::Lane(Lane::DeviceQueue(_)) => "queue",
            Row::Lane(Lane::DeviceUpload(_)) => "upload",
            Row::Lane(Lane::DeviceCompute(_)) => "compute",
            Row::Lane(Lane::DeviceReadback(_)) => "readback",
            Row::Host(_) => "tracing",
            Row::Program(_) => "program",
        }
    }

    /// Whether one span may lie within another.
    fn nests(&self) -> bool {
        !matches!(self.category(), "session" | "upload" | "compute" | "readback")
    }

    /// Its group, and its order in it before rows are split.
    fn group(&self) -> (u32, u64) {
        let device = |id: &DeviceId| DEVICE_PID + u32::from(id.0);
        match self {
            Row::Lane(Lane::Session(id)) => (SESSIONS_PID, id.0),
            Row::Lane(Lane::Scheduler) => (ACTORS_PID, 0),
            Row::Lane(Lane::Fusion) => (ACTORS_PID, 1),
            Row::Lane(Lane::Residency) => (ACTORS_PID, 2),
            Row::Lane(Lane::Worker(n)) => (ACTORS_PID, 3 + u64::from(*n)),
            Row::Lane(Lane::DeviceQueue(id)) => (device(id), 0),
            Row::Lane(Lane::DeviceUpload(id)) => (device(id), 1),
            Row::Lane(Lane::DeviceCompute(id)) => (device(id), 2),
            Row::Lane(Lane::DeviceReadback(id)) => (device(id), 3),
            Row::Host(_) => (ACTORS_PID, 1000),
            Row::Program(_) => (PROGRAM_PID, 0),
        }
    }
}

/// The place of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// On a row of its lane.
    Row(Place),
    /// In no row, since all rows are taken at that time: an asynchronous span at the lane's first row.
    Apart(Place),
}

/// All rows so far.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    states: FxHashMap<Row, LaneState>,
    sessions: FxHashMap<SessionId, String>,
    devices: FxHashMap<DeviceId, String>,
    /// Groups that have been named in the file.
    groups: Vec<u32>,
    next_tid: u32,
    next_serial: u64,
    /// Names and orders that are not in the file yet.
    metadata: Vec<u8>,
}

#[derive(Debug, Default)]
struct LaneState {
    rows: Vec<RowState>,
}

/// One row of the file.
#[derive(Debug)]
struct RowState {
    place: Place,
    /// Its spans: begin and end to the serial number of their arrival. Outer spans come before inner ones.
    spans: BTreeMap<(u64, Reverse<u64>), u64>,
    /// Spans that begin before this may cross one that is no longer remembered.
    forgotten_ns: u64,
    nests: bool,
}

impl Lanes {
    /// Names a session; its rows are named again if they exist.
    pub(super) fn name_session(&mut self, session: SessionId, name: String) {
        self.sessions.insert(session, name);
        let row = Row::Lane(Lane::Session(session));
        let places: Vec<Place> =
            self.states.get(&row).map(|s| s.rows.iter().map(|r| r.place).collect()).unwrap_or_default();
        for (index, place) in places.into_iter().enumerate() {
            self.name_row(&row, index, place);
        }
    }

    /// A session has ended: its name and its rows are in the file, and nothing more comes.
    pub(super) fn forget_session(&mut self, session: SessionId) {
        self.sessions.remove(&session);
        self.states.remove(&Row::Lane(Lane::Session(session)));
    }

    /// Names a device; its group is named again if it exists.
    pub(super) fn name_device(&mut self, device: DeviceId, name: String) {
        self.devices.insert(device, name);
        let pid = DEVICE_PID + u32::from(device.0);
        if self.groups.contains(&pid) {
            self.name_group(pid);
        }
    }

    /// Finds a row for a span.
    pub(super) fn place(&mut self, row: &Row, start_ns: u64, end_ns: u64) -> Placement {
        let first = self.first(row);
        self.next_serial += 1;
        let serial = self.next_serial;
        // A span without a length takes one nanosecond.
        let end_ns = end_ns.max(start_ns + 1);
        let state = self.states.get_mut(row).expect("TIME-4: made by `first`");
        if let Some(found) = state.rows.iter_mut().find(|r| r.has_room(start_ns, end_ns)) {
            found.take(start_ns, end_ns, serial);
            return Placement::Row(found.place);
        }
        if state.rows.len() >= ROWS_MAX {
            return Placement::Apart(first);
        }
        let place = self.add_row(row);
        let state = self.states.get_mut(row).expect("TIME-4: made by `first`");
        state.rows.last_mut().expect("TIME-4: just added").take(start_ns, end_ns, serial);
        Placement::Row(place)
    }

    /// The first row of a lane, for events without a length.
    pub(super) fn first(&mut self, row: &Row) -> Place {
        match self.states.get(row) {
            Some(state) => state.rows[0].place,
            None => self.add_row(row),
        }
    }

    /// The span of a lane that holds a time, with its row: one that begins there, else the last that was recorded.
    pub(super) fn find(&self, row: &Row, at_ns: u64) -> Option<(Place, u64, u64)> {
        let rows = &self.states.get(row)?.rows;
        let holding = rows.iter().filter_map(|r| r.find(at_ns).map(|(span, serial)| (r.place, span, serial)));
        let best = holding.max_by_key(|(_, (start_ns, _), serial)| (*start_ns == at_ns, *serial))?;
        Some((best.0, best.1.0, best.1.1))
    }

    /// Takes the names and orders that are not in the file yet.
    pub(super) fn take_metadata(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.metadata)
    }

    /// Writes all names and orders again, for a new file.
    pub(super) fn repeat_metadata(&mut self) {
        self.metadata.clear();
        for pid in self.groups.clone() {
            self.name_group(pid);
        }
        let mut rows: Vec<(Row, usize, Place)> = Vec::new();
        for (row, state) in &self.states {
            rows.extend(state.rows.iter().enumerate().map(|(i, r)| (row.clone(), i, r.place)));
        }
        rows.sort_by_key(|(_, _, place)| place.tid);
        for (row, index, place) in rows {
            self.name_row(&row, index, place);
        }
    }

    fn add_row(&mut self, row: &Row) -> Place {
        let (pid, _) = row.group();
        if !self.groups.contains(&pid) {
            self.groups.push(pid);
            self.name_group(pid);
        }
        self.next_tid += 1;
        let place = Place { pid, tid: self.next_tid };
        let state = self.states.entry(row.clone()).or_default();
        state.rows.push(RowState { place, spans: BTreeMap::new(), forgotten_ns: 0, nests: row.nests() });
        let index = state.rows.len() - 1;
        self.name_row(row, index, place);
        place
    }

    fn name_group(&mut self, pid: u32) {
        let name = match pid {
            SESSIONS_PID => "sessions".to_owned(),
            ACTORS_PID => "actors".to_owned(),
            PROGRAM_PID => "program".to_owned(),
            _ => {
                let id = DeviceId((pid - DEVICE_PID) as u8);
                let name = self.devices.get(&id).map(|name| format!(": {name}")).unwrap_or_default();
                format!("device {id}{name}")
            }
        };
        let place = Place { pid, tid: 0 };
        self.put(place, "process_name", &format!("{{\"name\":{}}}", json::quoted(&name)));
        self.put(place, "process_sort_index", &format!("{{\"sort_index\":{pid}}}"));
    }

    fn name_row(&mut self, row: &Row, index: usize, place: Place) {
        let mut name = match row {
            Row::Lane(Lane::Session(id)) => match self.sessions.get(id) {
                Some(name) => format!("session {id}: {name}"),
                None => format!("session {id}"),
            },
            Row::Lane(Lane::Worker(n)) => format!("worker {n}"),
            Row::Lane(_) => row.category().to_owned(),
            Row::Host(thread) => format!("tracing: {thread}"),
            Row::Program(thread) => thread.to_string(),
        };
        if index > 0 {
            name.push_str(&format!(" ({})", index + 1));
        }
        let order = row.group().1.wrapping_mul(ROWS_MAX as u64) + index as u64;
        self.put(place, "thread_name", &format!("{{\"name\":{}}}", json::quoted(&name)));
        self.put(place, "thread_sort_index", &format!("{{\"sort_index\":{order}}}"));
    }

    fn put(&mut self, place: Place, what: &str, arguments: &str) {
        if !self.metadata.is_empty() {
            self.metadata.extend_from_slice(super::file::SEPARATOR);
        }
        json::metadata(&mut self.metadata, place, what, arguments);
    }
}

impl RowState {
    /// Whether a span crosses no other span of the row.
    fn has_room(&self, start_ns: u64, end_ns: u64) -> bool {
        if start_ns < self.forgotten_ns {
            return false;
        }
        let before = self.spans.range(..(start_ns, Reverse(u64::MAX))).rev().map(|((s, e), _)| (*s, e.0));
        let after = self.spans.range((start_ns, Reverse(u64::MAX))..).map(|((s, e), _)| (*s, e.0));
        let mut after = after.take_while(|(s, _)| *s < end_ns);
        if self.nests {
            let mut before = before;
            !before.any(|(_, e)| start_ns < e && e < end_ns) && !after.any(|(s, e)| s > start_ns && e > end_ns)
        } else {
            // Spans of this row do not overlap, so the nearest earlier one ends last.
            let mut before = before;
            before.next().is_none_or(|(_, e)| e <= start_ns) && after.next().is_none()
        }
    }

    fn take(&mut self, start_ns: u64, end_ns: u64, serial: u64) {
        self.spans.insert((start_ns, Reverse(end_ns)), serial);
        let remembered = if self.nests { NESTED_SPANS_REMEMBERED } else { SPANS_REMEMBERED };
        while self.spans.len() > remembered {
            if let Some(((_, end), _)) = self.spans.pop_first() {
                self.forgotten_ns = self.forgotten_ns.max(end.0);
            }
        }
    }

    /// The innermost span that holds a time, and its serial number.
    fn find(&self, at_ns: u64) -> Option<((u64, u64), u64)> {
        let spans = self.spans.range(..=(at_ns, Reverse(0))).rev();
        let near = if self.nests { NESTED_SPANS_REMEMBERED } else { 1 };
        spans.take(near).find(|((_, end), _)| end.0 >= at_ns).map(|((start, end), serial)| ((*start, end.0), *serial))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute() -> Row {
        Row::Lane(Lane::DeviceCompute(DeviceId(1)))
    }

    fn tid(placement: Placement) -> u32 {
        match placement {
            Placement::Row(place) => place.tid,
            Placement::Apart(_) => panic!("no row"),
        }
    }

    #[test]
    fn spans_that_overlap_on_a_device_get_rows_of_their_own() {
        let mut lanes = Lanes::default();
        assert_eq!(tid(lanes.place(&compute(), 0, 10)), 1);
        assert_eq!(tid(lanes.place(&compute(), 10, 20)), 1);
        assert_eq!(tid(lanes.place(&compute(), 5, 15)), 2);
        assert_eq!(tid(lanes.place(&compute(), 12, 14)), 3);
        assert_eq!(tid(lanes.place(&compute(), 20, 30)), 1);
    }

    #[test]
    fn nothing_is_kept_of_sessions_that_ended() {
        let mut lanes = Lanes::default();
        for n in 0..1000 {
            let session = SessionId(n);
            lanes.name_session(session, format!("request {n}"));
            assert_eq!(tid(lanes.place(&Row::Lane(Lane::Session(session)), n, n + 1)), n as u32 + 1);
            lanes.forget_session(session);
        }
        assert_eq!((lanes.sessions.len(), lanes.states.len()), (0, 0));
    }

    #[test]
    fn spans_within_others_stay_on_an_actors_row_and_crossing_ones_do_not() {
        let mut lanes = Lanes::default();
        let row = Row::Lane(Lane::Scheduler);
        assert_eq!(tid(lanes.place(&row, 2, 4)), 1);
        assert_eq!(tid(lanes.place(&row, 0, 10)), 1);
        assert_eq!(tid(lanes.place(&row, 0, 3)), 2);
        assert_eq!(tid(lanes.place(&row, 3, 12)), 2);
        assert_eq!(tid(lanes.place(&row, 10, 12)), 1);
    }

    #[test]
    fn a_span_from_before_the_remembered_time_goes_to_another_row() {
        let mut lanes = Lanes::default();
        for i in 0..=SPANS_REMEMBERED as u64 {
            assert_eq!(tid(lanes.place(&compute(), i * 10, i * 10 + 5)), 1);
        }
        assert_eq!(tid(lanes.place(&compute(), 1, 3)), 2);
    }

    #[test]
    fn what_overlaps_more_often_than_there_are_rows_is_drawn_apart() {
        let mut lanes = Lanes::default();
        for i in 0..ROWS_MAX as u32 {
            assert_eq!(tid(lanes.place(&compute(), 0, 10)), i + 1);
        }
        assert_eq!(lanes.place(&compute(), 0, 10), Placement::Apart(Place { pid: 11, tid: 1 }));
    }

    #[test]
    fn a_time_is_found_in_the_span_that_begins_there_or_was_recorded_last() {
        let mut lanes = Lanes::default();
        lanes.place(&compute(), 5, 20);
        lanes.place(&compute(), 0, 10);
        let at = |at_ns| lanes.find(&compute(), at_ns).map(|(place, start, _)| (place.tid, start));
        assert_eq!(at(5), Some((1, 5)));
        assert_eq!(at(7), Some((2, 0)));
        assert_eq!(at(20), Some((1, 5)));
        assert_eq!(at(21), None);
    }
}

//! The recorder's thread: takes records, finds their rows, pairs arrows, writes the file.
//!
//! In: the queue. Out: the file, written at least every `PERIOD` while there are records, so that an interrupted run
//! loses no more than that.

use super::chrome::{self, ChromeStream, HostDispatch, HostEvent};
use super::file::{SEPARATOR, TraceFile};
use super::flows::{Arrow, Flows};
use super::json::{self, Place};
use super::lanes::{ACTORS_PID, Lanes, Placement, Row};
use super::queue::{CallerRecord, Queue};
use super::{Lane, queue};
use crate::error::Result;
use crate::ids::SessionId;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::Dispatch;
use tracing_chrome::FlushGuard;

/// The longest time that records wait.
const PERIOD: Duration = Duration::from_millis(50);
/// When this many bytes of events are formatted, they are written before more are formatted.
const WRITE_BYTES: usize = 64 << 10;

/// Starts the thread. If `tracing-chrome` could not be started, there is no dispatch, and only its lanes are missing.
pub(super) fn spawn(
    file: TraceFile,
    queue: Arc<Queue>,
    epoch: Instant,
    program: Option<Dispatch>,
) -> io::Result<(JoinHandle<()>, Option<HostDispatch>)> {
    let (send, receive) = crossbeam_channel::bounded(1);
    let thread = std::thread::Builder::new().name("tidemill-timeline".into()).spawn(move || {
        let gone = Gone(queue.clone());
        // `tracing-chrome` panics if it cannot start its thread.
        let built = catch_unwind(AssertUnwindSafe(|| chrome::build(queue.clone(), epoch, program))).ok();
        let (host, guard) = built.unzip();
        // The receiver waits below. If it is gone, no recording is needed.
        if send.send(host).is_ok() {
            run(Writer::new(file, queue), guard);
        }
        drop(gone);
    })?;
    let host = receive.recv().unwrap_or(None);
    Ok((thread, host))
}

/// Wakes waiting threads when the writer ends, also after a panic.
struct Gone(Arc<Queue>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.writer_gone();
    }
}

fn run(mut writer: Writer, mut guard: Option<FlushGuard>) {
    loop {
        let queue::Turn { closing, flush } = writer.queue.wait(PERIOD);
        if closing {
            // Ends and joins tracing-chrome's thread, so that its stream is complete.
            drop(guard.take());
        } else if let Some(guard) = &guard {
            guard.flush();
        }
        writer.turn(closing);
        if let Some(flush) = flush {
            writer.queue.flushed(flush);
        }
        if closing {
            return;
        }
    }
}

struct Writer {
    file: TraceFile,
    queue: Arc<Queue>,
    lanes: Lanes,
    flows: Flows,
    chrome: ChromeStream,
    /// Whole events with separators between them.
    buffer: Vec<u8>,
    asynchronous_id: u64,
    /// Sessions that ended in this turn and in the last one. Other threads may still push records of them, so they are
    /// forgotten two turns later.
    ended: [Vec<SessionId>; 2],
    /// The file failed or reached its limit: further records are dropped.
    stopped: bool,
}

impl Writer {
    fn new(file: TraceFile, queue: Arc<Queue>) -> Writer {
        Writer {
            file,
            queue,
            lanes: Lanes::default(),
            flows: Flows::default(),
            chrome: ChromeStream::default(),
            buffer: Vec::new(),
            asynchronous_id: 0,
            ended: Default::default(),
            stopped: false,
        }
    }

    /// Writes all records since the last turn.
    fn turn(&mut self, closing: bool) {
        let host = self.queue.take_chrome();
        for event in self.chrome.take(&host) {
            self.host_event(event);
        }
        for record in self.queue.take() {
            self.record(record);
        }
        let dropped = self.queue.dropped();
        if closing && dropped > 0 {
            let name = format!("{dropped} records came faster than they could be written and are missing");
            self.instant(&Row::Lane(Lane::Scheduler), &name, 0, "");
        }
        self.write();
        let ended = std::mem::take(&mut self.ended[1]);
        for session in std::mem::replace(&mut self.ended[0], ended) {
            self.lanes.forget_session(session);
        }
    }

    fn record(&mut self, record: CallerRecord) {
        match record {
            CallerRecord::Span { row, name, start_ns, end_ns, details } => {
                self.span(&row, &name, start_ns, end_ns, &json::arguments(&details));
            }
            CallerRecord::Instant { row, name, at_ns, details } => {
                self.instant(&row, &name, at_ns, &json::arguments(&details));
            }
            CallerRecord::Flow { row, flow, at_ns, is_end } => {
                let arrow = self.flows.recorded(&self.lanes, &row, flow, at_ns, is_end);
                arrow.into_iter().for_each(|arrow| self.arrow(arrow));
            }
            CallerRecord::Counter { name, at_ns, value } => {
                self.event(|out| json::counter(out, ACTORS_PID, name, at_ns, value));
            }
            CallerRecord::SessionName(session, name) => self.lanes.name_session(session, name),
            CallerRecord::SessionEnd(session) => self.ended[1].push(session),
            CallerRecord::DeviceName(device, name) => self.lanes.name_device(device, name),
        }
    }

    fn host_event(&mut self, event: HostEvent) {
        match event {
            HostEvent::Span { row, name, start_ns, end_ns, arguments } => {
                self.span(&row, &name, start_ns, end_ns, &arguments);
            }
            HostEvent::Instant { row, name, at_ns, arguments } => self.instant(&row, &name, at_ns, &arguments),
        }
    }

    fn span(&mut self, row: &Row, name: &str, start_ns: u64, end_ns: u64, arguments: &str) {
        let times = (start_ns, end_ns);
        let category = row.category();
        match self.lanes.place(row, start_ns, end_ns) {
            Placement::Row(place) => {
                self.event(|out| json::span(out, place, category, name, times, arguments));
                for arrow in self.flows.span_placed(row, place, start_ns, end_ns) {
                    self.arrow(arrow);
                }
            }
            Placement::Apart(place) => {
                self.asynchronous_id += 1;
                let id = self.asynchronous_id;
                self.event(|out| json::asynchronous(out, place, category, name, times, (id, arguments)));
            }
        }
    }

    fn instant(&mut self, row: &Row, name: &str, at_ns: u64, arguments: &str) {
        let place: Place = self.lanes.first(row);
        self.event(|out| json::instant(out, place, row.category(), name, at_ns, arguments));
    }

    /// Writes both ends together, so that no file has only one of them.
    fn arrow(&mut self, Arrow { id, start, end }: Arrow) {
        self.event(|out| {
            json::flow(out, start.place, id, start.at_ns, false);
            out.extend_from_slice(SEPARATOR);
            json::flow(out, end.place, id, end.at_ns, true);
        });
    }

    /// Adds an event, after the names of its row if they are new.
    fn event(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        if self.stopped {
            return;
        }
        let names = self.lanes.take_metadata();
        if !names.is_empty() {
            self.separate();
            self.buffer.extend_from_slice(&names);
        }
        self.separate();
        put(&mut self.buffer);
        if self.buffer.len() >= WRITE_BYTES {
            self.write();
        }
    }

    fn separate(&mut self) {
        if !self.buffer.is_empty() {
            self.buffer.extend_from_slice(SEPARATOR);
        }
    }

    /// Writes the buffer. An error ends the recording and nothing else (TIME-1).
    fn write(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        if !self.stopped
            && let Err(error) = self.try_write(&buffer)
        {
            self.queue.fail(error);
            self.stopped = true;
        }
        self.buffer = buffer;
        self.buffer.clear();
    }

    fn try_write(&mut self, events: &[u8]) -> Result<()> {
        self.file.append(events)?;
        if !self.file.is_full() {
            return Ok(());
        }
        if self.file.rotate()? {
            self.lanes.repeat_metadata();
            return Ok(());
        }
        self.stopped = true;
        self.queue.stop();
        let place = self.lanes.first(&Row::Lane(Lane::Scheduler));
        let mut note = Vec::new();
        json::instant(&mut note, place, "scheduler", "the timeline ends here: its files are full", 0, "");
        self.file.append(&note)
    }
}

//! The completion thread: waits for submissions in order, delivers their readbacks, and reports batches.
//!
//! In: [`CompletionTask`] from the queue. Out: reports, and a signal to the queue thread when the device is lost.
//! Must hold: GPU-1, GPU-2, GPU-6.

use super::clock::Alignment;
use super::copy::CopyPool;
use super::flight::{Arrow, BatchEnd, CompletionTask, Flight, Stamps, arrow};
use super::prepare::{Arrival, Place};
use super::raw_device::Gpu;
use super::readback::{Landing, MappedView};
use crate::device::backend::{Context, blamed};
use crate::eager::Eager;
use crate::error::{Error, ErrorKind, Result, panic_words};
use crate::host_buffer::{HostBuffer, MappedBytes};
use crate::ids::{BatchId, DeviceId};
use crate::stats::Counters;
use crate::timeline::{Detail, Lane};
use crossbeam_channel::{Receiver, Sender};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How long the thread polls for the end of a submission before it sleeps in between. A sleep adds 40 to 70 us, which
/// is a few percent of waits that are longer than this.
pub(super) const LOOK_FOR_DEVICE: Duration = Duration::from_micros(2000);
/// How long to sleep between polls for mappings. Nearly always, the first poll succeeds.
const MAP_REST: Duration = Duration::from_micros(20);

/// The thread's state.
pub(super) struct Completion {
    /// This device.
    pub(super) id: DeviceId,
    /// Its name.
    pub(super) name: String,
    /// The receiver of reports, the counters and the timeline.
    pub(super) context: Context,
    /// Copy threads.
    pub(super) pool: Arc<CopyPool>,
    /// Signals the queue thread that a generation of the device is lost.
    pub(super) lost: Sender<u32>,
    /// GPU time on the host's clock.
    pub(super) alignment: Alignment,
    /// When the previous batch ended. Spans of the next one begin after it.
    pub(super) previous_end_ns: u64,
    /// The number of batches whose submission was waited for. Tests name batches by it.
    #[cfg(any(test, feature = "testing"))]
    pub(super) completed: u64,
    /// How long it polls for the device.
    pub(super) eager: Eager,
    /// How long it polls for the queue thread.
    pub(super) eager_for_work: Eager,
}

/// The results of a batch.
struct Brought {
    faults: Vec<u32>,
    device_ns: u64,
}

impl Completion {
    /// Runs until the queue thread ends.
    pub(super) fn run(mut self, work: &Receiver<CompletionTask>) {
        crate::threads::mark_own();
        let _guard = self.context.timeline.clone().enter_thread("gpu done");
        loop {
            let mut look = self.eager_for_work.begin();
            while work.is_empty() && look.again() {}
            let Ok(item) = work.recv() else { return };
            self.eager_for_work.end(&look);
            match item {
                #[cfg(any(test, feature = "testing"))]
                CompletionTask::Flight(flight) if self.dies_of(&flight) => return,
                CompletionTask::Flight(flight) => {
                    let timeline = self.context.timeline.clone();
                    let region = flight.end.as_ref().map(|end| end.region);
                    let caller = region.map(|region| timeline.callers().of(region)).unwrap_or_default();
                    let make = |parent| tracing::debug_span!(parent: parent, "complete", region = region.map(|r| r.0));
                    timeline.in_span(&caller, make, || self.flight(*flight));
                }
                CompletionTask::Failed(batch, error) => self.fail(batch, error),
                CompletionTask::Barrier(done) => drop(done.send(())),
            }
        }
    }

    fn flight(&mut self, flight: Flight) {
        let station = flight.station.clone();
        let batch = flight.end.as_ref().filter(|end| !end.rescue).map(|end| (end.batch, end.blame));
        let landed = catch_unwind(AssertUnwindSafe(|| self.land(flight)));
        let result = landed.unwrap_or_else(|panic| {
            let message = format!("completing a batch panicked: {}", panic_words(&*panic));
            Err(Error::new(ErrorKind::Internal, message))
        });
        match (result, batch) {
            (Ok(Some(brought)), Some((batch, _))) => {
                self.context.reports.finished(batch, brought.faults, brought.device_ns);
            }
            (Err(error), Some((batch, blame))) => self.fail(batch, blamed(error, blame)),
            (_, None) | (Ok(None), Some(_)) => {}
        }
        if station.gpu.is_lost() {
            let _ = self.lost.send(station.gpu.generation);
        }
    }

    /// Waits for a submission and delivers its readbacks. Returns `None` if no batch ends with it.
    fn land(&mut self, flight: Flight) -> Result<Option<Brought>> {
        // `held` until the submission is done (UPLOAD-2).
        let Flight { station, finish, chunks, held: _held, mut end } = flight;
        let gpu = &station.gpu;
        if finish.is_some() && gpu.is_lost() {
            return Err(gpu.loss_error());
        }
        // Mappings are requested before the wait, so that the poll that sees the end of the submission also completes
        // them.
        chunks.into_iter().for_each(|chunk| chunk.reopen());
        let landings = match &mut end {
            Some(end) => end.shared.take().into_iter().chain(std::mem::take(&mut end.alone)).collect(),
            None => Vec::new(),
        };
        let mapping = Mapping::ask(landings);
        if let Some(finish) = finish {
            #[cfg(any(test, feature = "testing"))]
            self.inject(gpu, end.is_some());
            gpu.wait(&finish, &mut self.eager)?;
        }
        let seen_ns = self.context.timeline.now_ns();
        let Some(end) = end else { return Ok(None) };
        let mut views = mapping.views(gpu)?.into_iter();
        let shared = if end.shared_used { views.next() } else { None };
        let drained_ns = self.context.timeline.now_ns();
        let bytes = self.deliver(&end, shared.as_ref(), views.collect());
        let shared = shared.as_ref().map_or(&[][..], |view| view.bytes());
        let faults = end.faults.iter().flat_map(|&(at, words)| faults(shared, at, words)).collect();
        let device_ns = self.spans(&end, shared, seen_ns);
        if bytes > 0 && self.context.timeline.is_on() {
            self.draw_readback(&end, bytes, drained_ns);
        }
        Ok(Some(Brought { faults, device_ns }))
    }

    /// Whether a test makes this thread panic at this submission.
    #[cfg(any(test, feature = "testing"))]
    fn dies_of(&self, flight: &Flight) -> bool {
        let at = self.context.config.injection.end_completion_at_batch;
        flight.end.is_some() && flight.finish.is_some() && at == Some(self.completed)
    }

    /// Faults that tests inject here, by the number of the batch.
    #[cfg(any(test, feature = "testing"))]
    fn inject(&mut self, gpu: &Gpu, ends: bool) {
        let (number, injection) = (self.completed, &self.context.config.injection);
        self.completed += u64::from(ends);
        let due = |at: Option<u64>| ends && at == Some(number);
        if due(injection.panic_in_poll_at_batch) {
            gpu.inject_poll_panic();
        }
        if due(injection.panic_in_completion_at_batch) {
            panic!("a panic was injected");
        }
        if due(injection.lose_device_in_completion_at_batch) {
            gpu.mark_lost("a loss was injected into its completion");
        }
    }

    fn draw_readback(&self, end: &BatchEnd, bytes: u64, drained_ns: u64) {
        let timeline = &self.context.timeline;
        let details = [("bytes", Detail::Int(bytes as i64)), ("region", Detail::Int(end.region.0 as i64))];
        let flow = arrow(Arrow::ToReadback, self.id, end.batch);
        timeline.span(Lane::DeviceReadback(self.id), "readback", drained_ns, timeline.now_ns(), &details);
        timeline.flow_start(Lane::DeviceCompute(self.id), flow, self.previous_end_ns);
        timeline.flow_end(Lane::DeviceReadback(self.id), flow, drained_ns);
    }

    /// Reports the batch's readbacks; returns how many bytes they moved.
    fn deliver(&self, end: &BatchEnd, shared: Option<&MappedView>, alone: Vec<MappedView>) -> u64 {
        let mut alone: Vec<Option<MappedView>> = alone.into_iter().map(Some).collect();
        let mut bytes = 0;
        for arrival in &end.arrivals {
            let data = match arrival.place {
                Place::Shared(at) => {
                    let all = shared.map_or(&[][..], |view| view.bytes());
                    let (at, len) = (at as usize, arrival.gpu_bytes() as usize);
                    all.get(at..at + len).map(|from| self.copied(arrival, from))
                }
                Place::Alone(i) => alone.get_mut(i).and_then(Option::take).map(|view| self.handed_out(arrival, view)),
            };
            let missing = || Error::new(ErrorKind::Internal, "a readback's bytes did not arrive");
            bytes += arrival.gpu_bytes();
            let data = data.map(Arc::new).ok_or_else(|| missing().with_device(self.name.clone()));
            self.context.reports.readback(arrival.transfer, data);
        }
        Counters::add(&self.context.counters.bytes_read_back, bytes);
        bytes
    }

    /// Copies elements out of mapped memory, in host form.
    fn copied(&self, arrival: &Arrival, from: &[u8]) -> HostBuffer {
        // SAFETY: filled on the next line, and bools as 0 or 1.
        let mut buffer = unsafe { HostBuffer::uninit(arrival.dtype, arrival.elements as usize) };
        self.pool.drain(from, arrival.dtype, buffer.bytes_mut().expect("GPU-8: a fresh host buffer is ours"));
        buffer
    }

    /// The mapped memory itself if the GPU form of its dtype is the host form; otherwise a copy.
    fn handed_out(&self, arrival: &Arrival, view: MappedView) -> HostBuffer {
        if arrival.dtype.bytes() == arrival.dtype.gpu_bytes() {
            HostBuffer::from_mapped(arrival.dtype, arrival.elements as usize, Box::new(view))
        } else {
            self.copied(arrival, view.bytes())
        }
    }

    /// Writes the batch's spans to the timeline. Returns the nanoseconds that the device spent on it.
    fn spans(&mut self, end: &BatchEnd, shared: &[u8], seen_ns: u64) -> u64 {
        let earliest = end.submitted_ns.max(self.previous_end_ns);
        let stamps = end.stamps.as_ref().and_then(|s| Some((s, ticks(shared, s)?)));
        let ((start, stop), device_ns) = match &stamps {
            Some((_, ns)) => {
                self.alignment.observe(ns[1], seen_ns);
                (self.alignment.span((ns[0], ns[1]), earliest), ns[1].saturating_sub(ns[0]))
            }
            None => ((earliest, seen_ns.max(earliest)), seen_ns.saturating_sub(earliest)),
        };
        self.previous_end_ns = stop;
        if !self.context.timeline.is_on() || end.label.is_empty() {
            return device_ns;
        }
        let details = [
            ("batch", Detail::Int(end.batch.0 as i64)),
            ("region", Detail::Int(end.region.0 as i64)),
            ("session", Detail::Int(end.session.0 as i64)),
        ];
        let lane = Lane::DeviceCompute(self.id);
        self.context.timeline.span(lane.clone(), &end.label, start, stop, &details);
        self.context.timeline.flow_end(lane.clone(), arrow(Arrow::ToCompute, self.id, end.batch), start);
        if let Some((stamps, ns)) = &stamps {
            // Spans of dispatches are nested in the batch's span. Each lasts from the previous stamp to its own.
            let mut from = ns[0];
            for (label, to) in stamps.labels.iter().zip(&ns[2..]) {
                let (a, b) = self.alignment.span((from, *to), start);
                self.context.timeline.span(lane.clone(), label, a.min(stop), b.min(stop), &[]);
                from = *to;
            }
        }
        device_ns
    }

    fn fail(&self, batch: BatchId, error: Error) {
        self.context.reports.failed(batch, error.with_device(self.name.clone()));
    }
}

/// Readback buffers that are being mapped.
struct Mapping {
    landings: Vec<(Landing, u64)>,
    open: Arc<AtomicUsize>,
    failed: Arc<AtomicBool>,
}

impl Mapping {
    /// Requests that readback buffers are mapped when their submission has finished.
    fn ask(landings: Vec<(Landing, u64)>) -> Mapping {
        let open = Arc::new(AtomicUsize::new(landings.len()));
        let failed = Arc::new(AtomicBool::new(false));
        for (landing, bytes) in &landings {
            let answer = Answer { open: open.clone(), failed: failed.clone(), mapped: false };
            landing.map(*bytes, move |mapped| answer.give(mapped));
        }
        Mapping { landings, open, failed }
    }

    /// The mapped views, after the submission has finished.
    fn views(self, gpu: &Gpu) -> Result<Vec<MappedView>> {
        // The callbacks may be run by a poll on another thread, so they may still be due after our own poll.
        while self.open.load(Ordering::Acquire) > 0 {
            gpu.poll()?;
            if self.open.load(Ordering::Acquire) > 0 {
                std::thread::sleep(MAP_REST);
            }
        }
        if self.failed.load(Ordering::Relaxed) {
            let error = Error::new(ErrorKind::Internal, "a readback could not be mapped");
            return Err(if gpu.is_lost() { gpu.loss_error() } else { error });
        }
        self.landings.into_iter().map(|(landing, bytes)| landing.view(bytes)).collect()
    }
}

/// The result of the callback of one mapping. If it is dropped without a call, as by a panic inside of wgpu, the
/// mapping has failed.
struct Answer {
    open: Arc<AtomicUsize>,
    failed: Arc<AtomicBool>,
    mapped: bool,
}

impl Answer {
    fn give(mut self, mapped: bool) {
        self.mapped = mapped;
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if !self.mapped {
            self.failed.store(true, Ordering::Relaxed);
        }
        self.open.fetch_sub(1, Ordering::Release);
    }
}

/// Which fault words are set.
fn faults(shared: &[u8], at: u64, words: u32) -> Vec<u32> {
    let bytes = shared.get(at as usize..).unwrap_or(&[]);
    let words = bytes.chunks_exact(4).take(words as usize).enumerate();
    words.filter(|(_, word)| *word != [0; 4]).map(|(i, _)| i as u32).collect()
}

/// Stamps in nanoseconds of GPU time: begin, end, then dispatches.
fn ticks(shared: &[u8], stamps: &Stamps) -> Option<Vec<u64>> {
    let bytes = shared.get(stamps.at as usize..)?;
    let count = 2 + stamps.labels.len();
    let tick = |c: &[u8]| u64::from_le_bytes(c.try_into().unwrap_or([0; 8]));
    let all: Vec<u64> = bytes.chunks_exact(8).take(count).map(tick).collect();
    // A period of 1 is common. It needs no conversion to f64, which would lose low bits.
    let ns = |t: u64| if stamps.period_ns == 1.0 { t } else { (t as f64 * stamps.period_ns) as u64 };
    (all.len() == count).then(|| all.into_iter().map(ns).collect())
}

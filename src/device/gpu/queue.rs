//! The GPU as a backend: prepares, encodes and submits batches in order, and replaces a lost device.
//!
//! In: batches and releases, and signals of a loss from the completion thread. Out: work for the completion thread.
//! Must hold: GPU-1, GPU-2. A panic fails its batch only, if the device still answers afterwards.

use super::adapter::{self, Opened};
use super::bind::BindGroups;
use super::buffers::Buffers;
use super::clock::Alignment;
use super::completion::{Completion, LOOK_FOR_DEVICE};
use super::copy::CopyPool;
use super::driver_cache::DriverCache;
use super::encode::{Encoding, QUERIES, Stamping, Submitted, Tools};
use super::flight::{Arrow, BatchEnd, CompletionTask, Flight, arrow};
use super::known::Known;
use super::pipelines::{Current, GpuCompiler, Maker, Station, warm_up};
use super::prepare::{Prepared, Preparer, Step};
use super::raw_device::{Gpu, HEALTH_WAIT};
use super::readback::Readbacks;
use super::rescue::older_readbacks;
use super::shaders::Shaders;
use super::staging::Staging;
use super::thread_error;
use super::uploads::Uploads;
use crate::contract::batch::{Batch, Command};
use crate::contract::device::DeviceInfo;
use crate::device::backend::{Backend, Compiler, Context, DeviceLoss, Driving, UploadMemory, blame_from, blamed};
use crate::eager::Eager;
use crate::error::{Error, ErrorKind, Result, panic_words};
use crate::host_buffer::MappedBytes;
use crate::ids::BufferId;
use crate::injection::Wrong;
use crate::leaving::Leaving;
use crate::stats::Counters;
use crate::timeline::{Detail, Lane, flow};
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes of the upload ring, on hardware and on software adapters.
const STAGING_BYTES: (u64, u64) = (256 << 20, 64 << 20);
/// Bytes of the mapped memory that users fill for the device, on hardware and on software adapters.
const UPLOAD_BYTES: (u64, u64) = (2 << 30, 256 << 20);
/// Bytes of free readback buffers that are kept, on hardware and on software adapters.
const READBACK_BYTES: (u64, u64) = (512 << 20, 64 << 20);
/// How long the queue thread polls for the next instruction, and the completion thread for the next submission, before
/// they sleep. A program that awaits each result sends the next batch one round trip after the last. A thread that is
/// still awake saves some 80 us (measured on the host of an H100), about a tenth of the longest round trip for which it
/// stays awake.
pub(super) const LOOK_FOR_WORK: Duration = Duration::from_micros(1000);
/// Most kernel labels in a batch's name.
const LABELS_MAX: usize = 4;

/// The state of a GPU.
pub(super) struct Queue {
    info: DeviceInfo,
    index: usize,
    features: wgpu::Features,
    context: Context,
    /// The device, with its pipelines and rings; `None` once it was lost for good.
    standing: Option<(Arc<Station>, Tools)>,
    current: Current,
    generation: u32,
    buffers: Buffers,
    maker: Arc<Maker>,
    pool: Arc<CopyPool>,
    work: Sender<CompletionTask>,
    /// Receives the generations of the device that the completion thread found lost.
    losses: Receiver<u32>,
    /// The completion thread, until it is joined.
    done: Option<JoinHandle<()>>,
    stamp_dispatches: bool,
    /// A part of the current batch may have been submitted.
    encoding: bool,
}

/// Sets up an opened device and starts its completion thread.
pub(super) fn start(
    opened: Opened,
    info: DeviceInfo,
    context: Context,
    stamp_dispatches: bool,
    shaders: Arc<dyn Shaders>,
) -> Result<Queue> {
    let (work, completions) = unbounded();
    let (lost, losses) = unbounded();
    let threads = context.config.worker_threads.unwrap_or_else(crate::threads::cores);
    let pool = Arc::new(CopyPool::new(threads, "tidemill-gpu"));
    let maker = Arc::new(Maker { shaders, counters: context.counters.clone(), span_shift: info.span_shift });
    let completion = Completion {
        id: info.id,
        name: info.name.clone(),
        context: context.clone(),
        pool: pool.clone(),
        lost,
        alignment: Alignment::default(),
        previous_end_ns: 0,
        #[cfg(any(test, feature = "testing"))]
        completed: 0,
        eager: Eager::new(LOOK_FOR_DEVICE, info.software),
        eager_for_work: Eager::new(LOOK_FOR_WORK, info.software),
    };
    let mut queue = Queue {
        info,
        index: opened.index,
        features: opened.features,
        context,
        standing: None,
        current: Arc::default(),
        generation: 0,
        buffers: Buffers::default(),
        maker,
        pool,
        work,
        losses,
        done: None,
        stamp_dispatches,
        encoding: false,
    };
    queue.stand(opened)?;
    let thread = std::thread::Builder::new().name(format!("tidemill-gpu{}-done", queue.info.id.0));
    queue.done = Some(thread.spawn(move || completion.run(&completions)).map_err(thread_error)?);
    queue.warm_up()?;
    Ok(queue)
}

/// The upload ring of the current device.
struct GpuUploads {
    current: Current,
}

impl UploadMemory for GpuUploads {
    fn lease(&self, bytes: usize) -> Option<Box<dyn MappedBytes>> {
        let station = self.current.read().clone()?;
        station.uploads.lease(&station.gpu, bytes)
    }
}

impl Backend for Queue {
    type Signal = u32;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn driving(&self) -> Driving {
        let thread = format!("tidemill-gpu{}-queue", self.info.id.0);
        Driving { thread, lane: "gpu queue", look: Some(LOOK_FOR_WORK) }
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(GpuCompiler { current: self.current.clone(), maker: self.maker.clone() })
    }

    fn upload_memory(&self) -> Option<Arc<dyn UploadMemory>> {
        Some(Arc::new(GpuUploads { current: self.current.clone() }))
    }

    /// The signals of the completion thread: each is the generation of a device that was lost.
    fn signals(&self) -> Receiver<u32> {
        self.losses.clone()
    }

    fn take_threads(&mut self) -> Vec<JoinHandle<()>> {
        self.done.take().into_iter().collect()
    }

    fn submit(&mut self, batch: Batch, wrong: Wrong, _more_waits: bool) -> Result<(), DeviceLoss> {
        self.batch(&batch, wrong);
        match self.lost_generation() {
            Some(generation) => self.recover(generation),
            None => Ok(()),
        }
    }

    fn release(&mut self, buffers: Vec<BufferId>) {
        buffers.into_iter().for_each(|buffer| self.free(buffer));
    }

    /// Drops free memory that was not needed lately.
    fn trim(&mut self, all: bool) {
        let Some((station, tools)) = &mut self.standing else { return };
        tools.staging.trim(all);
        tools.readbacks.trim(all);
        station.uploads.trim(all);
        if all {
            tools.bounce = None;
        }
        // wgpu frees dropped buffers when it is polled. An error can be ignored, because the next batch finds a loss,
        // too.
        let _ = station.gpu.poll();
    }

    fn signalled(&mut self, generation: u32) -> Result<(), DeviceLoss> {
        self.recover(generation)
    }

    /// The completion thread reports the batches in flight, and ends after them.
    fn finish(&mut self) {
        // No new compilation is started. One that is under way keeps the device alive until it ends.
        *self.current.write() = None;
        if let Some((station, tools)) = self.standing.take_if(|(station, _)| !station.gpu.is_lost()) {
            // The device is dropped last, so that the next runtime that takes it finds no buffers in it.
            self.buffers.clear();
            drop(tools);
            station.uploads.close();
            station.keep();
            station.gpu.leave();
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // This also stops compilations for a device that ends without `finish`.
        *self.current.write() = None;
    }
}

impl Queue {
    /// Starts a thread that compiles the shaders that the program is likely to need.
    fn warm_up(&self) -> Result<()> {
        let Some(most) = self.context.config.warm_up else { return Ok(()) };
        let (current, maker) = (self.current.clone(), self.maker.clone());
        let run = move || {
            // The exit of the process waits for the driver's compiler.
            let _leaving = Leaving::begin();
            warm_up(&current, &maker, most);
        };
        let thread = std::thread::Builder::new().name(format!("tidemill-gpu{}-warm", self.info.id.0));
        thread.spawn(run).map(drop).map_err(thread_error)
    }

    /// Makes an opened device the current one.
    fn stand(&mut self, opened: Opened) -> Result<()> {
        let driver_cache = DriverCache::open(&opened);
        let known = Known::open(&opened.about);
        let Opened { gpu, features, .. } = opened;
        let stamps = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS;
        let queries = features.contains(stamps).then(|| gpu.checked(|| make_queries(&gpu))).transpose()?;
        if !features.contains(wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES) {
            self.stamp_dispatches = false;
        }
        let bytes = |(hardware, software): (u64, u64)| if self.info.software { software } else { hardware };
        let counters = || self.context.counters.clone();
        let tools = Tools {
            groups: BindGroups::default(),
            staging: Staging::new(bytes(STAGING_BYTES), counters()),
            readbacks: Readbacks::new(bytes(READBACK_BYTES), counters()),
            params: None,
            bounce: None,
            queries,
        };
        let host_budget = self.context.config.host_budget.unwrap_or(u64::MAX);
        let uploads = Uploads::new(bytes(UPLOAD_BYTES).min(host_budget), counters());
        let station = Arc::new(Station { gpu, pipelines: Default::default(), uploads, driver_cache, known });
        *self.current.write() = Some(station.clone());
        self.standing = Some((station, tools));
        Ok(())
    }

    fn batch(&mut self, batch: &Batch, wrong: Wrong) {
        self.encoding = false;
        let timeline = self.context.timeline.clone();
        let make = |parent| tracing::debug_span!(parent: parent, "batch", region = batch.region.0);
        let run = || timeline.in_span(&timeline.callers().of(batch.region), make, || self.run_batch(batch, wrong));
        let outcome = catch_unwind(AssertUnwindSafe(run));
        let error = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(panic) => Some(self.panicked(&panic_words(&*panic))),
        };
        if let Some(error) = error {
            self.rescue(batch);
            self.allocations_of(batch);
            let error = blamed(error, blame_from(&batch.commands, 0)).with_device(self.info.name.clone());
            // The report goes through the completion thread, so that batches are reported in order (GPU-2).
            let _ = self.work.send(CompletionTask::Failed(batch.id, error));
        }
    }

    fn run_batch(&mut self, batch: &Batch, wrong: Wrong) -> Result<()> {
        let began_ns = self.context.timeline.now_ns();
        let Some((station, _)) = &self.standing else { return Err(lost_for_good()) };
        if wrong.loses() {
            station.gpu.mark_lost("a loss was injected");
        }
        wrong.starve()?;
        wrong.panic();
        self.execute(batch, began_ns, false)
    }

    /// Runs the readbacks of a batch that failed before any of it ran, for values of other batches, whose slots this
    /// batch gives away. A readback that cannot be rescued fails with the batch.
    fn rescue(&mut self, batch: &Batch) {
        let commands = if self.encoding { Vec::new() } else { older_readbacks(&batch.commands) };
        if commands.is_empty() {
            return;
        }
        let (id, region, session) = (batch.id, batch.region, batch.session);
        let began_ns = self.context.timeline.now_ns();
        let rescue = Batch { id, region, session, commands };
        drop(catch_unwind(AssertUnwindSafe(|| self.execute(&rescue, began_ns, true))));
    }

    fn execute(&mut self, batch: &Batch, began_ns: u64, rescue: bool) -> Result<()> {
        let Some((station, tools)) = &mut self.standing else { return Err(lost_for_good()) };
        if station.gpu.is_lost() {
            return Err(station.gpu.loss_error());
        }
        let preparer = Preparer { station, maker: &self.maker, buffers: &mut self.buffers, groups: &mut tools.groups };
        let prepared = preparer.batch(batch)?;
        let label = if prepared.steps.is_empty() { String::new() } else { label(&prepared) };
        let Prepared { dispatches, kernel_bytes, copied_bytes, .. } = prepared;
        let mut end = BatchEnd {
            batch: batch.id,
            region: batch.region,
            session: batch.session,
            shared: None,
            shared_used: false,
            alone: Vec::new(),
            arrivals: prepared.arrivals.clone(),
            faults: prepared.faults.clone(),
            stamps: None,
            submitted_ns: began_ns,
            label,
            blame: blame_from(&batch.commands, 0),
            rescue,
        };
        let mut flight =
            Flight { station: station.clone(), finish: None, chunks: Vec::new(), held: Vec::new(), end: None };
        self.encoding = true;
        if !prepared.steps.is_empty() {
            let stamping = match (self.context.timeline.is_on(), self.stamp_dispatches) {
                (false, _) => Stamping::Off,
                (true, false) => Stamping::Batch,
                (true, true) => Stamping::Dispatches,
            };
            let timeline = &self.context.timeline;
            let encoding = Encoding {
                station,
                tools,
                pool: &self.pool,
                work: &self.work,
                counters: &self.context.counters,
                now_ns: &|| timeline.now_ns(),
                stamping,
            };
            let submitted = encoding.run(prepared)?;
            end.submitted_ns = self.context.timeline.now_ns();
            self.count(dispatches, kernel_bytes, copied_bytes, &submitted);
            self.draw(batch, began_ns, end.submitted_ns, &submitted);
            flight.finish = Some(submitted.finish);
            flight.chunks = submitted.chunks;
            flight.held = submitted.held;
            end.shared_used = submitted.shared.is_some();
            end.shared = submitted.shared;
            end.alone = submitted.alone;
            end.stamps = submitted.stamps;
        }
        flight.end = Some(end);
        let _ = self.work.send(CompletionTask::Flight(Box::new(flight)));
        Ok(())
    }

    fn count(&self, dispatches: u64, kernel_bytes: (u64, u64), copied_bytes: u64, submitted: &Submitted) {
        let counters = &self.context.counters;
        Counters::add(&counters.dispatches, dispatches);
        Counters::add(&counters.bytes_kernel_read, kernel_bytes.0);
        Counters::add(&counters.bytes_kernel_written, kernel_bytes.1);
        Counters::add(&counters.bytes_copied, copied_bytes);
        Counters::add(&counters.bytes_uploaded, submitted.uploaded);
        Counters::add(&counters.bytes_staged, submitted.staged);
    }

    fn draw(&self, batch: &Batch, began_ns: u64, ended_ns: u64, submitted: &Submitted) {
        let timeline = &self.context.timeline;
        if !timeline.is_on() {
            return;
        }
        let details = [("batch", Detail::Int(batch.id.0 as i64)), ("region", Detail::Int(batch.region.0 as i64))];
        timeline.span(Lane::DeviceQueue(self.info.id), "encode and submit", began_ns, ended_ns, &details);
        timeline.flow_end(Lane::DeviceQueue(self.info.id), flow::to_device(batch.region), began_ns);
        timeline.flow_start(Lane::DeviceQueue(self.info.id), arrow(Arrow::ToCompute, self.info.id, batch.id), began_ns);
        for &(start, end, bytes) in &submitted.fills {
            let details = [("bytes", Detail::Int(bytes as i64)), ("region", Detail::Int(batch.region.0 as i64))];
            timeline.span(Lane::DeviceUpload(self.info.id), "upload", start, end, &details);
        }
    }

    /// Makes and drops all allocations of a failed batch, however far it got: later batches, which were sent before the
    /// failure was known, name them.
    fn allocations_of(&mut self, batch: &Batch) {
        for command in &batch.commands {
            match command {
                Command::Allocate { buffer, bytes } => self.allocate(*buffer, *bytes),
                Command::Free { buffer } => self.free(*buffer),
                _ => {}
            }
        }
    }

    /// Makes an allocation, or records why it cannot be made, for the batches that name it.
    fn allocate(&mut self, buffer: BufferId, bytes: u64) {
        let Some((station, tools)) = &mut self.standing else { return };
        if station.gpu.is_lost() {
            return;
        }
        let make = || self.buffers.allocate(&station.gpu, buffer, bytes);
        drop(catch_unwind(AssertUnwindSafe(make)));
        // The batch may have replaced the allocation and failed before it removed bind groups of the old one.
        tools.groups.forget(buffer);
    }

    fn free(&mut self, buffer: BufferId) {
        if let Some((_, tools)) = &mut self.standing {
            tools.groups.forget(buffer);
        }
        self.buffers.free(buffer);
    }

    /// Handles a panic while a batch was prepared or encoded. If the device still answers, only this batch fails.
    fn panicked(&mut self, words: &str) -> Error {
        if let Some((station, _)) = &self.standing {
            station.gpu.doubt();
            if !station.gpu.wait_idle(HEALTH_WAIT) {
                station.gpu.mark_lost(&format!("it does not answer after a panic ({words})"));
                return station.gpu.loss_error();
            }
        }
        Error::new(ErrorKind::Internal, format!("the device's thread panicked: {words}"))
    }

    fn lost_generation(&self) -> Option<u32> {
        let (station, _) = self.standing.as_ref()?;
        station.gpu.is_lost().then_some(station.gpu.generation)
    }

    /// Waits until batches in flight have failed, and tries to open the adapter again.
    ///
    /// # Errors
    /// The loss, with whether the device was replaced. `Ok` if this loss was handled already.
    fn recover(&mut self, generation: u32) -> Result<(), DeviceLoss> {
        let same = |(station, _): &mut (Arc<Station>, Tools)| station.gpu.generation == generation;
        // If the loss was handled already, the current device has another generation.
        let Some((station, tools)) = self.standing.take_if(same) else { return Ok(()) };
        *self.current.write() = None;
        // The completion thread fails all batches in flight on a lost device, without help from this thread (GPU-1).
        let (done, reached) = bounded(1);
        let _ = self.work.send(CompletionTask::Barrier(done));
        let _ = reached.recv();
        let error = station.gpu.loss_error();
        self.buffers.clear();
        // wgpu may panic on an assertion while a lost device is dropped. That must not end this thread.
        drop(catch_unwind(AssertUnwindSafe(move || drop((tools, station)))));
        self.generation += 1;
        let again = catch_unwind(AssertUnwindSafe(|| {
            let opened = adapter::reopen(self.index, &self.info.name, self.features, self.generation)?;
            self.stand(opened)
        }));
        let replaced = matches!(again, Ok(Ok(())));
        Err(DeviceLoss { error, replaced })
    }
}

fn make_queries(gpu: &Gpu) -> (wgpu::QuerySet, wgpu::Buffer) {
    let set = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
        label: None,
        ty: wgpu::QueryType::Timestamp,
        count: QUERIES,
    });
    let resolved = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("time-stamps"),
        size: u64::from(QUERIES) * 8,
        usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    });
    (set, resolved)
}

/// A batch's name on the timeline: the ops of its first kernels.
fn label(prepared: &Prepared) -> String {
    let mut labels: Vec<&str> = Vec::new();
    let mut more = false;
    for step in &prepared.steps {
        let Step::Dispatch(dispatch) = step else { continue };
        if labels.last() == Some(&&*dispatch.label) {
            continue;
        }
        if labels.len() == LABELS_MAX {
            more = true;
            break;
        }
        labels.push(&dispatch.label);
    }
    match labels.is_empty() {
        true => "copies".to_owned(),
        false => labels.join(", ") + if more { ", …" } else { "" },
    }
}
fn lost_for_good() -> Error {
    Error::new(ErrorKind::DeviceLost, "the device was lost and could not be opened again")
}

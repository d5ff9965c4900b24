//! Second pass over a batch: commands are encoded, uploads staged, and all is submitted at once.
//!
//! Must hold: GPU-3, GPU-5. Only when the staging ring is exhausted does a batch take several submissions.

use super::bind::BindGroups;
use super::copy::CopyPool;
use super::finish::Finish;
use super::flight::{CompletionTask, Flight, Stamps};
use super::pipelines::Station;
use super::prepare::{Dispatch, Params, Prepared, Range, Step};
use super::readback::{Landing, Readbacks};
use super::staging::{Chunk, ClosedChunk, Staging};
use crate::device::backend::blamed;
use crate::error::{Error, ErrorKind, Result};
use crate::host_buffer::HostBuffer;
use crate::stats::Counters;
use crossbeam_channel::Sender;
use std::sync::Arc;
use std::time::Duration;

/// Time-stamp queries in the set: the begin of a batch, its end, and its dispatches.
pub(super) const QUERIES: u32 = 2048;
/// The least size of the parameter buffer.
const PARAMS_BYTES_MIN: u64 = 64 << 10;
/// The size of the bounce buffer: larger than the largest slot of a slab.
const BOUNCE_BYTES: u64 = 256 << 10;
/// How long to wait at a time for a chunk to come back.
const CHUNK_WAIT: Duration = Duration::from_millis(50);

/// The rings, caches and buffers of one device that every batch uses.
pub(super) struct Tools {
    /// Bind groups.
    pub(super) groups: BindGroups,
    /// The upload ring.
    pub(super) staging: Staging,
    /// The readback ring.
    pub(super) readbacks: Readbacks,
    /// The parameters of the batch that runs. One buffer is enough, since submissions do not overlap.
    pub(super) params: Option<wgpu::Buffer>,
    /// Copies between slots of one buffer go through this buffer, because wgpu copies between different buffers only.
    pub(super) bounce: Option<wgpu::Buffer>,
    /// The query set, and the buffer it is resolved to.
    pub(super) queries: Option<(wgpu::QuerySet, wgpu::Buffer)>,
}

/// The begin and end of filling an upload, in nanoseconds, and its bytes.
pub(super) type Fill = (u64, u64, u64);

/// A batch that was submitted.
pub(super) struct Submitted {
    /// Signals the end of the submission.
    pub(super) finish: Arc<Finish>,
    /// Staging chunks that it reads.
    pub(super) chunks: Vec<ClosedChunk>,
    /// The shared readback buffer.
    pub(super) shared: Option<(Landing, u64)>,
    /// Readback buffers that hold one value each.
    pub(super) alone: Vec<(Landing, u64)>,
    /// Time-stamps.
    pub(super) stamps: Option<Stamps>,
    /// Uploads, for the timeline.
    pub(super) fills: Vec<Fill>,
    /// Bytes uploaded.
    pub(super) uploaded: u64,
    /// Of these, bytes that were copied to staging memory first.
    pub(super) staged: u64,
    /// Host data that it reads in place.
    pub(super) held: Vec<Arc<HostBuffer>>,
}

/// Which time-stamps to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamping {
    /// None.
    Off,
    /// Begin and end of the batch.
    Batch,
    /// Also after each dispatch.
    Dispatches,
}

/// A batch being encoded.
pub(super) struct Encoding<'a> {
    /// The device.
    pub(super) station: &'a Arc<Station>,
    /// Its rings and caches.
    pub(super) tools: &'a mut Tools,
    /// Copy threads.
    pub(super) pool: &'a CopyPool,
    /// Where extra submissions go.
    pub(super) work: &'a Sender<CompletionTask>,
    /// Counters.
    pub(super) counters: &'a Counters,
    /// The clock of fills.
    pub(super) now_ns: &'a dyn Fn() -> u64,
    /// Stamps wanted.
    pub(super) stamping: Stamping,
}

/// The state that grows while a batch is encoded.
struct Growing {
    // Dropped before the encoder that it belongs to.
    pass: Option<wgpu::ComputePass<'static>>,
    encoder: wgpu::CommandEncoder,
    chunks: Vec<Chunk>,
    /// Bytes that are still to be staged; they determine the size of the next chunk.
    to_stage: u64,
    fills: Vec<Fill>,
    uploaded: u64,
    staged: u64,
    held: Vec<Arc<HostBuffer>>,
    labels: Vec<Arc<str>>,
}

impl Growing {
    /// The encoder, outside of any pass.
    fn encoder(&mut self) -> &mut wgpu::CommandEncoder {
        self.pass = None;
        &mut self.encoder
    }
}

impl Encoding<'_> {
    /// Encodes and submits.
    ///
    /// # Errors
    /// An error that wgpu reported. Nothing of the last submission has run then.
    pub(super) fn run(mut self, mut prepared: Prepared) -> Result<Submitted> {
        let station = self.station.clone();
        // One error scope around the whole batch, since errors of encoding are reported when the encoder is finished.
        station.gpu.checked(|| self.encode(&mut prepared))?
    }

    fn encode(&mut self, prepared: &mut Prepared) -> Result<Submitted> {
        let stamps_at = self.stamps(prepared);
        let shared = self.landing(prepared.shared_bytes)?;
        let mut alone = Vec::with_capacity(prepared.alone.len());
        for bytes in &prepared.alone {
            alone.push((self.tools.readbacks.acquire(&self.station.gpu, *bytes)?, *bytes));
        }
        let mut growing = Growing {
            pass: None,
            encoder: self.encoder(),
            chunks: Vec::new(),
            to_stage: prepared.staged_bytes,
            fills: Vec::new(),
            uploaded: 0,
            staged: 0,
            held: Vec::new(),
            labels: Vec::new(),
        };
        let params = self.stage_params(prepared, &mut growing)?;
        self.stamp_begin(&mut growing);
        for step in &prepared.steps {
            let landing = |i: Option<usize>| match i {
                Some(i) => &alone[i].0,
                None => &shared.as_ref().expect("GPU-8: bytes of the shared buffer were set aside").0,
            };
            match step {
                Step::Upload { from, first, to } => self.upload(from, *first, to, &mut growing)?,
                Step::Forget(buffer) => self.tools.groups.forget(*buffer),
                Step::Zero(r) => growing.encoder().clear_buffer(&r.buffer, r.offset, Some(r.bytes)),
                Step::Copy(from, to) if from.buffer == to.buffer => self.bounce(from, to, &mut growing),
                Step::Copy(from, to) => copy(growing.encoder(), from, &to.buffer, to.offset),
                Step::LandShared(from, at) => copy(growing.encoder(), from, landing(None).buffer(), *at),
                Step::LandAlone(from, i) => copy(growing.encoder(), from, landing(Some(*i)).buffer(), 0),
                Step::Dispatch(dispatch) => {
                    self.dispatch(dispatch, &prepared.immediates, params.as_ref(), &mut growing)
                        .map_err(|error| blamed(error, Some(dispatch.blame)))?;
                }
            }
        }
        let stamps = self.stamp_end(stamps_at, shared.as_ref().map(|s| &s.0), &mut growing);
        let Growing { pass, encoder, chunks, fills, uploaded, staged, held, .. } = growing;
        drop(pass);
        let (finish, chunks) = self.submit(encoder, chunks);
        Ok(Submitted { finish, chunks, shared, alone, stamps, fills, uploaded, staged, held })
    }

    fn encoder(&self) -> wgpu::CommandEncoder {
        self.station.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None })
    }

    fn landing(&self, bytes: u64) -> Result<Option<(Landing, u64)>> {
        if bytes == 0 {
            return Ok(None);
        }
        Ok(Some((self.tools.readbacks.acquire(&self.station.gpu, bytes)?, bytes)))
    }

    fn submit(&self, encoder: wgpu::CommandEncoder, chunks: Vec<Chunk>) -> (Arc<Finish>, Vec<ClosedChunk>) {
        let commands = encoder.finish();
        let chunks = chunks.into_iter().map(Chunk::close).collect();
        let queue = &self.station.gpu.queue;
        queue.submit([commands]);
        // No other thread submits, so the latest submission is this one.
        let finish = Finish::of(queue);
        Counters::add(&self.counters.submissions, 1);
        (finish, chunks)
    }

    /// Copies the batch's parameters to the parameter buffer, which grows where it must.
    fn stage_params(&mut self, prepared: &Prepared, growing: &mut Growing) -> Result<Option<wgpu::Buffer>> {
        if prepared.params.is_empty() {
            return Ok(None);
        }
        let enough = |b: &wgpu::Buffer| b.size() >= prepared.params_bytes;
        let params = match self.tools.params.clone().filter(enough) {
            Some(params) => params,
            None => {
                let params = self.station.gpu.device.create_buffer(&wgpu::BufferDescriptor {
                    label: Some("parameters"),
                    size: prepared.params_bytes.next_power_of_two().max(PARAMS_BYTES_MIN),
                    usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                });
                // Cached bind groups name the old buffer.
                self.tools.groups.clear();
                self.tools.params.insert(params).clone()
            }
        };
        let bytes = crate::host_buffer::as_bytes(&prepared.params);
        self.stage(bytes, crate::graph::DType::U32, &params, 0, growing)?;
        Ok(Some(params))
    }

    /// Copies between slots of one buffer.
    fn bounce(&mut self, from: &Range, to: &Range, growing: &mut Growing) {
        let enough = |b: &wgpu::Buffer| b.size() >= from.bytes;
        let between = self.tools.bounce.clone().filter(enough).unwrap_or_else(|| {
            self.station.gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("bounce"),
                size: from.bytes.max(BOUNCE_BYTES),
                usage: wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        });
        copy(growing.encoder(), from, &between, 0);
        growing.encoder().copy_buffer_to_buffer(&between, 0, &to.buffer, to.offset, from.bytes);
        // A larger bounce buffer is dropped after its copy, because residency does not count its memory.
        if between.size() == BOUNCE_BYTES {
            self.tools.bounce = Some(between);
        }
    }

    fn upload(&mut self, from: &Arc<HostBuffer>, first: u64, to: &Range, growing: &mut Growing) -> Result<()> {
        let dtype = from.dtype();
        let direct = self.station.uploads.buffer_of(from).filter(|_| dtype.bytes() == dtype.gpu_bytes());
        if let Some(buffer) = direct {
            let offset = first * dtype.bytes() as u64;
            growing.encoder().copy_buffer_to_buffer(&buffer, offset, &to.buffer, to.offset, to.bytes);
            growing.uploaded += to.bytes;
            growing.held.push(from.clone());
            return Ok(());
        }
        let elements = to.bytes / dtype.gpu_bytes() as u64;
        let (start, end) = (first as usize * dtype.bytes(), (first + elements) as usize * dtype.bytes());
        let began = (self.now_ns)();
        self.stage(&from.bytes()[start..end], dtype, &to.buffer, to.offset, growing)?;
        growing.fills.push((began, (self.now_ns)(), to.bytes));
        growing.uploaded += to.bytes;
        growing.staged += to.bytes;
        Ok(())
    }

    /// Writes host elements to staging memory and encodes copies from there.
    fn stage(
        &mut self,
        host: &[u8],
        dtype: crate::graph::DType,
        to: &wgpu::Buffer,
        to_offset: u64,
        growing: &mut Growing,
    ) -> Result<()> {
        let (host_width, gpu_width) = (dtype.bytes() as u64, dtype.gpu_bytes() as u64);
        let elements = host.len() as u64 / host_width;
        let mut done = 0;
        while done < elements {
            let at = self.chunk((elements - done) * gpu_width, growing)?;
            let chunk = &mut growing.chunks[at];
            let some = (chunk.room() / gpu_width).min(elements - done);
            let Some((offset, memory)) = chunk.take(some * gpu_width) else {
                return Err(Error::new(ErrorKind::Internal, "a staging chunk is smaller than it says"));
            };
            let piece = &host[(done * host_width) as usize..((done + some) * host_width) as usize];
            // SAFETY: the chunk set these bytes aside for us and stays mapped until it is closed.
            unsafe { self.pool.fill(piece, dtype, memory) };
            let source = chunk.buffer().clone();
            let (at, bytes) = (to_offset + done * gpu_width, some * gpu_width);
            growing.encoder().copy_buffer_to_buffer(&source, offset, to, at, bytes);
            growing.to_stage = growing.to_stage.saturating_sub(bytes);
            done += some;
        }
        Ok(())
    }

    /// A chunk with room: for all `bytes`, or, where that is more than a chunk holds, an empty one.
    fn chunk(&mut self, bytes: u64, growing: &mut Growing) -> Result<usize> {
        if let Some(at) = growing.chunks.iter().rposition(|chunk| chunk.room() >= bytes) {
            return Ok(at);
        }
        loop {
            let wanted = growing.to_stage.max(bytes);
            if let Some(chunk) = self.tools.staging.acquire(&self.station.gpu, wanted)? {
                growing.chunks.push(chunk);
                return Ok(growing.chunks.len() - 1);
            }
            if growing.chunks.is_empty() {
                // All chunks are in flight. The completion thread returns them without help from this thread (GPU-1).
                self.tools.staging.wait(CHUNK_WAIT);
            } else {
                self.flush(growing)?;
            }
            if self.station.gpu.is_lost() {
                return Err(self.station.gpu.loss_error());
            }
        }
    }

    /// Submits what is encoded so far, so that its chunks come back.
    fn flush(&mut self, growing: &mut Growing) -> Result<()> {
        growing.pass = None;
        let next = self.encoder();
        let encoder = std::mem::replace(&mut growing.encoder, next);
        let chunks = std::mem::take(&mut growing.chunks);
        // Only stamps of the last submission count, since queries are reset by the encoder that writes them.
        growing.labels.clear();
        self.stamp_begin(growing);
        let station = self.station.clone();
        let (finish, chunks) = station.gpu.checked(|| self.submit(encoder, chunks))?;
        let held = std::mem::take(&mut growing.held);
        let flight = Flight { station, finish: Some(finish), chunks, held, end: None };
        // This fails only if the completion thread has ended, and then no report is needed.
        let _ = self.work.send(CompletionTask::Flight(Box::new(flight)));
        Ok(())
    }

    fn dispatch(
        &mut self,
        dispatch: &Dispatch,
        immediates: &[u32],
        block: Option<&wgpu::Buffer>,
        growing: &mut Growing,
    ) -> Result<()> {
        let layout = &dispatch.pipeline.layout;
        let params = match dispatch.params {
            Params::Block { window, .. } => {
                Some((block.expect("GPU-8: a batch whose dispatches bind parameters has a block of them"), window))
            }
            Params::Immediate(_) => None,
        };
        let group = self.tools.groups.get(&self.station.gpu, layout, params, &dispatch.bound)?;
        if growing.pass.is_none() {
            let pass = growing.encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            growing.pass = Some(pass.forget_lifetime());
        }
        let Some(pass) = &mut growing.pass else { return Ok(()) };
        pass.set_pipeline(&dispatch.pipeline.pipeline);
        match &dispatch.params {
            Params::Block { at, .. } => pass.set_bind_group(0, &group, &[*at]),
            Params::Immediate(words) => {
                pass.set_bind_group(0, &group, &[]);
                pass.set_immediates(0, crate::host_buffer::as_bytes(&immediates[words.clone()]));
            }
        }
        let [x, y, z] = dispatch.grid;
        pass.dispatch_workgroups(x, y, z);
        if let (Stamping::Dispatches, Some((set, _))) = (self.stamping, &self.tools.queries)
            && (growing.labels.len() as u32) < QUERIES - 2
        {
            pass.write_timestamp(set, 2 + growing.labels.len() as u32);
            growing.labels.push(dispatch.label.clone());
        }
        Ok(())
    }

    /// Reserves space for stamps in the shared readback buffer; `None` if stamps are off.
    fn stamps(&self, prepared: &mut Prepared) -> Option<u64> {
        self.tools.queries.as_ref().filter(|_| self.stamping != Stamping::Off)?;
        let dispatches = match self.stamping {
            Stamping::Dispatches => prepared.dispatches.min(u64::from(QUERIES) - 2),
            Stamping::Off | Stamping::Batch => 0,
        };
        Some(prepared.shared((2 + dispatches) * 8))
    }

    fn stamp_begin(&self, growing: &mut Growing) {
        if let Some((set, _)) = self.tools.queries.as_ref().filter(|_| self.stamping != Stamping::Off) {
            growing.encoder().write_timestamp(set, 0);
        }
    }

    fn stamp_end(&self, at: Option<u64>, shared: Option<&Landing>, growing: &mut Growing) -> Option<Stamps> {
        let (at, shared, (set, resolved)) = (at?, shared?, self.tools.queries.as_ref()?);
        let labels = std::mem::take(&mut growing.labels);
        let count = 2 + labels.len() as u32;
        let encoder = growing.encoder();
        encoder.write_timestamp(set, 1);
        encoder.resolve_query_set(set, 0..count, resolved, 0);
        encoder.copy_buffer_to_buffer(resolved, 0, shared.buffer(), at, u64::from(count) * 8);
        let period_ns = f64::from(self.station.gpu.queue.get_timestamp_period());
        Some(Stamps { at, labels, period_ns })
    }
}

fn copy(encoder: &mut wgpu::CommandEncoder, from: &Range, to: &wgpu::Buffer, at: u64) {
    encoder.copy_buffer_to_buffer(&from.buffer, from.offset, to, at, from.bytes);
}

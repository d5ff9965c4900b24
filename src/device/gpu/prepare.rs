//! First pass over a batch: allocations are made, ids become buffers, launches become pipelines, bindings and
//! parameters. Nothing is encoded yet, so a missing or exhausted resource fails the batch before any of it has run.
//!
//! In: a batch. Out: steps in order, one block of parameters, and the destination of each readback.

use super::bind::{BindGroups, Bound};
use super::buffers::Buffers;
use super::pipelines::{Maker, Pipeline, Station};
use crate::contract::batch::{Batch, Command, Slot, Transfer};
use crate::contract::plan::{Launch, Program};
use crate::device::backend::{Blame, blame_from, blamed};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::DType;
use crate::host_buffer::HostBuffer;
use crate::ids::BufferId;
use crate::kernels::ir::{HEADER_WORDS, Tile};
use smallvec::SmallVec;
use std::sync::Arc;

/// Parameter blocks begin at multiples of this: the largest alignment of a dynamic offset there is.
const PARAMS_ALIGN: u64 = 256;
/// Readbacks up to this size share one buffer and are copied out of it. Larger ones are given to the user as views of
/// mapped memory.
const SHARED_BYTES_MAX: u64 = 64 << 10;
/// Pieces of the shared buffer begin at multiples of this.
const SHARED_ALIGN: u64 = 16;

/// A range of a buffer.
pub(super) struct Range {
    /// The buffer.
    pub(super) buffer: wgpu::Buffer,
    /// First byte.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) bytes: u64,
}

/// A step to encode.
pub(super) enum Step {
    /// Copy host elements to a buffer.
    Upload {
        /// The host buffer.
        from: Arc<HostBuffer>,
        /// Its first element; as many are copied as `to` holds.
        first: u64,
        /// The destination.
        to: Range,
    },
    /// Fill with zeros.
    Zero(Range),
    /// Copy device memory to device memory.
    Copy(Range, Range),
    /// Run a kernel.
    Dispatch(Dispatch),
    /// Copy device memory to the shared readback buffer, at this offset.
    LandShared(Range, u64),
    /// Copy device memory to a readback buffer of its own, by its number.
    LandAlone(Range, usize),
    /// Encode nothing: from here on, the name stands for another allocation, or for none.
    Forget(BufferId),
}

/// One dispatch.
pub(super) struct Dispatch {
    /// The pipeline.
    pub(super) pipeline: Arc<Pipeline>,
    /// The buffers that are bound after the parameters.
    pub(super) bound: Arc<[Bound]>,
    /// Where its parameters are.
    pub(super) params: Params,
    /// Workgroups.
    pub(super) grid: [u32; 3],
    /// Its ops, for the timeline.
    pub(super) label: Arc<str>,
    /// The op to blame if it fails.
    pub(super) blame: Blame,
}

/// Where a dispatch's parameters are.
pub(super) enum Params {
    /// In the batch's block.
    Block {
        /// Where they begin, in bytes.
        at: u32,
        /// Bytes that are bound.
        window: u64,
    },
    /// Among the batch's immediates, these words.
    Immediate(std::ops::Range<usize>),
}

/// The destination of a readback.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// In the shared buffer, at this offset.
    Shared(u64),
    /// In its own buffer, by number.
    Alone(usize),
}

/// A readback under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Its number.
    pub(super) transfer: Transfer,
    /// Element type.
    pub(super) dtype: DType,
    /// Elements.
    pub(super) elements: u64,
    /// Its destination.
    pub(super) place: Place,
}

impl Arrival {
    /// Bytes in GPU form.
    pub(super) fn gpu_bytes(&self) -> u64 {
        self.elements * self.dtype.gpu_bytes() as u64
    }
}

/// A batch, ready to encode.
#[derive(Default)]
pub(super) struct Prepared {
    /// What to encode.
    pub(super) steps: Vec<Step>,
    /// Parameter words of the dispatches that bind them, each block padded to `PARAMS_ALIGN`.
    pub(super) params: Vec<u32>,
    /// Parameter words of the dispatches that carry them.
    pub(super) immediates: Vec<u32>,
    /// Bytes that the parameter buffer must have, so that every window fits.
    pub(super) params_bytes: u64,
    /// Bytes to stage: parameters and uploads.
    pub(super) staged_bytes: u64,
    /// Bytes of the shared readback buffer.
    pub(super) shared_bytes: u64,
    /// Bytes of each readback buffer that holds one value.
    pub(super) alone: Vec<u64>,
    /// Readbacks.
    pub(super) arrivals: Vec<Arrival>,
    /// Offsets in the shared buffer, and numbers, of fault words.
    pub(super) faults: Vec<(u64, u32)>,
    /// Dispatches among the steps.
    pub(super) dispatches: u64,
    /// Bytes that are read and written by the launches whose last tile is in this batch.
    pub(super) kernel_bytes: (u64, u64),
    /// Bytes copied from slot to slot.
    pub(super) copied_bytes: u64,
}

/// The state that preparation needs.
pub(super) struct Preparer<'a> {
    /// The device.
    pub(super) station: &'a Station,
    /// Shaders and counters.
    pub(super) maker: &'a Maker,
    /// Allocations.
    pub(super) buffers: &'a mut Buffers,
    /// The cached bind groups, from which freed allocations are removed.
    pub(super) groups: &'a mut BindGroups,
}

/// One dispatch command's fields.
struct Run<'a> {
    launch: &'a Launch,
    tile: Tile,
    bindings: &'a [SmallVec<[Slot; 1]>],
    faults: Option<Slot>,
    span_shift: u32,
}

impl Preparer<'_> {
    /// Prepares a batch.
    ///
    /// # Errors
    /// The first error, with the op to blame.
    pub(super) fn batch(mut self, batch: &Batch) -> Result<Prepared> {
        let mut out = Prepared::default();
        for (at, command) in batch.commands.iter().enumerate() {
            self.command(command, &mut out).map_err(|error| blamed(error, blame_from(&batch.commands, at)))?;
        }
        out.staged_bytes += out.params.len() as u64 * 4;
        Ok(out)
    }

    fn command(&mut self, command: &Command, out: &mut Prepared) -> Result<()> {
        match command {
            Command::Allocate { buffer, bytes } => {
                if self.buffers.allocate(&self.station.gpu, *buffer, *bytes)? {
                    self.forget(*buffer, out);
                }
            }
            Command::Free { buffer } => {
                self.forget(*buffer, out);
                self.buffers.free(*buffer);
            }
            Command::Upload { from, first, elements, to } => {
                let to = self.elements(to, from.dtype(), *elements)?;
                if first + elements > from.len() as u64 {
                    return Err(Error::new(ErrorKind::Internal, "an upload reads past the end of its host buffer"));
                }
                let direct = self.station.uploads.buffer_of(from).is_some();
                out.staged_bytes += if direct { 0 } else { to.bytes };
                if to.bytes > 0 {
                    out.steps.push(Step::Upload { from: from.clone(), first: *first, to });
                }
            }
            Command::Zero { slot } if slot.bytes == 0 => {}
            Command::Zero { slot } => out.steps.push(Step::Zero(self.range(slot)?)),
            Command::Copy { from, .. } if from.bytes == 0 => {}
            Command::Copy { from, to } => {
                out.steps.push(Step::Copy(self.range(from)?, self.range(to)?));
                out.copied_bytes += from.bytes;
            }
            Command::Dispatch { launch, tile, bindings, faults, span_shift } => {
                let (tile, faults, span_shift) = (*tile, *faults, *span_shift);
                self.dispatch(Run { launch, tile, bindings, faults, span_shift }, out)?;
            }
            Command::Readback { transfer, from, dtype, elements } => {
                let from = self.elements(from, *dtype, *elements)?;
                out.readback(*transfer, from, *dtype, *elements);
            }
            Command::ReadFaults { words: 0, .. } => {}
            Command::ReadFaults { slot, words } => {
                let from = self.elements(slot, DType::U32, u64::from(*words))?;
                let at = out.shared(from.bytes);
                out.faults.push((at, *words));
                out.steps.push(Step::LandShared(from, at));
            }
        }
        Ok(())
    }

    /// Adds a step that removes the bind groups that name an allocation, after the earlier dispatches, which may create
    /// such groups (GPU-7).
    fn forget(&mut self, buffer: BufferId, out: &mut Prepared) {
        match out.steps.is_empty() {
            true => self.groups.forget(buffer),
            false => out.steps.push(Step::Forget(buffer)),
        }
    }

    fn range(&self, slot: &Slot) -> Result<Range> {
        Ok(Range { buffer: self.buffers.get(slot)?.clone(), offset: slot.offset, bytes: slot.bytes })
    }

    /// The range of a slot that its first `elements` take.
    fn elements(&self, slot: &Slot, dtype: DType, elements: u64) -> Result<Range> {
        let range = self.range(slot)?;
        let bytes = elements * dtype.gpu_bytes() as u64;
        if bytes > range.bytes {
            let message = format!("{elements} elements of {dtype} don't fit a slot of {} bytes", range.bytes);
            return Err(Error::new(ErrorKind::Internal, message));
        }
        Ok(Range { bytes, ..range })
    }

    fn dispatch(&mut self, run: Run, out: &mut Prepared) -> Result<()> {
        match &run.launch.program {
            Program::Kernel(kernel, hash) => {
                let pipeline = self.station.pipelines.kernel(self.maker, self.station, kernel, *hash)?;
                let slots = run.bindings.iter().flatten().chain(run.faults.iter().filter(|_| kernel.faults));
                let bound = self.bind(slots, &pipeline)?;
                let shaders = &self.maker.shaders;
                for call in shaders.calls(kernel, &run.launch.geometry, run.tile, run.span_shift) {
                    let body = run.launch.params.get(HEADER_WORDS as usize..).unwrap_or(&[]);
                    out.call(&pipeline, &bound, &[&call.header, body], call.grid, run.launch);
                }
            }
            Program::Library(library) => {
                let segments: Vec<u8> = run.bindings.iter().map(|slots| slots.len() as u8).collect();
                let passes = self.maker.shaders.passes(library, &segments, run.span_shift)?;
                for pass in passes.iter() {
                    let pipeline = self.station.pipelines.pass(self.maker, self.station, pass, &segments)?;
                    let operands = pass.operands.iter().filter_map(|o| run.bindings.get(usize::from(*o))).flatten();
                    let bound = self.bind(operands.chain(run.faults.iter().filter(|_| pass.faults)), &pipeline)?;
                    // A pass that can fault finds its fault word's number in word 0, where the launch has it too.
                    let word = run.launch.params.first().copied().filter(|_| pass.faults);
                    let (first, rest) = pass.params.split_first().unwrap_or((&0, &[]));
                    let first = [word.unwrap_or(*first)];
                    out.call(&pipeline, &bound, &[&first, rest], pass.grid, run.launch);
                }
            }
        }
        if run.tile.last {
            out.kernel_bytes.0 += run.launch.bytes_read;
            out.kernel_bytes.1 += run.launch.bytes_written;
        }
        Ok(())
    }

    fn bind<'s>(&self, slots: impl Iterator<Item = &'s Slot>, pipeline: &Pipeline) -> Result<Arc<[Bound]>> {
        let bind = |slot: &Slot| Ok(Bound { slot: *slot, buffer: self.buffers.get(slot)?.clone() });
        let bound: Arc<[Bound]> = slots.map(bind).collect::<Result<Vec<Bound>>>()?.into();
        if bound.len() != pipeline.given.bindings as usize {
            let message = format!("a kernel of {} bindings was given {}", pipeline.given.bindings, bound.len());
            return Err(Error::new(ErrorKind::Internal, message));
        }
        Ok(bound)
    }
}

impl Prepared {
    fn call(
        &mut self,
        pipeline: &Arc<Pipeline>,
        bound: &Arc<[Bound]>,
        params: &[&[u32]],
        grid: [u32; 3],
        launch: &Launch,
    ) {
        if grid.contains(&0) {
            return;
        }
        let params = match pipeline.given.immediate_words {
            0 => self.block(params),
            words => self.immediate(params, words as usize),
        };
        self.dispatches += 1;
        self.steps.push(Step::Dispatch(Dispatch {
            pipeline: pipeline.clone(),
            bound: bound.clone(),
            params,
            grid,
            label: launch.label.clone(),
            blame: launch.blame,
        }));
    }

    /// Puts parameters into the block.
    fn block(&mut self, params: &[&[u32]]) -> Params {
        let at = self.params.len() as u64 * 4;
        for words in params {
            self.params.extend_from_slice(words);
        }
        let bytes = self.params.len() as u64 * 4 - at;
        // Windows have few different sizes, so that launches of different kernels share bind groups.
        let window = bytes.next_power_of_two().max(PARAMS_ALIGN);
        self.params.resize(((at + bytes.max(4)).next_multiple_of(PARAMS_ALIGN) / 4) as usize, 0);
        self.params_bytes = self.params_bytes.max(at + window);
        Params::Block { at: at as u32, window }
    }

    /// Puts parameters among the immediates, exactly as many words as the pipeline takes.
    fn immediate(&mut self, params: &[&[u32]], words: usize) -> Params {
        let at = self.immediates.len();
        for some in params {
            self.immediates.extend_from_slice(some);
        }
        self.immediates.resize(at + words, 0);
        Params::Immediate(at..at + words)
    }

    fn readback(&mut self, transfer: Transfer, from: Range, dtype: DType, elements: u64) {
        let place = if from.bytes <= SHARED_BYTES_MAX {
            let at = self.shared(from.bytes);
            if from.bytes > 0 {
                self.steps.push(Step::LandShared(from, at));
            }
            Place::Shared(at)
        } else {
            self.alone.push(from.bytes);
            self.steps.push(Step::LandAlone(from, self.alone.len() - 1));
            Place::Alone(self.alone.len() - 1)
        };
        self.arrivals.push(Arrival { transfer, dtype, elements, place });
    }

    /// Reserves bytes of the shared readback buffer.
    pub(super) fn shared(&mut self, bytes: u64) -> u64 {
        let at = self.shared_bytes;
        self.shared_bytes = (at + bytes).next_multiple_of(SHARED_ALIGN);
        at
    }
}

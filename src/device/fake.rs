//! A fake device for tests: the smallest backend, with a mix of capabilities that no real device has.
//!
//! In: batches. Out: reports. Its description says that it compiles kernels, shares the host's memory, binds at most 8
//! arrays and lacks f64. So a test with this device fails if code asks for the kind of a device where it should ask for
//! its capabilities. In truth it compiles nothing: it interprets kernels on host threads. Each command ends before the
//! next one begins, a launch works on copies of its operands, and a batch is reported before `submit` returns. That
//! makes the code easy to check; its speed does not matter.
//!
//! Must hold: BACKEND-1 to BACKEND-5; FAKE-1: a generated kernel that binds too many arrays, or a dtype that the device
//! lacks, fails its batch, so that a test finds the plan that broke the limits.

use super::backend::{Backend, Context, DeviceLoss, Driving, blame_from, blamed};
use crate::contract::batch::{Batch, Command, Slot};
use crate::contract::device::{Capabilities, DeviceInfo, DeviceKind, Features};
use crate::contract::plan::{Launch, Program};
use crate::error::{Error, ErrorKind, Result, panic_words};
use crate::host_buffer::{HostBuffer, MappedBytes};
use crate::ids::{BufferId, DeviceId};
use crate::injection::Wrong;
use crate::kernels::eval::{self, HostOperand, Pool};
use crate::stats::Counters;
use crossbeam_channel::{Receiver, never};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

/// How many arrays a kernel may bind, parameters and fault words included.
const BINDINGS_MAX: u32 = 8;

/// The state of the fake device.
pub(super) struct Fake {
    context: Context,
    info: DeviceInfo,
    pool: Pool,
    /// The memory of each allocation, or the error of an allocation that could not be made.
    buffers: BTreeMap<BufferId, Result<Memory>>,
    /// Whether the device was lost at least once. An unknown name is then taken for one from before the loss.
    lost: bool,
}

/// Bytes that are aligned for every dtype.
#[derive(Clone, Debug)]
struct Memory {
    words: Vec<u64>,
}

impl Memory {
    /// Memory of this size, rounded up to whole words and filled with zeros.
    fn zeroed(bytes: u64) -> Result<Memory> {
        let words = bytes.div_ceil(8) as usize;
        let mut memory = Memory { words: Vec::new() };
        let out_of_memory =
            |_| Error::new(ErrorKind::OutOfMemory, format!("the fake device has no {bytes} bytes left"));
        memory.words.try_reserve_exact(words).map_err(out_of_memory)?;
        memory.words.resize(words, 0);
        Ok(memory)
    }

    /// Memory that holds a copy of these bytes.
    fn of(bytes: &[u8]) -> Result<Memory> {
        let mut memory = Memory::zeroed(bytes.len() as u64)?;
        memory.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(memory)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.words)
    }
}

impl MappedBytes for Memory {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words)
    }
}

/// The results of a batch that are reported at its end.
#[derive(Default)]
struct Done {
    /// Indices of the fault words that are set.
    faults: Vec<u32>,
    /// Nanoseconds that its launches took.
    device_ns: u64,
}

impl Fake {
    /// Opens a fake device that is described as this host is, except for what `describe` changes. Its memory budget is a
    /// quarter of the host's.
    ///
    /// # Errors
    /// `ErrorKind::Device` if the system starts no threads.
    pub fn open(host: &DeviceInfo, context: Context) -> Result<Fake> {
        let pool = Pool::new(context.config.worker_threads)?;
        Ok(Fake { info: describe(host), context, pool, buffers: BTreeMap::new(), lost: false })
    }

    fn memory(&mut self, buffer: BufferId) -> Result<&mut Memory> {
        match self.buffers.get_mut(&buffer) {
            Some(Ok(memory)) => Ok(memory),
            Some(Err(error)) => Err(error.clone()),
            None if self.lost => {
                Err(Error::new(ErrorKind::DeviceLost, "the device was lost with the memory of this work"))
            }
            None => Err(internal(format!("the fake device has no allocation {buffer}"))),
        }
    }

    /// The bytes of a slot.
    fn slot(&mut self, slot: Slot) -> Result<&mut [u8]> {
        let bytes = self.memory(slot.buffer)?.bytes_mut();
        let there = bytes.len();
        let range = slot.offset as usize..(slot.offset + slot.bytes) as usize;
        let outside = || internal(format!("{slot:?} is outside of an allocation of {there} bytes"));
        bytes.get_mut(range).ok_or_else(outside)
    }

    /// Makes an allocation. If one of this name and size exists, it keeps its memory and its contents.
    fn allocate(&mut self, buffer: BufferId, bytes: u64) -> Result<()> {
        let words = bytes.div_ceil(8) as usize;
        if matches!(self.buffers.get(&buffer), Some(Ok(there)) if there.words.len() == words) {
            return Ok(());
        }
        let made = Memory::zeroed(bytes);
        let result = made.as_ref().map(drop).map_err(Error::clone);
        self.buffers.insert(buffer, made);
        result
    }

    /// Makes and frees all allocations that the commands of a failed batch name (BACKEND-3).
    fn allocations_of(&mut self, batch: &Batch) {
        for command in &batch.commands {
            match command {
                // The error is kept under the name: a later batch that uses the allocation fails with it.
                Command::Allocate { buffer, bytes } => drop(self.allocate(*buffer, *bytes)),
                Command::Free { buffer } => drop(self.buffers.remove(buffer)),
                _ => {}
            }
        }
    }

    /// Runs a batch up to the first command that fails.
    fn run(&mut self, batch: &Batch, wrong: Wrong) -> Result<Done> {
        let mut done = Done::default();
        wrong.starve().map_err(|error| blamed(error, blame_from(&batch.commands, 0)))?;
        wrong.panicked().map_err(|error| blamed(error, blame_from(&batch.commands, 0)))?;
        for (at, command) in batch.commands.iter().enumerate() {
            let result = catch_unwind(AssertUnwindSafe(|| self.command(command, &mut done)));
            let result =
                result.unwrap_or_else(|panic| Err(internal(format!("a kernel panicked: {}", panic_words(&*panic)))));
            result.map_err(|error| blamed(error, blame_from(&batch.commands, at)))?;
        }
        Ok(done)
    }

    fn command(&mut self, command: &Command, done: &mut Done) -> Result<()> {
        match command {
            Command::Allocate { buffer, bytes } => self.allocate(*buffer, *bytes)?,
            Command::Free { buffer } => drop(self.buffers.remove(buffer)),
            Command::Upload { from, first, elements, to } => {
                let width = from.dtype().bytes();
                let (first, bytes) = (*first as usize * width, *elements as usize * width);
                self.slot(*to)?[..bytes].copy_from_slice(&from.bytes()[first..first + bytes]);
                Counters::add(&self.context.counters.bytes_uploaded, bytes as u64);
            }
            Command::Zero { slot } => self.slot(*slot)?.fill(0),
            Command::Copy { from, to } => {
                let copied = self.slot(*from)?.to_vec();
                self.slot(*to)?.copy_from_slice(&copied);
                Counters::add(&self.context.counters.bytes_copied, from.bytes);
            }
            Command::Dispatch { launch, bindings, faults, .. } => {
                let start = Instant::now();
                self.launch(launch, bindings, *faults)?;
                done.device_ns += start.elapsed().as_nanos() as u64;
            }
            Command::Readback { transfer, from, dtype, elements } => {
                let memory = Memory::of(&self.slot(*from)?[..*elements as usize * dtype.bytes()])?;
                Counters::add(&self.context.counters.bytes_read_back, elements * dtype.bytes() as u64);
                let data = HostBuffer::from_mapped(*dtype, *elements as usize, Box::new(memory));
                self.context.reports.readback(*transfer, Ok(data.shared()));
            }
            Command::ReadFaults { slot, words } => {
                let bytes = &self.slot(*slot)?[..*words as usize * 4];
                let set = bytes.chunks_exact(4).enumerate().filter(|(_, word)| *word != [0; 4]);
                done.faults.extend(set.map(|(number, _)| number as u32));
            }
        }
        Ok(())
    }

    /// Runs a launch on copies of its operands, and copies back the operands that it writes.
    fn launch(&mut self, launch: &Launch, bindings: &[SmallVec<[Slot; 1]>], faults: Option<Slot>) -> Result<()> {
        self.check_limits(launch, faults)?;
        let unused = |number: usize| match &launch.program {
            Program::Kernel(kernel, _) => kernel.scratch == Some(number as u16),
            Program::Library(_) => false,
        };
        let mut copies = Vec::new();
        for (number, slots) in bindings.iter().enumerate() {
            copies.push(match slots[..] {
                [slot] if !unused(number) => Some((slot, Memory::of(self.slot(slot)?)?)),
                [] | [_] => None,
                _ => return Err(internal("the fake device has no segments")),
            });
        }
        let mut operands: SmallVec<[HostOperand<'_>; 8]> = SmallVec::new();
        for copy in &mut copies {
            operands.push(match copy {
                Some((slot, memory)) => HostOperand::write(&mut memory.bytes_mut()[..slot.bytes as usize]),
                None => HostOperand::none(),
            });
        }
        let words = match faults {
            Some(slot) => Some(self.slot(slot)?.chunks_exact(4).map(fault_word).collect::<Vec<AtomicU32>>()),
            None => None,
        };
        let counters = self.context.counters.clone();
        match &launch.program {
            Program::Kernel(kernel, _) => {
                let (geometry, params) = (&launch.geometry, &launch.params);
                eval::run(kernel, geometry, params, &operands, words.as_deref(), &self.pool, &counters)?;
            }
            Program::Library(library) => {
                let site = launch.params.first().copied().unwrap_or(0) as usize;
                eval::run_library(library, &operands, words.as_deref(), site, &self.pool, &counters)?;
            }
        }
        drop(operands);
        for (usage, copy) in launch.uses.iter().zip(&copies) {
            if let (true, Some((slot, memory))) = (usage.writes, copy) {
                self.slot(*slot)?.copy_from_slice(&memory.bytes()[..slot.bytes as usize]);
            }
        }
        if let (Some(slot), Some(words)) = (faults, words) {
            for (bytes, word) in self.slot(slot)?.chunks_exact_mut(4).zip(&words) {
                bytes.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
            }
        }
        Counters::add(&counters.bytes_kernel_read, launch.bytes_read);
        Counters::add(&counters.bytes_kernel_written, launch.bytes_written);
        Ok(())
    }

    /// Fails for a generated kernel that binds too many arrays, or a dtype that the device lacks (FAKE-1). Library
    /// kernels are not checked.
    fn check_limits(&self, launch: &Launch, faults: Option<Slot>) -> Result<()> {
        let Program::Kernel(kernel, _) = &launch.program else { return Ok(()) };
        let bound = kernel.operands.len() + 1 + usize::from(faults.is_some());
        if bound > self.info.bindings_max as usize {
            return Err(internal(format!("a kernel binds {bound} arrays, and the fake device {BINDINGS_MAX}")));
        }
        match kernel.operands.iter().find(|operand| !self.info.has(operand.dtype)) {
            Some(operand) => Err(internal(format!("a kernel binds {}, which the fake device lacks", operand.dtype))),
            None => Ok(()),
        }
    }
}

impl Backend for Fake {
    type Signal = Infallible;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn driving(&self) -> Driving {
        Driving { thread: "tidemill-fake".to_owned(), lane: "fake", look: None }
    }

    fn signals(&self) -> Receiver<Infallible> {
        never()
    }

    fn submit(&mut self, batch: Batch, wrong: Wrong, _more_waits: bool) -> Result<(), DeviceLoss> {
        let name = self.info.name.clone();
        if wrong.loses() {
            let error = Error::new(ErrorKind::DeviceLost, "the device was lost").with_device(name);
            self.buffers.clear();
            self.lost = true;
            self.context.reports.failed(batch.id, blamed(error.clone(), blame_from(&batch.commands, 0)));
            return Err(DeviceLoss { error, replaced: true });
        }
        match self.run(&batch, wrong) {
            Ok(done) => self.context.reports.finished(batch.id, done.faults, done.device_ns),
            Err(error) => {
                self.allocations_of(&batch);
                self.context.reports.failed(batch.id, error.with_device(name));
            }
        }
        Ok(())
    }

    fn release(&mut self, buffers: Vec<BufferId>) {
        for buffer in buffers {
            self.buffers.remove(&buffer);
        }
    }

    fn trim(&mut self, _all: bool) {}

    fn signalled(&mut self, signal: Infallible) -> Result<(), DeviceLoss> {
        match signal {}
    }

    fn finish(&mut self) {}
}

/// The description of the fake device: that of the host, with other capabilities, limits and budgets.
fn describe(host: &DeviceInfo) -> DeviceInfo {
    let budget_bytes = host.budget_bytes / 4;
    DeviceInfo {
        id: DeviceId::GPU,
        kind: DeviceKind::Gpu,
        name: "fake".to_owned(),
        capabilities: Capabilities {
            compiles: true,
            shares_host_memory: true,
            owns_host_budget: false,
            runs_all: false,
            needs_scratch: false,
            pads_narrow_types: false,
            is_throughput: true,
            overlaps_long: false,
            queues_launches: true,
        },
        features: Features { f64: false, ..host.features },
        bindings_max: BINDINGS_MAX,
        budget_bytes,
        memory_bytes: budget_bytes,
        host_share_bytes: budget_bytes,
        ..host.clone()
    }
}

fn fault_word(bytes: &[u8]) -> AtomicU32 {
    AtomicU32::new(u32::from_ne_bytes(bytes.try_into().unwrap_or_default()))
}

fn internal(words: impl Into<String>) -> Error {
    Error::new(ErrorKind::Internal, words)
}
